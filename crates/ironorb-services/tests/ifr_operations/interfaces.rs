//! Interfaces of all kinds, their attributes and operations.

use ironorb::SystemExceptionKind::BadParam;
use ironorb::ifr::corba::*;
use ironorb::{TcKind, TypeCode, TypedRef as _};

use super::support::{Session, names, parameter, refused};

pub(crate) fn remote(session: &Session) {
    let module = session.module("Remote");
    let base = module.create_interface("IDL:Remote/Base:1.0", "Base", "1.0", &[]).unwrap().unwrap();
    let other = module.create_interface("IDL:Remote/Other:1.0", "Other", "1.0", &[]).unwrap().unwrap();
    let derived = module
        .create_interface("IDL:Remote/Derived:1.0", "Derived", "1.0", &[Some(base.clone())])
        .unwrap()
        .unwrap();
    assert_eq!(names(&derived.base_interfaces().unwrap()), ["Base"]);
    derived.set_base_interfaces(&[Some(other.clone()), Some(base.clone())]).unwrap();
    assert_eq!(names(&derived.base_interfaces().unwrap()), ["Other", "Base"]);
    for (id, is) in [
        ("IDL:Remote/Derived:1.0", true),
        ("IDL:Remote/Other:1.0", true),
        ("IDL:omg.org/CORBA/Object:1.0", true),
        ("IDL:omg.org/CORBA/ValueBase:1.0", false),
        ("IDL:Remote:1.0", false),
    ] {
        assert_eq!(derived.is_a(id).unwrap(), is, "{id}");
    }
    let long = session.primitive(PrimitiveKind::PkLong);
    base.create_attribute(
        "IDL:Remote/Base/size:1.0",
        "size",
        "1.0",
        Some(&long),
        AttributeMode::AttrReadonly,
    )
    .unwrap()
    .unwrap();
    let ext: ExtInterfaceDefRef = derived.object().narrow().unwrap().unwrap();
    let broken = module.create_exception("IDL:Remote/Broken:1.0", "Broken", "1.0", &[]).unwrap().unwrap();
    let mode = AttributeMode::AttrNormal;
    let raises = [Some(broken.clone())];
    ext.create_ext_attribute("IDL:Remote/Derived/load:1.0", "load", "1.0", Some(&long), mode, &raises, &[])
        .unwrap()
        .unwrap();
    let full = derived.describe_interface().unwrap();
    assert_eq!(full.base_interfaces, ["IDL:Remote/Other:1.0", "IDL:Remote/Base:1.0"]);
    let attributes: Vec<_> =
        full.attributes.iter().map(|a| (a.name.as_str(), a.defined_in.as_str())).collect();
    assert_eq!(attributes, [("load", "IDL:Remote/Derived:1.0"), ("size", "IDL:Remote/Base:1.0")]);
    let full = ext.describe_ext_interface().unwrap();
    assert_eq!(full.attributes[0].get_exceptions[0].id, "IDL:Remote/Broken:1.0");
    assert!(full.attributes[0].put_exceptions.is_empty() && full.attributes[1].get_exceptions.is_empty());
    assert_eq!(full.type_, TypeCode::create_interface("IDL:Remote/Derived:1.0", "Derived").unwrap());
    assert_eq!(full.type_, derived.type_().unwrap());
    let loops = base.set_base_interfaces(&[Some(derived.clone())]);
    assert_eq!(refused(loops).0, BadParam);
    let twice = derived.set_base_interfaces(&[Some(base.clone()), Some(base.clone())]);
    assert_eq!(refused(twice).0, BadParam);
}

