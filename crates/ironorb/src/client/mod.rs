//! Connections to other ORBs: one set for each endpoint, shared by all references to it.

mod link;

pub(crate) use link::Link;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::config::OrbConfig;
use crate::deadline::Deadline;
use crate::net;
use crate::sync::lock;

/// All outgoing connections of an ORB.
#[derive(Debug)]
pub(crate) struct Connector {
    endpoints: Mutex<Endpoints>,
    closed: Arc<AtomicBool>,
    config: OrbConfig,
}

#[derive(Debug, Default)]
struct Endpoints {
    links: HashMap<(String, u16), Arc<EndpointLinks>>,
    /// At how many entries it is worth looking for those that are of no more use.
    sweep_at: usize,
}

/// Fewer endpoints than this are never swept.
const SWEEP_MIN: usize = 32;

impl Endpoints {
    /// Closes connections whose peers have gone, and forgets endpoints that no reference leads to and that have no
    /// connection. Done when the number of entries has doubled, so that it costs an entry a constant, and so that
    /// peers that come and go leave no more behind than there are others.
    fn sweep(&mut self, now: Instant) {
        self.links.retain(|_, links| {
            let connected = links.drop_ended(now);
            connected > 0 || Arc::strong_count(links) > 1
        });
        self.sweep_at = 2 * self.links.len();
    }
}

impl Connector {
    pub(crate) fn new(config: OrbConfig) -> Self {
        Connector { endpoints: Mutex::default(), closed: Arc::default(), config }
    }

    /// The connections to an endpoint; makes none.
    pub(crate) fn endpoint(&self, host: &str, port: u16) -> Arc<EndpointLinks> {
        let mut endpoints = lock(&self.endpoints);
        if let Some(links) = endpoints.links.get(&(host.to_owned(), port)) {
            return links.clone();
        }
        if endpoints.links.len() >= endpoints.sweep_at.max(SWEEP_MIN) {
            endpoints.sweep(Instant::now());
        }
        let links = Arc::new(EndpointLinks {
            host: host.to_owned(),
            port,
            slots: (0..self.config.connections_per_endpoint_max.max(1)).map(|_| Mutex::default()).collect(),
            closed: self.closed.clone(),
            config: self.config.clone(),
        });
        endpoints.links.insert((host.to_owned(), port), links.clone());
        links
    }

    /// Says goodbye on every connection; calls that wait end.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for links in lock(&self.endpoints).links.values() {
            for slot in &links.slots {
                if let Some(link) = lock(slot).take() {
                    link.close();
                }
            }
        }
    }
}

/// The connections to one endpoint. A thread always uses the same one of them.
#[derive(Debug)]
pub(crate) struct EndpointLinks {
    host: String,
    port: u16,
    slots: Box<[Mutex<Option<Arc<Link>>>]>,
    closed: Arc<AtomicBool>,
    config: OrbConfig,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectFailure {
    /// The ORB has been shut down.
    ShutDown,
    /// The deadline of the call or of the attempt passed.
    TimedOut,
    /// The system says why.
    Io(std::io::Error),
}

impl EndpointLinks {
    /// The name or address of the machine.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// For error texts.
    pub(crate) fn address(&self) -> String {
        crate::endpoint::display_host_port(&self.host, self.port)
    }

    /// Closes connections that have ended; says how many are left.
    fn drop_ended(&self, now: Instant) -> usize {
        let mut connected = 0;
        for slot in &self.slots {
            let mut slot = lock(slot);
            match &*slot {
                Some(link) if link.is_alive(now) => connected += 1,
                _ => *slot = None,
            }
        }
        connected
    }

    /// This thread's connection, made now if there is none or if it has ended.
    #[inline]
    pub(crate) fn link(&self, now: Instant, deadline: Deadline) -> Result<Arc<Link>, ConnectFailure> {
        let slot = &self.slots[thread_ordinal() % self.slots.len()];
        if let Some(link) = &*lock(slot)
            && link.is_usable(now)
        {
            return Ok(link.clone());
        }
        self.connect(slot, now, deadline)
    }

    #[cold]
    fn connect(
        &self,
        slot: &Mutex<Option<Arc<Link>>>,
        now: Instant,
        deadline: Deadline,
    ) -> Result<Arc<Link>, ConnectFailure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(ConnectFailure::ShutDown);
        }
        let deadline = deadline.at_most(now, self.config.connect_timeout);
        // Not under the lock: threads that share the slot must not wait longer than their own deadlines.
        let stream = net::connect(&self.host, self.port, deadline).map_err(|e| match e.kind() {
            std::io::ErrorKind::TimedOut => ConnectFailure::TimedOut,
            _ => ConnectFailure::Io(e),
        })?;
        let link = Arc::new(Link::new(stream, &self.config));
        let mut slot = lock(slot);
        match &*slot {
            Some(other) if other.is_usable(now) => Ok(other.clone()), // another thread was faster
            _ => {
                if self.closed.load(Ordering::Acquire) {
                    return Err(ConnectFailure::ShutDown);
                }
                *slot = Some(link.clone());
                Ok(link)
            }
        }
    }
}

/// Numbers the threads of the process in the order in which they first call.
fn thread_ordinal() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static ORDINAL: Cell<usize> = const { Cell::new(usize::MAX) });
    match ORDINAL.get() {
        usize::MAX => {
            let ordinal = NEXT.fetch_add(1, Ordering::Relaxed);
            ORDINAL.set(ordinal);
            ordinal
        }
        ordinal => ordinal,
    }
}
