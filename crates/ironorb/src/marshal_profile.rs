//! Which types a program marshals, and how often: counted by code that was generated to record it, and written to a file
//! by which the next build marshals the types in use by code of their own and leaves the others to the interpreter.
//!
//! Programs that do not record hold nothing of it but an empty list. What is counted belongs to the process and not to
//! an ORB, since types know of no ORB.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often values of each type have been written and read by this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarshalProfile {
    /// By repository id, values written and values read.
    counts: BTreeMap<&'static str, (u64, u64)>,
}

impl MarshalProfile {
    /// What has been counted so far. Empty unless code was generated with `Marshalling::Record`.
    pub fn recorded() -> MarshalProfile {
        let mut profile = MarshalProfile::default();
        for one in &*USED.lock().unwrap_or_else(PoisonError::into_inner) {
            let count = one.count.load(Ordering::Relaxed);
            let (written, read) = profile.counts.entry(one.id).or_default();
            match one.direction {
                Direction::Written => *written += count,
                Direction::Read => *read += count,
            }
        }
        profile
    }

    /// Repository ids with how many values were written and how many were read, by id.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.counts.iter().map(|(id, (written, read))| (*id, *written, *read))
    }

    /// Writes the file that the generator reads: a line that says what it is, and then, for each type, values written,
    /// values read and its repository id. Replaces the file as a whole, so that who reads it meanwhile has the old one.
    pub fn write(&self, file: impl AsRef<Path>) -> io::Result<()> {
        let mut text = String::from(FIRST_LINE);
        for (id, written, read) in self.counts() {
            // Writing to a text does not fail.
            let _ = write!(text, "\n{written} {read} {id}");
        }
        text.push('\n');
        let file = file.as_ref();
        let mut new = file.as_os_str().to_owned();
        new.push(format!(".{}.new", std::process::id()));
        std::fs::write(&new, text)?;
        std::fs::rename(&new, file)
    }
}

/// What a profile begins with; `ironorb-build` looks for it.
const FIRST_LINE: &str = "ironorb marshalling profile 1: values written, values read, repository id";

/// Counts the values of one type that go one way. Generated code holds one in a static.
#[derive(Debug)]
pub struct Use {
    id: &'static str,
    direction: Direction,
    count: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Written,
    Read,
}

impl Use {
    /// For values that are written.
    pub const fn written(id: &'static str) -> Use {
        Use { id, direction: Direction::Written, count: AtomicU64::new(0) }
    }

    /// For values that are read.
    pub const fn read(id: &'static str) -> Use {
        Use { id, direction: Direction::Read, count: AtomicU64::new(0) }
    }

    /// Counts a value.
    #[inline]
    pub fn count(&'static self) {
        // Nothing is published by it: who looks sees a count that was right a moment ago.
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.is_used();
        }
    }

    #[cold]
    fn is_used(&'static self) {
        USED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }
}

/// Those that have counted anything.
static USED: Mutex<Vec<&'static Use>> = Mutex::new(Vec::new());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_in_the_file() {
        static WRITTEN: Use = Use::written("IDL:Test/One:1.0");
        static READ: Use = Use::read("IDL:Test/One:1.0");
        static OTHER: Use = Use::read("IDL:Test/Other:1.0");
        static NEVER: Use = Use::read("IDL:Test/Never:1.0");
        let _ = &NEVER;
        (0..3).for_each(|_| WRITTEN.count());
        READ.count();
        OTHER.count();
        let folder = std::env::temp_dir().join(format!("ironorb-profile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("profile");
        MarshalProfile::recorded().write(&file).expect("the file is written");
        let text = std::fs::read_to_string(&file).expect("it is there");
        std::fs::remove_dir_all(&folder).expect("and goes");
        assert_eq!(text, format!("{FIRST_LINE}\n3 1 IDL:Test/One:1.0\n0 1 IDL:Test/Other:1.0\n"));
    }
}
