//! Transports that programs bring along.

use std::cmp::Ordering;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ironorb_giop::ior::{IiopProfile, TaggedComponent};
use rustix::event::PollFlags;

use super::endpoint::BadAddress;
use super::{Moved, wait};

/// Makes connections of a kind of its own. [`OrbBuilder::transport`](crate::OrbBuilder::transport) adds it to
/// an ORB.
///
/// An address is a text of the transport's own, at most [`ADDRESS_BYTES_MAX`] bytes long. Two addresses are
/// the same if their scheme and text are: connections are shared by this rule, so one place should have one
/// text.
///
/// An ORB may call all functions from several threads at once.
pub trait CustomTransport: fmt::Debug + Send + Sync {
    /// The scheme of its addresses: `pipe` for `pipe://ADDRESS`. Always the same; not `iiop`, `uiop` or
    /// `shm`, which are the ORB's own.
    fn scheme(&self) -> &str;

    /// The number of the component by which references carry its addresses. Always the same. Numbers come
    /// from the OMG; one that other ORBs give another meaning would mislead them.
    fn component_tag(&self) -> u32;

    /// The bytes of the component for an address, without its number; `None` leaves the address out of
    /// references. Never blocks.
    fn component(&self, address: &str) -> Option<Vec<u8>>;

    /// Reads the bytes of a component with the number. They come from a peer and may be anything. `None` skips
    /// the component: it cannot be read, or its address cannot be reached from here. Never blocks or panics.
    fn address(&self, component: &[u8]) -> Option<String>;

    /// Connects to a server. May block for at most `timeout`, or as long as it likes with `None`. Errors of
    /// the kind `TimedOut` count as a timeout, all others as a failure to connect; after either the call goes
    /// on to the reference's next address, if it has time left.
    fn connect(&self, address: &str, timeout: Option<Duration>) -> io::Result<Box<dyn CustomStream>>;

    /// Begins to listen. Also returns the address for references, which may differ from the one asked for.
    /// Does not wait for clients. An error ends the start of the ORB.
    fn listen(&self, address: &str) -> io::Result<(Box<dyn CustomListener>, String)>;
}

/// The place at which a server of a [`CustomTransport`] listens. Dropping it closes it.
pub trait CustomListener: fmt::Debug + Send + Sync {
    /// Waits for the next connection, on a thread for this listener alone. Must not wait for an action of the
    /// client after it has connected, because others could not connect meanwhile. After an error the ORB
    /// tries again 10 ms later, until it has closed the listener.
    fn accept(&self) -> io::Result<Box<dyn CustomStream>>;

    /// Stops listening, and has [`accept`](Self::accept) return with an error, now and from now on. Never
    /// blocks. May be called twice.
    fn close(&self);
}

/// One connection of a [`CustomTransport`]: bytes in both directions, in order and without loss. Dropping it
/// closes it.
///
/// Its file descriptor is the same as long as it lives and works with poll(2) and epoll(7). It is readable
/// when [`receive`](Self::receive) gives bytes, an end or an error, and writable when [`send`](Self::send)
/// takes bytes or fails. If it says so in vain, the ORB looks once more and waits again. The ORB holds a
/// duplicate and never reads, writes or closes the transport's own.
pub trait CustomStream: AsFd + fmt::Debug + Send + Sync {
    /// Receives what has come, up to the length of the space, which is not empty. Never blocks.
    fn receive(&self, space: &mut [u8]) -> io::Result<Moved>;

    /// Sends pieces one after the other, as far as there is room; the number of bytes may end inside a piece.
    /// Never blocks, and raises no signal. One thread sends at a time, while others may receive.
    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<Moved>;

    /// Ends one direction or both. Threads that wait at the descriptor on either side wake, and the peer
    /// receives an end after the bytes that were sent before. Never blocks. May be called twice.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;

    /// Whether [`receive`](Self::receive) gives bytes that the descriptor does not show: those that the
    /// stream has read ahead. Never blocks.
    fn has_read_ahead(&self) -> bool {
        false
    }

    /// Whether the descriptor reports POLLRDHUP or POLLHUP as soon as the peer sends no more, as that of a socket does.
    /// Always the same for one stream. The client then learns of the end of an idle connection from epoll(7). Otherwise a
    /// call that finds the connection unused for 20 ms receives once before it sends. Never blocks.
    fn shows_end(&self) -> bool {
        false
    }
}

/// The longest address of a [`CustomTransport`]. Longer ones in references are skipped.
pub const ADDRESS_BYTES_MAX: usize = 1024;

/// A connection of a transport of the program's own.
#[derive(Debug)]
pub(super) struct Custom {
    stream: Box<dyn CustomStream>,
    /// How long [`receive`](Self::receive) blocks, in microseconds; 0 is without limit.
    receive_timeout_us: AtomicU64,
}

impl Custom {
    pub(super) fn new(stream: Box<dyn CustomStream>) -> Custom {
        Custom { stream, receive_timeout_us: AtomicU64::new(0) }
    }

