//! The system calls of the TCP transport, and nothing that decides.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};

use crate::deadline::Deadline;

/// Connects to the first of several addresses of a machine that answers. One that does not answer takes its share of
/// the time and no more.
pub(crate) fn connect(addresses: &[SocketAddr], deadline: Deadline) -> io::Result<TcpStream> {
    let mut last = None;
    for (index, &address) in addresses.iter().enumerate() {
        match connect_address(address, deadline.share(Instant::now(), addresses.len() - index)) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = Some(e),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
}

fn connect_address(address: SocketAddr, deadline: Deadline) -> io::Result<TcpStream> {
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
    stream.set_nodelay(true)?;
    rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
    Ok(stream)
}

/// Whether nobody can have the address: it is of those that are kept for no known use (240.0.0.0/4, RFC 1112 section 4),
/// which references of clients carry that can only be called over their own connections. Systems that do not know that
/// would try for as long as there is time.
fn is_nobodys(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(host) if host.octets()[0] >= 240)
}

/// What a receive or send gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// So many bytes, at least 1.
    Bytes(usize),
    /// The peer has closed its side.
    End,
    /// Nothing now: would block, or the socket's timeout passed.
    Nothing,
}

/// Receives what has come; blocks while nothing has, at most for the socket's timeout.
#[inline]
pub(crate) fn receive(stream: &TcpStream, space: &mut [u8]) -> io::Result<Moved> {
    moved(rustix::net::recv(stream, space, RecvFlags::empty()).map(|(_, count)| count))
}

/// Receives what has come; never blocks.
#[inline]
pub(crate) fn receive_now(stream: &TcpStream, space: &mut [u8]) -> io::Result<Moved> {
    moved(rustix::net::recv(stream, space, RecvFlags::DONTWAIT).map(|(_, count)| count))
}

#[inline]
fn moved(result: Result<usize, Errno>) -> io::Result<Moved> {
    match result {
        Ok(0) => Ok(Moved::End),
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Nothing),
        Err(e) => Err(e.into()),
    }
}

/// Sends what the socket takes; never blocks.
#[inline]
pub(crate) fn send_now(stream: &TcpStream, bytes: &[u8]) -> io::Result<Moved> {
    match rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Nothing),
        Err(e) => Err(e.into()),
    }
}

/// The same for what lies in pieces.
pub(crate) fn send_pieces_now(stream: &TcpStream, pieces: &[IoSlice<'_>]) -> io::Result<Moved> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match rustix::net::sendmsg(stream, pieces, &mut SendAncillaryBuffer::default(), flags) {
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Nothing),
        Err(e) => Err(e.into()),
    }
}

/// Waits until the socket takes bytes, has failed, or the time is over. `None` waits for ever.
pub(crate) fn wait_writable(stream: &TcpStream, timeout: Option<Duration>) -> io::Result<()> {
    wait(stream, PollFlags::OUT, timeout).map(drop)
}

/// The same, or until bytes have come.
pub(crate) fn wait_writable_or_readable(stream: &TcpStream, timeout: Option<Duration>) -> io::Result<()> {
    wait(stream, PollFlags::OUT | PollFlags::IN, timeout).map(drop)
}

/// True when a receive would give something now: bytes, an end or an error.
pub(crate) fn is_readable(stream: &TcpStream) -> bool {
    wait(stream, PollFlags::IN, Some(Duration::ZERO)).unwrap_or(true)
}

/// True when the peer sends no more, whatever has come before.
pub(crate) fn is_hung_up(stream: &TcpStream) -> bool {
    wait(stream, PollFlags::RDHUP, Some(Duration::ZERO)).unwrap_or(true)
}

fn wait(stream: &TcpStream, flags: PollFlags, timeout: Option<Duration>) -> io::Result<bool> {
    let timeout = timeout.map(|t| Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    let mut fds = [PollFd::new(stream, flags)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}
