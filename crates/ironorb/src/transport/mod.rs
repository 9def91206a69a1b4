//! Transports of the program's own, beside TCP, Unix sockets and shared memory. See [`CustomTransport`].

// The system calls of the transports. Nothing here decides. Each `address::Transport` makes its connections and
// writes them into references in its own way. A connection is a `Stream`, which drivers use in one way for all
// transports.

mod address;
mod custom;
pub(crate) mod endpoint;
mod peer;
mod properties;
mod rings;
pub(crate) mod shared;
pub(crate) mod socket_options;
pub(crate) mod tcp;
pub(crate) mod unix;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use ironorb_shm::Wanted;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
pub(crate) use rustix::net::Shutdown;
use rustix::net::sockopt::{
    Timeout, set_socket_recv_buffer_size, set_socket_send_buffer_size, set_socket_timeout,
};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};

use crate::base::config::OrbConfig;
use crate::base::probe::{self, Stage};
pub use address::Endpoint;
pub(crate) use address::{Address, ConnectAttempt, Hosts, Listener, Listening, Transport};
use custom::Custom;
pub(crate) use custom::CustomAddress;
pub use custom::{ADDRESS_BYTES_MAX, CustomListener, CustomStream, CustomTransport};
pub use properties::{CodePoint, TcpProperties};
use rings::Rings;

/// One connection.
///
/// Every connection has a socket, which a thread with many connections can wait on. The choice between socket
/// and something else is one branch, which takes the same turn as long as the connection lives. A trait object
/// would add an indirect call to every send and receive, and a type parameter would compile every driver once
/// for each transport.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: OwnedFd,
    /// Through what the bytes go; `None` when they go over the socket.
    beside: Option<Arc<Beside>>,
}

/// What carries the bytes of a connection instead of its socket.
#[derive(Debug)]
enum Beside {
    Rings(Rings),
    /// The socket itself, which acknowledges each receive at once. Stands here so that other sockets pay nothing.
    QuickSocket,
    /// The program's own. The socket is a duplicate of its descriptor.
    Custom(Custom),
}

