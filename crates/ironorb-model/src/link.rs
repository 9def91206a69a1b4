//! What carries messages from one host to another.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use crate::scenario::Link;
use crate::{Random, ResourceObservations, Time};

/// How far a connection's octets have come on a link: TCP passes on what comes in the order in which it was sent. Each
/// connection has one for each direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stream {
    last_arrival: Time,
}

/// One direction of a link between two hosts: what it carries now. What it is like is a [`Link`].
///
/// Packets leave one after the other, as fast as the bandwidth lets them, whatever connection they belong to. A packet is
/// under way for the latency and an even share of the jitter. One that is lost is sent again after
/// [`Link::retransmit_after`], then after twice that, and so on, as TCP does; so what follows on its stream comes later, too.
/// One that is overtaken takes the latency twice, and its stream waits for it. What is sent twice takes the link's time
/// twice. Not modelled: TCP's windows, its slow start, acknowledgements, and packets that the receiver drops.
#[derive(Debug)]
pub struct LinkState {
    random: Random,
    free_at: Time,
    /// When the messages that wait for others will begin to leave.
    starts: VecDeque<Time>,
    began: Time,
    busy_ns: u64,
    waiting_ns: u64,
    waiting_max: u32,
    messages: u64,
    octets: u64,
    wire_octets: u64,
}

impl LinkState {
    /// A link that has carried nothing. What it loses, delays and doubles follows from the random numbers.
    pub fn new(random: Random) -> LinkState {
        LinkState {
            random,
            free_at: Time::ZERO,
            starts: VecDeque::new(),
            began: Time::ZERO,
            busy_ns: 0,
            waiting_ns: 0,
            waiting_max: 0,
            messages: 0,
            octets: 0,
            wire_octets: 0,
        }
    }

    /// Sends octets over a connection. Returns when the last one arrives. `closed` are the times in which nothing leaves, from the
    /// beginning of the run on.
    #[inline]
    pub fn send(
        &mut self,
        link: &Link,
        closed: &[Range<Duration>],
        now: Time,
        octets: u64,
        stream: &mut Stream,
    ) -> Time {
        self.messages += 1;
        self.octets += octets;
        let leaves = if closed.is_empty() { now } else { self.leave(closed, now) };
        self.note_queue(now);
        if link.bandwidth.is_none() && !is_uncertain(link) {
            let packets = packets_of(link, octets);
            self.wire_octets += octets + packets * u64::from(link.packet_overhead);
            return stream.arrive(leaves + link.latency);
        }
        let arrival = if is_uncertain(link) {
            self.send_packets(link, now, octets)
        } else {
            let wire_octets = octets + packets_of(link, octets) * u64::from(link.packet_overhead);
            self.occupy(link, now, wire_octets) + link.latency
        };
        stream.arrive(arrival)
    }

    /// When what is sent now begins to leave, and nothing before it.
    #[cold]
    fn leave(&mut self, closed: &[Range<Duration>], now: Time) -> Time {
        let since = now.since(Time::ZERO);
        let Some(closed) = closed.iter().find(|closed| closed.contains(&since)) else { return now };
        let leaves = Time::ZERO + closed.end;
        self.free_at = self.free_at.max(leaves);
        leaves
    }

    /// Forgets what was observed, and observes from now on.
    pub fn restart_observation(&mut self, now: Time) {
        self.began = now;
        self.forget_started(now);
        let backlog = self.free_at.since(now).as_nanos() as u64;
        // What waits now is observed from now on.
        (self.busy_ns, self.waiting_ns) = (backlog, self.still_to_wait(now));
        self.waiting_max = self.starts.len() as u32;
        (self.messages, self.octets, self.wire_octets) = (0, 0, 0);
    }

    /// What has been observed: use and queue of the bandwidth, and the octets of messages.
    pub fn observe(&self, now: Time, name: String) -> ResourceObservations {
        let span = now.since(self.began).as_nanos().max(1) as f64;
        let backlog = self.free_at.since(now).as_nanos() as u64;
        ResourceObservations {
            name,
            utilisation: self.busy_ns.saturating_sub(backlog) as f64 / span,
            queue_mean: self.waiting_ns.saturating_sub(self.still_to_wait(now)) as f64 / span,
            queue_max: u64::from(self.waiting_max),
            octets: self.octets,
        }
    }

    /// Messages that were observed.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Octets that the link carried beside those of messages, too: headers of packets, and what was sent again.
    pub fn wire_octets(&self) -> u64 {
        self.wire_octets
    }

