//! Takes a snapshot of an ORB. Each part of the ORB says what it has; nothing here decides or waits for long.

use std::process;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use super::watch::facts_of_thread;
use super::{Bucket, Connection, Fact, Histogram, Lane, Metric, OrbThread, Queue, Snapshot};
use crate::base::config::ServerConcurrency;
use crate::base::lane::LaneId;
use crate::base::spawner::{LiveThread, live_threads};
use crate::driver::client::ClientLane;
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::driver::server::lane::ServerLane;
use crate::lane::{
    CONNECTIONS_MAX, ConnectionsSeen, Direction, Distribution, Event, LaneCounters, Reading, ReadingKind,
    Seen, Traffic,
};

/// Takes a snapshot.
pub(super) fn snapshot(orb: &OrbCore) -> Snapshot {
    let mut snapshot = of_orb(orb);
    let mut room = CONNECTIONS_MAX;
    for lane in orb.server_lanes() {
        let counters = orb.counters.of(lane.id);
        let connections = counters.connections.look(lane.id, room);
        room -= connections.listed.len();
        let number = lane.id.index() as u16;
        let mut of_lane = InLane { lane: number, snapshot: &mut snapshot };
        of_lane.put_connections(&connections);
        of_lane.put_events(counters);
        of_lane.put_latencies(counters);
        of_lane.put_queues(counters, lane, orb.connector.lane(lane.id));
        of_lane.put_queue(queue("tasks", "held", orb.adapter_threads.waiting(lane.id), 0));
        of_lane.put_limits(&connections, lane, orb.connector.lane(lane.id));
        snapshot.lanes.push(Lane { number, name: lane.name.clone(), more: Vec::new() });
    }
    put_queues(orb, &mut snapshot);
    put_caches(orb, &mut snapshot);
    put_added(orb, &mut snapshot);
    snapshot
}

/// The requests that are not answered, in all lanes.
pub(super) fn requests_in_flight(orb: &OrbCore) -> u64 {
    let of_lane = |lane: &ServerLane| {
        let seen = orb.counters.of(lane.id).connections.look(lane.id, 0);
        seen.traffic.iter().map(|traffic| traffic.requests_in_flight).sum::<u64>()
    };
    orb.server_lanes().map(of_lane).sum()
}

/// What concerns the ORB and its process.
fn of_orb(orb: &OrbCore) -> Snapshot {
    let taken_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Snapshot {
        product: "IronORB".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        orb_id: orb.orb_id.clone(),
        server_id: orb.server_id.clone(),
        process_id: process::id(),
        taken_at_us: taken_at.as_micros() as u64,
        up_us: clock::now().since(orb.begun).as_micros() as u64,
        threads: threads(),
        ..Snapshot::default()
    }
}

fn threads() -> Vec<OrbThread> {
    let of = |thread: LiveThread| OrbThread {
        more: facts_of_thread(&thread),
        name: thread.name,
        duty: thread.class.word().to_owned(),
        lane: thread.lane.index() as u16,
        priority: thread.priority.into(),
        system_id: thread.system_id,
    };
    live_threads().into_iter().map(of).collect()
}

/// A snapshot, while what concerns one lane is put into it.
struct InLane<'s> {
    lane: u16,
    snapshot: &'s mut Snapshot,
}

