//! All object adapters of an ORB: from an object key to its servant. The messages around that are handled in
//! `serving`.
//!
//! Never runs application code with a lock held.

mod directory;
mod parked_request;
mod priorities;
mod request_cache;
mod scheduling;
mod serving;
mod session;
mod threadpools;

pub(crate) use parked_request::ParkedRequest;
pub(crate) use priorities::{Precedence, ToldPriority, no_such_threadpool};
pub(crate) use session::Session;
pub(crate) use threadpools::{CannotEnd, CannotReserve, Threadpools};

use std::any::{Any, TypeId};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ironorb_cache::{Epoch, Moment, Opened, SessionId};
use ironorb_giop::Version;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::framer::BUFFER_BYTES;
use ironorb_giop::message::{AddressingDisposition, Message, MessageType};
use ironorb_giop::minor::MinorCode;

use crate::base::config::{Demultiplexing, OrbConfig};
use crate::base::gate::Gate;
use crate::base::lane::LaneId;
use crate::base::lane_table::LaneTable;
use crate::base::lease::OrbBindings;
use crate::base::locks::PiLock;
use crate::base::memory_plan::MemoryPlan;
use crate::base::randomness::Randomness;
use crate::cache::{LogHost, ServerCache};
use crate::interceptor::{ForwardedRequests, Interceptors};
use crate::object::priority::RealTimeConfig;
use crate::object::request_contexts::ServerContexts;
use crate::object::threadpool::{LaneFacts, ThreadpoolId};
use crate::poa::key::{self, Nonce, ParsedKey, Slot};
use crate::poa::servant::{Promise, Promises};
use crate::poa::{
    AdapterDriver, AdapterHost, HoldMode, MainThread, ManagerState, Managers, ObjectSelector, PoaError,
    PoaInner, PoaManager, Refusal, Upcall, not_exist,
};
use directory::{Directory, Replaced, Step, Table};

/// All adapters of an ORB.
pub(crate) struct Adapter {
    nonce: Nonce,
    randomness: Randomness,
    /// What requests read of the adapters.
    directory: Directory,
    /// The adapters in the making. The thread that holds the lock changes the directory.
    table: PiLock<Table>,
    bindings: Arc<OrbBindings>,
    demultiplexing: Demultiplexing,
    /// The request cache is in use.
    caches_requests: bool,
    /// How many paths have adapters in the making.
    making: AtomicUsize,
    managers: Managers,
    main_thread: MainThread,
    driver: Arc<dyn AdapterDriver>,
    host: Weak<dyn AdapterHost>,
    config: OrbConfig,
    /// The memory of the process, if it is planned.
    memory: Option<MemoryPlan>,
    has_interceptors: bool,
    /// What the program reads from requests.
    server_contexts: ServerContexts,
    /// Carries out requests whose results another client waits for.
    forwarded: Option<Arc<dyn ForwardedRequests>>,
    /// How the ORB treats priorities, if it is a real-time ORB.
    real_time: Option<RealTimeConfig>,
    /// The ORB's lanes.
    lanes: LaneTable<LaneFacts>,
    /// Its thread pools.
    threadpools: Arc<Threadpools>,
    /// Whether one of them is for requests that are not scheduled.
    has_best_effort_lane: bool,
    /// Requests that were served at the priority of their lane instead of their own.
    misplaced_requests: AtomicU64,
    /// How far statistical operations keep their promises.
    promises: Promises,
    /// Which clients hold the states of objects.
    cache: Arc<ServerCache>,
    /// The requests that were dropped because they came too late.
    late_requests: AtomicU64,
    /// Whether an adapter marks the packets of replies.
    marks_replies: AtomicBool,
    /// Requests without service contexts concern a deadline or a priority, too.
    reads_contexts: bool,
    /// Every request concerns interceptors or contexts of the program, has a deadline, or is to be addressed otherwise.
    has_extras: bool,
    /// The largest message, in bytes, that the short forms of the ways to a servant take; 0 with extras.
    plain_bytes_max: usize,
    /// How long a request waits for an adapter that another thread makes; `None` for ever.
    startup_timeout: Option<Duration>,
}

