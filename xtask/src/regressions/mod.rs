//! Regressions that are planted to see whether the tests notice them.
//!
//! Each patch in `tests/regressions` makes the product worse, and names tests that must then fail. A test that a patch names
//! must pass without it, and must itself fail with it: what does not compile or does not run proves nothing.

mod copy;
mod patch;

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::programs::{self, Counts, Program};
use crate::steps::{Ended, Killed, Steps, Took};
use crate::{INCREMENTAL, cargo, root, target};
use copy::Copy;
use patch::{Named, Regression, TestProgram};

/// The longest that one test may take. A test that waits for what does not come gives up after a minute.
const TEST_MAX: Duration = Duration::from_secs(5 * 60);

/// The longest that a test may take which a regression lets hang, with the regression and without it.
const HANG_MAX: Duration = Duration::from_secs(60);

/// Plants the regressions of these names in a copy of the tree, one at a time; all of them if there are no names. One that
/// is noticed counts as passed.
pub(crate) fn run(steps: &Steps, names: &[&str]) -> (Counts, Result<(), String>) {
    run_in(&root(), &root().join(target()).join("regressions"), steps, names)
}

fn run_in(root: &Path, folder: &Path, steps: &Steps, names: &[&str]) -> (Counts, Result<(), String>) {
    let begun = patch::all(root).and_then(|all| Ok((chosen(all, names)?, Field::of(root, folder)?)));
    match begun {
        Ok((regressions, field)) => field.run(steps, &regressions),
        Err(why) => (Counts::default(), Err(why)),
    }
}

fn chosen(all: Vec<Regression>, names: &[&str]) -> Result<Vec<Regression>, String> {
    let known: Vec<&str> = all.iter().map(|regression| regression.name.as_str()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no regression {name}; there are {}", known.join(", ")));
    }
    Ok(all.into_iter().filter(|one| names.is_empty() || names.contains(&one.name.as_str())).collect())
}

/// Where regressions are planted, one at a time.
struct Field {
    copy: Copy,
    /// Processor time of the step that runs.
    spent: Cell<Duration>,
}

/// What has gone otherwise than it should.
type Surprises = Vec<String>;

impl Field {
    fn of(root: &Path, folder: &Path) -> Result<Field, String> {
        Ok(Field { copy: Copy::of(root, folder)?, spent: Cell::default() })
    }

    fn run(&self, steps: &Steps, regressions: &[Regression]) -> (Counts, Result<(), String>) {
        let mut counts = Counts::default();
        let sound = self.step(steps, "tests that regressions name", || self.without(regressions));
        if sound.is_err() {
            return (counts, sound);
        }
        let mut unnoticed = Vec::new();
        for regression in regressions {
            let name = format!("regression {}", regression.name);
            match self.step(steps, &name, || self.with(regression)) {
                Ok(()) => counts.passed += 1,
                Err(why) => unnoticed.push(why),
            }
        }
        counts.failed = unnoticed.len();
        (counts, if unnoticed.is_empty() { Ok(()) } else { Err(unnoticed.join("; ")) })
    }

    fn step(&self, steps: &Steps, name: &str, work: impl FnOnce() -> Surprises) -> Result<(), String> {
        println!("== {name}");
        self.spent.set(Duration::ZERO);
        let begun = Instant::now();
        let surprises = work();
        surprises.iter().for_each(|surprise| println!("{name}: {surprise}"));
        let took = Took { wall: begun.elapsed(), processor: self.spent.get() };
        steps.end(name, took, surprises.is_empty())
    }

    /// Runs the tests that the regressions name, each once.
    fn without(&self, regressions: &[Regression]) -> Surprises {
        let mut all: Vec<&Named> = Vec::new();
        for named in regressions.iter().flat_map(|regression| &regression.fails) {
            if !all.contains(&named) {
                all.push(named);
            }
        }
        let may_hang =
            |named| regressions.iter().any(|regression| regression.hangs && regression.fails.contains(named));
        let within = |named| if may_hang(named) { HANG_MAX } else { TEST_MAX };
        all.into_iter()
            .flat_map(|named| self.run_tests(named, Expected::Pass { within: within(named) }))
            .collect()
    }

    /// Runs the tests that must notice a regression, with it.
    fn with(&self, regression: &Regression) -> Surprises {
        if let Err(why) = regression.plant(&self.copy.tree) {
            return vec![why];
        }
        let expected = if regression.hangs { Expected::FailureOrHang } else { Expected::Failure };
        let mut surprises: Surprises =
            regression.fails.iter().flat_map(|named| self.run_tests(named, expected)).collect();
        surprises.extend(regression.pull_out(&self.copy.tree).err());
        surprises
    }

