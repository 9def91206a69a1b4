package peer;

import static peer.Harness.check;
import static peer.Harness.expect;
import static peer.Harness.same;

import interop.*;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.ORB;
import org.omg.CORBA.StringHolder;
import org.omg.CORBA.SystemException;
import org.omg.PortableServer.POA;

/** The cases of objects: attributes, exceptions, references, callbacks, and calls over time and from many threads. */
final class Objects {
    private final Harness cases;
    private final interop.Suite suite;
    private final ORB orb;
    private final POA root;

    Objects(Harness cases, interop.Suite suite, ORB orb, POA root) {
        this.cases = cases;
        this.suite = suite;
        this.orb = orb;
        this.root = root;
    }

    void attributes() {
        cases.run("attribute/count", () -> {
            for (int value : new int[] {Integer.MIN_VALUE, 0, Integer.MAX_VALUE}) {
                suite.count(value);
                check(suite.count() == value, "value");
            }
        });
        cases.run("attribute/low_high", () -> {
            suite.low((short) -1);
            suite.high((short) 1);
            check(suite.low() == -1 && suite.high() == 1, "value");
        });
        cases.run("attribute/title", () -> {
            for (String value : new String[] {"a title", "caf\u00e9", ""}) {
                suite.title(value);
                same("title", value, suite.title());
            }
        });
        cases.run("attribute/tint", () -> {
            suite.tint(Color.infra_red);
            check(suite.tint() == Color.infra_red, "value");
        });
        cases.run("attribute/bin", () -> {
            BinStruct bin = new BinStruct((short) 1, 'c', 2, (byte) 3, 4.5);
            suite.bin(bin);
            same("bin", bin, suite.bin());
        });
        cases.run("attribute/compound", () -> {
            Variable compound = new Variable("text", "code", new int[] {1, 2}, new byte[] {3}, Color.blue);
            suite.compound(compound);
            same("compound", compound, suite.compound());
        });
        cases.run("attribute/numbers", () -> {
            suite.numbers(new int[] {1, -2, 3});
            same("numbers", new int[] {1, -2, 3}, suite.numbers());
        });
        cases.run("attribute/cells", () -> {
            double[][] cells = {{1, 2, 3}, {4, 5, 6}};
            suite.cells(cells);
            same("cells", cells, suite.cells());
        });
        cases.run("attribute/choice", () -> {
            ByLong choice = new ByLong();
            choice.text("chosen");
            suite.choice(choice);
            same("choice", choice, suite.choice());
        });
        cases.run("attribute/partner", () -> {
            suite.partner(null);
            check(suite.partner() == null, "not nil");
            suite.partner(node(77));
            check(suite.partner().id() == 77, "id");
        });
        cases.run("attribute/answer", () -> check(suite.answer() == 42, "value"));
        cases.run("attribute/guarded", () -> {
            suite.guarded(0);
            expect(Empty.class, suite::guarded);
            suite.guarded(5);
            check(suite.guarded() == 5, "value");
            Refused refused = expect(Refused.class, () -> suite.guarded(-9));
            check(refused.why.equals("negative") && refused.code == -9, "members of Refused");
            expect(Empty.class, () -> suite.guarded(13));
            check(suite.guarded() == 5, "changed by a refused write");
        });
        cases.run("attribute/locked", () -> check(expect(Detailed.class, suite::locked).trail.length == 1, "trail"));
    }

