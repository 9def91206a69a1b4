//! The interface repository as its clients see it: loaded from IDL, queried and changed over TCP.

use ironorb::giop::typecode::UnionCase;
use ironorb::ifr::corba::{
    self, AttributeMode, ConstantDef as _, ConstantDescription, Contained as _, Container as _,
    DefinitionKind as K, ExtAttributeDef as _, ExtAttributeDefRef, IdlType as _, IdlTypeRef,
    InterfaceDef as _, InterfaceDefRef, IrObject as _, ModuleDescription, OperationDescription,
    OperationMode, ParameterMode, PrimitiveKind, Repository as _, RepositoryRef, StructDef as _,
    StructDefRef, StructMember, TypeDescription, UnionDef as _, ValueDef as _, ValueDefRef,
};
use ironorb::{Any, ObjectRef, Orb, SystemException, SystemExceptionKind, TcKind, TypeCode, TypedRef};
use ironorb_idl::{MapLoader, Options, compile_with};
use ironorb_services::ifr::{
    InterfaceRepository, InterfaceRepositoryServer, Limits, LoadError, Loaded, Store,
};

const BANK: &str = r#"
#pragma prefix "example.org"
module Bank {
    typedef fixed<12, 2> Money;
    const Money LIMIT = 1000.50d;
    const long BRANCHES = 12;
    const string MOTTO = "in cash we trust";
    enum Currency { EUR, USD, GBP };
    struct Entry { string text; Money amount; sequence<Entry> parts; };
    typedef sequence<Entry, 10> Entries;
    typedef long Grid[2][3];
    union Key switch (Currency) { case EUR: long number; case USD: string<8> text; default: Grid cells; };
    exception Overdrawn { Money missing; };
    exception Closed {};
    interface Account {
        readonly attribute Money balance;
        attribute string owner getraises (Closed) setraises (Closed, Overdrawn);
        void withdraw(in Money amount, out Entries statement, inout Key code) raises (Overdrawn);
        oneway void poke(in any what);
    };
    interface Savings : Account {
        const short RATE = 3;
        Account open() context ("branch", "clerk");
    };
    valuetype Node { public long weight; private Node next; factory make(in long weight) raises (Closed); long sum(); };
};
"#;

fn model(text: &str) -> ironorb_idl::model::Model {
    let files = MapLoader::new().with("bank.idl", text);
    let outcome = compile_with("bank.idl".as_ref(), &Options::default(), &files);
    let diagnostics = outcome.render(false);
    outcome.model.unwrap_or_else(|| panic!("{diagnostics}"))
}

/// A server with definitions, and a client's reference to it over TCP.
struct Pair {
    server: InterfaceRepositoryServer,
    server_orb: Orb,
    client: Orb,
    root: RepositoryRef,
}

impl Pair {
    fn with(text: &str) -> Pair {
        let server_orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let repository = InterfaceRepository::new(Store::in_memory().unwrap(), Limits::default());
        repository.load(&model(text)).unwrap();
        let server = InterfaceRepositoryServer::start(&server_orb, repository).unwrap();
        let client = Orb::builder()
            .no_endpoint()
            .initial_reference("InterfaceRepository", &server.corbaloc())
            .build()
            .unwrap();
        let root = ironorb::ifr::repository(&client).unwrap();
        Pair { server, server_orb, client, root }
    }

    fn find<R: TypedRef>(&self, scoped_name: &str) -> R {
        let found = self.root.lookup(scoped_name).unwrap();
        let found = found.unwrap_or_else(|| panic!("{scoped_name} is not there"));
        found.object().narrow().unwrap().unwrap_or_else(|| panic!("{scoped_name} is of another kind"))
    }

    fn primitive(&self, kind: PrimitiveKind) -> IdlTypeRef {
        self.root.get_primitive(kind).unwrap().unwrap().into()
    }
}

fn minor(e: &SystemException) -> (SystemExceptionKind, u32) {
    (e.kind, e.minor.0 & 0xfff)
}

