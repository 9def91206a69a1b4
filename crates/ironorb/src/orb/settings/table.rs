//! The table of settings: their names, the forms of their values, and what they decide. It reads no source.

use super::lane::{self, lane};
use super::values::{
    Mapping, assign, at_least_one, bare_exceptions, cache_limit, char_set, concurrency, demultiplexing,
    duration, duration_or_never, mapping, mode, never_or, number, object_lookup, oneway_batching,
    operation_lookup, ring, scheduling_policy, size, status, transports, version, waiting, watch, yes,
};
use super::{CONFIG_FILE, CONFIG_FILE_VARIABLE, OPTION_PREFIX, Settings, VARIABLE_PREFIX};
use crate::object::peers::{BadPeerNetwork, PeerNetwork};
use crate::object::priority::{ContinuousMapping, DirectMapping, LinearMapping, RealTimeConfig};

/// One setting. It is spelt as `-ORB` and its name on the command line, as the name alone in a configuration
/// file, and as `IRONORB_` and the name in capitals in the environment. The command line and files ignore the
/// case of letters.
#[derive(Debug)]
pub struct Setting {
    /// The name in camel case: `callTimeout`.
    pub name: &'static str,
    /// The form of the value.
    pub form: &'static str,
    /// What the setting decides, and its default.
    pub help: &'static str,
    /// Whether the setting may be given several times. In the environment, spaces separate the values.
    pub repeats: bool,
    pub(super) set: Set,
}

type Set = fn(&mut Settings, &str) -> Result<(), String>;

impl Setting {
    /// The name on the command line: `-ORBcallTimeout`.
    pub fn option(&self) -> String {
        format!("{OPTION_PREFIX}{}", self.name)
    }

    /// The name in the environment: `IRONORB_CALL_TIMEOUT`.
    pub fn variable(&self) -> String {
        let mut name = VARIABLE_PREFIX.to_owned();
        for (at, c) in self.name.chars().enumerate() {
            if at > 0 && c.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(c.to_ascii_uppercase());
        }
        if self.name == CONFIG_FILE { CONFIG_FILE_VARIABLE.to_owned() } else { name }
    }
}

/// Every setting that operators can give.
pub fn settings() -> &'static [Setting] {
    SETTINGS
}

/// The forms of values that settings of lanes have, too.
pub(super) const fn endpoint_form() -> &'static str {
    "iiop://HOST:PORT | uiop:///PATH | shm:///PATH"
}

pub(super) const fn waiting_form() -> &'static str {
    "block | adaptive[:MICROSECONDS] | spin"
}

const fn once(name: &'static str, form: &'static str, help: &'static str, set: Set) -> Setting {
    Setting { name, form, help, repeats: false, set }
}

const fn several(name: &'static str, form: &'static str, help: &'static str, set: Set) -> Setting {
    Setting { name, form, help, repeats: true, set }
}