    void faults() {
        cases.run("raise_empty", () -> expect(Empty.class, suite::raise_empty));
        cases.run("raise_one_of", () -> {
            check(suite.raise_one_of(0) == 1, "result");
            expect(Empty.class, () -> suite.raise_one_of(1));
            Refused refused = expect(Refused.class, () -> suite.raise_one_of(2));
            check(refused.why.equals("asked") && refused.code == 2, "members of Refused");
            check(expect(Occupied.class, () -> suite.raise_one_of(3)).holder == null, "holder is not nil");
            check(suite.raise_one_of(50) == 101, "result afterwards");
        });
        cases.run("raise_detailed", () -> {
            for (short depth : new short[] {0, 1, 3, 300}) {
                Detailed e = expect(Detailed.class, () -> suite.raise_detailed(depth));
                same("at", new BinStruct(depth, 'd', 2 * depth, (byte) 255, 0.5), e.at);
                check(e.trail.length == depth, "trail");
                for (int i = 0; i < depth; ++i) same("trail", Integer.toString(i), e.trail[i]);
                check(e.tint == Color.green && e.pair.first.equals("deep"), "tint, pair");
                check(e.pair.outer.first == depth && e.pair.outer.second == -depth, "pair.outer");
            }
        });
        cases.run("raise_occupied", () -> {
            Node node = node(31);
            check(expect(Occupied.class, () -> suite.raise_occupied(node)).holder.id() == 31, "holder");
        });
        Fault[] faults = {Fault.bad_param, Fault.no_permission, Fault.imp_limit, Fault.internal, Fault.no_resources,
            Fault.no_implement, Fault.inv_policy, Fault.data_conversion};
        for (Fault fault : faults) {
            String name = fault.toString().toUpperCase();
            cases.run("raise_system/" + name, () -> {
                for (int minor : new int[] {0, 0x49520001, -1}) {
                    for (int completed = 0; completed < 3; ++completed) {
                        Completion completion = Completion.from_int(completed);
                        try {
                            suite.raise_system(fault, minor, completion);
                        } catch (SystemException e) {
                            check(e.getClass().getSimpleName().equals(name) && e.minor == minor
                                && e.completed.value() == completed, Harness.describe(e));
                            continue;
                        }
                        throw new Harness.Mismatch("raised nothing");
                    }
                }
            });
        }
        cases.run("unknown_user_exception", () -> {
            SkewClient skewed = SkewClientHelper.unchecked_narrow(suite.skewed());
            expect(org.omg.CORBA.UNKNOWN.class, () -> skewed.skew(4));
        });
        cases.run("known_user_exception", () -> {
            SkewServer skewed = SkewServerHelper.narrow(suite.skewed());
            check(expect(Undeclared.class, () -> skewed.skew(4)).code == 4, "code");
        });
        cases.run("bad_operation/skeleton", () -> {
            SkewClient skewed = SkewClientHelper.unchecked_narrow(suite.skewed());
            check(expect(org.omg.CORBA.BAD_OPERATION.class, skewed::missing).completed == CompletionStatus.COMPLETED_NO, "completion");
        });
        cases.run("bad_operation/dii", () -> {
            org.omg.CORBA.Request request = suite._request("no_such_operation");
            request.set_return_type(orb.get_primitive_tc(org.omg.CORBA.TCKind.tk_void));
            expect(org.omg.CORBA.BAD_OPERATION.class, () -> {
                request.invoke();
                if (request.env().exception() != null) throw request.env().exception();
            });
        });
        cases.run("dii_call", () -> {
            org.omg.CORBA.Request request = suite._request("echo_long");
            request.set_return_type(orb.get_primitive_tc(org.omg.CORBA.TCKind.tk_long));
            request.add_in_arg().insert_long(11);
            org.omg.CORBA.Any y = request.add_inout_arg(), z = request.add_out_arg();
            y.insert_long(22);
            z.type(orb.get_primitive_tc(org.omg.CORBA.TCKind.tk_long));
            request.invoke();
            if (request.env().exception() != null) throw request.env().exception();
            check(request.return_value().extract_long() == 11 && y.extract_long() == 11 && z.extract_long() == 22, "values");
        });
    }

    private Node node(int id) { return suite.create_node(id); }

    /** The same object by its address and key alone. */
    private org.omg.CORBA.Object untyped(org.omg.CORBA.Object object, String otherKey) {
        org.jacorb.orb.ParsedIOR ior = ((org.jacorb.orb.Delegate)
            ((org.omg.CORBA.portable.ObjectImpl) object)._get_delegate()).getParsedIOR();
        org.jacorb.orb.iiop.IIOPProfile profile = (org.jacorb.orb.iiop.IIOPProfile) ior.getEffectiveProfile();
        org.jacorb.orb.iiop.IIOPAddress address = (org.jacorb.orb.iiop.IIOPAddress) profile.getAddress();
        StringBuilder key = new StringBuilder();
        for (byte octet : otherKey == null ? profile.get_object_key() : otherKey.getBytes()) key.append(String.format("%%%02x", octet));
        String host = address.getIP();
        return orb.string_to_object("corbaloc:iiop:1." + profile.version().minor + "@" + (host.contains(":") ? "[" + host + "]" : host)
            + ":" + address.getPort() + "/" + key);
    }

    private final class ListenerServant extends ListenerPOA {
        final AtomicInteger asked = new AtomicInteger();
        final List<Integer> hints = new ArrayList<>();

