package peer;

import static peer.Harness.check;
import static peer.Harness.expect;
import static peer.Harness.same;

import interop.*;
import java.math.BigDecimal;
import org.omg.CORBA.Any;
import org.omg.CORBA.AnyHolder;
import org.omg.CORBA.ORB;
import org.omg.CORBA.StructMember;
import org.omg.CORBA.TCKind;
import org.omg.CORBA.TypeCode;
import org.omg.CORBA.TypeCodeHolder;

/** The cases of what not every ORB can do: each asks the suite for the object of its part. */
final class Parts {
    private final Harness cases;
    private final interop.Suite suite;
    private final ORB orb;
    private final KnownSamples samples;

    Parts(Harness cases, interop.Suite suite, ORB orb) {
        this.cases = cases;
        this.suite = suite;
        this.orb = orb;
        samples = new KnownSamples(orb);
    }

    private void right(String which, String sample, Any any) {
        String wrong = samples.check(sample, any);
        if (!wrong.isEmpty()) throw new Harness.Mismatch(which + ": " + wrong);
    }

    private Any any(int value) {
        Any any = orb.create_any();
        any.insert_long(value);
        return any;
    }

    void anys() {
        Anys anys = AnysHelper.narrow(suite.part("anys"));
        for (String name : samples.names()) {
            cases.run("any/make/" + name, () -> right("the any", name, anys.make(name)));
            cases.run("any/check/" + name, () -> same("the answer", "", anys.check(name, samples.make(name))));
            cases.run("any/echo/" + name, () -> {
                AnyHolder y = new AnyHolder(any(7)), z = new AnyHolder();
                right("result", name, anys.echo_any(samples.make(name), y, z));
                right("inout", name, y.value);
                check(z.value.extract_long() == 7, "out");
            });
        }
        cases.run("any/unknown_sample", () -> expect(org.omg.CORBA.BAD_PARAM.class, () -> anys.make("no such sample")));
        cases.run("any/echo_anys", () -> {
            AnySeqHolder y = new AnySeqHolder(new Any[0]), z = new AnySeqHolder();
            Any[] result = anys.echo_anys(new Any[] {any(1), orb.create_any(), any(3)}, y, z);
            check(result.length == 3 && y.value.length == 3 && z.value.length == 0 && result[2].extract_long() == 3, "values");
        });
        cases.run("any/echo_property", () -> {
            PropertyHolder y = new PropertyHolder(new Property("q", orb.create_any())), z = new PropertyHolder();
            Property result = anys.echo_property(new Property("p", any(5)), y, z);
            check(result.value.extract_long() == 5 && y.value.name.equals("p") && z.value.name.equals("q"), "values");
        });
        cases.run("any/echo_any_or_name", () -> {
            AnyOrName x = new AnyOrName(), before = new AnyOrName();
            x.value(any(5));
            before.name("n");
            AnyOrNameHolder y = new AnyOrNameHolder(before), z = new AnyOrNameHolder();
            AnyOrName result = anys.echo_any_or_name(x, y, z);
            check(result.value().extract_long() == 5 && y.value.discriminator() && z.value.name().equals("n"), "values");
        });
        cases.run("any/raise_unfit", () -> {
            Unfit unfit = expect(Unfit.class, () -> anys.raise_unfit(samples.make("variable")));
            check(unfit.why.equals("asked"), "why");
            right("what", "variable", unfit.what);
        });
        cases.run("any/held", () -> {
            for (String sample : new String[] {"long", "anys", "tree"}) {
                anys.held(samples.make(sample));
                right("held", sample, anys.held());
            }
        });
        cases.run("any/live_reference", () -> {
            Any x = orb.create_any();
            NodeHelper.insert(x, suite.create_node(55));
            AnyHolder y = new AnyHolder(orb.create_any()), z = new AnyHolder();
            check(NodeHelper.extract(anys.echo_any(x, y, z)).id() == 55, "the reference");
        });
    }

