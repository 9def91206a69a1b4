//! The system calls. The numbers are those of the kernel's interface.
#![allow(unsafe_code)] // each call passes memory of its own, which the kernel reads or writes before the call returns, or a function of the program

use std::io;

pub(super) const OTHER: i32 = libc::SCHED_OTHER;
pub(super) const BATCH: i32 = libc::SCHED_BATCH;
pub(super) const IDLE: i32 = libc::SCHED_IDLE;
pub(super) const FIFO: i32 = libc::SCHED_FIFO;
pub(super) const ROUND_ROBIN: i32 = libc::SCHED_RR;
const DEADLINE: u32 = 6;

/// Threads that a thread makes are in the ordinary class, whatever its own is.
const RESET_ON_FORK: u64 = 1;

/// What sched_setattr(2) reads (`struct sched_attr`, first version).
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Runtime, deadline, period, in nanoseconds.
    times: [u64; 3],
}

/// The length of the structure's first version, which every kernel with the call reads.
const ATTRIBUTES_BYTES: u32 = 48;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_BYTES as usize);

/// Has children call a function first.
#[cfg(not(miri))]
pub(super) fn at_fork_in_child(child: extern "C" fn()) -> io::Result<()> {
    // SAFETY: It is a function of the program, which stays.
    match unsafe { libc::pthread_atfork(None, None, Some(child)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Miri has no forks.
#[cfg(miri)]
pub(super) fn at_fork_in_child(_child: extern "C" fn()) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The policy of a thread and its priority; `thread` 0 is the calling one.
pub(super) fn class(thread: i32) -> io::Result<(i32, u8)> {
    // SAFETY: The call has no pointer.
    let policy = answer(unsafe { libc::syscall(libc::SYS_sched_getscheduler, thread) })?;
    let mut parameters = [0_i32; 1];
    // SAFETY: The kernel writes one `int` (`struct sched_param`), for which `parameters` has room. It keeps no pointer.
    answer(unsafe { libc::syscall(libc::SYS_sched_getparam, thread, parameters.as_mut_ptr()) })?;
    let policy = policy as i32 & !libc::SCHED_RESET_ON_FORK;
    Ok((policy, u8::try_from(parameters[0]).unwrap_or(0)))
}

/// Puts a thread into a class without periods.
pub(super) fn set_class(thread: i32, policy: i32, priority: u8) -> io::Result<()> {
    let parameters = [i32::from(priority)];
    // SAFETY: The kernel reads one `int` (`struct sched_param`), which `parameters` has. It keeps no pointer.
    let done = unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, policy, parameters.as_ptr()) };
    answer(done).map(drop)
}

/// Puts a thread into SCHED_DEADLINE, with runtime, deadline and period in nanoseconds.
pub(super) fn set_deadline_class(thread: i32, times: [u64; 3]) -> io::Result<()> {
    let attributes = Attributes {
        size: ATTRIBUTES_BYTES,
        policy: DEADLINE,
        flags: RESET_ON_FORK,
        nice: 0,
        priority: 0,
        times,
    };
    // SAFETY: The kernel reads as many bytes as `size` says, which are those of `attributes`: its fields lie as in the kernel's
    // structure, without padding. It keeps no pointer. The last argument, flags, must be 0.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, std::ptr::from_ref(&attributes), 0) };
    answer(done).map(drop)
}

fn answer(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The number of the calling thread.
#[cfg(test)]
pub(super) fn number() -> i32 {
    // SAFETY: The call has no pointer and cannot fail.
    unsafe { libc::gettid() }
}
