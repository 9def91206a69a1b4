//! The gate: everything that must hold.
//!
//! What is counted is built and counted from the beginning, at the lowest priority: it takes what all else leaves. When the programs
//! are built, two lanes run at once. One runs tests, which wait for much. The other has Cargo check and build, at the lowest
//! priority as well. They meet where tests need what Cargo builds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::interop::Interop;
use crate::programs::{self, Built, Counts, Program};
use crate::steps::Steps;
use crate::{cargo, models, packages, regressions, root, target};

/// How much of the gate is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What needs no other ORB, and no counts.
    Quick,
    /// All but what has passed before with the same sources and takes long.
    Changed,
    /// All.
    All,
}

/// Inputs of the cheapest fuzz target in the gate.
pub(crate) const FUZZ_INPUTS: u64 = 20_000;

/// The variable by which tests know that they need not build the programs that they start.
const BUILT: &str = "IRONORB_TEST_PROGRAMS_BUILT";

/// The variable that tells tests of generated code which library to compile it with.
const LIBRARY: &str = "IRONORB_TEST_LIBRARY";

const END_TO_END: &str = "ironorb-tests::all";
pub(crate) const INTEROP: &str = "ironorb-interop::all";

/// What tests came to, and what went wrong.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) problems: Vec<String>,
}

impl Outcome {
    fn note<T>(&mut self, result: Result<T, String>) -> Option<T> {
        result.map_err(|why| self.problems.push(why)).ok()
    }

    pub(crate) fn count(&mut self, result: Result<Counts, String>) {
        let counts = self.note(result).unwrap_or_default();
        self.counts += counts;
    }

    fn add(&mut self, other: Outcome) {
        self.counts += other.counts;
        self.problems.extend(other.problems);
    }
}

/// Runs the gate, and prints what each step took.
pub(crate) fn run(extent: Extent) -> Result<(), String> {
    let steps = Steps::new();
    let ran = run_lanes(&steps, extent);
    println!("\n{}", steps.table());
    let outcome = ran?;
    println!("{}", outcome.counts);
    if outcome.problems.is_empty() { Ok(()) } else { Err(outcome.problems.join("; ")) }
}

fn run_lanes(steps: &Steps, extent: Extent) -> Result<Outcome, String> {
    if extent != Extent::Quick {
        packages::install_missing()?;
    }
    need_component("fmt", "rustfmt")?;
    need_component("clippy", "clippy")?;
    steps.run("formatting", cargo(&["fmt", "--all", "--check"]))?;
    let interop = Interop::begin(extent)?;
    thread::scope(|scope| {
        // Nearly all of its build is one crate, which one processor compiles while others idle. It has a folder of its own and so
        // waits for no lock of the other builds.
        let counted = || steps.run_aside("counts of a call", counts("check"));
        let counted = (extent != Extent::Quick).then(|| scope.spawn(counted));
        let mut outcome = build_and_test(steps, extent, &interop)?;
        if let Some(counted) = counted {
            outcome.note(counted.join().unwrap_or_else(|_| Err("the counts ended in a panic".to_owned())));
        }
        Ok(outcome)
    })
}

/// All but the counts.
fn build_and_test(steps: &Steps, extent: Extent, interop: &Interop) -> Result<Outcome, String> {
    let built = programs::build(steps, "programs and tests", everything())?;
    let tests = in_order(built, extent, interop)?;
    let (later, from_cargo) = channel();
    let mut outcome = Outcome::default();
    thread::scope(|scope| {
        let checks = scope.spawn(|| checks_lane(steps, extent, later));
        outcome.add(test_lane(steps, extent, tests, interop, from_cargo));
        match checks.join() {
            Ok(other) => outcome.add(other),
            Err(_) => outcome.problems.push("a step ended in a panic".to_owned()),
        }
    });
    Ok(outcome)
}

/// The command with its benchmarks, which tests run. It is built without them by default.
pub(crate) const WITH_BENCHMARKS: &str = "--features=ironorb-cli/bench";

/// All that there is to build. `--all-targets` would build libraries and programs without tests once more, as benchmarks
/// that they do not have.
pub(crate) const ALL_KINDS: [&str; 4] = ["--lib", "--bins", "--tests", "--examples"];

