//! Value types: state, bases, initializers; boxes and natives.

use ironorb::SystemExceptionKind::BadParam;
use ironorb::ifr::corba::*;
use ironorb::{TcKind, TypedRef as _};

use super::support::{Session, member, names, refused, same};

fn value(
    session: &Session,
    module: &ModuleDefRef,
    name: &str,
    is_abstract: bool,
    base: Option<&ValueDefRef>,
) -> ValueDefRef {
    let long = session.primitive(PrimitiveKind::PkLong);
    let make = Initializer { members: vec![member("n", &long)], name: "make".to_owned() };
    let initializers = if is_abstract { Vec::new() } else { vec![make] };
    let id = format!("{}/{name}:1.0", module.id().unwrap().trim_end_matches(":1.0"));
    module
        .create_value(&id, name, "1.0", false, is_abstract, base, false, &[], &[], &initializers)
        .unwrap()
        .unwrap()
}

pub(crate) fn plain(session: &Session) {
    let module = session.module("Values");
    let (long, void) = (session.primitive(PrimitiveKind::PkLong), session.primitive(PrimitiveKind::PkVoid));
    let base = value(session, &module, "Base", false, None);
    let shown = value(session, &module, "Shown", true, None);
    let v = value(session, &module, "V", false, Some(&base));
    let supported = module.create_interface("IDL:Values/I:1.0", "I", "1.0", &[]).unwrap().unwrap();
    assert!(same(&v.base_value().unwrap().unwrap(), &base));
    v.set_base_value(None).unwrap();
    assert!(v.base_value().unwrap().is_none());
    v.set_base_value(Some(&base)).unwrap();
    v.set_abstract_base_values(&[Some(shown.clone())]).unwrap();
    assert_eq!(names(&v.abstract_base_values().unwrap()), ["Shown"]);
    assert_eq!(refused(v.set_abstract_base_values(&[Some(base.clone())])).0, BadParam, "it has state");
    assert_eq!(refused(v.set_base_value(Some(&shown))).0, BadParam, "it has none");
    v.set_supported_interfaces(&[Some(supported.clone())]).unwrap();
    assert_eq!(names(&v.supported_interfaces().unwrap()), ["I"]);
    v.set_is_truncatable(true).unwrap();
    assert!(v.is_truncatable().unwrap() && !v.is_abstract().unwrap() && !v.is_custom().unwrap());
    v.set_is_truncatable(false).unwrap();
    v.set_is_custom(true).unwrap();
    assert_eq!(v.type_().unwrap().type_modifier().unwrap(), ironorb::giop::typecode::ValueModifier::Custom);
    v.set_is_custom(false).unwrap();
    let alone = value(session, &module, "Alone", false, None);
    alone.set_is_abstract(true).unwrap();
    assert!(alone.is_abstract().unwrap());
    assert_eq!(v.initializers().unwrap()[0].name, "make");
    v.set_initializers(&[Initializer { members: Vec::new(), name: "build".to_owned() }]).unwrap();
    assert_eq!(v.initializers().unwrap()[0].name, "build");
    for (id, is) in [
        ("IDL:Values/V:1.0", true),
        ("IDL:Values/Base:1.0", true),
        ("IDL:Values/Shown:1.0", true),
        ("IDL:Values/I:1.0", true),
        ("IDL:omg.org/CORBA/ValueBase:1.0", true),
        ("IDL:omg.org/CORBA/Object:1.0", false),
    ] {
        assert_eq!(v.is_a(id).unwrap(), is, "{id}");
    }

    base.create_value_member("IDL:Values/Base/first:1.0", "first", "1.0", Some(&long), 1).unwrap().unwrap();
    let state = v
        .create_value_member("IDL:Values/V/next:1.0", "next", "1.0", Some(&v.clone().into()), 0)
        .unwrap()
        .unwrap();
    assert_eq!((state.access().unwrap(), state.type_().unwrap()), (0, v.type_().unwrap()));
    state.set_access(1).unwrap();
    assert_eq!(refused(state.set_access(2)).0, BadParam);
    state.set_type_def(Some(&long)).unwrap();
    assert!(same(&state.type_def().unwrap().unwrap(), &long));
    let described: ValueMember = state.describe().unwrap().value.extract().unwrap();
    assert_eq!((described.name.as_str(), described.access), ("next", 1));
    v.create_attribute("IDL:Values/V/size:1.0", "size", "1.0", Some(&long), AttributeMode::AttrNormal)
        .unwrap()
        .unwrap();
    v.create_operation(
        "IDL:Values/V/run:1.0",
        "run",
        "1.0",
        Some(&void),
        OperationMode::OpNormal,
        &[],
        &[],
        &[],
    )
    .unwrap()
    .unwrap();
    let full = v.describe_value().unwrap();
    assert_eq!(full.members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["first", "next"]);
    assert_eq!((full.operations[0].name.as_str(), full.attributes[0].name.as_str()), ("run", "size"));
    assert_eq!((full.base_value.as_str(), full.initializers.len()), ("IDL:Values/Base:1.0", 1));
    assert_eq!(full.abstract_base_values, ["IDL:Values/Shown:1.0"]);
    assert_eq!(full.supported_interfaces, ["IDL:Values/I:1.0"]);
    let tc = v.type_().unwrap();
    assert_eq!((tc.kind(), tc.member_count().unwrap()), (TcKind::Value, 1), "a base's state is the base's");
    assert_eq!(tc.concrete_base_type().unwrap().unwrap().id().unwrap(), "IDL:Values/Base:1.0");
    let described: ValueDescription = v.describe().unwrap().value.extract().unwrap();
    assert_eq!(described.base_value, "IDL:Values/Base:1.0");
    assert_eq!(refused(base.set_base_value(Some(&v))).0, BadParam, "it would be its own base");
}

