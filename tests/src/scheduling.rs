//! Threads with priorities of the system on one processor, for tests that show which thread runs before which.

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ironorb_threads::{Class, Thread};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

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

/// All threads of a scene share one processor, so there is one scene at a time.
static STAGE: Mutex<()> = Mutex::new(());

/// What the threads of a scene show on one processor, or `None` where the system grants no real-time priorities. The calling
/// thread gets the priority `top` of SCHED_FIFO: what it releases begins at once, when it sleeps.
///
/// # Panics
/// For root where the system grants none, because then nobody would see that nothing is shown.
pub fn on_one_processor<R>(top: u8, scene: impl FnOnce() -> R) -> Option<R> {
    let _stage = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    if !grants_real_time() {
        let is_root = rustix::process::geteuid().is_root();
        assert!(!is_root, "root has real-time priorities, unless something took them away (CAP_SYS_NICE)");
        // Past the harness, which keeps what passing tests print.
        let text = b"NOTHING SHOWN: no SCHED_FIFO here; raise RLIMIT_RTPRIO or grant CAP_SYS_NICE\n";
        io::stderr().write_all(text).expect("it can be written");
        return None;
    }
    pin_to_one_processor();
    become_fifo(top).expect("the system has granted it before");
    Some(scene())
}

/// Burns as much time of the calling thread's processor, or until `is_over`. True if that came first.
///
/// # Panics
/// Never: a thread's clock is not negative.
pub fn burn(time: Duration, mut is_over: impl FnMut() -> bool) -> bool {
    let ran = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("not negative");
    let begun = ran();
    loop {
        if is_over() {
            return true;
        }
        if ran() - begun > time {
            return false;
        }
    }
}
