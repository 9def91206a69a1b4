//! Checks what was read against what was written: whether each read had its bound.
//!
//! All moments are those of one clock that sees everything, as a simulator has it. Every value is written once, so that a read
//! tells which write it saw.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::time::Moment;

/// What has been written and read.
#[derive(Debug, Clone)]
pub struct History<K, V> {
    objects: BTreeMap<K, Vec<Write<V>>>,
    reads: Vec<SeenRead<K, V>>,
    own: Vec<OwnWrite<K, V>>,
}

/// A value from its commit to the next one.
#[derive(Debug, Clone)]
struct Write<V> {
    /// `None`: the object was removed.
    value: Option<V>,
    at: Moment,
}

/// A read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRead<K, V> {
    /// Who has read.
    pub reader: usize,
    /// The object.
    pub object: K,
    /// What it was.
    pub value: V,
    /// When the read was called.
    pub from: Moment,
    /// When it returned.
    pub to: Moment,
    /// How stale the value may be.
    pub lag: Duration,
    /// How many writes before the call it may have missed, where that is bounded.
    pub missed_max: Option<usize>,
}

/// A write whose writer has been told that it is done.
#[derive(Debug, Clone)]
struct OwnWrite<K, V> {
    writer: usize,
    object: K,
    value: V,
    told: Moment,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation<K, V> {
    /// The read that shows it.
    pub read: SeenRead<K, V>,
    /// What is wrong.
    pub what: Wrong,
}

/// What can be wrong with a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The object has never had this value.
    NeverWritten,
    /// The object did not have this value before the read returned.
    FromTheFuture,
    /// The object has not had this value any more for so much longer than the lag.
    TooOld(Duration),
    /// The value misses so many writes too many.
    Missed(usize),
    /// The reader had seen a later value before.
    Backwards,
    /// The reader had written a later value itself.
    NotOwnWrite,
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Display for Violation<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {:?}", self.what, self.read)
    }
}

impl<K, V> Default for History<K, V> {
    fn default() -> Self {
        History { objects: BTreeMap::new(), reads: Vec::new(), own: Vec::new() }
    }
}

impl<K: Ord + Clone, V: PartialEq + Clone> History<K, V> {
    /// Notes a commit. Those of an object come in their order.
    pub fn wrote(&mut self, object: &K, value: V, at: Moment) {
        self.note(object, Some(value), at);
    }

    /// Notes that an object has been removed.
    pub fn removed(&mut self, object: &K, at: Moment) {
        self.note(object, None, at);
    }

    fn note(&mut self, object: &K, value: Option<V>, at: Moment) {
        self.objects.entry(object.clone()).or_default().push(Write { value, at });
    }

    /// Notes that a writer has been told of its own write.
    pub fn told(&mut self, writer: usize, object: &K, value: V, told: Moment) {
        self.own.push(OwnWrite { writer, object: object.clone(), value, told });
    }

    /// Notes a read. Those of a reader come in the order in which they returned.
    pub fn read(&mut self, read: SeenRead<K, V>) {
        self.reads.push(read);
    }

    /// How many reads it has.
    pub fn reads(&self) -> usize {
        self.reads.len()
    }

    /// The reads that break a promise.
    pub fn violations(&self) -> Vec<Violation<K, V>> {
        // By reader and object: the place of the latest value that it must not fall behind, and since when.
        let mut seen: BTreeMap<(usize, &K), Vec<(Moment, usize)>> = BTreeMap::new();
        let mut own: BTreeMap<(usize, &K), Vec<(Moment, usize)>> = BTreeMap::new();
        for write in &self.own {
            if let Some(place) = self.place(&write.object, &write.value) {
                own.entry((write.writer, &write.object)).or_default().push((write.told, place));
            }
        }
        let mut found = Vec::new();
        for read in &self.reads {
            let place = self.place(&read.object, &read.value);
            let wrong = self.wrong(read, place).or_else(|| {
                let place = place?;
                let key = (read.reader, &read.object);
                let is_behind = |floors: Option<&Vec<(Moment, usize)>>| {
                    floors.is_some_and(|all| {
                        all.iter().any(|(since, least)| *since <= read.from && place < *least)
                    })
                };
                if is_behind(seen.get(&key)) {
                    return Some(Wrong::Backwards);
                }
                let floors = seen.entry(key).or_default();
                // Only a later value says more.
                if floors.last().is_none_or(|(_, least)| place > *least) {
                    floors.push((read.to, place));
                }
                is_behind(own.get(&key)).then_some(Wrong::NotOwnWrite)
            });
            found.extend(wrong.map(|what| Violation { read: read.clone(), what }));
        }
        found
    }

    fn place(&self, object: &K, value: &V) -> Option<usize> {
        self.objects.get(object)?.iter().position(|write| write.value.as_ref() == Some(value))
    }

    /// Whether there is no instant in `[from - lag, to]` at which the object had the value, which stands at this place.
    fn wrong(&self, read: &SeenRead<K, V>, place: Option<usize>) -> Option<Wrong> {
        let Some(place) = place else { return Some(Wrong::NeverWritten) };
        let writes = &self.objects[&read.object];
        if writes[place].at > read.to {
            return Some(Wrong::FromTheFuture);
        }
        let after = &writes[place + 1..];
        let missed = after.iter().take_while(|write| write.at <= read.from).count();
        if let Some(more) = read.missed_max.and_then(|most| missed.checked_sub(most)).filter(|more| *more > 0)
        {
            return Some(Wrong::Missed(more));
        }
        let gone = after.first()?.at;
        // It was there before `gone`, and not at it any more.
        let stale = read.from.since(gone)?;
        (stale >= read.lag).then(|| Wrong::TooOld(stale - read.lag))
    }
}