/// Out of line, so that calls over sockets are compiled as if there were nothing else.
impl Beside {
    #[inline(never)]
    fn receive(&self, socket: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<Moved> {
        match self {
            Beside::Rings(rings) => rings.receive(socket, space),
            Beside::QuickSocket => receive_quickly(socket, space, RecvFlags::empty()),
            Beside::Custom(custom) => custom.receive(socket, space),
        }
    }

    #[inline(never)]
    fn receive_now(&self, socket: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<Moved> {
        match self {
            Beside::Rings(rings) => rings.receive_now(socket, space),
            Beside::QuickSocket => receive_quickly(socket, space, RecvFlags::DONTWAIT),
            Beside::Custom(custom) => custom.receive_now(space),
        }
    }

    #[inline(never)]
    fn poll(&self, socket: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<Moved> {
        match self {
            Beside::Rings(rings) => rings.poll(socket, space),
            Beside::QuickSocket => receive_quickly(socket, space, RecvFlags::DONTWAIT),
            Beside::Custom(custom) => custom.receive_now(space),
        }
    }

    #[inline(never)]
    fn send_now(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<Moved> {
        match self {
            Beside::Rings(rings) => rings.send_now(socket, bytes),
            Beside::QuickSocket => send_to_socket(socket, bytes),
            Beside::Custom(custom) => custom.send_now(&[IoSlice::new(bytes)]),
        }
    }
}

impl Stream {
    /// Makes a stream over a socket.
    fn over(socket: impl Into<OwnedFd>) -> Stream {
        Stream { socket: socket.into(), beside: None }
    }

    /// Makes a stream whose bytes go through shared memory beside a socket.
    fn beside(socket: impl Into<OwnedFd>, rings: Rings) -> Stream {
        Stream { socket: socket.into(), beside: Some(Arc::new(Beside::Rings(rings))) }
    }

    /// Makes a stream of a connection that the program brings along.
    fn custom(stream: Box<dyn CustomStream>) -> io::Result<Stream> {
        let socket = stream.as_fd().try_clone_to_owned()?;
        Ok(Stream { socket, beside: Some(Arc::new(Beside::Custom(Custom::new(stream)))) })
    }

    /// Ends one direction or both, for all owners of the connection.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if let Some(Beside::Custom(custom)) = self.beside.as_deref() {
            return custom.shutdown(how);
        }
        let result = rustix::net::shutdown(&self.socket, how);
        if let Some(Beside::Rings(rings)) = self.beside.as_deref() {
            rings.has_been_shut_down(how != Shutdown::Read);
        }
        Ok(result?)
    }

    /// Sets how long [`receive`] blocks; `None` is without limit.
    pub(crate) fn set_receive_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self.beside.as_deref() {
            None | Some(Beside::QuickSocket) => set_socket_timeout(&self.socket, Timeout::Recv, timeout)?,
            Some(Beside::Rings(rings)) => rings.set_receive_timeout(timeout),
            Some(Beside::Custom(custom)) => custom.set_receive_timeout(timeout),
        }
        Ok(())
    }

    /// Gives the socket the options and the lengths of the system's queues that the settings give.
    pub(crate) fn with_options(mut self, config: &OrbConfig) -> io::Result<Stream> {
        if self.beside.is_some() {
            return Ok(self); // it carries nothing, or is not ours
        }
        if let Some(bytes) = config.send_queue_bytes {
            set_socket_send_buffer_size(&self.socket, bytes)?;
        }
        if let Some(bytes) = config.receive_queue_bytes {
            set_socket_recv_buffer_size(&self.socket, bytes)?;
        }
        socket_options::apply(self.as_fd(), config)?;
        if config.tcp_quick_ack && socket_options::is_tcp(&self) {
            self.beside = Some(Arc::new(Beside::QuickSocket));
        }
        Ok(self)
    }

    /// Makes a second handle of the connection, for another owner.
    pub(crate) fn try_clone(&self) -> io::Result<Stream> {
        Ok(Stream { socket: self.socket.try_clone()?, beside: self.beside.clone() })
    }

    /// Prepares the wait in an `epoll` for bytes or for room. The `epoll` then waits for readable or writable
    /// where [`readiness_shows`](Self::readiness_shows), otherwise for readable only. True when bytes or room
    /// are there already and the `epoll` will not report them: then the caller must look.
    #[inline]
    pub(crate) fn leave_to_epoll(&self, bytes: bool, room: bool) -> bool {
        match self.beside.as_deref() {
            None | Some(Beside::QuickSocket) => false,
            Some(Beside::Custom(custom)) => bytes && custom.has_read_ahead(),
            Some(Beside::Rings(rings)) => {
                let wanted = match (bytes, room) {
                    (true, true) => Wanted::Any,
                    (true, false) => Wanted::Bytes,
                    (false, true) => Wanted::Room,
                    (false, false) => return false,
                };
                rings.want_bell(self.as_fd(), wanted)
            }
        }
    }

    /// True when the socket is writable as soon as there is room. False when it becomes readable instead.
    #[inline]
    pub(crate) fn readiness_shows(&self) -> bool {
        !matches!(self.beside.as_deref(), Some(Beside::Rings(_)))
    }

    /// True when the socket shows at once that the peer sends no more, as [`is_hung_up`] and an `epoll` report it. The
    /// socket beside shared memory does.
    pub(crate) fn shows_end(&self) -> bool {
        match self.beside.as_deref() {
            Some(Beside::Custom(custom)) => custom.shows_end(),
            Some(Beside::Rings(_) | Beside::QuickSocket) | None => true,
        }
    }
}

impl Stream {
    /// What polling the connection costs.
    #[inline]
    pub(crate) fn pace(&self) -> Pace {
        if self.readiness_shows() { Pace::SystemCall } else { Pace::Memory }
    }
}

impl AsFd for Stream {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What a poll of a connection costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A poll is a system call, compared with which reading the clock is cheap.
    SystemCall,
    /// A poll is a read of memory.
    Memory,
}

/// The result of a receive or a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The number of bytes, at least 1.
    Bytes(usize),
    /// The peer has closed its side.
    End,
    /// Nothing now: the call would block, or the stream's timeout passed.
    Nothing,
}

