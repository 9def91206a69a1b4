//! Leases of objects and adapters: repeated calls to objects in this process, without a lock and without a count that other
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

mod activation;
mod activity_slot;

pub(crate) use activation::{Activation, Incarnation};
pub(crate) use activity_slot::{all_bindings, depth_by_lease, innermost_binding};

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

use activity_slot::ActivitySlots;

/// What a lease is for: an object or an adapter. The adapters recognise their own by its type.
pub(crate) trait Binding: Any + Send + Sync {
    /// The token of all leases of it.
    fn token(&self) -> Token;

    /// Called when a call by a lease is over and the epoch has changed meanwhile.
    fn settle(&self);
}

/// A lease of an object or an adapter. While the epoch is the same, it exists and may be called directly.
pub(crate) struct BindingLease {
    epoch: AtomicU64,
    /// The token in the thread's activity slot while the thread is in the object.
    token: Token,
    binding_epoch: Arc<BindingEpoch>,
    binding: Arc<dyn Binding>,
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

impl BindingLease {
    /// The token of the binding.
    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// Renews the lease for this epoch.
    pub(crate) fn renew(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// The epoch that the lease depends on.
    #[inline]
    pub(crate) fn binding_epoch(&self) -> &Arc<BindingEpoch> {
        &self.binding_epoch
    }

    /// Whether the lease's epoch is the ORB's.
    pub(crate) fn is_in_force(&self) -> bool {
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

    /// Makes a lease of a binding, from an [epoch](Self::begin) on; `None` when the thread is ending.
    pub(crate) fn lease_of(self: &Arc<Self>, epoch: u64, binding: impl Binding) -> Option<BindingLease> {
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
