//! What is measured of the request that the calling thread carries out.

use std::cell::Cell;

use super::thread::{Switches, ThreadUsage};
use super::{ENABLED, ShortText, bound_ns, now_ns, records, waits};
use crate::base::locks::thread_id;

thread_local! {
    /// The thread carries out a request that is measured, and whose upcall has not begun.
    static IS_EXPECTED: Cell<bool> = const { Cell::new(false) };
    static UPCALL: Cell<Option<RunningUpcall>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct RunningUpcall {
    begun_ns: u64,
    usage: ThreadUsage,
    own_waits_ns: u64,
    operation: ShortText<48>,
    /// Once the servant has given its results, or has returned.
    ended: Option<MeasuredUpcall>,
}

/// An upcall that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredUpcall {
    pub(crate) begun_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) switches: Switches,
}

/// Which upcall of which thread: an answer that is given later, or by another thread, may be that of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UpcallMark {
    thread: u32,
    begun_ns: u64,
}

impl UpcallMark {
    /// Of the upcall that the calling thread is in, if it is measured.
    pub(crate) fn of_this_thread() -> Option<UpcallMark> {
        UPCALL.get().map(|upcall| UpcallMark { thread: thread_id(), begun_ns: upcall.begun_ns })
    }
}

/// Whether the next upcall of the thread is to be measured. For the place through which all requests pass: it looks at one
/// flag of the thread, in builds with the feature `watch`.
#[inline(always)] // a step of every call
pub(crate) fn upcall_is_expected() -> bool {
    ENABLED && IS_EXPECTED.get()
}

/// Tells that the servant of a request that is measured is about to be called.
pub(crate) fn upcall_begins(operation: &[u8]) {
    IS_EXPECTED.set(false);
    let begun_ns = now_ns();
    UPCALL.set(Some(RunningUpcall {
        begun_ns,
        own_waits_ns: waits::own_waits_ns(),
        operation: ShortText::of(operation),
        ended: None,
        usage: ThreadUsage::at_begin(),
    }));
}

/// Tells that the servant has given its results, if the request that the thread carries out is measured. Does nothing the
/// second time.
pub(crate) fn upcall_ends() {
    let Some(upcall) = UPCALL.get().filter(|upcall| upcall.ended.is_none()) else { return };
    let ended_ns = now_ns();
    let done = ThreadUsage::at_end().since(&upcall.usage);
    let explained = waits::own_waits_ns().saturating_sub(upcall.own_waits_ns);
    let unexplained = done.slept_ns.saturating_sub(explained);
    if done.switches.voluntary > 0 && bound_ns().is_some_and(|bound| unexplained > bound) {
        records::record_other(unexplained, upcall.operation);
    }
    let ended = MeasuredUpcall { begun_ns: upcall.begun_ns, ended_ns, switches: done.switches };
    UPCALL.set(Some(RunningUpcall { ended: Some(ended), ..upcall }));
}

/// The measuring of one request on the thread that carries it out. Requests may be within one another: then each is measured
/// by itself.
pub(crate) struct MeasuredRequest {
    outer: Option<RunningUpcall>,
    was_expected: bool,
}

impl MeasuredRequest {
    /// Has the next upcall of the thread measured.
    pub(crate) fn begin() -> MeasuredRequest {
        MeasuredRequest { outer: UPCALL.take(), was_expected: IS_EXPECTED.replace(true) }
    }

    /// Ends it; `None` if no servant has been called.
    pub(crate) fn end(self) -> Option<MeasuredUpcall> {
        upcall_ends();
        UPCALL.get()?.ended
    }
}

impl Drop for MeasuredRequest {
    fn drop(&mut self) {
        UPCALL.set(self.outer);
        IS_EXPECTED.set(self.was_expected);
    }
}
