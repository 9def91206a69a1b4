//! Where names stand in a table, by their hashes.

use std::hash::{Hash, Hasher};

/// The places of a table's entries, so that one is found by its name. The names are in the table alone: 8 to 16 bytes an entry.
///
/// Indexes of equal tables are equal, however they came about.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// As many as a power of two says, of which at most half are used. A name's place is at its hash, or behind that without a gap.
    places: Vec<u32>,
    used: usize,
    /// How many bits of a hash are too many: its highest ones say where a name belongs.
    shift: u32,
}

impl PartialEq for Index {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Index {}

impl Hash for Index {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// No place.
const NONE: u32 = u32::MAX;

/// The most places of a table.
pub(crate) const PLACES_MAX: usize = NONE as usize;

/// So many at first.
const LEAST: usize = 8;

impl Index {
    /// The place of a name, if it has one. `is_there` says whether it stands at a place.
    #[inline]
    pub(crate) fn find(&self, name: &impl Hash, is_there: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = self.home(hash_of(name));
        loop {
            // Before the first name comes, there are none.
            let place = *self.places.get(at)?;
            if place == NONE {
                return None;
            }
            if is_there(place as usize) {
                return Some(place as usize);
            }
            at = self.behind(at);
        }
    }

    /// A name has come to stand at a place below [`PLACES_MAX`]. `hash_at` gives the hash of the name at a place.
    pub(crate) fn add(&mut self, place: usize, hash_at: impl Fn(usize) -> u64) {
        assert!(place < PLACES_MAX, "a table has fewer places than an index can tell apart");
        let new = place as u32;
        if self.places.len() < 2 * (self.used + 1) {
            let longer = vec![NONE; (2 * self.places.len()).max(LEAST)];
            self.shift = 64 - longer.len().trailing_zeros();
            let before = std::mem::replace(&mut self.places, longer);
            for place in before.into_iter().filter(|place| *place != NONE) {
                self.put(place, hash_at(place as usize));
            }
        }
        self.put(new, hash_at(place));
        self.used += 1;
    }

    /// The name at a place is about to be taken away.
    pub(crate) fn remove(&mut self, place: usize, hash_at: impl Fn(usize) -> u64) {
        let mut hole = self.home(hash_at(place));
        while self.places[hole] as usize != place {
            hole = self.behind(hole);
        }
        // Those behind it that would not be found any more move up.
        let mut at = self.behind(hole);
        while self.places[at] != NONE {
            let home = self.home(hash_at(self.places[at] as usize));
            if self.distance(home, at) >= self.distance(hole, at) {
                self.places[hole] = self.places[at];
                hole = at;
            }
            at = self.behind(at);
        }
        self.places[hole] = NONE;
        self.used -= 1;
    }

    fn put(&mut self, place: u32, hash: u64) {
        let mut at = self.home(hash);
        while self.places[at] != NONE {
            at = self.behind(at);
        }
        self.places[at] = place;
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<u32>()
    }
}

/// The hash of a name. Servers give names by themselves, and numbers in their order spread best: no client can choose names that
/// all have one place.
#[inline]
pub(crate) fn hash_of(name: &impl Hash) -> u64 {
    let mut spread = Spread(0);
    name.hash(&mut spread);
    spread.finish()
}

/// Spreads numbers by Fibonacci's way: multiples of the golden ratio lie as far apart as they can.
struct Spread(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Spread {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(GOLDEN);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    /// Names that come and go are found where they stand, in tables of few and of many, also where all have one hash.
    #[test]
    fn a_name_is_found_where_it_stands_until_it_is_removed() {
        for (seed, names) in [(1, 3), (2, 40), (3, 3_000)] {
            for hash in [|name: u64| hash_of(&name), |name: u64| name << 61, |_| u64::MAX] {
                let steps = if hash(0) == hash(1) { 2_000 } else { 20_000 };
                check(&mut Rng::with_seed(seed), names, steps, hash);
            }
        }
    }

    /// A name with a hash of the test's choice.
    struct Named(u64, fn(u64) -> u64);

    impl Hash for Named {
        fn hash<H: Hasher>(&self, state: &mut H) {
            // What spreads it is undone by the factor's inverse.
            state.write_u64(self.1(self.0).wrapping_mul(INVERSE));
        }
    }

    const INVERSE: u64 = {
        // Newton's way: each step doubles the bits that are right, of which odd numbers have three.
        let mut inverse = GOLDEN;
        let mut step = 0;
        while step < 5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(GOLDEN.wrapping_mul(inverse)));
            step += 1;
        }
        inverse
    };

    fn check(rng: &mut Rng, names: u64, steps: usize, hash: fn(u64) -> u64) {
        let mut index = Index::default();
        let mut table: Vec<Option<u64>> = Vec::new();
        for _ in 0..steps {
            let name = rng.u64(0..names);
            let expected = table.iter().position(|at| *at == Some(name));
            assert_eq!(hash_of(&Named(name, hash)), hash(name));
            assert_eq!(index.find(&Named(name, hash), |place| table[place] == Some(name)), expected);
            let hash_at =
                |table: &[Option<u64>], place: usize| hash(table[place].expect("a name stands there"));
            match (expected, rng.u8(0..3)) {
                (None, _) => {
                    let place = table.iter().position(Option::is_none).unwrap_or(table.len());
                    table.resize(table.len().max(place + 1), None);
                    table[place] = Some(name);
                    index.add(place, |place| hash_at(&table, place));
                }
                (Some(place), 0) => {
                    index.remove(place, |place| hash_at(&table, place));
                    table[place] = None;
                }
                (Some(_), _) => {}
            }
            assert_eq!(index.used, table.iter().flatten().count());
        }
    }

    /// Numbers in their order have places of their own.
    #[test]
    fn numbers_in_their_order_are_far_apart() {
        let table: Vec<u64> = (1..=1_000).collect();
        let mut index = Index::default();
        (0..table.len()).for_each(|place| index.add(place, |place| hash_of(&table[place])));
        let away = |place: usize| {
            index
                .places
                .iter()
                .position(|it| *it as usize == place)
                .map_or(0, |at| index.distance(index.home(hash_of(&table[place])), at))
        };
        assert!((0..table.len()).map(away).max() <= Some(2));
    }
}
