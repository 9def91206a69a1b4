package peer;

import interop.*;
import java.math.BigDecimal;
import org.omg.CORBA.Any;
import org.omg.CORBA.DATA_CONVERSION;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TypeCode;
import org.omg.PortableServer.Servant;

/** The servants of what not every ORB can do. */
final class PartServants {
    private final ORB orb;
    private final KnownSamples samples;

    PartServants(ORB orb) {
        this.orb = orb;
        samples = new KnownSamples(orb);
    }

    /** The servant of a part of the contract; null for one that JacORB has not. */
    Servant make(String part) {
        switch (part) {
            case "anys": return new AnysPOATie(Echoes.serve(AnysOperations.class, new AnysRest()));
            case "typecodes": return new TypeCodesPOATie(Echoes.serve(TypeCodesOperations.class, new TypeCodesRest()));
            case "fixed": return new FixedsPOATie(Echoes.serve(FixedsOperations.class, new FixedsRest()));
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
}