impl InLane<'_> {
    fn put(&mut self, (name, kind, help): Described, label: Option<(&str, &str)>, value: u64) {
        let labels = labels(self.lane, label);
        self.snapshot.metrics.push(metric((name, kind, help), labels, value));
    }

    fn put_connections(&mut self, seen: &ConnectionsSeen) {
        for direction in Direction::ALL {
            let label = Some(("direction", direction.word()));
            let at = direction as usize;
            self.put(OPENED, label, seen.opened[at]);
            self.put(OPEN, label, seen.open[at]);
            let Traffic { sent_bytes, received_bytes, unsent_bytes, .. } = seen.traffic[at];
            self.put(SENT, label, sent_bytes);
            self.put(RECEIVED, label, received_bytes);
            self.put(UNSENT, label, unsent_bytes);
        }
        let sum = |of: fn(&Traffic) -> u64| seen.traffic.iter().map(of).sum();
        self.put(CALLS, None, sum(|traffic| traffic.calls));
        self.put(CALLS_IN_FLIGHT, None, sum(|traffic| traffic.calls_in_flight));
        self.put(REQUESTS, None, sum(|traffic| traffic.requests));
        self.put(REQUESTS_IN_FLIGHT, None, sum(|traffic| traffic.requests_in_flight));
        let now = clock::now();
        for seen in &seen.listed {
            let Seen { number, direction, since, look, peer } = seen;
            let traffic = look.traffic;
            self.snapshot.connections.push(Connection {
                id: *number,
                lane: self.lane,
                direction: direction.word().to_owned(),
                peer: peer.clone(),
                state: look.state.to_owned(),
                age_us: now.since(*since).as_micros() as u64,
                calls_total: traffic.calls,
                calls_in_flight: traffic.calls_in_flight,
                requests_total: traffic.requests,
                requests_in_flight: traffic.requests_in_flight,
                sent_bytes_total: traffic.sent_bytes,
                received_bytes_total: traffic.received_bytes,
                unsent_bytes: traffic.unsent_bytes,
                more: Vec::new(),
            });
        }
    }

    fn put_events(&mut self, counters: &LaneCounters) {
        for &event in Event::ALL {
            let described = (event.metric(), "counter", event.help());
            self.put(described, event.label(), counters.events.get(event));
        }
    }

    fn put_latencies(&mut self, counters: &LaneCounters) {
        let Some(latencies) = &counters.latencies else { return };
        for ((name, help), histogram) in [
            (UPCALL_LATENCY, &latencies.upcalls),
            (CALL_LATENCY, &latencies.calls),
            (CACHE_AGE, &latencies.cached_reads),
        ] {
            let Distribution { count, sum_ns, max_ns, buckets } = histogram.read();
            self.snapshot.histograms.push(Histogram {
                name: name.to_owned(),
                help: help.to_owned(),
                labels: labels(self.lane, None),
                count_total: count,
                sum_ns_total: sum_ns,
                max_ns,
                buckets: buckets.into_iter().map(|(upper_ns, count)| Bucket { upper_ns, count }).collect(),
            });
        }
    }

    fn put_queue(&mut self, queue: Queue) {
        self.snapshot.queues.push(Queue { lane: self.lane, ..queue });
    }

    /// What waits for threads of the lane.
    fn put_queues(&mut self, counters: &LaneCounters, lane: &ServerLane, calls: &ClientLane) {
        let mut put = |queue| self.put_queue(queue);
        let items = counters.ready_connections.load(Ordering::Relaxed);
        put(queue("ready_connections", "", items, lane.config.server_connections_max));
        if let ServerConcurrency::ThreadPool(pool) = lane.config.concurrency
            && let Some((requests_max, _)) = pool.queue_limits()
        {
            let items = counters.buffered_requests.load(Ordering::Relaxed);
            put(queue("buffered_requests", "", items, requests_max));
        }
        for (owner, items) in calls.waiting_tasks() {
            put(queue("tasks", owner, items, 0));
        }
        put(queue("receiver_work", "", calls.receiver().queued(), 0));
    }

    /// What is used of the lane's limits, and the limits. A limit that is off is left out.
    fn put_limits(&mut self, seen: &ConnectionsSeen, lane: &ServerLane, calls: &ClientLane) {
        let config = &lane.config;
        let mut put = |name: &str, used: usize, most: Option<usize>| {
            self.put(LIMIT_USED, Some(("limit", name)), used as u64);
            if let Some(most) = most {
                self.put(LIMIT_MAX, Some(("limit", name)), most as u64);
            }
        };
        put("clientConnectionsMax", calls.connected(), Some(config.client_connections_max));
        let accepted = seen.open[Direction::In as usize] as usize;
        put("serverConnectionsMax", accepted, Some(config.server_connections_max));
        put("serverThreadsMax", lane.threads.threads(), Some(lane.threads.threads_max()));
        if let Some(requests) = &lane.requests {
            put("serverRequestsMax", requests.requests(), config.server_requests_max);
        }
        if let Some(memory) = &lane.receive_memory {
            put("receiveMemoryMax", memory.taken_bytes(), config.receive_memory_max);
        }
    }
}

