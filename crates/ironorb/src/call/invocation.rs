//! Decides what a call does next: a state machine without I/O, for every driver.
//!
//! The machine guarantees that a twoway call is never executed twice without the caller's knowledge. It sends
//! a request again only when the peer cannot have carried it out: the request never left, or the peer closed
//! the connection in order without an answer (CORBA 3.3 part 2, 9.4.7).

use ironorb_giop::connection::{BeginError, ConnectionEnd, ForeignProtocol};
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::Ior;
use ironorb_giop::message::{AddressingDisposition, LocateStatus, Message, ReplyStatus};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::{ServiceContexts, UNKNOWN_EXCEPTION_INFO};
use ironorb_giop::{Malformed, MalformedKind, Misuse};

use crate::interceptor::Interrupt;

/// The state of one call.
#[derive(Debug)]
pub struct RemoteCallState {
    forwards_left: u8,
    resends_left: u8,
    /// The current target came from a LOCATION_FORWARD.
    forwarded: bool,
    /// The call has returned to the original reference after a forwarded one failed.
    fell_back: bool,
}

/// The decision about a call.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// Send the request again to the current target.
    Resend,
    /// Send the request to the reference that the reply gave.
    Follow {
        /// The new reference of the object.
        ior: Box<Ior>,
        /// True for LOCATION_FORWARD_PERM: the new reference replaces the old one for good.
        permanent: bool,
    },
    /// Send the request again to the current target, which wants to see more of the reference than its key.
    Readdress(AddressingDisposition),
    /// The server cannot carry the request out at the moment. Send it to the next server that the reference
    /// names; if there is none, see [`RemoteCallState::on_no_alternative`].
    TryNext(SystemException),
    /// Forget the forwarded reference, and send the request to the original one.
    FallBack,
    /// Give up.
    Fail(SystemException),
}

/// The content of a Reply.
#[derive(Debug, PartialEq)]
pub enum Answered {
    /// The caller reads the rest: the results, or the repository id and the members of a user exception.
    Body {
        /// The position in the message at which the rest begins.
        at: usize,
        /// True for a user exception.
        user_exception: bool,
    },
    /// The call goes on, or ends with a system exception.
    Next(Next),
}

/// The content of a LocateReply.
#[derive(Debug, PartialEq)]
pub enum Located {
    /// The server has answered: whether the object is there.
    Known(bool),
    /// The locate goes on, or ends with a system exception.
    Next(Next),
}

/// The reason why a call on a connection gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFailure {
    /// The connection ended before anything of the request was sent. The call may try another connection.
    NotSent(ConnectionEnd),
    /// The connection ended after the request, or a part of it, was sent.
    Ended(ConnectionEnd),
    /// The deadline passed. If the request had been written to the connection, it may have been sent, or the
    /// next request takes it along.
    TimedOut {
        /// Whether the request had been written to a connection.
        written: bool,
    },
    /// The request could not be written.
    Misuse(Misuse),
    /// Too many calls wait on this connection.
    TooManyCalls,
    /// The arguments of an asynchronous call were written when it began, and this connection needs a
    /// different encoding.
    EncodingChanged,
}

impl CallFailure {
    /// Makes the failure of a connection that ended. `sent` says whether anything of the request had left.
    #[cold]
    pub fn ended(end: ConnectionEnd, sent: bool) -> Self {
        if sent { CallFailure::Ended(end) } else { CallFailure::NotSent(end) }
    }
}

impl From<BeginError> for CallFailure {
    #[cold]
    fn from(error: BeginError) -> Self {
        match error {
            BeginError::Misuse(misuse) => CallFailure::Misuse(misuse),
            BeginError::Ended(end) => CallFailure::NotSent(end),
            BeginError::TooManyCalls => CallFailure::TooManyCalls,
        }
    }
}

/// The position at which the results begin in the reply that nearly every call ends with; `None` for any other reply, about
/// which the call's machine decides.
#[inline]
pub fn results_at(message: &Message) -> Option<usize> {
    let reply = message.parse_reply().ok()?;
    (reply.status == ReplyStatus::NoException).then(|| reply.body.position())
}

