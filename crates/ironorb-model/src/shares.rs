//! Equal shares of processors: which of the time-shared threads is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::{Table, ThreadId, Time};

/// How long a time-shared thread runs before another one of its kind may follow, where several are ready: what Linux has since its
/// version 6.15 on two processors. With one it has half of that, with eight or more twice as much.
pub const TIME_SLICE: Duration = Duration::from_micros(1_400);

/// The most that a thread can be owed after a sleep: a tick of Linux, which bounds it there.
const OWED_MAX: Received = 4_000_000;

/// Nanoseconds of a processor that a thread has had, counted so that threads which always had an equal share have the same.
type Received = i64;

/// What a thread has received, and what it will have when its slice is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Turn {
    received: Received,
    end: Received,
}

impl Turn {
    /// A slice begins.
    fn at(received: Received) -> Turn {
        Turn { received, end: received + nanos(TIME_SLICE) }
    }

    /// After the thread has run for so long.
    #[must_use]
    pub(crate) fn after(self, ran: Duration) -> Turn {
        Turn { received: self.received + nanos(ran), ..self }
    }

    /// The thread has had its slice.
    pub(crate) fn is_over(self) -> bool {
        self.received >= self.end
    }

    /// The same, or the next slice of the thread if this one is over.
    #[must_use]
    pub(crate) fn or_next(self) -> Turn {
        if self.is_over() { Turn::at(self.received) } else { self }
    }

    /// Orders threads by what they have received.
    pub(crate) fn received(self) -> i64 {
        self.received
    }
}

/// Counts what threads receive, and keeps those that wait.
///
/// Of the threads that are ready each has a right to what they have received on average. Of those that have not received more, the one
/// whose slice would be over first is next. A thread that has slept is owed what it was owed before; if it had received more than its
/// share, that passes with time. So does Linux since its version 6.6 (EEVDF).
#[derive(Debug)]
pub(crate) struct Shares<T> {
    /// What all that are ready have received.
    total: i128,
    since: Time,
    running: u32,
    /// Those that had not received more than the average when they were looked at last, by the end of their slices.
    due: BinaryHeap<Waiting<T>>,
    /// The others, by what they have received.
    ahead: BinaryHeap<Waiting<T>>,
    entered: u64,
    /// What the last one that was ready had received.
    last: Received,
    /// Threads that sleep: by how much they had received less than the others, and their slices.
    owed: Table<ThreadId, (Received, Turn)>,
}

#[derive(Debug)]
struct Waiting<T> {
    /// What it is ordered by: see [`Shares`].
    key: Received,
    turn: Turn,
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
            due: BinaryHeap::new(),
            ahead: BinaryHeap::new(),
            entered: 0,
            last: 0,
            owed: Table::default(),
        }
    }

    /// The turn of a thread that becomes ready. It is to [`run`](Self::run) or to [`wait`](Self::wait) next. Nothing is owed
    /// where a processor is idle.
    pub(crate) fn wake(&mut self, now: Time, thread: ThreadId, is_idle: bool) -> Turn {
        self.pass_to(now);
        let (average, ready) = (self.average(), self.ready());
        let owed = if self.owed.is_empty() { None } else { self.owed.remove(&thread) };
        match owed.filter(|_| !is_idle && ready > 0) {
            // With this thread the average is another, beside which it is owed as much.
            Some((owed, _)) if owed > 0 => Turn::at(average - owed - owed / ready),
            // It is as if it had waited all the time.
            Some((_, turn)) if turn.received > average => turn.or_next(),
            _ => Turn::at(average),
        }
    }

    /// A thread has nothing to do any more, and no processor.
    pub(crate) fn sleep(&mut self, thread: ThreadId, turn: Turn) {
        self.last = turn.received;
        if self.is_empty() {
            return;
        }
        // It is no longer among the ready ones.
        let average = self.average_with(turn.received);
        let owed = (average - turn.received).min(OWED_MAX);
        if owed != 0 {
            self.owed.insert(thread, (owed, turn));
        }
    }

    /// A processor takes one of these threads.
    pub(crate) fn run(&mut self, now: Time, turn: Turn) {
        self.pass_to(now);
        self.total += i128::from(turn.received);
        self.running += 1;
    }

    /// A processor has one of these threads no longer.
    pub(crate) fn stop(&mut self, now: Time, turn: Turn) {
        self.pass_to(now);
        self.total -= i128::from(turn.received);
        self.running -= 1;
    }

    /// A thread waits for a processor.
    pub(crate) fn wait(&mut self, now: Time, turn: Turn, what: T) {
        self.pass_to(now);
        self.total += i128::from(turn.received);
        self.entered += 1;
        self.ahead.push(Waiting { key: turn.received, turn, order: self.entered, what });
    }

    /// The waiting thread that is next. Where all have received more than the average, as can be beside running ones, it is that which has
    /// received least.
    pub(crate) fn take(&mut self, now: Time) -> Option<T> {
        self.pass_to(now);
        self.put_in_order(self.average());
        let next = self.due.pop().or_else(|| self.ahead.pop())?;
        self.total -= i128::from(next.turn.received);
        Some(next.what)
    }

    /// Whether a thread that becomes ready goes before a running one that has not had its slice: that one has received more than the average,
    /// and no other thread would be next.
    pub(crate) fn goes_before(&mut self, woken: Turn, running: Turn) -> bool {
        let average = self.average_with(woken.received);
        if running.received <= average || woken.received > average {
            return false;
        }
        self.put_in_order(average);
        self.due.peek().is_none_or(|first| woken.end < first.turn.end)
    }

    /// Has those in `due` that have not received more than the average, at least as far as the first one there tells.
    fn put_in_order(&mut self, average: Received) {
        while self.ahead.peek().is_some_and(|first| first.key <= average) {
            self.due.extend(self.ahead.pop().map(|first| Waiting { key: first.turn.end, ..first }));
        }
        // The average becomes less when others come that are owed something.
        while self.due.peek().is_some_and(|first| first.turn.received > average) {
            self.ahead.extend(self.due.pop().map(|first| Waiting { key: first.turn.received, ..first }));
        }
    }

    /// Whether no thread waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.ahead.is_empty()
    }

    /// Takes a waiting thread away, if there is one that `is_it`.
    pub(crate) fn remove(&mut self, now: Time, is_it: impl Fn(&T) -> bool) -> bool {
        self.pass_to(now);
        let (before, total) = (self.waiting(), &mut self.total);
        for heap in [&mut self.due, &mut self.ahead] {
            heap.retain(|waiting| {
                let keep = !is_it(&waiting.what);
                *total -= if keep { 0 } else { i128::from(waiting.turn.received) };
                keep
            });
        }
        self.waiting() < before
    }

    fn waiting(&self) -> usize {
        self.due.len() + self.ahead.len()
    }

    fn ready(&self) -> i64 {
        i64::from(self.running) + self.waiting() as i64
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
fn nanos(time: Duration) -> Received {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

impl<T> Ord for Waiting<T> {
    /// The heap has the one on top whose key is least, and of equal ones the first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.key, other.order).cmp(&(self.key, self.order))
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
