//! Gather writes: long runs of bytes leave from the caller's memory. The socket gets the header, the run and
//! what follows with one system call. Only what it does not take in time is copied to the connection's
//! buffer. Other threads may use the connection whenever the gather write waits, but what they write leaves
//! behind it.

use std::io::IoSlice;
use std::mem;

use ironorb_giop::connection::{ConnectionEnd, GatherMessage, NotWhole};

use super::{Clock, Guard, Link, Queued};
use crate::base::probe;
use crate::call::invocation::CallFailure;
use crate::driver::clock;
use crate::driver::invoke::Arguments;
use crate::object::deadline::{Deadline, Passed};
use crate::transport::{self, Moved};

impl Link {
    /// Sends a request of which some bytes stay in the caller's memory.
    #[cold]
    pub(super) fn send_gather<'l, C>(
        &'l self,
        mut state: Guard<'l>,
        request: NotWhole<C>,
        arguments: Arguments<'_>,
        clock: &mut Clock,
        deadline: Deadline,
    ) -> Result<Queued<'l, C>, CallFailure> {
        let (call, mut message) = match request {
            NotWhole::Gather(call, message) => (call, message),
            NotWhole::Sparse(call, message) => (call, state.transmit().gather_sparse(message)),
            NotWhole::Failed(e) => return Err(e.into()),
        };
        // The server sends what goes over an accepted connection.
        let mode = if self.is_accepted() { Mode::Copy } else { Mode::Send };
        let mut sending =
            Sending { link: self, state: Some(state), clock, deadline, mode, unsent: Vec::new() };
        let handed_over = message.write_unsent(arguments, &mut |pieces| sending.send(pieces));
        let (mut state, ends_at) = sending.end(message);
        if let Err(misuse) = handed_over {
            self.end(&mut state, ConnectionEnd::Lost);
            return Err(CallFailure::Misuse(misuse));
        }
        Ok(Queued { state, call, ends_at })
    }

    /// Sends a gather write at once, if no other thread uses the connection and the socket takes all of it.
    /// On an error [`send_gather`](Self::send_gather) is to send the rest.
    #[inline(never)]
    pub(super) fn send_gather_if_idle<C>(
        &self,
        state: &mut Guard<'_>,
        request: NotWhole<C>,
        arguments: Arguments<'_>,
    ) -> Result<C, NotWhole<C>> {
        let (call, message) = match request {
            NotWhole::Sparse(call, message) => (call, message),
            other => return Err(other),
        };
        let writing = Writing { link: self, state };
        let sent = writing.state.transmit().send_sparse(message, arguments, &mut |pieces| {
            match transport::send_pieces_now(&self.stream, &pieces.map(IoSlice::new)) {
                Ok(Moved::Bytes(count)) => count,
                // An error shows again at the next attempt.
                Ok(Moved::Nothing | Moved::End) | Err(_) => 0,
            }
        });
        mem::forget(writing);
        match sent {
            Ok(()) => Ok(call),
            Err(message) => Err(NotWhole::Gather(call, message)),
        }
    }

    /// Waits until the gather write of another thread is done, or has sent all up to the stream position
    /// `wanted`.
    #[cold]
    pub(super) fn wait_for_gather<'l>(
        &'l self,
        mut state: Guard<'l>,
        wanted: u64,
        clock: &mut Clock,
        deadline: Deadline,
    ) -> Result<Guard<'l>, Passed> {
        while state.transmit().is_gathering()
            && state.transmit().sent_position() < wanted
            && state.end().is_none()
        {
            let left = deadline.remaining(clock::now())?;
            state.waiting_for_gather += 1;
            state = match left {
                None => self.changed.wait(state),
                Some(left) => self.changed.wait_for(state, left).0,
            };
            state.waiting_for_gather -= 1;
            clock.has_waited();
        }
        Ok(state)
    }

    /// Wakes the threads that wait for the gather write after it has made progress.
    fn wake_queued(&self, state: &Guard<'_>) {
        if state.waiting_for_gather > 0 {
            self.changed.notify_all();
        }
    }
}

/// Guards a request whose arguments are written while it is sent. If writing them panics, the drop ends the
/// connection, for the number of bytes sent is then unknown.
struct Writing<'l, 'g, 's> {
    link: &'l Link,
    state: &'s mut Guard<'g>,
}

impl Drop for Writing<'_, '_, '_> {
    fn drop(&mut self) {
        self.link.end(self.state, ConnectionEnd::Lost);
    }
}

/// The state of one gather write. If writing the arguments panics, the drop ends the connection, for the
/// stream can carry nothing else.
struct Sending<'l, 'c> {
    link: &'l Link,
    /// `None` once the write has ended.
    state: Option<Guard<'l>>,
    clock: &'c mut Clock,
    deadline: Deadline,
    mode: Mode,
    unsent: Vec<u8>,
}

/// What happens to the pieces of the message.
#[derive(PartialEq, Eq)]
enum Mode {
    Send,
    /// The pieces are copied: there is no time left, or no socket.
    Copy,
    /// The connection has ended.
    Drop,
}

impl<'l> Sending<'l, '_> {
    fn send(&mut self, pieces: &[&[u8]]) {
        let mut slices = [IoSlice::new(&[]); transport::PIECES_MAX];
        slices.iter_mut().zip(pieces).for_each(|(slice, piece)| *slice = IoSlice::new(piece));
        let mut left = &mut slices[..];
        IoSlice::advance_slices(&mut left, 0); // removes empty slices
        while !left.is_empty() && self.mode == Mode::Send {
            let Some(mut state) = self.state.take() else { return };
            match transport::send_pieces_now(&self.link.stream, left) {
                Ok(Moved::Bytes(count)) => {
                    state.transmit().gather_transmitted(count);
                    self.link.wake_queued(&state);
                    IoSlice::advance_slices(&mut left, count);
                }
                Ok(Moved::Nothing | Moved::End) => {
                    let waited;
                    (state, waited) = self.link.wait_for_socket(state, self.clock, self.deadline);
                    if waited.is_err() {
                        self.mode = Mode::Copy;
                    }
                }
                Err(_) => state = self.link.lose(state),
            }
            if state.end().is_some() {
                self.mode = Mode::Drop;
            }
            self.state = Some(state);
        }
        if self.mode == Mode::Copy {
            let _probe = probe::copying(left.iter().map(|piece| piece.len()).sum());
            left.iter().for_each(|piece| self.unsent.extend_from_slice(piece));
        }
    }

    /// Ends the write of the message. Also returns the stream position at which the message ends.
    fn end(mut self, message: GatherMessage) -> (Guard<'l>, u64) {
        let mut state = self.state.take().unwrap_or_else(|| self.link.state.lock());
        let ends_at = state.transmit().sent_position() + self.unsent.len() as u64;
        state.transmit().end_gather(message, mem::take(&mut self.unsent));
        self.link.wake_queued(&state);
        self.link.settle_after_gather(&mut state);
        (state, ends_at)
    }
}

impl Drop for Sending<'_, '_> {
    fn drop(&mut self) {
        if let Some(mut state) = self.state.take() {
            self.link.end(&mut state, ConnectionEnd::Lost);
            self.link.wake_queued(&state);
        }
    }
}
