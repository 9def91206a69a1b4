//! What an ORB can be told: every bound with its unit, default and worst case.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ironorb_giop::connection::ConnectionConfig;
use ironorb_giop::ior::CodeSetComponentInfo;
use ironorb_giop::message::AddressingDisposition;
use ironorb_giop::{CharSet, Version};

use crate::net::Stream;
use crate::waiting::Pace;

use crate::messaging::OnewayBatching;

/// Settings of one ORB; made by [`OrbBuilder`](crate::OrbBuilder).
#[derive(Debug, Clone)]
pub struct OrbConfig {
    /// Bounds of each connection, on both sides.
    pub connection: ConnectionConfig,
    /// How long a call may take when nothing nearer to it says otherwise. Default 60 s; `None` waits for ever.
    pub call_timeout: Option<Duration>,
    /// How long one attempt to connect to one address may take. Default 10 s; a nearer deadline of the call
    /// cuts it short.
    pub connect_timeout: Duration,
    /// How long an address that could not be connected is tried after the others of a reference. Default 30 s.
    pub failed_address_pause: Duration,
    /// Threads that connect for asynchronous calls. Default 8, at least 1; each waits for one server at a time, at
    /// most for `connect_timeout`. None is started before the first such call.
    pub errand_threads_max: usize,
    /// Connections to one endpoint, over which the threads of this process are spread so that unrelated
    /// threads do not wait for each other. A thread keeps to one of them, so its requests stay in order; one is made when a
    /// thread first calls there. Where no more can be had, threads share those that there are. Default 64, at least 1.
    pub connections_per_endpoint_max: usize,
    /// Connections to others that may be open at once. Default 1,000. One more to an endpoint that has none takes the
    /// place of the one that has been unused for longest; when all are in use, the call ends with NO_RESOURCES. Worst case: this
    /// many times the buffers of a connection (16 KiB each way when idle).
    pub client_connections_max: usize,
    /// Connections accepted at once. Default 10,000; more are closed at once. Worst case: this many times the
    /// buffers of a connection (16 KiB each way when idle).
    pub server_connections_max: usize,
    /// Requests of all clients together that may be in flight: being carried out, held by a manager, or to be answered after
    /// their upcalls. One more is refused with TRANSIENT (OMG minor code 1, COMPLETED_NO) before interceptors and servants
    /// see it; a oneway that nobody answers is dropped, as its client may expect of it (CORBA 3.3 part 1, best effort).
    /// Default: `None`, as many as the threads serve and
    /// [`calls_in_flight_max`](ConnectionConfig::calls_in_flight_max) lets each connection have answered later; nothing is
    /// counted then. Whatever more a client sends over a connection waits in its socket.
    pub server_requests_max: Option<usize>,
    /// Bytes that large messages of all clients may take together on their way in and while they are served, beyond the 16
    /// KiB in which a connection receives small ones: what has come of a message, the buffers that grow with it and are
    /// kept for the next, and all of a message in fragments. A message for which there is no room left is refused with
    /// NO_MEMORY (minor code `RECEIVE_MEMORY_TAKEN`, COMPLETED_NO), its bytes are dropped as they come, and its connection
    /// goes on. Default: 1 GiB; `None` for as much as connections times `message_bytes_max`. Copies that are made of
    /// messages are not in it: of requests that a manager holds (`held_requests_max`), and small ones of connections used
    /// both ways.
    pub receive_memory_max: Option<usize>,
    /// Threads that serve this ORB's clients, over all connections and whatever the concurrency: those of connections and
    /// pools, those that go on with a connection whose servant blocks, those that wait for a client to read, and those that
    /// let in what a POA manager has held. Default 10,000, at least 1; `hybrid:N` bounds them by N where that is less. At
    /// the bound requests wait in their connections until a thread is free, a thread that writes a reply waits for its client
    /// itself, and a connection that needs a thread of its own
    /// ([`ServerConcurrency::ThreadPerConnection`]) is closed at once. Not counted are threads that serve nothing: one for
    /// each endpoint, and up to three that look after all connections. Two kinds are started beyond the bound: one for each
    /// POA manager that lets held requests in and for each adapter that is destroyed while its requests are held, and one for a bidirectional connection until its next message comes.
    /// Calls that this ORB makes have threads of their own (`errand_threads_max`, `callback_threads_max`).
    pub server_threads_max: usize,
    /// Who may connect to Unix domain sockets that this ORB listens at, as of chmod(1): a client needs the right to write.
    /// Default: `None`, what the umask leaves of all rights, so mostly this user alone.
    pub unix_socket_mode: Option<u32>,
    /// Bytes of each of the two rings of a connection by shared memory that this ORB hands out, one each way: a power of two
    /// from 4 KiB to 64 MiB. Default 256 KiB, about what the system queues on a Unix domain socket. What is larger goes in
    /// pieces, and costs more waits. Worst case: twice this and 4 KiB for each connection, of which only what has been
    /// written once takes memory.
    pub shared_memory_bytes: usize,
    /// By which transports references are followed, the best first; others are passed over. Default: shared memory and Unix
    /// domain sockets, where a server on this machine has them, then TCP.
    pub client_transports: Vec<Transport>,
    /// Which thread runs a servant.
    pub concurrency: ServerConcurrency,
    /// How callers wait for replies. Default: [`Waiting::Block`].
    pub client_waiting: Waiting,
    /// How threads that serve wait for requests. Default: [`Waiting::Block`].
    pub server_waiting: Waiting,
    /// How both wait on connections by shared memory, where a wait that looks can cost a thirtieth of one that sleeps.
    /// Default: [`Waiting::ADAPTIVE`].
    pub shared_memory_waiting: Waiting,
    /// Whether oneways wait for others to leave with, where no [policy](crate::InvocationPolicies::oneway_batching) says
    /// otherwise. Default: no.
    pub oneway_batching: Option<OnewayBatching>,
    /// Threads that may serve one connection at once when the concurrency is a thread for each connection and
    /// a servant blocks while more requests have arrived. Default 16, at least 1. Servants that wait for a client which
    /// they call over its own connection are among them, so calls back and forth nest this deep.
    pub threads_per_connection_max: usize,
    /// LOCATION_FORWARD replies that one call follows. Default 16.
    pub forwards_max: u8,
    /// Times that one call is sent again after the peer closed the connection in order, or never had the
    /// request. Default 4.
    pub resends_max: u8,
    /// Requests that may wait for a holding POA manager; also those that may wait for the main thread, and in each adapter
    /// for a servant to be incarnated. Default 1,024 each; more get TRANSIENT. Worst case: for each manager
    /// [`message_bytes_max`](ironorb_giop::framer::FramerLimits::message_bytes_max) bytes of messages, for the main
    /// thread a message each, for an incarnation a thread each. Requests that were held are let in by as many threads as
    /// may serve one connection or are in the pool, which end when there is nothing left to do.
    pub held_requests_max: usize,
    /// Bytes that may wait to be sent on one connection before callers wait for the peer to read, and before requests
    /// of a peer that does not read its replies are left where they are. Default 4 MiB; the worst case is this and one
    /// message on top, in a pool one for each of its threads and each answer that comes later.
    pub transmit_bytes_max: usize,
    /// Bytes of replies that clients have not read which all connections of this ORB's server may hold together. Default:
    /// 1 GiB; `None` for as much as connections times `transmit_bytes_max` and a reply each. When they hold more, the
    /// connection that holds the most is closed, and so on until they hold less: its clients get COMM_FAILURE, all others are
    /// served as before. Counts what is waited for, not what the system's queues have taken; a reply that is being written
    /// comes on top for each thread.
    pub transmit_memory_max: Option<usize>,
    /// How long a peer may take no bytes of a reply before its connection is closed. Default 20 s. Until then the
    /// connection's thread waits with the reply; in a pool, a thread of its own.
    pub transmit_timeout: Duration,
    /// Bytes that the system's send queue of each connection holds (`SO_SNDBUF`), for clients and servers. Default: as many
    /// as the system chooses, which may change them meanwhile; once given they stay. Systems have bounds of their own.
    /// Where a link is long, a connection carries at most this much in each round trip.
    pub send_queue_bytes: Option<usize>,
    /// The same of its receive queue (`SO_RCVBUF`).
    pub receive_queue_bytes: Option<usize>,
    /// How long an accepted connection may be without a request before it is closed, with CloseConnection and in
    /// order (CORBA 3.3 part 2, 9.4.7); clients connect anew when they call again. Default 10 minutes; `None` never.
    pub server_idle_timeout: Option<Duration>,
    /// How long a connection that we made may be without a call before it is closed. Default 3 minutes; `None` never.
    /// Bidirectional connections are left open.
    pub client_idle_timeout: Option<Duration>,
    /// How long a message to a server may take from its first byte to its last, its fragments included, unless 64
    /// KiB or more of it come in each such time; then its connection is closed. Default 2 minutes; `None` for ever.
    pub message_timeout: Option<Duration>,
    /// Whether connections may be used both ways (CORBA 3.3 part 2, 9.8): what the standard calls the
    /// BidirectionalPolicy with the value BOTH. As a client we tell servers where we listen, and serve what they ask
    /// over the same connection; as a server we call the objects of a client over the connection that it has made.
    /// Only GIOP 1.2 has it. Default: no. Costs a thread for the whole server from the first such call on; requests of a
    /// connection that is used so wait in memory where they would otherwise wait in the socket, at most 16 times
    /// `calls_in_flight_max` of them and about 1.5 times the bytes of the largest message.
    ///
    /// A client says itself where it listens, and nobody checks it: who can connect to us can have calls that are
    /// meant for another come to him, where we have no connection to the other yet. Use it among peers that trust
    /// each other.
    pub bidirectional: bool,
    /// Threads that may serve requests which come over connections that we have made ourselves. Such requests may
    /// be served at the same time and out of their order. Default 16, at least 1: callbacks that call back nest
    /// this deep.
    pub callback_threads_max: usize,
    /// GIOP version of references made here, and the highest spoken to others. Default 1.2.
    pub giop_version: Version,
    /// Code set of strings that references made here call native, and in which we ask others to send them when
    /// both sides convert. Strings of either set are understood, whatever this says. Default UTF-8.
    pub native_char_set: CharSet,
    /// As a client, sends strings in UTF-8 wherever the server works in it or converts it, even if both sides could agree on
    /// another set first: with `native_char_set` ISO 8859-1, or a server like Sun's ORB that works in ISO 8859-1 and
    /// converts UTF-8, characters such as the euro sign are DATA_CONVERSION otherwise. Default: no, as the standard's
    /// order has it (CORBA 3.3 part 2, 7.10.2.6).
    pub prefer_utf8: bool,
    /// Whether exceptions in an `any` are sent without their repository id. Both forms are read. Default:
    /// [`BareExceptions::Auto`].
    pub bare_exceptions: BareExceptions,
    /// How requests of GIOP 1.2 must name their object: others are answered by NEEDS_ADDRESSING_MODE (CORBA 3.3
    /// part 2, 9.4.2.1). For gateways that need more of the reference than its key. Default: any way.
    pub addressing_demanded: Option<AddressingDisposition>,
    /// How the operation that a request names is found in the interface. Default: by perfect hash, which is the fastest;
    /// the others are there to be compared with it. Counts for objects that are activated from then on.
    pub operation_lookup: OperationLookup,
    /// How the object that a request names is found in its adapter, where that is for the ORB to choose: transient objects
    /// with ids of the system, of adapters that serve active objects only, may have their place in their key. Others are
    /// found by a hash of their ids, or, like all, by linear search. Default: active demultiplexing. Counts for adapters
    /// that are made from then on.
    pub object_lookup: ObjectLookup,
    /// Whether an object is found from its key in one step, or layer by layer. Default: in one step. Counts for adapters
    /// that are made from then on.
    pub demultiplexing: Demultiplexing,
}