/// The queues of the whole ORB.
fn put_queues(orb: &OrbCore, snapshot: &mut Snapshot) {
    let queues = &mut snapshot.queues;
    let config = &orb.config;
    let (mut held_total, mut refused_total) = (0, 0);
    for manager in orb.adapter.managers().list() {
        let held = manager.held_by_all();
        let queue = queue("held_requests", manager.id(), held.requests, config.held_requests_max);
        let bytes_max = config.connection.framer.message_bytes_max as u64;
        queues.push(Queue { bytes: held.bytes as u64, bytes_max, ..queue });
        held_total += held.held_total;
        refused_total += held.refused_total;
    }
    let lane = LaneId::DEFAULT.index() as u16;
    let mut put = |described, value| snapshot.metrics.push(metric(described, labels(lane, None), value));
    put(HELD, held_total);
    put(HELD_REFUSED, refused_total);
    put(LATE, orb.adapter.late_requests());
    put(MISPLACED, orb.adapter.misplaced_requests());
}

/// What the ORB's clients hold of it, and what it holds of its servers. Both count for the whole ORB, in its first lane.
fn put_caches(orb: &OrbCore, snapshot: &mut Snapshot) {
    let lane = LaneId::DEFAULT.index() as u16;
    let mut put = |described, label, value| {
        snapshot.metrics.push(metric(described, labels(lane, label), value));
    };
    let (client, server) = (Some(("side", "client")), Some(("side", "server")));
    let cache = orb.adapter.cache();
    let (kept, answered) = (cache.counts(), cache.answered());
    put(CACHE_FILLS, server, answered.fills.load(Ordering::Relaxed));
    put(CACHE_PROBES, server, answered.probes.load(Ordering::Relaxed));
    put(CACHE_CARRIED, server, answered.carried.load(Ordering::Relaxed));
    put(CACHE_UPDATES, server, answered.updates.load(Ordering::Relaxed));
    put(CACHE_WRITES, None, answered.writes.load(Ordering::Relaxed));
    put(CACHE_SESSIONS, server, kept.sessions);
    put(CACHE_OPENED, None, kept.sessions_opened);
    put(CACHE_HELD, None, kept.held);
    put(CACHE_UNTOLD, None, kept.untold);
    put(CACHE_EVICTED, None, kept.evicted);
    put(CACHE_POSITION, None, cache.head().0);
    let holds = orb.cache.counts();
    put(CACHE_SESSIONS, client, holds.sessions);
    put(CACHE_ENTRIES, None, holds.entries);
    if let Some(hits) = holds.hits {
        put(CACHE_HITS, None, hits);
    }
    snapshot.more.push(fact("cache_epoch", &format!("{:016x}", cache.epoch().0)));
}

/// What crates above the ORB count.
fn put_added(orb: &OrbCore, snapshot: &mut Snapshot) {
    let lane = LaneId::DEFAULT.index() as u16;
    for Reading { name, kind, help, label, value } in orb.counters.added.read() {
        let kind = match kind {
            ReadingKind::Counter => "counter",
            ReadingKind::Gauge => "gauge",
        };
        snapshot.metrics.push(metric((name, kind, help), labels(lane, label), value));
    }
}

