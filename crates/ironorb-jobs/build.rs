//! Generates Rust from the IDL of jobs.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["../../idl/ironorb_jobs.idl"])?;
    Ok(())
}
