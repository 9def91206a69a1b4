//! How long a call may take.
//!
//! The nearest setting applies: of this call ([`with_timeout`](crate::with_timeout)), of the reference
//! ([`ObjectRef::with_timeout`](crate::ObjectRef::with_timeout)), of the thread ([`set_thread_timeout`](crate::set_thread_timeout)), of
//! the ORB ([`Orb::set_policies`](crate::Orb::set_policies),
//! [`OrbBuilder::call_timeout`](crate::OrbBuilder::call_timeout)). The last three are policies; see
//! [`InvocationPolicies`](crate::InvocationPolicies).

use std::cell::Cell;
use std::time::Duration;

use crate::base::time::Time;

/// A setting that may be absent, infinite or finite.
pub(crate) type TimeoutSetting = Option<Option<Duration>>;

/// How long a call may take, in nanoseconds; the greatest number is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timeout(u64);

impl Timeout {
    /// No time at all.
    pub(crate) const NOTHING: Timeout = Timeout(0);

    /// Without limit.
    pub(crate) const NONE: Timeout = Timeout(u64::MAX);

    #[inline]
    pub(crate) const fn from_nanos(nanos: u64) -> Timeout {
        Timeout(nanos)
    }

    #[inline]
    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    /// `None` is without limit.
    #[inline]
    pub(crate) fn as_duration(self) -> Option<Duration> {
        (self.0 != u64::MAX).then(|| Duration::from_nanos(self.0))
    }
}

impl From<Option<Duration>> for Timeout {
    /// `None` is without limit.
    #[inline]
    fn from(timeout: Option<Duration>) -> Timeout {
        let nanos = |timeout: Duration| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        Timeout(timeout.map_or(u64::MAX, nanos))
    }
}

/// The time of a call that has not waited yet: its approximate beginning, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallTime {
    pub(crate) begun: Time,
    pub(crate) timeout: Timeout,
}

/// The moment at which a call gives up. It is fixed when the call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline(Time);

impl Deadline {
    /// No deadline.
    pub(crate) const NEVER: Deadline = Deadline(Time::MAX);

    /// The deadline `timeout` after a moment; never without a timeout.
    #[inline]
    pub(crate) fn after(begun: Time, timeout: Timeout) -> Deadline {
        Deadline(Time::from_nanos(begun.as_nanos().saturating_add(timeout.0)))
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

    /// The time that is left: none at all when the deadline has passed.
    #[inline]
    pub(crate) fn left(self, now: Time) -> Timeout {
        match self.0 {
            Time::MAX => Timeout::NONE,
            at => Timeout(at.as_nanos().saturating_sub(now.as_nanos())),
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

thread_local! {
    /// Not 0 when anything but references and the ORB has ever limited this thread's calls, or forbids them now. Nearly no thread
    /// has that, so calls read only this.
    static LIMITS: Cell<u8> = const { Cell::new(0) };
    /// The deadline of the request that this thread carries out, as far as its caller has told it.
    static OF_REQUEST: Cell<Deadline> = const { Cell::new(Deadline::NEVER) };
}

const HAS_LIMITS: u8 = 1;
const MAKES_NO_CALLS: u8 = 2;

/// False when nothing but references and the ORB limits this thread's calls.
#[inline(always)] // a step of every call
pub(crate) fn thread_has_limits() -> bool {
    LIMITS.get() != 0
}

/// Makes calls look for this thread's limits from now on.
pub(crate) fn note_thread_limits() {
    LIMITS.set(LIMITS.get() | HAS_LIMITS);
}

/// Whether this thread may make no remote calls, because it holds what others wait for.
pub(crate) fn thread_makes_no_calls() -> bool {
    LIMITS.get() & MAKES_NO_CALLS != 0
}

/// Forbids the thread's remote calls until this is dropped. They end before they are sent, as those for a caller that has given up
/// do, so that no call needs a test of its own for it.
#[must_use]
pub(crate) struct NoCalls {
    limits: u8,
    of_request: Deadline,
}

impl NoCalls {
    #[inline]
    pub(crate) fn enter() -> NoCalls {
        let limits = LIMITS.get();
        LIMITS.set(limits | MAKES_NO_CALLS);
        NoCalls { limits: limits & MAKES_NO_CALLS, of_request: OF_REQUEST.replace(Deadline(Time::ZERO)) }
    }
}

impl Drop for NoCalls {
    #[inline]
    fn drop(&mut self) {
        LIMITS.set(LIMITS.get() & !MAKES_NO_CALLS | self.limits);
        OF_REQUEST.set(self.of_request);
    }
}

/// The deadline of the request that this thread carries out, as far as its caller has told it.
#[inline]
pub(crate) fn deadline_of_request() -> Deadline {
    OF_REQUEST.get()
}

/// The deadline of the request that a thread carries out, until this is dropped.
#[must_use]
pub(crate) struct RequestDeadline {
    before: Deadline,
}

impl RequestDeadline {
    #[inline]
    pub(crate) fn enter(deadline: Deadline) -> RequestDeadline {
        if deadline != Deadline::NEVER {
            note_thread_limits();
        }
        RequestDeadline { before: OF_REQUEST.replace(deadline) }
    }
}

impl Drop for RequestDeadline {
    #[inline]
    fn drop(&mut self) {
        OF_REQUEST.set(self.before);
    }
}

/// The deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes() {
        let now = Time::from_nanos(1);
        let deadline = Deadline::after(now, Some(Duration::from_secs(2)).into());
        assert_eq!(deadline.share(now, 4).at(), Some(now + Duration::from_millis(500)));
        assert_eq!(deadline.remaining(now + Duration::from_secs(1)), Ok(Some(Duration::from_secs(1))));
        assert_eq!(deadline.remaining(now + Duration::from_secs(2)), Err(Passed));
        assert_eq!(deadline.at_most(now, Duration::from_secs(1)).at(), Some(now + Duration::from_secs(1)));
        assert_eq!(Deadline::after(now, None.into()), Deadline::NEVER);
        assert_eq!(Deadline::after(now, Some(Duration::MAX).into()), Deadline::NEVER);
    }
}
