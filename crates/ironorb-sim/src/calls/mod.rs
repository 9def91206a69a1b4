//! The calls of the C library that a simulation answers instead of the system.
//!
//! A program that links this crate has these functions for those of the C library of the same names: the linker takes a
//! program's own before a shared library's. Called by a thread outside of a simulation they do what the C library's do. So
//! the program's code, the standard library and the ORB run unchanged.
//!
//! # Safety of the whole
//! One thread of a simulation runs at a time: the one that holds its [`Baton`]. Only that thread touches the [`State`],
//! within [`with`], which refuses to be entered twice. Passing the baton orders all that one thread did before all that
//! the next does.
//!
//! # Threads outside
//! A thread outside of the simulation wakes others by the system, and a thread of the simulation that waits for a lock of
//! the standard library does not hear of it: it would wait for ever. So while a simulation runs, threads outside take no
//! such lock: the process's first thread waits for the end, and the watchdog reads clocks and files.

mod baton;
pub(crate) mod disk;
mod files;
mod names;
mod raw;
mod sockets;
mod system;
mod threads;
mod time;

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_long};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) use baton::Baton;

use crate::world::{Answer, State, ThreadId, Why};

/// The simulation of this process. It is made once and lives as long as the process.
static WORLD: AtomicPtr<UnsafeCell<State>> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// The calling thread's number in the simulation, plus one; 0 outside.
    static ME: Cell<usize> = const { Cell::new(0) };
    /// Set while the calling thread is within the state.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Begins the simulation of this process: the calling thread is its first.
///
/// # Panics
/// If there is one.
pub(crate) fn begin(state: State) {
    let world = Box::into_raw(Box::new(UnsafeCell::new(state)));
    let was = WORLD.swap(world, Ordering::AcqRel);
    assert!(was.is_null(), "a process has one simulation");
    ME.set(1);
    inside(State::begin);
    note_first_step(ThreadId(0));
}

/// The calling thread takes its first step.
fn note_first_step(me: ThreadId) {
    let number = own_kernel_id();
    inside(|state| state.threads[me.0].kernel_id = number);
    RUNNING.store(number, Ordering::Relaxed);
}

/// Runs code on the state. `None` for a thread outside of the simulation, and within `f`.
pub(crate) fn with<R>(f: impl FnOnce(&mut State) -> R) -> Option<R> {
    if ME.get() == 0 || IS_INSIDE.replace(true) {
        return None;
    }
    let world = WORLD.load(Ordering::Acquire);
    // SAFETY: a thread with a number has been made by a simulation that lives as long as the process, and holds the
    // baton; `IS_INSIDE` was not set, so no other reference to the state exists.
    let result = f(unsafe { &mut *(*world).get() });
    IS_INSIDE.set(false);
    Some(result)
}

/// As [`with`], for callers that run only within a simulation.
///
/// # Panics
/// Outside of one.
pub(crate) fn inside<R>(f: impl FnOnce(&mut State) -> R) -> R {
    with(f).expect("only threads of a simulation come here")
}

/// Whether the calling thread is one of a simulation.
pub(crate) fn is_simulated() -> bool {
    ME.get() != 0 && !IS_INSIDE.get()
}

/// Lets others run until the calling thread goes on: one that is ready or waits.
pub(crate) fn give_way() -> Why {
    let me = ThreadId(ME.get() - 1);
    check_conditions();
    let batons = inside(|state| {
        let next = choose_next(state);
        (next != me).then(|| (state.threads[next.0].baton.clone(), state.threads[me.0].baton.clone()))
    });
    if let Some((next, own)) = batons {
        next.pass();
        own.take();
    }
    inside(|state| state.why())
}

/// Chooses the thread that takes the next step.
fn choose_next(state: &mut State) -> ThreadId {
    let next = state.choose_or_fail();
    STEPS.fetch_add(1, Ordering::Relaxed);
    EVENTS.store(state.counts.events, Ordering::Relaxed);
    RUNNING.store(state.threads[next.0].kernel_id, Ordering::Relaxed);
    next
}

/// Ends the process at once. Destructors do not run: threads of the simulation still wait.
pub(crate) fn end_process(code: c_int) -> ! {
    // SAFETY: the call does not return, and no code of the process runs after it.
    unsafe { raw::kernel(libc::SYS_exit_group, [code.into(), 0, 0, 0, 0, 0]) };
    unreachable!("the process has ended")
}

/// Ends the process at once, as a test that has failed, for a reason that the test's own thread would never hear of.
pub(crate) fn end_process_with(failure: &str) -> ! {
    crate::children::note_failure(failure);
    let text = format!("{failure}\n");
    // SAFETY: the octets live until the call returns.
    unsafe { raw::kernel(libc::SYS_write, [2, text.as_ptr() as i64, text.len() as i64, 0, 0, 0]) };
    end_process(crate::children::FAILED)
}

/// How far the simulation has come, for the watchdog.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// Steps of threads.
    pub(crate) steps: u64,
    /// Events of the kernel.
    pub(crate) events: u64,
    /// Times that a thread asked again for what was not there.
    pub(crate) polls: u64,
    /// The system's number of the thread that takes the current step.
    pub(crate) running: i32,
}

