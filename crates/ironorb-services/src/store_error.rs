//! What can be wrong with a store, in words for its operator.

use std::io;
use std::path::PathBuf;

/// Why the store cannot be opened, read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process, or this one, has it open.
    #[error(
        "the store {} is in use by another process: stop that service, or name another file",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Another version of IronORB wrote it.
    #[error(
        "the store {} has format version {found}, and this program reads version {expected}: use the program \
         that wrote it, or name another file",
        path.display()
    )]
    FormatVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u64,
        /// The version that this program reads and writes.
        expected: u64,
    },
    /// The file is something else; it has not been changed.
    #[error("{} is not a store of this service: name another file", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The operating system does not open it.
    #[error("cannot open the store {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// The file is a store with damaged contents.
    #[error("the store {} is damaged: {why}; restore it from a copy", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// Reading or writing failed. After a fault of the disk the store answers nothing until it is opened anew.
    #[error("the store failed when {doing}: {source}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