impl OrbConfig {
    /// How one waits on a connection where one would wait like this on a socket.
    pub(crate) fn waiting_on(&self, stream: &Stream, on_sockets: Waiting) -> Waiting {
        if stream.pace() == Pace::Memory { self.shared_memory_waiting } else { on_sockets }
    }

    /// The code sets that this ORB speaks.
    pub fn code_sets(&self) -> CodeSetComponentInfo {
        CodeSetComponentInfo::with_native(self.native_char_set)
    }

    /// How a client should have named its object, if it should have done so in another way. Before GIOP 1.2 there is one.
    #[inline]
    pub(crate) fn other_addressing_demanded(
        &self,
        version: Version,
        used: AddressingDisposition,
    ) -> Option<AddressingDisposition> {
        self.addressing_demanded.filter(|demanded| *demanded != used && version == Version::V1_2)
    }
}

impl Default for OrbConfig {
    fn default() -> Self {
        OrbConfig {
            connection: ConnectionConfig::default(),
            call_timeout: Some(Duration::from_secs(60)),
            connect_timeout: Duration::from_secs(10),
            failed_address_pause: Duration::from_secs(30),
            errand_threads_max: 8,
            connections_per_endpoint_max: 64,
            client_connections_max: 1000,
            server_connections_max: 10_000,
            server_requests_max: None,
            server_threads_max: 10_000,
            receive_memory_max: Some(1 << 30),
            unix_socket_mode: None,
            shared_memory_bytes: 256 << 10,
            client_transports: vec![Transport::SharedMemory, Transport::Unix, Transport::Tcp],
            concurrency: ServerConcurrency::default(),
            client_waiting: Waiting::Block,
            server_waiting: Waiting::Block,
            shared_memory_waiting: Waiting::ADAPTIVE,
            oneway_batching: None,
            threads_per_connection_max: 16,
            forwards_max: 16,
            resends_max: 4,
            held_requests_max: 1024,
            transmit_bytes_max: 4 << 20,
            transmit_memory_max: Some(1 << 30),
            transmit_timeout: Duration::from_secs(20),
            send_queue_bytes: None,
            receive_queue_bytes: None,
            server_idle_timeout: Some(Duration::from_secs(600)),
            client_idle_timeout: Some(Duration::from_secs(180)),
            message_timeout: Some(Duration::from_secs(120)),
            bidirectional: false,
            callback_threads_max: 16,
            giop_version: Version::V1_2,
            native_char_set: CharSet::Utf8,
            prefer_utf8: false,
            bare_exceptions: BareExceptions::Auto,
            addressing_demanded: None,
            operation_lookup: OperationLookup::PerfectHash,
            object_lookup: ObjectLookup::Active,
            demultiplexing: Demultiplexing::Delayered,
        }
    }
}

