//! Which types a program marshals, and how often. Code that was generated to record counts them and writes
//! them to a file. By that file the next build gives marshalling code to the types in use and leaves the
//! others to the interpreter.
//!
//! Programs that do not record hold only an empty list. The counts belong to the process and not to an ORB,
//! because types know no ORB.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often values of each type have been written and read by this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarshalProfile {
    /// For each repository id, the values written and the values read.
    counts: BTreeMap<&'static str, (u64, u64)>,
}

impl MarshalProfile {
    /// Returns the counts so far. Empty unless code was generated with `Marshalling::Record`.
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

    /// The repository ids in order, each with the number of values written and of values read.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.counts.iter().map(|(id, (written, read))| (*id, *written, *read))
    }

    /// Writes the file that the generator reads: a line that names the format, and then a line for each type
    /// with the values written, the values read and the repository id. Replaces the file atomically, so a
    /// concurrent reader sees the old one.
    pub fn write(&self, file: impl AsRef<Path>) -> io::Result<()> {
        let mut text = String::from(FIRST_LINE);
        for (id, written, read) in self.counts() {
            // Writing to a `String` does not fail.
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

/// The first line of a profile; `ironorb-build` checks it.
const FIRST_LINE: &str = "ironorb marshalling profile 1: values written, values read, repository id";

/// Counts the values of one type that are written, or that are read. Generated code holds one in a static.
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
    /// Makes the counter of values that are written.
    pub const fn written(id: &'static str) -> Use {
        Use { id, direction: Direction::Written, count: AtomicU64::new(0) }
    }

    /// Makes the counter of values that are read.
    pub const fn read(id: &'static str) -> Use {
        Use { id, direction: Direction::Read, count: AtomicU64::new(0) }
    }

    /// Counts a value.
    #[inline]
    pub fn count(&'static self) {
        // The count publishes nothing else, so a reader may see one that was right a moment ago.
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.is_used();
        }
    }

    #[cold]
    fn is_used(&'static self) {
        USED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }
}

/// The counters that have counted anything.
static USED: Mutex<Vec<&'static Use>> = Mutex::new(Vec::new());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_the_counts() {
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
        let text = std::fs::read_to_string(&file).expect("the file is read");
        std::fs::remove_dir_all(&folder).expect("the folder is removed");
        assert_eq!(text, format!("{FIRST_LINE}\n3 1 IDL:Test/One:1.0\n0 1 IDL:Test/Other:1.0\n"));
    }
}
