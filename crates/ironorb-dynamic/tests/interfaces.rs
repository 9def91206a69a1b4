//! Definitions from IDL: operations, constants, text for people, conflicts, and the interfaces of objects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ironorb::dynamic::ParameterMode;
use ironorb::giop::Ior;
use ironorb::{Any, Fixed, LongDouble, ObjectRef, Orb, SystemException, TcKind, TypeCode, TypeDef, TypedRef};
use ironorb_dynamic::{DefinitionError, Interfaces, declaration, definition, signature};
use ironorb_idl::Options;

fn known(idl: &str) -> Interfaces {
    let mut known = Interfaces::new();
    known.add_idl_text("test.idl", idl, &Options::new()).unwrap_or_else(|error| panic!("{error}"));
    known
}

const BANK: &str = r#"
    module Bank {
        exception Insufficient { long long missing; };
        exception Closed {};
        typedef sequence<string<8>, 4> Names;
        struct Point { double x, y; };
        interface Named { readonly attribute string name raises (Closed); };
        interface Logged { oneway void note(in string text, in any what); };
        interface Account : Named, Logged {
            attribute long limit getraises (Closed) setraises (Closed, Insufficient);
            attribute Names owners;
            long long withdraw(in long long amount, inout Point where, out sequence<long> rest)
                raises (Insufficient, Closed) context ("region", "user*");
            Account twin();
            void shape(in fixed<5, 2> price, in map<string, long> ages, in wstring<3> sign);
        };
        abstract interface Either { void both(); };
        local interface Here { void never(); };
        interface Later;
    };
"#;

#[test]
fn operations_are_described_as_they_travel() {
    let known = known(BANK);
    let account = known.interface("IDL:Bank/Account:1.0").unwrap();
    assert_eq!(account.name, "Account");
    assert_eq!(account.bases, ["IDL:Bank/Named:1.0", "IDL:Bank/Logged:1.0"]);
    let names: Vec<&str> = account.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "_get_limit",
            "_set_limit",
            "_get_owners",
            "_set_owners",
            "withdraw",
            "twin",
            "shape",
            "_get_name",
            "note"
        ]
    );
    let withdraw = account.find("withdraw").unwrap();
    assert_eq!(withdraw.result, TypeCode::of(&TypeDef::LongLong));
    let modes: Vec<_> = withdraw.parameters.iter().map(|p| (p.name.as_str(), p.mode)).collect();
    assert_eq!(
        modes,
        [("amount", ParameterMode::In), ("where", ParameterMode::InOut), ("rest", ParameterMode::Out)]
    );
    let raised: Vec<&str> = withdraw.exceptions.iter().map(|ty| ty.id().unwrap()).collect();
    assert_eq!(raised, ["IDL:Bank/Insufficient:1.0", "IDL:Bank/Closed:1.0"]);
    assert_eq!(withdraw.contexts, ["region", "user*"]);
    assert!(account.find("note").unwrap().oneway);
    let setter = account.find("_set_limit").unwrap();
    assert_eq!((setter.parameters.len(), setter.exceptions.len()), (1, 2));
    assert_eq!(setter.result.kind(), TcKind::Void);
    assert_eq!(account.find("_get_name").unwrap().exceptions.len(), 1);
    assert!(account.find("_set_name").is_none());
    assert_eq!(account.find("twin").unwrap().result.kind(), TcKind::ObjRef);

    assert!(known.interface("IDL:Bank/Either:1.0").is_some());
    assert!(known.interface("IDL:Bank/Here:1.0").is_none(), "a local interface cannot be called");
    assert!(known.interface("IDL:Bank/Later:1.0").is_none(), "only declared");
    assert_eq!(known.type_code("IDL:Bank/Later:1.0").unwrap().kind(), TcKind::ObjRef);
    assert_eq!(known.exception("IDL:Bank/Closed:1.0").unwrap().member_count(), Ok(0));
    assert!(known.exception("IDL:Bank/Point:1.0").is_none());
    assert_eq!(known.id_of("Bank::Account"), Some("IDL:Bank/Account:1.0"));
    assert_eq!(known.id_of("::Bank::Point"), Some("IDL:Bank/Point:1.0"));
}

#[test]
fn interfaces_are_printed_as_idl() {
    let known = known(BANK);
    let account = known.interface("IDL:Bank/Account:1.0").unwrap();
    assert_eq!(
        declaration(&account),
        "interface Account : Named, Logged {
    attribute long limit getraises (Closed) setraises (Closed, Insufficient);
    attribute Names owners;
    long long withdraw(in long long amount, inout Point where, out sequence<long> rest) raises (Insufficient, Closed) context (\"region\", \"user*\");
    Account twin();
    void shape(in fixed<5, 2> price, in sequence<struct { string key; long value; }> ages, in wstring<3> sign);
    readonly attribute string name raises (Closed);
    oneway void note(in string text, in any what);
};
"
    );
    assert_eq!(signature(account.find("twin").unwrap()), "Account twin()");
}

