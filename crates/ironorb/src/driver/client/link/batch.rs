//! Batches of oneways that leave together by one system call. They wait in the connection's buffer, like all
//! requests. So the next send takes them along, and their order is that of the calls.
//!
//! Adding a oneway to a batch costs only the marshalling: no clock, no deadline, and no look at the socket.
//! The first oneway of a batch and the thread that sends it pay for those.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ironorb_giop::connection::NotWhole;
use ironorb_giop::message::{OperationName, RequestTarget};

use super::{Clock, Guard, LOOK_AFTER_NS, Link};
use crate::base::config::OnewayBatching;
use crate::base::time::Time;
use crate::call::invocation::CallFailure;
use crate::connection::BatchDue;
use crate::driver::clock;
use crate::driver::invoke::Arguments;
use crate::lane::Event;
use crate::object::deadline::{Deadline, Passed};

/// The result of adding a oneway to a batch.
#[derive(Debug)]
pub(crate) enum Added {
    Waits,
    /// The batch was sent at once, or sending it has failed.
    Done(Result<(), CallFailure>),
    /// Nothing was written: the oneway must take the general path.
    NotHere,
}

impl Link {
    /// Adds a oneway to those that wait. `deadline` returns how long the call may wait if it has to send the
    /// batch; `None` when it may not wait.
    #[inline]
    pub(crate) fn add_oneway(
        &self,
        target: &RequestTarget,
        operation: OperationName<'_>,
        arguments: Arguments<'_>,
        batching: &OnewayBatching,
        deadline: impl FnOnce(Time) -> Option<Deadline>,
    ) -> Added {
        let mut state = self.state.lock();
        let pending_bytes = state.transmit().pending_bytes();
        let is_due_sooner = state.batch.is_overtaken(batching);
        if (pending_bytes == 0 || is_due_sooner || !self.has_room(pending_bytes))
            && !self.may_begin(&mut state, pending_bytes, batching)
        {
            return Added::NotHere;
        }
        let begins_at = state.transmit().end_position();
        if let Err(request) = state.begin_plain_oneway(target, operation, arguments) {
            return self.add_gather(state, begins_at, request, arguments, deadline);
        }
        let pending_bytes = state.transmit().pending_bytes();
        if state.batch.is_full(pending_bytes, batching) {
            return Added::Done(self.send_batch(state, begins_at, deadline));
        }
        state.hold();
        Added::Waits
    }

    /// Lets a oneway wait that has been written like any other request. `is_first` says that none was
    /// waiting. False when it must be sent now.
    #[cold]
    pub(super) fn hold_oneway(
        &self,
        state: &mut Guard<'_>,
        is_first: bool,
        batching: &OnewayBatching,
    ) -> bool {
        if is_first {
            state.batch.start();
        }
        let pending_bytes = state.transmit().pending_bytes();
        let is_full = state.batch.is_full(pending_bytes, batching);
        if is_full || self.is_accepted() || state.end().is_some() || state.transmit().is_gathering() {
            return false;
        }
        let may_wait =
            !(is_first || state.batch.is_overtaken(batching)) || self.set_due(state, clock::now(), batching);
        if may_wait {
            state.hold();
        }
        may_wait
    }

    /// Begins a batch, or brings its due time forward, or checks for too many pending bytes. False when the
    /// oneway cannot wait on this connection, or the connection must be checked first.
    #[cold]
    fn may_begin(&self, state: &mut Guard<'_>, pending_bytes: usize, batching: &OnewayBatching) -> bool {
        let ticked = clock::coarse();
        let idle_ns = ticked.as_nanos().saturating_sub(self.used_ns.load(Ordering::Relaxed));
        if self.is_accepted()
            || self.ended.load(Ordering::Relaxed)
            || idle_ns > LOOK_AFTER_NS
            || !self.has_room(pending_bytes)
        {
            return false;
        }
        self.used_ns.store(ticked.as_nanos(), Ordering::Relaxed);
        if pending_bytes == 0 {
            state.batch.start();
        }
        self.set_due(state, clock::now(), batching)
    }

    /// Has the receiver send the batch in time. False when no receiver thread can be started.
    fn set_due(&self, state: &mut Guard<'_>, now: Time, batching: &OnewayBatching) -> bool {
        let Some(at) = state.batch.set_due(now, batching) else { return true };
        if self.receiver.start().is_err() {
            state.batch.cannot_be_timed();
            return false;
        }
        self.receiver.flush_at(at, &self.me);
        true
    }

