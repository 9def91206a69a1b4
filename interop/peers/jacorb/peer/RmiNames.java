package peer;

import java.lang.reflect.Proxy;
import javax.rmi.CORBA.ValueHandler;
import org.jboss.com.sun.corba.se.impl.javax.rmi.CORBA.Util;
import org.omg.CORBA.NO_IMPLEMENT;

/**
 * What JacORB asks of RMI over IIOP where a value's type is not declared: a name for its class, also when it goes on to
 * use the value's own. The implementation at hand needs what only Java 8 has inside.
 */
public final class RmiNames extends Util {
    @Override
    public ValueHandler createValueHandler() {
        return (ValueHandler) Proxy.newProxyInstance(RmiNames.class.getClassLoader(), new Class<?>[] {ValueHandler.class},
            (proxy, method, arguments) -> {
                if (!method.getName().equals("getRMIRepositoryID")) throw new NO_IMPLEMENT(method.getName());
                return "RMI:" + ((Class<?>) arguments[0]).getName() + ":0000000000000000";
            });
    }
}