impl RemoteCallState {
    /// Makes the state of a new call. `forwarded` says that an earlier call was forwarded.
    #[inline]
    pub fn new(forwards_max: u8, resends_max: u8, forwarded: bool) -> Self {
        RemoteCallState {
            forwards_left: forwards_max,
            resends_left: resends_max,
            forwarded,
            fell_back: false,
        }
    }

    /// Forwards and repetitions that the call may still make.
    pub(crate) fn left(&self) -> (u8, u8) {
        (self.forwards_left, self.resends_left)
    }

    /// Notes whether the request goes to a forwarded reference or to the original one.
    #[inline]
    pub fn on_route(&mut self, forwarded: bool) {
        self.forwarded = forwarded;
    }

    /// Decides after no address of the current target could be connected. `all_timed_out` says that none of
    /// them refused.
    #[cold]
    pub fn on_connect_failed(&mut self, all_timed_out: bool) -> Next {
        let minor = if all_timed_out { MinorCode::CONNECT_TIMEOUT } else { MinorCode::CONNECT_REFUSED };
        self.fall_back_or(SystemException::new(SystemExceptionKind::Transient, minor, CompletionStatus::No))
    }

    /// Decides after a Reply. A malformed Reply ends the call: the server has carried it out, but the results
    /// are lost.
    #[inline(always)] // a step of every call
    pub fn on_reply(&mut self, message: &Message) -> Answered {
        match message.parse_reply() {
            Ok(reply) => match reply.status {
                ReplyStatus::NoException | ReplyStatus::UserException => Answered::Body {
                    at: reply.body.position(),
                    user_exception: reply.status == ReplyStatus::UserException,
                },
                ReplyStatus::SystemException => {
                    let exception = reply.body.reader().get().map(|e| with_words(e, &reply.contexts));
                    Answered::Next(self.on_body(exception, Self::on_system_exception))
                }
                ReplyStatus::LocationForward => {
                    Answered::Next(self.on_body(reply.body.reader().get(), Self::on_forward))
                }
                ReplyStatus::LocationForwardPerm => {
                    Answered::Next(self.on_body(reply.body.reader().get(), Self::on_forward_for_good))
                }
                ReplyStatus::NeedsAddressingMode => {
                    Answered::Next(self.on_addressing_mode(reply.body.reader().get()))
                }
            },
            Err(e) => Answered::Next(Next::Fail(bad_reply(e))),
        }
    }

    /// Decides after a LocateReply.
    #[cold]
    pub fn on_locate_reply(&mut self, message: &Message) -> Located {
        let reply = match message.parse_locate_reply() {
            Ok(reply) => reply,
            Err(e) => return Located::Next(Next::Fail(bad_reply(e))),
        };
        let mut r = reply.body.reader();
        match reply.status {
            LocateStatus::UnknownObject => Located::Known(false),
            LocateStatus::ObjectHere => Located::Known(true),
            LocateStatus::ObjectForward => Located::Next(self.on_body(r.get(), Self::on_forward)),
            LocateStatus::ObjectForwardPerm => {
                Located::Next(self.on_body(r.get(), Self::on_forward_for_good))
            }
            LocateStatus::SystemException => Located::Next(self.on_body(r.get(), Self::on_system_exception)),
            LocateStatus::NeedsAddressingMode => Located::Next(self.on_addressing_mode(r.get())),
        }
    }

    #[cold]
    fn on_body<T>(&mut self, body: Result<T, Malformed>, on: impl FnOnce(&mut Self, T) -> Next) -> Next {
        match body {
            Ok(body) => on(self, body),
            Err(e) => Next::Fail(bad_reply(e)),
        }
    }

    /// Decides after a call on a connection gave no answer.
    #[cold]
    pub fn on_failure(&mut self, failure: CallFailure) -> Next {
        match failure {
            CallFailure::NotSent(end) => self.on_not_sent(end),
            CallFailure::Ended(end) => self.on_ended(end),
            CallFailure::TimedOut { written } => Next::Fail(self.on_timeout(written)),
            CallFailure::Misuse(misuse) => Next::Fail(misuse.into()),
            CallFailure::TooManyCalls => Next::Fail(SystemException::new(
                SystemExceptionKind::NoResources,
                MinorCode::TOO_MANY_CALLS,
                CompletionStatus::No,
            )),
            // The object's location is known by now, so the caller's next attempt succeeds.
            CallFailure::EncodingChanged => Next::Fail(SystemException::new(
                SystemExceptionKind::Transient,
                MinorCode::ENCODING_CHANGED,
                CompletionStatus::No,
            )),
        }
    }

