//! Calls on a connection for which no thread waits: begun by a caller who goes on, received by the receiver.

use std::sync::Arc;
use std::time::Instant;

use ironorb_giop::Encoding;
use ironorb_giop::connection::{CallId, ConnectionEnd, RequestOptions};
use ironorb_giop::message::RequestTarget;
use rustix::event::epoll::EventFlags;

use super::{Guard, Link, Waiter, Woken};
use crate::client::asynchronous::{AsyncCall, InFlight};
use crate::client::receiver::Delivery;
use crate::invocation::CallFailure;
use crate::net::{self, Moved};
use crate::sync::lock;

/// What the receiver waits for on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Watched {
    /// Bytes to receive; not while a caller receives itself.
    readable: bool,
    /// Room for bytes that the socket did not take.
    writable: bool,
}

impl Watched {
    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.readable);
        flags.set(EventFlags::OUT, self.writable);
        flags
    }
}

impl Link {
    /// Writes the request of an asynchronous call and sends what the socket takes of it. Waits only while more than
    /// `transmit_bytes_max` bytes of earlier requests have not been taken, at most until the call's deadline.
    pub(crate) fn begin(
        &self,
        call: &Arc<AsyncCall>,
        target: &RequestTarget,
        now: Instant,
    ) -> Result<(), CallFailure> {
        let mut clock = self.clock(now);
        let mut state = if call.is_oneway() {
            self.room_now().ok_or(CallFailure::TooManyCalls)?
        } else {
            self.wait_for_room(&mut clock, call.deadline())?
        };
        let begun = call.send_by(|operation, contexts, arguments| {
            if call.is_oneway() {
                return state.begin_oneway_with(target, operation, contexts, arguments).map(|()| None);
            }
            let options = RequestOptions { contexts, ..RequestOptions::TWOWAY };
            let id = state.begin_request(target, operation, options, arguments)?;
            state.set_waker(id, Waiter::Call(call.clone(), id));
            state.asynchronous += 1;
            Ok(self.me.upgrade().map(|link| InFlight { link, id, version: target.version() }))
        })?;
        if begun {
            self.send_some(&mut state);
            self.attend(&mut state);
        }
        Ok(())
    }

    /// The connection, if the peer has read enough of what others have written.
    fn room_now(&self) -> Option<Guard<'_>> {
        let mut state = lock(&self.state);
        let has_room = state.transmit().pending_bytes() <= self.transmit_bytes_max;
        has_room.then_some(state)
    }

    /// What the next request to this target would be written in.
    pub(crate) fn encoding_for(&self, target: &RequestTarget) -> Encoding {
        lock(&self.state).encoding_for(target)
    }

    /// Gives up an asynchronous call. Its late reply is dropped.
    pub(crate) fn abandon(&self, call: CallId, version: ironorb_giop::Version) {
        let mut state = lock(&self.state);
        if state.connection.abandon(call, version) {
            state.asynchronous -= 1;
            self.flush_if_possible(&mut state);
        }
    }

    /// Sends until the socket takes no more.
    pub(super) fn send_some(&self, state: &mut Guard<'_>) {
        if let Some(acceptor) = self.acceptor() {
            return self.send_some_accepted(state, acceptor);
        }
        while state.transmit().pending_bytes() > 0 && state.end().is_none() {
            match net::send_now(&self.stream, state.transmit().poll_transmit()) {
                Ok(Moved::Bytes(count)) => state.transmit().transmitted(count),
                Ok(Moved::Nothing | Moved::End) => break,
                Err(_) => self.end(state, ConnectionEnd::Lost),
            }
        }
    }

    /// Sees to it that the receiver does what nobody else does on this connection: receive when there are calls
    /// without a thread and no caller receives; send what the socket has not taken.
    pub(super) fn attend(&self, state: &mut Guard<'_>) {
        if state.end().is_some() {
            return;
        }
        // Once it watches it goes on until it finds that another receives: calls that come one by one cost no
        // system call more.
        let readable = state.asynchronous > 0
            && (state.has_framer() || state.watched.is_some_and(|watched| watched.readable));
        let want = Watched { readable, writable: state.transmit().pending_bytes() > 0 };
        if state.watched == Some(want) || (state.watched.is_none() && want.flags().is_empty()) {
            return;
        }
        let watched = match state.watched {
            None => self.receiver.watch(self.number, &self.me, &self.stream, want.flags()),
            Some(_) if want.flags().is_empty() => return self.unwatch(state),
            Some(_) => self.receiver.watch_for(self.number, &self.stream, want.flags()),
        };
        match watched {
            Ok(()) => state.watched = Some(want),
            // Nobody would ever look: the calls must not wait for their deadlines.
            Err(_) => self.end(state, ConnectionEnd::Lost),
        }
    }

    pub(super) fn unwatch(&self, state: &mut Guard<'_>) {
        if state.watched.take().is_some() {
            self.receiver.unwatch(&self.stream);
        }
    }

    /// The receiver has seen something on the socket. Never waits. Gives what the receiver is to pass on when it
    /// has let go of the connection.
    pub(crate) fn on_ready(&self) -> Vec<Delivery> {
        let mut state = lock(&self.state);
        self.send_some(&mut state);
        let Some(mut framer) = state.take_framer() else {
            // A caller receives; it hands over when it is done.
            self.unwatch(&mut state);
            self.attend(&mut state);
            return Vec::new();
        };
        let result = net::receive_now(&self.stream, framer.space());
        let woken = self.take_input_now(&mut state, framer, result);
        let deliveries = self.take_answers(&mut state, woken);
        if state.end().is_some() {
            self.has_ended(&mut state);
        } else {
            self.attend(&mut state);
        }
        deliveries
    }

    /// Lets the receiver tell those who have asked: what they do must not be done under the connection's lock, nor
    /// by a thread that waits for an answer of its own.
    #[cold]
    pub(super) fn pass_on(&self, state: &mut Guard<'_>, woken: Woken) {
        let deliveries = self.take_answers(state, woken);
        if !deliveries.is_empty() {
            self.receiver.deliver(deliveries);
        }
    }

    fn take_answers(&self, state: &mut Guard<'_>, woken: Woken) -> Vec<Delivery> {
        state.asynchronous -= woken.0.len();
        woken.0.into_iter().map(|(call, id)| (call, state.poll_call(id))).collect()
    }
}
