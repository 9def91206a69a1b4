//! Starts the threads of a server and counts them against a limit. Decides nothing about what they do.
//!
//! Every thread counts that serves requests or waits for one client. A server's fixed threads do not count:
//! the keeper, the writer, the receiver of bidirectional connections.
//!
//! Some may be made at the server's start. While one of them has nothing to do it takes what a new thread would do, by that
//! thread's name.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::config::{OrbConfig, ServerConcurrency};
use crate::base::lane::{LaneId, current_lane};
use crate::base::locks::{Condition, PiLock};
use crate::base::spawner::{NewThread, ThreadClass, be_called};
use crate::object::priority;

/// The number of a server's threads and its limit.
#[derive(Debug)]
pub(crate) struct ServerThreads {
    lane: LaneId,
    threads_max: usize,
    threads: AtomicUsize,
    threads_static: usize,
    waiting: PiLock<StaticThreads>,
    has_work: Condition,
}

/// Threads that were made at the server's start.
#[derive(Default)]
struct StaticThreads {
    /// Whether they take work.
    is_open: bool,
    /// How often the server has ended: a thread from before that ends when it has nothing to do.
    ends: u64,
    /// Those that have nothing to do, and no work in the queue.
    idle: usize,
    work: VecDeque<Work>,
}

/// What a thread does, and the name by which it does that.
struct Work {
    name: String,
    body: Box<dyn FnOnce() -> ThreadPlace + Send>,
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
        let threads_max = threads_max.max(1);
        let threads_static = match config.concurrency.gives_threads_to_connections() {
            true => config.server_threads_static.min(threads_max),
            false => 0,
        };
        Arc::new(ServerThreads {
            lane: current_lane(),
            threads_max,
            threads: AtomicUsize::new(0),
            threads_static,
            waiting: PiLock::default(),
            has_work: Condition::new(),
        })
    }

    /// Makes the threads that wait for work. They hold what is given until they end.
    pub(super) fn start_static<S: Clone + Send + 'static>(self: &Arc<Self>, held: &S) -> io::Result<()> {
        let ends = {
            let mut waiting = self.waiting.lock();
            waiting.is_open = true;
            waiting.ends
        };
        for _ in 0..self.threads_static {
            let (threads, held) = (self.clone(), held.clone());
            let run = move || {
                threads.run_static(ends);
                held
            };
            self.waiting.lock().idle += 1;
            let started = NewThread::new(STATIC, ThreadClass::Worker).in_lane(self.lane).spawn(run);
            if let Err(e) = started {
                self.waiting.lock().idle -= 1;
                return Err(e);
            }
        }
        Ok(())
    }

    /// Has the threads end that wait for work.
    pub(super) fn end_static(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_open = false;
        waiting.ends += 1;
        drop(waiting);
        self.has_work.notify_all();
    }

    fn run_static(&self, ends: u64) {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(work) = waiting.work.pop_front() {
                drop(waiting);
                be_called(&work.name);
                // A panic gives the place back, and has been told of.
                let place = catch_unwind(AssertUnwindSafe(work.body));
                be_called(STATIC);
                priority::be_as_made();
                waiting = self.waiting.lock();
                // Before the place is free: whoever takes it finds this thread.
                waiting.idle += 1;
                drop(place);
            } else if waiting.ends != ends {
                waiting.idle -= 1;
                return;
            } else {
                waiting = self.has_work.wait(waiting);
            }
        }
    }

    /// Whether there are threads that were made at the server's start.
    pub(crate) fn are_made_at_start(&self) -> bool {
        self.threads_static > 0
    }

    /// Gives work to a thread that has nothing to do. Gives it back if there is none.
    fn give(&self, work: Work) -> Result<(), Work> {
        let mut waiting = self.waiting.lock();
        if !waiting.is_open || waiting.idle == 0 {
            return Err(work);
        }
        waiting.idle -= 1;
        waiting.work.push_back(work);
        drop(waiting);
        self.has_work.notify_one();
        Ok(())
    }

    /// How many threads are made at the server's start.
    pub(super) fn threads_static(&self) -> usize {
        self.threads_static
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

/// The name of threads that wait for work.
const STATIC: &str = "ironorb-static";

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
        let threads = self.0.clone();
        let run = move || {
            body();
            self
        };
        if threads.threads_static == 0 || lane != threads.lane {
            return NewThread::new(name, ThreadClass::Worker).in_lane(lane).spawn(run).map(drop);
        }
        match threads.give(Work { name: name.to_owned(), body: Box::new(run) }) {
            Ok(()) => Ok(()),
            Err(Work { body, .. }) => {
                NewThread::new(name, ThreadClass::Worker).in_lane(lane).spawn(body).map(drop)
            }
        }
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
