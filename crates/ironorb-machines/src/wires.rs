//! Connections, and what they carry over links.

use ironorb::engine::ConnectionId;
use ironorb_model::{ConnectionThread, LinkEnd, LinkNumber, Place, Queue, Stream};

use super::world::{Event, Task, World};

/// A connection. Its number names it to its server.
#[derive(Debug)]
pub(super) struct Wire {
    /// The process that has made it, the one that has accepted it, and for which of the caller's threads.
    pub(super) place: Place,
    /// Its number at the client's engine.
    pub(super) connection: ConnectionId,
    /// Requests that have been written, and that the server's engine has not announced.
    pub(super) written: Queue,
    /// What serves it, if each connection has a thread.
    pub(super) served_by: ConnectionThread,
    streams: [Stream; 2],
    /// By where it leads.
    links: [LinkNumber; 2],
}

/// What a machine has sent at once.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) wire: u32,
    pub(super) toward: Toward,
    pub(super) bytes: Vec<u8>,
}

/// The end to which something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Toward {
    Server = 0,
    Client = 1,
}

impl World<'_> {
    /// Makes a connection from one process to another.
    pub(super) fn add_wire(&mut self, place: Place, connection: ConnectionId) -> u32 {
        let (client, server) = (self.link_end(place.client), self.link_end(place.server));
        let links = [(client, server), (server, client)];
        let links = links.map(|(from, to)| self.links.between(self.scenario, from, to));
        self.wires.push(Wire {
            place,
            connection,
            written: Queue::default(),
            served_by: ConnectionThread::default(),
            streams: [Stream::default(); 2],
            links,
        });
        let wire = (self.wires.len() - 1) as u32;
        self.connections.add(place, wire);
        wire
    }

    /// Sends what a machine has written.
    pub(super) fn transmit(&mut self, wire: u32, toward: Toward, bytes: Vec<u8>) {
        let now = self.now();
        self.digest.take(now.as_ns());
        self.digest.take(u64::from(wire) << 1 | toward as u64);
        self.digest.take_octets(&bytes);
        self.messages += messages_in(&bytes);
        self.octets += bytes.len() as u64;
        self.capture(wire, toward, &bytes);
        let Wire { streams, links, .. } = &mut self.wires[wire as usize];
        let stream = &mut streams[toward as usize];
        let at = self.links.send(links[toward as usize], now, bytes.len() as u64, stream);
        let segment = Segment { wire, toward, bytes };
        match at > now {
            true => self.agenda.enter(at, Event::Arrives(segment)),
            false => self.ready.push_back(Task::Arrives(segment)),
        }
    }

    fn link_end(&self, process: u32) -> LinkEnd {
        let host = self.processes[process as usize].host;
        LinkEnd { host, group: self.hosts[host as usize].group }
    }
}

/// The GIOP messages in what a machine sends at once: whole ones, each with its size.
fn messages_in(mut bytes: &[u8]) -> u64 {
    const HEADER_BYTES: usize = 12;
    let mut count = 0;
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() {
        let size = [header[8], header[9], header[10], header[11]];
        let is_little_endian = header[6] & 1 == 1;
        let size = if is_little_endian { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
        bytes = rest.get(size as usize..).unwrap_or_default();
        count += 1;
    }
    count
}
