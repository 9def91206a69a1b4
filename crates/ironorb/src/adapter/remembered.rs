//! Requests that say the same as others that this thread has carried out lately: they are known by their bytes, and reach
//! their servant by a lease of its object, as calls within a process do ([`lease`](crate::lease)). Nothing of them is parsed
//! or looked up, and nothing is counted that other threads see.
//!
//! Decides nothing: what is remembered is where such a request has gone in the ordinary way, and whatever changes that ends
//! the lease. A request that is not known pays a few instructions.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use ironorb_giop::message::{Message, RequestHead, Response};

use super::Adapter;
use crate::config::{Demultiplexing, ObjectLookup, OrbConfig};
use crate::generated::operations::Found;
use crate::lease::Hold;
use crate::poa::Upcall;
use crate::probe::{self, Stage};
use crate::servant::{Leased, Servant};

thread_local! {
    /// The prints of what is in `KNOWN`, and what the last requests were that were not: apart from it, so that to find nothing
    /// is two comparisons.
    static PRINTS: [Print; PLACES] = const { [const { Print::none() }; PLACES] };
    static KNOWN: [Place; PLACES] = const { [const { RefCell::new(None) }; PLACES] };
}

type Place = RefCell<Option<Known>>;

/// Requests have their places by their prints.
const PLACES: usize = 8;

/// Requests in a row that say the same before they are remembered. A lease takes some memory and time, and so does ending
/// it: objects that are soon gone are not worth it.
const ALIKE_MIN: u32 = 64;

struct Print {
    known: Cell<u64>,
    last: Cell<u64>,
    /// How many in a row have been like the last.
    alike: Cell<u32>,
}

impl Print {
    const fn none() -> Print {
        Print { known: Cell::new(0), last: Cell::new(0), alike: Cell::new(0) }
    }
}

/// What is known of requests that say the same.
struct Known {
    head: RequestHead,
    hold: Hold,
    servant: Leased,
    operation: Cell<Found>,
}

/// A request that is known, and in its object.
pub(super) struct Begun<'k> {
    pub(super) head: &'k RequestHead,
    /// Where its operation has been found.
    pub(super) operation: &'k Cell<Found>,
    pub(super) servant: &'k dyn Servant,
}

impl Adapter {
    /// Whether requests may be remembered at all: not where the configuration has them looked up in some way.
    pub(super) fn may_remember(config: &OrbConfig) -> bool {
        config.demultiplexing == Demultiplexing::Delayered && config.object_lookup == ObjectLookup::Active
    }

    /// Has a request carried out if it is known; false where nothing has been done.
    #[inline(always)] // a step of every call
    pub(super) fn if_known(&self, message: &Message, carry_out: impl FnOnce(Begun<'_>)) -> bool {
        let print = message.print();
        let place = place_of(print);
        PRINTS.with(|prints| prints[place].known.get() == print)
            && KNOWN.try_with(|known| self.carry_out_known(&known[place], message, carry_out)) == Ok(Some(()))
    }

    #[inline(always)] // a step of every call
    fn carry_out_known(
        &self,
        place: &Place,
        message: &Message,
        carry_out: impl FnOnce(Begun<'_>),
    ) -> Option<()> {
        let known = place.try_borrow().ok()?;
        let Known { head, hold, servant, operation } = known.as_ref()?;
        let probe = probe::enter(Stage::Frame);
        if !head.is_of(message) || !Arc::ptr_eq(hold.lending(), self.lending()) {
            return None;
        }
        drop(probe);
        let probe = probe::enter(Stage::ObjectLookup);
        let _in_progress = hold.enter()?;
        drop(probe);
        servant.with(|servant| carry_out(Begun { head, operation, servant }))
    }

    /// Takes note of a plain request that has reached its servant in the ordinary way.
    #[inline(always)] // a step of every call
    pub(super) fn note(&self, message: &Message, upcall: &Upcall) {
        let print = message.print();
        let is_enough = PRINTS.with(|prints| {
            let place = &prints[place_of(print)];
            let alike = if place.last.replace(print) == print { place.alike.get() + 1 } else { 0 };
            place.alike.set(alike);
            alike >= ALIKE_MIN
        });
        if is_enough {
            self.remember(print, message, upcall);
        }
    }

    #[cold]
    #[inline(never)]
    fn remember(&self, print: u64, message: &Message, upcall: &Upcall) {
        let place = place_of(print);
        // Whatever comes of it, it is not tried again for each request.
        PRINTS.with(|prints| prints[place].alike.set(0));
        if !self.remembers {
            return;
        }
        let known = || {
            let head = RequestHead::of(message).filter(|head| head.response() != Response::SyncWithServer)?;
            let hold = self.lending().hold(self.lending().begin()?, upcall)?;
            let servant = Leased::of(upcall.servant());
            Some(Known { head, hold, servant, operation: Cell::default() })
        };
        let keep = |places: &[Place; PLACES]| {
            // In a request that is known there, it stays.
            let Ok(mut kept) = places[place].try_borrow_mut() else { return };
            let Some(known) = known() else { return };
            let before = kept.replace(known);
            drop(kept);
            drop(before);
            PRINTS.with(|prints| prints[place].known.set(print));
        };
        let _going_down = KNOWN.try_with(keep);
    }
}

#[inline(always)]
fn place_of(print: u64) -> usize {
    (print >> (u64::BITS - PLACES.ilog2())) as usize % PLACES
}
