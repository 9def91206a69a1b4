//! Calls of objects in this process that are made again and again: without a lock, and without a count that other processors
//! see. Requests from elsewhere have leases as well, of objects and of adapters (`adapter/request_cache.rs`): what is said of
//! objects here is so of adapters.
//!
//! A reference keeps a lease of its object: its servant, and the ORB's epoch when it was found that nothing is in the way. A
//! thread that calls writes into its own [`ActivitySlots`] that it is in the object, and looks whether the epoch is still the same.
//! Whoever changes something that leases go by - deactivates an object that has been lent, destroys its adapter, changes its
//! manager, follows a forward - ends the epoch first, has every processor catch up (membarrier(2)), and then reads all marks.
//! So either he sees the call, and it sees the new epoch when it is over and tells; or the call sees the new epoch, and goes
//! the ordinary way. Where the system has no such barrier nothing is ever lent.
//!
//! A lease is never taken out of its reference, for threads may be in it; what it says is made new, or another one put behind
//! it. A servant that does something when it is dropped must be dropped when its object has ended, so leases keep such ones
//! weakly.

mod activity_slot;

pub(crate) use activity_slot::{all_bindings, depth_by_lease, innermost_binding};

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

use crate::invoke::direct;
use crate::object::TypedRef;
use crate::poa::{Activation, CollocatedBinding, Upcall};
use activity_slot::ActivitySlots;

/// The place in a reference for leases of its object, seen as the interface `I`. References that are cloned from it know what
/// it knows.
pub struct LeasePlace<I: ?Sized>(OnceLock<Arc<Lease<I>>>);

pub(crate) struct Lease<I: ?Sized> {
    hold: BindingLease,
    servant: LeasedServant<I>,
    /// Which one it is of those behind each other, from 1 on.
    number: usize,
    /// For when the object has ended and come back.
    next: LeasePlace<I>,
}

enum LeasedServant<I: ?Sized> {
    Owned(Arc<I>),
    /// One that is to be dropped in time.
    Weak(Weak<I>),
}

/// Leases of a reference, one behind the other; an object that has come back more often is called in the ordinary way, but for
/// clones that are made then. What they cost is their own memory and their servants', which have nothing to drop.
const LEASES_MAX: usize = 8;

/// What a lease is of: the object is there and nothing is in the way, as long as the epoch is the same.
pub(crate) struct BindingLease {
    epoch: AtomicU64,
    /// What the mark has while the thread is in the object.
    token: Token,
    binding_epoch: Arc<BindingEpoch>,
    binding: Arc<CollocatedBinding>,
}

/// An object or an adapter that has been lent, and its manager: never 0, and never another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(u64);

/// Managers with the same number wait for each other's calls, which is all that comes of it.
const MANAGER_SHIFT: u32 = 40;

/// For all processors to catch up by themselves.
const WITHOUT_BARRIER: Duration = Duration::from_millis(1);

/// What an ORB has lent.
#[derive(Debug, Default)]
pub(crate) struct BindingEpoch {
    /// Ends whenever something changes that leases go by.
    epoch: AtomicU64,
    /// Anything has been lent, ever.
    is_used: AtomicBool,
}

impl<I: ?Sized> LeasePlace<I> {
    /// Without a lease.
    pub const fn new() -> Self {
        LeasePlace(OnceLock::new())
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

impl<I: ?Sized + 'static> LeasePlace<I> {
    /// Makes a lease new that has been of the same object; false when there is none.
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
            // Another thread's is as good.
            let _lost = place.0.set(Arc::new(Lease { hold, servant, number, next: LeasePlace::new() }));
        }
    }
}

impl<I: ?Sized> Lease<I> {
    /// Begins an upcall, if nothing about it is unusual.
    #[inline(always)] // a step of every call
    pub(crate) fn enter(&self) -> Option<(&I, LeasedUpcall<'_>)> {
        let LeasedServant::Owned(servant) = &self.servant else { return None };
        let in_progress = self.hold.enter()?;
        Some((servant, in_progress))
    }
}

impl<I: ?Sized> Clone for LeasePlace<I> {
    /// With the newest lease: what the others were of has ended.
    fn clone(&self) -> Self {
        let newest = self.leases().last().filter(|lease| lease.number < LEASES_MAX);
        LeasePlace(newest.cloned().map_or_else(OnceLock::new, OnceLock::from))
    }
}

impl<I: ?Sized> Default for LeasePlace<I> {
    fn default() -> Self {
        LeasePlace::new()
    }
}

impl<I: ?Sized> fmt::Debug for LeasePlace<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasePlace").finish_non_exhaustive()
    }
}