pub(crate) fn progress() -> Progress {
    Progress {
        steps: STEPS.load(Ordering::Relaxed),
        events: EVENTS.load(Ordering::Relaxed),
        polls: POLLS.load(Ordering::Relaxed),
        running: RUNNING.load(Ordering::Relaxed),
    }
}

static STEPS: AtomicU64 = AtomicU64::new(0);
static EVENTS: AtomicU64 = AtomicU64::new(0);
static POLLS: AtomicU64 = AtomicU64::new(0);
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// Has a thread print where it is, and its name.
pub(crate) fn show_where(thread: i32) {
    // SAFETY: the handler has the type of one. It prints, which a handler must not do where the thread holds a lock of the
    // output; the process ends anyhow.
    unsafe {
        libc::signal(libc::SIGUSR2, print_trace as extern "C" fn(c_int) as libc::sighandler_t);
        raw::kernel(libc::SYS_tkill, [thread.into(), libc::SIGUSR2.into(), 0, 0, 0, 0]);
    }
}

extern "C" fn print_trace(_: c_int) {
    // What it prints is the process's, not a host's.
    let _was_inside = IS_INSIDE.replace(true);
    let name = std::thread::current().name().unwrap_or("without a name").to_owned();
    eprintln!("thread `{name}`\n{}", std::backtrace::Backtrace::force_capture());
}

/// Looks at what the test waits for, and at what must hold.
fn check_conditions() {
    let Some((goal, invariants)) = inside(State::conditions) else { return };
    let broken = invariants.iter().find(|(_, holds)| !holds());
    if let Some((name, _)) = broken {
        inside(|state| state.fail(format!("the invariant does not hold: {name}")));
    } else if goal.is_some_and(|goal| goal()) {
        inside(|state| state.wake(ThreadId(0), Why::Happened));
    }
}

/// Has the calling thread compute on a processor of its host.
pub(crate) fn compute(time: Duration) {
    if inside(|state| state.compute(time)) {
        give_way();
    }
}

/// Time has passed in a call: the thread does not go on if its process was killed or paused meanwhile.
fn stop_if_stopped() {
    if with(|state| state.is_stopped()) == Some(true) {
        inside(State::yield_now);
        give_way();
    }
}

/// At a call of the system another thread may go on first, as the seed has it.
fn may_give_way() {
    if with(State::is_preempted) == Some(true) {
        inside(State::yield_now);
        give_way();
    }
}

/// Makes a call of the simulated kernel until its answer is another than "not now", and waits meanwhile as `wait` has it.
/// `wait` returns false if the caller does not want to wait.
fn until_answered<T>(
    mut call: impl FnMut(&mut State) -> Answer<T>,
    mut wait: impl FnMut(&mut State) -> bool,
) -> Answer<T> {
    loop {
        let answer = inside(&mut call);
        if !matches!(answer, Err(libc::EAGAIN)) {
            return answer;
        }
        if !inside(&mut wait) {
            note_poll();
            return answer;
        }
        let why = give_way();
        compute(inside(|state| state.costs.wake_up));
        if why == Why::TimeOver {
            return Err(libc::EAGAIN);
        }
    }
}

/// The calling thread has asked for what is not there, and does not wait. If it goes on asking, time and others go on as well:
/// otherwise it would never come.
fn note_poll() {
    if inside(State::polls_in_a_loop) {
        yield_and_take_time();
    }
}

/// Lets others run. It takes time, so that a thread which does it until something happens comes to its end.
fn yield_and_take_time() {
    POLLS.fetch_add(1, Ordering::Relaxed);
    inside(|state| {
        state.read_clock();
        state.yield_now();
    });
    give_way();
}

/// The C library's form of an answer.
fn c_answer<T: TryInto<c_long>>(answer: Answer<T>) -> c_long {
    match answer {
        Ok(value) => value.try_into().unwrap_or(c_long::MAX),
        Err(number) => {
            raw::set_errno(number);
            -1
        }
    }
}

fn c_done(answer: Answer<()>) -> c_int {
    c_answer(answer.map(|()| 0_i32)) as c_int
}

fn own_kernel_id() -> i32 {
    // SAFETY: the call has no arguments.
    (unsafe { raw::kernel(libc::SYS_gettid, [0; 6]) }) as i32
}

/// The C library's own function of a name that this crate takes, of this type. Two threads may look for it at the same time,
/// and find the same: no lock, since one of them may be outside of the simulation.
macro_rules! c_library {
    ($name:literal: $type:ty) => {{
        static FOUND: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let found = match FOUND.load(std::sync::atomic::Ordering::Relaxed) {
            0 => $crate::calls::found_in_c_library($name),
            found => found,
        };
        FOUND.store(found, std::sync::atomic::Ordering::Relaxed);
        // SAFETY: the C library's function of this name has this type.
        unsafe { std::mem::transmute::<usize, $type>(found) }
    }};
}
use c_library;

fn found_in_c_library(name: &'static std::ffi::CStr) -> usize {
    // SAFETY: the name ends with a zero; the result is only called as what has this name.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!found.is_null(), "the C library has no {}", name.to_string_lossy());
    found as usize
}
