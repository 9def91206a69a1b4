//! Requests that a manager holds, and how it admits them afterwards. It admits them in the order in which
//! each client sent them. They run on threads of their own: one for each manager, and some that all managers
//! share. Meanwhile the manager lets no other request from the network pass them.
//!
//! Each lane has a queue, a limit and threads of its own: requests of one lane never wait for those of another.
//!
//! A held request occupies no thread, except that of a caller in this process.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{ACTIVE, HOLDING, LETTING_IN, PoaManager};
use crate::base::lane::{self, LaneId};
use crate::base::locks::{LockGuard, PiLock};
use crate::base::sync::{ThreadMark, is_panicking};
use crate::base::time::Time;
use crate::poa::adapter::ParkedRequest;

/// The requests that wait for a manager.
#[derive(Default)]
pub(super) struct HeldRequests {
    /// Waiting callers in this process.
    pub(super) threads: usize,
    /// Requests from other processes.
    parked: VecDeque<ParkedRequest>,
    parked_bytes: usize,
    /// Requests that are being carried out.
    begun: Vec<Begun>,
    /// Threads that admit requests.
    workers: usize,
    /// Requests that were held, since the beginning.
    held_total: u64,
    /// Requests that were refused for lack of room.
    pub(super) refused_total: u64,
}

/// What a manager holds, for those that look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HeldSeen {
    /// Requests that wait, those of callers in this process included.
    pub(crate) requests: usize,
    /// The bytes of those from other processes.
    pub(crate) bytes: usize,
    /// Requests from other processes that have waited so far.
    pub(crate) held_total: u64,
    /// Requests that were refused because as many waited as may.
    pub(crate) refused_total: u64,
}

/// How long a client's next request waits for its last one, from when that may go to its servant. A servant that takes
/// longer may be waiting for the next request.
const IN_ORDER_FOR: Duration = Duration::from_millis(25);

/// How long it waits for the last one to get there. A thread that takes longer may be in an adapter activator or a servant
/// manager, which may be waiting for the next request as well. On a busy machine a thread may not run for many times [`IN_ORDER_FOR`].
const ON_ITS_WAY_FOR: Duration = Duration::from_secs(1);

/// A request that was held, and that a thread carries out.
struct Begun {
    client: Option<u64>,
    thread: ThreadMark,
    since: Time,
    /// It has found its servant.
    has_passed: bool,
}

impl Begun {
    /// How long the client's next request has to wait.
    fn left(&self, now: Time) -> Duration {
        let at_most = if self.has_passed { IN_ORDER_FOR } else { ON_ITS_WAY_FOR };
        (self.since + at_most).since(now)
    }
}

/// The next step of a thread that admits requests.
#[allow(clippy::large_enum_variant)] // nearly every one is the large one
pub(crate) enum Admission {
    /// Carry this request out, and ask again.
    Begin(AdmittedRequest),
    /// Each client with a parked request also has one in progress. Ask again after this time, or when
    /// [`PoaManager::must_wait_to_admit`] is false.
    Wait(Duration),
    /// The thread is not needed any more, and is not counted any more.
    Over,
}

/// A request that its manager has held and admits.
pub(crate) struct AdmittedRequest(ParkedRequest);

/// Ends what the calling thread carries out, also when a panic leaves it: the client's next request waits for its end.
struct EndsHeld<'m>(&'m PoaManager);

impl Drop for EndsHeld<'_> {
    fn drop(&mut self) {
        let mut held = self.0.held().lock();
        held.end();
        // The thread ends, and does not come back to be counted out.
        held.workers -= usize::from(is_panicking());
        drop(held);
        self.0.0.changed.changed();
    }
}

/// Which parked request may begin.
enum Next {
    /// The one with this index.
    Begin(usize),
    Wait(Duration),
    Nothing,
}

impl HeldRequests {
    pub(super) fn count(&self) -> usize {
        self.threads + self.parked.len()
    }

    /// True when no request is parked and none must end before another begins.
    pub(super) fn is_empty(&self, now: Time) -> bool {
        self.parked.is_empty() && self.begun.iter().all(|begun| begun.left(now).is_zero())
    }

    fn park(&mut self, request: ParkedRequest, is_first: bool) {
        self.parked_bytes += request.bytes();
        match is_first {
            true => self.parked.push_front(request),
            false => self.parked.push_back(request),
        }
    }

