//! Generates the clients' side of the naming service, which `corbaname:` needs, and of the interface repository, the way
//! a user would.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::Config::new()
        .support("crate::generated")
        .compile(["../../idl/CosNaming.idl", "../../idl/ir.idl"])?;
    Ok(())
}
