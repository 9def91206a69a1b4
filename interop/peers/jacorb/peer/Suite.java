package peer;

import interop.*;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.omg.CORBA.BooleanHolder;
import org.omg.CORBA.ByteHolder;
import org.omg.CORBA.CharHolder;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.DoubleHolder;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.LongHolder;
import org.omg.CORBA.ORB;
import org.omg.CORBA.ShortHolder;
import org.omg.CORBA.StringHolder;
import org.omg.CORBA.SystemException;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.Servant;

/** What interop::Suite does beside its echoes. Every operation does what interop.idl says beside it. */
public final class Suite {
    private final ORB orb;
    private final POA root;
    private final POA forwarder;

    Suite(ORB orb, POA root, POA forwarder) {
        this.orb = orb;
        this.root = root;
        this.forwarder = forwarder;
    }

    public String orb_name() { return "JacORB"; }

    public org.omg.CORBA.Object part(String name) throws Exception {
        Servant servant = new PartServants(orb, root).make(name);
        return servant == null ? null : activate(servant);
    }

    // ---- Basics

    public void nothing() {}

    public interop.BasicsPackage.ConstantValues constants() {
        return new interop.BasicsPackage.ConstantValues(C_SHORT.value, C_USHORT.value, C_LONG.value, C_ULONG.value,
            C_LLONG.value, C_ULLONG.value, C_FLOAT.value, C_DOUBLE.value, C_CHAR.value, C_BOOLEAN.value, C_OCTET.value,
            C_STRING.value, C_COLOR.value);
    }

    public void outs(ByteHolder a, DoubleHolder b, StringHolder c, ShortHolder d, LongSeqHolder last) {
        a.value = 1;
        b.value = 2.5;
        c.value = "three";
        d.value = -4;
        last.value = new int[] {5, -6};
    }

    public void inouts(ByteHolder a, DoubleHolder b, StringHolder c) {
        a.value += 1;
        b.value *= 2;
        c.value += c.value;
    }

    public double mix(ByteHolder small, String a, LongHolder n, byte b, StringHolder joined, double c) {
        int octet = b & 255;
        small.value = b;
        n.value = -n.value;
        joined.value = a + "/" + octet;
        return c + octet;
    }

    public int sum(byte a, short b, byte c, int d, byte k, long f, byte g, double h) {
        return (int) ((a & 255) + b + (c & 255) + d + (k & 255) + f + (g & 255) + (long) h);
    }

    public int _default(int in, int match, IntHolder self) {
        self.value = in - match;
        return in + match;
    }

    public String type(String fn, String ref) { return fn + "&" + ref; }

    // ---- Sequences

    public byte[] reflect_octets(byte[] data) { return data; }
    public int[] reflect_longs(int[] data) { return data; }
    public double[] reflect_doubles(double[] data) { return data; }
    public BinStruct[] reflect_bins(BinStruct[] data) { return data; }
    public String[] reflect_strings(String[] data) { return data; }
    public int swallow(byte[] data) { return data.length; }

    public byte[] produce(int length) {
        byte[] data = new byte[length];
        for (int i = 0; i < length; ++i) data[i] = (byte) (i % 251);
        return data;
    }

    // ---- Wide

    public void raise_wide(String why) throws interop.WidePackage.WideError { throw new interop.WidePackage.WideError(why); }

    public void wide_constants(CharHolder c, StringHolder text) {
        c.value = interop.Wide.C_WCHAR;
        text.value = interop.Wide.C_WSTRING;
    }

    // ---- Attributes

    private int count, guarded;
    private short low, high;
    private String title = "";
    private Color tint = Color.red;
    private BinStruct bin = new BinStruct();
    private Variable compound = new Variable("", "", new int[0], new byte[0], Color.red);
    private int[] numbers = {};
    private double[][] cells = new double[2][3];
    private ByLong choice = new ByLong();
    private Node partner;

    public synchronized int count() { return count; }
    public synchronized void count(int to) { count = to; }
    public synchronized short low() { return low; }
    public synchronized void low(short to) { low = to; }
    public synchronized short high() { return high; }
    public synchronized void high(short to) { high = to; }
    public synchronized String title() { return title; }
    public synchronized void title(String to) { title = to; }
    public synchronized Color tint() { return tint; }
    public synchronized void tint(Color to) { tint = to; }
    public synchronized BinStruct bin() { return bin; }
    public synchronized void bin(BinStruct to) { bin = to; }
    public synchronized Variable compound() { return compound; }
    public synchronized void compound(Variable to) { compound = to; }
    public synchronized int[] numbers() { return numbers; }
    public synchronized void numbers(int[] to) { numbers = to; }
    public synchronized double[][] cells() { return cells; }
    public synchronized void cells(double[][] to) { cells = to; }
    public synchronized ByLong choice() { return choice; }
    public synchronized void choice(ByLong to) { choice = to; }
    public synchronized Node partner() { return partner; }
    public synchronized void partner(Node to) { partner = to; }
    public long answer() { return 42; }

    public synchronized int guarded() throws Empty {
        if (guarded == 0) throw new Empty();
        return guarded;
    }

    public synchronized void guarded(int value) throws Refused, Empty {
        if (value < 0) throw new Refused("negative", value);
        if (value == 13) throw new Empty();
        guarded = value;
    }

    public int locked() throws Detailed { throw detailed((short) 1); }

    // ---- Faults

    private static Detailed detailed(short depth) {
        String[] trail = new String[depth];
        for (int i = 0; i < depth; ++i) trail[i] = Integer.toString(i);
        return new Detailed(new BinStruct(depth, 'd', 2 * depth, (byte) 255, 0.5), trail, Color.green,
            new interop.deep.Pair("deep", new Pair(depth, -depth)));
    }

