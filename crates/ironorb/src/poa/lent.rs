//! Objects that threads of this process keep leases of: the rare side, where something about them changes.

use std::sync::{Arc, Weak};

use super::slots::Visit;
use super::upcall::Reached;
use super::{PoaInner, ThreadModel, Upcall};
use crate::lease::Token;

/// An object that a thread has a lease of.
pub(crate) struct Lent {
    /// A lease keeps no adapter.
    poa: Weak<PoaInner>,
    visit: Visit,
    token: Token,
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

    /// The call that this thread is in by the lease, counted as others are.
    #[cold]
    pub(super) fn upcall(&self) -> Option<Upcall> {
        let poa = self.poa.upgrade()?;
        let servant = poa.objects.servant_in(self.visit)?;
        poa.objects.enter_again(self.visit);
        let stripe = poa.manager.enter_again();
        Some(Upcall::new(poa, servant, Reached::Slot(self.visit), stripe))
    }
}

impl Upcall {
    /// Notes that leases of its object are kept, if they may be.
    #[cold]
    pub(crate) fn lend(&self) -> Option<Lent> {
        let poa = self.poa();
        let Reached::Slot(visit) = *self.reached() else { return None };
        if poa.policies.thread != ThreadModel::OrbControl || !poa.manager.is_serving() {
            return None;
        }
        let token = poa.objects.lend(visit, poa.manager.number())?;
        Some(Lent { poa: Arc::downgrade(poa), visit, token })
    }
}