/// How the name of an operation is found among those of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OperationLookup {
    /// By a table for which the generator has found a hash that separates the names: one hash, one comparison.
    #[default]
    PerfectHash,
    /// By a hash map made when it is first used.
    Hash,
    /// By binary search in the sorted names.
    Binary,
    /// By comparing with one name after the other, in the order of their declaration.
    Linear,
}

/// How an object is found in its adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectLookup {
    /// Active demultiplexing: the key says where the object is, and which of those that have been there.
    #[default]
    Active,
    /// By a hash of the object's id.
    Hash,
    /// By comparing with the id of one object after the other.
    Linear,
}

/// How many steps lead from an object key to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Demultiplexing {
    /// One, however deep its adapter is nested.
    #[default]
    Delayered,
    /// From the root adapter to its child of the first name and so on, then to the object.
    Layered,
}

/// How bytes get from one process to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// TCP over IPv4 or IPv6.
    Tcp,
    /// A Unix domain socket, within one machine.
    Unix,
    /// Shared memory, within one machine.
    SharedMemory,
}

/// How a thread waits for what a peer sends, over every transport.
///
/// To be woken takes longer than all else in a short call between processors of one machine. A thread that looks for bytes
/// itself is not woken; what it costs is a processor. So at most one thread less than there are processors looks at a
/// time, among all those of an ORB, and the others sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Sleeps at once.
    Block,
    /// Looks for a while where that has paid lately, then sleeps. Leaves off at once when another thread of the ORB comes to
    /// wait, or anybody needs the processor. A peer that is idle or slow costs `spin_max` in some hundreds of waits.
    Adaptive {
        /// How long at most.
        spin_max: Duration,
    },
    /// Looks until something comes, and sleeps only where too many look already. For programs that have processors to
    /// themselves: one is busy all the time, for each thread that waits.
    Spin,
}

