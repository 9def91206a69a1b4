//! Which elements of a sequence a part gets.

use std::borrow::Cow;
use std::ops::Range;

/// How the elements of a sequence are distributed over parts. Either way no part gets two elements more than another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// The first part gets the first elements, and so on. Of shares of two lengths, the longer ones are the first.
    Block,
    /// Elements are dealt out in turn: of four parts the first gets the elements 0, 4, 8 and so on.
    Cyclic,
}

/// The share of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share {
    distribution: Distribution,
    part: usize,
    of: usize,
}

impl Share {
    /// That of one part, counted from 0, of so many.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn new(distribution: Distribution, part: usize, of: usize) -> Share {
        assert!(part < of, "part {part} of {of}");
        Share { distribution, part, of }
    }

    /// Everything.
    pub fn whole() -> Share {
        Share::new(Distribution::Block, 0, 1)
    }

    /// How many of so many elements it has.
    pub fn length(&self, of: usize) -> usize {
        of / self.of + usize::from(self.part < of % self.of)
    }

    /// Which part it is of, counted from 0.
    pub fn part(&self) -> usize {
        self.part
    }

    /// Of how many parts that are called.
    pub fn of(&self) -> usize {
        self.of
    }

    /// How elements are distributed.
    pub fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// Where an element of it stands among so many.
    pub fn place(&self, element: usize, of: usize) -> usize {
        match self.distribution {
            Distribution::Block => self.block(of).start.saturating_add(element),
            Distribution::Cyclic => element.saturating_mul(self.of).saturating_add(self.part),
        }
    }

    /// Its elements. They are copied only where they do not follow one another.
    pub fn take<'w, T: Clone>(&self, whole: &'w [T]) -> Cow<'w, [T]> {
        match self.distribution {
            _ if self.of == 1 => Cow::Borrowed(whole),
            Distribution::Block => Cow::Borrowed(&whole[self.block(whole.len())]),
            Distribution::Cyclic => whole.iter().skip(self.part).step_by(self.of).cloned().collect(),
        }
    }

    fn block(&self, length: usize) -> Range<usize> {
        let longer_before = self.part.min(length % self.of);
        let start = self.part * (length / self.of) + longer_before;
        start..start + self.length(length)
    }
}

impl Distribution {
    /// Puts shares together, the first part's first. `None` if they have other lengths than elements that were dealt out have.
    pub(super) fn put_together<T>(self, shares: Vec<Vec<T>>) -> Option<Vec<T>> {
        let length = shares.iter().map(Vec::len).sum();
        let mut whole = Vec::with_capacity(length);
        match self {
            Distribution::Block => shares.into_iter().for_each(|share| whole.extend(share)),
            Distribution::Cyclic => {
                let of = shares.len();
                let is_dealt = |(part, share): (usize, &Vec<T>)| {
                    share.len() == Share::new(Distribution::Cyclic, part, of).length(length)
                };
                if !shares.iter().enumerate().all(is_dealt) {
                    return None;
                }
                let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
                while whole.len() < length {
                    whole.extend(shares.iter_mut().filter_map(Iterator::next));
                }
            }
        }
        Some(whole)
    }
}

/// How many of an object's parts are called for so many elements: those that have one, or the first.
pub fn parts_needed(length: usize, parts: usize) -> usize {
    length.max(1).min(parts)
}
