//! Threads for what blocks: each waits a while for more when it is done.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread waits for more.
const IDLE: Duration = Duration::from_secs(2);

/// The most threads of a pool that others do not bound.
const THREADS_MAX: usize = 256;

type Task = Box<dyn FnOnce() + Send>;

/// As many threads as are needed at a time, up to a limit. Tasks beyond it wait.
#[derive(Clone)]
pub(crate) struct Threads(Arc<Shared>);

struct Shared {
    pool: Mutex<Pool>,
    changed: Condvar,
    threads_max: usize,
}

#[derive(Default)]
struct Pool {
    tasks: VecDeque<Task>,
    threads: usize,
    /// Threads that wait for a task.
    idle: usize,
}

impl Threads {
    /// At most so many threads.
    pub(crate) fn at_most(threads_max: usize) -> Threads {
        Threads(Arc::new(Shared { pool: Mutex::default(), changed: Condvar::new(), threads_max }))
    }

    /// Runs a task on a thread. Where not one can be made, this one runs it.
    pub(crate) fn run(&self, task: impl FnOnce() + Send + 'static) {
        let mut pool = self.0.pool();
        pool.tasks.push_back(Box::new(task));
        if pool.idle >= pool.tasks.len() {
            drop(pool);
            return self.0.changed.notify_one();
        }
        if pool.threads >= self.0.threads_max {
            return;
        }
        pool.threads += 1;
        drop(pool);
        let shared = self.0.clone();
        let thread = std::thread::Builder::new().name("ironorb-jobs".to_owned());
        if thread.spawn(move || shared.serve()).is_err() {
            let mut pool = self.0.pool();
            pool.threads -= 1;
            let left = if pool.threads == 0 { pool.tasks.pop_back() } else { None };
            drop(pool);
            if let Some(task) = left {
                task();
            }
        }
    }
}

impl Shared {
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut pool = self.pool();
        loop {
            if let Some(task) = pool.tasks.pop_front() {
                drop(pool);
                // A panic was reported. Other tasks need the thread.
                let _its_panic_ends_it_alone = catch_unwind(AssertUnwindSafe(task));
                pool = self.pool();
                continue;
            }
            pool.idle += 1;
            let waited = self.changed.wait_timeout(pool, IDLE);
            let (again, passed) = waited.unwrap_or_else(PoisonError::into_inner);
            pool = again;
            pool.idle -= 1;
            if passed.timed_out() && pool.tasks.is_empty() {
                pool.threads -= 1;
                return;
            }
        }
    }
}

impl Default for Threads {
    fn default() -> Threads {
        Threads::at_most(THREADS_MAX)
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("threads", &self.0.pool().threads).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tasks_beyond_the_limit_wait_and_a_panic_ends_one_alone() {
        let (threads, (told, heard)) = (Threads::at_most(2), mpsc::channel());
        threads.run(|| panic!("this is reported"));
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        for number in 0..5 {
            let (told, held) = (told.clone(), held.clone());
            threads.run(move || {
                held.lock().unwrap().recv().unwrap();
                told.send(number).unwrap();
            });
        }
        assert!(threads.0.pool().threads <= 2);
        (0..5).for_each(|_| release.send(()).unwrap());
        let mut all: Vec<i32> =
            (0..5).map(|_| heard.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
    }
}