        public int ask(int question) throws Refused {
            asked.incrementAndGet();
            if (question < 0) throw new Refused("no", question);
            // A call from within a call back.
            suite.nothing();
            return question + 1;
        }

        public synchronized void hint(int token) {
            hints.add(token);
            notifyAll();
        }

        public String describe(Variable v, StringHolder text, LongSeqHolder numbers) {
            numbers.value = v.numbers;
            String before = text.value;
            text.value = v.text;
            return before;
        }
    }

    void references() throws Exception {
        cases.run("create_node", () -> {
            Node a = node(1), b = node(Integer.MIN_VALUE);
            check(a.id() == 1 && b.id() == Integer.MIN_VALUE, "id");
            check(!a._is_equivalent(b), "two objects are equivalent");
            check(a.twin().id() == 1, "twin");
        });
        cases.run("echo_node", () -> {
            Node x = node(10);
            NodeHolder y = new NodeHolder(node(20)), z = new NodeHolder();
            Node result = suite.echo_node(x, y, z);
            check(result.id() == 10 && y.value.id() == 10 && z.value.id() == 20, "ids");
            check(result._is_equivalent(x), "not equivalent");
        });
        cases.run("echo_node/nil", () -> {
            NodeHolder y = new NodeHolder(node(20)), z = new NodeHolder();
            check(suite.echo_node(null, y, z) == null && y.value == null && z.value.id() == 20, "nil");
            Node x = z.value;
            check(suite.echo_node(x, y, z).id() == 20 && y.value.id() == 20 && z.value == null, "nil again");
        });
        cases.run("echo_object", () -> {
            org.omg.CORBA.ObjectHolder y = new org.omg.CORBA.ObjectHolder(suite), z = new org.omg.CORBA.ObjectHolder();
            org.omg.CORBA.Object result = suite.echo_object(node(5), y, z);
            check(NodeHelper.narrow(result).id() == 5 && NodeHelper.narrow(y.value).id() == 5, "id");
            check(SuiteHelper.narrow(z.value) != null, "narrow");
            check(suite.echo_object(null, y, z) == null && y.value == null && z.value != null, "nil");
        });
        cases.run("echo_nodes", () -> {
            NodeSeqHolder y = new NodeSeqHolder(new Node[0]), z = new NodeSeqHolder();
            Node[] result = suite.echo_nodes(new Node[] {node(1), null, node(3)}, y, z);
            check(result.length == 3 && y.value.length == 3 && z.value.length == 0, "lengths");
            check(result[0].id() == 1 && result[1] == null && result[2].id() == 3 && y.value[2].id() == 3, "elements");
        });
        cases.run("echo_objects", () -> {
            ObjectSeqHolder y = new ObjectSeqHolder(new org.omg.CORBA.Object[1]), z = new ObjectSeqHolder();
            org.omg.CORBA.Object[] result = suite.echo_objects(new org.omg.CORBA.Object[] {node(8), suite}, y, z);
            check(result.length == 2 && y.value.length == 2 && z.value.length == 1 && z.value[0] == null, "lengths");
            check(suite._is_equivalent(result[1]) && NodeHelper.narrow(result[0]).id() == 8, "elements");
        });
        cases.run("echo_link", () -> {
            LinkHolder y = new LinkHolder(new Link("right", null)), z = new LinkHolder();
            Link result = suite.echo_link(new Link("left", node(1)), y, z);
            check(result.label.equals("left") && result.target.id() == 1 && y.value.target.id() == 1, "link");
            check(z.value.label.equals("right") && z.value.target == null, "nil member");
        });
        cases.run("echo_node_or_name", () -> {
            NodeOrName x = new NodeOrName(), y = new NodeOrName();
            x.target(node(6));
            y.name("named");
            NodeOrNameHolder inout = new NodeOrNameHolder(y), z = new NodeOrNameHolder();
            NodeOrName result = suite.echo_node_or_name(x, inout, z);
            check(result.target().id() == 6 && inout.value.target().id() == 6 && z.value.name().equals("named"), "union");
        });
        cases.run("id_of", () -> check(suite.id_of(node(44)) == 44, "id"));
        cases.run("destroy", () -> {
            Node node = node(1);
            check(!node._non_existent(), "does not exist");
            node.destroy();
            check(expect(org.omg.CORBA.OBJECT_NOT_EXIST.class, node::id).completed == CompletionStatus.COMPLETED_NO, "completion");
            check(node._non_existent(), "still exists");
        });
        cases.run("sprite", () -> {
            Sprite sprite = suite.create_sprite("sprite", 2);
            sprite.move(1.5, -2);
            sprite.move(1, 1);
            sprite.scale(4);
            check(sprite.x() == 2.5 && sprite.y() == -1 && sprite.area() == 8, "state");
            sprite.name("renamed");
            check(sprite.name().equals("renamed") && sprite.draw(7).equals("renamed7"), "name, draw");
        });
        cases.run("widen", () -> {
            Shape shape = suite.widen(suite.create_sprite("w", 3));
            check(shape.area() == 3, "area");
            Movable movable = MovableHelper.narrow(shape);
            Sprite back = SpriteHelper.narrow(shape);
            check(ScalableHelper.narrow(shape) != null, "narrow");
            expect(org.omg.CORBA.BAD_PARAM.class, () -> NodeHelper.narrow(shape));
            movable.move(1, 0);
            check(back.x() == 1, "the same object");
        });
        cases.run("gauge", () -> {
            interop.deep.Gauge gauge = suite.create_gauge();
            check(gauge.reading() == interop.deep.Level.low, "initial");
            gauge.set_reading(interop.deep.Level.high);
            check(gauge.reading() == interop.deep.Level.high, "set");
        });
        String[] ids = {SpriteHelper.id(), MovableHelper.id(), ScalableHelper.id(), ShapeHelper.id(), "IDL:omg.org/CORBA/Object:1.0"};
        cases.run("is_a", () -> {
            Sprite sprite = suite.create_sprite("a", 1);
            for (String id : ids) check(sprite._is_a(id), id);
            check(!sprite._is_a(NodeHelper.id()), "is a Node");
        });
        // A corbaloc tells no type, so these questions go to the server.
        cases.run("is_a/remote", () -> {
            org.omg.CORBA.Object untyped = untyped(suite.create_sprite("a", 1), null);
            for (String id : ids) check(untyped._is_a(id), id);
            check(!untyped._is_a(NodeHelper.id()), "is a Node");
            check(ShapeHelper.narrow(untyped).area() == 1, "narrow");
        });
        cases.run("is_equivalent_hash", () -> {
            org.omg.CORBA.Object again = orb.string_to_object(orb.object_to_string(suite));
            check(suite._is_equivalent(again), "not equivalent to its copy");
            check(!suite._is_equivalent(node(1)), "equivalent to another");
        });
        cases.run("non_existent", () -> check(!suite._non_existent(), "does not exist"));
        cases.run("unknown_key", () -> {
            org.omg.CORBA.Object absent = untyped(suite, "no such object");
            check(absent._non_existent(), "exists");
            Node node = NodeHelper.unchecked_narrow(absent);
            check(expect(org.omg.CORBA.OBJECT_NOT_EXIST.class, node::id).completed == CompletionStatus.COMPLETED_NO, "completion");
        });
        cases.run("forwarded", () -> {
            Node forwarded = suite.forwarded(node(64));
            for (int i = 0; i < 3; ++i) check(forwarded.id() == 64, "id");
            check(!suite.forwarded(node(64))._non_existent(), "does not exist");
        });
        ListenerServant servant = new ListenerServant();
        Listener listener = ListenerHelper.narrow(root.id_to_reference(root.activate_object(servant)));
        cases.run("call_back", () -> {
            check(suite.call_back(listener, 41, 1) == 42, "one");
            check(suite.call_back(listener, 1, 50) == 100, "many");
            check(suite.call_back(listener, 1, 0) == 0, "none");
            check(servant.asked.get() == 51, "asked " + servant.asked);
        });
        cases.run("call_back/exception", () -> {
            Refused refused = expect(Refused.class, () -> suite.call_back(listener, -5, 3));
            check(refused.why.equals("no") && refused.code == -5, "members of Refused");
        });
        cases.run("hint_back", () -> {
            suite.hint_back(listener, 20);
            synchronized (servant) {
                long end = System.nanoTime() + 30_000_000_000L;
                while (servant.hints.size() < 20 && System.nanoTime() < end) servant.wait(100);
                servant.hints.sort(null);
                for (int i = 0; i < 20; ++i) check(servant.hints.get(i) == i + 1, "not each hint once");
            }
        });
        cases.run("describe_back", () -> {
            Variable v = new Variable("t".repeat(40), "", new int[] {4, 0}, new byte[0], Color.red);
            StringHolder text = new StringHolder("before");
            LongSeqHolder numbers = new LongSeqHolder();
            check(suite.describe_back(listener, v, text, numbers).equals("before") && text.value.equals(v.text), "text");
            same("numbers", v.numbers, numbers.value);
        });
        // Called when this client waits for nothing any more.
        cases.run("remind_back", () -> {
            synchronized (servant) {
                servant.hints.clear();
            }
            LaterHelper.narrow(suite.part("later")).remind(listener, 41);
            synchronized (servant) {
                long end = System.nanoTime() + 30_000_000_000L;
                while (servant.hints.isEmpty() && System.nanoTime() < end) servant.wait(100);
                check(servant.hints.equals(List.of(42)), "hints " + servant.hints);
            }
        });
    }

