//! Models: every order of steps, and Rust's memory model.

use std::process::{Command, Stdio};

use crate::gate::Outcome;
use crate::programs::{self, Counts};
use crate::steps::Steps;
use crate::{cargo, root, target};

/// What another process does in memory that it shares with us comes in orders that no test would find. And an allocator is
/// wrong in ways that no test sees.
pub(crate) fn run(steps: &Steps) -> Outcome {
    let mut outcome = Outcome::default();
    let mut loom = cargo(&["test", "--release", "--locked", "-p", "ironorb-shm", "--lib"]);
    loom.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target().join("loom"));
    outcome.count(run_one(steps, "the model of shared memory", loom, &[]));
    // What maps memory of the system miri does not know.
    let of_shared_memory: &[&str] = &["end::", "copy::"];
    let under_miri = [
        ("shared memory under miri", "ironorb-shm", of_shared_memory),
        ("memory of lanes under miri", "ironorb-lane-alloc", &[]),
        ("locks under miri", "ironorb-locks", &[]),
        ("extents under miri", "ironorb-extent", &[]),
        ("places of caches under miri", "ironorb", &["cache::place::"]),
    ];
    let can_run = need_miri();
    for (name, package, filters) in under_miri {
        match &can_run {
            Ok(()) => outcome.count(run_one(steps, name, miri(package, filters), filters)),
            Err(why) => {
                steps.skip(name, why);
                outcome.counts.skipped += 1;
            }
        }
    }
    outcome
}

/// The tests of a package's library that one of the filters chooses, or all, under miri.
fn miri(package: &str, filters: &[&str]) -> Command {
    let mut miri = Command::new("rustup");
    miri.args(["run", "nightly", "cargo", "miri", "test", "--locked", "-p", package, "--lib", "--"]);
    miri.args(filters).current_dir(root()).env("CARGO_TARGET_DIR", target().join("miri"));
    // Its clock bounds hangs of tests.
    miri.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    // Those of the toolchain that runs this.
    miri.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    miri
}

/// Only the models, both of them.
pub(crate) fn run_alone() -> Result<(), String> {
    let outcome = run(&Steps::new());
    println!("{}", outcome.counts);
    if outcome.problems.is_empty() { Ok(()) } else { Err(outcome.problems.join("; ")) }
}

/// Runs one of the models. `filters` are those of the command's arguments that choose tests.
fn run_one(steps: &Steps, name: &str, command: Command, filters: &[&str]) -> Result<Counts, String> {
    let said = steps.run_aside(name, command)?;
    programs::counts_of_cargo(&said, filters).map_err(|why| format!("{name}: {why}"))
}

/// Adds miri to a nightly toolchain that lacks it. Else says why it cannot run.
fn need_miri() -> Result<(), String> {
    let nightly = |arguments: &[&str]| {
        let mut rustup = Command::new("rustup");
        rustup.args(arguments).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").stdin(Stdio::null());
        rustup.output().is_ok_and(|output| output.status.success())
    };
    let has_miri = || nightly(&["run", "nightly", "cargo", "miri", "--version"]);
    if has_miri() {
        return Ok(());
    }
    if !nightly(&["run", "nightly", "rustc", "--version"]) {
        let remedy = "`rustup toolchain install nightly --component miri,rust-src` adds it";
        return Err(format!("there is no nightly toolchain; {remedy}"));
    }
    let add = ["component", "add", "miri", "rust-src", "--toolchain", "nightly"];
    if nightly(&add) && has_miri() {
        return Ok(());
    }
    Err(format!("the nightly toolchain has no miri, and `rustup {}` does not add it", add.join(" ")))
}
