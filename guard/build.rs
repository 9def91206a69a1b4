//! Generates the stubs as any user would, and records the compiler for which the counts hold.

use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ironorb_build::compile(["idl/guard.idl"])?;
    let rustc = std::env::var_os("RUSTC").ok_or("cargo sets RUSTC")?;
    let version = String::from_utf8(Command::new(rustc).arg("--version").output()?.stdout)?;
    let version = version.split(' ').nth(1).ok_or("rustc prints its version")?;
    println!("cargo::rustc-env=IRONORB_BENCH_RUSTC={version}");
    println!("cargo::rustc-env=IRONORB_BENCH_PROFILE={}", std::env::var("PROFILE")?);
    Ok(())
}
