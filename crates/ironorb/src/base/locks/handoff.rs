//! A value that one thread takes.

use std::fmt;
use std::sync::Mutex;

use crate::base::sync::try_lock;

/// A value that one of several threads takes, at most once. What decides which thread that is stands elsewhere: usually a
/// count that falls to zero. No thread ever waits here.
pub(crate) struct Handoff<T>(Mutex<Option<T>>);

impl<T> Handoff<T> {
    pub(crate) const fn new(value: T) -> Handoff<T> {
        Handoff(Mutex::new(Some(value)))
    }

    /// Takes the value; `None` if a thread has taken it or is taking it.
    pub(crate) fn take(&self) -> Option<T> {
        try_lock(&self.0)?.take()
    }
}

impl<T> fmt::Debug for Handoff<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_takes_the_value() {
        let value = Handoff::new(1);
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| value.take())).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(taken.len() <= 1 && taken.iter().all(|value| *value == 1));
        assert_eq!(value.take().is_none(), taken.len() == 1);
    }
}