/// Receives what has come. Blocks while nothing has come, for at most the socket's timeout.
#[inline]
pub(crate) fn receive(stream: &Stream, space: &mut [u8]) -> io::Result<Moved> {
    let _probe = probe::receiving();
    if let Some(beside) = stream.beside.as_deref() {
        return beside.receive(stream.as_fd(), space);
    }
    moved(rustix::net::recv(stream, space, RecvFlags::empty()).map(|(_, count)| count))
}

/// Receives what has come. Never blocks.
#[inline]
pub(crate) fn receive_now(stream: &Stream, space: &mut [u8]) -> io::Result<Moved> {
    let _probe = probe::enter(Stage::Read);
    if let Some(beside) = stream.beside.as_deref() {
        return beside.receive_now(stream.as_fd(), space);
    }
    moved(rustix::net::recv(stream, space, RecvFlags::DONTWAIT).map(|(_, count)| count))
}

/// Receives what has come, for a caller that polls. Never blocks. With shared memory most polls make no
/// system call.
#[inline]
pub(crate) fn poll_now(stream: &Stream, space: &mut [u8]) -> io::Result<Moved> {
    if let Some(beside) = stream.beside.as_deref() {
        return beside.poll(stream.as_fd(), space);
    }
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

/// Sends what the socket takes. Never blocks.
#[inline]
pub(crate) fn send_now(stream: &Stream, bytes: &[u8]) -> io::Result<Moved> {
    let _probe = probe::enter(Stage::Write);
    if let Some(beside) = stream.beside.as_deref() {
        return beside.send_now(stream.as_fd(), bytes);
    }
    send_to_socket(stream.as_fd(), bytes)
}

#[inline]
fn send_to_socket(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<Moved> {
    match rustix::net::send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Nothing),
        Err(e) => Err(e.into()),
    }
}

fn receive_quickly(socket: BorrowedFd<'_>, space: &mut [u8], flags: RecvFlags) -> io::Result<Moved> {
    let received = moved(rustix::net::recv(socket, space, flags).map(|(_, count)| count));
    if matches!(received, Ok(Moved::Bytes(_))) {
        socket_options::acknowledge_at_once(socket);
    }
    received
}

/// The most pieces of a message that are sent at a time: the bytes before a long run, the run, and the bytes
/// behind it.
pub(crate) const PIECES_MAX: usize = 3;

