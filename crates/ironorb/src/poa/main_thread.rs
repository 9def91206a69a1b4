//! Upcalls on the program's main thread, for adapters with
//! [`ThreadModel::MainThread`](super::ThreadModel::MainThread) (CORBA 3.3 part 1, 8.5.1.2 and 15.3.8.1).
//!
//! Requests that other threads have received wait in a queue until a thread is in [`Orb::run`](crate::Orb::run) or
//! [`Orb::perform_work`](crate::Orb::perform_work). That thread is then the main thread. There is one at a time.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{AdapterDriver, PoaManager, Task};
use crate::base::gate::Gate;
use crate::base::locks::PiLock;
use crate::base::monitor::Monitor;
use crate::base::sync::ThreadMark;

/// The queue of requests, and which thread is the main thread.
pub(crate) struct MainThread {
    state: PiLock<State>,
    changed: Arc<Monitor>,
    driver: Arc<dyn AdapterDriver>,
    /// Whether an adapter with this thread model was ever made.
    is_wanted: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The main thread, and how many nested times it has become the main thread.
    main: Option<(ThreadMark, usize)>,
    /// The last thread that ran the ORB or performed work.
    last: Option<ThreadMark>,
    requests: VecDeque<Request>,
    /// Calls of servant managers, which are never refused.
    tasks: VecDeque<Task>,
    /// The ORB is being shut down: the queue takes requests only while a thread carries them out.
    is_closing: bool,
    is_closed: bool,
}

/// A request that waits for the main thread.
pub(crate) struct Request {
    /// The manager of the request's adapter. While it holds requests, this request waits and others pass it.
    pub(crate) manager: PoaManager,
    /// Carries out the request. Dropping it answers with an exception.
    pub(crate) carry_out: Task,
}

impl MainThread {
    pub(super) fn new(driver: Arc<dyn AdapterDriver>) -> MainThread {
        MainThread {
            state: PiLock::default(),
            changed: Arc::default(),
            driver,
            is_wanted: AtomicBool::new(false),
        }
    }

    /// What managers tell of changes of their states.
    pub(super) fn monitor(&self) -> &Arc<Monitor> {
        &self.changed
    }

