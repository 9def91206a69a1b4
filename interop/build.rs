//! Generates the tests' contract.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/all.idl"])?;
    Ok(())
}
