//! A daemon's desk: which tasks its threads carry out, which wait, and which are refused.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Moment;

/// How much a daemon takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeskLimits {
    /// Tasks that are carried out at a time. 0 counts as 1.
    pub threads: usize,
    /// Tasks that wait for a thread.
    pub queue_max: usize,
    /// The octets of those together.
    pub queue_octets_max: usize,
}

/// The tasks of a daemon. A driver gives each task that begins a thread, and asks for the next one when it is done.
///
/// Memory: the tasks that wait, at most `queue_max` and of `queue_octets_max` altogether.
#[derive(Debug)]
pub struct Desk<T> {
    limits: DeskLimits,
    waiting: VecDeque<Waiting<T>>,
    queued_octets: usize,
    busy: usize,
    drains: bool,
    counts: DeskCounts,
}

#[derive(Debug)]
struct Waiting<T> {
    task: T,
    octets: usize,
    come: Moment,
}

/// Numbers of a desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeskCounts {
    /// Tasks that wait.
    pub queued: usize,
    /// Their octets.
    pub queued_octets: usize,
    /// Tasks that are carried out.
    pub busy: usize,
    /// The most tasks that have waited at a time.
    pub queued_longest: usize,
    /// Tasks that had to wait.
    pub queued_total: u64,
    /// Tasks that were refused.
    pub refused_total: u64,
}

/// What becomes of a task that has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken<T> {
    /// A thread carries it out now.
    Begins(Begun<T>),
    /// It waits for a thread.
    Waits,
    /// There is no room: nothing of it is carried out.
    Refused(T),
}

/// A task that begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Begun<T> {
    /// What is to be done.
    pub task: T,
    /// How long it has waited for a thread.
    pub waited: Duration,
}

impl<T> Begun<T> {
    /// What is left of a time that began when the task came. Its caller waits no longer; if nothing is left, nothing is begun.
    pub fn left(&self, time: Option<Duration>) -> Option<Duration> {
        time.map(|time| time.saturating_sub(self.waited))
    }
}

impl<T> Desk<T> {
    /// A desk without tasks.
    pub fn new(limits: DeskLimits) -> Desk<T> {
        let limits = DeskLimits { threads: limits.threads.max(1), ..limits };
        let (waiting, counts) = Default::default();
        Desk { limits, waiting, queued_octets: 0, busy: 0, drains: false, counts }
    }

    /// A task of so many octets has come. One that does not wait (`at_once`) is refused where no thread is free.
    pub fn take(&mut self, task: T, octets: usize, at_once: bool, now: Moment) -> Taken<T> {
        let waits = self.busy >= self.limits.threads;
        let octets_left = self.limits.queue_octets_max.saturating_sub(self.queued_octets);
        let may_wait = !at_once && self.waiting.len() < self.limits.queue_max && octets <= octets_left;
        let has_room = !waits || may_wait;
        if self.drains || !has_room {
            self.counts.refused_total += 1;
            return Taken::Refused(task);
        }
        if waits {
            self.waiting.push_back(Waiting { task, octets, come: now });
            self.queued_octets += octets;
            self.counts.queued_longest = self.counts.queued_longest.max(self.waiting.len());
            self.counts.queued_total += 1;
            return Taken::Waits;
        }
        self.busy += 1;
        Taken::Begins(Begun { task, waited: Duration::ZERO })
    }

    /// A thread has carried out its task. Gives the next one for it, which has waited longest.
    pub fn finish(&mut self, now: Moment) -> Option<Begun<T>> {
        match self.waiting.pop_front() {
            Some(Waiting { task, octets, come }) => {
                self.queued_octets -= octets;
                let waited = Duration::from_nanos(now.as_nanos().saturating_sub(come.as_nanos()));
                Some(Begun { task, waited })
            }
            None => {
                self.busy = self.busy.saturating_sub(1);
                None
            }
        }
    }

    /// The first task of those that wait that `is_it` knows is no longer wanted: it is given back, and makes room.
    pub fn remove(&mut self, mut is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let at = self.waiting.iter().position(|waiting| is_it(&waiting.task))?;
        let Waiting { task, octets, .. } = self.waiting.remove(at)?;
        self.queued_octets -= octets;
        Some(task)
    }

    /// Takes no more tasks. Those that wait are carried out.
    pub fn drain(&mut self) {
        self.drains = true;
    }

    /// Whether it takes no more tasks, and all that it has taken are done.
    pub fn is_drained(&self) -> bool {
        self.drains && self.busy == 0
    }

    /// Its numbers.
    pub fn counts(&self) -> DeskCounts {
        let (queued, queued_octets) = (self.waiting.len(), self.queued_octets);
        DeskCounts { queued, queued_octets, busy: self.busy, ..self.counts }
    }
}
