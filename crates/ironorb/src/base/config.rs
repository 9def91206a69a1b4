//! The configuration of an ORB: every limit with its unit, default and worst case.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ironorb_giop::connection::ConnectionConfig;
use ironorb_giop::ior::CodeSetComponentInfo;
use ironorb_giop::message::AddressingDisposition;
use ironorb_giop::{CharSet, Version};

use super::memory_plan::{buffers_of, entries_of};
use super::thread_pool_config::ThreadPoolConfig;

/// The configuration of one ORB; [`OrbBuilder`](crate::OrbBuilder) makes it.
#[derive(Debug, Clone, PartialEq)]
pub struct OrbConfig {
    /// The seed of the random numbers in object keys and hash tables. Equal seeds give equal keys for equal sequences of
    /// activations, in every run. For simulations and tests only: clients could make up keys, and could choose ids
    /// that fill one place of a hash table. Default: `None`, numbers that differ in each run.
    pub seed: Option<u64>,
    /// Limits of each connection, on both sides.
    pub connection: ConnectionConfig,
    /// How long a call may take if neither its thread, its reference nor the ORB's policies set a timeout.
    /// Default: 60 s; `None` waits for ever.
    pub call_timeout: Option<Duration>,
    /// How long one attempt to connect to one address may take. Default: 10 s. An earlier deadline of the
    /// call cuts it short.
    pub connect_timeout: Duration,
    /// How long an address that could not be connected is tried only after a reference's other addresses.
    /// Default: 30 s.
    pub failed_address_pause: Duration,
    /// The most threads that connect for asynchronous calls. Default: 8, at least 1. Each waits for one
    /// server at a time, at most for `connect_timeout`. None is started before the first such call.
    pub background_threads_max: usize,
    /// The most connections to one endpoint. The threads of this process are spread over them, so that
    /// unrelated threads do not wait for each other. A thread keeps to one connection, so its requests stay
    /// in order. A connection is made when a thread first calls the endpoint. At the limit, threads share the
    /// existing connections. Default: 64, at least 1.
    pub connections_per_endpoint_max: usize,
    /// The most connections to servers that may be open at once. Default: 1,000, at least 1. At the limit, a
    /// connection to an endpoint that has none replaces the one that has been unused for longest. If all are
    /// in use, the call ends with NO_RESOURCES. Worst case: this many times the buffers of a connection (16
    /// KiB each way when idle).
    pub client_connections_max: usize,
    /// The most connections that are accepted at once. Default: 10,000, at least 1. Further ones are closed
    /// at once. Worst case: this many times the buffers of a connection (16 KiB each way when idle).
    pub server_connections_max: usize,
    /// The most requests of all clients together in flight: being carried out, held by a manager, or to be
    /// answered after their upcalls. A further request is refused with TRANSIENT (OMG minor code 1,
    /// COMPLETED_NO) before interceptors and servants see it. A oneway without a reply is dropped, as
    /// best-effort delivery allows (CORBA 3.3 part 1).
    ///
    /// Default: `None`, no limit. The number is then bounded by the serving threads and, for replies after
    /// the upcall, by [`calls_in_flight_max`](ConnectionConfig::calls_in_flight_max) on each connection, and
    /// nothing is counted. Further requests of a connection wait in its socket.
    pub server_requests_max: Option<usize>,
    /// The most bytes that large messages of all clients may take together while they are received and
    /// served. Not counted are the 16 KiB in which each connection receives small messages. Counted are the
    /// received parts of messages, the buffers that grow with them and are kept for the next message, and
    /// whole messages in fragments.
    ///
    /// A message for which no room is left is refused with NO_MEMORY (minor code `RECEIVE_MEMORY_TAKEN`,
    /// COMPLETED_NO). Its bytes are dropped as they come, and its connection goes on. Default: 1 GiB. With
    /// `None`, the bound is connections times `message_bytes_max`. Copies of messages are not counted: those
    /// of requests that a manager holds (`held_requests_max`), and small ones of bidirectional connections.
    pub receive_memory_max: Option<usize>,
    /// The most threads that serve this ORB's clients, over all connections and with any concurrency model.
    /// Counted are the threads of connections and pools, those that go on with a connection whose servant
    /// blocks, and those that admit requests after a POA manager has held them. Default: 10,000, at least 1.
    /// `hybrid:N` limits them to N if that is less.
    ///
    /// At the limit, requests wait in their connections until a thread is free, and a connection that needs a
    /// thread of its own ([`ServerConcurrency::ThreadPerConnection`]) is closed at once.
    ///
    /// Threads that serve nothing are not counted: one that accepts clients and looks after their connections,
    /// one for each endpoint of a transport of the program's own, and up to two that send to or receive from
    /// clients for others. Two kinds of threads are started
    /// beyond the limit. One is for each POA manager that admits held requests, and for each adapter that is
    /// destroyed while its requests are held. The other is for a bidirectional connection until its next
    /// message comes. Calls that this ORB makes use other threads (`background_threads_max`,
    /// `callback_threads_max`).
    pub server_threads_max: usize,
    /// How many of these threads are made when the ORB begins to listen, and wait for work: each takes what would else have a
    /// new thread. Those beyond them are made when they are needed, up to `server_threads_max`; a lane with as many of these as
    /// its limit makes none while it serves. For concurrency models whose threads come and go, `threadPerConnection` and
    /// `hybrid`; others have a number of their own. Default: 0; 8 in a [lane with a
    /// priority](crate::LaneConfig::priority) that says nothing of its threads.
    pub server_threads_static: usize,
    /// The file mode of Unix sockets that this ORB listens at, as for chmod(1). It decides which users may
    /// connect: a client needs the right to write. Default: `None`, all rights that the umask leaves, which
    /// is usually this user alone.
    pub unix_socket_mode: Option<u32>,
    /// Whether references of this ORB name its Unix sockets also as TAO does, each in a profile of its own (UIOP), which stands
    /// first where the first endpoint is a socket. Clients of other ORBs than TAO pass over it. To TAO it does not tell which
    /// machine it means: a client of TAO on another machine that has a socket of the same path calls that. IronORB's clients know,
    /// but for profiles of GIOP 1.0. Such profiles of other servers are always read. Default: no.
    pub uiop_profiles: bool,
    /// The size in bytes of each of the two rings, one each way, of a shared-memory connection that this ORB
    /// accepts: a power of two from 4 KiB to 64 MiB. Default: 256 KiB, about what the system queues on a Unix
    /// socket. A larger message goes in pieces and costs more waits. Worst case: twice this and 4 KiB for
    /// each connection. Only pages that have been written take memory.
    pub shared_memory_bytes: usize,
    /// The transports that clients use, the best first. Others are not used. Default: shared memory and Unix
    /// sockets, where a server on this machine has them, then TCP.
    pub client_transports: Vec<Transport>,
    /// Which thread runs a servant.
    pub concurrency: ServerConcurrency,
    /// How callers wait for replies. Default: [`Waiting::Block`].
    pub client_waiting: Waiting,
    /// How serving threads wait for requests. Default: [`Waiting::Block`].
    pub server_waiting: Waiting,
    /// How callers and serving threads wait on shared-memory connections. There, a wait that spins can cost a
    /// thirtieth of one that sleeps. Default: [`Waiting::ADAPTIVE`].
    pub shared_memory_waiting: Waiting,
    /// Whether oneways are collected and sent in batches, where no
    /// [policy](crate::InvocationPolicies::oneway_batching) says otherwise. Default: no.
    pub oneway_batching: Option<OnewayBatching>,
    /// The most threads that may serve one connection at once, where connections have threads of their own
    /// and a servant blocks while more requests have arrived. Default: 16, at least 1. Servants that call
    /// their client over its own connection and wait for it are counted, so nested callbacks are at most this
    /// deep.
    pub threads_per_connection_max: usize,
    /// The most LOCATION_FORWARD replies that one call follows. Default: 16.
    pub forwards_max: u8,
    /// How many times one call is sent again after the peer closed the connection in order, or never received
    /// the request. Default: 4.
    pub resends_max: u8,
    /// The most requests that may wait for a holding POA manager, for the main thread, and in each adapter
    /// for a servant to be incarnated. Default: 1,024 each. Further ones get TRANSIENT. Worst case: for each
    /// manager [`message_bytes_max`](ironorb_giop::framer::FramerLimits::message_bytes_max) bytes of
    /// messages, for the main thread a message each, for an incarnation a thread each. After a hold, as many
    /// threads admit the requests as may serve one connection or are in the pool. They end when no request is
    /// left.
    pub held_requests_max: usize,
    /// The most bytes that may wait to be sent on one connection. Beyond that, callers wait for the peer to
    /// read, and the server takes no more requests from a peer that does not read its replies. Default: 4
    /// MiB. Worst case: this and one message more; in a pool, one message more for each of its threads and
    /// for each reply after its upcall.
    pub transmit_bytes_max: usize,
    /// The most bytes of unread replies that all connections of this ORB's server may hold together. Default:
    /// 1 GiB. With `None`, the bound is connections times `transmit_bytes_max` and a reply each. Beyond the
    /// limit, the connection that holds the most is closed, and so on until the total is below it. The
    /// clients of a closed connection get COMM_FAILURE; all others are served as before. One reply that is
    /// larger than the limit is let out while all other connections together keep the limit. Bytes that the
    /// system's queues have taken are not counted. A reply that is being written comes on top for each
    /// thread.
    pub transmit_memory_max: Option<usize>,
    /// How long a peer may read no bytes of a reply before its connection is closed. Default: 20 s. Until
    /// then the connection's own thread waits with the reply; in a pool, the server's writer thread does.
    pub transmit_timeout: Duration,
    /// The size in bytes of the system's send queue of each connection (`SO_SNDBUF`), for clients and
    /// servers. Default: `None`, the system chooses and may change it. A given size stays. Systems have
    /// limits of their own. On a long link, a connection carries at most this much in each round trip.
    pub send_queue_bytes: Option<usize>,
    /// The size in bytes of the system's receive queue of each connection (`SO_RCVBUF`), for clients and
    /// servers. Default: `None`, the system chooses and may change it.
    pub receive_queue_bytes: Option<usize>,
    /// The priority of connections' packets in the system's queues (`SO_PRIORITY`), from 0 to 15; above 6 it needs
    /// CAP_NET_ADMIN. Queueing disciplines such as `prio` and `mqprio` send higher ones first. Default: `None`, the system's
    /// own, which is 0.
    pub socket_priority: Option<u32>,
    /// For how long a thread that waits at a connection polls the network device itself, instead of waiting for its
    /// interrupt (`SO_BUSY_POLL`), up to 100 ms. Needs CAP_NET_ADMIN, and a device that can be polled; the loopback interface
    /// cannot. Default: `None`, as the system is set (`net.core.busy_read`).
    pub busy_poll: Option<Duration>,
    /// Whether TCP connections acknowledge what comes at once, instead of with the next bytes that leave or 40 ms later
    /// (`TCP_QUICKACK`). For peers that wait for the acknowledgement before they send the rest of a message (Nagle's
    /// algorithm). Costs a system call in each receive. Default: no.
    pub tcp_quick_ack: bool,
    /// How long bytes that a TCP connection has sent may stay without an acknowledgement before it ends
    /// (`TCP_USER_TIMEOUT`; RFC 5482), from 1 ms to 24 h, to the millisecond. Default: `None`, the system's own, some 15
    /// minutes.
    pub tcp_user_timeout: Option<Duration>,
    /// Whether building the ORB locks the memory of the process, as [`rt::lock_memory`](crate::rt::lock_memory) does.
    /// [`build`](crate::OrbBuilder::build) reports a refusal. Default: no.
    pub lock_memory: bool,
    /// How long an accepted connection may be without a request before it is closed in order, with
    /// CloseConnection (CORBA 3.3 part 2, 9.4.7). A client connects anew for its next call. Default: 10
    /// minutes; `None` for ever.
    pub server_idle_timeout: Option<Duration>,
    /// How long a connection that this ORB has made may be without a call before it is closed. Default: 3
    /// minutes; `None` for ever. Bidirectional connections are left open.
    pub client_idle_timeout: Option<Duration>,
    /// How long a message to a server may take from its first byte to its last, its fragments included. Then
    /// its connection is closed, unless 64 KiB or more of the message come in each such time. Default: 2
    /// minutes; `None` for ever.
    pub message_timeout: Option<Duration>,
    /// Whether connections may be bidirectional (CORBA 3.3 part 2, 9.8): the standard's BidirectionalPolicy
    /// with the value BOTH. As a client, the ORB tells servers where it listens, and serves their requests
    /// over the same connection. As a server, it calls the objects of a client over the connection that the
    /// client has made. This needs GIOP 1.2. Default: no.
    ///
    /// It costs one thread for the whole server from the first such call on. Requests of a bidirectional
    /// connection wait in memory instead of in the socket: at most 16 times `calls_in_flight_max` requests,
    /// and about 1.5 times the bytes of the largest message.
    ///
    /// The ORB does not check the addresses that a client claims to listen at. So a peer that can connect can
    /// receive calls that are meant for another one, as long as this ORB has no connection to that one. Use
    /// it among peers that trust each other.
    pub bidirectional: bool,
    /// Whether deadlines are propagated. As a client, the ORB tells servers in each request how long the caller still
    /// waits. As a server, it does not carry out requests whose callers have given up (TIMEOUT, minor code
    /// `REQUEST_TOO_LATE`, COMPLETED_NO), tells servants how long their callers wait
    /// ([`remaining_time`](crate::remaining_time)), and gives the calls that they make in an upcall no more time than
    /// that. Both ends need the setting; others ignore the context. `docs/wire.md` has its bytes. Default: no.
    pub deadline_propagation: bool,
    /// The most threads that serve requests which come over connections that this ORB has made. Such requests
    /// may run at the same time and out of order. Default: 16, at least 1: callbacks that call back are
    /// nested at most this deep.
    pub callback_threads_max: usize,
    /// The GIOP version of references made here, and the highest version spoken to peers. Default: 1.2.
    pub giop_version: Version,
    /// The native code set of strings in references made here. Peers use it when both sides convert. Strings
    /// in either set are understood in any case. Default: UTF-8.
    pub native_char_set: CharSet,
    /// Whether a client sends strings in UTF-8 wherever the server works in UTF-8 or converts it, even if
    /// both sides could agree on another set first. Without it, characters such as the euro sign are
    /// DATA_CONVERSION with `native_char_set` ISO 8859-1, and with a server that works in ISO 8859-1 and
    /// converts UTF-8, such as Sun's ORB. Default: no, which is the standard's order (CORBA 3.3 part 2,
    /// 7.10.2.6).
    pub prefer_utf8: bool,
    /// Whether the ORB calls its own objects directly, in the calling thread. Without that, such a call goes over a connection to
    /// one of its own addresses, and a thread of the server carries it out, as for any other client: for measurements, and for
    /// objects whose servants must run on threads of the server, at its priorities. An ORB that does not listen then cannot call
    /// its objects. Default: yes.
    pub collocation: bool,
    /// Whether exceptions in an `any` are sent without their repository id. Both forms are read. Default:
    /// [`BareExceptions::Auto`].
    pub bare_exceptions: BareExceptions,
    /// How GIOP 1.2 requests must name their object. Other requests are answered with NEEDS_ADDRESSING_MODE
    /// (CORBA 3.3 part 2, 9.4.2.1). For gateways that need more of the reference than its key. Default:
    /// `None`, any way.
    pub addressing_demanded: Option<AddressingDisposition>,
    /// How the operation of a request is found in the interface. Default: by perfect hash, which is the
    /// fastest; the others exist for comparison. It applies to objects that are activated from then on.
    pub operation_lookup: OperationLookup,
    /// How the object of a request is found in its adapter, where the ORB may choose. With active
    /// demultiplexing, the key contains the object's slot, for transient objects with system ids in adapters
    /// that serve active objects only. Other objects are found by a hash of their ids, or by linear search.
    /// Default: active demultiplexing. It applies to adapters that are made from then on.
    pub object_lookup: ObjectLookup,
    /// Whether an object is found from its key in one step, or adapter by adapter. Default: in one step. It
    /// applies to adapters that are made from then on.
    pub demultiplexing: Demultiplexing,
    /// Which clients may ask the ORB for its [status](crate::status), at the plain key `IronORBStatus`. An ORB that tells
    /// its status also measures the latencies of calls and of upcalls, by two readings of the clock each. Default:
    /// [`StatusAccess::Off`].
    pub status: StatusAccess,
    /// The memory of the process in bytes, all of it taken at the start: the paper's fixed footprint. Extents in memory take from it,
    /// and fail to be made where it has no room. When the ORB [runs](crate::Orb::run) or
    /// [settles](crate::Orb::settle_memory), the rest is taken for the heap, with its pages, and the resident size stays as it is
    /// while that is enough. Buffers for large messages and for unread replies, and the caches of either side, get an eighth each
    /// at most. Default: `None`, memory is taken when it is needed.
    pub memory: Option<usize>,
    /// The most objects whose cached attributes the ORB holds. Beyond that those that it asked for first of a server go first, of the
    /// server that has the most. Default: 1,000,000; at least 1.
    pub cache_entries_max: usize,
    /// About the most bytes that the cached attributes take which the ORB holds, with what the ORB keeps beside them. Beyond that
    /// those that it asked for first go first; one stays, whatever it takes. Default: `None`, no limit but that of the entries.
    pub cache_bytes_max: Option<usize>,
    /// What the ORB holds of the cached attributes of single interfaces, within the limits of all. Default: none.
    pub cache_limits: Vec<CacheLimit>,
    /// The most objects whose cached attributes one client may hold of this ORB. Beyond that those that it asked for first go first.
    /// Default: 1,000,000; at least 1.
    pub cache_held_max: usize,
    /// About how many bytes of changes an answer to the question what has changed brings, or one change that is longer. The rest is
    /// asked for at once, by answers of twice that size each. Default: 1,460, which a TCP segment carries over Ethernet.
    pub cache_update_bytes: usize,
    /// How many of the next calls to a server carry the question what has changed, after a cached read that had to ask it. Their
    /// replies answer, so that a read behind a write asks nothing. The call after these carries none; if the read behind it has to
    /// ask, the next ones do. Default: 16; 0 for none.
    pub cache_carried_probes: u8,
    /// Whether cached reads that ask no server are counted, for `cache_hits_total` of the [status](crate::status). Each such
    /// read has an atomic addition more then, and takes about 6 ns longer. Without the feature `count-cached-reads` of this
    /// crate it has no effect. Default: false.
    pub count_cached_reads: bool,
}