    void typecodes() {
        TypeCodes typecodes = TypeCodesHelper.narrow(suite.part("typecodes"));
        for (String name : samples.names()) {
            cases.run("typecode/echo/" + name, () -> {
                TypeCode mine = samples.make(name).type();
                TypeCodeHolder y = new TypeCodeHolder(PairHelper.type()), z = new TypeCodeHolder();
                TypeCode result = typecodes.echo_typecode(mine, y, z);
                check(result.equivalent(mine) && y.value.equivalent(mine) && z.value.equivalent(PairHelper.type()), "types");
            });
            cases.run("typecode/type_of/" + name, () ->
                check(typecodes.type_of(name).equivalent(samples.make(name).type()), "not equivalent"));
            cases.run("typecode/are_equivalent/" + name, () -> {
                TypeCode mine = samples.make(name).type();
                check(typecodes.are_equivalent(mine, typecodes.type_of(name)), "not equivalent");
                TypeCode other = name.equals("color") ? BinStructHelper.type() : ColorHelper.type();
                check(!typecodes.are_equivalent(mine, other), "equivalent to another");
            });
        }
        cases.run("typecode/echo_typecodes", () -> {
            java.util.List<TypeCode> all = new java.util.ArrayList<>();
            // The stack overflows over the TypeCode of expr, which is recursive over a struct within.
            for (String name : samples.names()) if (!name.equals("expr")) all.add(samples.make(name).type());
            TypeCodeSeqHolder y = new TypeCodeSeqHolder(new TypeCode[0]), z = new TypeCodeSeqHolder();
            TypeCode[] result = typecodes.echo_typecodes(all.toArray(new TypeCode[0]), y, z);
            check(result.length == all.size() && y.value.length == all.size() && z.value.length == 0, "lengths");
            for (int i = 0; i < result.length; ++i) check(result[i].equivalent(all.get(i)), "type " + i);
        });
        cases.run("typecode/made_at_run_time", () -> {
            String id = "IDL:ironorb.example/interop/Unheard:1.0";
            TypeCode itself = orb.create_sequence_tc(0, orb.create_recursive_tc(id));
            TypeCode x = orb.create_struct_tc(id, "Unheard", new StructMember[] {
                new StructMember("number", orb.get_primitive_tc(TCKind.tk_longlong), null), new StructMember("more", itself, null)});
            TypeCodeHolder y = new TypeCodeHolder(orb.get_primitive_tc(TCKind.tk_null)), z = new TypeCodeHolder();
            check(typecodes.echo_typecode(x, y, z).equivalent(x), "not equivalent");
        });
    }

    private static Object[] numbers(int scale, String... texts) {
        Object[] numbers = new Object[texts.length];
        for (int i = 0; i < texts.length; ++i) numbers[i] = new BigDecimal(texts[i]).setScale(scale);
        return numbers;
    }

    void fixed() {
        Fixeds fixed = FixedsHelper.narrow(suite.part("fixed"));
        Object[] prices = numbers(2, "0", "0.01", "-0.01", "999.99", "-999.99", "7", "12.3", "100");
        Object[] huge = numbers(10, "0", "123456789012345678901.0123456789", "-999999999999999999999.9999999999", "0.0000000001", "42");
        cases.echoAs(fixed, "echo_price", "fixed/echo_price", prices);
        cases.echoAs(fixed, "echo_whole", "fixed/echo_whole", numbers(0, "0", "1", "-1", "9999", "-10"));
        cases.echoAs(fixed, "echo_fraction", "fixed/echo_fraction", numbers(6, "0", "0.000001", "-0.999999", "0.5", "0.05"));
        cases.echoAs(fixed, "echo_huge", "fixed/echo_huge", huge);
        cases.echoAs(fixed, "echo_digit", "fixed/echo_digit", numbers(0, "0", "9", "-9"));
        BigDecimal[] sequence = java.util.Arrays.copyOf(prices, prices.length, BigDecimal[].class);
        cases.echoAs(fixed, "echo_prices", "fixed/echo_prices", new BigDecimal[0], sequence);
        cases.echoAs(fixed, "echo_huge_pair", "fixed/echo_huge_pair", new BigDecimal[] {(BigDecimal) huge[0], (BigDecimal) huge[1]},
            new BigDecimal[] {(BigDecimal) huge[2], (BigDecimal) huge[3]});
        cases.echoAs(fixed, "echo_bill", "fixed/echo_bill", new Bill("odd", (BigDecimal) prices[3], (byte) 1),
            new Bill("", (BigDecimal) prices[0], (byte) 255));
        ByPrice small = new ByPrice(), large = new ByPrice();
        small.small((BigDecimal) prices[4]);
        large.large((BigDecimal) huge[1]);
        cases.echoAs(fixed, "echo_by_price", "fixed/echo_by_price", small, large);
        cases.run("fixed/total", () -> {
            BigDecimal total = fixed.total(new BigDecimal[] {new BigDecimal("1.05"), new BigDecimal("2.95")});
            check(total.compareTo(new BigDecimal("4")) == 0, "total " + total);
            expect(org.omg.CORBA.DATA_CONVERSION.class, () -> fixed.total(new BigDecimal[] {new BigDecimal("900.00"), new BigDecimal("100.00")}));
        });
    }

