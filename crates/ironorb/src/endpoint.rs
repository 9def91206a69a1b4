//! Where an ORB listens, and which addresses its references carry: two settings, because behind a NAT or
//! in a container they differ.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::str::FromStr;

use crate::net::Listener;
use crate::net::unix::{SocketPath, UnixListener};

/// An address to listen at: `iiop://host:port`, or `uiop:///path` for clients on the same machine.
///
/// The host may be a name, an IPv4 address or an IPv6 address in brackets; left out, it means every address of
/// the machine. Port 0, or none, lets the system choose.
///
/// The path is that of a Unix domain socket: absolute, and at most 107 bytes long. A socket that a dead server has left
/// there is replaced. While the server listens there is a file beside it whose name ends in `.lock`; both go when it stops.
/// Who may connect is for the umask and [`OrbConfig::unix_socket_mode`](crate::OrbConfig::unix_socket_mode) to say. Without
/// a path the socket is a new one in a folder that only this user can look into: `$XDG_RUNTIME_DIR/ironorb`, or
/// `/tmp/ironorb-UID` where there is no such variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(At);

#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    Tcp {
        host: String,
        port: u16,
    },
    /// `None` for one of our choice.
    Unix(Option<SocketPath>),
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    Tcp {
        host: String,
        port: u16,
    },
    /// On this machine.
    Unix(SocketPath),
}

impl Address {
    /// The host and port, where it has them.
    pub(crate) fn tcp(&self) -> Option<(&str, u16)> {
        match self {
            Address::Tcp { host, port } => Some((host, *port)),
            Address::Unix(_) => None,
        }
    }

    /// The path, where it has one.
    pub(crate) fn unix(&self) -> Option<&SocketPath> {
        match self {
            Address::Tcp { .. } => None,
            Address::Unix(path) => Some(path),
        }
    }
}

/// `host:port`, or `uiop:///path`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } => f.write_str(&display_host_port(host, *port)),
            Address::Unix(path) => write!(f, "uiop://{path}"),
        }
    }
}

/// A text that is not an address.
#[derive(Clone, PartialEq, Eq)]
pub struct BadAddress {
    text: String,
    why: &'static str,
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not an address: {}", self.text, self.why)
    }
}

/// As a program's `main` shows it: the text.
impl fmt::Debug for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for BadAddress {}

impl Endpoint {
    /// Every address of the machine at a port of the system's choice.
    pub fn anywhere() -> Endpoint {
        Endpoint(At::Tcp { host: String::new(), port: 0 })
    }

    /// Begins to listen. Gives what references say when nothing else is published, too.
    pub(crate) fn listen(&self, unix_socket_mode: Option<u32>) -> io::Result<(Listener, Address)> {
        let at = |e: io::Error| io::Error::new(e.kind(), format!("cannot listen at {self}: {e}"));
        match &self.0 {
            At::Tcp { host, port } => {
                let listener = listen_tcp(host, *port).map_err(at)?;
                let address = published(host, listener.local_addr()?);
                Ok((Listener::Tcp(listener), address))
            }
            At::Unix(Some(path)) => {
                let listener = UnixListener::bind(path, unix_socket_mode).map_err(at)?;
                Ok((Listener::Unix(listener), Address::Unix(path.clone())))
            }
            At::Unix(None) => {
                let (listener, path) = UnixListener::bind_privately(unix_socket_mode).map_err(at)?;
                Ok((Listener::Unix(listener), Address::Unix(path)))
            }
        }
    }
}

fn listen_tcp(host: &str, port: u16) -> io::Result<TcpListener> {
    match host {
        // `::` takes IPv4 as well, where the machine has IPv6.
        "" => TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port))),
        host => TcpListener::bind((host, port)),
    }
}

fn published(host: &str, bound: SocketAddr) -> Address {
    let host = match host.parse::<IpAddr>() {
        Ok(ip) if !ip.is_unspecified() => ip.to_string(),
        Err(_) if !host.is_empty() => host.to_owned(),
        _ => primary_address().to_string(),
    };
    Address::Tcp { host, port: bound.port() }
}