/// Why an adapter cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CannotRegister {
    PathIsTaken,
    PoolHasEnded,
}

impl Adapter {
    /// Which clients hold the states of objects.
    pub(crate) fn cache(&self) -> &Arc<ServerCache> {
        &self.cache
    }

    /// Opens a session for a client's cache.
    pub(crate) fn open_cache_session(&self, now: Moment) -> Opened {
        self.cache.open(SessionId(self.randomness.nonce()), now)
    }

    /// The memory of the process, if it is planned.
    pub(crate) fn memory(&self) -> Option<&MemoryPlan> {
        self.memory.as_ref()
    }

    pub(crate) fn new(
        randomness: Randomness,
        config: &OrbConfig,
        interceptors: &Interceptors,
        (real_time, lanes, threadpools): (Option<RealTimeConfig>, LaneTable<LaneFacts>, Arc<Threadpools>),
        driver: Arc<dyn AdapterDriver>,
        (host, log_host): (Weak<dyn AdapterHost>, Arc<dyn LogHost>),
    ) -> Self {
        let has_interceptors = !interceptors.server.is_empty();
        let has_best_effort_lane = lanes.iter().any(|lane| lane.is_best_effort);
        let demanded = config.other_addressing_demanded(Version::V1_2, AddressingDisposition::Key);
        let has_extras = has_interceptors
            || !interceptors.server_contexts.is_empty()
            || config.deadline_propagation
            || demanded.is_some();
        Adapter {
            startup_timeout: config.call_timeout,
            nonce: Nonce(randomness.nonce()),
            cache: Arc::new(ServerCache::new(Epoch(randomness.nonce()), log_host, config.cache_held_max)),
            memory: config.memory.map(MemoryPlan::new),
            randomness,
            directory: Directory::default(),
            table: PiLock::default(),
            bindings: Arc::default(),
            demultiplexing: config.demultiplexing,
            caches_requests: Adapter::may_cache(config),
            making: AtomicUsize::new(0),
            managers: Managers::default(),
            main_thread: MainThread::new(driver.clone()),
            driver,
            host,
            config: config.clone(),
            has_interceptors,
            server_contexts: interceptors.server_contexts.clone(),
            forwarded: interceptors.forwarded.clone(),
            marks_replies: AtomicBool::new(false),
            reads_contexts: config.deadline_propagation || real_time.is_some(),
            real_time,
            has_best_effort_lane,
            threadpools,
            lanes,
            misplaced_requests: AtomicU64::new(0),
            promises: Promises::default(),
            late_requests: AtomicU64::new(0),
            has_extras,
            plain_bytes_max: if has_extras { 0 } else { BUFFER_BYTES },
        }
    }

    pub(crate) fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// Where the ORB's random numbers come from.
    pub(crate) fn randomness(&self) -> &Randomness {
        &self.randomness
    }

    /// What the bindings have in common that threads of this process hold leases of.
    #[inline]
    pub(crate) fn bindings(&self) -> &Arc<OrbBindings> {
        &self.bindings
    }

    pub(crate) fn managers(&self) -> &Managers {
        &self.managers
    }

    pub(crate) fn main_thread(&self) -> &MainThread {
        &self.main_thread
    }

    /// What runs the adapters.
    pub(crate) fn driver(&self) -> &Arc<dyn AdapterDriver> {
        &self.driver
    }

    /// The ORB's settings.
    pub(crate) fn config(&self) -> &OrbConfig {
        &self.config
    }

    /// How many requests have been dropped because they came too late.
    pub(crate) fn late_requests(&self) -> u64 {
        self.late_requests.load(Ordering::Relaxed)
    }

    /// How far the statistical operation with this type keeps its promise.
    pub(crate) fn promise(&self, operation: TypeId) -> Arc<Promise> {
        if let Some(promise) = self.promises.get(&operation) {
            return promise;
        }
        self.promises.insert_if_absent(operation, Arc::default);
        self.promises.get(&operation).unwrap_or_default()
    }

    /// The ORB of the adapters. `None` only while it is being dropped.
    fn host(&self) -> Option<Arc<dyn AdapterHost>> {
        self.host.upgrade()
    }

