//! The system calls of the transports, and nothing that decides.
//!
//! How a connection comes about is a transport's own; once it is there all take the same calls, so drivers know one type
//! of stream and one of listeners.

pub(crate) mod tcp;
pub(crate) mod unix;

use std::io::{self, IoSlice};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
pub(crate) use rustix::net::Shutdown;
use rustix::net::sockopt::{
    Timeout, set_socket_recv_buffer_size, set_socket_send_buffer_size, set_socket_timeout,
};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};

use crate::config::OrbConfig;
use crate::probe::{self, Stage};

/// One connection.
#[derive(Debug)]
pub(crate) struct Stream(OwnedFd);

impl Stream {
    /// Ends one direction or both, for everybody who has the connection.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        Ok(rustix::net::shutdown(&self.0, how)?)
    }

    /// How long [`receive`] blocks; `None` for ever.
    pub(crate) fn set_receive_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(set_socket_timeout(&self.0, Timeout::Recv, timeout)?)
    }

    /// Makes the system's queues as long as the settings say, if they do.
    pub(crate) fn set_queues(&self, config: &OrbConfig) -> io::Result<()> {
        if let Some(bytes) = config.send_queue_bytes {
            set_socket_send_buffer_size(&self.0, bytes)?;
        }
        if let Some(bytes) = config.receive_queue_bytes {
            set_socket_recv_buffer_size(&self.0, bytes)?;
        }
        Ok(())
    }

    /// The same connection for another owner.
    pub(crate) fn try_clone(&self) -> io::Result<Stream> {
        self.0.try_clone().map(Stream)
    }
}

impl AsFd for Stream {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Where connections come in.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(unix::UnixListener),
}

impl Listener {
    /// Waits for the next connection.
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => tcp::accept(listener),
            Listener::Unix(listener) => listener.accept(),
        }
    }

    /// Lets no more connections in. Wakes the thread that accepts.
    pub(crate) fn close(&self) {
        match self {
            Listener::Tcp(listener) => drop(rustix::net::shutdown(listener, Shutdown::Both)),
            Listener::Unix(listener) => listener.close(),
        }
    }
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
pub(crate) fn receive(stream: &Stream, space: &mut [u8]) -> io::Result<Moved> {
    let _probe = probe::receiving();
    moved(rustix::net::recv(stream, space, RecvFlags::empty()).map(|(_, count)| count))
}

/// Receives what has come; never blocks.
#[inline]
pub(crate) fn receive_now(stream: &Stream, space: &mut [u8]) -> io::Result<Moved> {
    let _probe = probe::enter(Stage::Read);
    moved(rustix::net::recv(stream, space, RecvFlags::DONTWAIT).map(|(_, count)| count))
}

/// The same for one who does so again and again.
#[inline]
pub(crate) fn poll_now(stream: &Stream, space: &mut [u8]) -> io::Result<Moved> {
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
pub(crate) fn send_now(stream: &Stream, bytes: &[u8]) -> io::Result<Moved> {
    let _probe = probe::enter(Stage::Write);
    match rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Nothing),
        Err(e) => Err(e.into()),
    }
}

/// The same for what lies in pieces.
pub(crate) fn send_pieces_now(stream: &Stream, pieces: &[IoSlice<'_>]) -> io::Result<Moved> {
    let _probe = probe::enter(Stage::Write);
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match rustix::net::sendmsg(stream, pieces, &mut SendAncillaryBuffer::default(), flags) {
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Nothing),
        Err(e) => Err(e.into()),
    }
}

/// Waits until the socket takes bytes, has failed, or the time is over. `None` waits for ever.
pub(crate) fn wait_writable(stream: &Stream, timeout: Option<Duration>) -> io::Result<()> {
    let _probe = probe::enter(Stage::WaitToWrite);
    wait(stream, PollFlags::OUT, timeout).map(drop)
}

/// The same, or until bytes have come.
pub(crate) fn wait_writable_or_readable(stream: &Stream, timeout: Option<Duration>) -> io::Result<()> {
    let _probe = probe::enter(Stage::WaitToWrite);
    wait(stream, PollFlags::OUT | PollFlags::IN, timeout).map(drop)
}

/// True when a receive gives something within this time.
pub(crate) fn wait_readable(stream: &Stream, timeout: Duration) -> io::Result<bool> {
    wait(stream, PollFlags::IN, Some(timeout))
}

/// True when a receive would give something now: bytes, an end or an error.
pub(crate) fn is_readable(stream: &Stream) -> bool {
    wait(stream, PollFlags::IN, Some(Duration::ZERO)).unwrap_or(true)
}

/// True when the peer sends no more, whatever has come before.
pub(crate) fn is_hung_up(stream: &Stream) -> bool {
    wait(stream, PollFlags::RDHUP, Some(Duration::ZERO)).unwrap_or(true)
}

fn wait(stream: &Stream, flags: PollFlags, timeout: Option<Duration>) -> io::Result<bool> {
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size};

    use super::*;

    #[test]
    fn queues_are_as_long_as_the_settings_say_and_else_as_they_were() {
        let stream = || Stream(UnixStream::pair().unwrap().0.into());
        let lengths = |stream: &Stream| {
            (socket_send_buffer_size(stream).unwrap(), socket_recv_buffer_size(stream).unwrap())
        };
        let (plain, set) = (stream(), stream());
        let usual = lengths(&plain);
        plain.set_queues(&OrbConfig::default()).unwrap();
        assert_eq!(lengths(&plain), usual);
        let config = OrbConfig {
            send_queue_bytes: Some(20_000),
            receive_queue_bytes: Some(10_000),
            ..OrbConfig::default()
        };
        set.set_queues(&config).unwrap();
        // Linux counts its own bookkeeping in, for which it doubles what it is told.
        assert_eq!(lengths(&set), (40_000, 20_000));
    }
}
