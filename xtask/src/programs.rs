//! Runs the tests that Cargo has built, several programs at a time, and sums up what they say.
//!
//! `cargo test` runs one program after another, and most of ours wait for other processes and for deadlines.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::steps::{self, Steps, Took};

/// A program with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// Package and target, such as `ironorb-tests::end_to_end`.
    pub(crate) name: String,
    /// The program's file.
    pub(crate) file: PathBuf,
    /// The package's folder, where its tests run.
    pub(crate) folder: PathBuf,
    /// What it is told on its command line.
    arguments: Vec<String>,
    /// Variables of its environment.
    environment: Vec<(&'static str, PathBuf)>,
}

impl Program {
    /// With more arguments.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Program {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// With a variable in its environment.
    pub(crate) fn knowing(mut self, variable: &'static str, value: &Path) -> Program {
        self.environment.push((variable, value.to_path_buf()));
        self
    }
}

/// What tests came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Ignored, or left out by the command line.
    pub(crate) skipped: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Builds with `cargo`, whose arguments say what, and gives the programs with tests that came of it. The step ends when
/// they are built.
pub(crate) fn build(steps: &Steps, name: &str, cargo: Command) -> Result<Vec<Program>, String> {
    build_by(steps, name, cargo)
}

/// Builds beside other steps, and gives way to them.
pub(crate) fn build_aside(steps: &Steps, name: &str, mut cargo: Command) -> Result<Vec<Program>, String> {
    cargo.arg("--quiet");
    build_by(steps, name, steps::giving_way(&cargo))
}

fn build_by(steps: &Steps, name: &str, mut cargo: Command) -> Result<Vec<Program>, String> {
    println!("== {name}");
    cargo.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped()).stdin(Stdio::null());
    let begun = Instant::now();
    let failed = |e| format!("{name}: Cargo cannot be run: {e}");
    let mut child = cargo.spawn().map_err(failed)?;
    let messages = child.stdout.take().map(std::io::read_to_string);
    let (status, processor) = steps::wait(&mut child).map_err(failed)?;
    steps.end(name, Took { wall: begun.elapsed(), processor }, status.success())?;
    let messages = messages.unwrap_or_else(|| Ok(String::new())).map_err(failed)?;
    Ok(messages.lines().filter_map(program_of).collect())
}

