//! What a lane owns for its clients: where it listens, its threads, and the limits of its connections together.

use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ironorb_giop::framer::ReceiveMemory;

use super::Shared;
use super::in_flight::InFlight;
use super::threads::ServerThreads;
use crate::base::config::{OrbConfig, ServerConcurrency};
use crate::base::lane::{self, LaneId};
use crate::base::locks::Snapshot;
use crate::base::thread_settings::ThreadSettingsId;
use crate::connection::UnreadReplies;
use crate::object::priority::Priority;
use crate::object::threadpool::{LaneFacts, ThreadpoolId};
use crate::transport::{Address, CustomTransport, Endpoint, TcpProperties};

/// What a lane is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LaneParts {
    /// The name by which programs find it; empty for the default lane.
    pub(crate) name: String,
    /// Its limits, and how its threads wait and serve. What belongs to the whole ORB is read from the default lane.
    pub(crate) config: OrbConfig,
    /// Where it listens.
    pub(crate) endpoints: Vec<Endpoint>,
    /// The addresses in references, if they are not those at which it listens.
    pub(crate) publish: Vec<String>,
    /// The priority of the lane's threads.
    pub(crate) priority: Option<Priority>,
    /// What the system is told of its threads, among it the system's priority, if it schedules by priorities.
    pub(crate) thread_settings: Option<ThreadSettingsId>,
    /// Whether it serves requests that are not scheduled.
    pub(crate) is_best_effort: bool,
    /// The thread pool that it belongs to.
    pub(crate) threadpool: Option<ThreadpoolId>,
    /// The properties of the TCP connections that it accepts, if they are its own.
    pub(crate) tcp: Option<TcpProperties>,
}

impl LaneParts {
    /// The number of the lane with this index, which the builder has bounded, and the priority of its threads.
    pub(crate) fn id(&self, index: usize) -> LaneId {
        let id = LaneId::new(index).expect("the builder bounds the number of lanes");
        id.with_threads(self.thread_settings)
    }
}

/// A lane, as its clients' connections see it.
pub(crate) struct ServerLane {
    pub(crate) id: LaneId,
    parts: LaneParts,
    /// The endpoints, once the system has chosen what they leave open.
    chosen: OnceLock<Vec<Endpoint>>,
    /// The addresses in references to objects that are called in this lane.
    published: OnceLock<Vec<Address>>,
    /// The count of requests in flight, if they are limited.
    pub(crate) requests: Option<Arc<InFlight>>,
    /// The threads that serve clients, and their limit.
    pub(crate) threads: Arc<ServerThreads>,
    /// What its threads share, while it listens.
    server: Snapshot<Weak<Shared>>,
    /// Whether its thread pool has been destroyed.
    has_ended: Arc<AtomicBool>,
    /// The bytes of replies that clients have not read, if they are limited.
    pub(crate) unread_replies: Option<Arc<UnreadReplies>>,
    /// The memory for large messages of all clients, if it is limited.
    pub(crate) receive_memory: Option<Arc<ReceiveMemory>>,
}

/// A lane is what it is made of, and more.
impl Deref for ServerLane {
    type Target = LaneParts;

    #[inline]
    fn deref(&self) -> &LaneParts {
        &self.parts
    }
}

impl ServerLane {
    pub(crate) fn new(id: LaneId, parts: LaneParts) -> ServerLane {
        let _its_locks_belong_to_it = lane::enter(id);
        let config = &parts.config;
        ServerLane {
            id,
            chosen: OnceLock::new(),
            published: OnceLock::new(),
            requests: config.server_requests_max.map(InFlight::new),
            threads: ServerThreads::new(config),
            server: Snapshot::nothing(),
            has_ended: Arc::default(),
            unread_replies: config.transmit_memory_max.map(UnreadReplies::new),
            receive_memory: config.receive_memory_max.map(|bytes| Arc::new(ReceiveMemory::new(bytes))),
            parts,
        }
    }

    /// What adapters know of it.
    pub(crate) fn facts(&self) -> LaneFacts {
        let LaneParts { priority, threadpool, is_best_effort, .. } = self.parts;
        LaneFacts { priority, threadpool, is_best_effort, has_ended: self.has_ended.clone() }
    }

    /// Notes what its threads share, when it begins to listen.
    pub(super) fn set_server(&self, shared: &Arc<Shared>) {
        let _before = self.server.set(Some(Arc::downgrade(shared)));
    }

    /// What its threads share; `None` where it does not listen, or no longer.
    pub(super) fn server(&self) -> Option<Arc<Shared>> {
        self.server.with(|server| server?.upgrade())
    }

    /// Whether its threads help out in lanes that are more urgent.
    pub(super) fn lends(&self) -> bool {
        matches!(self.config.concurrency, ServerConcurrency::ThreadPool(pool) if pool.borrowing)
    }

    /// The addresses to publish, for a lane that listens at `bound`.
    pub(crate) fn addresses_to_publish(
        &self,
        transports: &[Arc<dyn CustomTransport>],
        bound: Vec<Address>,
    ) -> io::Result<Vec<Address>> {
        super::published(&self.publish, transports, bound)
    }

    /// Fixes the addresses in references. The first ones stay.
    pub(crate) fn set_published(&self, addresses: Vec<Address>) {
        let _first = self.published.set(addresses);
    }

    /// The addresses in references; none before the lane listens, and after its end.
    pub(crate) fn published(&self) -> &[Address] {
        if self.has_ended() {
            return &[];
        }
        self.published.get().map_or(&[], Vec::as_slice)
    }

    /// Whether it listens, or is going to.
    pub(crate) fn listens(&self) -> bool {
        !self.endpoints.is_empty()
    }

    /// Where it listens: where it did before, if it did.
    pub(super) fn endpoints(&self) -> &[Endpoint] {
        self.chosen.get().unwrap_or(&self.endpoints)
    }

    /// Whether it has listened, and the system has chosen a part of where.
    pub(crate) fn has_chosen(&self) -> bool {
        self.chosen.get().is_some_and(|chosen| *chosen != self.endpoints)
    }

    /// Notes what the system has chosen for endpoints, whose addresses in references are these. The first choice stays.
    pub(super) fn note_chosen(&self, bound: &[Address]) {
        let chosen = || self.endpoints.iter().zip(bound).map(|(endpoint, bound)| endpoint.chosen(bound));
        self.chosen.get_or_init(|| chosen().collect());
    }

    /// Has no reference name the lane from now on: its thread pool has been destroyed.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }

    /// Has the lane serve again: its thread pool has been made again.
    pub(crate) fn revive(&self) {
        self.has_ended.store(false, Ordering::SeqCst);
    }

    /// Whether its thread pool has been destroyed.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Whether the lane is one that has these parts.
    pub(crate) fn is_of(&self, parts: &LaneParts) -> bool {
        self.parts == *parts
    }
}
