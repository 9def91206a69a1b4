// A client of an interface repository: reads what is loaded, builds and destroys definitions of its own, and asks an
// object for its interface. Prints one line for each thing seen; ends with 1 at the first surprise.

#include <iostream>

// The library has the repository's stubs; its headers show them only when asked to.
#define ENABLE_CLIENT_IR_SUPPORT
#include <omniORB4/CORBA.h>
#include <string>

namespace {

[[noreturn]] void fail(const std::string& what) {
    std::cerr << what << std::endl;
    std::exit(1);
}

void expect(bool holds, const char* what) {
    if (!holds) fail(std::string("not so: ") + what);
}

const char* shown(CORBA::TypeCode_ptr type) {
    switch (type->kind()) {
    case CORBA::tk_void: return "void";
    case CORBA::tk_long: return "long";
    case CORBA::tk_string: return "string";
    case CORBA::tk_struct: return "struct";
    case CORBA::tk_union: return "union";
    case CORBA::tk_alias: return "alias";
    case CORBA::tk_objref: return "objref";
    default: return "other";
    }
}

void read(CORBA::Repository_ptr repository) {
    CORBA::Contained_var found = repository->lookup_id("IDL:Shop/Till:1.0");
    expect(!CORBA::is_nil(found), "the interface is found by its id");
    CORBA::InterfaceDef_var till = CORBA::InterfaceDef::_narrow(found);
    expect(!CORBA::is_nil(till), "it is an InterfaceDef");
    CORBA::InterfaceDef::FullInterfaceDescription_var full = till->describe_interface();
    for (CORBA::ULong i = 0; i < full->operations.length(); ++i) {
        const CORBA::OperationDescription& operation = full->operations[i];
        std::cout << "operation " << shown(operation.result.in()) << " " << operation.name;
        for (CORBA::ULong p = 0; p < operation.parameters.length(); ++p)
            std::cout << " " << shown(operation.parameters[p].type.in()) << ":" << operation.parameters[p].name << ":"
                      << operation.parameters[p].mode;
        for (CORBA::ULong e = 0; e < operation.exceptions.length(); ++e)
            std::cout << " raises " << operation.exceptions[e].name;
        std::cout << "\n";
    }
    for (CORBA::ULong i = 0; i < full->attributes.length(); ++i)
        std::cout << "attribute " << shown(full->attributes[i].type.in()) << " " << full->attributes[i].name << " "
                  << full->attributes[i].mode << "\n";
    for (CORBA::ULong i = 0; i < full->base_interfaces.length(); ++i)
        std::cout << "base " << full->base_interfaces[i] << "\n";
    expect(till->is_a("IDL:Shop/Counter:1.0"), "it inherits");

    CORBA::Contained_var shop = repository->lookup("::Shop");
    CORBA::Container_var scope = CORBA::Container::_narrow(shop);
    CORBA::Container::DescriptionSeq_var all = scope->describe_contents(CORBA::dk_all, true, -1);
    for (CORBA::ULong i = 0; i < all->length(); ++i) {
        CORBA::String_var name = all[i].contained_object->absolute_name();
        std::cout << "content " << all[i].kind << " " << name;
        const CORBA::ConstantDescription* constant;
        const CORBA::TypeDescription* type;
        if (all[i].value >>= constant) {
            CORBA::Long value;
            expect(constant->value >>= value, "a constant's value is a long");
            std::cout << " = " << value;
        } else if (all[i].value >>= type) {
            std::cout << " is " << shown(type->type.in());
        }
        std::cout << "\n";
    }

    CORBA::Contained_var node = repository->lookup("Shop::Node");
    CORBA::StructDef_var structure = CORBA::StructDef::_narrow(node);
    CORBA::TypeCode_var type = structure->type();
    CORBA::TypeCode_var inner = type->member_type(1);
    inner = inner->content_type();
    expect(inner->equal(type), "a recursive TypeCode leads back to itself");
}

void write(CORBA::Repository_ptr repository) {
    CORBA::ModuleDef_var module = repository->create_module("IDL:Made:1.0", "Made", "1.0");
    CORBA::IDLType_var number = repository->get_primitive(CORBA::pk_long);
    CORBA::SequenceDef_var numbers = repository->create_sequence(5, number);
    CORBA::StructMemberSeq members;
    members.length(2);
    members[0].name = CORBA::string_dup("count");
    members[0].type = CORBA::TypeCode::_duplicate(CORBA::_tc_void);
    members[0].type_def = CORBA::IDLType::_duplicate(number);
    members[1].name = CORBA::string_dup("numbers");
    members[1].type = CORBA::TypeCode::_duplicate(CORBA::_tc_void);
    members[1].type_def = CORBA::IDLType::_duplicate(numbers);
    CORBA::StructDef_var made = module->create_struct("IDL:Made/Bag:1.0", "Bag", "1.0", members);
    CORBA::TypeCode_var type = made->type();
    std::cout << "made " << type->name() << " of " << type->member_count() << "\n";
    CORBA::InterfaceDefSeq bases;
    CORBA::InterfaceDef_var interface = module->create_interface("IDL:Made/I:1.0", "I", "1.0", bases);
    CORBA::ParDescriptionSeq params;
    params.length(1);
    params[0].name = CORBA::string_dup("bag");
    params[0].type = CORBA::TypeCode::_duplicate(type);
    params[0].type_def = CORBA::IDLType::_duplicate(made);
    params[0].mode = CORBA::PARAM_INOUT;
    CORBA::ExceptionDefSeq exceptions;
    CORBA::ContextIdSeq contexts;
    CORBA::OperationDef_var operation = interface->create_operation(
        "IDL:Made/I/fill:1.0", "fill", "1.0", number, CORBA::OP_NORMAL, params, exceptions, contexts);
    CORBA::String_var name = operation->absolute_name();
    std::cout << "made " << name << "\n";
    try {
        made->destroy();
        fail("what is in use was destroyed");
    } catch (const CORBA::BAD_INV_ORDER& e) {
        std::cout << "refused " << (e.minor() & 0xfff) << "\n";
    }
    try {
        module->create_struct("IDL:Made/Bag:1.0", "Other", "1.0", members);
        fail("an id was given twice");
    } catch (const CORBA::BAD_PARAM& e) {
        std::cout << "refused " << (e.minor() & 0xfff) << "\n";
    }
    module->destroy();
    CORBA::Contained_var gone = repository->lookup_id("IDL:Made/Bag:1.0");
    expect(CORBA::is_nil(gone), "what was destroyed is gone");
}

}

int main(int argc, char** argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        CORBA::Object_var object = orb->resolve_initial_references("InterfaceRepository");
        CORBA::Repository_var repository = CORBA::Repository::_narrow(object);
        expect(!CORBA::is_nil(repository), "the reference is of a Repository");
        read(repository);
        write(repository);
        // The repository is an object with an interface itself.
        CORBA::InterfaceDef_var interface = object->_get_interface();
        CORBA::String_var id = interface->id();
        std::cout << "interface " << id << "\n";
        orb->destroy();
    } catch (const CORBA::SystemException& e) {
        fail(std::string(e._name()) + " " + (e.NP_minorString() ? e.NP_minorString() : "?"));
    } catch (const CORBA::Exception& e) {
        fail(e._name());
    }
    return 0;
}