/// Programs of the whole workspace.
fn everything() -> Command {
    cargo(&[&["build", "--workspace", "--locked", WITH_BENCHMARKS], &ALL_KINDS[..]].concat())
}

/// A set of tests that is built with other features than all others.
struct Variant {
    name: &'static str,
    build: &'static [&'static str],
    /// What is run of it: programs, and for each the words of which one is in the names of its tests.
    run: &'static [(&'static str, &'static [&'static str])],
}

/// The feature `probes` builds crates once more, so no more is tested with it than what is about it. Run with `--all` only:
/// the gate's lints see that the libraries compile.
///
/// The command is among the packages of each variant although nothing of it is built: Cargo chooses the features of all
/// dependencies by the packages that it is given, and builds with the features that it has chosen for everything.
const PROBES: Variant = Variant {
    name: "tests of the probes",
    build: &[
        "test",
        "--no-run",
        "--locked",
        "--package=ironorb-giop",
        "--package=ironorb-bench",
        "--package=ironorb-cli",
        "--features=ironorb-bench/probes",
        WITH_BENCHMARKS,
        "--test=probe",
        "--test=probes",
        "--test=no_allocation",
        "--test=breakdown",
    ],
    run: &[
        ("ironorb-giop::probe", &[]),
        ("ironorb-bench::probes", &[]),
        ("ironorb-bench::no_allocation", &[]),
        ("ironorb-bench::breakdown", &[]),
    ],
};

/// One peer, in both directions and all versions of GIOP, with the contract's types left to the interpreter. The matrix is
/// about what users can do and not about how, so nothing of it is written down there. Run with `--all` only: tests without
/// another ORB compare interpreted with compiled marshalling to the octet.
const INTERPRETED: Variant = Variant {
    name: "interoperability of interpreted marshalling",
    build: &[
        "test",
        "--no-run",
        "--locked",
        "--package=ironorb-interop",
        "--package=ironorb-cli",
        "--features=ironorb-interop/interpreted",
        WITH_BENCHMARKS,
        "--test=all",
    ],
    run: &[(INTEROP, &["omniorb_client::", "omniorb_server::"])],
};

/// Run with `--all` only: the build of OpenTelemetry and its SDK takes long, and has Cargo build `ironorb` once more.
const OPENTELEMETRY: Variant = Variant {
    name: "traces of OpenTelemetry",
    build: &[
        "test",
        "--no-run",
        "--locked",
        "--package=ironorb-trace",
        "--package=ironorb-cli",
        WITH_OPENTELEMETRY,
        WITH_BENCHMARKS,
        "--test=opentelemetry",
    ],
    run: &[("ironorb-trace::opentelemetry", &[])],
};

/// What threads of lanes do in the programs that are shipped: the inlining of an optimizing compiler, and no assertions. Run with
/// `--all` only: Cargo builds `ironorb` and the crates of the tests once more.
const OPTIMIZED: Variant = Variant {
    name: "threads of lanes, optimized",
    build: &[
        "test",
        "--no-run",
        "--locked",
        "--profile=dist",
        "--package=ironorb-tests",
        "--package=ironorb-cli",
        WITH_BENCHMARKS,
        "--test=lane_threads",
        "--test=lane_memory",
    ],
    run: &[("ironorb-tests::lane_threads", &[]), ("ironorb-tests::lane_memory", &[])],
};

const WITH_OPENTELEMETRY: &str = "--features=ironorb-trace/opentelemetry-tests";

impl Variant {
    fn build(&self, steps: &Steps) -> Result<Vec<Program>, String> {
        let built = programs::build_aside(steps, &format!("{}: build", self.name), cargo(self.build))?;
        let chosen = self.run.iter().map(|(name, filters)| {
            let program = built.program(name).map_err(|why| format!("{}: {why}", self.name))?;
            Ok(program.clone().only(filters).knowing(BUILT, Path::new("yes")))
        });
        chosen.collect()
    }
}

