//! The places for connections that a thread has used last. A call finds its own by the number of its endpoint, in a few
//! steps.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::{EndpointLinks, Link, Slot, thread_ordinal};
use crate::base::sync::lock;
use crate::base::time::Time;
use crate::object::route::RemoteTarget;

/// A slot, and the number of its endpoint.
type Place = RefCell<(u64, Option<Arc<Mutex<Slot>>>)>;

/// How many slots a thread remembers. One that finds another in its place looks into its endpoint.
const PLACES: usize = 32;

thread_local! {
    static OWN: [Place; PLACES] = const { [const { RefCell::new((0, None)) }; PLACES] };
}

/// A number that no other endpoint of the process has. Never 0.
pub(super) fn fresh_number() -> u64 {
    // Of the process, as threads are. Nothing but the places above depends on it.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl RemoteTarget {
    /// The connections to the address.
    pub(crate) fn links(&self) -> &EndpointLinks {
        EndpointLinks::of(&*self.endpoint)
    }

    /// Returns the open connection of this thread, as [`EndpointLinks::open_link`] does.
    #[inline(always)] // a step of every call
    pub(crate) fn open_link(&self, now: Time) -> Option<Arc<Link>> {
        let found = OWN.try_with(|own| {
            let place = &own[self.number as usize % PLACES];
            match &*place.borrow() {
                (number, Some(slot)) if *number == self.number => return lock(slot).open_in_turn(now),
                _ => {}
            }
            self.find(place, now)
        });
        found.unwrap_or_else(|_| self.links().open_link(thread_ordinal(), now))
    }

    #[cold]
    #[inline(never)]
    fn find(&self, place: &Place, now: Time) -> Option<Arc<Link>> {
        let slot = self.links().slot_in_use(thread_ordinal())?.clone();
        let link = lock(&slot).open_in_turn(now);
        place.replace((self.number, Some(slot)));
        link
    }
}
