//! Requests that say the same as others that this thread has carried out lately: they are known by their bytes. Nothing of
//! them is parsed or looked up.
//!
//! Those that say the same of another object of the same adapter reach it by a lease of the adapter: only the object is
//! looked for, and counts them. Those of an object that is called again and again reach their servant by a lease of the
//! object, as calls within a process do ([`lease`](crate::lease)): then nothing is counted that other threads see.
//!
//! Decides nothing: what is remembered is where such a request has gone in the ordinary way, and whatever changes that ends
//! the lease. A request that is not known pays a few instructions.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use ironorb_giop::message::{HeaderTemplate, Message, RequestFingerprint, Response};

use super::Adapter;
use crate::config::{Demultiplexing, ObjectLookup, OrbConfig};
use crate::generated::operations::Found;
use crate::lease::BindingLease;
use crate::poa::key::{self, ParsedKey};
use crate::poa::{AdapterLease, ObjectSelector, Upcall};
use crate::probe::{self, Stage};
use crate::servant::{LeasedServant, Servant};

thread_local! {
    /// What has come lately: apart from what is known, so that to find nothing is a comparison.
    static LATELY: [Candidate; CACHE_SLOTS] = const { [const { Candidate::nothing() }; CACHE_SLOTS] };
    static CACHE: [CacheSlot; CACHE_SLOTS] = const { [const { RefCell::new(None) }; CACHE_SLOTS] };
}

type CacheSlot = RefCell<Option<Box<CachedTarget>>>;

/// Requests have their places by their prints: enough for the operations of an interface or two. What is known takes some
/// 400 bytes, so that a thread which uses all places has 13 KB in them.
const CACHE_SLOTS: usize = 32;

/// Requests in a row that say the same before they are remembered. A lease takes some memory and time, and so does ending
/// it: objects that are soon gone are not worth it.
const ALIKE_MIN: u32 = 64;

/// What requests with the same place have said.
struct Candidate {
    /// The print of what is known there; 0 where nothing is.
    known: Cell<u64>,
    /// Of the last that was not known.
    shape: RepeatCounter,
    /// Of the last one's object.
    object: RepeatCounter,
}

/// A number that may come again and again.
struct RepeatCounter {
    last: Cell<u64>,
    /// How often in a row it has come after the first time.
    times: Cell<u32>,
}

impl Candidate {
    const fn nothing() -> Candidate {
        Candidate { known: Cell::new(0), shape: RepeatCounter::new(), object: RepeatCounter::new() }
    }
}

impl RepeatCounter {
    const fn new() -> RepeatCounter {
        RepeatCounter { last: Cell::new(0), times: Cell::new(0) }
    }

    /// Notes that it has come; true when it has come often enough.
    #[inline(always)] // a step of many calls
    fn note(&self, number: u64) -> bool {
        let times = if self.last.replace(number) == number { self.times.get() + 1 } else { 0 };
        self.times.set(times);
        times >= ALIKE_MIN
    }

    fn forget(&self) {
        self.times.set(0);
    }
}

/// What is known of requests that say the same.
struct CachedTarget {
    /// Of the object that is known, if one is.
    head: HeaderTemplate,
    operation: Cell<Found>,
    adapter: AdapterLease,
    object: Option<(BindingLease, LeasedServant)>,
}

/// A request that is known, and in its object.
#[derive(Clone, Copy)]
pub(super) struct CachedUpcall<'k> {
    pub(super) head: &'k HeaderTemplate,
    /// Where its operation has been found.
    pub(super) operation: &'k Cell<Found>,
    pub(super) servant: &'k dyn Servant,
}

impl Adapter {
    /// Whether requests may be remembered at all: not where the configuration has them looked up in some way.
    pub(super) fn may_cache(config: &OrbConfig) -> bool {
        config.demultiplexing == Demultiplexing::Delayered && config.object_lookup == ObjectLookup::Active
    }

