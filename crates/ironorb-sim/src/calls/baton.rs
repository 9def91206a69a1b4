//! One thread at a time: each thread of a simulation waits for its baton, and passes on that of the next.

use std::ffi::c_long;
use std::sync::atomic::{AtomicU32, Ordering};

use super::raw;

/// A place where one thread waits until another lets it go on. Passing it is a release, taking it an acquire: what the
/// thread before has done is seen by the next.
#[derive(Debug, Default)]
pub(crate) struct Baton(AtomicU32);

const AWAITED: u32 = 0;
const PASSED: u32 = 1;

impl Baton {
    /// Lets the thread that waits here, or that comes, go on.
    pub(crate) fn pass(&self) {
        self.0.store(PASSED, Ordering::Release);
        self.futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    }

    /// Waits until the baton has been passed, and takes it.
    pub(crate) fn take(&self) {
        while self.0.compare_exchange(PASSED, AWAITED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, AWAITED);
        }
    }

    fn futex(&self, operation: i32, value: u32) {
        let arguments = [self.0.as_ptr() as c_long, c_long::from(operation), c_long::from(value), 0, 0, 0];
        // SAFETY: the address is that of a word that lives as long as `self`; no other address is passed.
        unsafe { raw::kernel(libc::SYS_futex, arguments) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::Baton;

    #[test]
    fn two_threads_take_turns() {
        let batons = Arc::new([Baton::default(), Baton::default()]);
        let log = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (other, others_log) = (batons.clone(), log.clone());
        let thread = thread::spawn(move || {
            for turn in 0..1_000 {
                other[1].take();
                others_log.lock().unwrap().push(2 * turn + 1);
                other[0].pass();
            }
        });
        for turn in 0..1_000 {
            log.lock().unwrap().push(2 * turn);
            batons[1].pass();
            batons[0].take();
        }
        thread.join().unwrap();
        assert!(log.lock().unwrap().iter().copied().eq(0..2_000));
    }
}
