//! Calls on a connection that have no thread: their caller went on after it began them. The caller may return
//! and receive the answer itself, as the caller of a synchronous call does. The receiver does so when a task
//! or a callback waits, or when the caller has not returned.
//!
//! A caller that returns at once must pay no more than for a synchronous call. So the receiver takes a
//! connection over in two cases only: when a caller asks for a reply without waiting (a poll, a callback),
//! and when the receiver checks the connection and finds that no thread receives. It checks connections with
//! such calls within [`LOOK_EVERY`](crate::driver::client::receiver::LOOK_EVERY).
//!
//! Requests are held back for others to join. Whoever waits for a reply of the connection or asks for one sends them before
//! it does so, and so does every thread that sends or receives there. If none comes, the receiver sends them by that check.

use std::io::IoSlice;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ironorb_giop::connection::{BeginError, CallId, ConnectionEnd, RequestOptions};
use ironorb_giop::message::{Message, RequestTarget, Response};
use ironorb_giop::service_context::{EncodedContexts, ServiceContext, ServiceContextList};
use ironorb_giop::{Encoding, Misuse, Version};
use rustix::event::epoll::EventFlags;

use super::unsent::Unsent;
use super::{AsyncWakeups, Guard, Link, LinkState, Queued, Waiter};
use crate::base::time::Time;
use crate::call::invocation::CallFailure;
use crate::driver::client::asynchronous::{AsyncCall, InFlight, Written};
use crate::driver::client::receiver::{Delivery, ReceiverCheck};
use crate::driver::client::retry_body::BodySource;
use crate::driver::clock;
use crate::object::deadline::Deadline;
use crate::object::priority;
use crate::object::received_request::ReceivedRequest;
use crate::transport::{self, Moved, Stream};

/// The state of calls without a waiting thread.
#[derive(Debug, Default)]
pub(super) struct AsyncReplies {
    /// How many are in flight.
    pub(super) calls: u32,
    /// A task or a callback waits for one of them.
    pub(super) is_asked_for: bool,
    /// Requests that have been written since the last send.
    held: u32,
    /// The receiver will check the connection.
    is_listed: bool,
    /// The events for which the receiver watches the connection; `None` while it does not.
    watched: Option<Watched>,
    /// What waits for the socket, if anything does.
    pub(super) unsent: Option<Box<Unsent>>,
}

impl AsyncReplies {
    /// Counts a request that has been written and is to wait.
    #[inline]
    pub(super) fn add_held(&mut self) {
        self.held += 1;
    }

    /// Notes that all pending requests are being sent.
    pub(super) fn have_been_sent(&mut self) {
        self.held = 0;
    }

    fn have_gone(&mut self, calls: u32) {
        self.calls -= calls;
        self.is_asked_for &= self.calls > 0;
    }

    fn is_watched(&self) -> bool {
        self.watched.is_some_and(|watched| watched.readable)
    }
}

/// The service contexts of a request that is passed on, followed by `contexts`.
#[cold]
fn joined(request: &ReceivedRequest, contexts: EncodedContexts<'_>) -> ServiceContextList {
    let mut list = ServiceContextList::default();
    for context in request.contexts_to_pass_on().filter(|passed_on| is_not_among(contexts, passed_on)) {
        let _too_long = list.push(context); // it came in a message
    }
    list.append(contexts);
    list
}

/// Whether no context of the call's own takes the place of one that is passed on.
fn is_not_among(own: EncodedContexts<'_>, passed_on: &ServiceContext<'_>) -> bool {
    own.iter().find(passed_on.id).is_none()
}

/// A request is held back only while the calls in flight are more than this many times the requests held
/// back. So the server has as much to do as waits for it.
const HELD_SHARE: u32 = 2;

/// With fewer calls in flight no request is held back.
const CALLS_MIN: u32 = 8;

/// A call that has less time left than this is not held back: many times the longest that it would wait.
const HELD_LEFT_MIN: Duration = Duration::from_millis(100);

/// With this many bytes pending or more, no request is held back.
const HELD_BYTES_MAX: usize = 16 << 10;

/// Whether the request of a call with this deadline may be held back. That of a thread with a real-time priority may not: the
/// thread that would send it in the end may have a lower one.
fn may_be_held(deadline: Deadline, now: Time) -> bool {
    let has_time = deadline.remaining(now).is_ok_and(|left| left.is_none_or(|left| left >= HELD_LEFT_MIN));
    has_time && priority::native_priority_given().is_none()
}

