//! What is watched of threads: waits for locks that threads with lower priorities hold, upcalls that wait for something that
//! is not the ORB's, switches and system calls of upcalls.
//!
//! Everything here is compiled with the feature `watch` alone, and begins where an ORB watches. What calls pass through looks
//! at one flag of its thread ([`upcall_is_expected`]); what waits for a lock has missed it already, and looks at one word of the
//! process.

mod records;
mod text;
mod thread;
mod upcall;
mod waits;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::locks::PiLock;
use super::spawner::live_threads;

pub(crate) use records::{ThreadFacts, WaitKind, WaitRecord, records_after};
pub(crate) use text::ShortText;
pub(crate) use thread::{
    count_system_calls_of, counts_system_calls, end_count_of, switches_of_thread, system_calls_of_thread,
};
pub(crate) use upcall::{
    MeasuredRequest, MeasuredUpcall, UpcallMark, upcall_begins, upcall_ends, upcall_is_expected,
};
pub(crate) use waits::{Here, OwnWait, named_wait};

/// Whether the program has been built with the feature `watch`.
pub(crate) const ENABLED: bool = cfg!(feature = "watch");

/// Why a program without the feature does not watch.
pub(crate) const NOT_BUILT: &str = "this program cannot watch: build it with the feature `watch` of the crate `ironorb`, or leave the setting `watch` out";

/// How an ORB watches its lanes ([`RealTimeConfig::watch`](crate::rt::RealTimeConfig::watch); needs the feature `watch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchConfig {
    /// Whether the ORB watches from its beginning on. It can be switched while it runs
    /// ([`Orb::set_watching`](crate::Orb::set_watching), `ironorb rt watch HOST --on`). Default: yes.
    pub is_on: bool,
    /// Waits that are longer are recorded. The process has one bound, the shortest of all ORBs that watch. Default: 100 us.
    pub wait_bound: Duration,
}

impl Default for WatchConfig {
    fn default() -> WatchConfig {
        WatchConfig { is_on: true, wait_bound: Duration::from_micros(100) }
    }
}

impl WatchConfig {
    /// Watches from the beginning on, and records waits beyond 100 us.
    pub fn new() -> WatchConfig {
        WatchConfig::default()
    }

    /// Sets whether the ORB watches from its beginning on.
    pub fn on(mut self, is_on: bool) -> WatchConfig {
        self.is_on = is_on;
        self
    }

    /// Sets the time beyond which waits are recorded.
    pub fn wait_bound(mut self, bound: Duration) -> WatchConfig {
        self.wait_bound = bound;
        self
    }
}

/// The bound of the process in nanoseconds; [`OFF`] while no ORB watches.
static BOUND_NS: AtomicU64 = AtomicU64::new(OFF);

const OFF: u64 = u64::MAX;

/// The bounds of the ORBs that watch now.
static BOUNDS: PiLock<Vec<u64>> = PiLock::new(Vec::new());

/// Whether an ORB of the process watches now.
pub(crate) fn is_on() -> bool {
    bound_ns().is_some()
}

/// The bound beyond which waits are recorded, in nanoseconds; `None` while no ORB of the process watches.
#[inline]
fn bound_ns() -> Option<u64> {
    if !ENABLED {
        return None;
    }
    match BOUND_NS.load(Ordering::Relaxed) {
        OFF => None,
        bound => Some(bound),
    }
}

/// The part of one ORB in the watch of the process. Dropping it ends the part.
#[derive(Debug)]
pub(crate) struct Watching {
    bound_ns: u64,
    is_on: PiLock<bool>,
}

impl Watching {
    /// An ORB that watches, or may begin to.
    pub(crate) fn new(config: WatchConfig) -> Watching {
        let bound_ns = u64::try_from(config.wait_bound.as_nanos()).unwrap_or(OFF).min(OFF - 1);
        let watching = Watching { bound_ns, is_on: PiLock::new(false) };
        watching.set(config.is_on);
        watching
    }

    /// Whether the ORB watches now.
    pub(crate) fn is_on(&self) -> bool {
        *self.is_on.lock()
    }

    /// The time beyond which waits are recorded, in nanoseconds.
    pub(crate) fn bound_ns(&self) -> u64 {
        self.bound_ns
    }

    /// Begins or ends to watch. Waits that have begun are not recorded.
    pub(crate) fn set(&self, is_on: bool) {
        let mut was_on = self.is_on.lock();
        if *was_on == is_on {
            return;
        }
        *was_on = is_on;
        let mut bounds = BOUNDS.lock();
        if is_on {
            bounds.push(self.bound_ns);
        } else if let Some(at) = bounds.iter().position(|bound| *bound == self.bound_ns) {
            bounds.swap_remove(at);
        }
        let shortest = bounds.iter().copied().min().unwrap_or(OFF);
        BOUND_NS.store(shortest, Ordering::Relaxed);
        drop(bounds);
        match shortest {
            OFF => thread::end_all_counts(),
            _ => live_threads().iter().for_each(|thread| count_system_calls_of(thread.system_id)),
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// The time now in nanoseconds, on the clock of the drivers.
fn now_ns() -> u64 {
    ns(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// Neither part of a time since a beginning is negative.
fn ns(time: rustix::time::Timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
