//! The one thread of a server that receives on bidirectional connections. It serves no request and never
//! waits for a peer: requests go to the connections' inboxes.
//!
//! The thread starts with the first call to a client over its own connection and ends with the last such
//! connection. A thread for each connection would save one system call per batch of bytes, but users choose a
//! pool in order to have few threads.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

use super::connection::{Connection, Received};
use super::spawn;
use crate::sync::lock;

/// What the thread shares with the threads that give it connections.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    waits: OnceLock<Waits>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Waits {
    epoll: OwnedFd,
    /// An eventfd, written when there is a newcomer.
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    newcomers: Vec<Arc<Connection>>,
    is_running: bool,
}

const WAKE: u64 = u64::MAX;

impl Receiving {
    /// Has the thread receive on a connection from now on. It takes what the framer holds first. On an error
    /// no thread receives on the connection.
    pub(super) fn add(self: &Arc<Self>, connection: Arc<Connection>) -> io::Result<()> {
        if self.waits.get().is_none() {
            let _ = self.waits.set(Waits::new()?);
        }
        let mut state = lock(&self.state);
        if !state.is_running {
            let receiving = self.clone();
            spawn("ironorb-bidir", move || receiving.run())?;
            state.is_running = true;
        }
        state.newcomers.push(connection);
        drop(state);
        if let Some(waits) = self.waits.get() {
            let _ = rustix::io::write(&waits.wake, &1u64.to_ne_bytes());
        }
        Ok(())
    }

    fn run(&self) {
        let Some(Waits { epoll, wake }) = self.waits.get() else { return };
        let mut space = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let mut connections: HashMap<u64, Arc<Connection>> = HashMap::new();
        loop {
            let newcomers = {
                let mut state = lock(&self.state);
                if connections.is_empty() && state.newcomers.is_empty() {
                    state.is_running = false;
                    return;
                }
                std::mem::take(&mut state.newcomers)
            };
            for connection in newcomers {
                if connection.receive_all() != Received::All {
                    continue;
                }
                let event = EventData::new_u64(connection.id);
                match epoll::add(epoll, &connection.stream, event, EventFlags::IN) {
                    Ok(()) => drop(connections.insert(connection.id, connection)),
                    Err(_) => connection.fail(),
                }
            }
            let Ok((events, _)) = epoll::wait(epoll, &mut space, None) else {
                continue; // interrupted
            };
            for event in events {
                let id = event.data.u64();
                if id == WAKE {
                    let _ = rustix::io::read(wake, &mut [0u8; 8]);
                } else if let Some(connection) = connections.get(&id)
                    && connection.receive_all() != Received::All
                {
                    // A paused connection is added again when receiving resumes.
                    let _ = epoll::delete(epoll, &connection.stream);
                    connections.remove(&id);
                }
            }
        }
    }
}

impl Waits {
    fn new() -> io::Result<Waits> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Waits { epoll, wake })
    }
}

/// The most events taken from one wait.
const EVENTS_MAX: usize = 64;
