//! Hooks for the ORB's own tests of code that changes nothing but speed. They exist in builds with debug assertions only, and
//! are no part of the public interface.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::sync::lock;

static IS_CLOCK_STILL: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_REQUEST_CACHED: Cell<bool> = const { Cell::new(false) };
    static LOOKS_FIRST: Cell<bool> = const { Cell::new(false) };
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
