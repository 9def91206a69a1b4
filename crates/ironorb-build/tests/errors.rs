//! Which IDL is refused, and how the build API reports it.

use std::path::Path;

use ironorb_build::{Config, Errors, Marshalling, generate, generate_outcome};
use ironorb_idl::{MapLoader, Options, compile_with};

fn generated(idl: &str) -> Result<String, Errors> {
    let files = MapLoader::new().with("test.idl", idl);
    let outcome = compile_with(Path::new("test.idl"), &Options::new(), &files);
    generate_outcome(&outcome, &Config::new())
}

/// Checks the first line of each error: the refused construct and its place.
fn check(idl: &str, expected: &[&str]) {
    let text = generated(idl).unwrap_err().to_string();
    let found: Vec<String> = text
        .split("\n\n")
        .map(|error| error.lines().take(2).map(str::trim).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn all_constructs_not_generated_yet_are_reported_in_one_run() {
    check(
        "interface Service {};\nstruct Later;\nunion Never;\nvaluetype Unknown;\n",
        &[
            "error: a struct that is only declared is not generated yet --> test.idl:2:8",
            "error: a union that is only declared is not generated yet --> test.idl:3:7",
            "error: a valuetype that is only declared is not generated yet --> test.idl:4:11",
        ],
    );
}

/// A long chain of aliases is not realistic IDL, but it must not overflow the stack.
#[test]
fn endless_aliases_are_refused() {
    let mut idl = "typedef string<2> T0;\n".to_owned();
    for n in 1..20_000 {
        idl.push_str(&format!("typedef sequence<T{}> T{n};\n", n - 1));
    }
    idl.push_str("struct S { T19999 x; };");
    let text = generated(&idl).unwrap_err().to_string();
    assert!(text.starts_with("error: a type of more than 100 levels"), "{text:.200}");
}

/// IDL whose code would be out of proportion in size or compile time is refused, even if it is legal.
#[test]
fn endless_inheritance_and_results_are_refused() {
    let mut idl = "interface I0 {};\n".to_owned();
    for n in 1..260 {
        idl.push_str(&format!("interface I{n} : I{} {{}};\n", n - 1));
    }
    idl.push_str("interface Many { void all(");
    let outs: Vec<String> = (0..33).map(|n| format!("out long o{n}")).collect();
    idl.push_str(&format!("{}); }};", outs.join(", ")));
    let text = generated(&idl).unwrap_err().to_string();
    let reported: Vec<&str> = text.lines().filter(|line| line.starts_with("error")).collect();
    let deep = "error: an interface with more than 256 bases is not generated yet";
    assert_eq!(
        reported,
        [deep, deep, deep, "error: an operation with more than 32 results is not generated yet"]
    );
}

/// Valuetypes with too many bases are refused. Code for accepted ones grows no faster than the names in it.
#[test]
fn endless_inheritance_of_values_is_refused() {
    let chain = |length: usize| {
        let mut idl = "valuetype V0 { public long x; };\n".to_owned();
        for n in 1..length {
            idl.push_str(&format!("valuetype V{n} : truncatable V{} {{ public long x; }};\n", n - 1));
        }
        idl
    };
    check(
        &chain(67),
        &[
            "error: a valuetype with more than 64 bases is not generated yet --> test.idl:66:11",
            "error: a valuetype with more than 64 bases is not generated yet --> test.idl:67:11",
        ],
    );
    let [short, long] = [33, 65].map(|length| generated(&chain(length)).unwrap().len());
    let last = generated(&chain(65)).unwrap().len() - generated(&chain(64)).unwrap().len();
    assert!(last < 2000, "the last of the chain takes {last} bytes");
    assert!(long < 3 * short, "twice the chain takes {long} bytes instead of {short}");
}

#[test]
fn the_line_is_shown_with_a_caret() {
    let errors = generated("module m {\n\tstruct Later;\n};").unwrap_err();
    let expected = "error: a struct that is only declared is not generated yet\n --> test.idl:2:9\n  |\n\
                    2 | \tstruct Later;\n  | \t       ^^^^^";
    assert_eq!(errors.to_string(), expected);
    assert!(format!("{errors:?}").contains(expected), "a build script prints errors with Debug");
}

#[test]
fn types_mapped_to_an_existing_module_are_not_refused() {
    let idl = "module old { struct Held; };\nmodule fresh { struct Use { sequence<old::Held> it; }; };\n\
               module old { struct Held { long x; }; struct Later; };";
    let files = MapLoader::new().with("test.idl", idl);
    let model = compile_with(Path::new("test.idl"), &Options::new(), &files).model.unwrap();
    assert!(generate(&model, &Config::new()).is_err());
    let text = generate(&model, &Config::new().external("old", "::older::idl")).unwrap();
    assert!(
        text.contains("pub it: Vec<::older::idl::old::Held>,") && !text.contains("pub mod old"),
        "{text}"
    );
}

/// `orb.idl` has many declarations. A file that includes it gets code only for those that it uses.
#[test]
fn only_used_parts_of_orb_idl_are_generated() {
    let text = generated("#include <orb.idl>\nmodule m { struct S { CORBA::StringSeq words; }; };").unwrap();
    assert!(text.contains("pub type StringSeq"), "{text}");
    assert!(!text.contains("OctetSeq"), "{text}");
}

#[test]
fn the_front_ends_errors_are_carried() {
    let text = generated("struct S { lung x; };").unwrap_err().to_string();
    assert!(text.contains("test.idl:1:12"), "{text}");
}

#[test]
fn compile_writes_one_rust_file_per_idl_file() {
    let dir = tempfile::tempdir().unwrap();
    let idl = dir.path().join("idl");
    std::fs::create_dir(&idl).unwrap();
    std::fs::write(idl.join("common.idl"), "module common { struct Point { long x, y; }; };").unwrap();
    std::fs::write(
        idl.join("bank.idl"),
        "#include \"common.idl\"\n#include <extra.idl>\nmodule bank { typedef NUMBER Cents; };",
    )
    .unwrap();
    std::fs::create_dir(dir.path().join("more")).unwrap();
    std::fs::write(dir.path().join("more/extra.idl"), "module extra { const long N = 1; };").unwrap();

    let config = Config::new()
        .include_dir(dir.path().join("more"))
        .define("NUMBER", Some("long long"))
        .out_dir(dir.path().join("out"));
    let written = config.compile([idl.join("bank.idl"), idl.join("common.idl")]).unwrap();
    assert_eq!(written, [dir.path().join("out/bank.rs"), dir.path().join("out/common.rs")]);
    let text = std::fs::read_to_string(&written[0]).unwrap();
    assert!(text.contains("pub mod common") && text.contains("pub mod extra"), "{text}");
    assert!(text.contains("pub type Cents = i64;"), "{text}");

    std::fs::write(dir.path().join("bank.idl"), "module bank {};").unwrap();
    let twice = config.compile([idl.join("bank.idl"), idl.join("../idl/bank.idl"), idl.join("bank.idl")]);
    assert!(twice.unwrap_err().to_string().contains("two IDL files"));

    std::fs::write(idl.join("a.idl"), "struct A;").unwrap();
    std::fs::write(idl.join("b.idl"), "struct B { nothing x; };").unwrap();
    let files = ["a.idl", "b.idl", "c.idl"].map(|name| idl.join(name));
    let text = config.compile(files).unwrap_err().to_string();
    for expected in ["a.idl:1:8", "b.idl:1:12", "c.idl"] {
        assert!(text.contains(expected), "no {expected} in:\n{text}");
    }
}

/// `@marshal` is an annotation of IronORB. A wrong use is reported, with the correct form.
#[test]
fn an_annotation_without_a_meaning_is_refused() {
    let idl = "@marshal(interpretted) struct A { long x; };\n\
               @marshal struct B { long x; };\n\
               @marshal(3) module M { @marshal(compiled) const long ONE = 1; };\n\
               struct C { @marshal(compiled) long x; };\n\
               @marshal(interpreted) native Cookie;\n\
               @marshal(way = compiled) enum E { one, two };\n\
               interface I { void f(@marshal(compiled) in long x); };\n\
               @marshal(interpreted) local interface L { @marshal(compiled) void f(); };\n\
               @marshal(interpreted) local interface T { struct U { long x; }; };\n";
    check(
        idl,
        &[
            "error: `@marshal` has no value `interpretted` --> test.idl:1:1",
            "error: `@marshal` takes one parameter, and is given 0 --> test.idl:2:1",
            "error: `@marshal` takes a word, not a number --> test.idl:3:1",
            "error: `@marshal` means nothing on a constant --> test.idl:3:24",
            "error: `@marshal` means nothing on a member or parameter --> test.idl:4:12",
            "error: `@marshal` means nothing on a native type --> test.idl:5:1",
            "error: `@marshal` has no parameter `way` --> test.idl:6:1",
            "error: `@marshal` means nothing on a member or parameter --> test.idl:7:22",
            "error: `@marshal` means nothing on a local interface without types, whose calls are never sent --> test.idl:8:1",
            "error: `@marshal` means nothing on an operation or attribute of a local interface, which is never sent --> test.idl:8:43",
        ],
    );
    let text = generated(idl).unwrap_err().to_string();
    assert!(!text.contains("test.idl:9:"), "{text}");
    assert!(text.contains("  = help: write `@marshal(compiled)` or `@marshal(interpreted)`"), "{text}");
    assert!(text.contains("  = help: put it on a type, an operation, an interface or a module"), "{text}");
    // An annotation that the text itself declares has the meaning of its declaration.
    let own = "@annotation marshal { string value; };\n@marshal(\"by hand\") struct A { long x; };\n";
    assert!(!generated(own).unwrap().contains("interpreted"));
}

#[test]
fn an_owned_without_a_meaning_is_refused() {
    let idl = "typedef sequence<octet> Octets;\n\
               interface I { void f(@owned in Octets a, @owned inout Octets b, @owned out Octets c); };\n\
               interface J { void f(@owned in string a, @owned(3) in Octets b); @owned void g(); };\n\
               local interface L { void f(@owned in Octets a); };\n\
               struct S { @owned Octets a; };\n\
               /*@owned*/ interface K { @owned attribute Octets a; };\n";
    check(
        idl,
        &[
            "error: `@owned` belongs to an `in` parameter: what goes out is owned in any case --> test.idl:2:42",
            "error: `@owned` belongs to an `in` parameter: what goes out is owned in any case --> test.idl:2:65",
            "error: `@owned` belongs to a sequence --> test.idl:3:22",
            "error: `@owned` takes no parameters --> test.idl:3:42",
            "error: `@owned` belongs to an `in` parameter --> test.idl:3:66",
            "error: `@owned` belongs to an operation that is called remotely --> test.idl:4:28",
            "error: `@owned` belongs to an `in` parameter --> test.idl:5:12",
            "error: `@owned` belongs to an `in` parameter --> test.idl:6:3",
            "error: `@owned` belongs to an `in` parameter --> test.idl:6:26",
        ],
    );
    let text = generated(idl).unwrap_err().to_string();
    assert!(text.contains("  = help: write `void put(@owned in sequence<octet> data);`"), "{text}");
    // An annotation that the text itself declares has the meaning of its declaration.
    let own = "@annotation owned {};\ninterface I { void f(@owned in sequence<octet> a); };\n";
    assert!(!generated(own).unwrap().contains("Ownable"));
}

/// Comments that other compilers skip. Only the whole annotation counts, and not what a condition excludes.
#[test]
fn owned_may_stand_in_a_comment() {
    for (text, is_owned) in [
        ("/*@owned*/ in", true),
        ("/* @owned */ in", true),
        ("//@owned\n in", true),
        ("// @owned \r\n in", true),
        ("@owned in", true),
        ("/* keeps it: @owned */ in", false),
        ("//@owned data\n in", false),
        ("/**@owned*/ in", false),
        ("\n#if 0\n/*@owned*/\n#endif\n in", false),
        ("\n#define X /*@owned*/\n in", false),
    ] {
        let idl = format!("interface I {{ void f({text} sequence<octet> a); }};\n");
        assert_eq!(generated(&idl).unwrap().contains("Ownable<'_, u8>"), is_owned, "{text}");
    }
}

#[test]
fn annotations_override_the_build_configuration() {
    let idl = "@marshal(compiled) struct A { long x; };\n@marshal(interpreted) struct B { long x; };\nstruct C { long x; };";
    let files = MapLoader::new().with("test.idl", idl);
    let outcome = compile_with(Path::new("test.idl"), &Options::new(), &files);
    for (marshalling, c) in [
        // A number has the same form in memory as on the wire.
        (Marshalling::Compiled, "[wire] "),
        (Marshalling::Interpreted, "[interpreted] "),
        (Marshalling::Record, "[recorded] "),
    ] {
        let rust = generate_outcome(&outcome, &Config::new().marshal(marshalling)).unwrap();
        assert!(rust.contains("cdr_struct! { [wire] A:"), "{rust}");
        assert!(rust.contains("cdr_struct! { [interpreted] B:"), "{rust}");
        assert!(rust.contains(&format!("cdr_struct! {{ {c}C:")), "{rust}");
    }
}

/// On an operation, an interface or a typedef the annotation applies to the types named there, but not to
/// their members.
#[test]
fn types_are_marshalled_as_their_uses_say() {
    let idl = "struct Inner { long x; };\nstruct A { Inner x; };\nstruct B { long x; };\nstruct C { long x; };\n\
               struct D { long x; };\nunion U switch (long) { case 1: long x; };\nexception Bad {};\n\
               typedef sequence<A> As;\n@marshal(interpreted) typedef sequence<U> Us;\n\
               interface I {\n\
                   @marshal(interpreted) C f(in As list, inout B other) raises (Bad);\n\
                   @marshal(compiled) attribute B now;\n\
                   D g(in long x);\n\
               };\n";
    let rust = generated(idl).unwrap();
    let forms = ["Inner", "A", "B", "C", "D", "U", "Bad"].map(|name| {
        let is = |word: &str| {
            rust.contains(&format!("! {{ {word}{name}: ")) || rust.contains(&format!("\n    {word}{name}: "))
        };
        match (is("") || is("[wire] "), is("[interpreted] ")) {
            (true, false) => "compiled",
            (false, true) => "interpreted",
            _ => "lost",
        }
    });
    let (c, i) = ("compiled", "interpreted");
    assert_eq!(forms, [c, i, c, i, c, i, i], "{rust}");
    let all = generated(&idl.replace("interface I", "@marshal(interpreted) interface I")).unwrap();
    assert!(all.contains("[interpreted] D:"), "{all}");
}