/// The events for which the receiver watches a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Watched {
    /// Bytes to receive; false while a caller receives.
    readable: bool,
    /// Room for bytes that the socket did not take.
    writable: bool,
}

impl Watched {
    fn flags(self, stream: &Stream) -> EventFlags {
        let mut flags = EventFlags::empty();
        if stream.readiness_shows() {
            flags.set(EventFlags::IN, self.readable);
            flags.set(EventFlags::OUT, self.writable);
        } else {
            flags.set(EventFlags::IN, self.readable || self.writable);
        }
        flags
    }
}

impl Link {
    /// Writes the request of an asynchronous call. Sends as much as the socket takes at once, or waits for
    /// more requests that are likely to follow. While more than `transmit_bytes_max` bytes of earlier requests are pending, it
    /// blocks until the call's deadline, or leaves the call here if that must not wait.
    pub(in crate::driver::client) fn begin(
        &self,
        call: &Arc<AsyncCall>,
        target: &RequestTarget,
        now: Time,
    ) -> Result<Written, CallFailure> {
        let mut clock = self.clock(now);
        let mut state = if call.is_oneway() && call.on_behalf().is_none() {
            self.lock_if_room().ok_or(CallFailure::TooManyCalls)?
        } else if call.never_waits() {
            match self.lock_in_turn(call, target)? {
                Some(state) => state,
                None => return Ok(Written::Later),
            }
        } else {
            self.wait_for_room(&mut clock, call.deadline())?
        };
        if call.wants_no_reply() {
            let is_first = self.is_first_oneway(&mut state, clock.0);
            if call.is_told_when_sent() {
                self.look(&mut state);
            } else if is_first {
                self.look_before_oneway(&mut state);
            }
        }
        let is_blocked = state.is_blocked();
        let begins_at = state.transmit().end_position();
        let written = self.write_request(&mut state, call, target)?;
        let ends_at = state.transmit().end_position();
        let may_wait = match written {
            Written::Nothing | Written::Later => return Ok(written),
            Written::Oneway { .. } => false,
            Written::Request { is_asked_for } => !is_asked_for && may_be_held(call.deadline(), clock.0),
        };
        if !may_wait || is_blocked || !self.hold(&mut state) {
            self.send_some(&mut state);
        }
        let written = match written {
            Written::Oneway { is_waited_for: true } => self.leave(&mut state, call, (begins_at, ends_at))?,
            written => written,
        };
        self.engage_receiver(&mut state);
        Ok(written)
    }

    /// Writes the request of an asynchronous call, and sends nothing but a long body.
    pub(super) fn write_request(
        &self,
        state: &mut Guard<'_>,
        call: &Arc<AsyncCall>,
        target: &RequestTarget,
    ) -> Result<Written, CallFailure> {
        let written = call.send_by(self, |operation, contexts, body| {
            let response = match call.on_behalf() {
                _ if call.wants_no_reply() => Response::None,
                Some(request) => request.response(),
                None => Response::SyncWithTarget,
            };
            let id = match body {
                BodySource::Raw(request) => {
                    let moved = BeginError::Misuse(Misuse::MovedBody);
                    let Some((passed_on, Some(body))) = request.parts_to_pass_on() else { return Err(moved) };
                    let passed_on = passed_on.filter(|passed_on| is_not_among(contexts, passed_on));
                    let contexts: Vec<_> = passed_on.chain(contexts.iter()).collect();
                    let send = |pieces: &[&[u8]; 2]| self.send_pieces(pieces);
                    match state.begin_raw(target, operation, response, &contexts, body, send)? {
                        Some(id) => id,
                        None => return Ok(None),
                    }
                }
                BodySource::Written(arguments) => {
                    let joined = call.on_behalf().map(|request| joined(request, contexts));
                    let contexts = joined.as_ref().map_or(contexts, ServiceContextList::encoded);
                    if response == Response::None {
                        return state
                            .begin_oneway_with(target, operation, contexts, arguments)
                            .map(|()| None);
                    }
                    let options = RequestOptions { response, contexts };
                    state.begin_request(target, operation, options, arguments)?
                }
            };
            state.set_waker(id, Waiter::Call(call.clone(), id));
            state.async_replies.calls += 1;
            let ends_at = state.transmit().end_position();
            Ok(self.me.upgrade().map(|link| InFlight { link, id, version: target.version(), ends_at }))
        })?;
        if let Written::Request { is_asked_for } = written {
            state.async_replies.is_asked_for |= is_asked_for;
        }
        if !matches!(written, Written::Nothing) {
            self.note_band_told();
        }
        Ok(written)
    }