    #[cold]
    #[inline(never)]
    fn send_packets(&mut self, link: &Link, now: Time, octets: u64) -> Time {
        let mut left = octets;
        let mut arrival = now;
        loop {
            let payload = left.min(u64::from(link.mtu.max(1)));
            let wire_octets = payload + u64::from(link.packet_overhead);
            let mut left_at = self.occupy(link, now, wire_octets);
            let mut wait = link.retransmit_after;
            while self.random.is_so(link.loss) && wait < RETRANSMISSION_MAX {
                left_at = left_at + wait;
                wait *= 2;
                self.occupy(link, now, wire_octets);
            }
            if self.random.is_so(link.duplicate) {
                self.occupy(link, now, wire_octets);
            }
            let mut under_way = link.latency;
            if !link.jitter.is_zero() {
                under_way += Duration::from_nanos(self.random.below(link.jitter.as_nanos() as u64 + 1));
            }
            if self.random.is_so(link.reorder) {
                under_way += link.latency;
            }
            arrival = arrival.max(left_at + under_way);
            left -= payload;
            if left == 0 {
                return arrival;
            }
        }
    }

    /// Uses the link for so many octets. Returns when they have left.
    fn occupy(&mut self, link: &Link, now: Time, wire_octets: u64) -> Time {
        self.wire_octets += wire_octets;
        let begin = self.free_at.max(now);
        let Some(bandwidth) = link.bandwidth else { return begin };
        let time = (u128::from(wire_octets) * 8_000_000_000).div_ceil(u128::from(bandwidth.max(1)));
        let time = u64::try_from(time).unwrap_or(u64::MAX);
        self.busy_ns = self.busy_ns.saturating_add(time);
        self.free_at = begin + Duration::from_nanos(time);
        self.free_at
    }

    /// A message is about to be sent: it waits if the link is busy, or if nothing passes it.
    fn note_queue(&mut self, now: Time) {
        if self.free_at > now {
            self.forget_started(now);
            self.starts.push_back(self.free_at);
            self.waiting_ns += self.free_at.since(now).as_nanos() as u64;
            self.waiting_max = self.waiting_max.max(self.starts.len() as u32);
        }
    }

    fn forget_started(&mut self, now: Time) {
        while self.starts.front().is_some_and(|start| *start <= now) {
            self.starts.pop_front();
        }
    }

    /// How long those that wait now will still do so, all together.
    fn still_to_wait(&self, now: Time) -> u64 {
        self.starts.iter().map(|start| start.since(now).as_nanos() as u64).sum()
    }
}

impl Stream {
    /// What arrives on a stream comes behind what was sent before.
    fn arrive(&mut self, at: Time) -> Time {
        self.last_arrival = self.last_arrival.max(at);
        self.last_arrival
    }
}

fn is_uncertain(link: &Link) -> bool {
    !link.jitter.is_zero() || link.loss > 0.0 || link.reorder > 0.0 || link.duplicate > 0.0
}

fn packets_of(link: &Link, octets: u64) -> u64 {
    octets.div_ceil(u64::from(link.mtu.max(1))).max(1)
}

