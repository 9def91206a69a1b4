//! The requests and replies of nearly every call. A request that must carry anything more is left to the
//! general path, before any byte of it has been written.

use super::{BeginError, CallId, ClientConnection, NotWhole, RequestOptions, SlotState};
use crate::cdr::Runs;
use crate::connection::WriteBody;
use crate::connection::transmit::NotWritten;
use crate::error::Misuse;
use crate::framer::Framer;
use crate::message::{MessageStart, OperationName, RequestTarget, Response};
use crate::probe::{self, Stage};
use crate::service_context::{EncodedContexts, PaddedContexts, RequestContexts};
use crate::version::{Encoding, TransmissionCodeSets};

impl<W> ClientConnection<W> {
    /// Whether the connection is idle: no thread sends or receives, and nothing prevents either.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.transmit.pending_bytes() == 0 && self.framer.is_some() && self.end.is_none()
    }

    /// Writes a request without service contexts, as [`begin_gather`](Self::begin_gather) does. Not generic,
    /// so that it is compiled once for all operations.
    #[inline(never)]
    pub fn begin_plain(
        &mut self,
        target: &RequestTarget,
        operation: OperationName<'_>,
        response: Response,
        arguments: WriteBody<'_>,
    ) -> Result<CallId, NotWhole<CallId>> {
        self.begin_plain_or_not(target, operation, response, RequestContexts::None, arguments)
    }

    /// Writes a request with service contexts, as [`begin_gather`](Self::begin_gather) does. Not generic, so
    /// that it is compiled once for all operations.
    #[inline(never)]
    pub fn begin_with_contexts(
        &mut self,
        target: &RequestTarget,
        operation: OperationName<'_>,
        response: Response,
        contexts: &EncodedContexts<'_>,
        arguments: WriteBody<'_>,
    ) -> Result<CallId, NotWhole<CallId>> {
        self.begin_plain_or_not(target, operation, response, RequestContexts::Encoded(contexts), arguments)
    }

    /// Writes a request with the priority of a call as its one service context, as [`begin_gather`](Self::begin_gather) does.
    /// Not generic, so that it is compiled once for all operations.
    #[inline(never)]
    pub fn begin_with_priority(
        &mut self,
        target: &RequestTarget,
        operation: OperationName<'_>,
        response: Response,
        priority: i16,
        arguments: WriteBody<'_>,
    ) -> Result<CallId, NotWhole<CallId>> {
        self.begin_plain_or_not(target, operation, response, RequestContexts::Priority(priority), arguments)
    }

    #[inline(always)] // a step of every call
    fn begin_plain_or_not(
        &mut self,
        target: &RequestTarget,
        operation: OperationName<'_>,
        response: Response,
        contexts: RequestContexts<'_>,
        arguments: WriteBody<'_>,
    ) -> Result<CallId, NotWhole<CallId>> {
        let Some(encoding) = self.plain_encoding(target, operation) else {
            let mut memory = PaddedContexts::new();
            let options = RequestOptions { response, contexts: contexts.encoded(&mut memory) };
            return self.begin_gather(target, operation, options, arguments);
        };
        let call = self.take_slot()?;
        let probe = probe::enter(Stage::Marshal);
        let buf = self.transmit.buffer();
        let message = MessageStart::plain_request(buf, target, operation, encoding, contexts);
        let mut w = message.sparse_body(buf);
        let written = arguments(&mut w);
        let runs = w.into_runs();
        let finished = match (written, runs) {
            (Ok(()), Runs::None) => message.finish_plain_request(buf, call.0, response),
            (Ok(()), runs) => return self.gather_plain(message, call, response, runs, arguments),
            (Err(misuse), _) => Err(misuse),
        };
        drop(probe);
        match finished {
            Ok(length) if length <= self.config.message_bytes_max() => Ok(call),
            Ok(_) => Err(self.give_up_plain(message, target, call, Misuse::TooLarge)),
            Err(misuse) => Err(self.give_up_plain(message, target, call, misuse)),
        }
    }

    /// Writes a oneway request without service contexts.
    #[inline]
    pub fn begin_plain_oneway(
        &mut self,
        target: &RequestTarget,
        operation: OperationName<'_>,
        arguments: WriteBody<'_>,
    ) -> Result<(), NotWhole<()>> {
        let begun = self.begin_plain(target, operation, Response::None, arguments);
        self.release_oneway(begun)
    }

    /// Writes a oneway request with service contexts.
    pub fn begin_oneway_with_contexts(
        &mut self,
        target: &RequestTarget,
        operation: OperationName<'_>,
        contexts: &EncodedContexts<'_>,
        arguments: WriteBody<'_>,
    ) -> Result<(), NotWhole<()>> {
        let begun = self.begin_with_contexts(target, operation, Response::None, contexts, arguments);
        self.release_oneway(begun)
    }

    #[inline(always)] // a step of every oneway
    fn release_oneway(&mut self, begun: Result<CallId, NotWhole<CallId>>) -> Result<(), NotWhole<()>> {
        match begun {
            Ok(call) => {
                self.release(call); // it only used the slot's next id
                Ok(())
            }
            Err(NotWhole::Failed(e)) => Err(NotWhole::Failed(e)),
            Err(NotWhole::Sparse(call, message)) => {
                self.release(call);
                Err(NotWhole::Sparse((), message))
            }
            Err(NotWhole::Gather(call, message)) => {
                self.release(call);
                Err(NotWhole::Gather((), message))
            }
        }
    }

    /// The encoding of the arguments, if the request has a plain header and is sent in one piece; `None` if
    /// not.
    #[inline(always)] // a step of every call
    fn plain_encoding(&self, target: &RequestTarget, operation: OperationName<'_>) -> Option<Encoding> {
        if !target.is_plain(operation)
            || self.announcement.is_some()
            || self.config.fragment_bytes().is_some()
        {
            return None;
        }
        match self.code_sets {
            Some(code_sets) => Some(target.encoding(code_sets)),
            None if target.code_sets().is_none() => Some(target.encoding(TransmissionCodeSets::UNNEGOTIATED)),
            None => None,
        }
    }

    #[inline(never)]
    fn gather_plain(
        &mut self,
        message: MessageStart,
        call: CallId,
        response: Response,
        runs: Runs,
        arguments: WriteBody<'_>,
    ) -> Result<CallId, NotWhole<CallId>> {
        message.identify(self.transmit.buffer(), call.0, response);
        let runs = match runs {
            Runs::One(run) if !self.transmit.is_gathering() => {
                return match self.transmit.finish_sparse(message, run, &self.config) {
                    Ok(message) => Err(NotWhole::Sparse(call, message)),
                    Err(misuse) => {
                        self.release(call);
                        Err(BeginError::Misuse(misuse).into())
                    }
                };
            }
            runs => runs.into_vec(),
        };
        match self.transmit.gather_or_complete(message, runs, &self.config, arguments) {
            Ok(()) => Ok(call),
            Err(NotWritten::Gather(message)) => Err(NotWhole::Gather(call, message)),
            Err(NotWritten::Misuse(misuse)) => {
                self.release(call);
                Err(BeginError::Misuse(misuse).into())
            }
        }
    }

    #[cold]
    fn give_up_plain(
        &mut self,
        message: MessageStart,
        target: &RequestTarget,
        call: CallId,
        misuse: Misuse,
    ) -> NotWhole<CallId> {
        message.abandon(self.transmit.buffer());
        self.release(call);
        BeginError::Misuse(super::wide_misuse(misuse, target)).into()
    }

    /// Puts back the receiving part after its driver has taken the answer to this call from it. No other
    /// caller waits for that driver. The call is over. Returns the code sets of the answer.
    #[inline(always)] // a step of every call
    pub fn handle_answer(&mut self, call: CallId, framer: Box<Framer>) -> TransmissionCodeSets {
        self.framer = Some(framer);
        if let Some(slot) = self.slots.get_mut(call.index()) {
            slot.uses += 1;
            debug_assert!(slot.waker.is_none() && slot.answer.is_none());
            slot.state = SlotState::Free;
            self.free.push(call.index() as u16);
        }
        self.reply_code_sets
    }
}