    /// Sends what the socket takes at once, and returns how many bytes. An error shows at the next send.
    fn send_pieces(&self, pieces: &[&[u8]; 2]) -> usize {
        // The server sends what goes over an accepted connection.
        if self.is_accepted() {
            return 0;
        }
        match transport::send_pieces_now(&self.stream, &pieces.map(IoSlice::new)) {
            Ok(Moved::Bytes(count)) => count,
            Ok(Moved::Nothing | Moved::End) | Err(_) => 0,
        }
    }

    /// Whether one more request may wait for others, so that they share one system call. With few calls in
    /// flight no request waits. The more calls there are, the longer the server is busy meanwhile.
    fn hold(&self, state: &mut Guard<'_>) -> bool {
        let (held, calls) = (state.async_replies.held + 1, state.async_replies.calls);
        state.async_replies.held = held;
        calls >= CALLS_MIN
            && held * HELD_SHARE < calls
            && state.transmit().pending_bytes() < HELD_BYTES_MAX
            && !self.is_accepted()
    }

    /// Waits for the answer to a call that has had no thread until now, as the caller of a synchronous call
    /// does. `ends_at` is the stream position at which its request ends. Returns `None` when the answer has
    /// come already, and the thread that received it is delivering it.
    pub(crate) fn wait_for(
        &self,
        call: &AsyncCall,
        id: CallId,
        version: Version,
        ends_at: u64,
    ) -> Option<Result<Message, CallFailure>> {
        let mut state = self.state.lock();
        if !state.is_waiting(id) || !call.claim_for_caller(self, id) {
            return None;
        }
        drop(state.take_waker(id));
        state.async_replies.have_gone(1);
        // While this thread waits, no further request comes from it for which they could wait.
        if state.async_replies.held > 0 {
            self.send_some(&mut state);
            self.engage_receiver(&mut state);
        }
        let clock = self.clock(clock::now());
        let queued = Queued { state, call: id, ends_at };
        Some(self.finish_call(queued, || version, clock, call.deadline()))
    }

    /// Asks for the replies of calls without waiting for them.
    pub(crate) fn ask(&self) {
        let mut state = self.state.lock();
        state.async_replies.is_asked_for = state.async_replies.calls > 0;
        self.send_some(&mut state);
        self.engage_receiver(&mut state);
    }

