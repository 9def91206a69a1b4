package peer;

import org.omg.CORBA.*;
import org.omg.CORBA.ContainerPackage.Description;
import org.omg.CORBA.InterfaceDefPackage.FullInterfaceDescription;

/**
 * A client of an interface repository: reads what is loaded, builds and destroys definitions of its own, and asks an
 * object for its interface. Prints one line for each thing seen, as its sister in C++ does.
 */
public final class RepositoryClient {
    public static void main(String[] arguments) {
        try {
            ORB orb = new Start(arguments, new java.util.Properties()).orb;
            org.omg.CORBA.Object object = orb.resolve_initial_references("InterfaceRepository");
            Repository repository = RepositoryHelper.narrow(object);
            read(repository);
            write(orb, repository);
            InterfaceDef of = InterfaceDefHelper.narrow(object._get_interface_def());
            System.out.println("interface " + of.id());
            orb.shutdown(true);
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static void expect(boolean holds, String what) {
        if (!holds) throw new IllegalStateException("not so: " + what);
    }

    private static String shown(TypeCode type) {
        switch (type.kind().value()) {
            case TCKind._tk_void: return "void";
            case TCKind._tk_long: return "long";
            case TCKind._tk_string: return "string";
            case TCKind._tk_struct: return "struct";
            case TCKind._tk_union: return "union";
            case TCKind._tk_alias: return "alias";
            case TCKind._tk_objref: return "objref";
            default: return "other";
        }
    }

    private static void read(Repository repository) throws Exception {
        InterfaceDef till = InterfaceDefHelper.narrow(repository.lookup_id("IDL:Shop/Till:1.0"));
        FullInterfaceDescription full = till.describe_interface();
        for (OperationDescription operation : full.operations) {
            StringBuilder line = new StringBuilder("operation " + shown(operation.result) + " " + operation.name);
            for (ParameterDescription p : operation.parameters)
                line.append(" " + shown(p.type) + ":" + p.name + ":" + p.mode.value());
            for (ExceptionDescription e : operation.exceptions) line.append(" raises " + e.name);
            System.out.println(line);
        }
        for (AttributeDescription a : full.attributes)
            System.out.println("attribute " + shown(a.type) + " " + a.name + " " + a.mode.value());
        for (String base : full.base_interfaces) System.out.println("base " + base);
        expect(till.is_a("IDL:Shop/Counter:1.0"), "it inherits");

        Container scope = ContainerHelper.narrow(repository.lookup("::Shop"));
        for (Description one : scope.describe_contents(DefinitionKind.dk_all, true, -1)) {
            String line = "content " + one.kind.value() + " " + one.contained_object.absolute_name();
            switch (one.kind.value()) {
                case DefinitionKind._dk_Constant:
                    line += " = " + ConstantDescriptionHelper.extract(one.value).value.extract_long();
                    break;
                case DefinitionKind._dk_Alias:
                case DefinitionKind._dk_Struct:
                case DefinitionKind._dk_Union:
                case DefinitionKind._dk_Enum:
                    line += " is " + shown(TypeDescriptionHelper.extract(one.value).type);
                    break;
                default:
            }
            System.out.println(line);
        }

        StructDef node = StructDefHelper.narrow(repository.lookup("Shop::Node"));
        TypeCode type = node.type();
        expect(type.member_type(1).content_type().id().equals(type.id()), "a recursive TypeCode leads back to itself");
    }

    private static void write(ORB orb, Repository repository) throws Exception {
        ModuleDef module = repository.create_module("IDL:Made:1.0", "Made", "1.0");
        IDLType number = repository.get_primitive(PrimitiveKind.pk_long);
        SequenceDef numbers = repository.create_sequence(5, number);
        TypeCode none = orb.get_primitive_tc(TCKind.tk_void);
        StructMember[] members = {
            new StructMember("count", none, number), new StructMember("numbers", none, numbers)
        };
        StructDef made = module.create_struct("IDL:Made/Bag:1.0", "Bag", "1.0", members);
        System.out.println("made " + made.type().name() + " of " + made.type().member_count());
        InterfaceDef of = module.create_interface("IDL:Made/I:1.0", "I", "1.0", new InterfaceDef[0]);
        ParameterDescription[] parameters = {
            new ParameterDescription("bag", made.type(), made, ParameterMode.PARAM_INOUT)
        };
        OperationDef operation = of.create_operation("IDL:Made/I/fill:1.0", "fill", "1.0", number,
            OperationMode.OP_NORMAL, parameters, new ExceptionDef[0], new String[0]);
        System.out.println("made " + operation.absolute_name());
        try {
            made.destroy();
            expect(false, "what is in use cannot be destroyed");
        } catch (BAD_INV_ORDER e) {
            System.out.println("refused " + (e.minor & 0xfff));
        }
        try {
            module.create_struct("IDL:Made/Bag:1.0", "Other", "1.0", members);
            expect(false, "an id is given once");
        } catch (BAD_PARAM e) {
            System.out.println("refused " + (e.minor & 0xfff));
        }
        module.destroy();
        expect(repository.lookup_id("IDL:Made/Bag:1.0") == null, "what was destroyed is gone");
    }
}
