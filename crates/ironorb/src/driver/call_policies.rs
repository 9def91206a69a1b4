//! The policies that a call follows: those of the reference, then the thread's, then the ORB's. A thread has its own,
//! so this is the drivers'.

use std::cell::Cell;
use std::time::Duration;

use crate::base::config::OnewayBatching;
use crate::base::time::Time;
use crate::object::ObjectRef;
use crate::object::deadline::{
    Deadline, Timeout, TimeoutSetting, deadline_of_request, note_thread_limits, thread_has_limits,
};
use crate::object::messaging::{InvocationPolicies, Rebind, SyncScope};
use crate::object::timing::timeout_of_operation;
use crate::poa::time_of_upcall;

thread_local! {
    static THREAD: Cell<InvocationPolicies> = const { Cell::new(InvocationPolicies::NONE) };
}

/// Sets the policies of this thread's calls, all at once. They replace earlier ones.
pub fn set_thread_policies(policies: InvocationPolicies) {
    note_thread_limits();
    THREAD.set(policies);
}

/// The policies of this thread's calls.
pub fn thread_policies() -> InvocationPolicies {
    THREAD.get()
}

thread_local! {
    /// How long calls in [`with_timeout`] may take.
    static CALL: Cell<TimeoutSetting> = const { Cell::new(None) };
}

/// Sets how long calls of this thread may take. `Some(None)` means without limit; `None` removes the setting.
pub fn set_thread_timeout(timeout: Option<Option<Duration>>) {
    set_thread_policies(InvocationPolicies { roundtrip_timeout: timeout, ..thread_policies() });
}

/// Runs `body`, in which each call may take `timeout`; `None` means without limit.
pub fn with_timeout<T>(timeout: Option<Duration>, body: impl FnOnce() -> T) -> T {
    struct Restore(TimeoutSetting);
    impl Drop for Restore {
        fn drop(&mut self) {
            CALL.set(self.0);
        }
    }
    note_thread_limits();
    let _restore = Restore(CALL.replace(Some(timeout)));
    body()
}

/// How long a call of the object that begins now may take.
#[inline]
pub(crate) fn call_timeout(object: &ObjectRef) -> Timeout {
    let orb = object.shared().policies.timeout();
    match thread_has_limits() || object.has_policies() {
        false => orb,
        true => limited_timeout(object, orb),
    }
}

/// As long as [`call_timeout`] says, unless that is no time at all.
#[inline(always)] // a step of every call
pub(crate) fn some_call_timeout(object: &ObjectRef) -> Option<Timeout> {
    let orb = object.shared().policies.timeout();
    match thread_has_limits() || object.has_policies() {
        false => Some(orb),
        true => Some(limited_timeout(object, orb)).filter(|timeout| *timeout != Timeout::NOTHING),
    }
}

/// How long a call may take that more than the ORB may limit: as long as the nearest setting says, and not longer than the
/// operation's deadline, nor than the caller of the request waits that this thread carries out.
#[cold]
fn limited_timeout(object: &ObjectRef, orb: Timeout) -> Timeout {
    let own = nearest_timeout(object.policies().roundtrip_timeout, orb).min(timeout_of_operation());
    match deadline_of_request() {
        Deadline::NEVER => own,
        deadline => own.min(deadline.left(object.now())),
    }
}

/// How long the caller still waits for the request that this thread carries out.
///
/// `None` outside an upcall, if the caller waits without limit, and if it has not told how long: clients tell it where
/// [`OrbBuilder::deadline_propagation`](crate::OrbBuilder::deadline_propagation) is set, and so must the server's ORB
/// have it. Zero if the caller has given up. Calls that the thread makes in the upcall have no longer time than that.
/// Threads that a servant starts are outside the upcall; [`Reply::remaining_time`](crate::Reply::remaining_time) tells
/// them. Neither blocks nor allocates.
pub fn remaining_time() -> Option<Duration> {
    let deadline = deadline_of_request();
    deadline.at()?;
    deadline.left(time_of_upcall()?).as_duration()
}

/// The nearest setting of the time that a call may take, where more than the ORB may have one.
#[cold]
pub(crate) fn nearest_timeout(object: TimeoutSetting, orb: Timeout) -> Timeout {
    let nearer = CALL.get().or(object).or_else(|| thread_policies().roundtrip_timeout);
    nearer.map_or(orb, Timeout::from)
}

/// The deadline of a call of the object that begins now.
#[inline]
pub(crate) fn deadline_of(object: &ObjectRef, now: Time) -> Deadline {
    Deadline::after(now, call_timeout(object))
}

impl ObjectRef {
    /// The policies that a call made by this thread now would follow (`get_client_policy`): those of the
    /// reference, then the thread's, then the ORB's.
    pub fn effective_policies(&self) -> InvocationPolicies {
        let orb = self.shared().policies.get();
        let built = InvocationPolicies {
            roundtrip_timeout: Some(self.shared().config.call_timeout),
            rebind: Some(Rebind::Transparent),
            sync_scope: Some(SyncScope::WithTransport),
            oneway_batching: Some(self.shared().config.oneway_batching),
        };
        self.policies().or(thread_policies()).or(orb).or(built)
    }

    #[inline]
    pub(crate) fn rebind(&self) -> Rebind {
        self.policy(|policies| policies.rebind).unwrap_or(Rebind::Transparent)
    }

    #[inline]
    pub(crate) fn sync_scope(&self) -> SyncScope {
        self.policy(|policies| policies.sync_scope).unwrap_or(SyncScope::WithTransport)
    }

    /// The batching of oneways, if it is on.
    #[inline]
    pub(crate) fn oneway_batching(&self) -> Option<OnewayBatching> {
        let batching = self.policy(|policies| policies.oneway_batching);
        let batching = batching.unwrap_or(self.shared().config.oneway_batching)?;
        match self.policy(|policies| policies.sync_scope) {
            None | Some(SyncScope::None) => Some(batching),
            Some(SyncScope::WithTransport | SyncScope::WithServer | SyncScope::WithTarget) => None,
        }
    }

    #[inline]
    fn policy<P>(&self, of: impl Fn(&InvocationPolicies) -> Option<P>) -> Option<P> {
        of(&self.policies())
            .or_else(|| if thread_has_limits() { of(&thread_policies()) } else { None })
            .or_else(|| of(&self.shared().policies.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_setting_counts() {
        let of = |object, orb: Option<Duration>| nearest_timeout(object, orb.into()).as_duration();
        let secs = |n| Some(Duration::from_secs(n));
        assert_eq!(of(None, secs(60)), secs(60));
        set_thread_timeout(Some(secs(5)));
        assert_eq!(of(None, secs(60)), secs(5));
        assert_eq!(of(Some(secs(7)), secs(60)), secs(7));
        assert_eq!(of(Some(None), secs(60)), None);
        with_timeout(secs(1), || {
            assert_eq!(of(Some(secs(7)), secs(60)), secs(1));
            with_timeout(None, || assert_eq!(of(None, secs(60)), None));
            assert_eq!(of(None, None), secs(1));
        });
        set_thread_timeout(None);
        assert_eq!(of(None, secs(60)), secs(60));
    }
}