/// How much an ORB holds of the cached attributes of one interface. As text: `IDL:bank/Account:1.0=1000`, or with the bytes
/// `IDL:bank/Account:1.0=1000,64KiB`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheLimit {
    /// The repository id of the interface that declares the attributes.
    pub interface: String,
    /// The most objects; at least 1.
    pub entries_max: usize,
    /// About the most bytes, with what the ORB keeps beside them. `None` for no limit but that of the entries.
    pub bytes_max: Option<usize>,
}

impl OrbConfig {
    /// Bounds what grows by the memory that is planned for the process.
    pub(crate) fn keep_to_memory(&mut self) {
        let Some(total) = self.memory else { return };
        for bytes in [&mut self.receive_memory_max, &mut self.transmit_memory_max, &mut self.cache_bytes_max]
        {
            *bytes = Some(bytes.unwrap_or(usize::MAX).min(buffers_of(total)));
        }
        for entries in [&mut self.cache_entries_max, &mut self.cache_held_max] {
            *entries = (*entries).min(entries_of(total));
        }
    }

    /// The code sets that this ORB supports.
    pub fn code_sets(&self) -> CodeSetComponentInfo {
        CodeSetComponentInfo::with_native(self.native_char_set)
    }

    /// The form of address that a client should have used for its object, if it used another one. GIOP 1.0
    /// and 1.1 have only one form.
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
            seed: None,
            connection: ConnectionConfig::default(),
            call_timeout: Some(Duration::from_secs(60)),
            connect_timeout: Duration::from_secs(10),
            failed_address_pause: Duration::from_secs(30),
            background_threads_max: 8,
            connections_per_endpoint_max: 64,
            client_connections_max: 1000,
            server_connections_max: 10_000,
            server_requests_max: None,
            server_threads_max: 10_000,
            server_threads_static: 0,
            receive_memory_max: Some(1 << 30),
            unix_socket_mode: None,
            uiop_profiles: false,
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
            socket_priority: None,
            busy_poll: None,
            tcp_quick_ack: false,
            tcp_user_timeout: None,
            lock_memory: false,
            server_idle_timeout: Some(Duration::from_secs(600)),
            client_idle_timeout: Some(Duration::from_secs(180)),
            message_timeout: Some(Duration::from_secs(120)),
            bidirectional: false,
            deadline_propagation: false,
            callback_threads_max: 16,
            giop_version: Version::V1_2,
            native_char_set: CharSet::Utf8,
            prefer_utf8: false,
            collocation: true,
            bare_exceptions: BareExceptions::Auto,
            addressing_demanded: None,
            operation_lookup: OperationLookup::PerfectHash,
            object_lookup: ObjectLookup::Active,
            demultiplexing: Demultiplexing::Delayered,
            status: StatusAccess::Off,
            memory: None,
            cache_entries_max: 1_000_000,
            cache_bytes_max: None,
            cache_limits: Vec::new(),
            cache_held_max: 1_000_000,
            cache_update_bytes: ironorb_cache::UPDATE_BYTES,
            cache_carried_probes: 16,
            count_cached_reads: false,
        }
    }
}

