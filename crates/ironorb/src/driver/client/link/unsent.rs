//! What waits until the socket takes more bytes: calls of threads that must not wait, and oneways whose callers are told when
//! the socket has taken them. The receiver watches the socket meanwhile, but during a gather write, whose thread looks here at its end.

use std::collections::VecDeque;
use std::sync::Arc;

use ironorb_giop::message::RequestTarget;

use super::{Guard, Link};
use crate::call::invocation::CallFailure;
use crate::call::remote_call::CallEvent;
use crate::driver::client::asynchronous::{AsyncCall, Written};

/// What waits on a connection.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    /// Calls that found no room, in their order. No later one of a thread that must not wait overtakes them.
    waiting: VecDeque<(Arc<AsyncCall>, RequestTarget)>,
    /// Oneways that have been written, in their order.
    leaving: VecDeque<Leaving>,
}

/// A oneway of which the socket has not taken all.
#[derive(Debug)]
struct Leaving {
    call: Arc<AsyncCall>,
    /// The stream positions between which the request lies.
    begins_at: u64,
    ends_at: u64,
}

/// The most calls that wait on a connection. Worst case of memory: their requests.
const WAITING_MAX: usize = 1024;

impl Unsent {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.leaving.is_empty()
    }
}

impl Link {
    /// Locks the state for a call that must not wait. `None` if the call now waits here for room.
    pub(super) fn lock_in_turn(
        &self,
        call: &Arc<AsyncCall>,
        target: &RequestTarget,
    ) -> Result<Option<Guard<'_>>, CallFailure> {
        let mut state = self.state.lock();
        let is_first = state.async_replies.unsent.as_ref().is_none_or(|unsent| unsent.waiting.is_empty());
        if is_first && self.has_room(state.transmit().pending_bytes()) || state.end().is_some() {
            return Ok(Some(state));
        }
        let waiting = &mut state.unsent().waiting;
        if waiting.len() >= WAITING_MAX {
            waiting.retain(|(call, _)| !call.is_over());
        }
        if waiting.len() >= WAITING_MAX {
            return Err(CallFailure::TooManyCalls);
        }
        waiting.push_back((call.clone(), target.clone()));
        self.send_some(&mut state);
        self.engage_receiver(&mut state);
        Ok(None)
    }

    /// Finds out whether the socket has taken a oneway that has been written from `begins_at` to the end. If not, its caller is told
    /// later.
    pub(super) fn leave(
        &self,
        state: &mut Guard<'_>,
        call: &Arc<AsyncCall>,
        (begins_at, ends_at): (u64, u64),
    ) -> Result<Written, CallFailure> {
        let leaving = Leaving { call: call.clone(), begins_at, ends_at };
        match leaving.outcome(state) {
            Some(outcome) => outcome.map(|()| Written::Oneway { is_waited_for: true }),
            None => {
                state.unsent().leaving.push_back(leaving);
                Ok(Written::Later)
            }
        }
    }

    /// Goes on with what waits, after bytes have left or the connection has ended.
    #[inline]
    pub(super) fn settle(&self, state: &mut Guard<'_>) {
        if state.async_replies.unsent.is_some() {
            self.settle_unsent(state);
        }
    }

    /// Does the same after a gather write, during which the receiver has not watched the socket.
    #[inline]
    pub(super) fn settle_after_gather(&self, state: &mut Guard<'_>) {
        if state.async_replies.unsent.is_some() {
            self.send_some(state);
            self.engage_receiver(state);
        }
    }

    #[cold]
    fn settle_unsent(&self, state: &mut Guard<'_>) {
        loop {
            self.tell_left(state);
            if state.end().is_none() && !self.has_room(state.transmit().pending_bytes()) {
                break;
            }
            let next = state.async_replies.unsent.as_mut().and_then(|unsent| unsent.waiting.pop_front());
            let Some((call, target)) = next else { break };
            self.write_in_turn(state, call, &target);
            self.send_pending(state);
        }
        state.async_replies.unsent.take_if(|unsent| unsent.is_empty());
    }

    /// Writes the request of a call that has waited.
    fn write_in_turn(&self, state: &mut Guard<'_>, call: Arc<AsyncCall>, target: &RequestTarget) {
        let begins_at = state.transmit().end_position();
        match self.write_request(state, &call, target) {
            Ok(Written::Oneway { is_waited_for: true }) => {
                let ends_at = state.transmit().end_position();
                state.unsent().leaving.push_back(Leaving { call, begins_at, ends_at });
            }
            Ok(Written::Oneway { is_waited_for: false }) => self.tell_soon(call, CallEvent::Sent),
            Ok(Written::Request { .. } | Written::Later | Written::Nothing) => {}
            Err(failure) => self.tell_soon(call, CallEvent::Failed(failure)),
        }
    }

    /// Tells the callers of the oneways that the socket has taken, or that are lost with the connection.
    fn tell_left(&self, state: &mut Guard<'_>) {
        loop {
            let first = state.async_replies.unsent.as_mut().and_then(|unsent| unsent.leaving.pop_front());
            let Some(leaving) = first else { return };
            match leaving.outcome(state) {
                Some(Ok(())) => self.tell_soon(leaving.call, CallEvent::Sent),
                Some(Err(failure)) => self.tell_soon(leaving.call, CallEvent::Failed(failure)),
                None => return state.unsent().leaving.push_front(leaving),
            }
        }
    }

    /// Gives a call an event when the lock is free.
    fn tell_soon(&self, call: Arc<AsyncCall>, event: CallEvent) {
        self.receiver.run_soon(Box::new(move || call.take_news_of_sending(event)));
    }
}

impl Leaving {
    /// What has become of the request; `None` while the socket may take the rest.
    fn outcome(&self, state: &mut Guard<'_>) -> Option<Result<(), CallFailure>> {
        let sent_position = state.transmit().sent_position();
        if sent_position >= self.ends_at {
            return Some(Ok(()));
        }
        state.end().map(|end| Err(CallFailure::ended(end, sent_position > self.begins_at)))
    }
}

impl super::LinkState {
    fn unsent(&mut self) -> &mut Unsent {
        self.async_replies.unsent.get_or_insert_default()
    }
}
