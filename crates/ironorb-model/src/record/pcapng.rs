//! Simulated GIOP as packets of made-up hosts: a capture file that Wireshark and tshark read. What is written is what the
//! programs sent; the packets around it, Ethernet, IPv4 and TCP, are made here, with handshakes, sequence numbers and
//! checksums as if each segment had been acknowledged at once.
//!
//! The file has the form pcapng, in which timestamps are nanoseconds, hosts have names, and the file says where it comes from.
//! It is written here because it takes three kinds of blocks, and what there is in crates brings more than that.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, Write};

use etherparse::{PacketBuilder, TcpOptionElement};

use crate::Time;

/// Where a capture comes from: the file says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About<'a> {
    /// The level of simulation, as `L1`.
    pub level: &'a str,
    /// The scenario or program.
    pub name: &'a str,
    /// The seed.
    pub seed: u64,
    /// The commit of the simulator; empty if it is not known.
    pub commit: &'a str,
}

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let About { level, name, seed, commit } = self;
        write!(f, "simulated: level {level}, {name}, seed {seed}")?;
        if commit.is_empty() { Ok(()) } else { write!(f, ", commit {commit}") }
    }
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The number of the host, from 0 to 2^24 - 3. Its address begins with 10.
    pub host: u32,
    /// The port.
    pub port: u16,
}

/// Writes a capture. Packets have the order in which they are given.
#[derive(Debug)]
pub struct Capture<W> {
    out: W,
    octets: u64,
    segment_octets_max: usize,
    connections: HashMap<(End, End), Connection>,
    begun: u32,
    named: HashSet<u32>,
}

/// The next sequence number of each end; the lower end first.
#[derive(Debug, Clone, Copy)]
struct Connection {
    next: [u32; 2],
}

/// Octets of payload in a packet of Ethernet.
pub const SEGMENT_OCTETS: usize = 1_460;

/// What fits into an IPv4 packet.
const SEGMENT_OCTETS_MAX: usize = 65_535 - 40;

/// The window that each end offers, in units of 2^`WINDOW_SHIFT` octets: 16 MiB.
const WINDOW: u16 = u16::MAX;
const WINDOW_SHIFT: u8 = 8;

impl<W: Write> Capture<W> {
    /// Begins a capture. Packets have up to `segment_octets_max` octets of payload: [`SEGMENT_OCTETS`] as a rule, up to 65,495.
    pub fn begin(out: W, about: &About<'_>, segment_octets_max: usize) -> io::Result<Capture<W>> {
        let segment_octets_max = segment_octets_max.clamp(1, SEGMENT_OCTETS_MAX);
        let (connections, named) = (HashMap::new(), HashSet::new());
        let mut capture = Capture { out, octets: 0, segment_octets_max, connections, begun: 0, named };
        let comment = about.to_string();
        let mut section = Block::of(0x0A0D_0D0A);
        section.u32(0x1A2B_3C4D); // the order of octets
        section.u16(1).u16(0); // the version
        section.u32(u32::MAX).u32(u32::MAX); // the length is not told
        section.option(1, comment.as_bytes()).option(4, b"IronORB").end_of_options();
        capture.write(section)?;
        let mut interface = Block::of(1);
        interface.u16(1).u16(0).u32(0); // Ethernet; packets are not cut
        interface.option(2, b"simulated").option(9, &[9]).end_of_options(); // nanoseconds
        capture.write(interface)?;
        Ok(capture)
    }

    /// The octets that have been written.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// The most octets that [`send`](Self::send) adds to the file for so many octets of a program.
    pub fn octets_for(&self, octets: usize) -> u64 {
        /// Of a packet: its block, and the headers of Ethernet, IPv4 and TCP with options.
        const OF_PACKET: usize = 128;
        const HANDSHAKE_PACKETS: usize = 3;
        let packets = octets.div_ceil(self.segment_octets_max) + HANDSHAKE_PACKETS;
        (OF_PACKET * packets + octets) as u64
    }

    /// Names a host. The first name counts.
    pub fn host(&mut self, host: u32, name: &str) -> io::Result<()> {
        if !self.named.insert(host) {
            return Ok(());
        }
        let mut names = Block::of(4);
        let mut record = address(host).to_vec();
        record.extend(name.bytes().filter(|octet| *octet != 0));
        record.push(0);
        names.option(1, &record).end_of_options();
        self.write(names)
    }

    /// Adds octets that one end sends to another. The first ones between two ends are behind a handshake, which the sender
    /// has begun.
    pub fn send(&mut self, at: Time, from: End, to: End, octets: &[u8]) -> io::Result<()> {
        let (ends, sender) = in_order(from, to);
        let mut connection = match self.connections.get(&ends) {
            Some(connection) => *connection,
            None => self.connect(at, from, to)?,
        };
        for segment in octets.chunks(self.segment_octets_max) {
            let flags = Flags { push: true, ..Flags::default() };
            let (sequence, acknowledged) = (connection.next[sender], connection.next[1 - sender]);
            self.packet(at, from, to, sequence, Some(acknowledged), flags, segment)?;
            connection.next[sender] = sequence.wrapping_add(segment.len() as u32);
        }
        self.connections.insert(ends, connection);
        Ok(())
    }

