//! A message that asks the server for something, as it arrives.

use ironorb_giop::framer::{Buffer, Refused};
use ironorb_giop::message::{Message, RequestId, Response};

/// A message that asks the server for something.
#[derive(Debug)]
pub(crate) enum Work {
    Request(Message),
    Locate(Message),
    /// A request that is larger than the ORB accepts.
    TooLarge(Refused),
}

impl Work {
    /// Whether the client waits for a reply.
    pub(crate) fn wants_answer(&self) -> bool {
        match self {
            Work::Request(message) => message.parse_request().is_ok_and(|it| it.response != Response::None),
            Work::Locate(_) => true,
            Work::TooLarge(refused) => refused.wants_answer,
        }
    }

    /// The request id that the client has chosen.
    pub(crate) fn id(&self) -> Option<RequestId> {
        match self {
            Work::Request(message) | Work::Locate(message) => message.request_id().ok(),
            Work::TooLarge(refused) => Some(refused.id),
        }
    }

    /// The size of the message in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Work::Request(message) | Work::Locate(message) => message.bytes().len(),
            Work::TooLarge(_) => 0,
        }
    }

    /// Gives the message's buffer back for reuse.
    pub(crate) fn into_buffer(self) -> Buffer {
        match self {
            Work::Request(message) | Work::Locate(message) => message.into_buffer(),
            Work::TooLarge(_) => Buffer::default(),
        }
    }
}
