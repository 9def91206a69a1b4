//! Generates the tests' contracts: as any program does, or with marshalling by the interpreter.

use ironorb_build::{Config, Marshalling};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let marshalling = match std::env::var_os("CARGO_FEATURE_INTERPRETED") {
        Some(_) => Marshalling::Interpreted,
        None => Marshalling::Compiled,
    };
    Config::new().marshal(marshalling).compile(["idl/all.idl", "idl/real_time/witness.idl"])?;
    Ok(())
}