/// Which clients an ORB tells its [status](crate::status).
///
/// The status names the addresses of the ORB's peers, and says how busy it is. It changes nothing. Beside it there is an
/// object by which clients on the same machine, and no others, end the sessions of all caches
/// ([`status::Caches`](crate::status::Caches)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatusAccess {
    /// None: there is no such object.
    #[default]
    Off,
    /// Those on the same machine: over Unix sockets and shared memory, and over TCP from a loopback address or from the
    /// very address that they have connected to. Others get NO_PERMISSION. What listens on the machine and passes
    /// connections on, such as a proxy, lets its own clients in.
    Local,
    /// All that can connect.
    Anyone,
}

impl From<bool> for StatusAccess {
    /// `true` is [`StatusAccess::Local`].
    fn from(is_on: bool) -> StatusAccess {
        if is_on { StatusAccess::Local } else { StatusAccess::Off }
    }
}

/// How an operation is looked up by name in an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OperationLookup {
    /// By a table for which the generator has found a perfect hash of the names: one hash, one comparison.
    #[default]
    PerfectHash,
    /// By a hash map made when it is first used.
    Hash,
    /// By binary search in the sorted names.
    Binary,
    /// By comparing with each name in turn, in the order of declaration.
    Linear,
}

/// How an object is looked up in its adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectLookup {
    /// Active demultiplexing: the key contains the object's slot and the slot's generation.
    #[default]
    Active,
    /// By a hash of the object's id.
    Hash,
    /// By comparing with the id of each object in turn.
    Linear,
}