    void values() {
        Values values = ValuesHelper.narrow(suite.part("values"));
        cases.run("value/echo_point", () -> {
            PointHolder y = new PointHolder(null), z = new PointHolder();
            Point result = values.echo_point(KnownValues.point(1, -2), y, z);
            check(result.x == 1 && result.y == -2 && y.value.x == 1 && z.value == null, "values");
            check(values.echo_point(null, y, z) == null && y.value == null && z.value.y == -2, "null");
        });
        cases.run("value/echo_spot", () -> {
            SpotHolder y = new SpotHolder(null), z = new SpotHolder();
            Spot result = values.echo_spot(KnownValues.colored(KnownValues.at(new KnownValues.ASpot(), 1, 2), "blue"), y, z);
            check(result.x == 1 && result.color.equals("blue") && y.value.color.equals("blue") && z.value == null, "values");
        });
        cases.run("value/echo_account", () -> {
            AccountHolder y = new AccountHolder(null), z = new AccountHolder();
            Account result = values.echo_account(new KnownValues.AnAccount("me", -5, (byte) 200), y, z);
            same("state", "me -5 200", ((KnownValues.AnAccount) result).state());
        });
        cases.run("value/echo_mixed", () -> {
            KnownValues.AMixed mixed = new KnownValues.AMixed();
            mixed.tag = 9;
            mixed.amount = 0.25;
            mixed.text = "mixed";
            mixed.numbers = new int[] {1, 2, 3};
            mixed.bin = new BinStruct((short) 1, 'c', 2, (byte) 3, 4.5);
            mixed.choice = new ByLong();
            mixed.choice.number(2, 7);
            mixed.tint = Color.green;
            mixed.extra = any(5);
            MixedHolder y = new MixedHolder(null), z = new MixedHolder();
            Mixed result = values.echo_mixed(mixed, y, z);
            check(result.tag == 9 && result.amount == 0.25 && result.text.equals("mixed") && result.extra.extract_long() == 5, "values");
            same("numbers", mixed.numbers, result.numbers);
            same("bin", mixed.bin, result.bin);
            same("choice", mixed.choice, result.choice);
        });
        cases.run("value/echo_tag", () -> {
            KnownValues.ATag tag = new KnownValues.ATag();
            tag.text = "label";
            tag.size = 2.5;
            TagHolder y = new TagHolder(null), z = new TagHolder();
            Tag result = values.echo_tag(tag, y, z);
            check(result.text.equals("label") && result.size == 2.5 && y.value.measure() == 2.5 && z.value == null, "values");
            same("label", "label", values.label_of(tag));
        });
        cases.run("value/derived", () -> {
            KnownValues.AHotSpot hot = KnownValues.colored(KnownValues.at(new KnownValues.AHotSpot(), 1, 2), "red");
            hot.heat = 36.6;
            PointHolder y = new PointHolder(null), z = new PointHolder();
            check(((HotSpot) values.echo_point(hot, y, z)).heat == 36.6, "heat");
            check(((HotSpot) y.value).color.equals("red"), "color");
        });
        cases.run("value/kind_of", () -> {
            same("null", "", values.kind_of(null));
            same("spot", SpotHelper.id(), values.kind_of(KnownValues.colored(new KnownValues.ASpot(), "")));
            check(values.sum_of(KnownValues.point(3, 4)) == 7, "sum");
        });
        cases.run("value/truncated_by_them", () -> {
            KnownValues.ASecret secret = KnownValues.colored(KnownValues.at(new KnownValues.ASecret(), 3, 4), "red");
            same("kind", SpotHelper.id(), values.kind_of(secret));
            check(values.sum_of(secret) == 7, "sum");
        });
        cases.run("value/truncated_by_us", () -> {
            Spot got = values.secret(3, 4);
            check(got.x == 3 && got.y == 4 && got.color.equals("red") && !(got instanceof Secret), "values");
        });
        cases.run("value/shared", () -> {
            Point a = KnownValues.point(1, 2), b = KnownValues.point(1, 2);
            check(values.same_point(a, a) && !values.same_point(a, b), "same_point");
            PointPairHolder y = new PointPairHolder(new PointPair(null, null)), z = new PointPairHolder();
            PointPair result = values.echo_point_pair(new PointPair(a, a), y, z);
            check(result.first == result.second && y.value.first == y.value.second && z.value.first == null, "no longer shared");
        });
        cases.run("value/tree", () -> {
            KnownValues.ATwig left = new KnownValues.ATwig(), right = new KnownValues.ATwig(), twig = new KnownValues.ATwig();
            left.label = "left";
            right.label = "right";
            twig.label = "root";
            twig.left = left;
            twig.right = right;
            TwigHolder y = new TwigHolder(null), z = new TwigHolder();
            Twig result = values.echo_twig(twig, y, z);
            check(result.left.label.equals("left") && result.right.label.equals("right") && result.left.left == null, "values");
        });
        cases.run("value/sequence", () -> {
            KnownValues.ACell cell = new KnownValues.ACell();
            cell.number = 5;
            CellSeqHolder y = new CellSeqHolder(new Cell[0]), z = new CellSeqHolder();
            Cell[] result = values.echo_cells(new Cell[] {cell, null, cell}, y, z);
            check(result.length == 3 && result[0] == result[2] && result[1] == null && z.value.length == 0, "values");
        });
        cases.run("value/union", () -> {
            PointOrNumber x = new PointOrNumber(), before = new PointOrNumber();
            x.place(KnownValues.point(1, 2));
            before.number(5);
            PointOrNumberHolder y = new PointOrNumberHolder(before), z = new PointOrNumberHolder();
            check(values.echo_point_or_number(x, y, z).place().y == 2 && z.value.number() == 5, "values");
        });
        cases.run("value/cycle", () -> {
            for (int count : new int[] {1, 2, 5, 300}) {
                check(values.length_of(KnownValues.ring(count)) == count, "theirs of " + count);
                check(KnownValues.length(values.ring(count)) == count, "ours of " + count);
                CellHolder y = new CellHolder(null), z = new CellHolder();
                check(KnownValues.length(values.echo_cell(KnownValues.ring(count), y, z)) == count, "echo of " + count);
            }
            check(values.length_of(new KnownValues.ACell()) == -1 && values.length_of(null) == 0, "no ring");
        });
        cases.run("value/raise_spoilt", () ->
            check(expect(Spoilt.class, () -> values.raise_spoilt(KnownValues.point(1, 2))).where.y == 2, "where"));
    }