#[test]
fn an_interface_is_described_with_all_that_it_inherits() {
    let pair = Pair::with(BANK);
    let found = pair.root.lookup_id("IDL:example.org/Bank/Savings:1.0").unwrap().unwrap();
    let savings: InterfaceDefRef = found.object().narrow().unwrap().unwrap();
    let full = savings.describe_interface().unwrap();
    assert_eq!((full.name.as_str(), full.version.as_str()), ("Savings", "1.0"));
    assert_eq!(full.defined_in, "IDL:example.org/Bank:1.0");
    assert_eq!(full.base_interfaces, ["IDL:example.org/Bank/Account:1.0"]);
    assert_eq!(
        full.type_,
        TypeCode::create_interface("IDL:example.org/Bank/Savings:1.0", "Savings").unwrap()
    );
    let names: Vec<_> = full.operations.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["open", "withdraw", "poke"]);
    let attributes: Vec<_> = full.attributes.iter().map(|a| (a.name.as_str(), a.mode)).collect();
    assert_eq!(attributes, [("balance", AttributeMode::AttrReadonly), ("owner", AttributeMode::AttrNormal)]);
    let [open, withdraw, poke] = &full.operations[..] else { panic!() };
    assert_eq!(open.contexts, ["branch", "clerk"]);
    assert_eq!(open.result.kind(), TcKind::ObjRef);
    assert_eq!(poke.mode, OperationMode::OpOneway);
    assert_eq!(withdraw.defined_in, "IDL:example.org/Bank/Account:1.0");
    let parameters: Vec<_> = withdraw.parameters.iter().map(|p| (p.name.as_str(), p.mode)).collect();
    assert_eq!(
        parameters,
        [
            ("amount", ParameterMode::ParamIn),
            ("statement", ParameterMode::ParamOut),
            ("code", ParameterMode::ParamInout)
        ]
    );
    assert_eq!(withdraw.exceptions[0].id, "IDL:example.org/Bank/Overdrawn:1.0");
    assert_eq!(withdraw.exceptions[0].type_.kind(), TcKind::Except);
    // A parameter's definition and its TypeCode describe one type.
    let entries = withdraw.parameters[1].type_def.as_ref().unwrap();
    assert_eq!(entries.type_().unwrap(), withdraw.parameters[1].type_);
    assert!(savings.is_a("IDL:example.org/Bank/Account:1.0").unwrap());
    assert!(savings.is_a("IDL:omg.org/CORBA/Object:1.0").unwrap());
    assert!(!savings.is_a("IDL:example.org/Bank/Node:1.0").unwrap());
}

