//! What one call does next: a state machine without I/O, the same for every driver.
//!
//! It holds the promise that a twoway call is never executed twice behind the caller's back: a request is
//! sent again only when the peer cannot have carried it out - it never left, or the peer closed the
//! connection in order without answering (CORBA 3.3 part 2, 9.4.7).

use ironorb_giop::connection::ConnectionEnd;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

/// The course of one call.
#[derive(Debug)]
pub struct Invocation {
    forwards_left: u8,
    resends_left: u8,
    /// The current target came from a LOCATION_FORWARD.
    forwarded: bool,
    /// The original reference has been tried again after a forwarded one failed.
    fell_back: bool,
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// Send the request again to the current target.
    Resend,
    /// Send it to the reference that the reply gave.
    Follow,
    /// Forget the forwarded reference and send it to the original one.
    FallBack,
    /// Give up.
    Fail(SystemException),
}

impl Invocation {
    /// A call that begins. `forwarded` says that the reference has been forwarded by an earlier call.
    #[inline]
    pub fn new(forwards_max: u8, resends_max: u8, forwarded: bool) -> Self {
        Invocation { forwards_left: forwards_max, resends_left: resends_max, forwarded, fell_back: false }
    }

    /// No address of the current target could be connected.
    #[cold]
    pub fn on_connect_failed(&mut self, minor: MinorCode) -> Next {
        self.fall_back_or(SystemException::new(SystemExceptionKind::Transient, minor, CompletionStatus::No))
    }

    /// The connection ended before anything of the request was sent.
    #[cold]
    pub fn on_not_sent(&mut self, end: ConnectionEnd) -> Next {
        self.resend_or(SystemException::new(
            SystemExceptionKind::Transient,
            minor_of(end),
            CompletionStatus::No,
        ))
    }

    /// The connection ended after the request, or some of it, had been sent.
    #[cold]
    pub fn on_ended(&mut self, end: ConnectionEnd) -> Next {
        match end {
            // The peer promises that it has not carried out what it has not answered.
            ConnectionEnd::Closed => self.resend_or(SystemException::new(
                SystemExceptionKind::Transient,
                MinorCode::PEER_CLOSED,
                CompletionStatus::No,
            )),
            ConnectionEnd::Local => Next::Fail(SystemException::new(
                SystemExceptionKind::BadInvOrder,
                MinorCode::ORB_SHUT_DOWN,
                CompletionStatus::Maybe,
            )),
            ConnectionEnd::Lost | ConnectionEnd::MessageError | ConnectionEnd::Malformed(_) => {
                Next::Fail(SystemException::new(
                    SystemExceptionKind::CommFailure,
                    minor_of(end),
                    CompletionStatus::Maybe,
                ))
            }
        }
    }

    /// The reply was LOCATION_FORWARD, or a LocateReply said so.
    #[cold]
    pub fn on_forward(&mut self) -> Next {
        match self.forwards_left.checked_sub(1) {
            Some(left) => {
                self.forwards_left = left;
                self.forwarded = true;
                Next::Follow
            }
            None => Next::Fail(SystemException::new(
                SystemExceptionKind::Transient,
                MinorCode::FORWARD_LOOP,
                CompletionStatus::No,
            )),
        }
    }

    /// The reply was a system exception. An object that is not where a forward said may be found by asking
    /// the original reference again.
    #[cold]
    pub fn on_system_exception(&mut self, exception: SystemException) -> Next {
        match exception.kind {
            SystemExceptionKind::ObjectNotExist if exception.completed == CompletionStatus::No => {
                self.fall_back_or(exception)
            }
            _ => Next::Fail(exception),
        }
    }

    /// The deadline passed.
    #[cold]
    pub fn on_timeout(&self, sent: bool) -> SystemException {
        let completed = if sent { CompletionStatus::Maybe } else { CompletionStatus::No };
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

fn minor_of(end: ConnectionEnd) -> MinorCode {
    match end {
        ConnectionEnd::Closed => MinorCode::PEER_CLOSED,
        ConnectionEnd::Lost => MinorCode::CONNECTION_LOST,
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
        for end in [ConnectionEnd::Lost, ConnectionEnd::MessageError] {
            let mut call = Invocation::new(16, 4, true);
            assert_eq!(
                fails(call.on_ended(end)),
                (SystemExceptionKind::CommFailure, CompletionStatus::Maybe)
            );
        }
        assert_eq!(Invocation::new(16, 4, false).on_timeout(true).completed, CompletionStatus::Maybe);
    }

    #[test]
    fn an_orderly_close_is_tried_again_a_few_times() {
        let mut call = Invocation::new(16, 2, false);
        assert_eq!(call.on_ended(ConnectionEnd::Closed), Next::Resend);
        assert_eq!(call.on_not_sent(ConnectionEnd::Lost), Next::Resend);
        assert_eq!(
            fails(call.on_ended(ConnectionEnd::Closed)),
            (SystemExceptionKind::Transient, CompletionStatus::No)
        );
    }

    #[test]
    fn forwards_are_followed_but_not_for_ever() {
        let mut call = Invocation::new(2, 4, false);
        assert_eq!(call.on_forward(), Next::Follow);
        assert_eq!(call.on_forward(), Next::Follow);
        assert_eq!(fails(call.on_forward()).0, SystemExceptionKind::Transient);
    }

    #[test]
    fn a_forwarded_target_that_is_gone_leads_back_once() {
        let mut call = Invocation::new(16, 4, true);
        assert_eq!(call.on_connect_failed(MinorCode::CONNECT_REFUSED), Next::FallBack);
        assert_eq!(call.on_forward(), Next::Follow);
        assert_eq!(
            fails(call.on_connect_failed(MinorCode::CONNECT_REFUSED)).0,
            SystemExceptionKind::Transient
        );
    }
}
