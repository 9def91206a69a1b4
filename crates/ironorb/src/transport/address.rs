//! The trait of the ORB's own transports, and the lists of all transports.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use ironorb_giop::ior::{IiopProfile, TaggedComponent};

use super::Stream;
use super::custom::{CustomAddress, CustomListener, CustomTransport};
use super::shared::SharedMemory;
use super::tcp::{HostPort, Tcp};
use super::unix::{SocketPath, Unix};
use crate::base::config::{self, OrbConfig};
use crate::base::time::{Clock, Time};
use crate::transport::endpoint::BadAddress;

/// Makes connections of one kind, and reads and writes their addresses in references. What a connection does
/// afterwards is in [`Stream`].
///
/// A new transport of the ORB's own needs one implementation, and a line in each list below. The lists are enums because there
/// are few transports, and because an address is a key by which connections are found: trait objects would
/// have to be compared through pointers for every reference that is called first. The transports of programs
/// share one entry, and an address of theirs is a scheme and a text.
pub(crate) trait Transport {
    /// The place at which a server listens.
    type Endpoint;
    /// The server's address, as its clients know it.
    type Address;
    /// Accepts connections. Dropping it ends that.
    type Listener;

    /// Parses an endpoint as operators write it; `None` when it belongs to another transport.
    fn read(text: &str) -> Option<Result<Self::Endpoint, &'static str>>;

    /// Begins to listen. Also returns the address for references, which is used when no other is published.
    fn listen(
        endpoint: &Self::Endpoint,
        options: &Listening<'_>,
    ) -> io::Result<(Self::Listener, Self::Address)>;

    /// Waits for the next connection. Never waits for an action of the client after it has connected.
    fn accept(listener: &Self::Listener) -> io::Result<Stream>;

    /// Has [`accept`](Self::accept) not wait from now on. Returns the descriptor that is readable when a client has come.
    fn stop_waiting(listener: &Self::Listener) -> io::Result<BorrowedFd<'_>>;

    /// Stops accepting. Wakes the thread that accepts.
    fn close(listener: &Self::Listener);

    /// Connects to a server. Blocks until the deadline at most.
    fn connect(address: &Self::Address, attempt: &ConnectAttempt<'_>) -> io::Result<Stream>;

    /// The component for an address in a profile of this ORB.
    fn component(address: &Self::Address) -> Option<TaggedComponent<'static>>;

    /// The addresses in a profile that can be reached from this machine. The profile is untrusted input.
    fn addresses(profile: &IiopProfile) -> Vec<Self::Address>;
}

/// What listening needs besides the endpoint.
pub(crate) struct Listening<'l> {
    pub(crate) config: &'l OrbConfig,
    /// The clock of the driver that waits on the connections.
    pub(crate) clock: Clock,
}

/// What connecting needs besides the address.
pub(crate) struct ConnectAttempt<'d> {
    /// When the attempt ends; [`Time::MAX`] for one without a limit.
    pub(crate) until: Time,
    pub(crate) clock: Clock,
    /// Finds the addresses of hosts.
    pub(crate) hosts: &'d dyn Hosts,
}

impl ConnectAttempt<'_> {
    /// The time that is left; `None` without a limit. Fails with `TimedOut` when none is left.
    pub(super) fn remaining(&self) -> io::Result<Option<Duration>> {
        self.share(1)
    }

    /// An even share of the time that is left, for the next of several attempts.
    pub(super) fn share(&self, attempts: usize) -> io::Result<Option<Duration>> {
        if self.until == Time::MAX {
            return Ok(None);
        }
        let left = self.until.since((self.clock.now)());
        match left / u32::try_from(attempts).unwrap_or(u32::MAX).max(1) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            share => Ok(Some(share)),
        }
    }
}

/// Finds the addresses of hosts. A driver does that: the system's resolver blocks.
pub(crate) trait Hosts {
    /// Returns the addresses of a host, at least one. Blocks until the moment given at most.
    fn resolve(&self, host: &str, port: u16, until: Time) -> io::Result<Vec<SocketAddr>>;

    /// Drops the addresses of a host after no connection to them succeeded.
    fn forget(&self, host: &str);
}

