//! What the lanes of an ORB count, and who looks: connections, rare events, latencies. Knows no driver.
//!
//! Calls keep what they need anyway, and a look adds it up ([`connections`]). What happens rarely is counted where it
//! happens ([`events`]). Latencies are measured only where an operator has asked ([`histogram`]).

mod connections;
mod events;
mod histogram;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

pub(crate) use connections::{Connections, ConnectionsSeen, Counted, Direction, Key, Look, Seen, Traffic};
pub(crate) use events::Event;
pub(crate) use histogram::{Distribution, Latencies};

/// The most connections of a snapshot, each of which takes some 150 bytes of the reply.
pub(crate) const CONNECTIONS_MAX: usize = 1000;

use crate::base::lane::{LaneId, PerLane, current_lane};
use events::Events;

/// What one lane counts.
#[derive(Debug)]
pub(crate) struct LaneCounters {
    pub(crate) events: Events,
    pub(crate) connections: Connections,
    /// Connections of a server that wait for a thread of its pool, beside those that wait in sockets.
    pub(crate) ready_connections: AtomicUsize,
    /// Requests that wait in the buffer of a server's pool.
    pub(crate) buffered_requests: AtomicUsize,
    /// `None` unless the ORB measures latencies.
    pub(crate) latencies: Option<Box<Latencies>>,
}

/// What the lanes of an ORB count.
#[derive(Debug)]
pub(crate) struct Counters {
    lanes: PerLane<LaneCounters>,
    measures: bool,
}

impl LaneCounters {
    fn new(measures: bool) -> LaneCounters {
        LaneCounters {
            events: Events::default(),
            connections: Connections::default(),
            ready_connections: AtomicUsize::new(0),
            buffered_requests: AtomicUsize::new(0),
            latencies: measures.then(Box::default),
        }
    }
}

impl Counters {
    /// Begins at zero. `measures` says whether latencies are measured.
    pub(crate) fn new(measures: bool) -> Arc<Counters> {
        Arc::new(Counters { lanes: PerLane::new(LaneCounters::new(measures)), measures })
    }

    /// What a lane counts.
    pub(crate) fn of(&self, lane: LaneId) -> &LaneCounters {
        self.lanes.get_or_init(lane, || LaneCounters::new(self.measures))
    }

    /// Has the status, which a thread of another lane tells, know what a lane's connections do now. For a thread of the
    /// lane that looks after the connections. Does nothing in an ORB with one lane: there the status looks itself.
    pub(crate) fn show_connections(&self, lane: LaneId) {
        if self.lanes.iter().nth(1).is_some() {
            self.of(lane).connections.look_now(CONNECTIONS_MAX);
        }
    }

    /// Counts an event in the calling thread's lane. For what happens rarely: it is one atomic addition.
    #[cold]
    pub(crate) fn count(&self, event: Event) {
        self.count_many(event, 1);
    }

    /// Counts events in the calling thread's lane.
    #[cold]
    pub(crate) fn count_many(&self, event: Event, count: u64) {
        self.of(current_lane()).events.add(event, count);
    }

    /// Where the calling thread's lane keeps its latencies; `None` unless the ORB measures them.
    pub(crate) fn latencies(&self) -> Option<&Latencies> {
        self.of(current_lane()).latencies.as_deref()
    }
}
