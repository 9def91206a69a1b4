//! The one thread of a server that sends to peers which do not read at once. It serves no request and never
//! waits for one peer.
//!
//! A connection comes here with the bytes that its socket does not take, so that the thread which wrote them
//! can go on. While it is here, the pool's threads take none of its requests. The thread starts with the
//! first such connection and ends with the server.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::event::epoll::EventFlags;

use super::Shared;
use super::connection::Connection;
use super::poll_thread::PollThread;
use crate::base::spawner::ThreadClass;
use crate::base::time::Time;
use crate::connection::Stall;
use crate::driver::clock;
use crate::transport;

/// The thread, and the way to it.
#[derive(Debug)]
pub(super) struct Writer {
    thread: PollThread,
}

/// A connection whose peer does not read.
struct Stalled {
    connection: Arc<Connection>,
    stall: Stall,
    /// The `epoll` reports room. Not so for shared memory: all threads share its socket as a bell, and a
    /// receiving thread may take the bell's bytes first.
    is_watched: bool,
    /// The pause between looks where the `epoll` reports nothing.
    pause: Duration,
    /// When to look next if the `epoll` reports nothing before.
    look_at: Time,
}

/// The shortest and the longest pause between looks for room in shared memory. A ring of 256 KiB that is
/// emptied at each look carries 256 MB/s.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(64);

impl Writer {
    pub(super) fn new() -> Arc<Writer> {
        Arc::new(Writer { thread: PollThread::new("ironorb-writer", ThreadClass::Writer, true) })
    }

    /// Has the thread look at a connection whose bytes wait. Takes no lock of a connection: the caller holds
    /// one. On an error no thread sends the bytes.
    pub(super) fn add(self: &Arc<Self>, server: &Arc<Shared>, connection: Arc<Connection>) -> io::Result<()> {
        let (writer, server) = (self.clone(), Arc::downgrade(server));
        self.thread.give(connection, move || writer.run(&server))
    }

    /// Lets the thread end as soon as no connection is stalled.
    pub(super) fn stop(&self) {
        self.thread.stop();
    }

    fn run(&self, server: &Weak<Shared>) {
        let mut stalled: BTreeMap<u64, Stalled> = BTreeMap::new();
        let mut ready = Vec::new();
        while let Some(newcomers) = self.thread.newcomers(stalled.is_empty()) {
            let now = clock::now();
            for connection in newcomers {
                match stalled.entry(connection.id) {
                    // More has been written.
                    Entry::Occupied(mut it) => it.get_mut().look_at = now,
                    Entry::Vacant(place) => {
                        place.insert(self.begin(connection, now));
                    }
                }
            }
            let next = stalled.values().map(|it| it.look_at).min();
            self.thread.wait(next.map(|at| at.since(now)), &mut ready);
            let now = clock::now();
            ready.extend(stalled.iter().filter(|(_, it)| it.look_at <= now).map(|(id, _)| id));
            for id in ready.drain(..) {
                if let Some(it) = stalled.get_mut(&id)
                    && it.look(now)
                    && let Some(it) = stalled.remove(&id)
                {
                    self.end(it, server);
                }
            }
        }
    }

    fn begin(&self, connection: Arc<Connection>, now: Time) -> Stalled {
        let is_watched =
            connection.stream.readiness_shows() && self.thread.watch(&connection, EventFlags::OUT).is_ok();
        Stalled { connection, stall: Stall::default(), is_watched, pause: PAUSE_MIN, look_at: now }
    }

    fn end(&self, stalled: Stalled, server: &Weak<Shared>) {
        if stalled.is_watched {
            self.thread.forget(&stalled.connection);
        }
        if let Some(server) = server.upgrade() {
            server.bring_back(&stalled.connection);
        }
    }
}

impl Stalled {
    /// Sends what the peer takes. True when nothing is left to send.
    fn look(&mut self, now: Time) -> bool {
        if !self.is_watched {
            // Checks whether the peer is gone. Shared memory does not show it.
            let _ = transport::wait_writable(&self.connection.stream, Some(Duration::ZERO));
        }
        let sent_before = self.stall.position();
        let Some(given_up_at) = self.connection.send_stalled(&mut self.stall, now) else { return true };
        self.look_at = given_up_at;
        if !self.is_watched {
            let has_moved = self.stall.position() != sent_before;
            self.pause = if has_moved { PAUSE_MIN } else { (2 * self.pause).min(PAUSE_MAX) };
            self.look_at = given_up_at.min(now + self.pause);
        }
        false
    }
}
