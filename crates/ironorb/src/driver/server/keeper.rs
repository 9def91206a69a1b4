//! The one thread of a server that serves nothing: it accepts connections, and looks after all of them at intervals.
//!
//! It sleeps while there is no connection and no client comes. A listener whose connections no descriptor shows, of a
//! transport of the program's own, has a thread of its own that accepts.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::Shared;
use super::blocked_servant_monitor::BlockedServantMonitor;
use super::connection_reaper::ConnectionReaper;
use crate::base::locks::PiLock;
use crate::base::spawner::{NewThread, ThreadClass};
use crate::base::time::Time;
use crate::driver::clock;
use crate::driver::wakeable_epoll::{WAKE, WakeableEpoll, timespec};
use crate::lane::Event;
use crate::transport::{Listener, Stream};

/// The way to the thread.
pub(super) struct Keeper {
    sockets: WakeableEpoll,
    /// Clients that have come to a lane which is not for them.
    handed: PiLock<Vec<Stream>>,
}

impl Keeper {
    pub(super) fn new() -> io::Result<Keeper> {
        Ok(Keeper { sockets: WakeableEpoll::new()?, handed: PiLock::default() })
    }

    /// Has the thread look at what has changed: there is a first connection, or the server stops.
    pub(super) fn wake(&self) {
        self.sockets.wake();
    }

    /// Has the thread admit a client that has come to another lane.
    pub(super) fn hand(&self, stream: Stream) {
        self.handed.lock().push(stream);
        self.wake();
    }

    fn take_handed(&self) -> Vec<Stream> {
        std::mem::take(&mut *self.handed.lock())
    }

    /// Starts the thread.
    pub(super) fn start(shared: &Arc<Shared>, listeners: &[Arc<Listener>]) -> io::Result<()> {
        let mut shown = Vec::new();
        for listener in listeners {
            match listener.show_connections()? {
                Some(socket) => {
                    let number = EventData::new_u64(shown.len() as u64);
                    epoll::add(&shared.keeper.sockets.epoll, socket, number, EventFlags::IN)?;
                    shown.push(listener.clone());
                }
                None => accept_apart(shared, listener)?,
            }
        }
        let (lane, shared) = (shared.lane, shared.clone());
        let thread = NewThread::new("ironorb-keeper", ThreadClass::Listener).in_lane(lane);
        thread.spawn(move || run(&shared, &shown)).map(drop)
    }
}

/// Looks that are due at intervals.
struct Looks {
    reaper: ConnectionReaper,
    /// `None` where no servant keeps a thread from requests of its connection.
    monitor: Option<BlockedServantMonitor>,
    reaper_at: Time,
    monitor_at: Time,
}

impl Looks {
    fn new(shared: &Shared) -> Looks {
        let has_monitor = shared.lane().config.concurrency.gives_threads_to_connections();
        let now = clock::now();
        Looks {
            reaper: ConnectionReaper::new(&shared.lane().config),
            monitor: has_monitor.then(BlockedServantMonitor::default),
            reaper_at: now,
            monitor_at: now,
        }
    }

    /// Looks where it is time to, and returns when the next look is.
    fn look(&mut self, shared: &Arc<Shared>) -> Time {
        let now = clock::now();
        if self.reaper_at <= now {
            self.reaper.look(shared);
            self.reaper_at = now + self.reaper.every();
        }
        let Some(monitor) = &mut self.monitor else { return self.reaper_at };
        if self.monitor_at <= now {
            monitor.look(shared);
            self.monitor_at = now + BlockedServantMonitor::EVERY;
        }
        self.reaper_at.min(self.monitor_at)
    }
}

fn run(shared: &Arc<Shared>, listeners: &[Arc<Listener>]) {
    let mut looks = Looks::new(shared);
    let mut space = [const { MaybeUninit::uninit() }; EVENTS_MAX];
    let mut accept_at = None;
    while !shared.is_stopping() {
        // Between two looks there may be no connection for long.
        let look_at = shared.has_connections().then(|| looks.look(shared));
        let until = look_at.into_iter().chain(accept_at).min();
        let left = until.map(|at| timespec(at.since(clock::now())));
        let Ok((events, _)) = epoll::wait(&shared.keeper.sockets.epoll, &mut space, left.as_ref()) else {
            continue; // interrupted
        };
        for event in events {
            match event.data.u64() {
                WAKE => {
                    shared.keeper.sockets.clear();
                    for stream in shared.keeper.take_handed() {
                        // A client that cannot be served is dropped, as one that comes here itself.
                        drop(shared.admit(stream));
                    }
                }
                number => {
                    let listener = &listeners[number as usize];
                    if accept_all(listener, shared).is_err() {
                        shared.orb.counters.count(Event::AcceptFailed);
                        show(shared, listeners, EventFlags::empty());
                        accept_at = Some(clock::now() + ACCEPT_PAUSE);
                    }
                }
            }
        }
        if accept_at.take_if(|at| *at <= clock::now()).is_some() {
            show(shared, listeners, EventFlags::IN);
        }
    }
}

/// Has the wait end, or not end, when clients come.
fn show(shared: &Shared, listeners: &[Arc<Listener>], flags: EventFlags) {
    for (number, listener) in listeners.iter().enumerate() {
        if let Ok(Some(socket)) = listener.show_connections() {
            let number = EventData::new_u64(number as u64);
            let _ = epoll::modify(&shared.keeper.sockets.epoll, socket, number, flags);
        }
    }
}

/// Accepts the clients that have come. An error says that the process has run out of descriptors.
fn accept_all(listener: &Listener, shared: &Arc<Shared>) -> io::Result<()> {
    for _ in 0..ACCEPTS_A_TURN {
        match listener.accept_now() {
            Ok(Some(stream)) => drop(shared.admit(stream)),
            Ok(None) => break,
            // The client gave up before it was accepted: not a lack of descriptors.
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            // The listener is closed.
            Err(_) if shared.is_stopping() => break,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Starts a thread that accepts at one listener.
fn accept_apart(shared: &Arc<Shared>, listener: &Arc<Listener>) -> io::Result<()> {
    let (lane, shared, listener) = (shared.lane, shared.clone(), listener.clone());
    let accept = move || {
        loop {
            match listener.accept() {
                // A connection that cannot be served is dropped; the peer sees it closed. A connection made
                // before the server stopped gets a CloseConnection message, because it may carry a request
                // already.
                Ok(stream) => drop(shared.admit(stream)),
                Err(_) if shared.is_stopping() => return,
                // The peer gave up, or the process ran out of descriptors. The listener must go on for other
                // clients.
                Err(_) => {
                    shared.orb.counters.count(Event::AcceptFailed);
                    std::thread::sleep(ACCEPT_PAUSE);
                }
            }
        }
    };
    NewThread::new("ironorb-accept", ThreadClass::Listener).in_lane(lane).spawn(accept).map(drop)
}

/// The most clients that are accepted at a listener before the looks have their turn.
const ACCEPTS_A_TURN: usize = 64;

/// The pause after a failed accept. Without it, a lack of descriptors would turn into a busy loop.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// Events taken at once.
const EVENTS_MAX: usize = 16;
