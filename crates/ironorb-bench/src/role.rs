//! What this program does when a benchmark starts it again.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use ironorb::{Orb, ServerConcurrency, TypedRef};

use crate::breakdown;
use crate::concurrency;
use crate::connections;
use crate::cubit;
use crate::error::BenchError;
use crate::generated::bench::EchoRef;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef};
use crate::latency;
use crate::machine::pin;
use crate::raw_ring;
use crate::rows::{Row, SendSample};
use crate::servant::EchoServant;
use crate::settings::Settings;
use crate::ttcp::{self, role::TtcpRoleArgs};
use crate::variant::Transport;
use ironorb_baseline::raw::{self, Exchange, RawClient};

/// One process of a benchmark.
#[derive(Debug, clap::Args)]
pub struct RoleArgs {
    /// Which.
    #[arg(value_enum)]
    role: Role,
    /// The processor to stay on.
    #[arg(long)]
    core: Option<usize>,
    /// Where the server is: `host:port`, or a reference.
    #[arg(long, default_value = "")]
    at: String,
    /// What to call.
    #[arg(long, default_value = "void")]
    row: String,
    /// How many samples of it to take.
    #[arg(long, default_value_t = 0)]
    samples: usize,
    /// Messages of a sample, for a client without an ORB.
    #[arg(long, default_value_t = 1)]
    requests: usize,
    /// Bytes of each.
    #[arg(long, default_value_t = 0)]
    request_bytes: usize,
    /// Bytes of the answer.
    #[arg(long, default_value_t = 0)]
    reply_bytes: usize,
    /// Settings of the ORB, as `NAME=VALUE+NAME=VALUE`.
    #[arg(long, default_value = "")]
    settings: Settings,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    ttcp: TtcpRoleArgs,
}

