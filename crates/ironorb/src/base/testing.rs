//! Hooks for the ORB's own tests of code that changes nothing but speed. They exist in builds with debug assertions only, and
//! are no part of the public interface.

use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::lane::{self, LaneId};
use super::lease::depth_by_lease;
use super::spawner::{NativePriority, NewThread, ThreadClass};
use super::sync::lock;

static IS_CLOCK_STILL: AtomicBool = AtomicBool::new(false);
static SENDS_NO_RESTS: AtomicBool = AtomicBool::new(false);

/// A place in the ORB at which a test may hold a thread, to show that threads of other lanes do not wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Point {
    /// The thread changes a value that all lanes read.
    SnapshotChange,
    /// The thread asks for the servant of an object, in the queue of requests that a manager holds for its lane.
    HeldQueue,
}

/// Runs `body` in the lane with this number, below 64. An ORB needs no lanes of its own for that.
pub fn in_lane<T>(lane: usize, body: impl FnOnce() -> T) -> T {
    let _lane = lane::enter(LaneId::new(lane).expect("a lane below 64"));
    body()
}

/// Runs `body` on a thread of the ORB in the default lane that has a real-time priority, as far as the system gives one.
pub fn spawn_real_time(body: impl FnOnce() + Send + 'static) {
    let thread = NewThread::new("ironorb-test", ThreadClass::Worker);
    let urgent = thread.with_priority(NativePriority::new(1).expect("a priority"));
    urgent.spawn(body).expect("a thread");
}

/// How many objects this thread is in by leases, which are not counted.
pub fn upcalls_by_lease() -> usize {
    depth_by_lease()
}

type Hook = Option<(Point, Box<dyn FnOnce()>)>;

thread_local! {
    static HOOK: RefCell<Hook> = const { RefCell::new(None) };
}

/// Has the calling thread run `hook` when it reaches a point of the ORB the next time.
pub fn at(point: Point, hook: impl FnOnce() + 'static) {
    HOOK.set(Some((point, Box::new(hook))));
}

/// Runs the hook of this point, if the thread has one.
pub(crate) fn reached(point: Point) {
    let hook = HOOK.try_with(|hook| hook.borrow_mut().take_if(|(wanted, _)| *wanted == point));
    if let Ok(Some((_, hook))) = hook {
        hook();
    }
}

thread_local! {
    static IS_REQUEST_CACHED: Cell<bool> = const { Cell::new(false) };
    static LOOKS_FIRST: Cell<bool> = const { Cell::new(false) };
    static LEAVES_NO_CHECKS: Cell<bool> = const { Cell::new(false) };
}

/// Stops the clock that measures servants, for the code that coalesces replies: every servant of this process then counts as
/// quick, however slow the machine is. Cannot be undone.
pub fn stop_clock_of_replies() {
    IS_CLOCK_STILL.store(true, Ordering::Relaxed);
}

pub(crate) fn is_clock_of_replies_still() -> bool {
    IS_CLOCK_STILL.load(Ordering::Relaxed)
}

/// Has calls of this thread take every connection for one that no other call has used for a while. A call then looks at a
/// connection whose end the idle reaper cannot see, and a oneway at every connection.
pub fn look_at_connections_first() {
    LOOKS_FIRST.set(true);
}

pub(crate) fn looks_at_connections_first() -> bool {
    LOOKS_FIRST.get()
}

/// Has the idle reapers of this process not send what callers have left unsent. Cannot be undone.
pub fn send_no_rests() {
    SENDS_NO_RESTS.store(true, Ordering::Relaxed);
}

pub(crate) fn sends_no_rests() -> bool {
    SENDS_NO_RESTS.load(Ordering::Relaxed)
}

/// Has the receiver not check connections on which this thread begins asynchronous calls. Then only those who wait, poll, send
/// or receive there send requests that were held back.
pub fn leave_no_receiver_checks() {
    LEAVES_NO_CHECKS.set(true);
}

pub(crate) fn leaves_no_receiver_checks() -> bool {
    LEAVES_NO_CHECKS.get()
}

/// What runs before a host is looked up, with the end of the host's name.
type LookUpHook = (&'static str, Box<dyn Fn() + Send + Sync>);

static LOOK_UP_HOOKS: Mutex<Vec<&'static LookUpHook>> = Mutex::new(Vec::new());

/// Runs `hook` before the system is asked for the addresses of a host whose name ends with `domain`, on the thread that
/// asks. Cannot be undone.
pub fn before_name_look_ups(domain: &'static str, hook: impl Fn() + Send + Sync + 'static) {
    let hook: LookUpHook = (domain, Box::new(hook));
    lock(&LOOK_UP_HOOKS).push(Box::leak(Box::new(hook)));
}

pub(crate) fn run_look_up_hooks(host: &str) {
    let hooks = lock(&LOOK_UP_HOOKS).clone();
    hooks.iter().filter(|(domain, _)| host.ends_with(domain)).for_each(|(_, hook)| hook());
}

/// Whether this thread carries out a request that it found in the request cache.
pub fn is_request_cached() -> bool {
    IS_REQUEST_CACHED.get()
}

/// Marks the thread's request as found in the cache, until this is dropped.
pub(crate) struct RequestCached {
    before: bool,
}

impl RequestCached {
    pub(crate) fn begin() -> RequestCached {
        RequestCached { before: IS_REQUEST_CACHED.replace(true) }
    }
}

impl Drop for RequestCached {
    fn drop(&mut self) {
        IS_REQUEST_CACHED.set(self.before);
    }
}
