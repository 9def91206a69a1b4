//! Random ids. They tell traces and spans apart, so they need not be hard to guess.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    /// Not seeded yet, while it is all zero: the algorithm never comes there.
    static GENERATOR: Cell<Generator> = const { Cell::new(Generator([0; 4])) };
}

pub(crate) fn trace_id() -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&next());
    id[8..].copy_from_slice(&next());
    id
}

pub(crate) fn span_id() -> [u8; 8] {
    next()
}

/// Eight octets that are not all zero.
fn next() -> [u8; 8] {
    let drawn = GENERATOR.with(|generator| {
        let (drawn, after) = generator.get().or_seeded().draw();
        generator.set(after);
        drawn
    });
    drawn.max(1).to_be_bytes()
}

/// Xoshiro256++ of Blackman and Vigna.
#[derive(Clone, Copy)]
struct Generator([u64; 4]);

impl Generator {
    /// Seeded by the system's random numbers, which the standard library draws once for each thread.
    #[cold]
    fn seeded() -> Generator {
        let random = RandomState::new();
        Generator([0_u8, 1, 2, 3].map(|word| random.hash_one(word)))
    }

    fn or_seeded(self) -> Generator {
        if self.0 == [0; 4] { Generator::seeded() } else { self }
    }

    fn draw(self) -> (u64, Generator) {
        let [mut a, mut b, mut c, mut d] = self.0;
        let drawn = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let shifted = b << 17;
        c ^= a;
        d ^= b;
        b ^= c;
        a ^= d;
        c ^= shifted;
        (drawn, Generator([a, b, c, d.rotate_left(45)]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    /// The first numbers of the authors' reference for the state 1, 2, 3, 4.
    #[test]
    fn numbers_are_those_of_the_algorithm() {
        let mut generator = Generator([1, 2, 3, 4]);
        for expected in [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386] {
            let (drawn, after) = generator.draw();
            assert_eq!(drawn, expected);
            generator = after;
        }
    }

    #[test]
    fn ids_of_all_threads_differ() {
        let draw = || (0..1000).map(|_| span_id()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(draw)).collect();
        let ids: HashSet<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ids.len(), 4000);
        assert!(!ids.contains(&[0; 8]));
    }
}