pub(super) static SETTINGS: &[Setting] = &[
    once(CONFIG_FILE, "PATH", "A file of lines `name = value`.", |_, _| Ok(())),
    once("id", "NAME", "The ORB's own name, for interceptors. Default: empty.", |s, v| {
        s.orb_id = v.to_owned();
        Ok(())
    }),
    once("serverId", "NAME", "The server's name, for interceptors. Default: empty.", |s, v| {
        s.server_id = v.to_owned();
        Ok(())
    }),
    once(
        "marshalProfile",
        "PATH",
        "The file for counts of marshalled types, from code generated to record them. Default: none.",
        |s, v| {
            s.marshal_profile = Some(v.into());
            Ok(())
        },
    ),
    once(
        "recording",
        "PATH",
        "The file, or the folder for a file of each process, to which calls are recorded, by programs with `ironorb-record`. \
         Default: none.",
        |s, v| {
            s.recording = Some(v.into());
            Ok(())
        },
    ),
    several("initRef", "NAME=URL", "The URL of an initial reference.", |s, v| {
        let (name, url) =
            v.split_once('=').ok_or("write NAME=URL, as in NameService=corbaloc::host/NameService")?;
        s.set_initial(name.trim(), url.trim());
        Ok(())
    }),
    once(
        "defaultInitRef",
        "URL",
        "The base URL of all other initial references: `corbaloc::host`, before `/NAME`.",
        |s, v| {
            s.default_initial = Some(v.to_owned());
            Ok(())
        },
    ),
    several("endpoint", endpoint_form(), "Where to listen. Default: every address, any port.", |s, v| {
        s.add_endpoint(v).map_err(|e| e.to_string())?;
        Ok(())
    }),
    once(
        "unixSocketMode",
        "OCTAL",
        "The file mode of Unix sockets, as for chmod. Default: as the umask says.",
        |s, v| assign(&mut s.config.unix_socket_mode, mode(v).map(Some)),
    ),
    once(
        "uiopProfiles",
        "yes | no",
        "Whether references name Unix sockets also in profiles of their own, as TAO does. Default: no.",
        |s, v| assign(&mut s.config.uiop_profiles, yes(v)),
    ),
    once(
        "sharedMemoryBytes",
        "SIZE",
        "The size of each ring of a shared-memory connection, a power of two. Default: 256KiB.",
        |s, v| assign(&mut s.config.shared_memory_bytes, ring(v)),
    ),
    once(
        "sharedMemoryWaiting",
        waiting_form(),
        "How both sides wait on shared memory. Default: adaptive:50.",
        |s, v| assign(&mut s.config.shared_memory_waiting, waiting(v)),
    ),
    once(
        "clientTransports",
        "shm,unix,tcp in any order, or some of them",
        "The transports that clients use, the best first. Default: shm,unix,tcp.",
        |s, v| assign(&mut s.config.client_transports, transports(v)),
    ),
    several(
        "publish",
        "HOST[:PORT]",
        "The address that references carry. Default: the endpoints.",
        |s, v| {
            s.publish.push(v.to_owned());
            Ok(())
        },
    ),
    once("noEndpoint", "yes | no", "Never listens: a program that only calls. Default: no.", |s, v| {
        s.set_no_endpoint(yes(v)?);
        Ok(())
    }),
    once(
        "bidirectional",
        "yes | no",
        "Servers may call back over a client's connections. Default: no.",
        |s, v| assign(&mut s.config.bidirectional, yes(v)),
    ),
    once("holdRequests", "yes | no", "The root adapter's manager begins holding. Default: no.", |s, v| {
        assign(&mut s.hold_requests, yes(v))
    }),
    once(
        "concurrency",
        "threadPerConnection | pool:N[+N] | reactor | hybrid[:N]",
        "Which threads run servants. Default: hybrid.",
        |s, v| assign(&mut s.config.concurrency, concurrency(v)),
    ),
    once("clientWaiting", waiting_form(), "How callers wait for replies. Default: block.", |s, v| {
        assign(&mut s.config.client_waiting, waiting(v))
    }),
    once(
        "serverWaiting",
        waiting_form(),
        "How threads that serve wait for requests. Default: block.",
        |s, v| assign(&mut s.config.server_waiting, waiting(v)),
    ),
    several("lane", "NAME; SETTING=VALUE; …", "A further lane, with its settings (below).", |s, v| {
        s.lanes.push(lane(v)?);
        Ok(())
    }),
    once(
        "scheduling",
        "fifo | roundRobin | other | no",
        "Whether this is a real-time ORB, and the system's class of its threads. Default: no.",
        scheduling,
    ),
    once(
        "priorityMapping",
        "linear[:MIN-MAX] | continuous[:MIN-MAX] | direct",
        "How priorities become those of the system, in a real-time ORB. Default: linear:1-98.",
        priority_mapping,
    ),
    once(
        "propagatedPriorityMax",
        "NUMBER",
        "The highest priority that clients can ask for, in a real-time ORB. Default: 32767.",
        |s, v| {
            let most = lane::priority(v)?;
            change_real_time(s, |config| config.propagated_priority_max(most));
            Ok(())
        },
    ),
    several(
        "peerPriorityMax",
        "local:NUMBER | ADDRESS[/PREFIX]:NUMBER",
        "The highest priority that these peers can ask for, in a real-time ORB. Default: no limit of their own.",
        |s, v| {
            let (peers, most) = v.rsplit_once(':').ok_or("write PEERS:NUMBER, as 10.0.0.0/8:1000")?;
            let peers: PeerNetwork = peers.parse().map_err(|e: BadPeerNetwork| e.to_string())?;
            let most = lane::priority(most)?;
            change_real_time(s, |config| config.peer_priority_max(peers, most));
            Ok(())
        },
    ),
    once(
        "watch",
        "no | off[:DURATION] | on[:DURATION]",
        "Whether lanes are watched in a real-time ORB, and the waits that are recorded. Default: no. `off` can be switched on.",
        |s, v| {
            let config = watch(v)?;
            if config.is_some() || s.real_time.is_some() {
                change_real_time(s, |real_time| RealTimeConfig { watch: config, ..real_time });
            }
            Ok(())
        },
    ),
    once(
        "lockMemory",
        "yes | no",
        "Locks the process's memory, each page from its first use on (mlockall). Default: no.",
        |s, v| assign(&mut s.config.lock_memory, yes(v)),
    ),
    once(
        "onewayBatching",
        "no | yes | SIZE,NUMBER,DURATION",
        "Whether oneways are sent in batches: the most bytes, requests, and delay. Default: no.",
        |s, v| assign(&mut s.config.oneway_batching, oneway_batching(v)),
    ),
    once(
        "operationLookup",
        "perfectHash | hash | binary | linear",
        "How operations are found, for objects activated here. Default: perfectHash, the fastest.",
        |s, v| assign(&mut s.config.operation_lookup, operation_lookup(v)),
    ),
    once(
        "objectLookup",
        "active | hash | linear",
        "How objects are found in the adapters made here. Default: active where ids allow it, the fastest.",
        |s, v| assign(&mut s.config.object_lookup, object_lookup(v)),
    ),
    once(
        "demultiplexing",
        "delayered | layered",
        "From object key to object in one step or adapter by adapter. Default: delayered, the faster.",
        |s, v| assign(&mut s.config.demultiplexing, demultiplexing(v)),
    ),
    once("giopVersion", "1.0 | 1.1 | 1.2", "GIOP version of references, and the highest spoken.", |s, v| {
        assign(&mut s.config.giop_version, version(v))
    }),
    once("callTimeout", "DURATION | never", "How long a call may take. Default: 60s.", |s, v| {
        assign(&mut s.config.call_timeout, duration_or_never(v))
    }),
    once(
        "deadlinePropagation",
        "yes | no",
        "Requests tell how long their callers wait, and servers drop what is too late. Default: no.",
        |s, v| assign(&mut s.config.deadline_propagation, yes(v)),
    ),
    once("connectTimeout", "DURATION", "How long one attempt to connect may take. Default: 10s.", |s, v| {
        assign(&mut s.config.connect_timeout, duration(v))
    }),
    once(
        "transmitTimeout",
        "DURATION",
        "How long a client may leave a reply unread. Default: 20s.",
        |s, v| assign(&mut s.config.transmit_timeout, duration(v)),
    ),
    once(
        "serverIdleTimeout",
        "DURATION | never",
        "When an accepted connection without requests is closed. Default: 10m.",
        |s, v| assign(&mut s.config.server_idle_timeout, duration_or_never(v)),
    ),
    once(
        "clientIdleTimeout",
        "DURATION | never",
        "When an outgoing connection without calls is closed. Default: 3m.",
        |s, v| assign(&mut s.config.client_idle_timeout, duration_or_never(v)),
    ),
    once(
        "messageTimeout",
        "DURATION | never",
        "How long a message to a server may take to come. Default: 2m.",
        |s, v| assign(&mut s.config.message_timeout, duration_or_never(v)),
    ),
    once(
        "collocation",
        "yes | no",
        "Whether the ORB calls its own objects directly; no: over a connection to itself. Default: yes.",
        |s, v| assign(&mut s.config.collocation, yes(v)),
    ),
    once(
        "bareExceptions",
        "auto | yes | no",
        "Whether exceptions in an any lack their id; auto: as each peer. Default: auto.",
        |s, v| assign(&mut s.config.bare_exceptions, bare_exceptions(v)),
    ),
    once("nativeCharSet", "UTF-8 | ISO-8859-1", "The native code set of strings. Default: UTF-8.", |s, v| {
        assign(&mut s.config.native_char_set, char_set(v))
    }),
    once(
        "preferUtf8",
        "yes | no",
        "Strings go in UTF-8 to every server that takes it. Default: no.",
        |s, v| assign(&mut s.config.prefer_utf8, yes(v)),
    ),
    once("messageBytesMax", "SIZE", "Largest message, in and out. Default: 128MiB.", |s, v| {
        let bytes = size(v)?;
        if bytes < 1024 {
            return Err("less than 1KiB leaves no room for a request".to_owned());
        }
        s.config.connection.framer.message_bytes_max = bytes;
        Ok(())
    }),
    once(
        "fragmentBytes",
        "SIZE | never",
        "Longer messages are sent in fragments. Default: never.",
        |s, v| assign(&mut s.config.connection.fragment_bytes, never_or(v, size)),
    ),
    once(
        "fragmentsInGiop11",
        "yes | no",
        "Also sends GIOP 1.1 fragments, which not every ORB reads. Default: no.",
        |s, v| assign(&mut s.config.connection.fragments_in_giop_1_1, yes(v)),
    ),
    once(
        "transmitBytesMax",
        "SIZE",
        "Bytes that may wait to be sent on a connection. Default: 4MiB.",
        |s, v| assign(&mut s.config.transmit_bytes_max, size(v)),
    ),
    once(
        "transmitMemoryMax",
        "SIZE | never",
        "Unread replies of all clients; beyond it, the connection with the most is closed. Default: 1GiB; never for no limit.",
        |s, v| assign(&mut s.config.transmit_memory_max, never_or(v, size)),
    ),
    once(
        "sendQueueBytes",
        "SIZE",
        "The system's send queue of each connection. Default: the system chooses.",
        |s, v| assign(&mut s.config.send_queue_bytes, size(v).map(Some)),
    ),
    once(
        "receiveQueueBytes",
        "SIZE",
        "The system's receive queue of each connection. Default: the system chooses.",
        |s, v| assign(&mut s.config.receive_queue_bytes, size(v).map(Some)),
    ),
    once(
        "socketPriority",
        "NUMBER",
        "The priority of packets in the system's queues, from 0 to 15, above 6 with CAP_NET_ADMIN. Default: the system's.",
        |s, v| assign(&mut s.config.socket_priority, number(v).map(Some)),
    ),
    once(
        "busyPoll",
        "DURATION",
        "How long a waiting thread polls the network device itself, with CAP_NET_ADMIN. Default: as the system is set.",
        |s, v| assign(&mut s.config.busy_poll, duration(v).map(Some)),
    ),
    once(
        "tcpQuickAck",
        "yes | no",
        "TCP acknowledges what comes at once, by a system call in each receive. Default: no.",
        |s, v| assign(&mut s.config.tcp_quick_ack, yes(v)),
    ),
    once(
        "tcpUserTimeout",
        "DURATION",
        "How long sent bytes may stay unacknowledged before a TCP connection ends. Default: the system's, some 15 minutes.",
        |s, v| assign(&mut s.config.tcp_user_timeout, duration(v).map(Some)),
    ),
    once("callsInFlightMax", "NUMBER", "Calls that may wait on one connection. Default: 1024.", |s, v| {
        assign(&mut s.config.connection.calls_in_flight_max, at_least_one(v))
    }),
    once(
        "cancelRequests",
        "yes | no",
        "Sends CancelRequest for calls that were given up. Default: no.",
        |s, v| assign(&mut s.config.connection.cancel_requests, yes(v)),
    ),
    once(
        "exceptionDetails",
        "yes | no",
        "Sends clients a text about why a call failed. Default: no.",
        |s, v| assign(&mut s.config.connection.exception_details, yes(v)),
    ),
    once(
        "connectionsPerEndpointMax",
        "NUMBER",
        "The most connections to one server; a client's threads have one each up to this. Default: 64.",
        |s, v| assign(&mut s.config.connections_per_endpoint_max, at_least_one(v)),
    ),
    once("serverConnectionsMax", "NUMBER", "Connections accepted at once. Default: 10000.", |s, v| {
        assign(&mut s.config.server_connections_max, at_least_one(v))
    }),
    once(
        "serverRequestsMax",
        "NUMBER | never",
        "The most requests of all clients in flight; more get TRANSIENT. Default: never, no limit.",
        |s, v| assign(&mut s.config.server_requests_max, never_or(v, at_least_one)),
    ),
    once(
        "serverThreadsMax",
        "NUMBER",
        "The most threads that serve clients; at the limit, requests wait. Default: 10000.",
        |s, v| assign(&mut s.config.server_threads_max, at_least_one(v)),
    ),
    once(
        "serverThreadsStatic",
        "NUMBER",
        "The threads that serve clients and are made before one comes. Default: 0; 8 in lanes with a priority.",
        |s, v| assign(&mut s.config.server_threads_static, number(v)),
    ),
    once(
        "receiveMemoryMax",
        "SIZE | never",
        "Memory for large messages of all clients; more get NO_MEMORY. Default: 1GiB; never for no limit.",
        |s, v| assign(&mut s.config.receive_memory_max, never_or(v, size)),
    ),
    once(
        "threadsPerConnectionMax",
        "NUMBER",
        "Threads that may serve one connection. Default: 16.",
        |s, v| assign(&mut s.config.threads_per_connection_max, at_least_one(v)),
    ),
    once(
        "heldRequestsMax",
        "NUMBER",
        "Requests that may wait for a holding manager. Default: 1024.",
        |s, v| assign(&mut s.config.held_requests_max, number(v)),
    ),
    once(
        "status",
        "no | local | anyone",
        "Which clients the ORB tells its status (`ironorb status`); yes is local. Default: no.",
        |s, v| assign(&mut s.config.status, status(v)),
    ),
    once(
        "memory",
        "SIZE | never",
        "Memory of the process, all of it taken at the start. Default: never, it is taken when it is needed.",
        |s, v| assign(&mut s.config.memory, never_or(v, size)),
    ),
    once(
        "cacheEntriesMax",
        "NUMBER",
        "Objects whose cached attributes the ORB holds. Default: 1000000.",
        |s, v| assign(&mut s.config.cache_entries_max, at_least_one(v)),
    ),
    once(
        "cacheBytesMax",
        "SIZE | never",
        "Memory for the cached attributes that the ORB holds. Default: never, only cacheEntriesMax counts.",
        |s, v| assign(&mut s.config.cache_bytes_max, never_or(v, size)),
    ),
    several(
        "cacheLimit",
        "ID=NUMBER[,SIZE]",
        "Objects of one interface whose cached attributes the ORB holds, and their memory. Default: none.",
        |s, v| {
            s.config.cache_limits.push(cache_limit(v)?);
            Ok(())
        },
    ),
    once(
        "cacheHeldMax",
        "NUMBER",
        "Objects whose cached attributes one client may hold. Default: 1000000.",
        |s, v| assign(&mut s.config.cache_held_max, at_least_one(v)),
    ),
    once(
        "cacheUpdateBytes",
        "SIZE",
        "What an answer to a cache's question brings of changes, before the cache asks for more. Default: 1460.",
        |s, v| assign(&mut s.config.cache_update_bytes, size(v)),
    ),
    once(
        "cacheCarriedProbes",
        "NUMBER",
        "Calls whose replies tell what has changed, after a cached read that had to ask; 0 to 255. Default: 16.",
        |s, v| assign(&mut s.config.cache_carried_probes, number(v)),
    ),
    once(
        "countCachedReads",
        "yes | no",
        "Whether cached reads that ask no server are counted, in builds that can. Default: no.",
        |s, v| assign(&mut s.config.count_cached_reads, yes(v)),
    ),
    once("forwardsMax", "NUMBER", "Forwards that one call follows, at most 255. Default: 16.", |s, v| {
        assign(&mut s.config.forwards_max, number(v))
    }),
    once("resendsMax", "NUMBER", "Times that one call is sent again, at most 255. Default: 4.", |s, v| {
        assign(&mut s.config.resends_max, number(v))
    }),
];

