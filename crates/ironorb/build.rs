//! Generates the client's side of the naming service, which `corbaname:` needs, the way a user would.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::Config::new().support("crate::generated").compile(["../../idl/CosNaming.idl"])?;
    Ok(())
}