/// How many steps lead from an object key to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Demultiplexing {
    /// One step, however deep the adapter is nested.
    #[default]
    Delayered,
    /// From the root adapter down through its descendants by name, then to the object.
    Layered,
}

/// How long oneways wait, to leave together by one system call: until one of these limits is reached, until
/// something else leaves over the same connection, or until they are flushed
/// ([`Orb::flush`](crate::Orb::flush), [`ObjectRef::flush`](crate::ObjectRef::flush)).
///
/// Oneways leave in their order, and before anything that the same thread calls at that server afterwards. A
/// call that only adds to a batch returns before it is known whether its request can be sent. If the
/// connection ends first, the requests in the batch are lost, and the next flush reports that. The call that
/// reaches a limit sends the whole batch, and blocks while the connection takes no bytes, unless its scope is
/// [`SyncScope::None`](crate::SyncScope::None). Shutting the ORB down sends pending requests. A process that ends in another way
/// loses them.
///
/// Batching costs the ORB its receiver thread from the first batched oneway on. That thread sends what has
/// waited for `delay_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnewayBatching {
    /// The bytes of requests at which a batch is sent. Default 16 KiB. A request may reach beyond it, so each
    /// connection holds at most this and one request.
    pub bytes_max: usize,
    /// The number of requests at which a batch is sent. Default: no limit.
    pub count_max: usize,
    /// How long the first request of a batch waits. Default 1 ms.
    pub delay_max: Duration,
}

