//! What a bridge's observer learns of a call.

use std::time::Duration;

use ironorb::{SystemException, Version};
use serde_json::Value;

/// A finished call.
#[derive(Debug)]
pub struct Passed<'a> {
    /// The object key in the client's request.
    pub key: &'a [u8],
    /// A number of the client's connection. A later connection may have it again.
    pub client: Option<u64>,
    /// The address in the target's reference.
    pub target: (&'a str, u16),
    /// The repository id in the target's reference; may be empty.
    pub interface: &'a str,
    /// The operation as in the request.
    pub operation: &'a str,
    /// Whether the client expects no reply.
    pub is_oneway: bool,
    /// The GIOP versions of the client's request, and of the request to the object.
    pub versions: (Version, Version),
    /// Length of the request's body in bytes.
    pub request_bytes: usize,
    /// Length of the reply's body in bytes; 0 without a reply.
    pub reply_bytes: usize,
    /// The request's body as it came; `None` if it came in fragments of GIOP 1.1.
    pub request_body: Option<&'a [u8]>,
    /// The reply's body as it came; `None` without one, or if it came in fragments of GIOP 1.1.
    pub reply_body: Option<&'a [u8]>,
    /// Whether the bodies of the request and of the reply were decoded and encoded anew.
    pub rewritten: (bool, bool),
    /// From the arrival of the request until the reply was written.
    pub time: Duration,
    /// The outcome.
    pub outcome: Outcome<'a>,
    /// The arguments as JSON, where [`BridgeOptions::show_values`](super::BridgeOptions::show_values) asks
    /// for them and their types are known.
    pub arguments: Option<Vec<Value>>,
    /// The result, if the operation has one, and out and inout parameters; or the exception's members as one
    /// value.
    pub results: Option<Vec<Value>>,
}

/// The outcome of a call.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// The operation returned.
    Results,
    /// A user exception, with its repository id.
    UserException(&'a str),
    /// A system exception, raised by the object or by the bridge.
    SystemException(&'a SystemException),
    /// The call was abandoned, because its client no longer waited.
    GivenUp,
    /// A oneway request was sent; it has no outcome.
    Sent,
}
