//! Equal shares of processors: which of the time-shared threads is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::{Table, ThreadId, Time};

/// The most that a thread can be owed after a sleep: a tick of Linux, which bounds it there.
const OWED_MAX: i64 = 4_000_000;

/// Nanoseconds of a processor that a thread has had, counted so that threads which always had an equal share have the same.
pub(crate) type Received = i64;

/// Counts what threads receive, and keeps those that wait.
///
/// Of the threads that are ready each has a right to what they have received on average. A thread that has slept is owed what it was
/// owed before; if it had received more than its share, that passes with time. So does Linux since its version 6.6.
#[derive(Debug)]
pub(crate) struct Shares<T> {
    /// What all that are ready have received.
    total: i128,
    since: Time,
    running: u32,
    waiting: BinaryHeap<Waiting<T>>,
    entered: u64,
    /// What the last one that was ready had received.
    last: Received,
    /// Threads that sleep: by how much they had received less than the others, and what they had received.
    owed: Table<ThreadId, (Received, Received)>,
}

#[derive(Debug)]
struct Waiting<T> {
    received: Received,
    order: u64,
    what: T,
}

impl<T> Shares<T> {
    /// No thread is ready.
    pub(crate) fn new() -> Shares<T> {
        Shares {
            total: 0,
            since: Time::ZERO,
            running: 0,
            waiting: BinaryHeap::new(),
            entered: 0,
            last: 0,
            owed: Table::default(),
        }
    }

    /// What counts as received by a thread that becomes ready. It is to [`run`](Self::run) or to [`wait`](Self::wait) next.
    /// Nothing is owed where a processor is idle.
    pub(crate) fn wake(&mut self, now: Time, thread: ThreadId, is_idle: bool) -> Received {
        self.pass_to(now);
        let (average, ready) = (self.average(), self.ready());
        let owed = if self.owed.is_empty() { None } else { self.owed.remove(&thread) };
        match owed.filter(|_| !is_idle && ready > 0) {
            // With this thread the average is another, beside which it is owed as much.
            Some((owed, _)) if owed > 0 => average - owed - owed / ready,
            Some((_, received)) => average.max(received),
            None => average,
        }
    }

    /// A thread has nothing to do any more, and no processor.
    pub(crate) fn sleep(&mut self, thread: ThreadId, received: Received) {
        self.last = received;
        if self.waiting.is_empty() {
            return;
        }
        // It is no longer among the ready ones.
        let average = self.average_with(received);
        let owed = (average - received).min(OWED_MAX);
        if owed != 0 {
            self.owed.insert(thread, (owed, received));
        }
    }

    /// Whether a thread that becomes ready goes before a running one, which has received more than its share.
    pub(crate) fn is_due_before(&self, woken: Received, running: Received) -> bool {
        // The woken one counts already for the average.
        let average = self.average_with(woken);
        let is_first = self.waiting.peek().is_none_or(|first| woken < first.received);
        is_first && woken <= average && average < running
    }

    /// A processor takes one of these threads.
    pub(crate) fn run(&mut self, now: Time, received: Received) {
        self.pass_to(now);
        self.total += i128::from(received);
        self.running += 1;
    }

    /// A processor has one of these threads no longer, which has received so much.
    pub(crate) fn stop(&mut self, now: Time, received: Received) {
        self.pass_to(now);
        self.total -= i128::from(received);
        self.running -= 1;
    }

    /// A thread waits for a processor.
    pub(crate) fn wait(&mut self, now: Time, received: Received, what: T) {
        self.pass_to(now);
        self.total += i128::from(received);
        self.entered += 1;
        self.waiting.push(Waiting { received, order: self.entered, what });
    }

    /// The waiting thread that has received least.
    pub(crate) fn take(&mut self, now: Time) -> Option<T> {
        self.pass_to(now);
        let first = self.waiting.pop()?;
        self.total -= i128::from(first.received);
        Some(first.what)
    }

    /// Whether one waits that has received no more.
    pub(crate) fn has_one_due(&self, received: Received) -> bool {
        self.waiting.peek().is_some_and(|first| first.received <= received)
    }

    /// Takes a waiting thread away, if there is one that `is_it`.
    pub(crate) fn remove(&mut self, now: Time, is_it: impl Fn(&T) -> bool) -> bool {
        self.pass_to(now);
        let (before, total) = (self.waiting.len(), &mut self.total);
        self.waiting.retain(|waiting| {
            let keep = !is_it(&waiting.what);
            *total -= if keep { 0 } else { i128::from(waiting.received) };
            keep
        });
        self.waiting.len() < before
    }

    fn ready(&self) -> i64 {
        i64::from(self.running) + self.waiting.len() as i64
    }

    fn average(&self) -> Received {
        match self.ready() {
            0 => self.last,
            ready => (self.total / i128::from(ready)) as Received,
        }
    }

    /// The average of those that are ready and one more.
    fn average_with(&self, received: Received) -> Received {
        ((self.total + i128::from(received)) / i128::from(self.ready() + 1)) as Received
    }

    fn pass_to(&mut self, now: Time) {
        self.total += i128::from(nanos(now.since(self.since))) * i128::from(self.running);
        self.since = now;
    }
}

/// Nanoseconds that a thread has run for.
pub(crate) fn nanos(time: Duration) -> Received {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

impl<T> Ord for Waiting<T> {
    /// The heap has the one on top that has received least, and of equal ones the first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.received, other.order).cmp(&(self.received, self.order))
    }
}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Waiting<T> {}
