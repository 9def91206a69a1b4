//! Links between hosts: when what is sent arrives, and what keeps it from arriving.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ironorb_model::scenario::Link;
use ironorb_model::{LinkState, Random, ResourceObservations, Stream, Time};

use super::HostId;

/// The links of all hosts.
pub(crate) struct Network {
    pub(crate) default_link: Link,
    links: BTreeMap<(HostId, HostId), Link>,
    /// Pairs between which nothing passes, the lesser host first.
    cut: BTreeSet<(HostId, HostId)>,
    /// What each link carries, one way.
    states: BTreeMap<(HostId, HostId), LinkState>,
    observed_from: Time,
    seed: u64,
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

impl Network {
    pub(super) fn new(seed: u64) -> Network {
        Network {
            default_link: DEFAULT_LINK,
            links: BTreeMap::new(),
            cut: BTreeSet::new(),
            states: BTreeMap::new(),
            observed_from: Time::ZERO,
            seed,
        }
    }

    pub(crate) fn set_link(&mut self, a: HostId, b: HostId, link: Link) {
        self.links.insert(pair(a, b), link);
    }

    pub(crate) fn link(&self, a: HostId, b: HostId) -> Link {
        let without_rule = if a == b { LOOPBACK } else { self.default_link };
        self.links.get(&pair(a, b)).copied().unwrap_or(without_rule)
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

    /// When what one host sends another now has arrived, behind what it has sent before on the same stream.
    pub(super) fn arrival(
        &mut self,
        (from, to): (HostId, HostId),
        octets: usize,
        now: Time,
        stream: &mut Stream,
    ) -> Time {
        let link = self.link(from, to);
        let (seed, observed_from) = (self.seed, self.observed_from);
        let number = ((from.0 as u64) << 32) | to.0 as u64;
        let state = self.states.entry((from, to));
        let state = state.or_insert_with(|| {
            let mut state = LinkState::new(Random::stream(seed ^ LINKS, number));
            state.restart_observation(observed_from);
            state
        });
        // A link that is cut is not asked: what is sent there is held.
        state.send(&link, &[], now, octets as u64, stream)
    }

    pub(super) fn restart_observation(&mut self, now: Time) {
        self.observed_from = now;
        self.states.values_mut().for_each(|state| state.restart_observation(now));
    }

    /// What a link has carried one way; `None` if it was never used.
    pub(super) fn observe(
        &self,
        from: HostId,
        to: HostId,
        now: Time,
        name: String,
    ) -> Option<ResourceObservations> {
        self.states.get(&(from, to)).map(|state| state.observe(now, name))
    }
}

/// Sets the random numbers of links apart from others of the seed.
const LINKS: u64 = 0x6c69_6e6b;

fn pair(a: HostId, b: HostId) -> (HostId, HostId) {
    (a.min(b), a.max(b))
}
