//! No input makes the front end panic, hang or run out of stack.

use ironorb_idl::{MapLoader, Options, Outcome, compile_with, dump};
use proptest::prelude::*;

/// Compiles a text, renders the diagnostics and returns the outcome.
fn compile(text: &str) -> Outcome {
    let files = MapLoader::new().with("main.idl", text).with("again.idl", "#include \"main.idl\"\n");
    let outcome = compile_with("main.idl".as_ref(), &Options::default(), &files);
    let shown = outcome.render(false);
    assert_eq!(outcome.model.is_some(), outcome.diagnostics.is_ok());
    assert_eq!(shown.is_empty(), outcome.diagnostics.iter().next().is_none());
    if let Some(model) = &outcome.model {
        dump(model);
    }
    outcome
}

const WORDS: &[&str] = &[
    "map",
    "map<long,",
    "bitset A {",
    "bitfield<3>",
    "bitmask B {",
    "int8",
    "uint64",
    "@annotation",
    "@annotation x { long a default 1; };",
    "@bit_bound(8)",
    "@position(3)",
    "struct A : B {",
    "__LINE__",
    "__FILE__",
    "_map",
    "1e4000",
    "module",
    "interface",
    "struct",
    "union",
    "enum",
    "exception",
    "typedef",
    "const",
    "valuetype",
    "abstract",
    "local",
    "custom",
    "native",
    "attribute",
    "readonly",
    "oneway",
    "void",
    "in",
    "out",
    "inout",
    "raises",
    "context",
    "switch",
    "case",
    "default",
    "public",
    "private",
    "factory",
    "truncatable",
    "supports",
    "sequence",
    "string",
    "wstring",
    "fixed",
    "long",
    "short",
    "unsigned",
    "double",
    "float",
    "char",
    "wchar",
    "boolean",
    "octet",
    "any",
    "Object",
    "ValueBase",
    "TRUE",
    "FALSE",
    "typeid",
    "typeprefix",
    "typeprefix CORBA \"omg.org\"",
    "import",
    "import ::CORBA;",
    "import again;",
    "\n#include <orb.idl>\n",
    "module CORBA {",
    "typedef sequence<octet> OctetSeq;",
    "interface Policy {",
    "lo\\\nng",
    "getraises",
    "setraises",
    "A",
    "B",
    "a",
    "b",
    "_c",
    "A::B",
    "::A",
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    ">>",
    "<<",
    "[",
    "]",
    ";",
    ";",
    ";",
    ":",
    ",",
    "=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "~",
    "|",
    "^",
    "&",
    "@x",
    "@x(1)",
    "1",
    "0",
    "3",
    "077",
    "0xff",
    "1.5",
    "2.5d",
    "'c'",
    "L'c'",
    "\"s\"",
    "L\"s\"",
    "\"\\x\"",
    "99999999999999999999",
    "\n#define A B\n",
    "\n#define F(x) x #x x##1\n",
    "F(A)",
    "F(",
    "\n#if 1\n",
    "\n#if A +\n",
    "\n#else\n",
    "\n#endif\n",
    "\n#include \"again.idl\"\n",
    "\n#pragma prefix \"p\"\n",
    "\n#pragma version A 1.2\n",
    "\n#pragma ID A \"IDL:A:1.0\"\n",
    "\n#undef A\n",
    "\n#line 7 \"x\"\n",
    "/*",
    "*/",
    "// c\n",
    "\\\n",
    "'",
    "\"",
    "\u{e9}",
    "#",
    "struct A { long a; };",
    "interface B;",
    "interface B { void f(); };",
];

