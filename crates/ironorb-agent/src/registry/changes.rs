//! The last changes, for watchers.

use std::collections::VecDeque;
use std::sync::Arc;

use super::entry::Entry;

/// What happened to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The entry is new, or has other properties than before.
    Put,
    /// The entry is gone.
    Removed,
}

/// A change of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Counts the registry's changes: each has the number after the one before.
    pub revision: u64,
    /// The name.
    pub name: Arc<str>,
    /// What happened.
    pub kind: ChangeKind,
    /// The entry as it is, or was before it went.
    pub entry: Arc<Entry>,
}

/// Which names a watcher wants to hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// These.
    Names(Vec<String>),
    /// All that begin with this text.
    Prefix(String),
}

impl Selection {
    /// Whether the name is among them.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Selection::Names(names) => names.iter().any(|own| own == name),
            Selection::Prefix(prefix) => name.starts_with(&**prefix),
        }
    }
}

/// The changes since a revision are not known any more: resolve anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the changes since this revision are forgotten: resolve anew")]
pub struct TooOld;

/// The last changes, without a gap between their revisions.
#[derive(Debug)]
pub(super) struct Changes {
    kept: VecDeque<Change>,
    kept_max: usize,
    /// The revision before the first kept change.
    forgotten: u64,
}

impl Changes {
    pub(super) fn new(first_revision: u64, kept_max: usize) -> Self {
        Changes { kept: VecDeque::new(), kept_max, forgotten: first_revision }
    }

    /// The revision of the last change.
    pub(super) fn revision(&self) -> u64 {
        self.forgotten + self.kept.len() as u64
    }

    pub(super) fn push(&mut self, change: Change) {
        debug_assert_eq!(change.revision, self.revision() + 1);
        self.kept.push_back(change);
        while self.kept.len() > self.kept_max {
            self.kept.pop_front();
            self.forgotten += 1;
        }
    }

    /// The selected changes after a revision, oldest first and at most so many, and the revision up to which they are
    /// complete.
    pub(super) fn since(
        &self,
        revision: u64,
        selection: &Selection,
        count_max: usize,
    ) -> Result<(Vec<Change>, u64), TooOld> {
        if revision < self.forgotten || revision > self.revision() {
            return Err(TooOld);
        }
        let mut found = Vec::new();
        let first = (revision - self.forgotten) as usize;
        for change in self.kept.range(first..) {
            if selection.has(&change.name) {
                if found.len() == count_max {
                    return Ok((found, change.revision - 1));
                }
                found.push(change.clone());
            }
        }
        Ok((found, self.revision()))
    }
}
