//! Generates the demo's interface, as any program would.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/demo.idl"])?;
    Ok(())
}
