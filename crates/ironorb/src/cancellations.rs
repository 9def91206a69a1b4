//! Which requests of one client nobody waits for any more, and who wants to know (CORBA 3.3 part 2, 9.4.6).
//!
//! Only answers that come later can ask, and only those that do are known here. Runs no code of a program's: what is to be
//! called is given to the driver, which must hold no lock then.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Mutex;

use ironorb_giop::message::RequestId;

use crate::sync::lock;

/// Is called when nobody waits any more.
pub(crate) type OnCancel = Box<dyn FnOnce() + Send>;

/// Of all requests of one connection.
#[derive(Default)]
pub(crate) struct Cancellations {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// The client is gone.
    is_over: bool,
    watched: HashMap<RequestId, Entry>,
    /// Cancelled while in progress, before anybody asked.
    unclaimed: VecDeque<RequestId>,
    next_number: u64,
}

struct Entry {
    /// Tells it from another request with the same id, which only a client at fault sends meanwhile.
    number: u64,
    then: Option<OnCancel>,
}

/// What has become of a client's word that it no longer waits.
pub(crate) enum Cancelled {
    /// Nothing: the request has been answered, or will be all the same.
    Ignored,
    /// Kept until somebody asks. Requests that come are to be told to [`Cancellations::begins`].
    Recorded,
    /// To be called.
    Notify(OnCancel),
}

/// Cancelled requests of a connection that are remembered until somebody asks; of more the oldest are answered all the same.
const UNCLAIMED_MAX: usize = 256;

impl Cancellations {
    /// The client no longer waits for this. `is_in_progress` is false where no request is, so that nobody can ask later.
    pub(crate) fn cancel(&self, id: RequestId, is_in_progress: bool) -> Cancelled {
        let mut table = lock(&self.table);
        match table.watched.remove(&id) {
            Some(Entry { then: Some(then), .. }) => Cancelled::Notify(then),
            Some(Entry { then: None, .. }) => Cancelled::Ignored, // who polls sees it
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

    /// Another request with this id has come: what was said of it before was about one that is over. False when nothing
    /// is kept any more.
    pub(crate) fn begins(&self, id: Option<RequestId>) -> bool {
        let mut table = lock(&self.table);
        table.unclaimed.retain(|other| Some(*other) != id);
        !table.unclaimed.is_empty()
    }

    /// Nothing is in progress.
    pub(crate) fn forget_unclaimed(&self) {
        lock(&self.table).unclaimed.clear();
    }

    /// The client is gone: gives all that are to be called.
    pub(crate) fn end(&self) -> Vec<OnCancel> {
        let mut table = lock(&self.table);
        table.is_over = true;
        table.unclaimed = VecDeque::new();
        std::mem::take(&mut table.watched).into_values().filter_map(|entry| entry.then).collect()
    }

    /// Whether the client is gone.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.table).is_over
    }

    fn watch(&self, id: RequestId) -> State {
        let mut table = lock(&self.table);
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
        if table.watched.contains_key(&id) {
            return State::Done;
        }
        table.next_number += 1;
        let number = table.next_number;
        table.watched.insert(id, Entry { number, then: None });
        State::Watched(id, number)
    }
}

impl Table {
    fn entry(&mut self, id: RequestId, number: u64) -> Option<&mut Entry> {
        self.watched.get_mut(&id).filter(|entry| entry.number == number)
    }
}

/// One request's part in it. Is to be [ended](Watch::end) with the request.
#[derive(Default)]
pub(crate) struct Watch(Cell<State>);

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Unasked,
    Watched(RequestId, u64),
    Cancelled,
    /// It has been answered, or its client is at fault: nothing more is heard of it.
    Done,
}

impl Watch {
    /// Whether nobody waits for this request.
    pub(crate) fn is_cancelled(&self, all: &Cancellations, id: RequestId) -> bool {
        let state = match self.0.get() {
            State::Unasked => all.watch(id),
            State::Watched(id, number) if lock(&all.table).entry(id, number).is_none() => State::Cancelled,
            state => state,
        };
        self.0.set(state);
        state == State::Cancelled
    }

