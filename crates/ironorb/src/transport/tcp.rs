//! Connections over TCP.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ironorb_giop::ior::{IiopProfile, TaggedComponent};
use rustix::net::Shutdown;

use super::{ConnectAttempt, Listening, Stream, Transport};
use crate::transport::endpoint::{display_host_port, split_host_port, without_scheme};

/// TCP over IPv4 or IPv6.
pub(crate) struct Tcp;

/// A host and a port. The host is a name, an IPv4 address or an IPv6 address without brackets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Writes `host:port`, with brackets around an IPv6 address.
impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&display_host_port(&self.host, self.port))
    }
}

impl Transport for Tcp {
    type Endpoint = HostPort;
    type Address = HostPort;
    type Listener = TcpListener;

    fn read(text: &str) -> Option<Result<HostPort, &'static str>> {
        let split = without_scheme(text).and_then(split_host_port);
        Some(split.map(|(host, port)| HostPort { host: host.to_owned(), port: port.unwrap_or(0) }))
    }

    fn listen(at: &HostPort, _options: &Listening<'_>) -> io::Result<(TcpListener, HostPort)> {
        let listener = match at.host.as_str() {
            // `::` accepts IPv4 as well, where the machine has IPv6.
            "" => TcpListener::bind(("::", at.port)).or_else(|_| TcpListener::bind(("0.0.0.0", at.port))),
            host => TcpListener::bind((host, at.port)),
        }?;
        let address = published(&at.host, listener.local_addr()?);
        Ok((listener, address))
    }

    fn accept(listener: &TcpListener) -> io::Result<Stream> {
        made(listener.accept()?.0)
    }

    fn stop_waiting(listener: &TcpListener) -> io::Result<BorrowedFd<'_>> {
        listener.set_nonblocking(true)?;
        Ok(listener.as_fd())
    }

    fn close(listener: &TcpListener) {
        let _ = rustix::net::shutdown(listener, Shutdown::Both);
    }

    fn connect(address: &HostPort, attempt: &ConnectAttempt<'_>) -> io::Result<Stream> {
        let HostPort { host, port } = address;
        let addresses = attempt.hosts.resolve(host, *port, attempt.until)?;
        connect(&addresses, attempt).inspect_err(|_| attempt.hosts.forget(host))
    }

    /// CORBA 3.3 part 2, 9.7.3: further addresses of IIOP 1.2. The profile itself has the first.
    fn component(address: &HostPort) -> Option<TaggedComponent<'static>> {
        TaggedComponent::new_alternate_address(&address.host, address.port).ok()
    }

    fn addresses(profile: &IiopProfile) -> Vec<HostPort> {
        let addresses = profile.addresses().filter(|address| address.port != 0);
        addresses.map(|address| HostPort { host: address.host.into_owned(), port: address.port }).collect()
    }
}

/// Connects to the first of several addresses of a machine that answers. An address that does not answer
/// takes only its share of the time.
fn connect(addresses: &[SocketAddr], attempt: &ConnectAttempt<'_>) -> io::Result<Stream> {
    let mut last = None;
    for (&address, left) in addresses.iter().zip((1..=addresses.len()).rev()) {
        match attempt.share(left).and_then(|timeout| connect_address(address, timeout)) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = Some(e),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
}

/// Connects within the timeout; `None` leaves the limit to the system.
fn connect_address(address: SocketAddr, timeout: Option<Duration>) -> io::Result<Stream> {
    if is_reserved(address) {
        return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "the address is reserved (240.0.0.0/4)"));
    }
    let stream = match timeout {
        None => TcpStream::connect(address)?,
        Some(timeout) => TcpStream::connect_timeout(&address, timeout)?,
    };
    // The system can give a port without a listener to the connecting socket itself, which then connects to
    // itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    made(stream)
}

/// Sets the options of both sides: small messages leave at once, and the system detects peers that vanish
/// without notice.
fn made(stream: TcpStream) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
    Ok(Stream::over(stream))
}

/// Whether the address is unusable: 240.0.0.0/4 is reserved (RFC 1112, section 4). References of clients that
/// can only be called over their own connections carry such addresses. Systems that do not refuse them would
/// try until the deadline.
fn is_reserved(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(host) if host.octets()[0] >= 240)
}

fn published(host: &str, bound: SocketAddr) -> HostPort {
    let host = match host.parse::<IpAddr>() {
        Ok(ip) if !ip.is_unspecified() => ip.to_string(),
        Err(_) if !host.is_empty() => host.to_owned(),
        _ => primary_address().to_string(),
    };
    HostPort { host, port: bound.port() }
}

/// The address from which this machine would reach other machines; the loopback address when there is none.
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
    fn what_is_published_follows_the_endpoint() {
        let host = |host: &str| {
            let published = published(host, "127.0.0.1:77".parse().unwrap());
            assert_eq!(published.port, 77);
            published.host
        };
        assert_eq!(host("::1"), "::1");
        assert_eq!(host("server.example"), "server.example");
        assert!(!host("").parse::<IpAddr>().unwrap().is_unspecified());
        assert!(!host("0.0.0.0").parse::<IpAddr>().unwrap().is_unspecified());
    }
}
