//! Clocks and sleep.

use std::ffi::c_int;
use std::time::Duration;

use ironorb_model::Time;
use libc::{clockid_t, timespec, timeval};

use super::threads::sleep_until;
use super::{c_library, inside, is_simulated, raw, stop_if_stopped, with};

/// What the steady clock shows then: programs take times before the first that they read.
const STEADY: Duration = Duration::from_secs(1_000);

type ClockGettime = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let shown = with(|state| {
        let since = state.read_clock().since(Time::ZERO);
        match clock {
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
                state.first_date() + since
            }
            _ => STEADY + since,
        }
    });
    let Some(shown) = shown else {
        let clock_gettime = c_library!(c"clock_gettime": ClockGettime);
        // SAFETY: the caller's promise.
        return unsafe { clock_gettime(clock, time) };
    };
    stop_if_stopped();
    // SAFETY: the caller's promise.
    unsafe { time.write(timespec_of(shown)) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut libc::c_void) -> c_int {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    if !is_simulated() {
        // SAFETY: the caller's promise.
        return unsafe {
            raw::libc_call(libc::SYS_gettimeofday, [time as i64, zone as i64, 0, 0, 0, 0]) as c_int
        };
    }
    // SAFETY: `now` is a time that can be written, and so is the caller's.
    unsafe {
        clock_gettime(libc::CLOCK_REALTIME, &raw mut now);
        time.write(timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1_000 });
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    if !is_simulated() {
        // SAFETY: the caller's promise.
        return unsafe {
            raw::libc_call(libc::SYS_nanosleep, [time as i64, left as i64, 0, 0, 0, 0]) as c_int
        };
    }
    // SAFETY: the caller's promise.
    let time = time_of(unsafe { &*time });
    sleep_until(inside(|state| state.after(time)));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    if !is_simulated() {
        let arguments = [clock.into(), flags.into(), time as i64, left as i64, 0, 0];
        // SAFETY: the caller's promise.
        return -(unsafe { raw::kernel(libc::SYS_clock_nanosleep, arguments) }) as c_int;
    }
    // SAFETY: the caller's promise.
    let given = time_of(unsafe { &*time });
    let until = match (flags & libc::TIMER_ABSTIME != 0, clock) {
        (false, _) => inside(|state| state.after(given)),
        (true, libc::CLOCK_REALTIME) => of_realtime(given),
        (true, _) => of_monotonic(given),
    };
    sleep_until(until);
    0
}

pub(super) fn time_of(time: &timespec) -> Duration {
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
}

pub(super) fn timespec_of(time: Duration) -> timespec {
    timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}

/// The point at which the steady clock shows this.
pub(super) fn of_monotonic(shown: Duration) -> Time {
    Time::ZERO + shown.saturating_sub(STEADY)
}

/// The point at which the host's clock of the day shows this.
pub(super) fn of_realtime(shown: Duration) -> Time {
    let first = inside(|state| state.first_date());
    Time::ZERO + shown.saturating_sub(first)
}
