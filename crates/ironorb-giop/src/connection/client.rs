//! The client's side of a connection: calls in flight, replies matched to them.

mod plain;

use std::collections::VecDeque;
use std::convert::Infallible;

use super::transmit::NotWritten;
use super::{ConnectionConfig, ForeignProtocol, GatherMessage, Incoming, SparseMessage, Transmit};
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

    /// What the request carries, and the reply repeats.
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
    /// The peer sent CloseConnection: what it has not answered it has not carried out (9.4.7).
    Closed,
    /// The stream ended or failed; what was in flight may have been carried out.
    Lost,
    /// The stream ended or failed before the peer had sent a single byte; what was in flight may have been carried out.
    LostUnheard,
    /// The first bytes of the peer were of another protocol. It has never spoken GIOP on this connection, so it has carried
    /// nothing out.
    NotGiop(ForeignProtocol),
    /// The peer did not understand us.
    MessageError,
    /// We did not understand the peer.
    Malformed(Malformed),
    /// We closed it.
    Local,
}

/// How a call stands.
#[derive(Debug)]
pub enum CallState {
    /// No answer yet.
    Waiting,
    /// The Reply or LocateReply. Give its buffer back with [`ClientConnection::recycle`].
    Answered(Message),
    /// There will be no answer.
    Ended {
        /// Why.
        end: ConnectionEnd,
        /// Whether any byte of the request has left. If not, the peer cannot have carried it out.
        sent: bool,
    },
}

/// A connection has ended by an error of the protocol; the driver sends what is left and closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolError(pub Malformed);

/// The client's side of a connection. `W` is what a driver keeps with a call to wake its waiter.
#[derive(Debug)]
pub struct ClientConnection<W> {
    config: ConnectionConfig,
    transmit: Transmit,
    /// Absent while a driver waits with it for bytes: it changes hands twice in every call.
    framer: Option<Box<Framer>>,
    slots: Vec<Slot<W>>,
    free: Vec<u16>,
    end: Option<ConnectionEnd>,
    /// The code sets, once a request has told the server.
    code_sets: Option<TransmissionCodeSets>,
    /// What replies of GIOP 1.2 are read with under them.
    reply_code_sets: TransmissionCodeSets,
    /// Which request ids are ours, on a connection that may be used both ways.
    side: Option<Side>,
    /// Slots whose ids are the peer's; they are never free.
    foreign_slots: usize,
    /// Contexts for the next request of GIOP 1.2.
    announcement: Option<ServiceContextList>,
    /// The peer may ask as well; what it has asked and nobody has taken.
    incoming: Option<VecDeque<Incoming>>,
}

/// The side of a connection that may be used both ways (CORBA 3.3 part 2, 9.8): the ids of requests of one side
/// are even, those of the other odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that has connected.
    Originator,
    /// The one that has accepted.
    Acceptor,
}

