package peer;

import interop.LaterOperations;
import interop.Listener;
import interop.Refused;
import org.omg.CORBA.StringHolder;

/** The part "later". JacORB has no answers that come from elsewhere: the threads of the held calls wait. */
final class LaterServant implements LaterOperations {
    private int held, rounds;

    public synchronized int hold(int x, String y, StringHolder z) throws Refused {
        ++held;
        int round = rounds;
        try {
            while (rounds == round) wait();
        } catch (InterruptedException e) {
            throw new org.omg.CORBA.INTERNAL(e.toString());
        }
        if (x < 0) throw new Refused("late", x);
        z.value = y;
        return x;
    }

    public synchronized int held() { return held; }

    public synchronized int answer_all() {
        int count = held;
        held = 0;
        ++rounds;
        notifyAll();
        return count;
    }

    public void remind(Listener to, int question) {
        new Thread(() -> {
            try {
                to.hint(to.ask(question));
            } catch (Refused | RuntimeException e) {
                // The test that waits for the hint fails.
            }
        }).start();
    }
}
