//! The client's side of a connection: the calls in flight, and the replies matched to them.

mod plain;

use std::collections::VecDeque;
use std::convert::Infallible;

use super::transmit::NotWritten;
use super::{
    CompactConfig, ConnectionConfig, ForeignProtocol, GatherMessage, Incoming, SparseMessage, Transmit,
};
use crate::cdr::Writer;
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::framer::{Buffer, Framer};
use crate::message::{
    HEADER_BYTES, Message, MessageStart, MessageType, OperationName, RawBody, RequestId, RequestTarget,
    Response, write_cancel_request, write_close_connection, write_message_error, write_raw_request_head,
};
use crate::probe::{self, Stage};
use crate::service_context::{
    CODE_SETS, CodeSetContext, EncodedContexts, ServiceContext, ServiceContextList, code_sets_context,
};
use crate::version::{Encoding, TransmissionCodeSets, Version, WideCharSet};

/// A call that waits for its reply; valid until it is taken or abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId(RequestId);

impl CallId {
    /// Low half: index of the slot. High half: how often the slot has been used, so that a late reply to a
    /// call given up does not answer the next one.
    fn new(index: u16, generation: u16) -> Self {
        CallId(RequestId(u32::from(generation) << 16 | u32::from(index)))
    }

    /// The request id: the request carries it, and the reply repeats it.
    #[inline]
    pub fn request_id(self) -> RequestId {
        self.0
    }

    fn index(self) -> usize {
        usize::from(self.0.0 as u16)
    }

    fn generation(self) -> u16 {
        (self.0.0 >> 16) as u16
    }
}

/// Why a connection carries no more calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The peer sent CloseConnection. It has not carried out the requests that it has not answered (9.4.7).
    Closed,
    /// The stream ended or failed. The peer may have carried out the calls in flight.
    Lost,
    /// The stream ended or failed before the peer had sent a single byte. The peer may have carried out the
    /// calls in flight.
    LostUnheard,
    /// The first bytes of the peer were of another protocol. The peer has sent no GIOP message on this
    /// connection, so it has carried nothing out.
    NotGiop(ForeignProtocol),
    /// The peer sent MessageError: it did not understand a message of this side.
    MessageError,
    /// This side did not understand a message of the peer.
    Malformed(Malformed),
    /// This side closed the connection.
    Local,
}

/// The state of a call.
#[derive(Debug)]
pub enum CallState {
    /// No answer yet.
    Waiting,
    /// The Reply or LocateReply. Give its buffer back with [`ClientConnection::recycle`].
    Answered(Message),
    /// There will be no answer.
    Ended {
        /// Why the connection ended.
        end: ConnectionEnd,
        /// Whether any byte of the request has left. If not, the peer cannot have carried it out.
        sent: bool,
    },
}

/// A protocol error has ended the connection. The driver sends what is left and closes the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolError(pub Malformed);

/// The client's side of a connection. `W` is what a driver keeps with a call to wake its waiter.
#[derive(Debug)]
pub struct ClientConnection<W> {
    config: CompactConfig,
    transmit: Transmit,
    /// `None` while a driver waits for bytes with it. It is taken and put back once in every call.
    framer: Option<Box<Framer>>,
    slots: Vec<Slot<W>>,
    free: Vec<u16>,
    end: Option<ConnectionEnd>,
    /// The code sets, once a request has announced them to the server.
    code_sets: Option<TransmissionCodeSets>,
    /// The code sets of replies of GIOP 1.1 and 1.2.
    reply_code_sets: TransmissionCodeSets,
    /// Which request ids belong to this side. Only of a bidirectional connection.
    side: Option<Side>,
    /// Slots whose ids belong to the peer; they are never free.
    foreign_slots: u16,
    /// Service contexts that the next request of GIOP 1.2 carries.
    announcement: Option<Box<ServiceContextList>>,
    /// Requests of the peer that the driver has not taken. `None` until this side has allowed the peer to
    /// send requests.
    #[allow(clippy::box_collection)] // few connections have it
    incoming: Option<Box<VecDeque<Incoming>>>,
}

/// The side of a bidirectional connection (CORBA 3.3 part 2, 9.8). The originator's request ids are even, the
/// acceptor's are odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The side that has connected.
    Originator,
    /// The side that has accepted.
    Acceptor,
}

