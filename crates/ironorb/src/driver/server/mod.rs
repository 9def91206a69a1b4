//! Listening, and the threads that serve connections.

mod blocked_servant_monitor;
mod connection;
mod connection_reaper;
mod hybrid;
pub(crate) mod in_flight;
mod leader_followers;
mod poll_thread;
mod pool;
mod reactor;
mod receiving;
mod thread_per_connection;
pub(crate) mod threads;
mod work;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::base::config::ServerConcurrency;
use crate::base::locks::{Condition, LaneLock};
use crate::base::spawner::{NewThread, ThreadClass};
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::lane::Event;
use crate::transport::endpoint::{split_host_port, without_scheme};
use crate::transport::tcp::HostPort;
use crate::transport::{Address, CustomAddress, CustomTransport, Endpoint, Listener, Listening, Stream};
use connection::Connection;
use hybrid::HybridPool;
use pool::{Delivery, Pool};
use receiving::Receiving;
use threads::ThreadPlace;
use writer::Writer;

/// The server's side of an ORB: its listening sockets and connections.
pub(crate) struct Server {
    shared: Arc<Shared>,
    listeners: Vec<Arc<Listener>>,
}

/// What all threads of a server share.
struct Shared {
    orb: Arc<OrbCore>,
    stopping: AtomicBool,
    next_id: AtomicU64,
    connections: LaneLock<BTreeMap<u64, Arc<Connection>>>,
    /// Notified when a connection leaves `connections`.
    gone: Condition,
    /// Notified when a connection is added. The reaper and the blocked-servant monitor wait for it.
    come: Condition,
    /// Where threads wait for connections without a thread of their own.
    pool: Option<Pool>,
    /// Connections of a hybrid server that have a thread for as long as they last. The blocked-servant
    /// monitor looks at them.
    dedicated: LaneLock<BTreeMap<u64, Arc<Connection>>>,
    /// The thread that receives on bidirectional connections.
    receiving: Arc<Receiving>,
    /// The thread that sends to peers which do not read at once.
    writer: Arc<Writer>,
    /// The threads of a hybrid server.
    hybrid_pool: Option<Arc<HybridPool>>,
}

impl Server {
    /// Listens at every endpoint and starts the threads.
    pub(crate) fn start(orb: &Arc<OrbCore>, endpoints: &[Endpoint]) -> io::Result<Server> {
        let mut listeners = Vec::new();
        let mut bound = Vec::new();
        for endpoint in endpoints {
            let (listener, published) =
                endpoint.listen(&Listening { config: &orb.config, clock: clock::CLOCK })?;
            bound.push(published);
            listeners.push(Arc::new(listener));
        }
        // The addresses are published before a client can ask for them.
        orb.publish(bound)?;
        let pool = match orb.config.concurrency {
            ServerConcurrency::ThreadPerConnection => None,
            ServerConcurrency::LeaderFollowers { .. } | ServerConcurrency::Hybrid { .. } => {
                Some(Pool::new(Delivery::Once, &orb.counters)?)
            }
            ServerConcurrency::Reactor => Some(Pool::new(Delivery::Always, &orb.counters)?),
        };
        let shared = Arc::new(Shared {
            orb: orb.clone(),
            stopping: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
            connections: LaneLock::default(),
            gone: Condition::new(),
            come: Condition::new(),
            pool,
            dedicated: LaneLock::default(),
            receiving: Receiving::new(),
            writer: Writer::new(),
            hybrid_pool: match orb.config.concurrency {
                ServerConcurrency::Hybrid { .. } => Some(Arc::default()),
                ServerConcurrency::ThreadPerConnection
                | ServerConcurrency::LeaderFollowers { .. }
                | ServerConcurrency::Reactor => None,
            },
        });
        match orb.config.concurrency {
            ServerConcurrency::ThreadPerConnection => blocked_servant_monitor::start(&shared)?,
            ServerConcurrency::LeaderFollowers { threads } => leader_followers::start(&shared, threads)?,
            ServerConcurrency::Reactor => reactor::start(&shared)?,
            ServerConcurrency::Hybrid { .. } => {
                hybrid::start(&shared)?;
                blocked_servant_monitor::start(&shared)?;
            }
        }
        connection_reaper::start(&shared)?;
        for listener in &listeners {
            let (listener, shared) = (listener.clone(), shared.clone());
            NewThread::new("ironorb-accept", ThreadClass::Listener)
                .spawn(move || accept(&listener, &shared))?;
        }
        Ok(Server { shared, listeners })
    }

    /// Stops listening and closes all connections in order. With `wait`, the server first finishes and
    /// answers the requests in progress. Without it, their replies are lost.
    pub(crate) fn stop(&self, wait: bool) {
        if self.shared.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        for listener in &self.listeners {
            self.shared.end_listening(listener);
        }
        let mut connections = self.shared.connections.lock();
        for connection in connections.values() {
            if wait {
                connection.stop_receiving();
            } else {
                connection.close_now();
            }
        }
        self.shared.come.notify_all();
        self.shared.writer.stop();
        if let Some(pool) = &self.shared.pool {
            pool.wake_for_stop();
        }
        while wait && !connections.is_empty() {
            connections = self.shared.gone.wait(connections);
        }
    }
}

fn accept(listener: &Listener, shared: &Arc<Shared>) {
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
}

/// The most connections that are accepted while the server stops, so that clients which go on connecting do not
/// keep it. No system queues more by default.
const LAST_ACCEPTS_MAX: usize = 4096;

