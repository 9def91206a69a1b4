//! What a server does with the messages that have arrived; the same for every driver. No I/O.

use std::sync::Arc;

use ironorb_giop::connection::{Incoming, ServerConnection};
use ironorb_giop::framer::{Buffer, Framer, Refused};
use ironorb_giop::message::{Message, RequestId, Response};

use super::in_flight::{self, CountedSink, Lack};
use crate::adapter::{ReplySink, Session};
use crate::orb::OrbCore;
use crate::probe::{self, Stage};

/// A message for a servant or about one.
#[derive(Debug)]
pub(crate) enum Work {
    Request(Message),
    Locate(Message),
    /// A request that is larger than we accept.
    TooLarge(Refused),
}

/// Why nothing more is taken from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The client said goodbye, or did not understand us.
    CloseConnection,
    /// The client's bytes make no sense: it is to be told by [`ServerConnection::protocol_error`].
    ProtocolError,
}

/// What has come instead of work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Other {
    /// The client no longer waits for this request. More may follow.
    Cancelled(RequestId),
    Stop(Stop),
}

impl Work {
    /// The next thing that has arrived; `None` when more bytes are needed.
    #[inline]
    pub(crate) fn next(framer: &mut Framer) -> Result<Option<Work>, Other> {
        Work::next_or_reply(framer, |_| Err(Stop::ProtocolError))
    }

    /// The same where the connection may be used both ways: replies to what we have asked go to `on_reply`.
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

    /// What something that has arrived asks for; `None` when nothing.
    #[inline]
    pub(crate) fn of(incoming: Incoming) -> Result<Option<Work>, Stop> {
        match incoming {
            Incoming::Request(message) => Ok(Some(Work::Request(message))),
            Incoming::LocateRequest(message) => Ok(Some(Work::Locate(message))),
            Incoming::TooLarge(refused) => Ok(Some(Work::TooLarge(refused))),
            // Who wants to know has been told.
            Incoming::CancelRequest(_) => Ok(None),
            Incoming::Reply(_) => Err(Stop::ProtocolError),
            Incoming::CloseConnection => Err(Stop::CloseConnection),
        }
    }

    /// Hears what its client tells of itself, for the whole connection.
    pub(crate) fn take_note(&self, orb: &OrbCore, session: &Session, sink: &dyn ReplySink) {
        if let Work::Request(message) = self
            && let Ok(request) = message.parse_request()
        {
            orb.adapter.take_note(&request, session, sink, orb);
        }
    }

    /// Does it.
    #[inline]
    pub(crate) fn carry_out(&mut self, orb: &Arc<OrbCore>, session: &Session, sink: &dyn ReplySink) {
        let _probe = probe::enter(Stage::Serve);
        match self {
            Work::Request(message) => orb.adapter.serve_request(message, session, sink, orb),
            Work::Locate(message) => orb.adapter.serve_locate(message, sink, orb),
            Work::TooLarge(refused) => sink.with(&mut |connection| connection.refuse(*refused)),
        }
    }

    /// The same where the ORB may have only so many requests in flight: one more is refused.
    pub(crate) fn carry_out_within_limits(
        &mut self,
        orb: &Arc<OrbCore>,
        session: &Session,
        sink: &dyn ReplySink,
    ) {
        let (Some(limit), Work::Request(message)) = (&orb.requests, &*self) else {
            return self.carry_out(orb, session, sink);
        };
        match limit.begin() {
            Some(permit) => {
                let counted = CountedSink::of(sink, permit, message);
                self.carry_out(orb, session, &counted);
            }
            None => {
                // It may be the one that says how to read the next.
                self.take_note(orb, session, sink);
                in_flight::refuse(message, sink, Lack::Requests);
            }
        }
    }

    /// Answers a request that waits for a thread while there is none to be had.
    pub(crate) fn refuse_for_lack_of_threads(&self, orb: &OrbCore, session: &Session, sink: &dyn ReplySink) {
        if let Work::Request(message) = self {
            self.take_note(orb, session, sink);
            in_flight::refuse(message, sink, Lack::Threads);
        }
    }

    /// Whether [`carry_out`](Self::carry_out) would wait for a manager that holds requests.
    pub(crate) fn is_held(&self, orb: &OrbCore) -> bool {
        match self {
            Work::Request(message) | Work::Locate(message) => orb.adapter.adapter_status_of(message).is_held,
            Work::TooLarge(_) => false,
        }
    }

    /// Whether anybody waits for an answer.
    pub(crate) fn wants_answer(&self) -> bool {
        match self {
            Work::Request(message) => message.parse_request().is_ok_and(|it| it.response != Response::None),
            Work::Locate(_) => true,
            Work::TooLarge(refused) => refused.wants_answer,
        }
    }

    /// The number that its client has given it.
    pub(crate) fn id(&self) -> Option<RequestId> {
        match self {
            Work::Request(message) | Work::Locate(message) => message.request_id().ok(),
            Work::TooLarge(refused) => Some(refused.id),
        }
    }

    /// Bytes of its message.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Work::Request(message) | Work::Locate(message) => message.bytes().len(),
            Work::TooLarge(_) => 0,
        }
    }

    /// The message's buffer, when it is done, or nothing is to be done about it.
    pub(crate) fn into_buffer(self) -> Buffer {
        match self {
            Work::Request(message) | Work::Locate(message) => message.into_buffer(),
            Work::TooLarge(_) => Buffer::default(),
        }
    }
}
