package peer;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.omg.CORBA.portable.IDLEntity;

/** What every case of the client stands on: running and reporting it, comparing values, and the echo. Knows no case by name. */
final class Harness {
    interface Body {
        void run() throws Throwable;
    }

    static final class Mismatch extends RuntimeException {
        Mismatch(String what) { super(what); }
    }

    final List<String> only = new ArrayList<>();
    final List<String[]> skips = new ArrayList<>();
    /** The names of all cases so far and their parts between slashes, also of those that were left out. */
    final Set<String> names = new HashSet<>();
    int passed, failed;

    /** A pattern covers the case of its name, and the group "pattern/...". */
    private static boolean covers(String pattern, String name) {
        return name.equals(pattern) || name.startsWith(pattern + "/");
    }

    void run(String name, Body body) {
        names.addAll(List.of(name.split("/")));
        if (!only.isEmpty() && only.stream().noneMatch(pattern -> covers(pattern, name))) return;
        for (String[] skip : skips) {
            if (covers(skip[0], name)) {
                System.out.println("SKIP " + name + ": " + skip[1]);
                return;
            }
        }
        try {
            body.run();
            ++passed;
            System.out.println("PASS " + name);
        } catch (Throwable e) {
            ++failed;
            Throwable cause = e instanceof InvocationTargetException && e.getCause() != null ? e.getCause() : e;
            System.out.println("FAIL " + name + ": " + describe(cause));
            if (System.getenv("INTEROP_TRACE") != null) cause.printStackTrace();
        }
    }

    static String describe(Throwable e) {
        String text = e instanceof Mismatch ? e.getMessage() : e.toString();
        return text.replace('\n', ' ');
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new Mismatch(what);
    }

    /** Expects a call to raise exactly E, and returns it. */
    @SuppressWarnings("unchecked")
    static <E extends Throwable> E expect(Class<E> type, Body call) {
        try {
            call.run();
        } catch (Throwable e) {
            if (e.getClass() == type) return (E) e;
            throw new Mismatch("raised " + describe(e) + " instead of " + type.getName());
        }
        throw new Mismatch("raised nothing");
    }

    // ---- comparison

    static void same(String which, Object want, Object got) {
        String where = difference(want, got, 0);
        if (where != null) throw new Mismatch(which + where);
    }

    /** Where two values of IDL types differ, or null. References are compared by what they lead to. */
    private static String difference(Object want, Object got, int depth) {
        if (want == got) return null;
        if (want == null || got == null) return " is " + got + " for " + want;
        if (want instanceof org.omg.CORBA.Object) {
            return ((org.omg.CORBA.Object) want)._is_equivalent((org.omg.CORBA.Object) got) ? null : " is another object";
        }
        if (want.getClass() != got.getClass()) return " is a " + got.getClass() + " for a " + want.getClass();
        if (want.getClass().isArray()) {
            int length = Array.getLength(want);
            if (length != Array.getLength(got)) return " has " + Array.getLength(got) + " elements for " + length;
            for (int i = 0; i < length; ++i) {
                String where = difference(Array.get(want, i), Array.get(got, i), depth + 1);
                if (where != null) return "[" + i + "]" + where;
            }
            return null;
        }
        if (want instanceof org.omg.CORBA.Any) return ((org.omg.CORBA.Any) want).equal((org.omg.CORBA.Any) got) ? null : " is another any";
        if (want instanceof org.omg.CORBA.TypeCode) {
            return ((org.omg.CORBA.TypeCode) want).equal((org.omg.CORBA.TypeCode) got) ? null : " is another type code";
        }
        if (want instanceof IDLEntity && !isEnum(want.getClass())) {
            for (Field field : fields(want.getClass())) {
                try {
                    String where = difference(field.get(want), field.get(got), depth + 1);
                    if (where != null) return "." + field.getName() + where;
                } catch (ReflectiveOperationException e) {
                    throw new Mismatch(e.toString());
                }
            }
            return null;
        }
        return want.equals(got) ? null : " is " + shortened(got) + " for " + shortened(want);
    }

    static boolean isEnum(Class<?> type) {
        try {
            return type.getMethod("from_int", int.class).getReturnType() == type;
        } catch (NoSuchMethodException e) {
            return false;
        }
    }

    static List<Field> fields(Class<?> type) {
        List<Field> fields = new ArrayList<>();
        for (Class<?> at = type; at != null && at != Object.class; at = at.getSuperclass()) {
            for (Field field : at.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers())) continue;
                field.setAccessible(true);
                fields.add(field);
            }
        }
        return fields;
    }

    private static String shortened(Object value) {
        String text = String.valueOf(value);
        return text.length() > 80 ? text.substring(0, 80) + "..." : text;
    }

    // ---- the echo

    /** Sends each value as x with its neighbour as y, and expects x, x and y. */
    void echoAs(Object target, String operation, String name, Object... values) {
        run(name, () -> {
            Method method = method(target, operation);
            for (int i = 0; i < values.length; ++i) {
                Object x = values[i], before = values[(i + 1) % values.length];
                Object y = Echoes.holder(method.getParameterTypes()[1]), z = Echoes.holder(method.getParameterTypes()[2]);
                Echoes.set(y, before);
                Object result = method.invoke(target, x, y, z);
                same("value " + i + ": result", x, result);
                same("value " + i + ": inout", x, Echoes.get(y));
                same("value " + i + ": out", before, Echoes.get(z));
            }
        });
    }

    void echo(Object target, String operation, Object... values) {
        echoAs(target, operation, operation, values);
    }

    static Method method(Object target, String operation) {
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(operation) && method.getParameterCount() == 3) {
                method.setAccessible(true);
                return method;
            }
        }
        throw new Mismatch("there is no operation " + operation);
    }
}
