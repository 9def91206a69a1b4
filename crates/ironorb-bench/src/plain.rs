//! Plain sockets, the baseline of most suites. Their servers are roles, their clients are samples.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use ironorb::poa::{Poa, PoaError};
use ironorb::{Orb, OrbBuilder, TypedRef};
use ironorb_baseline::raw::{self, Exchange, RawClient};
use ironorb_baseline::relay::Relay;
use ironorb_baseline::ring;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::error::BenchError;
use crate::host::ServerHost;
use crate::measure::{Sample, SendSample};
use crate::process::Process;
use crate::role::{Role, RoleArgs, tell, wait_for_end};
use crate::variant::{Bytes, Transport};

/// The roles: servers for one connection at a time or for all at once, and a client that only calls.
pub(crate) const ROLES: &[Role] = &[
    Role { name: TCP, run: |args| tcp_server(args, raw::serve) },
    Role { name: UNIX, run: |_| unix_server("", raw::serve_unix) },
    Role { name: RINGS, run: |_| unix_server(RING, ring::serve) },
    Role { name: THREADS, run: |args| tcp_server(args, raw::serve_at_once) },
    Role { name: CLIENT, run: client },
];

const TCP: &str = "plain-server";
const UNIX: &str = "plain-unix-server";
const RINGS: &str = "plain-ring-server";
pub(crate) const THREADS: &str = "plain-threads-server";
pub(crate) const CLIENT: &str = "plain-client";

/// The role of a transport's server.
pub(crate) fn server_of(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => TCP,
        Transport::Unix => UNIX,
        Transport::Shm => RINGS,
    }
}

/// The prefix of the path of a shared-memory server.
const RING: &str = "shm:";

fn tcp_server(args: &RoleArgs, serve: fn(&TcpListener) -> io::Result<()>) -> Result<(), BenchError> {
    raise_descriptors();
    let listener = TcpListener::bind((args.host.as_str(), 0)).map_err(BenchError::io("listen"))?;
    let queues = args.queue.map_or(Ok(()), |bytes| raw::set_queues(&listener, bytes.0));
    queues.map_err(BenchError::io("give a socket its queues"))?;
    let address = listener.local_addr().map_err(BenchError::io("listen"))?;
    tell(&address.to_string())?;
    serve_until_end(move || serve(&listener))
}

fn unix_server(scheme: &str, serve: fn(&UnixListener) -> io::Result<()>) -> Result<(), BenchError> {
    let path = std::env::temp_dir().join(format!("ironorb-bench-{}", std::process::id()));
    let listener = UnixListener::bind(&path).map_err(BenchError::io("listen"))?;
    tell(&format!("{scheme}{}", path.display()))?;
    let served = serve_until_end(move || serve(&listener));
    let _ = std::fs::remove_file(path);
    served
}

