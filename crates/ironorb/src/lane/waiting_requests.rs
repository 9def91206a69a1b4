//! The requests of a lane that wait for a thread, in order of their urgency. Neither threads nor clocks: the driver says what
//! the time is.

use std::collections::BTreeMap;
use std::time::Duration;

use super::admission::{Admission, Job, RunningUpcall};
use super::urgency::Urgency;
use crate::base::thread_pool_config::RequestOrder;
use crate::base::time::Time;
use crate::object::deadline::Deadline;
use crate::object::scheduling_facts::SchedulingFacts;

/// Requests that wait, up to a number and a size. Those that are equally urgent are in order of arrival.
#[derive(Debug)]
pub(crate) struct WaitingRequests<R> {
    order: RequestOrder,
    limits: QueueLimits,
    waiting: BTreeMap<Place, Waiting<R>>,
    bytes: usize,
    arrivals: u64,
    admission: Option<Admission>,
}

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    pub(crate) requests_max: usize,
    pub(crate) bytes_max: usize,
}

/// Where a request stands: behind those that are as urgent and came before it.
type Place = (Urgency, u64);

#[derive(Debug)]
struct Waiting<R> {
    request: R,
    bytes: usize,
    job: Job,
}

/// What has become of a request that has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Offered<R> {
    /// It waits. These, which are less urgent, have given up their places to it.
    Waits { displaced: Vec<R> },
    /// There is no room, and nothing less urgent waits that may give up its place.
    NoRoom(R),
    /// It would end too late, or would have an admitted one end too late.
    NotInTime(R),
}

/// A request that a thread is about to carry out.
#[derive(Debug)]
pub(crate) struct Taken<R> {
    pub(crate) request: R,
    /// For [`WaitingRequests::end`], once it has been carried out.
    pub(crate) running: Option<RunningUpcall>,
}

impl<R> WaitingRequests<R> {
    pub(crate) fn new(order: RequestOrder, limits: QueueLimits, admission: Option<Admission>) -> Self {
        WaitingRequests { order, limits, waiting: BTreeMap::new(), bytes: 0, arrivals: 0, admission }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether one more may wait, as far as is known before it has been read.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < self.limits.requests_max && self.bytes < self.limits.bytes_max
    }

    /// Takes a request of this size in, unless there is no room for it or it is not admitted.
    pub(crate) fn offer(
        &mut self,
        request: R,
        bytes: usize,
        facts: &SchedulingFacts,
        now: Time,
    ) -> Offered<R> {
        let job = Job { wcet: facts.wcet, deadline: facts.deadline };
        let place = (Urgency::of(facts, self.order), self.arrivals);
        if !self.is_in_time(place, &job, now) {
            return Offered::NotInTime(request);
        }
        let Some(displaced) = self.places_to_give_up(place, bytes) else { return Offered::NoRoom(request) };
        let displaced = displaced.into_iter().filter_map(|place| self.remove(place)).collect();
        self.arrivals += 1;
        self.bytes += bytes;
        self.waiting.insert(place, Waiting { request, bytes, job });
        Offered::Waits { displaced }
    }

    /// Takes the most urgent request, to be carried out from now on.
    pub(crate) fn take(&mut self, now: Time) -> Option<Taken<R>> {
        let (_, Waiting { request, bytes, job }) = self.waiting.pop_first()?;
        self.bytes -= bytes;
        let running = self.admission.as_mut().map(|admission| admission.begin(&job, now));
        Some(Taken { request, running })
    }

    /// Records that a request that was taken has been carried out.
    pub(crate) fn end(&mut self, running: RunningUpcall) {
        if let Some(admission) = &mut self.admission {
            admission.end(running);
        }
    }

    /// Whether a request at this place would end in time, and so would all behind it.
    fn is_in_time(&self, place: Place, job: &Job, now: Time) -> bool {
        let Some(admission) = &self.admission else { return true };
        let before = self.waiting.range(..place).map(|(_, waiting)| &waiting.job);
        let behind = self.waiting.range(place..).map(|(_, waiting)| &waiting.job);
        admission.admits(now, before, job, behind)
    }

    /// The places of the least urgent requests that have to go for one of this size to come in; `None` where that is not
    /// enough. None of them is as urgent as this one.
    fn places_to_give_up(&self, place: Place, bytes: usize) -> Option<Vec<Place>> {
        let QueueLimits { requests_max, bytes_max } = self.limits;
        let (mut requests_left, mut bytes_left) = (self.waiting.len(), self.bytes);
        let mut given_up = Vec::new();
        let mut least_urgent = self.waiting.iter().rev();
        while requests_left >= requests_max || bytes_left.saturating_add(bytes) > bytes_max {
            let (last, waiting) = least_urgent.next()?;
            if last.0 <= place.0 || self.is_promised(&waiting.job) {
                return None;
            }
            (requests_left, bytes_left) = (requests_left - 1, bytes_left - waiting.bytes);
            given_up.push(*last);
        }
        Some(given_up)
    }

    /// Whether a request has been admitted, so that it ends in time. It keeps its place.
    fn is_promised(&self, job: &Job) -> bool {
        self.admission.is_some() && job.deadline != Deadline::NEVER
    }

    fn remove(&mut self, place: Place) -> Option<R> {
        let Waiting { request, bytes, .. } = self.waiting.remove(&place)?;
        self.bytes -= bytes;
        Some(request)
    }
}

/// The admission of a pool with this many static threads, in which an upcall of an operation without a `wcet` takes at most
/// `longest_unknown`.
pub(crate) fn admission(threads: usize, longest_unknown: Option<Duration>) -> Option<Admission> {
    longest_unknown.map(|longest| Admission::new(threads, longest))
}

#[cfg(test)]
#[path = "waiting_requests_tests.rs"]
mod tests;
