//! Generates what the tests call, and the generator's own examples once with each way of marshalling.

use std::path::Path;

use ironorb_build::{Config, Marshalling, generate_outcome};
use ironorb_idl::{Options, compile_file};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/bulk.idl", "idl/dynamic.idl", "idl/probe.idl", "idl/wires.idl"])?;
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let examples = Path::new("../crates/ironorb-build/testdata/emit");
    for (name, marshalling) in [
        ("compiled", Marshalling::Compiled),
        ("interpreted", Marshalling::Interpreted),
        ("recorded", Marshalling::Record),
    ] {
        for example in EXAMPLES {
            // Not by `Config::compile`: the warnings about examples are no news.
            let file = examples.join(example).join("in.idl");
            let outcome = compile_file(&file, &Options::new());
            let rust = generate_outcome(&outcome, &Config::new().marshal(marshalling.clone()))?;
            let folder = Path::new(&out).join(name);
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join(example).with_extension("rs"), rust)?;
            println!("cargo:rerun-if-changed={}", file.display());
        }
    }
    Ok(())
}

/// Those with types; `tests/marshalling.rs` includes them.
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