/// Serves on another thread. This thread waits for the end, so that the serving thread does nothing else.
pub(crate) fn serve_until_end(
    serve: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<(), BenchError> {
    std::thread::spawn(move || match serve() {
        Ok(()) => {}
        Err(e) => crate::note(format_args!("the plain server stops: {e}")),
    });
    wait_for_end()
}

fn client(args: &RoleArgs) -> Result<(), BenchError> {
    let mut sample = sample(&args.at, args.queue, exchange_of(args))?;
    (0..args.samples).try_for_each(|_| sample())
}

/// The exchange in a client's arguments.
pub(crate) fn exchange_of(args: &RoleArgs) -> Exchange {
    let number = |place| args.exchange.get(place).copied().unwrap_or(0);
    Exchange { requests: number(0), request_bytes: number(1), reply_bytes: number(2) }
}

/// The argument for an exchange.
pub(crate) fn exchange_arg(exchange: Exchange) -> String {
    let Exchange { requests, request_bytes, reply_bytes } = exchange;
    format!("--exchange={requests},{request_bytes},{reply_bytes}")
}

/// A plain server in a process of its own.
pub(crate) struct Plain {
    pub(crate) address: String,
    queue: Option<Bytes>,
    pub(crate) process: Process,
}

impl Plain {
    pub(crate) fn start(role: &str) -> Result<Plain, BenchError> {
        Plain::start_on(None, None, role)
    }

    /// Starts a server on this host, or on another one, whose connections over TCP have queues of so many bytes.
    pub(crate) fn start_on(
        host: Option<&ServerHost>,
        queue: Option<Bytes>,
        role: &str,
    ) -> Result<Plain, BenchError> {
        let mut args = vec![format!("--host={}", ServerHost::address(host))];
        args.extend(queue.map(|bytes| format!("--queue={bytes}")));
        let mut process = Process::start(ServerHost::command(host), role, &args)?;
        Ok(Plain { address: process.address()?, queue, process })
    }

    /// A sample of exchanges over a connection of its own.
    pub(crate) fn sample(&self, exchange: Exchange) -> Result<SendSample, BenchError> {
        sample(&self.address, self.queue, exchange)
    }
}

/// A sample for a server's address: a path, with or without [`RING`] in front, or a host and port.
pub(crate) fn sample(
    address: &str,
    queue: Option<Bytes>,
    exchange: Exchange,
) -> Result<SendSample, BenchError> {
    let connect = || BenchError::io(format!("connect to {address}"));
    if let Some(path) = address.strip_prefix(RING) {
        let client = ring::connect(path).and_then(|ring| RawClient::agree(ring, exchange));
        return Ok(again(client.map_err(connect())?));
    }
    if address.starts_with('/') {
        return Ok(again(RawClient::connect_unix(address, exchange).map_err(connect())?));
    }
    let wrong = |_| BenchError::process(TCP, format!("printed {address:?}, which is not an address"));
    let parsed = address.parse().map_err(wrong)?;
    let queue = queue.map(|bytes| bytes.0);
    Ok(again(RawClient::connect_with_queues(parsed, queue, exchange).map_err(connect())?))
}

fn again<S: io::Read + io::Write + Send + 'static>(mut client: RawClient<S>) -> SendSample {
    Box::new(move || client.exchange().map_err(BenchError::io("exchange bytes with the plain server")))
}

/// Counts the bytes of one sample on the wire in the steady state, so that the baseline carries as many. The
/// sample calls an object of this process through a relay. `requests` is the number of its messages.
pub(crate) fn count<'a, R: TypedRef>(
    activate: impl FnOnce(&Poa) -> Result<R, PoaError>,
    requests: impl FnOnce(usize) -> usize,
    prepare: impl FnOnce(R) -> Sample<'a>,
) -> Result<Exchange, BenchError> {
    let builders = [Orb::builder(), Orb::builder()];
    count_between(builders, activate, requests, |_, relayed| Ok(prepare(relayed)))
}

/// Counts the bytes of one sample between ORBs of these builders, server and client.
pub(crate) fn count_between<'a, R: TypedRef>(
    [server, client]: [OrbBuilder; 2],
    activate: impl FnOnce(&Poa) -> Result<R, PoaError>,
    requests: impl FnOnce(usize) -> usize,
    prepare: impl FnOnce(&Orb, R) -> Result<Sample<'a>, BenchError>,
) -> Result<Exchange, BenchError> {
    let server = server.endpoint(Transport::Tcp.endpoint())?.build()?;
    let served = activate(&server.root_poa())?;
    let relay = Relay::to(served.object()).map_err(BenchError::io("relay calls"))?;
    let relayed = relay.reference_to(served.object()).map_err(BenchError::io("relay calls"))?;
    let client = client.no_endpoint().build()?;
    let mut sample = prepare(&client, R::from_object(client.ior_to_object(relayed)?))?;
    // The first call also sends the code sets.
    sample()?;
    let (requests_before, replies_before) = relay.bytes();
    sample()?;
    let (requests_after, replies_after) = relay.bytes();
    drop(sample);
    client.shutdown(false)?;
    server.shutdown(false)?;
    let bytes = requests_after - requests_before;
    let requests = requests(bytes);
    Ok(Exchange { requests, request_bytes: bytes / requests, reply_bytes: replies_after - replies_before })
}

/// Raises this process's limit on file descriptors to the system's maximum.
pub(crate) fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A refusal shows when the descriptors run out.
    let _ = setrlimit(Resource::Nofile, limit);
}