impl OnewayBatching {
    /// The default limits.
    pub const DEFAULT: OnewayBatching =
        OnewayBatching { bytes_max: 16 << 10, count_max: usize::MAX, delay_max: Duration::from_millis(1) };
}

impl Default for OnewayBatching {
    fn default() -> Self {
        OnewayBatching::DEFAULT
    }
}

/// A transport: how bytes get from one process to another.
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
/// To be woken takes longer than everything else in a short call within one machine. A thread that spins,
/// looking for bytes itself, need not be woken, but it occupies a processor. So among all threads of an ORB,
/// at most one thread less than there are processors spins at a time. The others sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The thread sleeps at once.
    Block,
    /// The thread spins for a while if that has paid lately, then sleeps. It stops spinning at once when
    /// another thread of the ORB begins to wait, or another program needs the processor. A peer that is idle
    /// or slow costs `spin_max` once in some hundreds of waits.
    Adaptive {
        /// The longest time that the thread spins.
        spin_max: Duration,
    },
    /// The thread spins until bytes come, and sleeps only if too many threads spin already. For programs with
    /// processors of their own: each waiting thread keeps one busy.
    Spin,
}

impl Waiting {
    /// Adaptive waiting for up to 50 us: as long as most calls within one machine take, and several times as
    /// long as a wake-up.
    pub const ADAPTIVE: Waiting = Waiting::Adaptive { spin_max: Duration::from_micros(50) };
}

