//! What is told of a call that has been passed on.

use std::time::Duration;

use ironorb::{SystemException, Version};
use serde_json::Value;

/// A call that is over.
#[derive(Debug)]
pub struct Passed<'a> {
    /// The key that the client named the object by.
    pub key: &'a [u8],
    /// The operation as on the wire.
    pub operation: &'a str,
    /// The versions of GIOP that the client speaks, and the bridge to the object.
    pub versions: (Version, Version),
    /// Bytes of the request's body.
    pub request_bytes: usize,
    /// Bytes of the reply's body; 0 where there is none.
    pub reply_bytes: usize,
    /// Whether the body of the request, and of the reply, was read and written anew.
    pub rewritten: (bool, bool),
    /// From when the request had come until its reply was written.
    pub time: Duration,
    /// How it ended.
    pub outcome: Outcome<'a>,
    /// The arguments, one by one, where they are to be shown and their types are known.
    pub arguments: Option<Vec<Value>>,
    /// The result, if the operation has one, and what came back beside it; or the exception's members as one.
    pub results: Option<Vec<Value>>,
}

/// How a call ended.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// With results.
    Results,
    /// With the user exception of this repository id.
    UserException(&'a str),
    /// With a system exception, of the object's or of the bridge's.
    SystemException(&'a SystemException),
    /// It was given up, since its client no longer waited.
    GivenUp,
    /// It was sent, and has no outcome.
    Sent,
}
