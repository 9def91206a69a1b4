//! What a child of a fork has of its parent: memory and sockets, but no thread beside the one that forked.
//!
//! The child learns so before it does anything, in a handler of the C library (pthread_atfork(3)). Calls pay nothing for
//! that: the handler changes words that they read anyway. A child that is made without the C library does not learn it.

use std::convert::Infallible;
use std::mem;
use std::sync::{Once, Weak};

use super::locks::Snapshot;

/// What belongs to the process that has made it.
pub(crate) trait OfProcess: Send + Sync {
    /// This process is a child of that one. Called before the child does anything else: takes no lock, and allocates nothing.
    fn begin_in_child(&self);
}

static ALL: Snapshot<Vec<Weak<dyn OfProcess>>> = Snapshot::nothing();

/// Has children of this process know that this belongs to their parent.
pub(crate) fn tell_children_of(it: Weak<dyn OfProcess>) {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // Without memory for it, and on systems without forks of threads, children do not learn it.
        let _refused = ironorb_threads::at_fork_in_child(begin_in_child);
    });
    let _before: Result<_, Infallible> = ALL.change(|all| {
        let known = all.into_iter().flat_map(|all| all.iter());
        let mut all: Vec<_> = known.filter(|it| it.strong_count() > 0).cloned().collect();
        all.push(it);
        Ok(Some(all))
    });
}

extern "C" fn begin_in_child() {
    ironorb_locks::forget_thread_id();
    ALL.with(|all| {
        for it in all.into_iter().flatten().filter_map(Weak::upgrade) {
            it.begin_in_child();
            // Another thread of the parent may have been about to drop it, and the child does not.
            mem::forget(it);
        }
    });
}
