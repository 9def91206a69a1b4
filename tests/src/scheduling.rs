//! Threads with priorities of the system on one processor, for tests that show which thread runs before which.

use std::io;

use ironorb_threads::{Class, Thread};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Puts the calling thread into SCHED_FIFO.
///
/// # Errors
/// When the system refuses that to the process: it needs RLIMIT_RTPRIO or CAP_SYS_NICE.
pub fn become_fifo(priority: u8) -> io::Result<()> {
    Thread::CALLING.set_class(Class::Fifo(priority))
}

/// The calling thread's own real-time priority, whatever others lend it; 0 without one.
///
/// # Panics
/// If the system does not tell.
pub fn own_priority() -> i32 {
    let class = Thread::CALLING.class().expect("the system tells");
    class.priority().map_or(0, i32::from)
}

/// Whether the system grants real-time priorities to this process.
///
/// # Panics
/// If no thread can be made.
pub fn grants_real_time() -> bool {
    std::thread::spawn(|| become_fifo(1).is_ok()).join().expect("it only asks")
}

/// Has the process run on one processor: the calling thread, and those that it makes from now on.
///
/// # Panics
/// If the system does not tell or set it.
pub fn pin_to_one_processor() {
    let allowed = sched_getaffinity(None).expect("the system tells");
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).expect("one at least");
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one).expect("one that it may use");
}
