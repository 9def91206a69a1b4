//! The fast path of a call: no other thread uses the connection, the socket takes the request at once, and
//! the first message that comes is the answer. When anything turns out otherwise, the call continues from
//! there on the general path.

use std::io;

use ironorb_giop::TransmissionCodeSets;
use ironorb_giop::connection::{CallId, NotWhole, RequestOptions};
use ironorb_giop::framer::{Framer, PLAIN_RESULTS_AT, ShortReply, ShortReplyKind};
use ironorb_giop::message::{Message, OperationName, RequestTarget, Response};
use ironorb_giop::service_context::{EncodedContexts, PaddedContexts, RequestContexts};

use super::{Clock, Guard, Link, Queued};
use crate::call::invocation::CallFailure;
use crate::driver::invoke::Arguments;
use crate::object::deadline::CallTime;
use crate::transport::{self, Moved};

/// The outcome of a call on the fast path.
pub(crate) enum FastOutcome {
    /// Short results, in the [`ShortReply`].
    Short,
    /// Longer results, or results with service contexts: the reply, and where in it the results begin.
    Long(Message, usize),
    /// Any other outcome.
    Other(Result<Message, CallFailure>),
}

impl Link {
    /// Sends a request and waits for its answer, as [`call`](Link::call) does. A short answer of this kind is stored in
    /// `short`. Compiled once without service contexts, once with a priority alone, once with others of the ORB, and once with
    /// those of the program.
    #[inline(always)] // a step of every call
    pub(crate) fn fast_path_call(
        &self,
        target: &RequestTarget,
        contexts: RequestContexts<'_>,
        operation: OperationName<'_>,
        arguments: Arguments<'_>,
        time: CallTime,
        (kind, short): (ShortReplyKind, &mut ShortReply),
    ) -> FastOutcome {
        let mut state = self.state.lock();
        if !state.is_idle() || self.bidirectional.is_some() {
            return self.slow_path_call(state, target, contexts, operation, arguments, time);
        }
        let response = Response::SyncWithTarget;
        let begun = match contexts {
            RequestContexts::None => state.begin_plain(target, operation, response, arguments),
            RequestContexts::Priority(priority) => {
                state.begin_with_priority(target, operation, response, priority, arguments)
            }
            RequestContexts::Encoded(contexts) => {
                state.begin_with_contexts(target, operation, response, contexts, arguments)
            }
        };
        let call = match begun {
            Ok(call) if self.send_all(&mut state) => call,
            Ok(call) => return self.slow_path_wait(state, target, call, time),
            Err(request) => match self.send_gather_if_idle(&mut state, request, arguments) {
                Ok(call) => call,
                Err(request) => return self.slow_path_gather(state, target, request, arguments, time),
            },
        };
        let Some(mut framer) = state.take_framer() else {
            return self.slow_path_wait(state, target, call, time);
        };
        drop(state);
        let sleeps = || self.set_receive_timeout(time.timeout);
        let mut result = self.waits.receive(&self.stream, framer.space(), time.timeout, sleeps);
        if let Ok(Moved::Bytes(count)) = result {
            framer.received(count);
            self.note_received(count);
            if framer.take_short_reply(call.request_id(), kind, short) {
                short.set_code_sets(self.fast_path_end(call, framer));
                return FastOutcome::Short;
            }
            result = Ok(Moved::Nothing); // it is in the framer
        }
        self.fast_path_receive_more(target, call, framer, result, time)
    }

    /// Completes the call after its answer has been taken, and puts the framer back.
    #[inline(always)] // a step of every call
    fn fast_path_end(&self, call: CallId, framer: Box<Framer>) -> TransmissionCodeSets {
        let is_drained = framer.is_drained();
        let mut state = self.state.lock();
        let code_sets = state.handle_answer(call, framer);
        if !is_drained {
            self.take_trailing_input(&mut state);
        }
        self.pass_receive_token(&mut state);
        code_sets
    }

    #[inline(never)]
    fn fast_path_receive_more(
        &self,
        target: &RequestTarget,
        call: CallId,
        mut framer: Box<Framer>,
        result: io::Result<Moved>,
        time: CallTime,
    ) -> FastOutcome {
        let id = call.request_id();
        let plain = framer.take_plain_reply(id).map(|message| (message, PLAIN_RESULTS_AT));
        match plain.or_else(|| framer.take_reply_with_contexts(id)) {
            Some((mut message, at)) => {
                message.set_code_sets(self.fast_path_end(call, framer));
                FastOutcome::Long(message, at)
            }
            None => self.slow_path_receive(target, call, framer, result, time),
        }
    }

