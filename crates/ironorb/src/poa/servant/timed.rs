//! Upcalls of operations with a timing (`@rt` in IDL): measures how long they run, and whether they end in time.
//!
//! Generated code makes a [`TimedUpcall`] for such operations only, so that others pay nothing.

use std::any::TypeId;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::time::Time;
use crate::object::deadline::{Deadline, Timeout, deadline_of_request};
use crate::object::operation::Operation;
use crate::object::timing::{Guarantee, TimedCall, Timing, TimingFault, TimingFaultKind, note_timed_upcall};
use crate::poa::{AdapterHost, host_of_upcall, time_of_upcall};

/// An upcall of an operation with a timing. Dropping it reports what went wrong.
pub(crate) struct TimedUpcall {
    timing: &'static Timing,
    operation: &'static Operation<'static>,
    key: TypeId,
    /// What the servant has done; `None` before it has returned.
    ran: Cell<Option<Ran>>,
    /// The program has been told of the overrun while the servant ran.
    is_told: Cell<bool>,
}

/// What a servant has done.
#[derive(Clone, Copy)]
struct Ran {
    time: Duration,
    is_late: bool,
}

/// An upcall that the calling thread is in.
#[derive(Clone, Copy)]
struct Running {
    begun: Time,
    wcet: Option<Duration>,
}

thread_local! {
    /// The innermost upcall of this thread whose operation has a timing.
    static RUNNING: Cell<Option<Running>> = const { Cell::new(None) };
}

/// Whether the upcall that this thread is in has run longer than the `wcet` of its operation, as `@rt` in IDL gives it.
///
/// False outside an upcall, and in one of an operation without `wcet`. A servant with a long loop asks, and gives up: the
/// ORB cannot stop it. In an upcall within another one, the innermost with a timing counts. Neither blocks nor allocates.
pub fn overrun() -> bool {
    let Some(Running { begun, wcet: Some(wcet) }) = RUNNING.get() else { return false };
    time_of_upcall().is_some_and(|now| now.since(begun) > wcet)
}

impl TimedUpcall {
    /// Prepares the upcall of the operation with this type.
    pub(crate) fn new(timing: &'static Timing, operation: &'static Operation<'static>, key: TypeId) -> Self {
        note_timed_upcall();
        TimedUpcall { timing, operation, key, ran: Cell::new(None), is_told: Cell::new(false) }
    }

    /// Calls the servant, and measures it. A call that it makes has not the deadline of this operation, but the rest of it.
    pub(crate) fn run<T>(&self, servant: impl FnOnce() -> T) -> T {
        let _calls_of_the_servant = TimedCall::enter(None);
        let _measured = time_of_upcall().map(|begun| Measured::begin(self, begun));
        servant()
    }

    /// The ORB of the upcall that this thread is in, if it ends upcalls of this operation that run too long.
    pub(crate) fn ended_by(&self) -> Option<Arc<dyn AdapterHost>> {
        self.wcet()?;
        host_of_upcall().filter(|host| host.adapter().driver().watches())
    }

    pub(super) fn wcet(&self) -> Option<Duration> {
        self.timing.wcet
    }

    /// What the watch of the upcall knows of it.
    pub(super) fn for_watch(&self) -> WatchedTiming {
        WatchedTiming { timing: self.timing, operation: self.operation }
    }

    /// Notes that the program has been told of the overrun.
    pub(super) fn note_told_of_overrun(&self) {
        self.is_told.set(true);
    }

    fn report(&self, host: &dyn AdapterHost, ran: Ran) {
        let tell = |kind| self.for_watch().tell(host, kind, ran.time);
        if self.timing.wcet.is_some_and(|wcet| ran.time > wcet) && !self.is_told.get() {
            tell(TimingFaultKind::Overrun);
        }
        if ran.is_late {
            tell(TimingFaultKind::DeadlineMissed);
        }
        if self.timing.guarantee() == Guarantee::Statistical {
            let promise = host.adapter().promise(self.key);
            if promise.add(ran.is_late, self.timing.probability.unwrap_or(1.0)) {
                tell(TimingFaultKind::PromiseBroken);
            }
        }
    }
}

/// What is told of an upcall.
#[derive(Clone, Copy)]
pub(super) struct WatchedTiming {
    timing: &'static Timing,
    operation: &'static Operation<'static>,
}