    private void untilWaiting(String gate) throws InterruptedException {
        for (int i = 0; i < 3000; ++i) {
            if (suite.waiting(gate) >= 1) return;
            Thread.sleep(10);
        }
        throw new Harness.Mismatch("the blocked call never arrived");
    }

    void control() {
        cases.run("oneway", () -> {
            suite.take_tokens(0, 0);
            for (int i = 1; i <= 100; ++i) suite._notify(i);
            int[] got = suite.take_tokens(100, 30000);
            // A server with many threads may run them in any order.
            java.util.Arrays.sort(got);
            check(got.length == 100, got.length + " of 100 arrived");
            for (int i = 0; i < 100; ++i) check(got[i] == i + 1, "not each token once");
        });
        cases.run("oneway/blob", () -> {
            suite.take_tokens(0, 0);
            suite.notify_blob(Types.octets(300_000), "a large oneway");
            suite.notify_blob(new byte[0], "");
            int[] got = suite.take_tokens(2, 30000);
            check(got.length == 2 && got[0] + got[1] == 300_000, "tokens");
        });
        // A stub of JacORB sends no context, not even an empty one.
        cases.run("context/none", () -> check(suite.with_context(1).length == 0, "an absent context carried something"));
        cases.run("block", () -> {
            int[] opened = new int[1];
            Thread blocked = new Thread(() -> opened[0] = suite.block("java"));
            blocked.start();
            untilWaiting("java");
            // The blocked call must not stop others.
            for (int i = 0; i < 20; ++i) suite.nothing();
            check(suite.release("java") == 1, "no call waited");
            blocked.join();
            check(opened[0] >= 1, "the blocked call");
        });
        cases.run("timeout", () -> {
            org.omg.CORBA.Any value = orb.create_any();
            // The unit is 100 ns.
            org.omg.TimeBase.TimeTHelper.insert(value, 4_000_000L);
            org.omg.CORBA.Policy policy = orb.create_policy(org.omg.Messaging.RELATIVE_RT_TIMEOUT_POLICY_TYPE.value, value);
            interop.Suite hurried = SuiteHelper.unchecked_narrow(
                suite._set_policy_override(new org.omg.CORBA.Policy[] {policy}, org.omg.CORBA.SetOverrideType.ADD_OVERRIDE));
            expect(org.omg.CORBA.TIMEOUT.class, () -> hurried.block("timeout"));
            // The server lives on, and still holds the call that timed out.
            untilWaiting("timeout");
            check(suite.release("timeout") == 1, "no call waited");
            check(suite.echo_long(1, new IntHolder(2), new IntHolder()) == 1, "a call after the timeout");
        });
        cases.run("threads", () -> {
            AtomicInteger wrong = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int t = 0; t < 8; ++t) {
                int thread = t;
                threads.add(new Thread(() -> {
                    try {
                        for (int i = 0; i < 60; ++i) {
                            IntHolder y = new IntHolder(thread), z = new IntHolder();
                            if (suite.echo_long(i * 8 + thread, y, z) != i * 8 + thread || z.value != thread) wrong.incrementAndGet();
                            byte[] sent = Types.octets(i * 97 * (thread + 1));
                            if (!java.util.Arrays.equals(sent, suite.reflect_octets(sent))) wrong.incrementAndGet();
                            if (!suite.type("" + thread, "" + i).equals(thread + "&" + i)) wrong.incrementAndGet();
                        }
                    } catch (RuntimeException e) {
                        wrong.incrementAndGet();
                    }
                }));
            }
            threads.forEach(Thread::start);
            for (Thread thread : threads) thread.join();
            check(wrong.get() == 0, wrong + " wrong");
        });
    }
}
