//! Generates the interfaces of the demo and of loading definitions, as any program would.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/demo.idl", "idl/loader.idl"])?;
    Ok(())
}
