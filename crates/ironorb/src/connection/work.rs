//! A message that asks the server for something, as it arrives.

use ironorb_giop::connection::{Incoming, ServerConnection};
use ironorb_giop::framer::{Buffer, Framer, Refused};
use ironorb_giop::message::{Message, RequestId, Response};

/// A message that asks the server for something.
#[derive(Debug)]
pub(crate) enum Work {
    Request(Message),
    Locate(Message),
    /// A request that is larger than the ORB accepts.
    TooLarge(Refused),
}

/// Why the server takes nothing more from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The client sent CloseConnection or MessageError.
    CloseConnection,
    /// The client broke the protocol. [`ServerConnection::protocol_error`] tells it so.
    ProtocolError,
}

/// What has arrived instead of work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Other {
    /// The client no longer waits for this request. More may follow.
    Cancelled(RequestId),
    Stop(Stop),
}

impl Work {
    /// Takes the next work that has arrived; `None` when more bytes are needed. A reply is a protocol error.
    #[inline]
    pub(crate) fn next(framer: &mut Framer) -> Result<Option<Work>, Other> {
        Work::next_or_reply(framer, |_| Err(Stop::ProtocolError))
    }

    /// Takes the next work that has arrived on a connection that may be bidirectional; `None` when more bytes
    /// are needed. Replies to the server's own calls go to `on_reply`.
    #[inline(always)] // a step of every call
    pub(crate) fn next_or_reply(
        framer: &mut Framer,
        mut on_reply: impl FnMut(Message) -> Result<(), Stop>,
    ) -> Result<Option<Work>, Other> {
        loop {
            match ServerConnection::poll_incoming(framer) {
                Ok(Some(Incoming::Request(message))) => return Ok(Some(Work::Request(message))),
                Ok(None) => return Ok(None),
                Ok(Some(Incoming::Reply(message))) => on_reply(message).map_err(Other::Stop)?,
                Ok(Some(other)) => {
                    if let Incoming::CancelRequest(id) = other {
                        return Err(Other::Cancelled(id));
                    }
                    if let Some(work) = Work::of(other).map_err(Other::Stop)? {
                        return Ok(Some(work));
                    }
                }
                Err(_) => return Err(Other::Stop(Stop::ProtocolError)),
            }
        }
    }

    /// Turns an incoming message into work; `None` when it asks for nothing.
    #[inline]
    pub(crate) fn of(incoming: Incoming) -> Result<Option<Work>, Stop> {
        match incoming {
            Incoming::Request(message) => Ok(Some(Work::Request(message))),
            Incoming::LocateRequest(message) => Ok(Some(Work::Locate(message))),
            Incoming::TooLarge(refused) => Ok(Some(Work::TooLarge(refused))),
            // `next_or_reply` has passed the cancellation on.
            Incoming::CancelRequest(_) => Ok(None),
            Incoming::Reply(_) => Err(Stop::ProtocolError),
            Incoming::CloseConnection => Err(Stop::CloseConnection),
        }
    }

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
