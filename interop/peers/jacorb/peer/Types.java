package peer;

import static peer.Harness.check;
import static peer.Harness.expect;
import static peer.Harness.same;

import interop.*;
import java.lang.reflect.Method;
import java.util.Random;
import org.omg.CORBA.ByteHolder;
import org.omg.CORBA.CharHolder;
import org.omg.CORBA.DoubleHolder;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.LongHolder;
import org.omg.CORBA.ShortHolder;
import org.omg.CORBA.StringHolder;

/** The cases of values: every type of interop.idl as parameters in all directions, and messages of several MB. */
final class Types {
    private final Harness cases;
    private final interop.Suite suite;
    private final Samples samples;

    Types(Harness cases, interop.Suite suite, Samples samples) {
        this.cases = cases;
        this.suite = suite;
        this.samples = samples;
    }

    private static char[] chars(String text) { return text.toCharArray(); }

    static byte[] octets(int count) {
        byte[] bytes = new byte[count];
        new Random(count).nextBytes(bytes);
        return bytes;
    }

    void basics() {
        cases.run("nothing", suite::nothing);
        cases.run("orb_name", () -> check(!suite.orb_name().isEmpty(), "empty"));
        cases.echo(suite, "echo_short", (short) 0, (short) 1, (short) -1, Short.MIN_VALUE, Short.MAX_VALUE, (short) 0x0102);
        cases.echo(suite, "echo_ushort", (short) 0, (short) 1, (short) -1, Short.MIN_VALUE);
        cases.echo(suite, "echo_long", 0, 1, -1, Integer.MIN_VALUE, Integer.MAX_VALUE, 0x01020304);
        cases.echo(suite, "echo_ulong", 0, 1, -1, Integer.MIN_VALUE);
        cases.echo(suite, "echo_llong", 0L, -1L, Long.MIN_VALUE, Long.MAX_VALUE, 0x0102030405060708L);
        cases.echo(suite, "echo_ullong", 0L, -1L, Long.MIN_VALUE, 0x0102030405060708L);
        cases.echo(suite, "echo_float", 0f, -0f, 1.5f, Float.MIN_VALUE, Float.MAX_VALUE, Float.POSITIVE_INFINITY, Float.NaN);
        cases.echo(suite, "echo_double", 0d, -0d, -1.5, Double.MIN_VALUE, -Double.MAX_VALUE, Double.NEGATIVE_INFINITY, Double.NaN);
        cases.echo(suite, "echo_char", '\0', 'A', 'z', '\n', ' ', (char) 127);
        cases.echo(suite, "echo_boolean", true, false);
        cases.echo(suite, "echo_octet", (byte) 0, (byte) 1, (byte) 127, (byte) 128, (byte) 255);
        cases.echo(suite, "echo_color", Color.red, Color.green, Color.blue, Color.infra_red);
        cases.echo(suite, "echo_single", Single.only_value);
        cases.echo(suite, "echo_height", Integer.MIN_VALUE, 8848);
        StringBuilder ascii = new StringBuilder();
        for (char c = 1; c < 127; ++c) ascii.append(c);
        cases.echo(suite, "echo_string", "", "a", "hello world", ascii.toString(), "s".repeat(2000));
        cases.echoAs(suite, "echo_string", "echo_string/long", "s".repeat(70000), "y");
        cases.echoAs(suite, "echo_string", "echo_string/latin1", "caf\u00e9", "\u00ff\u00a1");
        cases.echoAs(suite, "echo_string", "echo_string/utf8", "\u20ac", "\u65e5\u672c\u8a9e \ud83d\ude00", "mixed \u03a9mega");
        cases.echo(suite, "echo_short_string", "", "x", "exactly 16 bytes");
        cases.echo(suite, "echo_label", "label", "");
        cases.run("constants", () -> {
            interop.BasicsPackage.ConstantValues v = suite.constants();
            same("short", C_SHORT.value, v.s);
            same("unsigned short", C_USHORT.value, v.us);
            same("long", C_LONG.value, v.l);
            same("unsigned long", C_ULONG.value, v.ul);
            same("long long", C_LLONG.value, v.ll);
            same("unsigned long long", C_ULLONG.value, v.ull);
            same("float", C_FLOAT.value, v.f);
            // JacORB's compiler reads this constant, and no other, wrongly.
            same("double", 0.375 - 1e100, v.d);
            same("char", C_CHAR.value, v.c);
            same("boolean", C_BOOLEAN.value, v.b);
            same("octet", C_OCTET.value, v.o);
            same("string", C_STRING.value, v.str);
            same("enum", C_COLOR.value, v.tint);
        });
        cases.run("outs", () -> {
            ByteHolder a = new ByteHolder();
            DoubleHolder b = new DoubleHolder();
            StringHolder c = new StringHolder();
            ShortHolder d = new ShortHolder();
            LongSeqHolder last = new LongSeqHolder();
            suite.outs(a, b, c, d, last);
            check(a.value == 1 && b.value == 2.5 && c.value.equals("three") && d.value == -4, "values");
            same("sequence", new int[] {5, -6}, last.value);
        });
        cases.run("inouts", () -> {
            ByteHolder a = new ByteHolder((byte) 254);
            DoubleHolder b = new DoubleHolder(-0.75);
            StringHolder c = new StringHolder("ab");
            suite.inouts(a, b, c);
            check(a.value == (byte) 255 && b.value == -1.5 && c.value.equals("abab"), "values");
        });
        cases.run("mix", () -> {
            ByteHolder small = new ByteHolder();
            LongHolder n = new LongHolder(1L << 40);
            StringHolder joined = new StringHolder();
            double result = suite.mix(small, "left", n, (byte) 200, joined, 0.5);
            check(small.value == (byte) 200 && n.value == -(1L << 40) && joined.value.equals("left/200") && result == 200.5, "values");
        });
        cases.run("sum", () -> check(suite.sum((byte) 1, (short) -2, (byte) 3, -400000, (byte) 5, 1000000L, (byte) 7, 8) == 600022, "sum"));
        cases.run("default", () -> {
            IntHolder self = new IntHolder();
            check(suite._default(10, 3, self) == 13 && self.value == 7, "values");
        });
        cases.run("type", () -> same("result", "fn&ref", suite.type("fn", "ref")));
    }

