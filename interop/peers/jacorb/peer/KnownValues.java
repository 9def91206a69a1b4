package peer;

import interop.*;
import java.io.Serializable;
import org.omg.CORBA.DataInputStream;
import org.omg.CORBA.DataOutputStream;
import org.omg.CORBA.ORB;
import org.omg.CORBA.portable.BoxedValueHelper;
import org.omg.CORBA_2_3.portable.InputStream;

/** Valuetypes with the states that the IDL gives them, and factories for all but Secret and Sealed. */
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

    static final class AParcel extends Parcel {}
    static final class ASealed extends Sealed {}
    static final class ACrate extends Crate {}

    static final class ATicket extends Ticket {
        ATicket() {}
        ATicket(int number, String holder) {
            this.number = number;
            this.holder = holder;
        }
        public String face() { return number + " for " + holder; }
    }

    /** Issues tickets, and makes those that arrive. */
    static final class TicketOffice implements TicketValueFactory {
        public Ticket issue(int number, String holder) { return new ATicket(number, holder); }
        public Serializable read_value(InputStream in) { return in.read_value(new ATicket()); }
    }

    static final class ACard extends Card {
        ACard() {}
        ACard(String line) { this.line = line; }
        public String describe_it() { return "card " + line; }
    }

    static final class AClock extends Clock {
        AClock() {}
        AClock(int hour, int minute) {
            this.hour = (short) hour;
            this.minute = (short) minute;
        }
        public void marshal(DataOutputStream out) {
            out.write_octet((byte) hour);
            out.write_octet((byte) minute);
            out.write_string(String.format("%02d:%02d", hour, minute));
        }
        public void unmarshal(DataInputStream in) {
            hour = in.read_octet();
            minute = in.read_octet();
            in.read_string();
        }
    }

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
        add(orb, ParcelHelper.id(), AParcel::new);
        add(orb, CrateHelper.id(), ACrate::new);
        add(orb, CardHelper.id(), ACard::new);
        add(orb, ClockHelper.id(), AClock::new);
        // Boxes, for where their type is not declared.
        addBox(orb, new BoxedStringHelper());
        addBox(orb, new BoxedLongHelper());
        addBox(orb, new BoxedLongsHelper());
        addBox(orb, new BoxedBinHelper());
        ((org.omg.CORBA_2_3.ORB) orb).register_value_factory(TicketHelper.id(), new TicketOffice());
        add(orb, TagHelper.id(), ATag::new);
        add(orb, AccountHelper.id(), AnAccount::new);
    }

    private static void add(ORB orb, String id, Make make) {
        ((org.omg.CORBA_2_3.ORB) orb).register_value_factory(id, (InputStream in) -> in.read_value(make.now()));
    }

    private static void addBox(ORB orb, BoxedValueHelper helper) {
        ((org.omg.CORBA_2_3.ORB) orb).register_value_factory(helper.get_id(), helper::read_value);
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

    /** Without contents and inner. */
    static <P extends Parcel> P filled(P parcel, String label, int weights) {
        at(parcel, 1, 2);
        parcel.label = label;
        parcel.weights = new double[weights];
        for (int i = 0; i < weights; ++i) parcel.weights[i] = i / 3.0;
        parcel.contents = new Point[0];
        return parcel;
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