/// Priorities without a real-time ORB would have no effect, so each setting of one makes it one.
fn change_real_time(settings: &mut Settings, change: impl FnOnce(RealTimeConfig) -> RealTimeConfig) {
    let config = settings.real_time.take().unwrap_or_default();
    settings.real_time = Some(change(config));
}

fn scheduling(settings: &mut Settings, text: &str) -> Result<(), String> {
    match scheduling_policy(text)? {
        Some(policy) => change_real_time(settings, |config| config.scheduling(policy)),
        None => settings.real_time = None,
    }
    Ok(())
}

fn priority_mapping(settings: &mut Settings, text: &str) -> Result<(), String> {
    let mapping = mapping(text)?;
    change_real_time(settings, |config| match mapping {
        Mapping::Linear { min, max } => config.mapping(LinearMapping { min, max }),
        Mapping::Continuous { min, max } => config.mapping(ContinuousMapping { min, max }),
        Mapping::Direct => config.mapping(DirectMapping),
    });
    Ok(())
}

/// The setting with a name, in any case of letters. Names that other ORBs use for it are accepted too.
pub(super) fn find(name: &str) -> Result<&'static Setting, String> {
    let wanted = OTHER_NAMES
        .iter()
        .find(|(other, _)| other.eq_ignore_ascii_case(name))
        .map_or(name, |&(_, ours)| ours);
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(wanted)).ok_or_else(|| {
        match nearest(name) {
            Some(near) => format!("no setting is called {name}; do you mean {}?", near.name),
            None => {
                let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
                format!("no setting is called {name}; there are {}", names.join(", "))
            }
        }
    })
}

