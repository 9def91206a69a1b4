//! The leases of a reference: repeated calls to objects in this process, without a lock and without a count that
//! other processors see. See [`base::lease`](crate::base::lease).
//!
//! A lease is never taken out of its reference, because threads may be in it. It is renewed, or a further
//! lease is put behind it. A servant whose drop has an effect must be dropped when its object ends, so a
//! lease holds such a servant weakly.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use crate::base::lease::{BindingLease, LeasedUpcall, Token};
use crate::object::ObjectRef;

/// The place in a reference for leases of its object, seen as the interface `I`. A clone of a reference
/// shares its newest lease.
pub struct LeaseCell<I: ?Sized>(OnceLock<Arc<Lease<I>>>);

pub(crate) struct Lease<I: ?Sized> {
    hold: BindingLease,
    servant: LeasedServant<I>,
    /// The position of the lease in its chain, from 1 on.
    number: usize,
    /// The next lease, for an object that was deactivated and activated again.
    next: LeaseCell<I>,
}

/// A servant, as a lease holds it.
pub(crate) enum LeasedServant<I: ?Sized> {
    Owned(Arc<I>),
    /// A servant that must be dropped as soon as its object ends.
    Weak(Weak<I>),
}

/// The most leases in a chain. An object that is activated again more often is called on the general path,
/// except by clones made then. A chain costs its own memory and that of its servants, which have nothing to
/// drop.
const LEASES_MAX: usize = 8;

impl<I: ?Sized> LeaseCell<I> {
    /// Makes a place without a lease.
    pub const fn new() -> Self {
        LeaseCell(OnceLock::new())
    }

    /// The first lease.
    #[inline(always)] // a step of every call
    pub(crate) fn first(&self) -> Option<&Lease<I>> {
        self.0.get().map(|lease| &**lease)
    }

    /// Begins an upcall by any of the leases.
    #[inline(never)]
    pub(crate) fn enter_any(&self) -> Option<(LeasedUpcall<'_>, Arc<I>)> {
        self.leases().find_map(|lease| {
            let in_progress =
                if lease.hold.is_in_force() { lease.hold.enter_collocated()? } else { return None };
            let servant = match &lease.servant {
                LeasedServant::Owned(servant) => servant.clone(),
                LeasedServant::Weak(servant) => servant.upgrade()?,
            };
            Some((in_progress, servant))
        })
    }

    fn leases(&self) -> impl Iterator<Item = &Arc<Lease<I>>> {
        std::iter::successors(self.0.get(), |lease| lease.next.0.get())
    }
}

impl<I: ?Sized + Send + Sync + 'static> LeaseCell<I> {
    /// Renews the lease of the same object for this epoch; false when there is none.
    pub(crate) fn renew(&self, epoch: u64, token: Token) -> bool {
        let lease = self.leases().find(|lease| lease.hold.token() == token);
        if let Some(lease) = lease {
            lease.hold.renew(epoch);
        }
        lease.is_some()
    }

    /// Adds a lease to the chain, if that is not too long. The route of `object` can revoke it from now on.
    pub(crate) fn put(&self, hold: BindingLease, servant: LeasedServant<I>, object: &ObjectRef) {
        let (place, number) = match self.leases().last() {
            Some(last) => (&last.next, last.number + 1),
            None => (self, 1),
        };
        if number <= LEASES_MAX {
            let lease = Arc::new(Lease { hold, servant, number, next: LeaseCell::new() });
            object.routes().may_revoke(lease.clone());
            // A lease that another thread has put there meanwhile serves as well.
            let _lost = place.0.set(lease);
        }
    }
}

impl<I: ?Sized> Lease<I> {
    /// Begins an upcall, if the lease is valid and owns its servant.
    #[inline(always)] // a step of every call
    pub(crate) fn enter(&self) -> Option<(&I, LeasedUpcall<'_>)> {
        let LeasedServant::Owned(servant) = &self.servant else { return None };
        let in_progress = self.hold.enter_collocated()?;
        Some((servant, in_progress))
    }
}

/// A lease that holds only while a reference has a certain route.
pub(crate) trait RevocableLease: Send + Sync {
    /// Ends the lease alone, until it is renewed. Calls in progress go on.
    fn revoke(&self);
}

impl<I: ?Sized + Send + Sync> RevocableLease for Lease<I> {
    fn revoke(&self) {
        self.hold.revoke();
    }
}

impl<I: ?Sized> Clone for LeaseCell<I> {
    /// Clones the newest lease only: the objects of earlier leases have ended.
    fn clone(&self) -> Self {
        let newest = self.leases().last().filter(|lease| lease.number < LEASES_MAX);
        LeaseCell(newest.cloned().map_or_else(OnceLock::new, OnceLock::from))
    }
}

impl<I: ?Sized> Default for LeaseCell<I> {
    fn default() -> Self {
        LeaseCell::new()
    }
}

impl<I: ?Sized> fmt::Debug for LeaseCell<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseCell").finish_non_exhaustive()
    }
}
