//! Tables by numbers that no peer chooses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose order depends on nothing but its keys; nothing walks through it.
pub type Table<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Hashes keys of small numbers, the same way in every process.
#[derive(Debug, Default, Clone, Copy)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9FB2_1C65_1E98_DF25);
        self.0 ^= self.0 >> 32;
    }
}
