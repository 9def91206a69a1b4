//! A value for each lane of an ORB: in place for the lanes that it was built with, in a list for those that come later.

use super::growing_list::GrowingList;
use super::lane::{LaneId, lane_among};

/// One value for each lane, at least one. Values stay where they are until the table is dropped. Nothing here waits, and a
/// lane that the ORB was built with is found as in an array.
#[derive(Debug)]
pub(crate) struct LaneTable<T> {
    built: Box<[T]>,
    later: GrowingList<LaneId, T>,
}

impl<T> LaneTable<T> {
    /// The value of a lane. A lane that the table lacks belongs to another ORB of the process: the default lane does its work.
    #[inline]
    pub(crate) fn of(&self, lane: LaneId) -> &T {
        match self.built.get(lane.index()) {
            Some(value) => value,
            None => self.of_later(lane),
        }
    }

    #[cold]
    fn of_later(&self, lane: LaneId) -> &T {
        match self.later.get(lane) {
            Some(value) => value,
            None => &self.built[lane_among(lane, self.built.len()).index()],
        }
    }

    /// The value of the default lane.
    #[inline]
    pub(crate) fn first(&self) -> &T {
        &self.built[LaneId::DEFAULT.index()]
    }

    /// All values, in the order of their lanes' numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.built.iter().chain(self.later.iter().map(|(_, value)| value))
    }

    /// The number of lanes, which is the index of the next one.
    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    /// Adds the value of the next lane. One thread does this at a time.
    pub(crate) fn add(&self, lane: LaneId, value: T) -> &T {
        debug_assert_eq!(lane.index(), self.len());
        self.later.get_or_init(lane, || value)
    }
}

impl<T> FromIterator<T> for LaneTable<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> LaneTable<T> {
        LaneTable { built: values.into_iter().collect(), later: GrowingList::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_come_later_are_found_and_those_of_others_are_not() {
        let lane = |index| LaneId::new(index).unwrap();
        let table: LaneTable<&str> = ["default", "built"].into_iter().collect();
        assert_eq!((*table.of(lane(1)), *table.of(lane(2))), ("built", "default"));
        table.add(lane(2), "later");
        assert_eq!((*table.of(lane(2)), *table.of(lane(3)), *table.first()), ("later", "default", "default"));
        assert_eq!((table.len(), table.iter().copied().last()), (3, Some("later")));
    }
}