    /// Decides after the connection ended before anything of the request was sent.
    #[cold]
    pub fn on_not_sent(&mut self, end: ConnectionEnd) -> Next {
        match end {
            ConnectionEnd::Local => return Next::Fail(shut_down_meanwhile()),
            // The address belongs to a server of another protocol, and a new attempt would meet it again.
            ConnectionEnd::NotGiop(protocol) => return Next::TryNext(not_giop(protocol)),
            _ => {}
        }
        self.resend_or(SystemException::new(
            SystemExceptionKind::Transient,
            minor_of(end),
            CompletionStatus::No,
        ))
    }

    /// Decides after the connection ended when the request, or a part of it, had been sent.
    #[cold]
    pub fn on_ended(&mut self, end: ConnectionEnd) -> Next {
        match end {
            // The peer promises that it has not carried out requests that it has not answered.
            ConnectionEnd::Closed => self.resend_or(SystemException::new(
                SystemExceptionKind::Transient,
                MinorCode::PEER_CLOSED,
                CompletionStatus::No,
            )),
            ConnectionEnd::Local => Next::Fail(shut_down_meanwhile()),
            ConnectionEnd::NotGiop(protocol) => Next::TryNext(not_giop(protocol)),
            ConnectionEnd::Lost
            | ConnectionEnd::LostUnheard
            | ConnectionEnd::MessageError
            | ConnectionEnd::Malformed(_) => Next::Fail(broken_off(end)),
        }
    }

    /// Decides after an interceptor has ended the request.
    #[cold]
    pub(crate) fn on_interrupt(&mut self, interrupt: Interrupt) -> Next {
        match interrupt {
            Interrupt::Raise(e) => Next::Fail(e),
            Interrupt::Forward(object) => self.on_forward(object.to_ior()),
        }
    }

    /// Decides after LOCATION_FORWARD in a Reply or a LocateReply.
    #[cold]
    pub fn on_forward(&mut self, ior: Ior) -> Next {
        self.redirect(|call| {
            call.forwarded = true;
            Next::Follow { ior: Box::new(ior), permanent: false }
        })
    }

    /// Decides after LOCATION_FORWARD_PERM in a Reply or a LocateReply.
    #[cold]
    pub fn on_forward_for_good(&mut self, ior: Ior) -> Next {
        self.redirect(|call| {
            call.forwarded = true;
            Next::Follow { ior: Box::new(ior), permanent: true }
        })
    }

    /// Decides after NEEDS_ADDRESSING_MODE in a Reply or a LocateReply.
    #[cold]
    fn on_addressing_mode(&mut self, wanted: Result<AddressingDisposition, Malformed>) -> Next {
        match wanted {
            Ok(disposition) => self.redirect(|_| Next::Readdress(disposition)),
            Err(_) => Next::Fail(addressing_not_understood()),
        }
    }

    /// Bounds the number of forwards, since servers may send a call in a circle.
    fn redirect(&mut self, redirect: impl FnOnce(&mut Self) -> Next) -> Next {
        match self.forwards_left.checked_sub(1) {
            Some(left) => {
                self.forwards_left = left;
                redirect(self)
            }
            None => Next::Fail(SystemException::new(
                SystemExceptionKind::Transient,
                MinorCode::FORWARD_LOOP,
                CompletionStatus::No,
            )),
        }
    }

    /// Decides after a system exception. An object that does not exist at a forwarded reference may be found
    /// through the original reference.
    #[cold]
    pub fn on_system_exception(&mut self, exception: SystemException) -> Next {
        match exception.kind {
            _ if exception.completed != CompletionStatus::No => Next::Fail(exception),
            SystemExceptionKind::ObjectNotExist => self.fall_back_or(exception),
            // Another server may be able to serve the call (the failover conditions of the fault tolerance
            // specification, 23.2.8.1).
            SystemExceptionKind::Transient
            | SystemExceptionKind::CommFailure
            | SystemExceptionKind::NoResponse
            | SystemExceptionKind::ObjAdapter => Next::TryNext(exception),
            _ => Next::Fail(exception),
        }
    }

