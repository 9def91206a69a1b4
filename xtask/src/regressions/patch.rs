//! Patches in `tests/regressions`: what each says, and how it is applied.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A patch that plants a regression, and the tests that must notice it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Regression {
    /// The name of its file without `.patch`.
    pub(super) name: String,
    pub(super) file: PathBuf,
    /// The tests that must fail.
    pub(super) fails: Vec<Named>,
    /// Whether the tests may hang instead.
    pub(super) hangs: bool,
}

/// The tests that a line of a patch names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) program: TestProgram,
    pub(super) filter: String,
}

/// A program with tests, as Cargo is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestProgram {
    pub(super) package: String,
    /// `--lib`, or `--test=NAME`.
    pub(super) target: String,
}

/// The patches' folder in the tree.
const FOLDER: &str = "tests/regressions";

const FORM: &str = "`# fails: -p PACKAGE --test NAME FILTER` or `# fails: -p PACKAGE --lib FILTER`";

/// All patches of a tree, by their names.
pub(super) fn all(root: &Path) -> Result<Vec<Regression>, String> {
    let unreadable = |e| format!("{FOLDER} cannot be read: {e}");
    let mut regressions = Vec::new();
    for entry in fs::read_dir(root.join(FOLDER)).map_err(unreadable)? {
        regressions.push(Regression::read(entry.map_err(unreadable)?.path())?);
    }
    regressions.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(regressions)
}

impl Regression {
    fn read(file: PathBuf) -> Result<Regression, String> {
        let place = format!("{FOLDER}/{}", file.file_name().unwrap_or_default().display());
        let name = place.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(".patch"));
        let name =
            name.ok_or_else(|| format!("{place}: give it a name that ends in .patch"))?[1..].to_owned();
        let text = fs::read_to_string(&file).map_err(|e| format!("{place} cannot be read: {e}"))?;
        Regression::parse(name, file, &text).map_err(|(line, why)| format!("{place}:{line}: {why}"))
    }

    /// An error has the number of its line.
    fn parse(name: String, file: PathBuf, text: &str) -> Result<Regression, (usize, String)> {
        if !text.starts_with(FAILS) {
            return Err((1, format!("write here which tests must fail: {FORM}")));
        }
        let mut regression = Regression { name, file, fails: Vec::new(), hangs: false };
        let lines = text.lines().take_while(|line| line.starts_with('#')).enumerate();
        for (index, line) in lines {
            if let Some(named) = line.strip_prefix(FAILS) {
                regression.fails.push(Named::parse(named).map_err(|why| (index + 1, why))?);
            }
            regression.hangs |= line.trim_end() == HANGS;
        }
        Ok(regression)
    }

    /// Says why the patch does not fit the tree in a folder, or changes what it must not.
    fn check(&self, folder: &Path) -> Result<(), String> {
        self.git_apply(folder, &["--check"])?;
        let changed = self.git_apply(folder, &["--numstat", "-z"])?;
        let mut paths = changed.split('\0').filter_map(|entry| entry.splitn(3, '\t').nth(2));
        match paths.find(|path| !is_product(path)) {
            Some(path) => Err(format!("{}: it may change sources of crates alone, not {path}", self.name)),
            None => Ok(()),
        }
    }

    pub(super) fn plant(&self, folder: &Path) -> Result<(), String> {
        self.check(folder)?;
        self.git_apply(folder, &[]).map(drop)
    }

    pub(super) fn pull_out(&self, folder: &Path) -> Result<(), String> {
        self.git_apply(folder, &["--reverse"]).map(drop)
    }

    fn git_apply(&self, folder: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut apply = git(folder);
        apply.args(["apply", "--whitespace=nowarn"]).args(arguments).arg(&self.file);
        said(apply).map_err(|why| format!("{FOLDER}/{}.patch does not apply, make it anew: {why}", self.name))
    }
}

