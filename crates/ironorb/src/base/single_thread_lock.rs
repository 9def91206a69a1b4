//! The lock that admits one upcall at a time, for adapters whose thread policy says so.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::locks::PiTurn;
use super::watch::Here;

/// A reentrant lock: the thread that makes upcalls may make nested ones. It runs at the priority of the most urgent
/// thread that waits. Only drivers wait for it.
#[derive(Debug, Default)]
pub(crate) struct SingleThreadLock {
    turn: PiTurn,
    /// How often the holder has taken the lock beyond the first time. Only the holder uses it.
    nested: AtomicUsize,
}

impl SingleThreadLock {
    /// Takes the lock. Blocks unless this thread holds it already or it is free.
    pub(crate) fn take(&self) {
        if self.turn.is_ours() {
            self.nested.fetch_add(1, Ordering::Relaxed);
        } else {
            self.turn.take(Here::of_caller());
        }
    }

    /// Gives the lock back, as often as it was taken. The calling thread has taken it.
    pub(crate) fn release(&self) {
        if self.nested.load(Ordering::Relaxed) > 0 {
            self.nested.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.turn.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_takes_the_lock_again_and_others_wait_for_its_last_release() {
        let (lock, upcalls) = (SingleThreadLock::default(), AtomicUsize::new(0));
        lock.take();
        lock.take();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                lock.take();
                upcalls.fetch_add(1, Ordering::SeqCst);
                lock.release();
            });
            lock.release();
            assert_eq!(upcalls.load(Ordering::SeqCst), 0, "the lock is still held");
            lock.release();
            waiter.join().unwrap();
        });
        assert_eq!(upcalls.into_inner(), 1);
    }
}
