//! How a cached attribute is to be read.

use std::time::Duration;

/// How a cached attribute is to be read: `account.balance_with(&ReadOptions::new().lag(Duration::from_millis(5)))`.
///
/// Without options a read takes a value that is as old as the attribute's declaration allows, and asks the server where
/// there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct ReadOptions {
    pub(crate) lag: Option<Duration>,
    pub(crate) or_within: Option<Duration>,
    pub(crate) at_least: u64,
    pub(crate) is_remote: bool,
    pub(crate) is_held_only: bool,
}

impl ReadOptions {
    /// The options of a read without any.
    pub const fn new() -> ReadOptions {
        ReadOptions { lag: None, or_within: None, at_least: 0, is_remote: false, is_held_only: false }
    }

    /// The value may be as old as this, whatever its declaration says. Beyond a second it may have missed any number of writes, also
    /// where the declaration bounds them.
    pub const fn lag(self, lag: Duration) -> ReadOptions {
        ReadOptions { lag: Some(lag), ..self }
    }

    /// Where the server does not answer (COMM_FAILURE, TRANSIENT, TIMEOUT), the value may be as old as this.
    pub const fn or_within(self, lag: Duration) -> ReadOptions {
        ReadOptions { or_within: Some(lag), ..self }
    }

    /// The value has all writes in it up to this version of its server's log, as a read has told it
    /// ([`Seen::version`](super::Seen::version)). Versions of two lives of a server have nothing to do with one another.
    pub const fn at_least(self, version: u64) -> ReadOptions {
        ReadOptions { at_least: version, ..self }
    }

    /// The read calls the object, as if the attribute were not cached.
    pub const fn remote(self) -> ReadOptions {
        ReadOptions { is_remote: true, ..self }
    }

    /// The read asks no server: where the cache holds nothing fresh enough, it fails with TRANSIENT.
    pub const fn held_only(self) -> ReadOptions {
        ReadOptions { is_held_only: true, ..self }
    }
}
