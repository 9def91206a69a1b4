//! Few threads for connections at rest, and a thread for each that is busy.
//!
//! Connections at rest lie in one `epoll` and own no buffers. A thread that finds one with bytes keeps to it: it receives,
//! runs the servant and answers, as in `thread_per_connection`, until nothing has come for a while. Then the connection
//! lies down again. One thread waits for all the others; when it leaves, another is started, up to a limit. At the limit
//! threads serve one request and return to waiting, so that no connection starves behind those that are kept.
//!
//! The limit is that of `threads`: it counts all threads of the server, also those that help a connection whose servant
//! blocks and those that wait for a client to read.
//!
//! The first connections, up to a part of that limit, have threads of their own while they last, as in
//! `thread_per_connection`: where there are only few, to lie down and get up again saves nothing, and timers of sockets take a
//! call 0.15 us.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::connection::{Connection, CurrentRequest, Nothing};
use super::pool::{self, Pool};
use super::{Shared, blocked_servant_monitor};
use crate::sync::lock;

/// How long a thread keeps to a connection from which nothing comes.
pub(super) const KEPT_FOR: Duration = Duration::from_millis(100);

/// Threads that stay to wait when there is nothing to do: as many connections can become busy at once without a thread
/// being made.
const WAITING_MAX: usize = 4;

/// How many connections have threads of their own, in a hybrid of so many threads.
pub(super) fn dedicated_max(threads_max: usize) -> usize {
    threads_max / DEDICATED_ONE_IN
}

const DEDICATED_ONE_IN: usize = 32;

/// What the threads of a hybrid have in common that serve any connection.
#[derive(Debug, Default)]
pub(super) struct HybridPool {
    /// Threads that wait for any connection, or are about to. Falls to nothing only at the limit.
    waiting: AtomicUsize,
    /// Connections that have threads, and how many, for the watcher.
    kept: Mutex<HashMap<u64, (Arc<Connection>, usize)>>,
}

/// Starts the first thread. One of them is always there: a thread ends only when others wait.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let Some(hybrid_pool) = &shared.hybrid_pool else { return Ok(()) };
    hybrid_pool.waiting.fetch_add(1, Ordering::SeqCst);
    hybrid_pool.start_thread(shared)
}

impl HybridPool {
    /// Connections that have a thread.
    pub(super) fn kept(&self) -> impl Iterator<Item = Arc<Connection>> {
        lock(&self.kept).values().map(|(it, _)| it.clone()).collect::<Vec<_>>().into_iter()
    }

    fn keep(&self, connection: &Arc<Connection>) {
        lock(&self.kept).entry(connection.id).or_insert_with(|| (connection.clone(), 0)).1 += 1;
    }

    fn leave(&self, connection: &Connection) {
        let mut kept = lock(&self.kept);
        if let Some((_, threads)) = kept.get_mut(&connection.id) {
            *threads -= 1;
            if *threads == 0 {
                kept.remove(&connection.id);
            }
        }
    }

    /// One that is counted among those that wait.
    fn start_thread(self: &Arc<Self>, shared: &Arc<Shared>) -> io::Result<()> {
        let (hybrid_pool, shared) = (self.clone(), shared.clone());
        let threads = shared.orb.server_threads.clone();
        threads.spawn("ironorb-hybrid", move || hybrid_pool.run(&shared))
    }

    /// Has a thread that has done something else wait for any connection, if too few do. Returns when it is to end.
    pub(super) fn join(self: &Arc<Self>, shared: &Arc<Shared>) {
        if self.wait_again() {
            self.run(shared);
        }
    }

    fn run(self: &Arc<Self>, shared: &Arc<Shared>) {
        let Some(pool) = &shared.pool else { return };
        let mut current_request = CurrentRequest::default();
        while let Some(connection) = pool::next(shared, pool) {
            self.leave_waiting(shared);
            // A connection that is ready for another reason as well is found once more.
            if connection.wants_help.swap(false, Ordering::SeqCst) {
                blocked_servant_monitor::go_on_with_wanted(&connection, shared);
            } else {
                self.keep_to(&connection, shared, pool, &mut current_request);
            }
            if !self.wait_again() {
                return;
            }
        }
    }

    /// Sees that somebody waits when this thread does not.
    fn leave_waiting(self: &Arc<Self>, shared: &Arc<Shared>) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        if shared.orb.server_threads.is_at_bound() {
            return;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if self.start_thread(shared).is_err() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// False when enough others wait: this thread ends.
    fn wait_again(&self) -> bool {
        let may_wait = |waiting: usize| (waiting < WAITING_MAX).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, may_wait).is_ok()
    }

    /// No thread waits for the other connections.
    pub(super) fn is_needed(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    fn keep_to(
        &self,
        connection: &Arc<Connection>,
        shared: &Shared,
        pool: &Pool,
        current_request: &mut CurrentRequest,
    ) {
        if connection.is_stalled() {
            return; // the thread that waits for the peer brings it back
        }
        self.keep(connection);
        let disposition = self.serve(connection, current_request);
        self.leave(connection);
        connection.take_large_back(current_request);
        match disposition {
            Disposition::Stalled => {}
            Disposition::Gone => shared.close(connection),
            Disposition::Ends => {
                pool.forget(connection);
                if connection.found_end() {
                    shared.close(connection);
                }
            }
            // Whole messages that have been received show in no socket.
            Disposition::Released if connection.release_buffers(current_request) => {
                pool.push_ready(connection)
            }
            Disposition::Released => pool.rearm(connection),
        }
    }

    fn serve(&self, connection: &Connection, current_request: &mut CurrentRequest) -> Disposition {
        connection.wake(current_request);
        loop {
            match connection.wait_for_work(current_request, Some(KEPT_FOR)) {
                Ok(()) => {
                    if connection.carry_out(current_request) {
                        return Disposition::Gone;
                    }
                    if connection.is_stalled() {
                        return Disposition::Stalled;
                    }
                    if self.is_needed() {
                        return Disposition::Released;
                    }
                }
                Err(Nothing::Yet) => return Disposition::Released,
                Err(Nothing::Ever) => return Disposition::Ends,
            }
        }
    }
}

/// Why a thread leaves a connection.
enum Disposition {
    /// Nothing comes, or others need the thread.
    Released,
    /// Its peer takes no bytes; who waits for that brings it back.
    Stalled,
    /// Nothing more will be received.
    Ends,
    /// The same, and this was the last request.
    Gone,
}
