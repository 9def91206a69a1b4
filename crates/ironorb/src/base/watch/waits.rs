//! Waits of threads for the ORB's own locks, gates and replies.

use std::cell::Cell;
use std::panic::Location;

use ironorb_locks::Watch;

use super::{ShortText, bound_ns, now_ns, records};

thread_local! {
    /// The lock of the program for which the thread is about to wait: its name, and where the program locks.
    static OF_PROGRAM: Cell<Option<(ShortText<48>, &'static Location<'static>)>> = const { Cell::new(None) };
    /// How long the thread has waited for the ORB's things since it began, in nanoseconds.
    static OWN_WAITS_NS: Cell<u64> = const { Cell::new(0) };
    /// The thread waits for something of the ORB's, or calls.
    static IS_IN_OWN_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// How long the calling thread has waited for the ORB's things since it began, in nanoseconds.
pub(super) fn own_waits_ns() -> u64 {
    OWN_WAITS_NS.try_with(Cell::get).unwrap_or(0)
}

/// A wait of the calling thread for something of the ORB's: it explains that an upcall does not run. Of waits within one
/// another the outermost counts.
pub(crate) struct OwnWait(Option<u64>);

impl OwnWait {
    /// Begins a wait. Does nothing while no ORB of the process watches.
    #[inline]
    pub(crate) fn begin() -> OwnWait {
        if bound_ns().is_none() || IS_IN_OWN_WAIT.try_with(|it| it.replace(true)).unwrap_or(true) {
            return OwnWait(None);
        }
        OwnWait(Some(now_ns()))
    }
}

impl Drop for OwnWait {
    #[inline]
    fn drop(&mut self) {
        if let Some(begun) = self.0 {
            IS_IN_OWN_WAIT.set(false);
            OWN_WAITS_NS.set(OWN_WAITS_NS.get() + now_ns().saturating_sub(begun));
        }
    }
}

/// A place in the code, which is told of when a thread waits there for too long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here(&'static Location<'static>);

impl Here {
    /// Where the function is called that calls this, or its caller if it passes that on.
    #[inline]
    #[track_caller]
    pub(crate) fn of_caller() -> Here {
        Here(Location::caller())
    }
}

impl Watch for Here {
    type Wait = Option<LockWait>;

    /// Begins a wait for a lock. `None` while no ORB of the process watches.
    fn begin(self, holder: u32) -> Option<LockWait> {
        let bound = bound_ns()?;
        let _own = OwnWait::begin();
        Some(LockWait { begun: now_ns(), bound, holder, place: self.0, _own })
    }
}

/// A wait for a lock that has a holder. Dropped when the thread has the lock, or has given up.
pub(crate) struct LockWait {
    begun: u64,
    bound: u64,
    holder: u32,
    place: &'static Location<'static>,
    _own: OwnWait,
}

impl Drop for LockWait {
    fn drop(&mut self) {
        let waited = now_ns().saturating_sub(self.begun);
        if waited > self.bound && !records::is_recording() {
            let (name, place) = OF_PROGRAM.get().unwrap_or((ShortText::EMPTY, self.place));
            records::record_lock(waited, self.holder, name, place);
        }
    }
}

/// Waits for a lock of the program, which has a name.
#[cold]
pub(crate) fn named_wait<R>(name: &str, place: &'static Location<'static>, wait: impl FnOnce() -> R) -> R {
    if bound_ns().is_none() {
        return wait();
    }
    let before = OF_PROGRAM.replace(Some((ShortText::of(name.as_bytes()), place)));
    let result = wait();
    OF_PROGRAM.set(before);
    result
}