#[derive(Debug)]
struct Slot<W> {
    generation: u16,
    state: SlotState,
    /// There when it is answered.
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
    /// A connection just made.
    pub fn new(config: ConnectionConfig) -> Self {
        ClientConnection {
            config,
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

    /// A connection that may be used both ways. The acceptor has no receiving part of its own: what comes is handed
    /// to it by [`handle_reply`](Self::handle_reply).
    pub fn bidirectional(config: ConnectionConfig, side: Side) -> Self {
        let framer = (side == Side::Originator).then(|| Box::new(Framer::new(config.framer)));
        ClientConnection { framer, side: Some(side), ..ClientConnection::new(config) }
    }

    /// True when it may be used both ways.
    pub fn is_bidirectional(&self) -> bool {
        self.side.is_some()
    }

    /// Tells the peer with the next request of GIOP 1.2 where we listen. From then on it may ask over this
    /// connection: see [`poll_incoming`](Self::poll_incoming).
    pub fn announce(&mut self, listen_points: ServiceContextList) {
        self.announcement = Some(listen_points);
    }

    /// What the peer has asked; to be served. Never gives [`Incoming::Reply`] or [`Incoming::CloseConnection`].
    #[inline]
    pub fn poll_incoming(&mut self) -> Option<Incoming> {
        self.incoming.as_mut()?.pop_front()
    }

    /// Why it carries no more calls, if so.
    #[inline]
    pub fn end(&self) -> Option<ConnectionEnd> {
        self.end
    }

    /// Calls that wait for a reply.
    #[inline]
    pub fn calls_in_flight(&self) -> usize {
        self.slots.len() - self.free.len() - self.foreign_slots
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

    /// The same for arguments that can be written more than once: long runs of bytes in them may stay where they are.
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

    /// The same with service contexts.
    #[inline]
    pub fn begin_oneway_with<'o>(
        &mut self,
        target: &RequestTarget,
        operation: impl Into<OperationName<'o>>,
        contexts: EncodedContexts<'_>,
        arguments: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), BeginError> {
        // The id must be unlike those of calls in flight: a slot lends its next one.
        let call = self.take_slot()?;
        let options = RequestOptions { response: Response::None, contexts };
        let result = self.write_request(target, call.0, options, operation.into(), Whole(arguments));
        self.release(call);
        result.map_err(|NotWritten::Misuse(misuse)| BeginError::Misuse(misuse))
    }

    /// The same for arguments that can be written more than once: long runs of bytes in them may stay where they are.
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

    /// Writes a request whose body is another's, as it came. `None` when nobody is to answer.
    ///
    /// A long body need not be copied: `send` is given what waits and the body, and tells how many bytes of both have left.
    /// What it does not take waits like everything else, so it may take nothing.
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
        let told = chosen.map(|sets| CodeSetContext::from(sets).encode());
        let told = told.as_ref().map(|data| ServiceContext { id: CODE_SETS, data });
        let contexts: Vec<ServiceContext<'_>> = told.into_iter().chain(contexts.iter().copied()).collect();
        let bytes_max = self.config.framer.message_bytes_max;
        let buf = self.transmit.buffer();
        let origin = buf.len();
        let written =
            write_raw_request_head(buf, target, call.0, response, operation, &contexts, body, bytes_max);
        if let Err(misuse) = written {
            self.release(call);
            return Err(BeginError::Misuse(misuse));
        }
        self.agree_on(chosen);
        match self.config.fragment_bytes {
            None => self.transmit.append_lending(body.bytes, send),
            Some(fragment_bytes) => {
                self.transmit.buffer().extend_from_slice(body.bytes);
                self.transmit.fragment(origin, fragment_bytes);
            }
        }
        if response == Response::None {
            self.release(call); // its slot lent its next id
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

    /// What the arguments of the next request to this target would be written in.
    pub fn encoding_for(&self, target: &RequestTarget) -> Encoding {
        target.encoding(self.code_sets_for(target).0)
    }

    /// The code sets of the next request to this target, and those that the request is to tell.
    #[inline]
    fn code_sets_for(&self, target: &RequestTarget) -> (TransmissionCodeSets, Option<TransmissionCodeSets>) {
        // 7.10.2.5: the code sets are told once, with the first request whose target lists its own, and then
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

    /// A request that also tells the server the code sets, or where we listen.
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
        let told = match &encoded {
            Some(bytes) => EncodedContexts::new(1, bytes),
            None => EncodedContexts::EMPTY,
        };
        let listen_points = match target.version() {
            Version::V1_2 => self.announcement.take(),
            _ => None,
        };
        let announced = listen_points.as_ref().map_or(EncodedContexts::EMPTY, ServiceContextList::encoded);
        let contexts = [told, announced, options.contexts];
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
            lent => lent,
        })
    }

    /// Bytes to send.
    #[inline]
    pub fn transmit(&mut self) -> &mut Transmit {
        &mut self.transmit
    }

    /// Takes the receiving part, for a driver about to wait for bytes; `None` while another has it.
    #[inline]
    pub fn take_framer(&mut self) -> Option<Box<Framer>> {
        self.framer.take()
    }

    /// True when nobody has taken the receiving part.
    #[inline]
    pub fn has_framer(&self) -> bool {
        self.framer.is_some()
    }

    /// Puts the receiving part back with what it has received, and completes the calls that are answered.
    /// `wake` is called for each with what its waiter left by [`set_waker`](Self::set_waker).
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
            // What waits is not sent after all, for its callers will be told so. If some of it has left, a
            // MessageError might complete a message that the peer has half of.
            let at_boundary = self.transmit.pending_bytes() == 0;
            self.transmit.clear();
            if at_boundary {
                write_message_error(self.transmit.buffer(), Version::V1_2);
            }
            self.handle_end(self.end_by(malformed), wake);
            ProtocolError(malformed)
        })
    }

    /// What replies are read with.
    #[inline]
    fn code_sets_of_replies(&self, version: Version) -> TransmissionCodeSets {
        match version {
            Version::V1_0 => readable(TransmissionCodeSets::UNNEGOTIATED),
            _ => self.reply_code_sets,
        }
    }

    /// The server has been told these, if any.
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
                    Some(slot) if slot.generation == id.generation() && slot.state == SlotState::Waiting => {
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
            // 9.4.1: only a server may be asked, or who has offered to be.
            MessageType::Request
            | MessageType::LocateRequest
            | MessageType::CancelRequest
            | MessageType::Fragment => return self.handle_request(message, framer),
        }
        Ok(())
    }

    /// A message is larger than we accept: whoever waits for it hears of that, and the connection goes on.
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

    /// Completes a call by a Reply or LocateReply that another receiving part has received.
    #[cold]
    pub fn handle_reply(&mut self, mut message: Message, mut wake: impl FnMut(W)) -> Result<(), Malformed> {
        message.set_code_sets(self.code_sets_of_replies(message.header().version));
        let id = CallId(message.request_id()?);
        // Late when there is none: the caller has given up.
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

    /// The stream has ended, failed or was given up; calls without an answer end for this reason. The first
    /// reason stays.
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

    /// What the end is that bytes mean which are not as GIOP has them.
    #[cold]
    fn end_by(&self, malformed: Malformed) -> ConnectionEnd {
        let is_foreign = malformed.kind == MalformedKind::BadMagic && !self.may_have_heard();
        match self.framer.as_ref().and_then(|framer| framer.foreign_protocol()) {
            Some(protocol) if is_foreign => ConnectionEnd::NotGiop(protocol),
            _ => ConnectionEnd::Malformed(malformed),
        }
    }

    /// What the end is that the end of the stream means. A peer of another protocol may send less than a header.
    #[cold]
    fn end_by_loss(&self) -> ConnectionEnd {
        let Some(framer) = self.framer.as_ref().filter(|_| !self.may_have_heard()) else {
            return ConnectionEnd::Lost; // another thread has what has come
        };
        match framer.foreign_protocol() {
            Some(protocol) => ConnectionEnd::NotGiop(protocol),
            None if framer.is_mid_message() || self.transmit.sent_position() == 0 => ConnectionEnd::Lost,
            None => ConnectionEnd::LostUnheard,
        }
    }

    /// False where no message can have come yet: no slot has been used twice, and none has an answer. Nothing else counts
    /// answers, which would cost every call.
    fn may_have_heard(&self) -> bool {
        // A slot's generation begins anew after so many requests, of which none is shorter than a header.
        const GENERATION_BYTES: u64 = (1 << 16) * HEADER_BYTES as u64;
        let is_fresh = |slot: &Slot<W>| {
            slot.generation == 0 && slot.state != SlotState::Answered && slot.begins_at < GENERATION_BYTES
        };
        self.incoming.is_some() || !self.slots.iter().all(is_fresh)
    }

    /// Says goodbye: writes CloseConnection where the version lets a client do so, and ends every call.
    pub fn close(&mut self, wake: impl FnMut(W)) {
        if self.end.is_none() {
            write_close_connection(self.transmit.buffer(), Version::V1_2);
            self.handle_end(ConnectionEnd::Local, wake);
        }
    }

    /// How a call stands. An answer or an end is given once and frees the call.
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

    /// Keeps something to wake the waiter of a call.
    #[inline]
    pub fn set_waker(&mut self, call: CallId, waker: W) {
        if let Some(slot) = self.slot_mut(call) {
            slot.waker = Some(waker);
        }
    }

    /// Takes back what was kept to wake the waiter of a call, so that the waiter can take over the receiving.
    #[inline]
    pub fn take_waker(&mut self, call: CallId) -> Option<W> {
        self.slot_mut(call)?.waker.take()
    }

    /// True while the call has neither an answer nor an end.
    pub fn is_waiting(&self, call: CallId) -> bool {
        self.end.is_none()
            && self
                .slots
                .get(call.index())
                .is_some_and(|slot| slot.generation == call.generation() && slot.state == SlotState::Waiting)
    }

    /// Gives up a call; tells the server that nobody waits where [`ConnectionConfig::cancel_requests`] says so. A
    /// reply that comes later is dropped. False when the call had been answered or ended and taken already.
    pub fn abandon(&mut self, call: CallId, version: Version) -> bool {
        let is_known = self.slot_mut(call).is_some();
        if is_known {
            if self.end.is_none() && self.config.cancel_requests {
                write_cancel_request(self.transmit.buffer(), version, call.0);
            }
            self.release(call);
        }
        is_known
    }

    /// Gives a reply's buffer back for the next message.
    #[inline]
    pub fn recycle(&mut self, buffer: Buffer) {
        if let Some(framer) = &mut self.framer {
            framer.recycle(buffer);
        }
    }

    /// Gives back what is kept for large replies, unless somebody receives.
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
            .filter(|slot| slot.generation == call.generation() && slot.state != SlotState::Free)
    }

    #[inline(always)] // a step of every call
    fn take_slot(&mut self) -> Result<CallId, BeginError> {
        if let Some(end) = self.end {
            return Err(BeginError::Ended(end));
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                if self.side.is_some_and(|side| self.slots.len() % 2 != side as usize) {
                    self.skip_slot();
                }
                let limit = self.config.calls_in_flight_max.min(usize::from(u16::MAX) - self.foreign_slots);
                if self.slots.len() - self.foreign_slots >= limit {
                    return Err(BeginError::TooManyCalls);
                }
                self.slots.push(Slot::free());
                (self.slots.len() - 1) as u16
            }
        };
        let begins_at = self.transmit.end_position();
        let slot = &mut self.slots[usize::from(index)];
        slot.state = SlotState::Waiting;
        slot.begins_at = begins_at;
        Ok(CallId::new(index, slot.generation))
    }

    /// Leaves out an id that is the peer's.
    #[cold]
    fn skip_slot(&mut self) {
        self.foreign_slots += 1;
        self.slots.push(Slot::free());
    }

    #[inline(always)] // a step of every call
    fn release(&mut self, call: CallId) {
        if let Some(slot) = self.slot_mut(call) {
            slot.generation = slot.generation.wrapping_add(1);
            slot.state = SlotState::Free;
            slot.answer = None;
            slot.waker = None;
            self.free.push(call.index() as u16);
        }
    }
}

