//! Types with and without names, constants and exceptions.

use ironorb::SystemExceptionKind::{BadParam, BadTypecode};
use ironorb::ifr::corba::*;
use ironorb::{Any, TcKind, TypeCode, TypeDef};

use super::support::{Session, member, refused, same};

pub(crate) fn nameless(session: &Session) {
    let root = &session.root;
    let long = session.primitive(PrimitiveKind::PkLong);
    let short = session.primitive(PrimitiveKind::PkShort);
    assert_eq!(
        root.get_primitive(PrimitiveKind::PkUlonglong).unwrap().unwrap().kind().unwrap(),
        PrimitiveKind::PkUlonglong
    );

    let string = root.create_string(8).unwrap().unwrap();
    assert_eq!((string.bound().unwrap(), string.type_().unwrap()), (8, TypeCode::create_string(8)));
    string.set_bound(9).unwrap();
    assert_eq!(string.type_().unwrap(), TypeCode::create_string(9));
    let wide = root.create_wstring(8).unwrap().unwrap();
    wide.set_bound(7).unwrap();
    assert_eq!((wide.bound().unwrap(), wide.type_().unwrap()), (7, TypeCode::create_wstring(7)));
    // Strings without a bound are primitive.
    for outcome in [refused(root.create_string(0)), refused(string.set_bound(0)), refused(wide.set_bound(0))]
    {
        assert_eq!(outcome.0, BadParam);
    }

    let fixed = root.create_fixed(5, 2).unwrap().unwrap();
    fixed.set_digits(7).unwrap();
    fixed.set_scale(3).unwrap();
    assert_eq!((fixed.digits().unwrap(), fixed.scale().unwrap()), (7, 3));
    assert_eq!(fixed.type_().unwrap(), TypeCode::create_fixed(7, 3).unwrap());
    assert_ne!(refused(fixed.set_digits(32)), (BadParam, 2));
    assert_eq!(fixed.digits().unwrap(), 7);

    let sequence = root.create_sequence(4, Some(&long)).unwrap().unwrap();
    assert!(same(&sequence.element_type_def().unwrap().unwrap(), &long));
    sequence.set_element_type_def(Some(&short)).unwrap();
    sequence.set_bound(0).unwrap();
    assert_eq!(
        (sequence.bound().unwrap(), sequence.element_type().unwrap()),
        (0, TypeCode::of(&TypeDef::Short))
    );
    let array = root.create_array(4, Some(&sequence.clone().into())).unwrap().unwrap();
    assert_eq!(array.element_type().unwrap(), sequence.type_().unwrap());
    array.set_element_type_def(Some(&long)).unwrap();
    array.set_length(2).unwrap();
    assert!(same(&array.element_type_def().unwrap().unwrap(), &long));
    assert_eq!(array.length().unwrap(), 2);
    assert_eq!(array.type_().unwrap(), TypeCode::create_array(&TypeCode::of(&TypeDef::Long), 2).unwrap());
    assert_eq!(refused(root.create_array(0, Some(&long))).0, BadParam);
    let e = refused(sequence.name_it());
    assert_eq!(e.0, ironorb::SystemExceptionKind::BadOperation, "it is not contained in anything");
}

/// A client that uses an anonymous type as a named one.
trait NameIt {
    fn name_it(&self) -> Result<(), ironorb::SystemException>;
}

impl NameIt for SequenceDefRef {
    fn name_it(&self) -> Result<(), ironorb::SystemException> {
        use ironorb::TypedRef as _;
        let contained: ContainedRef = self.object().narrow_unchecked();
        contained.set_name("Name")
    }
}