#[test]
fn type_codes_are_those_that_the_generator_would_make() {
    let pair = Pair::with(BANK);
    let money = TypeCode::create_alias(
        "IDL:example.org/Bank/Money:1.0",
        "Money",
        &TypeCode::create_fixed(12, 2).unwrap(),
    )
    .unwrap();
    let entry_id = "IDL:example.org/Bank/Entry:1.0";
    let parts = TypeCode::create_sequence(&TypeCode::recursive(entry_id).unwrap(), 0).unwrap();
    let text = TypeCode::create_string(0);
    let entry =
        TypeCode::create_struct(entry_id, "Entry", &[("text", text), ("amount", money), ("parts", parts)])
            .unwrap();
    let found: StructDefRef = pair.find("Bank::Entry");
    assert_eq!(found.type_().unwrap(), entry);

    let currency =
        TypeCode::create_enum("IDL:example.org/Bank/Currency:1.0", "Currency", &["EUR", "USD", "GBP"])
            .unwrap();
    let row = TypeCode::create_array(&TypeCode::of(&ironorb::TypeDef::Long), 3).unwrap();
    let grid = TypeCode::create_array(&row, 2).unwrap();
    let grid = TypeCode::create_alias("IDL:example.org/Bank/Grid:1.0", "Grid", &grid).unwrap();
    let case = |label, name: &str, type_code| UnionCase { label, name: name.to_owned(), type_code };
    let key = TypeCode::create_union(
        "IDL:example.org/Bank/Key:1.0",
        "Key",
        &currency,
        &[
            case(Some(0), "number", TypeCode::of(&ironorb::TypeDef::Long)),
            case(Some(1), "text", TypeCode::create_string(8)),
            case(None, "cells", grid),
        ],
    )
    .unwrap();
    let found: corba::UnionDefRef = pair.find("Bank::Key");
    assert_eq!(found.type_().unwrap(), key);
    assert_eq!(found.discriminator_type().unwrap(), currency);
    let members = found.members().unwrap();
    assert_eq!(members[1].label.extract_as::<u32>(currency).unwrap(), 1);
    assert_eq!(members[2].label.extract_as::<u8>(TypeCode::of(&ironorb::TypeDef::Octet)).unwrap(), 0);
    // The members that were read can be written.
    found.set_members(&members).unwrap();
    assert_eq!(found.type_().unwrap(), key);

    let node: ValueDefRef = pair.find("::Bank::Node");
    let tc = node.type_().unwrap();
    assert_eq!((tc.kind(), tc.member_count().unwrap()), (TcKind::Value, 2));
    assert_eq!(tc.member_name(1).unwrap(), "next");
    let full = node.describe_value().unwrap();
    assert_eq!(full.members.iter().map(|m| m.access).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(full.initializers[0].members[0].name, "weight");
    assert_eq!(full.operations[0].name, "sum");

    // A client's form of a known type becomes the repository's form.
    let bare = TypeCode::create_struct(entry_id, "", &[]).unwrap();
    assert_eq!(pair.root.get_canonical_typecode(&bare).unwrap(), entry);
}

#[test]
fn definitions_are_found_by_name_and_described() {
    let pair = Pair::with(BANK);
    let bank: corba::ModuleDefRef = pair.find("Bank");
    let kinds = |limit| bank.contents(limit, true).unwrap().len();
    assert_eq!((kinds(K::DkInterface), kinds(K::DkConstant), kinds(K::DkException)), (2, 3, 2));
    assert_eq!(kinds(K::DkTypedef), 6);
    let savings: InterfaceDefRef = pair.find("Bank::Savings");
    assert_eq!(savings.contents(K::DkAll, true).unwrap().len(), 2);
    assert_eq!(savings.contents(K::DkAll, false).unwrap().len(), 6);
    // The scoping rules of IDL: inherited names, then enclosing scopes.
    for name in ["withdraw", "Money", "Bank::Money", "::Bank::Savings::poke"] {
        assert!(savings.lookup(name).unwrap().is_some(), "{name}");
    }
    assert!(savings.lookup("::Money").unwrap().is_none());
    let rates = pair.root.lookup_name("rate", -1, K::DkAll, true).unwrap();
    assert_eq!(rates[0].as_ref().unwrap().absolute_name().unwrap(), "::Bank::Savings::RATE");
    assert!(pair.root.lookup_name("RATE", 2, K::DkAll, true).unwrap().is_empty());
    assert_eq!(pair.root.lookup_name("RATE", 3, K::DkConstant, true).unwrap().len(), 1);

    let limit: corba::ConstantDefRef = pair.find("Bank::LIMIT");
    let described = limit.describe().unwrap();
    assert_eq!(described.kind, K::DkConstant);
    let constant: ConstantDescription = described.value.extract().unwrap();
    assert_eq!(constant.value, limit.value().unwrap());
    assert_eq!(format!("{:?}", constant.type_.resolved().kind()), "Fixed");
    let motto: corba::ConstantDefRef = pair.find("Bank::MOTTO");
    assert_eq!(motto.value().unwrap().extract_str().unwrap(), "in cash we trust");
    let branches: corba::ConstantDefRef = pair.find("Bank::BRANCHES");
    assert_eq!(branches.value().unwrap().extract::<i32>().unwrap(), 12);

    let described = bank.describe().unwrap().value.extract::<ModuleDescription>().unwrap();
    assert_eq!((described.name.as_str(), described.defined_in.as_str()), ("Bank", ""));
    let all = savings.describe_contents(K::DkOperation, false, -1).unwrap();
    let operation: OperationDescription = all[1].value.extract().unwrap();
    assert_eq!(operation.name, "withdraw");
    assert_eq!(savings.describe_contents(K::DkAll, false, 3).unwrap().len(), 3);
    let entry: StructDefRef = pair.find("Bank::Entry");
    let described: TypeDescription = entry.describe().unwrap().value.extract().unwrap();
    assert_eq!(described.type_, entry.type_().unwrap());
    let scope = entry.defined_in().unwrap().unwrap();
    assert!(scope.object().is_equivalent(bank.object()));
    assert!(
        entry.containing_repository().unwrap().unwrap().object().is_equivalent(pair.server.root().object())
    );

    let owner: ExtAttributeDefRef = pair.find("Bank::Account::owner");
    let described = owner.describe_attribute().unwrap();
    let raised =
        |list: &[corba::ExceptionDescription]| list.iter().map(|e| e.name.clone()).collect::<Vec<_>>();
    assert_eq!(raised(&described.get_exceptions), ["Closed"]);
    assert_eq!(raised(&described.put_exceptions), ["Closed", "Overdrawn"]);
}

#[test]
fn clients_build_move_and_destroy_definitions() {
    let pair = Pair::with("");
    let root = &pair.root;
    let module = root.create_module("IDL:M:1.0", "M", "1.0").unwrap().unwrap();
    // A recursive type is created empty first.
    let tree = module.create_struct("IDL:M/Tree:1.0", "Tree", "1.0", &[]).unwrap().unwrap();
    let trees = root.create_sequence(0, Some(&tree.clone().into())).unwrap().unwrap();
    let member = |name: &str, ty: IdlTypeRef| StructMember {
        name: name.to_owned(),
        type_: TypeCode::default(),
        type_def: Some(ty),
    };
    let long = pair.primitive(PrimitiveKind::PkLong);
    tree.set_members(&[member("weight", long.clone()), member("children", trees.clone().into())]).unwrap();
    let tc = tree.type_().unwrap();
    assert_eq!(tc.member_type(1).unwrap().content_type().unwrap(), tc);
    // Without a sequence between them, the type would be infinite.
    let e = tree.set_members(&[member("self_", tree.clone().into())]).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::BadTypecode);
    assert_eq!(StructDefMembers::count(&tree), 2, "a refused change leaves everything as it was");

    let shape = module.create_interface("IDL:M/Shape:1.0", "Shape", "1.0", &[]).unwrap().unwrap();
    let circle = module
        .create_interface("IDL:M/Circle:1.0", "Circle", "1.0", &[Some(shape.clone())])
        .unwrap()
        .unwrap();
    let area = shape
        .create_attribute("IDL:M/Shape/area:1.0", "area", "1.0", Some(&long), AttributeMode::AttrReadonly)
        .unwrap()
        .unwrap();
    let refused = |e: SystemException| minor(&e);
    use SystemExceptionKind::{BadInvOrder, BadParam};
    let again = module.create_module("IDL:M:1.0", "N", "1.0").map(drop).unwrap_err();
    assert_eq!(refused(again), (BadParam, 2));
    let again = module.create_module("IDL:M/x:1.0", "sHAPE", "1.0").map(drop).unwrap_err();
    assert_eq!(refused(again), (BadParam, 3));
    let misplaced = shape.create_module("IDL:M/x:1.0", "x", "1.0").map(drop).unwrap_err();
    assert_eq!(refused(misplaced), (BadParam, 4));
    let inherited = circle
        .create_attribute("IDL:M/x:1.0", "area", "1.0", Some(&long), AttributeMode::AttrNormal)
        .map(drop)
        .unwrap_err();
    assert_eq!(refused(inherited), (BadParam, 5));
    let oneway = circle
        .create_operation("IDL:M/x:1.0", "x", "1.0", Some(&long), OperationMode::OpOneway, &[], &[], &[])
        .map(drop)
        .unwrap_err();
    assert_eq!(refused(oneway), (BadParam, 31));
    assert_eq!(refused(shape.destroy().unwrap_err()), (BadInvOrder, 1), "a base is in use");
    assert_eq!(refused(root.destroy().unwrap_err()), (BadInvOrder, 2));
    let loops = shape.set_base_interfaces(&[Some(circle.clone())]).unwrap_err();
    assert_eq!(loops.kind, BadParam);
    let nameless = module.create_enum("IDL:M/x:1.0", "1x", "1.0", &[]).map(drop).unwrap_err();
    assert_eq!(refused(nameless), (BadParam, 15));
    assert_eq!(refused(module.create_struct("x", "x", "1.0", &[]).map(drop).unwrap_err()), (BadParam, 16));

    let other = root.create_module("IDL:Other:1.0", "Other", "1.0").unwrap().unwrap();
    circle.move_(Some(&other.clone().into()), "Disc", "2.0").unwrap();
    assert_eq!(circle.absolute_name().unwrap(), "::Other::Disc");
    assert_eq!(circle.version().unwrap(), "2.0");
    assert!(module.lookup("Circle").unwrap().is_none());
    let inner = other.create_module("IDL:Other/In:1.0", "In", "1.0").unwrap().unwrap();
    assert_eq!(other.move_(Some(&inner.into()), "Other", "1.0").unwrap_err().kind, BadParam);

    circle.destroy().unwrap();
    assert_eq!(circle.name().unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    module.destroy().unwrap();
    for gone in [area.object(), tree.object(), trees.object()] {
        let gone: corba::IrObjectRef = gone.narrow_unchecked();
        assert_eq!(gone.def_kind().unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    }
    // The id and name are free again.
    root.create_module("IDL:M:1.0", "M", "1.0").unwrap().unwrap();
}

/// Reads members of a StructDef: StructDef and ExceptionDef both have `members`.
struct StructDefMembers;

impl StructDefMembers {
    fn count(of: &StructDefRef) -> usize {
        corba::StructDef::members(of).unwrap().len()
    }
}

#[test]
fn loading_again_brings_definitions_up_to_date() {
    let repository = InterfaceRepository::new(Store::in_memory().unwrap(), Limits::default());
    let first = repository
        .load(&model("module M { interface I { void a(); void b(); }; struct S { I one; }; };"))
        .unwrap();
    assert_eq!(first, Loaded { added: 5, updated: 0, removed: 0 });
    let before = repository.lookup_id("IDL:M/I:1.0").unwrap();
    let second =
        repository.load(&model("module M { interface I { void a(in long x); void c(); }; };")).unwrap();
    assert_eq!(second, Loaded { added: 1, updated: 3, removed: 1 });
    assert_eq!(repository.lookup_id("IDL:M/I:1.0").unwrap(), before);
    assert!(repository.lookup_id("IDL:M/I/b:1.0").unwrap().is_none());
    assert!(repository.lookup_id("IDL:M/S:1.0").unwrap().is_some(), "modules only grow");
    let conflict = repository.load(&model("module M { struct I { long x; }; };"));
    assert!(matches!(conflict, Err(LoadError::Conflict { .. })), "{conflict:?}");
}

#[test]
fn references_and_definitions_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("definitions.redb");
    let mut port = "0".to_owned();
    let mut text = String::new();
    for round in 0..2 {
        let orb = Orb::builder().endpoint(&format!("iiop://127.0.0.1:{port}")).unwrap().build().unwrap();
        let repository = InterfaceRepository::new(Store::open(&file).unwrap(), Limits::default());
        if round == 0 {
            repository.load(&model(BANK)).unwrap();
        }
        let server = InterfaceRepositoryServer::start(&orb, repository).unwrap();
        let client = Orb::builder().no_endpoint().build().unwrap();
        if round == 0 {
            port = orb.published_addresses()[0].rsplit_once(':').unwrap().1.to_owned();
            text = server.root().lookup("Bank::Key").unwrap().unwrap().object().to_ior_string();
        }
        let key: corba::UnionDefRef = client.string_to_object(&text).unwrap().narrow().unwrap().unwrap();
        assert_eq!(key.absolute_name().unwrap(), "::Bank::Key");
        assert_eq!(corba::UnionDef::members(&key).unwrap().len(), 3);
        orb.shutdown(true).unwrap();
    }
}

/// A servant with an interface that the repository knows: one of the repository's own.
struct Empty;

impl corba::IrObject for Empty {
    fn def_kind(&self) -> Result<K, SystemException> {
        Ok(K::DkNone)
    }

    fn destroy(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn servants_tell_their_interface_where_a_repository_is_configured() {
    let pair = Pair::with(include_str!("../../../idl/ir.idl"));
    let served = |orb: &Orb| -> ObjectRef {
        let reference: corba::IrObjectRef = orb.root_poa().activate(Empty).unwrap();
        orb.root_poa().manager().activate().unwrap();
        pair.client.string_to_object(&reference.object().to_ior_string()).unwrap()
    };
    let listening = || Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    // One ORB serves the repository itself, one has it as an initial reference, one has no repository.
    let configured =
        listening().initial_reference("InterfaceRepository", &pair.server.corbaloc()).build().unwrap();
    let alone = listening().build().unwrap();
    for orb in [&pair.server_orb, &configured] {
        let interface = served(orb).interface().unwrap().expect("it is loaded");
        let interface: InterfaceDefRef = interface.narrow().unwrap().unwrap();
        assert_eq!(interface.id().unwrap(), "IDL:omg.org/CORBA/IRObject:1.0");
        assert_eq!(interface.describe_interface().unwrap().operations[0].name, "destroy");
    }
    let e = served(&alone).interface().unwrap_err();
    assert_eq!(minor(&e), (SystemExceptionKind::IntfRepos, 1));
    // The repository of this ORB is down. The client's exception must not suggest that the target cannot be
    // reached.
    let object = served(&configured);
    pair.server_orb.shutdown(true).unwrap();
    let e = object.interface().unwrap_err();
    assert_eq!(minor(&e), (SystemExceptionKind::IntfRepos, 1));
    assert!(!object.non_existent().unwrap());
}

#[test]
fn what_leads_to_itself_in_many_ways_costs_no_more_than_its_limit() {
    let pair = Pair::with("");
    // Each level uses the level below twice: a tree of 2^60 paths over 60 definitions.
    let mut below: IdlTypeRef = pair.primitive(PrimitiveKind::PkLong);
    for level in 0..60 {
        let member = |name: &str| StructMember {
            name: name.to_owned(),
            type_: TypeCode::default(),
            type_def: Some(below.clone()),
        };
        let (id, name) = (format!("IDL:L{level}:1.0"), format!("L{level}"));
        let made = pair.root.create_struct(&id, &name, "1.0", &[member("a"), member("b")]).unwrap().unwrap();
        below = made.into();
    }
    assert_eq!(below.type_().unwrap().member_count().unwrap(), 2);
}

#[test]
fn foreign_and_missing_references_are_bad_parameters() {
    let (one, other) = (Pair::with(""), Pair::with(""));
    let long = other.primitive(PrimitiveKind::PkLong);
    let e = one.root.create_alias("IDL:A:1.0", "A", "1.0", Some(&long)).map(drop).unwrap_err();
    // Both keys name one adapter and number; only the address tells them apart.
    assert!(e.kind == SystemExceptionKind::BadParam, "{e}");
    let e = one.root.create_alias("IDL:A:1.0", "A", "1.0", None).map(drop).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::BadParam);
    let void = one.primitive(PrimitiveKind::PkVoid);
    let e = one.root.create_sequence(0, Some(&void)).map(drop).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::BadTypecode);
    let value = Any::new(&1i16).unwrap();
    let long = one.primitive(PrimitiveKind::PkLong);
    let e = one.root.create_constant("IDL:C:1.0", "C", "1.0", Some(&long), &value).map(drop).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::BadParam);
}
