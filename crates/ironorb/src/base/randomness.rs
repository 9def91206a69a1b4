//! Where an ORB's random numbers come from.
//!
//! Nonces in object keys and the keys of hash tables are drawn here. An ORB with a seed draws the same numbers in the
//! same order in every run. Without a seed the numbers are as good as the system's: who sees some of them cannot tell
//! the others.

use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// The random numbers of one ORB.
#[derive(Debug)]
pub(crate) struct Randomness {
    source: Source,
    drawn: AtomicU64,
}

#[derive(Debug)]
enum Source {
    System(RandomState),
    Seed(u64),
}

impl Randomness {
    /// Draws from the seed, or from the system without one.
    pub(crate) fn new(seed: Option<u64>) -> Randomness {
        let source = seed.map_or_else(|| Source::System(RandomState::new()), Source::Seed);
        Randomness { source, drawn: AtomicU64::new(0) }
    }

    /// The next number.
    pub(crate) fn draw(&self) -> u64 {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        match &self.source {
            Source::System(state) => state.hash_one((std::process::id(), number)),
            Source::Seed(seed) => mix(seed.wrapping_add(number.wrapping_add(1).wrapping_mul(STEP))),
        }
    }

    /// A number that practically no other ORB has, unless it has the same seed. Never 0, which stands for persistent
    /// keys.
    pub(crate) fn nonce(&self) -> u64 {
        self.draw().max(1)
    }

    /// What hashes the keys of a table in a way that peers cannot foresee.
    pub(crate) fn hash_keys(&self) -> HashKeys {
        HashKeys([self.draw(), self.draw()])
    }
}

/// The steps and the mixing of SplitMix64 (Steele, Lea, Flood 2014): every seed gives numbers that look random, on every
/// machine the same ones.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Hashes with keys that peers do not know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashKeys([u64; 2]);

impl BuildHasher for HashKeys {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        self.0.into_iter().for_each(|key| hasher.write_u64(key));
        hasher
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let draw = |seed| {
            let randomness = Randomness::new(seed);
            ([(); 3].map(|()| randomness.draw()), randomness.hash_keys().hash_one("key"))
        };
        assert_eq!(draw(Some(7)), draw(Some(7)));
        assert_ne!(draw(Some(7)), draw(Some(8)));
        assert_ne!(draw(None), draw(None));
        // Another machine or another release of the library must not change what a seed gives.
        assert_eq!(Randomness::new(Some(0)).draw(), 0xe220_a839_7b1d_cdaf);
    }
}
