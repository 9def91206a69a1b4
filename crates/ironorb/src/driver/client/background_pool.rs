//! Threads for work that may block while no caller waits for it: connecting for an asynchronous call, and
//! resolving a host name.
//!
//! A thread starts when there is work and ends after 5 s without any; one that a server made at its start goes back to it after
//! 20 ms.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::base::lane::{LaneId, current_lane};
use crate::base::locks::{Condition, LaneLock};
use crate::base::spawner::{NewThread, ThreadClass};
use crate::driver::server::threads::ServerThreads;

/// Runs tasks in the order in which they came, on a bounded number of threads.
#[derive(Debug)]
pub(crate) struct BackgroundPool {
    state: LaneLock<State>,
    more: Condition,
    threads_max: usize,
    lane: LaneId,
    /// The server's thread limit under which these threads count; `None` when they count nowhere.
    counted: Option<Arc<ServerThreads>>,
    /// A copy of the number of tasks in `state` that wait, read without the lock.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Task>,
    threads: usize,
    idle: usize,
    is_stopping: bool,
}

const NAME: &str = "ironorb-bg-pool";

type Task = Box<dyn FnOnce() + Send>;

/// How long an idle thread waits for more work.
const LINGER: Duration = Duration::from_secs(5);

/// The same for a thread that a server made at its start.
const LINGER_OF_STATIC: Duration = Duration::from_millis(20);

impl BackgroundPool {
    /// Makes a pool of at most `threads_max` threads of the calling thread's lane.
    pub(crate) fn new(threads_max: usize) -> Arc<Self> {
        BackgroundPool::with(threads_max, None)
    }

    /// Makes a pool of at most `threads_max` threads, which also count under the server's thread limit.
    pub(crate) fn counted(threads_max: usize, counted: &Arc<ServerThreads>) -> Arc<Self> {
        BackgroundPool::with(threads_max, Some(counted.clone()))
    }

    fn with(threads_max: usize, counted: Option<Arc<ServerThreads>>) -> Arc<Self> {
        let threads_max = threads_max.max(1);
        let (state, more, waiting) = (LaneLock::default(), Condition::new(), AtomicUsize::new(0));
        Arc::new(BackgroundPool { state, more, threads_max, lane: current_lane(), counted, waiting })
    }

    /// Queues a task. Returns an error when the pool has no thread and cannot start one, so that the task
    /// would never run.
    pub(crate) fn run(self: &Arc<Self>, task: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.state.lock();
        state.waiting.push_back(Box::new(task));
        self.note_waiting(&state);
        if state.idle >= state.waiting.len() || state.threads >= self.threads_max {
            drop(state);
            self.more.notify_one();
            return Ok(());
        }
        state.threads += 1;
        let background_pool = self.clone();
        match self.spawn(move || background_pool.work()) {
            Ok(()) => Ok(()),
            Err(e) => {
                state.threads -= 1;
                if state.threads > 0 {
                    return Ok(()); // the threads that run will take it
                }
                state.waiting.pop_back();
                self.note_waiting(&state);
                Err(e)
            }
        }
    }

    /// Tasks that wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn note_waiting(&self, state: &State) {
        self.waiting.store(state.waiting.len(), Ordering::Relaxed);
    }

    /// How long an idle thread waits for more work. A server's own threads have other work, and cost little to get again.
    fn linger(&self) -> Duration {
        match self.counted.as_ref().is_some_and(|threads| threads.are_made_at_start()) {
            true => LINGER_OF_STATIC,
            false => LINGER,
        }
    }

    fn spawn(&self, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        match &self.counted {
            Some(counted) => counted.spawn_in(self.lane, NAME, body),
            None => NewThread::new(NAME, ThreadClass::Background).in_lane(self.lane).spawn(body).map(drop),
        }
    }

    /// Ends the threads after the queued tasks have run.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.more.notify_all();
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(task) = state.waiting.pop_front() {
                self.note_waiting(&state);
                drop(state);
                let _ = catch_unwind(AssertUnwindSafe(task));
                state = self.state.lock();
                continue;
            }
            let mut is_over = state.is_stopping;
            if !is_over {
                state.idle += 1;
                let (after, is_late) = self.more.wait_for(state, self.linger());
                state = after;
                state.idle -= 1;
                is_over = is_late && state.waiting.is_empty();
            }
            if is_over {
                state.threads -= 1;
                return;
            }
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("waiting", &self.waiting.len()).field("threads", &self.threads).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn bounded_threads_run_every_task_even_if_some_panic() {
        let background_pool = BackgroundPool::new(3);
        let (sender, receiver) = mpsc::channel();
        for number in 0..100 {
            let sender = sender.clone();
            background_pool
                .run(move || {
                    sender.send((number, std::thread::current().id())).unwrap();
                    assert!(number % 10 != 0, "contained");
                })
                .unwrap();
        }
        drop(sender);
        let (mut numbers, threads): (Vec<_>, std::collections::HashSet<_>) = receiver.iter().unzip();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
        assert!(threads.len() <= 3);
    }
}