/// Keeps a lease for the calls that follow, if it is to be expected that they do; nor of a reference that has been forwarded.
#[cold]
pub(crate) fn keep<R: TypedRef>(target: &R, upcall: &Upcall) {
    let (object, place) = (target.object(), target.lease_place());
    let is_wanted = object.is_called_again();
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
    /// Whose objects they are.
    #[inline]
    pub(crate) fn binding_epoch(&self) -> &Arc<BindingEpoch> {
        &self.binding_epoch
    }

    fn is_in_force(&self) -> bool {
        self.binding_epoch.is_in(self.epoch.load(Ordering::Acquire))
    }

    /// Begins an upcall; `None` when something has changed, so that it must be begun in the ordinary way.
    #[inline(always)] // a step of every call
    pub(crate) fn enter(&self) -> Option<LeasedUpcall<'_>> {
        let place = ActivitySlots::own()?.next()?;
        let epoch = self.epoch.load(Ordering::Acquire);
        place.take(self.token);
        let in_progress = LeasedUpcall { hold: self, place, epoch };
        // sync: lent-or-ended. Before the mark no processor sees anything of what follows, once others have caught up.
        compiler_fence(Ordering::SeqCst);
        if self.binding_epoch.is_in(epoch) { Some(in_progress) } else { in_progress.too_late() }
    }
}

/// An upcall by a lease, until it is dropped.
pub(crate) struct LeasedUpcall<'l> {
    hold: &'l BindingLease,
    place: &'static activity_slot::ActivitySlot,
    /// The lease's when it began: that may be made new while it lasts, and who has ended this one waits to be told.
    epoch: u64,
}

impl LeasedUpcall<'_> {
    /// Notes which object it is, where the lease is of many.
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
        // sync: lent-or-ended
        compiler_fence(Ordering::SeqCst);
        if !self.hold.binding_epoch.is_in(self.epoch) {
            self.hold.binding.settle();
        }
    }
}

impl BindingEpoch {
    /// The epoch for a new lease, to be asked before anything is looked at that leases go by: whatever changes afterwards
    /// ends it. `None` the first time: who has ended an epoch until then had nobody catch up.
    pub(crate) fn begin(&self) -> Option<u64> {
        if !self.is_used.load(Ordering::SeqCst) {
            self.is_used.store(barrier_is_there(), Ordering::SeqCst);
            return None;
        }
        Some(self.epoch.load(Ordering::SeqCst))
    }

    /// A lease of the object of an upcall, from an [epoch](Self::begin) on. `None` when it may not be lent, or the thread is
    /// going down.
    pub(crate) fn hold(self: &Arc<Self>, epoch: u64, upcall: &Upcall) -> Option<BindingLease> {
        self.hold_of(epoch, upcall.bind()?)
    }

    /// A lease of something that has been lent, from an [epoch](Self::begin) on; `None` when the thread is going down.
    pub(crate) fn hold_of(self: &Arc<Self>, epoch: u64, binding: CollocatedBinding) -> Option<BindingLease> {
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

    /// Whether a lease of this epoch still holds. To be asked when the thread has marked that it is in the object.
    #[inline(always)] // a step of every call
    fn is_in(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }

    /// Something has changed that leases go by. From now on, calls that others have begun are seen by [`any`](Self::any), and
    /// new ones see the change.
    pub(crate) fn end_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        if self.is_used.load(Ordering::SeqCst) {
            // sync: lent-or-ended
            if membarrier(MembarrierCommand::PrivateExpedited).is_err() {
                // Only where somebody has forbidden it since the process was registered. What processors have still to write
                // is out after microseconds.
                thread::sleep(WITHOUT_BARRIER);
            }
        }
    }

    /// Whether a call by a lease is in progress of whose token something is so. Only what was so when the epoch ended is sure
    /// to be seen.
    pub(crate) fn any(&self, is_so: impl Fn(Token) -> bool) -> bool {
        self.is_used.load(Ordering::SeqCst) && activity_slot::any(is_so)
    }
}

impl Token {
    /// For an object of a manager with this number.
    pub(crate) fn new(manager: u64) -> Token {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let object = NEXT.fetch_add(1, Ordering::Relaxed) & ((1 << MANAGER_SHIFT) - 1);
        Token(manager << MANAGER_SHIFT | object.max(1))
    }

    /// Whether the object has a manager of this number.
    pub(crate) fn is_of(self, manager: u64) -> bool {
        self.0 >> MANAGER_SHIFT == manager << MANAGER_SHIFT >> MANAGER_SHIFT
    }
}

/// Whether the system can have every processor of the process catch up. Asked once for the process, which is registered then.
fn barrier_is_there() -> bool {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    *IS_THERE.get_or_init(|| {
        membarrier_query().contains_command(MembarrierCommand::PrivateExpedited)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

impl fmt::Debug for CollocatedBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollocatedBinding").finish_non_exhaustive()
    }
}
