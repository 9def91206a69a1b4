//! What crates above the ORB count, as a part of what the ORB tells of itself.

use std::fmt;
use std::sync::Arc;

use crate::base::locks::PiLock;

/// A number that a crate above the ORB tells operators. See [`Orb::add_readings`](crate::Orb::add_readings).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// As `jobs_total`. The text for Prometheus puts `ironorb_` before it.
    pub name: &'static str,
    /// Whether it may sink.
    pub kind: ReadingKind,
    /// What is counted, in a sentence.
    pub help: &'static str,
    /// What tells it from others with its name.
    pub label: Option<(&'static str, &'static str)>,
    /// The number. Those with one name and one label are added up.
    pub value: u64,
}

/// Whether a number may sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingKind {
    /// It only grows. What it was when its source ended is kept.
    Counter,
    /// It is what it is now. It ends with its source.
    Gauge,
}

/// Where readings come from.
pub(crate) type Source = Arc<dyn Fn() -> Vec<Reading> + Send + Sync>;

/// All sources of an ORB.
#[derive(Default)]
pub(crate) struct Added(PiLock<Sources>);

#[derive(Default)]
struct Sources {
    alive: Vec<(u64, Source)>,
    next: u64,
    /// The counters of those that have ended.
    ended: Vec<Reading>,
}

impl Added {
    pub(crate) fn add(&self, source: Source) -> u64 {
        let mut sources = self.0.lock();
        let number = sources.next;
        sources.next += 1;
        sources.alive.push((number, source));
        number
    }

    /// Ends a source. Its counters stay as they are.
    pub(crate) fn end(&self, number: u64) {
        let is_it = |(other, _): &(u64, Source)| *other == number;
        let Some((_, source)) = self.0.lock().alive.iter().find(|it| is_it(it)).cloned() else { return };
        // The source is the program's code, and no lock is held while it runs.
        let mut last = source();
        last.retain(|reading| reading.kind == ReadingKind::Counter);
        let mut sources = self.0.lock();
        sources.alive.retain(|it| !is_it(it));
        sum_up(&mut sources.ended, last);
    }

    /// What all sources tell now.
    pub(crate) fn read(&self) -> Vec<Reading> {
        let (mut sum, alive) = {
            let sources = self.0.lock();
            (sources.ended.clone(), sources.alive.clone())
        };
        // One that ends meanwhile is in the list or among the ended, and not in both.
        alive.iter().for_each(|(_, source)| sum_up(&mut sum, source()));
        sum
    }
}

fn sum_up(sum: &mut Vec<Reading>, readings: Vec<Reading>) {
    for reading in readings {
        let is_same = |known: &&mut Reading| (known.name, known.label) == (reading.name, reading.label);
        match sum.iter_mut().find(is_same) {
            Some(known) => known.value = known.value.saturating_add(reading.value),
            None => sum.push(reading),
        }
    }
}

impl fmt::Debug for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Added").field(&self.0.lock().alive.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn reading(name: &'static str, kind: ReadingKind, value: u64) -> Reading {
        Reading { name, kind, help: "", label: None, value }
    }

    fn told(added: &Added) -> Vec<(&'static str, u64)> {
        added.read().into_iter().map(|reading| (reading.name, reading.value)).collect()
    }

    #[test]
    fn sources_are_added_up_and_counters_outlive_them() {
        let added = Added::default();
        let count = Arc::new(AtomicU64::new(2));
        let (counted, add) = (count.clone(), |source: Source| added.add(source));
        let one = add(Arc::new(move || {
            let value = counted.load(Ordering::Relaxed);
            vec![
                reading("jobs_total", ReadingKind::Counter, value),
                reading("queued", ReadingKind::Gauge, value),
            ]
        }));
        let labelled =
            Reading { label: Some(("way", "S")), ..reading("jobs_total", ReadingKind::Counter, 5) };
        let other = add(Arc::new(move || vec![reading("jobs_total", ReadingKind::Counter, 10), labelled]));
        assert_eq!(told(&added), [("jobs_total", 12), ("queued", 2), ("jobs_total", 5)]);
        count.store(3, Ordering::Relaxed);
        added.end(one);
        // The second time there is nothing to end.
        added.end(one);
        assert_eq!(told(&added), [("jobs_total", 13), ("jobs_total", 5)]);
        added.end(other);
        assert_eq!(told(&added), [("jobs_total", 13), ("jobs_total", 5)]);
    }

    #[test]
    fn a_source_may_look_at_its_orb() {
        let added = Arc::new(Added::default());
        let seen = Arc::downgrade(&added);
        let number = added.add(Arc::new(move || {
            // As a source does that takes the ORB's status: a lock that is held now would never be free.
            drop(seen.upgrade().map(|added| format!("{added:?}")));
            Vec::new()
        }));
        assert!(added.read().is_empty());
        added.end(number);
    }
}