    /// Locks the state if the peer has read enough of the earlier requests; otherwise returns `None`.
    fn lock_if_room(&self) -> Option<Guard<'_>> {
        let mut state = self.state.lock();
        let has_room = self.has_room(state.transmit().pending_bytes());
        has_room.then_some(state)
    }

    /// The encoding in which the next request to the target would be written.
    pub(crate) fn encoding_for(&self, target: &RequestTarget) -> Encoding {
        self.state.lock().encoding_for(target)
    }

    /// Gives up an asynchronous call. Its late reply is dropped. The server is told where the ORB says so, or if the call
    /// `is_cancelled`.
    pub(crate) fn abandon(&self, call: CallId, version: Version, is_cancelled: bool) {
        let mut state = self.state.lock();
        let is_known = match is_cancelled {
            true => state.connection.cancel(call, version),
            false => state.connection.abandon(call, version),
        };
        if is_known {
            state.async_replies.have_gone(1);
            self.flush_if_possible(&mut state);
        }
    }

    /// Sends until the socket takes no more.
    pub(super) fn send_some(&self, state: &mut Guard<'_>) {
        self.send_pending(state);
        self.settle(state);
    }

    /// Sends until the socket takes no more, and leaves what waits for that to the caller.
    pub(super) fn send_pending(&self, state: &mut Guard<'_>) {
        state.async_replies.held = 0;
        if let Some(acceptor) = self.acceptor() {
            return self.send_some_accepted(state, acceptor);
        }
        // The thread of a gather write also sends what is behind its message.
        while state.transmit().pending_bytes() > 0
            && state.end().is_none()
            && let Some(bytes) = state.transmit().poll_buffered()
        {
            match transport::send_now(&self.stream, bytes) {
                Ok(Moved::Bytes(count)) => state.transmit().transmitted(count),
                Ok(Moved::Nothing | Moved::End) => break,
                Err(_) => self.lose_now(state),
            }
        }
    }

    /// Makes the receiver do what no other thread does on this connection: receive when a task or a callback
    /// waits and no caller receives, send what the socket has not taken, and check the connection again.
    pub(super) fn engage_receiver(&self, state: &mut Guard<'_>) {
        // The receiver watches until it finds that another thread receives. So calls that come one by one
        // need no extra system call.
        let readable = state.async_replies.is_watched() || state.wants_receiver();
        self.watch(state, readable);
    }

    fn watch(&self, state: &mut Guard<'_>, readable: bool) {
        if state.end().is_some() {
            return;
        }
        let want = Watched { readable, writable: state.is_blocked() || state.has_unsent() };
        self.change_watch(state, want);
        if self.stream.leave_to_epoll(want.readable, want.writable) {
            self.receiver.handle_again(&self.me);
        }
        let is_unattended = state.async_replies.calls > 0 && !readable && state.has_framer();
        if (is_unattended || state.async_replies.held > 0)
            && !std::mem::replace(&mut state.async_replies.is_listed, true)
        {
            let visited: Weak<dyn ReceiverCheck> = self.me.clone();
            self.receiver.look_soon(&visited);
        }
    }

    fn change_watch(&self, state: &mut Guard<'_>, want: Watched) {
        if state.async_replies.watched == Some(want) {
            return;
        }
        let flags = want.flags(&self.stream);
        let watched = match state.async_replies.watched {
            _ if flags.is_empty() => return self.unwatch(state),
            None => self.receiver.watch(self.number, &self.me, &self.stream, flags),
            Some(_) => self.receiver.watch_for(self.number, &self.stream, flags),
        };
        match watched {
            Ok(()) => state.async_replies.watched = Some(want),
            // The receiver would never look, and the calls must not wait for their deadlines.
            Err(_) => self.end(state, ConnectionEnd::Lost),
        }
    }

    pub(super) fn unwatch(&self, state: &mut Guard<'_>) {
        if state.async_replies.watched.take().is_some() {
            self.receiver.unwatch(&self.stream);
        }
    }

    /// Handles an event on the socket, on the receiver's thread. Never blocks. Its deliveries queue behind
    /// what other threads have received before.
    pub(crate) fn on_ready(&self) {
        let mut state = self.state.lock();
        self.send_some(&mut state);
        let Some(mut framer) = state.take_framer() else {
            // A caller receives; it hands over when it is done.
            return self.watch(&mut state, false);
        };
        let result = transport::receive_now(&self.stream, framer.space());
        // With no bytes, a caller has been faster, and will be again.
        let is_elsewhere = matches!(result, Ok(Moved::Nothing));
        self.take_input(&mut state, framer, result);
        let readable = !is_elsewhere || state.wants_receiver();
        self.watch(&mut state, readable);
    }

    /// Notifies the listeners of calls. Where that runs code of the program, the receiver does it: such code
    /// must not run under the connection's lock, nor in a thread that waits for an answer of its own.
    #[cold]
    pub(super) fn pass_on(&self, state: &mut Guard<'_>, woken: AsyncWakeups) {
        let mut deliveries = Vec::new();
        for (call, answer) in self.take_answers(state, woken) {
            if let Err(answer) = call.try_complete_quietly(answer) {
                deliveries.push((call, answer));
            }
        }
        if !deliveries.is_empty() {
            self.receiver.deliver(deliveries);
        }
    }

    fn take_answers(&self, state: &mut Guard<'_>, woken: AsyncWakeups) -> Vec<Delivery> {
        // A connection has fewer calls in flight than 2^16.
        state.async_replies.have_gone(woken.0.len() as u32);
        woken.0.into_iter().map(|(call, id)| (call, state.poll_call(id))).collect()
    }
}

impl ReceiverCheck for Link {
    /// Makes the receiver receive from now on, if no thread does so for calls that are still in flight.
    fn on_receiver_check(&self) {
        let mut state = self.state.lock();
        state.async_replies.is_listed = false;
        self.send_some(&mut state);
        let is_unattended = state.async_replies.calls > 0 && state.has_framer();
        let readable = state.async_replies.is_watched() || is_unattended;
        self.watch(&mut state, readable);
    }
}

impl LinkState {
    /// Whether the receiver should receive.
    fn wants_receiver(&self) -> bool {
        self.async_replies.is_asked_for && self.has_framer()
    }

    /// Whether something waits for the socket. The thread of a gather write looks at its end.
    fn has_unsent(&mut self) -> bool {
        self.async_replies.unsent.is_some() && !self.transmit().is_gathering()
    }

    /// Whether the socket has not taken all bytes that the link has tried to send.
    fn is_blocked(&mut self) -> bool {
        let pending_bytes = self.transmit().pending_bytes();
        if pending_bytes == 0 {
            self.async_replies.held = 0;
        }
        pending_bytes > 0 && self.async_replies.held == 0 && !self.transmit().is_gathering()
    }
}