    /// Has a request carried out if it is known; false where nothing has been done.
    #[inline(always)] // a step of every call
    pub(super) fn if_cached(
        &self,
        fingerprint: Option<RequestFingerprint>,
        message: &mut Message,
        carry_out: impl FnOnce(CachedUpcall<'_>, &mut Message),
    ) -> bool {
        let Some(fingerprint) = fingerprint else { return false };
        let place = cache_slot_of(fingerprint);
        LATELY.with(|lately| lately[place].known.get() == fingerprint.shape)
            && CACHE.try_with(|known| self.carry_out_cached(&known[place], fingerprint, message, carry_out))
                == Ok(Some(()))
    }

    #[inline(always)] // a step of every call
    fn carry_out_cached(
        &self,
        place: &CacheSlot,
        fingerprint: RequestFingerprint,
        message: &mut Message,
        carry_out: impl FnOnce(CachedUpcall<'_>, &mut Message),
    ) -> Option<()> {
        let known = place.try_borrow().ok()?;
        let CachedTarget { head, operation, adapter, object } = known.as_deref()?;
        if !Arc::ptr_eq(adapter.binding_epoch(), self.binding_epoch()) {
            return None;
        }
        // What is held until the request is over; a servant of the caller's own is let go first.
        let (_in_progress, poa, visiting, mut upgraded);
        let probe = probe::enter(Stage::Frame);
        let servant = match object {
            Some((hold, servant)) if head.is_of(message) => {
                drop(probe);
                let _probe = probe::enter(Stage::ObjectLookup);
                _in_progress = hold.enter()?;
                upgraded = None;
                servant.get(&mut upgraded)?
            }
            _ => {
                let object = head.object_of(message)?;
                drop(probe);
                let _probe = probe::enter(Stage::ObjectLookup);
                if LATELY.with(|lately| lately[cache_slot_of(fingerprint)].object.note(fingerprint.object)) {
                    return None; // it is to be remembered
                }
                poa = adapter.poa()?;
                visiting = adapter.enter(&poa, object)?;
                visiting.servant().get()
            }
        };
        #[cfg(debug_assertions)]
        let _known = crate::testing::RequestKnown::begin();
        carry_out(CachedUpcall { head, operation, servant }, message);
        Some(())
    }

    /// Takes note of a plain request that has reached its servant in the ordinary way.
    #[inline(always)] // a step of many calls
    pub(super) fn note(
        &self,
        fingerprint: Option<RequestFingerprint>,
        message: &Message,
        key: &[u8],
        upcall: &Upcall,
    ) {
        let Some(fingerprint) = fingerprint else { return };
        let is_enough = LATELY.with(|lately| {
            let lately = &lately[cache_slot_of(fingerprint)];
            let has_object_come_often = lately.object.note(fingerprint.object);
            lately.shape.note(fingerprint.shape)
                || has_object_come_often && lately.known.get() == fingerprint.shape
        });
        if is_enough {
            self.remember(fingerprint, message, key, upcall);
        }
    }

    #[cold]
    #[inline(never)]
    fn remember(&self, fingerprint: RequestFingerprint, message: &Message, key: &[u8], upcall: &Upcall) {
        let place = cache_slot_of(fingerprint);
        // Whatever comes of it, it is not tried again for each request.
        let has_object_come_often = LATELY.with(|lately| {
            let Candidate { shape, object, .. } = &lately[place];
            let is_often = object.times.get() >= ALIKE_MIN;
            shape.forget();
            object.forget();
            is_often
        });
        if !self.caches_requests {
            return;
        }
        let known = || {
            let (naming, open) = match key::parse(key) {
                ParsedKey::Slot { object, .. } => (ObjectSelector::Slot(object), key::SLOT_BYTES),
                ParsedKey::Path { id, .. } => (ObjectSelector::Id(id), id.len()),
                ParsedKey::Foreign => return None,
            };
            let head = HeaderTemplate::of(message, open)?;
            if head.response() == Response::SyncWithServer {
                return None;
            }
            let epoch = self.binding_epoch().begin()?;
            let adapter = AdapterLease::of(self.binding_epoch(), epoch, upcall, naming)?;
            let object =
                || Some((self.binding_epoch().hold(epoch, upcall)?, LeasedServant::of(upcall.servant())));
            let object = if has_object_come_often { object() } else { None };
            Some(Box::new(CachedTarget { head, operation: Cell::default(), adapter, object }))
        };
        let keep = |places: &[CacheSlot; CACHE_SLOTS]| {
            // In a request that is known there, it stays.
            let Ok(mut kept) = places[place].try_borrow_mut() else { return };
            let Some(known) = known() else { return };
            let before = kept.replace(known);
            drop(kept);
            drop(before);
            LATELY.with(|lately| lately[place].known.set(fingerprint.shape));
        };
        let _going_down = CACHE.try_with(keep);
    }
}

#[inline(always)]
fn cache_slot_of(fingerprint: RequestFingerprint) -> usize {
    (fingerprint.shape >> (u64::BITS - CACHE_SLOTS.ilog2())) as usize % CACHE_SLOTS
}
