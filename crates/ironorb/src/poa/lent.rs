//! Objects that threads of this process keep leases of: the rare side, where something about them changes. And adapters that
//! threads keep leases of, whose objects count their requests as ever.

use std::cell::Cell;
use std::sync::{Arc, Weak};

use super::lookup::Naming;
use super::object_map::{Ended, Entered};
use super::slots::Visit;
use super::upcall::Reached;
use super::{ObjectId, PoaInner, ThreadModel, Upcall};
use crate::lease::{DEPTH_MAX, Hold, InProgress, Lending, Token};
use crate::servant::Kept;

thread_local! {
    /// The objects that the thread is in by leases of their adapters, at the depths of its calls.
    static VISITS: [Cell<Visit>; DEPTH_MAX] = const { [const { Cell::new(Visit::NONE) }; DEPTH_MAX] };
}

/// What a thread has a lease of.
pub(crate) struct Lent {
    /// A lease keeps no adapter.
    poa: Weak<PoaInner>,
    what: What,
    token: Token,
}

#[derive(Clone, Copy)]
enum What {
    Object(Visit),
    /// Of all its objects, each of which is to be looked for.
    Adapter,
}

/// A thread's lease of an adapter: it is there, and its manager lets requests through. So they need be counted with their
/// objects alone, which are asked each time.
pub(crate) struct AdapterLease {
    hold: Hold,
    poa: Weak<PoaInner>,
    names_slots: bool,
}

/// A request that is in an object by a lease of its adapter, until it is dropped.
pub(crate) struct Visiting<'l> {
    entered: Entered<'l>,
    in_progress: Option<InProgress<'l>>,
    poa: &'l Arc<PoaInner>,
}

impl AdapterLease {
    /// A lease of the adapter of an upcall, from an [epoch](Lending::begin) on, for requests that name their objects in the
    /// same way. `None` when it may not be lent, or the thread is going down.
    pub(crate) fn of(
        lending: &Arc<Lending>,
        epoch: u64,
        upcall: &Upcall,
        naming: Naming<'_>,
    ) -> Option<AdapterLease> {
        let poa = upcall.poa();
        if !upcall.may_lend() {
            return None;
        }
        let token = Token::new(poa.manager.number());
        let poa = Arc::downgrade(poa);
        let hold = lending.hold_of(epoch, Lent { poa: poa.clone(), what: What::Adapter, token })?;
        Some(AdapterLease { hold, poa, names_slots: matches!(naming, Naming::Slot(_)) })
    }

    /// Whose adapter it is.
    #[inline]
    pub(crate) fn lending(&self) -> &Arc<Lending> {
        self.hold.lending()
    }

    /// The adapter; `None` when it is no more.
    #[inline]
    pub(crate) fn poa(&self) -> Option<Arc<PoaInner>> {
        self.poa.upgrade()
    }

    /// Passes a request to an object of the adapter, as its key names it; `None` where it must go the ordinary way.
    #[inline(always)] // a step of many calls
    pub(crate) fn enter<'l>(&'l self, poa: &'l Arc<PoaInner>, object: &[u8]) -> Option<Visiting<'l>> {
        let naming = match self.names_slots {
            true => Naming::Slot(ObjectId::slot_in(object)?),
            false => Naming::Id(object),
        };
        let in_progress = self.hold.enter()?;
        let entered = poa.objects.enter(naming)?;
        VISITS.with(|visits| visits[in_progress.depth() % DEPTH_MAX].set(entered.visit));
        Some(Visiting { entered, in_progress: Some(in_progress), poa })
    }
}

impl Visiting<'_> {
    #[inline(always)]
    pub(crate) fn servant(&self) -> &Kept {
        &self.entered.servant
    }

    /// Its object has been taken out, and this was the last request of it. What is left to do is done outside of the call,
    /// but while the manager still counts it.
    #[cold]
    fn end(&mut self, ended: Ended) {
        let stripe = self.poa.manager.enter_again();
        self.in_progress = None;
        self.poa.say_farewell(ended);
        self.poa.manager.leave(stripe);
    }
}

impl Drop for Visiting<'_> {
    #[inline(always)] // a step of many calls
    fn drop(&mut self) {
        let Entered { place, visit, .. } = self.entered;
        if let Some(ended) = self.poa.objects.leave_place(place, visit) {
            self.end(ended);
        }
    }
}

impl Lent {
    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// A call by the lease is over, and something had changed meanwhile.
    #[cold]
    pub(crate) fn settle(&self) {
        let Some(poa) = self.poa.upgrade() else { return };
        if let Some(ended) = poa.objects.leave_lent(self.token) {
            poa.say_farewell(ended);
        }
        poa.manager.tell_waiters();
    }

    /// The call that this thread is in by the lease, at this depth, counted as others are.
    #[cold]
    pub(super) fn upcall(&self, depth: usize) -> Option<Upcall> {
        let poa = self.poa.upgrade()?;
        let visit = match self.what {
            What::Object(visit) => visit,
            What::Adapter => VISITS.with(|visits| Some(visits.get(depth)?.get()))?,
        };
        let servant = poa.objects.servant_in(visit)?;
        poa.objects.enter_again(visit);
        let stripe = poa.manager.enter_again();
        Some(Upcall::new(poa, servant, Reached::Slot(visit), stripe))
    }
}

impl Upcall {
    /// Notes that leases of its object are kept, if they may be.
    #[cold]
    pub(crate) fn lend(&self) -> Option<Lent> {
        let poa = self.poa();
        let Reached::Slot(visit) = *self.reached() else { return None };
        if !self.may_lend() {
            return None;
        }
        let token = poa.objects.lend(visit, poa.manager.number())?;
        Some(Lent { poa: Arc::downgrade(poa), what: What::Object(visit), token })
    }

    /// Whether nothing is in the way of requests to its adapter.
    fn may_lend(&self) -> bool {
        let poa = self.poa();
        poa.policies.thread == ThreadModel::OrbControl && poa.manager.is_serving()
    }
}
