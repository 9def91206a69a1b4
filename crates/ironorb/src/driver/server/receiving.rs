//! The one thread of a server that receives on bidirectional connections. It serves no request and never
//! waits for a peer: requests go to the connections' inboxes.
//!
//! The thread starts with the first call to a client over its own connection and ends with the last such
//! connection. A thread for each connection would save one system call per batch of bytes, but users choose a
//! pool in order to have few threads.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;

use super::connection::{Connection, Received};
use super::poll_thread::PollThread;
use crate::base::spawner::ThreadClass;

/// The thread, and the way to it.
#[derive(Debug)]
pub(super) struct Receiving {
    thread: PollThread,
}

impl Receiving {
    pub(super) fn new() -> Arc<Receiving> {
        Arc::new(Receiving { thread: PollThread::new("ironorb-bidir", ThreadClass::Receiver, false) })
    }

    /// Has the thread receive on a connection from now on. It takes what the framer holds first. On an error
    /// no thread receives on the connection.
    pub(super) fn add(self: &Arc<Self>, connection: Arc<Connection>) -> io::Result<()> {
        let receiving = self.clone();
        self.thread.give(connection, move || receiving.run())
    }

    fn run(&self) {
        let mut connections: BTreeMap<u64, Arc<Connection>> = BTreeMap::new();
        let mut ready = Vec::new();
        while let Some(newcomers) = self.thread.newcomers(connections.is_empty()) {
            for connection in newcomers {
                if connection.receive_all() != Received::All {
                    continue;
                }
                match self.thread.watch(&connection, EventFlags::IN) {
                    Ok(()) => drop(connections.insert(connection.id, connection)),
                    Err(_) => connection.fail(),
                }
            }
            if connections.is_empty() {
                continue; // nothing would end the wait
            }
            self.thread.wait(None, &mut ready);
            for id in ready.drain(..) {
                if let Some(connection) = connections.get(&id)
                    && connection.receive_all() != Received::All
                {
                    // A paused connection is added again when receiving resumes.
                    self.thread.forget(connection);
                    connections.remove(&id);
                }
            }
        }
    }
}
