//! Listening, and the threads that serve connections.

mod blocked_servant_monitor;
mod connection;
mod connection_reaper;
mod hybrid;
mod in_flight;
mod keeper;
pub(crate) mod lane;
mod leader_followers;
mod lending;
mod ordered_requests;
mod poll_thread;
mod pool;
mod reactor;
mod receiving;
mod thread_per_connection;
mod thread_pool;
pub(crate) mod threads;
mod work;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use self::lane::ServerLane;
use crate::base::config::ServerConcurrency;
use crate::base::gate::{Gate, GateGuard};
use crate::base::lane::{LaneId, enter as enter_lane};
use crate::base::locks::{Condition, LaneLock};
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::lane::Event;
use crate::object::priority::Priority;
use crate::transport::endpoint::{split_host_port, without_scheme};
use crate::transport::tcp::HostPort;
use crate::transport::{
    Address, CustomAddress, CustomTransport, Listener, Listening, Stream, socket_options,
};
use connection::Connection;
use hybrid::HybridPool;
use keeper::Keeper;
use lending::Lender;
use pool::{Delivery, Pool};
use receiving::Receiving;
use thread_pool::ThreadPool;
use threads::ThreadPlace;
use writer::Writer;

/// The server's side of a lane: its listening sockets and connections.
pub(crate) struct Server {
    shared: Arc<Shared>,
    listeners: Vec<Arc<Listener>>,
}

/// What all threads of a server share.
struct Shared {
    orb: Arc<OrbCore>,
    lane: LaneId,
    stopping: AtomicBool,
    next_id: AtomicU64,
    connections: LaneLock<BTreeMap<u64, Arc<Connection>>>,
    /// Notified when a connection leaves `connections`.
    gone: Condition,
    /// The thread that accepts, and looks after connections.
    keeper: Keeper,
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
    /// The threads of a pool that grows.
    thread_pool: Option<ThreadPool>,
    /// The threads that more urgent lanes may take, if the pool lends any.
    lender: OnceLock<Lender>,
    /// Opens when no thread of the server uses this any longer.
    ended: GateGuard,
}

impl Server {
    /// Listens at every endpoint of a lane and starts the threads.
    pub(crate) fn start(orb: &Arc<OrbCore>, lane: &ServerLane) -> io::Result<Server> {
        let _its_threads_and_locks_belong_to_it = enter_lane(lane.id);
        let config = &lane.config;
        let mut listeners = Vec::new();
        let mut bound = Vec::new();
        for endpoint in lane.endpoints() {
            let (listener, published) = endpoint.listen(&Listening { config, clock: clock::CLOCK })?;
            bound.push(published);
            listeners.push(Arc::new(listener));
        }
        lane.note_chosen(&bound);
        // The addresses are published before a client can ask for them.
        orb.publish(lane, bound)?;
        let pool = match config.concurrency {
            ServerConcurrency::ThreadPerConnection => None,
            ServerConcurrency::LeaderFollowers { .. }
            | ServerConcurrency::ThreadPool(_)
            | ServerConcurrency::Hybrid { .. } => Some(Pool::new(Delivery::Once, &orb.counters)?),
            ServerConcurrency::Reactor => Some(Pool::new(Delivery::Always, &orb.counters)?),
        };
        let shared = Arc::new(Shared {
            orb: orb.clone(),
            lane: lane.id,
            stopping: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
            connections: LaneLock::default(),
            gone: Condition::new(),
            keeper: Keeper::new()?,
            pool,
            dedicated: LaneLock::default(),
            receiving: Receiving::new(),
            writer: Writer::new(),
            hybrid_pool: match config.concurrency {
                ServerConcurrency::Hybrid { .. } => Some(Arc::default()),
                ServerConcurrency::ThreadPerConnection
                | ServerConcurrency::LeaderFollowers { .. }
                | ServerConcurrency::ThreadPool(_)
                | ServerConcurrency::Reactor => None,
            },
            thread_pool: match config.concurrency {
                ServerConcurrency::ThreadPool(pool) => Some(ThreadPool::new(pool, orb, lane)?),
                _ => None,
            },
            lender: OnceLock::new(),
            ended: Gate::of_any_thread(),
        });
        lane.set_server(&shared);
        let server = Server { shared, listeners };
        match server.start_threads(config.concurrency) {
            Ok(()) => Ok(server),
            Err(e) => {
                // Some have begun, and end now.
                server.stop(false);
                Err(e)
            }
        }
    }

    fn start_threads(&self, concurrency: ServerConcurrency) -> io::Result<()> {
        let shared = &self.shared;
        shared.lane().threads.start_static(shared)?;
        match concurrency {
            ServerConcurrency::ThreadPerConnection => {}
            ServerConcurrency::LeaderFollowers { threads } => leader_followers::start(shared, threads)?,
            ServerConcurrency::ThreadPool(_) => thread_pool::start(shared)?,
            ServerConcurrency::Reactor => reactor::start(shared)?,
            ServerConcurrency::Hybrid { .. } => hybrid::start(shared)?,
        }
        Keeper::start(shared, &self.listeners)
    }

