package peer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.omg.BiDirPolicy.BIDIRECTIONAL_POLICY_TYPE;
import org.omg.BiDirPolicy.BOTH;
import org.omg.BiDirPolicy.BidirectionalPolicyValueHelper;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/** An ORB of JacORB with its root adapter, from a command line like that of the omniORB peers. */
final class Start {
    final ORB orb;
    final POA root;
    /** Whether objects are called, and call, over connections that others have made. */
    final boolean bothWays;
    /** What the command line says beside the ORB's options. */
    final List<String> rest = new ArrayList<>();

    Start(String[] arguments, Properties defaults) throws Exception {
        Properties all = new Properties();
        all.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        all.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        all.setProperty("jacorb.orb.print_version", "off");
        all.setProperty("jacorb.log.default.verbosity", "0");
        all.setProperty("jacorb.native_char_codeset", "UTF8");
        all.setProperty("jacorb.native_wchar_codeset", "UTF16");
        all.setProperty("jacorb.retries", "0");
        all.setProperty("OAIAddr", "127.0.0.1");
        all.putAll(defaults);
        bothWays = Arrays.asList(arguments).contains("--bidirectional");
        if (bothWays) {
            all.setProperty("org.omg.PortableInterceptor.ORBInitializerClass.bidirectional",
                "org.jacorb.orb.giop.BiDirConnectionInitializer");
        }
        for (int i = 0; i < arguments.length; ++i) {
            switch (arguments[i]) {
                case "--property": {
                    String[] pair = arguments[++i].split("=", 2);
                    all.setProperty(pair[0], pair[1]);
                    break;
                }
                case "-ORBInitRef": {
                    String[] pair = arguments[++i].split("=", 2);
                    all.setProperty("ORBInitRef." + pair[0], pair[1]);
                    break;
                }
                // As omniORB writes it: giop:tcp:HOST:PORT.
                case "-ORBendPoint": {
                    String address = arguments[++i].substring("giop:tcp:".length());
                    int colon = address.lastIndexOf(':');
                    all.setProperty("OAIAddr", address.substring(0, colon).replaceAll("[\\[\\]]", ""));
                    String port = address.substring(colon + 1);
                    if (!port.isEmpty() && !port.equals("0")) all.setProperty("OAPort", port);
                    break;
                }
                case "--bidirectional":
                    break;
                default:
                    rest.add(arguments[i]);
            }
        }
        // The singleton's class is looked up in the system's properties only.
        System.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        System.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        System.setProperty("javax.rmi.CORBA.UtilClass", RmiNames.class.getName());
        orb = ORB.init(new String[0], all);
        KnownValues.register(orb);
        root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    }

    /** The adapter of objects that are called, or call, over connections of others where that is wanted. */
    POA bothWaysPoa() throws Exception {
        if (!bothWays) return root;
        Any both = orb.create_any();
        BidirectionalPolicyValueHelper.insert(both, BOTH.value);
        return root.create_POA("bidirectional", root.the_POAManager(),
            new Policy[] {orb.create_policy(BIDIRECTIONAL_POLICY_TYPE.value, both)});
    }
}
