//! The agent's interface, as generated from `idl/ironorb_agent.idl`.

ironorb::include_idl!("ironorb_agent");

pub use iron_orb::*;