    /// Decides after a server has taken the request for too late, although the call has not given up.
    #[cold]
    pub(crate) fn on_too_late(&mut self, exception: SystemException) -> Next {
        self.resend_or(exception)
    }

    /// Decides after [`Next::TryNext`] when the reference names no further server.
    #[cold]
    pub fn on_no_alternative(&mut self, exception: SystemException) -> Next {
        self.fall_back_or(exception)
    }

    /// Ends a call that would have to rebind against the caller's policy.
    #[cold]
    pub fn on_rebind_forbidden(&self) -> Next {
        Next::Fail(SystemException::new(SystemExceptionKind::Rebind, MinorCode::NONE, CompletionStatus::No))
    }

    /// Ends a call whose deadline passed. `written` says whether the request had been written to a
    /// connection.
    #[cold]
    pub fn on_timeout(&self, written: bool) -> SystemException {
        let completed = if written { CompletionStatus::Maybe } else { CompletionStatus::No };
        SystemException::new(SystemExceptionKind::Timeout, MinorCode::CALL_TIMEOUT, completed)
    }

    fn resend_or(&mut self, exception: SystemException) -> Next {
        match self.resends_left.checked_sub(1) {
            Some(left) => {
                self.resends_left = left;
                Next::Resend
            }
            None => Next::Fail(exception),
        }
    }

    fn fall_back_or(&mut self, exception: SystemException) -> Next {
        if self.forwarded && !self.fell_back {
            self.forwarded = false;
            self.fell_back = true;
            return Next::FallBack;
        }
        Next::Fail(exception)
    }
}

/// Makes the exception for an unreadable reply: the server has carried the operation out, but its results are
/// lost.
#[cold]
pub(crate) fn bad_reply(error: Malformed) -> SystemException {
    let e = SystemException::from(error);
    let minor = match e.minor {
        MinorCode::MALFORMED_REQUEST => MinorCode::MALFORMED_REPLY,
        MinorCode::MARSHAL_WIDE_IN_REQUEST_1_0 => MinorCode::MARSHAL_WIDE_IN_REPLY_1_0,
        standard => standard,
    };
    e.with_minor(minor)
        .with_completed(CompletionStatus::Yes)
        .with_detail(format!("the reply cannot be read: {error}"))
}

#[cold]
fn addressing_not_understood() -> SystemException {
    SystemException::new(
        SystemExceptionKind::Internal,
        MinorCode::ADDRESSING_NOT_UNDERSTOOD,
        CompletionStatus::No,
    )
}

/// Adds the server's own description of an exception, which some ORBs send.
#[cold]
fn with_words(e: SystemException, contexts: &ServiceContexts<'_>) -> SystemException {
    let words = match contexts.exception_detail() {
        Some(words) => words,
        None if contexts.find(UNKNOWN_EXCEPTION_INFO).is_some() => {
            "the servant raised an exception of its own language".to_owned()
        }
        None => return e,
    };
    // Some servers send a whole stack trace.
    let words: String = words.chars().take(WORDS_MAX).collect();
    let detail = match e.detail() {
        Some(detail) => format!("{detail}; the server says: {words}"),
        None => format!("the server says: {words}"),
    };
    e.with_detail(detail)
}

/// The most characters of a server's description that are kept.
const WORDS_MAX: usize = 4096;

#[cold]
fn shut_down_meanwhile() -> SystemException {
    SystemException::new(SystemExceptionKind::BadInvOrder, MinorCode::ORB_SHUT_DOWN, CompletionStatus::Maybe)
}

/// Makes COMM_FAILURE for a connection that ended during a call.
#[cold]
fn broken_off(end: ConnectionEnd) -> SystemException {
    let e = SystemException::new(SystemExceptionKind::CommFailure, minor_of(end), CompletionStatus::Maybe);
    match end {
        ConnectionEnd::LostUnheard => e.with_detail(
            "the peer closed the connection and had not sent anything on it: its process may have ended, or what \
             listens there does not speak GIOP, or only within TLS; try `corbaloc:` with the server's own port",
        ),
        ConnectionEnd::Malformed(malformed) if malformed.kind == MalformedKind::BadMagic => {
            e.with_detail(format!("{malformed}; does an ORB listen there, and is the address right?"))
        }
        ConnectionEnd::Malformed(malformed) => {
            e.with_detail(format!("the peer's bytes are not what GIOP has here: {malformed}"))
        }
        _ => e,
    }
}

