//! Generates the stubs as any user would, twice for types that are marshalled in two ways, and records which
//! compiler builds the benchmark.

use std::path::Path;
use std::process::Command;

use ironorb_build::{Config, Marshalling};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Tests have servants of a few operations.
    Config::new().servant_defaults_of("bench::Echo").compile([
        "idl/caching.idl",
        "idl/caching_cases.idl",
        "idl/cubit.idl",
        "idl/deployment.idl",
        "idl/echo.idl",
        "idl/extents.idl",
        "idl/jobs.idl",
        "idl/latency.idl",
        "idl/probes.idl",
        "idl/realtime.idl",
    ])?;
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    for (folder, marshalling) in
        [("compiled", Marshalling::Compiled), ("interpreted", Marshalling::Interpreted)]
    {
        let config = Config::new().marshal(marshalling).out_dir(Path::new(&out).join(folder));
        config.compile(["idl/marshal.idl"])?;
        // Only for the programs whose sizes are compared, because it is large.
        if std::env::var_os("CARGO_FEATURE_SIZES").is_some() {
            config.compile(["../../idl/ir.idl"])?;
        }
    }
    let rustc = std::env::var_os("RUSTC").ok_or("cargo sets RUSTC")?;
    let version = Command::new(rustc).arg("--version").output()?;
    println!("cargo::rustc-env=IRONORB_BENCH_RUSTC={}", String::from_utf8(version.stdout)?.trim());
    println!("cargo::rustc-env=IRONORB_BENCH_COMMIT={}", commit());
    // Git writes a line here with each commit. Cargo takes a missing file for a changed one.
    let log = "../../.git/logs/HEAD";
    if Path::new(log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    println!("cargo::rustc-env=IRONORB_BENCH_PROFILE={}", std::env::var("PROFILE")?);
    Ok(())
}

/// The commit of the sources, as far as Git knows it.
fn commit() -> String {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let told = output.ok().filter(|output| output.status.success());
    let text = told.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
