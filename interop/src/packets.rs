//! The packets of TCP on this machine, as routers would see them. Only root may look.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, ipproto, recv, socket_with, sockopt};

/// All packets over IPv4 from now on.
#[derive(Debug)]
pub struct Packets(OwnedFd);

/// Room for the packets of a test, which nobody reads before it asks.
const ROOM_BYTES: usize = 1 << 20;

impl Packets {
    /// Begins to look.
    ///
    /// # Errors
    ///
    /// If the system grants no raw sockets.
    pub fn watch() -> io::Result<Packets> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(ipproto::TCP))?;
        sockopt::set_socket_recv_buffer_size(&socket, ROOM_BYTES)?;
        Ok(Packets(socket))
    }

    /// The code points of the packets with data that have gone to a port since the last call, and of those from it.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn code_points(&self, port: u16) -> io::Result<[BTreeSet<u8>; 2]> {
        let [mut to, mut from] = [BTreeSet::new(), BTreeSet::new()];
        let mut packet = [0; 1 << 16];
        loop {
            let (bytes, _) = match recv(&self.0, &mut packet[..], RecvFlags::empty()) {
                Err(rustix::io::Errno::AGAIN) => return Ok([to, from]),
                Err(e) => return Err(e.into()),
                Ok(got) => got,
            };
            let Some(segment) = Segment::read(&packet[..bytes]) else { continue };
            if segment.has_data && segment.to == port {
                to.insert(segment.code_point);
            }
            if segment.has_data && segment.from == port {
                from.insert(segment.code_point);
            }
        }
    }
}

/// What the headers of IPv4 (RFC 791, 2474) and of TCP (RFC 9293) tell of a packet.
struct Segment {
    from: u16,
    to: u16,
    code_point: u8,
    has_data: bool,
}

impl Segment {
    fn read(packet: &[u8]) -> Option<Segment> {
        // Both headers tell their lengths in words of four bytes.
        let ip_bytes = usize::from(packet.first()? & 0xF) * 4;
        let code_point = packet.get(1)? >> 2;
        let tcp = packet.get(ip_bytes..)?;
        let port = |at: usize| Some(u16::from_be_bytes([*tcp.get(at)?, *tcp.get(at + 1)?]));
        let tcp_bytes = usize::from(tcp.get(12)? >> 4) * 4;
        Some(Segment { from: port(0)?, to: port(2)?, code_point, has_data: tcp.len() > tcp_bytes })
    }
}
