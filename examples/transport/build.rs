//! Generates Rust from the IDL, for the tests.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/pinboard.idl"])?;
    Ok(())
}
