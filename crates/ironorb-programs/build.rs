//! Records the commit, which simulations name.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=IRONORB_SIM_COMMIT={}", commit());
    // Git writes a line here with each commit. Cargo takes a missing file for a changed one.
    let log = "../../.git/logs/HEAD";
    if Path::new(log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// The commit of the sources, as far as Git knows it.
fn commit() -> String {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let told = output.ok().filter(|output| output.status.success());
    let text = told.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