    fn run_tests(&self, named: &Named, expected: Expected) -> Surprises {
        let built =
            self.build(&named.program).and_then(|program| Ok((named.tests(program.names()?)?, program)));
        match built {
            Ok((tests, program)) => {
                tests.iter().filter_map(|test| self.run_test(&program, test, expected).err()).collect()
            }
            Err(why) => vec![format!("{named}: {why}")],
        }
    }

    fn build(&self, program: &TestProgram) -> Result<Program, String> {
        let arguments = ["test", "--no-run", "--locked", "-p", &program.package, &program.target];
        let mut cargo = cargo(&arguments);
        cargo.current_dir(&self.copy.tree).env("CARGO_TARGET_DIR", &self.copy.target);
        // Much is built again with few changes.
        cargo.env(INCREMENTAL, "1");
        let (built, processor) = programs::build_within_step(cargo)?;
        self.spend(processor);
        match &built.programs[..] {
            [program] => Ok(program.clone().knowing("CARGO_TARGET_DIR", &self.copy.target)),
            programs => Err(format!("Cargo has built {} programs with tests", programs.len())),
        }
    }

    fn run_test(&self, program: &Program, test: &str, expected: Expected) -> Result<(), String> {
        let ended = program.run_with(&["--exact", test], expected.limit())?;
        self.spend(ended.processor);
        let found = Found::of(&ended);
        let surprise = expected.surprise(&found);
        match surprise {
            None => println!("{test} {found}"),
            Some(_) => {
                print!("{}", String::from_utf8_lossy(&ended.output.stdout));
                print!("{}", String::from_utf8_lossy(&ended.output.stderr));
            }
        }
        surprise.map_or(Ok(()), |why| Err(format!("{test} {why}")))
    }

    fn spend(&self, processor: Duration) {
        self.spent.set(self.spent.get() + processor);
    }
}

impl Named {
    /// Of these tests, those that the line names: the one of this name, or else all that have the filter in their names.
    fn tests(&self, names: Vec<String>) -> Result<Vec<String>, String> {
        if names.contains(&self.filter) {
            return Ok(vec![self.filter.clone()]);
        }
        let tests: Vec<String> = names.into_iter().filter(|name| name.contains(&self.filter)).collect();
        if tests.is_empty() { Err(format!("no test has {:?} in its name", self.filter)) } else { Ok(tests) }
    }
}

/// What a run of one test shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Passed,
    Failed,
    Hung(Killed),
    /// Nothing about the test, for this reason.
    Nothing(String),
}

impl Found {
    fn of(ended: &Ended) -> Found {
        let status = ended.output.status;
        match ended.was_killed {
            Some(late @ Killed::Late(_)) => return Found::Hung(late),
            Some(killed) => return Found::Nothing(killed.to_string()),
            None => {}
        }
        // Some tests build the programs that they start.
        if String::from_utf8_lossy(&ended.output.stderr).contains("error: could not compile") {
            return Found::Nothing("a program that it starts does not compile".to_owned());
        }
        match programs::counts_in(&String::from_utf8_lossy(&ended.output.stdout)) {
            Some(Counts { passed: 1, failed: 0, skipped: 0 }) if status.success() => Found::Passed,
            Some(Counts { passed: 0, failed: 1, skipped: 0 }) if !status.success() => Found::Failed,
            Some(Counts { passed: 0, failed: 0, skipped: 1 }) => Found::Nothing("it is ignored".to_owned()),
            Some(counts) => Found::Nothing(format!("{counts}, {status}")),
            None => Found::Nothing(format!("it ended before it could sum up, {status}")),
        }
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Found::Passed => f.write_str("passes"),
            Found::Failed => f.write_str("fails"),
            Found::Hung(killed) => write!(f, "hangs: {killed}"),
            Found::Nothing(why) => write!(f, "shows nothing: {why}"),
        }
    }
}

/// What a test is to show.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Pass { within: Duration },
    Failure,
    FailureOrHang,
}

impl Expected {
    fn limit(self) -> Duration {
        match self {
            Expected::Pass { within } => within,
            Expected::Failure => TEST_MAX,
            Expected::FailureOrHang => HANG_MAX,
        }
    }

