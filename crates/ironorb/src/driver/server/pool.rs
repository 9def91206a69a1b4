//! One `epoll` for all connections that have no thread of their own. The server's threads wait on it.
//!
//! What a thread does with a ready connection is up to the concurrency models (`leader_followers`, `reactor`,
//! `hybrid`).

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::Shared;
use super::connection::Connection;
use super::lending::Lender;
use crate::base::lane::current_lane;
use crate::base::locks::LaneLock;
use crate::base::probe::{self, Stage};
use crate::driver::wakeable_epoll::timespec;
use crate::lane::Counters;

/// The `epoll` and the queue of connections that are ready without showing in it.
pub(super) struct Pool {
    epoll: OwnedFd,
    /// An eventfd, readable while `ready` is not empty, and for ever once the server stops.
    wake: OwnedFd,
    /// Connections with a request that arrived together with another one: no socket shows it.
    ready: LaneLock<VecDeque<Arc<Connection>>>,
    delivery: Delivery,
    counters: Arc<Counters>,
}

/// How the `epoll` reports a connection that has bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Once, to one thread, until it is armed again.
    Once,
    /// The `epoll` reports it as long as there are bytes. For one thread that takes all events.
    Always,
}

impl Delivery {
    fn flags(self) -> EventFlags {
        match self {
            Delivery::Once => EventFlags::IN | EventFlags::RDHUP | EventFlags::ONESHOT,
            Delivery::Always => EventFlags::IN | EventFlags::RDHUP,
        }
    }
}

const WAKE: u64 = u64::MAX;

