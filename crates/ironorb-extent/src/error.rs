//! What can be wrong with an extent, or with the use of an element.

use std::io;
use std::path::PathBuf;

use crate::durability::Durability;

/// Why an element cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElementError {
    /// The extent has no element of this index.
    #[error("there is no element {index}: the extent has {count}")]
    OutOfRange {
        /// The index.
        index: u64,
        /// How many elements the extent has.
        count: u64,
    },
    /// The element has been destroyed, or was never made.
    #[error("the element does not exist")]
    Absent,
    /// The element exists already.
    #[error("the element exists already")]
    Exists,
    /// The calling thread is using the element: it came back from within its own closure.
    #[error("the thread is using this element already")]
    Reentered,
    /// Threads would wait in a circle: another one waits, perhaps by way of more, for what the calling thread is using. This use
    /// has changed nothing, and the others go on when the calling thread's closure has ended.
    #[error("threads would wait for one another: use several elements at once by `update_all`")]
    Circle,
    /// The same element twice in one update, or too many elements.
    #[error("an update of several elements names each once, and at most {max}")]
    BadSelection {
        /// The most elements of one update.
        max: usize,
    },
    /// The file cannot be written. After the first such error an extent with durability `Power` changes nothing any more,
    /// because nobody knows what is on the disk.
    #[error("the extent's file cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Why an extent cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtentError {
    /// The elements do not fit the memory that is free.
    #[error("the extent needs {needed} bytes of memory, and {available} are free: ask for fewer elements")]
    NotEnoughMemory {
        /// Bytes of the extent.
        needed: u64,
        /// Bytes that the system can give.
        available: u64,
    },
    /// So many elements that their bytes have no number.
    #[error("an extent has at most {max} elements of this type")]
    TooManyElements {
        /// The most elements of the type.
        max: u64,
    },
    /// States with more than four kilobytes, or an alignment above eight.
    #[error(
        "a state has 1 to {max} bytes and an alignment of at most 8: this type has {bytes}, and {alignment}"
    )]
    UnfitState {
        /// Bytes of a state.
        bytes: usize,
        /// Its alignment in bytes.
        alignment: usize,
        /// The most bytes of a state.
        max: usize,
    },
    /// The disk has no room for the file.
    #[error("there is no room for the {needed} bytes of {path}: free some, or ask for fewer elements", path = .path.display())]
    DiskFull {
        /// Bytes of the file.
        needed: u64,
        /// The file.
        path: PathBuf,
    },
    /// Another process has the file open.
    #[error("{path} is open elsewhere: an extent's file belongs to one process at a time", path = .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is no extent, or one of another shape.
    #[error("{path} is no extent of this shape: {what}", path = .path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// A file with durability `None` was not closed, so that elements may be torn.
    #[error(
        "{path} was not closed in order, and its durability is {durability:?}: elements may be torn. \
         Open it with `accept_torn`, or make it anew",
        path = .path.display()
    )]
    MayBeTorn {
        /// The file.
        path: PathBuf,
        /// Its durability.
        durability: Durability,
    },
    /// Beside the file is the log of another extent, or what is no log. Neither file has been changed.
    #[error(
        "{log} is not the log of {path}, but another extent's: move it back to the file it is of, and put the log of {path} \
         in its place. If the file it is of is gone, remove it",
        path = .path.display(), log = .log.display()
    )]
    ForeignLog {
        /// The file of the extent.
        path: PathBuf,
        /// The log.
        log: PathBuf,
    },
    /// A file with durability `Power` was not closed, and its log is missing: updates may be lost.
    #[error(
        "{path} was not closed in order, and its log {log} is missing: put the log there, or open the file with \
         `accept_torn`, without the last updates",
        path = .path.display(), log = .log.display()
    )]
    NoLog {
        /// The file of the extent.
        path: PathBuf,
        /// Where its log should be.
        log: PathBuf,
    },
    /// The system refuses.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file; empty for memory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}