const VALID: &str = r#"
#ifndef GUARD
#define GUARD
#define TWICE(x) ((x) * 2)
#pragma prefix "example.org"
module Shop {
    enum Color { red, green, blue };
    const long COUNT = TWICE(3 + 4) - ~0;
    const string NAME = "a" "b\n";
    const fixed PRICE = 1.50d * 3d;
    struct Node;
    typedef sequence<Node, COUNT> Nodes;
    struct Node { long id; Nodes kids; double grid[2][3]; };
    union Choice switch (Color) { case red: long number; case green: case blue: string<5> text; };
    exception Gone { @key string why; };
    interface Base { typedef short Small; readonly attribute Small size raises (Gone); };
    interface Cart : Base {
        Nodes find(in string name, out Choice choice, inout any extra) raises (Gone) context ("a.*");
        oneway void drop(in Small index);
        attribute Color shade;
    };
    valuetype Item { public long id; private Nodes parts; factory make(in long id); };
    valuetype Names sequence<string>;
    abstract valuetype Shape { void draw(); };
    valuetype Square : truncatable Item, Shape supports Cart { private octet edge; };
    native Cookie;
    @annotation unit { string name default "m"; Color shade; };
    bitset Flags { bitfield<3> a; bitfield<2>; @unit(shade = red) bitfield<9, int16> b; };
    @bit_bound(8) bitmask Set { one, @position(5) two };
    const Set BOTH = one | two;
    const long double PI = 3.14159265358979323846 / 2;
    struct Derived : Node { map<string, sequence<Node>, 3> near; int8 small; Set flags; };
    #pragma version Cart 2.3
    typeid Item "IDL:example.org/Other:1.0";
};
#endif
"#;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_tokens_ends_without_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..80)) {
        compile(&words.join(" "));
    }

    #[test]
    fn any_text_ends_without_panic(text in "\\PC{0,200}") {
        compile(&text);
    }

    #[test]
    fn any_mutation_ends_without_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, prop::sample::select(WORDS)), 1..6)) {
        let mut text = VALID.to_owned();
        for (at, length, word) in edits {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let Some(&start) = starts.get(at.index(starts.len().max(1))) else { continue };
            let end = starts.iter().copied().find(|&end| end >= start + length).unwrap_or(text.len());
            text.replace_range(start..end, word);
        }
        compile(&text);
    }

    #[test]
    fn any_prefix_ends_without_panic(cut in any::<prop::sample::Index>()) {
        compile(&VALID[..cut.index(VALID.len())]);
    }
}

#[test]
fn the_text_that_is_mutated_is_valid() {
    let outcome = compile(VALID);
    assert!(outcome.model.is_some(), "{}", outcome.render(false));
}

/// Each of these texts costs stack or time in a front end that recurses or scans.
#[test]
fn deep_and_long_texts_end() {
    let n = 10_000;
    let texts = [
        "module M {".repeat(n),
        format!("typedef {}long{} T;", "sequence<".repeat(n), ">".repeat(n)),
        format!("const long X = {}1{};", "(".repeat(n), ")".repeat(n)),
        format!("const long X = {}1;", "-".repeat(n)),
        format!("const long X = 1{};", " + 1".repeat(n)),
        format!("const string X = {};", "\"a\" ".repeat(n)),
        format!("struct S {{ {} }};", "struct T { long x; ".repeat(n)),
        format!("#if {}1{}\n#endif\n", "(".repeat(n), ")".repeat(n)),
        format!("#if {}1\n#endif\n", "!".repeat(n)),
        "#if 1\n".repeat(n),
        format!("#define F(x) x\nconst long X = {}1{};", "F(".repeat(n), ")".repeat(n)),
        (0..n)
            .map(|i| format!("typedef sequence<T{i}> T{};\n", i + 1))
            .collect::<String>()
            .replace("<T0>", "<long>"),
        (0..n)
            .map(|i| format!("typedef T{i} T{};\n", i + 1))
            .collect::<String>()
            .replace("typedef T0 ", "typedef long "),
        (0..1_500)
            .map(|i| format!("interface I{} : I{i} {{}};\n", i + 1))
            .collect::<String>()
            .replace(": I0 ", ""),
        format!("interface I {{ {} }};", (0..n).map(|i| format!("void f{i}();")).collect::<String>()),
        format!("enum E {{ {} e }};", (0..n).map(|i| format!("e{i},")).collect::<String>()),
        "x ".repeat(n),
        "};".repeat(n),
        "\"".repeat(n),
        "/* ".repeat(n),
        "@a ".repeat(n),
        "A::".repeat(n),
    ];
    for text in texts {
        compile(&text);
    }
}

