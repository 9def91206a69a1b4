//! Requests whose bodies leave from where they lie: header and body go to the socket with one call, and only what it does
//! not take is copied, to wait in the connection's buffer like everything else.

use std::io::IoSlice;
use std::time::Instant;

use ironorb_giop::connection::{ConnectionEnd, RequestOptions};
use ironorb_giop::message::{Message, RequestTarget, Response};

use super::{Guard, Link};
use crate::client::lent::{Begun, LENT_BYTES_MIN, LentBody};
use crate::deadline::{Deadline, Passed};
use crate::invocation::CallFailure;
use crate::net::{self, Moved};

impl Link {
    /// Sends a request and waits for its answer.
    pub(crate) fn call_lending(
        &self,
        target: &RequestTarget,
        options: RequestOptions<'_>,
        operation: &str,
        body: &dyn LentBody,
        now: Instant,
        deadline: Deadline,
    ) -> Result<Message, CallFailure> {
        let mut clock = self.clock(now);
        let mut state = self.wait_for_room(&mut clock, deadline)?;
        let call = match self.begin_lending(&mut state, target, options, operation, body)?.call {
            Some(call) => call,
            // Asked for a reply, a request has one.
            None => return Err(CallFailure::TooManyCalls),
        };
        self.finish_call(state, call, || target.version(), clock, deadline)
    }

    /// Sends a request that wants no reply.
    pub(crate) fn oneway_lending(
        &self,
        target: &RequestTarget,
        options: RequestOptions<'_>,
        operation: &str,
        body: &dyn LentBody,
        now: Instant,
        deadline: Deadline,
    ) -> Result<(), CallFailure> {
        let mut clock = self.clock(now);
        let mut state = self.wait_for_room(&mut clock, deadline)?;
        let begun = self.begin_lending(&mut state, target, options, operation, body)?;
        let ends_at = state.transmit().end_position();
        self.finish_oneway(state, begun.begins_at..ends_at, clock, deadline)
    }

    /// Writes a request, or sends as much of it as the socket takes.
    fn begin_lending(
        &self,
        state: &mut Guard<'_>,
        target: &RequestTarget,
        options: RequestOptions<'_>,
        operation: &str,
        body: &dyn LentBody,
    ) -> Result<Begun, CallFailure> {
        let begins_at = state.transmit().end_position();
        let encoding = state.encoding_for(target);
        if self.acceptor().is_none()
            && let Some(body_bytes) = body.prepare(encoding).map_err(CallFailure::Misuse)?
            && body_bytes >= LENT_BYTES_MIN
            && state.may_lend(target, body_bytes)
        {
            let call = state.begin_lent(target, operation, options, body_bytes)?;
            body.lend(&mut |pieces| self.send_lent(state, pieces));
            return Ok(Begun { call, begins_at });
        }
        let call = match options.response {
            Response::None => {
                state.begin_oneway_with(target, operation, options.contexts, |w| body.write(w))?;
                None
            }
            _ => Some(state.begin_request(target, operation, options, |w| body.write(w))?),
        };
        Ok(Begun { call, begins_at })
    }

    fn send_lent(&self, state: &mut Guard<'_>, pieces: &[&[u8]]) {
        let transmit = state.transmit();
        let header = [transmit.poll_transmit()];
        let slices: Vec<IoSlice<'_>> = header.iter().chain(pieces).map(|piece| IoSlice::new(piece)).collect();
        let sent = net::send_pieces_now(&self.stream, &slices);
        let count = if let Ok(Moved::Bytes(count)) = sent { count } else { 0 };
        transmit.sent_lent(count, pieces);
        if sent.is_err() {
            self.end(state, ConnectionEnd::Lost);
        }
    }

    /// Sends what is left of a oneway.
    #[inline(always)] // a step of every oneway
    pub(super) fn finish_oneway(
        &self,
        state: Guard<'_>,
        position: std::ops::Range<u64>,
        mut clock: super::Clock,
        deadline: Deadline,
    ) -> Result<(), CallFailure> {
        let mut state = self
            .flush(state, &mut clock, deadline)
            .map_err(|Passed| CallFailure::TimedOut { written: true })?;
        let sent_position = state.transmit().sent_position();
        match state.end() {
            Some(end) if sent_position < position.end => {
                Err(CallFailure::ended(end, sent_position > position.start))
            }
            _ => Ok(()),
        }
    }
}