    fn surprise(self, found: &Found) -> Option<String> {
        match (self, found) {
            (Expected::Pass { .. }, Found::Passed)
            | (Expected::Failure | Expected::FailureOrHang, Found::Failed)
            | (Expected::FailureOrHang, Found::Hung(_)) => None,
            (Expected::Pass { .. }, _) => Some(format!("{found}, without a regression")),
            (_, Found::Passed) => Some("passes with the regression".to_owned()),
            (Expected::Failure, Found::Hung(_)) => {
                Some(format!("{found}; a line `# hangs` in the patch says that it may"))
            }
            (_, _) => Some(found.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;
    use crate::steps;

    const LATE: Killed = Killed::Late(HANG_MAX);

    /// What is found when a program does this, in the words of the shell.
    fn found(does: &str) -> Found {
        let ended = steps::output(Command::new("sh").args(["-c", does]), TEST_MAX);
        Found::of(&ended.expect("there is a shell"))
    }

    fn summary(passed: usize, failed: usize, ignored: usize) -> String {
        format!("echo 'test result: x. {passed} passed; {failed} failed; {ignored} ignored; 0 measured'")
    }

    #[test]
    fn a_test_fails_only_if_its_harness_says_so() {
        assert_eq!(found(&summary(1, 0, 0)), Found::Passed);
        assert_eq!(found(&format!("{}; exit 101", summary(0, 1, 0))), Found::Failed);
        let nothing = |does: &str| match found(does) {
            Found::Nothing(why) => why,
            other => panic!("{does}: {other}"),
        };
        for does in ["exit 0", "exit 101", "kill -9 $$"] {
            assert!(nothing(does).contains("before it could sum up"));
        }
        assert!(nothing(&summary(0, 0, 1)).contains("ignored"));
        nothing(&summary(0, 0, 0));
        nothing(&format!("{}; exit 101", summary(1, 1, 0)));
        nothing(&format!("{}; exit 101", summary(1, 0, 0)));
        nothing(&summary(0, 1, 0));
        let fails = format!("echo 'error: could not compile `a`' >&2; {}; exit 101", summary(0, 1, 0));
        assert!(nothing(&fails).contains("does not compile"));
    }

    #[test]
    fn a_test_that_does_not_end_hangs() {
        let mut command = Command::new("sh");
        let limit = Duration::from_millis(10);
        let ended =
            steps::output(command.args(["-c", "sleep 3600 & wait"]), limit).expect("there is a shell");
        assert_eq!(Found::of(&ended), Found::Hung(Killed::Late(limit)));
    }

    #[test]
    fn a_hang_is_a_failure_only_where_the_patch_says_so() {
        let all = [Found::Passed, Found::Failed, Found::Hung(LATE), Found::Nothing("why".to_owned())];
        let good = |expected: Expected| all.each_ref().map(|found| expected.surprise(found).is_none());
        assert_eq!(good(Expected::Pass { within: HANG_MAX }), [true, false, false, false]);
        assert_eq!(good(Expected::Failure), [false, true, false, false]);
        assert_eq!(good(Expected::FailureOrHang), [false, true, true, false]);
    }

    #[test]
    fn a_line_names_one_test_or_all_that_have_its_words() {
        let program = TestProgram { package: "a".to_owned(), target: "--lib".to_owned() };
        let tests = |filter: &str| {
            let named = Named { program: program.clone(), filter: filter.to_owned() };
            named.tests(["x::one", "x::one_more", "y::two"].map(str::to_owned).to_vec())
        };
        assert_eq!(tests("x::one").expect("there is one"), ["x::one"]);
        assert_eq!(tests("x::").expect("there are two"), ["x::one", "x::one_more"]);
        assert!(tests("three").is_err_and(|why| why.contains("three")));
    }

    /// A tree of one crate that adds numbers, in a repository.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Tree {
            let tree =
                Tree(std::env::temp_dir().join(format!("ironorb-xtask-{name}-{}", std::process::id())));
            tree.write("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"3\"\n");
            tree.write("Cargo.lock", "version = 4\n\n[[package]]\nname = \"sums\"\nversion = \"0.1.0\"\n");
            tree.write(
                "crates/sums/Cargo.toml",
                "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            );
            tree.write("crates/sums/src/lib.rs", SOURCE);
            tree.write(".gitignore", "/target\n");
            patch::said({
                let mut git = patch::git(&tree.0);
                git.args(["init", "--quiet"]);
                git
            })
            .expect("there is git");
            tree
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("it is in the tree")).expect("there is room");
            fs::write(path, text).expect("there is room");
        }

        /// A patch that puts something else in the place of the sum.
        fn regression(&self, name: &str, header: &str, instead: &str) {
            let diff = "diff --git a/crates/sums/src/lib.rs b/crates/sums/src/lib.rs\n\
                --- a/crates/sums/src/lib.rs\n+++ b/crates/sums/src/lib.rs\n@@ -1,3 +1,3 @@\n \
                pub fn sum(a: u32, b: u32) -> u32 {\n-    a + b\n";
            let text = format!("{header}\n{diff}+    {instead}\n }}\n");
            self.write(&format!("tests/regressions/{name}.patch"), &text);
        }

        fn run(&self, names: &[&str]) -> (Counts, Result<(), String>) {
            run_in(&self.0, &self.0.join("target/regressions"), &Steps::new(), names)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const SOURCE: &str = "pub fn sum(a: u32, b: u32) -> u32 {
    a + b
}
#[test]
fn sums() {
    assert_eq!(sum(2, 3), 5);
}
#[test]
fn sums_of_zero() {
    assert_eq!(sum(0, 3), 3);
}
";

    #[test]
    fn a_regression_is_noticed_by_tests_that_fail_and_by_nothing_else() {
        let tree = Tree::new("regressions");
        tree.regression("noticed", "# fails: -p sums --lib sums\n# fails: -p sums --lib zero", "a + b + 1");
        tree.regression("half", "# fails: -p sums --lib sum", "a * b + b");
        tree.regression("harmless", "# fails: -p sums --lib sums", "b + a");
        tree.regression("broken", "# fails: -p sums --lib sums", "a + c");
        tree.regression("crash", "# fails: -p sums --lib sums", "std::process::abort()");
        let one = |name| {
            let (counts, result) = tree.run(&[name]);
            assert_eq!(counts, Counts { passed: 0, failed: 1, skipped: 0 }, "{name}");
            assert!(result.is_err_and(|why| why.contains(name)), "{name}");
        };
        ["half", "harmless", "broken", "crash"].into_iter().for_each(one);
        let (counts, result) = tree.run(&[]);
        assert_eq!(counts, Counts { passed: 1, failed: 4, skipped: 0 });
        assert!(result.is_err_and(|why| !why.contains("noticed")));
        let (counts, result) = tree.run(&["noticed"]);
        assert_eq!((counts.passed, result), (1, Ok(())));
        assert!(tree.run(&["none"]).1.is_err_and(|why| why.contains("broken, crash, half")));
        let copied = fs::read_to_string(tree.0.join("target/regressions/tree/crates/sums/src/lib.rs"));
        assert_eq!(copied.expect("it is there"), SOURCE, "what was planted is pulled out");
    }

    #[test]
    fn a_patch_that_proves_nothing_is_a_failure() {
        let tree = Tree::new("proves-nothing");
        tree.regression("one", "# fails: -p sums --lib three", "a");
        let (counts, result) = tree.run(&[]);
        assert!(result.is_err() && counts.passed == 0, "no test has this name");
        tree.regression("one", "# fails: -p sums --lib sums", "a");
        tree.write("crates/sums/src/lib.rs", &SOURCE.replace("a + b", "b + a"));
        let (counts, result) = tree.run(&[]);
        assert!(result.is_err() && counts.failed == 1, "it does not apply");
        tree.write("crates/sums/src/lib.rs", &SOURCE.replace("a + b", "a + b + 1"));
        let (counts, result) = tree.run(&[]);
        assert!(result.is_err() && counts.failed == 0, "the test fails anyway");
        tree.write("crates/sums/src/lib.rs", SOURCE);
        tree.write("crates/sums/src/gone.rs", "");
        assert_eq!(tree.run(&[]).1, Ok(()), "the copy is as the tree is now");
        assert!(tree.0.join("target/regressions/tree/crates/sums/src/gone.rs").exists());
        fs::remove_file(tree.0.join("crates/sums/src/gone.rs")).expect("it is there");
        assert_eq!(tree.run(&[]).1, Ok(()));
        assert!(!tree.0.join("target/regressions/tree/crates/sums/src/gone.rs").exists());
        let _other = Copy::of(&tree.0, &tree.0.join("target/regressions")).expect("no other run is at work");
        assert!(tree.run(&[]).1.is_err_and(|why| why.contains("another run")));
    }
}
