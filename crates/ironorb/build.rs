//! Generates the clients' side of the naming service, which `corbaname:` needs, and of the interface repository, and both
//! sides of the ORB's own status, the way a user would.

use ironorb_build::{Config, Marshalling};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = || Config::new().support("crate::generated");
    config().compile(["../../idl/CosNaming.idl", "../../idl/ir.idl"])?;
    // People ask for the status now and then: little code counts for more than speed.
    config().marshal(Marshalling::Interpreted).compile(["../../idl/ironorb_status.idl"])?;
    Ok(())
}
