//! A process a seed: the test starts its own program again for each, and again to shorten what fails.
//!
//! So a run cannot see what another has left in the memory of the process, threads of killed hosts end with it, and runs
//! use all processors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use ironorb_model::record::pcapng::{About, Capture, SEGMENT_OCTETS};

use crate::calls;
use crate::faults::Planned;
use crate::sim::{Sim, said_by};
use crate::watchdog;
use crate::world::State;

/// What simulations of this crate are, in all that they write.
const LEVEL: &str = "L2";

/// The seeds of a test that says no number.
pub const SEEDS: u64 = 20;

/// Runs the seeds from this one on: `17`, or `17..20`. For people: repeats what a failed test has named.
const SEED: &str = "IRONORB_SIM_SEED";
/// As many seeds for each test, whatever it says: `10000`, or `1000..2000`.
const SEED_COUNT: &str = "IRONORB_SIM_SEEDS";
/// With one seed: a file for each step and all octets sent; and one for all that was sent, as Wireshark reads it.
const TRACE: &str = "IRONORB_SIM_TRACE";
const PCAPNG: &str = "IRONORB_SIM_PCAPNG";
/// The commit of what is tested, for these files.
const COMMIT: &str = "IRONORB_SIM_COMMIT";
/// The numbers of faults that runs leave out: `0,2`.
const LEFT_OUT: &str = "IRONORB_SIM_LEFT_OUT";
/// For a child: its test and its seed, and where its report goes.
const CHILD: &str = "IRONORB_SIM_CHILD";
const REPORT: &str = "IRONORB_SIM_REPORT";

/// Runs a test: what `#[ironorb_sim::test]` calls.
///
/// # Panics
/// If the test fails with one of its seeds. The message has the seed, the shortest script of faults found, and what the
/// run printed.
#[doc(hidden)]
pub fn run(name: &str, seeds: u64, body: fn(&mut Sim)) {
    // The harness names tests without their crate.
    let name = name.split_once("::").map_or(name, |(_, name)| name);
    match env::var(CHILD) {
        Ok(child) if child.split_once(' ').is_some_and(|(test, _)| test == name) => {
            let seed = child.split_once(' ').and_then(|(_, seed)| seed.parse().ok());
            be_child(name, seed.expect("the parent passes a seed"), body);
        }
        _ => run_seeds(name, chosen(seeds)),
    }
}

fn chosen(seeds: u64) -> Range<u64> {
    let number = |text: &str| -> u64 {
        text.parse()
            .unwrap_or_else(|_| panic!("{SEED} and {SEED_COUNT} are numbers, as 17, or 17..20: not `{text}`"))
    };
    let range = |text: &str| text.split_once("..").map(|(first, end)| number(first)..number(end));
    let chosen = match (env::var(SEED), env::var(SEED_COUNT)) {
        (Ok(text), _) => range(&text).unwrap_or_else(|| number(&text)..number(&text) + 1),
        (_, Ok(text)) => range(&text).unwrap_or_else(|| 0..number(&text)),
        _ => 0..seeds,
    };
    assert!(
        !chosen.is_empty(),
        "{SEED} and {SEED_COUNT} choose at least one seed, as 17..20: not {chosen:?}"
    );
    chosen
}

/// The faults that are left out before any is left out to shorten a failure.
fn given_left_out() -> Vec<usize> {
    let text = env::var(LEFT_OUT).unwrap_or_default();
    let number = |text: &str| {
        text.parse().unwrap_or_else(|_| panic!("{LEFT_OUT} has numbers of faults, as 0,2: not `{text}`"))
    };
    text.split(',').filter(|text| !text.is_empty()).map(number).collect()
}

/// What a run has come to.
struct Outcome {
    has_passed: bool,
    report: Report,
    /// How the process has ended.
    status: String,
    output: String,
}

/// What a child writes down.
#[derive(Debug, Default)]
struct Report {
    /// The faults of the seed, by number.
    plan: BTreeMap<usize, String>,
    digest: String,
    /// The first line of the failure. One that ends the process by itself is not written down.
    failure: String,
}

