//! The distributable threads that are in one ORB, and how they are cancelled. Sends nothing itself: the driver does.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::scheduler::Scheduler;
use crate::base::locks::PiLock;
use crate::base::randomness::Randomness;
use crate::base::time::Time;
use crate::object::ObjectRef;
use crate::object::priority::RealTimeConfig;
use crate::object::scheduling_context::DistributableThreadId;

/// A distributable thread, as one ORB knows it. Cheap to clone.
#[derive(Clone)]
pub struct DistributableThread(pub(super) Arc<LocalThread>);

/// Whether a distributable thread is cancelled (`RTScheduling::DistributableThread::DT_State`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DistributableThreadState {
    /// It runs.
    Active,
    /// It ends at its next scheduling point.
    Cancelled,
}

impl DistributableThread {
    /// The thread's number, the same in all processes.
    pub fn id(&self) -> DistributableThreadId {
        self.0.id
    }

    /// Whether it is cancelled, as far as this ORB knows.
    pub fn state(&self) -> DistributableThreadState {
        match self.is_cancelled() {
            true => DistributableThreadState::Cancelled,
            false => DistributableThreadState::Active,
        }
    }

    /// Whether it is cancelled, as far as this ORB knows. Neither blocks nor allocates.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Cancels the thread (`cancel`): it ends at its next scheduling point, wherever that is. Any thread may call this; a
    /// second call does nothing.
    ///
    /// If the thread waits for a server's reply, this tells the server, over a connection of its own. That blocks until the
    /// request is written, for 2 s at most; with several asynchronous calls in flight, so long for each. A server that cannot be told, or that has no scheduler, carries the request
    /// out to its end.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl fmt::Debug for DistributableThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributableThread").field("id", &self.id()).field("state", &self.state()).finish()
    }
}

/// What one ORB knows of a distributable thread, as long as the thread is in it.
pub(crate) struct LocalThread {
    pub(crate) id: DistributableThreadId,
    /// A copy of what `calls` says, read without the lock.
    is_cancelled: AtomicBool,
    calls: PiLock<Calls>,
    orb: Weak<Threads>,
}

#[derive(Default)]
struct Calls {
    is_cancelled: bool,
    /// The requests that the thread has sent and that are not answered, the latest last.
    in_flight: Vec<InFlight>,
}

struct InFlight {
    operation: String,
    target: ObjectRef,
    /// By which the server has been told that the thread is cancelled. Its connection lasts until the reply is there.
    told_by: Option<ObjectRef>,
}

impl InFlight {
    fn is(&self, target: &ObjectRef, operation: &str) -> bool {
        self.operation == operation && self.target.with_ior(|own| target.with_ior(|other| own == other))
    }
}

impl LocalThread {
    fn cancel(&self) {
        let Some(in_flight) = self.note_cancelled() else { return };
        let Some(orb) = self.orb.upgrade() else { return };
        orb.remember_cancelled(self.id);
        orb.scheduler.cancel(self.id);
        for (target, operation) in in_flight {
            self.tell(&orb, &target, &operation);
        }
    }

    /// Notes that the thread is cancelled. Returns its requests in flight, the latest first, if it was not cancelled
    /// before: a thread is in one server, but asynchronous calls go on in others.
    fn note_cancelled(&self) -> Option<Vec<(ObjectRef, String)>> {
        let mut calls = self.calls.lock();
        self.is_cancelled.store(true, Ordering::Release);
        let was_cancelled = std::mem::replace(&mut calls.is_cancelled, true);
        let in_flight =
            calls.in_flight.iter().rev().map(|call| (call.target.clone(), call.operation.clone()));
        (!was_cancelled).then(|| in_flight.collect())
    }

    /// Tells the server of a request.
    fn tell(&self, orb: &Threads, target: &ObjectRef, operation: &str) {
        let told_by = (orb.parts.private)(target);
        let mut calls = self.calls.lock();
        let untold = |call: &&mut InFlight| call.told_by.is_none() && call.is(target, operation);
        let Some(call) = calls.in_flight.iter_mut().rfind(untold) else { return };
        call.told_by = Some(told_by.clone());
        drop(calls);
        (orb.parts.send_cancel)(&told_by, self.id);
    }

    /// Notes what a reply says: the thread is cancelled, and in no server.
    pub(super) fn is_cancelled_by_server(&self) {
        let _where_it_was = self.note_cancelled();
    }

    /// Notes a request that is about to be sent. False if the thread is cancelled: the request must not be sent.
    pub(super) fn begin_call(&self, target: &ObjectRef, operation: &str) -> bool {
        let call = InFlight { operation: operation.to_owned(), target: target.clone(), told_by: None };
        let mut calls = self.calls.lock();
        if !calls.is_cancelled {
            calls.in_flight.push(call);
        }
        !calls.is_cancelled
    }

    /// Notes that a request has been answered.
    pub(super) fn end_call(&self, target: &ObjectRef, operation: &str) {
        let mut calls = self.calls.lock();
        let at = calls.in_flight.iter().rposition(|call| call.is(target, operation));
        let ended = at.map(|at| calls.in_flight.remove(at));
        drop(calls);
        drop(ended); // closes a connection
    }
}

impl Drop for LocalThread {
    fn drop(&mut self) {
        if let Some(orb) = self.orb.upgrade() {
            orb.forget(self.id);
        }
    }
}