#[derive(Debug)]
struct Slot<W> {
    /// How many calls the slot has had. The low 16 bits are the generation of its next call.
    uses: u64,
    state: SlotState,
    /// `Some` once the call is answered.
    answer: Option<Message>,
    waker: Option<W>,
    /// Where in the stream the request begins.
    begins_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Free,
    Waiting,
    Answered,
}

impl<W> ClientConnection<W> {
    /// A connection that has just been made.
    pub fn new(config: ConnectionConfig) -> Self {
        ClientConnection {
            config: CompactConfig::of(&config),
            transmit: Transmit::default(),
            framer: Some(Box::new(Framer::new(config.framer))),
            slots: Vec::new(),
            free: Vec::new(),
            end: None,
            code_sets: None,
            reply_code_sets: readable(TransmissionCodeSets::UNNEGOTIATED),
            side: None,
            foreign_slots: 0,
            announcement: None,
            incoming: None,
        }
    }

    /// A bidirectional connection. The acceptor has no receiving part of its own: the connection's server
    /// side hands replies to it by [`handle_reply`](Self::handle_reply).
    pub fn bidirectional(config: ConnectionConfig, side: Side) -> Self {
        let framer = (side == Side::Originator).then(|| Box::new(Framer::new(config.framer)));
        ClientConnection { framer, side: Some(side), ..ClientConnection::new(config) }
    }

    /// True when the connection is bidirectional.
    pub fn is_bidirectional(&self) -> bool {
        self.side.is_some()
    }

    /// Sends these listen points to the peer with the next request of GIOP 1.2. From then on the peer may
    /// send requests over this connection: see [`poll_incoming`](Self::poll_incoming).
    pub fn announce(&mut self, listen_points: ServiceContextList) {
        self.announcement = Some(Box::new(listen_points));
    }

    /// Takes the next request of the peer, for the driver to serve. Never gives [`Incoming::Reply`] or
    /// [`Incoming::CloseConnection`].
    #[inline]
    pub fn poll_incoming(&mut self) -> Option<Incoming> {
        self.incoming.as_mut()?.pop_front()
    }

    /// Why the connection has ended, if it has.
    #[inline]
    pub fn end(&self) -> Option<ConnectionEnd> {
        self.end
    }

    /// The number of calls that wait for a reply.
    #[inline]
    pub fn calls_in_flight(&self) -> usize {
        self.slots.len() - self.free.len() - usize::from(self.foreign_slots)
    }

    /// The number of requests begun since the connection was made: calls, oneways, locates, and those that could not be
    /// written. Costs a look at each slot, and a call nothing.
    pub fn requests_begun(&self) -> u64 {
        let ended: u64 = self.slots.iter().map(|slot| slot.uses).sum();
        ended + self.calls_in_flight() as u64
    }

    /// Writes a request that wants a reply. On an error nothing has been written.
    #[inline]
    pub fn begin_call<'o>(
        &mut self,
        target: &RequestTarget,
        operation: impl Into<OperationName<'o>>,
        arguments: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<CallId, BeginError> {
        self.begin_request(target, operation, RequestOptions::TWOWAY, arguments)
    }

    /// Writes a request that wants a reply, with options of its own. A caller that does not want one uses
    /// [`begin_oneway`](Self::begin_oneway).
    #[inline]
    pub fn begin_request<'o>(
        &mut self,
        target: &RequestTarget,
        operation: impl Into<OperationName<'o>>,
        options: RequestOptions<'_>,
        arguments: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<CallId, BeginError> {
        let call = self.take_slot()?;
        match self.write_request(target, call.0, options, operation.into(), Whole(arguments)) {
            Ok(()) => Ok(call),
            Err(NotWritten::Misuse(misuse)) => {
                self.release(call);
                Err(BeginError::Misuse(misuse))
            }
        }
    }

    /// Writes a request that wants a reply. `arguments` may be called more than once: long runs of bytes in
    /// them are not copied but sent from where they lie, if that is worth it.
    #[inline]
    pub fn begin_gather<'o>(
        &mut self,
        target: &RequestTarget,
        operation: impl Into<OperationName<'o>>,
        options: RequestOptions<'_>,
        arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<CallId, NotWhole<CallId>> {
        let call = self.take_slot()?;
        match self.write_request(target, call.0, options, operation.into(), GatherBody(arguments)) {
            Ok(()) => Ok(call),
            Err(NotWritten::Gather(message)) => Err(NotWhole::Gather(call, message)),
            Err(NotWritten::Misuse(misuse)) => {
                self.release(call);
                Err(BeginError::Misuse(misuse).into())
            }
        }
    }

