//! No input makes the front end panic, hang or run out of stack.

use ironorb_idl::{MapLoader, Options, Outcome, compile_with, dump};
use proptest::prelude::*;

/// Compiles and renders; gives what came out.
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
    "import",
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
    #pragma version Cart 2.3
    typeid Item "IDL:example.org/Other:1.0";
};
#endif
"#;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_soup(words in prop::collection::vec(prop::sample::select(WORDS), 0..80)) {
        compile(&words.join(" "));
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        compile(&text);
    }

    #[test]
    fn mutations(edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, prop::sample::select(WORDS)), 1..6)) {
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
    fn prefixes(cut in any::<prop::sample::Index>()) {
        compile(&VALID[..cut.index(VALID.len())]);
    }
}

#[test]
fn the_text_that_is_mutated_is_valid() {
    let outcome = compile(VALID);
    assert!(outcome.model.is_some(), "{}", outcome.render(false));
}

/// Each of these costs stack or time in a front end that recurses or scans.
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