    /// Has `then` called when nobody waits any more: now if that is so already. One that was given before is not.
    pub(crate) fn on_cancel(&self, all: &Cancellations, id: RequestId, then: OnCancel) {
        if self.is_cancelled(all, id) {
            return then();
        }
        let State::Watched(id, number) = self.0.get() else { return };
        let mut table = lock(&all.table);
        match table.entry(id, number) {
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

    /// The request is answered, or will not be. True if somebody has asked, and nobody waits.
    #[inline]
    pub(crate) fn end(&self, all: &Cancellations) -> bool {
        match self.0.get() {
            State::Unasked | State::Done => false,
            State::Watched(id, number) => self.end_watched(all, id, number),
            State::Cancelled => true,
        }
    }

    fn end_watched(&self, all: &Cancellations, id: RequestId, number: u64) -> bool {
        let mut table = lock(&all.table);
        let is_watched = table.entry(id, number).is_some();
        let entry = if is_watched { table.watched.remove(&id) } else { None };
        drop(table);
        drop(entry);
        self.0.set(if is_watched { State::Done } else { State::Cancelled });
        !is_watched
    }
}

impl fmt::Debug for Cancellations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellations").field("watched", &lock(&self.table).watched.len()).finish()
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
    fn who_asks_is_told_once_and_knows() {
        let (all, watch, told) = (Cancellations::default(), Watch::default(), Arc::default());
        watch.on_cancel(&all, ID, counting(&told));
        assert!(!watch.is_cancelled(&all, ID));
        match all.cancel(ID, true) {
            Cancelled::Notify(then) => then(),
            Cancelled::Recorded | Cancelled::Ignored => panic!(),
        }
        assert!(watch.is_cancelled(&all, ID) && watch.end(&all));
        assert!(all.end().is_empty());
        assert_eq!(told.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_was_said_before_anybody_asked_is_kept_for_its_request_alone() {
        let (all, told) = (Cancellations::default(), Arc::default());
        assert!(matches!(all.cancel(ID, true), Cancelled::Recorded));
        let watch = Watch::default();
        watch.on_cancel(&all, ID, counting(&told));
        assert!(watch.end(&all));
        assert_eq!(told.load(Ordering::Relaxed), 1);
        // It has been answered before anybody asked, and another comes with its id.
        assert!(matches!(all.cancel(ID, true), Cancelled::Recorded));
        assert!(all.begins(Some(RequestId(8))) && !all.begins(Some(ID)));
        assert!(!Watch::default().is_cancelled(&all, ID));
        assert!(matches!(all.cancel(RequestId(9), false), Cancelled::Ignored));
        assert!(!Watch::default().is_cancelled(&all, RequestId(9)));
    }

    #[test]
    fn what_is_answered_leaves_nothing() {
        let (all, told) = (Cancellations::default(), Arc::default());
        let watch = Watch::default();
        watch.on_cancel(&all, ID, counting(&told));
        assert!(!watch.end(&all));
        assert_eq!(Arc::strong_count(&told), 1);
        assert!(matches!(all.cancel(ID, false), Cancelled::Ignored));
        // Two requests with one id, which only a client at fault sends: the second is never told.
        let (first, second) = (Watch::default(), Watch::default());
        first.on_cancel(&all, ID, counting(&told));
        second.on_cancel(&all, ID, counting(&told));
        assert!(!second.end(&all) && !first.end(&all));
        assert_eq!((told.load(Ordering::Relaxed), Arc::strong_count(&told)), (0, 1));
    }

    #[test]
    fn with_the_client_all_are_told_and_later_ones_know() {
        let (all, told) = (Cancellations::default(), Arc::default());
        let watches: Vec<_> = (0..5).map(|_| Watch::default()).collect();
        for (id, watch) in (0..).zip(&watches) {
            watch.on_cancel(&all, RequestId(id), counting(&told));
        }
        all.end().into_iter().for_each(|then| then());
        assert!(watches.iter().all(|watch| watch.end(&all)));
        Watch::default().on_cancel(&all, ID, counting(&told));
        assert_eq!(told.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn a_client_that_cancels_without_end_is_remembered_in_part() {
        let all = Cancellations::default();
        for id in 0..100_000 {
            assert!(matches!(all.cancel(RequestId(id), true), Cancelled::Recorded));
        }
        assert_eq!(lock(&all.table).unclaimed.len(), UNCLAIMED_MAX);
        assert!(Watch::default().is_cancelled(&all, RequestId(99_999)));
    }
}