pub(crate) fn abstract_and_local(session: &Session) {
    let module = session.module("Kinds");
    let a = module.create_abstract_interface("IDL:Kinds/A:1.0", "A", "1.0", &[]).unwrap().unwrap();
    let b =
        module.create_abstract_interface("IDL:Kinds/B:1.0", "B", "1.0", &[Some(a.clone())]).unwrap().unwrap();
    assert_eq!(
        (b.type_().unwrap().kind(), b.def_kind().unwrap()),
        (TcKind::AbstractInterface, DefinitionKind::DkAbstractInterface)
    );
    assert!(b.is_a("IDL:Kinds/A:1.0").unwrap() && b.is_a("IDL:omg.org/CORBA/AbstractBase:1.0").unwrap());
    let remote =
        module.create_interface("IDL:Kinds/R:1.0", "R", "1.0", &[Some(b.clone().into())]).unwrap().unwrap();
    assert!(remote.is_a("IDL:Kinds/A:1.0").unwrap());
    // An abstract interface inherits only from abstract interfaces.
    let wrong = b.set_base_interfaces(&[Some(remote.clone())]);
    assert_eq!(refused(wrong).0, BadParam);
    let l = module
        .create_local_interface(
            "IDL:Kinds/L:1.0",
            "L",
            "1.0",
            &[Some(remote.clone()), Some(a.clone().into())],
        )
        .unwrap()
        .unwrap();
    assert_eq!(
        (l.type_().unwrap().kind(), l.def_kind().unwrap()),
        (TcKind::LocalInterface, DefinitionKind::DkLocalInterface)
    );
    let wrong = module.create_interface("IDL:Kinds/W:1.0", "W", "1.0", &[Some(l.clone().into())]);
    assert_eq!(refused(wrong).0, BadParam, "a remote interface cannot inherit from a local one");
    let ext: ExtAbstractInterfaceDefRef = a.object().narrow().unwrap().unwrap();
    let long = session.primitive(PrimitiveKind::PkLong);
    let mode = AttributeMode::AttrNormal;
    ext.create_ext_attribute("IDL:Kinds/A/x:1.0", "x", "1.0", Some(&long), mode, &[], &[]).unwrap().unwrap();
    let ext: ExtLocalInterfaceDefRef = l.object().narrow().unwrap().unwrap();
    assert_eq!(ext.describe_ext_interface().unwrap().attributes[0].name, "x");
    assert_eq!(ext.is_a("IDL:Kinds/A:1.0"), Ok(true));
}

pub(crate) fn attributes_and_operations(session: &Session) {
    let module = session.module("Parts");
    let (long, void) = (session.primitive(PrimitiveKind::PkLong), session.primitive(PrimitiveKind::PkVoid));
    let string = session.primitive(PrimitiveKind::PkString);
    let broken = module.create_exception("IDL:Parts/Broken:1.0", "Broken", "1.0", &[]).unwrap().unwrap();
    let i = module.create_interface("IDL:Parts/I:1.0", "I", "1.0", &[]).unwrap().unwrap();
    let readonly = AttributeMode::AttrReadonly;
    let a = i.create_attribute("IDL:Parts/I/a:1.0", "a", "1.0", Some(&long), readonly).unwrap().unwrap();
    assert_eq!((a.mode().unwrap(), a.type_().unwrap()), (readonly, long.type_().unwrap()));
    a.set_mode(AttributeMode::AttrNormal).unwrap();
    a.set_type_def(Some(&string)).unwrap();
    assert_eq!(a.type_def().unwrap().unwrap().type_().unwrap(), string.type_().unwrap());
    let described: AttributeDescription = a.describe().unwrap().value.extract().unwrap();
    assert_eq!((described.mode, described.type_.kind()), (AttributeMode::AttrNormal, TcKind::String));
    assert_eq!(refused(a.set_type_def(Some(&void))).0, BadParam);
    let a: ExtAttributeDefRef = a.object().narrow().unwrap().unwrap();
    let raised: ExceptionDescription = broken.describe().unwrap().value.extract().unwrap();
    a.set_get_exceptions(std::slice::from_ref(&raised)).unwrap();
    a.set_set_exceptions(std::slice::from_ref(&raised)).unwrap();
    assert_eq!(a.get_exceptions().unwrap()[0].id, "IDL:Parts/Broken:1.0");
    assert_eq!(ExtAttributeDef::set_exceptions(&a).unwrap()[0].name, "Broken");
    let described = a.describe_attribute().unwrap();
    assert_eq!((described.get_exceptions.len(), described.put_exceptions.len()), (1, 1));
    let unknown = ExceptionDescription { id: "IDL:None:1.0".to_owned(), ..raised };
    assert_eq!(refused(a.set_get_exceptions(&[unknown])).0, BadParam);

    let o = i
        .create_operation(
            "IDL:Parts/I/o:1.0",
            "o",
            "1.0",
            Some(&void),
            OperationMode::OpOneway,
            &[],
            &[],
            &[],
        )
        .unwrap()
        .unwrap();
    assert_eq!((o.mode().unwrap(), o.result().unwrap().kind()), (OperationMode::OpOneway, TcKind::Void));
    assert_eq!(refused(o.set_result_def(Some(&long))), (BadParam, 31));
    assert_eq!(refused(OperationDef::set_exceptions(&o, &[Some(broken.clone())])), (BadParam, 31));
    let out =
        [parameter("n", &long, ParameterMode::ParamIn), parameter("text", &string, ParameterMode::ParamOut)];
    assert_eq!(refused(o.set_params(&out)), (BadParam, 31));
    o.set_mode(OperationMode::OpNormal).unwrap();
    o.set_result_def(Some(&long)).unwrap();
    o.set_params(&out).unwrap();
    o.set_contexts(&["USER".to_owned()]).unwrap();
    OperationDef::set_exceptions(&o, &[Some(broken.clone())]).unwrap();
    assert_eq!(o.result_def().unwrap().unwrap().type_().unwrap(), o.result().unwrap());
    let params = o.params().unwrap();
    assert_eq!((params[1].name.as_str(), params[1].mode), ("text", ParameterMode::ParamOut));
    assert_eq!(params[1].type_, string.type_().unwrap());
    assert_eq!(o.contexts().unwrap(), ["USER"]);
    assert_eq!(names(&OperationDef::exceptions(&o).unwrap()), ["Broken"]);
    let described: OperationDescription = o.describe().unwrap().value.extract().unwrap();
    assert_eq!((described.contexts.len(), described.parameters.len(), described.exceptions.len()), (1, 2, 1));
    let same_names =
        [parameter("n", &long, ParameterMode::ParamIn), parameter("N", &long, ParameterMode::ParamIn)];
    assert_eq!(refused(o.set_params(&same_names)), (BadParam, 17));
}

