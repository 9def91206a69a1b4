//! Leases of objects and adapters: repeated calls to objects in this process, without a lock and without a count that other
//! processors see. Requests from the network use leases as well, of objects and of adapters
//! (`poa/adapter/request_cache.rs`). What this text says of objects holds for adapters too.
//!
//! A reference keeps a lease of its object: its servant, and the binding epoch of its manager at the time when a
//! thread found that the object may be called directly. A calling thread writes into its own
//! [`ActivitySlots`] that it is in the object, and then checks that the epoch is still the same. A thread
//! that changes something on which leases depend first ends the epoch. Such a change is to deactivate a leased
//! object, destroy its adapter, or change its manager. Each manager has an epoch of its own, so that others'
//! leases go on. A client that follows a forward revokes the leases of its reference alone.
//!
//! A thread that wants to know whether a call by lease is still in progress ends the epoch, then makes every
//! processor catch up (membarrier(2)), and then reads all activity slots. So there are two cases. Either that
//! thread sees the call in its slot. Then the call finds the new epoch when it is over, and notifies the waiting
//! thread. Or the call finds the new epoch before it begins, and takes the general path. Where the system has no
//! such barrier, no object is ever leased.
//!
//! The barrier interrupts every processor. No thread with a real-time priority from the ORB issues it: such a
//! thread leaves the question to another. Nor do such threads call objects of their process by leases of
//! references; those calls are counted.

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

use super::spawner;
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
    /// The epoch for which the lease holds, or [`REVOKED`].
    epoch: AtomicU64,
    /// The token in the thread's activity slot while the thread is in the object.
    token: Token,
    binding_epoch: Arc<BindingEpoch>,
    binding: Arc<dyn Binding>,
}

/// In place of the epoch of a lease that holds for none.
const REVOKED: u64 = u64::MAX;

/// Identifies a leased object or adapter, and its manager. Never 0, and unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(u64);

/// The bits of a token below the manager's number. Managers with equal number bits wait for each other's
/// calls, which does no further harm.
const MANAGER_SHIFT: u32 = 40;

/// The time in which all processors catch up without a barrier.
const WITHOUT_BARRIER: Duration = Duration::from_millis(1);

/// What the bindings of one ORB have in common. It tells them from those of other ORBs.
#[derive(Debug, Default)]
pub(crate) struct OrbBindings {
    /// Whether a lease was ever made.
    is_used: AtomicBool,
}

/// The epoch of the collocated bindings of one manager's objects. A change that affects them ends it, and with it
/// their leases.
#[derive(Debug)]
pub(crate) struct BindingEpoch {
    /// The number of the epoch. Grows whenever something changes on which the leases depend.
    epoch: AtomicU64,
    /// The last epoch since whose beginning all processors have caught up.
    caught_up: AtomicU64,
    orb: Arc<OrbBindings>,
}

