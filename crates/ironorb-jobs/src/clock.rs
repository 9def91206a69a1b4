//! Wakes jobs when it is time for them.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the thread waits for something to do before it ends.
const IDLE: Duration = Duration::from_secs(2);

type Wake = Box<dyn FnOnce() + Send>;

/// A thread that calls when it is time, while there is anything to wait for.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<Shared>);

#[derive(Default)]
struct Shared {
    alarms: Mutex<Alarms>,
    changed: Condvar,
}

#[derive(Default)]
struct Alarms {
    due: BTreeMap<(Instant, u64), Wake>,
    last: u64,
    is_running: bool,
}

/// A call that is to come. Dropped, it does not come, unless it has begun.
pub(crate) struct Alarm {
    clock: Clock,
    key: (Instant, u64),
}

impl Clock {
    /// Calls `wake` at a moment, on the clock's thread, which must not be kept.
    pub(crate) fn wake(&self, at: Instant, wake: impl FnOnce() + Send + 'static) -> Alarm {
        let mut alarms = self.0.alarms();
        alarms.last += 1;
        let key = (at, alarms.last);
        let is_first = alarms.due.keys().next().is_none_or(|first| key < *first);
        alarms.due.insert(key, Box::new(wake));
        let starts = !std::mem::replace(&mut alarms.is_running, true);
        drop(alarms);
        if starts {
            let shared = self.0.clone();
            let thread = std::thread::Builder::new().name("ironorb-jobs-clock".to_owned());
            if thread.spawn(move || shared.run()).is_err() {
                // The next alarm tries again.
                self.0.alarms().is_running = false;
            }
        } else if is_first {
            self.0.changed.notify_one();
        }
        Alarm { clock: self.clone(), key }
    }
}

impl Shared {
    fn alarms(&self) -> MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut alarms = self.alarms();
        let mut idle_since = Instant::now();
        loop {
            let now = Instant::now();
            let left = match alarms.due.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let wake = first.remove();
                    drop(alarms);
                    // A panic was reported: it is one job's, and others need the clock.
                    let _its_panic_ends_it_alone = catch_unwind(AssertUnwindSafe(wake));
                    alarms = self.alarms();
                    idle_since = Instant::now();
                    continue;
                }
                Some(first) => {
                    idle_since = now;
                    first.key().0 - now
                }
                None if now - idle_since >= IDLE => {
                    alarms.is_running = false;
                    return;
                }
                None => IDLE,
            };
            alarms = self.changed.wait_timeout(alarms, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let wake = self.clock.0.alarms().due.remove(&self.key);
        drop(wake);
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("alarms", &self.0.alarms().due.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn alarms_come_in_their_order_and_not_once_they_are_dropped() {
        let (clock, (told, heard)) = (Clock::default(), mpsc::channel());
        let at = Instant::now() + Duration::from_millis(20);
        let wake = |after_ms, name: &'static str| {
            let told = told.clone();
            clock.wake(at + Duration::from_millis(after_ms), move || told.send(name).unwrap())
        };
        let kept = [wake(20, "last"), wake(0, "first"), wake(10, "second")];
        drop(wake(5, "dropped"));
        let all: Vec<&str> = (0..3).map(|_| heard.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
        assert_eq!(all, ["first", "second", "last"]);
        drop(kept);
        assert!(clock.0.alarms().due.is_empty());
    }
}
