//! Operations of all definitions: kinds, ids, names and containers; finding, moving and destroying.

use ironorb::SystemExceptionKind::{BadInvOrder, BadParam, ObjectNotExist};
use ironorb::ifr::corba::DefinitionKind as K;
use ironorb::ifr::corba::*;
use ironorb::{TypeCode, TypedRef as _};

use super::support::{Session, member, names, refused, same};

pub(crate) fn what_all_definitions_have(session: &Session) {
    let root = &session.root;
    let module = session.module("All");
    let item =
        module.create_enum("IDL:All/Colour:1.0", "Colour", "1.0", &["RED".to_owned()]).unwrap().unwrap();
    assert_eq!(item.def_kind().unwrap(), K::DkEnum);
    assert_eq!(item.id().unwrap(), "IDL:All/Colour:1.0");
    assert_eq!(item.name().unwrap(), "Colour");
    assert_eq!(item.version().unwrap(), "1.0");
    assert_eq!(item.absolute_name().unwrap(), "::All::Colour");
    assert!(same(&item.defined_in().unwrap().unwrap(), &module));
    assert!(same(&item.containing_repository().unwrap().unwrap(), root));
    assert_eq!(root.def_kind().unwrap(), K::DkRepository);
    let described = item.describe().unwrap();
    assert_eq!(described.kind, K::DkEnum);
    let described: TypeDescription = described.value.extract().unwrap();
    assert_eq!((described.name.as_str(), described.defined_in.as_str()), ("Colour", "IDL:All:1.0"));
    assert_eq!(described.type_, item.type_().unwrap());

    item.set_id("IDL:All/Shade:2.0").unwrap();
    item.set_name("Shade").unwrap();
    item.set_version("2.0").unwrap();
    assert!(root.lookup_id("IDL:All/Colour:1.0").unwrap().is_none());
    let found = root.lookup_id("IDL:All/Shade:2.0").unwrap().unwrap();
    assert_eq!((found.name().unwrap(), found.version().unwrap()), ("Shade".to_owned(), "2.0".to_owned()));
    assert_eq!(item.type_().unwrap().id().unwrap(), "IDL:All/Shade:2.0");
    // The implicit bases of all interfaces and values are in no repository.
    for id in ["IDL:omg.org/CORBA/Object:1.0", "IDL:omg.org/CORBA/ValueBase:1.0", "IDL:None:1.0", ""] {
        assert!(root.lookup_id(id).unwrap().is_none(), "{id}");
    }
}

pub(crate) fn looking(session: &Session) {
    let root = &session.root;
    let outer = session.module("Look");
    let inner = outer.create_module("IDL:Look/In:1.0", "In", "1.0").unwrap().unwrap();
    let long = session.primitive(PrimitiveKind::PkLong);
    let alias = inner.create_alias("IDL:Look/In/Needle:1.0", "Needle", "1.0", Some(&long)).unwrap().unwrap();
    let base = outer.create_interface("IDL:Look/Base:1.0", "Base", "1.0", &[]).unwrap().unwrap();
    base.create_alias("IDL:Look/Base/needle:1.0", "needle", "1.0", Some(&long)).unwrap().unwrap();
    let derived = outer
        .create_interface("IDL:Look/Derived:1.0", "Derived", "1.0", &[Some(base.clone())])
        .unwrap()
        .unwrap();

    assert!(same(&root.lookup("Look::In::Needle").unwrap().unwrap(), &alias));
    assert!(same(&inner.lookup("::Look::In").unwrap().unwrap(), &inner));
    assert!(same(&inner.lookup("Look").unwrap().unwrap(), &outer), "enclosing scopes are looked at");
    for nothing in ["", "::", "Needle", "Look::", "Look::In::needless"] {
        assert!(outer.lookup(nothing).unwrap().is_none(), "{nothing:?}");
    }
    assert_eq!(names(&outer.contents(K::DkAll, true).unwrap()), ["In", "Base", "Derived"]);
    assert_eq!(names(&outer.contents(K::DkModule, true).unwrap()), ["In"]);
    assert_eq!(names(&derived.contents(K::DkAll, true).unwrap()), Vec::<String>::new());
    assert_eq!(names(&derived.contents(K::DkTypedef, false).unwrap()), ["needle"]);

    // An inherited definition is found where it is defined, and once.
    let found = |levels, inherited: bool| {
        names(&outer.lookup_name("Needle", levels, K::DkAll, !inherited).unwrap()).len()
    };
    assert_eq!([found(-1, false), found(1, false), found(2, false), found(2, true)], [2, 0, 2, 2]);
    let in_derived =
        |inherited: bool| derived.lookup_name("needle", 1, K::DkAlias, !inherited).unwrap().len();
    assert_eq!([in_derived(true), in_derived(false)], [1, 0]);

    let described = outer.describe_contents(K::DkAll, true, -1).unwrap();
    assert_eq!(
        described.iter().map(|d| d.kind).collect::<Vec<_>>(),
        [K::DkModule, K::DkInterface, K::DkInterface]
    );
    assert!(same(described[0].contained_object.as_ref().unwrap(), &inner));
    let derived: InterfaceDescription = described[2].value.extract().unwrap();
    assert_eq!(derived.base_interfaces, ["IDL:Look/Base:1.0"]);
    assert_eq!(outer.describe_contents(K::DkInterface, true, 1).unwrap().len(), 1);
    assert_eq!(outer.describe_contents(K::DkInterface, true, 0).unwrap().len(), 0);
}

