//! Connections whose thread is not to be had: if a servant blocks while more requests of its connection have arrived -
//! perhaps the very request that would free it - another thread is started to go on with them.
//!
//! Such connections are found by looking now and then, so that ordinary calls pay nothing for it.
//!
//! Where the server has no more threads, requests wait. Servants that call their clients over the connection of the request
//! may then wait in a circle: for a client that waits for one of those requests. After a second in which no servant has
//! returned, such requests are refused, so that a circle ends long before the calls' timeouts.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::connection::{Connection, CurrentRequest, WorkLookup};
use super::{Shared, spawn};
use crate::sync::lock;

/// How often the watcher looks. A connection must be found stalled twice.
const WATCH_EVERY: Duration = Duration::from_millis(25);

/// Looks without any progress, where there is no thread to be had, before requests are refused: a second.
const STANDSTILL_LOOKS: u32 = 40;

/// Watches all connections, or those of a hybrid that have a thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = shared.clone();
    spawn("ironorb-monitor", move || {
        let mut blocked_servant_monitor = Watcher::default();
        while !shared.is_stopping() {
            blocked_servant_monitor.wait_for_connections(&shared);
            blocked_servant_monitor.look(&shared);
            std::thread::sleep(WATCH_EVERY);
        }
    })
}

/// What is kept from look to look, so that a server at rest takes no memory.
#[derive(Default)]
struct Watcher {
    connections: Vec<Arc<Connection>>,
    /// Connections that waited for a thread at the last look, and what they had been served then.
    suspects: Vec<(u64, u64)>,
    stalled: Vec<(u64, u64)>,
    standstill: Standstill,
}

impl Watcher {
    fn wait_for_connections(&mut self, shared: &Shared) {
        let mut all = lock(&shared.connections);
        while all.is_empty() && !shared.is_stopping() {
            all = shared.come.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
        let Some(hybrid_pool) = &shared.hybrid_pool else {
            self.connections.extend(all.values().cloned());
            return;
        };
        drop(all);
        self.connections.extend(hybrid_pool.kept());
        self.connections.extend(lock(&shared.dedicated).values().cloned());
    }

    fn look(&mut self, shared: &Arc<Shared>) {
        let is_at_bound = shared.orb.server_threads.is_at_bound();
        let served = self.connections.iter().map(|it| it.served.load(Ordering::Relaxed));
        let is_standstill = self.standstill.look(is_at_bound, served);
        for connection in self.connections.drain(..) {
            if !connection.is_waiting_for_a_thread() {
                continue;
            }
            connection.look_for_client_now();
            let seen = (connection.id, connection.served.load(Ordering::Relaxed));
            if is_standstill {
                connection.refuse_what_may_be_awaited(shared);
            } else if self.suspects.contains(&seen) {
                help(shared, &connection);
            } else {
                self.stalled.push(seen);
                continue;
            }
            self.stalled.push(seen);
        }
        std::mem::swap(&mut self.suspects, &mut self.stalled);
        self.stalled.clear();
    }
}

/// Tells when all threads of a server are taken and no servant returns.
#[derive(Debug, Default)]
struct Standstill {
    served: u64,
    looks: u32,
}

impl Standstill {
    /// True when it has been so for [`STANDSTILL_LOOKS`].
    fn look(&mut self, is_at_bound: bool, served: impl Iterator<Item = u64>) -> bool {
        if !is_at_bound {
            self.looks = 0;
            return false;
        }
        let served = served.fold(0, u64::wrapping_add);
        self.looks = if served == self.served { self.looks.saturating_add(1) } else { 0 };
        self.served = served;
        self.looks >= STANDSTILL_LOOKS
    }
}

/// Has another thread go on with what has arrived, unless too many serve the connection already: a new one, or at the
/// server's bound one of a hybrid that waits for any connection.
pub(super) fn help(shared: &Arc<Shared>, connection: &Arc<Connection>) {
    let helpers_max = shared.orb.config.threads_per_connection_max.saturating_sub(1);
    if connection.helpers.fetch_add(1, Ordering::SeqCst) >= helpers_max {
        connection.helpers.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let (helper, helped) = (connection.clone(), shared.clone());
    // One of a hybrid may stay as one of its threads.
    let name = if shared.hybrid_pool.is_some() { "ironorb-hybrid" } else { "ironorb-helper" };
    let started = shared.orb.server_threads.spawn(name, move || {
        go_on_with(&helper, &helped);
        helper.helpers.fetch_sub(1, Ordering::SeqCst);
        drop(helper);
        if let Some(hybrid_pool) = &helped.hybrid_pool {
            hybrid_pool.join(&helped);
        }
    });
    if started.is_ok() {
        return;
    }
    match (&shared.hybrid_pool, &shared.pool) {
        (Some(hybrid_pool), Some(pool))
            if !hybrid_pool.is_needed() && !connection.wants_help.swap(true, Ordering::SeqCst) =>
        {
            pool.push_ready(connection);
        }
        _ => drop(connection.helpers.fetch_sub(1, Ordering::SeqCst)),
    }
}

/// Goes on with a connection, for a thread that has been woken for it.
pub(super) fn go_on_with_wanted(connection: &Arc<Connection>, shared: &Shared) {
    go_on_with(connection, shared);
    connection.helpers.fetch_sub(1, Ordering::SeqCst);
}

/// Serves what has arrived on a connection. In a hybrid at its limit, one request, as its other threads do.
fn go_on_with(connection: &Arc<Connection>, shared: &Shared) {
    let mut current_request = CurrentRequest::default();
    while let WorkLookup::Work { .. } = connection.try_look_for_work(&mut current_request) {
        if connection.carry_out(&mut current_request) {
            shared.close(connection);
        }
        if shared.hybrid_pool.as_ref().is_some_and(|hybrid_pool| hybrid_pool.is_needed()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standstill_is_a_second_without_progress_at_the_bound() {
        let mut standstill = Standstill::default();
        let mut look = |is_at_bound, served: u64| standstill.look(is_at_bound, [served, 5].into_iter());
        assert!(!look(true, 1));
        assert!((1..STANDSTILL_LOOKS).all(|_| !look(true, 1)));
        assert!(look(true, 1) && look(true, 1));
        assert!(!look(true, 2), "a servant has returned");
        assert!((1..STANDSTILL_LOOKS).all(|_| !look(true, 2)));
        assert!(!look(false, 2), "there is a thread to be had");
        assert!(!look(true, 2));
    }
}
