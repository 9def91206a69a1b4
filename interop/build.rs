//! Generates the tests' contract and the naming service's interfaces.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/interop.idl", "../idl/CosNaming.idl"])?;
    Ok(())
}
