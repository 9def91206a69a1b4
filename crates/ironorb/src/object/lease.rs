//! Leases: repeated calls to objects in this process, without a lock and without a count that other
//! processors see. Requests from the network use leases as well, of objects and of adapters
//! (`poa/adapter/request_cache.rs`). What this text says of objects holds for adapters too.
//!
//! A reference keeps a lease of its object: its servant, and the ORB's binding epoch at the time when a
//! thread found that the object may be called directly. A calling thread writes into its own
//! [`ActivitySlots`] that it is in the object, and then checks that the epoch is still the same. A thread
//! that changes something on which leases depend first ends the epoch, then makes every processor catch up
//! (membarrier(2)), and then reads all activity slots. Such a change is to deactivate a leased object,
//! destroy its adapter, change its manager or follow a forward.
//!
//! So there are two cases. Either the changing thread sees the call in its slot. Then the call finds the new
//! epoch when it is over, and notifies the waiting thread. Or the call finds the new epoch before it begins,
//! and takes the general path. Where the system has no such barrier, no object is ever leased.
//!
//! A lease is never taken out of its reference, because threads may be in it. It is renewed, or a further
//! lease is put behind it. A servant whose drop has an effect must be dropped when its object ends, so a
//! lease holds such a servant weakly.

mod activity_slot;

pub(crate) use activity_slot::{all_bindings, depth_by_lease, innermost_binding};

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

use crate::driver::invoke::direct;
use crate::object::TypedRef;
use crate::poa::{Activation, CollocatedBinding, Upcall};
use activity_slot::ActivitySlots;

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

enum LeasedServant<I: ?Sized> {
    Owned(Arc<I>),
    /// A servant that must be dropped as soon as its object ends.
    Weak(Weak<I>),
}

/// The most leases in a chain. An object that is activated again more often is called on the general path,
/// except by clones made then. A chain costs its own memory and that of its servants, which have nothing to
/// drop.
const LEASES_MAX: usize = 8;

/// A lease of an object or an adapter. While the epoch is the same, it exists and may be called directly.
pub(crate) struct BindingLease {
    epoch: AtomicU64,
    /// The token in the thread's activity slot while the thread is in the object.
    token: Token,
    binding_epoch: Arc<BindingEpoch>,
    binding: Arc<CollocatedBinding>,
}

/// Identifies a leased object or adapter, and its manager. Never 0, and unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(u64);

/// The bits of a token below the manager's number. Managers with equal number bits wait for each other's
/// calls, which does no further harm.
const MANAGER_SHIFT: u32 = 40;

/// The time in which all processors catch up without a barrier.
const WITHOUT_BARRIER: Duration = Duration::from_millis(1);

/// The epoch of all collocated bindings of an ORB. A change that affects leases ends it, and with it all of
/// them.
#[derive(Debug, Default)]
pub(crate) struct BindingEpoch {
    /// The number of the epoch. Grows whenever something changes on which leases depend.
    epoch: AtomicU64,
    /// Whether a lease was ever made.
    is_used: AtomicBool,
}

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
            let in_progress = if lease.hold.is_in_force() { lease.hold.enter()? } else { return None };
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

impl<I: ?Sized + 'static> LeaseCell<I> {
    /// Renews the lease of the same object for this epoch; false when there is none.
    fn renew(&self, epoch: u64, token: Token) -> bool {
        let lease = self.leases().find(|lease| lease.hold.token == token);
        if let Some(lease) = lease {
            lease.hold.epoch.store(epoch, Ordering::Release);
        }
        lease.is_some()
    }

    fn put(&self, hold: BindingLease, servant: LeasedServant<I>) {
        let (place, number) = match self.leases().last() {
            Some(last) => (&last.next, last.number + 1),
            None => (self, 1),
        };
        if number <= LEASES_MAX {
            // A lease that another thread has put there meanwhile serves as well.
            let _lost = place.0.set(Arc::new(Lease { hold, servant, number, next: LeaseCell::new() }));
        }
    }
}

impl<I: ?Sized> Lease<I> {
    /// Begins an upcall, if the lease is valid and owns its servant.
    #[inline(always)] // a step of every call
    pub(crate) fn enter(&self) -> Option<(&I, LeasedUpcall<'_>)> {
        let LeasedServant::Owned(servant) = &self.servant else { return None };
        let in_progress = self.hold.enter()?;
        Some((servant, in_progress))
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

/// Keeps a lease in the reference for later calls, if later calls are likely. A reference that has been
/// forwarded gets none.
#[cold]
pub(crate) fn keep<R: TypedRef>(target: &R, upcall: &Upcall) {
    let (object, place) = (target.object(), target.lease_cell());
    let is_wanted = object.is_repeated_call();
    if !is_wanted && place.0.get().is_none() {
        return;
    }
    let binding_epoch = object.core().adapter.binding_epoch();
    let Some(epoch) = binding_epoch.begin() else { return };
    if object.routes().is_replaced() {
        return;
    }
    let Some(hold) = binding_epoch.hold(epoch, upcall) else { return };
    if place.renew(epoch, hold.token) || !is_wanted {
        return;
    }
    if let Some(servant) = direct::<R::Interface>(upcall) {
        place.put(
            hold,
            match upcall.servant().is_dropped_in_time() {
                true => LeasedServant::Weak(Arc::downgrade(&servant)),
                false => LeasedServant::Owned(servant),
            },
        );
    }
}

impl BindingLease {
    /// The epoch that the lease depends on.
    #[inline]
    pub(crate) fn binding_epoch(&self) -> &Arc<BindingEpoch> {
        &self.binding_epoch
    }

    fn is_in_force(&self) -> bool {
        self.binding_epoch.is_in(self.epoch.load(Ordering::Acquire))
    }

    /// Begins an upcall; `None` when the epoch has ended, so that the call must take the general path.
    #[inline(always)] // a step of every call
    pub(crate) fn enter(&self) -> Option<LeasedUpcall<'_>> {
        let place = ActivitySlots::own()?.next()?;
        let epoch = self.epoch.load(Ordering::Acquire);
        place.take(self.token);
        let in_progress = LeasedUpcall { hold: self, place, epoch };
        // sync: leased-or-ended. The fence keeps the compiler from moving later reads before the mark. Once
        // another thread has issued the barrier, no processor has read anything of what follows before its
        // mark is visible.
        compiler_fence(Ordering::SeqCst);
        if self.binding_epoch.is_in(epoch) { Some(in_progress) } else { in_progress.too_late() }
    }
}

/// An upcall by a lease, until it is dropped.
pub(crate) struct LeasedUpcall<'l> {
    hold: &'l BindingLease,
    place: &'static activity_slot::ActivitySlot,
    /// The lease's epoch when the upcall began. The lease may be renewed during the upcall, but the thread
    /// that ended this epoch must still be notified.
    epoch: u64,
}