    fn next(&self, now: Time) -> Next {
        if self.parked.is_empty() {
            return Next::Nothing;
        }
        let left = |client: Option<u64>| {
            let of_client = self.begun.iter().filter(|begun| begun.client == client);
            of_client.map(|begun| begun.left(now)).max().unwrap_or_default()
        };
        // At most so long: one that has yet to come to its servant has its time from then on.
        let mut least = IN_ORDER_FOR;
        for (index, request) in self.parked.iter().enumerate() {
            let left = left(request.client());
            if left.is_zero() {
                return Next::Begin(index);
            }
            least = least.min(left);
        }
        Next::Wait(least)
    }

    fn begin(&mut self, index: usize, now: Time) -> Option<AdmittedRequest> {
        let request = self.parked.remove(index)?;
        self.parked_bytes -= request.bytes();
        let (client, thread) = (request.client(), ThreadMark::of_this_thread());
        self.begun.push(Begun { client, thread, since: now, has_passed: false });
        Some(AdmittedRequest(request))
    }

    /// The request that the calling thread carries out goes to its servant now.
    fn note_passed(&mut self, now: Time) {
        let this = ThreadMark::of_this_thread();
        if let Some(begun) = self.begun.iter_mut().rfind(|begun| begun.thread == this && !begun.has_passed) {
            (begun.since, begun.has_passed) = (now, true);
        }
    }

    #[cfg(test)]
    pub(super) fn begin_for_test(&mut self, now: Time) {
        // Long enough ahead for any machine.
        let since = now + Duration::from_secs(600);
        self.begun.push(Begun {
            client: None,
            thread: ThreadMark::of_this_thread(),
            since,
            has_passed: true,
        });
    }

    /// The calling thread has carried out the request that it has begun last.
    fn end(&mut self) {
        let this = ThreadMark::of_this_thread();
        if let Some(index) = self.begun.iter().rposition(|begun| begun.thread == this) {
            self.begun.remove(index);
        }
    }
}

impl PoaManager {
    /// Keeps a request until it may be admitted, ahead of all others if it `is_first`. When there are too
    /// many, the request is answered with TRANSIENT (CORBA 3.3 part 1, 15.3.2.1). Returns the request if it
    /// may be admitted or refused now.
    pub(crate) fn park(&self, request: ParkedRequest, is_first: bool) -> Option<ParkedRequest> {
        let now = self.0.driver.now();
        let mut held = self.held().lock();
        // A change of the state looks for requests here afterwards: it finds this one, or this thread finds the change.
        let state = self.0.state.load(Ordering::SeqCst);
        let waits = match state {
            HOLDING => !self.0.is_closing.load(Ordering::SeqCst),
            LETTING_IN => !held.is_empty(now),
            _ => false,
        };
        if !waits {
            return Some(request);
        }
        let has_room = held.count() < self.0.held_max
            && held.parked_bytes.saturating_add(request.bytes()) <= request.bytes_max();
        if !has_room && !is_first {
            held.refused_total += 1;
            drop(held);
            drop(request); // dropping the request answers it
            return None;
        }
        // One that must wait again has been counted.
        held.held_total += u64::from(!is_first);
        held.park(request, is_first);
        if state == LETTING_IN {
            self.add_worker(lane::current_lane(), held);
        }
        None
    }

    /// The requests that wait for the manager in the calling thread's lane.
    pub(super) fn held(&self) -> &PiLock<HeldRequests> {
        self.0.held.of(lane::current_lane())
    }

    /// Carries out requests that are held for adapters that are gone: no later state of the manager concerns
    /// them. They are answered, or wait for an adapter activator that may make such an adapter.
    pub(crate) fn carry_out_orphaned(&self) {
        self.0.held.iter().for_each(|(lane, held)| self.carry_out_orphaned_of(lane, held));
    }

    fn carry_out_orphaned_of(&self, lane: LaneId, held: &PiLock<HeldRequests>) {
        let absent = {
            let mut held = held.lock();
            let (present, absent): (Vec<_>, Vec<_>) =
                std::mem::take(&mut held.parked).into_iter().partition(ParkedRequest::has_adapter);
            held.parked = present.into();
            held.parked_bytes -= absent.iter().map(ParkedRequest::bytes).sum::<usize>();
            absent
        };
        if absent.is_empty() {
            return;
        }
        let manager = self.clone();
        // The last request goes first, because each that must wait again is parked ahead of the others.
        // Without a thread for them they are dropped, which answers them.
        let take_up = move || absent.into_iter().rev().for_each(|request| request.carry_out(Some(&manager)));
        self.0.driver.run_apart(lane, Box::new(take_up));
    }

