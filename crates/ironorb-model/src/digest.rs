//! A number that tells whether two runs were the same.

use crate::Time;

/// Takes what happens, in its order. Runs with equal digests have, for all that matters here, been the same: two that
/// differ have equal digests by a chance of 2^-64. It guards against accidents, not against an adversary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest(u64);

/// What levels L0 and L1 take into their digests beside the messages that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// A message has come, by a connection.
    Arrival = 1,
    /// A call is over, at a process.
    CallEnd = 2,
    /// A client begins a cycle.
    CycleBegin = 3,
    /// A client's cycle is over.
    CycleEnd = 4,
}

impl Default for Digest {
    fn default() -> Self {
        Digest(0x243F_6A88_85A3_08D3)
    }
}

impl Digest {
    /// Takes a number.
    pub fn take(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9FB2_1C65_1E98_DF25);
        self.0 = (mixed ^ (mixed >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
    }

    /// Takes what has happened, when, and where: the number of a connection, a process or a client.
    pub fn note(&mut self, now: Time, what: Happening, number: u32) {
        self.take(now.as_ns());
        self.take((what as u64) << 32 | u64::from(number));
    }

    /// Takes octets and their number.
    pub fn take_octets(&mut self, octets: &[u8]) {
        self.take(octets.len() as u64);
        let (words, rest) = octets.as_chunks();
        words.iter().for_each(|word| self.take(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.take(u64::from_le_bytes(word));
        }
    }

    /// A digest with this number so far.
    pub(crate) fn with_value(number: u64) -> Digest {
        Digest(number)
    }

    /// The number so far.
    pub fn value(&self) -> u64 {
        self.0
    }
}
