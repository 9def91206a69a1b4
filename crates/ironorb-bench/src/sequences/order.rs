//! The order in which objects are called: the paper's two algorithms, and one that no cache can predict.

use clap::ValueEnum;
use serde::Serialize;

/// The order in which objects are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Algorithm {
    /// Request train: calls each object a number of times, then the next.
    Train,
    /// Round robin: calls all objects one after another, again and again.
    Robin,
    /// Calls a random object each time.
    Random,
}

/// The indices of the objects that one client calls, without end.
#[derive(Debug, Clone)]
pub(super) struct Order {
    algorithm: Algorithm,
    objects: usize,
    iterations: usize,
    place: usize,
    /// Calls left before the train moves on to the next object.
    left: usize,
    random: u64,
}

impl Order {
    /// An order over objects 0 to `objects`. A train calls each `iterations` times.
    pub(super) fn new(algorithm: Algorithm, objects: usize, iterations: usize) -> Order {
        let (objects, iterations) = (objects.max(1), iterations.max(1));
        Order { algorithm, objects, iterations, place: objects - 1, left: 0, random: SEED }
    }

    #[inline]
    pub(super) fn next(&mut self) -> usize {
        match self.algorithm {
            Algorithm::Train if self.left > 0 => self.left -= 1,
            Algorithm::Train => {
                self.left = self.iterations - 1;
                self.step();
            }
            Algorithm::Robin => self.step(),
            Algorithm::Random => {
                // Marsaglia's xorshift.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                self.place = (self.random % self.objects as u64) as usize;
            }
        }
        self.place
    }

    fn step(&mut self) {
        self.place += 1;
        if self.place == self.objects {
            self.place = 0;
        }
    }
}

/// A fixed seed, so that every side calls the same objects.
const SEED: u64 = 88_172_645_463_325_252;

#[cfg(test)]
mod tests {
    use super::*;

    fn first(count: usize, mut order: Order) -> Vec<usize> {
        (0..count).map(|_| order.next()).collect()
    }

    #[test]
    fn trains_stay_and_rounds_go_on() {
        assert_eq!(first(8, Order::new(Algorithm::Train, 3, 2)), [0, 0, 1, 1, 2, 2, 0, 0]);
        assert_eq!(first(7, Order::new(Algorithm::Robin, 3, 2)), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(first(3, Order::new(Algorithm::Robin, 1, 100)), [0, 0, 0]);
    }

    #[test]
    fn random_reaches_everything_and_is_the_same_each_time() {
        let all = first(1000, Order::new(Algorithm::Random, 10, 1));
        assert_eq!(all, first(1000, Order::new(Algorithm::Random, 10, 1)));
        assert!((0..10).all(|object| all.contains(&object)));
    }
}