/// What the drivers give to the threads of an ORB.
pub(crate) struct ThreadParts {
    pub(crate) real_time: RealTimeConfig,
    pub(crate) randomness: Randomness,
    pub(crate) now: fn() -> Time,
    /// The reference with a connection of its own.
    pub(crate) private: fn(&ObjectRef) -> ObjectRef,
    /// Tells the server of a reference that a thread is cancelled.
    pub(crate) send_cancel: fn(&ObjectRef, DistributableThreadId),
}

/// The distributable threads of an ORB.
pub(crate) struct Threads {
    pub(crate) scheduler: Arc<dyn Scheduler>,
    pub(crate) parts: ThreadParts,
    table: PiLock<Table>,
}

#[derive(Default)]
struct Table {
    live: BTreeMap<DistributableThreadId, Weak<LocalThread>>,
    /// Threads that have been cancelled, the oldest first: requests may bring them later.
    cancelled: VecDeque<DistributableThreadId>,
}

/// The most threads that are known to be cancelled while they are not here. Beyond that the oldest are forgotten.
const CANCELLED_MAX: usize = 256;

impl Threads {
    pub(super) fn new(scheduler: Arc<dyn Scheduler>, parts: ThreadParts) -> Arc<Threads> {
        Arc::new(Threads { scheduler, parts, table: PiLock::new(Table::default()) })
    }

    /// An id that no other thread has.
    pub(super) fn new_id(&self) -> DistributableThreadId {
        let randomness = &self.parts.randomness;
        DistributableThreadId::of_random([randomness.draw(), randomness.draw()])
    }

    /// The thread with an id: one that is in this ORB already, or one that comes now.
    pub(super) fn join(self: &Arc<Self>, id: DistributableThreadId) -> Arc<LocalThread> {
        let mut table = self.table.lock();
        if let Some(live) = table.live.get(&id).and_then(Weak::upgrade) {
            return live;
        }
        let is_cancelled = table.cancelled.contains(&id);
        let calls = Calls { is_cancelled, in_flight: Vec::new() };
        let thread = Arc::new(LocalThread {
            id,
            is_cancelled: AtomicBool::new(is_cancelled),
            calls: PiLock::new(calls),
            orb: Arc::downgrade(self),
        });
        table.live.insert(id, Arc::downgrade(&thread));
        thread
    }

    pub(super) fn lookup(&self, id: DistributableThreadId) -> Option<DistributableThread> {
        self.table.lock().live.get(&id).and_then(Weak::upgrade).map(DistributableThread)
    }

    /// Cancels a thread because a client says so.
    pub(super) fn cancel(&self, id: DistributableThreadId) {
        match self.lookup(id) {
            Some(thread) => thread.cancel(),
            None => self.remember_cancelled(id),
        }
    }

    fn remember_cancelled(&self, id: DistributableThreadId) {
        self.table.lock().remember_cancelled(id);
    }

    fn forget(&self, id: DistributableThreadId) {
        let mut table = self.table.lock();
        if table.live.get(&id).is_some_and(|thread| thread.strong_count() == 0) {
            table.live.remove(&id);
        }
    }
}

impl Table {
    fn remember_cancelled(&mut self, id: DistributableThreadId) {
        if self.cancelled.contains(&id) {
            return;
        }
        if self.cancelled.len() >= CANCELLED_MAX {
            self.cancelled.pop_front();
        }
        self.cancelled.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::FixedPriority;
    use super::*;

    fn threads() -> Arc<Threads> {
        let parts = ThreadParts {
            real_time: RealTimeConfig::new(),
            randomness: Randomness::new(None),
            now: || Time::ZERO,
            private: ObjectRef::clone,
            send_cancel: |_, _| {},
        };
        Threads::new(Arc::new(FixedPriority), parts)
    }

    #[test]
    fn ids_differ_between_orbs_and_threads() {
        let orbs = [threads(), threads()];
        let mut ids: Vec<_> = (0..1_000).map(|number| orbs[number % 2].new_id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 1_000);
    }

    #[test]
    fn a_thread_is_known_while_it_is_there_and_stays_cancelled() {
        let threads = threads();
        let id = threads.new_id();
        let first = threads.join(id);
        assert!(Arc::ptr_eq(&first, &threads.join(id)));
        assert!(threads.lookup(id).is_some_and(|thread| thread.id() == id && !thread.is_cancelled()));
        threads.cancel(id);
        assert!(threads.lookup(id).is_some_and(|thread| thread.is_cancelled()));
        drop(first);
        assert!(threads.lookup(id).is_none() && threads.table.lock().live.is_empty());
        // Another request of it may have waited.
        assert!(DistributableThread(threads.join(id)).is_cancelled());
    }

    #[test]
    fn cancellations_ahead_of_their_requests_are_kept_up_to_a_limit() {
        let threads = threads();
        let ids: Vec<_> = (0..10_000).map(|_| threads.new_id()).collect();
        ids.iter().for_each(|id| threads.cancel(*id));
        assert_eq!(threads.table.lock().cancelled.len(), CANCELLED_MAX);
        let last = *ids.last().unwrap();
        assert!(DistributableThread(threads.join(last)).is_cancelled());
        assert!(!DistributableThread(threads.join(ids[0])).is_cancelled());
    }
}
