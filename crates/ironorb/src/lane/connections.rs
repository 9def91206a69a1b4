//! The open connections of a lane, and what those that have ended carried.
//!
//! A connection keeps its counts where its calls write them anyway. A look adds them up. A connection that ends leaves
//! them here, so no total ever goes back.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::base::lane::{LaneId, current_lane};
use crate::base::locks::PiLock;
use crate::base::spawner::current_class;
use crate::base::time::Time;

/// Who has made a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// The peer has.
    In,
    /// This ORB has.
    Out,
}

impl Direction {
    pub(crate) const ALL: [Direction; 2] = [Direction::In, Direction::Out];

    /// The direction in a word, for people.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
        }
    }
}

/// What a connection, or many, have carried, and what they carry now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Traffic {
    /// Requests that this ORB has begun to send: calls, oneways and locates.
    pub(crate) calls: u64,
    /// Requests that this ORB has carried out: their servants have returned. Connections count them modulo
    /// [`REQUESTS_MODULUS`].
    pub(crate) requests: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// Calls that wait for their replies now.
    pub(crate) calls_in_flight: u64,
    /// Requests in progress now.
    pub(crate) requests_in_flight: u64,
    /// Bytes written that the peer has not taken yet.
    pub(crate) unsent_bytes: u64,
}

impl Traffic {
    /// Adds the traffic of another connection.
    pub(crate) fn add(&mut self, other: &Traffic) {
        self.add_totals(other);
        self.calls_in_flight += other.calls_in_flight;
        self.requests_in_flight += other.requests_in_flight;
        self.unsent_bytes += other.unsent_bytes;
    }

    /// What a connection says after `before`, with its requests counted on. No total goes back.
    fn after(self, before: &Traffic) -> Traffic {
        Traffic {
            calls: self.calls.max(before.calls),
            requests: counted_on(before.requests, self.requests),
            sent_bytes: self.sent_bytes.max(before.sent_bytes),
            received_bytes: self.received_bytes.max(before.received_bytes),
            ..self
        }
    }

    /// Adds what another connection has carried that is over.
    fn add_totals(&mut self, other: &Traffic) {
        self.calls += other.calls;
        self.requests += other.requests;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
    }
}

/// A connection counts its requests in 24 bits. The table knows the rest, where it learns of the count once in half as many
/// requests: the reaper says it every few seconds.
const REQUESTS_MODULUS: u64 = 1 << 24;

/// A count of requests that is not behind `before`, from what a connection says of it. A larger step back than forth is that
/// of another thread, which has looked later and was quicker.
fn counted_on(before: u64, counted: u64) -> u64 {
    let more = counted.wrapping_sub(before) % REQUESTS_MODULUS;
    if more < REQUESTS_MODULUS / 2 { before + more } else { before }
}

/// What a look at a connection shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) traffic: Traffic,
    /// What the connection does, in a word.
    pub(crate) state: &'static str,
    /// Whether it still carries messages.
    pub(crate) is_open: bool,
}

impl Look {
    /// The look after another, which a quicker thread may have taken later: no total goes back.
    fn after(self, before: &Look) -> Look {
        Look { traffic: self.traffic.after(&before.traffic), ..self }
    }
}

/// A connection, for those that look at it.
pub(crate) trait Counted: Send + Sync {
    /// What the connection has carried. May take locks of the connection's lane.
    fn observe(&self) -> Look;

    /// The peer's address, for people. May call the system.
    fn peer(&self) -> String;
}

/// A connection as the last look has shown it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) number: u64,
    pub(crate) direction: Direction,
    pub(crate) since: Time,
    pub(crate) look: Look,
    /// Empty when no thread of the connection's lane has asked for it.
    pub(crate) peer: String,
}

/// The connections of a lane as one look has shown them.
#[derive(Debug, Default)]
pub(crate) struct ConnectionsSeen {
    /// Connections since the beginning, by their [`Direction`].
    pub(crate) opened: [u64; 2],
    /// What all connections have carried, by their [`Direction`]: those that have ended, too.
    pub(crate) traffic: [Traffic; 2],
    /// Connections that are open, by their [`Direction`].
    pub(crate) open: [u64; 2],
    /// Some of these: accepted ones first, and the oldest first.
    pub(crate) listed: Vec<Seen>,
}

