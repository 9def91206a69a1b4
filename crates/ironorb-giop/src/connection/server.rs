//! The server side of a connection: turns bytes into requests and replies into bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::transmit::NotWritten;
use super::{CompactConfig, ConnectionConfig, GatherMessage, Transmit, WriteBody};
use crate::cdr::{Runs, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::exception::SystemException;
use crate::framer::{Framer, Refused};
use crate::message::{
    LocateStatus, Message, MessageStart, MessageType, RawBody, ReplyStatus, RequestId,
    write_close_connection, write_message_error, write_raw_reply,
};
use crate::probe::{self, Stage};
use crate::service_context::{EncodedContexts, ServiceContext, ServiceContextList};
use crate::version::{Encoding, TransmissionCodeSets, Version};

/// A message or event from the client.
#[derive(Debug)]
pub enum Incoming {
    /// A Request to serve. The driver returns its buffer with [`Framer::recycle`].
    Request(Message),
    /// A LocateRequest to answer.
    LocateRequest(Message),
    /// A Reply or LocateReply to a request of ours. An error unless the connection is bidirectional (9.8):
    /// otherwise we have sent no request.
    Reply(Message),
    /// The client no longer waits for this reply. The server may omit it.
    CancelRequest(RequestId),
    /// A Request larger than the limit, or one for which memory is lacking. Its bytes are dropped.
    /// [`refuse`](ServerConnection::refuse) answers it.
    TooLarge(Refused),
    /// The client closes the connection, or did not understand us. The driver closes it.
    CloseConnection,
}

/// The server side of a connection.
#[derive(Debug)]
pub struct ServerConnection {
    config: CompactConfig,
    transmit: Transmit,
    ended: bool,
}

impl ServerConnection {
    /// An accepted connection and its receiving part. The driver keeps the two apart, so that one thread can
    /// wait for requests while others write replies.
    pub fn new(config: ConnectionConfig) -> (ServerConnection, Framer) {
        (ServerConnection::sending(config), Framer::new(config.framer))
    }

    /// Only the sending part: for replies on a connection that this process opened and on which the peer
    /// sends requests.
    pub fn sending(config: ConnectionConfig) -> ServerConnection {
        ServerConnection { config: CompactConfig::of(&config), transmit: Transmit::default(), ended: false }
    }

    /// Frees the send buffer if nothing waits to be sent, because the connection is idle.
    pub fn rest(&mut self) {
        self.transmit.rest();
    }

    /// The next message or event that has arrived, or `None` if more bytes are needed.
    ///
    /// After an error the driver calls [`protocol_error`](Self::protocol_error), sends the pending bytes and
    /// closes.
    #[inline(always)] // a step of every call
    pub fn poll_incoming(framer: &mut Framer) -> Result<Option<Incoming>, Malformed> {
        let _probe = probe::enter(Stage::Frame);
        match framer.next() {
            Ok(None) => Ok(None),
            Ok(Some(message)) if message.header().kind == MessageType::Request => {
                Ok(Some(Incoming::Request(message)))
            }
            Ok(Some(message)) => ServerConnection::other_incoming(framer, message),
            Err(malformed) => ServerConnection::refused(framer).ok_or(malformed),
        }
    }

    #[cold]
    fn refused(framer: &mut Framer) -> Option<Option<Incoming>> {
        let refused = framer.take_refused()?;
        Some(Some(match refused.kind {
            MessageType::Reply => Incoming::Reply(refused.reply()),
            _ => Incoming::TooLarge(refused),
        }))
    }

    /// Answers a request that was refused: IMP_LIMIT if it is too large, NO_MEMORY if memory is lacking.
    #[cold]
    pub fn refuse(&mut self, refused: Refused) {
        if refused.wants_answer {
            let encoding = Encoding::native(refused.version, TransmissionCodeSets::UNNEGOTIATED);
            // Writing a system exception cannot fail.
            let _ = self.raise(encoding, refused.id, EncodedContexts::EMPTY, &refused.exception());
        }
    }

    #[cold]
    fn other_incoming(framer: &mut Framer, message: Message) -> Result<Option<Incoming>, Malformed> {
        Ok(Some(match message.header().kind {
            MessageType::Request => Incoming::Request(message),
            MessageType::LocateRequest => Incoming::LocateRequest(message),
            MessageType::CancelRequest => {
                let id = message.request_id()?;
                framer.cancel(id);
                framer.recycle(message.into_buffer());
                Incoming::CancelRequest(id)
            }
            MessageType::CloseConnection | MessageType::MessageError => Incoming::CloseConnection,
            MessageType::Reply | MessageType::LocateReply => Incoming::Reply(message),
            MessageType::Fragment => return Err(Malformed::new(MalformedKind::BadMessageType, 7)),
        }))
    }

    /// Writes a reply. On an error, no byte of it remains.
    #[inline]
    pub fn reply(
        &mut self,
        encoding: Encoding,
        id: RequestId,
        status: ReplyStatus,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        self.reply_with(encoding, id, status, EncodedContexts::EMPTY, body)
    }

    /// Writes a reply with service contexts. On an error, no byte of it remains.
    #[inline]
    pub fn reply_with(
        &mut self,
        encoding: Encoding,
        id: RequestId,
        status: ReplyStatus,
        contexts: EncodedContexts<'_>,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        self.write(|buf| MessageStart::reply_with(buf, encoding, id, status, contexts), body)
    }

    /// Writes a reply whose body comes unchanged from another message. On an error, no byte of it remains.
    pub fn reply_raw(
        &mut self,
        version: Version,
        id: RequestId,
        status: ReplyStatus,
        contexts: &[ServiceContext<'_>],
        body: RawBody<'_>,
    ) -> Result<(), Misuse> {
        if self.ended {
            return Ok(()); // the peer reads nothing more
        }
        let bytes_max = self.config.message_bytes_max();
        let buf = self.transmit.buffer();
        let origin = buf.len();
        write_raw_reply(buf, version, id, status, contexts, body, bytes_max)?;
        if let Some(fragment_bytes) = self.config.fragment_bytes() {
            self.transmit.fragment(origin, fragment_bytes);
        }
        Ok(())
    }

    /// Writes a reply whose body can be written more than once. Passes long runs of bytes and the bytes
    /// before them to `send`, in up to three pieces at a time. `send` returns how many of those bytes the
    /// peer has taken. The rest is copied and waits like any reply. On an error, no byte of the reply
    /// remains.
    ///
    /// After [`Misuse::Unsteady`] the connection has ended, and the driver must close it at once.
    #[inline(always)] // a step of every call
    pub fn reply_gather(
        &mut self,
        encoding: Encoding,
        id: RequestId,
        status: ReplyStatus,
        contexts: EncodedContexts<'_>,
        body: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
        send: impl FnMut(&[&[u8]]) -> usize,
    ) -> Result<(), Misuse> {
        if self.ended {
            return Ok(()); // the peer reads nothing more
        }
        let _probe = probe::enter(Stage::Marshal);
        let buf = self.transmit.buffer();
        let message = MessageStart::reply_with(buf, encoding, id, status, contexts);
        if self.config.fragment_bytes().is_some() {
            return self.transmit.complete(message, &self.config, body);
        }
        let mut w = message.sparse_body(buf);
        let written = body(&mut w);
        match (written, w.into_runs()) {
            (Ok(()), Runs::None) => message.finish(buf, self.config.message_bytes_max()),
            (Ok(()), runs) => self.gather(message, runs, &body, send),
            (Err(misuse), _) => {
                message.abandon(buf);
                Err(misuse)
            }
        }
    }

    #[inline(never)]
    fn gather(
        &mut self,
        message: MessageStart,
        runs: Runs,
        body: WriteBody<'_>,
        mut send: impl FnMut(&[&[u8]]) -> usize,
    ) -> Result<(), Misuse> {
        if let Runs::One(run) = runs
            && !self.transmit.is_gathering()
        {
            let message = self.transmit.finish_sparse(message, run, &self.config)?;
            // If the body panics the second time, the connection must not be left to other replies in this
            // state.
            let sent = catch_unwind(AssertUnwindSafe(|| {
                self.transmit.send_sparse(message, body, &mut |pieces| send(pieces))
            }));
            return match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(message)) => self.send_gather(message, body, send),
                Err(_) => {
                    self.handle_end();
                    Err(Misuse::Unsteady)
                }
            };
        }
        match self.transmit.gather_or_complete(message, runs.into_vec(), &self.config, body) {
            Ok(()) => Ok(()),
            Err(NotWritten::Misuse(misuse)) => Err(misuse),
            Err(NotWritten::Gather(message)) => self.send_gather(message, body, send),
        }
    }

    #[cold]
    fn send_gather(
        &mut self,
        mut message: GatherMessage,
        body: WriteBody<'_>,
        mut send: impl FnMut(&[&[u8]]) -> usize,
    ) -> Result<(), Misuse> {
        let mut unsent = Vec::new();
        let mut write = |pieces: &[&[u8]]| {
            let mut sent = if unsent.is_empty() { send(pieces) } else { 0 };
            self.transmit.gather_transmitted(sent);
            for piece in pieces {
                let of_piece = sent.min(piece.len());
                let _probe = probe::copying(piece.len() - of_piece);
                unsent.extend_from_slice(&piece[of_piece..]);
                sent -= of_piece;
            }
        };
        // A body that panics counts as one that has changed: the connection ends.
        let handed_over = catch_unwind(AssertUnwindSafe(|| message.write_unsent(body, &mut write)))
            .unwrap_or(Err(Misuse::Unsteady));
        self.transmit.end_gather(message, unsent);
        handed_over.inspect_err(|_| self.handle_end())
    }

    /// Writes a system exception. Includes its text where [`ConnectionConfig::exception_details`] is set.
    #[cold]
    pub fn raise(
        &mut self,
        encoding: Encoding,
        id: RequestId,
        contexts: EncodedContexts<'_>,
        exception: &SystemException,
    ) -> Result<(), Misuse> {
        let mut list = ServiceContextList::default();
        if let Some(detail) = exception.detail().filter(|_| self.config.exception_details) {
            list.append(contexts);
            list.push_exception_detail(detail)?;
        }
        let contexts = if list.is_empty() { contexts } else { list.encoded() };
        self.reply_with(encoding, id, ReplyStatus::SystemException, contexts, |w| w.put(exception))
    }

    /// Writes a LocateReply. On an error, no byte of it remains.
    pub fn locate_reply(
        &mut self,
        encoding: Encoding,
        id: RequestId,
        status: LocateStatus,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        self.write(|buf| MessageStart::locate_reply(buf, encoding, id, status), body)
    }

    #[inline]
    fn write(
        &mut self,
        start: impl FnOnce(&mut Vec<u8>) -> MessageStart,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        if self.ended {
            return Ok(()); // the peer reads nothing more
        }
        let _probe = probe::enter(Stage::Marshal);
        let message = start(self.transmit.buffer());
        self.transmit.complete(message, &self.config, body)
    }

    /// The bytes to send.
    #[inline]
    pub fn transmit(&mut self) -> &mut Transmit {
        &mut self.transmit
    }

    /// Writes MessageError and ends the connection: the client's bytes are malformed.
    #[cold]
    pub fn protocol_error(&mut self) {
        if !self.ended {
            self.ended = true;
            write_message_error(self.transmit.buffer(), Version::V1_2);
        }
    }

    /// Writes CloseConnection and ends the connection. Requests that have arrived and have no reply yet get
    /// none.
    pub fn close(&mut self, version: Version) {
        if !self.ended {
            self.ended = true;
            write_close_connection(self.transmit.buffer(), version);
        }
    }

    /// Ends the connection because the stream has ended. Replies written from now on are dropped.
    pub fn handle_end(&mut self) {
        self.ended = true;
        self.transmit.clear();
    }

    /// Whether nothing more will be sent.
    pub fn is_ended(&self) -> bool {
        self.ended
    }
}
