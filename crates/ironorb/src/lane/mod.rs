//! What the lanes of an ORB count, and who looks: connections, rare events, latencies. Knows no driver.
//!
//! Calls keep what they need anyway, and a look adds it up ([`connections`]). What happens rarely is counted where it
//! happens ([`events`]). Crates above the ORB add what they count ([`added`]). Latencies are measured only where an operator has asked ([`histogram`]).
//!
//! And in which order a lane serves what waits ([`waiting_requests`], [`urgency`]), and what it admits ([`admission`]).

mod added;
mod admission;
mod connections;
mod events;
mod histogram;
mod urgency;
mod waiting_requests;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) use added::Added;
pub use added::{Reading, ReadingKind};
pub(crate) use connections::{Connections, ConnectionsSeen, Counted, Direction, Key, Look, Seen, Traffic};
pub(crate) use events::Event;
pub(crate) use histogram::{Distribution, Histogram, Latencies};
pub(crate) use waiting_requests::{Offered, QueueLimits, Taken, WaitingRequests, admission};
pub(crate) use watch::{LaneWatch, RequestTimes};

/// The most connections of a snapshot, each of which takes some 150 bytes of the reply.
pub(crate) const CONNECTIONS_MAX: usize = 1000;

use crate::base::lane::{LaneId, PerLane, current_lane};
use crate::base::watch::{WatchConfig, Watching};
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
    /// `None` unless the ORB watches, or may begin to.
    pub(crate) watch: Option<Box<LaneWatch>>,
}

/// What the lanes of an ORB count.
#[derive(Debug)]
pub(crate) struct Counters {
    lanes: PerLane<LaneCounters>,
    measures: Measures,
    /// `None` unless the ORB watches, or may begin to.
    watching: Option<Watching>,
    /// As `watching` has it, for each request.
    is_watching: AtomicBool,
    /// What crates above the ORB count.
    pub(crate) added: Added,
}

/// What lanes measure beside counting.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measures {
    /// The latencies of calls and upcalls.
    pub(crate) latencies: bool,
    /// The parts of each request.
    pub(crate) requests: bool,
}

impl LaneCounters {
    fn new(measures: Measures) -> LaneCounters {
        LaneCounters {
            events: Events::default(),
            connections: Connections::default(),
            ready_connections: AtomicUsize::new(0),
            buffered_requests: AtomicUsize::new(0),
            latencies: measures.latencies.then(Box::default),
            watch: measures.requests.then(Box::default),
        }
    }
}

impl Counters {
    /// Begins at zero. Says whether latencies are measured, and how requests are watched.
    pub(crate) fn new(latencies: bool, watch: Option<WatchConfig>) -> Arc<Counters> {
        let watching = watch.map(Watching::new);
        let measures = Measures { latencies, requests: watching.is_some() };
        let is_watching = AtomicBool::new(watching.as_ref().is_some_and(Watching::is_on));
        Arc::new(Counters {
            lanes: PerLane::new(LaneCounters::new(measures)),
            measures,
            watching,
            is_watching,
            added: Added::default(),
        })
    }

    /// How the ORB watches; `None` unless it does, or may begin to.
    pub(crate) fn watching(&self) -> Option<&Watching> {
        self.watching.as_ref()
    }

    /// Begins or ends to watch. False in an ORB that was not made for it.
    pub(crate) fn set_watching(&self, is_on: bool) -> bool {
        let Some(watching) = &self.watching else { return false };
        watching.set(is_on);
        self.is_watching.store(is_on, Ordering::Relaxed);
        true
    }

    /// What a lane measures of requests; `None` while the ORB does not watch.
    pub(crate) fn watch_of(&self, lane: LaneId) -> Option<&LaneWatch> {
        if !self.is_watching.load(Ordering::Relaxed) {
            return None;
        }
        self.of(lane).watch.as_deref()
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
