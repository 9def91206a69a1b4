//! A builder method for each field of the configuration that has none in `builder.rs`. Decides nothing.

use std::time::Duration;

use ironorb_giop::CharSet;
use ironorb_giop::message::AddressingDisposition;

use super::OrbBuilder;
use crate::base::config::{BareExceptions, CacheLimit, ObjectLookup, OperationLookup, Transport, Waiting};

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $($field:ident).+;)*) => {
        /// The settings of [`OrbConfig`](crate::OrbConfig) and of its parts, whose fields document each in full.
        impl OrbBuilder {$(
            $(#[$doc])*
            pub fn $name(mut self, $name: $type) -> Self {
                self.config().$($field).+ = $name;
                self
            }
        )*}
    };
}

settings! {
    /// The seed of the ORB's random numbers, for simulations and tests only. ORBs with equal seeds give equal keys to
    /// equal sequences of activations. Default: `None`, numbers that differ in each run.
    seed: Option<u64> => seed;
    /// How long an address that could not be connected is tried only after a reference's other addresses.
    /// Default: 30 s.
    failed_address_pause: Duration => failed_address_pause;
    /// The most threads that connect for asynchronous calls. Default: 8, at least 1.
    background_threads_max: usize => background_threads_max;
    /// The most connections to one endpoint, over which the threads of this process are spread. Default: 64,
    /// at least 1.
    connections_per_endpoint_max: usize => connections_per_endpoint_max;
    /// The most connections to servers that may be open at once. A call that needs one more when all are in
    /// use ends with NO_RESOURCES. Default: 1,000, at least 1.
    client_connections_max: usize => client_connections_max;
    /// The most connections that are accepted at once. Further ones are closed. Default: 10,000, at least 1.
    server_connections_max: usize => server_connections_max;
    /// The most requests of all clients in flight. Further ones are refused with TRANSIENT. At least 1.
    /// Default: `None`, no limit.
    server_requests_max: Option<usize> => server_requests_max;
    /// The most threads that serve this ORB's clients. At the limit, requests wait. Default: 10,000, at least
    /// 1.
    server_threads_max: usize => server_threads_max;
    /// The threads that serve this ORB's clients and are made when it begins to listen. Default: 0.
    server_threads_static: usize => server_threads_static;
    /// The most bytes that large messages of all clients may take while they are received and served. Further
    /// ones are refused with NO_MEMORY. Default: 1 GiB; `None` for no limit.
    receive_memory_max: Option<usize> => receive_memory_max;
    /// The most bytes of replies that all clients together may leave unread. Beyond that, the connection that
    /// holds the most is closed. Default: 1 GiB; `None` for no limit.
    transmit_memory_max: Option<usize> => transmit_memory_max;
    /// The file mode of Unix sockets of this ORB, as for chmod(1), from 0 to 0o777. It decides which users
    /// may connect. Default: `None`, as the umask says.
    unix_socket_mode: Option<u32> => unix_socket_mode;
    /// Whether references name Unix sockets also in profiles of their own, as TAO does (UIOP). Default: no.
    uiop_profiles: bool => uiop_profiles;
    /// The size in bytes of each of the two rings of a shared-memory connection: a power of two from 4 KiB to
    /// 64 MiB. Default: 256 KiB.
    shared_memory_bytes: usize => shared_memory_bytes;
    /// The transports that clients use, the best first. Default: shared memory, Unix sockets, TCP.
    client_transports: Vec<Transport> => client_transports;
    /// How clients and servers wait on shared-memory connections. Default: [`Waiting::ADAPTIVE`].
    shared_memory_waiting: Waiting => shared_memory_waiting;
    /// The most threads that may serve one connection at once, where connections have threads of their own.
    /// Default: 16, at least 1.
    threads_per_connection_max: usize => threads_per_connection_max;
    /// The most LOCATION_FORWARD replies that one call follows, 0 to 255. Default: 16.
    forwards_max: u8 => forwards_max;
    /// How many times one call is sent again after its connection was closed in order, 0 to 255. Default: 4.
    resends_max: u8 => resends_max;
    /// The most requests that may wait for each holding POA manager, for the main thread, and for each
    /// servant that is being incarnated. Further ones get TRANSIENT. Default: 1,024.
    held_requests_max: usize => held_requests_max;
    /// The most bytes that may wait to be sent on one connection before callers wait for the peer to read.
    /// Default: 4 MiB.
    transmit_bytes_max: usize => transmit_bytes_max;
    /// How long a peer may read no bytes of a reply before its connection is closed. Default: 20 s.
    transmit_timeout: Duration => transmit_timeout;
    /// The size in bytes of the system's send queue of each connection (`SO_SNDBUF`). Default: `None`, the
    /// system chooses.
    send_queue_bytes: Option<usize> => send_queue_bytes;
    /// The size in bytes of the system's receive queue of each connection (`SO_RCVBUF`). Default: `None`, the
    /// system chooses.
    receive_queue_bytes: Option<usize> => receive_queue_bytes;
    /// The priority of connections' packets in the system's queues (`SO_PRIORITY`), 0 to 15. Default: `None`, the system's.
    socket_priority: Option<u32> => socket_priority;
    /// For how long a waiting thread polls the network device itself (`SO_BUSY_POLL`). Default: `None`, as the system is
    /// set.
    busy_poll: Option<Duration> => busy_poll;
    /// Whether TCP connections acknowledge what comes at once (`TCP_QUICKACK`). Default: no.
    tcp_quick_ack: bool => tcp_quick_ack;
    /// How long sent bytes may stay unacknowledged before a TCP connection ends (`TCP_USER_TIMEOUT`). Default: `None`, the
    /// system's, some 15 minutes.
    tcp_user_timeout: Option<Duration> => tcp_user_timeout;
    /// Whether building the ORB locks the process's memory, each page from its first use on. Default: no.
    lock_memory: bool => lock_memory;
    /// How long an accepted connection may be without a request before it is closed in order. Default: 10
    /// minutes; `None` for ever.
    server_idle_timeout: Option<Duration> => server_idle_timeout;
    /// How long an outgoing connection may be without a call before it is closed. Default: 3 minutes; `None`
    /// for ever.
    client_idle_timeout: Option<Duration> => client_idle_timeout;
    /// How long a message to this server may take from its first byte to its last. Default: 2 minutes; `None`
    /// for ever.
    message_timeout: Option<Duration> => message_timeout;
    /// Whether connections may be bidirectional (bidirectional GIOP). Default: no.
    bidirectional: bool => bidirectional;
    /// The most threads that serve requests which come over connections that this ORB has made. Default: 16,
    /// at least 1.
    callback_threads_max: usize => callback_threads_max;
    /// The native code set of strings in references made here. Default: UTF-8.
    native_char_set: CharSet => native_char_set;
    /// Whether the ORB calls its own objects directly, not over a connection to itself. Default: yes.
    collocation: bool => collocation;
    /// How exceptions in an `any` are written. Default: [`BareExceptions::Auto`], as each peer writes them
    /// itself.
    bare_exceptions: BareExceptions => bare_exceptions;
    /// Whether a client sends strings in UTF-8 to a server that converts it, where the standard's order
    /// prefers the native code set. Default: no.
    prefer_utf8: bool => prefer_utf8;
    /// How GIOP 1.2 requests must name their object. Default: `None`, any way.
    addressing_demanded: Option<AddressingDisposition> => addressing_demanded;
    /// How the operation of a request is found, for objects activated from then on. Default: by perfect hash.
    operation_lookup: OperationLookup => operation_lookup;
    /// How the object of a request is found, in adapters made from then on. Default: active demultiplexing.
    object_lookup: ObjectLookup => object_lookup;
    /// The most objects whose cached attributes the ORB holds. Default: 1,000,000, at least 1.
    cache_entries_max: usize => cache_entries_max;
    /// About the most bytes that the cached attributes take which the ORB holds. Default: `None`, no limit but that of the
    /// entries.
    cache_bytes_max: Option<usize> => cache_bytes_max;
    /// What the ORB holds of the cached attributes of single interfaces. Default: none, only the limits of all count.
    cache_limits: Vec<CacheLimit> => cache_limits;
    /// The most objects whose cached attributes one client may hold of this ORB. Default: 1,000,000, at least 1.
    cache_held_max: usize => cache_held_max;
    /// About how many bytes of changes an answer to a cache's question brings, or one change that is longer. Default: 1,460.
    cache_update_bytes: usize => cache_update_bytes;
    /// How many calls carry the question what has changed, after a cached read that had to ask. Default: 16; 0 for none.
    cache_carried_probes: u8 => cache_carried_probes;
    /// The most calls that may wait for replies on one connection, 1 to 65,535. Default: 1,024.
    calls_in_flight_max: usize => connection.calls_in_flight_max;
    /// Whether clients send CancelRequest for calls that were given up. Default: no.
    cancel_requests: bool => connection.cancel_requests;
    /// Whether the server sends clients a text about why a call failed (ExceptionDetailMessage). Default: no.
    exception_details: bool => connection.exception_details;
    /// The most messages of one connection whose fragments may be interleaved. Default: 16.
    assemblies_max: usize => connection.framer.assemblies_max;
}