/// BAD_PARAM 5, for a name in the base and for a name in the derived interface.
pub(crate) fn inherited_names(session: &Session) {
    let module = session.module("Names");
    let void = session.primitive(PrimitiveKind::PkVoid);
    let interface = |name: &str, bases: &[Option<InterfaceDefRef>]| {
        module.create_interface(&format!("IDL:Names/{name}:1.0"), name, "1.0", bases).unwrap().unwrap()
    };
    let operation = |on: &InterfaceDefRef, name: &str| {
        let id = format!("IDL:Names/{}/{name}:1.0", on.name().unwrap());
        on.create_operation(&id, name, "1.0", Some(&void), OperationMode::OpNormal, &[], &[], &[])
    };
    let top = interface("Top", &[]);
    let middle = interface("Middle", &[Some(top.clone())]);
    let bottom = interface("Bottom", &[Some(middle.clone())]);
    operation(&bottom, "run").unwrap().unwrap();
    assert_eq!(refused(operation(&top, "Run")), (BadParam, 5), "an heir has one of this name");
    operation(&top, "stop").unwrap().unwrap();
    assert_eq!(refused(operation(&bottom, "STOP")), (BadParam, 5), "it inherits one of this name");
    let other = interface("Other", &[]);
    let stop = operation(&other, "stop").unwrap().unwrap();
    assert_eq!(refused(middle.set_base_interfaces(&[Some(top.clone()), Some(other.clone())])), (BadParam, 5));
    assert_eq!(refused(other.set_base_interfaces(&[Some(bottom.clone())])), (BadParam, 5));
    stop.set_name("halt").unwrap();
    middle.set_base_interfaces(&[Some(top.clone()), Some(other.clone())]).unwrap();
    assert_eq!(refused(stop.set_name("run")), (BadParam, 5));
    // Inherited by two paths, but one operation.
    let diamond = interface("Diamond", &[Some(middle.clone()), Some(top.clone())]);
    assert_eq!(diamond.describe_interface().unwrap().operations.len(), 2);
}
