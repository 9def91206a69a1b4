//! The tests against other ORBs: which of them run, and what they find, for the matrix of `docs/interop.md`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cache::{Covered, Stamp};
use crate::gate::{Extent, program};
use crate::programs::{Counts, Program};
use crate::steps::Steps;
use crate::{root, target};

/// The variable that names the folder for what tests find.
const RESULTS: &str = "IRONORB_INTEROP_RESULTS";

/// JacORB's matrix: each case in each version of GIOP and each way to come by a reference. It takes minutes of virtual
/// machines, so it runs when something has changed that reaches the wire. Both directions in GIOP 1.2, and all
/// circumstances other than versions, always run.
const JACORB_MATRIX: [&str; 8] = [
    "jacorb_client::all_cases_pass_in_giop_1_0",
    "jacorb_client::all_cases_pass_in_giop_1_1",
    "jacorb_client::all_cases_pass_in_giop_1_2_by_key",
    "jacorb_client::all_cases_pass_with_replies_in_fragments",
    "jacorb_server::all_cases_pass_in_giop_1_0",
    "jacorb_server::all_cases_pass_in_giop_1_1",
    "jacorb_server::all_cases_pass_in_giop_1_2_by_key",
    "jacorb_server::all_cases_pass_with_requests_in_fragments",
];

/// Takes the compiler a minute and a half. The gate has it compile some of the same files.
const ALL_RUST: &str = "corpus::all_rust_of_the_idl_of_debian_has_no_warnings";

/// How they run.
const JACORB_ARGUMENTS: [&str; 2] = ["--exact", "--test-threads=2"];

/// What those tests cover.
const REACHES_THE_WIRE: &[&str] = &[
    ".cargo/config.toml",
    "Cargo.lock",
    "Cargo.toml",
    "crates/ironorb",
    "crates/ironorb-build",
    "crates/ironorb-cache",
    "crates/ironorb-extent",
    "crates/ironorb-giop",
    "crates/ironorb-idl",
    "crates/ironorb-locks",
    "crates/ironorb-shm",
    "crates/ironorb-threads",
    "crates/ironorb-units",
    "interop",
];

/// One run of these tests.
pub(crate) struct Interop {
    /// Where all tests write what they find, and JacORB's matrix in a folder in it.
    folder: PathBuf,
    jacorb: Stamp,
    runs_jacorb: bool,
    compiles_all: bool,
}

impl Interop {
    /// Forgets every earlier run. Comes before the build: see [`Stamp`].
    pub(crate) fn begin(extent: Extent) -> Result<Interop, String> {
        let folder = target().join("interop-results");
        let failed = |e| format!("{}: {e}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(failed)?;
        }
        fs::create_dir_all(folder.join(JACORB)).map_err(failed)?;
        let command = [&JACORB_ARGUMENTS[..], &JACORB_MATRIX].concat();
        let covered = Covered {
            files: REACHES_THE_WIRE,
            versions: vec![vec!["rustc", "-vV"], vec!["java", "-version"]],
            command: command.into_iter().map(str::to_owned).collect(),
        };
        let jacorb = Stamp::of(JACORB, &root(), covered)?;
        let compiles_all = extent == Extent::All;
        let runs_jacorb = compiles_all || !jacorb.has_passed();
        Ok(Interop { folder, jacorb, runs_jacorb, compiles_all })
    }

    /// The runs of the program with all of these tests.
    pub(crate) fn programs(&self, program: &Program) -> Vec<Program> {
        let left_out = (!self.compiles_all).then_some(&ALL_RUST);
        let skipped: Vec<&str> =
            JACORB_MATRIX.iter().chain(left_out).flat_map(|name| ["--skip", name]).collect();
        let most = program.clone().with(&["--exact", "--test-threads=4"]).with(&skipped);
        let mut programs = vec![most.knowing(RESULTS, &self.folder)];
        if self.runs_jacorb {
            let matrix = program.clone().with(&JACORB_ARGUMENTS).only(&JACORB_MATRIX);
            programs.push(matrix.knowing(RESULTS, &self.folder.join(JACORB)));
        }
        programs
    }

    /// After the tests: keeps what JacORB's matrix found if all is good, or brings what it found when it passed. Gives the
    /// tests that were left out.
    pub(crate) fn settle(&self, steps: &Steps, is_good: bool) -> Result<Counts, String> {
        let found = self.folder.join(JACORB);
        let mut counts = Counts::default();
        if !self.compiles_all {
            steps.leave_out("all Rust of Debian's IDL", "it takes a minute and a half; `--all` compiles it");
            counts.skipped += 1;
        }
        if !self.runs_jacorb {
            steps.leave_out(
                "JacORB's full matrix",
                "nothing that reaches the wire has changed since it passed here; `--all` runs it",
            );
            self.jacorb.bring(&found)?;
            counts.skipped += JACORB_MATRIX.len();
            return Ok(counts);
        }
        if is_good {
            self.jacorb.pass(Some(&found));
        }
        Ok(counts)
    }

    /// Prints the matrix, and compares it with the document or writes it there.
    pub(crate) fn matrix(&self, mode: &str) -> Command {
        let mut run = program("interop-matrix");
        run.arg(&self.folder).args([mode, "docs/interop.md"]);
        run
    }
}

/// The name of the stamp, and of the folder.
const JACORB: &str = "jacorb";

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a test that is renamed would run twice, and its results be missed.
    #[test]
    fn the_tests_that_are_named_exist() {
        for name in JACORB_MATRIX.into_iter().chain([ALL_RUST]) {
            let (file, test) = name.split_once("::").expect("a module and a test");
            let path = root().join("interop/tests").join(file).with_extension("rs");
            let text = fs::read_to_string(&path).expect("the tests are there");
            assert!(text.contains(&format!("fn {test}(")), "{name}");
        }
        for path in REACHES_THE_WIRE {
            assert!(root().join(path).exists(), "{path}");
        }
    }

    /// Else a change of a crate that the tested programs are linked with would pass as one that reaches no wire.
    #[test]
    fn what_reaches_the_wire_has_all_crates_of_the_tested_programs() {
        for path in REACHES_THE_WIRE.iter().filter(|path| root().join(path).join("Cargo.toml").exists()) {
            let manifest = fs::read_to_string(root().join(path).join("Cargo.toml")).expect("it is there");
            let mut is_linked = false;
            for line in manifest.lines() {
                match line {
                    "[dependencies]" | "[build-dependencies]" => is_linked = true,
                    table if table.starts_with('[') => is_linked = false,
                    _ => {}
                }
                let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
                if is_linked && (name == "ironorb" || name.starts_with("ironorb-")) {
                    let needed = format!("crates/{name}");
                    assert!(REACHES_THE_WIRE.contains(&&*needed), "{path} is linked with {needed}");
                }
            }
        }
    }
}
