package peer;

import static peer.Harness.check;
import static peer.Harness.same;

import interop.Later;
import interop.LaterHelper;
import interop.Refused;
import interop.TextOctets;
import interop.TextOctetsHelper;
import interop.Texts;
import interop.TextsHelper;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Request;
import org.omg.CORBA.StringHolder;
import org.omg.CORBA.TCKind;

/** The cases of answers that come later than others, and of characters under different code sets. */
final class LaterCases {
    private final Harness cases;
    private final interop.Suite suite;
    private final ORB orb;

    LaterCases(Harness cases, interop.Suite suite, ORB orb) {
        this.cases = cases;
        this.suite = suite;
        this.orb = orb;
    }

    private static void untilHeld(Later later, int count) throws InterruptedException {
        for (int i = 0; i < 3000; ++i) {
            if (later.held() >= count) return;
            Thread.sleep(10);
        }
        throw new Harness.Mismatch("not all calls arrived");
    }

    void later() {
        cases.run("later/answers", () -> {
            int count = 12;
            Later later = LaterHelper.narrow(suite.part("later"));
            AtomicInteger right = new AtomicInteger();
            List<Thread> callers = new ArrayList<>();
            for (int i = 0; i < count; ++i) {
                int x = i;
                callers.add(new Thread(() -> {
                    try {
                        StringHolder z = new StringHolder();
                        if (later.hold(x, "caller " + x, z) == x && z.value.equals("caller " + x)) right.incrementAndGet();
                    } catch (Refused | RuntimeException e) {
                        // Not right.
                    }
                }));
            }
            callers.forEach(Thread::start);
            untilHeld(later, count);
            for (int i = 0; i < 20; ++i) suite.nothing();
            check(right.get() == 0, "some were answered at once");
            int answered = later.answer_all();
            for (Thread caller : callers) caller.join();
            check(answered == count && right.get() == count, right + " of " + answered + " are right");
        });
        cases.run("later/exception", () -> {
            Later later = LaterHelper.narrow(suite.part("later"));
            Throwable[] raised = new Throwable[1];
            Thread caller = new Thread(() -> {
                try {
                    later.hold(-5, "", new StringHolder());
                } catch (Refused | RuntimeException e) {
                    raised[0] = e;
                }
            });
            caller.start();
            untilHeld(later, 1);
            later.answer_all();
            caller.join();
            check(raised[0] instanceof Refused, "raised " + raised[0]);
            Refused refused = (Refused) raised[0];
            check(refused.why.equals("late") && refused.code == -5, "members of Refused");
        });
        // The callers here are one thread that does not wait, by dynamic invocation.
        cases.run("later/deferred_dii", () -> {
            Later later = LaterHelper.narrow(suite.part("later"));
            List<Request> requests = new ArrayList<>();
            for (int i = 0; i < 5; ++i) {
                Request request = later._request("hold");
                request.set_return_type(orb.get_primitive_tc(TCKind.tk_long));
                request.add_in_arg().insert_long(i);
                request.add_in_arg().insert_string("text");
                request.add_out_arg().type(orb.get_primitive_tc(TCKind.tk_string));
                request.send_deferred();
                requests.add(request);
            }
            untilHeld(later, 5);
            for (Request request : requests) check(!request.poll_response(), "answered at once");
            check(later.answer_all() == 5, "count");
            for (int i = 0; i < 5; ++i) {
                Request request = requests.get(i);
                request.get_response();
                if (request.env().exception() != null) throw request.env().exception();
                check(request.return_value().extract_long() == i, "result");
            }
        });
    }

    private static byte[] joined(byte[] first, byte[] second) {
        byte[] all = java.util.Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }

    void texts() {
        // Characters that both code sets have, and that are two octets in one of them.
        String latin = "caf\u00E9 \u00FF na\u00EFve \u00A3";
        String beyond = "z\u00FC \u20AC \u4E16 \uD83D\uDE00";
        cases.run("texts/narrow", () -> {
            Texts texts = TextsHelper.narrow(suite.part("texts"));
            int[] sent = latin.codePoints().toArray();
            same("characters", sent, texts.characters_of(latin));
            same("text", latin, texts.text_of(sent));
        });
        cases.run("texts/wide", () -> {
            Texts texts = TextsHelper.narrow(suite.part("texts"));
            int[] sent = beyond.codePoints().toArray();
            same("characters", sent, texts.wide_characters_of(beyond));
            same("text", beyond, texts.wide_text_of(sent));
        });
        marks("none", new byte[0], StandardCharsets.UTF_16BE, beyond);
        marks("big_endian", new byte[] {-2, -1}, StandardCharsets.UTF_16BE, beyond);
        marks("little_endian", new byte[] {-1, -2}, StandardCharsets.UTF_16LE, beyond);
    }

    private void marks(String name, byte[] mark, Charset order, String text) {
        cases.run("texts/marks/" + name, () -> {
            TextOctets raw = TextOctetsHelper.unchecked_narrow(suite.part("texts"));
            int[] got = raw.wide_characters_of(joined(mark, text.getBytes(order)));
            same("characters", text.codePoints().toArray(), got);
        });
    }
}