/// Whether exceptions in an `any` are sent without their repository id. The standard has the id in front of
/// the members. omniORB's C++ library (4.2) writes and reads exceptions only without it. All other ORBs have
/// it, including omniORBpy, whose references have omniORB's ORB type. As text: `auto`, `yes`, `no`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BareExceptions {
    /// The ORB sends exceptions as each peer sends them itself. A server's form is learnt from the first
    /// exception in an `any` that it sends. It holds for the called reference, and for references to the same
    /// address that have not been called yet. A client's form holds for its connection. Before that, the ids
    /// are left out for a server whose references have omniORB's ORB type, and are sent to a client.
    Auto,
    /// The ids are always left out.
    Yes,
    /// The ids are always sent.
    No,
}

/// Which thread runs a servant. As text: `threadPerConnection`, `pool:N`, `pool:N+N`, `reactor`, `hybrid`, `hybrid:N`.
/// Default: `hybrid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerConcurrency {
    /// A thread for each connection receives, runs the servant and replies, for as long as the connection
    /// lasts. No request changes threads. Requests of one connection are served in order, unless a servant
    /// blocks for 25 ms or more while further requests have arrived: then another thread goes on with them.
    /// An idle connection costs a thread and 32 KiB of buffers, of which small messages touch a few, and up
    /// to 256 KiB more after larger messages.
    ThreadPerConnection,
    /// A fixed number of threads share all connections. One thread waits. When a request has come, it passes
    /// the waiting on and serves the request. Requests of one connection may run at the same time. Each call
    /// costs two system calls more than with a thread for each connection.
    LeaderFollowers {
        /// The number of threads, at least 1.
        threads: usize,
    },
    /// Threads share all connections as leaders and followers do, more come while all are busy, and requests beyond them are
    /// buffered or refused. As text: `pool:4+8` for 4 static and up to 8 dynamic threads that end after a second without
    /// work; `pool:4+8,idle=100ms,requests=16,bytes=32KiB`; `for=5s` and `forever` instead of `idle`; `refuse` instead of the
    /// limits of the buffer; `order=edf` and `admit=2ms` for the order of what waits.
    ThreadPool(ThreadPoolConfig),
    /// One thread receives from all connections and runs all servants, one request after another. Servants
    /// need no locks among themselves. A servant that blocks delays all clients, and a callback to a waiting
    /// client ends by its timeout.
    Reactor,
    /// A thread for each connection while it is busy. A thread that finds a connection with a request keeps
    /// to it until nothing has come for 100 ms. Idle connections share one waiting thread and own no buffers,
    /// so each of ten thousand idle connections takes less than 2 KiB. The first request after an idle time
    /// costs a few microseconds more than the next. The first connections, up to one in 32 of `threads_max`,
    /// keep their threads for as long as they last: 128 connections by default.
    ///
    /// A servant that waits for a callback needs another thread for it. If all threads are taken, the
    /// callback waits, as all requests do. In a circle of calls over one connection (bidirectional GIOP) it
    /// would wait in vain. So when no servant has returned for a second, requests of clients for which
    /// servants wait are answered with TRANSIENT (OMG minor code 1, COMPLETED_NO), which ends the circle.
    /// Circles over separate connections end by the calls' timeouts.
    Hybrid {
        /// The most threads, at least 1. It counts all serving threads, those of the first connections, those
        /// that go on with a connection whose servant blocks, and those that wait for a client to read. When
        /// all are busy, each serves one request at a time of any connection that has one. Default:
        /// [`HYBRID_THREADS_MAX`](Self::HYBRID_THREADS_MAX).
        threads_max: usize,
    },
}

