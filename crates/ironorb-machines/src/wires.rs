//! Connections, and the links under them.

use std::ops::Range;
use std::time::Duration;

use ironorb::engine::ConnectionId;
use ironorb_model::scenario::{Link, LinkRule, Scenario};
use ironorb_model::{
    ConnectionThread, LinkState, Place, Queue, Random, ResourceObservations, Stream, Table, Time, resources,
};

use super::hosts::HostNumber;
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
    links: [u32; 2],
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

/// Both directions of the links between hosts that have connections.
#[derive(Debug)]
pub(super) struct Links {
    random: Random,
    kinds: Vec<Link>,
    /// Of each rule, when nothing leaves.
    closed: Vec<Vec<Range<Duration>>>,
    directions: Vec<Direction>,
    numbers: Table<(HostNumber, HostNumber), u32>,
}

/// A link between two hosts in one direction.
#[derive(Debug)]
struct Direction {
    state: LinkState,
    /// The index of its kind.
    kind: u32,
    /// The groups of its hosts.
    groups: (u32, u32),
}

impl Links {
    pub(super) fn of(scenario: &Scenario, seed: u64) -> Links {
        let rules = scenario.links.iter().map(|rule| rule.link);
        Links {
            random: Random::stream(seed, 0),
            kinds: rules.chain([scenario.default_link, Link::WITHIN_A_HOST]).collect(),
            closed: scenario.links.iter().map(LinkRule::closed).collect(),
            directions: Vec::new(),
            numbers: Table::default(),
        }
    }

    pub(super) fn restart_observation(&mut self, now: Time) {
        self.directions.iter_mut().for_each(|direction| direction.state.restart_observation(now));
    }

    /// What links between hosts have carried.
    pub(super) fn observe(&self, now: Time, scenario: &Scenario, into: &mut Vec<ResourceObservations>) {
        let within_a_host = self.kinds.len() - 1;
        let links = self.directions.iter().filter(|direction| direction.kind as usize != within_a_host);
        let observed = |direction: &Direction| {
            let (from, to) = direction.groups;
            ((from as usize, to as usize), direction.state.observe(now, String::new()))
        };
        resources::observe_links(scenario, into, links.map(observed));
    }
}

impl World<'_> {
    /// Makes a connection from one process to another.
    pub(super) fn add_wire(&mut self, place: Place, connection: ConnectionId) -> u32 {
        let host_of = |process: u32| self.processes[process as usize].host;
        let (from, to) = (host_of(place.client), host_of(place.server));
        let links = [self.link(from, to), self.link(to, from)];
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
        let Direction { state, kind, .. } = &mut self.links.directions[links[toward as usize] as usize];
        let link = &self.links.kinds[*kind as usize];
        let stream = &mut streams[toward as usize];
        let closed = self.links.closed.get(*kind as usize).map_or(&[][..], Vec::as_slice);
        let at = state.send(link, closed, now, bytes.len() as u64, stream);
        let segment = Segment { wire, toward, bytes };
        match at > now {
            true => self.agenda.enter(at, Event::Arrives(segment)),
            false => self.ready.push_back(Task::Arrives(segment)),
        }
    }

    /// The link in one direction.
    fn link(&mut self, from: HostNumber, to: HostNumber) -> u32 {
        if let Some(number) = self.links.numbers.get(&(from, to)) {
            return *number;
        }
        let kind = self.link_kind(from, to) as u32;
        let groups = (self.hosts[from as usize].group, self.hosts[to as usize].group);
        let number = self.links.directions.len() as u32;
        let mut state = LinkState::new(Random::stream(self.links.random.bits(), 0));
        state.restart_observation(if self.is_observing { self.observed_from } else { Time::ZERO });
        self.links.directions.push(Direction { state, kind, groups });
        self.links.numbers.insert((from, to), number);
        number
    }

    fn link_kind(&self, from: HostNumber, to: HostNumber) -> usize {
        let rules = &self.scenario.links;
        if from == to {
            return rules.len() + 1;
        }
        let group = |host: HostNumber| self.hosts[host as usize].group as usize;
        self.scenario.link_rule_between(group(from), group(to)).unwrap_or(rules.len())
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