/// `iiop://host:port`, and shorter: `host:port`, `:port`, `host`; or `uiop:///path`. Also `giop:tcp:host:port` and
/// `giop:unix:/path`, as omniORB has them.
impl FromStr for Endpoint {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = |why| BadAddress { text: text.to_owned(), why };
        if let Some(path) = text.strip_prefix("uiop://").or_else(|| text.strip_prefix("giop:unix:")) {
            let path = (!path.is_empty()).then(|| SocketPath::new(path)).transpose().map_err(bad)?;
            return Ok(Endpoint(At::Unix(path)));
        }
        let (host, port) = without_scheme(text).and_then(split_host_port).map_err(bad)?;
        Ok(Endpoint(At::Tcp { host: host.to_owned(), port: port.unwrap_or(0) }))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            At::Tcp { host, port } => write!(f, "iiop://{}", display_host_port(host, *port)),
            At::Unix(path) => write!(f, "uiop://{}", path.as_ref().map_or("", SocketPath::as_str)),
        }
    }
}

/// What stands behind `iiop://`, which may be left out, or behind omniORB's `giop:tcp:`.
pub(crate) fn without_scheme(text: &str) -> Result<&str, &'static str> {
    match (text.split_once("://"), text.strip_prefix("giop:")) {
        (Some(("iiop", rest)), _) => Ok(rest),
        (Some(_), _) => Err("only iiop:// and, to listen at, uiop:// are known; write iiop://HOST:PORT"),
        (None, Some(rest)) => rest
            .strip_prefix("tcp:")
            .ok_or("of omniORB's forms only giop:tcp: and, to listen at, giop:unix: are known; write iiop://HOST:PORT"),
        (None, None) => Ok(text),
    }
}

/// `host`, `host:port` or `[ipv6]:port`.
pub(crate) fn split_host_port(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("a '[' lacks its ']'")?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err("after ']' there may only be ':' and a port"),
            }
        }
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                return Err("write an IPv6 address in brackets: [::1]:2809");
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    match port {
        // With nothing behind the colon too, as in omniORB's `giop:tcp::`.
        None | Some("") => Ok((host, None)),
        Some(port) => {
            port.parse().map(|port| (host, Some(port))).map_err(|_| "the port is a number from 0 to 65535")
        }
    }
}

/// With brackets where they are needed.
pub(crate) fn display_host_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The address from which this machine would reach others; the loopback address when there is none.
fn primary_address() -> IpAddr {
    let route = |local: &str, remote: &str| {
        // Connecting a datagram socket sends nothing: the system only picks the route. The addresses are
        // reserved for documentation (RFC 5737, RFC 3849).
        let socket = UdpSocket::bind(local).ok()?;
        socket.connect(remote).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        (!ip.is_unspecified()).then_some(ip)
    };
    route("0.0.0.0:0", "192.0.2.1:9")
        .or_else(|| route("[::]:0", "[2001:db8::1]:9"))
        .unwrap_or(IpAddr::from([127, 0, 0, 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
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
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), shown);
        }
        for text in ["ssl://x:1", "::1:2809", "host:99999", "[::1", "[::1]x"] {
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
            ("bank.sock".to_owned(), "absolute: uiop:///PATH"),
            ("/bank\0sock".to_owned(), "no NUL"),
        ] {
            for scheme in ["uiop://", "giop:unix:"] {
                let refused = format!("{scheme}{path}").parse::<Endpoint>().unwrap_err();
                assert!(refused.to_string().contains(why), "{refused}");
            }
        }
    }

    #[test]
    fn what_is_published_follows_the_endpoint() {
        let host = |host: &str| match published(host, "127.0.0.1:77".parse().unwrap()) {
            Address::Tcp { host, port: 77 } => host,
            other => panic!("{other}"),
        };
        assert_eq!(host("::1"), "::1");
        assert_eq!(host("server.example"), "server.example");
        assert!(!host("").parse::<IpAddr>().unwrap().is_unspecified());
        assert!(!host("0.0.0.0").parse::<IpAddr>().unwrap().is_unspecified());
    }
}