    /// Ends a connection in order, if there is one between these ends. `from` is the one that closes it.
    pub fn close(&mut self, at: Time, from: End, to: End) -> io::Result<()> {
        let (ends, sender) = in_order(from, to);
        let Some(connection) = self.connections.remove(&ends) else { return Ok(()) };
        let (ours, theirs) = (connection.next[sender], connection.next[1 - sender]);
        let fin = Flags { fin: true, ..Flags::default() };
        self.packet(at, from, to, ours, Some(theirs), fin, &[])?;
        self.packet(at, to, from, theirs, Some(ours.wrapping_add(1)), fin, &[])?;
        self.packet(at, from, to, ours.wrapping_add(1), Some(theirs.wrapping_add(1)), Flags::default(), &[])
    }

    /// Hands over what has been written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Ends the capture, and returns what it was written to.
    pub fn end(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn connect(&mut self, at: Time, from: End, to: End) -> io::Result<Connection> {
        let (_, sender) = in_order(from, to);
        // Far apart, so that packets of a connection are not taken for those of the one before at these ports.
        let (ours, theirs) =
            (self.begun.wrapping_mul(0x9E37_79B9), self.begun.wrapping_mul(0x85EB_CA6B) ^ 0x8000_0000);
        self.begun = self.begun.wrapping_add(1);
        let syn = Flags { syn: true, ..Flags::default() };
        self.packet(at, from, to, ours, None, syn, &[])?;
        self.packet(at, to, from, theirs, Some(ours.wrapping_add(1)), syn, &[])?;
        let (ours, theirs) = (ours.wrapping_add(1), theirs.wrapping_add(1));
        self.packet(at, from, to, ours, Some(theirs), Flags::default(), &[])?;
        let mut next = [ours, theirs];
        if sender == 1 {
            next.reverse();
        }
        Ok(Connection { next })
    }

    #[allow(clippy::too_many_arguments)] // the fields of one header
    fn packet(
        &mut self,
        at: Time,
        from: End,
        to: End,
        sequence: u32,
        acknowledged: Option<u32>,
        flags: Flags,
        octets: &[u8],
    ) -> io::Result<()> {
        let ethernet = PacketBuilder::ethernet2(hardware_address(from.host), hardware_address(to.host));
        let ip = ethernet.ipv4(address(from.host), address(to.host), 64);
        let mut tcp = ip.tcp(from.port, to.port, sequence, WINDOW);
        if let Some(acknowledged) = acknowledged {
            tcp = tcp.ack(acknowledged);
        }
        if flags.syn {
            let size = TcpOptionElement::MaximumSegmentSize(self.segment_octets_max as u16);
            let options = [size, TcpOptionElement::Noop, TcpOptionElement::WindowScale(WINDOW_SHIFT)];
            tcp = tcp.syn().options(&options).map_err(io::Error::other)?;
        }
        if flags.push {
            tcp = tcp.psh();
        }
        if flags.fin {
            tcp = tcp.fin();
        }
        let mut packet = Vec::with_capacity(tcp.size(octets.len()));
        tcp.write(&mut packet, octets).map_err(io::Error::other)?;
        let mut block = Block::of(6);
        let ns = at.as_ns();
        block.u32(0).u32((ns >> 32) as u32).u32(ns as u32);
        block.u32(packet.len() as u32).u32(packet.len() as u32).padded(&packet);
        self.write(block)
    }

    fn write(&mut self, block: Block) -> io::Result<()> {
        let octets = block.finished();
        self.octets += octets.len() as u64;
        self.out.write_all(&octets)
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Flags {
    syn: bool,
    push: bool,
    fin: bool,
}

/// The lower end first, and which of them is `from`.
fn in_order(from: End, to: End) -> ((End, End), usize) {
    if from <= to { ((from, to), 0) } else { ((to, from), 1) }
}

fn address(host: u32) -> [u8; 4] {
    let [_, a, b, c] = host.wrapping_add(1).to_be_bytes();
    [10, a, b, c]
}

/// Of the range that no maker has.
fn hardware_address(host: u32) -> [u8; 6] {
    let [_, a, b, c] = host.wrapping_add(1).to_be_bytes();
    [2, 0, 0, a, b, c]
}

/// A block of pcapng, in this processor's order of octets.
struct Block(Vec<u8>);

impl Block {
    fn of(kind: u32) -> Block {
        let mut block = Block(Vec::new());
        block.u32(kind).u32(0);
        block
    }

    fn u16(&mut self, number: u16) -> &mut Block {
        self.0.extend_from_slice(&number.to_ne_bytes());
        self
    }

    fn u32(&mut self, number: u32) -> &mut Block {
        self.0.extend_from_slice(&number.to_ne_bytes());
        self
    }

    fn padded(&mut self, octets: &[u8]) -> &mut Block {
        self.0.extend_from_slice(octets);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// An option, or a record of names. Long ones are cut.
    fn option(&mut self, code: u16, octets: &[u8]) -> &mut Block {
        let octets = &octets[..octets.len().min(usize::from(u16::MAX))];
        self.u16(code).u16(octets.len() as u16).padded(octets)
    }

    fn end_of_options(&mut self) -> &mut Block {
        self.u16(0).u16(0)
    }

    fn finished(mut self) -> Vec<u8> {
        let length = (self.0.len() + 4) as u32;
        self.0[4..8].copy_from_slice(&length.to_ne_bytes());
        self.u32(length);
        self.0
    }
}
