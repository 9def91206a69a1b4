//! A reactor: one thread receives everything and runs every servant, one request after another.
//!
//! Servants need no locks against each other. A call costs three system calls: its receive, its send and the
//! wait for the next request. A servant that blocks delays all clients. A servant that waits for a client to
//! call it back waits until its timeout.

use std::io;
use std::sync::Arc;

use super::Shared;
use super::connection::{Connection, WorkLookup};
use super::pool::{self, Pool};
use crate::connection::CurrentRequest;

pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = shared.clone();
    let counted = shared.lane().threads.clone();
    counted.spawn_beyond("ironorb-reactor", move || {
        if let Some(pool) = &shared.pool {
            let mut current_request = CurrentRequest::default();
            while let Some(connection) = pool::next(&shared, pool) {
                serve(&shared, pool, &connection, &mut current_request);
                connection.take_large_back(&mut current_request);
            }
        }
    })
}

/// The most requests that are served from one connection before the next connection has its turn.
const REQUESTS_A_TURN: usize = 16;

fn serve(shared: &Shared, pool: &Pool, connection: &Arc<Connection>, current_request: &mut CurrentRequest) {
    if connection.is_stalled() {
        return pool.leave_stalled(connection); // the writer thread brings it back
    }
    for _ in 0..REQUESTS_A_TURN {
        match connection.look_for_work(current_request) {
            WorkLookup::Nothing => {
                pool.leave(connection);
                return;
            }
            WorkLookup::Work { .. } => {
                if connection.carry_out(current_request) {
                    return shared.close(connection);
                }
                if connection.is_stalled() {
                    return pool.leave_stalled(connection);
                }
            }
            WorkLookup::End => {
                pool.forget(connection);
                if connection.found_end() {
                    shared.close(connection);
                }
                return;
            }
        }
    }
    // Whole messages that have been received show in no socket.
    pool.push_ready(connection);
}
