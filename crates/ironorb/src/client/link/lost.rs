//! A send has failed: the peer takes nothing more. What it has said before counts all the same, above all a goodbye, after
//! which what it has not answered may be asked again. Never waits for more to come.

use ironorb_giop::connection::ConnectionEnd;

use super::{Guard, Link};
use crate::net::{self, Moved};
use crate::sync::lock;

/// How often another thread that receives is let go first. It is awake, since the peer has gone: it needs the processor and
/// the lock, and no more.
const LOOKS_MAX: usize = 64;

impl Link {
    /// Ends the connection for a caller that can let go of it meanwhile.
    #[cold]
    pub(super) fn lose<'l>(&'l self, mut state: Guard<'l>) -> Guard<'l> {
        for _ in 0..LOOKS_MAX {
            self.drain_received(&mut state);
            if state.end().is_some() {
                return state;
            }
            drop(state);
            std::thread::yield_now();
            state = lock(&self.state);
        }
        self.end(&mut state, ConnectionEnd::Lost);
        state
    }

    /// The same under the lock.
    #[cold]
    pub(super) fn lose_now(&self, state: &mut Guard<'_>) {
        self.drain_received(state);
        if state.end().is_none() {
            self.end(state, ConnectionEnd::Lost);
        }
    }

    /// Takes what has come, if nobody else does.
    fn drain_received(&self, state: &mut Guard<'_>) {
        while state.end().is_none()
            && let Some(mut framer) = state.take_framer()
        {
            let result = net::receive_now(&self.stream, framer.space());
            let has_come = matches!(result, Ok(Moved::Bytes(_)));
            self.take_input(state, framer, result);
            if !has_come {
                return;
            }
        }
    }
}
