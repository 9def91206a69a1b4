package peer;

import interop.CachedAccount;
import interop.CachedAccountHelper;
import org.omg.CORBA.ORB;

/**
 * A client without a cache: calls an object whose attributes clients of IronORB cache. Prints a line for each command.
 *
 *     peer.CachedClient IOR [balance | owner | deposit:AMOUNT | owner:NAME]...
 */
public final class CachedClient {
    public static void main(String[] args) {
        java.util.Properties properties = new java.util.Properties();
        properties.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        properties.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        ORB orb = ORB.init(new String[0], properties);
        CachedAccount account = CachedAccountHelper.narrow(orb.string_to_object(args[0]));
        for (int i = 1; i < args.length; ++i) {
            System.out.println(run(account, args[i]));
        }
        System.exit(0);
    }

    private static String run(CachedAccount account, String command) {
        int colon = command.indexOf(':');
        String name = colon < 0 ? command : command.substring(0, colon);
        if (name.equals("deposit")) {
            account.deposit(Long.parseLong(command.substring(colon + 1)));
            return "done";
        }
        if (colon >= 0) {
            account.owner(command.substring(colon + 1));
            return "done";
        }
        return name.equals("owner") ? account.owner() : Long.toString(account.balance());
    }
}