impl ServerConcurrency {
    /// The default limit of a hybrid server's threads: this many servants can wait for something before
    /// requests must wait for a thread. Idle connections need no thread.
    pub const HYBRID_THREADS_MAX: usize = THREADS_MAX;

    /// Whether connections have threads of their own, for a time or for as long as they last, which come and go with them.
    pub(crate) fn gives_threads_to_connections(self) -> bool {
        match self {
            ServerConcurrency::ThreadPerConnection | ServerConcurrency::Hybrid { .. } => true,
            ServerConcurrency::LeaderFollowers { .. }
            | ServerConcurrency::ThreadPool(_)
            | ServerConcurrency::Reactor => false,
        }
    }

    /// The number of threads that carry out held requests, if a connection with its own thread may have
    /// `threads_per_connection` threads.
    pub(crate) fn threads_for_held(self, threads_per_connection: usize) -> usize {
        match self {
            ServerConcurrency::ThreadPerConnection | ServerConcurrency::Hybrid { .. } => {
                threads_per_connection
            }
            ServerConcurrency::LeaderFollowers { threads } => threads,
            ServerConcurrency::ThreadPool(pool) => pool.threads_max(),
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
            Some(("pool", pool)) if pool.contains(['+', ',']) => {
                let pool = ThreadPoolConfig::read(pool, |threads| number(threads).ok());
                pool.map(ServerConcurrency::ThreadPool).ok_or_else(bad)
            }
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
            ServerConcurrency::ThreadPool(pool) => write!(f, "pool:{pool}"),
            ServerConcurrency::Reactor => f.write_str("reactor"),
            ServerConcurrency::Hybrid { threads_max } => write!(f, "hybrid:{threads_max}"),
        }
    }
}