impl Outcome {
    /// What tells a failure from others: what it says, without what differs from run to run.
    fn failure(&self) -> String {
        match &*self.report.failure {
            "" => self.status.clone(),
            said => without_numbers(said),
        }
    }
}

/// A text without its numbers and their units, and without what lists in it have.
fn without_numbers(text: &str) -> String {
    let (mut depth, mut is_number, mut last) = (0_u32, false, ' ');
    let mut rest = String::new();
    for character in text.chars() {
        let begins = character.is_ascii_digit() && !last.is_alphanumeric() && last != '_';
        is_number = begins || is_number && (character.is_alphanumeric() || character == '.');
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            other if depth == 0 && !is_number => rest.push(other),
            _ => {}
        }
        last = character;
    }
    rest
}

fn run_seeds(name: &str, seeds: Range<u64>) {
    let next = AtomicU64::new(seeds.start);
    let left_out = given_left_out();
    let failed: Mutex<BTreeMap<u64, Outcome>> = Mutex::default();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while failed.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let outcome = run_child(name, seed, &left_out);
                    if env::var_os(SEED).is_some() {
                        eprint!("seed {seed}, digest {}\n{}", outcome.report.digest, outcome.output);
                    }
                    if !outcome.has_passed {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, outcome);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((seed, outcome)) = failed.into_iter().next() {
        panic!("{}", explained(name, seed, left_out, outcome));
    }
}

/// What people are told of a seed that fails, of which these faults were left out from the beginning: what the run has printed,
/// and then the shortest script.
fn explained(name: &str, seed: u64, left_out: Vec<usize>, outcome: Outcome) -> String {
    let run = |left_out: &[usize]| run_child(name, seed, left_out);
    let left_out = shortened(left_out, &outcome, run, SHORTENING_MAX);
    let Outcome { report: Report { plan, .. }, mut output, .. } = outcome;
    let mut repeat = format!("{SEED}={seed}");
    if !left_out.is_empty() {
        let _ = write!(repeat, " {LEFT_OUT}={}", list(&left_out));
    }
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    let mut text = format!(
        "the test fails with seed {seed} (level L2). Repeat it: {repeat} cargo test {name}\n{output}"
    );
    let needed: Vec<_> = plan.iter().filter(|(number, _)| !left_out.contains(number)).collect();
    if !plan.is_empty() {
        let _ = writeln!(text, "{} of {} faults are needed:", needed.len(), plan.len());
        for (_, fault) in needed {
            let _ = writeln!(text, "  {fault}");
        }
    }
    text
}

fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(",")
}

/// Leaves out as many faults as the same failure can do without: halves first, then quarters, down to single ones. Gives all
/// that are left out, those that were so from the beginning too.
fn shortened(
    mut left_out: Vec<usize>,
    first: &Outcome,
    run: impl Fn(&[usize]) -> Outcome,
    time_max: Duration,
) -> Vec<usize> {
    let begun = Instant::now();
    let mut kept: Vec<usize> =
        first.report.plan.keys().copied().filter(|number| !left_out.contains(number)).collect();
    let mut width = kept.len();
    let mut runs = 0;
    let may_go_on = |runs| runs < SHORTENING_RUNS_MAX && begun.elapsed() < time_max;
    while width > 0 && may_go_on(runs) {
        let mut has_shrunk = false;
        let mut at = 0;
        while at < kept.len() && may_go_on(runs) {
            let tried: Vec<usize> = kept[at..kept.len().min(at + width)].to_vec();
            let without: Vec<usize> = left_out.iter().chain(&tried).copied().collect();
            let again = run(&without);
            runs += 1;
            if again.has_passed || again.failure() != first.failure() {
                at += width;
            } else {
                kept.retain(|number| !tried.contains(number));
                (left_out, has_shrunk) = (without, true);
            }
        }
        if !has_shrunk || width == 1 {
            width /= 2;
        }
        width = width.min(kept.len());
    }
    left_out.sort_unstable();
    left_out
}

/// A failure is shortened by so many runs at most, of which none begins after so long.
const SHORTENING_RUNS_MAX: u32 = 200;
const SHORTENING_MAX: Duration = Duration::from_secs(60);

