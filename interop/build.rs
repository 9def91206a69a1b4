//! Generates the tests' contract.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::Config::new().define("WITHOUT_VALUES", None).compile(["idl/all.idl"])?;
    Ok(())
}
