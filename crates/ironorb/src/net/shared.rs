//! How connections by shared memory come about: at a Unix domain socket, where the server hands the memory to whoever connects,
//! before anything is said. So a server never waits for a client, and no byte of a client's is read before there are rings.
//!
//! A socket for this alone, and not the one of [`Unix`](super::unix::Unix): there a client that wants rings would have to ask
//! for them in its first bytes, and the server would have to tell these from GIOP wherever it first reads - and other ORBs
//! that connect there must find what they know.

use std::io;
use std::time::{Duration, Instant};

use ironorb_giop::ior::{IiopProfile, TaggedComponent};
use ironorb_shm::{End, Mapping, Offer, Side};
use rustix::event::PollFlags;

use super::rings::Rings;
use super::unix::{self, SocketPath, Unix, UnixListener};
use super::{Dialling, Stream, Transport, wait};
use crate::config::OrbConfig;

/// Shared memory, within one machine.
pub(crate) struct SharedMemory;

/// Where clients are handed memory.
#[derive(Debug)]
pub(crate) struct SharedMemoryListener {
    socket: UnixListener,
    ring_bytes: usize,
}

impl Transport for SharedMemory {
    /// `None` for a socket of our choice.
    type Endpoint = Option<SocketPath>;
    type Address = SocketPath;
    type Listener = SharedMemoryListener;

    fn read(text: &str) -> Option<Result<Self::Endpoint, &'static str>> {
        let rest = text.strip_prefix("shm:")?;
        match rest.strip_prefix("//") {
            Some(path) => Some(unix::read_path(path)),
            // `shm:2809` is a host of that name.
            None => (rest.is_empty() || rest.starts_with('/')).then(|| unix::read_path(rest)),
        }
    }

    fn listen(at: &Self::Endpoint, config: &OrbConfig) -> io::Result<(SharedMemoryListener, SocketPath)> {
        let ring_bytes = config.shared_memory_bytes;
        // So that whoever starts the server learns what is wrong, and not each client.
        Mapping::create(ring_bytes)?;
        let (socket, path) = Unix::listen(at, config)?;
        Ok((SharedMemoryListener { socket, ring_bytes }, path))
    }

    fn accept(listener: &SharedMemoryListener) -> io::Result<Stream> {
        let socket = listener.socket.accept()?;
        let (mapping, memory) = Mapping::create(listener.ring_bytes)?;
        Offer { ring_bytes: listener.ring_bytes as u32 }.send(&socket, memory)?;
        Ok(Stream::beside(socket, Rings::new(End::new(mapping, Side::Server))))
    }

    fn close(listener: &SharedMemoryListener) {
        listener.socket.close();
    }

    fn connect(address: &SocketPath, dialling: &Dialling<'_>) -> io::Result<Stream> {
        let socket = unix::connect(address, dialling.deadline)?;
        // Who listens there and offers nothing is no such server; there may be other addresses.
        while !wait(&socket, PollFlags::IN, Some(LOOK_EVERY))? {
            dialling.deadline.remaining(Instant::now()).map_err(|_| io::ErrorKind::TimedOut)?;
        }
        let (offer, memory) = Offer::receive(&socket)?;
        let mapping = Mapping::open(memory, offer.ring_bytes as usize)?;
        Ok(Stream::beside(socket, Rings::new(End::new(mapping, Side::Client))))
    }

    fn component(address: &SocketPath) -> Option<TaggedComponent<'static>> {
        TaggedComponent::new_shared_memory_address(&unix::machine_name(), address.as_str()).ok()
    }

    fn addresses(profile: &IiopProfile) -> Vec<SocketPath> {
        unix::of_this_machine(profile.shared_memory_addresses())
    }
}

/// How much later than its deadline an attempt may end. A server makes its offer as soon as it has accepted.
const LOOK_EVERY: Duration = Duration::from_millis(10);
