//! How TCP connections come about.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use super::Stream;
use crate::deadline::Deadline;

/// Connects to the first of several addresses of a machine that answers. One that does not answer takes its share of
/// the time and no more.
pub(crate) fn connect(addresses: &[SocketAddr], deadline: Deadline) -> io::Result<Stream> {
    let mut last = None;
    for (index, &address) in addresses.iter().enumerate() {
        match connect_address(address, deadline.share(Instant::now(), addresses.len() - index)) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = Some(e),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
}

/// Waits for the next connection.
pub(super) fn accept(listener: &TcpListener) -> io::Result<Stream> {
    made(listener.accept()?.0)
}

fn connect_address(address: SocketAddr, deadline: Deadline) -> io::Result<Stream> {
    if is_nobodys(address) {
        return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "nobody has this address (240.0.0.0/4)"));
    }
    let stream = match deadline.remaining(Instant::now()) {
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        Ok(None) => TcpStream::connect(address)?,
        Ok(Some(left)) => TcpStream::connect_timeout(&address, left)?,
    };
    // A port that nobody listens on can be given to the connecting socket itself, which then talks to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    made(stream)
}

/// What both sides set: small messages leave at once, and peers that vanish without a word do not keep their places for
/// ever.
fn made(stream: TcpStream) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
    Ok(Stream(stream.into()))
}

/// Whether nobody can have the address: it is of those that are kept for no known use (240.0.0.0/4, RFC 1112 section 4),
/// which references of clients carry that can only be called over their own connections. Systems that do not know that
/// would try for as long as there is time.
fn is_nobodys(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(host) if host.octets()[0] >= 240)
}
