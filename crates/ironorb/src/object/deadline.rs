//! How long a call may take.
//!
//! The nearest setting applies: of this call ([`with_timeout`]), of the reference
//! ([`ObjectRef::with_timeout`](crate::ObjectRef::with_timeout)), of the thread ([`set_thread_timeout`]), of
//! the ORB ([`Orb::set_policies`](crate::Orb::set_policies),
//! [`OrbBuilder::call_timeout`](crate::OrbBuilder::call_timeout)). The last three are policies; see
//! [`InvocationPolicies`](crate::InvocationPolicies).

use std::cell::Cell;
use std::time::Duration;

use crate::base::time::Time;
use crate::object::messaging::{
    InvocationPolicies, note_thread_policies, set_thread_policies, thread_has_policies, thread_policies,
};

/// A setting that may be absent, infinite or finite.
pub(crate) type TimeoutSetting = Option<Option<Duration>>;

thread_local! {
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
    note_thread_policies();
    let _restore = Restore(CALL.replace(Some(timeout)));
    body()
}

/// How long a call that begins now may take; `None` is without limit.
#[inline]
pub(crate) fn call_timeout(
    object: TimeoutSetting,
    orb: impl FnOnce() -> Option<Duration>,
) -> Option<Duration> {
    let nearest = if thread_has_policies() { nearest_timeout(object) } else { object };
    nearest.unwrap_or_else(orb)
}

#[cold]
fn nearest_timeout(object: TimeoutSetting) -> TimeoutSetting {
    CALL.get().or(object).or_else(|| thread_policies().roundtrip_timeout)
}

/// The time of a call that has not waited yet: its approximate beginning, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallTime {
    pub(crate) begun: Time,
    pub(crate) timeout: Option<Duration>,
}

/// The moment at which a call gives up. It is fixed when the call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline(Time);

impl Deadline {
    /// No deadline.
    pub(crate) const NEVER: Deadline = Deadline(Time::MAX);

    /// The deadline of a call that begins now.
    #[inline]
    pub(crate) fn for_call(
        now: Time,
        object: TimeoutSetting,
        orb: impl FnOnce() -> Option<Duration>,
    ) -> Deadline {
        Deadline::after(now, call_timeout(object, orb))
    }

    /// The deadline `timeout` after a moment; never without a timeout.
    #[inline]
    pub(crate) fn after(begun: Time, timeout: Option<Duration>) -> Deadline {
        Deadline(timeout.map_or(Time::MAX, |timeout| begun + timeout))
    }

    /// The deadline at a moment; never without one.
    pub(crate) fn at_time(at: Option<Time>) -> Deadline {
        Deadline(at.unwrap_or(Time::MAX))
    }

    /// The time that is left: `Ok(None)` without a deadline, `Err` when the deadline has passed.
    #[inline]
    pub(crate) fn remaining(self, now: Time) -> Result<Option<Duration>, Passed> {
        match self.0 {
            Time::MAX => Ok(None),
            at if at > now => Ok(Some(at.since(now))),
            _ => Err(Passed),
        }
    }

    /// The moment of the deadline; `None` without one.
    pub(crate) fn at(self) -> Option<Time> {
        (self.0 != Time::MAX).then_some(self.0)
    }

    /// Returns a deadline with an even share of the time that is left, for the next of several attempts.
    pub(crate) fn share(self, now: Time, attempts: usize) -> Deadline {
        match self.remaining(now) {
            Ok(Some(left)) => Deadline(now + left / u32::try_from(attempts.max(1)).unwrap_or(u32::MAX)),
            _ => self,
        }
    }

    /// Returns the earlier of this deadline and `timeout` from now.
    pub(crate) fn at_most(self, now: Time, timeout: Duration) -> Deadline {
        Deadline(self.0.min(now + timeout))
    }
}

/// The deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_setting_counts() {
        let now = Time::from_nanos(1);
        let of = |object, orb| Deadline::for_call(now, object, || orb).at().map(|at| at.since(now));
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

    #[test]
    fn a_deadline_passes() {
        let now = Time::from_nanos(1);
        let deadline = Deadline::for_call(now, Some(Some(Duration::from_secs(2))), || None);
        assert_eq!(deadline.share(now, 4).at(), Some(now + Duration::from_millis(500)));
        assert_eq!(deadline.remaining(now + Duration::from_secs(1)), Ok(Some(Duration::from_secs(1))));
        assert_eq!(deadline.remaining(now + Duration::from_secs(2)), Err(Passed));
        assert_eq!(deadline.at_most(now, Duration::from_secs(1)).at(), Some(now + Duration::from_secs(1)));
    }
}