    /// Makes a manager and enters it in the ORB's list. Without an `id`, generates one.
    pub(super) fn create_manager(
        &self,
        id: Option<&str>,
        state: ManagerState,
    ) -> Result<PoaManager, PoaError> {
        self.managers.create(self, id, state)
    }

    /// Makes a manager of this ORB's adapters.
    pub(crate) fn make_manager(&self, id: String, state: ManagerState, held_max: usize) -> PoaManager {
        let main_thread = self.main_thread.monitor();
        PoaManager::new(id, state, held_max, &self.bindings, main_thread, &self.driver)
    }

    /// Adds an adapter of a thread pool, which `make` makes for a slot and an instance number. Fails when its path is taken,
    /// and when the pool has ended.
    pub(crate) fn register(
        &self,
        path: Vec<u8>,
        threadpool: Option<ThreadpoolId>,
        make: impl FnOnce(Slot, u32) -> Arc<PoaInner>,
    ) -> Result<Arc<PoaInner>, CannotRegister> {
        if !self.threadpools.begin_use(threadpool) {
            return Err(CannotRegister::PoolHasEnded);
        }
        let mut replaced = Replaced::new();
        let added = self.table.lock().add(&self.directory, path, make, &mut replaced);
        self.discard(replaced);
        added.ok_or_else(|| {
            self.threadpools.end_use(threadpool);
            CannotRegister::PathIsTaken
        })
    }

    /// Takes an adapter out whose destruction is through.
    pub(crate) fn unregister(&self, slot: Slot, path: &[u8], threadpool: Option<ThreadpoolId>) {
        let mut replaced = Replaced::new();
        self.table.lock().remove(&self.directory, slot, path, &mut replaced);
        self.discard(replaced);
        self.threadpools.end_use(threadpool);
    }

    /// The ORB's thread pools.
    pub(crate) fn threadpools(&self) -> &Threadpools {
        &self.threadpools
    }

    /// Adds the next lane. One thread does this at a time.
    pub(crate) fn add_lane(&self, id: LaneId, lane: LaneFacts) {
        self.lanes.add(id, lane);
    }

    fn discard(&self, replaced: Replaced) {
        for value in replaced {
            self.driver.discard(Box::new(value));
        }
    }

