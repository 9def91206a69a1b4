//! Connections by shared memory. They begin at a Unix domain socket, where the server hands the memory to
//! each client that connects, before any other byte is sent. So a server never waits for a client, and it
//! reads no byte of a client before there are rings.
//!
//! The socket serves shared memory alone and is not the one of [`Unix`](super::unix::Unix). There a client
//! would have to ask for rings in its first bytes, and the server would have to separate these from GIOP.
//! Other ORBs that connect there must find the protocol that they know.

use std::io;
use std::os::fd::BorrowedFd;

use ironorb_giop::ior::{IiopProfile, TaggedComponent};
use ironorb_shm::{End, Mapping, Offer, Side};
use rustix::event::PollFlags;

use super::rings::Rings;
use super::unix::{self, SocketPath, Unix, UnixListener};
use super::{ConnectAttempt, Listening, Stream, Transport, wait};
use crate::base::time::Clock;

/// Shared memory, within one machine.
pub(crate) struct SharedMemory;

/// The socket at which clients receive shared memory.
#[derive(Debug)]
pub(crate) struct SharedMemoryListener {
    socket: UnixListener,
    ring_bytes: usize,
    clock: Clock,
}

impl Transport for SharedMemory {
    /// `None` for a socket path of the ORB's choice.
    type Endpoint = Option<SocketPath>;
    type Address = SocketPath;
    type Listener = SharedMemoryListener;

    fn read(text: &str) -> Option<Result<Self::Endpoint, &'static str>> {
        let rest = text.strip_prefix("shm:")?;
        match rest.strip_prefix("//") {
            Some(path) => Some(unix::read_path(path)),
            // `shm:2809` is a host named `shm`.
            None => (rest.is_empty() || rest.starts_with('/')).then(|| unix::read_path(rest)),
        }
    }

    fn listen(
        at: &Self::Endpoint,
        options: &Listening<'_>,
    ) -> io::Result<(SharedMemoryListener, SocketPath)> {
        let ring_bytes = options.config.shared_memory_bytes;
        // A wrong setting is reported at the start of the server, and not to each client.
        Mapping::create(ring_bytes)?;
        let (socket, path) = Unix::listen(at, options)?;
        Ok((SharedMemoryListener { socket, ring_bytes, clock: options.clock }, path))
    }

    fn accept(listener: &SharedMemoryListener) -> io::Result<Stream> {
        let socket = listener.socket.accept()?;
        let (mapping, memory) = Mapping::create(listener.ring_bytes)?;
        Offer { ring_bytes: listener.ring_bytes as u32 }.send(&socket, memory)?;
        Ok(Stream::beside(socket, Rings::new(End::new(mapping, Side::Server), listener.clock)))
    }

    fn stop_waiting(listener: &SharedMemoryListener) -> io::Result<BorrowedFd<'_>> {
        listener.socket.stop_waiting()
    }

    fn close(listener: &SharedMemoryListener) {
        listener.socket.close();
    }

    fn connect(address: &SocketPath, attempt: &ConnectAttempt<'_>) -> io::Result<Stream> {
        let socket = unix::connect(address, attempt)?;
        // A server that listens there and offers nothing is of another kind. The reference may have other
        // addresses.
        while !wait(&socket, PollFlags::IN, attempt.remaining()?)? {}
        let (offer, memory) = Offer::receive(&socket)?;
        let mapping = Mapping::open(memory, offer.ring_bytes as usize)?;
        Ok(Stream::beside(socket, Rings::new(End::new(mapping, Side::Client), attempt.clock)))
    }

    fn component(address: &SocketPath) -> Option<TaggedComponent<'static>> {
        TaggedComponent::new_shared_memory_address(&unix::machine_name(), address.as_str()).ok()
    }

    fn addresses(profile: &IiopProfile) -> Vec<SocketPath> {
        unix::of_this_machine(profile.shared_memory_addresses())
    }
}