/// Where nothing was agreed on, a server that sends wide characters nevertheless is taken to mean UTF-16, as everybody
/// does.
fn readable(sets: TransmissionCodeSets) -> TransmissionCodeSets {
    TransmissionCodeSets { wide_set: sets.wide_set.or(Some(WideCharSet::Utf16)), ..sets }
}

/// 7.10.2.4 tells a reference without the component from one whose component does not help.
#[cold]
fn wide_misuse(misuse: Misuse, target: &RequestTarget) -> Misuse {
    match misuse {
        Misuse::WideNotNegotiated if target.code_sets().is_none() => Misuse::WideWithoutComponent,
        other => other,
    }
}

impl<W> Slot<W> {
    fn free() -> Self {
        Slot { generation: 0, state: SlotState::Free, answer: None, waker: None, begins_at: 0 }
    }
}

/// The body of a request.
trait Body {
    /// What is left to be done where it was not written as a whole.
    type Gather;

    fn complete(
        self,
        message: MessageStart,
        transmit: &mut Transmit,
        config: &ConnectionConfig,
    ) -> Result<(), NotWritten<Self::Gather>>;
}

/// One that is written.
struct Whole<F>(F);

impl<F: FnOnce(&mut Writer<'_>) -> Result<(), Misuse>> Body for Whole<F> {
    type Gather = Infallible;

    #[inline(always)] // a step of every call
    fn complete(
        self,
        message: MessageStart,
        transmit: &mut Transmit,
        config: &ConnectionConfig,
    ) -> Result<(), NotWritten<Infallible>> {
        transmit.complete(message, config, self.0).map_err(NotWritten::Misuse)
    }
}

