//! Threads, and what they wait at.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ironorb_model::Time;
use libc::{pthread_attr_t, pthread_t, timespec};

use super::{
    Baton, ME, c_library, give_way, inside, is_simulated, may_give_way, own_kernel_id, raw, with,
    yield_and_take_time,
};
use crate::calls::time::{of_monotonic, of_realtime, time_of};
use crate::world::{PiAnswer, ThreadId, Why};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void) -> c_int;
type Join = unsafe extern "C" fn(pthread_t, *mut *mut c_void) -> c_int;
type SetName = unsafe extern "C" fn(pthread_t, *const c_char) -> c_int;

/// What a new thread begins with.
struct Beginning {
    id: ThreadId,
    /// Passed when the thread may begin.
    baton: Arc<Baton>,
    start: Start,
    argument: *mut c_void,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let create = c_library!(c"pthread_create": Create);
    let made = with(|state| {
        let host = state.host_of_next_thread.take().unwrap_or(state.here());
        let id = state.add_thread_of(host);
        (id, state.threads[id.0].baton.clone())
    });
    let Some((id, baton)) = made else {
        // SAFETY: the caller's promise.
        return unsafe { create(thread, attributes, start, argument) };
    };
    let beginning = Box::into_raw(Box::new(Beginning { id, baton, start, argument }));
    // SAFETY: the caller's promise; `begin` takes the box.
    let result = unsafe { create(thread, attributes, begin, beginning.cast()) };
    assert_eq!(result, 0, "the system makes no more threads");
    // SAFETY: the call has written it.
    let handle = unsafe { *thread };
    inside(|state| state.threads[id.0].handle = handle);
    may_give_way();
    0
}