    void arrays() throws ReflectiveOperationException {
        cases.echo(suite, "echo_long_array", samples.array(int[].class, 5), samples.array(int[].class, 5));
        cases.echo(suite, "echo_vector", samples.array(int[].class, 5), samples.array(int[].class, 5));
        cases.echo(suite, "echo_matrix", samples.array(double[][].class, 2, 3), samples.array(double[][].class, 2, 3));
        cases.echo(suite, "echo_cube", samples.array(byte[][][].class, 2, 3, 4), samples.array(byte[][][].class, 2, 3, 4));
        cases.echo(suite, "echo_string_array", samples.array(String[].class, 3), samples.array(String[].class, 3));
        cases.echo(suite, "echo_string_grid", samples.array(String[][].class, 2, 2), samples.array(String[][].class, 2, 2));
        cases.echo(suite, "echo_bin_array", samples.array(BinStruct[].class, 2), samples.array(BinStruct[].class, 2));
        cases.echo(suite, "echo_named_array", samples.array(Named[].class, 2), samples.array(Named[].class, 2));
        cases.echo(suite, "echo_long_seq_array", new int[][] {{1, 2, 3, 4}, {}}, new int[][] {{}, {-1}});
        cases.echo(suite, "echo_long_arrays", new int[0][5], samples.array(int[][].class, 2, 5));
    }

    void wide() {
        cases.echoAs(suite, "echo_wchar", "wide/echo_wchar", '\0', 'A', '\u00e9', '\u20ac', '\u4e16', '\ufffd');
        cases.echoAs(suite, "echo_wstring", "wide/echo_wstring", "", "a", "wide \u00e9\u4e16", "\u20ac".repeat(20000), "\ud83d\ude00");
        cases.echoAs(suite, "echo_short_wstring", "wide/echo_short_wstring", "", "8 wide \u20ac");
        cases.echoAs(suite, "echo_wchars", "wide/echo_wchars", new char[0], chars("a\u20ac\0"));
        cases.echoAs(suite, "echo_wstrings", "wide/echo_wstrings", new String[0], new String[] {"", "\u4e16", "plain"});
        cases.echoAs(suite, "echo_wchar_array", "wide/echo_wchar_array", chars("a\u20ac\u4e16"), new char[3]);
        cases.echoAs(suite, "echo_wide_struct", "wide/echo_wide_struct", new interop.WidePackage.WideStruct('\u20ac', "odd", (byte) 255),
            new interop.WidePackage.WideStruct('x', "", (byte) 0));
        interop.WidePackage.WideUnion text = new interop.WidePackage.WideUnion(), letter = new interop.WidePackage.WideUnion(),
            whole = new interop.WidePackage.WideUnion();
        text.text("text \u20ac");
        letter.letter('\u4e16');
        whole.whole(new interop.WidePackage.WideStruct('w', "w", (byte) 1));
        cases.echoAs(suite, "echo_wide_union", "wide/echo_wide_union", text, letter, whole);
        cases.run("wide/raise_wide", () ->
            same("why", "why \u4e16", expect(interop.WidePackage.WideError.class, () -> suite.raise_wide("why \u4e16")).why));
        cases.run("wide/wide_constants", () -> {
            CharHolder c = new CharHolder();
            StringHolder string = new StringHolder();
            suite.wide_constants(c, string);
            check(c.value == interop.Wide.C_WCHAR && string.value.equals(interop.Wide.C_WSTRING), "values");
        });
    }

