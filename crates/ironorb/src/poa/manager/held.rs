//! Requests that a manager holds, and how it admits them afterwards. It admits them in the order in which
//! each client sent them. They run on threads of their own: one for each manager, and some that all managers
//! share. Meanwhile the manager lets no other request from the network pass them.
//!
//! A held request occupies no thread, except that of a caller in this process.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::{ACTIVE, HOLDING, LETTING_IN, PoaManager};
use crate::base::sync::lock;
use crate::base::time::Time;
use crate::driver::clock;
use crate::poa::adapter::ParkedRequest;

/// The requests that wait for a manager.
#[derive(Default)]
pub(super) struct HeldRequests {
    /// Waiting callers in this process.
    pub(super) threads: usize,
    /// Requests from other processes.
    parked: VecDeque<ParkedRequest>,
    parked_bytes: usize,
    /// Clients whose requests are being admitted, and since when.
    begun: Vec<(Option<u64>, Time)>,
    /// Threads that admit requests.
    workers: usize,
}

/// How long a client's next request waits for its last one. A servant that takes longer may be waiting for
/// the next request.
const IN_ORDER_FOR: Duration = Duration::from_millis(25);

/// The next step of a thread that admits requests.
enum Next {
    Begin(ParkedRequest),
    /// Each client with a parked request also has one in progress.
    Wait(Duration),
    Nothing,
}

impl HeldRequests {
    pub(super) fn count(&self) -> usize {
        self.threads + self.parked.len()
    }

    /// True when no request is parked and none must end before another begins.
    pub(super) fn is_empty(&self) -> bool {
        self.parked.is_empty()
            && self.begun.iter().all(|(_, since)| clock::now().since(*since) >= IN_ORDER_FOR)
    }

    fn park(&mut self, request: ParkedRequest, is_first: bool) {
        self.parked_bytes += request.bytes();
        match is_first {
            true => self.parked.push_front(request),
            false => self.parked.push_back(request),
        }
    }

    fn next(&mut self, now: Time) -> Next {
        if self.parked.is_empty() {
            return Next::Nothing;
        }
        let left = |client: Option<u64>| {
            let last = self.begun.iter().filter(|(other, _)| *other == client).map(|(_, since)| *since).max();
            last.map_or(Duration::ZERO, |since| (since + IN_ORDER_FOR).since(now))
        };
        let mut least = IN_ORDER_FOR;
        for index in 0..self.parked.len() {
            let left = left(self.parked[index].client());
            if left.is_zero()
                && let Some(request) = self.parked.remove(index)
            {
                self.parked_bytes -= request.bytes();
                self.begun.push((request.client(), now));
                return Next::Begin(request);
            }
            least = least.min(left);
        }
        Next::Wait(least)
    }

    fn end(&mut self, client: Option<u64>, since: Time) {
        if let Some(index) = self.begun.iter().position(|begun| *begun == (client, since)) {
            self.begun.swap_remove(index);
        }
    }
}

impl PoaManager {
    /// Keeps a request until it may be admitted, ahead of all others if it `is_first`. When there are too
    /// many, the request is answered with TRANSIENT (CORBA 3.3 part 1, 15.3.2.1). Returns the request if it
    /// may be admitted or refused now.
    pub(crate) fn park(&self, request: ParkedRequest, is_first: bool) -> Option<ParkedRequest> {
        let mut held = lock(&self.0.held);
        let state = self.0.state.load(Ordering::SeqCst);
        let waits = match state {
            HOLDING => !self.0.is_closing.load(Ordering::SeqCst),
            LETTING_IN => true,
            _ => false,
        };
        if !waits {
            return Some(request);
        }
        let has_room = held.count() < self.0.held_max
            && held.parked_bytes.saturating_add(request.bytes()) <= request.bytes_max();
        if !has_room && !is_first {
            drop(held);
            drop(request); // dropping the request answers it
            return None;
        }
        held.park(request, is_first);
        if state == LETTING_IN {
            self.add_worker(held);
        }
        None
    }

    /// Carries out requests that are held for adapters that are gone: no later state of the manager concerns
    /// them. They are answered, or wait for an adapter activator that may make such an adapter.
    pub(crate) fn carry_out_orphaned(&self) {
        let Some(orb) = self.0.orb.upgrade() else { return };
        let absent = {
            let mut held = lock(&self.0.held);
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
        // The limit of the server's threads does not apply: there is one such thread for each adapter that
        // goes.
        let _dropped = orb.server_threads.spawn_beyond("ironorb-held", take_up);
    }

    /// Admits or refuses the held requests, as the state now says.
    pub(super) fn let_in(&self) {
        self.add_worker(lock(&self.0.held));
    }

    /// Starts a thread that admits requests. The first is the manager's own, because the threads of other
    /// managers may all be in servants that wait for it.
    fn add_worker(&self, mut held: MutexGuard<'_, HeldRequests>) {
        let Some(orb) = self.0.orb.upgrade() else { return };
        let threads = orb.adapter.threads_for_held();
        if held.parked.is_empty() || held.workers > threads.threads_max() {
            return;
        }
        let is_first = held.workers == 0;
        held.workers += 1;
        drop(held);
        let manager = self.clone();
        let work = move || manager.work();
        let is_begun = match is_first {
            // The limit of the server's threads does not apply: they may all be in servants that wait for
            // this one.
            true => orb.server_threads.spawn_beyond("ironorb-held", work).is_ok(),
            false => threads.run(work).is_ok(),
        };
        match (is_begun, is_first) {
            (true, _) => {}
            (false, true) => self.work(), // the caller's thread does the work: late is worse than slow
            // The threads that exist admit the remaining requests.
            (false, false) => lock(&self.0.held).workers -= 1,
        }
    }

    fn work(&self) {
        let mut held = lock(&self.0.held);
        while !self.is_holding() {
            match held.next(clock::now()) {
                Next::Nothing => break,
                Next::Wait(time) => {
                    held = self.0.changed.wait_timeout(held, time).unwrap_or_else(PoisonError::into_inner).0;
                }
                Next::Begin(request) => {
                    let client = request.client();
                    let since = held.begun.last().map_or_else(clock::now, |(_, since)| *since);
                    // Another thread admits the remaining requests, because a servant may keep this one.
                    self.add_worker(held);
                    request.carry_out(Some(self));
                    held = lock(&self.0.held);
                    held.end(client, since);
                    self.0.changed.notify_all();
                }
            }
        }
        held.workers -= 1;
        if held.is_empty() && self.0.state.load(Ordering::SeqCst) == LETTING_IN {
            self.0.state.store(ACTIVE, Ordering::SeqCst);
        }
    }

    /// Whether requests wait for another state.
    pub(in crate::poa) fn is_holding(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == HOLDING && !self.0.is_closing.load(Ordering::SeqCst)
    }
}
