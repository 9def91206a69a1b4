//! The end of a connection after a send has failed: the peer takes nothing more. What the peer has sent
//! before still counts, above all a `CloseConnection` message: requests that it has not answered may then be
//! sent again. Never waits for more bytes.

use ironorb_giop::connection::ConnectionEnd;

use super::{Guard, Link};
use crate::transport::{self, Moved};

/// How often the thread that receives is let go first. That thread is awake, since the peer has gone: it
/// needs only the processor and the lock.
const LOOKS_MAX: usize = 64;

impl Link {
    /// Ends the connection. Releases the lock in between, so that the thread that receives can finish.
    #[cold]
    pub(super) fn lose<'l>(&'l self, mut state: Guard<'l>) -> Guard<'l> {
        for _ in 0..LOOKS_MAX {
            self.drain_received(&mut state);
            if state.end().is_some() {
                return state;
            }
            drop(state);
            std::thread::yield_now();
            state = self.state.lock();
        }
        self.end(&mut state, ConnectionEnd::Lost);
        state
    }

    /// Ends the connection without releasing the lock.
    #[cold]
    pub(super) fn lose_now(&self, state: &mut Guard<'_>) {
        self.drain_received(state);
        if state.end().is_none() {
            self.end(state, ConnectionEnd::Lost);
        }
    }

    /// Takes the bytes that have come, if no other thread receives.
    fn drain_received(&self, state: &mut Guard<'_>) {
        while state.end().is_none()
            && let Some(mut framer) = state.take_framer()
        {
            let result = transport::receive_now(&self.stream, framer.space());
            let has_come = matches!(result, Ok(Moved::Bytes(_)));
            self.take_input(state, framer, result);
            if !has_come {
                return;
            }
        }
    }
}