fn run_child(name: &str, seed: u64, left_out: &[usize]) -> Outcome {
    static CHILDREN: AtomicU64 = AtomicU64::new(0);
    let number = CHILDREN.fetch_add(1, Ordering::Relaxed);
    let report = env::temp_dir().join(format!("ironorb-sim-{}-{number}", process::id()));
    let program = env::current_exe().expect("the program's own path");
    let output = Command::new(program)
        .args(["--exact", name, "--include-ignored", "--nocapture", "--test-threads=1", "--quiet"])
        .env(CHILD, format!("{name} {seed}"))
        .env(REPORT, &report)
        .env(LEFT_OUT, list(left_out))
        .stdin(Stdio::null())
        .output()
        .expect("the test's own program starts");
    let told = Report::read(&fs::read_to_string(&report).unwrap_or_default());
    let outcome = Outcome {
        // A child that says nothing has run nothing.
        has_passed: output.status.success() && !told.digest.is_empty(),
        report: told,
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    let _ = fs::remove_file(&report); // a temporary file more is no failure
    outcome
}

impl Report {
    fn read(text: &str) -> Report {
        let mut report = Report::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("digest", digest)) => report.digest = digest.to_owned(),
                Some(("failure", failure)) => report.failure = failure.to_owned(),
                Some((number, fault)) => {
                    number.parse().map(|number| report.plan.insert(number, fault.to_owned())).ok();
                }
                None => {}
            }
        }
        report
    }
}

static REPORT_PATH: OnceLock<PathBuf> = OnceLock::new();
static REPORT_TEXT: Mutex<String> = Mutex::new(String::new());

/// Writes down what faults there are.
pub(crate) fn note_plan(planned: &[Planned]) {
    let mut text = String::new();
    for fault in planned {
        let _ = writeln!(text, "{} {fault}", fault.number);
    }
    write_report(&text);
}

/// Writes down why the run fails.
pub(crate) fn note_failure(failure: &str) {
    if let Some(line) = failure.lines().next() {
        write_report(&format!("failure {line}\n"));
    }
}

fn write_report(more: &str) {
    let mut text = REPORT_TEXT.lock().unwrap_or_else(PoisonError::into_inner);
    text.push_str(more);
    if let Some(path) = REPORT_PATH.get() {
        let _ = fs::write(path, &*text); // without a report the parent shows less
    }
}

/// Runs one seed of a test in this process, and ends it.
fn be_child(name: &str, seed: u64, body: fn(&mut Sim)) -> ! {
    if let Ok(path) = env::var(REPORT) {
        REPORT_PATH.get_or_init(|| path.into());
    }
    let left_out = given_left_out();
    let commit = env::var(COMMIT).unwrap_or_default();
    let about = About { level: LEVEL, name, seed, commit: &commit };
    be_simulation(&about, left_out, move |sim| {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            body(sim);
            // The body may have waited by other means than those of the simulation, which tell of it.
            sim.fail_if_failed();
        }));
        let digest = sim.digest();
        let counts = sim.counts();
        write_report(&format!("digest {digest:016x} {counts:?}\n"));
        if let Err(panic) = &outcome {
            note_failure(&said_by(&**panic));
        }
        i32::from(outcome.is_err()) * FAILED
    })
}

/// Makes this process a simulation, for programs that are no tests: `body` runs in it as a test would, and the process ends
/// with the status that it returns. `name` is what captures call the simulation, and `commit` that of its sources, empty if
/// none is known. Nothing else of the process goes on: other threads end with it.
///
/// Of the variables for tests, those that ask for records have their effect.
pub fn simulate(
    name: &str,
    commit: &str,
    seed: u64,
    body: impl FnOnce(&mut Sim) -> i32 + Send + 'static,
) -> ! {
    let about = About { level: LEVEL, name, seed, commit };
    be_simulation(&about, Vec::new(), move |sim| {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let status = body(sim);
            sim.fail_if_failed();
            status
        }));
        outcome.unwrap_or(FAILED)
    })
}