    /// Sends a oneway by a gather write, at once and behind all that waits.
    #[cold]
    fn add_gather<'l>(
        &'l self,
        state: Guard<'l>,
        begins_at: u64,
        request: NotWhole<()>,
        arguments: Arguments<'_>,
        deadline: impl FnOnce(Time) -> Option<Deadline>,
    ) -> Added {
        let now = clock::now();
        let deadline = deadline(now);
        // A call that may not wait leaves pending what the socket does not take.
        let until = deadline.unwrap_or(Deadline::NEVER.at_most(now, Duration::ZERO));
        let sent = self
            .send_gather(state, request, arguments, &mut Clock(now), until)
            .and_then(|written| self.send_batch(written.state, begins_at, |_| deadline));
        Added::Done(sent)
    }

    /// Sends all that is pending. The result is that of the last request, which begins at `begins_at`.
    #[cold]
    fn send_batch<'l>(
        &'l self,
        mut state: Guard<'l>,
        begins_at: u64,
        deadline: impl FnOnce(Time) -> Option<Deadline>,
    ) -> Result<(), CallFailure> {
        let now = clock::now();
        self.used_ns.store(clock::coarse().as_nanos(), Ordering::Relaxed);
        let ends_at = state.transmit().end_position();
        self.send_some(&mut state);
        if state.transmit().pending_bytes() > 0 && state.end().is_none() {
            match deadline(now) {
                Some(deadline) => {
                    state = self
                        .flush_to(state, ends_at, &mut Clock(now), deadline)
                        .map_err(|Passed| CallFailure::TimedOut { written: true })?;
                }
                None => self.engage_receiver(&mut state),
            }
        }
        let sent_position = state.transmit().sent_position();
        match state.end() {
            Some(end) if sent_position < ends_at => Err(CallFailure::ended(end, sent_position > begins_at)),
            _ => Ok(()),
        }
    }

    /// Sends everything that is pending, and waits until the socket has taken it.
    pub(crate) fn flush_all(&self, now: Time, deadline: Deadline) -> Result<(), CallFailure> {
        let mut state = self.state.lock();
        state.async_replies.have_been_sent();
        match self.flush(state, &mut Clock(now), deadline) {
            // `lost_oneways` reports what is lost with its connection.
            Ok(_) => Ok(()),
            Err(Passed) => Err(CallFailure::TimedOut { written: true }),
        }
    }

    /// Sends as much of what is pending as the socket takes at once.
    pub(crate) fn flush_now(&self) {
        let mut state = self.state.lock();
        if state.transmit().pending_bytes() > 0 && state.end().is_none() {
            self.send_some(&mut state);
            self.engage_receiver(&mut state);
        }
    }

    /// Sends what the socket takes at once, before the link is dropped.
    pub(super) fn send_last(&self) {
        let mut state = self.state.lock();
        if state.transmit().pending_bytes() > 0 && state.end().is_none() {
            self.send_some(&mut state);
        }
    }

    /// Sends the batch if it is due, on the receiver's thread.
    pub(crate) fn on_flush_due(&self) {
        let mut state = self.state.lock();
        let now = clock::now();
        let sent_position = state.transmit().sent_position();
        let waits = state.batch.waits(sent_position) && state.end().is_none();
        let BatchDue { is_sent, again_at } = state.batch.on_time(waits, now);
        if is_sent {
            self.send_some(&mut state);
            self.engage_receiver(&mut state);
        }
        match again_at.filter(|_| state.end().is_none()) {
            Some(at) => self.receiver.flush_at(at, &self.me),
            None => state.batch.cannot_be_timed(),
        }
    }

    /// Counts the oneways that were still unsent when the connection ended.
    #[cold]
    pub(super) fn count_lost(&self, state: &mut Guard<'_>) {
        let sent_position = state.transmit().sent_position();
        let lost = state.batch.take_lost(sent_position);
        if lost > 0 {
            self.lost_oneways.fetch_add(lost, Ordering::Relaxed);
            self.count_many(Event::OnewayLost, lost as u64);
        }
    }
}

impl super::LinkState {
    /// Counts one more oneway that waits.
    #[inline]
    fn hold(&mut self) {
        self.batch.add(self.connection.transmit().end_position());
        self.async_replies.add_held();
    }
}