#[test]
fn macros_that_double_themselves_stop_at_the_limit() {
    let mut text = String::from("#define A0 1\n");
    for level in 0..40 {
        text.push_str(&format!("#define A{} A{level} + A{level}\n", level + 1));
    }
    text.push_str("const long X = A40;\n");
    let outcome = compile(&text);
    assert!(outcome.render(false).contains("macros expand to more than"));
}

#[test]
fn a_file_that_includes_itself_twice_stops_at_the_limit() {
    let files = MapLoader::new().with("main.idl", "#include \"main.idl\"\n#include \"main.idl\"\n");
    let outcome = compile_with("main.idl".as_ref(), &Options::default(), &files);
    assert_eq!(outcome.diagnostics.error_count(), 1);
}

/// Each of these texts is short and asks for work or memory out of proportion to its length.
#[test]
fn short_texts_that_ask_for_much_are_refused() {
    let numbered = |n: usize, line: &dyn Fn(usize) -> String| (0..n).map(line).collect::<String>();
    let cases: &[(&str, String)] = &[
        ("IDL0213", format!("typedef long {};", "_".repeat(200_000))),
        ("IDL0203", format!("const fixed F = {0}d * {0}d;", "7".repeat(1_000_000))),
        ("IDL0204", format!("const long long L = {};", "7".repeat(1_000_000))),
        ("IDL0205", format!("const long double L = 1e{};", "7".repeat(1_000_000))),
        // A long text that many names share.
        (
            "IDL0419",
            format!(
                "const string S = \"{}\";\n{}",
                "x".repeat(100_000),
                numbered(5_000, &|i| format!("const string S{i} = S;\n"))
            ),
        ),
        (
            "IDL0419",
            format!(
                "@note(\"{}\") typedef long {} last;",
                "x".repeat(100_000),
                numbered(5_000, &|i| format!("T{i},\n"))
            ),
        ),
        (
            "IDL0419",
            format!(
                "{}{}{}",
                numbered(100, &|i| format!("module {}{i} {{\n", "m".repeat(1_000))),
                numbered(5_000, &|i| format!("typedef long T{i};\n")),
                "};".repeat(100)
            ),
        ),
        // Bases that are searched again and again.
        (
            "IDL0718",
            format!(
                "interface Big {{ {} }}; interface A : Big {{}}; interface B : Big {{}};\n{}",
                numbered(10_000, &|i| format!("void f{i}();\n")),
                numbered(10_000, &|i| format!("interface C{i} : A, B {{}};\n"))
            ),
        ),
        (
            "IDL0515",
            format!(
                "struct S0 {{ long x; }};\n{}",
                numbered(2_000, &|i| format!("struct S{} : S{i} {{ long x{i}; }};\n", i + 1))
            ),
        ),
        // Macros with long text, and with long chains.
        (
            "IDL0107",
            format!(
                "#define S(x) #x\n#define T(x) {}\nconst string A = T(\"{}\");",
                "S(x) ".repeat(2_000),
                "y".repeat(100_000)
            ),
        ),
        (
            "IDL0107",
            format!("#line 1 \"{}\"\nconst string A = {};", "f".repeat(100_000), "__FILE__ ".repeat(2_000)),
        ),
    ];
    for (code, text) in cases {
        let shown = compile(text).render(false);
        assert!(shown.contains(code), "no {code}, but\n{}", &shown[..shown.len().min(2_000)]);
        assert!(shown.len() < 10_000_000, "{} bytes are shown for {code}", shown.len());
    }
}

