package peer;

import interop.Node;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Values of any type of the contract, the same in every run. Characters are ASCII and sequences are short. */
final class Samples {
    private static final int DEPTH_MAX = 6;

    /** The lengths of members that are arrays, which their Java types do not tell. */
    private static final Map<String, int[]> DIMENSIONS = Map.of(
        "Nested.cells", new int[] {2, 3},
        "Nested.grid", new int[] {2, 2},
        "Nested.words", new int[] {3},
        "ByLong.cells", new int[] {2, 3},
        "ByLong.letters", new int[] {3});

    private final Random random;
    private final Node node;

    /** node stands for every reference that is not nil. */
    Samples(long seed, Node node) {
        random = new Random(seed);
        this.node = node;
    }

    /** count values of a type. */
    Object[] of(Class<?> type, int count) throws ReflectiveOperationException {
        Object[] values = new Object[count];
        for (int i = 0; i < count; ++i) values[i] = one(type, 0);
        return values;
    }

    /** An array of the given lengths. */
    Object array(Class<?> type, int... lengths) throws ReflectiveOperationException {
        return array(type, lengths, 0, 0);
    }

    private Object array(Class<?> type, int[] lengths, int at, int depth) throws ReflectiveOperationException {
        if (at == lengths.length) return one(type, depth + 1);
        Object array = Array.newInstance(type.getComponentType(), lengths[at]);
        for (int i = 0; i < lengths[at]; ++i) Array.set(array, i, array(type.getComponentType(), lengths, at + 1, depth));
        return array;
    }

    private Object one(Class<?> type, int depth) throws ReflectiveOperationException {
        if (type == boolean.class) return random.nextBoolean();
        if (type == byte.class) return (byte) random.nextInt();
        if (type == short.class) return (short) random.nextInt();
        if (type == int.class) return random.nextInt();
        if (type == long.class) return random.nextLong();
        if (type == float.class) return random.nextFloat() - 0.5f;
        if (type == double.class) return random.nextDouble() - 0.5;
        if (type == char.class) return (char) (' ' + random.nextInt(95));
        if (type == String.class) return random.ints(random.nextInt(9), ' ', 127)
            .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
        if (type == Node.class || type == org.omg.CORBA.Object.class) return random.nextInt(4) == 0 ? null : node;
        if (type.isArray()) {
            // Types that hold themselves do so in sequences of at most one element.
            int length = depth >= DEPTH_MAX ? 0 : random.nextInt(depth == 0 ? 4 : 2);
            return array(type, new int[] {length}, 0, depth);
        }
        if (Harness.isEnum(type)) {
            int count = 0;
            for (Field field : type.getFields()) if (field.getType() == type) ++count;
            return type.getMethod("from_int", int.class).invoke(null, random.nextInt(count));
        }
        try {
            type.getMethod("discriminator");
            return union(type, depth);
        } catch (NoSuchMethodException e) {
            Object value = type.getConstructor().newInstance();
            for (Field field : type.getFields()) {
                if (!Modifier.isStatic(field.getModifiers())) field.set(value, member(type, field.getName(), field.getType(), depth));
            }
            return value;
        }
    }

    private Object union(Class<?> type, int depth) throws ReflectiveOperationException {
        List<Method> members = new ArrayList<>();
        for (Method method : type.getDeclaredMethods()) {
            boolean sets = method.getReturnType() == void.class && Modifier.isPublic(method.getModifiers());
            if (sets && method.getParameterCount() == 1 && !method.getName().startsWith("__")) members.add(method);
        }
        // Reflection promises no order.
        members.sort((a, b) -> a.getName().compareTo(b.getName()));
        Constructor<?> make = type.getConstructor();
        Object value = make.newInstance();
        Method chosen = members.get(random.nextInt(members.size()));
        chosen.invoke(value, member(type, chosen.getName(), chosen.getParameterTypes()[0], depth));
        return value;
    }

    private Object member(Class<?> owner, String name, Class<?> type, int depth) throws ReflectiveOperationException {
        int[] lengths = DIMENSIONS.get(owner.getSimpleName() + "." + name);
        return lengths == null ? one(type, depth + 1) : array(type, lengths, 0, depth);
    }
}
