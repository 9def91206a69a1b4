//! Generates Rust from the IDL of jobs, and from that of the examples.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["../../idl/ironorb_jobs.idl", "idl/ironorb_jobs_example.idl"])?;
    Ok(())
}
