//! Leader/followers: a fixed number of threads share all connections.
//!
//! Every thread waits in the same `epoll`. The kernel wakes one thread for a connection that has bytes. That
//! thread takes one request, arms the connection for the other threads and serves the request itself. So a
//! request never changes threads, and requests of one connection may run at the same time.

use std::io;
use std::sync::Arc;

use super::Shared;
use super::pool;
use super::thread_pool::serve;
use crate::connection::CurrentRequest;

pub(super) fn start(shared: &Arc<Shared>, threads: usize) -> io::Result<()> {
    let threads = threads.min(shared.lane().config.server_threads_max).max(1);
    for _ in 0..threads {
        let shared = shared.clone();
        let counted = shared.lane().threads.clone();
        counted.spawn_beyond("ironorb-pool", move || {
            if let Some(pool) = &shared.pool {
                let mut current_request = CurrentRequest::default();
                while let Some(connection) = pool::next(&shared, pool) {
                    serve(&shared, pool, &connection, &mut current_request);
                }
            }
        })?;
    }
    Ok(())
}
