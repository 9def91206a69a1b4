//! Shared parts of the tests that kill a process.

mod random;

pub(crate) use random::Random;

/// A random seed, new in every run.
pub(crate) fn seed_from_system() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