#[cfg(test)]
mod tests {
    use crate::settings;

    /// The names of the methods of the builder.
    fn methods() -> Vec<&'static str> {
        let this = include_str!("builder_settings.rs").lines().filter_map(|line| {
            let (name, rest) = line.strip_prefix("    ")?.split_once(": ")?;
            rest.contains(" => ").then_some(name)
        });
        let others = include_str!("builder.rs").lines().filter_map(|line| {
            let (name, _) = line.strip_prefix("    pub fn ")?.split_once('(')?;
            Some(name)
        });
        this.chain(others).collect()
    }

    fn fields(text: &'static str, of: &str) -> Vec<&'static str> {
        let (_, body) = text.split_once(&format!("pub struct {of} {{")).expect("it is there");
        let (body, _) = body.split_once("\n}").expect("it ends");
        let field = |line: &'static str| Some(line.strip_prefix("    pub ")?.split_once(':')?.0);
        body.lines().filter_map(field).collect()
    }

    #[test]
    fn every_field_of_the_configuration_has_a_method() {
        let methods = methods();
        let orb = fields(include_str!("../base/config.rs"), "OrbConfig");
        let connection =
            fields(include_str!("../../../ironorb-giop/src/connection/mod.rs"), "ConnectionConfig");
        let framer = fields(include_str!("../../../ironorb-giop/src/framer.rs"), "FramerLimits");
        assert!(orb.len() > 30 && connection.len() > 4 && framer.len() > 1);
        for field in orb.into_iter().chain(connection).chain(framer) {
            let has_fields_of_its_own = ["connection", "framer"].contains(&field);
            assert!(has_fields_of_its_own || methods.contains(&field), "OrbBuilder::{field} is missing");
        }
    }

    /// Programs must be able to set everything in the table of settings, which is for operators.
    #[test]
    fn every_setting_has_a_method() {
        let methods = methods();
        for setting in settings() {
            let variable = setting.variable().trim_start_matches("IRONORB_").to_ascii_lowercase();
            let method = match &*variable {
                "config" => continue, // a source of settings
                "init_ref" => "initial_reference",
                "default_init_ref" => "default_initial_reference",
                "fragments_in_giop11" => "fragments_in_giop_1_1",
                "cache_limit" => "cache_limits",
                // Methods of the `RealTimeConfig` that it takes.
                "scheduling"
                | "priority_mapping"
                | "propagated_priority_max"
                | "peer_priority_max"
                | "watch" => "real_time",
                other => other,
            };
            assert!(methods.contains(&method), "OrbBuilder::{method} is missing");
        }
    }
}