pub(crate) fn with_exceptions(session: &Session) {
    let module = session.module("Ext");
    let long = session.primitive(PrimitiveKind::PkLong);
    let bad = module.create_exception("IDL:Ext/Bad:1.0", "Bad", "1.0", &[]).unwrap().unwrap();
    let raised: ExceptionDescription = bad.describe().unwrap().value.extract().unwrap();
    let initializer = |name: &str| ExtInitializer {
        members: vec![member("n", &long)],
        exceptions: vec![raised.clone()],
        name: name.to_owned(),
    };
    let v = module
        .create_ext_value(
            "IDL:Ext/V:1.0",
            "V",
            "1.0",
            true,
            false,
            None,
            false,
            &[],
            &[],
            &[initializer("make")],
        )
        .unwrap()
        .unwrap();
    assert!(v.is_custom().unwrap());
    assert_eq!(v.ext_initializers().unwrap()[0].exceptions[0].id, "IDL:Ext/Bad:1.0");
    assert_eq!(
        v.initializers().unwrap()[0].members[0].name,
        "n",
        "clients of before CORBA 3 see it without exceptions"
    );
    v.set_ext_initializers(&[initializer("make"), initializer("build")]).unwrap();
    let ext: ExtValueDefRef = v.object().narrow().unwrap().unwrap();
    let mode = AttributeMode::AttrNormal;
    let set = [Some(bad.clone())];
    ext.create_ext_attribute("IDL:Ext/V/a:1.0", "a", "1.0", Some(&long), mode, &[], &set).unwrap().unwrap();
    let full = ext.describe_ext_value().unwrap();
    assert_eq!(full.initializers.iter().map(|i| i.name.as_str()).collect::<Vec<_>>(), ["make", "build"]);
    assert_eq!(full.attributes[0].put_exceptions[0].name, "Bad");
    assert_eq!(refused(bad.destroy()), (ironorb::SystemExceptionKind::BadInvOrder, 1));
}

pub(crate) fn boxes_and_natives(session: &Session) {
    let module = session.module("Boxes");
    let (long, string) =
        (session.primitive(PrimitiveKind::PkLong), session.primitive(PrimitiveKind::PkString));
    let b = module.create_value_box("IDL:Boxes/B:1.0", "B", "1.0", Some(&long)).unwrap().unwrap();
    b.set_original_type_def(Some(&string)).unwrap();
    assert!(same(&b.original_type_def().unwrap().unwrap(), &string));
    assert_eq!(
        (b.type_().unwrap().kind(), b.type_().unwrap().content_type().unwrap().kind()),
        (TcKind::ValueBox, TcKind::String)
    );
    let nested = module.create_value_box("IDL:Boxes/C:1.0", "C", "1.0", Some(&b.clone().into()));
    assert_eq!(refused(nested).0, BadParam, "a box holds no value");
    assert_eq!(b.def_kind().unwrap(), DefinitionKind::DkValueBox);
}