    /// The lane that it serves.
    pub(crate) fn lane(&self) -> LaneId {
        self.shared.lane
    }

    /// Blocks until the threads of a server that has stopped are through.
    pub(crate) fn wait_for_end(self) {
        let ended = self.shared.ended.gate().clone();
        drop(self);
        ended.wait(None);
    }

    /// Stops listening and closes all connections in order. With `wait`, the server first finishes and
    /// answers the requests in progress. Without it, their replies are lost.
    pub(crate) fn stop(&self, wait: bool) {
        if self.shared.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        // A servant of another lane may have shut the ORB down.
        let _its_locks = enter_lane(self.shared.lane);
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
        self.shared.keeper.wake();
        self.shared.writer.stop();
        if let Some(pool) = &self.shared.pool {
            pool.wake_for_stop();
        }
        if let Some(pool) = &self.shared.thread_pool {
            pool.wake_for_stop();
        }
        if let Some(lender) = self.shared.lender.get() {
            lender.close();
        }
        while wait && !connections.is_empty() {
            connections = self.shared.gone.wait(connections);
        }
        drop(connections);
        self.shared.lane().threads.end_static();
    }
}

/// The most connections that are accepted while the server stops, so that clients which go on connecting do not
/// keep it. No system queues more by default.
const LAST_ACCEPTS_MAX: usize = 4096;

impl Shared {
    fn lane(&self) -> &ServerLane {
        self.orb.server_lane(self.lane)
    }

    fn has_connections(&self) -> bool {
        !self.connections.lock().is_empty()
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Stops listening, after the clients that have connected already got a CloseConnection message. The system
    /// resets what has not been accepted when a listener closes; such a client could not know whether its request
    /// was carried out.
    fn end_listening(self: &Arc<Self>, listener: &Listener) {
        for stream in std::iter::from_fn(|| listener.accept_now().ok()?).take(LAST_ACCEPTS_MAX) {
            // A connection that cannot be told so is dropped.
            let _ = self.admit(stream);
        }
        listener.close();
    }

    fn admit(self: &Arc<Self>, stream: Stream) -> io::Result<()> {
        let limit = self.orb.priority_limit_of(&stream);
        if self.lane().priority > Some(limit) {
            self.hand_down(stream, limit);
            return Ok(());
        }
        let stream = stream.with_options(&self.lane().config)?;
        if let Some(properties) = self.lane().tcp.filter(|_| socket_options::is_tcp(&stream)) {
            stream.set_tcp(&properties)?;
        }
        let is_hybrid = matches!(self.lane().config.concurrency, ServerConcurrency::Hybrid { .. });
        let own_thread = self.own_thread_to_give();
        let has_own_thread = own_thread.is_some();
        if is_hybrid && !has_own_thread {
            stream.set_receive_timeout(Some(hybrid::KEPT_FOR))?;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new_cyclic(|connection| {
            Connection::new(id, stream, self, connection.clone(), has_own_thread, limit)
        });
        {
            let mut connections = self.connections.lock();
            // Nothing would serve a connection that has neither a thread nor a pool.
            let has_room = connections.len() < self.lane().config.server_connections_max
                && (has_own_thread || self.pool.is_some());
            if self.is_stopping() || !has_room {
                if !has_room {
                    self.orb.counters.count(Event::ConnectionRefused);
                }
                connection.close_now();
                return Ok(());
            }
            connections.insert(id, connection.clone());
            if connections.len() == 1 {
                self.keeper.wake(); // it begins to look
            }
        }
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

    /// Has a client served by the lane for all priorities, because its limit is below this lane. Without such a lane the client
    /// is dropped.
    #[cold]
    fn hand_down(&self, stream: Stream, limit: Priority) {
        self.orb.counters.count(Event::ConnectionHandedDown);
        let lane = self.orb.first_lane_of(self.lane().threadpool);
        if lane.priority <= Some(limit)
            && let Some(server) = lane.server()
        {
            server.keeper.hand(stream);
        }
    }

    /// Reserves a thread that serves one connection alone, if the concurrency model gives connections such
    /// threads.
    fn own_thread_to_give(&self) -> Option<ThreadPlace> {
        let is_for_each = match self.lane().config.concurrency {
            ServerConcurrency::ThreadPerConnection => true,
            ServerConcurrency::Hybrid { .. } => {
                let threads = &self.lane().threads;
                let dedicated_max = hybrid::dedicated_max(threads.threads_max(), threads.threads_static());
                self.dedicated.lock().len() < dedicated_max
            }
            ServerConcurrency::LeaderFollowers { .. }
            | ServerConcurrency::ThreadPool(_)
            | ServerConcurrency::Reactor => false,
        };
        if is_for_each { self.lane().threads.take() } else { None }
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
        let Some(account) = &self.lane().unread_replies else { return };
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
