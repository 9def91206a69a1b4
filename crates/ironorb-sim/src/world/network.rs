//! Links between hosts: when what is sent arrives, and what keeps it from arriving.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ironorb_model::scenario::Link;
use ironorb_model::{Random, Time};

use super::HostId;

/// The links of all hosts.
pub(crate) struct Network {
    pub(crate) default_link: Link,
    links: BTreeMap<(HostId, HostId), Link>,
    /// Pairs between which nothing passes, the lesser host first.
    cut: BTreeSet<(HostId, HostId)>,
    /// When the last octet that one host has sent to another has left it.
    sent_until: BTreeMap<(HostId, HostId), Time>,
    random: Random,
}

/// A link of a machine room: 100 us, 1 Gbit/s.
const DEFAULT_LINK: Link = Link {
    latency: Duration::from_micros(100),
    jitter: Duration::ZERO,
    bandwidth: Some(1_000_000_000),
    mtu: 1_460,
    packet_overhead: 78,
    loss: 0.0,
    reorder: 0.0,
    duplicate: 0.0,
    retransmit_after: Duration::from_millis(200),
};

/// What passes within a host.
const LOOPBACK: Link = Link {
    latency: Duration::from_micros(5),
    bandwidth: None,
    mtu: 65_483,
    packet_overhead: 0,
    ..DEFAULT_LINK
};

impl Default for Network {
    fn default() -> Self {
        Network {
            default_link: DEFAULT_LINK,
            links: BTreeMap::new(),
            cut: BTreeSet::new(),
            sent_until: BTreeMap::new(),
            random: Random::stream(0, 0),
        }
    }
}

impl Network {
    pub(crate) fn seed(&mut self, seed: u64) {
        self.random = Random::stream(seed, 3);
    }

    pub(crate) fn set_link(&mut self, a: HostId, b: HostId, link: Link) {
        self.links.insert(pair(a, b), link);
    }

    pub(crate) fn link(&self, a: HostId, b: HostId) -> Link {
        match a == b {
            true => LOOPBACK,
            false => self.links.get(&pair(a, b)).copied().unwrap_or(self.default_link),
        }
    }

    /// Nothing passes between two hosts from now on, or all does again.
    pub(crate) fn set_cut(&mut self, a: HostId, b: HostId, is_cut: bool) {
        match is_cut {
            true => self.cut.insert(pair(a, b)),
            false => self.cut.remove(&pair(a, b)),
        };
    }

    pub(crate) fn is_cut(&self, a: HostId, b: HostId) -> bool {
        a != b && self.cut.contains(&pair(a, b))
    }

    /// When what one host sends another now has arrived.
    pub(super) fn arrival(&mut self, from: HostId, to: HostId, octets: usize, now: Time) -> Time {
        let link = self.link(from, to);
        let packets = octets.div_ceil(link.mtu.max(1) as usize).max(1);
        let carried = (octets + packets * link.packet_overhead as usize) as u64;
        let begun = self.sent_until.get(&(from, to)).copied().unwrap_or(now).max(now);
        let sending = link.bandwidth.map_or(0, |bits| carried.saturating_mul(8_000_000_000) / bits.max(1));
        let sent = begun + Duration::from_nanos(sending);
        self.sent_until.insert((from, to), sent);
        let jitter = self.random.below(link.jitter.as_nanos() as u64 + 1);
        let mut late = Duration::from_nanos(jitter);
        for _ in 0..packets {
            // TCP sends a lost packet again after twice the time of the last attempt.
            let mut wait = link.retransmit_after;
            while self.random.is_so(link.loss) && wait < Duration::from_secs(100) {
                late += wait;
                wait *= 2;
            }
        }
        sent + link.latency + late
    }
}

fn pair(a: HostId, b: HostId) -> (HostId, HostId) {
    (a.min(b), a.max(b))
}
