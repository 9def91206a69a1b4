package peer;

import interop.*;
import java.math.BigDecimal;
import org.omg.CORBA.Any;
import org.omg.CORBA.DATA_CONVERSION;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TypeCode;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.Servant;

/** The servants of what not every ORB can do. */
final class PartServants {
    private final ORB orb;
    private final POA root;
    private final KnownSamples samples;
    private final KnownValueSamples valueSamples;

    PartServants(ORB orb, POA root) {
        this.orb = orb;
        this.root = root;
        samples = new KnownSamples(orb);
        valueSamples = new KnownValueSamples(orb);
    }

    private org.omg.CORBA.Object activate(Servant servant) {
        try {
            return root.servant_to_reference(servant);
        } catch (org.omg.CORBA.UserException e) {
            throw new org.omg.CORBA.INTERNAL(e.toString());
        }
    }

    /** The servant of a part of the contract; null for one that JacORB has not. */
    Servant make(String part) {
        switch (part) {
            case "anys": return new AnysPOATie(Echoes.serve(AnysOperations.class, new AnysRest()));
            case "typecodes": return new TypeCodesPOATie(Echoes.serve(TypeCodesOperations.class, new TypeCodesRest()));
            case "fixed": return new FixedsPOATie(Echoes.serve(FixedsOperations.class, new FixedsRest()));
            case "values": return new ValuesPOATie(Echoes.serve(ValuesOperations.class, new ValuesRest()));
            case "boxes": return new BoxesPOATie(Echoes.serve(BoxesOperations.class, new BoxesRest()));
            case "later": return new LaterPOATie(new LaterServant());
            case "texts": return new TextsPOATie(new TextsServant());
            case "abstracts": return new AbstractsPOATie(Echoes.serve(AbstractsOperations.class, new AbstractsRest()));
            case "custom": return new CustomsPOATie(Echoes.serve(CustomsOperations.class, new CustomsRest()));
            case "value_anys": return new ValueAnysPOATie(Echoes.serve(ValueAnysOperations.class, new ValueAnysRest()));
            default: return null;
        }
    }

    final class AnysRest {
        private Any held = orb.create_any();
        public void raise_unfit(Any what) throws Unfit { throw new Unfit("asked", what); }
        public synchronized Any held() { return held; }
        public synchronized void held(Any to) { held = to; }
        public Any make(String sample) { return samples.make(sample); }
        public String check(String sample, Any what) { return samples.check(sample, what); }
    }

    final class TypeCodesRest {
        public TypeCode type_of(String sample) { return samples.make(sample).type(); }
        public boolean are_equal(TypeCode a, TypeCode b) { return a.equal(b); }
        public boolean are_equivalent(TypeCode a, TypeCode b) { return a.equivalent(b); }
    }

    static final class FixedsRest {
        public BigDecimal total(BigDecimal[] prices) {
            BigDecimal total = new BigDecimal("0.00");
            for (BigDecimal price : prices) total = total.add(price);
            if (total.abs().compareTo(new BigDecimal("999.99")) > 0) throw new DATA_CONVERSION();
            return total.setScale(2);
        }
    }

    final class ValuesRest {
        public int sum_of(Point p) { return p.x + p.y; }
        public String kind_of(Point p) { return p == null ? "" : p._truncatable_ids()[0]; }
        public Spot secret(int x, int y) {
            KnownValues.ASecret secret = KnownValues.colored(KnownValues.at(new KnownValues.ASecret(), x, y), "red");
            secret.code = 99;
            return secret;
        }
        public boolean same_point(Point a, Point b) { return a == b; }
        public Cell ring(int count) { return KnownValues.ring(count); }
        public int length_of(Cell c) { return KnownValues.length(c); }
        public void raise_spoilt(Point where) throws Spoilt { throw new Spoilt(where); }
        public String label_of(Tag t) { return t.label(); }
        public double measure_of(Measured m) { return m.measure(); }
        public String kinds_of(Point[] points) {
            StringBuilder kinds = new StringBuilder();
            for (int i = 0; i < points.length; ++i) kinds.append(i > 0 ? " " : "").append(kind_of(points[i]));
            return kinds.toString();
        }
        public int sum_of_second(Parcel first, Point second) { return sum_of(second); }
        public java.io.Serializable pass_base(java.io.Serializable x) { return x; }
        public String face_of(Ticket t) { return t.face(); }
        public Labelled object_of(Tag t) { return LabelledHelper.narrow(activate(new LabelledPOATie(t))); }
    }

    static final class BoxesRest {
        public String pass_boxed_string(String x) { return x; }
        public BoxedLong pass_boxed_long(BoxedLong x) { return x; }
        public int[] pass_boxed_longs(int[] x) { return x; }
        public BinStruct pass_boxed_bin(BinStruct x) { return x; }
    }

    static final class APerson extends PersonPOA {
        private final String name;
        APerson(String name) { this.name = name; }
        public String name() { return name; }
        public String describe_it() { return "person " + name; }
    }

    final class AbstractsRest {
        public String description_of(Describable what) { return what == null ? "" : what.describe_it(); }
        public Person create_person(String name) { return PersonHelper.narrow(activate(new APerson(name))); }
        public Describable a_card(String line) { return new KnownValues.ACard(line); }
        public Describable a_person(String name) { return create_person(name); }
    }

    static final class CustomsRest {
        public int minutes_of(Clock c) { return c.hour * 60 + c.minute; }
    }

    final class ValueAnysRest {
        public Any make(String sample) { return valueSamples.make(sample); }
        public String check(String sample, Any what) { return valueSamples.check(sample, what); }
    }
}