    /// Sends a request that wants no answer, as [`oneway`](Link::oneway) does. Compiled once without service
    /// contexts and once with them.
    #[inline(always)]
    pub(crate) fn fast_path_oneway(
        &self,
        target: &RequestTarget,
        contexts: &EncodedContexts<'_>,
        operation: OperationName<'_>,
        arguments: Arguments<'_>,
        time: CallTime,
    ) -> Result<(), CallFailure> {
        let mut state = self.state.lock();
        if self.is_first_oneway(&mut state, time.begun) {
            self.look_before_oneway(&mut state);
        }
        if state.transmit().pending_bytes() > 0 || state.end().is_some() || self.bidirectional.is_some() {
            drop(state);
            let (now, deadline) = time.settle();
            return self.oneway(target, *contexts, operation, arguments, None, now, deadline);
        }
        let begins_at = state.transmit().sent_position();
        let begun = match contexts.is_empty() {
            true => state.begin_plain_oneway(target, operation, arguments),
            false => state.begin_oneway_with_contexts(target, operation, contexts, arguments),
        };
        match begun {
            Ok(()) if self.send_all(&mut state) => Ok(()),
            Ok(()) => self.slow_path_oneway(state, Ok(()), begins_at, arguments, time),
            Err(request) => match self.send_gather_if_idle(&mut state, request, arguments) {
                Ok(()) => Ok(()),
                request => self.slow_path_oneway(state, request, begins_at, arguments, time),
            },
        }
    }

    /// Sends what is pending. False when the socket did not take all of it.
    #[inline(always)] // a step of every call
    fn send_all(&self, state: &mut Guard<'_>) -> bool {
        let Some(bytes) = state.transmit().poll_buffered() else { return false };
        match transport::send_now(&self.stream, bytes) {
            Ok(Moved::Bytes(count)) => state.transmit().transmitted(count),
            // An error shows again at the next attempt.
            Ok(Moved::Nothing | Moved::End) | Err(_) => return false,
        }
        state.transmit().pending_bytes() == 0
    }

    #[cold]
    fn slow_path_oneway<'l>(
        &'l self,
        state: Guard<'l>,
        begun: Result<(), NotWhole<()>>,
        begins_at: u64,
        arguments: Arguments<'_>,
        time: CallTime,
    ) -> Result<(), CallFailure> {
        let (now, deadline) = time.settle();
        let mut clock = self.clock(now);
        let queued = match begun {
            Ok(()) => Queued::last(state, ()),
            Err(request) => self.send_gather(state, request, arguments, &mut clock, deadline)?,
        };
        self.finish_oneway(queued, begins_at, clock, deadline)
    }

    #[cold]
    fn slow_path_call(
        &self,
        state: Guard<'_>,
        target: &RequestTarget,
        contexts: RequestContexts<'_>,
        operation: OperationName<'_>,
        arguments: Arguments<'_>,
        time: CallTime,
    ) -> FastOutcome {
        drop(state);
        let mut memory = PaddedContexts::new();
        let contexts = contexts.encoded(&mut memory);
        let options = RequestOptions { response: Response::SyncWithTarget, contexts };
        let (now, deadline) = time.settle();
        FastOutcome::Other(self.call(target, options, operation, arguments, now, deadline))
    }

    #[cold]
    fn slow_path_gather(
        &self,
        state: Guard<'_>,
        target: &RequestTarget,
        request: NotWhole<CallId>,
        arguments: Arguments<'_>,
        time: CallTime,
    ) -> FastOutcome {
        let (now, deadline) = time.settle();
        let mut clock = self.clock(now);
        let queued = self.send_gather(state, request, arguments, &mut clock, deadline);
        FastOutcome::Other(
            queued.and_then(|queued| self.finish_call(queued, || target.version(), clock, deadline)),
        )
    }

    /// Goes on when some of the request is still unsent, or another thread receives.
    #[cold]
    fn slow_path_wait(
        &self,
        state: Guard<'_>,
        target: &RequestTarget,
        call: CallId,
        time: CallTime,
    ) -> FastOutcome {
        let (now, deadline) = time.settle();
        let queued = Queued::last(state, call);
        FastOutcome::Other(self.finish_call(queued, || target.version(), self.clock(now), deadline))
    }

    /// Goes on when what came is not the answer, is unusual, or is incomplete.
    #[cold]
    fn slow_path_receive(
        &self,
        target: &RequestTarget,
        call: CallId,
        framer: Box<Framer>,
        result: io::Result<Moved>,
        time: CallTime,
    ) -> FastOutcome {
        let (now, deadline) = time.settle();
        let mut state = self.state.lock();
        self.take_input(&mut state, framer, result);
        FastOutcome::Other(self.wait_for_answer(state, call, || target.version(), Clock(now), deadline))
    }

    /// Handles the bytes that came behind the answer.
    #[cold]
    fn take_trailing_input(&self, state: &mut Guard<'_>) {
        if let Some(framer) = state.take_framer() {
            self.take_input(state, framer, Ok(Moved::Nothing));
        }
    }
}
