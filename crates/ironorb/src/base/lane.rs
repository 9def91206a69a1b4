//! Numbers of lanes, the lane of the calling thread, and values of which each lane has its own.
//!
//! A lane is a range of priorities with what it owns: connections, threads, buffers, budgets. An ORB has a table of lanes,
//! nearly always with one. A thread is in one lane at a time. The ORB's threads stay in theirs; a thread of the application
//! is in the default lane until it enters another.

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;

use once_cell::race::OnceBox;

/// The number of a lane in its ORB's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct LaneId(u16);

/// The most lanes of one ORB. A table of what each lane owns has room for so many.
pub(crate) const LANES_MAX: usize = 64;

thread_local! {
    static CURRENT: Cell<LaneId> = const { Cell::new(LaneId::DEFAULT) };
}

impl LaneId {
    /// The first lane, which every ORB has.
    pub(crate) const DEFAULT: LaneId = LaneId(0);

    /// The lane with this index; `None` beyond [`LANES_MAX`].
    pub(crate) const fn new(index: usize) -> Option<LaneId> {
        if index < LANES_MAX { Some(LaneId(index as u16)) } else { None }
    }

    /// The index of the lane, below [`LANES_MAX`].
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize % LANES_MAX
    }
}

/// The lane of the calling thread. A thread that is ending is in the default lane.
#[inline]
pub(crate) fn current_lane() -> LaneId {
    CURRENT.try_with(Cell::get).unwrap_or_default()
}

/// Puts the calling thread into a lane until the result is dropped.
pub(crate) fn enter(lane: LaneId) -> InLane {
    InLane { before: CURRENT.replace(lane) }
}

/// The calling thread's stay in a lane. Dropping it brings the thread back to the lane that it was in.
#[derive(Debug)]
#[must_use = "the stay ends when this is dropped"]
pub(crate) struct InLane {
    before: LaneId,
}

impl Drop for InLane {
    fn drop(&mut self) {
        let _thread_is_ending = CURRENT.try_with(|current| current.set(self.before));
    }
}

/// One value for each lane. The value of the default lane is in place. Those of others are made when they are first asked
/// for, and stay where they are: a reader takes no lock.
pub(crate) struct PerLane<T> {
    first: T,
    /// Threads of several lanes may make this at once. None waits for another: one that is slower drops what it has made.
    others: OnceBox<[OnceLock<T>; LANES_MAX - 1]>,
}

impl<T> PerLane<T> {
    /// The value of the default lane. Other lanes have none.
    pub(crate) const fn new(first: T) -> PerLane<T> {
        PerLane { first, others: OnceBox::new() }
    }

    /// The value of a lane, made by `make` if the lane has none. Two threads of one lane may wait for each other here.
    #[inline]
    pub(crate) fn get_or_init(&self, lane: LaneId, make: impl FnOnce() -> T) -> &T {
        match lane {
            LaneId::DEFAULT => &self.first,
            lane => self.of_another(lane, make),
        }
    }

    /// The value of a lane, if it has one.
    pub(crate) fn get(&self, lane: LaneId) -> Option<&T> {
        match lane.index() {
            0 => Some(&self.first),
            index => self.others.get()?[index - 1].get(),
        }
    }

    /// All values, by the numbers of their lanes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LaneId, &T)> {
        (0..LANES_MAX).filter_map(LaneId::new).filter_map(|lane| Some((lane, self.get(lane)?)))
    }

    #[cold]
    fn of_another(&self, lane: LaneId, make: impl FnOnce() -> T) -> &T {
        let others = self.others.get_or_init(|| Box::new([const { OnceLock::new() }; LANES_MAX - 1]));
        others[lane.index() - 1].get_or_init(make)
    }
}

impl<T: Default> PerLane<T> {
    /// The value of a lane, made if the lane has none.
    #[inline]
    pub(crate) fn of(&self, lane: LaneId) -> &T {
        self.get_or_init(lane, T::default)
    }
}

impl<T: Default> Default for PerLane<T> {
    fn default() -> PerLane<T> {
        PerLane::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for PerLane<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn lane(index: usize) -> LaneId {
        LaneId::new(index).unwrap()
    }

    #[test]
    fn a_thread_is_in_one_lane_at_a_time() {
        assert_eq!(current_lane(), LaneId::DEFAULT);
        let outer = enter(lane(3));
        let inner = enter(lane(7));
        assert_eq!(current_lane(), lane(7));
        assert_eq!(std::thread::spawn(current_lane).join().unwrap(), LaneId::DEFAULT);
        drop(inner);
        assert_eq!(current_lane(), lane(3));
        drop(outer);
        assert_eq!(current_lane(), LaneId::DEFAULT);
    }

    #[test]
    fn each_lane_has_a_value_of_its_own() {
        let counts: PerLane<AtomicUsize> = PerLane::default();
        assert!(counts.get(lane(5)).is_none());
        for index in [0, 5, LANES_MAX - 1, 5] {
            counts.of(lane(index)).fetch_add(1, Ordering::Relaxed);
        }
        let counted: Vec<_> =
            counts.iter().map(|(lane, count)| (lane.index(), count.load(Ordering::Relaxed))).collect();
        assert_eq!(counted, [(0, 1), (5, 2), (LANES_MAX - 1, 1)]);
        assert!(LaneId::new(LANES_MAX).is_none());
    }
}
