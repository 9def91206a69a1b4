//! What is to happen, in its order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::{Slab, Time};

/// Events by time. Those of one time happen in the order in which they were entered, so that a run is the same wherever
/// it runs.
#[derive(Debug)]
pub struct Agenda<E> {
    now: Time,
    entered: u64,
    order: BinaryHeap<Entry>,
    /// Apart from their order: the heap moves a dozen of its entries for each event, and these are several times as large.
    events: Slab<Option<E>>,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Agenda { now: Time::ZERO, entered: 0, order: BinaryHeap::new(), events: Slab::default() }
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
        let event = self.events.add(Some(event));
        self.order.push(Entry { at: at.max(self.now), order: self.entered, event });
        self.entered += 1;
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Time> {
        self.order.peek().map(|next| next.at)
    }

    /// Takes the next event. The time is now that of the event.
    pub fn take_next(&mut self) -> Option<(Time, E)> {
        let Entry { at, event: number, .. } = self.order.pop()?;
        let event = self.events[number].take();
        debug_assert!(event.is_some(), "an event that is entered stands in its place");
        self.events.free(number);
        self.now = at;
        Some((at, event?))
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
        self.order.len()
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[derive(Debug)]
struct Entry {
    at: Time,
    order: u64,
    /// Its number among the events.
    event: u32,
}

impl Ord for Entry {
    /// The heap has its greatest entry on top: the one that is due first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Entry {}
