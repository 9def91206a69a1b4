//! Values that other threads drop: the destructors of servants and the memory of adapters cost the lane nothing in which
//! they came to their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::locks::PiLock;
use super::monitor::Monitor;

/// A handle of a shared value that a thread of another lane drops.
pub(crate) trait Discard: Send {
    /// Whether the handle is the only one, so that its drop drops the value.
    fn is_last(&self) -> bool;
}

impl<T: ?Sized + Send + Sync> Discard for Arc<T> {
    fn is_last(&self) -> bool {
        Arc::strong_count(self) == 1
    }
}

/// Handles to be dropped. A handle waits for others that threads still have: the call in which the value came to its end has
/// one, and would otherwise drop the value after all.
#[derive(Default)]
pub(crate) struct Discards {
    waiting: PiLock<Vec<Waiting>>,
    changed: Monitor,
    is_closed: AtomicBool,
}

struct Waiting {
    value: Box<dyn Discard>,
    looks_left: u32,
}

/// How often a thread looks whether a handle is the last. The application may have others for ever.
const LOOKS_MAX: u32 = 100;

/// The time between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Discards {
    /// Leaves a handle to the thread in [`work`](Self::work). Drops it when there will be no such thread any more.
    pub(crate) fn push(&self, value: Box<dyn Discard>) {
        if self.is_closed.load(Ordering::SeqCst) {
            return;
        }
        self.waiting.lock().push(Waiting { value, looks_left: LOOKS_MAX });
        self.changed.changed();
    }

    /// Drops handles until [`close`](Self::close).
    pub(crate) fn work(&self) {
        let mut kept = Vec::new();
        loop {
            let is_closed = self.is_closed.load(Ordering::SeqCst);
            kept.append(&mut self.waiting.lock());
            let waits = |waiting: &mut Waiting| {
                waiting.looks_left = waiting.looks_left.saturating_sub(1);
                !is_closed && waiting.looks_left > 0 && !waiting.value.is_last()
            };
            // What is not kept is dropped here, with no lock held.
            kept.retain_mut(waits);
            if is_closed {
                return;
            }
            let at_most = if kept.is_empty() { None } else { Some(LOOK_AGAIN) };
            let has_more = || !self.waiting.lock().is_empty() || self.is_closed.load(Ordering::SeqCst);
            self.changed.wait(&has_more, at_most);
        }
    }

    /// Ends the thread in [`work`](Self::work) when it has dropped what there is.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.changed.changed();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};

    use super::*;

    /// Tells which thread drops it.
    struct Told(mpsc::Sender<ThreadId>);

    impl Drop for Told {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).unwrap();
        }
    }

    #[test]
    fn a_value_is_dropped_by_the_thread_for_it_even_if_others_have_handles_for_a_while() {
        let (tell, told) = mpsc::channel();
        let discards = Discards::default();
        thread::scope(|scope| {
            let worker = scope.spawn(|| discards.work()).thread().id();
            let value = Arc::new(Told(tell.clone()));
            discards.push(Box::new(value.clone()));
            drop(value);
            assert_eq!(told.recv().unwrap(), worker);
            let kept = Arc::new(Told(tell.clone()));
            discards.push(Box::new(kept.clone()));
            discards.push(Box::new(Arc::new(Told(tell))));
            assert_eq!(told.recv().unwrap(), worker, "one that is kept holds up no other");
            discards.close();
            drop(kept);
            told.recv().unwrap();
        });
    }
}