/// An address to listen at: `iiop://host:port`, or `uiop:///path` or `shm:///path` for clients on the same
/// machine.
///
/// The host may be a name, an IPv4 address or an IPv6 address in brackets. Without a host the server listens
/// at every address of the machine. Port 0, or no port, lets the system choose.
///
/// The path is that of a Unix domain socket: absolute, and at most 107 bytes long. A socket that a dead
/// server has left there is replaced. While the server listens, a file beside the socket has a name that ends
/// in `.lock`; both are removed when it stops. The umask and
/// [`OrbConfig::unix_socket_mode`](crate::OrbConfig::unix_socket_mode) decide which users may connect.
/// Without a path the socket is a new one in a folder to which only this user has access:
/// `$XDG_RUNTIME_DIR/ironorb`, or `/tmp/ironorb-UID` without that variable.
///
/// With `uiop:` calls go over the socket, and other ORBs can use it. With `shm:` clients receive shared
/// memory at the socket, and calls go through that memory
/// ([`OrbConfig::shared_memory_bytes`](crate::OrbConfig::shared_memory_bytes)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(At);

#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    Tcp(HostPort),
    Unix(Option<SocketPath>),
    SharedMemory(Option<SocketPath>),
    Custom(CustomAddress),
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    Tcp(HostPort),
    Unix(SocketPath),
    SharedMemory(SocketPath),
    Custom(CustomAddress),
}

/// Accepts connections of any transport.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(<Tcp as Transport>::Listener),
    Unix(<Unix as Transport>::Listener),
    SharedMemory(<SharedMemory as Transport>::Listener),
    Custom(Box<dyn CustomListener>),
}

/// Does the same for each transport of a list, but for those of programs.
macro_rules! each {
    ($list:ident, $value:expr, $T:ident, $it:ident => $do:expr, $custom:expr) => {
        match $value {
            $list::Tcp($it) => {
                type $T = Tcp;
                $do
            }
            $list::Unix($it) => {
                type $T = Unix;
                $do
            }
            $list::SharedMemory($it) => {
                type $T = SharedMemory;
                $do
            }
            $list::Custom($it) => $custom,
        }
    };
}

impl Endpoint {
    /// Every address of the machine, at a port that the system chooses.
    pub fn anywhere() -> Endpoint {
        Endpoint(At::Tcp(HostPort { host: String::new(), port: 0 }))
    }

    /// Parses an endpoint of one of the transports, or of the ORB's own.
    pub(crate) fn parse(text: &str, transports: &[Arc<dyn CustomTransport>]) -> Result<Endpoint, BadAddress> {
        match CustomAddress::read(text, transports) {
            Some(at) => at.map(|at| Endpoint(At::Custom(at))),
            None => text.parse(),
        }
    }

    /// The same endpoint at the port or the path that the system has chosen for it once, as its address in references shows.
    pub(crate) fn chosen(&self, bound: &Address) -> Endpoint {
        Endpoint(match (&self.0, bound) {
            (At::Tcp(at), Address::Tcp(HostPort { port, .. })) => {
                At::Tcp(HostPort { host: at.host.clone(), port: *port })
            }
            (At::Unix(None), Address::Unix(path)) => At::Unix(Some(path.clone())),
            (At::SharedMemory(None), Address::SharedMemory(path)) => At::SharedMemory(Some(path.clone())),
            (at, _) => at.clone(),
        })
    }

    /// Begins to listen. Also returns the address for references, which is used when no other is published.
    pub(crate) fn listen(&self, options: &Listening<'_>) -> io::Result<(Listener, Address)> {
        let listening = match &self.0 {
            At::Tcp(at) => Tcp::listen(at, options).map(|(l, a)| (Listener::Tcp(l), Address::Tcp(a))),
            At::Unix(at) => Unix::listen(at, options).map(|(l, a)| (Listener::Unix(l), Address::Unix(a))),
            At::SharedMemory(at) => SharedMemory::listen(at, options)
                .map(|(l, a)| (Listener::SharedMemory(l), Address::SharedMemory(a))),
            At::Custom(at) => at.listen().map(|(l, a)| (Listener::Custom(l), Address::Custom(a))),
        };
        listening.map_err(|e| io::Error::new(e.kind(), format!("cannot listen at {self}: {e}")))
    }
}