/// The program that a message of Cargo's tells of, if it has tests.
fn program_of(message: &str) -> Option<Program> {
    if !message.contains(r#""reason":"compiler-artifact""#) {
        return None;
    }
    let profile = message.split_once(r#""profile":{"#)?.1.split_once('}')?.0;
    if !profile.contains(r#""test":true"#) {
        return None;
    }
    let file = PathBuf::from(text_of(message, "executable")?);
    let manifest = PathBuf::from(text_of(message, "manifest_path")?);
    let folder = manifest.parent()?.to_path_buf();
    let target = message.split_once(r#""target":{"#)?.1;
    let name = format!("{}::{}", package_of(&text_of(message, "package_id")?), text_of(target, "name")?);
    Some(Program { name, file, folder, arguments: Vec::new(), environment: Vec::new() })
}

/// The first text of this name. Cargo writes no spaces; what it escapes occurs in no path of ours but `\\` and `\"`.
fn text_of(message: &str, name: &str) -> Option<String> {
    let (_, rest) = message.split_once(&format!(r#""{name}":""#))?;
    let mut text = String::new();
    let mut characters = rest.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

/// `path+file:///x/crates/name#0.1.0`, or `…/folder#name@0.1.0` where the folder is called otherwise.
fn package_of(id: &str) -> String {
    let (path, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => path.rsplit('/').next().unwrap_or(path).to_owned(),
    }
}

/// How many programs run at once: one more than there are processors, since most of them wait most of the time.
fn at_once() -> usize {
    thread::available_parallelism().map_or(2, usize::from) + 1
}

/// Runs the programs, those first that stand first, and gives the sum. What a program says is printed when it fails.
pub(crate) fn run(steps: &Steps, name: &str, programs: Vec<Program>) -> (Counts, Result<(), String>) {
    println!("== {name}: {} programs", programs.len());
    let begun = Instant::now();
    let queue = Mutex::new(VecDeque::from(programs));
    let sum = Mutex::new((Counts::default(), Took::default()));
    let work = || {
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        while let Some(program) = next() {
            let (counts, took) = run_one(&program);
            let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
            sum.0 += counts;
            sum.1.processor += took.processor;
        }
    };
    thread::scope(|scope| (0..at_once()).for_each(|_| drop(scope.spawn(work))));
    let (counts, mut took) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    took.wall = begun.elapsed();
    (counts, steps.end(name, took, counts.failed == 0))
}

fn run_one(program: &Program) -> (Counts, Took) {
    let mut command = Command::new(&program.file);
    command.args(&program.arguments).current_dir(&program.folder);
    command.envs(program.environment.iter().map(|(name, value)| (name, value)));
    let begun = Instant::now();
    match steps::output(&mut command) {
        Ok((output, processor)) => {
            let took = Took { wall: begun.elapsed(), processor };
            let counts = counts_of(&output);
            let (wall, processor) = (took.wall.as_secs_f32(), processor.as_secs_f32());
            println!("{}: {counts} ({wall:.1} s, {processor:.1} s of processor time)", program.name);
            if counts.failed > 0 {
                print!("{}", String::from_utf8_lossy(&output.stdout));
                print!("{}", String::from_utf8_lossy(&output.stderr));
                println!("{}: FAILED ({})", program.name, output.status);
            }
            (counts, took)
        }
        Err(e) => {
            println!("{}: FAILED, it cannot be run: {e}", program.name);
            (Counts { failed: 1, ..Counts::default() }, Took::default())
        }
    }
}

/// A program without a harness is one test.
fn counts_of(output: &Output) -> Counts {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut counts = counts_in(&text).unwrap_or(Counts { passed: 1, ..Counts::default() });
    if !output.status.success() && counts.failed == 0 {
        // It ended before it could tell, or has no harness.
        counts = Counts { failed: 1, passed: counts.passed.saturating_sub(1), ..counts };
    }
    counts
}

/// The sum of all summaries of a harness in a text, if there is one.
pub(crate) fn counts_in(text: &str) -> Option<Counts> {
    let mut sum = None;
    for line in text.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        let numbers: Vec<usize> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // passed, failed, ignored, measured, filtered out
        if let [passed, failed, ignored, _, filtered, ..] = numbers[..] {
            *sum.get_or_insert_with(Counts::default) +=
                Counts { passed, failed, skipped: ignored + filtered };
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"reason":"compiler-artifact","package_id":"path+file:///x/tests#ironorb-tests@0.1.0","manifest_path":"/x/tests/Cargo.toml","target":{"kind":["test"],"crate_types":["bin"],"name":"leaks","src_path":"/x/tests/tests/leaks.rs","edition":"2024","doc":false,"doctest":false,"test":true},"profile":{"opt_level":"0","debuginfo":"line-tables-only","debug_assertions":true,"overflow_checks":true,"test":true},"features":[],"filenames":["/x/target/debug/deps/leaks-1"],"executable":"/x/target/debug/deps/leaks-1","fresh":true}"#;

    #[test]
    fn a_program_with_tests_is_known_by_cargo_s_message() {
        let program = program_of(MESSAGE).expect("it has tests");
        assert_eq!(program.name, "ironorb-tests::leaks");
        assert_eq!(program.file, Path::new("/x/target/debug/deps/leaks-1"));
        assert_eq!(program.folder, Path::new("/x/tests"));
        let plain = MESSAGE
            .replace(r#""overflow_checks":true,"test":true"#, r#""overflow_checks":true,"test":false"#);
        assert_eq!(program_of(&plain), None, "a program of users has none");
        assert_eq!(package_of("path+file:///x/crates/ironorb-giop#0.1.0"), "ironorb-giop");
    }

    #[test]
    fn summaries_are_added_up() {
        let text = "test a ... ok\n\
            test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n\
            test result: FAILED. 7 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.01s\n";
        assert_eq!(counts_in(text), Some(Counts { passed: 12, failed: 3, skipped: 3 }));
        assert_eq!(counts_in("no harness"), None);
    }

    #[test]
    fn a_program_that_dies_has_failed() {
        let run = |script: &str| Command::new("sh").args(["-c", script]).output().expect("there is a shell");
        let one = Counts { passed: 1, ..Counts::default() };
        assert_eq!(counts_of(&run("true")), one);
        assert_eq!(counts_of(&run("false")), Counts { failed: 1, ..Counts::default() });
        let summary = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";
        assert_eq!(counts_of(&run(summary)).passed, 2);
        assert_eq!(counts_of(&run(&format!("{summary}; kill -9 $$"))).failed, 1);
    }
}