/// The connections of one lane. Connections come and go with one lock each, which no call takes.
#[derive(Default)]
pub(crate) struct Connections(PiLock<Table>);

#[derive(Default)]
struct Table {
    opened: [u64; 2],
    /// What connections carried that have ended.
    ended: [Traffic; 2],
    open: BTreeMap<Key, Entry>,
}

/// A connection's direction, and its number among those of this direction in its lane.
pub(crate) type Key = (Direction, u64);

struct Entry {
    connection: Weak<dyn Counted>,
    since: Time,
    last: Look,
    /// The peer's address, once a look has asked for it.
    peer: String,
}

impl Connections {
    /// Lists a connection. The number tells it from others of its direction and lane.
    pub(crate) fn add(&self, key: Key, connection: Weak<dyn Counted>, since: Time) {
        let mut table = self.0.lock();
        table.opened[key.0 as usize] += 1;
        let last = Look { traffic: Traffic::default(), state: "new", is_open: true };
        table.open.insert(key, Entry { connection, since, last, peer: String::new() });
    }

    /// Takes what a connection says of the requests that it has carried out, modulo [`REQUESTS_MODULUS`].
    pub(crate) fn note_requests(&self, key: Key, counted: u32) {
        if let Some(entry) = self.0.lock().open.get_mut(&key) {
            entry.last.traffic.requests = counted_on(entry.last.traffic.requests, counted.into());
        }
    }

    /// Takes what a connection has carried that is being dropped.
    pub(crate) fn end(&self, key: Key, traffic: &Traffic) {
        let mut table = self.0.lock();
        if let Some(entry) = table.open.remove(&key) {
            table.ended[key.0 as usize].add_totals(&traffic.after(&entry.last.traffic));
        }
    }

    /// Looks at all connections, and lists `listed_max` open ones at most. A thread of another lane must not wait for
    /// locks of `lane`, and sees what the last look of a thread of the lane has shown.
    pub(crate) fn look(&self, lane: LaneId, listed_max: usize) -> ConnectionsSeen {
        if current_class().is_none() || current_lane() == lane {
            self.look_now(listed_max);
        }
        self.0.lock().seen(listed_max)
    }

    /// Looks at all connections, and at the peers of `listed_max` at most, for threads of other lanes. The caller is of
    /// the lane.
    pub(super) fn look_now(&self, listed_max: usize) {
        // Dropped at the end, without the lock: this thread may have become the last to hold a connection.
        let alive = self.0.lock().alive();
        let looks: Vec<(Key, Look)> = alive.iter().map(|(key, it)| (*key, it.observe())).collect();
        let peers = alive.iter().take(listed_max).map(|(key, it)| (*key, it.peer())).collect();
        self.0.lock().take(looks, peers);
    }
}

impl Table {
    /// The connections that are not being dropped.
    fn alive(&self) -> Vec<(Key, Arc<dyn Counted>)> {
        self.open.iter().filter_map(|(&key, entry)| Some((key, entry.connection.upgrade()?))).collect()
    }

    /// Takes what a look has shown. A connection that has ended meanwhile counts as ended.
    fn take(&mut self, looks: Vec<(Key, Look)>, peers: Vec<(Key, String)>) {
        for (key, look) in looks {
            if let Some(entry) = self.open.get_mut(&key) {
                entry.last = look.after(&entry.last);
            }
        }
        for (key, peer) in peers {
            if let Some(entry) = self.open.get_mut(&key) {
                entry.peer = peer;
            }
        }
    }

    /// Adds up what the last look has shown.
    fn seen(&self, listed_max: usize) -> ConnectionsSeen {
        let (opened, traffic) = (self.opened, self.ended);
        let mut seen = ConnectionsSeen { opened, traffic, ..ConnectionsSeen::default() };
        for (&(direction, number), entry) in &self.open {
            let &Entry { since, last: look, .. } = entry;
            seen.traffic[direction as usize].add(&look.traffic);
            if look.is_open {
                seen.open[direction as usize] += 1;
                if seen.listed.len() < listed_max {
                    seen.listed.push(Seen { number, direction, since, look, peer: entry.peer.clone() });
                }
            }
        }
        seen
    }
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::lane::Counters;