impl BindingLease {
    /// Renews the lease for this epoch.
    pub(crate) fn renew(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::SeqCst);
    }

    /// Ends the lease alone, until it is [renewed](Self::renew). Calls in progress go on.
    pub(crate) fn revoke(&self) {
        self.renew(REVOKED);
    }

    /// The token of the binding.
    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// Whether the lease's epoch is the manager's.
    pub(crate) fn is_in_force(&self) -> bool {
        self.binding_epoch.is_in(self.epoch.load(Ordering::Acquire))
    }

    /// Begins an upcall that a client has asked for; `None` when the epoch has ended, so that the call must take the general
    /// path.
    #[inline(always)] // a step of every call
    pub(crate) fn enter(&self) -> Option<LeasedUpcall<'_>> {
        self.enter_as(ActivitySlots::own()?)
    }

    /// Begins a call within the process, as [`enter`](Self::enter) does. `None` also on a thread with a real-time priority.
    #[inline(always)] // a step of every call
    pub(crate) fn enter_collocated(&self) -> Option<LeasedUpcall<'_>> {
        self.enter_as(ActivitySlots::own_for_collocated_calls()?)
    }

    #[inline(always)]
    fn enter_as(&self, slots: &'static ActivitySlots) -> Option<LeasedUpcall<'_>> {
        let place = slots.next()?;
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
    /// The first epoch of a manager of this ORB.
    pub(crate) fn of(orb: &Arc<OrbBindings>) -> BindingEpoch {
        BindingEpoch { epoch: AtomicU64::new(0), caught_up: AtomicU64::new(0), orb: orb.clone() }
    }

    /// What the bindings of the ORB have in common.
    #[inline]
    pub(crate) fn orb(&self) -> &Arc<OrbBindings> {
        &self.orb
    }

    /// The epoch for a new lease of this thread. The caller must ask for it before it checks anything on which leases
    /// depend: any later change ends the epoch. `None` for the first lease of the ORB, because no thread that ended an epoch
    /// before has issued the barrier; and when the thread is ending.
    pub(crate) fn begin(&self) -> Option<u64> {
        if !self.orb.is_used.load(Ordering::SeqCst) {
            self.orb.is_used.store(has_barrier(), Ordering::SeqCst);
            return None;
        }
        ActivitySlots::claim().then(|| self.epoch.load(Ordering::SeqCst))
    }

    /// Makes a lease of a binding, from an [epoch](Self::begin) on.
    pub(crate) fn lease_of(self: &Arc<Self>, epoch: u64, binding: impl Binding) -> BindingLease {
        let binding = activity_slot::shared(binding);
        BindingLease {
            epoch: AtomicU64::new(epoch),
            token: binding.token(),
            binding_epoch: self.clone(),
            binding,
        }
    }

    /// Whether a lease of this epoch is still valid. The thread must have marked before that it is in the
    /// object.
    #[inline(always)] // a step of every call
    fn is_in(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }

    /// Ends the epoch after a change on which leases depend. From now on, new calls see the change. Never waits.
    pub(crate) fn end_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether a call by lease is in progress for whose token `is_so` holds. It is sure to see only calls
    /// that began before the epoch ended for the last time. May interrupt all processors, so that threads with real-time
    /// priorities do not ask.
    pub(crate) fn any(&self, is_so: impl Fn(Token) -> bool) -> bool {
        self.orb.is_used.load(Ordering::SeqCst) && {
            self.catch_up();
            activity_slot::any(is_so)
        }
    }

    /// Whether such a call is in progress, as far as a thread has seen that has asked [`any`](Self::any) since the change
    /// concerned. Never waits.
    pub(crate) fn any_left(&self, is_so: impl Fn(Token) -> bool) -> bool {
        self.orb.is_used.load(Ordering::SeqCst) && activity_slot::any(is_so)
    }

    /// Has all processors catch up with the beginning of this epoch, if they have not.
    fn catch_up(&self) {
        let epoch = self.epoch.load(Ordering::SeqCst);
        if self.caught_up.load(Ordering::SeqCst) >= epoch {
            return;
        }
        debug_assert!(
            !spawner::is_real_time(),
            "a thread with a real-time priority interrupts all processors"
        );
        // sync: leased-or-ended
        if membarrier(MembarrierCommand::PrivateExpedited).is_err() {
            // This happens only where a filter forbids the call since the process was registered.
            // Processors write out their pending stores within microseconds.
            thread::sleep(WITHOUT_BARRIER);
        }
        self.caught_up.fetch_max(epoch, Ordering::SeqCst);
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
/// process, and then waits for all processors: milliseconds, and more beside other work. So a real-time ORB asks when it is
/// built, before a thread with a priority would have to.
pub(crate) fn has_barrier() -> bool {
    static HAS_BARRIER: OnceLock<bool> = OnceLock::new();
    *HAS_BARRIER.get_or_init(|| {
        debug_assert!(
            !spawner::is_real_time(),
            "a thread with a real-time priority waits for all processors"
        );
        membarrier_query().contains_command(MembarrierCommand::PrivateExpedited)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}