    /// Admits or refuses the held requests, as the state now says.
    pub(super) fn let_in(&self) {
        self.0.held.iter().for_each(|(lane, held)| self.add_worker(lane, held.lock()));
    }

    /// What the manager holds now, in all lanes.
    pub(crate) fn held_by_all(&self) -> HeldSeen {
        let mut seen = HeldSeen::default();
        for (_, held) in self.0.held.iter() {
            let held = held.lock();
            seen.requests += held.count();
            seen.bytes += held.parked_bytes;
            seen.held_total += held.held_total;
            seen.refused_total += held.refused_total;
        }
        seen
    }

    /// Has one more thread of a lane admit its requests, if there is need of it.
    fn add_worker(&self, lane: LaneId, mut held: LockGuard<'_, HeldRequests>) {
        if held.parked.is_empty() || held.workers > self.0.driver.admitting_threads_max() {
            return;
        }
        let is_first = held.workers == 0;
        held.workers += 1;
        drop(held);
        self.0.driver.admit_held(self, lane, is_first);
    }

    /// Says what a thread that admits requests does next.
    pub(crate) fn next_held(&self, now: Time) -> Admission {
        let mut held = self.held().lock();
        match held.next(now) {
            Next::Wait(time) if !self.is_holding() => return Admission::Wait(time),
            Next::Begin(index) if !self.is_holding() => {
                if let Some(admitted) = held.begin(index, now) {
                    // Another thread admits the remaining requests, because a servant may keep this one.
                    self.add_worker(lane::current_lane(), held);
                    return Admission::Begin(admitted);
                }
            }
            _ => {}
        }
        held.workers -= 1;
        let is_empty = held.is_empty(now);
        drop(held);
        if is_empty && self.0.state.load(Ordering::SeqCst) == LETTING_IN {
            let changing = self.0.changing.lock();
            self.be_active_if_empty(now, &changing);
        }
        Admission::Over
    }

    /// Ends the admission of held requests, if no lane has any. Meanwhile, requests of lanes without any are served as ever,
    /// after a look at their own queue.
    pub(super) fn be_active_if_empty(&self, now: Time, _changing: &LockGuard<'_, ()>) {
        let is_letting_in = self.0.state.load(Ordering::SeqCst) == LETTING_IN;
        if is_letting_in && self.0.held.iter().all(|(_, held)| held.lock().is_empty(now)) {
            self.0.state.store(ACTIVE, Ordering::SeqCst);
        }
    }

    /// Whether a thread that admits requests has nothing to do now.
    pub(crate) fn must_wait_to_admit(&self, now: Time) -> bool {
        !self.is_holding() && matches!(self.held().lock().next(now), Next::Wait(_))
    }

    /// Carries out a request that [`next_held`](Self::next_held) has given.
    pub(crate) fn carry_out_held(&self, AdmittedRequest(request): AdmittedRequest) {
        let _ends = EndsHeld(self);
        request.carry_out(Some(self));
    }

    /// The calling thread has a request that has waited for this manager go to its servant now.
    pub(crate) fn note_passed(&self) {
        let now = self.0.driver.now();
        self.held().lock().note_passed(now);
    }

    /// Counts out a thread that was to admit requests of the calling thread's lane and cannot be had.
    pub(crate) fn end_admitting(&self) {
        self.held().lock().workers -= 1;
    }

    /// Whether requests wait for another state.
    pub(in crate::poa) fn is_holding(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == HOLDING && !self.0.is_closing.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_time_from_when_it_goes_to_its_servant() {
        let now = Time::from_nanos(1_000_000_000);
        let half = now + ON_ITS_WAY_FOR / 2;
        let mut held = HeldRequests::default();
        let thread = ThreadMark::of_this_thread();
        held.begun.push(Begun { client: Some(1), thread, since: now, has_passed: false });
        assert!(!held.is_empty(half), "its thread has not run for long");
        assert!(held.is_empty(now + ON_ITS_WAY_FOR), "its thread may wait for the next request");
        held.note_passed(half);
        assert!(!held.is_empty(half) && held.is_empty(half + IN_ORDER_FOR));
        held.end();
        assert!(held.is_empty(half));
    }
}
