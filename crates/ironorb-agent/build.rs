//! Generates both sides of the agent's interface, as any program would.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["../../idl/ironorb_agent.idl"])?;
    Ok(())
}