const FAILS: &str = "# fails:";
const HANGS: &str = "# hangs";

impl Named {
    fn parse(text: &str) -> Result<Named, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (package, target, filter) = match words[..] {
            ["-p", package, "--lib", filter] => (package, "--lib".to_owned(), filter),
            ["-p", package, "--test", name, filter] => (package, format!("--test={name}"), filter),
            _ => return Err(format!("{:?} is not of the form {FORM}", text.trim())),
        };
        let program = TestProgram { package: package.to_owned(), target };
        Ok(Named { program, filter: filter.to_owned() })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "-p {} {} {}", self.program.package, self.program.target, self.filter)
    }
}

/// Whether a file is a source of a crate, and not only for its tests.
fn is_product(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates")
        && parts.nth(1) == Some("src")
        && !parts.any(|part| part.starts_with("tests"))
}

/// Git in a folder which is a repository of its own or in none. In the folder of another repository `git apply` would leave
/// out all files, and be content.
pub(super) fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder).stdin(Stdio::null());
    git.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder));
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(variable);
    }
    git
}

/// What a command writes, or what it complains of.
pub(super) fn said(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?} cannot be run: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    String::from_utf8(output.stdout).map_err(|e| format!("{command:?}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    /// What is wrong, if something is.
    fn parse(text: &str) -> Result<Regression, String> {
        let parsed = Regression::parse("a".to_owned(), PathBuf::from("a.patch"), text);
        parsed.map_err(|(line, why)| format!("{line}: {why}"))
    }

    fn named(package: &str, target: &str, filter: &str) -> Named {
        let program = TestProgram { package: package.to_owned(), target: target.to_owned() };
        Named { program, filter: filter.to_owned() }
    }

    #[test]
    fn a_patch_names_the_tests_that_must_fail() {
        let text = "# fails: -p ironorb --lib base::lane::\n# One lane waits for the other.\n\
                    # fails: -p ironorb-tests --test all lanes::held\ndiff --git a/x b/x\n# hangs\n";
        let regression = parse(text).expect("it is well formed");
        let expected =
            [named("ironorb", "--lib", "base::lane::"), named("ironorb-tests", "--test=all", "lanes::held")];
        assert_eq!(regression.fails, expected);
        assert!(!regression.hangs, "a line of the diff says nothing");
        assert!(parse(&text.replace("# One", "# hangs\n# One")).expect("it is well formed").hangs);
        assert!(!parse(&text.replace("# One", "# hangs not. One")).expect("it is well formed").hangs);
    }

    #[test]
    fn a_patch_that_names_no_test_is_refused_with_the_line() {
        let refused = |text: &str, place: &str| {
            let why = parse(text).expect_err("it names no test");
            assert!(why.starts_with(place) && why.contains("-p PACKAGE --lib FILTER"), "{why}");
        };
        refused("", "1:");
        refused("diff --git a/x b/x\n# fails: -p a --lib b\n", "1:");
        for wrong in
            ["", "-p a", "-p a --lib", "-p a --test b", "-p a --bin b c", "a --lib b", "-p a --lib b c"]
        {
            refused(&format!("# fails: -p a --lib b\n# fails: {wrong}\n"), "2:");
        }
    }

    #[test]
    fn regressions_are_planted_in_the_sources_of_crates() {
        assert!(is_product("crates/ironorb/src/base/lane.rs"));
        for path in [
            "tests/tests/idle.rs",
            "crates/a/tests/b.rs",
            "crates/a/src/b/tests.rs",
            "crates/a/build.rs",
            "src/a.rs",
        ] {
            assert!(!is_product(path), "{path}");
        }
    }

    #[test]
    fn every_patch_applies() {
        let regressions = all(&root()).expect("each says which tests must fail");
        assert!(!regressions.is_empty());
        for regression in regressions {
            regression.check(&root()).unwrap_or_else(|why| panic!("{why}"));
        }
    }
}
