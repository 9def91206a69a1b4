//! Random numbers that depend on a seed and on nothing else.

use std::time::Duration;

/// A stream of random numbers (SplitMix64). Each generator of a scenario has a stream of its own, so that one more number
/// drawn in one place changes nothing in another.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream with this number among those of a seed.
    pub fn stream(seed: u64, number: u64) -> Random {
        let mut of_seed = Random { state: seed };
        let mut of_both = Random { state: of_seed.bits() ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93) };
        Random { state: of_both.bits() }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to `below - 1`; 0 for `below` 0. The bias is below 2^-32 for `below` up to 2^32.
    pub fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(below)) >> 64) as u64
    }

    /// A number from 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something happens that does so with this probability.
    pub fn is_so(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// A time from the exponential distribution with this mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let factor = -libm::log1p(-self.unit());
        // Means of more than 584 years are none.
        Duration::from_nanos((mean.as_nanos() as u64 as f64 * factor) as u64)
    }
}
