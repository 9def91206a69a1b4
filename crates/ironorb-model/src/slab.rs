//! Things with numbers, and queues of them without memory of their own.

use std::ops::{Index, IndexMut};

/// Things that come and go, by number. A free number is used again, the last one first, so that the memory is that of the most at
/// one time.
#[derive(Debug)]
pub struct Slab<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds a thing, and gives its number.
    #[inline]
    pub fn add(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.places[number as usize] = thing;
                number
            }
            None => {
                self.places.push(thing);
                (self.places.len() - 1) as u32
            }
        }
    }

    /// Gives a number back. What it names stays in memory until the number is used again.
    #[inline]
    pub fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Those that there are now, in the order of their numbers. Takes time and memory for all that there have been at a time.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let mut is_free = vec![false; self.places.len()];
        self.free.iter().for_each(|number| is_free[*number as usize] = true);
        self.places.iter().zip(is_free).filter(|(_, is_free)| !is_free).map(|(thing, _)| thing)
    }

    /// How many there are now.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.places[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.places[number as usize]
    }
}

/// What stands in one queue at a time, and names the next one in it.
pub trait Queued {
    /// Where it keeps the number of the next one.
    fn next(&mut self) -> &mut u32;
}

/// A first-in, first-out queue of things of a slab.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;

impl Default for Queue {
    fn default() -> Self {
        Queue { first: NONE, last: NONE }
    }
}

impl Queue {
    /// Adds the last one.
    #[inline]
    pub fn push<T: Queued>(&mut self, slab: &mut Slab<T>, number: u32) {
        *slab[number].next() = NONE;
        match self.last {
            NONE => self.first = number,
            last => *slab[last].next() = number,
        }
        self.last = number;
    }

    /// Takes the first one out.
    #[inline]
    pub fn pop<T: Queued>(&mut self, slab: &mut Slab<T>) -> Option<u32> {
        if self.first == NONE {
            return None;
        }
        let first = self.first;
        self.first = *slab[first].next();
        if self.first == NONE {
            self.last = NONE;
        }
        Some(first)
    }
}