    /// Records that an adapter needs the main thread for its upcalls.
    pub(super) fn want(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Lets this thread make an upcall, until [`resign`](Self::resign). It may if it is the main thread, or
    /// if there is none and it was the last one. Returns whether it may.
    pub(super) fn enter(&self) -> bool {
        let mut state = self.state.lock();
        let may = match state.main {
            Some(_) => true,
            None => state.last == Some(ThreadMark::of_this_thread()),
        };
        may && state.become_main()
    }

    /// Puts a request into the queue. Gives it back when the queue is full or no thread will look at it.
    pub(crate) fn push(&self, request: Request, requests_max: usize) -> Result<(), Request> {
        let mut state = self.state.lock();
        let is_refused = state.is_closed || (state.is_closing && state.main.is_none());
        if is_refused || state.requests.len() >= requests_max {
            return Err(request);
        }
        state.requests.push_back(request);
        drop(state);
        self.changed.changed();
        Ok(())
    }

    /// Carries a task out on the main thread. If this is the main thread, or if there is none, the calling
    /// thread carries it out as the main thread.
    pub(super) fn carry_out(&self, task: Task) {
        let mut state = self.state.lock();
        if state.become_main() {
            drop(state);
            task();
            self.resign();
        } else {
            state.tasks.push_back(task);
            drop(state);
            self.changed.changed();
        }
    }

    pub(crate) fn has_work(&self) -> bool {
        let state = self.state.lock();
        state.has_next()
    }

    pub(crate) fn perform_one(&self) -> bool {
        let mut state = self.state.lock();
        if !state.become_main() {
            return false;
        }
        state.last = Some(ThreadMark::of_this_thread());
        let task = state.take_next();
        drop(state);
        let did = task.is_some();
        if let Some(task) = task {
            run(task);
        }
        self.resign();
        did
    }

    /// Makes this thread the main thread until [`close`](Self::close). If another thread is the main thread,
    /// blocks until that is over.
    pub(crate) fn run(&self) {
        let mut state = self.state.lock();
        let mut is_main = false;
        loop {
            if !is_main && state.become_main() {
                is_main = true;
                state.last = Some(ThreadMark::of_this_thread());
            }
            if let Some(task) = is_main.then(|| state.take_next()).flatten() {
                drop(state);
                run(task);
                state = self.state.lock();
            } else if state.is_closed {
                break;
            } else {
                drop(state);
                let is_over = || self.state.lock().is_of_use(is_main);
                self.driver.wait(&self.changed, &is_over, None);
                state = self.state.lock();
            }
        }
        drop(state);
        if is_main {
            self.resign();
        }
    }

    /// Carries out calls of servant managers, as the main thread, until a gate is open. False when that takes
    /// longer than `at_most`. Only the main thread opens the gates of its adapters. Requests wait meanwhile,
    /// because serving them here would take stack space for each.
    pub(super) fn work_until_open(&self, gate: &Gate, at_most: Option<Duration>) -> bool {
        let begun = self.driver.now();
        let mut state = self.state.lock();
        if !state.become_main() {
            return false; // cannot happen: no other thread became the main thread meanwhile
        }
        let is_open = loop {
            if let Some(task) = state.tasks.pop_front() {
                drop(state);
                run(task);
                state = self.state.lock();
                continue;
            }
            if gate.is_open() {
                break true;
            }
            drop(state);
            let left = at_most.map(|at_most| at_most.saturating_sub(self.driver.now().since(begun)));
            let has_come = || gate.is_open() || !self.state.lock().tasks.is_empty();
            let came = self.driver.wait(&self.changed, &has_come, left);
            state = self.state.lock();
            if !came {
                break false;
            }
        };
        drop(state);
        self.resign();
        is_open
    }

    /// Ends this thread's time as the main thread, after the tasks that only the main thread may do.
    pub(super) fn resign(&self) {
        let mut state = self.state.lock();
        while state.is_innermost() {
            let Some(task) = state.tasks.pop_front() else { break };
            drop(state);
            run(task);
            state = self.state.lock();
        }
        state.resign();
        let abandoned = match state.is_closing && state.main.is_none() {
            true => std::mem::take(&mut state.requests),
            false => VecDeque::new(),
        };
        drop(state);
        self.changed.changed();
        drop(abandoned);
    }

    /// Called when the shutdown begins. Refuses the requests if no thread carries them out.
    pub(crate) fn begin_close(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        let abandoned = match state.main {
            None => std::mem::take(&mut state.requests),
            Some(_) => VecDeque::new(),
        };
        drop(state);
        self.changed.changed();
        drop(abandoned);
    }

    /// Called when the ORB has been shut down. [`run`](Self::run) returns.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        state.is_closed = true;
        let abandoned = std::mem::take(&mut state.requests);
        drop(state);
        self.changed.changed();
        drop(abandoned);
    }
}

impl State {
    /// Makes this thread the main thread, unless another thread is.
    fn become_main(&mut self) -> bool {
        let me = ThreadMark::of_this_thread();
        match &mut self.main {
            Some((thread, depth)) if *thread == me => *depth += 1,
            Some(_) => return false,
            None => self.main = Some((me, 1)),
        }
        true
    }

    fn is_innermost(&self) -> bool {
        self.main.is_some_and(|(_, depth)| depth == 1)
    }

    fn resign(&mut self) {
        match &mut self.main {
            Some((_, depth)) if *depth > 1 => *depth -= 1,
            _ => self.main = None,
        }
    }

    fn first_runnable(&self) -> Option<usize> {
        self.requests.iter().position(|request| !request.manager.is_holding())
    }

    fn has_next(&self) -> bool {
        !self.tasks.is_empty() || self.first_runnable().is_some()
    }

    /// Whether a thread in [`Orb::run`](crate::Orb::run) can do something, as the main thread or to become it.
    fn is_of_use(&self, is_main: bool) -> bool {
        self.is_closed || if is_main { self.has_next() } else { self.may_become_main() }
    }

    fn may_become_main(&self) -> bool {
        self.main.is_none_or(|(thread, _)| thread == ThreadMark::of_this_thread())
    }

    fn take_next(&mut self) -> Option<Task> {
        if let Some(task) = self.tasks.pop_front() {
            return Some(task);
        }
        let index = self.first_runnable()?;
        Some(self.requests.remove(index)?.carry_out)
    }
}

/// Runs a task and catches its panic, which the task itself reports. The main thread goes on.
fn run(task: Task) {
    let _panicked = catch_unwind(AssertUnwindSafe(task));
}