    struct Fake {
        counters: Arc<Counters>,
        key: Key,
        calls: AtomicU64,
    }

    impl Counted for Fake {
        fn observe(&self) -> Look {
            let calls = self.calls.load(Ordering::Relaxed);
            let traffic = Traffic { calls, calls_in_flight: 1, ..Traffic::default() };
            Look { traffic, state: "open", is_open: calls > 0 }
        }

        fn peer(&self) -> String {
            "peer".to_owned()
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let connections = &self.counters.of(LaneId::DEFAULT).connections;
            connections.end(self.key, &self.observe().traffic);
        }
    }

    fn fake(counters: &Arc<Counters>, number: u64, calls: u64) -> Arc<Fake> {
        let key = (Direction::Out, number);
        let fake = Arc::new(Fake { counters: counters.clone(), key, calls: AtomicU64::new(calls) });
        let weak: Weak<dyn Counted> = Arc::<Fake>::downgrade(&fake);
        counters.of(LaneId::DEFAULT).connections.add(key, weak, Time::ZERO);
        fake
    }

    #[test]
    fn what_connections_carried_stays_when_they_end() {
        let counters = Counters::new(false, None);
        let look = |listed_max| counters.of(LaneId::DEFAULT).connections.look(LaneId::DEFAULT, listed_max);
        let (one, two, ended) = (fake(&counters, 0, 3), fake(&counters, 1, 4), fake(&counters, 2, 0));
        let seen = look(1);
        let out = Direction::Out as usize;
        assert_eq!((seen.opened[out], seen.open[out], seen.listed.len()), (3, 2, 1));
        assert_eq!((seen.traffic[out].calls, seen.traffic[out].calls_in_flight), (7, 3));
        assert_eq!((seen.listed[0].number, &*seen.listed[0].peer), (0, "peer"));
        one.calls.store(5, Ordering::Relaxed);
        drop((one, ended));
        let seen = look(9);
        assert_eq!((seen.opened[out], seen.open[out], seen.listed[0].number), (3, 1, 1));
        assert_eq!((seen.traffic[out].calls, seen.traffic[out].calls_in_flight), (9, 1));
        drop(two);
        assert_eq!((look(9).traffic[out].calls, look(9).traffic[out].calls_in_flight), (9, 0));
    }

    #[test]
    fn a_late_look_takes_no_total_back() {
        let look = |calls, calls_in_flight| Look {
            traffic: Traffic { calls, calls_in_flight, ..Traffic::default() },
            state: "open",
            is_open: true,
        };
        assert_eq!(look(3, 1).after(&look(5, 2)), look(5, 1));
    }

    #[test]
    fn requests_are_counted_beyond_what_a_connection_has_room_for() {
        let mut count = 0;
        let mut known = 0;
        for more in [1, 0, REQUESTS_MODULUS / 2 - 1, 5, 1_000_000, REQUESTS_MODULUS / 2 - 1] {
            count += more;
            known = counted_on(known, count % REQUESTS_MODULUS);
            assert_eq!(known, count);
            assert_eq!(counted_on(known, (count - 1) % REQUESTS_MODULUS), known, "a late look");
        }
        assert!(count > REQUESTS_MODULUS);
    }

    #[test]
    fn threads_of_other_lanes_see_the_last_look() {
        use crate::base::spawner::{NewThread, ThreadClass};
        let counters = Counters::new(false, None);
        let fake = fake(&counters, 0, 3);
        let in_lane = |lane: usize, calls: u64| {
            fake.calls.store(calls, Ordering::Relaxed);
            let (tell, told) = std::sync::mpsc::channel();
            let counters = counters.clone();
            let thread =
                NewThread::new("ironorb-test", ThreadClass::Worker).in_lane(LaneId::new(lane).unwrap());
            let look = move || counters.of(LaneId::DEFAULT).connections.look(LaneId::DEFAULT, 1);
            thread.spawn(move || tell.send(look().traffic[Direction::Out as usize].calls).unwrap()).unwrap();
            told.recv().unwrap()
        };
        assert_eq!((in_lane(0, 4), in_lane(5, 6), in_lane(0, 7)), (4, 4, 7));
    }
}
