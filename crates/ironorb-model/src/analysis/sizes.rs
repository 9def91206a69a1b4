//! How long messages are, on connections that have been used before: requests, and replies.

use crate::queueing::{JobSizes, MessageSizes};
use crate::scenario::Operation;

/// A call.
pub(super) fn of_call(operation: &Operation, priority: Option<i16>) -> (u64, u64) {
    let octets = (operation.request_octets.into(), operation.reply_octets.into());
    let sizes = MessageSizes::of(&operation.name, octets.0, octets.1, priority.is_some());
    if operation.is_oneway { oneway(sizes) } else { both(sizes) }
}

/// A LocateRequest.
pub(super) fn of_locate() -> (u64, u64) {
    both(MessageSizes::of_locate())
}

/// A part that a daemon passes on.
pub(super) fn passed_on(operation: &Operation) -> (u64, u64) {
    oneway(JobSizes::passed_on(&operation.name, operation.request_octets.into()))
}

/// A result on its way to the client.
pub(super) fn told(operation: &Operation) -> (u64, u64) {
    both(JobSizes::told(operation.reply_octets.into()))
}

/// What a client asks a daemon.
pub(super) struct Asked {
    /// For handles.
    pub(super) resolve: (u64, u64),
    /// For a job that the daemon carries out.
    pub(super) run: (u64, u64),
    /// For a job that it passes on.
    pub(super) forward: (u64, u64),
}

impl Asked {
    /// Of a job whose parts have so many octets of arguments and results, with the handles of so many.
    pub(super) fn of(handles: u64, request_octets: u64, reply_octets: u64) -> Asked {
        let JobSizes { resolve, run, forward } = JobSizes::of(handles, request_octets, reply_octets);
        Asked { resolve: both(resolve), run: both(run), forward: oneway(forward) }
    }
}

fn both(sizes: MessageSizes) -> (u64, u64) {
    (sizes.request, sizes.reply)
}

fn oneway(sizes: MessageSizes) -> (u64, u64) {
    (sizes.request, 0)
}