    /// Writes a request that wants no reply.
    #[inline]
    pub fn begin_oneway<'o>(
        &mut self,
        target: &RequestTarget,
        operation: impl Into<OperationName<'o>>,
        arguments: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), BeginError> {
        self.begin_oneway_with(target, operation, EncodedContexts::EMPTY, arguments)
    }

    /// Writes a request that wants no reply, with service contexts.
    #[inline]
    pub fn begin_oneway_with<'o>(
        &mut self,
        target: &RequestTarget,
        operation: impl Into<OperationName<'o>>,
        contexts: EncodedContexts<'_>,
        arguments: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), BeginError> {
        // The id must differ from those of calls in flight: it is the next one of a free slot.
        let call = self.take_slot()?;
        let options = RequestOptions { response: Response::None, contexts };
        let result = self.write_request(target, call.0, options, operation.into(), Whole(arguments));
        self.release(call);
        result.map_err(|NotWritten::Misuse(misuse)| BeginError::Misuse(misuse))
    }

    /// Writes a request that wants no reply. `arguments` may be called more than once: long runs of bytes in
    /// them are not copied but sent from where they lie, if that is worth it.
    #[inline]
    pub fn begin_gather_oneway<'o>(
        &mut self,
        target: &RequestTarget,
        operation: impl Into<OperationName<'o>>,
        contexts: EncodedContexts<'_>,
        arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), NotWhole<()>> {
        let call = self.take_slot()?;
        let options = RequestOptions { response: Response::None, contexts };
        let result = self.write_request(target, call.0, options, operation.into(), GatherBody(arguments));
        self.release(call);
        result.map_err(|e| match e {
            NotWritten::Gather(message) => NotWhole::Gather((), message),
            NotWritten::Misuse(misuse) => BeginError::Misuse(misuse).into(),
        })
    }

    /// Writes a request with a body that has been marshalled before and is sent unchanged. Returns `None`
    /// when the request wants no reply.
    ///
    /// A long body need not be copied. `send` is given the bytes that wait and the body, and returns how many
    /// bytes of both it has sent. It may send none: the connection keeps the rest.
    #[allow(clippy::too_many_arguments)] // the parts of a request
    pub fn begin_raw(
        &mut self,
        target: &RequestTarget,
        operation: &str,
        response: Response,
        contexts: &[ServiceContext<'_>],
        body: RawBody<'_>,
        send: impl FnOnce(&[&[u8]; 2]) -> usize,
    ) -> Result<Option<CallId>, BeginError> {
        let call = self.take_slot()?;
        let (_, chosen) = self.code_sets_for(target);
        let introduced = chosen.map(|sets| CodeSetContext::from(sets).encode());
        let introduced = introduced.as_ref().map(|data| ServiceContext { id: CODE_SETS, data });
        let contexts: Vec<ServiceContext<'_>> =
            introduced.into_iter().chain(contexts.iter().copied()).collect();
        let bytes_max = self.config.message_bytes_max();
        let buf = self.transmit.buffer();
        let origin = buf.len();
        let written =
            write_raw_request_head(buf, target, call.0, response, operation, &contexts, body, bytes_max);
        if let Err(misuse) = written {
            self.release(call);
            return Err(BeginError::Misuse(misuse));
        }
        self.agree_on(chosen);
        match self.config.fragment_bytes() {
            None => self.transmit.append_gather(body.bytes, send),
            Some(fragment_bytes) => {
                self.transmit.buffer().extend_from_slice(body.bytes);
                self.transmit.fragment(origin, fragment_bytes);
            }
        }
        if response == Response::None {
            self.release(call); // it only used the slot's next id
            return Ok(None);
        }
        Ok(Some(call))
    }

    /// Writes a LocateRequest.
    pub fn begin_locate(&mut self, target: &RequestTarget) -> Result<CallId, BeginError> {
        let call = self.take_slot()?;
        let buf = self.transmit.buffer();
        let origin = buf.len();
        let written = MessageStart::locate_request(buf, target, call.0)
            .and_then(|message| self.transmit.complete(message, &self.config, |_| Ok(())));
        if let Err(misuse) = written {
            self.transmit.buffer().truncate(origin);
            self.release(call);
            return Err(BeginError::Misuse(misuse));
        }
        Ok(call)
    }

    /// The encoding that the arguments of the next request to this target would have.
    pub fn encoding_for(&self, target: &RequestTarget) -> Encoding {
        target.encoding(self.code_sets_for(target).0)
    }

    /// The code sets of the next request to this target, and the code sets that this request must announce,
    /// if any.
    #[inline]
    fn code_sets_for(&self, target: &RequestTarget) -> (TransmissionCodeSets, Option<TransmissionCodeSets>) {
        // 7.10.2.5: the first request whose target lists its code sets announces the chosen ones. They then
        // hold for everything on the connection. GIOP 1.0 knows no code sets.
        let telling = self.code_sets.is_none() && target.version() > Version::V1_0;
        let chosen = if telling { target.code_sets() } else { None };
        let code_sets = match self.code_sets.or(chosen) {
            Some(code_sets) if target.version() > Version::V1_0 => code_sets,
            _ => TransmissionCodeSets::UNNEGOTIATED,
        };
        (code_sets, chosen)
    }

    #[inline(always)] // a step of every call
    fn write_request<B: Body>(
        &mut self,
        target: &RequestTarget,
        id: RequestId,
        options: RequestOptions<'_>,
        operation: OperationName<'_>,
        arguments: B,
    ) -> Result<(), NotWritten<B::Gather>> {
        let (code_sets, chosen) = self.code_sets_for(target);
        if chosen.is_some() || self.announcement.is_some() {
            return self.write_introduction(target, id, options, operation, arguments);
        }
        let contexts = [options.contexts];
        self.write_with(target, id, code_sets, options.response, operation, &contexts, arguments)
    }

    /// Writes a request that also announces the code sets, the listen points or both to the server.
    #[cold]
    fn write_introduction<B: Body>(
        &mut self,
        target: &RequestTarget,
        id: RequestId,
        options: RequestOptions<'_>,
        operation: OperationName<'_>,
        arguments: B,
    ) -> Result<(), NotWritten<B::Gather>> {
        let (code_sets, chosen) = self.code_sets_for(target);
        let encoded = chosen.map(code_sets_context);
        let code_set_context = match &encoded {
            Some(bytes) => EncodedContexts::new(1, bytes),
            None => EncodedContexts::EMPTY,
        };
        let listen_points = match target.version() {
            Version::V1_2 => self.announcement.take(),
            _ => None,
        };
        let announced = listen_points.as_deref().map_or(EncodedContexts::EMPTY, ServiceContextList::encoded);
        let contexts = [code_set_context, announced, options.contexts];
        let written =
            self.write_with(target, id, code_sets, options.response, operation, &contexts, arguments);
        if let Err(NotWritten::Misuse(_)) = written {
            self.announcement = self.announcement.take().or(listen_points);
            return written;
        }
        self.agree_on(chosen);
        if listen_points.is_some() {
            self.incoming.get_or_insert_default();
        }
        written
    }

    #[inline(always)] // a step of every call
    #[allow(clippy::too_many_arguments)] // the parts of a request
    fn write_with<B: Body>(
        &mut self,
        target: &RequestTarget,
        id: RequestId,
        code_sets: TransmissionCodeSets,
        response: Response,
        operation: OperationName<'_>,
        contexts: &[EncodedContexts<'_>],
        arguments: B,
    ) -> Result<(), NotWritten<B::Gather>> {
        let _probe = probe::enter(Stage::Marshal);
        let buf = self.transmit.buffer();
        let origin = buf.len();
        let written = MessageStart::request(buf, target, code_sets, id, response, operation, contexts)
            .map_err(NotWritten::Misuse)
            .and_then(|message| arguments.complete(message, &mut self.transmit, &self.config));
        written.map_err(|e| match e {
            NotWritten::Misuse(misuse) => {
                self.transmit.buffer().truncate(origin);
                NotWritten::Misuse(wide_misuse(misuse, target))
            }
            gather => gather,
        })
    }

    /// The queue of bytes to send.
    #[inline]
    pub fn transmit(&mut self) -> &mut Transmit {
        &mut self.transmit
    }

    /// Takes the receiving part, for a driver about to wait for bytes. Returns `None` while a driver has it.
    #[inline]
    pub fn take_framer(&mut self) -> Option<Box<Framer>> {
        self.framer.take()
    }

    /// True while no driver has taken the receiving part.
    #[inline]
    pub fn has_framer(&self) -> bool {
        self.framer.is_some()
    }

    /// Puts the receiving part back with what it has received, and completes the calls that are answered.
    /// Calls `wake` for each of them that has a waker (see [`set_waker`](Self::set_waker)).
    ///
    /// After an error the connection has ended and every call with it.
    #[inline(always)] // a step of every call
    pub fn handle_input(
        &mut self,
        mut framer: Box<Framer>,
        mut wake: impl FnMut(W),
    ) -> Result<(), ProtocolError> {
        let probe = probe::enter(Stage::Frame);
        let result = loop {
            match framer.next() {
                Ok(None) => break Ok(()),
                Ok(Some(mut message)) => {
                    message.set_code_sets(self.code_sets_of_replies(message.header().version));
                    match self.handle_message(message, &mut framer, &mut wake) {
                        Ok(()) => {}
                        Err(e) => break Err(e),
                    }
                }
                Err(e) => {
                    if let Err(e) = self.handle_refused(e, &mut framer, &mut wake) {
                        break Err(e);
                    }
                }
            }
        };
        drop(probe);
        self.framer = Some(framer);
        result.map_err(|malformed| {
            // The messages that wait are not sent: their callers learn that they were not. If part of one has
            // left, a MessageError might complete that message at the peer.
            let at_boundary = self.transmit.pending_bytes() == 0;
            self.transmit.clear();
            if at_boundary {
                write_message_error(self.transmit.buffer(), Version::V1_2);
            }
            self.handle_end(self.end_by(malformed), wake);
            ProtocolError(malformed)
        })
    }

    /// The code sets of replies of this version.
    #[inline]
    fn code_sets_of_replies(&self, version: Version) -> TransmissionCodeSets {
        match version {
            Version::V1_0 => readable(TransmissionCodeSets::UNNEGOTIATED),
            _ => self.reply_code_sets,
        }
    }

    /// Notes the code sets that a request has just announced to the server, if any.
    #[cold]
    fn agree_on(&mut self, chosen: Option<TransmissionCodeSets>) {
        self.code_sets = self.code_sets.or(chosen);
        self.reply_code_sets = readable(self.code_sets.unwrap_or(TransmissionCodeSets::UNNEGOTIATED));
    }

    #[inline(always)] // a step of every call
    fn handle_message(
        &mut self,
        message: Message,
        framer: &mut Framer,
        wake: &mut impl FnMut(W),
    ) -> Result<(), Malformed> {
        match message.header().kind {
            MessageType::Reply | MessageType::LocateReply => {
                let id = CallId(message.request_id()?);
                match self.slots.get_mut(id.index()) {
                    Some(slot)
                        if slot.generation() == id.generation() && slot.state == SlotState::Waiting =>
                    {
                        slot.state = SlotState::Answered;
                        slot.answer = Some(message);
                        if let Some(waker) = slot.waker.take() {
                            wake(waker);
                        }
                    }
                    // Late: the caller has given up.
                    _ => framer.recycle(message.into_buffer()),
                }
            }
            MessageType::CloseConnection => self.handle_end(ConnectionEnd::Closed, wake),
            MessageType::MessageError => self.handle_end(ConnectionEnd::MessageError, wake),
            // 9.4.1: only the server receives requests, or a client that has offered to serve on the
            // connection.
            MessageType::Request
            | MessageType::LocateRequest
            | MessageType::CancelRequest
            | MessageType::Fragment => return self.handle_request(message, framer),
        }
        Ok(())
    }

    /// Handles a message larger than the limit. A reply ends its call with an error, and the connection goes
    /// on.
    #[cold]
    fn handle_refused(
        &mut self,
        error: Malformed,
        framer: &mut Framer,
        wake: &mut impl FnMut(W),
    ) -> Result<(), Malformed> {
        let refused = framer.take_refused().ok_or(error)?;
        match (refused.kind, &mut self.incoming) {
            (MessageType::Reply, _) => self.handle_message(refused.reply(), framer, wake),
            (_, Some(incoming)) => {
                incoming.push_back(Incoming::TooLarge(refused));
                Ok(())
            }
            (_, None) => Err(error),
        }
    }

    #[cold]
    fn handle_request(&mut self, message: Message, framer: &mut Framer) -> Result<(), Malformed> {
        let bad_type = Malformed::new(MalformedKind::BadMessageType, 7);
        let Some(incoming) = &mut self.incoming else { return Err(bad_type) };
        incoming.push_back(match message.header().kind {
            MessageType::Request => Incoming::Request(message),
            MessageType::LocateRequest => Incoming::LocateRequest(message),
            MessageType::CancelRequest => {
                let id = message.request_id()?;
                framer.cancel(id);
                framer.recycle(message.into_buffer());
                Incoming::CancelRequest(id)
            }
            _ => return Err(bad_type),
        });
        Ok(())
    }

    /// Completes a call by a Reply or LocateReply that the connection's server side has received.
    #[cold]
    pub fn handle_reply(&mut self, mut message: Message, mut wake: impl FnMut(W)) -> Result<(), Malformed> {
        message.set_code_sets(self.code_sets_of_replies(message.header().version));
        let id = CallId(message.request_id()?);
        // Without such a slot the reply is late: the caller has given up.
        if let Some(slot) = self.slot_mut(id)
            && slot.state == SlotState::Waiting
        {
            slot.state = SlotState::Answered;
            slot.answer = Some(message);
            if let Some(waker) = slot.waker.take() {
                wake(waker);
            }
        }
        Ok(())
    }

    /// Ends the connection, because the stream has ended, has failed or is given up. Calls without an answer
    /// end for this reason. Later reasons change nothing.
    #[cold]
    pub fn handle_end(&mut self, end: ConnectionEnd, mut wake: impl FnMut(W)) {
        if self.end.is_none() {
            self.end = Some(if end == ConnectionEnd::Lost { self.end_by_loss() } else { end });
        }
        for slot in &mut self.slots {
            if let Some(waker) = slot.waker.take() {
                wake(waker);
            }
        }
    }

    /// The end of a connection whose peer has sent malformed bytes.
    #[cold]
    fn end_by(&self, malformed: Malformed) -> ConnectionEnd {
        let is_foreign = malformed.kind == MalformedKind::BadMagic && !self.may_have_answer();
        match self.framer.as_ref().and_then(|framer| framer.foreign_protocol()) {
            Some(protocol) if is_foreign => ConnectionEnd::NotGiop(protocol),
            _ => ConnectionEnd::Malformed(malformed),
        }
    }

    /// The end of a connection whose stream has ended. A peer of another protocol may send less than a
    /// header.
    #[cold]
    fn end_by_loss(&self) -> ConnectionEnd {
        let Some(framer) = self.framer.as_ref().filter(|_| !self.may_have_answer()) else {
            return ConnectionEnd::Lost; // another thread has the received bytes
        };
        match framer.foreign_protocol() {
            Some(protocol) => ConnectionEnd::NotGiop(protocol),
            None if framer.is_mid_message() || self.transmit.sent_position() == 0 => ConnectionEnd::Lost,
            None => ConnectionEnd::LostUnheard,
        }
    }

    /// False where no message can have come yet: no slot has been used twice, and none has an answer. There
    /// is no counter of answers, because it would cost every call.
    fn may_have_answer(&self) -> bool {
        // A slot's generation returns to 0 after this many bytes of requests, none of which is shorter than a
        // header.
        const GENERATION_BYTES: u64 = (1 << 16) * HEADER_BYTES as u64;
        let is_fresh = |slot: &Slot<W>| {
            slot.generation() == 0 && slot.state != SlotState::Answered && slot.begins_at < GENERATION_BYTES
        };
        self.incoming.is_some() || !self.slots.iter().all(is_fresh)
    }

    /// Writes CloseConnection and ends every call.
    pub fn close(&mut self, wake: impl FnMut(W)) {
        if self.end.is_none() {
            write_close_connection(self.transmit.buffer(), Version::V1_2);
            self.handle_end(ConnectionEnd::Local, wake);
        }
    }

    /// The state of a call. An answer or an end is given once and frees the call.
    #[inline(always)] // a step of every call
    pub fn poll_call(&mut self, call: CallId) -> CallState {
        let end = self.end;
        let sent_position = self.transmit.sent_position();
        let Some(slot) = self.slot_mut(call) else {
            return CallState::Ended { end: end.unwrap_or(ConnectionEnd::Lost), sent: true };
        };
        let sent = sent_position > slot.begins_at;
        match slot.answer.take() {
            Some(message) => {
                self.release(call);
                CallState::Answered(message)
            }
            None => match end {
                None => CallState::Waiting,
                Some(end) => {
                    self.release(call);
                    CallState::Ended { end, sent }
                }
            },
        }
    }

    /// Stores the waker of a call's waiter.
    #[inline]
    pub fn set_waker(&mut self, call: CallId, waker: W) {
        if let Some(slot) = self.slot_mut(call) {
            slot.waker = Some(waker);
        }
    }

    /// Takes back the waker of a call's waiter, so that the waiter can take over the receiving.
    #[inline]
    pub fn take_waker(&mut self, call: CallId) -> Option<W> {
        self.slot_mut(call)?.waker.take()
    }

    /// True while the call has neither an answer nor an end.
    pub fn is_waiting(&self, call: CallId) -> bool {
        self.end.is_none()
            && self.slots.get(call.index()).is_some_and(|slot| {
                slot.generation() == call.generation() && slot.state == SlotState::Waiting
            })
    }

    /// Gives up a call. Sends a CancelRequest where [`ConnectionConfig::cancel_requests`] says so. A reply
    /// that comes later is dropped. False when the call is unknown: its answer or its end has been taken
    /// already.
    pub fn abandon(&mut self, call: CallId, version: Version) -> bool {
        self.end_call(call, version, self.config.cancel_requests)
    }

    /// Gives up a call as [`abandon`](Self::abandon) does, and sends a CancelRequest in any case.
    pub fn cancel(&mut self, call: CallId, version: Version) -> bool {
        self.end_call(call, version, true)
    }

    fn end_call(&mut self, call: CallId, version: Version, cancels: bool) -> bool {
        let is_known = self.slot_mut(call).is_some();
        if is_known {
            if self.end.is_none() && cancels {
                write_cancel_request(self.transmit.buffer(), version, call.0);
            }
            self.release(call);
        }
        is_known
    }

    /// Takes a reply's buffer back, for the next message.
    #[inline]
    pub fn recycle(&mut self, buffer: Buffer) {
        if let Some(framer) = &mut self.framer {
            framer.recycle(buffer);
        }
    }

    /// Gives up the receive buffer while it holds nothing; see [`Framer::take_idle_buffer`].
    pub fn take_idle_buffer(&mut self) -> Option<Buffer> {
        self.framer.as_mut()?.take_idle_buffer()
    }

    /// Frees the memory kept for large replies, unless a driver has the receiving part.
    pub fn release_spare_memory(&mut self) {
        if let Some(framer) = &mut self.framer
            && framer.holds_spare_memory()
        {
            framer.release();
        }
    }

    fn slot_mut(&mut self, call: CallId) -> Option<&mut Slot<W>> {
        self.slots
            .get_mut(call.index())
            .filter(|slot| slot.generation() == call.generation() && slot.state != SlotState::Free)
    }

    #[inline(always)] // a step of every call
    fn take_slot(&mut self) -> Result<CallId, BeginError> {
        if let Some(end) = self.end {
            return Err(BeginError::Ended(end));
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.add_slot()?,
        };
        let begins_at = self.transmit.end_position();
        let slot = &mut self.slots[usize::from(index)];
        slot.state = SlotState::Waiting;
        slot.begins_at = begins_at;
        Ok(CallId::new(index, slot.generation()))
    }

    /// Makes a slot for more calls than there have been at once.
    #[cold]
    fn add_slot(&mut self) -> Result<u16, BeginError> {
        if self.side.is_some_and(|side| self.slots.len() % 2 != side as usize) {
            self.skip_slot();
        }
        let limit = usize::from(self.config.calls_in_flight_max.min(u16::MAX - self.foreign_slots));
        if self.slots.len() - usize::from(self.foreign_slots) >= limit {
            return Err(BeginError::TooManyCalls);
        }
        if self.slots.is_empty() {
            self.slots.reserve_exact(1); // most connections carry one call at a time
        }
        self.slots.push(Slot::free());
        Ok((self.slots.len() - 1) as u16)
    }

    /// Skips a request id that belongs to the peer.
    #[cold]
    fn skip_slot(&mut self) {
        self.foreign_slots += 1;
        self.slots.push(Slot::free());
    }

    #[inline(always)] // a step of every call
    fn release(&mut self, call: CallId) {
        if let Some(slot) = self.slot_mut(call) {
            slot.uses += 1;
            slot.state = SlotState::Free;
            slot.answer = None;
            slot.waker = None;
            self.free.push(call.index() as u16);
        }
    }
}

/// The code sets to read replies with. A server that sends wide characters without an agreed code set is
/// taken to mean UTF-16, as other ORBs take it.
fn readable(sets: TransmissionCodeSets) -> TransmissionCodeSets {
    TransmissionCodeSets { wide_set: sets.wide_set.or(Some(WideCharSet::Utf16)), ..sets }
}

/// 7.10.2.4 distinguishes a reference without the code-set component from one whose component does not help.
#[cold]
fn wide_misuse(misuse: Misuse, target: &RequestTarget) -> Misuse {
    match misuse {
        Misuse::WideNotNegotiated if target.code_sets().is_none() => Misuse::WideWithoutComponent,
        other => other,
    }
}

impl<W> Slot<W> {
    #[inline]
    fn generation(&self) -> u16 {
        self.uses as u16
    }

    fn free() -> Self {
        Slot { uses: 0, state: SlotState::Free, answer: None, waker: None, begins_at: 0 }
    }
}

/// The body of a request.
trait Body {
    /// What is left to send of a body that was not written as a whole.
    type Gather;

    fn complete(
        self,
        message: MessageStart,
        transmit: &mut Transmit,
        config: &CompactConfig,
    ) -> Result<(), NotWritten<Self::Gather>>;
}

/// A body that is written as a whole.
struct Whole<F>(F);

impl<F: FnOnce(&mut Writer<'_>) -> Result<(), Misuse>> Body for Whole<F> {
    type Gather = Infallible;

    #[inline(always)] // a step of every call
    fn complete(
        self,
        message: MessageStart,
        transmit: &mut Transmit,
        config: &CompactConfig,
    ) -> Result<(), NotWritten<Infallible>> {
        transmit.complete(message, config, self.0).map_err(NotWritten::Misuse)
    }
}

/// A body of which long runs of bytes may stay where they are.
struct GatherBody<F>(F);

impl<F: Fn(&mut Writer<'_>) -> Result<(), Misuse>> Body for GatherBody<F> {
    type Gather = GatherMessage;

    #[inline(always)] // a step of every call
    fn complete(
        self,
        message: MessageStart,
        transmit: &mut Transmit,
        config: &CompactConfig,
    ) -> Result<(), NotWritten<GatherMessage>> {
        transmit.complete_gather(message, config, self.0)
    }
}

/// What a request carries besides its target, operation and arguments.
#[derive(Debug, Clone, Copy)]
pub struct RequestOptions<'a> {
    /// When the server replies.
    pub response: Response,
    /// Service contexts of the caller. The connection adds its own, such as that of the code sets, where they
    /// are due.
    pub contexts: EncodedContexts<'a>,
}

