//! Peers by their addresses, and the highest priority that each may ask for.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::priority::Priority;

/// Peers whose requests have a limit of their own; see
/// [`RealTimeConfig::peer_priority_max`](crate::rt::RealTimeConfig::peer_priority_max). As text: `local`, an IP address, or one
/// with the length of its prefix, such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerNetwork(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Local,
    Network { address: IpAddr, prefix: u8 },
}

impl PeerNetwork {
    /// Peers on this machine that come by Unix sockets or shared memory.
    pub const LOCAL: PeerNetwork = PeerNetwork(Kind::Local);

    /// The peers whose addresses begin with the first `prefix` bits of this one. `None` if an address of this kind has fewer
    /// bits.
    pub fn new(address: IpAddr, prefix: u8) -> Option<PeerNetwork> {
        (prefix <= bits_of(address)).then_some(PeerNetwork(Kind::Network { address, prefix }))
    }

    /// How many bits of a peer's address say that it is one of these; `None` if it is none of them. A peer without an IP
    /// address is local.
    fn matches(self, peer: Option<IpAddr>) -> Option<u8> {
        match (self.0, peer) {
            (Kind::Local, None) => Some(u8::MAX),
            (Kind::Network { address, prefix }, Some(peer)) => {
                let is_same_kind = bits_of(address) == bits_of(peer);
                (is_same_kind && leading(address, prefix) == leading(peer, prefix)).then_some(prefix)
            }
            (Kind::Local, Some(_)) | (Kind::Network { .. }, None) => None,
        }
    }
}

/// The bits of an address.
fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first bits of an address, at most as many as it has.
fn leading(address: IpAddr, prefix: u8) -> u128 {
    let bits = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    bits.checked_shr(u32::from(bits_of(address) - prefix)).unwrap_or(0)
}

/// A text that names no peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadPeerNetwork;

impl fmt::Display for BadPeerNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write `local`, an IP address, or one with the length of its prefix, as 10.0.0.0/8")
    }
}

impl std::error::Error for BadPeerNetwork {}

impl FromStr for PeerNetwork {
    type Err = BadPeerNetwork;

    fn from_str(text: &str) -> Result<PeerNetwork, BadPeerNetwork> {
        if text == "local" {
            return Ok(PeerNetwork::LOCAL);
        }
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().map_err(|_| BadPeerNetwork)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| BadPeerNetwork)?;
        PeerNetwork::new(address, prefix.unwrap_or(bits_of(address))).ok_or(BadPeerNetwork)
    }
}

impl fmt::Display for PeerNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Local => f.write_str("local"),
            Kind::Network { address, prefix } => write!(f, "{address}/{prefix}"),
        }
    }
}

/// The limits of peers.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeerLimits(Vec<(PeerNetwork, Priority)>);

impl PeerLimits {
    /// Sets the limit of these peers.
    pub(crate) fn set(&mut self, peers: PeerNetwork, priority: Priority) {
        self.0.retain(|(others, _)| *others != peers);
        self.0.push((peers, priority));
    }

    /// Whether no peer has a limit of its own.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The limit of a peer: that of the longest prefix. A peer without an IP address is local.
    pub(crate) fn of(&self, peer: Option<IpAddr>) -> Priority {
        let peer = peer.map(|address| address.to_canonical());
        let matching = self.0.iter().filter_map(|(peers, limit)| Some((peers.matches(peer)?, *limit)));
        matching.max_by_key(|(bits, _)| *bits).map_or(Priority::MAX, |(_, limit)| limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(of: &[(&str, i16)]) -> PeerLimits {
        let mut limits = PeerLimits::default();
        for (peers, number) in of {
            limits.set(peers.parse().unwrap(), Priority::new(*number).unwrap());
        }
        limits
    }

    #[test]
    fn the_longest_prefix_decides() {
        let limits = limits(&[
            ("10.0.0.0/8", 8),
            ("10.1.0.0/16", 16),
            ("10.1.2.3", 32),
            ("local", 1),
            ("fd00::/8", 6),
        ]);
        let of = |text: &str| limits.of(Some(text.parse().unwrap())).number();
        assert_eq!(
            [of("10.9.9.9"), of("10.1.9.9"), of("10.1.2.3"), of("11.0.0.0"), of("fd12::1"), of("fe80::1")],
            [8, 16, 32, i16::MAX, 6, i16::MAX]
        );
        assert_eq!(of("::ffff:10.1.2.3"), 32, "an IPv4 address in an IPv6 socket");
        assert_eq!(limits.of(None).number(), 1);
        let all = self::limits(&[("0.0.0.0/0", 3), ("::/0", 4)]);
        assert_eq!(all.of(Some("9.9.9.9".parse().unwrap())).number(), 3);
        assert_eq!(all.of(Some("9::9".parse().unwrap())).number(), 4);
        assert_eq!(all.of(None), Priority::MAX);
    }

    #[test]
    fn texts_are_read_and_written() {
        for text in ["local", "10.0.0.0/8", "::1/128", "0.0.0.0/0"] {
            assert_eq!(text.parse::<PeerNetwork>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.1".parse::<PeerNetwork>().unwrap().to_string(), "10.0.0.1/32");
        for text in ["", "10.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "host/8"] {
            assert_eq!(text.parse::<PeerNetwork>(), Err(BadPeerNetwork), "{text}");
        }
    }
}