/// Where programs with tests come from that the tests' lane runs when it is done with its own.
type Later = Sender<(&'static str, Vec<Program>)>;

/// Builds and checks what the tests do not wait for.
fn checks_lane(steps: &Steps, extent: Extent, later: Later) -> Outcome {
    let mut outcome = Outcome::default();
    if extent != Extent::Quick {
        // Before all else, because tests wait for these.
        outcome.note(steps.run_aside("peers of other ORBs", program("interop-peers")));
    }
    outcome.note(steps.run_aside("bounded fuzzing", bounded(FUZZ_INPUTS, 1)));
    let variants: &[Variant] = match extent {
        Extent::Quick | Extent::Changed => &[],
        Extent::All => &[PROBES, INTERPRETED, OPENTELEMETRY, OPTIMIZED],
    };
    for variant in variants {
        if let Some(programs) = outcome.note(variant.build(steps)) {
            // The other lane listens until this end is dropped.
            let _ = later.send((variant.name, programs));
        }
    }
    drop(later);
    let [lints @ .., documentation] = checks();
    for (name, command) in lints {
        outcome.note(steps.run_aside(name, command));
    }
    if extent == Extent::All {
        // Before the documentation of all crates, which is what is to be found afterwards.
        let mut probes = cargo(&["doc", "--quiet", "--no-deps", "--locked"]);
        probes.args(WITH_PROBES);
        outcome.note(steps.run_aside("documentation with probes", documenting(probes)));
        let mut probes = cargo(&["clippy", "--quiet", "--lib", "--locked"]);
        probes.args(WITH_PROBES).args(["--", "-D", "warnings"]);
        outcome.note(steps.run_aside("lints with probes", probes));
        let lints =
            ["clippy", "--quiet", "--package=ironorb-trace", "--all-targets", "--locked", WITH_OPENTELEMETRY];
        let lints = cargo(&[&lints[..], &["--", "-D", "warnings"]].concat());
        outcome.note(steps.run_aside("lints with OpenTelemetry", lints));
    }
    let (name, command) = documentation;
    outcome.note(steps.run_aside(name, command));
    let documented =
        steps.run_aside("tests in documentation", cargo(&["test", "--doc", "--workspace", "--locked"]));
    outcome.count(documented.and_then(|said| programs::counts_of_cargo(&said, &[])));
    outcome
}

/// Runs all tests, and then the models.
fn test_lane(
    steps: &Steps,
    extent: Extent,
    tests: Vec<Program>,
    interop: &Interop,
    later: Receiver<(&'static str, Vec<Program>)>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut run = |name: &str, programs: Vec<Program>| {
        let (counts, result) = programs::run(steps, name, programs);
        outcome.counts += counts;
        outcome.note(result).is_some()
    };
    let is_good = run("tests", tests);
    for (name, programs) in later {
        run(name, programs);
    }
    if extent != Extent::Quick {
        outcome.count(interop.settle(steps, is_good));
        outcome.note(steps.run("the matrix of docs/interop.md", interop.matrix("check")));
        // Here, because they have target folders of their own and wait for no lock of the other lane.
        outcome.add(with_all(extent, steps, "models of shared memory", "they take minutes", models::run));
        outcome.add(with_all(extent, steps, "planted regressions", "each takes a build", planted));
    }
    outcome
}

/// The programs with what each is to know, those first that take longest.
fn in_order(built: Built, extent: Extent, interop: &Interop) -> Result<Vec<Program>, String> {
    LONGEST.iter().try_for_each(|name| built.program(name).map(drop))?;
    let library = built.library.ok_or("Cargo has not told of the library ironorb")?;
    let mut programs = Vec::new();
    for program in built.programs {
        match program.name.as_str() {
            // These wait for each other's processes and connections most of the time.
            // It installs no packages.
            END_TO_END if extent == Extent::Quick => {
                programs.push(program.with(&["--test-threads=6", "--skip", NEEDS_ETCD]));
            }
            END_TO_END => programs.push(program.with(&["--test-threads=6"])),
            INTEROP if extent == Extent::Quick => {}
            INTEROP => programs.extend(interop.programs(&program)),
            _ => programs.push(program),
        }
    }
    let rank =
        |program: &Program| LONGEST.iter().position(|name| *name == program.name).unwrap_or(LONGEST.len());
    programs.sort_by_key(rank);
    let knowing = |program: Program| program.knowing(BUILT, Path::new("yes")).knowing(LIBRARY, &library);
    Ok(programs.into_iter().map(knowing).collect())
}

/// The tests that need a program of the system, beside those with other ORBs.
const NEEDS_ETCD: &str = "agent_etcd::";

/// What takes longest is begun first, so that nothing long is left at the end.
const LONGEST: [&str; 3] = [INTEROP, END_TO_END, "ironorb-tests::abuse"];

/// Lints and documentation. Clippy's check of a library also serves its documentation, which Cargo would else check
/// again with the plain compiler.
fn checks() -> [(&'static str, Command); 3] {
    let deny = ["--", "-D", "warnings"];
    // All packages are named, and a test, lest Cargo choose other features for their dependencies: only the command is checked
    // anew.
    let default_command =
        ["clippy", "--quiet", "--workspace", "--bin=ironorb", "--test=too_many", "--locked"];
    [
        (
            "lints",
            cargo(
                &[&["clippy", "--quiet", "--workspace", "--locked", WITH_BENCHMARKS], &ALL_KINDS[..], &deny]
                    .concat(),
            ),
        ),
        ("lints of the command without benchmarks", cargo(&[&default_command, &deny[..]].concat())),
        ("documentation", documenting(cargo(&["doc", "--quiet", "--workspace", "--no-deps", "--locked"]))),
    ]
}

/// The crates in which the feature makes a difference.
const WITH_PROBES: [&str; 3] = ["--package=ironorb-giop", "--package=ironorb", "--features=ironorb/probes"];

/// What `cargo clippy -- -D warnings` hands to its driver in this variable; with another value nothing is shared.
const CLIPPY_ARGUMENTS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

fn documenting(mut cargo: Command) -> Command {
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    if let Some(driver) = clippy_driver() {
        cargo.env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", CLIPPY_ARGUMENTS);
    }
    cargo
}

/// The program that `cargo clippy` has Cargo run instead of the compiler.
fn clippy_driver() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let driver = Path::new(String::from_utf8(output.stdout).ok()?.trim()).join("bin/clippy-driver");
    driver.exists().then_some(driver)
}

/// A program of ours, which has been built.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(target().join("debug").join(name));
    command.current_dir(root());
    command
}

