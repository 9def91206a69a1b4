//! Calls by number, random numbers, and what programs ask of the machine.

use std::ffi::{c_int, c_long, c_uint, c_void};

use super::{c_answer, inside, is_simulated, raw, threads, with};
use crate::calls::files;
use crate::world::Scheduling;

/// The C library's `syscall`. It takes as many arguments as the call has; those that it has not are never looked at.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let arguments = [a, b, c, d, e, f];
    if !is_simulated() {
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(number, arguments) };
    }
    match number {
        // SAFETY: the caller's promise.
        libc::SYS_futex => unsafe { threads::futex(arguments) },
        // SAFETY: the caller's promise.
        libc::SYS_getrandom => unsafe { getrandom(a as *mut c_void, b as usize, c as c_uint) as c_long },
        libc::SYS_eventfd2 => files::new_counter(a as u64, b as c_int).into(),
        // SAFETY: the caller's promise.
        libc::SYS_epoll_pwait2 => unsafe { files::epoll_pwait2(arguments) },
        // SAFETY: the caller's promise.
        libc::SYS_sched_setattr => unsafe { set_scheduling(a as i32, b as *const SchedulingAttributes) },
        // SAFETY: the caller's promise.
        libc::SYS_sched_getattr => unsafe { tell_scheduling(a as i32, b as *mut SchedulingAttributes) },
        // SAFETY: the caller's promise.
        libc::SYS_sched_setscheduler => unsafe { set_policy(a as i32, b as u32, c as *const c_int) },
        libc::SYS_sched_getscheduler => {
            inside(|state| state.scheduling_of(a as i32).map_or(0, |scheduling| scheduling.policy.into()))
        }
        // SAFETY: the caller's promise.
        libc::SYS_sched_getparam => unsafe { tell_priority(a as i32, b as *mut c_int) },
        // SAFETY: the caller's promise.
        libc::SYS_sched_getaffinity => unsafe { affinity(b as usize, c as *mut u8) },
        libc::SYS_sched_setaffinity | libc::SYS_mlockall | libc::SYS_membarrier => 0,
        // SAFETY: the caller's promise.
        _ => unsafe { raw::libc_call(number, arguments) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
    let filled = with(|state| {
        // SAFETY: the caller's promise.
        let octets = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
        for piece in octets.chunks_mut(8) {
            let word = state.entropy.bits().to_le_bytes();
            piece.copy_from_slice(&word[..piece.len()]);
        }
    });
    match filled {
        Some(()) => length as isize,
        // SAFETY: the caller's promise.
        None => unsafe {
            raw::libc_call(libc::SYS_getrandom, [buffer as i64, length as i64, flags.into(), 0, 0, 0])
                as isize
        },
    }
}

/// A process of a simulation has a number of its own, another after each start.
#[unsafe(no_mangle)]
extern "C" fn getpid() -> c_int {
    let simulated = with(|state| {
        let here = state.here();
        1_000 + here.0 as c_int * 1_000 + state.hosts[here.0].incarnation as c_int
    });
    // SAFETY: the call has no arguments.
    simulated.unwrap_or_else(|| (unsafe { raw::kernel(libc::SYS_getpid, [0; 6]) }) as c_int)
}

/// What `sched_setattr` takes, as far as it is looked at.
#[repr(C)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
}

/// `SCHED_FLAG_RESET_ON_FORK`.
const ATTRIBUTE_RESET_ON_FORK: u64 = 1;

unsafe fn set_scheduling(thread: i32, attributes: *const SchedulingAttributes) -> c_long {
    // SAFETY: the caller's promise.
    let given = unsafe { &*attributes };
    let resets = if given.flags & ATTRIBUTE_RESET_ON_FORK != 0 { Scheduling::RESET_ON_FORK } else { 0 };
    let policy = given.policy | resets;
    let scheduling = Scheduling { policy, nice: given.nice, priority: given.priority };
    c_answer(inside(|state| state.set_scheduling(thread, scheduling)).map(|()| 0_i32))
}

unsafe fn tell_scheduling(thread: i32, attributes: *mut SchedulingAttributes) -> c_long {
    let Some(known) = inside(|state| state.scheduling_of(thread)) else {
        raw::set_errno(libc::ESRCH);
        return -1;
    };
    // SAFETY: the caller's promise.
    let told = unsafe { &mut *attributes };
    let resets = known.policy & Scheduling::RESET_ON_FORK != 0;
    (told.policy, told.flags) = (known.policy & !Scheduling::RESET_ON_FORK, u64::from(resets));
    (told.nice, told.priority) = (known.nice, known.priority);
    0
}

/// `sched_setscheduler`: `parameters` is a `struct sched_param`, which has the priority alone.
unsafe fn set_policy(thread: i32, policy: u32, parameters: *const c_int) -> c_long {
    // SAFETY: the caller's promise.
    let priority = unsafe { *parameters };
    c_answer(inside(|state| {
        let nice = state.scheduling_of(thread).ok_or(libc::ESRCH)?.nice;
        let scheduling =
            Scheduling { policy, nice, priority: u32::try_from(priority).map_err(|_| libc::EINVAL)? };
        state.set_scheduling(thread, scheduling).map(|()| 0_i32)
    }))
}

unsafe fn tell_priority(thread: i32, parameters: *mut c_int) -> c_long {
    c_answer(inside(|state| state.scheduling_of(thread).ok_or(libc::ESRCH)).map(|known| {
        // SAFETY: the caller's promise.
        unsafe { parameters.write(known.priority as c_int) };
        0_i32
    }))
}

/// The processors of the host.
unsafe fn affinity(length: usize, mask: *mut u8) -> c_long {
    let cores = inside(|state| state.hosts[state.here().0].cores) as usize;
    // SAFETY: the caller's promise.
    let mask = unsafe { std::slice::from_raw_parts_mut(mask, length) };
    mask.fill(0);
    for core in 0..cores.min(length * 8) {
        mask[core / 8] |= 1 << (core % 8);
    }
    length.min(8) as c_long
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_getaffinity(process: c_int, length: usize, mask: *mut u8) -> c_int {
    if !is_simulated() {
        let arguments = [process.into(), length as i64, mask as i64, 0, 0, 0];
        // SAFETY: the caller's promise. The C library clears what the kernel has not written.
        let written = unsafe { raw::libc_call(libc::SYS_sched_getaffinity, arguments) };
        if written > 0 {
            // SAFETY: the caller's promise: `length` octets.
            unsafe { mask.add(written as usize).write_bytes(0, length - written as usize) };
        }
        return if written < 0 { -1 } else { 0 };
    }
    // SAFETY: the caller's promise.
    unsafe { affinity(length, mask) };
    0
}
