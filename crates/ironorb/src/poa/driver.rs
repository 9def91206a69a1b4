//! What adapters and their managers need of the driver that runs them: the time, threads, and a place to wait.
//! They only say what is waited for.

use std::sync::Arc;
use std::time::Duration;

use super::{PoaManager, WatchedUpcall};
use crate::base::discards::Discard;
use crate::base::gate::Gate;
use crate::base::lane::LaneId;
use crate::base::monitor::Monitor;
use crate::base::single_thread_lock::SingleThreadLock;
use crate::base::time::Time;

/// Work of an adapter that needs a thread.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// Runs the adapters of an ORB. No method is called with a lock of an adapter held.
pub(crate) trait AdapterDriver: Send + Sync {
    /// The time now.
    fn now(&self) -> Time;

    /// The time by which the deadlines of requests go: that of the engine, if one serves them.
    fn time_of_requests(&self) -> Time;

    /// Waits until `is_over`, for `at_most` this time, and for ever if that is `None`. `is_over` may take locks of
    /// adapters, and its answer changes only before [`Monitor::changed`]. Returns whether it is over. A driver whose
    /// thread must not wait returns at once.
    fn wait(&self, monitor: &Monitor, is_over: &dyn Fn() -> bool, at_most: Option<Duration>) -> bool;

    /// Waits until a gate is open, as [`wait`](Self::wait) does.
    fn wait_at(&self, gate: &Gate, at_most: Option<Duration>) -> bool;

    /// Takes the lock of an adapter that makes one upcall at a time.
    fn take_turn(&self, turn: &SingleThreadLock);

    /// The most threads besides a manager's own that admit the requests which managers have held for the calling thread's
    /// lane.
    fn admitting_threads_max(&self) -> usize;

    /// Admits the requests that a manager has held for a lane, as [`PoaManager::next_held`] says, on one more thread of that
    /// lane. `is_first` is true when no other thread does so for this manager and lane.
    fn admit_held(&self, manager: &PoaManager, lane: LaneId, is_first: bool);

    /// Drops a handle: on this thread, or on one of the default lane where calls of other lanes may have others.
    fn discard(&self, value: Box<dyn Discard>);

    /// Whether upcalls that run too long are ended.
    fn watches(&self) -> bool;

    /// Ends an upcall of the calling thread's lane at this moment, unless [`unwatch`](Self::unwatch) comes before.
    fn watch(&self, ends: Time, upcall: &Arc<WatchedUpcall>);

    /// Takes an upcall of the calling thread's lane out that has returned.
    fn unwatch(&self, upcall: &Arc<WatchedUpcall>);

    /// Carries out a task on a thread of its own in a lane. Drops it where there can be none.
    fn run_apart(&self, lane: LaneId, task: Task);
}
