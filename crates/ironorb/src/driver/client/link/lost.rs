//! The end of a connection after a send has failed: the peer takes nothing more. What the peer has sent
//! before still counts, above all a `CloseConnection` message: requests that it has not answered may then be
//! sent again. Never waits for more bytes.

use std::time::Duration;

use ironorb_giop::connection::ConnectionEnd;

use super::{Guard, Link};
use crate::transport::{self, Moved};

/// For how long the thread that receives is let go first. That thread is awake, since the peer has gone: it needs only the
/// processor and the lock. It tells when it has found the end; a look in between finds what it has left.
const LOOKS_MAX: usize = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

impl Link {
    /// Ends the connection. If another thread receives, it waits for a moment without the lock, so that that one can finish.
    #[cold]
    pub(super) fn lose<'l>(&'l self, mut state: Guard<'l>) -> Guard<'l> {
        for _ in 0..LOOKS_MAX {
            // The system tells of a peer that has gone after all that it has sent.
            let has_all = self.drain_received(&mut state);
            if state.end().is_some() {
                return state;
            }
            if has_all {
                break;
            }
            state = self.changed.wait_for(state, BETWEEN_LOOKS).0;
        }
        if state.end().is_none() {
            self.end(&mut state, ConnectionEnd::Lost);
        }
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

    /// Takes the bytes that have come, if no other thread receives: true then.
    fn drain_received(&self, state: &mut Guard<'_>) -> bool {
        while state.end().is_none()
            && let Some(mut framer) = state.take_framer()
        {
            let result = transport::receive_now(&self.stream, framer.space());
            let has_come = matches!(result, Ok(Moved::Bytes(_)));
            self.take_input(state, framer, result);
            if !has_come {
                return true;
            }
        }
        false
    }
}
