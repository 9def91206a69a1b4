//! The places for connections that a thread has used last. A call finds its own by the number of its endpoint, in a few
//! steps.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{EndpointLinks, Link, SharedSlot, Slot, thread_ordinal};
use crate::base::time::Time;
use crate::object::server_profile::ServerTarget;

/// A slot, and the number of its endpoint.
type Place = RefCell<(u64, Option<SharedSlot>)>;

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

impl ServerTarget {
    /// The connections to the address.
    pub(crate) fn links(&self) -> &EndpointLinks {
        EndpointLinks::of(&*self.endpoint)
    }

    /// Returns the open connection of this thread, as [`EndpointLinks::open_link`] does.
    #[inline(always)] // a step of every call
    pub(crate) fn open_link(&self, now: Time) -> Option<Arc<Link>> {
        self.of_this_thread(|slot| slot.open_in_turn(now))
    }

    /// Returns the open connection of the thread with this number.
    #[inline]
    pub(crate) fn open_link_of(&self, ordinal: usize, now: Time) -> Option<Arc<Link>> {
        match ordinal == thread_ordinal() {
            true => self.open_link(now),
            false => self.links().open_link(ordinal, now),
        }
    }

    /// Returns the connection of this thread, so that a oneway can be added to a batch. Checks less than
    /// [`open_link`](Self::open_link) does.
    #[inline]
    pub(crate) fn link_for_more(&self) -> Option<Arc<Link>> {
        self.of_this_thread(Slot::link_for_more)
    }

    #[inline(always)] // a step of every call
    fn of_this_thread(&self, ask: impl Fn(&Slot) -> Option<Arc<Link>>) -> Option<Arc<Link>> {
        let found = OWN.try_with(|own| {
            let place = &own[self.number as usize % PLACES];
            match &*place.borrow() {
                (number, Some(slot)) if *number == self.number => return ask(&slot.lock()),
                _ => {}
            }
            ask(&(*self.find(place)?).lock())
        });
        // A thread that is ending remembers nothing any more.
        found.unwrap_or_else(|_| ask(&self.links().slot_in_use(thread_ordinal())?.lock()))
    }

    #[cold]
    #[inline(never)]
    fn find(&self, place: &Place) -> Option<SharedSlot> {
        let slot = self.links().slot_in_use(thread_ordinal())?.clone();
        place.replace((self.number, Some(slot.clone())));
        Some(slot)
    }
}
