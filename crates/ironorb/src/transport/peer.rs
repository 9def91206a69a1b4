//! Who is at the other end of a connection.

use std::net::{IpAddr, SocketAddr};

use rustix::net::{SocketAddrAny, SocketAddrUnix, getpeername, getsockname};

use super::{Beside, Stream};

impl Stream {
    /// The peer's address, for people: `host:port`, or the path of the Unix socket. Calls the system.
    pub(crate) fn peer(&self) -> String {
        let through = match self.beside.as_deref() {
            Some(Beside::Custom(_)) => return "a transport of the program".to_owned(),
            Some(Beside::Rings(_)) => "shared memory",
            Some(Beside::QuickSocket) | None => "Unix socket",
        };
        match getpeername(&self.socket) {
            Ok(Some(peer)) => match SocketAddr::try_from(peer.clone()) {
                Ok(address) => address.to_string(),
                Err(_) => format!("{through}{}", path_of(peer)),
            },
            _ if self.beside.is_some() => through.to_owned(),
            _ => "gone".to_owned(),
        }
    }

    /// The peer's IP address; `None` for a peer that comes by other means, or that has gone. Calls the system.
    pub(crate) fn peer_ip(&self) -> Option<IpAddr> {
        let peer = getpeername(&self.socket).ok().flatten()?;
        SocketAddr::try_from(peer).ok().map(|address| address.ip())
    }

    /// Whether the peer is on this machine, as far as the socket shows it. Never true for a transport of the program.
    /// Calls the system.
    pub(crate) fn is_from_this_machine(&self) -> bool {
        let peer = match self.beside.as_deref() {
            Some(Beside::Custom(_)) => return false,
            Some(Beside::Rings(_)) => return true,
            Some(Beside::QuickSocket) | None => getpeername(&self.socket).ok().flatten(),
        };
        let Some(peer) = peer else { return false };
        match (SocketAddr::try_from(peer.clone()), getsockname(&self.socket).map(SocketAddr::try_from)) {
            (Ok(peer), Ok(Ok(own))) => is_same_machine(peer.ip(), own.ip()),
            (Ok(_), _) => false,
            (Err(_), _) => SocketAddrUnix::try_from(peer).is_ok(),
        }
    }
}

/// Whether a peer with this address is on the machine that it reaches at `own`.
fn is_same_machine(peer: IpAddr, own: IpAddr) -> bool {
    let (peer, own) = (peer.to_canonical(), own.to_canonical());
    peer.is_loopback() || peer == own
}

/// The path of a Unix socket, after a colon. Clients mostly have none.
fn path_of(address: SocketAddrAny) -> String {
    let path = SocketAddrUnix::try_from(address).ok();
    let path = path.as_ref().and_then(|address| address.path_bytes()).unwrap_or_default();
    if path.is_empty() { String::new() } else { format!(":{}", String::from_utf8_lossy(path)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_ones_own_address_are_this_machine() {
        let check = |peer: &str, own: &str| is_same_machine(peer.parse().unwrap(), own.parse().unwrap());
        assert!(check("127.0.0.1", "127.0.0.1") && check("127.8.9.1", "192.0.2.1") && check("::1", "::1"));
        assert!(check("::ffff:127.0.0.1", "::ffff:127.0.0.1"), "an IPv6 socket shows IPv4 so");
        assert!(check("192.0.2.1", "192.0.2.1") && check("::ffff:192.0.2.1", "192.0.2.1"));
        assert!(!check("192.0.2.7", "192.0.2.1") && !check("::ffff:192.0.2.7", "::ffff:192.0.2.1"));
        assert!(!check("2001:db8::2", "2001:db8::1"));
    }
}
