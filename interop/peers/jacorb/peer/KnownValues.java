package peer;

import interop.*;
import java.io.Serializable;
import org.omg.CORBA.ORB;
import org.omg.CORBA_2_3.portable.InputStream;

/** Valuetypes with the states that the IDL gives them, and factories for all but Secret. */
final class KnownValues {
    private KnownValues() {}

    static final class APoint extends Point {}
    static final class APoint3 extends Point3 {}
    static final class ASpot extends Spot {}
    static final class AHotSpot extends HotSpot {}
    static final class ASecret extends Secret {}
    static final class ACell extends Cell {}
    static final class ATwig extends Twig {}
    static final class AMixed extends Mixed {}

    static final class ATag extends Tag {
        public String label() { return text; }
        public double measure() { return size; }
    }

    static final class AnAccount extends Account {
        AnAccount() {}
        AnAccount(String owner, int balance, byte level) {
            this.owner = owner;
            this.balance = balance;
            this.level = level;
        }
        String state() { return owner + " " + balance + " " + (level & 255); }
    }

    private interface Make {
        Serializable now();
    }

    static void register(ORB orb) {
        add(orb, PointHelper.id(), APoint::new);
        add(orb, Point3Helper.id(), APoint3::new);
        add(orb, SpotHelper.id(), ASpot::new);
        add(orb, HotSpotHelper.id(), AHotSpot::new);
        add(orb, CellHelper.id(), ACell::new);
        add(orb, TwigHelper.id(), ATwig::new);
        add(orb, MixedHelper.id(), AMixed::new);
        add(orb, TagHelper.id(), ATag::new);
        add(orb, AccountHelper.id(), AnAccount::new);
    }

    private static void add(ORB orb, String id, Make make) {
        ((org.omg.CORBA_2_3.ORB) orb).register_value_factory(id, (InputStream in) -> in.read_value(make.now()));
    }

    static Point point(int x, int y) { return at(new APoint(), x, y); }

    static <P extends Point> P at(P point, int x, int y) {
        point.x = x;
        point.y = y;
        return point;
    }

    static <S extends Spot> S colored(S spot, String color) {
        spot.color = color;
        return spot;
    }

    /** A ring of cells, numbered from 1; null for none. */
    static Cell ring(int count) {
        Cell[] cells = new Cell[count];
        for (int i = 0; i < count; ++i) cells[i] = new ACell();
        for (int i = 0; i < count; ++i) {
            cells[i].number = i + 1;
            cells[i].next = cells[(i + 1) % count];
        }
        return count == 0 ? null : cells[0];
    }

    /** The number of cells of a ring; 0 for null, -1 for a chain that ends. */
    static int length(Cell first) {
        if (first == null) return 0;
        int count = 1;
        for (Cell at = first.next; at != first; at = at.next) {
            if (at == null) return -1;
            ++count;
        }
        return count;
    }
}
