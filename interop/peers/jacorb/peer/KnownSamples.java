package peer;

import interop.*;
import java.util.TreeMap;
import org.omg.CORBA.Any;
import org.omg.CORBA.BAD_PARAM;
import org.omg.CORBA.ORB;

/** The samples of anys.idl: values of every type under names that all peers know. */
final class KnownSamples {
    private interface Put {
        void into(Any any);
    }

    private interface Take {
        Object from(Any any);
    }

    private final ORB orb;
    private final TreeMap<String, Put> puts = new TreeMap<>();
    private final TreeMap<String, Take> takes = new TreeMap<>();
    private final TreeMap<String, Object> values = new TreeMap<>();

    KnownSamples(ORB orb) {
        this.orb = orb;
        add("null", null, any -> {}, any -> any.type().kind() == org.omg.CORBA.TCKind.tk_null ? null : any.type());
        add("short", (short) -7, any -> any.insert_short((short) -7), Any::extract_short);
        add("ushort", (short) 65535, any -> any.insert_ushort((short) 65535), Any::extract_ushort);
        add("long", -70000, any -> any.insert_long(-70000), Any::extract_long);
        add("ulong", (int) 4000000000L, any -> any.insert_ulong((int) 4000000000L), Any::extract_ulong);
        add("llong", -5000000000L, any -> any.insert_longlong(-5000000000L), Any::extract_longlong);
        long big = Long.parseUnsignedLong("18000000000000000000");
        add("ullong", big, any -> any.insert_ulonglong(big), Any::extract_ulonglong);
        add("float", 1.5f, any -> any.insert_float(1.5f), Any::extract_float);
        add("double", -2.25, any -> any.insert_double(-2.25), Any::extract_double);
        add("char", 'c', any -> any.insert_char('c'), Any::extract_char);
        add("boolean", true, any -> any.insert_boolean(true), Any::extract_boolean);
        add("octet", (byte) 255, any -> any.insert_octet((byte) 255), Any::extract_octet);
        add("wchar", '\u20ac', any -> any.insert_wchar('\u20ac'), Any::extract_wchar);
        add("string", "text", any -> any.insert_string("text"), Any::extract_string);
        add("wstring", "wide\u20ac", any -> any.insert_wstring("wide\u20ac"), Any::extract_wstring);
        add("short_string", "bounded", any -> ShortStringHelper.insert(any, "bounded"), ShortStringHelper::extract);
        add("color", Color.blue, any -> ColorHelper.insert(any, Color.blue), ColorHelper::extract);
        add("single", Single.only_value, any -> SingleHelper.insert(any, Single.only_value), SingleHelper::extract);
        add("height", 8848, any -> HeightHelper.insert(any, 8848), HeightHelper::extract);
        BinStruct bin = new BinStruct((short) 1, 'b', 2, (byte) 3, 4.5);
        add("struct", bin, any -> BinStructHelper.insert(any, bin), BinStructHelper::extract);
        Variable variable = new Variable("text", "code", new int[] {1, -2}, new byte[] {3}, Color.blue);
        add("variable", variable, any -> VariableHelper.insert(any, variable), VariableHelper::extract);
        ByLong union = new ByLong();
        union.number(2, 20);
        add("union", union, any -> ByLongHelper.insert(any, union), ByLongHelper::extract);
        int[] longs = {1, -2, 3};
        add("longs", longs, any -> LongSeqHelper.insert(any, longs), LongSeqHelper::extract);
        Named[] nameds = {new Named("a", 1), new Named("b", 2)};
        add("nameds", nameds, any -> NamedSeqHelper.insert(any, nameds), NamedSeqHelper::extract);
        double[][] matrix = {{1, 2, 3}, {4, 5, 6}};
        add("matrix", matrix, any -> MatrixHelper.insert(any, matrix), MatrixHelper::extract);
        Tree tree = new Tree("root", new Tree[] {new Tree("leaf", new Tree[0])});
        add("tree", tree, any -> TreeHelper.insert(any, tree), TreeHelper::extract);
        Chain chain = new Chain(1, new Chain[] {new Chain(2, new Chain[0])});
        add("chain", chain, any -> ChainHelper.insert(any, chain), ChainHelper::extract);
        Expr literal = new Expr(), expr = new Expr();
        literal.literal(0.5);
        expr.negated(new Expr[] {literal});
        add("expr", expr, any -> ExprHelper.insert(any, expr), ExprHelper::extract);
        // Exceptions are compared by their members.
        Refused refused = new Refused("why", 5);
        add("refused", "why 5", any -> RefusedHelper.insert(any, refused), any -> {
            Refused found = RefusedHelper.extract(any);
            return found.why + " " + found.code;
        });
        add("empty", "empty", any -> EmptyHelper.insert(any, new Empty()), any -> {
            EmptyHelper.extract(any);
            return "empty";
        });
        add("object", null, any -> any.insert_Object(null), Any::extract_Object);
        add("node", null, any -> NodeHelper.insert(any, null), NodeHelper::extract);
        add("typecode", BinStructHelper.type(), any -> any.insert_TypeCode(BinStructHelper.type()), Any::extract_TypeCode);
        Any inner = orb.create_any();
        inner.insert_long(-70000);
        add("any", -70000, any -> any.insert_any(inner), any -> any.extract_any().extract_long());
        Any first = orb.create_any(), second = orb.create_any(), number = orb.create_any();
        first.insert_short((short) -7);
        second.insert_string("text");
        add("anys", "-7 text", any -> AnySeqHelper.insert(any, new Any[] {first, second}), any -> {
            Any[] found = AnySeqHelper.extract(any);
            return found[0].extract_short() + " " + found[1].extract_string();
        });
        number.insert_double(-2.25);
        add("property", "name -2.25", any -> PropertyHelper.insert(any, new Property("name", number)), any -> {
            Property found = PropertyHelper.extract(any);
            return found.name + " " + found.value.extract_double();
        });
    }

    private void add(String name, Object value, Put put, Take take) {
        values.put(name, value);
        puts.put(name, put);
        takes.put(name, take);
    }

    Iterable<String> names() { return puts.keySet(); }

    Any make(String name) {
        Put put = puts.get(name);
        if (put == null) throw new BAD_PARAM(name);
        Any any = orb.create_any();
        put.into(any);
        return any;
    }

    /** Says what is wrong with an any that should be the sample; nothing when it is right. */
    String check(String name, Any any) {
        Take take = takes.get(name);
        if (take == null) return "the sample is unknown";
        try {
            Harness.same("the value", values.get(name), take.from(any));
            return "";
        } catch (RuntimeException e) {
            return Harness.describe(e);
        }
    }
}