/// Where a server listens.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// What carries the bytes.
    #[arg(long, value_enum, default_value = "tcp")]
    pub(crate) transport: Transport,
    /// A folder for the sockets of a server.
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Place {
    /// The endpoint of an ORB; sockets of several servers may share the folder.
    pub(crate) fn endpoint(&self) -> Result<String, BenchError> {
        Ok(match self.transport {
            Transport::Tcp => LOOPBACK.to_owned(),
            Transport::Unix => {
                let socket = self.folder()?.join(format!("orb-{}", std::process::id()));
                format!("uiop://{}", socket.display())
            }
        })
    }

    pub(crate) fn folder(&self) -> Result<PathBuf, BenchError> {
        self.folder.clone().ok_or_else(|| BenchError::Process {
            role: "server".to_owned(),
            what: "needs --folder for a Unix socket".to_owned(),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    RawServer,
    RawUnixServer,
    RawRingServer,
    RawClient,
    OrbServer,
    PoolServer,
    UnixServer,
    ShmServer,
    WatchedServer,
    OrbClient,
    TtcpServer,
    TtcpRawServer,
    TtcpClient,
    LatencyServer,
    CubitServer,
    RawThreadsServer,
    CrowdClient,
}

/// The pool that is measured.
const POOL: &str = "concurrency=pool:4";

const LOOPBACK: &str = "iiop://127.0.0.1:0";
/// One of the ORB's choice.
const SOCKET: &str = "uiop://";
const SHARED_MEMORY: &str = "shm://";

/// Is one process of a benchmark until it has done its part or its standard input ends.
pub fn run_role(args: &RoleArgs) -> Result<(), BenchError> {
    if let Some(core) = args.core {
        pin(core)?;
    }
    match args.role {
        Role::RawServer => raw_server(),
        Role::RawUnixServer => raw_unix_server("", raw::serve_unix),
        Role::RawRingServer => raw_unix_server(RING, raw_ring::serve),
        Role::RawClient => raw_client(args),
        Role::OrbServer => orb_server(LOOPBACK, &args.settings),
        Role::PoolServer => orb_server(LOOPBACK, &Settings::known(POOL)),
        Role::UnixServer => orb_server(SOCKET, &args.settings),
        Role::ShmServer => orb_server(SHARED_MEMORY, &args.settings),
        Role::WatchedServer => watched_server(),
        Role::OrbClient => orb_client(args),
        Role::TtcpServer => ttcp::role::server(&args.ttcp, &args.place),
        Role::TtcpRawServer => ttcp::role::raw_server(&args.ttcp, &args.place),
        Role::TtcpClient => ttcp::role::client(&args.ttcp, args.place.transport, &args.at),
        Role::LatencyServer => latency::server(&args.place, &args.settings),
        Role::CubitServer => cubit::server(&args.place, &args.settings),
        Role::RawThreadsServer => raw_threads_server(),
        Role::CrowdClient => crowd_client(args),
    }
}

fn raw_server() -> Result<(), BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(BenchError::io("listen"))?;
    let address = listener.local_addr().map_err(BenchError::io("listen"))?;
    tell(&address.to_string())?;
    serve_until_end(move || raw::serve(&listener))
}

/// As [`raw_server`], with a thread for each connection.
fn raw_threads_server() -> Result<(), BenchError> {
    connections::raise_descriptors();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(BenchError::io("listen"))?;
    let address = listener.local_addr().map_err(BenchError::io("listen"))?;
    tell(&address.to_string())?;
    serve_until_end(move || raw::serve_at_once(&listener))
}

/// One client of several processes, with an ORB or without.
fn crowd_client(args: &RoleArgs) -> Result<(), BenchError> {
    if args.row == "plain" {
        let bytes =
            Exchange { requests: 1, request_bytes: args.request_bytes, reply_bytes: args.reply_bytes };
        return concurrency::client(&mut *raw_sample(&args.at, bytes)?);
    }
    let orb = args.settings.builder().no_endpoint().build()?;
    let cubit: CubitRef = orb.string_to_object(&args.at)?.narrow_unchecked();
    concurrency::client(&mut || Ok(cubit.nothing()?))?;
    orb.shutdown(false)?;
    Ok(())
}

fn raw_unix_server(scheme: &str, serve: fn(&UnixListener) -> std::io::Result<()>) -> Result<(), BenchError> {
    let path = std::env::temp_dir().join(format!("ironorb-bench-{}", std::process::id()));
    let listener = UnixListener::bind(&path).map_err(BenchError::io("listen"))?;
    tell(&format!("{scheme}{}", path.display()))?;
    let served = serve_until_end(move || serve(&listener));
    let _ = std::fs::remove_file(path);
    served
}

/// This thread waits for the end, so that the one that serves does nothing else.
fn serve_until_end(serve: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> Result<(), BenchError> {
    std::thread::spawn(move || match serve() {
        Ok(()) => {}
        Err(e) => eprintln!("the plain server stops: {e}"),
    });
    wait_for_end()
}

fn raw_client(args: &RoleArgs) -> Result<(), BenchError> {
    let exchange = Exchange {
        requests: args.requests,
        request_bytes: args.request_bytes,
        reply_bytes: args.reply_bytes,
    };
    let mut sample = raw_sample(&args.at, exchange)?;
    for _ in 0..args.samples {
        sample()?;
    }
    Ok(())
}

/// In front of the path of a plain server with rings.
const RING: &str = "shm:";

/// One sample with a plain server that told its address: a path, with [`RING`] in front or without, or a host and port.
pub(crate) fn raw_sample(address: &str, exchange: Exchange) -> Result<SendSample, BenchError> {
    const EXCHANGE: &str = "exchange bytes with the plain server";
    if let Some(path) = address.strip_prefix(RING) {
        let client = raw_ring::connect(path).and_then(|ring| RawClient::agree(ring, exchange));
        let mut client = client.map_err(BenchError::io(format!("connect to {address}")))?;
        return Ok(Box::new(move || client.exchange().map_err(BenchError::io(EXCHANGE))));
    }
    if address.starts_with('/') {
        let client = RawClient::connect_unix(address, exchange);
        let mut client = client.map_err(BenchError::io(format!("connect to {address}")))?;
        return Ok(Box::new(move || client.exchange().map_err(BenchError::io(EXCHANGE))));
    }
    let parsed = address.parse().map_err(|_| BenchError::Process {
        role: "raw-server".to_owned(),
        what: format!("told {address:?}, which is not an address"),
    })?;
    let client = RawClient::connect(parsed, exchange);
    let mut client = client.map_err(BenchError::io(format!("connect to {address}")))?;
    Ok(Box::new(move || client.exchange().map_err(BenchError::io(EXCHANGE))))
}

fn orb_server(endpoint: &str, settings: &Settings) -> Result<(), BenchError> {
    let builder = settings.over(Orb::builder()).endpoint(endpoint).map_err(ironorb::BuildError::from)?;
    let orb = builder.build()?;
    let echo: EchoRef = orb.root_poa().activate(EchoServant)?;
    tell(&echo.object().to_ior_string())?;
    wait_for_end()?;
    orb.shutdown(false)?;
    Ok(())
}

/// A server that also tells what its probes count. Its line has both references.
fn watched_server() -> Result<(), BenchError> {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").map_err(ironorb::BuildError::from)?;
    // What a connection's thread has counted is all there is.
    builder.config().threads_per_connection_max = 1;
    let orb = builder.concurrency(ServerConcurrency::ThreadPerConnection).build()?;
    let echo: EchoRef = orb.root_poa().activate(EchoServant)?;
    tell(&format!("{} {}", echo.object().to_ior_string(), breakdown::teller(&orb)?))?;
    wait_for_end()?;
    orb.shutdown(false)?;
    Ok(())
}

fn orb_client(args: &RoleArgs) -> Result<(), BenchError> {
    let row = Row::find(&args.row)?;
    let orb = Settings::known(row.settings).over(Orb::builder()).no_endpoint().build()?;
    let echo: EchoRef = match args.at.as_str() {
        "" => orb.root_poa().activate(EchoServant)?,
        url => orb.string_to_object(url)?.narrow_unchecked(),
    };
    let mut sample = row.sample(echo);
    for _ in 0..args.samples {
        sample()?;
    }
    orb.shutdown(false)?;
    Ok(())
}

/// Tells whoever started this process.
pub(crate) fn tell(line: &str) -> Result<(), BenchError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(BenchError::io("tell a line"))
}

/// Waits until whoever started this process needs it no more.
pub(crate) fn wait_for_end() -> Result<(), BenchError> {
    let mut rest = [0; 64];
    while std::io::stdin().read(&mut rest).map_err(BenchError::io("wait for the end"))? > 0 {}
    Ok(())
}
