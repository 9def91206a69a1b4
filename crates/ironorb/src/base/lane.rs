//! Numbers of lanes, the lane of the calling thread, and values of which each lane has its own.
//!
//! A lane is a range of priorities with what it owns: connections, threads, buffers, budgets. An ORB has a table of lanes,
//! nearly always with one. A thread is in one lane at a time. The ORB's threads stay in theirs; a thread of the application
//! is in the default lane until it enters another.

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::growing_list::GrowingList;
#[cfg(test)]
use super::spawner::NativePriority;
use super::thread_settings::ThreadSettingsId;

/// The number of a lane in its ORB's table, with the settings of the lane's threads, among them their priority. Lanes are
/// equal when their numbers are: a thread of another ORB's lane has that lane's settings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LaneId {
    index: u8,
    threads: Option<ThreadSettingsId>,
}

/// The most lanes of one ORB.
pub(crate) const LANES_MAX: usize = 64;

thread_local! {
    static CURRENT: Cell<LaneId> = const { Cell::new(LaneId::DEFAULT) };
    /// The thread is of a lane of another ORB, whose calls the default lane carries.
    #[cfg(debug_assertions)]
    static IS_GUEST: Cell<bool> = const { Cell::new(false) };
}

impl LaneId {
    /// The first lane, which every ORB has.
    pub(crate) const DEFAULT: LaneId = LaneId { index: 0, threads: None };

    /// The lane with this index; `None` beyond [`LANES_MAX`].
    pub(crate) const fn new(index: usize) -> Option<LaneId> {
        if index < LANES_MAX { Some(LaneId { index: index as u8, threads: None }) } else { None }
    }

    /// The lane with settings of its threads.
    pub(crate) const fn with_threads(self, threads: Option<ThreadSettingsId>) -> LaneId {
        LaneId { threads, ..self }
    }

    /// The lane with a priority of its threads, and no other settings.
    #[cfg(test)]
    pub(crate) fn with_priority(self, priority: Option<NativePriority>) -> LaneId {
        let settings = super::thread_settings::ThreadSettings { priority, ..Default::default() };
        self.with_threads(settings.id())
    }

    /// The settings of the lane's threads; `None` for threads as the system makes them.
    pub(crate) const fn threads(self) -> Option<ThreadSettingsId> {
        self.threads
    }

    /// The index of the lane, below [`LANES_MAX`].
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.index as usize % LANES_MAX
    }
}

impl PartialEq for LaneId {
    #[inline]
    fn eq(&self, other: &LaneId) -> bool {
        self.index == other.index
    }
}

impl Eq for LaneId {}

impl PartialOrd for LaneId {
    fn partial_cmp(&self, other: &LaneId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LaneId {
    fn cmp(&self, other: &LaneId) -> Ordering {
        self.index.cmp(&other.index)
    }
}

impl Hash for LaneId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}

/// The lane of the calling thread. A thread that is ending is in the default lane.
#[inline]
pub(crate) fn current_lane() -> LaneId {
    CURRENT.try_with(Cell::get).unwrap_or_default()
}

/// The lane in a table of `lanes` that carries what a thread of `lane` does. A lane that the table lacks belongs to
/// another ORB of the process: the default lane does its work.
#[inline]
pub(crate) fn lane_among(lane: LaneId, lanes: usize) -> LaneId {
    if lane.index() < lanes {
        return lane;
    }
    #[cfg(debug_assertions)]
    IS_GUEST.set(true);
    LaneId::DEFAULT
}

/// Whether the thread has done something in an ORB that lacks the thread's lane. Such a thread takes locks of lanes of
/// that ORB.
#[cfg(debug_assertions)]
pub(crate) fn is_guest() -> bool {
    IS_GUEST.get()
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
/// for, and stay where they are. No thread waits here for another.
pub(crate) struct PerLane<T> {
    first: T,
    further: GrowingList<LaneId, T>,
}

impl<T> PerLane<T> {
    /// The value of the default lane. Other lanes have none.
    pub(crate) const fn new(first: T) -> PerLane<T> {
        PerLane { first, further: GrowingList::new() }
    }

    /// The value of a lane, made by `make` if the lane has none. Of two threads that make it at once, one drops what it
    /// has made.
    #[inline]
    pub(crate) fn get_or_init(&self, lane: LaneId, make: impl FnOnce() -> T) -> &T {
        if lane == LaneId::DEFAULT { &self.first } else { self.further.get_or_init(lane, make) }
    }

    /// The value of a lane, if it has one.
    #[inline]
    pub(crate) fn get(&self, lane: LaneId) -> Option<&T> {
        if lane == LaneId::DEFAULT { Some(&self.first) } else { self.further.get(lane) }
    }

    /// All values with their lanes, that of the default lane first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LaneId, &T)> {
        std::iter::once((LaneId::DEFAULT, &self.first)).chain(self.further.iter())
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
        let urgent = lane(5).with_priority(NativePriority::new(9));
        assert!(urgent == lane(5) && urgent.cmp(&lane(5)).is_eq());
        let of_threads = urgent.threads().unwrap().settings();
        assert_eq!((urgent.index(), of_threads.priority), (5, NativePriority::new(9)));
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