/// A text that names no [`ServerConcurrency`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no concurrency: write threadPerConnection, pool:N, pool:N+N, reactor, hybrid or hybrid:N, with N from 1 to {THREADS_MAX}{more}",
    more = options_of_pools(.0)
)]
pub struct BadConcurrency(String);

/// What may stand behind the threads of a pool, for a text that has something there.
fn options_of_pools(text: &str) -> &'static str {
    match text.starts_with("pool:") && text.contains(',') {
        true => {
            "; behind pool:N, idle=TIME, for=TIME or forever; requests=N with bytes=SIZE, or refuse; borrow; \
             order=arrival, priority, edf, mlf or muf, and admit=TIME, both not with refuse"
        }
        false => "",
    }
}

/// The most threads that a text may ask for. A larger number is taken for a mistake.
const THREADS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrencies_are_read_as_they_are_written() {
        for text in [
            "threadPerConnection",
            "pool:3",
            "pool:3+5",
            "pool:3+5,forever",
            "pool:3+5,for=7us,refuse",
            "pool:2,requests=3,bytes=4",
            "pool:2,requests=3,bytes=4,borrow,order=muf,admit=1500us",
            "pool:2,order=edf",
            "pool:2,admit=9us",
            "pool:1+1,idle=1500us,requests=3,bytes=4",
            "reactor",
            "hybrid:7",
        ] {
            assert_eq!(text.parse::<ServerConcurrency>().unwrap().to_string(), text);
        }
        assert_eq!("thread-per-connection".parse(), Ok(ServerConcurrency::ThreadPerConnection));
        let with_units = "pool:3+5,idle=2ms,requests=3,bytes=4KiB".parse::<ServerConcurrency>().unwrap();
        assert_eq!(with_units.to_string(), "pool:3+5,idle=2000us,requests=3,bytes=4096");
        assert_eq!("hybrid".parse::<ServerConcurrency>().unwrap().to_string(), "hybrid:4096");
        for text in [
            "",
            "pool",
            "pool:0",
            "pool:x",
            "pool:1+",
            "pool:0+1",
            "pool:1+2+3",
            "pool:1,bytes=1",
            "pool:1,requests=1",
            "pool:1,idle=1",
            "pool:1,idle=1h",
            "pool:1,refuse,requests=1,bytes=1",
            "pool:1,bytes=1GiB,requests=1",
            "pool:1,order=fifo",
            "pool:1,refuse,order=edf",
            "pool:1,admit",
            "pool:1,",
            "pool:5000",
            "hybrid:",
            "reactor:1",
            "threads",
        ] {
            let error = text.parse::<ServerConcurrency>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("hybrid:N"), "{error}");
            assert_eq!(error.contains("order=arrival"), text.contains(','), "{error}");
        }
    }
}
