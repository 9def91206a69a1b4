package peer;

import interop.*;
import java.util.TreeMap;
import org.omg.CORBA.Any;
import org.omg.CORBA.BAD_PARAM;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TypeCode;

/** The samples of ValueAnys in values.idl: anys with values, under names that all peers know. */
final class KnownValueSamples {
    private interface Put {
        void into(Any any);
    }

    private interface Holds {
        boolean in(Any any);
    }

    private static final class Sample {
        final TypeCode type;
        final Put put;
        final Holds holds;

        Sample(TypeCode type, Put put, Holds holds) {
            this.type = type;
            this.put = put;
            this.holds = holds;
        }
    }

    private final ORB orb;
    private final TreeMap<String, Sample> samples = new TreeMap<>();

    KnownValueSamples(ORB orb) {
        this.orb = orb;
        add("point", PointHelper.type(), any -> PointHelper.insert(any, point()), any -> isPoint(PointHelper.extract(any)));
        add("null_point", PointHelper.type(), any -> any.insert_Value(null, PointHelper.type()), any -> PointHelper.extract(any) == null);
        add("spot", SpotHelper.type(), any -> SpotHelper.insert(any, spot()), any -> isSpot(SpotHelper.extract(any)));
        KnownValues.APoint3 deep = KnownValues.at(new KnownValues.APoint3(), 1, -2);
        deep.depth = 3;
        add("point3", Point3Helper.type(), any -> Point3Helper.insert(any, deep),
            any -> isPoint(Point3Helper.extract(any)) && Point3Helper.extract(any).depth == 3);
        add("spot_as_point", PointHelper.type(), any -> any.insert_Value(spot(), PointHelper.type()), any -> isSpot(PointHelper.extract(any)));
        add("boxed_string", BoxedStringHelper.type(), any -> BoxedStringHelper.insert(any, "boxed"),
            any -> "boxed".equals(BoxedStringHelper.extract(any)));
        add("null_box", BoxedStringHelper.type(), any -> any.insert_Value(null, BoxedStringHelper.type()), any -> any.extract_Value() == null);
        add("boxed_longs", BoxedLongsHelper.type(), any -> BoxedLongsHelper.insert(any, new int[] {1, 2, 3}),
            any -> java.util.Arrays.equals(new int[] {1, 2, 3}, BoxedLongsHelper.extract(any)));
        BinStruct bin = new BinStruct((short) 1, 'b', 2, (byte) 3, 4.5);
        add("boxed_bin", BoxedBinHelper.type(), any -> BoxedBinHelper.insert(any, bin), any -> {
            Harness.same("the box", bin, BoxedBinHelper.extract(any));
            return true;
        });
        add("pair", PointPairHelper.type(), any -> {
            Point twice = point();
            PointPairHelper.insert(any, new PointPair(twice, twice));
        }, any -> {
            PointPair found = PointPairHelper.extract(any);
            return isPoint(found.first) && found.first == found.second;
        });
        add("points", PointSeqHelper.type(), any -> {
            Point twice = point();
            PointSeqHelper.insert(any, new Point[] {twice, null, twice});
        }, any -> {
            Point[] found = PointSeqHelper.extract(any);
            return found.length == 3 && isPoint(found[0]) && found[1] == null && found[0] == found[2];
        });
        add("ring", CellHelper.type(), any -> CellHelper.insert(any, KnownValues.ring(2)),
            any -> KnownValues.length(CellHelper.extract(any)) == 2);
        add("account", AccountHelper.type(), any -> AccountHelper.insert(any, new KnownValues.AnAccount("me", -5, (byte) 200)),
            any -> ((KnownValues.AnAccount) AccountHelper.extract(any)).state().equals("me -5 200"));
        add("parcel", ParcelHelper.type(), any -> {
            Parcel parcel = KnownValues.filled(new KnownValues.AParcel(), "parcel", 0);
            parcel.y = -2;
            parcel.weights = new double[] {0.5};
            Point twice = spot();
            parcel.contents = new Point[] {twice, twice};
            ParcelHelper.insert(any, parcel);
        }, any -> {
            Parcel found = ParcelHelper.extract(any);
            return isPoint(found) && found.label.equals("parcel") && found.weights.length == 1 && found.weights[0] == 0.5
                && found.inner == null && found.contents.length == 2 && isSpot(found.contents[0]) && found.contents[0] == found.contents[1];
        });
        add("card", DescribableHelper.type(), any -> DescribableHelper.insert(any, new KnownValues.ACard("line")),
            any -> ((Card) DescribableHelper.extract(any)).line.equals("line"));
        add("nobody", DescribableHelper.type(), any -> DescribableHelper.insert(any, null), any -> DescribableHelper.extract(any) == null);
    }

    private static Point point() { return KnownValues.point(1, -2); }
    private static Spot spot() { return KnownValues.colored(KnownValues.at(new KnownValues.ASpot(), 1, -2), "blue"); }
    private static boolean isPoint(Point p) { return p != null && p.x == 1 && p.y == -2; }
    private static boolean isSpot(Point p) { return isPoint(p) && p instanceof Spot && ((Spot) p).color.equals("blue"); }

    private void add(String name, TypeCode type, Put put, Holds holds) { samples.put(name, new Sample(type, put, holds)); }

    Iterable<String> names() { return samples.keySet(); }

    Any make(String name) {
        Sample sample = samples.get(name);
        if (sample == null) throw new BAD_PARAM(name);
        Any any = orb.create_any();
        sample.put.into(any);
        return any;
    }

    /** Says what is wrong with an any that should be the sample; nothing when it is right. */
    String check(String name, Any any) {
        Sample sample = samples.get(name);
        if (sample == null) return "the sample is unknown";
        try {
            if (!any.type().equivalent(sample.type)) return "its type is " + any.type();
            return sample.holds.in(any) ? "" : "has another value";
        } catch (RuntimeException e) {
            return Harness.describe(e);
        }
    }
}