    /** Values that random ones would hardly hit. */
    void edges() {
        cases.echoAs(suite, "echo_octets", "echo_octets/long", octets(0), octets(5000));
        cases.echoAs(suite, "echo_longs", "echo_longs/long", new Random(1).ints(5000).toArray(), new int[0]);
        cases.echoAs(suite, "echo_doubles", "echo_doubles/long", new Random(2).doubles(5000).toArray(), new double[0]);
        cases.echoAs(suite, "echo_strings", "echo_strings/long",
            new String[] {"one", "", "three", "x".repeat(9000), "five"}, new String[] {"\u00e9"});
        ByLong alias = new ByLong();
        alias.number(2, 20);
        ByLong four = new ByLong();
        four.text(4, "four");
        cases.echoAs(suite, "echo_by_long", "echo_by_long/labels", alias, four);
        ByULong unlisted = new ByULong();
        unlisted.__default(77);
        ByULong yes = new ByULong();
        yes.yes(true);
        cases.echoAs(suite, "echo_by_ulong", "echo_by_ulong/unlisted", unlisted, yes);
        Chain chain = new Chain(1, new Chain[0]);
        for (int i = 2; i <= 40; ++i) chain = new Chain(i, new Chain[] {chain});
        cases.echoAs(suite, "echo_chain", "echo_chain/long", chain, new Chain(0, new Chain[0]));
        Tree tree = new Tree("leaf", new Tree[0]);
        for (int i = 0; i < 5; ++i) tree = new Tree("d" + i, new Tree[] {tree, tree, tree});
        cases.echoAs(suite, "echo_tree", "echo_tree/deep", tree, new Tree("", new Tree[0]));
    }

    /** Every echo that no case has named: values made by its type. */
    void others() throws ReflectiveOperationException {
        Method[] methods = SuiteOperations.class.getMethods();
        java.util.Arrays.sort(methods, (a, b) -> a.getName().compareTo(b.getName()));
        for (Method method : methods) {
            if (method.getName().startsWith("echo_") && !cases.names.contains(method.getName())) {
                cases.echo(suite, method.getName(), samples.of(method.getParameterTypes()[0], 8));
            }
        }
    }

    void bigMessages() {
        cases.run("big/octets", () -> {
            byte[] sent = octets(5 << 20);
            same("result", true, java.util.Arrays.equals(sent, suite.reflect_octets(sent)));
        });
        cases.run("big/longs", () -> {
            int[] sent = new Random(3).ints(1 << 20).toArray();
            same("result", true, java.util.Arrays.equals(sent, suite.reflect_longs(sent)));
        });
        cases.run("big/doubles", () -> {
            double[] sent = new Random(4).doubles(1 << 19).toArray();
            same("result", true, java.util.Arrays.equals(sent, suite.reflect_doubles(sent)));
        });
        cases.run("big/bins", () -> {
            BinStruct[] sent = new BinStruct[150_000];
            for (int i = 0; i < sent.length; ++i) sent[i] = new BinStruct((short) i, (char) (i & 127), i * 7919, (byte) i, i / 3.0);
            same("result", sent, suite.reflect_bins(sent));
        });
        cases.run("big/strings", () -> {
            String[] sent = new String[50_000];
            for (int i = 0; i < sent.length; ++i) sent[i] = "abcdefghij".repeat(i % 10);
            same("result", sent, suite.reflect_strings(sent));
        });
        cases.run("big/one_string", () -> {
            String sent = "q".repeat(3 << 20);
            StringHolder y = new StringHolder(""), z = new StringHolder();
            String result = suite.echo_string(sent, y, z);
            check(result.equals(sent) && y.value.equals(sent) && z.value.isEmpty(), "differs");
        });
        cases.run("big/swallow", () -> check(suite.swallow(octets(8 << 20)) == 8 << 20, "length"));
        cases.run("big/produce", () -> {
            byte[] got = suite.produce(6 << 20);
            check(got.length == 6 << 20, "length");
            for (int i = 0; i < got.length; ++i) check(got[i] == (byte) (i % 251), "octet " + i);
        });
        // Lengths around the sizes at which ORBs split messages and switch to copying in bulk.
        cases.run("big/edges", () -> {
            for (int size : new int[] {1023, 4096, 8100, 8191, 8192, 16384, 65535, 131072}) {
                for (int more = 0; more < 8; ++more) {
                    byte[] sent = octets(size + more);
                    check(java.util.Arrays.equals(sent, suite.reflect_octets(sent)), sent.length + " octets");
                }
                double[] sent = new Random(size).doubles(size / 8 + 1).toArray();
                check(java.util.Arrays.equals(sent, suite.reflect_doubles(sent)), sent.length + " doubles");
            }
        });
    }

    void hugeMessages() {
        cases.run("huge", () -> {
            int length = 64 << 20;
            check(suite.swallow(octets(length)) == length, "length");
            byte[] got = suite.produce(length);
            check(got.length == length, "length of the result");
            for (int i = 0; i < length; ++i) if (got[i] != (byte) (i % 251)) throw new Harness.Mismatch("octet " + i);
        });
    }
}