    void boxes() {
        Boxes boxes = BoxesHelper.narrow(suite.part("boxes"));
        cases.run("box/echo_string", () -> {
            BoxedStringHolder y = new BoxedStringHolder("y"), z = new BoxedStringHolder();
            same("result", "boxed", boxes.echo_boxed_string("boxed", y, z));
            check(y.value.equals("boxed") && z.value.equals("y"), "inout, out");
        });
        cases.run("box/echo_long", () -> {
            BoxedLongHolder y = new BoxedLongHolder(new BoxedLong(1)), z = new BoxedLongHolder();
            check(boxes.echo_boxed_long(new BoxedLong(-7), y, z).value == -7 && y.value.value == -7 && z.value.value == 1, "values");
        });
        cases.run("box/echo_longs", () -> {
            BoxedLongsHolder y = new BoxedLongsHolder(new int[0]), z = new BoxedLongsHolder();
            same("result", new int[] {1, 2}, boxes.echo_boxed_longs(new int[] {1, 2}, y, z));
        });
        cases.run("box/pass", () -> {
            same("string", "boxed", boxes.pass_boxed_string("boxed"));
            check(boxes.pass_boxed_long(new BoxedLong(-7)).value == -7, "long");
            same("longs", new int[] {1, 2}, boxes.pass_boxed_longs(new int[] {1, 2}));
            BinStruct bin = new BinStruct((short) 1, 'c', 2, (byte) 3, 4.5);
            same("bin", bin, boxes.pass_boxed_bin(bin));
            check(boxes.pass_boxed_string(null) == null, "null");
        });
    }
}
