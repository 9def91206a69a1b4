//! The packets of TCP on this machine, as routers would see them. Only root may look.

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

    /// The packets with data since the last call.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn take(&self) -> io::Result<Vec<Packet>> {
        let mut all = Vec::new();
        let mut bytes = [0; 1 << 16];
        loop {
            match recv(&self.0, &mut bytes[..], RecvFlags::empty()) {
                Err(rustix::io::Errno::AGAIN) => return Ok(all),
                Err(e) => return Err(e.into()),
                Ok((length, _)) => all.extend(Packet::read(&bytes[..length])),
            }
        }
    }
}

/// What the headers of IPv4 (RFC 791, 2474) and of TCP (RFC 9293) tell of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The port from which it comes.
    pub from: u16,
    /// The port to which it goes.
    pub to: u16,
    /// Its code point of differentiated services.
    pub code_point: u8,
}

impl Packet {
    /// `None` if it has no data.
    fn read(packet: &[u8]) -> Option<Packet> {
        // Both headers tell their lengths in words of four bytes.
        let ip_bytes = usize::from(packet.first()? & 0xF) * 4;
        let code_point = packet.get(1)? >> 2;
        let tcp = packet.get(ip_bytes..)?;
        let port = |at: usize| Some(u16::from_be_bytes([*tcp.get(at)?, *tcp.get(at + 1)?]));
        let tcp_bytes = usize::from(tcp.get(12)? >> 4) * 4;
        (tcp.len() > tcp_bytes).then_some(Packet { from: port(0)?, to: port(2)?, code_point })
    }
}