/// Each of these texts is correct. A front end that searches from the start each time would need quadratic
/// time.
#[test]
fn long_texts_take_time_in_proportion_to_their_length() {
    let n = 50_000;
    let numbered = |line: &dyn Fn(usize) -> String| (0..n).map(line).collect::<String>();
    let texts = [
        format!(
            "typedef long T0;\n{}{}",
            numbered(&|i| format!("typedef T{i} T{};\n", i + 1)),
            numbered(&|i| format!("const T{n} C{i} = {i};\n"))
        ),
        format!("{}#define M{n} long\ntypedef M0 T;", numbered(&|i| format!("#define M{i} M{}\n", i + 1))),
        format!("{}long x; }};", numbered(&|i| format!("// {i}\n")) + "struct S { "),
        numbered(&|i| format!("// {i}\nconst long C{i} = {i}; // behind\n")),
        numbered(&|i| format!("#line {i} \"f{i}\"\nconst long C{i} = __LINE__;\n")),
        format!("@note({}1) typedef long {} last;", "1 + ".repeat(n), numbered(&|i| format!("T{i},\n"))),
        format!("enum E {{ {} last }};", numbered(&|i| format!("e{i},\n")))
            + &format!(
                "union U switch (E) {{ {} case last: long z; }};",
                numbered(&|i| format!("case e{i}: long m{i};\n"))
            ),
        numbered(&|i| format!("module M{i} {{ const long C = {i}; }}; import ::M{i};\n")),
    ];
    for text in texts {
        let outcome = compile(&text);
        assert!(outcome.model.is_some(), "{}", outcome.render(false));
    }
}

#[test]
fn a_text_full_of_warnings_is_read_to_its_end() {
    let outcome =
        compile(&(0..5_000).map(|i| format!("struct Right{i} {{ long right{i}; }};\n")).collect::<String>());
    let model = outcome.model.expect("warnings are no errors");
    assert_eq!(model.definitions().len(), 5_000);
}

#[test]
fn a_text_full_of_errors_is_not_read_to_its_end() {
    let outcome = compile(&"typedef Missing T;\nstruct { long; ;\n".repeat(50_000));
    assert!(outcome.diagnostics.error_count() < 10_000, "{} errors", outcome.diagnostics.error_count());
}

#[test]
fn repeated_built_in_declarations_are_compared_to_a_limit() {
    let deep: String = (1..20_000).map(|i| format!("typedef sequence<B{}> B{i};\n", i - 1)).collect();
    let text = format!(
        "#include <orb.idl>\nmodule CORBA {{ typedef octet B0;\n{deep}typedef sequence<B19999> OctetSeq; }};\n"
    );
    let outcome = compile(&text);
    assert_eq!(outcome.diagnostics.error_count(), 1, "{}", outcome.render(false));
    // Many repetitions take time in proportion to their number.
    let many: String = (0..5_000).map(|_| "typedef sequence<octet> OctetSeq; interface Policy;\n").collect();
    let outcome =
        compile(&format!("#include <orb.idl>\n#include \"again.idl\"\nmodule CORBA {{ {many} }};\n"));
    assert!(outcome.diagnostics.iter().count() <= 1_000, "an include of itself is a circle");
}

#[test]
fn imports_in_a_circle_or_in_great_number_end() {
    let many: String = (0..20_000).map(|i| format!("import ::M{i};\n")).collect();
    let outcome = compile(&many);
    assert!(outcome.render(false).contains("error"));
    // Imports in a circle, and in a module.
    let files = MapLoader::new()
        .with("main.idl", "module Main { import ::A; import ::B; typedef B::L L; };")
        .with("A.idl", "module A { typedef long K; };\nimport ::B;")
        .with(
            "B.idl",
            "import ::A; import ::CORBA; module B { typedef long L; typedef CORBA::OctetSeq Octets; };",
        );
    let outcome = compile_with("main.idl".as_ref(), &Options::default(), &files);
    assert!(outcome.model.is_some(), "{}", outcome.render(false));
}
