//! Requests that say the same as others that this thread has carried out lately: they are known by their bytes, and reach
//! their servant by a lease of its object, as calls within a process do ([`lease`](crate::lease)). Nothing of them is parsed
//! or looked up, and nothing is counted that other threads see.
//!
//! Decides nothing: what is remembered is where such a request has gone in the ordinary way, and whatever changes that ends
//! the lease. A request that is not known pays a few instructions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use ironorb_giop::message::{Message, RequestHead, Response};

use super::Adapter;
use crate::config::{Demultiplexing, ObjectLookup, OrbConfig};
use crate::generated::operations::Found;
use crate::lease::{Lending, Mark};
use crate::poa::{Lent, Upcall, call_depth};
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
    lease: Lease,
    servant: Leased,
    operation: Cell<Found>,
}

/// The object is there and nothing is in the way, as long as the epoch is the same.
struct Lease {
    epoch: u64,
    /// What the mark has while the thread is in the object.
    token: u64,
    mark: Arc<Mark>,
    lending: Arc<Lending>,
    lent: Rc<Lent>,
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
        let Known { head, lease, servant, operation } = known.as_ref()?;
        let probe = probe::enter(Stage::Frame);
        if !head.is_of(message) || !Arc::ptr_eq(&lease.lending, self.lending()) {
            return None;
        }
        drop(probe);
        let probe = probe::enter(Stage::ObjectLookup);
        let _in_progress = lease.enter()?;
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
            let lease = Lease::take(self.lending(), upcall)?;
            let servant = Leased::of(upcall.servant());
            Some(Known { head, lease, servant, operation: Cell::default() })
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

impl Lease {
    fn take(lending: &Arc<Lending>, upcall: &Upcall) -> Option<Lease> {
        let epoch = lending.begin()?;
        let (mark, lent) = lending.note(upcall.lend()?)?;
        Some(Lease { epoch, token: lent.token().number(), mark, lending: lending.clone(), lent })
    }

    /// Begins an upcall; `None` when something has changed, so that it must be begun in the ordinary way.
    #[inline(always)] // a step of every call
    fn enter(&self) -> Option<InProgress<'_>> {
        let depth = call_depth().with(Cell::get);
        let frame = self.mark.at(depth)?;
        frame.store(self.token, Ordering::Relaxed);
        call_depth().with(|cell| cell.set(depth + 1));
        let in_progress = InProgress { lease: self, frame, depth };
        // sync: lent-or-ended. Before the mark no processor sees anything of what follows, once others have caught up.
        compiler_fence(Ordering::SeqCst);
        self.lending.is_in(self.epoch).then_some(in_progress)
    }
}

/// An upcall by a lease, until it is dropped.
struct InProgress<'l> {
    lease: &'l Lease,
    frame: &'l AtomicU64,
    depth: usize,
}

impl Drop for InProgress<'_> {
    #[inline(always)] // a step of every call
    fn drop(&mut self) {
        self.frame.store(0, Ordering::Release);
        call_depth().with(|cell| cell.set(self.depth));
        // sync: lent-or-ended
        compiler_fence(Ordering::SeqCst);
        if !self.lease.lending.is_in(self.lease.epoch) {
            self.lease.lent.settle();
        }
    }
}

#[inline(always)]
fn place_of(print: u64) -> usize {
    (print >> (u64::BITS - PLACES.ilog2())) as usize % PLACES
}