    pub(super) fn set_receive_timeout(&self, timeout: Option<Duration>) {
        let us = timeout.map_or(0, |it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX).max(1));
        self.receive_timeout_us.store(us, Relaxed);
    }

    /// Receives what has come. Blocks while nothing has come, for at most the timeout.
    pub(super) fn receive(&self, socket: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<Moved> {
        match self.receive_now(space)? {
            Moved::Nothing => {
                let timeout = match self.receive_timeout_us.load(Relaxed) {
                    0 => None,
                    us => Some(Duration::from_micros(us)),
                };
                wait(socket, PollFlags::IN, timeout)?;
                self.receive_now(space)
            }
            moved => Ok(moved),
        }
    }

    /// Receives what has come. Never blocks. A stream that claims more than there was space for is refused.
    pub(super) fn receive_now(&self, space: &mut [u8]) -> io::Result<Moved> {
        within(self.stream.receive(space)?, space.len())
    }

    /// Sends what there is room for. Never blocks.
    pub(super) fn send_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<Moved> {
        within(self.stream.send(pieces)?, pieces.iter().map(|piece| piece.len()).sum())
    }

    pub(super) fn shutdown(&self, how: super::Shutdown) -> io::Result<()> {
        self.stream.shutdown(match how {
            super::Shutdown::Read => Shutdown::Read,
            super::Shutdown::Write => Shutdown::Write,
            super::Shutdown::Both => Shutdown::Both,
        })
    }

    pub(super) fn has_read_ahead(&self) -> bool {
        self.stream.has_read_ahead()
    }

    pub(super) fn shows_end(&self) -> bool {
        self.stream.shows_end()
    }

    /// Waits at the descriptor, unless bytes are wanted that have been read ahead.
    pub(super) fn wait_for(
        &self,
        socket: BorrowedFd<'_>,
        flags: PollFlags,
        timeout: Option<Duration>,
    ) -> io::Result<bool> {
        Ok(flags.contains(PollFlags::IN) && self.has_read_ahead() || wait(socket, flags, timeout)?)
    }
}

/// Checks the count of a stream that is not ours. No bytes at all are nothing.
fn within(moved: Moved, bytes_max: usize) -> io::Result<Moved> {
    match moved {
        Moved::Bytes(0) if bytes_max > 0 => Ok(Moved::Nothing),
        Moved::Bytes(count) if count > bytes_max => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the transport moved more bytes than there are"))
        }
        moved => Ok(moved),
    }
}

/// The address of a server of a transport of the program's own.
#[derive(Debug, Clone)]
pub(crate) struct CustomAddress {
    transport: Arc<dyn CustomTransport>,
    text: String,
}

impl CustomAddress {
    /// Reads `scheme://text`; `None` when none of the transports has the scheme.
    pub(crate) fn read(
        text: &str,
        transports: &[Arc<dyn CustomTransport>],
    ) -> Option<Result<CustomAddress, BadAddress>> {
        let (scheme, rest) = text.split_once("://")?;
        let transport = transports.iter().find(|it| it.scheme() == scheme)?;
        let address = CustomAddress::new(transport, rest.to_owned());
        Some(address.ok_or_else(|| BadAddress::new(text, "it has more than 1024 bytes")))
    }

    fn new(transport: &Arc<dyn CustomTransport>, text: String) -> Option<CustomAddress> {
        (text.len() <= ADDRESS_BYTES_MAX).then(|| CustomAddress { transport: transport.clone(), text })
    }

    /// The addresses of a transport in a profile, which is untrusted input.
    pub(super) fn all_in(
        profile: &IiopProfile,
        transport: &Arc<dyn CustomTransport>,
    ) -> impl Iterator<Item = CustomAddress> {
        let components = profile.components().filter(|it| it.tag == transport.component_tag());
        components.filter_map(|it| CustomAddress::new(transport, transport.address(&it.data)?))
    }

    pub(super) fn component(&self) -> Option<TaggedComponent<'static>> {
        let data = self.transport.component(&self.text)?;
        Some(TaggedComponent { tag: self.transport.component_tag(), data: data.into() })
    }

    pub(super) fn connect(&self, timeout: Option<Duration>) -> io::Result<Box<dyn CustomStream>> {
        self.transport.connect(&self.text, timeout)
    }

    /// Begins to listen. Also returns the address for references.
    pub(super) fn listen(&self) -> io::Result<(Box<dyn CustomListener>, CustomAddress)> {
        let (listener, text) = self.transport.listen(&self.text)?;
        let address = CustomAddress::new(&self.transport, text);
        let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "its address has more than 1024 bytes");
        Ok((listener, address.ok_or_else(too_long)?))
    }

    fn key(&self) -> (&str, &str) {
        (self.transport.scheme(), &self.text)
    }
}

impl PartialEq for CustomAddress {
    fn eq(&self, other: &CustomAddress) -> bool {
        self.key() == other.key()
    }
}

impl Eq for CustomAddress {}

impl PartialOrd for CustomAddress {
    fn partial_cmp(&self, other: &CustomAddress) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CustomAddress {
    fn cmp(&self, other: &CustomAddress) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Writes `scheme://text`.
impl fmt::Display for CustomAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.transport.scheme(), self.text)
    }
}
