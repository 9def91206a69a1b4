//! What is to happen, in its order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::Time;

/// Events by time. Those of one time happen in the order in which they were entered, so that a run is the same wherever
/// it runs.
#[derive(Debug)]
pub struct Agenda<E> {
    now: Time,
    entered: u64,
    events: BinaryHeap<Entry<E>>,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Agenda { now: Time::ZERO, entered: 0, events: BinaryHeap::new() }
    }
}

impl<E> Agenda<E> {
    /// The time of the last event that was taken.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Enters an event. One whose time has passed happens now.
    #[inline]
    pub fn enter(&mut self, at: Time, event: E) {
        self.events.push(Entry { at: at.max(self.now), order: self.entered, event });
        self.entered += 1;
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Time> {
        self.events.peek().map(|next| next.at)
    }

    /// Takes the next event. The time is now that of the event.
    pub fn take_next(&mut self) -> Option<(Time, E)> {
        let next = self.events.pop()?;
        self.now = next.at;
        Some((next.at, next.event))
    }

    /// Lets time pass to `to`. Events that are due before must have been taken.
    pub fn pass_to(&mut self, to: Time) {
        debug_assert!(self.next_at().is_none_or(|next| next >= to), "an event is left behind");
        self.now = self.now.max(to);
    }

    /// The number of events entered so far, whether taken or not.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// The number of events to come.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    order: u64,
    event: E,
}

impl<E> Ord for Entry<E> {
    /// The heap has its greatest entry on top: the one that is due first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<E> Eq for Entry<E> {}