/// Sends pieces with one system call, as far as the socket takes them. Never blocks.
pub(crate) fn send_pieces_now(stream: &Stream, pieces: &[IoSlice<'_>]) -> io::Result<Moved> {
    let _probe = probe::enter(Stage::Write);
    if let Some(beside) = stream.beside.as_deref() {
        match beside {
            Beside::Rings(rings) => return send_each(rings, stream, pieces),
            Beside::Custom(custom) => return custom.send_now(pieces),
            Beside::QuickSocket => {}
        }
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match rustix::net::sendmsg(stream, pieces, &mut SendAncillaryBuffer::default(), flags) {
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Nothing),
        Err(e) => Err(e.into()),
    }
}

/// Sends pieces one after the other, until all are sent or one is not sent as a whole.
fn send_each(rings: &Rings, stream: &Stream, pieces: &[IoSlice<'_>]) -> io::Result<Moved> {
    let mut sent = 0;
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        match rings.send_now(stream.as_fd(), piece) {
            Ok(Moved::Bytes(count)) => {
                sent += count;
                if count < piece.len() {
                    break;
                }
            }
            Ok(Moved::Nothing | Moved::End) => break,
            // The error shows again at the next send.
            Err(_) if sent > 0 => break,
            Err(e) => return Err(e),
        }
    }
    Ok(if sent > 0 || pieces.iter().all(|piece| piece.is_empty()) {
        Moved::Bytes(sent)
    } else {
        Moved::Nothing
    })
}

/// Waits until the connection takes bytes, has failed, or the timeout has passed. `None` waits without limit.
pub(crate) fn wait_writable(stream: &Stream, timeout: Option<Duration>) -> io::Result<()> {
    let _probe = probe::enter(Stage::WaitToWrite);
    wait_for(stream, PollFlags::OUT, Wanted::Room, timeout).map(drop)
}

/// Waits until the connection takes bytes, bytes have come, it has failed, or the timeout has passed.
pub(crate) fn wait_writable_or_readable(stream: &Stream, timeout: Option<Duration>) -> io::Result<()> {
    let _probe = probe::enter(Stage::WaitToWrite);
    wait_for(stream, PollFlags::OUT | PollFlags::IN, Wanted::Any, timeout).map(drop)
}

/// True when a receive gives something within the timeout.
pub(crate) fn wait_readable(stream: &Stream, timeout: Duration) -> io::Result<bool> {
    wait_for(stream, PollFlags::IN, Wanted::Bytes, Some(timeout))
}

/// True when a receive would give something now: bytes, or in most cases also an end or an error.
pub(crate) fn is_readable(stream: &Stream) -> bool {
    match stream.beside.as_deref() {
        None | Some(Beside::QuickSocket) => wait(stream, PollFlags::IN, Some(Duration::ZERO)).unwrap_or(true),
        Some(Beside::Rings(rings)) => rings.has_bytes(),
        Some(Beside::Custom(custom)) => {
            custom.wait_for(stream.as_fd(), PollFlags::IN, Some(Duration::ZERO)).unwrap_or(true)
        }
    }
}

/// True when the peer sends no more, whether or not bytes have come before.
pub(crate) fn is_hung_up(stream: &Stream) -> bool {
    wait(stream, PollFlags::RDHUP, Some(Duration::ZERO)).unwrap_or(true)
}

fn wait_for(
    stream: &Stream,
    flags: PollFlags,
    wanted: Wanted,
    timeout: Option<Duration>,
) -> io::Result<bool> {
    match stream.beside.as_deref() {
        None | Some(Beside::QuickSocket) => wait(stream, flags, timeout),
        Some(Beside::Rings(rings)) => rings.wait_for(stream.as_fd(), wanted, timeout),
        Some(Beside::Custom(custom)) => custom.wait_for(stream.as_fd(), flags, timeout),
    }
}

fn wait(socket: impl AsFd, flags: PollFlags, timeout: Option<Duration>) -> io::Result<bool> {
    let timeout = timeout.map(|t| Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    let mut fds = [PollFd::new(&socket, flags)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size};

    use super::*;

    #[test]
    fn a_connection_that_acknowledges_at_once_says_so_with_each_receive() {
        use std::io::Write as _;
        use std::net::{TcpListener, TcpStream};

        use rustix::net::sockopt::{set_tcp_quickack, tcp_quickack};

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let config = OrbConfig { tcp_quick_ack: true, ..OrbConfig::default() };
        let stream = Stream::over(listener.accept().unwrap().0).with_options(&config).unwrap();
        assert!(stream.is_from_this_machine());
        for _ in 0..3 {
            // As the system does when a reply leaves.
            set_tcp_quickack(&stream, false).unwrap();
            peer.write_all(&[7]).unwrap();
            assert_eq!(receive(&stream, &mut [0; 8]).unwrap(), Moved::Bytes(1));
            assert!(tcp_quickack(&stream).unwrap());
            assert_eq!(receive_now(&stream, &mut [0; 8]).unwrap(), Moved::Nothing);
        }
    }

    #[test]
    fn queues_are_as_long_as_the_settings_say_and_else_as_they_were() {
        let stream = || Stream::over(UnixStream::pair().unwrap().0);
        let lengths = |stream: &Stream| {
            (socket_send_buffer_size(stream).unwrap(), socket_recv_buffer_size(stream).unwrap())
        };
        let (plain, set) = (stream(), stream());
        let usual = lengths(&plain);
        let plain = plain.with_options(&OrbConfig::default()).unwrap();
        assert_eq!(lengths(&plain), usual);
        let config = OrbConfig {
            send_queue_bytes: Some(20_000),
            receive_queue_bytes: Some(10_000),
            ..OrbConfig::default()
        };
        let set = set.with_options(&config).unwrap();
        // Linux doubles the given length to make room for its own bookkeeping.
        assert_eq!(lengths(&set), (40_000, 20_000));
    }
}