/// The pause after a failed accept. Without it, a lack of descriptors would turn into a busy loop.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Stops listening, after the clients that have connected already got a CloseConnection message. The system
    /// resets what has not been accepted when a listener closes; such a client could not know whether its request
    /// was carried out.
    fn end_listening(self: &Arc<Self>, listener: &Listener) {
        for stream in std::iter::from_fn(|| listener.accept_now()).take(LAST_ACCEPTS_MAX) {
            // A connection that cannot be told so is dropped.
            let _ = self.admit(stream);
        }
        listener.close();
    }

    fn admit(self: &Arc<Self>, stream: Stream) -> io::Result<()> {
        stream.set_queues(&self.orb.config)?;
        let is_hybrid = matches!(self.orb.config.concurrency, ServerConcurrency::Hybrid { .. });
        let own_thread = self.own_thread_to_give();
        let has_own_thread = own_thread.is_some();
        if is_hybrid && !has_own_thread {
            stream.set_receive_timeout(Some(hybrid::KEPT_FOR))?;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new_cyclic(|connection| {
            Connection::new(id, stream, self, connection.clone(), has_own_thread)
        });
        {
            let mut connections = self.connections.lock();
            // Nothing would serve a connection that has neither a thread nor a pool.
            let has_room = connections.len() < self.orb.config.server_connections_max
                && (has_own_thread || self.pool.is_some());
            if self.is_stopping() || !has_room {
                if !has_room {
                    self.orb.counters.count(Event::ConnectionRefused);
                }
                connection.close_now();
                return Ok(());
            }
            connections.insert(id, connection.clone());
        }
        self.come.notify_all();
        if is_hybrid && has_own_thread {
            self.dedicated.lock().insert(id, connection.clone());
        }
        let started = match (own_thread, &self.pool) {
            (Some(place), _) => thread_per_connection::start(self, &connection, place),
            (None, Some(pool)) => pool.add(&connection),
            (None, None) => Ok(()), // it has been closed
        };
        if started.is_err() {
            self.dedicated.lock().remove(&id);
            self.remove(id);
        }
        started
    }

    /// Reserves a thread that serves one connection alone, if the concurrency model gives connections such
    /// threads.
    fn own_thread_to_give(&self) -> Option<ThreadPlace> {
        let is_for_each = match self.orb.config.concurrency {
            ServerConcurrency::ThreadPerConnection => true,
            ServerConcurrency::Hybrid { .. } => {
                let threads_max = self.orb.server_threads.threads_max();
                self.dedicated.lock().len() < hybrid::dedicated_max(threads_max)
            }
            ServerConcurrency::LeaderFollowers { .. } | ServerConcurrency::Reactor => false,
        };
        if is_for_each { self.orb.server_threads.take() } else { None }
    }

    /// Where threads wait for this connection; `None` if it has a thread of its own.
    fn pool_of(&self, connection: &Connection) -> Option<&Pool> {
        self.pool.as_ref().filter(|_| !connection.has_own_thread())
    }

    /// Closes the connections that hold the most unread replies until the total is within its limit. One
    /// reply that is larger than the limit is let out. The caller must not hold the lock of any connection's
    /// `sender`.
    #[cold]
    fn close_worst_readers(&self) {
        let Some(account) = &self.orb.unread_replies else { return };
        let connections = self.connections.lock();
        while account.is_over() {
            let worst = connections.values().max_by_key(|connection| connection.unread.bytes());
            match worst.filter(|connection| connection.unread.bytes() > 0) {
                Some(connection) if !account.allows(&connection.unread) => {
                    self.orb.counters.count(Event::ReaderCutOff);
                    connection.cut_off_reader();
                }
                _ => return,
            }
        }
    }

    /// Goes on with a connection after the writer thread has sent what waited, or has given it up.
    fn bring_back(&self, connection: &Arc<Connection>) {
        match self.pool_of(connection) {
            Some(pool) => pool.bring_back(connection),
            None if connection.session.is_done() => self.close(connection),
            None => {} // its own thread has gone on meanwhile
        }
    }

    /// Closes a connection that has no request in progress. If the writer thread still sends its replies,
    /// the connection is closed when they have left.
    fn close(&self, connection: &Connection) {
        if !connection.is_stalled() {
            connection.close_now();
            self.remove(connection.id);
        }
    }

    fn remove(&self, id: u64) {
        self.connections.lock().remove(&id);
        self.gone.notify_all();
    }
}

/// The addresses to publish: those that the application names, or else those where the ORB listens. Unix
/// sockets are always published, because clients on this machine connect to them.
pub(crate) fn published(
    publish: &[String],
    transports: &[Arc<dyn CustomTransport>],
    bound: Vec<Address>,
) -> io::Result<Vec<Address>> {
    if publish.is_empty() {
        return Ok(bound);
    }
    let port_bound = bound.iter().find_map(Address::tcp).map_or(0, |(_, port)| port);
    let named = publish.iter().map(|text| {
        let bad = |why| io::Error::new(io::ErrorKind::InvalidInput, format!("publish {text:?}: {why}"));
        if let Some(address) = CustomAddress::read(text, transports) {
            let refused = |e| io::Error::new(io::ErrorKind::InvalidInput, e);
            return address.map(Address::Custom).map_err(refused);
        }
        let (host, port) = without_scheme(text).and_then(split_host_port).map_err(bad)?;
        if host.is_empty() {
            return Err(bad("a host must be there, which clients can look for"));
        }
        // Port 0, or a missing port, stands for the port that the system chose.
        let port = port.filter(|port| *port != 0).unwrap_or(port_bound);
        Ok(Address::Tcp(HostPort { host: host.to_owned(), port }))
    });
    let mut published = named.collect::<io::Result<Vec<_>>>()?;
    published.extend(bound.into_iter().filter(Address::is_local));
    Ok(published)
}
