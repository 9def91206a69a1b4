//! Starts the threads of a server and counts them against a limit. Decides nothing about what they do.
//!
//! Every thread counts that serves requests or waits for one client. A server's fixed threads do not count:
//! the keeper, the writer, the receiver of bidirectional connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::config::{OrbConfig, ServerConcurrency};
use crate::base::lane::{LaneId, current_lane};
use crate::base::spawner::{NewThread, ThreadClass};

/// The number of a server's threads and its limit.
#[derive(Debug)]
pub(crate) struct ServerThreads {
    lane: LaneId,
    threads_max: usize,
    threads: AtomicUsize,
}

impl ServerThreads {
    /// Makes the count of the calling thread's lane, and takes the limit from the configuration. A hybrid server's own limit applies to all of its threads.
    pub(crate) fn new(config: &OrbConfig) -> Arc<ServerThreads> {
        let threads_max = match config.concurrency {
            ServerConcurrency::Hybrid { threads_max } => threads_max.min(config.server_threads_max),
            ServerConcurrency::ThreadPerConnection
            | ServerConcurrency::LeaderFollowers { .. }
            | ServerConcurrency::ThreadPool(_)
            | ServerConcurrency::Reactor => config.server_threads_max,
        };
        let (lane, threads) = (current_lane(), AtomicUsize::new(0));
        Arc::new(ServerThreads { lane, threads_max: threads_max.max(1), threads })
    }

    /// Starts one more thread. Fails with `WouldBlock` at the limit.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.spawn_in(self.lane, name, body)
    }

    /// Starts one more thread in a lane. Fails with `WouldBlock` at the limit.
    pub(crate) fn spawn_in(
        self: &Arc<Self>,
        lane: LaneId,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let place = self.take().ok_or(io::ErrorKind::WouldBlock)?;
        place.spawn_in(lane, name, body)
    }

    /// Starts a thread that must exist for a call or a connection to make progress. It counts, but the limit
    /// does not refuse it.
    pub(crate) fn spawn_beyond(
        self: &Arc<Self>,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.spawn_beyond_in(self.lane, name, body)
    }

    /// Starts such a thread in a lane.
    pub(crate) fn spawn_beyond_in(
        self: &Arc<Self>,
        lane: LaneId,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.threads.fetch_add(1, Ordering::SeqCst);
        ThreadPlace(self.clone()).spawn_in(lane, name, body)
    }

    /// Reserves room for one more thread; `None` at the limit.
    pub(super) fn take(self: &Arc<Self>) -> Option<ThreadPlace> {
        let more = |threads: usize| (threads < self.threads_max).then_some(threads + 1);
        self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(ThreadPlace(self.clone()))
    }

    /// The limit that applies, from the concurrency model or for all models together.
    pub(crate) fn threads_max(&self) -> usize {
        self.threads_max
    }

    /// The threads that count.
    pub(crate) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Whether there is no room for another thread.
    pub(super) fn is_at_bound(&self) -> bool {
        self.threads.load(Ordering::SeqCst) >= self.threads_max
    }
}

/// Room for one thread, reserved until this is dropped.
#[derive(Debug)]
pub(super) struct ThreadPlace(Arc<ServerThreads>);

impl ThreadPlace {
    /// Starts the thread, which keeps the place until it ends: of live threads there are never more than places.
    pub(super) fn spawn(self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let lane = self.0.lane;
        self.spawn_in(lane, name, body)
    }

    fn spawn_in(self, lane: LaneId, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let run = move || {
            body();
            self
        };
        NewThread::new(name, ThreadClass::Worker).in_lane(lane).spawn(run).map(drop)
    }
}

impl Drop for ThreadPlace {
    fn drop(&mut self) {
        self.0.threads.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn threads_are_bounded_until_one_ends() {
        let config =
            OrbConfig { concurrency: ServerConcurrency::Hybrid { threads_max: 2 }, ..OrbConfig::default() };
        let threads = ServerThreads::new(&config);
        let (end, ends) = mpsc::channel::<()>();
        threads
            .spawn("ironorb-test", move || {
                let _ = ends.recv();
            })
            .unwrap();
        let place = threads.take().unwrap();
        assert!(threads.is_at_bound() && threads.take().is_none());
        assert_eq!(threads.spawn("ironorb-test", || {}).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(place);
        let (ended, has_ended) = mpsc::channel();
        threads.spawn_beyond("ironorb-test", move || ended.send(()).unwrap()).unwrap();
        has_ended.recv().unwrap();
        drop(end);
        while threads.threads.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_servers_bound_holds_for_a_hybrid_too() {
        let bound = |concurrency, server_threads_max| {
            let config = OrbConfig { concurrency, server_threads_max, ..OrbConfig::default() };
            ServerThreads::new(&config).threads_max
        };
        assert_eq!(bound(ServerConcurrency::Hybrid { threads_max: 64 }, 10), 10);
        assert_eq!(bound(ServerConcurrency::Hybrid { threads_max: 64 }, 1000), 64);
        assert_eq!(bound(ServerConcurrency::ThreadPerConnection, 10), 10);
    }
}
