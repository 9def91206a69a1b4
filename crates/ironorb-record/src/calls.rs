//! Calls and requests that wait to be written.

use std::sync::Arc;

use ironorb_model::record::{CallId, CallSeen, Origin, Outcome, RequestSeen};

use crate::threads::ThreadTag;

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct EndedCall {
    pub(crate) number: u64,
    pub(crate) within: Option<CallId>,
    pub(crate) origin: ThreadTag,
    pub(crate) server: Arc<str>,
    pub(crate) object: u64,
    pub(crate) operation: Box<str>,
    pub(crate) interface: Box<str>,
    pub(crate) is_oneway: bool,
    pub(crate) begin_ns: u64,
    pub(crate) time_ns: u64,
    pub(crate) request_octets: usize,
    pub(crate) reply_octets: usize,
    pub(crate) outcome: Outcome,
    pub(crate) bodies: Option<(Vec<u8>, Vec<u8>)>,
}

impl EndedCall {
    pub(crate) fn seen(&self) -> CallSeen<'_> {
        CallSeen {
            number: self.number,
            within: self.within,
            origin: origin(&self.origin),
            server: &self.server,
            object: self.object,
            operation: &self.operation,
            interface: &self.interface,
            is_oneway: self.is_oneway,
            begin_ns: self.begin_ns,
            time_ns: self.time_ns,
            request_octets: self.request_octets as u64,
            reply_octets: self.reply_octets as u64,
            outcome: &self.outcome,
            bodies: self.bodies.as_ref().map(|(request, reply)| (&request[..], &reply[..])),
        }
    }

    /// Octets of bodies that it holds.
    pub(crate) fn body_octets(&self) -> usize {
        self.bodies.as_ref().map_or(0, |(request, reply)| request.len() + reply.len())
    }
}

/// A request that has been served.
#[derive(Debug)]
pub(crate) struct EndedRequest {
    pub(crate) number: u64,
    pub(crate) of: Option<CallId>,
    pub(crate) origin: ThreadTag,
    pub(crate) object: u64,
    pub(crate) operation: Box<str>,
    pub(crate) interface: Box<str>,
    pub(crate) is_oneway: bool,
    pub(crate) begin_ns: u64,
    pub(crate) time_ns: u64,
    pub(crate) processor_ns: Option<u64>,
    pub(crate) request_octets: usize,
    pub(crate) reply_octets: usize,
    pub(crate) outcome: Outcome,
}

impl EndedRequest {
    pub(crate) fn seen(&self) -> RequestSeen<'_> {
        RequestSeen {
            number: self.number,
            of: self.of,
            origin: origin(&self.origin),
            object: self.object,
            operation: &self.operation,
            interface: &self.interface,
            is_oneway: self.is_oneway,
            begin_ns: self.begin_ns,
            time_ns: self.time_ns,
            processor_ns: self.processor_ns,
            request_octets: self.request_octets as u64,
            reply_octets: self.reply_octets as u64,
            outcome: &self.outcome,
        }
    }
}

fn origin(thread: &ThreadTag) -> Origin<'_> {
    Origin { thread: thread.number, name: &thread.name }
}
