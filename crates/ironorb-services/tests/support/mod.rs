//! What the tests that kill have in common.

mod random;

pub(crate) use random::Random;

/// Another seed in every run.
pub(crate) fn seed_from_system() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
