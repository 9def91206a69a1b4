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
}