fn be_simulation(
    about: &About<'_>,
    left_out: Vec<usize>,
    body: impl FnOnce(&mut Sim) -> i32 + Send + 'static,
) -> ! {
    watchdog::begin();
    let seed = about.seed;
    let state = recording(State::new(seed), about);
    // A thread of its own: nothing that has been left in this one counts.
    let run = move || {
        calls::begin(state);
        let status = body(&mut Sim::new(seed, left_out));
        write_records();
        calls::end_process(status);
    };
    let thread = thread::Builder::new().name("test".to_owned()).stack_size(8 << 20).spawn(run);
    let _ = thread.expect("the system makes no more threads").join();
    process::exit(FAILED)
}

/// Has a run keep what the variables ask for.
fn recording(mut state: State, about: &About<'_>) -> State {
    let About { level, name, seed, commit } = about;
    state.trace =
        env::var_os(TRACE).map(|_| format!("level {level}, {name}, seed {seed}, commit {commit}\n"));
    let begin = |_| Capture::begin(Vec::new(), about, SEGMENT_OCTETS);
    state.capture = env::var_os(PCAPNG).and_then(|path| begin(path).ok());
    state
}

/// Writes what the run has kept.
fn write_records() {
    let (trace, mut capture) = calls::inside(|state| (state.trace.take(), state.capture.take()));
    if let Some(capture) = &mut capture {
        let names = calls::inside(|state| state.names_of_hosts());
        for (number, name) in names {
            let _ = capture.host(number, &name); // memory takes all
        }
    }
    let write = |variable, octets: &[u8]| {
        if let Some(path) = env::var_os(variable)
            && let Err(e) = fs::write(&path, octets)
        {
            eprintln!("{}: {e}", path.display());
        }
    };
    if let Some(trace) = trace {
        write(TRACE, trace.as_bytes());
    }
    if let Some(Ok(octets)) = capture.map(Capture::end) {
        write(PCAPNG, &octets);
    }
}

/// As the harness ends when a test has failed.
pub(crate) const FAILED: i32 = 101;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn failed(failure: &str) -> Outcome {
        let plan = (0..8).map(|number| (number, format!("fault {number}"))).collect();
        let report = Report { plan, digest: "1".to_owned(), failure: failure.to_owned() };
        Outcome { has_passed: false, report, status: "exit status: 101".to_owned(), output: String::new() }
    }

    /// One of two faults is another failure, and without both there is none.
    fn run(left_out: &[usize]) -> Outcome {
        let said = format!("both fail with {} faults: [{left_out:?}]", 8 - left_out.len());
        match (left_out.contains(&2), left_out.contains(&5)) {
            (false, false) => failed(&said),
            (true, true) => Outcome { has_passed: true, ..failed("") },
            _ => failed("one fails"),
        }
    }

    #[test]
    fn a_failure_is_shortened_to_no_other_one() {
        let left_out = shortened(Vec::new(), &run(&[]), run, SHORTENING_MAX);
        assert_eq!(left_out, [0, 1, 3, 4, 6, 7]);
        let runs = Cell::new(0);
        let counted = |left_out: &[usize]| {
            runs.set(runs.get() + 1);
            assert!(left_out.contains(&7), "what a person leaves out is left out always");
            run(left_out)
        };
        assert_eq!(shortened(vec![7, 0], &run(&[7, 0]), counted, SHORTENING_MAX), [0, 1, 3, 4, 6, 7]);
        assert!(runs.get() < 20, "{runs:?}");
    }

    #[test]
    fn shortening_ends_when_its_time_is_over() {
        let never = |_: &[usize]| -> Outcome { panic!("its time is over") };
        assert_eq!(shortened(vec![3], &run(&[3]), never, Duration::ZERO), [3]);
    }

    #[test]
    fn numbers_and_lists_do_not_tell_failures_apart() {
        let ours = "the count of server2 went back after 1.5s: [1, 2]";
        assert_eq!(without_numbers(ours), "the count of server2 went back after : ");
        assert_eq!(without_numbers(ours), without_numbers(&ours.replace("1.5s: [1", "150ms: [3, 4")));
        assert_ne!(without_numbers("kind: TimedOut"), without_numbers("kind: ConnectionReset"));
    }
}