impl RequestOptions<'static> {
    /// An ordinary call.
    pub const TWOWAY: RequestOptions<'static> =
        RequestOptions { response: Response::SyncWithTarget, contexts: EncodedContexts::EMPTY };
}

/// A request has not been written as a whole. `C` is the result that it would have given.
#[derive(Debug)]
pub enum NotWhole<C> {
    /// The request was not begun.
    Failed(BeginError),
    /// The request is to be sent from where its body lies. Nothing else leaves the connection until the
    /// driver has sent it and called [`Transmit::end_gather`]. The driver need not hold the connection's lock
    /// meanwhile.
    Gather(C, GatherMessage),
    /// The request is still in the connection's buffer and lacks one run of bytes. The driver must hold the
    /// connection's lock until it has given the message to [`Transmit::send_sparse`] or
    /// [`Transmit::gather_sparse`]. Only [`begin_plain`](ClientConnection::begin_plain) gives it.
    Sparse(C, SparseMessage),
}

impl<C> From<BeginError> for NotWhole<C> {
    #[cold]
    fn from(e: BeginError) -> Self {
        NotWhole::Failed(e)
    }
}

/// A request was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeginError {
    /// An argument cannot be sent.
    Misuse(Misuse),
    /// The connection had ended already. Nothing was sent on it.
    Ended(ConnectionEnd),
    /// [`ConnectionConfig::calls_in_flight_max`] calls are in flight already.
    TooManyCalls,
}
