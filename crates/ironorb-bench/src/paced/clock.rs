//! The clock by which clients call: one that nobody sets, and that all threads share.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The time since some instant that is the same for the whole process.
#[inline]
pub(super) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Waits until then. Returns at once if it has passed.
pub(super) fn sleep_until(then: Duration) {
    let time = Timespec { tv_sec: then.as_secs() as i64, tv_nsec: i64::from(then.subsec_nanos()) };
    while clock_nanosleep_absolute(ClockId::Monotonic, &time) == Err(Errno::INTR) {}
}
