//! A builder method for each field of the configuration that has none in `builder.rs`. Decides nothing.

use std::time::Duration;

use ironorb_giop::CharSet;
use ironorb_giop::message::AddressingDisposition;

use super::OrbBuilder;
use crate::config::{BareExceptions, ObjectLookup, OperationLookup, Transport, Waiting};

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $($field:ident).+;)*) => {
        /// The settings of [`OrbConfig`](crate::OrbConfig) and of its parts, whose fields say more of each.
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
    /// How long an address that could not be connected is tried after the others of a reference. Default 30 s.
    failed_address_pause: Duration => failed_address_pause;
    /// Threads that connect for asynchronous calls. Default 8, at least 1.
    errand_threads_max: usize => errand_threads_max;
    /// Connections to one endpoint, over which the threads of this process are spread. Default 64, at least 1.
    connections_per_endpoint_max: usize => connections_per_endpoint_max;
    /// Connections to servers that may be open at once; a call that needs one more when all are in use ends with
    /// NO_RESOURCES. Default 1,000, at least 1.
    client_connections_max: usize => client_connections_max;
    /// Connections of clients that are accepted at once; more are closed. Default 10,000, at least 1.
    server_connections_max: usize => server_connections_max;
    /// Requests of all clients that may be in flight; more are refused with TRANSIENT. Default `None`, no limit; at least 1.
    server_requests_max: Option<usize> => server_requests_max;
    /// Threads that serve this ORB's clients; at the bound requests wait. Default 10,000, at least 1.
    server_threads_max: usize => server_threads_max;
    /// Bytes that large messages of all clients may take on their way in; more are refused with NO_MEMORY. Default 1 GiB;
    /// `None` for no limit.
    receive_memory_max: Option<usize> => receive_memory_max;
    /// Bytes of replies that all clients together may leave unread; the connection that holds the most is closed beyond
    /// that. Default 1 GiB; `None` for no limit.
    transmit_memory_max: Option<usize> => transmit_memory_max;
    /// Which users may connect to Unix domain sockets of this ORB, as of chmod(1), 0 to 0o777. Default `None`, as the umask
    /// has it.
    unix_socket_mode: Option<u32> => unix_socket_mode;
    /// Bytes of each of the two rings of a connection by shared memory: a power of two from 4 KiB to 64 MiB. Default 256 KiB.
    shared_memory_bytes: usize => shared_memory_bytes;
    /// By which transports references are followed, the best first. Default: shared memory, Unix domain sockets, TCP.
    client_transports: Vec<Transport> => client_transports;
    /// How clients and servers wait on connections by shared memory. Default [`Waiting::ADAPTIVE`].
    shared_memory_waiting: Waiting => shared_memory_waiting;
    /// Threads that may serve one connection at once, where connections have threads of their own. Default 16, at least 1.
    threads_per_connection_max: usize => threads_per_connection_max;
    /// LOCATION_FORWARD replies that one call follows, 0 to 255. Default 16.
    forwards_max: u8 => forwards_max;
    /// Times that one call is sent again after its connection was closed in order, 0 to 255. Default 4.
    resends_max: u8 => resends_max;
    /// Requests that may wait for each holding POA manager, for the main thread, and for each servant that is being
    /// incarnated; more get TRANSIENT. Default 1,024.
    held_requests_max: usize => held_requests_max;
    /// Bytes that may wait to be sent on one connection before callers wait for the peer to read. Default 4 MiB.
    transmit_bytes_max: usize => transmit_bytes_max;
    /// How long a peer may take no bytes of a reply before its connection is closed. Default 20 s.
    transmit_timeout: Duration => transmit_timeout;
    /// Bytes of the system's send queue of each connection (`SO_SNDBUF`). Default `None`, as the system chooses.
    send_queue_bytes: Option<usize> => send_queue_bytes;
    /// Bytes of the system's receive queue of each connection (`SO_RCVBUF`). Default `None`, as the system chooses.
    receive_queue_bytes: Option<usize> => receive_queue_bytes;
    /// How long an accepted connection may be without a request before it is closed in order. Default 10 minutes; `None`
    /// never.
    server_idle_timeout: Option<Duration> => server_idle_timeout;
    /// How long an outgoing connection may be without a call before it is closed. Default 3 minutes; `None` never.
    client_idle_timeout: Option<Duration> => client_idle_timeout;
    /// How long a message to this server may take from its first byte to its last. Default 2 minutes; `None` for ever.
    message_timeout: Option<Duration> => message_timeout;
    /// Whether connections may be used both ways (bidirectional GIOP). Default no.
    bidirectional: bool => bidirectional;
    /// Threads that may serve requests which come over connections that this ORB has made. Default 16, at least 1.
    callback_threads_max: usize => callback_threads_max;
    /// Code set of strings that references made here call native. Default UTF-8.
    native_char_set: CharSet => native_char_set;
    /// How exceptions in an `any` are written. Default [`BareExceptions::Auto`]: as each peer writes them itself.
    bare_exceptions: BareExceptions => bare_exceptions;
    /// Whether a client sends strings in UTF-8 to a server that converts it, where the standard's order prefers the native code
    /// set. Default: no.
    prefer_utf8: bool => prefer_utf8;
    /// How requests of GIOP 1.2 must name their object. Default `None`, any way.
    addressing_demanded: Option<AddressingDisposition> => addressing_demanded;
    /// How the operation that a request names is found, for objects activated from then on. Default by perfect hash.
    operation_lookup: OperationLookup => operation_lookup;
    /// How the object that a request names is found, in adapters made from then on. Default active demultiplexing.
    object_lookup: ObjectLookup => object_lookup;
    /// Calls that may wait for replies on one connection, 1 to 65,535. Default 1,024.
    calls_in_flight_max: usize => connection.calls_in_flight_max;
    /// Whether servers are told of calls that were given up (CancelRequest). Default no.
    cancel_requests: bool => connection.cancel_requests;
    /// Whether clients are told in words why a call failed (ExceptionDetailMessage). Default no.
    exception_details: bool => connection.exception_details;
    /// Messages of one connection whose fragments may be interleaved. Default 16.
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
        let orb = fields(include_str!("../config.rs"), "OrbConfig");
        let connection =
            fields(include_str!("../../../ironorb-giop/src/connection/mod.rs"), "ConnectionConfig");
        let framer = fields(include_str!("../../../ironorb-giop/src/framer.rs"), "FramerLimits");
        assert!(orb.len() > 30 && connection.len() > 4 && framer.len() > 1);
        for field in orb.into_iter().chain(connection).chain(framer) {
            let has_fields_of_its_own = ["connection", "framer"].contains(&field);
            assert!(has_fields_of_its_own || methods.contains(&field), "OrbBuilder::{field} is missing");
        }
    }

    /// The table of settings has what operators decide; programs must be able to decide it as well.
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
                other => other,
            };
            assert!(methods.contains(&method), "OrbBuilder::{method} is missing");
        }
    }
}