/// Parses `iiop://host:port` and shorter forms: `host:port`, `:port`, `host`; or `uiop:///path`, or
/// `shm:///path`. It accepts omniORB's `giop:tcp:host:port` and `giop:unix:/path` as well.
impl FromStr for Endpoint {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let unix = || Some(Unix::read(text)?.map(At::Unix));
        let shared = || Some(SharedMemory::read(text)?.map(At::SharedMemory));
        // A text of no known transport is reported as a bad TCP endpoint.
        let tcp = || Some(Tcp::read(text)?.map(At::Tcp));
        match unix().or_else(shared).or_else(tcp) {
            Some(Ok(at)) => Ok(Endpoint(at)),
            Some(Err(why)) => Err(BadAddress::new(text, why)),
            None => Err(BadAddress::new(text, "no transport knows it")),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = |path: &Option<SocketPath>| path.as_ref().map_or(String::new(), SocketPath::to_string);
        match &self.0 {
            At::Tcp(at) => write!(f, "iiop://{at}"),
            At::Unix(at) => write!(f, "uiop://{}", path(at)),
            At::SharedMemory(at) => write!(f, "shm://{}", path(at)),
            At::Custom(at) => at.fmt(f),
        }
    }
}

impl Address {
    /// The host and the port of a TCP address.
    pub(crate) fn tcp(&self) -> Option<(&str, u16)> {
        match self {
            Address::Tcp(HostPort { host, port }) => Some((host, *port)),
            Address::Unix(_) | Address::SharedMemory(_) | Address::Custom(_) => None,
        }
    }

    /// The address of a Unix socket; `None` if there can be no socket with such a path.
    pub(crate) fn unix(path: &str) -> Option<Address> {
        SocketPath::new(path).ok().map(Address::Unix)
    }

    /// The path of a Unix socket's address.
    pub(crate) fn unix_path(&self) -> Option<&str> {
        match self {
            Address::Unix(path) => Some(path.as_str()),
            Address::Tcp(_) | Address::SharedMemory(_) | Address::Custom(_) => None,
        }
    }

    /// Whether the address stands in a component alone, and not where every client of IIOP looks.
    pub(crate) fn is_local(&self) -> bool {
        self.tcp().is_none()
    }

    /// The transport; `None` for one of the program's own.
    pub(crate) fn transport(&self) -> Option<config::Transport> {
        match self {
            Address::Tcp(_) => Some(config::Transport::Tcp),
            Address::Unix(_) => Some(config::Transport::Unix),
            Address::SharedMemory(_) => Some(config::Transport::SharedMemory),
            Address::Custom(_) => None,
        }
    }

    /// Connects to the server. Blocks until the deadline at most.
    pub(crate) fn connect(&self, attempt: &ConnectAttempt<'_>) -> io::Result<Stream> {
        each!(Address, self, T, address => T::connect(address, attempt), {
            Stream::custom(address.connect(attempt.remaining()?)?)
        })
    }

    /// The component for the address in a profile of this ORB.
    pub(crate) fn component(&self) -> Option<TaggedComponent<'static>> {
        each!(Address, self, T, address => T::component(address), address.component())
    }

    /// The addresses of a transport of the program's own in a profile.
    pub(crate) fn all_custom_in(
        profile: &IiopProfile,
        transports: &[Arc<dyn CustomTransport>],
    ) -> impl Iterator<Item = Address> {
        transports.iter().flat_map(|it| CustomAddress::all_in(profile, it)).map(Address::Custom)
    }

    /// The addresses of one transport in a profile that can be reached from this machine.
    pub(crate) fn all_in(profile: &IiopProfile, transport: config::Transport) -> Vec<Address> {
        match transport {
            config::Transport::Tcp => Tcp::addresses(profile).into_iter().map(Address::Tcp).collect(),
            config::Transport::Unix => Unix::addresses(profile).into_iter().map(Address::Unix).collect(),
            config::Transport::SharedMemory => {
                SharedMemory::addresses(profile).into_iter().map(Address::SharedMemory).collect()
            }
        }
    }
}

/// Writes `host:port`, `uiop:///path`, `shm:///path`, or the scheme and the text of a program's own.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "uiop://{path}"),
            Address::SharedMemory(path) => write!(f, "shm://{path}"),
            Address::Custom(address) => address.fmt(f),
        }
    }
}

