//! A set of slot numbers by a hash that belongs to each: what leads from a servant or an id to a slot. Eight bytes a place
//! and at most two and a third places a number. Knows nothing of what it is that is hashed.

/// Open addressing with linear probing. A place has the hash above the number, so that growing asks nobody.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// As many as a power of two, or none.
    places: Vec<u64>,
    /// Places that are not [`EMPTY`].
    used: usize,
    /// Of these, those that are [`GONE`].
    gone: usize,
}

/// Numbers are stored with so much added.
const FIRST: u64 = 2;
const EMPTY: u64 = 0;
/// What was here may have been in the way of another.
const GONE: u64 = 1;

/// Numbers must be lower.
pub(super) const NUMBERS_MAX: u32 = u32::MAX - FIRST as u32;

impl Numbers {
    /// The first number of this hash of which `is_it`.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.places_of(hash).map(|place| number(self.places[place])).find(|number| is_it(*number))
    }

    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        if (self.used + 1) * 8 > self.places.len() * 7 {
            self.make_room();
        }
        put(&mut self.places, word(hash, number));
        self.used += 1;
    }

    /// Takes a number out that was put in with this hash.
    pub(super) fn remove(&mut self, hash: u32, number: u32) {
        let sought = word(hash, number);
        let found = self.places_of(hash).find(|place| self.places[*place] == sought);
        if let Some(place) = found {
            self.places[place] = GONE;
            self.gone += 1;
        }
    }

    /// The places in which numbers of this hash are.
    #[inline]
    fn places_of(&self, hash: u32) -> impl Iterator<Item = usize> {
        let mask = self.places.len().wrapping_sub(1);
        let mut place = hash as usize;
        // An eighth of the places is empty, so this ends.
        std::iter::from_fn(move || {
            loop {
                let at = place & mask;
                let found = *self.places.get(at)?;
                place += 1;
                match found {
                    EMPTY => return None,
                    GONE => {}
                    found if (found >> 32) as u32 == hash => return Some(at),
                    _ => {}
                }
            }
        })
    }

    #[cold]
    fn make_room(&mut self) {
        let numbers = self.used - self.gone;
        let length = ((numbers + 1) * 3 / 2).next_power_of_two().max(8);
        let mut places = vec![EMPTY; length];
        self.places.iter().filter(|word| **word > GONE).for_each(|word| put(&mut places, *word));
        *self = Numbers { places, used: numbers, gone: 0 };
    }
}

/// Puts a word into the first free place of its hash.
fn put(places: &mut [u64], word: u64) {
    let mask = places.len() - 1;
    let mut place = (word >> 32) as usize & mask;
    while places[place] != EMPTY {
        place = (place + 1) & mask;
    }
    places[place] = word;
}

fn word(hash: u32, number: u32) -> u64 {
    u64::from(hash) << 32 | (u64::from(number) + FIRST)
}

fn number(word: u64) -> u32 {
    (word as u32).wrapping_sub(FIRST as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::HashSet;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((any::<bool>(), 0..40_u32, 0..4_u32), 0..400)) {
            let mut numbers = Numbers::default();
            let mut known = HashSet::new();
            for (is_put, number, hash) in steps {
                // Few hashes, some of which end in the same bits.
                let hash = [7, 7 << 20 | 7, u32::MAX, 0][hash as usize];
                if is_put && known.insert((hash, number)) {
                    numbers.insert(hash, number);
                } else if !is_put && known.remove(&(hash, number)) {
                    numbers.remove(hash, number);
                }
                for (hash, number) in &known {
                    prop_assert_eq!(numbers.find(*hash, |found| found == *number), Some(*number));
                }
                let mut all = HashSet::new();
                for hash in [7, 7 << 20 | 7, u32::MAX, 0] {
                    numbers.find(hash, |found| {
                        assert!(all.insert((hash, found)));
                        false
                    });
                }
                prop_assert_eq!(&all, &known);
            }
        }
    }

    #[test]
    fn those_that_go_leave_no_trace() {
        let mut numbers = Numbers::default();
        for number in 0..100_000_u32 {
            numbers.insert(number.wrapping_mul(0x9E37_79B9), number);
            if number >= 10 {
                let gone = number - 10;
                numbers.remove(gone.wrapping_mul(0x9E37_79B9), gone);
            }
        }
        assert!(numbers.places.len() <= 64, "{}", numbers.places.len());
    }
}
