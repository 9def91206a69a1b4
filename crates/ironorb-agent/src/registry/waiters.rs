//! Watchers that wait for a change.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use super::changes::{Change, Selection};

/// Watchers that wait, each with what it is answered by.
#[derive(Debug)]
pub struct Waiters<R> {
    waiting: HashMap<u64, Waiter<R>>,
    by_name: HashMap<Box<str>, Vec<u64>>,
    by_prefix: Vec<(Box<str>, u64)>,
    ends: BinaryHeap<Reverse<(Duration, u64)>>,
    next_id: u64,
}

#[derive(Debug)]
struct Waiter<R> {
    since: u64,
    selection: Selection,
    reply: R,
}

/// A watcher that waits no longer.
#[derive(Debug)]
#[non_exhaustive]
pub struct Woken<R> {
    /// The revision up to which it knows all changes.
    pub since: u64,
    /// Which names it wants to hear of.
    pub selection: Selection,
    /// What it is answered by.
    pub reply: R,
}

impl<R> Default for Waiters<R> {
    fn default() -> Self {
        Waiters {
            waiting: HashMap::new(),
            by_name: HashMap::new(),
            by_prefix: Vec::new(),
            ends: BinaryHeap::new(),
            next_id: 0,
        }
    }
}

impl<R> Waiters<R> {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a watcher that waits until `ends` at most.
    pub fn add(&mut self, since: u64, selection: Selection, ends: Duration, reply: R) {
        let id = self.next_id;
        self.next_id += 1;
        match &selection {
            Selection::Names(names) => {
                for name in names {
                    self.by_name.entry(name.as_str().into()).or_default().push(id);
                }
            }
            Selection::Prefix(prefix) => self.by_prefix.push((prefix.as_str().into(), id)),
        }
        self.ends.push(Reverse((ends, id)));
        self.waiting.insert(id, Waiter { since, selection, reply });
    }

    /// Takes those that wait for one of these changes.
    pub fn take_woken(&mut self, changes: &[Change]) -> Vec<Woken<R>> {
        let mut ids = Vec::new();
        for change in changes {
            if let Some(waiting) = self.by_name.get(&*change.name) {
                ids.extend_from_slice(waiting);
            }
            let prefixes = self.by_prefix.iter().filter(|(prefix, _)| change.name.starts_with(&**prefix));
            ids.extend(prefixes.map(|(_, id)| *id));
        }
        ids.into_iter().filter_map(|id| self.take(id)).collect()
    }

    /// Takes those whose time is over, and those that need no answer any more.
    pub fn take_ended(&mut self, now: Duration) -> Vec<Woken<R>> {
        let mut woken = Vec::new();
        while let Some(Reverse((due, id))) = self.ends.peek().copied() {
            if due > now {
                break;
            }
            self.ends.pop();
            woken.extend(self.take(id));
        }
        woken
    }

    /// Takes those that `is_gone` says wait for nothing any more.
    pub fn take_gone(&mut self, is_gone: impl Fn(&R) -> bool) -> Vec<Woken<R>> {
        let gone: Vec<_> =
            self.waiting.iter().filter(|(_, waiter)| is_gone(&waiter.reply)).map(|(id, _)| *id).collect();
        gone.into_iter().filter_map(|id| self.take(id)).collect()
    }

    /// A time before which none's time is over.
    pub fn next_end(&self) -> Option<Duration> {
        self.ends.peek().map(|Reverse((due, _))| *due)
    }

    fn take(&mut self, id: u64) -> Option<Woken<R>> {
        let Waiter { since, selection, reply } = self.waiting.remove(&id)?;
        match &selection {
            Selection::Names(names) => {
                for name in names {
                    if let Some(waiting) = self.by_name.get_mut(&**name) {
                        waiting.retain(|other| *other != id);
                        if waiting.is_empty() {
                            self.by_name.remove(&**name);
                        }
                    }
                }
            }
            Selection::Prefix(_) => self.by_prefix.retain(|(_, other)| *other != id),
        }
        Some(Woken { since, selection, reply })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::changes::ChangeKind;
    use super::super::entry::Entry;
    use super::*;

    fn change(name: &str) -> Change {
        let entry = Entry {
            reference: "r".into(),
            properties: Box::default(),
            owner: 1,
            revision: 1,
            is_exclusive: false,
        };
        Change { revision: 1, name: name.into(), kind: ChangeKind::Put, entry: Arc::new(entry) }
    }

    #[test]
    fn a_change_wakes_those_that_wait_for_it_once() {
        let mut waiters = Waiters::default();
        let names = |names: &[&str]| Selection::Names(names.iter().map(|name| (*name).to_owned()).collect());
        let second = Duration::from_secs(1);
        waiters.add(0, names(&["a", "b"]), second, 1);
        waiters.add(0, names(&["b"]), 2 * second, 2);
        waiters.add(0, Selection::Prefix("a".into()), 3 * second, 3);
        let mut woken: Vec<_> =
            waiters.take_woken(&[change("a"), change("ab")]).into_iter().map(|woken| woken.reply).collect();
        woken.sort_unstable();
        assert_eq!(woken, [1, 3]);
        assert!(waiters.take_ended(second).is_empty(), "it had been woken");
        assert_eq!(waiters.take_ended(2 * second).len(), 1);
        assert!(waiters.is_empty() && waiters.by_name.is_empty() && waiters.by_prefix.is_empty());
    }
}
