//! Unsigned integers of 64 decimal digits, for intermediate results.

use std::cmp::Ordering;

/// Four limbs of sixteen decimal digits each, the least significant first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Wide([u64; 4]);

const LIMB: u64 = 10_000_000_000_000_000;

impl Wide {
    /// Any `u128`, which has at most 39 digits.
    pub(super) fn new(mut value: u128) -> Wide {
        let mut limbs = [0; 4];
        for limb in &mut limbs {
            *limb = (value % u128::from(LIMB)) as u64;
            value /= u128::from(LIMB);
        }
        Wide(limbs)
    }

    /// The number times `10^power`; `None` if it has more than 64 digits.
    pub(super) fn scaled(self, power: u32) -> Option<Wide> {
        (0..power / 15).try_fold(self, |wide, _| wide.times(10u64.pow(15)))?.times(10u64.pow(power % 15))
    }

    fn times(self, factor: u64) -> Option<Wide> {
        let mut carry = 0u128;
        let limbs = self.0.map(|limb| {
            carry += u128::from(limb) * u128::from(factor);
            let low = (carry % u128::from(LIMB)) as u64;
            carry /= u128::from(LIMB);
            low
        });
        (carry == 0).then_some(Wide(limbs))
    }

    /// The product of two numbers below 10^32.
    pub(super) fn product(a: u128, b: u128) -> Wide {
        let limb = u128::from(LIMB);
        let ((a1, a0), (b1, b0)) = ((a / limb, a % limb), (b / limb, b % limb));
        let low = a0 * b0;
        let middle = a1 * b0 + a0 * b1 + low / limb;
        let high = a1 * b1 + middle / limb;
        Wide([(low % limb) as u64, (middle % limb) as u64, (high % limb) as u64, (high / limb) as u64])
    }

    /// The sum of two numbers below 10^63.
    pub(super) fn plus(self, other: Wide) -> Wide {
        let mut carry = 0;
        Wide(std::array::from_fn(|i| {
            let sum = self.0[i] + other.0[i] + carry;
            carry = sum / LIMB;
            sum % LIMB
        }))
    }

    /// The difference; `other` must not be larger.
    pub(super) fn minus(self, other: Wide) -> Wide {
        let mut borrow = 0;
        Wide(std::array::from_fn(|i| {
            let take = other.0[i] + borrow;
            borrow = u64::from(self.0[i] < take);
            self.0[i] + borrow * LIMB - take
        }))
    }

    /// Removes the last decimal digit and returns it.
    pub(super) fn cut(&mut self) -> u64 {
        let mut rest = 0;
        for limb in self.0.iter_mut().rev() {
            let value = rest * LIMB + *limb;
            (*limb, rest) = (value / 10, value % 10);
        }
        rest
    }

    /// The number if it is below 10^31.
    pub(super) fn in_31_digits(self) -> Option<u128> {
        let value = (u128::from(self.0[1])) * u128::from(LIMB) + u128::from(self.0[0]);
        (self.0[3] == 0 && self.0[2] == 0 && self.0[1] < LIMB / 10).then_some(value)
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}
