package peer;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.omg.CORBA.portable.Streamable;

/** Servants whose operations echo_... are all the same: the result is x, z is y as it arrived, y leaves as x. */
final class Echoes {
    private Echoes() {}

    /** An implementation of operations: echoes by the rule, everything else by the method of the same name of rest. */
    @SuppressWarnings("unchecked")
    static <T> T serve(Class<T> operations, Object rest) {
        return (T) Proxy.newProxyInstance(operations.getClassLoader(), new Class<?>[] {operations}, (proxy, method, arguments) -> {
            if (method.getName().startsWith("echo_") && method.getParameterCount() == 3) {
                Object x = arguments[0];
                set(arguments[2], get(arguments[1]));
                set(arguments[1], x);
                return x;
            }
            Method own = rest.getClass().getMethod(method.getName(), method.getParameterTypes());
            own.setAccessible(true);
            try {
                return own.invoke(rest, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        });
    }

    static Object get(Object holder) throws ReflectiveOperationException {
        return holder.getClass().getField("value").get(holder);
    }

    static void set(Object holder, Object value) throws ReflectiveOperationException {
        holder.getClass().getField("value").set(holder, value);
    }

    /** A holder of a parameter's type. */
    static Streamable holder(Class<?> type) throws ReflectiveOperationException {
        return (Streamable) type.getConstructor().newInstance();
    }
}
