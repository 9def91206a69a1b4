//! Connections, and the messages that they carry over links.

use super::world::{Event, Task, World};
use crate::{ConnectionThread, LinkEnd, LinkNumber, Place, Stream};

/// A connection from one process to another.
#[derive(Debug)]
pub(super) struct Wire {
    /// Whether a request has been sent.
    is_introduced: bool,
    /// What serves it, if each connection has a thread.
    pub(super) served_by: ConnectionThread,
    streams: [Stream; 2],
    /// By where it leads.
    links: [LinkNumber; 2],
}

/// The end to which a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Toward {
    Server = 0,
    Client = 1,
}

impl World<'_> {
    /// The connection over which a thread of one process calls another process. It is made when it is first asked for.
    #[inline]
    pub(super) fn wire(&mut self, from: u32, thread: u32, to: u32) -> u32 {
        let found = self.connections.of_thread(from, thread, to);
        found.unwrap_or_else(|place| self.add_wire(place))
    }

    /// The connection in a place. It is made when it is first asked for.
    pub(super) fn wire_at(&mut self, place: Place) -> u32 {
        self.connections.at(place).unwrap_or_else(|place| self.add_wire(place))
    }

    fn add_wire(&mut self, place: Place) -> u32 {
        let (client, server) = (self.link_end(place.client), self.link_end(place.server));
        let links = [(client, server), (server, client)];
        let links = links.map(|(from, to)| self.links.between(self.scenario, from, to));
        self.wires.push(Wire {
            is_introduced: false,
            served_by: ConnectionThread::default(),
            streams: [Stream::default(); 2],
            links,
        });
        let wire = (self.wires.len() - 1) as u32;
        self.connections.add(place, wire);
        wire
    }

    /// True for the first request of a connection.
    #[inline]
    pub(super) fn introduces(&mut self, wire: u32) -> bool {
        !std::mem::replace(&mut self.wires[wire as usize].is_introduced, true)
    }

    /// Sends a message, and goes on with the task where it arrives.
    #[inline]
    pub(super) fn transmit(&mut self, wire: u32, toward: Toward, octets: u64, then: Task) {
        let now = self.agenda.now();
        self.messages += 1;
        self.octets += octets;
        self.digest.take(now.as_ns());
        self.digest.take(u64::from(wire) << 33 ^ (toward as u64) << 32 ^ octets);
        let Wire { streams, links, .. } = &mut self.wires[wire as usize];
        let at = self.links.send(links[toward as usize], now, octets, &mut streams[toward as usize]);
        match at > now {
            true => self.agenda.enter(at, Event::Arrives(then)),
            false => self.ready.push_back(then),
        }
    }

    /// The payload of a packet from one process to another.
    pub(super) fn mtu(&self, from: u32, to: u32) -> u32 {
        let group = |process: u32| self.hosts[self.processes[process as usize].host as usize].group as usize;
        self.scenario.link_between(group(from), group(to)).mtu
    }

    fn link_end(&self, process: u32) -> LinkEnd {
        let host = self.processes[process as usize].host;
        LinkEnd { host, group: self.hosts[host as usize].group }
    }
}