/// The name of a metric, its kind, and what it says.
type Described = (&'static str, &'static str, &'static str);

const OPENED: Described = ("connections_opened_total", "counter", "Connections that have been made.");
const OPEN: Described = ("connections_open", "gauge", "Connections that are open.");
const SENT: Described = ("sent_bytes_total", "counter", "Bytes sent over connections.");
const RECEIVED: Described = ("received_bytes_total", "counter", "Bytes received over connections.");
const UNSENT: Described = ("unsent_bytes", "gauge", "Bytes written that peers have not taken.");
const CALLS: Described =
    ("calls_total", "counter", "Requests sent: calls, oneways and locates, repetitions included.");
const CALLS_IN_FLIGHT: Described = ("calls_in_flight", "gauge", "Calls that wait for their replies.");
const REQUESTS: Described =
    ("requests_total", "counter", "Requests carried out: their servants have returned.");
const REQUESTS_IN_FLIGHT: Described = ("requests_in_flight", "gauge", "Requests that are not answered yet.");
const HELD: Described = ("held_requests_total", "counter", "Requests that have waited for POA managers.");
const HELD_REFUSED: Described = (
    "held_requests_refused_total",
    "counter",
    "Requests refused because as many waited as may: heldRequestsMax.",
);
const LATE: Described = (
    "late_requests_total",
    "counter",
    "Requests dropped before their upcalls, because their callers waited no longer.",
);
const MISPLACED: Described = (
    "misplaced_requests_total",
    "counter",
    "Requests served at the priority of their lane, because their own is not the lane's.",
);
const CACHE_FILLS: Described = (Event::CacheFilled.metric(), "counter", Event::CacheFilled.help());
const CACHE_PROBES: Described = (Event::CacheProbed.metric(), "counter", Event::CacheProbed.help());
const CACHE_CARRIED: Described =
    (Event::CacheProbeCarried.metric(), "counter", Event::CacheProbeCarried.help());
const CACHE_UPDATES: Described = (Event::CacheUpdated.metric(), "counter", Event::CacheUpdated.help());
const CACHE_WRITES: Described = ("cache_writes_total", "counter", "Writes of states that clients held.");
const CACHE_SESSIONS: Described = ("cache_sessions", "gauge", "Sessions of caches.");
const CACHE_OPENED: Described =
    ("cache_sessions_opened_total", "counter", "Sessions that have been opened for clients' caches.");
const CACHE_HELD: Described =
    ("cache_held", "gauge", "Objects that clients may hold, once for each client that may.");
const CACHE_UNTOLD: Described =
    ("cache_untold", "gauge", "Changes that clients are not known to have taken, once for each client.");
const CACHE_EVICTED: Described =
    ("cache_evicted_total", "counter", "Objects that a client held no more because it held too many.");
const CACHE_POSITION: Described =
    ("cache_log_position", "gauge", "The end of the log of writes that clients are told of.");
const CACHE_ENTRIES: Described = ("cache_entries", "gauge", "Objects that the ORB holds or asks for.");
const CACHE_HITS: Described =
    ("cache_hits_total", "counter", "Cached reads that asked no server, if the ORB counts them.");
const CACHE_AGE: (&str, &str) =
    ("cache_age", "The ages of values that cached reads gave which had to ask, as the reads ended.");
const LIMIT_USED: Described = ("limit_used", "gauge", "What is used of a limit, in the unit of its setting.");
const LIMIT_MAX: Described = ("limit_max", "gauge", "The limit that a setting gives.");
const UPCALL_LATENCY: (&str, &str) = (
    "upcall_latency",
    "From a request's taking by a thread until its servant has returned and its reply is written.",
);
const CALL_LATENCY: (&str, &str) =
    ("call_latency", "From the beginning of a synchronous call until its reply has come.");

fn labels(lane: u16, label: Option<(&str, &str)>) -> Vec<Fact> {
    let lane = fact("lane", &lane.to_string());
    std::iter::once(lane).chain(label.map(|(name, value)| fact(name, value))).collect()
}

fn fact(name: &str, value: &str) -> Fact {
    Fact { name: name.to_owned(), value: value.to_owned() }
}

fn metric((name, kind, help): Described, labels: Vec<Fact>, value: u64) -> Metric {
    Metric { name: name.to_owned(), kind: kind.to_owned(), help: help.to_owned(), labels, value }
}

fn queue(name: &str, owner: &str, items: usize, items_max: usize) -> Queue {
    let (name, owner) = (name.to_owned(), owner.to_owned());
    Queue { name, owner, items: items as u64, items_max: items_max as u64, ..Queue::default() }
}