impl Waiting {
    /// As long as most calls take within one machine, and several times as long as waking up does.
    pub const ADAPTIVE: Waiting = Waiting::Adaptive { spin_max: Duration::from_micros(50) };
}

/// Whether exceptions in an `any` are sent without their repository id, which the standard has in front of their members.
/// omniORB's C++ library (4.2) writes and reads them without it, and no other form; omniORBpy, which has the same ORB type
/// in its references, and all other ORBs have it. As text: `auto`, `yes`, `no`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BareExceptions {
    /// By what each peer sends itself: a server's form is learnt with the first exception in an `any` that it sends, and holds
    /// for the reference that was called, and for those to the same address that have not been called yet; a client's
    /// holds for its connection. Before that a server is assumed to want the ids left out if its references have
    /// omniORB's ORB type, and a client to want them.
    Auto,
    /// Left out always.
    Yes,
    /// Never left out.
    No,
}

/// Which thread runs a servant. As text: `threadPerConnection`, `pool:N`, `reactor`, `hybrid`, `hybrid:N`. A hybrid
/// unless somebody says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerConcurrency {
    /// A thread for each connection receives, runs the servant and answers, without a hand-over, for as long as the
    /// connection lasts. Requests of one connection are served in order, until a servant has blocked for 25 ms or more while others
    /// have arrived; then another thread goes on with them. An idle connection costs a thread and 32 KiB of buffers, of
    /// which small messages touch a few, and up to 256 KiB more where it has had larger ones.
    ThreadPerConnection,
    /// A fixed number of threads share all connections. One waits, hands the waiting over when a request has
    /// come, and serves it. Requests of one connection may run at the same time. Each call costs two system calls more
    /// than with a thread for each connection.
    LeaderFollowers {
        /// Threads, at least 1.
        threads: usize,
    },
    /// One thread receives from all connections and runs all servants, one request after the other: servants need no
    /// locks among themselves. One that blocks holds up all clients, and calls back to a waiting client end by their
    /// timeout.
    Reactor,
    /// As a thread for each connection while it is busy: a thread that finds a connection with a request keeps to it
    /// until nothing has come for 100 ms. Connections at rest share one waiting thread and own no buffers, so ten
    /// thousand of them take less than 2 KiB each. A connection's first request after a rest costs a few microseconds more
    /// than the next. The first connections, up to one in 32 of `threads_max`, keep their threads for as long as they last: 128
    /// of them by default.
    ///
    /// A servant that waits for a call back needs another thread for it. Where all are taken the call back waits, as all
    /// requests do. In a circle of calls over one connection (bidirectional GIOP) it would wait in vain: when no
    /// servant has returned for a second, requests of clients for which servants wait are answered with TRANSIENT (OMG minor
    /// code 1, COMPLETED_NO), and the circle ends. Over connections of their own, circles end by the calls' timeouts.
    Hybrid {
        /// Threads, at least 1: all that serve, those of the first connections, those that go on with a connection
        /// whose servant blocks and those that wait for a client to read. When as many are busy, each serves one request at a
        /// time of whichever connection has one. Default: [`HYBRID_THREADS_MAX`](Self::HYBRID_THREADS_MAX).
        threads_max: usize,
    },
}

