package peer;

import interop.Node;
import interop.Suite;
import interop.SuiteHelper;
import java.util.Iterator;
import java.util.Properties;

/**
 * The JacORB client of the interoperability tests: calls everything in interop.idl on any server.
 *
 * <pre>Client [-ORBInitRef NAME=URL] [--property KEY=VALUE]... [--only NAME]... [--skip NAME=REASON]... [--huge] [--texts] [--bidirectional]
 *        [--shutdown] REFERENCE</pre>
 *
 * One line per case, as the omniORB client writes them: "PASS name", "FAIL name: what" or "SKIP name: reason"; the last
 * line is "N passed, M failed", and the exit code is 0 only if all that ran passed and something ran.
 */
public final class Client {
    private Client() {}

    public static void main(String[] arguments) throws Exception {
        Start start = new Start(arguments, new Properties());
        Harness cases = new Harness();
        String reference = null;
        boolean shutdown = false, huge = false, texts = false;
        for (Iterator<String> rest = start.rest.iterator(); rest.hasNext();) {
            String option = rest.next();
            switch (option) {
                case "--only": cases.only.add(rest.next()); break;
                case "--skip": cases.skips.add(rest.next().split("=", 2)); break;
                case "--shutdown": shutdown = true; break;
                case "--huge": huge = true; break;
                case "--texts": texts = true; break;
                default: reference = option;
            }
        }
        start.root.the_POAManager().activate();
        Suite suite = SuiteHelper.narrow(start.orb.string_to_object(reference));
        Node node = suite.create_node(1);
        Samples samples = new Samples(1, node);
        Types types = new Types(cases, suite, samples);
        Objects objects = new Objects(cases, suite, start.orb, start.bothWaysPoa());
        types.basics();
        types.arrays();
        types.wide();
        objects.attributes();
        objects.faults();
        objects.references();
        Parts parts = new Parts(cases, suite, start.orb);
        parts.anys();
        parts.typecodes();
        parts.fixed();
        parts.values();
        parts.boxes();
        new ValueParts(cases, suite, start.orb).all();
        types.others();
        types.edges();
        objects.control();
        LaterCases laterCases = new LaterCases(cases, suite, start.orb);
        laterCases.later();
        if (texts) laterCases.texts();
        types.bigMessages();
        if (huge) types.hugeMessages();
        if (shutdown) cases.run("shutdown", suite::shutdown);
        System.out.println(cases.passed + " passed, " + cases.failed + " failed");
        System.out.flush();
        Runtime.getRuntime().halt(cases.failed == 0 && cases.passed > 0 ? 0 : 1);
    }
}
