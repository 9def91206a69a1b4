//! The folder in which a run keeps its rows as they come, so that a later run goes on where it has ended.

use std::fs::{File, read_dir, read_to_string, rename, write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::catalogue::Configuration;
use super::rows::{Measured, StoredRow};
use crate::error::BenchError;

/// What all rows of a state have in common, by name. Rows of other machines or commits stand in no table with these.
pub(super) type Identity = Vec<(&'static str, String)>;

/// A folder of rows. No other run may write to it meanwhile.
#[derive(Debug)]
pub(super) struct State {
    folder: PathBuf,
    identity: Identity,
    /// Locked as long as it is open.
    _lock: File,
}

const IDENTITY: &str = "state.json";
const LOCK: &str = "lock";

/// The kind of a file's first line, which tells how the rows came to be.
const PART: &str = "part";

/// How the rows of a part came to be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    pub(super) command: String,
    pub(super) seconds: f64,
    /// How often all was repeated, where that is an option.
    pub(super) runs: Option<u32>,
}

impl Head {
    fn parse(line: &str) -> Option<Head> {
        let row = StoredRow::parse(line)?;
        let runs = row.count("runs").map(|runs| runs as u32);
        Some(Head { command: row.text("command"), seconds: row.count("seconds")?, runs })
    }
}

impl State {
    /// Opens a folder, or makes it.
    ///
    /// # Errors
    /// The folder has rows of another machine, kernel, commit or kind of run, another run uses it, or it cannot be used.
    pub(super) fn open(folder: &Path, identity: Identity) -> Result<State, BenchError> {
        let name = folder.display();
        std::fs::create_dir_all(folder).map_err(BenchError::io(format!("make {name}")))?;
        let lock = File::create(folder.join(LOCK)).map_err(BenchError::io(format!("write to {name}")))?;
        if lock.try_lock().is_err() {
            return Err(BenchError::Unusable(format!(
                "another run uses {name}; wait for it, or choose another --state"
            )));
        }
        let file = folder.join(IDENTITY);
        match read_to_string(&file) {
            Ok(text) => refuse_others(&name.to_string(), &text, &identity)?,
            Err(_) if has_rows(folder) => {
                return Err(BenchError::Unusable(format!(
                    "{name} has rows, but no {IDENTITY} that tells where they are from; choose another --state"
                )));
            }
            Err(_) => {
                let of = |(name, text): &(&str, String)| ((*name).to_owned(), Value::from(text.as_str()));
                let members: Map<String, Value> = identity.iter().map(of).collect();
                let text = format!("{:#}\n", Value::Object(members));
                write(&file, text).map_err(BenchError::io(format!("write {}", file.display())))?;
            }
        }
        Ok(State { folder: folder.to_owned(), identity, _lock: lock })
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    fn file(&self, configuration: &str, part: usize, ending: &str) -> PathBuf {
        self.folder.join(format!("{configuration}.{part}.{ending}"))
    }

    /// Where a part's process writes its rows, and where it tells of its progress.
    pub(super) fn files(&self, configuration: &str, part: usize) -> [PathBuf; 2] {
        ["new", "log"].map(|ending| self.file(configuration, part, ending))
    }

    pub(super) fn is_stored(&self, configuration: &str, part: usize) -> bool {
        self.file(configuration, part, "jsonl").exists()
    }

    /// Stores the rows of a part: all of them, or none.
    ///
    /// # Errors
    /// A row is of another machine or commit than the state, or the folder cannot be written.
    pub(super) fn store(
        &self,
        configuration: &str,
        part: usize,
        head: &Head,
        rows: &str,
    ) -> Result<(), BenchError> {
        for row in rows.lines().filter_map(StoredRow::parse) {
            self.refuse_row(&row)?;
        }
        let Head { command, seconds, runs } = head;
        let head = json!({ "kind": PART, "command": command, "seconds": seconds, "runs": runs });
        let [new, _] = self.files(configuration, part);
        let failed = || BenchError::io(format!("write to {}", self.folder.display()));
        write(&new, format!("{head}\n{rows}")).map_err(failed())?;
        rename(&new, self.file(configuration, part, "jsonl")).map_err(failed())
    }

    /// The program with probes may be of another commit.
    fn refuse_row(&self, row: &StoredRow) -> Result<(), BenchError> {
        for (name, here) in &self.identity {
            let Some(there) = row.machine(name).map(crate::row::shown) else { continue };
            if there != *here {
                return Err(BenchError::Unusable(format!(
                    "the program that measured is of another {name}: {there}, and this one is of {here}"
                )));
            }
        }
        Ok(())
    }

    /// How the rows of a part came to be, if it is stored.
    pub(super) fn head(&self, configuration: &str, part: usize) -> Option<Head> {
        Head::parse(self.read(configuration, part)?.lines().next()?)
    }

    /// How the stored parts of a configuration came to be.
    pub(super) fn heads(&self, configuration: &Configuration) -> Vec<Head> {
        (0..configuration.parts()).filter_map(|part| self.head(configuration.name, part)).collect()
    }

    fn read(&self, configuration: &str, part: usize) -> Option<String> {
        read_to_string(self.file(configuration, part, "jsonl")).ok()
    }

    /// All rows of these configurations, as far as they are stored.
    pub(super) fn measured<'a>(&self, configurations: impl Iterator<Item = &'a Configuration>) -> Measured {
        let mut measured = Measured::default();
        for configuration in configurations {
            for part in 0..configuration.parts() {
                let text = self.read(configuration.name, part).unwrap_or_default();
                let rows = text.lines().filter_map(StoredRow::parse);
                measured.add(configuration.name, rows.filter(|row| row.text("kind") != PART));
            }
        }
        measured
    }
}

fn has_rows(folder: &Path) -> bool {
    let files = read_dir(folder).into_iter().flatten().flatten();
    files.map(|file| file.path()).any(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
}

/// Compares the identity of a folder with that of this run.
fn refuse_others(folder: &str, text: &str, here: &Identity) -> Result<(), BenchError> {
    let there: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let other = |(name, here): &(&str, String)| {
        let there = there.get(*name).and_then(Value::as_str).unwrap_or("unknown");
        (there != here).then(|| format!("{name}: {there} there, {here} here"))
    };
    let others: Vec<String> = here.iter().filter_map(other).collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(BenchError::Unusable(format!(
        "{folder} has rows of another run, which must not stand beside new ones ({}); choose another --state, or remove it",
        others.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(commit: &str) -> Identity {
        vec![("kernel", "6.1".to_owned()), ("commit", commit.to_owned())]
    }

    const CONFIGURATION: Configuration =
        Configuration { each: &["1", "2"], ..Configuration::new("test", "echo", [1, 1]) };

    fn open(folder: &Path, commit: &str) -> Result<State, String> {
        State::open(folder, identity(commit)).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_are_there_in_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let row = r#"{"kind":"row","us":7,"machine":{"commit":"abc","kernel":"6.1"}}"#;
        let state = open(folder.path(), "abc").unwrap();
        let head = Head { command: "bench echo".to_owned(), seconds: 2.5, runs: Some(4) };
        state.store("test", 1, &head, row).unwrap();
        assert!(open(folder.path(), "abc").unwrap_err().contains("another run uses"));
        drop(state);
        let state = open(folder.path(), "abc").unwrap();
        assert_eq!([0, 1].map(|part| state.is_stored("test", part)), [false, true]);
        assert_eq!(state.heads(&CONFIGURATION), [head]);
        let measured = state.measured([&CONFIGURATION].into_iter());
        assert_eq!(measured.of("test").median("us", &[]), Some(7.0));
        assert_eq!(measured.of("test").of(&[]).count(), 1, "the line about the part is no row");
    }

    #[test]
    fn rows_of_other_commits_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path(), "abc").unwrap());
        let why = open(folder.path(), "def").unwrap_err();
        assert!(why.contains("commit: abc there, def here") && !why.contains("kernel:"), "{why}");
        let state = open(folder.path(), "abc").unwrap();
        let row = r#"{"kind":"row","us":7,"machine":{"commit":"def","kernel":"6.1"}}"#;
        let head = Head { command: "bench echo".to_owned(), seconds: 1.0, runs: None };
        let why = state.store("test", 0, &head, row).unwrap_err().to_string();
        assert!(why.contains("another commit: def"), "{why}");
        assert!(!state.is_stored("test", 0));
    }

    #[test]
    fn rows_of_nowhere_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("test.0.jsonl"), "{}\n").unwrap();
        assert!(open(folder.path(), "abc").unwrap_err().contains("where they are from"));
    }
}
