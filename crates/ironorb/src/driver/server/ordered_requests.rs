//! The requests of a pool that serves them in an order of its own (`RequestOrder`), or admits them (`admit`).
//!
//! A thread that wants work reads what has arrived over all connections of the lane, and takes the most urgent request. It
//! does not rely on the overflow thread, which has no processor while servants compute at the same priority.

use std::sync::Arc;

use super::Shared;
use super::connection::Connection;
use super::in_flight::Lack;
use super::pool::Pool;
use super::thread_pool;
use crate::base::locks::LaneLock;
use crate::base::thread_pool_config::{RequestBuffering, ThreadPoolConfig};
use crate::connection::CurrentRequest;
use crate::driver::clock;
use crate::lane::{Offered, QueueLimits, Taken, WaitingRequests, admission};

/// A request, and the connection that it has come over.
pub(super) type Received = (Arc<Connection>, CurrentRequest);

/// The requests that wait in an order.
pub(super) struct OrderedRequests {
    waiting: LaneLock<WaitingRequests<Received>>,
    /// A request beyond the limits stays in its socket.
    stays_in_socket: bool,
}

/// The most requests that a thread reads before it carries one out, so that no flood keeps it from that.
const READS_MAX: usize = 512;

impl OrderedRequests {
    /// `None` for a pool that serves in the order of arrival.
    pub(super) fn new(config: &ThreadPoolConfig, threads: usize) -> Option<OrderedRequests> {
        let (requests_max, bytes_max) = config.queue_limits().filter(|_| config.is_ordered())?;
        let limits = QueueLimits { requests_max, bytes_max };
        let stays_in_socket = config.buffering == RequestBuffering::InSockets;
        let waiting = WaitingRequests::new(config.order, limits, admission(threads, config.admission));
        Some(OrderedRequests { waiting: LaneLock::new(waiting), stays_in_socket })
    }

    /// Whether one more request may be read. Where requests do not stay in their sockets, each is.
    pub(super) fn may_read(&self) -> bool {
        !self.stays_in_socket || self.waiting.lock().has_room()
    }

    /// How many requests wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Reads what has arrived, and takes the most urgent request.
    pub(super) fn next(&self, shared: &Shared, pool: &Pool) -> Option<Taken<Received>> {
        pool.drain(shared, READS_MAX, || self.may_read(), |connection| self.read(shared, pool, &connection));
        self.waiting.lock().take(clock::now())
    }

    /// Reads a request of a connection that is ready, and puts it in its place.
    pub(super) fn read(&self, shared: &Shared, pool: &Pool, connection: &Arc<Connection>) {
        let mut request = CurrentRequest::default();
        if !thread_pool::look(shared, pool, connection, &mut request) {
            return;
        }
        let now = clock::now();
        let (facts, bytes) = (connection.scheduling_facts(&request, now), request.message_bytes());
        let offered = self.waiting.lock().offer((connection.clone(), request), bytes, &facts, now);
        match offered {
            Offered::Waits { displaced } => {
                displaced.into_iter().for_each(|it| refuse(shared, &it, Lack::Place));
            }
            Offered::NoRoom(it) => refuse(shared, &it, Lack::Threads),
            Offered::NotInTime(it) => refuse(shared, &it, Lack::Time),
        }
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