pub(crate) fn moving_and_destroying(session: &Session) {
    let root = &session.root;
    let (from, to) = (session.module("From"), session.module("To"));
    let long = session.primitive(PrimitiveKind::PkLong);
    let part =
        from.create_struct("IDL:From/Part:1.0", "Part", "1.0", &[member("n", &long)]).unwrap().unwrap();
    let whole =
        from.create_struct("IDL:From/Whole:1.0", "Whole", "1.0", &[member("part", &part.clone().into())]);
    let whole = whole.unwrap().unwrap();
    part.move_(Some(&to.clone().into()), "Piece", "1.1").unwrap();
    assert_eq!(part.absolute_name().unwrap(), "::To::Piece");
    assert_eq!(part.id().unwrap(), "IDL:From/Part:1.0", "its identity stays");
    assert_eq!(whole.type_().unwrap().member_type(0).unwrap().name().unwrap(), "Piece");
    let interface = from.create_interface("IDL:From/I:1.0", "I", "1.0", &[]).unwrap().unwrap();
    assert_eq!(refused(to.move_(Some(&interface.clone().into()), "To", "1.0")), (BadParam, 4));
    to.create_native("IDL:To/I:1.0", "I", "1.0").unwrap().unwrap();
    assert_eq!(refused(interface.move_(Some(&to.clone().into()), "i", "1.0")), (BadParam, 3));

    assert_eq!(refused(to.destroy()), (BadInvOrder, 1), "`Whole` has a piece in it");
    assert!(root.lookup("To::Piece").unwrap().is_some(), "nothing has changed");
    whole.set_members(&[member("n", &long)]).unwrap();
    to.destroy().unwrap();
    assert_eq!(refused(part.name()).0, ObjectNotExist);
    assert!(root.lookup_id("IDL:From/Part:1.0").unwrap().is_none());
    from.destroy().unwrap();
    for permanent in [root.clone().into(), root.get_primitive(PrimitiveKind::PkAny).unwrap().unwrap().into()]
    {
        let permanent: IrObjectRef = permanent;
        assert_eq!(refused(permanent.destroy()), (BadInvOrder, 2));
    }
}

pub(crate) fn refusals(session: &Session) {
    let module = session.module("Refused");
    let enclosed = module.create_interface("IDL:Refused/I:1.0", "I", "1.0", &[]).unwrap().unwrap();
    assert_eq!(refused(module.create_native("IDL:Refused:1.0", "N", "1.0")), (BadParam, 2));
    assert_eq!(refused(module.create_native("IDL:Refused/N:1.0", "i", "1.0")), (BadParam, 3));
    assert_eq!(refused(enclosed.create_module("IDL:Refused/M:1.0", "M", "1.0")), (BadParam, 4));
    assert_eq!(refused(module.create_native("IDL:Refused/N:1.0", "no name", "1.0")), (BadParam, 15));
    assert_eq!(refused(module.create_native("without format", "N", "1.0")), (BadParam, 16));
    let twice = ["A".to_owned(), "a".to_owned()];
    assert_eq!(refused(module.create_enum("IDL:Refused/E:1.0", "E", "1.0", &twice)), (BadParam, 17));
    assert_eq!(refused(module.create_alias("IDL:Refused/A:1.0", "A", "1.0", None)).0, BadParam);
    let exception = module.create_exception("IDL:Refused/X:1.0", "X", "1.0", &[]).unwrap().unwrap();
    let no_type: IdlTypeRef = exception.object().narrow_unchecked();
    assert_ne!(
        refused(module.create_alias("IDL:Refused/A:1.0", "A", "1.0", Some(&no_type))).0,
        ObjectNotExist
    );
    assert_eq!(refused(enclosed.set_name("")), (BadParam, 15));
    assert_eq!(refused(enclosed.set_id("IDL:Refused:1.0")), (BadParam, 2));
    let long = session.primitive(PrimitiveKind::PkLong);
    // The error does not depend on the other data that the client sends.
    let lying = StructMember { type_: TypeCode::create_string(3), ..member("n", &long) };
    let s = module.create_struct("IDL:Refused/S:1.0", "S", "1.0", &[lying]).unwrap().unwrap();
    assert_eq!(s.members().unwrap()[0].type_, long.type_().unwrap());
}