impl Listener {
    /// Waits for the next connection.
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        each!(Listener, self, T, listener => T::accept(listener), Stream::custom(listener.accept()?))
    }

    /// Has [`accept`](Self::accept) not wait from now on. Returns the descriptor that is readable when a client has come;
    /// `None` for the transports of programs, which have none.
    pub(crate) fn show_connections(&self) -> io::Result<Option<BorrowedFd<'_>>> {
        each!(Listener, self, T, listener => T::stop_waiting(listener).map(Some), {
            let _ = listener;
            Ok(None)
        })
    }

    /// The next of the connections that clients have made already, after
    /// [`show_connections`](Self::show_connections). Never waits. `None` when there is no such connection, and for the
    /// transports of programs.
    pub(crate) fn accept_now(&self) -> io::Result<Option<Stream>> {
        let accepted = match self {
            Listener::Custom(_) => return Ok(None),
            listener => listener.accept(),
        };
        match accepted {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            accepted => accepted.map(Some),
        }
    }

    /// Stops accepting. Wakes the thread that accepts.
    pub(crate) fn close(&self) {
        each!(Listener, self, T, listener => T::close(listener), listener.close());
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::driver::clock::CLOCK;

    #[test]
    fn a_connection_that_waits_is_accepted_without_a_wait() {
        let config = OrbConfig::default();
        for endpoint in ["iiop://127.0.0.1:0", "uiop://"] {
            let endpoint: Endpoint = endpoint.parse().unwrap();
            let (listener, address) = endpoint.listen(&Listening { config: &config, clock: CLOCK }).unwrap();
            let connect = || match &address {
                Address::Tcp(HostPort { host, port }) => {
                    drop(TcpStream::connect((host.as_str(), *port)).unwrap())
                }
                Address::Unix(path) => drop(UnixStream::connect(path.as_str()).unwrap()),
                other => panic!("{other} was not asked for"),
            };
            connect();
            connect();
            assert!(listener.accept().is_ok());
            assert!(listener.show_connections().unwrap().is_some());
            // The last packet of a connection may come after `connect` has returned.
            let begun = std::time::Instant::now();
            while listener.accept_now().unwrap().is_none() {
                assert!(begun.elapsed() < std::time::Duration::from_secs(60), "it never comes");
                std::thread::yield_now();
            }
            assert!(listener.accept_now().unwrap().is_none());
            assert!(listener.accept().is_err(), "this does not wait either");
        }
    }

    #[test]
    fn endpoints_are_parsed_in_all_their_notations() {
        for (text, shown) in [
            ("iiop://127.0.0.1:2810", "iiop://127.0.0.1:2810"),
            ("iiop://[::1]:0", "iiop://[::1]:0"),
            ("iiop://:2809", "iiop://:2809"),
            ("localhost:1", "iiop://localhost:1"),
            ("localhost", "iiop://localhost:0"),
            ("giop:tcp:localhost:2809", "iiop://localhost:2809"),
            ("giop:tcp:[::1]:0", "iiop://[::1]:0"),
            ("giop:tcp::2809", "iiop://:2809"),
            ("giop:tcp::", "iiop://:0"),
            ("giop:tcp:h:", "iiop://h:0"),
            ("uiop:///run/bank.sock", "uiop:///run/bank.sock"),
            ("giop:unix:/run/bank.sock", "uiop:///run/bank.sock"),
            ("uiop://", "uiop://"),
            ("giop:unix:", "uiop://"),
            ("shm:///run/bank.shm", "shm:///run/bank.shm"),
            ("shm://", "shm://"),
            ("shm:", "shm://"),
            ("shm:/run/bank.shm", "shm:///run/bank.shm"),
            ("shm:2809", "iiop://shm:2809"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), shown);
        }
        for text in ["ssl://x:1", "::1:2809", "host:99999", "[::1", "[::1]x", "shm://x"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        for text in ["ssl://x:1", "giop:ssl:x:1", "giop:localhost:0", "giop::1"] {
            let refused = text.parse::<Endpoint>().unwrap_err();
            assert!(refused.to_string().contains("write iiop://HOST:PORT"), "{refused}");
        }
    }

    #[test]
    fn the_path_of_a_socket_is_absolute_and_fits_the_system() {
        let longest = format!("/{}", "x".repeat(106));
        assert!(format!("uiop://{longest}").parse::<Endpoint>().is_ok());
        for (path, why) in [
            (format!("{longest}x"), "at most 107 bytes"),
            ("bank.sock".to_owned(), "is absolute"),
            ("/bank\0sock".to_owned(), "no NUL"),
        ] {
            for scheme in ["uiop://", "giop:unix:", "shm://"] {
                let refused = format!("{scheme}{path}").parse::<Endpoint>().unwrap_err();
                assert!(refused.to_string().contains(why), "{refused}");
            }
        }
    }
}
