//! Runs the tests that Cargo has built, several programs at a time, and sums up what they say.
//!
//! `cargo test` runs one program after another, and most of ours wait for other processes and for deadlines.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::steps::{self, Ended, Steps, Took};

/// A program with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// Package and target, such as `ironorb-tests::end_to_end`.
    pub(crate) name: String,
    /// The program's file.
    pub(crate) file: PathBuf,
    /// The package's folder, where its tests run.
    pub(crate) folder: PathBuf,
    /// Whether it has the harness that lists tests and sums them up, or a `main` of its own.
    has_harness: bool,
    /// Its command-line arguments.
    arguments: Vec<String>,
    /// Of these arguments, those that choose tests. Each must choose some.
    filters: Vec<String>,
    /// Variables of its environment.
    environment: Vec<(&'static str, PathBuf)>,
}

impl Program {
    /// With more arguments.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Program {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// With the tests alone whose names have one of the filters in them.
    pub(crate) fn only(mut self, filters: &[&str]) -> Program {
        self.filters.extend(filters.iter().map(|filter| (*filter).to_owned()));
        self.with(filters)
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
    /// Ignored. What the command line leaves out is the matter of another run, so it does not count.
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

/// What Cargo has built.
#[derive(Debug, Default)]
pub(crate) struct Built {
    /// The programs with tests.
    pub(crate) programs: Vec<Program>,
    /// What a program that uses the library `ironorb` is compiled with.
    pub(crate) library: Option<PathBuf>,
}

impl Built {
    /// The program of this name.
    pub(crate) fn program(&self, name: &str) -> Result<&Program, String> {
        let found = self.programs.iter().find(|program| program.name == name);
        found.ok_or_else(|| format!("no program with tests {name} has been built"))
    }
}

/// Builds with `cargo`, whose arguments say what, and gives what came of it. The step ends when all is built.
pub(crate) fn build(steps: &Steps, name: &str, cargo: Command) -> Result<Built, String> {
    build_by(steps, name, cargo)
}

/// Builds beside other steps, and gives way to them.
pub(crate) fn build_aside(steps: &Steps, name: &str, mut cargo: Command) -> Result<Built, String> {
    cargo.arg("--quiet");
    build_by(steps, name, steps::giving_way(&cargo))
}

fn build_by(steps: &Steps, name: &str, cargo: Command) -> Result<Built, String> {
    println!("== {name}");
    let (built, took, is_good) = run_cargo(cargo).map_err(|e| format!("{name}: {e}"))?;
    steps.end(name, took, is_good)?;
    Ok(built)
}

/// Builds as a part of a step, and gives way to others. Gives the processor time too.
pub(crate) fn build_within_step(mut cargo: Command) -> Result<(Built, Duration), String> {
    cargo.arg("--quiet");
    let (built, took, is_good) = run_cargo(steps::giving_way(&cargo))?;
    if is_good { Ok((built, took.processor)) } else { Err("it does not compile".to_owned()) }
}

/// Gives what Cargo has built, what that took, and whether it is all.
fn run_cargo(mut cargo: Command) -> Result<(Built, Took, bool), String> {
    cargo.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped()).stdin(Stdio::null());
    let begun = Instant::now();
    let failed = |e| format!("Cargo cannot be run: {e}");
    let mut child = cargo.spawn().map_err(failed)?;
    let messages = child.stdout.take().map(std::io::read_to_string);
    let (status, processor) = steps::wait(&mut child, None).map_err(failed)?;
    let messages = messages.unwrap_or_else(|| Ok(String::new())).map_err(failed)?;
    let built = Built {
        programs: messages.lines().filter_map(program_of).collect(),
        library: messages.lines().find_map(library_of),
    };
    Ok((built, Took { wall: begun.elapsed(), processor }, status.success()))
}

/// The metadata of the library `ironorb`, if a message of Cargo's tells of it. Its name has a hash in it, so no other build
/// overwrites it.
fn library_of(message: &str) -> Option<PathBuf> {
    let is_artifact = message.contains(r#""reason":"compiler-artifact""#);
    let is_library = message.contains(r#""target":{"kind":["lib"]"#) && message.contains(r#""test":false}"#);
    if !is_artifact || !is_library || package_of(&text_of(message, "package_id")?) != "ironorb" {
        return None;
    }
    let files = message.split_once(r#""filenames":["#)?.1.split_once(']')?.0;
    let mut files = files.split(',').map(|file| PathBuf::from(file.trim_matches('"')));
    files.find(|file| file.extension().is_some_and(|extension| extension == "rmeta"))
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
    let target = text_of(target, "name")?;
    let name = format!("{}::{target}", package_of(&text_of(message, "package_id")?));
    let has_harness = !fs::read_to_string(manifest).is_ok_and(|manifest| has_own_main(&manifest, &target));
    let (arguments, filters, environment) = Default::default();
    Some(Program { name, file, folder, has_harness, arguments, filters, environment })
}

/// Whether a manifest says of a program with tests that it has a `main` of its own. Cargo's messages do not.
fn has_own_main(manifest: &str, target: &str) -> bool {
    let mut sections = manifest.split("\n[").filter(|section| section.starts_with("[test]]"));
    let name = format!("name = \"{target}\"");
    sections.any(|section| {
        section.lines().any(|line| line == name) && section.lines().any(|line| line == "harness = false")
    })
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

/// The longest that one program may take, lest one that hangs hang the gate. None takes a third of it on two cores.
const PROGRAM_MAX: Duration = Duration::from_secs(15 * 60);

fn run_one(program: &Program) -> (Counts, Took) {
    let begun = Instant::now();
    let ended = program.listed().and_then(|listed| Ok((listed, program.run_with(&[], PROGRAM_MAX)?)));
    match ended {
        Ok((listed, ended)) => {
            let took = Took { wall: begun.elapsed(), processor: ended.processor };
            let (counts, complaint) = judge(listed, &ended);
            let (wall, processor) = (took.wall.as_secs_f32(), took.processor.as_secs_f32());
            println!("{}: {counts} ({wall:.1} s, {processor:.1} s of processor time)", program.name);
            if counts.failed > 0 {
                print!("{}", String::from_utf8_lossy(&ended.output.stdout));
                print!("{}", String::from_utf8_lossy(&ended.output.stderr));
                println!("{}: FAILED, {}", program.name, complaint.unwrap_or_default());
            }
            (counts, took)
        }
        Err(why) => {
            println!("{}: FAILED, {why}", program.name);
            (Counts { failed: 1, ..Counts::default() }, Took::default())
        }
    }
}

impl Program {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.file);
        command.args(&self.arguments).current_dir(&self.folder);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// How many tests the program is to run, where a harness can tell.
    fn listed(&self) -> Result<Option<usize>, String> {
        if !self.has_harness {
            return Ok(None);
        }
        let names = self.names()?;
        match self.filters.iter().find(|filter| !names.iter().any(|name| name.contains(filter.as_str()))) {
            Some(filter) => Err(format!("no test has {filter:?} in its name")),
            None => Ok(Some(names.len())),
        }
    }

    /// The names of the tests that the program is to run. Its harness tells them; a `main` of its own does not.
    pub(crate) fn names(&self) -> Result<Vec<String>, String> {
        if !self.has_harness {
            return Err("it has a `main` of its own, so its tests have no names".to_owned());
        }
        let ended = self.run_with(&["--list"], PROGRAM_MAX)?;
        let text = String::from_utf8_lossy(&ended.output.stdout);
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// Runs the program with more arguments to its end, or for as long as it may take.
    pub(crate) fn run_with(&self, arguments: &[&str], limit: Duration) -> Result<Ended, String> {
        let ended = steps::output(self.command().args(arguments), limit);
        ended.map_err(|e| format!("it cannot be run: {e}"))
    }
}

/// How a program ended. It counts as failed also when its results cannot be read.
fn judge(listed: Option<usize>, ended: &Ended) -> (Counts, Option<String>) {
    let status = ended.output.status;
    let counts = counts_in(&String::from_utf8_lossy(&ended.output.stdout));
    let complaint = if let Some(why) = &ended.was_killed {
        Some(format!("it was killed: {why}"))
    } else if !status.success() {
        Some(status.to_string())
    } else {
        listed.and_then(|listed| match counts {
            None => Some("it ended before it could sum up its tests".to_owned()),
            Some(Counts { passed, failed, skipped }) if passed + failed + skipped != listed => {
                Some(format!("of {listed} tests it ran {}", passed + failed + skipped))
            }
            Some(_) => None,
        })
    };
    let mut counts = match (listed, counts) {
        (Some(_), Some(counts)) => counts,
        (Some(_), None) => Counts::default(),
        // A program without a harness is one test.
        (None, _) => Counts { passed: usize::from(complaint.is_none()), ..Counts::default() },
    };
    if complaint.is_some() {
        counts.failed = counts.failed.max(1);
    }
    (counts, complaint)
}

/// What a run of `cargo test` came to, of which these words choose the tests. No test, in all or for a word, is a failure.
pub(crate) fn counts_of_cargo(said: &str, filters: &[&str]) -> Result<Counts, String> {
    let counts = counts_in(said).filter(|counts| counts.passed > 0).ok_or("no test has run")?;
    let names: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("test ")).collect();
    match filters.iter().find(|filter| !names.iter().any(|name| name.contains(**filter))) {
        Some(filter) => Err(format!("no test that ran has {filter:?} in its name")),
        None => Ok(counts),
    }
}

/// The sum of all summaries of a harness in a text, if there is one.
pub(crate) fn counts_in(text: &str) -> Option<Counts> {
    let mut sum = None;
    for line in text.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        let numbers: Vec<usize> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // passed, failed, ignored, measured, filtered out
        if let [passed, failed, skipped, ..] = numbers[..] {
            *sum.get_or_insert_with(Counts::default) += Counts { passed, failed, skipped };
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
        assert_eq!(counts_in(text), Some(Counts { passed: 12, failed: 3, skipped: 1 }));
        assert_eq!(counts_in("no harness"), None);
    }

    /// A program in the words of the shell: what it lists, and what it does.
    fn run_of(has_harness: bool, filters: &[&str], lists: &str, does: &str) -> Counts {
        let script = format!("case $* in *--list*) {lists};; *) {does};; esac");
        let program = Program {
            name: "a::b".to_owned(),
            file: PathBuf::from("sh"),
            folder: PathBuf::from("."),
            has_harness,
            arguments: vec!["-c".to_owned(), script, "program".to_owned()],
            filters: Vec::new(),
            environment: Vec::new(),
        };
        run_one(&program.only(filters)).0
    }

    const LIST: &str = "echo 'x::one: test'; echo 'x::two: test'";
    const SUMMARY: &str = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";

    #[test]
    fn a_program_that_ends_without_its_summary_has_failed() {
        let run = |does: &str| run_of(true, &[], LIST, does);
        assert_eq!(run(SUMMARY), Counts { passed: 2, ..Counts::default() });
        assert_eq!(run("exit 0"), Counts { failed: 1, ..Counts::default() });
        assert_eq!(run("exit 1"), Counts { failed: 1, ..Counts::default() });
        assert_eq!(run(&format!("{SUMMARY}; kill -9 $$")).failed, 1);
        assert_eq!(run(&SUMMARY.replace('2', "1")).failed, 1, "one of two tests");
    }

    #[test]
    fn a_program_with_a_main_of_its_own_is_one_test() {
        let run = |does: &str| run_of(false, &[], "exit 1", does);
        assert_eq!(run("exit 0"), Counts { passed: 1, ..Counts::default() });
        assert_eq!(run("exit 1"), Counts { failed: 1, ..Counts::default() });
        let manifest =
            "[package]\nname = \"b\"\n\n[[test]]\nname = \"a\"\n\n[[test]]\nname = \"b\"\nharness = false\n";
        assert!(has_own_main(manifest, "b") && !has_own_main(manifest, "a") && !has_own_main(manifest, "c"));
    }

    #[test]
    fn a_filter_that_chooses_no_test_is_a_failure() {
        assert_eq!(run_of(true, &["one", "x::"], LIST, SUMMARY).failed, 0);
        assert_eq!(run_of(true, &["one", "three"], LIST, SUMMARY).failed, 1);
        let said = "test x::one ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out\n";
        assert_eq!(counts_of_cargo(said, &["x::"]), Ok(Counts { passed: 1, ..Counts::default() }));
        assert!(counts_of_cargo(said, &["two"]).is_err());
        assert!(counts_of_cargo(&said.replace("1 passed", "0 passed"), &[]).is_err());
        assert!(counts_of_cargo("nothing", &[]).is_err());
    }

    #[test]
    fn the_library_is_known_by_cargo_s_message() {
        let message = MESSAGE
            .replace("path+file:///x/tests#ironorb-tests@0.1.0", "path+file:///x/crates/ironorb#0.1.0")
            .replace(r#""kind":["test"]"#, r#""kind":["lib"]"#)
            .replace(r#""overflow_checks":true,"test":true"#, r#""overflow_checks":true,"test":false"#)
            .replace(
                r#"["/x/target/debug/deps/leaks-1"]"#,
                r#"["/x/libironorb.rlib","/x/deps/libironorb-1.rmeta"]"#,
            );
        assert_eq!(library_of(&message).as_deref(), Some(Path::new("/x/deps/libironorb-1.rmeta")));
        assert_eq!(library_of(&message.replace("crates/ironorb#", "crates/ironorb-giop#")), None);
        assert_eq!(library_of(&message.replace(r#""test":false"#, r#""test":true"#)), None);
    }
}