impl LeasedUpcall<'_> {
    /// Records the object of the call, where the lease is of an adapter.
    #[inline(always)] // a step of many calls
    pub(crate) fn note(&self, activation: Activation) {
        self.place.activation.set(activation);
    }

    #[cold]
    #[inline(never)]
    fn too_late<T>(self) -> Option<T> {
        None
    }
}

impl Drop for LeasedUpcall<'_> {
    #[inline(always)] // a step of every call
    fn drop(&mut self) {
        self.place.leave();
        // sync: leased-or-ended
        compiler_fence(Ordering::SeqCst);
        if !self.hold.binding_epoch.is_in(self.epoch) {
            self.hold.binding.settle();
        }
    }
}

impl BindingEpoch {
    /// The epoch for a new lease. The caller must ask for it before it checks anything on which leases
    /// depend: any later change ends the epoch. `None` the first time, because no thread that ended an epoch
    /// before has issued the barrier.
    pub(crate) fn begin(&self) -> Option<u64> {
        if !self.is_used.load(Ordering::SeqCst) {
            self.is_used.store(has_barrier(), Ordering::SeqCst);
            return None;
        }
        Some(self.epoch.load(Ordering::SeqCst))
    }

    /// Makes a lease of the object of an upcall, from an [epoch](Self::begin) on. `None` when the object
    /// cannot be leased, or the thread is ending.
    pub(crate) fn hold(self: &Arc<Self>, epoch: u64, upcall: &Upcall) -> Option<BindingLease> {
        self.lease_of(epoch, upcall.bind()?)
    }

    /// Makes a lease of a binding, from an [epoch](Self::begin) on; `None` when the thread is ending.
    pub(crate) fn lease_of(self: &Arc<Self>, epoch: u64, binding: CollocatedBinding) -> Option<BindingLease> {
        if !ActivitySlots::claim() {
            return None;
        }
        let binding = activity_slot::shared(binding);
        Some(BindingLease {
            epoch: AtomicU64::new(epoch),
            token: binding.token(),
            binding_epoch: self.clone(),
            binding,
        })
    }

    /// Whether a lease of this epoch is still valid. The thread must have marked before that it is in the
    /// object.
    #[inline(always)] // a step of every call
    fn is_in(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }

    /// Ends the epoch after a change on which leases depend. From now on, [`any`](Self::any) sees calls that
    /// other threads have begun, and new calls see the change.
    pub(crate) fn end_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        if self.is_used.load(Ordering::SeqCst) {
            // sync: leased-or-ended
            if membarrier(MembarrierCommand::PrivateExpedited).is_err() {
                // This happens only where a filter forbids the call since the process was registered.
                // Processors write out their pending stores within microseconds.
                thread::sleep(WITHOUT_BARRIER);
            }
        }
    }

    /// Whether a call by lease is in progress for whose token `is_so` holds. It is sure to see only calls
    /// that began before the epoch ended.
    pub(crate) fn any(&self, is_so: impl Fn(Token) -> bool) -> bool {
        self.is_used.load(Ordering::SeqCst) && activity_slot::any(is_so)
    }
}

impl Token {
    /// Makes a token for an object or adapter of a manager with this number.
    pub(crate) fn new(manager: u64) -> Token {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let object = NEXT.fetch_add(1, Ordering::Relaxed) & ((1 << MANAGER_SHIFT) - 1);
        Token(manager << MANAGER_SHIFT | object.max(1))
    }

    /// Whether the manager has this number.
    pub(crate) fn is_of(self, manager: u64) -> bool {
        self.0 >> MANAGER_SHIFT == manager << MANAGER_SHIFT >> MANAGER_SHIFT
    }
}

/// Whether the system can issue a barrier on every processor of the process. The first call registers the
/// process.
fn has_barrier() -> bool {
    static HAS_BARRIER: OnceLock<bool> = OnceLock::new();
    *HAS_BARRIER.get_or_init(|| {
        membarrier_query().contains_command(MembarrierCommand::PrivateExpedited)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

impl fmt::Debug for CollocatedBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollocatedBinding").finish_non_exhaustive()
    }
}
