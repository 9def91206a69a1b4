//! Generates Rust from the IDL.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/portfolio.idl"])?;
    Ok(())
}
