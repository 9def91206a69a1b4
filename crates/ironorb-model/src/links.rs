//! The links between a scenario's hosts.

use std::ops::Range;
use std::time::Duration;

use crate::scenario::{Link, LinkRule, Scenario};
use crate::{LinkState, Random, ResourceObservations, Stream, Table, Time, resources};

/// The links between hosts that have connections, each direction by itself: what the scenario says of them, and what they carry.
/// Within a host there is none: what is sent there arrives at once.
#[derive(Debug)]
pub struct Links {
    random: Random,
    /// Those of the scenario's rules, and the default one.
    kinds: Vec<Link>,
    /// Of each rule, when nothing leaves.
    closed: Vec<Vec<Range<Duration>>>,
    used: Vec<LinkInUse>,
    numbers: Table<(u32, u32), LinkNumber>,
    observed_from: Time,
}

/// The number of a link in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkNumber(u32);

/// An end of a link: the number of a host, and the index of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkEnd {
    /// The number of the host.
    pub host: u32,
    /// The index of its group in the scenario.
    pub group: u32,
}

#[derive(Debug)]
struct LinkInUse {
    state: LinkState,
    /// The index of its kind.
    kind: u32,
    /// The groups of its hosts.
    groups: (u32, u32),
}

const WITHIN_A_HOST: LinkNumber = LinkNumber(u32::MAX);

impl Links {
    /// The links of a scenario, none of which is used yet. What they lose, delay and double follows from the seed.
    pub fn of(scenario: &Scenario, seed: u64) -> Links {
        let rules = scenario.links.iter().map(|rule| rule.link);
        Links {
            random: Random::stream(seed, 0),
            kinds: rules.chain([scenario.default_link]).collect(),
            closed: scenario.links.iter().map(LinkRule::closed).collect(),
            used: Vec::new(),
            numbers: Table::default(),
            observed_from: Time::ZERO,
        }
    }

    /// The link from one host to another.
    pub fn between(&mut self, scenario: &Scenario, from: LinkEnd, to: LinkEnd) -> LinkNumber {
        if from.host == to.host {
            return WITHIN_A_HOST;
        }
        if let Some(number) = self.numbers.get(&(from.host, to.host)) {
            return *number;
        }
        let mut state = LinkState::new(Random::stream(self.random.bits(), 0));
        state.restart_observation(self.observed_from);
        let number = LinkNumber(self.used.len() as u32);
        let rule = scenario.link_rule_between(from.group as usize, to.group as usize);
        let kind = rule.unwrap_or(scenario.links.len()) as u32;
        self.used.push(LinkInUse { state, kind, groups: (from.group, to.group) });
        self.numbers.insert((from.host, to.host), number);
        number
    }

    /// Sends octets of a connection over a link. Returns when the last one arrives.
    #[inline]
    pub fn send(&mut self, link: LinkNumber, now: Time, octets: u64, stream: &mut Stream) -> Time {
        if link == WITHIN_A_HOST {
            return now;
        }
        let LinkInUse { state, kind, .. } = &mut self.used[link.0 as usize];
        let closed = self.closed.get(*kind as usize).map_or(&[][..], Vec::as_slice);
        state.send(&self.kinds[*kind as usize], closed, now, octets, stream)
    }

    /// Forgets what was observed, and observes from now on.
    pub fn restart_observation(&mut self, now: Time) {
        self.observed_from = now;
        self.used.iter_mut().for_each(|link| link.state.restart_observation(now));
    }

    /// What links have carried, those between hosts of two groups as one.
    pub fn observe(&self, scenario: &Scenario, now: Time, into: &mut Vec<ResourceObservations>) {
        let observed = |link: &LinkInUse| {
            let (from, to) = link.groups;
            ((from as usize, to as usize), link.state.observe(now, String::new()))
        };
        resources::observe_links(scenario, into, self.used.iter().map(observed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    const TEXT: &str = r#"
        span = "1 s"
        hosts = [{ name = "near", count = 2 }, { name = "far" }]
        links = [{ between = ["near", "far"], latency = "3 ms" }]
        link = { latency = "1 ms" }
        servers = [{ name = "s", hosts = "far", threads = 1, operations = [{ name = "work", demand = "1 us" }] }]
        classes = [{ name = "c", hosts = "near", between = "1 ms", mix = [{ calls = [{ call = "s.work" }] }] }]
    "#;

    #[test]
    fn each_direction_is_a_link_of_its_own_and_there_is_none_within_a_host() {
        let read = scenario::read(TEXT, "test").unwrap_or_else(|problems| panic!("{problems:?}"));
        let scenario = &read[0];
        let mut links = Links::of(scenario, 1);
        let [first, second, far] = [(0, 0), (1, 0), (2, 1)].map(|(host, group)| LinkEnd { host, group });
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        let arrives = |links: &mut Links, from, to, now| {
            let link = links.between(scenario, from, to);
            assert_eq!(link, links.between(scenario, from, to), "it is the same the next time");
            links.send(link, at(now), 10, &mut Stream::default()).as_ns() / 1_000_000
        };
        assert_eq!(arrives(&mut links, first, far, 0), 3);
        assert_eq!(arrives(&mut links, far, first, 0), 3);
        assert_eq!(arrives(&mut links, first, second, 0), 1, "the default one");
        assert_eq!(arrives(&mut links, far, far, 0), 0);
        assert_ne!(links.between(scenario, first, far), links.between(scenario, far, first));
        // Observed from then on, those that are used later included.
        links.restart_observation(at(100));
        assert_eq!(arrives(&mut links, first, far, 200), 203);
        assert_eq!(arrives(&mut links, second, far, 300), 303);
        let mut seen = Vec::new();
        links.observe(scenario, at(1_100), &mut seen);
        let seen: Vec<(&str, u64)> = seen.iter().map(|it| (&*it.name, it.octets)).collect();
        assert_eq!(
            seen,
            [("link near -> near", 0), ("link near -> far (mean of 2)", 20), ("link far -> near", 0)]
        );
    }
}
