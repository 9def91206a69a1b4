package peer;

import interop.SuiteHelper;
import interop.SuiteOperations;
import interop.SuitePOATie;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.Iterator;
import java.util.Properties;
import org.omg.CORBA.Policy;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContextExt;
import org.omg.CosNaming.NamingContextExtHelper;
import org.omg.CosNaming.NamingContextPackage.AlreadyBound;
import org.omg.PortableServer.IdAssignmentPolicyValue;
import org.omg.PortableServer.IdUniquenessPolicyValue;
import org.omg.PortableServer.LifespanPolicyValue;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.RequestProcessingPolicyValue;

/**
 * The JacORB server of the interoperability tests: interop::Suite of interop.idl.
 *
 * <pre>Server [-ORBendPoint giop:tcp:HOST:PORT] [-ORBInitRef NAME=URL] [--property KEY=VALUE]...
 *        [--poa transient|persistent] [--key NAME] [--ior-file PATH] [--name A/B] [--bidirectional]</pre>
 *
 * The first line of standard output is the IOR. It ends on SIGTERM or Control::shutdown.
 */
public final class Server {
    private Server() {}

    public static void main(String[] arguments) throws Exception {
        Properties defaults = new Properties();
        // Persistent references carry the name of the implementation.
        defaults.setProperty("jacorb.implname", "interop");
        defaults.setProperty("org.omg.PortableInterceptor.ORBInitializerClass.forwarder", Forwarder.class.getName());
        // By default it answers TRANSIENT when 100 requests wait, as oneways soon do.
        defaults.setProperty("jacorb.poa.queue_max", "10000");
        Start start = new Start(arguments, defaults);
        boolean persistent = false;
        String key = null, iorFile = null, name = null;
        for (Iterator<String> rest = start.rest.iterator(); rest.hasNext();) {
            String option = rest.next();
            switch (option) {
                case "--poa": persistent = rest.next().equals("persistent"); break;
                case "--key": key = rest.next(); break;
                case "--ior-file": iorFile = rest.next(); break;
                case "--name": name = rest.next(); break;
                default: throw new IllegalArgumentException("what is " + option + "?");
            }
        }
        POA root = start.root;
        Forwarder.use(start.orb);
        POA forwarder = root.create_POA("forwarder", root.the_POAManager(), new Policy[] {
            root.create_id_assignment_policy(IdAssignmentPolicyValue.USER_ID),
            root.create_id_uniqueness_policy(IdUniquenessPolicyValue.MULTIPLE_ID),
            root.create_request_processing_policy(RequestProcessingPolicyValue.USE_DEFAULT_SERVANT)});
        Suite suite = new Suite(start.orb, root, forwarder);
        // Never called: its requests are forwarded before.
        forwarder.set_servant(suite.new NodeServant(0));
        SuitePOATie servant = new SuitePOATie(Echoes.serve(SuiteOperations.class, suite));
        org.omg.CORBA.Object reference;
        if (persistent) {
            POA poa = root.create_POA("interop", root.the_POAManager(), new Policy[] {
                root.create_id_assignment_policy(IdAssignmentPolicyValue.USER_ID),
                root.create_lifespan_policy(LifespanPolicyValue.PERSISTENT)});
            poa.activate_object_with_id("suite".getBytes(), servant);
            reference = poa.id_to_reference("suite".getBytes());
        } else {
            POA poa = start.bothWaysPoa();
            reference = poa.id_to_reference(poa.activate_object(servant));
        }
        root.the_POAManager().activate();
        String ior = start.orb.object_to_string(reference);
        if (key != null) ((org.jacorb.orb.ORB) start.orb).addObjectKey(key, ior);
        if (name != null) bind(start, name, reference);
        if (iorFile != null) {
            // Written beside and renamed, so that a reader never sees half a reference.
            Path path = Paths.get(iorFile), partial = Paths.get(iorFile + ".partial");
            Files.write(partial, (ior + "\n").getBytes());
            Files.move(partial, path, StandardCopyOption.ATOMIC_MOVE);
        }
        System.out.println(ior);
        System.out.flush();
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            suite.openAllGates();
            // A request whose thread died is waited for for ever.
            Thread stopping = new Thread(() -> start.orb.shutdown(true));
            stopping.setDaemon(true);
            stopping.start();
            try {
                main.join(10_000);
            } catch (InterruptedException e) {
                // The machine ends anyway.
            }
            Runtime.getRuntime().halt(1);
        }));
        start.orb.run();
        // Pools of threads that are not daemons would keep the machine alive.
        Runtime.getRuntime().halt(0);
    }

    private static void bind(Start start, String path, org.omg.CORBA.Object reference) throws Exception {
        NamingContextExt root = NamingContextExtHelper.narrow(start.orb.resolve_initial_references("NameService"));
        NameComponent[] name = root.to_name(path);
        for (int depth = 1; depth < name.length; ++depth) {
            try {
                root.bind_new_context(java.util.Arrays.copyOf(name, depth));
            } catch (AlreadyBound e) {
                // Others may have made it.
            }
        }
        root.rebind(name, reference);
    }
}
