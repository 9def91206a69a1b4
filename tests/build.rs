//! Generates what the tests call.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/bulk.idl", "idl/dynamic.idl", "idl/probe.idl", "idl/wires.idl"])?;
    Ok(())
}
