//! A thread that moves bytes of many connections and never waits for one of them. Serves no request, and
//! decides nothing about the connections.

use std::io;
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::connection::Connection;
use crate::base::lane::{LaneId, current_lane};
use crate::base::locks::LaneLock;
use crate::base::spawner::{NewThread, ThreadClass};
use crate::driver::wakeable_epoll::{WAKE, WakeableEpoll};

/// What the thread shares with the threads that give it connections. The thread starts with the first
/// connection. It ends when it has none, or in a thread that `stays` only after the server has stopped.
#[derive(Debug)]
pub(super) struct PollThread {
    name: &'static str,
    class: ThreadClass,
    lane: LaneId,
    /// Woken when there is a newcomer.
    sockets: OnceLock<WakeableEpoll>,
    state: LaneLock<State>,
}

#[derive(Debug)]
struct State {
    newcomers: Vec<Arc<Connection>>,
    is_running: bool,
    stays: bool,
}

impl PollThread {
    /// A thread of the calling thread's lane.
    pub(super) fn new(name: &'static str, class: ThreadClass, stays: bool) -> PollThread {
        let state = State { newcomers: Vec::new(), is_running: false, stays };
        PollThread {
            name,
            class,
            lane: current_lane(),
            sockets: OnceLock::new(),
            state: LaneLock::new(state),
        }
    }

    /// Lets the thread end when it has no connection.
    pub(super) fn stop(&self) {
        self.state.lock().stays = false;
        self.wake();
    }

    /// Gives the thread a connection. If the thread does not run, starts it with `run`, which lasts until
    /// [`newcomers`](Self::newcomers) returns `None`.
    pub(super) fn give(
        &self,
        connection: Arc<Connection>,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        if self.sockets.get().is_none() {
            let _ = self.sockets.set(WakeableEpoll::new()?);
        }
        let mut state = self.state.lock();
        if !state.is_running {
            NewThread::new(self.name, self.class).in_lane(self.lane).spawn(run)?;
            state.is_running = true;
        }
        state.newcomers.push(connection);
        drop(state);
        self.wake();
        Ok(())
    }

    fn wake(&self) {
        if let Some(sockets) = self.sockets.get() {
            sockets.wake();
        }
    }

    /// The connections that the thread has been given since the last call. `None` when the thread has none and
    /// ends.
    pub(super) fn newcomers(&self, is_idle: bool) -> Option<Vec<Arc<Connection>>> {
        let mut state = self.state.lock();
        if is_idle && state.newcomers.is_empty() && !state.stays {
            state.is_running = false;
            return None;
        }
        Some(std::mem::take(&mut state.newcomers))
    }

    /// Has [`wait`](Self::wait) report a connection while one of these events is there.
    pub(super) fn watch(&self, connection: &Connection, events: EventFlags) -> io::Result<()> {
        let Some(sockets) = self.sockets.get() else { return Ok(()) };
        Ok(epoll::add(&sockets.epoll, &connection.stream, EventData::new_u64(connection.id), events)?)
    }

    pub(super) fn forget(&self, connection: &Connection) {
        if let Some(sockets) = self.sockets.get() {
            let _ = epoll::delete(&sockets.epoll, &connection.stream);
        }
    }

    /// Waits until a connection has an event, there is a newcomer, or the timeout has passed. Adds the ids of
    /// connections that have events.
    pub(super) fn wait(&self, timeout: Option<Duration>, ready: &mut Vec<u64>) {
        let Some(sockets) = self.sockets.get() else { return };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut space = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let Ok((events, _)) = epoll::wait(&sockets.epoll, &mut space, timeout.as_ref()) else {
            return; // interrupted
        };
        for event in events {
            match event.data.u64() {
                WAKE => sockets.clear(),
                id => ready.push(id),
            }
        }
    }
}

/// The most events taken from one wait.
const EVENTS_MAX: usize = 64;