#[test]
fn constants_have_values_and_types() {
    let known = known(
        r#"
        enum Color { red, green };
        typedef short Small;
        @bit_bound(16) bitmask Rights { may_read, may_write };
        module Limits {
            const Small LEAST = -5;
            const unsigned long long MOST = 18446744073709551615;
            const octet BYTE = 255;
            const string TEXT = "né";
            const wstring WIDE = L"\u20AC";
            const char LETTER = 'x';
            const wchar SIGN = L'\u20AC';
            const boolean YES = TRUE;
            const float HALF = 0.5;
            const double THIRD = 1 / 3.0;
            const long double PRECISE = 0.25;
            const fixed PRICE = -12.50d;
            const Color PAINT = green;
            const Rights BOTH = may_read | may_write;
        };
        "#,
    );
    let value = |name: &str| known.constant(&format!("Limits::{name}")).unwrap().value.clone();
    assert_eq!(value("LEAST").extract::<i16>(), Ok(-5));
    assert_eq!(value("LEAST").type_code().id(), Ok("IDL:Small:1.0"));
    assert_eq!(value("MOST").extract::<u64>(), Ok(u64::MAX));
    assert_eq!(value("BYTE").extract::<u8>(), Ok(255));
    assert_eq!(value("TEXT").extract_str(), Ok("né"));
    assert_eq!(value("WIDE").extract::<ironorb::WString>(), Ok("€".into()));
    assert_eq!(value("LETTER"), Any::with_type(&TypeDef::Char, &b'x').unwrap());
    assert_eq!(value("SIGN").extract::<char>(), Ok('€'));
    assert_eq!(value("YES").extract::<bool>(), Ok(true));
    assert_eq!(value("HALF").extract::<f32>(), Ok(0.5));
    assert_eq!(value("THIRD").extract::<f64>(), Ok(1.0 / 3.0));
    assert_eq!(value("PRECISE").extract::<LongDouble>(), Ok(LongDouble::from(0.25)));
    let (digits, scale) =
        (value("PRICE").type_code().fixed_digits(), value("PRICE").type_code().fixed_scale());
    assert_eq!((digits, scale), (Ok(3), Ok(1)), "trailing zeros do not count");
    assert_eq!(value("PRICE").extract::<Fixed<3, 1>>().unwrap().to_string(), "-12.5");
    assert_eq!(format!("{:?}", value("PAINT")), "Any(green)");
    assert_eq!(value("BOTH").type_code().id(), Ok("IDL:Rights:1.0"));
    assert_eq!(value("BOTH").extract_as::<u16>(TypeCode::of(&TypeDef::UShort)), Ok(3));
    assert_eq!(known.constants().count(), 14);
    assert_eq!(known.constant("Limits::LEAST").unwrap().id, "IDL:Limits/LEAST:1.0");
}

#[test]
fn types_that_contain_one_another_cost_their_size() {
    // Each type contains all others, so the paths through them are too many to walk.
    let mut idl = String::new();
    for number in 0..40 {
        idl.push_str(&format!("valuetype V{number}; typedef sequence<V{number}> S{number};\n"));
    }
    for number in 0..40 {
        let members: String = (0..40).map(|other| format!("public S{other} m{other}; ")).collect();
        idl.push_str(&format!("valuetype V{number} {{ {members} }};\n"));
    }
    let known = known(&idl);
    let one = known.type_code("IDL:V7:1.0").unwrap();
    let round = one.member_type(39).unwrap().resolved().content_type().unwrap().member_type(7).unwrap();
    assert_eq!(round.resolved().content_type(), Ok(one));
}

#[test]
fn what_is_added_twice_must_be_the_same() {
    let mut known = known("struct A { long x; }; interface I { void f(); };");
    known
        .add_idl_text("again.idl", "interface I { void f(); }; struct A { long x; };", &Options::new())
        .unwrap();
    let other = known.add_idl_text("b.idl", "struct B { long x; }; struct A { short x; };", &Options::new());
    assert_eq!(other, Err(DefinitionError::Conflict("IDL:A:1.0".to_owned())));
    assert!(known.type_code("IDL:B:1.0").is_none(), "nothing of the file was added");
    let other = known.add_idl_text("c.idl", "interface I { void g(); };", &Options::new());
    assert_eq!(other, Err(DefinitionError::Conflict("IDL:I:1.0".to_owned())));
    let Err(DefinitionError::Idl { path, diagnostics }) =
        known.add_idl_text("d.idl", "interface {", &Options::new())
    else {
        panic!("it has an error");
    };
    assert_eq!(path, Path::new("d.idl"));
    assert!(diagnostics.contains("d.idl:1:"), "{diagnostics}");
    let missing = known.add_idl(["/nowhere/e.idl"], &Options::new());
    assert!(matches!(missing, Err(DefinitionError::Idl { .. })));
}

