//! What machines send, as packets of a capture.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};

use ironorb_model::record::Extent;
use ironorb_model::record::pcapng::{About, Capture, End, SEGMENT_OCTETS};
use ironorb_model::scenario::Scenario;
use ironorb_model::{Place, Table, Time};

use super::wires::Toward;
use super::world::World;

/// Writes all that the machines of a run send as a [capture](ironorb_model::record::pcapng) of bounded size.
///
/// Packets have the time at which their machine sends them. Hosts are those of the scenario, under their names. The first server of a
/// host has port 2809, the next one the next port; each connection has another port at its client.
pub struct Packets {
    capture: Capture<Box<dyn Write>>,
    octets_max: u64,
    /// The client's and the server's end, by connection.
    ends: Table<u32, (End, End)>,
    /// Connections between a client's host and a server.
    connections: HashMap<(u32, End), u16>,
    now: Time,
    full_at: Option<Time>,
    failure: Option<io::Error>,
}

impl Packets {
    /// Begins the file of a run, which grows to this many octets at most.
    ///
    /// # Errors
    /// Those of the file.
    pub fn begin(out: Box<dyn Write>, about: &About<'_>, octets_max: u64) -> io::Result<Packets> {
        Ok(Packets {
            capture: Capture::begin(out, about, SEGMENT_OCTETS)?,
            octets_max: octets_max.saturating_sub(OCTETS_OF_NAMES),
            ends: Table::default(),
            connections: HashMap::new(),
            now: Time::ZERO,
            full_at: None,
            failure: None,
        })
    }

    /// Ends the file, and says how much of the run it has: whole messages.
    ///
    /// # Errors
    /// The first error of the file, from its begin on.
    pub fn end(self) -> io::Result<Extent> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.capture.end()?;
        let (until, is_whole) = self.full_at.map_or((self.now, true), |full_at| (full_at, false));
        Ok(Extent { until, is_whole })
    }

    pub(super) fn end_run(&mut self, now: Time) {
        self.now = now;
    }

    /// Adds what one end of a connection sends, if there is room for all of it.
    fn send(&mut self, now: Time, (from, to): (End, End), bytes: &[u8]) {
        if self.capture.octets() + self.capture.octets_for(bytes.len()) > self.octets_max {
            self.full_at = Some(now);
            // The run may take long, and be interrupted.
            let written = self.capture.flush();
            return self.note(now, written);
        }
        let written = self.capture.send(now, from, to, bytes);
        self.note(now, written);
    }

    fn note(&mut self, now: Time, written: io::Result<()>) {
        if let Err(e) = written {
            self.failure.get_or_insert(e);
            self.full_at = Some(now);
        }
    }

    /// The ends of a connection from one host to a server; `None` if no port is left.
    fn connect(&mut self, client: u32, server: End) -> Option<(End, End)> {
        let number = self.connections.entry((client, server)).or_insert(CLIENT_PORT_FIRST - 1);
        *number = number.checked_add(1)?;
        Some((End { host: client, port: *number }, server))
    }

    fn name(&mut self, now: Time, scenario: &Scenario, host: u32) {
        let written = self.capture.host(host, &scenario.host_name(host));
        self.note(now, written);
    }
}

impl fmt::Debug for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Packets { capture, octets_max, full_at, .. } = self;
        f.debug_struct("Packets")
            .field("octets", &capture.octets())
            .field("octets_max", octets_max)
            .field("full_at", full_at)
            .finish_non_exhaustive()
    }
}

impl World<'_> {
    /// Writes what a machine sends, if that is asked for.
    #[inline]
    pub(super) fn capture(&mut self, wire: u32, toward: Toward, bytes: &[u8]) {
        if self.packets.as_ref().is_some_and(|packets| packets.full_at.is_none()) {
            self.capture_sent(wire, toward, bytes);
        }
    }

    #[cold]
    fn capture_sent(&mut self, wire: u32, toward: Toward, bytes: &[u8]) {
        let now = self.now();
        let Some(packets) = self.packets.as_deref_mut() else { return };
        let ends = match packets.ends.get(&wire) {
            Some(ends) => *ends,
            None => {
                let Place { client, server, .. } = self.wires[wire as usize].place;
                let (client, server) = (&self.processes[client as usize], &self.processes[server as usize]);
                let port = server.server.and_then(|index| port_of(self.scenario, index));
                let server = port.map(|port| End { host: server.host, port });
                let Some(ends) = server.and_then(|server| packets.connect(client.host, server)) else {
                    packets.full_at = Some(now);
                    return;
                };
                packets.name(now, self.scenario, ends.0.host);
                packets.name(now, self.scenario, ends.1.host);
                packets.ends.insert(wire, ends);
                ends
            }
        };
        let (client, server) = ends;
        match toward {
            Toward::Server => packets.send(now, (client, server), bytes),
            Toward::Client => packets.send(now, (server, client), bytes),
        }
    }
}

/// The port of a server: behind those of the servers that stand before it on its hosts.
fn port_of(scenario: &Scenario, server: usize) -> Option<u16> {
    let hosts = scenario.servers[server].hosts;
    let before = scenario.servers[..server].iter().filter(|other| other.hosts == hosts).count();
    u16::try_from(before).ok().and_then(|before| SERVER_PORT_FIRST.checked_add(before))
}

/// More than the names of two hosts take, whose first message may find no room.
const OCTETS_OF_NAMES: u64 = 512;
/// CORBA's port.
const SERVER_PORT_FIRST: u16 = 2_809;
/// Below it are servers.
const CLIENT_PORT_FIRST: u16 = 10_000;
