//! How long messages are, on connections that have been used before.

use crate::scenario::Operation;

/// The request and the reply of a call.
pub(super) fn of_call(operation: &Operation, _priority: Option<i16>) -> (u64, u64) {
    let request = SHORT_OCTETS + operation.name.len() as u64 + u64::from(operation.request_octets);
    let reply = if operation.is_oneway { 0 } else { 24 + u64::from(operation.reply_octets) };
    (request, reply)
}

/// A LocateRequest and its reply.
pub(super) fn of_locate() -> (u64, u64) {
    (SHORT_OCTETS, 24)
}

/// A part that a daemon passes on.
pub(super) fn passed_on(operation: &Operation) -> (u64, u64) {
    (of_call(operation, None).0, 0)
}

/// A result on its way to the client.
pub(super) fn told(operation: &Operation) -> (u64, u64) {
    (SHORT_OCTETS + u64::from(operation.reply_octets), 24)
}

/// Messages between a client and a daemon.
pub(super) struct JobSizes {
    /// For handles.
    pub(super) resolve: (u64, u64),
    /// For a job that the daemon carries out.
    pub(super) run: (u64, u64),
    /// For a job that it passes on.
    pub(super) forward: (u64, u64),
}

impl JobSizes {
    pub(super) fn of(_parts: u64, request_octets: u64, reply_octets: u64) -> JobSizes {
        JobSizes {
            resolve: (SHORT_OCTETS, SHORT_OCTETS),
            run: (SHORT_OCTETS + request_octets, SHORT_OCTETS + reply_octets),
            forward: (SHORT_OCTETS + request_octets, 0),
        }
    }
}

/// A message without a body.
const SHORT_OCTETS: u64 = 64;
