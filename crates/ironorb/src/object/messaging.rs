//! The messaging policies of calls (CORBA 3.3 part 1, clause 17): how long calls may take, whether the route
//! to an object may change without the caller's knowledge, and what a oneway waits for.
//!
//! A call without policies pays nothing for them. The timeout is one of the values that every call reads. The
//! other policies are read only when a connection must be made, a forward followed or a oneway sent.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::base::config::OnewayBatching;
use crate::base::locks::Snapshot;
use crate::object::deadline::Timeout;

/// Policies of one level. The next level decides what is `None`.
///
/// The levels, the nearest first, are the reference
/// ([`ObjectRef::with_policies`](crate::ObjectRef::with_policies)), the thread ([`set_thread_policies`](crate::set_thread_policies)), and
/// the ORB ([`Orb::set_policies`](crate::Orb::set_policies), and behind that the settings it was built with).
/// [`with_timeout`](crate::with_timeout) comes before all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InvocationPolicies {
    /// RebindPolicy. Default: [`Rebind::Transparent`].
    pub rebind: Option<Rebind>,
    /// SyncScopePolicy. Default: [`SyncScope::WithTransport`].
    pub sync_scope: Option<SyncScope>,
    /// Whether oneways are batched; `Some(None)` turns batching off. Batching applies when no level sets a
    /// `sync_scope` other than [`SyncScope::None`], because those scopes promise that the request has left.
    /// Default: [`OrbConfig::oneway_batching`](crate::OrbConfig::oneway_batching).
    pub oneway_batching: Option<Option<OnewayBatching>>,
    /// RelativeRoundtripTimeoutPolicy: how long a call may take from its beginning to its reply; `Some(None)`
    /// is without limit. Default: [`OrbConfig::call_timeout`](crate::OrbConfig::call_timeout).
    pub roundtrip_timeout: Option<Option<Duration>>,
}

impl InvocationPolicies {
    /// No policies.
    pub const NONE: InvocationPolicies =
        InvocationPolicies { rebind: None, sync_scope: None, oneway_batching: None, roundtrip_timeout: None };

    /// Returns these policies, completed by those of a farther level.
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

/// What a call may do about the route to its object without asking. A call that would have to do more ends
/// with REBIND, COMPLETED_NO; [`ObjectRef::validate_connection`](crate::ObjectRef::validate_connection) then
/// does it.
///
/// A reference that has not been called yet has no route that could change, so its first call is always free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rebind {
    /// Follow forwards and make connections anew.
    Transparent,
    /// Make connections anew, but follow no forwards.
    NoRebind,
    /// Neither follow forwards nor make connections anew.
    NoReconnect,
}

/// How long a oneway call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncScope {
    /// The call waits for nothing, not even a connection. It reports only failures that are known at once.
    None,
    /// The call waits until the system has taken the request.
    WithTransport,
    /// The call waits until the server confirms that it has the request, before it calls the servant. Servers
    /// of GIOP 1.0 and 1.1 cannot confirm that early, and do so after the servant has been called.
    WithServer,
    /// The call waits until the servant has been called, as a twoway without results does. Exceptions and
    /// forwards reach the caller.
    WithTarget,
}

/// The policies of the ORB's own level, which may change while calls are made.
#[derive(Debug)]
pub(crate) struct OrbPolicies {
    /// False for an ORB without policies, whose calls need not look for them. Nearly all ORBs are such.
    is_set: AtomicBool,
    /// The nanoseconds of the timeout, which every call reads.
    timeout: AtomicU64,
    policies: Snapshot<InvocationPolicies>,
    /// The timeout where the policies name none.
    configured_timeout: Timeout,
}

impl OrbPolicies {
    /// No policies yet.
    pub(crate) fn new(configured_timeout: Timeout) -> OrbPolicies {
        OrbPolicies {
            is_set: AtomicBool::new(false),
            timeout: AtomicU64::new(configured_timeout.as_nanos()),
            policies: Snapshot::nothing(),
            configured_timeout,
        }
    }

    pub(crate) fn set(&self, policies: InvocationPolicies) {
        let timeout = policies.roundtrip_timeout.map_or(self.configured_timeout, Timeout::from);
        // Threads that set policies at the same time leave one and the same of them behind.
        let set = self.policies.change(|_| {
            self.timeout.store(timeout.as_nanos(), Ordering::Release);
            self.is_set.store(policies != InvocationPolicies::NONE, Ordering::Release);
            Ok::<_, Infallible>(Some(policies))
        });
        drop(set);
    }

    /// The timeout of a call for which neither the reference nor the thread has one.
    #[inline]
    pub(crate) fn timeout(&self) -> Timeout {
        Timeout::from_nanos(self.timeout.load(Ordering::Acquire))
    }

    /// Whether there are policies.
    #[inline]
    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn get(&self) -> InvocationPolicies {
        if self.is_set() { self.policies.cloned().unwrap_or_default() } else { InvocationPolicies::NONE }
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
        let orb = OrbPolicies::new(None.into());
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