extern "C" fn begin(beginning: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` has made it from a box, for this call alone.
    let beginning = unsafe { Box::from_raw(beginning.cast::<Beginning>()) };
    let Beginning { id, baton, start, argument } = *beginning;
    ME.set(id.0 + 1);
    // What is registered first is called last: after the destructors of the thread's own variables.
    // SAFETY: `leave` ignores its argument, and the program is never unloaded.
    unsafe { __cxa_thread_atexit_impl(leave, std::ptr::null_mut(), &raw const __dso_handle as *mut c_void) };
    baton.take();
    super::note_first_step(id);
    start(argument)
}

unsafe extern "C" {
    static __dso_handle: u8;
    fn __cxa_thread_atexit_impl(
        destructor: extern "C" fn(*mut c_void),
        object: *mut c_void,
        program: *mut c_void,
    ) -> c_int;
}

extern "C" fn leave(_: *mut c_void) {
    super::check_conditions();
    let next = inside(|state| {
        state.end_thread();
        let next = super::choose_next(state);
        state.threads[next.0].baton.clone()
    });
    ME.set(0);
    next.pass();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    let join = c_library!(c"pthread_join": Join);
    while is_simulated() && inside(|state| state.block_for_end_of(thread)) {
        give_way();
    }
    // SAFETY: the caller's promise. A thread of the simulation that has ended needs no baton to be gone.
    unsafe { join(thread, result) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int {
    let set_name = c_library!(c"pthread_setname_np": SetName);
    // SAFETY: the caller's promise: a string that ends with a zero.
    let text = unsafe { std::ffi::CStr::from_ptr(name) }.to_string_lossy().into_owned();
    with(|state| {
        if let Some(named) = state.threads.iter_mut().rfind(|it| it.handle == thread) {
            named.name = text;
        }
    });
    // SAFETY: the caller's promise.
    unsafe { set_name(thread, name) }
}

#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> c_int {
    if is_simulated() {
        yield_and_take_time();
        return 0;
    }
    // SAFETY: the call has no arguments.
    (unsafe { raw::libc_call(libc::SYS_sched_yield, [0; 6]) }) as c_int
}

/// The system's `futex`. The words are read and written as the kernel does it.
pub(super) unsafe fn futex(arguments: [c_long; 6]) -> c_long {
    let [address, operation, value, timeout, second, value3] = arguments;
    let address = address as usize;
    let operation = operation as c_int;
    // SAFETY: the caller's promise: the address of a word that lives as long as threads wait there.
    let word = || unsafe { AtomicU32::from_ptr(address as *mut u32) };
    let until = || {
        // SAFETY: the caller's promise.
        let given = unsafe { (timeout as *const timespec).as_ref() }?;
        Some(deadline(operation, given))
    };
    let answer = match operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => {
            let is_bitset = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME)
                == libc::FUTEX_WAIT_BITSET;
            let mask = if is_bitset { value3 as u32 } else { u32::MAX };
            match word().load(Ordering::SeqCst) == value as u32 {
                false => Err(libc::EAGAIN),
                true => wait_at(address, mask, until()),
            }
        }
        libc::FUTEX_WAKE => Ok(c_long::from(wake_at(address, value as u32, u32::MAX))),
        libc::FUTEX_WAKE_BITSET => Ok(c_long::from(wake_at(address, value as u32, value3 as u32))),
        libc::FUTEX_REQUEUE => Ok(requeue(address, second as usize, value as u32, timeout as u32)),
        libc::FUTEX_CMP_REQUEUE => match word().load(Ordering::SeqCst) == value3 as u32 {
            false => Err(libc::EAGAIN),
            true => Ok(requeue(address, second as usize, value as u32, timeout as u32)),
        },
        libc::FUTEX_LOCK_PI | LOCK_PI2 => lock_pi(word(), address, until()),
        libc::FUTEX_TRYLOCK_PI => {
            let me = own_kernel_id() as u32;
            let taken = word().compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst);
            taken.map(|_| 0).map_err(|_| libc::EAGAIN)
        }
        libc::FUTEX_UNLOCK_PI => {
            unlock_pi(word(), address);
            Ok(0)
        }
        _ => Err(libc::ENOSYS),
    };
    super::c_answer(answer)
}

/// `FUTEX_LOCK_PI2`, which takes its time by the steady clock.
const LOCK_PI2: c_int = 13;

/// When a wait ends. `FUTEX_WAIT` has a time from now, the others a point of time.
fn deadline(operation: c_int, given: &timespec) -> Time {
    let plain = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    let time = time_of(given);
    match plain {
        libc::FUTEX_WAIT => inside(|state| state.after(time)),
        libc::FUTEX_LOCK_PI => of_realtime(time),
        _ if operation & libc::FUTEX_CLOCK_REALTIME != 0 => of_realtime(time),
        _ => of_monotonic(time),
    }
}

fn wait_at(address: usize, mask: u32, until: Option<Time>) -> Result<c_long, c_int> {
    inside(|state| state.wait_at(address, mask, until));
    give_way();
    let is_woken = inside(|state| state.end_wait_at(address));
    super::compute(inside(|state| state.costs.wake_up));
    match is_woken {
        true => Ok(0),
        false => Err(libc::ETIMEDOUT),
    }
}

fn wake_at(address: usize, most: u32, mask: u32) -> u32 {
    let woken = inside(|state| state.wake_at(address, most, mask));
    may_give_way();
    woken
}

fn requeue(from: usize, to: usize, wakes: u32, most: u32) -> c_long {
    c_long::from(inside(|state| state.requeue(from, to, wakes, most)))
}

/// A bit of the word of a lock that lends priorities: others wait.
const WAITERS: u32 = 0x8000_0000;

fn lock_pi(word: &AtomicU32, address: usize, until: Option<Time>) -> Result<c_long, c_int> {
    let me = own_kernel_id() as u32;
    if word.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
        return Ok(0);
    }
    if word.load(Ordering::SeqCst) & !WAITERS == me {
        return Err(libc::EDEADLK);
    }
    loop {
        word.fetch_or(WAITERS, Ordering::SeqCst);
        wait_at(address, u32::MAX, until)?;
        // Whoever unlocks passes it on.
        let is_own = word.load(Ordering::SeqCst) & !WAITERS == me;
        if is_own || word.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return Ok(0);
        }
    }
}

fn unlock_pi(word: &AtomicU32, address: usize) {
    let next = match inside(|state| state.pass_lock(address)) {
        PiAnswer::Free => 0,
        PiAnswer::Passed(owner, others) => owner as u32 | if others { WAITERS } else { 0 },
    };
    word.store(next, Ordering::SeqCst);
    may_give_way();
}

/// Has the calling thread sleep.
pub(super) fn sleep_until(at: Time) {
    inside(|state| state.block("sleeping", &[], Some(at)));
    while give_way() != Why::TimeOver {
        if inside(|state| state.failure.is_some()) {
            return;
        }
        inside(|state| state.block("sleeping", &[], Some(at)));
    }
}
