//! The requests of one client that it has cancelled, and the callbacks that run then (CORBA 3.3 part 2,
//! 9.4.6).
//!
//! Only servants that reply later can ask, and only requests about which they ask have an entry here. Nothing
//! here runs code of a program: callbacks are returned to the driver, which must hold no lock when it runs
//! them.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use ironorb_giop::message::RequestId;

use crate::base::locks::LaneLock;

/// Runs when the client no longer waits.
pub(crate) type OnCancel = Box<dyn FnOnce() + Send>;

/// The cancellations of one connection's requests.
#[derive(Default)]
pub(crate) struct Cancellations {
    /// Made for the first servant that asks, or the first cancellation.
    table: LaneLock<Option<Box<Table>>>,
}

#[derive(Default)]
struct Table {
    /// The client has gone.
    is_over: bool,
    /// By request id.
    watched: BTreeMap<u32, Entry>,
    /// Requests that were cancelled while in progress, before the servant asked.
    unclaimed: VecDeque<RequestId>,
    next_number: u64,
}

struct Entry {
    /// Separates the request from a second one with the same id, which only a faulty client sends.
    number: u64,
    then: Option<OnCancel>,
}

/// The result of a client's CancelRequest.
pub(crate) enum Cancelled {
    /// No effect: the request has been answered, or will be answered nevertheless.
    Ignored,
    /// Recorded until the servant asks. New requests must be passed to [`Cancellations::begins`].
    Recorded,
    /// The callback to run.
    Notify(OnCancel),
}

/// The most cancelled requests of a connection that are recorded before a servant asks. Beyond that the
/// oldest are answered nevertheless.
const UNCLAIMED_MAX: usize = 256;

impl Cancellations {
    /// Records that the client no longer waits for a request. `is_in_progress` is false when no request is in
    /// progress, so that no servant can ask later.
    pub(crate) fn cancel(&self, id: RequestId, is_in_progress: bool) -> Cancelled {
        let mut table = self.table.lock();
        let table = table.get_or_insert_default();
        match table.watched.remove(&id.0) {
            Some(Entry { then: Some(then), .. }) => Cancelled::Notify(then),
            Some(Entry { then: None, .. }) => Cancelled::Ignored, // a servant that polls sees it
            None if is_in_progress => {
                if !table.unclaimed.contains(&id) {
                    if table.unclaimed.len() >= UNCLAIMED_MAX {
                        table.unclaimed.pop_front();
                    }
                    table.unclaimed.push_back(id);
                }
                Cancelled::Recorded
            }
            None => Cancelled::Ignored,
        }
    }

    /// Forgets a recorded cancellation when a new request with its id has come: it was for an earlier
    /// request. False when nothing is recorded any more.
    pub(crate) fn begins(&self, id: Option<RequestId>) -> bool {
        self.table.lock().as_mut().is_some_and(|table| {
            table.unclaimed.retain(|other| Some(*other) != id);
            !table.unclaimed.is_empty()
        })
    }

    /// Forgets all recorded cancellations, because no request is in progress.
    pub(crate) fn forget_unclaimed(&self) {
        if let Some(table) = &mut *self.table.lock() {
            table.unclaimed.clear();
        }
    }

    /// Records that the client has gone, and returns all callbacks that are to run.
    pub(crate) fn end(&self) -> Vec<OnCancel> {
        let mut table = self.table.lock();
        let table = table.get_or_insert_default();
        table.is_over = true;
        table.unclaimed = VecDeque::new();
        std::mem::take(&mut table.watched).into_values().filter_map(|entry| entry.then).collect()
    }

    /// Whether the client has gone.
    pub(crate) fn is_over(&self) -> bool {
        self.table.lock().as_ref().is_some_and(|table| table.is_over)
    }

    fn is_watched(&self, id: RequestId, number: u64) -> bool {
        self.table.lock().as_mut().is_some_and(|table| table.entry(id, number).is_some())
    }

    fn watch(&self, id: RequestId) -> State {
        let mut table = self.table.lock();
        let table = table.get_or_insert_default();
        let is_cancelled = match table.unclaimed.iter().position(|other| *other == id) {
            Some(index) => {
                table.unclaimed.remove(index);
                true
            }
            None => table.is_over,
        };
        if is_cancelled {
            return State::Cancelled;
        }
        if table.watched.contains_key(&id.0) {
            return State::Done;
        }
        table.next_number += 1;
        let number = table.next_number;
        table.watched.insert(id.0, Entry { number, then: None });
        State::Watched(id, number)
    }
}

impl Table {
    fn entry(&mut self, id: RequestId, number: u64) -> Option<&mut Entry> {
        self.watched.get_mut(&id.0).filter(|entry| entry.number == number)
    }
}

/// The cancellation state of one request. It must be [ended](Watch::end) with the request.
#[derive(Default)]
pub(crate) struct Watch(Cell<State>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Unasked,
    Watched(RequestId, u64),
    Cancelled,
    /// The request has been answered, or its client is faulty: no cancellation follows.
    Done,
}

impl Watch {
    /// Whether the client no longer waits for the request.
    pub(crate) fn is_cancelled(&self, all: &Cancellations, id: RequestId) -> bool {
        let state = match self.0.get() {
            State::Unasked => all.watch(id),
            State::Watched(id, number) if !all.is_watched(id, number) => State::Cancelled,
            state => state,
        };
        self.0.set(state);
        state == State::Cancelled
    }