    /// The adapter at a path. Adapter activators are asked for adapters on the path that do not exist. If
    /// another thread is making one, this blocks until it is done.
    #[cold]
    pub(crate) fn find_or_activate(
        &self,
        path: &[u8],
        activation: AdapterLookup<'_>,
    ) -> Result<Option<Arc<PoaInner>>, Refusal> {
        loop {
            let step = self.next_step(path);
            let (parent, name, end) = match step {
                Step::Found(poa) => return Ok(Some(poa)),
                Step::Nowhere => return Ok(None),
                Step::Wait(gate) => {
                    if self.driver.wait_at(&gate, self.startup_timeout) {
                        continue;
                    }
                    return Err(Refusal::Exception(SystemException::new(
                        SystemExceptionKind::Transient,
                        MinorCode::TRANSIENT_DISCARDED,
                        CompletionStatus::No,
                    )));
                }
                Step::Ask { parent, name, end } => (parent, name, end),
            };
            // The question is asked before anything is in the making, because it may wait for the manager.
            let Some(question) = parent.inquire(activation)? else { return Ok(None) };
            let keeper = Gate::of_this_thread();
            {
                let mut table = self.table.lock();
                if !table.begin(&self.directory, &path[..end], keeper.gate()) {
                    continue; // another thread makes it
                }
                self.making.fetch_add(1, Ordering::SeqCst);
            }
            let made = question.ask(&name);
            let mut replaced = Replaced::new();
            let is_there = {
                let mut table = self.table.lock();
                let is_there = table.finish(&self.directory, &path[..end], &mut replaced);
                self.making.fetch_sub(1, Ordering::SeqCst);
                is_there
            };
            self.discard(replaced);
            drop(keeper);
            match made {
                Ok(true) if is_there => {}
                Ok(_) => return Ok(None),
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// The next step on the way to a path. Takes a lock only where there is no adapter at the path.
    #[cold]
    fn next_step(&self, path: &[u8]) -> Step {
        // It is asked for each reference that comes, and many an ORB only calls.
        if !self.directory.has_been_used() {
            return Step::Nowhere;
        }
        match self.directory.at_path(path) {
            Some(found) => Step::Found(found),
            None => self.table.lock().next_step(&self.directory, path),
        }
    }

    /// The adapter at a path, if this thread may see it. Takes a lock only while adapters are in the making.
    #[cold]
    fn visible(&self, path: &[u8]) -> Option<Arc<PoaInner>> {
        let found = self.directory.at_path(path);
        if found.is_some() || self.making.load(Ordering::SeqCst) == 0 {
            return found;
        }
        self.table.lock().visible(&self.directory, path)
    }

    /// Makes a plain key, such as `NameService`, stand for one of the ORB's keys.
    pub(crate) fn set_alias(&self, plain: Vec<u8>, key: Vec<u8>) {
        self.directory.aliases.insert(plain, key);
    }

    /// Makes keys that no adapter here has made ids of objects of this adapter.
    pub(crate) fn set_default_adapter(&self, poa: &Arc<PoaInner>) {
        let before = self.directory.default_adapter.set(Some(poa.clone()));
        self.discard(before.map(|it| -> Arc<dyn Any + Send + Sync> { it }).into_iter().collect());
    }

    /// The default adapter for a key, if no adapter here has made the key.
    #[cold]
    fn default_adapter_of(&self, key: &[u8]) -> Option<Arc<PoaInner>> {
        let default = self.directory.default_adapter.cloned()?;
        let is_ours = match key::parse(key) {
            ParsedKey::Slot { nonce, .. } => nonce == self.nonce,
            ParsedKey::Path { nonce, path, .. } => {
                nonce == self.nonce
                    || (nonce == Nonce::PERSISTENT && !matches!(self.next_step(path), Step::Nowhere))
            }
            ParsedKey::Foreign => self.directory.aliases.with(key, |alias| alias.is_some()),
        };
        (!is_ours).then_some(default)
    }

    /// The key that a plain key stands for; any other key as it is.
    pub(crate) fn without_alias(&self, key: Vec<u8>) -> Vec<u8> {
        self.directory.aliases.get(&key).unwrap_or(key)
    }

    /// Passes a request of this process to the servant of a key. Blocks where a manager holds requests. A
    /// servant locator gets `operation`.
    #[inline]
    pub(crate) fn begin_upcall(&self, key: &[u8], operation: &[u8]) -> Result<Upcall, Refusal> {
        match self.begin_upcall_now(key) {
            Some(upcall) => Ok(upcall),
            None => self.begin_upcall_slowly(key, operation, HoldMode::Wait),
        }
    }

    /// Passes a request to the servant of a key, if that needs no wait; `None` otherwise.
    #[inline]
    pub(crate) fn begin_upcall_now(&self, key: &[u8]) -> Option<Upcall> {
        match key::parse_without_priority(key) {
            ParsedKey::Slot { nonce, poa, object } if nonce == self.nonce => {
                self.directory.in_slot(poa)?.begin_upcall_now(ObjectSelector::Slot(object))
            }
            ParsedKey::Path { nonce, hint, instance, path, id } => {
                let begin = |found: Arc<PoaInner>| match found.accepts(nonce, instance) {
                    true => found.begin_upcall_now(ObjectSelector::Id(id)),
                    false => None,
                };
                // Adapters in the making are among the children already, where their makers see them.
                if self.demultiplexing == Demultiplexing::Delayered || self.making.load(Ordering::SeqCst) > 0
                {
                    return begin(self.directory.at(hint, path)?);
                }
                let root = self.directory.at_path(ROOT_PATH)?;
                begin(root.descendant(path)?)
            }
            ParsedKey::Slot { .. } => None,
            ParsedKey::Foreign => self.begin_upcall_at_own_priority(key),
        }
    }

    /// Does what [`begin_upcall_now`](Self::begin_upcall_now) does for the key of an object with a priority of its own.
    #[cold]
    fn begin_upcall_at_own_priority(&self, key: &[u8]) -> Option<Upcall> {
        let (priority, key) = key::split_priority(key)?;
        Some(self.begin_upcall_now(key)?.with_own_priority(priority))
    }

    #[cold]
    fn begin_upcall_slowly(
        &self,
        key: &[u8],
        operation: &[u8],
        on_hold: HoldMode<'_>,
    ) -> Result<Upcall, Refusal> {
        if let Some(default) = self.default_adapter_of(key) {
            return default.begin_upcall(ObjectSelector::Id(key), operation, on_hold);
        }
        if let Some((priority, key)) = key::split_priority(key) {
            let begun = self.begin_upcall_slowly(key, operation, on_hold);
            return begun.map(|upcall| upcall.with_own_priority(priority));
        }
        match key::parse_without_priority(key) {
            ParsedKey::Slot { nonce, poa, object } => {
                if nonce != self.nonce {
                    return Err(not_exist(MinorCode::STALE_KEY));
                }
                let found = self.directory.in_slot(poa);
                let found = found.ok_or_else(|| not_exist(MinorCode::NO_SUCH_ADAPTER))?;
                found.begin_upcall(ObjectSelector::Slot(object), operation, on_hold)
            }
            ParsedKey::Path { nonce, instance, path, id, .. } => {
                let found = self.find_by_path(nonce, instance, path, on_hold)?;
                found.begin_upcall(ObjectSelector::Id(id), operation, on_hold)
            }
            ParsedKey::Foreign => {
                match self.find_or_wait_for_startup(on_hold, || self.directory.aliases.get(key))? {
                    // An alias never leads to another alias: it stands for the key of an object of this ORB.
                    Some(target) if key::parse(&target) != ParsedKey::Foreign => {
                        self.begin_upcall_slowly(&target, operation, on_hold)
                    }
                    _ => Err(not_exist(MinorCode::NO_SUCH_OBJECT)),
                }
            }
        }
    }

    /// The adapter that a path key names.
    #[cold]
    fn find_by_path(
        &self,
        nonce: Nonce,
        instance: u32,
        path: &[u8],
        on_hold: HoldMode<'_>,
    ) -> Result<Arc<PoaInner>, Refusal> {
        if nonce != self.nonce && nonce != Nonce::PERSISTENT {
            return Err(not_exist(MinorCode::STALE_KEY));
        }
        let find = || self.visible(path).filter(|found| found.accepts(nonce, instance));
        if let Some(found) = self.find_or_wait_for_startup(on_hold, find)? {
            return Ok(found);
        }
        if nonce == Nonce::PERSISTENT
            && let Some(found) = self.find_or_activate(path, AdapterLookup::ForRequest(on_hold))?
            && found.accepts(nonce, instance)
        {
            return Ok(found);
        }
        Err(not_exist(MinorCode::OBJECT_NOT_EXIST_NO_ADAPTER))
    }

    /// Whether there is an object for this key, as a LocateRequest asks.
    #[cold]
    pub(crate) fn locate(&self, key: &[u8], on_hold: HoldMode<'_>) -> Result<(), Refusal> {
        match self.begin_upcall_slowly(key, b"_non_existent", on_hold) {
            Ok(upcall) => match upcall.ask(|servant, id| servant.is_here(id)) {
                Ok(true) => Ok(()),
                Ok(false) => Err(not_exist(MinorCode::NO_SUCH_OBJECT)),
                Err(e) => Err(Refusal::Exception(e)),
            },
            // The object's thread would know more, but a LocateRequest does not wait for it.
            Err(Refusal::NotThisThread(poa)) => match key::parse(&self.without_alias(key.to_vec())) {
                ParsedKey::Slot { object, .. } => poa.may_have(ObjectSelector::Slot(object)),
                ParsedKey::Path { id, .. } => poa.may_have(ObjectSelector::Id(id)),
                ParsedKey::Foreign => Ok(()),
            },
            Err(refusal) => Err(refusal),
        }
    }

    /// What a message that names an object can expect, as far as is known without asking a servant manager.
    #[cold]
    pub(crate) fn adapter_status_of(&self, message: &Message) -> AdapterStatus {
        match object_key_of(message) {
            Some(key) => self.adapter_status(key),
            None => AdapterStatus { has_adapter: false, is_held: false },
        }
    }

    fn adapter_status(&self, key: &[u8]) -> AdapterStatus {
        let (found, naming, may_come) = match key::parse(key) {
            ParsedKey::Slot { nonce, poa, object } if nonce == self.nonce => {
                let found = self.directory.in_slot(poa);
                (found, Some(ObjectSelector::Slot(object)), false)
            }
            ParsedKey::Slot { .. } => (None, None, false),
            ParsedKey::Path { nonce, hint, instance, path, id } => {
                let found = self.directory.at(hint, path).or_else(|| self.visible(path));
                (found.filter(|found| found.accepts(nonce, instance)), Some(ObjectSelector::Id(id)), true)
            }
            ParsedKey::Foreign => match self.directory.aliases.get(key) {
                // An alias never leads to another alias.
                Some(key) if key::parse(&key) != ParsedKey::Foreign => return self.adapter_status(&key),
                _ => (None, None, true),
            },
        };
        // The server may be starting, and the adapter may still come: see `find_or_wait_for_startup`.
        let root = || self.directory.at_path(ROOT_PATH).filter(|_| may_come);
        let holder = found.clone().or_else(root);
        let holds = holder.is_some_and(|poa| poa.manager().state() == ManagerState::Holding);
        let naming = naming.filter(|_| !holds);
        let is_held = holds || found.as_ref().zip(naming).is_some_and(|(poa, naming)| poa.is_busy(naming));
        AdapterStatus { has_adapter: found.is_some(), is_held }
    }

    /// Calls `find`. If it finds nothing while the root adapter's manager holds requests, calls it again when
    /// the manager no longer does. The server is starting, and clients of its earlier run must not learn that
    /// their objects are gone.
    #[inline]
    fn find_or_wait_for_startup<T>(
        &self,
        on_hold: HoldMode<'_>,
        find: impl Fn() -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        match find() {
            None => {
                self.wait_while_starting(on_hold)?;
                Ok(find())
            }
            found => Ok(found),
        }
    }

    #[cold]
    fn wait_while_starting(&self, on_hold: HoldMode<'_>) -> Result<(), Refusal> {
        match self.directory.at_path(ROOT_PATH) {
            Some(root) => root.wait_while_holding(on_hold),
            None => Ok(()),
        }
    }

    /// Whether a key names an object of this process: one that this process made, or a persistent or plain
    /// key that it knows.
    pub(crate) fn knows(&self, object_key: &[u8]) -> Ownership {
        match key::parse(object_key) {
            ParsedKey::Slot { nonce, .. } | ParsedKey::Path { nonce, .. } if nonce == self.nonce => {
                Ownership::Ours
            }
            ParsedKey::Path { nonce: Nonce::PERSISTENT, path, .. }
                if !matches!(self.next_step(path), Step::Nowhere) =>
            {
                Ownership::IfAtOurAddress
            }
            ParsedKey::Foreign if self.directory.aliases.with(object_key, |alias| alias.is_some()) => {
                Ownership::IfAtOurAddress
            }
            _ => Ownership::NotOurs,
        }
    }
}

/// What a request can expect of its adapter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdapterStatus {
    /// The adapter of its object exists.
    pub(crate) has_adapter: bool,
    /// The request would wait for a manager that holds requests, or for an object that is being incarnated or
    /// etherealised. A driver with a single thread must not wait.
    pub(crate) is_held: bool,
}

/// The object key of a Request or LocateRequest.
fn object_key_of(message: &Message) -> Option<&[u8]> {
    match message.header().kind {
        MessageType::Request => message.parse_request().ok().map(|request| request.object_key),
        MessageType::LocateRequest => message.parse_locate_request().ok().map(|request| request.object_key),
        _ => None,
    }
}

/// Whether a key names an object of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The key names an object of this process. The address in the reference does not matter.
    Ours,
    /// The key names an object of this process if the address is one of the ORB's.
    IfAtOurAddress,
    /// The key names no object of this process.
    NotOurs,
}

/// The path of the root adapter.
const ROOT_PATH: &[u8] = &[];

/// Why an adapter that may not exist is looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AdapterLookup<'m> {
    /// For a request. The state of the parent's manager applies to it.
    ForRequest(HoldMode<'m>),
    /// For the application.
    Direct,
}