impl WatchedTiming {
    /// Tells of a fault. Runs application code.
    pub(super) fn tell(&self, host: &dyn AdapterHost, kind: TimingFaultKind, ran: Duration) {
        let (operation, timing) = (self.operation.name(), self.timing);
        host.timing_fault(&TimingFault { kind, operation, timing, ran });
    }
}

impl Drop for TimedUpcall {
    fn drop(&mut self) {
        if let Some(ran) = self.ran.get()
            && let Some(host) = host_of_upcall()
        {
            self.report(&*host, ran);
        }
    }
}

/// The measuring of one upcall, which ends with it, also by a panic.
struct Measured<'u> {
    upcall: &'u TimedUpcall,
    begun: Time,
    due: Deadline,
    before: Option<Running>,
}

impl<'u> Measured<'u> {
    /// Begins to measure. An upcall is due at its operation's deadline, counted from now, or when its caller gives up, if that
    /// is known and earlier.
    fn begin(upcall: &'u TimedUpcall, begun: Time) -> Measured<'u> {
        let Timing { deadline, wcet, .. } = *upcall.timing;
        let due = Deadline::after(begun, Timeout::from(deadline)).min(deadline_of_request());
        Measured { upcall, begun, due, before: RUNNING.replace(Some(Running { begun, wcet })) }
    }
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        RUNNING.set(self.before);
        if let Some(now) = time_of_upcall() {
            let (time, is_late) = (now.since(self.begun), self.due.remaining(now).is_err());
            self.upcall.ran.set(Some(Ran { time, is_late }));
        }
    }
}

/// How far the calls of a statistical operation keep its promise: calls and misses of the window that goes on.
#[derive(Debug, Default)]
pub(crate) struct Promise(AtomicU64);

/// The promises of an ORB's operations.
pub(crate) type Promises = crate::base::locks::SnapshotMap<TypeId, Arc<Promise>>;

impl Promise {
    /// Counts a call. True when, with this call, the window has more misses than the probability allows.
    fn add(&self, is_late: bool, probability: f64) -> bool {
        let (window, allowed) = window_of(probability);
        let mut is_broken = false;
        let next = |state: u64| {
            let (calls, misses) = ((state >> 32) + 1, (state & MISSES) + u64::from(is_late));
            is_broken = is_late && misses == allowed + 1;
            Some(if calls >= window { 0 } else { calls << 32 | misses })
        };
        // `next` may run more than once; the last run counts.
        let _always_some = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        is_broken
    }
}

/// The calls of a window, and how many of them may miss their deadlines: a window is so long that ten may.
fn window_of(probability: f64) -> (u64, u64) {
    let window = (MISSES_ALLOWED / (1.0 - probability)).round().clamp(MISSES_ALLOWED, WINDOW_MAX);
    (window as u64, ((1.0 - probability) * window + ROUNDING) as u64)
}

const MISSES: u64 = u32::MAX as u64;

/// The misses that a window allows, unless it would be longer than [`WINDOW_MAX`].
const MISSES_ALLOWED: f64 = 10.0;

/// The longest window, in calls.
const WINDOW_MAX: f64 = 1_000_000.0;

/// More than the error of a binary fraction, and less than one call in the longest window.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_so_long_that_ten_calls_may_miss_their_deadline() {
        for (probability, window, allowed) in
            [(0.99, 1_000, 10), (0.9, 100, 10), (0.5, 20, 10), (0.999, 10_000, 10), (1e-9, 10, 10)]
        {
            assert_eq!(window_of(probability), (window, allowed), "{probability}");
        }
        assert_eq!(window_of(0.999_999_9), (1_000_000, 0), "the longest window allows not even one");
    }

    #[test]
    fn a_promise_is_broken_once_in_a_window() {
        let promise = Promise::default();
        let told = |misses: usize, hits: usize| {
            let calls = (0..misses + hits).filter(|call| promise.add(*call < misses, 0.9));
            calls.collect::<Vec<_>>()
        };
        assert_eq!(told(10, 90), [] as [usize; 0], "ten of a hundred may");
        assert_eq!(told(13, 87), [10], "the eleventh is one too many");
        assert_eq!(told(10, 90), [] as [usize; 0], "each window begins anew");
    }
}
