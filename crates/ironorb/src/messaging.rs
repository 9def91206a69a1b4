//! The messaging policies of calls (CORBA 3.3 part 1, clause 17): how long they may take, whether the way to an
//! object may change behind the caller's back, and what a oneway waits for.
//!
//! Nothing here costs a call that sets none of them: the timeout is one of the values that every call looks at, the
//! rest is asked for where it matters - when a connection must be made, a forward followed or a oneway sent.

use std::cell::Cell;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::sync::{read, write};

/// Policies of one level; what is `None` is decided by the next.
///
/// The levels, the nearest first: the reference ([`ObjectRef::with_policies`](crate::ObjectRef::with_policies)), the
/// thread ([`set_thread_policies`]), the ORB ([`Orb::set_policies`](crate::Orb::set_policies), and behind that the
/// settings it was built with). [`with_timeout`](crate::with_timeout) comes before all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InvocationPolicies {
    /// RebindPolicy. Default: [`Rebind::Transparent`].
    pub rebind: Option<Rebind>,
    /// SyncScopePolicy. Default: [`SyncScope::WithTransport`].
    pub sync_scope: Option<SyncScope>,
    /// Whether oneways wait for others to leave with; `Some(None)` is no. Holds where no level has a `sync_scope` but
    /// [`SyncScope::None`]: the others promise that the request has left. Default:
    /// [`OrbConfig::oneway_batching`](crate::OrbConfig::oneway_batching).
    pub oneway_batching: Option<Option<OnewayBatching>>,
    /// RelativeRoundtripTimeoutPolicy: how long a call may take from its beginning to its reply; `Some(None)` is for
    /// ever. Default: [`OrbConfig::call_timeout`](crate::OrbConfig::call_timeout).
    pub roundtrip_timeout: Option<Option<Duration>>,
}

impl InvocationPolicies {
    /// None set.
    pub const NONE: InvocationPolicies =
        InvocationPolicies { rebind: None, sync_scope: None, oneway_batching: None, roundtrip_timeout: None };

    /// These, and where they say nothing those of a farther level.
    #[must_use]
    pub fn or(self, farther: InvocationPolicies) -> InvocationPolicies {
        InvocationPolicies {
            rebind: self.rebind.or(farther.rebind),
            sync_scope: self.sync_scope.or(farther.sync_scope),
            oneway_batching: self.oneway_batching.or(farther.oneway_batching),
            roundtrip_timeout: self.roundtrip_timeout.or(farther.roundtrip_timeout),
        }
    }
}

/// What a call may do about the way to its object without asking. A call that would have to do more ends with
/// REBIND, COMPLETED_NO; [`ObjectRef::validate_connection`](crate::ObjectRef::validate_connection) then does it.
///
/// A reference that has not been called yet has no way that could change, so its first call is always free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rebind {
    /// Follow forwards and make connections anew.
    Transparent,
    /// Make connections anew, but follow no forwards.
    NoRebind,
    /// Neither.
    NoReconnect,
}

/// What a oneway waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncScope {
    /// Nothing, not even a connection. Only what is known at once is reported.
    None,
    /// Until the system has taken the request.
    WithTransport,
    /// Until the server says that it has the request, before the servant is called. Servers of GIOP 1.0 and 1.1
    /// cannot tell, and say so after the servant has been called.
    WithServer,
    /// Until the servant has been called: as a twoway without results. Exceptions and forwards reach the caller.
    WithTarget,
}

/// How long oneways wait for others, to leave with them by one system call: until one of these bounds is reached, or
/// something else leaves over the same connection, or they are flushed ([`Orb::flush`](crate::Orb::flush),
/// [`ObjectRef::flush`](crate::ObjectRef::flush)).
///
/// They leave in their order, and before whatever the same thread calls at that server afterwards. A call that only adds to
/// others returns before anybody knows whether its request can be sent: should the connection end first, the requests that
/// waited are lost, and the next flush says so. The call that reaches a bound sends all of them, and waits while the
/// connection takes no bytes, unless its scope is [`SyncScope::None`]. Shutting the ORB down sends what waits; a process
/// that ends in another way takes it along.
///
/// Costs the ORB its receiver thread, from the first such oneway on, which sends what has waited for `delay_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnewayBatching {
    /// Bytes of requests. Default 16 KiB. A request may reach beyond it, so this and one request is what may wait on each
    /// connection.
    pub bytes_max: usize,
    /// Requests. Default: as many as there is room for.
    pub count_max: usize,
    /// How long the first of them waits. Default 1 ms.
    pub delay_max: Duration,
}

impl OnewayBatching {
    /// The defaults.
    pub const DEFAULT: OnewayBatching =
        OnewayBatching { bytes_max: 16 << 10, count_max: usize::MAX, delay_max: Duration::from_millis(1) };
}

impl Default for OnewayBatching {
    fn default() -> Self {
        OnewayBatching::DEFAULT
    }
}

thread_local! {
    static THREAD: Cell<InvocationPolicies> = const { Cell::new(InvocationPolicies::NONE) };
    /// Whether the thread has ever said anything about its calls. Nearly none has, and is asked but this.
    static HAS_SPOKEN: Cell<bool> = const { Cell::new(false) };
}

/// False when neither the thread's policies nor anything else that only it knows says anything about its calls.
#[inline(always)] // a step of every call
pub(crate) fn thread_has_policies() -> bool {
    HAS_SPOKEN.get()
}

/// From now on this thread is asked.
pub(crate) fn note_thread_policies() {
    HAS_SPOKEN.set(true);
}

/// Sets the policies of this thread's calls, all at once: what was set before is forgotten.
pub fn set_thread_policies(policies: InvocationPolicies) {
    note_thread_policies();
    THREAD.set(policies);
}

/// The policies of this thread's calls.
pub fn thread_policies() -> InvocationPolicies {
    THREAD.get()
}

/// The ORB's own level, which may change while calls are made.
#[derive(Debug, Default)]
pub(crate) struct OrbPolicies {
    /// So that an ORB that was never told any - nearly all - takes no lock.
    is_set: AtomicBool,
    policies: RwLock<InvocationPolicies>,
}

impl OrbPolicies {
    pub(crate) fn set(&self, policies: InvocationPolicies) {
        *write(&self.policies) = policies;
        self.is_set.store(policies != InvocationPolicies::NONE, Ordering::Release);
    }

    #[inline]
    pub(crate) fn get(&self) -> InvocationPolicies {
        if self.is_set.load(Ordering::Acquire) { *read(&self.policies) } else { InvocationPolicies::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_level_that_says_something_counts() {
        let object = InvocationPolicies { rebind: Some(Rebind::NoRebind), ..InvocationPolicies::NONE };
        let thread = InvocationPolicies {
            rebind: Some(Rebind::Transparent),
            sync_scope: Some(SyncScope::WithServer),
            ..InvocationPolicies::NONE
        };
        let orb = OrbPolicies::default();
        assert_eq!(orb.get(), InvocationPolicies::NONE);
        orb.set(InvocationPolicies {
            sync_scope: Some(SyncScope::None),
            roundtrip_timeout: Some(None),
            oneway_batching: Some(None),
            ..InvocationPolicies::NONE
        });
        let effective = object.or(thread).or(orb.get());
        assert_eq!(
            effective,
            InvocationPolicies {
                rebind: Some(Rebind::NoRebind),
                sync_scope: Some(SyncScope::WithServer),
                oneway_batching: Some(None),
                roundtrip_timeout: Some(None),
            }
        );
    }
}
