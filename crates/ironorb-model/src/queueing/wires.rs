//! Connections, the links under them, and the messages that they carry.

use std::ops::Range;
use std::time::Duration;

use super::world::{Event, Task, World};
use crate::scenario::{Link, LinkRule, Scenario};
use crate::{
    ConnectionThread, LinkState, Place, Random, ResourceObservations, Stream, Table, Time, resources,
};

/// A connection from one process to another.
#[derive(Debug)]
pub(super) struct Wire {
    /// Whether a request has been sent.
    is_introduced: bool,
    /// What serves it, if each connection has a thread.
    pub(super) served_by: ConnectionThread,
    streams: [Stream; 2],
    /// Indices of the links in both directions; [`WITHIN_A_HOST`] for none.
    links: [u32; 2],
}

/// The end to which a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Toward {
    Server = 0,
    Client = 1,
}

const WITHIN_A_HOST: u32 = u32::MAX;

/// The links between hosts that have connections, each direction by itself.
#[derive(Debug)]
pub(super) struct Links {
    random: Random,
    /// Those of the scenario's rules, and the default one.
    kinds: Vec<Link>,
    /// Of each rule, when nothing leaves.
    closed: Vec<Vec<Range<Duration>>>,
    states: Vec<LinkInUse>,
    numbers: Table<(u32, u32), u32>,
}

#[derive(Debug)]
struct LinkInUse {
    state: LinkState,
    kind: u32,
    /// The groups of its hosts.
    groups: (u32, u32),
}

impl Links {
    pub(super) fn of(scenario: &Scenario, seed: u64) -> Links {
        let rules = scenario.links.iter().map(|rule| rule.link);
        Links {
            random: Random::stream(seed, 0),
            kinds: rules.chain([scenario.default_link]).collect(),
            closed: scenario.links.iter().map(LinkRule::closed).collect(),
            states: Vec::new(),
            numbers: Table::default(),
        }
    }
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
        let host_of = |process: u32| self.processes[process as usize].host;
        let (from_host, to_host) = (host_of(place.client), host_of(place.server));
        let links = [self.link(from_host, to_host), self.link(to_host, from_host)];
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
        let link = links[toward as usize];
        if link == WITHIN_A_HOST {
            self.ready.push_back(then);
            return;
        }
        let LinkInUse { state, kind, .. } = &mut self.links.states[link as usize];
        let link = &self.links.kinds[*kind as usize];
        let closed = self.links.closed.get(*kind as usize).map_or(&[][..], Vec::as_slice);
        let at = state.send(link, closed, now, octets, &mut streams[toward as usize]);
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

    fn link(&mut self, from: u32, to: u32) -> u32 {
        if from == to {
            return WITHIN_A_HOST;
        }
        if let Some(number) = self.links.numbers.get(&(from, to)) {
            return *number;
        }
        let groups = (self.hosts[from as usize].group, self.hosts[to as usize].group);
        let random = Random::stream(self.links.random.bits(), 0);
        let mut state = LinkState::new(random);
        state.restart_observation(if self.is_observing { self.observed_from } else { Time::ZERO });
        let number = self.links.states.len() as u32;
        let rule = self.scenario.link_rule_between(groups.0 as usize, groups.1 as usize);
        let kind = rule.unwrap_or(self.scenario.links.len()) as u32;
        self.links.states.push(LinkInUse { state, kind, groups });
        self.links.numbers.insert((from, to), number);
        number
    }

    pub(super) fn restart_links(&mut self, now: Time) {
        self.links.states.iter_mut().for_each(|link| link.state.restart_observation(now));
    }

    pub(super) fn observe_links(&self, now: Time, into: &mut Vec<ResourceObservations>) {
        let observed = |link: &LinkInUse| {
            let (from, to) = link.groups;
            ((from as usize, to as usize), link.state.observe(now, String::new()))
        };
        resources::observe_links(self.scenario, into, self.links.states.iter().map(observed));
    }
}