pub(crate) fn constructed(session: &Session) {
    let module = session.module("Types");
    let long = session.primitive(PrimitiveKind::PkLong);
    let string = session.primitive(PrimitiveKind::PkString);
    let s = module.create_struct("IDL:Types/S:1.0", "S", "1.0", &[member("a", &long)]).unwrap().unwrap();
    s.set_members(&[member("b", &string), member("c", &long)]).unwrap();
    let members = StructDef::members(&s).unwrap();
    assert_eq!(members[0].name, "b");
    assert!(same(members[1].type_def.as_ref().unwrap(), &long));
    let expected = [("b", TypeCode::create_string(0)), ("c", TypeCode::of(&TypeDef::Long))];
    assert_eq!(s.type_().unwrap(), TypeCode::create_struct("IDL:Types/S:1.0", "S", &expected).unwrap());
    // The types defined within a struct belong to it.
    let inner = s.create_enum("IDL:Types/S/E:1.0", "E", "1.0", &["X".to_owned()]).unwrap().unwrap();
    assert_eq!(inner.absolute_name().unwrap(), "::Types::S::E");

    let e = module
        .create_enum("IDL:Types/E:1.0", "E", "1.0", &["A".to_owned(), "B".to_owned()])
        .unwrap()
        .unwrap();
    EnumDef::set_members(&e, &["B".to_owned(), "C".to_owned(), "D".to_owned()]).unwrap();
    assert_eq!(EnumDef::members(&e).unwrap(), ["B", "C", "D"]);
    assert_eq!(e.type_().unwrap().member_count().unwrap(), 3);

    let case = |name: &str, label: Any, ty: &IdlTypeRef| UnionMember {
        name: name.to_owned(),
        label,
        type_: TypeCode::default(),
        type_def: Some(ty.clone()),
    };
    let label = |n: i32| Any::new(&n).unwrap();
    let u = module
        .create_union("IDL:Types/U:1.0", "U", "1.0", Some(&long), &[case("one", label(1), &string)])
        .unwrap()
        .unwrap();
    assert_eq!(u.discriminator_type().unwrap(), TypeCode::of(&TypeDef::Long));
    assert!(same(&u.discriminator_type_def().unwrap().unwrap(), &long));
    let default = Any::new(&0u8).unwrap();
    UnionDef::set_members(
        &u,
        &[case("one", label(1), &string), case("two", label(2), &long), case("rest", default, &string)],
    )
    .unwrap();
    let members = UnionDef::members(&u).unwrap();
    assert_eq!(members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["one", "two", "rest"]);
    assert_eq!(members[1].label, label(2));
    assert_eq!(u.type_().unwrap().default_index().unwrap(), Some(2));
    let wrong = UnionDef::set_members(&u, &[case("one", Any::new("text").unwrap(), &string)]);
    assert_eq!(refused(wrong).0, BadParam);
    let twice = UnionDef::set_members(&u, &[case("one", label(1), &string), case("two", label(1), &long)]);
    assert_eq!(refused(twice).0, BadParam);
    // Labels that do not fit the new discriminator prevent the change.
    UnionDef::set_members(&u, &[case("one", label(1), &string)]).unwrap();
    u.set_discriminator_type_def(Some(&session.primitive(PrimitiveKind::PkShort))).unwrap();
    assert_eq!(UnionDef::members(&u).unwrap()[0].label, Any::new(&1i16).unwrap());
    assert_eq!(refused(u.set_discriminator_type_def(Some(&string))).0, BadParam);

    let a = module.create_alias("IDL:Types/A:1.0", "A", "1.0", Some(&long)).unwrap().unwrap();
    a.set_original_type_def(Some(&s.clone().into())).unwrap();
    assert!(same(&a.original_type_def().unwrap().unwrap(), &s));
    assert_eq!(a.type_().unwrap().content_type().unwrap(), s.type_().unwrap());
    let itself = a.set_original_type_def(Some(&a.clone().into()));
    assert_eq!(refused(itself).0, BadTypecode);
    let n = module.create_native("IDL:Types/N:1.0", "N", "1.0").unwrap().unwrap();
    assert_eq!(n.type_().unwrap().kind(), TcKind::Native);
}

