//! Random numbers that can be repeated.

use std::ops::Range;
use std::time::Duration;

/// A sequence of numbers that its seed determines (splitmix64).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number of a non-empty range.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        range.start + (self.next() % (range.end - range.start) as u64) as usize
    }

    /// True for one in `n` calls on average.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.within(0..n) == 0
    }

    pub fn micros(&mut self, range: Range<usize>) -> Duration {
        Duration::from_micros(self.within(range) as u64)
    }
}

/// The seeds to run: the one in `IRONORB_TEST_SEED`, or those given, or `IRONORB_TEST_SEEDS` times as many, of which the first
/// `IRONORB_TEST_SEEDS_DONE` times as many are left out.
pub fn seeds(given: Range<u64>) -> Vec<u64> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is no number")))
    };
    match number("IRONORB_TEST_SEED") {
        Some(seed) => vec![seed],
        None => {
            let count = given.end - given.start;
            let of_times = |times: u64| given.start + count * times;
            let done = number("IRONORB_TEST_SEEDS_DONE").unwrap_or(0);
            let end = number("IRONORB_TEST_SEEDS").unwrap_or(done + 1);
            assert!(done < end, "IRONORB_TEST_SEEDS_DONE leaves no seeds");
            (of_times(done)..of_times(end)).collect()
        }
    }
}
