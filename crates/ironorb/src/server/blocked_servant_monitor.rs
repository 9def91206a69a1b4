//! Connections whose thread is not to be had: if a servant blocks while more requests of its connection have arrived -
//! perhaps the very request that would free it - another thread is started to go on with them.
//!
//! Such connections are found by looking now and then, so that ordinary calls pay nothing for it.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::connection::{Connection, CurrentRequest, WorkLookup};
use super::hybrid::HybridPool;
use super::{Shared, spawn};
use crate::sync::lock;

/// How often the watcher looks. A connection must be found stalled twice.
const WATCH_EVERY: Duration = Duration::from_millis(25);

/// Watches all connections, or those that have a thread of their own or one of the crew that keeps to them.
pub(super) fn start(shared: &Arc<Shared>, hybrid_pool: Option<Arc<HybridPool>>) -> io::Result<()> {
    let shared = shared.clone();
    spawn("ironorb-monitor", move || {
        // Kept over the rounds, so that a server at rest takes no memory.
        let mut connections: Vec<Arc<Connection>> = Vec::new();
        let mut suspects: Vec<(u64, u64)> = Vec::new();
        let mut stalled: Vec<(u64, u64)> = Vec::new();
        while !shared.is_stopping() {
            {
                let mut all = lock(&shared.connections);
                while all.is_empty() && !shared.is_stopping() {
                    all = shared.come.wait(all).unwrap_or_else(PoisonError::into_inner);
                }
                if hybrid_pool.is_none() {
                    connections.extend(all.values().cloned());
                }
            }
            if let Some(hybrid_pool) = &hybrid_pool {
                connections.extend(hybrid_pool.kept());
                connections.extend(lock(&shared.dedicated).values().cloned());
            }
            for connection in connections.drain(..) {
                if !connection.is_waiting_for_a_thread() {
                    continue;
                }
                let seen = (connection.id, connection.served.load(Ordering::Relaxed));
                if suspects.contains(&seen) {
                    help(&shared, &connection);
                } else {
                    stalled.push(seen);
                }
            }
            std::mem::swap(&mut suspects, &mut stalled);
            stalled.clear();
            std::thread::sleep(WATCH_EVERY);
        }
    })
}

/// Starts a thread that goes on with what has arrived, unless there are too many already.
pub(super) fn help(shared: &Arc<Shared>, connection: &Arc<Connection>) {
    let helpers_max = shared.orb.config.threads_per_connection_max.saturating_sub(1);
    if connection.helpers.fetch_add(1, Ordering::SeqCst) >= helpers_max {
        connection.helpers.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let (helper, shared) = (connection.clone(), shared.clone());
    let started = spawn("ironorb-helper", move || {
        let mut current_request = CurrentRequest::default();
        while let WorkLookup::Work { .. } = helper.try_look_for_work(&mut current_request) {
            if helper.carry_out(&mut current_request) {
                shared.close(&helper);
            }
        }
        helper.helpers.fetch_sub(1, Ordering::SeqCst);
    });
    if started.is_err() {
        connection.helpers.fetch_sub(1, Ordering::SeqCst);
    }
}