    /// Calls `then` when the client no longer waits, at once if that is so already. Replaces a callback that
    /// was set before.
    pub(crate) fn on_cancel(&self, all: &Cancellations, id: RequestId, then: OnCancel) {
        if self.is_cancelled(all, id) {
            return then();
        }
        let State::Watched(id, number) = self.0.get() else { return };
        let mut table = all.table.lock();
        match table.as_mut().and_then(|table| table.entry(id, number)) {
            Some(entry) => {
                let before = entry.then.replace(then);
                drop(table);
                drop(before);
            }
            None => {
                drop(table);
                then();
            }
        }
    }

    /// Ends the request, answered or not. True if the servant has asked and the client no longer waits.
    #[inline]
    pub(crate) fn end(&self, all: &Cancellations) -> bool {
        match self.0.get() {
            State::Unasked | State::Done => false,
            State::Watched(id, number) => self.end_watched(all, id, number),
            State::Cancelled => true,
        }
    }

    fn end_watched(&self, all: &Cancellations, id: RequestId, number: u64) -> bool {
        let entry = all.table.lock().as_mut().and_then(|table| {
            let is_watched = table.entry(id, number).is_some();
            if is_watched { table.watched.remove(&id.0) } else { None }
        });
        let is_watched = entry.is_some();
        drop(entry);
        self.0.set(if is_watched { State::Done } else { State::Cancelled });
        !is_watched
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.0.get()).finish()
    }
}

impl fmt::Debug for Cancellations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched = self.table.lock().as_ref().map_or(0, |table| table.watched.len());
        f.debug_struct("Cancellations").field("watched", &watched).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const ID: RequestId = RequestId(7);

    fn counting(count: &Arc<AtomicUsize>) -> OnCancel {
        let count = count.clone();
        Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        })
    }

    #[test]
    fn a_servant_that_asks_is_notified_once() {
        let (all, watch, notified) = (Cancellations::default(), Watch::default(), Arc::default());
        watch.on_cancel(&all, ID, counting(&notified));
        assert!(!watch.is_cancelled(&all, ID));
        match all.cancel(ID, true) {
            Cancelled::Notify(then) => then(),
            Cancelled::Recorded | Cancelled::Ignored => panic!(),
        }
        assert!(watch.is_cancelled(&all, ID) && watch.end(&all));
        assert!(all.end().is_empty());
        assert_eq!(notified.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_early_cancellation_is_recorded_for_its_request_alone() {
        let (all, notified) = (Cancellations::default(), Arc::default());
        assert!(matches!(all.cancel(ID, true), Cancelled::Recorded));
        let watch = Watch::default();
        watch.on_cancel(&all, ID, counting(&notified));
        assert!(watch.end(&all));
        assert_eq!(notified.load(Ordering::Relaxed), 1);
        // The request was answered before the servant asked, and a new one comes with its id.
        assert!(matches!(all.cancel(ID, true), Cancelled::Recorded));
        assert!(all.begins(Some(RequestId(8))) && !all.begins(Some(ID)));
        assert!(!Watch::default().is_cancelled(&all, ID));
        assert!(matches!(all.cancel(RequestId(9), false), Cancelled::Ignored));
        assert!(!Watch::default().is_cancelled(&all, RequestId(9)));
    }

    #[test]
    fn an_answered_request_leaves_no_entry() {
        let (all, notified) = (Cancellations::default(), Arc::default());
        let watch = Watch::default();
        watch.on_cancel(&all, ID, counting(&notified));
        assert!(!watch.end(&all));
        assert_eq!(Arc::strong_count(&notified), 1);
        assert!(matches!(all.cancel(ID, false), Cancelled::Ignored));
        // Two requests with one id, which only a faulty client sends: the second is never notified.
        let (first, second) = (Watch::default(), Watch::default());
        first.on_cancel(&all, ID, counting(&notified));
        second.on_cancel(&all, ID, counting(&notified));
        assert!(!second.end(&all) && !first.end(&all));
        assert_eq!((notified.load(Ordering::Relaxed), Arc::strong_count(&notified)), (0, 1));
    }

    #[test]
    fn when_the_client_goes_all_requests_are_notified() {
        let (all, notified) = (Cancellations::default(), Arc::default());
        let watches: Vec<_> = (0..5).map(|_| Watch::default()).collect();
        for (id, watch) in (0..).zip(&watches) {
            watch.on_cancel(&all, RequestId(id), counting(&notified));
        }
        all.end().into_iter().for_each(|then| then());
        assert!(watches.iter().all(|watch| watch.end(&all)));
        Watch::default().on_cancel(&all, ID, counting(&notified));
        assert_eq!(notified.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn recorded_cancellations_are_bounded() {
        let all = Cancellations::default();
        for id in 0..100_000 {
            assert!(matches!(all.cancel(RequestId(id), true), Cancelled::Recorded));
        }
        assert_eq!(all.table.lock().as_ref().unwrap().unclaimed.len(), UNCLAIMED_MAX);
        assert!(Watch::default().is_cancelled(&all, RequestId(99_999)));
    }
}