/// Builds one program, with the dependencies' features that everything is built with: see [`PROBES`].
pub(crate) fn build_program(steps: &Steps, package: &str, name: &str) -> Result<(), String> {
    let build =
        ["build", "--locked", "--package=ironorb-cli", WITH_BENCHMARKS, "--package", package, "--bin", name];
    steps.run(&format!("{name}: build"), cargo(&build))
}

/// What a call costs, beside the committed table. In a build like that of the profile `dist`: that is what the table is of.
pub(crate) fn counts(mode: &str) -> Command {
    guard(&[mode, "guard/counts.txt"])
}

/// The guard, in the profile of what is measured.
pub(crate) fn guard(arguments: &[&str]) -> Command {
    let run = ["run", "--quiet", "--profile=counts", "--locked", "-p", "ironorb-guard", "--"];
    cargo(&[&run[..], arguments].concat())
}

/// The fuzz targets on inputs that a seed decides.
pub(crate) fn bounded(inputs: u64, seed: u64) -> Command {
    let mut run = program("bounded");
    run.args([inputs.to_string(), "--seed".to_owned(), seed.to_string()]);
    run
}

/// Runs a step if the gate runs all that it has.
fn with_all(
    extent: Extent,
    steps: &Steps,
    name: &str,
    why: &str,
    run: impl FnOnce(&Steps) -> Outcome,
) -> Outcome {
    if extent == Extent::All {
        return run(steps);
    }
    steps.leave_out(name, &format!("{why}; `--all` runs them"));
    Outcome { counts: Counts { skipped: 1, ..Counts::default() }, ..Outcome::default() }
}

/// Regressions take a build each. The gate's own tests check that they apply.
fn planted(steps: &Steps) -> Outcome {
    let mut outcome = Outcome::default();
    let (counts, noticed) = regressions::run(steps, &[]);
    outcome.counts += counts;
    outcome.note(noticed);
    outcome
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
