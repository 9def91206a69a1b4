//! Few threads for idle connections, and a thread for each connection that is busy.
//!
//! Idle connections are in one `epoll` and own no buffers. A thread that finds a connection with bytes keeps
//! to it: it receives, calls the servant and replies, as in `thread_per_connection`, until nothing has come
//! for a while. Then the connection goes back to the `epoll`. One thread waits for all other connections.
//! When it leaves, another thread is started, up to a limit. At the limit a thread serves one request and
//! goes back to waiting, so that no connection starves.
//!
//! The limit is that of `threads`. It counts all threads that serve, also those that help a connection whose
//! servant blocks.
//!
//! The first connections, up to a part of that limit or half of the threads that were made at the start, have threads of
//! their own while they last, as in `thread_per_connection`. With few connections, moving them in and out of the `epoll` saves nothing, and
//! socket timeouts cost a call 0.15 us.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::connection::{Connection, Nothing};
use super::pool::{self, Pool};
use super::{Shared, blocked_servant_monitor};
use crate::base::locks::LaneLock;
use crate::connection::CurrentRequest;

/// How long a thread keeps to a connection from which nothing comes.
pub(super) const KEPT_FOR: Duration = Duration::from_millis(100);

/// The most threads that wait when there is nothing to do. As many connections can become busy at once
/// without the start of a thread.
const WAITING_MAX: usize = 4;

/// How many connections have threads of their own in a hybrid server with this limit of threads, of which so many were made at
/// its start.
pub(super) fn dedicated_max(threads_max: usize, threads_static: usize) -> usize {
    (threads_max / DEDICATED_ONE_IN).max(threads_static / 2)
}

/// One in this many threads may be dedicated to a connection.
const DEDICATED_ONE_IN: usize = 32;

/// What the threads of a hybrid server share that serve any connection.
#[derive(Debug, Default)]
pub(super) struct HybridPool {
    /// Threads that wait for any connection, or are about to. The count is 0 only at the limit of threads.
    waiting: AtomicUsize,
    /// Connections that have threads, and how many each has. The blocked-servant monitor looks at them.
    kept: LaneLock<BTreeMap<u64, (Arc<Connection>, usize)>>,
}

/// Starts the first thread. At least one thread always exists, because a thread ends only when others wait.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let Some(hybrid_pool) = &shared.hybrid_pool else { return Ok(()) };
    hybrid_pool.waiting.fetch_add(1, Ordering::SeqCst);
    hybrid_pool.start_thread(shared)
}

impl HybridPool {
    /// Connections that have a thread.
    pub(super) fn kept(&self) -> impl Iterator<Item = Arc<Connection>> {
        self.kept.lock().values().map(|(it, _)| it.clone()).collect::<Vec<_>>().into_iter()
    }

    fn keep(&self, connection: &Arc<Connection>) {
        self.kept.lock().entry(connection.id).or_insert_with(|| (connection.clone(), 0)).1 += 1;
    }

    fn leave(&self, connection: &Connection) {
        let mut kept = self.kept.lock();
        if let Some((_, threads)) = kept.get_mut(&connection.id) {
            *threads -= 1;
            if *threads == 0 {
                kept.remove(&connection.id);
            }
        }
    }

    /// Starts a thread that the caller has counted in `waiting`.
    fn start_thread(self: &Arc<Self>, shared: &Arc<Shared>) -> io::Result<()> {
        let (hybrid_pool, shared) = (self.clone(), shared.clone());
        let threads = shared.lane().threads.clone();
        threads.spawn("ironorb-hybrid", move || hybrid_pool.run(&shared))
    }

    /// Makes the calling thread wait for any connection, if too few threads do. Returns when the thread
    /// should end.
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
            // If the connection is also ready for another reason, the pool reports it once more.
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

    /// Counts this thread out of the waiting ones and starts another if it was the last.
    fn leave_waiting(self: &Arc<Self>, shared: &Arc<Shared>) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.refill(shared);
        }
    }

    /// Starts a waiting thread if none waits and the limit leaves room. The blocked-servant monitor calls it at each
    /// look, because threads of other kinds make room when they end, and do not know of the pool.
    pub(super) fn refill(self: &Arc<Self>, shared: &Arc<Shared>) {
        if !self.is_needed() || shared.lane().threads.is_at_bound() {
            return;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if self.start_thread(shared).is_err() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Counts this thread in as waiting. False when enough threads wait: this thread ends.
    fn wait_again(&self) -> bool {
        let may_wait = |waiting: usize| (waiting < WAITING_MAX).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, may_wait).is_ok()
    }

    /// Whether no thread waits for other connections.
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
            return; // the writer thread brings it back
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
            match connection.wait_for_work(current_request, Some(KEPT_FOR).into()) {
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
    /// Nothing comes, or other connections need the thread.
    Released,
    /// The peer does not read. The writer thread brings the connection back.
    Stalled,
    /// Nothing more will be received.
    Ends,
    /// Nothing more will be received, and the last request is done.
    Gone,
}
