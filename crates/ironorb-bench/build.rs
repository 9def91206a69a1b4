//! Generates the stubs as any user would, and notes which compiler builds the benchmark.

use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/echo.idl", "idl/probes.idl", "idl/ttcp.idl", "idl/types.idl"])?;
    let rustc = std::env::var_os("RUSTC").ok_or("cargo sets RUSTC")?;
    let version = Command::new(rustc).arg("--version").output()?;
    println!("cargo::rustc-env=IRONORB_BENCH_RUSTC={}", String::from_utf8(version.stdout)?.trim());
    println!("cargo::rustc-env=IRONORB_BENCH_PROFILE={}", std::env::var("PROFILE")?);
    Ok(())
}
