//! The clocks of a recording.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The host's clock that no setting of the time changes.
pub(crate) fn now_ns() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// How long the calling thread has had a processor.
pub(crate) fn processor_ns() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// The time of the day.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
