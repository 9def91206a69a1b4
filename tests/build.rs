//! Generates code for the tests' IDL. The examples of `ironorb-build` are generated once for each way of
//! marshalling.

use std::path::Path;

use ironorb_build::{Config, Marshalling, generate_outcome};
use ironorb_idl::{Options, compile_file};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile([
        "idl/bulk.idl",
        "idl/cached.idl",
        "idl/dynamic.idl",
        "idl/extents.idl",
        "idl/keeping.idl",
        "idl/parallel.idl",
        "idl/probe.idl",
        "idl/stamps.idl",
        "idl/steady.idl",
        "idl/timing.idl",
        "idl/wires.idl",
    ])?;
    Config::new().servant_defaults_of("lenient::Shop").compile(["idl/lenient.idl"])?;
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let examples = Path::new("../crates/ironorb-build/testdata/emit");
    let layouts = Path::new(&out).join("layouts.idl");
    std::fs::write(&layouts, layouts_idl())?;
    for (name, marshalling) in [
        ("compiled", Marshalling::Compiled),
        ("interpreted", Marshalling::Interpreted),
        ("recorded", Marshalling::Record),
    ] {
        for example in EXAMPLES.iter().chain(&["layouts"]) {
            // `Config::compile` would repeat the warnings about the examples.
            let file = match *example {
                "layouts" => layouts.clone(),
                _ => examples.join(example).join("in.idl"),
            };
            let outcome = compile_file(&file, &Options::new());
            let rust = generate_outcome(&outcome, &Config::new().marshal(marshalling.clone()))?;
            let folder = Path::new(&out).join(name);
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join(example).with_extension("rs"), rust)?;
            println!("cargo:rerun-if-changed={}", file.display());
        }
    }
    let large = Path::new(&out).join("large.idl");
    std::fs::write(&large, large_idl())?;
    ironorb_build::compile([large])?;
    std::fs::write(Path::new(&out).join("large_servant.rs"), large_servant())?;
    Ok(())
}

/// The number of operations of the large interface. Their table has groups. `tests/demultiplexing.rs` calls
/// them all.
const LARGE: usize = 150;

fn large_idl() -> String {
    let operations: String = (0..LARGE).map(|n| format!("    long item_{n}();\n")).collect();
    format!("module large {{\n  interface Many {{\n{operations}  }};\n}};\n")
}

/// A servant whose operations each return their number, and a function that calls all of them by name.
fn large_servant() -> String {
    let mut methods = String::new();
    let mut calls = String::new();
    for n in 0..LARGE {
        methods += &format!("fn item_{n}(&self) -> Result<i32, SystemException> {{ Ok({n}) }}\n");
        calls += &format!("assert_eq!(many.item_{n}().unwrap(), {n});\n");
    }
    format!("impl Many for Numbering {{ {methods} }}\nfn call_all(many: &ManyRef) {{ {calls} }}\n")
}

/// The examples that have types. `tests/marshalling.rs` includes them.
const EXAMPLES: &[&str] = &[
    "abstract_interfaces",
    "any",
    "bounds",
    "boxes",
    "building_blocks",
    "custom_values",
    "enums_constants",
    "fixed",
    "inheritance",
    "letters",
    "local_native",
    "marshalling",
    "names",
    "operations",
    "recursion",
    "structs",
    "unions",
    "values",
];

/// Structs whose values all have the same layout, with random members: numbers, enumerators, arrays, structs.
/// For each, a struct that uses it wherever a type can be used.
fn layouts_idl() -> String {
    let mut state = 0x5EED_u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    let mut idl = "module layouts {\n  enum Hue { cyan, magenta, yellow };\n".to_owned();
    for at in 0..LAYOUTS {
        let mut members = String::new();
        for member in 0..=below(6) {
            let ty = match below(5) {
                0 if at > 0 => format!("F{}", below(at)),
                1 | 2 => NUMBERS[below(4)].to_owned(), // few alignments are as likely as many
                _ => NUMBERS[below(NUMBERS.len())].to_owned(),
            };
            let array = match below(6) {
                0 => format!("[{}]", 1 + below(4)),
                1 => format!("[{}][{}]", 1 + below(3), 1 + below(3)),
                _ => String::new(),
            };
            members += &format!("{ty} m{member}{array}; ");
        }
        idl += &format!("  struct F{at} {{ {members}}};\n");
        idl += &format!(
            "  union U{at} switch (octet) {{ case 1: F{at} one; case 2: F{at} two[2]; default: short other; }};\n"
        );
        idl += &format!(
            "  struct H{at} {{ sequence<F{at}> items; octet odd; F{at} one; sequence<U{at}> some; \
             sequence<sequence<F{at}>> nested; sequence<F{at}, 3> few; F{at} two[3]; string tail; }};\n"
        );
        idl += &format!("  exception E{at} {{ octet odd; F{at} one; }};\n");
    }
    idl + "};\n"
}

/// The number of layouts that `tests/marshalling.rs` names.
const LAYOUTS: usize = 24;

const NUMBERS: [&str; 12] = [
    "long",
    "double",
    "octet",
    "short",
    "char",
    "boolean",
    "Hue",
    "float",
    "unsigned long long",
    "unsigned short",
    "int8",
    "unsigned long",
];
