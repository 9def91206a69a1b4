//! The project's own commands: `cargo xtask test` is the whole gate.
//!
//! Uses nothing but the standard library, so that it builds in a moment on a fresh machine.

mod cache;
mod gate;
mod interop;
mod layout;
mod models;
mod packages;
mod programs;
mod regressions;
mod soak;
mod steps;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use gate::Extent;
use interop::Interop;
use steps::Steps;

const HELP: &str = "\
cargo xtask <command>

  test [--all]   everything that must hold: formatting, lints, documentation, all tests with their peers, counts of
                 calls, and a bounded fuzz run; installs missing Debian packages when it may. What takes long and has
                 passed on this machine with the same sources is left out, and named at the end; --all runs it too
  quick          formatting, lints and the tests that need no other ORB and no etcd
  interop        only the tests against other ORBs; writes what they found into docs/interop.md
  interop --tao  only the tests of real time with TAO, of which $TAO_TREE names a built tree (interop/README.md)
  peers          only installs the Debian packages that the tests need, and builds the other ORBs' programs
  counts         only what a call costs, in instructions and heap calls, beside guard/counts.txt; with --update it
                 writes that table anew
  footprint      only how much code calls, cached reads and writes touch; part of the counts, too
  model          only the rings of shared memory: every order of their steps (loom); and Rust's memory model, also for the
                 memory of lanes (miri, which needs a nightly toolchain and is left out where there is none)
  fuzz [N]       only the bounded fuzz run, N inputs a target (default 20000)
  regressions [NAME...]
                 plants each regression of tests/regressions in a copy of the tree, and demands that the tests that it
                 names fail
  soak [MINUTES] what the gate leaves out, again and again, without end or for so long: all of it with other seeds in each
                 round, and each fuzz target for longer, by coverage where cargo-fuzz and a nightly toolchain are installed

What is built of other ORBs, and notes of what has passed, lie in $IRONORB_TEST_CACHE, or else in ironorb in the system's
folder for caches (~/.cache/ironorb).
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["test" | "ci"] => gate::run(Extent::Changed),
        ["test" | "ci", "--all"] => gate::run(Extent::All),
        ["quick"] => gate::run(Extent::Quick),
        ["interop"] => interop(),
        ["interop", "--tao"] => interop_with_tao(),
        ["peers"] => peers(),
        ["counts"] => counts("check"),
        ["counts", "--update"] => counts("update"),
        ["footprint"] => footprint(),
        ["model"] => models::run_alone(),
        ["fuzz"] => fuzz(gate::FUZZ_INPUTS),
        ["fuzz", count] => number(count).and_then(fuzz),
        ["regressions", names @ ..] => regressions(names),
        ["soak"] => soak::run(None),
        ["soak", minutes] => number(minutes).and_then(|minutes| soak::run(Some(minutes))),
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

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

/// All tests against other ORBs, and the matrix from what they find.
fn interop() -> Result<(), String> {
    packages::install_missing()?;
    let steps = Steps::new();
    let interop = Interop::begin(Extent::All)?;
    let packages = ["--package=ironorb-interop", "--package=ironorb-cli", gate::WITH_BENCHMARKS];
    let build = [&["build", "--locked"][..], &gate::ALL_KINDS, &packages].concat();
    let built = programs::build(&steps, "programs and tests", cargo(&build))?;
    steps.run("peers of other ORBs", gate::program("interop-peers"))?;
    let programs = interop.programs(built.program(gate::INTEROP)?);
    let (counts, tested) = programs::run(&steps, "tests against other ORBs", programs);
    println!("{counts}");
    // Also what failed is written down.
    steps.run("the matrix of docs/interop.md", interop.matrix("write"))?;
    tested
}

/// The tests that the gate leaves out, because TAO is no package of the system. None of them is skipped.
fn interop_with_tao() -> Result<(), String> {
    if std::env::var_os("TAO_TREE").is_none_or(|tree| tree.is_empty()) {
        return Err("TAO_TREE is not set, so nothing was tested: set it to a built tree of ACE and TAO; \
                    interop/README.md says more"
            .to_owned());
    }
    let steps = Steps::new();
    let build = ["build", "--locked", "--tests", "--package=ironorb-interop", "--package=ironorb-cli"];
    let build = [&build[..], &[gate::WITH_BENCHMARKS]].concat();
    let built = programs::build(&steps, "programs and tests", cargo(&build))?;
    let tests =
        built.program(gate::INTEROP)?.clone().with(&["--ignored", "--test-threads=1"]).only(&["tao::"]);
    let (counts, tested) = programs::run(&steps, "tests with TAO", vec![tests]);
    println!("{counts}");
    tested
}

/// The programs of other ORBs. Those that take part in benchmarks say themselves what is missing.
fn peers() -> Result<(), String> {
    packages::install_missing()?;
    let steps = Steps::new();
    gate::build_program(&steps, "ironorb-interop", "interop-peers")?;
    steps.run("peers of other ORBs", gate::program("interop-peers"))?;
    gate::build_program(&steps, "ironorb-cli", "ironorb")?;
    let mut bench = gate::program("ironorb");
    bench.args(["bench", "peers"]);
    steps.run("peers of the benchmarks", bench)
}

fn counts(mode: &str) -> Result<(), String> {
    packages::install_missing()?;
    Steps::new().run("counts of a call", gate::counts(mode))
}

fn footprint() -> Result<(), String> {
    packages::install_missing()?;
    Steps::new().run("code that is touched", gate::guard(&["footprint"]))
}

fn fuzz(inputs: u64) -> Result<(), String> {
    let steps = Steps::new();
    gate::build_program(&steps, "ironorb-fuzz", "bounded")?;
    steps.run("bounded fuzzing", gate::bounded(inputs, 1))
}

fn regressions(names: &[&str]) -> Result<(), String> {
    let steps = Steps::new();
    let (counts, noticed) = regressions::run(&steps, names);
    println!("\n{}\n{} regressions noticed, {} not", steps.table(), counts.passed, counts.failed);
    noticed
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(arguments).current_dir(root());
    if std::env::var_os(INCREMENTAL).is_none() && !has_incremental_builds(&target()) {
        command.env(INCREMENTAL, "0");
    }
    command
}

/// The variable that has Cargo compile anew only what has changed within a crate.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// Whether crates of ours other than this program have been built so that the next build of a changed crate is quick. Such a
/// build takes a sixth more of processor time, which is lost where nothing is ever changed.
fn has_incremental_builds(target: &Path) -> bool {
    let crates = std::fs::read_dir(target.join("debug/incremental")).into_iter().flatten().flatten();
    crates.map(|entry| entry.file_name()).any(|name| !name.to_string_lossy().starts_with("xtask-"))
}

/// Where things are built.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incremental_builds_are_those_of_other_crates() {
        let target = std::env::temp_dir().join(format!("ironorb-xtask-incremental-{}", std::process::id()));
        assert!(!has_incremental_builds(&target));
        let built = |name: &str| {
            std::fs::create_dir_all(target.join("debug/incremental").join(name)).expect("there is room");
        };
        built("xtask-0a1b");
        assert!(!has_incremental_builds(&target));
        built("ironorb-0a1b");
        assert!(has_incremental_builds(&target));
        std::fs::remove_dir_all(&target).expect("it is ours");
    }
}
