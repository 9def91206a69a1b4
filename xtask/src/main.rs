//! The project's own commands: `cargo xtask test` is the whole gate.
//!
//! Uses nothing but the standard library, so that it builds in a moment on a fresh machine.

mod packages;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
cargo xtask <command>

  test       everything that must hold: formatting, lints, documentation, all tests with their peers,
             and a bounded fuzz run; installs missing Debian packages when it may
  quick      formatting, lints and the tests that need no other ORB
  interop    only the tests against other ORBs; writes what they found into docs/interop.md
  peers      only installs the Debian packages that the tests need, and builds the other ORBs' programs
  counts     only what a call costs, in instructions and heap calls, beside guard/counts.txt; with --update it writes
             that table anew
  model      only the rings of shared memory: every order of their steps (loom), and Rust's memory model (miri, which
             needs a nightly toolchain and is left out where there is none)
  fuzz [N]   only the bounded fuzz run, N inputs a target (default 20000)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["test" | "ci"] => test(),
        ["quick"] => quick(),
        ["interop"] => interop(),
        ["peers"] => peers().and_then(|()| bench_peers()),
        ["counts"] => counts("check"),
        ["counts", "--update"] => counts("update"),
        ["model"] => model(),
        ["fuzz"] => fuzz(FUZZ_INPUTS),
        ["fuzz", count] => match count.parse() {
            Ok(count) => fuzz(count),
            Err(_) => Err(format!("{count:?} is not a number of inputs")),
        },
        _ => {
            print!("{HELP}");
            return if arguments.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Inputs a fuzz target in the gate: a minute or so in all.
const FUZZ_INPUTS: u64 = 20_000;

fn test() -> Result<(), String> {
    packages::install_missing()?;
    check_style()?;
    fuzz(FUZZ_INPUTS)?;
    counts("check")?;
    model()?;
    // Late, so that the summary of the tests is what is seen at the end.
    let results = Results::begin()?;
    step("tests", results.of(cargo(&["test", "--workspace", "--locked", "--no-fail-fast"])))?;
    step("tests of the probes", cargo(&PROBE_TESTS))?;
    step("interoperability of interpreted marshalling", cargo(&INTERPRETED_TESTS))?;
    step("the matrix of docs/interop.md", results.matrix("check"))
}

fn quick() -> Result<(), String> {
    check_style()?;
    step("tests", cargo(&["test", "--workspace", "--locked", "--exclude", "ironorb-interop"]))?;
    step("tests of the probes", cargo(&PROBE_TESTS))
}

/// One peer, in both directions and all versions of GIOP, with the contract's types left to the interpreter. Nothing of
/// it is written down for the matrix, which is about what users can do and not about how.
const INTERPRETED_TESTS: [&str; 10] = [
    "test",
    "--locked",
    "-p",
    "ironorb-interop",
    "--features=interpreted",
    "--no-fail-fast",
    "--test",
    "omniorb_client",
    "--test",
    "omniorb_server",
];

/// The feature `probes` builds crates once more, so no more is tested with it than what is about it.
const PROBE_TESTS: [&str; 17] = [
    "test",
    "--locked",
    "-p",
    "ironorb-giop",
    "-p",
    "ironorb-bench",
    "--features=ironorb-bench/probes",
    "--lib",
    "--test",
    "probes",
    "--test",
    "no_allocation",
    "--test",
    "breakdown",
    "--",
    "probe",
    "takes_no_memory",
];

/// The crates in which it makes a difference.
const WITH_PROBES: [&str; 5] = ["-p", "ironorb-giop", "-p", "ironorb", "--features=ironorb/probes"];

fn interop() -> Result<(), String> {
    peers()?;
    let results = Results::begin()?;
    let test = cargo(&["test", "--locked", "-p", "ironorb-interop", "--no-fail-fast"]);
    let tested = step("interoperability", results.of(test));
    // Also what failed is written down.
    step("the matrix of docs/interop.md", results.matrix("write"))?;
    tested?;
    step("interoperability of interpreted marshalling", cargo(&INTERPRETED_TESTS))
}

fn peers() -> Result<(), String> {
    packages::install_missing()?;
    let build = ["run", "--quiet", "--locked", "-p", "ironorb-interop", "--bin", "interop-peers"];
    step("the peers of other ORBs", cargo(&build))
}

/// Those that take part in benchmarks; the benchmarks say themselves what is missing.
fn bench_peers() -> Result<(), String> {
    let build =
        ["run", "--quiet", "--locked", "-p", "ironorb-cli", "--features=bench", "--", "bench", "peers"];
    step("the peers of the benchmarks", cargo(&build))
}

/// What a call costs, beside the committed table. In a build of the profile `dist`: that is what the table is of.
fn counts(mode: &str) -> Result<(), String> {
    packages::install_missing()?;
    let run = [
        "run",
        "--quiet",
        "--profile=dist",
        "--locked",
        "-p",
        "ironorb-guard",
        "--",
        mode,
        "guard/counts.txt",
    ];
    step("counts of a call", cargo(&run))
}

/// What the tests against other ORBs find in this run.
struct Results {
    folder: PathBuf,
}

impl Results {
    /// Forgets every earlier run.
    fn begin() -> Result<Results, String> {
        let folder = target().join("interop-results");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Results { folder })
    }

    /// A command whose tests write down what they find.
    fn of(&self, mut command: Command) -> Command {
        command.env("IRONORB_INTEROP_RESULTS", &self.folder);
        command
    }

    /// Prints the matrix, and compares it with the document or writes it there.
    fn matrix(&self, mode: &str) -> Command {
        let mut run = cargo(&["run", "--quiet", "--locked", "-p", "ironorb-interop"]);
        run.args(["--bin", "interop-matrix", "--"]).arg(&self.folder).args([mode, "docs/interop.md"]);
        run
    }
}