impl Pool {
    pub(super) fn new(delivery: Delivery, counters: &Arc<Counters>) -> io::Result<Pool> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Pool { epoll, wake, ready: LaneLock::default(), delivery, counters: counters.clone() })
    }

    pub(super) fn add(&self, connection: &Arc<Connection>) -> io::Result<()> {
        let data = EventData::new_u64(connection.id);
        epoll::add(&self.epoll, &connection.stream, data, self.delivery.flags())?;
        self.leave(connection);
        Ok(())
    }

    /// Leaves a connection to the `epoll`. If it holds bytes that the `epoll` would not report, a thread
    /// looks at it at once and this returns true.
    pub(super) fn leave(&self, connection: &Arc<Connection>) -> bool {
        let is_ready = connection.stream.leave_to_epoll(true, false);
        if is_ready {
            self.push_ready(connection);
        }
        is_ready
    }

    /// Lets the `epoll` report the connection's next bytes.
    pub(super) fn rearm(&self, connection: &Arc<Connection>) {
        if self.leave(connection) && self.delivery == Delivery::Once {
            return;
        }
        let data = EventData::new_u64(connection.id);
        let _ = epoll::modify(&self.epoll, &connection.stream, data, self.delivery.flags());
    }

    /// Stops reporting bytes of a connection while the writer thread sends its replies.
    pub(super) fn leave_stalled(&self, connection: &Arc<Connection>) {
        if self.delivery == Delivery::Always {
            let data = EventData::new_u64(connection.id);
            let _ = epoll::modify(&self.epoll, &connection.stream, data, EventFlags::empty());
            if !connection.is_stalled() {
                self.rearm(connection); // the writer may have finished before that
            }
        }
    }

    /// Reports the connection again, after the writer thread has sent its replies.
    pub(super) fn bring_back(&self, connection: &Arc<Connection>) {
        if self.delivery == Delivery::Always {
            self.rearm(connection);
        }
        self.push_ready(connection);
    }

    /// Removes a connection from the `epoll`: another thread receives its bytes.
    pub(super) fn forget(&self, connection: &Connection) {
        let _ = epoll::delete(&self.epoll, &connection.stream);
    }

    /// Has one of the threads look for work on the connection.
    pub(super) fn push_ready(&self, connection: &Arc<Connection>) {
        let mut ready = self.ready.lock();
        ready.push_back(connection.clone());
        self.note_ready(&ready);
        drop(ready);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn pop_ready(&self) -> Option<Arc<Connection>> {
        let mut count = [0; 8];
        rustix::io::read(&self.wake, &mut count).ok()?;
        let mut ready = self.ready.lock();
        let next = ready.pop_front();
        self.note_ready(&ready);
        next
    }

    /// Gives `take` the connections that are ready now, at most so many, while `may_take` says so. Does not wait, and leaves alone what wakes
    /// threads that wait.
    pub(super) fn drain(
        &self,
        shared: &Shared,
        most: usize,
        may_take: impl Fn() -> bool,
        take: impl Fn(Arc<Connection>),
    ) {
        for _ in 0..most {
            if !may_take() {
                return;
            }
            let is_ready = !self.ready.lock().is_empty();
            let known = if is_ready { self.pop_ready() } else { None };
            match known.or_else(|| self.next_in_epoll(shared)) {
                Some(connection) => take(connection),
                None => return,
            }
        }
    }

    /// Waits until a connection is ready or a thread is to wake, at most this long, and leaves both to the next wait.
    pub(super) fn wait_until_ready(&self, limit: Duration) {
        let mut waited = [PollFd::new(&self.epoll, PollFlags::IN)];
        // What it ends with does not matter: who waited looks.
        let _ = poll(&mut waited, Some(&timespec(limit)));
    }

    /// Gives `take` the connections that are known to be ready without a look at the `epoll`, at most so many, while `may_take` says so.
    pub(super) fn drain_ready(
        &self,
        most: usize,
        may_take: impl Fn() -> bool,
        take: impl Fn(Arc<Connection>),
    ) {
        for _ in 0..most {
            if !may_take() || self.ready.lock().is_empty() {
                return;
            }
            let Some(connection) = self.pop_ready() else { return };
            take(connection);
        }
    }

    fn note_ready(&self, ready: &VecDeque<Arc<Connection>>) {
        let lane = self.counters.of(current_lane());
        lane.ready_connections.store(ready.len(), Ordering::Relaxed);
    }

    /// What lends the threads that wait here.
    pub(super) fn lender(&self) -> io::Result<Lender> {
        Lender::new(&self.wake)
    }

    /// Has one thread look elsewhere for work.
    pub(super) fn wake_to_look(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Wakes every thread repeatedly, until all have seen that the server stops.
    pub(super) fn wake_for_stop(&self) {
        let _ = rustix::io::write(&self.wake, &STOP_TOKENS.to_ne_bytes());
    }
}

/// The pause between checks whether the last request is done, while the server stops.
const STOP_PAUSE: std::time::Duration = std::time::Duration::from_millis(1);

/// More tokens than the threads can ever read.
const STOP_TOKENS: u64 = 1 << 32;

/// What a wait has ended with.
pub(super) enum Next {
    /// A connection is ready.
    Ready(Arc<Connection>),
    /// The thread was woken to look elsewhere.
    Look,
    /// The time is over.
    Late,
    /// The server has stopped and has no connection left.
    Over,
}

impl Pool {
    /// A connection that the `epoll` reports now.
    fn next_in_epoll(&self, shared: &Shared) -> Option<Arc<Connection>> {
        let mut space = [const { MaybeUninit::uninit() }; 2];
        let (events, _) = epoll::wait(&self.epoll, &mut space, Some(&timespec(Duration::ZERO))).ok()?;
        let mut found = None;
        for event in events {
            let id = event.data.u64();
            if id == WAKE {
                continue;
            }
            let Some(connection) = shared.connections.lock().get(&id).cloned() else { continue };
            let flags = event.flags;
            if flags.contains(EventFlags::RDHUP) {
                connection.session.handle_client_gone();
            }
            match found {
                None => found = Some(connection),
                Some(_) => self.push_ready(&connection), // it is reported once
            }
        }
        found
    }
}

/// Waits for a connection that is ready; `None` when the server has stopped and has no connection left.
pub(super) fn next(shared: &Shared, pool: &Pool) -> Option<Arc<Connection>> {
    loop {
        match next_within(shared, pool, None) {
            Next::Ready(connection) => return Some(connection),
            Next::Look | Next::Late => {}
            Next::Over => return None,
        }
    }
}

/// Waits for a connection that is ready, within this time if there is a limit.
pub(super) fn next_within(shared: &Shared, pool: &Pool, limit: Option<Duration>) -> Next {
    let limit = limit.map(timespec);
    let mut space = [const { MaybeUninit::uninit() }; 1];
    loop {
        if shared.is_stopping() && shared.connections.lock().is_empty() {
            return Next::Over;
        }
        let probe = probe::enter(Stage::Wait);
        let Ok((events, _)) = epoll::wait(&pool.epoll, &mut space, limit.as_ref()) else {
            continue; // interrupted
        };
        drop(probe);
        let mut is_late = limit.is_some();
        for event in events {
            is_late = false;
            match event.data.u64() {
                WAKE => {
                    if let Some(connection) = pool.pop_ready() {
                        return Next::Ready(connection);
                    }
                    if shared.is_stopping() {
                        // The token meant only that the server stops. The connections' own events report the
                        // rest.
                        std::thread::sleep(STOP_PAUSE);
                    }
                    return Next::Look;
                }
                id => {
                    let found = shared.connections.lock().get(&id).cloned();
                    if let Some(connection) = found {
                        let flags = event.flags;
                        if flags.contains(EventFlags::RDHUP) {
                            connection.session.handle_client_gone();
                        }
                        return Next::Ready(connection);
                    }
                }
            }
        }
        if is_late {
            return Next::Late;
        }
    }
}
