//! Finds connections whose servant blocks while more requests have arrived on them. One of these may be the
//! very request that would free the servant. The monitor starts another thread that serves them.
//!
//! The server's keeper has the monitor look at connections periodically, so that ordinary calls pay nothing for it.
//!
//! At the server's limit of threads, requests wait. Servants that call their clients over the connection of
//! the request may then deadlock: the client waits for one of the requests that wait. After a second in which
//! no servant has returned and no client has answered, the monitor refuses such requests, one of each
//! connection at a look, so that the deadlock ends long before the calls time out. The monitor cannot
//! distinguish a client that takes more than a second to answer from one that waits for the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Shared;
use super::connection::{Connection, WorkLookup};
use crate::connection::CurrentRequest;
use crate::lane::Event;

/// Looks without progress at the limit of threads, after which requests are refused: 40 * 25 ms = 1 s.
const STANDSTILL_LOOKS: u32 = 40;

/// What the monitor keeps between looks. The vectors are reused, so that an idle server allocates nothing.
#[derive(Default)]
pub(super) struct BlockedServantMonitor {
    connections: Vec<Arc<Connection>>,
    /// Connections that waited for a thread at the last look, with their `served` counts at that time.
    suspects: Vec<(u64, u32)>,
    stalled: Vec<(u64, u32)>,
    standstill: Standstill,
}

impl BlockedServantMonitor {
    /// The pause between two looks. A connection must be found stalled twice.
    pub(super) const EVERY: Duration = Duration::from_millis(25);

    /// The connections that may have a blocked servant: all, or in a hybrid server those that have a thread.
    fn connections_of(shared: &Shared, to: &mut Vec<Arc<Connection>>) {
        match &shared.hybrid_pool {
            Some(hybrid_pool) => {
                to.extend(hybrid_pool.kept());
                to.extend(shared.dedicated.lock().values().cloned());
            }
            None => to.extend(shared.connections.lock().values().cloned()),
        }
    }

    pub(super) fn look(&mut self, shared: &Arc<Shared>) {
        BlockedServantMonitor::connections_of(shared, &mut self.connections);
        if let Some(hybrid_pool) = &shared.hybrid_pool {
            hybrid_pool.refill(shared);
        }
        // A thread of the pool that waits would take the requests.
        let is_at_bound = shared.lane().threads.is_at_bound()
            && shared.hybrid_pool.as_ref().is_none_or(|hybrid_pool| hybrid_pool.is_needed());
        let progress = self
            .connections
            .iter()
            .flat_map(|it| [u64::from(it.session.served()), it.replies_taken.load(Ordering::Relaxed)]);
        let is_standstill = self.standstill.look(is_at_bound, progress);
        for connection in self.connections.drain(..) {
            if !connection.is_waiting_for_a_thread() {
                continue;
            }
            connection.look_for_client_now();
            let seen = (connection.id, connection.session.served());
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

/// Detects that all threads of a server are taken, no servant returns and no client answers.
#[derive(Debug, Default)]
struct Standstill {
    progress: u64,
    looks: u32,
}

impl Standstill {
    /// True when there has been no progress for [`STANDSTILL_LOOKS`] looks.
    fn look(&mut self, is_at_bound: bool, progress: impl Iterator<Item = u64>) -> bool {
        if !is_at_bound {
            self.looks = 0;
            return false;
        }
        let progress = progress.fold(0, u64::wrapping_add);
        self.looks = if progress == self.progress { self.looks.saturating_add(1) } else { 0 };
        self.progress = progress;
        self.looks >= STANDSTILL_LOOKS
    }
}

/// Has one more thread serve what has arrived, unless too many serve the connection already. It starts a new
/// thread, or at the server's limit wakes a hybrid's waiting thread.
pub(super) fn help(shared: &Arc<Shared>, connection: &Arc<Connection>) {
    let helpers_max = shared.lane().config.threads_per_connection_max.saturating_sub(1);
    if connection.helpers.fetch_add(1, Ordering::SeqCst) as usize >= helpers_max {
        connection.helpers.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let (helper, helped) = (connection.clone(), shared.clone());
    // In a hybrid server, the new thread may join the pool afterwards.
    let name = if shared.hybrid_pool.is_some() { "ironorb-hybrid" } else { "ironorb-helper" };
    let started = shared.lane().threads.spawn(name, move || {
        go_on_with(&helper, &helped);
        helper.helpers.fetch_sub(1, Ordering::SeqCst);
        drop(helper);
        if let Some(hybrid_pool) = &helped.hybrid_pool {
            hybrid_pool.join(&helped);
        }
    });
    if started.is_ok() {
        shared.orb.counters.count(Event::ServantHelped);
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

/// Serves a connection on a thread that was woken for it.
pub(super) fn go_on_with_wanted(connection: &Arc<Connection>, shared: &Shared) {
    go_on_with(connection, shared);
    connection.helpers.fetch_sub(1, Ordering::SeqCst);
}

/// Serves what has arrived on a connection. In a hybrid server at its limit it serves one request, as the
/// pool's other threads do.
fn go_on_with(connection: &Arc<Connection>, shared: &Shared) {
    let mut current_request = CurrentRequest::default();
    loop {
        match connection.try_look_for_work(&mut current_request) {
            WorkLookup::Work { .. } => {
                if connection.carry_out(&mut current_request) {
                    shared.close(connection);
                }
            }
            WorkLookup::Nothing => return,
            // The message that ends the connection has been taken, and no other thread finds it.
            WorkLookup::End => {
                if connection.found_end() {
                    shared.close(connection);
                }
                return;
            }
        }
        let is_needed = shared.hybrid_pool.as_ref().is_some_and(|hybrid_pool| hybrid_pool.is_needed());
        if is_needed || connection.is_stalled() {
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