fn check_style() -> Result<(), String> {
    need_component("fmt", "rustfmt")?;
    need_component("clippy", "clippy")?;
    step("formatting", cargo(&["fmt", "--all", "--check"]))?;
    step("lints", cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))?;
    let mut probes = cargo(&["clippy", "--lib", "--locked"]);
    probes.args(WITH_PROBES).args(["--", "-D", "warnings"]);
    step("lints with probes", probes)?;
    // Before the documentation of all crates, which is what is to be found afterwards.
    let mut doc = cargo(&["doc", "--no-deps", "--locked"]);
    doc.args(WITH_PROBES).env("RUSTDOCFLAGS", "-D warnings");
    step("documentation with probes", doc)?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    step("documentation", doc)
}

/// Without optimization: that would take minutes to make and save seconds. So it also shares what the tests build.
fn fuzz(inputs: u64) -> Result<(), String> {
    let mut run = cargo(&["run", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--bin", "bounded"]);
    run.args(["--", &inputs.to_string()]);
    run.env("CARGO_TARGET_DIR", target());
    step("bounded fuzzing", run)
}

/// What another process does in memory that it shares with us comes in orders that no test would find.
fn model() -> Result<(), String> {
    let mut loom = cargo(&["test", "--release", "--locked", "-p", "ironorb-shm", "--lib"]);
    loom.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", root().join("target/loom"));
    step("the model of shared memory", loom)?;
    if !has_miri() {
        eprintln!(
            "no miri: `rustup toolchain install nightly --component miri,rust-src` makes this step possible"
        );
        return Ok(());
    }
    // What maps memory of the system it does not know.
    let mut miri = Command::new("rustup");
    miri.args(["run", "nightly", "cargo", "miri", "test", "--locked", "-p", "ironorb-shm", "--lib", "--"]);
    miri.args(["end::", "copy::"]).current_dir(root()).env("CARGO_TARGET_DIR", root().join("target/miri"));
    // Those of the toolchain that runs this.
    miri.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    step("shared memory under miri", miri)
}

fn has_miri() -> bool {
    let mut version = Command::new("rustup");
    version.args(["run", "nightly", "cargo", "miri", "--version"]).env_remove("RUSTUP_TOOLCHAIN");
    version.output().is_ok_and(|output| output.status.success())
}

/// A minimal toolchain lacks these; rustup can add them.
fn need_component(subcommand: &str, component: &str) -> Result<(), String> {
    let present = |subcommand| {
        Command::new("cargo").args([subcommand, "--version"]).output().is_ok_and(|o| o.status.success())
    };
    if present(subcommand) {
        return Ok(());
    }
    let added = Command::new("rustup").args(["component", "add", component]).status();
    if added.is_ok_and(|status| status.success()) && present(subcommand) {
        return Ok(());
    }
    Err(format!("cargo {subcommand} is missing: run `rustup component add {component}`"))
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(arguments).current_dir(root());
    command
}

fn step(name: &str, mut command: Command) -> Result<(), String> {
    println!("== {name}");
    let begun = Instant::now();
    let status = command.status().map_err(|e| format!("{name}: cannot run {command:?}: {e}"))?;
    println!(
        "== {name}: {} after {:.0} s",
        if status.success() { "good" } else { "FAILED" },
        begun.elapsed().as_secs_f32()
    );
    if status.success() { Ok(()) } else { Err(format!("{name} failed")) }
}

/// Where things are built.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}