pub(crate) fn constants_and_exceptions(session: &Session) {
    let module = session.module("Consts");
    let long = session.primitive(PrimitiveKind::PkLong);
    let value = |n: i32| Any::new(&n).unwrap();
    let c = module.create_constant("IDL:Consts/C:1.0", "C", "1.0", Some(&long), &value(3)).unwrap().unwrap();
    assert_eq!((c.value().unwrap(), c.type_().unwrap()), (value(3), TypeCode::of(&TypeDef::Long)));
    c.set_value(&value(4)).unwrap();
    assert_eq!(refused(c.set_value(&Any::new("four").unwrap())).0, BadParam);
    let count = module.create_alias("IDL:Consts/Count:1.0", "Count", "1.0", Some(&long)).unwrap().unwrap();
    c.set_type_def(Some(&count.clone().into())).unwrap();
    assert!(same(&c.type_def().unwrap().unwrap(), &count));
    let described: ConstantDescription = c.describe().unwrap().value.extract().unwrap();
    assert_eq!((described.type_.name().unwrap(), described.value), ("Count", value(4)));
    let string = session.primitive(PrimitiveKind::PkString);
    assert_eq!(refused(c.set_type_def(Some(&string))).0, BadParam, "its value is a number");

    let x = module.create_exception("IDL:Consts/X:1.0", "X", "1.0", &[]).unwrap().unwrap();
    ExceptionDef::set_members(&x, &[member("why", &string)]).unwrap();
    assert_eq!(ExceptionDef::members(&x).unwrap()[0].name, "why");
    let tc = ExceptionDef::type_(&x).unwrap();
    assert_eq!((tc.kind(), tc.member_name(0).unwrap()), (TcKind::Except, "why"));
    let described: ExceptionDescription = x.describe().unwrap().value.extract().unwrap();
    assert_eq!(described.type_, tc);
}

/// A client's form of a type becomes the repository's form. An unknown type is made from known parts.
pub(crate) fn canonical(session: &Session) {
    let root = &session.root;
    let module = session.module("Canon");
    let long = session.primitive(PrimitiveKind::PkLong);
    let id = "IDL:Canon/Known:1.0";
    let known = module.create_struct(id, "Known", "1.0", &[member("number", &long)]).unwrap().unwrap();
    let known = known.type_().unwrap();
    let bare = TypeCode::create_struct(id, "", &[("", TypeCode::of(&TypeDef::Long))]).unwrap();
    assert_eq!(root.get_canonical_typecode(&bare).unwrap(), known);
    let sequence = |element: &TypeCode| TypeCode::create_sequence(element, 3).unwrap();
    let stranger = |inner: &TypeCode| {
        let again =
            TypeCode::create_sequence(&TypeCode::recursive("IDL:Canon/Stranger:1.0").unwrap(), 0).unwrap();
        let members = [("known", sequence(inner)), ("more", again)];
        TypeCode::create_struct("IDL:Canon/Stranger:1.0", "Stranger", &members).unwrap()
    };
    let union = |inner: &TypeCode| {
        let case = ironorb::giop::typecode::UnionCase {
            label: Some(1),
            name: "it".to_owned(),
            type_code: inner.clone(),
        };
        TypeCode::create_union("IDL:Canon/U:1.0", "U", &TypeCode::of(&TypeDef::Long), &[case]).unwrap()
    };
    let alias = |inner: &TypeCode| TypeCode::create_alias("IDL:Canon/A:1.0", "A", inner).unwrap();
    let array = |inner: &TypeCode| TypeCode::create_array(inner, 2).unwrap();
    let made: [&dyn Fn(&TypeCode) -> TypeCode; 5] = [&sequence, &stranger, &union, &alias, &array];
    for make in made {
        assert_eq!(root.get_canonical_typecode(&make(&bare)).unwrap(), make(&known));
    }
    for untouched in [TypeCode::of(&TypeDef::Any), TypeCode::create_string(3), TypeCode::of(&TypeDef::Null)] {
        assert_eq!(root.get_canonical_typecode(&untouched).unwrap(), untouched);
    }
}
