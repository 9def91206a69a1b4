package peer;

import static peer.Harness.check;
import static peer.Harness.expect;
import static peer.Harness.same;

import interop.*;
import org.omg.CORBA.Any;
import org.omg.CORBA.AnyHolder;
import org.omg.CORBA.ORB;
import peer.KnownValues.ACard;
import peer.KnownValues.AParcel;
import peer.KnownValues.ASpot;

/** The cases of values in chunks, boxes that are members, abstract interfaces, custom valuetypes and values inside anys. */
final class ValueParts {
    private final Harness cases;
    private final interop.Suite suite;
    private final ORB orb;
    private final KnownValueSamples samples;

    ValueParts(Harness cases, interop.Suite suite, ORB orb) {
        this.cases = cases;
        this.suite = suite;
        this.orb = orb;
        samples = new KnownValueSamples(orb);
    }

    void all() {
        others();
        chunks();
        boxedMembers();
        abstracts();
        customs();
        valueAnys();
    }

    private static Spot spot(int x, int y, String color) { return KnownValues.colored(KnownValues.at(new ASpot(), x, y), color); }

    private void others() {
        Values values = ValuesHelper.narrow(suite.part("values"));
        KnownValues.ATag tag = new KnownValues.ATag();
        tag.text = "label";
        tag.size = 2.5;
        cases.run("value/operations", () -> {
            same("the label", "label", values.label_of(tag));
            check(values.measure_of(tag) == 2.5, "the measure");
        });
        cases.run("value/as_object", () -> same("the label", "label", values.object_of(tag).label()));
        cases.run("value/initialiser", () -> {
            Ticket ticket = new KnownValues.TicketOffice().issue(7, "you");
            same("the face", "7 for you", values.face_of(ticket));
            TicketHolder y = new TicketHolder(null), z = new TicketHolder();
            same("the face of the result", "7 for you", values.echo_ticket(ticket, y, z).face());
        });
        cases.run("value/base/pass", () -> {
            Spot found = (Spot) values.pass_base(spot(1, 2, "blue"));
            check(found.y == 2 && found.color.equals("blue"), "the Spot");
            check(values.pass_base(null) == null, "null");
        });
    }

    private void chunks() {
        Values values = ValuesHelper.narrow(suite.part("values"));
        cases.run("value/chunks/long", () -> {
            Parcel parcel = KnownValues.filled(new AParcel(), "l".repeat(9000), 4000);
            PointHolder y = new PointHolder(null), z = new PointHolder();
            for (Point point : new Point[] {values.echo_point(parcel, y, z), y.value}) {
                Parcel found = (Parcel) point;
                check(found.label.equals(parcel.label) && found.y == 2, "the parcel");
                same("the weights", parcel.weights, found.weights);
            }
            check(z.value == null, "null");
        });
        cases.run("value/chunks/nested", () -> {
            Parcel sent = KnownValues.filled(new AParcel(), "outermost", 1);
            for (int depth = 0; depth < 20; ++depth) {
                Parcel outer = KnownValues.filled(new AParcel(), "level " + depth, depth);
                outer.contents = new Point[] {spot(3, 4, "blue"), sent, null};
                outer.inner = sent;
                sent = outer;
            }
            ParcelHolder y = new ParcelHolder(null), z = new ParcelHolder();
            Parcel at = values.echo_parcel(sent, y, z);
            for (int depth = 19; depth >= 0; --depth) {
                check(at.label.equals("level " + depth) && at.weights.length == depth && at.contents.length == 3, "level " + depth);
                check(at.contents[0].y == 4 && ((Spot) at.contents[0]).color.equals("blue") && at.contents[2] == null, "contents");
                check(at.inner != null && at.contents[1] == at.inner, "no longer shared at level " + depth);
                at = at.inner;
            }
            same("the last", "outermost", at.label);
        });
        cases.run("value/chunks/cycle", () -> {
            Parcel itself = KnownValues.filled(new AParcel(), "itself", 3);
            itself.inner = itself;
            ParcelHolder y = new ParcelHolder(null), z = new ParcelHolder();
            Parcel result = values.echo_parcel(itself, y, z);
            check(result.inner == result && y.value.inner == y.value && z.value == null, "no longer a cycle");
        });
        cases.run("value/chunks/kinds", () -> {
            KnownValues.ASecret secret = KnownValues.colored(KnownValues.at(new KnownValues.ASecret(), 3, 4), "red");
            KnownValues.ASealed sealed = KnownValues.filled(new KnownValues.ASealed(), "sealed", 2);
            sealed.treasure = spot(5, 6, "gold");
            KnownValues.AHotSpot hot = KnownValues.colored(new KnownValues.AHotSpot(), "");
            String kinds = values.kinds_of(new Point[] {secret, sealed, null, hot, secret, KnownValues.point(1, 2)});
            same("the kinds", String.join(" ", SpotHelper.id(), ParcelHelper.id(), "", HotSpotHelper.id(), SpotHelper.id(), PointHelper.id()), kinds);
        });
        cases.run("value/chunks/cut_off", () -> {
            KnownValues.ASealed sealed = KnownValues.filled(new KnownValues.ASealed(), "sealed", 2);
            sealed.treasure = KnownValues.point(20, 22);
            check(values.sum_of_second(sealed, sealed.treasure) == 42, "the sum");
        });
    }

