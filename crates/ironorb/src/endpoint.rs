//! Where an ORB listens, and which addresses its references carry: two settings, because behind a NAT or
//! in a container they differ.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::str::FromStr;

use crate::net::Listener;

/// An address to listen at: `iiop://host:port`.
///
/// The host may be a name, an IPv4 address or an IPv6 address in brackets; left out, it means every address of
/// the machine. Port 0, or none, lets the system choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

/// An address that references carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) host: String,
    pub(crate) port: u16,
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
        Endpoint { host: String::new(), port: 0 }
    }

    /// Begins to listen. Gives what references say when nothing else is published, too.
    pub(crate) fn listen(&self) -> io::Result<(Listener, Published)> {
        let at = |e: io::Error| io::Error::new(e.kind(), format!("cannot listen at {self}: {e}"));
        let listener = match self.host.as_str() {
            // `::` takes IPv4 as well, where the machine has IPv6.
            "" => TcpListener::bind(("::", self.port)).or_else(|_| TcpListener::bind(("0.0.0.0", self.port))),
            host => TcpListener::bind((host, self.port)),
        };
        let listener = listener.map_err(at)?;
        let published = self.published(listener.local_addr()?);
        Ok((Listener::Tcp(listener), published))
    }

    fn published(&self, bound: SocketAddr) -> Published {
        let host = match self.host.parse::<IpAddr>() {
            Ok(ip) if !ip.is_unspecified() => ip.to_string(),
            Err(_) if !self.host.is_empty() => self.host.clone(),
            _ => primary_address().to_string(),
        };
        Published { host, port: bound.port() }
    }
}

/// `iiop://host:port`, and shorter: `host:port`, `:port`, `host`. Also `giop:tcp:host:port`, as omniORB has it.
impl FromStr for Endpoint {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = |why| BadAddress { text: text.to_owned(), why };
        let (host, port) = without_scheme(text).and_then(split_host_port).map_err(bad)?;
        Ok(Endpoint { host: host.to_owned(), port: port.unwrap_or(0) })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iiop://{}", display_host_port(&self.host, self.port))
    }
}

/// What stands behind `iiop://`, which may be left out, or behind omniORB's `giop:tcp:`.
pub(crate) fn without_scheme(text: &str) -> Result<&str, &'static str> {
    match (text.split_once("://"), text.strip_prefix("giop:")) {
        (Some(("iiop", rest)), _) => Ok(rest),
        (Some(_), _) => Err("only iiop:// is known; write iiop://HOST:PORT"),
        (None, Some(rest)) => rest
            .strip_prefix("tcp:")
            .ok_or("of omniORB's forms only giop:tcp: is known; write iiop://HOST:PORT"),
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
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), shown);
        }
        for text in ["ssl://x:1", "::1:2809", "host:99999", "[::1", "[::1]x"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        for text in ["ssl://x:1", "giop:ssl:x:1", "giop:unix:/tmp/x", "giop:localhost:0", "giop::1"] {
            let refused = text.parse::<Endpoint>().unwrap_err();
            assert!(refused.to_string().contains("write iiop://HOST:PORT"), "{refused}");
        }
    }

    #[test]
    fn what_is_published_follows_the_endpoint() {
        let bound = "127.0.0.1:77".parse().unwrap();
        let host = |text: &str| text.parse::<Endpoint>().unwrap().published(bound).host;
        assert_eq!(host("iiop://[::1]:5"), "::1");
        assert_eq!(host("iiop://server.example:5"), "server.example");
        assert!(!host("iiop://:5").parse::<IpAddr>().unwrap().is_unspecified());
        assert!(!host("iiop://0.0.0.0:5").parse::<IpAddr>().unwrap().is_unspecified());
    }
}