/// Makes the exception for a peer that does not speak GIOP. Such a peer has not carried the request out.
#[cold]
fn not_giop(protocol: ForeignProtocol) -> SystemException {
    let detail = format!("the peer does not speak GIOP, but {protocol} it seems: {}", protocol.advice());
    SystemException::new(SystemExceptionKind::CommFailure, MinorCode::PEER_NOT_GIOP, CompletionStatus::No)
        .with_detail(detail)
}

fn minor_of(end: ConnectionEnd) -> MinorCode {
    match end {
        ConnectionEnd::Closed => MinorCode::PEER_CLOSED,
        ConnectionEnd::Lost | ConnectionEnd::LostUnheard => MinorCode::CONNECTION_LOST,
        ConnectionEnd::NotGiop(_) => MinorCode::PEER_NOT_GIOP,
        ConnectionEnd::MessageError => MinorCode::PEER_MESSAGE_ERROR,
        ConnectionEnd::Malformed(_) => MinorCode::MALFORMED_REPLY,
        ConnectionEnd::Local => MinorCode::ORB_SHUT_DOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(next: Next) -> (SystemExceptionKind, CompletionStatus) {
        match next {
            Next::Fail(e) => (e.kind, e.completed),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_that_may_have_been_carried_out_is_never_sent_again() {
        for end in [ConnectionEnd::Lost, ConnectionEnd::LostUnheard, ConnectionEnd::MessageError] {
            let mut call = RemoteCallState::new(16, 4, true);
            assert_eq!(
                fails(call.on_ended(end)),
                (SystemExceptionKind::CommFailure, CompletionStatus::Maybe)
            );
        }
        assert_eq!(
            fails(RemoteCallState::new(16, 4, false).on_not_sent(ConnectionEnd::Local)),
            (SystemExceptionKind::BadInvOrder, CompletionStatus::Maybe)
        );
        assert_eq!(RemoteCallState::new(16, 4, false).on_timeout(true).completed, CompletionStatus::Maybe);
    }

    #[test]
    fn an_orderly_close_is_tried_again_a_few_times() {
        let mut call = RemoteCallState::new(16, 2, false);
        assert_eq!(call.on_ended(ConnectionEnd::Closed), Next::Resend);
        assert_eq!(call.on_not_sent(ConnectionEnd::Lost), Next::Resend);
        assert_eq!(
            fails(call.on_ended(ConnectionEnd::Closed)),
            (SystemExceptionKind::Transient, CompletionStatus::No)
        );
    }

    #[test]
    fn a_peer_of_another_protocol_has_not_executed_the_request() {
        for end in
            [ConnectionEnd::NotGiop(ForeignProtocol::Http), ConnectionEnd::NotGiop(ForeignProtocol::Tls)]
        {
            for decide in [RemoteCallState::on_ended, RemoteCallState::on_not_sent] {
                let Next::TryNext(e) = decide(&mut RemoteCallState::new(16, 4, false), end) else {
                    panic!("another server of the reference may serve the call")
                };
                assert_eq!((e.kind, e.completed), (SystemExceptionKind::CommFailure, CompletionStatus::No));
                assert_eq!(e.minor, MinorCode::PEER_NOT_GIOP);
            }
        }
    }

    #[test]
    fn forwards_are_followed_up_to_the_limit() {
        let mut call = RemoteCallState::new(2, 4, false);
        assert!(matches!(call.on_forward(Ior::nil()), Next::Follow { permanent: false, .. }));
        assert!(matches!(call.on_forward(Ior::nil()), Next::Follow { permanent: false, .. }));
        assert_eq!(fails(call.on_forward(Ior::nil())).0, SystemExceptionKind::Transient);
    }

    #[test]
    fn a_call_falls_back_once_from_a_forwarded_target_that_is_gone() {
        let mut call = RemoteCallState::new(16, 4, true);
        assert_eq!(call.on_connect_failed(false), Next::FallBack);
        assert!(matches!(call.on_forward(Ior::nil()), Next::Follow { permanent: false, .. }));
        assert_eq!(fails(call.on_connect_failed(false)).0, SystemExceptionKind::Transient);
    }
}
