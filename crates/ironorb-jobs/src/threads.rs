//! Threads for what blocks: each waits a while for more when it is done.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a thread waits for more.
const IDLE: Duration = Duration::from_secs(2);

type Task = Box<dyn FnOnce() + Send>;

/// As many threads as are needed at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Threads {
    /// What gives the threads that wait a task, the last one first.
    waiting: Arc<Mutex<Vec<Sender<Task>>>>,
}

impl Threads {
    /// Runs a task on a thread. Where none can be made, this one runs it.
    pub(crate) fn run(&self, task: impl FnOnce() + Send + 'static) {
        let mut task: Task = Box::new(task);
        loop {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(thread) = waiting else { break };
            match thread.send(task) {
                Ok(()) => return,
                // It has just ended.
                Err(unsent) => task = unsent.0,
            }
        }
        let waiting = self.waiting.clone();
        let kept = Arc::new(Mutex::new(Some(task)));
        let first = kept.clone();
        let take = |kept: &Mutex<Option<Task>>| kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let serve = move || {
            let mut next = take(&first);
            while let Some(task) = next {
                task();
                let (sender, tasks) = mpsc::channel();
                waiting.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
                next = tasks.recv_timeout(IDLE).ok();
            }
        };
        if std::thread::Builder::new().name("ironorb-jobs".to_owned()).spawn(serve).is_err()
            && let Some(task) = take(&kept)
        {
            task();
        }
    }
}