/// The setting of an environment variable, whose name must be exact.
pub(super) fn find_variable(name: &str) -> Result<&'static Setting, String> {
    SETTINGS.iter().find(|setting| setting.variable() == name).ok_or_else(|| {
        let bare = name.strip_prefix(VARIABLE_PREFIX).unwrap_or(name).replace('_', "");
        match nearest(&bare) {
            Some(near) => format!("no setting is called so; do you mean {}?", near.variable()),
            None => format!("no setting is called so, and names with {VARIABLE_PREFIX} are for settings"),
        }
    })
}

/// The setting that a misspelt name probably means.
fn nearest(name: &str) -> Option<&'static Setting> {
    let far = |other: &str| distance(&name.to_ascii_lowercase(), &other.to_ascii_lowercase());
    let ours = SETTINGS.iter().map(|setting| (setting, far(setting.name)));
    let others = OTHER_NAMES.iter().filter_map(|(other, name)| Some((find(name).ok()?, far(other))));
    let (setting, far) = ours.chain(others).min_by_key(|&(_, far)| far)?;
    (far <= 3 && far * 3 <= name.len()).then_some(setting)
}

/// The number of letters that must be added, removed or changed to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, right) in b.bytes().enumerate() {
            let change = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Names of other ORBs. TAO and others use `ORBListenEndpoints`, `ORBSndSock` and `ORBRcvSock`. omniORB uses
/// `endPointPublish` and `socketSendBuffer`.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("endPointPublish", "publish"),
    ("listenEndpoints", "endpoint"),
    ("maxGIOPVersion", "giopVersion"),
    ("nativeCharCodeSet", "nativeCharSet"),
    ("rcvSock", "receiveQueueBytes"),
    ("schedPolicy", "scheduling"),
    ("sndSock", "sendQueueBytes"),
    ("socketSendBuffer", "sendQueueBytes"),
];