    private void boxedMembers() {
        Values values = ValuesHelper.narrow(suite.part("values"));
        cases.run("box/members", () -> {
            KnownValues.ACrate crate = new KnownValues.ACrate();
            crate.name = "name";
            crate.again = null;
            crate.sizes = new int[] {4, 5};
            CrateHolder y = new CrateHolder(null), z = new CrateHolder();
            for (Crate found : new Crate[] {values.echo_crate(crate, y, z), y.value}) {
                check(found.name.equals("name") && found.again == null, "the names");
                same("the sizes", crate.sizes, found.sizes);
            }
            check(z.value == null, "null");
        });
        cases.run("box/shared", () -> {
            KnownValues.ACrate crate = new KnownValues.ACrate();
            crate.name = "name";
            crate.again = crate.name;
            CrateHolder y = new CrateHolder(null), z = new CrateHolder();
            Crate found = values.echo_crate(crate, y, z);
            check(found.name.equals("name") && found.name == found.again, "no longer shared");
        });
    }

    /** What a thing says of itself, and whether it is a value. */
    private static void described(String which, boolean isValue, String expected, Describable thing) {
        check(thing != null, which + " is nil");
        check(thing instanceof Card == isValue, which + (isValue ? " is no value" : " is a value"));
        same(which, expected, thing.describe_it());
    }

    private void abstracts() {
        Abstracts abstracts = AbstractsHelper.narrow(suite.part("abstracts"));
        cases.run("abstract/echo_value", () -> {
            DescribableHolder y = new DescribableHolder(new ACard("two")), z = new DescribableHolder();
            described("the result", true, "card one", abstracts.echo_describable(new ACard("one"), y, z));
            described("the inout", true, "card one", y.value);
            described("the out", true, "card two", z.value);
        });
        cases.run("abstract/echo_reference", () -> {
            Person person = abstracts.create_person("somebody");
            DescribableHolder y = new DescribableHolder(null), z = new DescribableHolder();
            described("the result", false, "person somebody", abstracts.echo_describable(person, y, z));
            described("the inout", false, "person somebody", y.value);
            check(z.value == null, "nil");
            check(abstracts.echo_describable(null, y, z) == null && y.value == null, "nil");
            described("the out", false, "person somebody", z.value);
        });
        cases.run("abstract/mixed", () -> {
            DescribableHolder y = new DescribableHolder(abstracts.a_person("x")), z = new DescribableHolder();
            described("the result", true, "card y", abstracts.echo_describable(new ACard("y"), y, z));
            described("the out", false, "person x", z.value);
        });
        cases.run("abstract/description_of", () -> {
            same("the card", "card line", abstracts.description_of(new ACard("line")));
            same("nobody", "", abstracts.description_of(null));
            Person person = abstracts.create_person("somebody");
            same("the name", "somebody", person.name());
            same("the person", "person somebody", abstracts.description_of(person));
        });
        cases.run("abstract/made_there", () -> {
            described("the card", true, "card made", abstracts.a_card("made"));
            described("the person", false, "person born", abstracts.a_person("born"));
        });
    }

    private static boolean reads(Clock clock, int hour, int minute) { return clock != null && clock.hour == hour && clock.minute == minute; }

    private void customs() {
        Customs customs = CustomsHelper.narrow(suite.part("custom"));
        cases.run("custom/echo_clock", () -> {
            Clock clock = new KnownValues.AClock(23, 59);
            ClockHolder y = new ClockHolder(null), z = new ClockHolder();
            check(reads(customs.echo_clock(clock, y, z), 23, 59) && reads(y.value, 23, 59) && z.value == null, "values");
            check(customs.echo_clock(null, y, z) == null && y.value == null && reads(z.value, 23, 59), "null");
        });
        cases.run("custom/minutes_of", () -> check(customs.minutes_of(new KnownValues.AClock(1, 5)) == 65, "minutes"));
    }

    private void right(String which, String sample, Any any) {
        String wrong = samples.check(sample, any);
        if (!wrong.isEmpty()) throw new Harness.Mismatch(which + ": " + wrong);
    }

    private void valueAnys() {
        ValueAnys anys = ValueAnysHelper.narrow(suite.part("value_anys"));
        for (String name : samples.names()) {
            cases.run("value_any/make/" + name, () -> right("the any", name, anys.make(name)));
            cases.run("value_any/check/" + name, () -> same("the answer", "", anys.check(name, samples.make(name))));
            cases.run("value_any/echo/" + name, () -> {
                AnyHolder y = new AnyHolder(samples.make("point")), z = new AnyHolder();
                right("result", name, anys.echo_value_any(samples.make(name), y, z));
                right("inout", name, y.value);
                right("out", "point", z.value);
            });
        }
        cases.run("value_any/unknown_sample", () -> expect(org.omg.CORBA.BAD_PARAM.class, () -> anys.make("no such sample")));
        cases.run("value_any/two_of_one", () -> {
            Point point = KnownValues.point(1, -2);
            Any x = orb.create_any(), before = orb.create_any();
            PointPairHelper.insert(x, new PointPair(point, null));
            PointHelper.insert(before, point);
            AnyHolder y = new AnyHolder(before), z = new AnyHolder();
            PointPair found = PointPairHelper.extract(anys.echo_value_any(x, y, z));
            check(found.first.y == -2 && found.second == null, "the result");
            right("the out", "point", z.value);
        });
    }
}
