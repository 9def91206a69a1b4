//! The requests of a pool that have been read and wait for a thread.
//!
//! In a pool with an order of its own (`RequestOrder`), or that admits requests (`admit`), a thread that wants work reads what
//! has arrived over all connections of the lane, and takes the most urgent request. The overflow thread has no processor while
//! servants compute at the same priority, so it is not relied on to read; only what it has begun to read is waited for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Shared;
use super::connection::Connection;
use super::in_flight::Lack;
use super::pool::Pool;
use super::thread_pool;
use crate::base::lane::current_lane;
use crate::base::locks::{LaneLock, LockGuard};
use crate::base::thread_pool_config::{RequestBuffering, RequestOrder, ThreadPoolConfig};
use crate::connection::CurrentRequest;
use crate::driver::clock;
use crate::lane::{Counters, Offered, QueueLimits, Taken, WaitingRequests, admission};
use crate::object::scheduling_facts::SchedulingFacts;

/// A request, and the connection that it has come over.
pub(super) type Received = (Arc<Connection>, CurrentRequest);

/// The requests that wait in an order.
pub(super) struct OrderedRequests {
    waiting: LaneLock<WaitingRequests<Received>>,
    /// A request beyond the limits stays in its socket.
    stays_in_socket: bool,
    /// A thread that wants work chooses among all that have arrived. Otherwise only the overflow thread reads, and the order is
    /// that of arrival.
    is_chosen_from: bool,
    /// Held by who takes a request, and by the overflow thread while it has a connection in its hands whose request nobody else
    /// can see. `None` where there is no overflow thread.
    choice: Option<LaneLock<()>>,
    counters: Arc<Counters>,
}

/// The most requests that a thread reads before it carries one out, so that no flood keeps it from that.
const READS_MAX: usize = 512;

impl OrderedRequests {
    /// `None` for a pool whose requests wait in their sockets.
    pub(super) fn new(
        config: &ThreadPoolConfig,
        threads: usize,
        has_overflow_thread: bool,
        counters: &Arc<Counters>,
    ) -> Option<OrderedRequests> {
        let (requests_max, bytes_max) = match config.buffering {
            RequestBuffering::Refused => (0, 0),
            _ => config.queue_limits()?,
        };
        let limits = QueueLimits { requests_max, bytes_max };
        let is_chosen_from = config.is_ordered();
        let (order, longest_unknown) = match is_chosen_from {
            true => (config.order, config.admission),
            false => (RequestOrder::Arrival, None),
        };
        let waiting = WaitingRequests::new(order, limits, admission(threads, longest_unknown));
        Some(OrderedRequests {
            waiting: LaneLock::new(waiting),
            stays_in_socket: config.buffering == RequestBuffering::InSockets,
            is_chosen_from,
            choice: (is_chosen_from && has_overflow_thread).then(LaneLock::default),
            counters: counters.clone(),
        })
    }

    /// Whether a thread that wants work chooses among all requests that have arrived.
    pub(super) fn is_chosen_from(&self) -> bool {
        self.is_chosen_from
    }

    /// Has nobody take a request, and the overflow thread read nothing, before the guard is dropped.
    pub(super) fn keep_choice(&self) -> Option<LockGuard<'_, ()>> {
        self.choice.as_ref().map(LaneLock::lock)
    }

    /// Whether one more request may be read. Where requests do not stay in their sockets, each is.
    pub(super) fn may_read(&self) -> bool {
        !self.stays_in_socket || self.waiting.lock().has_room()
    }

    /// How many requests wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Takes the first request, of those that have arrived if threads choose among them.
    pub(super) fn next(&self, shared: &Shared, pool: &Pool) -> Option<Taken<Received>> {
        if self.is_chosen_from {
            pool.drain(
                shared,
                READS_MAX,
                || self.may_read(),
                |connection| {
                    self.read(shared, pool, &connection);
                },
            );
        }
        // What the overflow thread has had in its hands meanwhile is in its place then, or is ready for others.
        let _choice = self.keep_choice();
        if self.choice.is_some() {
            pool.drain_ready(
                READS_MAX,
                || self.may_read(),
                |connection| {
                    self.read(shared, pool, &connection);
                },
            );
        }
        let mut waiting = self.waiting.lock();
        if waiting.len() == 0 {
            return None;
        }
        let taken = waiting.take(clock::now());
        self.note(&waiting);
        taken
    }

    /// Reads a request of a connection that is ready, and puts it in its place. Whether it waits there.
    pub(super) fn read(&self, shared: &Shared, pool: &Pool, connection: &Arc<Connection>) -> bool {
        let offer = |request: &mut CurrentRequest| self.offer(connection, std::mem::take(request));
        let Some(offered) =
            thread_pool::look(shared, pool, connection, &mut CurrentRequest::default(), offer)
        else {
            return false;
        };
        match offered {
            Offered::Waits { displaced } => {
                displaced.into_iter().for_each(|it| refuse(shared, &it, Lack::Place));
                return true;
            }
            Offered::NoRoom(it) => refuse(shared, &it, Lack::Threads),
            Offered::NotInTime(it) => refuse(shared, &it, Lack::Time),
        }
        false
    }

    fn offer(&self, connection: &Arc<Connection>, request: CurrentRequest) -> Offered<Received> {
        let now = clock::now();
        let facts = match self.is_chosen_from {
            true => connection.scheduling_facts(&request, now),
            false => SchedulingFacts::NOTHING,
        };
        let bytes = request.message_bytes();
        let mut waiting = self.waiting.lock();
        let offered = waiting.offer((connection.clone(), request), bytes, &facts, now);
        self.note(&waiting);
        offered
    }

    fn note(&self, waiting: &WaitingRequests<Received>) {
        self.counters.of(current_lane()).buffered_requests.store(waiting.len(), Ordering::Relaxed);
    }

    /// Carries out a request that was taken.
    pub(super) fn carry_out(&self, shared: &Shared, taken: Taken<Received>) {
        let Taken { request: (connection, mut request), running } = taken;
        thread_pool::carry_out(shared, &connection, &mut request);
        if let Some(running) = running {
            self.waiting.lock().end(running);
        }
        connection.take_large_back(&mut request);
    }
}

fn refuse(shared: &Shared, (connection, request): &Received, lack: Lack) {
    if connection.refuse(&request.work, lack) {
        shared.close(connection);
    }
}