/// One of which parts may stay where they are.
struct GatherBody<F>(F);

impl<F: Fn(&mut Writer<'_>) -> Result<(), Misuse>> Body for GatherBody<F> {
    type Gather = GatherMessage;

    #[inline(always)] // a step of every call
    fn complete(
        self,
        message: MessageStart,
        transmit: &mut Transmit,
        config: &ConnectionConfig,
    ) -> Result<(), NotWritten<GatherMessage>> {
        transmit.complete_lending(message, config, self.0)
    }
}

/// What a request says beside its operation and arguments.
#[derive(Debug, Clone, Copy)]
pub struct RequestOptions<'a> {
    /// When the server is to answer.
    pub response: Response,
    /// Service contexts of the caller. That of the code sets is added where it is due.
    pub contexts: EncodedContexts<'a>,
}

impl RequestOptions<'static> {
    /// An ordinary call.
    pub const TWOWAY: RequestOptions<'static> =
        RequestOptions { response: Response::SyncWithTarget, contexts: EncodedContexts::EMPTY };
}

/// A request has not been written as a whole. `C` is what it would have given.
#[derive(Debug)]
pub enum NotWhole<C> {
    /// It was not begun.
    Failed(BeginError),
    /// It is to be sent from where it lies. Until the driver has done so and said it with [`Transmit::end_gather`],
    /// nothing else leaves the connection; the lock around it need not be kept meanwhile.
    Gather(C, GatherMessage),
    /// The same, but it is still in the connection's buffer, the lock around which must be kept until it has been given to
    /// [`Transmit::send_sparse`], or [`Transmit::gather_sparse`]. Only of [`begin_plain`](ClientConnection::begin_plain).
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
    /// The connection had ended already; nothing was sent on it.
    Ended(ConnectionEnd),
    /// [`ConnectionConfig::calls_in_flight_max`] calls wait already.
    TooManyCalls,
}
