//! Errors of stores, in words for an operator.

use std::io;
use std::path::PathBuf;

/// The reason why a store cannot be opened, read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has the store open, or this process has it open already.
    #[error(
        "the store {} is in use by another process: stop that service, or name another file",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file has the format of another version of IronORB.
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
    /// The file is not a store of this service; it has not been changed.
    #[error("{} is not a store of this service: name another file", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refuses to open the file.
    #[error("cannot open the store {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is a store with damaged contents.
    #[error("the store {} is damaged: {why}; restore it from a copy", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// Reading or writing failed. After a disk error the store fails until it is opened again.
    #[error("the store failed when {doing}: {source}")]
    Failed {
        /// The step that failed.
        doing: &'static str,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
