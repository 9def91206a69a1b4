//! The order of blocks, and the tasks of each.

use std::time::Duration;

use crate::paced::task::{Block, Task};

/// A turn of a side in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The number of clients of a low priority.
    pub(crate) low: usize,
    /// The side, by its place.
    pub(crate) side: usize,
}

/// Turns in rounds: each side has one turn with each number of clients in each round. Numbers follow one another at random,
/// and the sides of one number, too, so that no drift of the machine falls on one of them.
pub(crate) fn turns(numbers: &[usize], sides: usize, rounds: usize, seed: u64) -> Vec<Turn> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut turns = Vec::new();
    for _ in 0..rounds {
        let mut numbers = numbers.to_vec();
        random.shuffle(&mut numbers);
        for low in numbers {
            let mut of_block: Vec<Turn> = (0..sides).map(|side| Turn { low, side }).collect();
            random.shuffle(&mut of_block);
            turns.append(&mut of_block);
        }
    }
    turns
}

/// What all blocks of a configuration have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    pub(crate) high_period: Duration,
    pub(crate) low_period: Duration,
    /// Periods of a client of a low priority in a block.
    pub(crate) low_calls: usize,
    /// The part of a processor that the servants of low priorities burn together.
    pub(crate) load: f64,
    /// Whether the clients' first periods are spread over a period instead of beginning together.
    pub(crate) is_shifted: bool,
}

impl Shape {
    /// The tasks of a block: the high client first, which calls as long as others do.
    pub(crate) fn block(&self, low: usize) -> Block {
        let length = self.low_period * self.low_calls as u32;
        let high_calls = match low {
            0 => (length.as_secs_f64() / self.high_period.as_secs_f64()).round().max(1.0) as usize,
            _ => 0,
        };
        let high =
            Task { period: self.high_period, phase: Duration::ZERO, burn: Duration::ZERO, calls: high_calls };
        let phase = |place: usize| match self.is_shifted {
            true => self.low_period.mul_f64(place as f64 / (low + 1) as f64),
            false => Duration::ZERO,
        };
        let burn = self.low_period.mul_f64(self.load / low.max(1) as f64);
        let of_low =
            |place| Task { period: self.low_period, phase: phase(place), burn, calls: self.low_calls };
        let tasks = std::iter::once(high).chain((1..=low).map(of_low)).collect();
        // Who cannot be served at all must not keep the block from ending.
        Block { time_max: length * 2 + self.low_period * 2, tasks }
    }

    /// About how long a block takes.
    pub(crate) fn block_time(&self) -> Duration {
        self.low_period * self.low_calls as u32 + Duration::from_millis(60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_has_a_turn_with_every_number_in_every_round_in_an_order_that_the_seed_decides() {
        let numbers = [0, 5, 50];
        let all = turns(&numbers, 2, 4, 7);
        assert_eq!(all.len(), 3 * 2 * 4);
        for round in all.chunks(6) {
            for low in numbers {
                for side in 0..2 {
                    assert!(round.contains(&Turn { low, side }));
                }
            }
            // The sides of one number follow one another.
            assert!(round.chunks(2).all(|pair| pair[0].low == pair[1].low));
        }
        assert_eq!(all, turns(&numbers, 2, 4, 7));
        let is_another = |seed| turns(&numbers, 2, 4, seed) != all;
        assert!((8..12).all(is_another));
        let orders: Vec<_> = all.chunks(6).map(|round| round.to_vec()).collect();
        assert!(orders.windows(2).any(|two| two[0] != two[1]), "rounds differ");
    }

    fn shape(is_shifted: bool) -> Shape {
        let ms = Duration::from_millis;
        Shape { high_period: ms(50), low_period: ms(100), low_calls: 40, load: 0.6, is_shifted }
    }

    #[test]
    fn servants_of_low_priorities_burn_the_load_together() {
        for low in [5, 50] {
            let block = shape(false).block(low);
            assert_eq!(block.tasks.len(), low + 1);
            let load: f64 =
                block.tasks.iter().map(|task| task.burn.as_secs_f64() / task.period.as_secs_f64()).sum();
            assert!((load - 0.6).abs() < 1e-6, "{load}");
            assert_eq!((block.tasks[0].burn, block.tasks[0].calls), (Duration::ZERO, 0));
            assert!(block.tasks[1..].iter().all(|task| task.calls == 40 && task.phase.is_zero()));
        }
    }

    #[test]
    fn alone_the_high_client_calls_as_long_as_with_others() {
        let block = shape(false).block(0);
        assert_eq!((block.tasks.len(), block.tasks[0].calls), (1, 80));
    }

    #[test]
    fn shifted_clients_begin_one_after_another_within_a_period() {
        let block = shape(true).block(4);
        let phases: Vec<u128> = block.tasks.iter().map(|task| task.phase.as_millis()).collect();
        assert_eq!(phases, [0, 20, 40, 60, 80]);
    }
}