    public void raise_empty() throws Empty { throw new Empty(); }

    public int raise_one_of(int which) throws Empty, Refused, Occupied {
        switch (which) {
            case 1: throw new Empty();
            case 2: throw new Refused("asked", which);
            case 3: throw new Occupied(null);
            default: return 2 * which + 1;
        }
    }

    public void raise_detailed(short depth) throws Detailed { throw detailed(depth); }
    public void raise_occupied(Node holder) throws Occupied { throw new Occupied(holder); }

    public void raise_system(Fault what, int minor, Completion completed) throws Exception {
        throw (SystemException) Class.forName("org.omg.CORBA." + what.toString().toUpperCase())
            .getConstructor(int.class, CompletionStatus.class)
            .newInstance(minor, CompletionStatus.from_int(completed.value()));
    }

    public org.omg.CORBA.Object skewed() throws Exception {
        return activate(new SkewServerPOA() {
            public void skew(int code) throws Undeclared { throw new Undeclared(code); }
        });
    }

    // ---- References

    private org.omg.CORBA.Object activate(Servant servant) throws Exception {
        return root.id_to_reference(root.activate_object(servant));
    }

    final class NodeServant extends NodePOA {
        private final int id;
        NodeServant(int id) { this.id = id; }
        public int id() { return id; }

        public Node twin() {
            try {
                return create_node(id);
            } catch (Exception e) {
                throw new org.omg.CORBA.INTERNAL(e.toString());
            }
        }

        public void destroy() {
            try {
                root.deactivate_object(_object_id());
            } catch (Exception e) {
                throw new org.omg.CORBA.INTERNAL(e.toString());
            }
        }
    }

    private static final class SpriteServant extends SpritePOA {
        private String name;
        private double area, x, y;
        SpriteServant(String name, double area) {
            this.name = name;
            this.area = area;
        }
        public synchronized String name() { return name; }
        public synchronized void name(String to) { name = to; }
        public synchronized double area() { return area; }
        public synchronized void move(double dx, double dy) {
            x += dx;
            y += dy;
        }
        public synchronized double x() { return x; }
        public synchronized double y() { return y; }
        public synchronized void scale(double factor) { area *= factor; }
        public synchronized String draw(int frame) { return name + frame; }
    }

    private static final class GaugeServant extends interop.deep.GaugePOA {
        private interop.deep.Level level = interop.deep.Level.low;
        public synchronized interop.deep.Level reading() { return level; }
        public synchronized void set_reading(interop.deep.Level to) { level = to; }
    }

    public Node create_node(int id) throws Exception { return NodeHelper.narrow(activate(new NodeServant(id))); }
    public Sprite create_sprite(String name, double area) throws Exception {
        return SpriteHelper.narrow(activate(new SpriteServant(name, area)));
    }
    public interop.deep.Gauge create_gauge() throws Exception { return interop.deep.GaugeHelper.narrow(activate(new GaugeServant())); }
    public Shape widen(Sprite s) { return s; }
    public int id_of(Node n) { return n.id(); }

    public Node forwarded(Node target) throws Exception {
        byte[] id = orb.object_to_string(target).getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        return NodeHelper.unchecked_narrow(forwarder.create_reference_with_id(id, NodeHelper.id()));
    }

    public int call_back(Listener to, int question, int times) throws Refused {
        int total = 0;
        for (int i = 0; i < times; ++i) total += to.ask(question);
        return total;
    }

    public void hint_back(Listener to, int count) {
        for (int i = 1; i <= count; ++i) to.hint(i);
    }

    public String describe_back(Listener to, Variable v, StringHolder text, LongSeqHolder numbers) {
        return to.describe(v, text, numbers);
    }

    // ---- Control

    private static final class Gate {
        int waiting, openings;
    }

    private final List<Integer> tokens = new ArrayList<>();
    private final Map<String, Gate> gates = new HashMap<>();
    private boolean closing;

    public void _notify(int token) { arrived(token); }
    public void notify_blob(byte[] blob, String text) { arrived(blob.length); }

    private synchronized void arrived(int token) {
        tokens.add(token);
        notifyAll();
    }

    public synchronized int[] take_tokens(int count, int wait_ms) throws InterruptedException {
        long end = System.nanoTime() + wait_ms * 1_000_000L;
        for (long left = wait_ms; tokens.size() < count && left > 0; left = (end - System.nanoTime()) / 1_000_000) wait(left);
        int[] taken = tokens.stream().mapToInt(Integer::intValue).toArray();
        tokens.clear();
        return taken;
    }

    public synchronized int block(String gate) throws InterruptedException {
        Gate g = gates.computeIfAbsent(gate, name -> new Gate());
        int before = g.openings;
        ++g.waiting;
        while (g.openings == before && !closing) wait();
        return g.openings;
    }

    public synchronized int release(String gate) {
        Gate g = gates.computeIfAbsent(gate, name -> new Gate());
        int freed = g.waiting;
        g.waiting = 0;
        ++g.openings;
        notifyAll();
        return freed;
    }

    public synchronized int waiting(String gate) {
        Gate g = gates.get(gate);
        return g == null ? 0 : g.waiting;
    }

    // JacORB's mapping hands no context to servants.
    public String[] with_context(int number) { return new String[0]; }

    public void shutdown() {
        openAllGates();
        // A servant cannot wait for its own request, and this one is to be answered first.
        new Thread(() -> orb.shutdown(true)).start();
    }

    synchronized void openAllGates() {
        closing = true;
        notifyAll();
    }
}