impl ServerConcurrency {
    /// Threads of a hybrid of which nobody says how many it may have: so many servants can wait for something at once
    /// before others wait for them. Connections at rest have none.
    pub const HYBRID_THREADS_MAX: usize = THREADS_MAX;

    /// Requests that can be carried out at once, with this many threads for a connection that has its own.
    pub(crate) fn threads_for_held(self, threads_per_connection: usize) -> usize {
        match self {
            ServerConcurrency::ThreadPerConnection | ServerConcurrency::Hybrid { .. } => {
                threads_per_connection
            }
            ServerConcurrency::LeaderFollowers { threads } => threads,
            ServerConcurrency::Reactor => 1,
        }
    }
}

impl Default for ServerConcurrency {
    fn default() -> Self {
        ServerConcurrency::Hybrid { threads_max: ServerConcurrency::HYBRID_THREADS_MAX }
    }
}

impl FromStr for ServerConcurrency {
    type Err = BadConcurrency;

    fn from_str(text: &str) -> Result<Self, BadConcurrency> {
        let bad = || BadConcurrency(text.to_owned());
        let number = |number: &str| match number.parse() {
            Ok(threads @ 1..=THREADS_MAX) => Ok(threads),
            _ => Err(bad()),
        };
        match text.split_once(':') {
            None if text.eq_ignore_ascii_case("threadPerConnection") || text == "thread-per-connection" => {
                Ok(ServerConcurrency::ThreadPerConnection)
            }
            None if text == "reactor" => Ok(ServerConcurrency::Reactor),
            None if text == "hybrid" => Ok(ServerConcurrency::default()),
            Some(("pool", threads)) => Ok(ServerConcurrency::LeaderFollowers { threads: number(threads)? }),
            Some(("hybrid", threads)) => Ok(ServerConcurrency::Hybrid { threads_max: number(threads)? }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for ServerConcurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerConcurrency::ThreadPerConnection => f.write_str("threadPerConnection"),
            ServerConcurrency::LeaderFollowers { threads } => write!(f, "pool:{threads}"),
            ServerConcurrency::Reactor => f.write_str("reactor"),
            ServerConcurrency::Hybrid { threads_max } => write!(f, "hybrid:{threads_max}"),
        }
    }
}

/// A text that names no [`ServerConcurrency`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no concurrency: write threadPerConnection, pool:N, reactor, hybrid or hybrid:N, with N from 1 to {THREADS_MAX}"
)]
pub struct BadConcurrency(String);

/// More threads are a mistake.
const THREADS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrencies_are_read_as_they_are_written() {
        for text in ["threadPerConnection", "pool:3", "reactor", "hybrid:7"] {
            assert_eq!(text.parse::<ServerConcurrency>().unwrap().to_string(), text);
        }
        assert_eq!("thread-per-connection".parse(), Ok(ServerConcurrency::ThreadPerConnection));
        assert_eq!("hybrid".parse::<ServerConcurrency>().unwrap().to_string(), "hybrid:4096");
        for text in ["", "pool", "pool:0", "pool:x", "pool:5000", "hybrid:", "reactor:1", "threads"] {
            let error = text.parse::<ServerConcurrency>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("hybrid:N"), "{error}");
        }
    }
}