/// Every IDL file of Debian's omniORB package, each on its own and all together.
#[test]
fn the_idl_of_debian_is_known() {
    let home = Path::new("/usr/share/idl/omniORB");
    let mut files = Vec::new();
    collect(home, &mut files);
    if files.is_empty() {
        eprintln!("skipped: the package omniorb-idl is not installed");
        return;
    }
    assert!(files.len() >= 40, "only {} files", files.len());
    let dirs: std::collections::BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let options = dirs.iter().fold(Options::new(), |options, dir| options.include_dir(*dir));
    let mut operations = BTreeMap::new();
    let mut all = Interfaces::new();
    for file in &files {
        all.add_idl([file], &options)
            .unwrap_or_else(|error| panic!("{} with others: {error}", file.display()));
        let mut known = Interfaces::new();
        known.add_idl([file], &options).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for interface in known.interfaces() {
            assert!(declaration(interface).starts_with("interface "));
            operations.insert(interface.id.clone(), interface.operations.len());
        }
        for ty in known.type_codes() {
            assert!(!format!("{ty}").contains("<unnamed>"));
            let json = ironorb_dynamic::json::type_to_json(ty, &Interfaces::new()).unwrap();
            let back = ironorb_dynamic::json::type_from_json(&json, &Interfaces::new());
            assert_eq!(back.as_ref(), Ok(ty), "of {}", file.display());
        }
    }
    assert_eq!(operations["IDL:omg.org/CosNaming/NamingContextExt:1.0"], 14);
    assert_eq!(all.interfaces().count(), operations.len());
    assert!(operations.len() >= 200, "only {} interfaces", operations.len());
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "idl") {
            files.push(path);
        }
    }
}

use crate::static_types::generated::inheritance as generated;

use generated::base::{Shape, shape};
use generated::shapes::{Movable, MovableRef};

struct Ball;

impl Shape for Ball {
    fn name(&self) -> Result<String, SystemException> {
        Ok("ball".to_owned())
    }

    fn set_name(&self, _: &str) -> Result<(), SystemException> {
        Ok(())
    }

    fn area(&self) -> Result<f64, shape::AreaError> {
        Ok(1.0)
    }
}

impl Movable for Ball {
    fn move_(&self, _: f64, _: shape::Side) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn the_interface_comes_from_the_object() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let ball: MovableRef = server.root_poa().activate(Ball).unwrap();
    let idl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ironorb-build/testdata/emit/inheritance/in.idl");
    let mut all = Interfaces::new();
    all.add_idl([&idl], &Options::new()).unwrap();
    let found = |known: &Interfaces, object: &ObjectRef| known.of(object).ok().map(|found| found.id.clone());
    assert_eq!(found(&all, ball.object()).as_deref(), Some("IDL:shapes/Movable:1.0"));

    // The reference has no type id, so the object is asked.
    let client = Orb::builder().no_endpoint().build().unwrap();
    let ior = Ior { type_id: String::new(), ..ball.object().ior().clone() };
    let silent = client.ior_to_object(ior).unwrap();
    assert_eq!(found(&all, &silent).as_deref(), Some("IDL:shapes/Movable:1.0"));

    // The object's own interface is not known, but a base is.
    let base = known("module base { interface Shape { double area(); }; interface Other {}; };");
    assert_eq!(found(&base, &silent).as_deref(), Some("IDL:base/Shape:1.0"));
    assert_eq!(found(&base, ball.object()).as_deref(), Some("IDL:base/Shape:1.0"));
    assert_eq!(found(&Interfaces::new(), &silent), None);
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
    assert!(base.of(&silent).unwrap_err().unanswered.is_some(), "the object does not answer");
}

#[test]
fn types_are_printed_as_idl() {
    let idl = r#"
        enum Color { red, green };
        typedef long Matrix[2][3];
        typedef sequence<Color, 4> Colors;
        struct Point { double x; Colors paint; Matrix m; octet raw[4]; };
        exception Lost { string why; };
        union Choice switch (Color) { case red: long number; default: string text; };
        union Plain switch (long) { case 7: long number; };
        valuetype Base { public long a; };
        valuetype Derived : truncatable Base { private Point b; };
        valuetype Boxed sequence<long>;
        interface Thing { void f(); };
    "#;
    let known = known(idl);
    let of = |name: &str| definition(&known.type_code(&format!("IDL:{name}:1.0")).unwrap());
    assert_eq!(of("Color"), "enum Color { red, green };\n");
    assert_eq!(of("Matrix"), "typedef long Matrix[2][3];\n");
    assert_eq!(of("Colors"), "typedef sequence<Color, 4> Colors;\n");
    assert_eq!(
        of("Point"),
        "struct Point {\n    double x;\n    Colors paint;\n    Matrix m;\n    octet raw[4];\n};\n"
    );
    assert_eq!(of("Lost"), "exception Lost {\n    string why;\n};\n");
    assert_eq!(
        of("Choice"),
        "union Choice switch (Color) {\n    case red: long number;\n    default: string text;\n};\n"
    );
    assert_eq!(of("Plain"), "union Plain switch (long) {\n    case 7: long number;\n};\n");
    assert_eq!(of("Derived"), "valuetype Derived : truncatable Base {\n    private Point b;\n};\n");
    assert_eq!(of("Boxed"), "valuetype Boxed sequence<long>;\n");
    assert_eq!(of("Thing"), "interface Thing;\n");
    assert_eq!(definition(&TypeCode::of(&TypeDef::Long)), "long\n");
}