/// TCP waits no longer than this for an answer; a packet that is lost so often arrives now.
const RETRANSMISSION_MAX: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{LinkRule, Outage, OutageKind};

    const LINK: Link = Link {
        latency: Duration::from_micros(100),
        jitter: Duration::ZERO,
        bandwidth: Some(8_000_000), // an octet a microsecond
        mtu: 1_000,
        packet_overhead: 50,
        loss: 0.0,
        reorder: 0.0,
        duplicate: 0.0,
        retransmit_after: Duration::from_micros(10_000),
    };

    fn at(us: u64) -> Time {
        Time::from_ns(us * 1_000)
    }

    fn state() -> LinkState {
        LinkState::new(Random::stream(1, 1))
    }

    fn send(state: &mut LinkState, link: Link, now: u64, octets: u64, stream: &mut Stream) -> u64 {
        state.send(&link, &[], at(now), octets, stream).as_ns() / 1_000
    }

    #[test]
    fn messages_leave_one_after_the_other() {
        let (mut state, mut one, mut other) = (state(), Stream::default(), Stream::default());
        assert_eq!(send(&mut state, LINK, 0, 150, &mut one), 300, "150 octets, 50 of a header, the latency");
        assert_eq!(
            send(&mut state, LINK, 0, 1_001, &mut other),
            1_401,
            "two packets, behind the first message"
        );
        assert_eq!(send(&mut state, LINK, 2_000, 0, &mut one), 2_150, "a packet without payload");
        let seen = state.observe(at(5_205), "link".to_owned());
        assert_eq!((seen.utilisation, seen.queue_max, seen.octets), (1_351.0 / 5_205.0, 1, 1_151));
        assert_eq!(seen.queue_mean, 200.0 / 5_205.0);
        assert_eq!(state.wire_octets(), 1_351);
    }

    #[test]
    fn what_an_outage_holds_waits_with_or_without_a_bound() {
        for bandwidth in [None, Some(8_000_000_000_000)] {
            let link = Link { bandwidth, ..LINK };
            let (mut state, mut stream) = (state(), Stream::default());
            let closed = [Duration::from_micros(100)..Duration::from_micros(1_000)];
            for now in [150, 200, 250] {
                state.send(&link, &closed, at(now), 0, &mut stream);
            }
            // Three wait from their times until 300: 150, 100 and 50 us.
            let seen = state.observe(at(300), "link".to_owned());
            assert_eq!((seen.queue_max, (seen.queue_mean * 100.0).round()), (3, 100.0), "{bandwidth:?}");
            state.restart_observation(at(300));
            let seen = state.observe(at(500), "link".to_owned());
            assert_eq!((seen.queue_max, seen.queue_mean.round()), (3, 3.0), "{bandwidth:?}");
        }
    }

    #[test]
    fn a_link_without_bound_only_delays() {
        let link = Link { bandwidth: None, ..LINK };
        let (mut state, mut stream) = (state(), Stream::default());
        assert_eq!(send(&mut state, link, 0, 1_000_000, &mut stream), 100);
        assert_eq!(send(&mut state, link, 5, 1_000_000, &mut stream), 105);
    }

    #[test]
    fn lost_packets_hold_up_their_stream_alone() {
        let mut state = state();
        let link = Link { loss: 1.0, bandwidth: None, retransmit_after: Duration::from_secs(61), ..LINK };
        let (mut lossy, mut other) = (Stream::default(), Stream::default());
        assert_eq!(send(&mut state, link, 0, 1, &mut lossy), 61_000_100);
        let sound = Link { loss: 0.0, ..link };
        assert_eq!(send(&mut state, sound, 0, 1, &mut lossy), 61_000_100, "behind what was lost");
        assert_eq!(send(&mut state, sound, 0, 1, &mut other), 100);
    }

    #[test]
    fn loss_jitter_reordering_and_copies_come_as_often_as_they_should() {
        let link = Link { loss: 0.1, reorder: 0.2, duplicate: 0.3, bandwidth: None, ..LINK };
        let mut state = state();
        let (mut lost, mut late) = (0, 0);
        for _ in 0..10_000 {
            match send(&mut state, link, 0, 50, &mut Stream::default()) {
                100 => {}
                200 => late += 1,
                _ => lost += 1,
            }
        }
        assert!((900..1_100).contains(&lost), "{lost}");
        assert!((1_650..1_950).contains(&late), "{late}: 20 % of what was not lost");
        let copies = state.wire_octets() / 100 - 10_000;
        assert!(
            (3_900..4_300).contains(&copies),
            "{copies}: a tenth and a ninetieth again, three tenths twice"
        );
        let jittery = Link { jitter: Duration::from_micros(50), bandwidth: None, ..LINK };
        let arrivals: Vec<u64> =
            (0..1_000).map(|_| send(&mut state, jittery, 0, 50, &mut Stream::default())).collect();
        assert!(arrivals.contains(&100) && arrivals.contains(&149), "{arrivals:?}");
        assert!(arrivals.iter().all(|arrival| (100..=150).contains(arrival)));
    }

    #[test]
    fn nothing_leaves_a_link_that_is_held_or_cut() {
        let outage = |from, until, kind| Outage {
            from: Duration::from_micros(from),
            until: Duration::from_micros(until),
            kind,
        };
        let outages = vec![outage(1_000, 2_000, OutageKind::Hold), outage(5_000, 6_000, OutageKind::Cut)];
        for bandwidth in [LINK.bandwidth, None] {
            let link = Link { bandwidth, ..LINK };
            let closed = LinkRule { outages: outages.clone(), ..LinkRule::new((0, 1), link) }.closed();
            // 100 octets with their header leave in as many microseconds, or at once.
            let takes = if bandwidth.is_some() { 100 } else { 0 };
            let (mut state, mut stream) = (state(), Stream::default());
            let mut arrives =
                |now| state.send(&link, &closed, at(now), 50, &mut stream).as_ns() / 1_000 - takes - 100;
            assert_eq!(arrives(999), 999, "what is under way arrives");
            assert_eq!(arrives(1_200), 2_000);
            assert_eq!(arrives(1_300), 2_000 + takes, "in its order");
            assert_eq!(arrives(4_000), 4_000);
            assert_eq!(arrives(5_000), 16_000, "TCP's next try");
            assert_eq!(arrives(20_000), 20_000);
        }
        // TCP's next try falls into another outage.
        let outages = vec![outages[1], outage(15_500, 17_000, OutageKind::Hold)];
        let rule = LinkRule { outages, ..LinkRule::new((0, 1), LINK) };
        assert_eq!(rule.closed(), [Duration::from_micros(5_000)..Duration::from_micros(17_000)]);
    }

    #[test]
    fn observation_restarts_with_what_is_still_to_leave() {
        let (mut state, mut stream) = (state(), Stream::default());
        send(&mut state, LINK, 0, 950, &mut stream);
        state.restart_observation(at(500));
        let seen = state.observe(at(1_500), "link".to_owned());
        assert_eq!((seen.utilisation, seen.octets), (0.5, 0));
    }
}
