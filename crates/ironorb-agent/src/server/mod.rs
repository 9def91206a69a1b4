//! The agent as objects of an ORB, over a [`Registry`] and, if it is so configured, a store.
//!
//! Two threads serve it besides the ORB's: one ends leases and waits of watchers, the other tells watchers the news, so
//! that a watcher that does not read holds up neither registrations nor the ends of leases. Two more ask a store that agents
//! share, where there is one.

mod convert;
mod servant;
mod share;
mod watch;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ironorb::poa::PoaError;
use ironorb::{Deferred, Orb, Poa, PoaPolicies, SystemException, TypedRef as _};
use ironorb_services::StoreError;

use crate::idl::{AgentRef, AgentStatus, AgentWatchRef, Property};
use crate::naming::NamingFace;
use crate::registry::{Limits, Registry, RegistryError, Selection, SharedStore, Sharing, Start, Waiters};
use crate::store::{self, Store, Ticket};
use servant::AgentServant;
use share::{ClaimReply, Shares};
use watch::{News, WatchReply, WatchServant};

/// The plain key of an agent: `corbaloc::HOST:PORT/IronORBAgent`.
pub const AGENT_KEY: &str = "IronORBAgent";

/// The port at which clients look for an agent, and at which `ironorb agent serve` listens.
pub const AGENT_PORT: u16 = 2811;

/// An agent that an ORB serves, until this is dropped or the ORB shuts down.
///
/// ```
/// # let orb = ironorb::Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
/// use ironorb_agent::Agent;
///
/// let agent = Agent::builder().serve(&orb)?;
/// println!("serving {}", agent.corbaloc());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Agent {
    shared: Arc<Shared>,
    reference: AgentRef,
    poas: Vec<Poa>,
    threads: Vec<JoinHandle<()>>,
}

/// What an agent is configured with.
#[must_use = "serve() starts the agent"]
pub struct AgentBuilder {
    limits: Limits,
    store: Option<PathBuf>,
    backups: Option<PathBuf>,
    shared: Option<Box<dyn SharedStore>>,
    report: StoreFaultReport,
    has_naming: bool,
}

/// A callback for errors of the store. Clients see such an error only as PERSIST_STORE.
pub type StoreFaultReport = Box<dyn Fn(&StoreError) + Send + Sync>;

/// The reason why an agent cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The ORB serves an agent or a naming service already, or is shutting down.
    #[error("the ORB cannot serve an agent: {0}")]
    Adapter(#[from] PoaError),
    /// An object cannot have its plain key.
    #[error("the ORB cannot serve an agent: {0}")]
    Key(#[from] SystemException),
    /// The store cannot be opened.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The system makes no thread.
    #[error("cannot make a thread of the agent: {0}")]
    Thread(#[from] std::io::Error),
}

impl AgentBuilder {
    /// How much clients may store, and how long leases are.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps names in this file; it is created if it does not exist. A registration is on disk before it is answered.
    /// Without a store, an agent that is started anew knows nothing, and its clients register again within a lease.
    pub fn store(mut self, path: impl Into<PathBuf>) -> Self {
        self.store = Some(path.into());
        self
    }

    /// Lets clients ask for backups, which go into this folder.
    pub fn backups(mut self, folder: impl Into<PathBuf>) -> Self {
        self.backups = Some(folder.into());
        self
    }

    /// Shares names with other agents through a store of theirs. Names of others are told here, and the own ones there; which
    /// process has an exclusive name is decided there.
    pub fn share(mut self, store: impl SharedStore + 'static) -> Self {
        self.shared = Some(Box::new(store));
        self
    }

    /// Calls this with errors of the store.
    pub fn on_store_fault(mut self, report: impl Fn(&StoreError) + Send + Sync + 'static) -> Self {
        self.report = Box::new(report);
        self
    }

    /// Whether the names are also served as those of a naming service, under the plain key `NameService`. Default: yes.
    /// An ORB that serves a naming service of its own must not.
    pub fn naming(mut self, is_served: bool) -> Self {
        self.has_naming = is_served;
        self
    }

    /// Serves the agent at the ORB's endpoints. Blocks while it reads the store.
    pub fn serve(self, orb: &Orb) -> Result<Agent, StartError> {
        let started = Instant::now();
        let (life, is_shared) = (unguessable() as u64, self.shared.is_some());
        let (registry, store) = match &self.store {
            Some(path) => {
                let (store, restored, start) = Store::open(path)?;
                let start = Start { life, is_shared, ..start };
                // Leases begin again when the agent hears renewals, however long its store takes to open.
                (Registry::restore(start, self.limits, restored, started.elapsed()), Some(store))
            }
            None => (Registry::new(Start { life, is_shared, ..Start::default() }, self.limits), None),
        };
        let (news, to_tell) = mpsc::channel();
        let shared = Arc::new(Shared {
            started,
            state: RwLock::new(State {
                registry,
                waiters: Mutex::default(),
                seen: started.elapsed(),
                news: Some(news),
                sharing: is_shared.then(|| Sharing::new(life, started.elapsed())),
            }),
            shares: self.shared.map(Shares::new),
            store: RwLock::new(store),
            store_path: self.store,
            backups: self.backups,
            report: self.report,
            counts: Counts::default(),
            is_over: Mutex::new(false),
            clock: Condvar::new(),
        });
        let root = orb.root_poa();
        let poa = root.create_poa(POA, Some(root.manager().clone()), PoaPolicies::default())?;
        let mut agent = Agent {
            shared: shared.clone(),
            reference: AgentRef::from_object(root_object(&poa, &shared)?),
            poas: vec![poa],
            threads: Vec::new(),
        };
        orb.bind_key(AGENT_KEY, agent.reference.object())?;
        if self.has_naming {
            agent.poas.extend(NamingFace::serve(orb, &shared)?);
        }
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let ticking = shared.clone();
        agent.threads.push(thread("agent-clock").spawn(move || ticking.tick())?);
        agent.threads.push(thread("agent-news").spawn(move || watch::tell(to_tell))?);
        if is_shared {
            let (sharing, following) = (shared.clone(), shared.clone());
            agent.threads.push(thread("agent-share").spawn(move || sharing.share())?);
            agent.threads.push(thread("agent-others").spawn(move || following.follow_others())?);
        }
        Ok(agent)
    }
}

fn root_object(poa: &Poa, shared: &Arc<Shared>) -> Result<ironorb::ObjectRef, StartError> {
    let changes: AgentWatchRef = poa.activate(Deferred(WatchServant(shared.clone())))?;
    let agent: AgentRef = poa.activate(AgentServant { shared: shared.clone(), changes })?;
    Ok(agent.object().clone())
}

impl Agent {
    /// An agent without a store, with the default limits.
    pub fn builder() -> AgentBuilder {
        AgentBuilder {
            limits: Limits::default(),
            store: None,
            backups: None,
            shared: None,
            report: Box::new(|_| ()),
            has_naming: true,
        }
    }

    /// A reference to the agent.
    pub fn reference(&self) -> &AgentRef {
        &self.reference
    }

    /// The address for clients: `corbaloc::1.2@host:port/IronORBAgent`; empty when the ORB does not listen.
    pub fn corbaloc(&self) -> String {
        self.poas[0].orb().corbaloc(AGENT_KEY)
    }

    /// What the agent holds and has done.
    pub fn status(&self) -> AgentStatus {
        self.shared.status()
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("reference", self.reference.object()).finish_non_exhaustive()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        for poa in &self.poas {
            // The ORB may have destroyed it.
            let _ = poa.destroy(false, false);
        }
        self.shared.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.shared.close_store();
    }
}

/// What all servants and threads of one agent share.
pub(crate) struct Shared {
    started: Instant,
    state: RwLock<State>,
    /// Closed with the agent: the ORB may hold servants, and so this, for longer.
    store: RwLock<Option<Store>>,
    /// Where the store is, also when it is closed.
    store_path: Option<PathBuf>,
    backups: Option<PathBuf>,
    report: StoreFaultReport,
    counts: Counts,
    is_over: Mutex<bool>,
    clock: Condvar,
    /// The store that agents share.
    shares: Option<Shares>,
}

pub(crate) struct State {
    pub(crate) registry: Registry,
    /// Only a thread that has the state to itself uses them: the lock is there because replies are not `Sync`.
    waiters: Mutex<Waiters<WatchReply>>,
    /// When the agent last looked at its clock.
    seen: Duration,
    /// `None` once the agent is over.
    news: Option<Sender<News>>,
    /// `None` also once the agent is over.
    sharing: Option<Sharing<ClaimReply>>,
}

#[derive(Debug, Default)]
struct Counts {
    registrations: AtomicU64,
    renewals: AtomicU64,
    resolutions: AtomicU64,
    expired_owners: AtomicU64,
}

/// Why a request fails.
#[derive(Debug)]
pub(crate) enum Fault {
    Refused(RegistryError),
    Store(StoreError),
}

impl Shared {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, and the time. If the process has stood still, leases go on where they were: their owners could not renew
    /// them.
    fn write(&self) -> (RwLockWriteGuard<'_, State>, Duration) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let now = self.started.elapsed();
        let still = now.saturating_sub(state.seen);
        if still > STILL_MIN {
            state.registry.prolong(still);
        }
        state.seen = state.seen.max(now);
        (state, now)
    }

    /// Changes the registry, wakes the watchers of what has changed, and waits until the store has it.
    fn change<T>(
        &self,
        body: impl FnOnce(&mut Registry, Duration) -> Result<T, RegistryError>,
    ) -> Result<T, Fault> {
        let (outcome, ticket) = {
            let (mut state, now) = self.write();
            let before = state.registry.revision();
            let outcome = body(&mut state.registry, now).map_err(Fault::Refused)?;
            (outcome, self.announce(&mut state, before))
        };
        self.commit(ticket)?;
        Ok(outcome)
    }

    /// Wakes the watchers of what has changed since a revision, and hands it to the store.
    fn announce(&self, state: &mut State, before: u64) -> Option<Ticket> {
        state.wake(before);
        if let Some(shares) = &self.shares
            && state.registry.unshared_count() > 0
        {
            shares.wake();
        }
        let records = state.registry.take_records();
        self.store().as_ref().map(|store| store.append(records))
    }

    /// Waits until the store has it.
    fn commit(&self, ticket: Option<Ticket>) -> Result<(), Fault> {
        let store = self.store();
        let outcome = match (&*store, ticket) {
            (Some(store), Some(ticket)) => store.commit(ticket),
            _ if self.store_path.is_none() => Ok(()),
            _ => {
                Err(StoreError::Failed { doing: "committing a change", source: "the agent has ended".into() })
            }
        };
        outcome.map_err(|fault| {
            (self.report)(&fault);
            Fault::Store(fault)
        })
    }

    fn store(&self) -> RwLockReadGuard<'_, Option<Store>> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends leases and waits of watchers, until the agent is over.
    fn tick(&self) {
        let mut is_over = self.over();
        while !*is_over {
            drop(is_over);
            let wait = self.end_what_is_due();
            is_over = self.over();
            if !*is_over {
                is_over = self.clock.wait_timeout(is_over, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Ends what is due, and returns how long nothing is.
    fn end_what_is_due(&self) -> Duration {
        let ticket = {
            let (mut state, now) = self.write();
            let before = state.registry.revision();
            let ended = state.registry.expire(now);
            self.counts.expired_owners.fetch_add(ended as u64, Ordering::Relaxed);
            (ended > 0).then(|| self.announce(&mut state, before)).flatten()
        };
        if ticket.is_some() {
            // An error of the store has been reported.
            let _ = self.commit(ticket);
        }
        let (mut state, now) = self.write();
        state.end_waits(now);
        let next = [state.registry.next_expiry(), state.waiters().next_end()].into_iter().flatten().min();
        next.map_or(TICK_MAX, |next| next.saturating_sub(now)).min(TICK_MAX)
    }

    fn over(&self) -> MutexGuard<'_, bool> {
        self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        *self.over() = true;
        self.clock.notify_all();
        let (mut state, _) = self.write();
        state.news = None;
        // Whoever waits for the shared store is told that no answer comes.
        state.sharing = None;
        if let Some(shares) = &self.shares {
            shares.wake();
        }
        // Their callers are told that no answer comes.
        drop(state.waiters().take_gone(|_| true));
    }

    /// Closes the store, after the commits in progress.
    fn close_store(&self) {
        drop(self.store.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn status(&self) -> AgentStatus {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let state = self.read();
        let registry = &state.registry;
        let more = |name: &str, value: String| Property { name: name.into(), value };
        let place = self.store_path.as_ref().map_or("memory".to_owned(), |path| path.display().to_string());
        AgentStatus {
            product: "IronORB".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            life: registry.life(),
            revision: registry.revision(),
            up_ms: self.started.elapsed().as_millis() as u64,
            names: registry.names_count() as u64,
            servers: registry.entries_count() as u64,
            owners: registry.owners_count() as u64,
            watchers: state.waiters.lock().unwrap_or_else(PoisonError::into_inner).len() as u64,
            registrations_total: count(&self.counts.registrations),
            renewals_total: count(&self.counts.renewals),
            resolutions_total: count(&self.counts.resolutions),
            expired_owners_total: count(&self.counts.expired_owners),
            more: [
                more("store", place),
                more("lease_default_ms", registry.limits().lease_default.as_millis().to_string()),
            ]
            .into_iter()
            .chain(self.sharing_facts(&state))
            .collect(),
        }
    }

    /// Writes a copy of all names. The registry is locked only while they are collected.
    fn backup(&self) -> Result<Option<PathBuf>, StoreError> {
        let Some(folder) = &self.backups else { return Ok(None) };
        let (revision, records) = {
            let state = self.read();
            (state.registry.revision(), state.registry.all_records())
        };
        let path = folder.join(format!("agent-{revision:016x}-{:08x}.redb", unguessable() as u32));
        store::write_copy(&path, revision, &records)?;
        Ok(Some(path))
    }
}

impl State {
    fn waiters(&mut self) -> &mut Waiters<WatchReply> {
        self.waiters.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the watchers of what has changed since a revision.
    fn wake(&mut self, before: u64) {
        if self.registry.revision() == before || self.waiters().is_empty() {
            return;
        }
        let all = Selection::Prefix(String::new());
        let woken = match self.registry.changes_since(before, &all, usize::MAX) {
            Ok((changes, _)) => self.waiters().take_woken(&changes),
            // More has changed than is kept. All watchers hear that, and resolve anew.
            Err(_) => self.waiters().take_gone(|_| true),
        };
        for woken in woken {
            self.answer(woken.since, &woken.selection, woken.reply);
        }
    }

    fn end_waits(&mut self, now: Duration) {
        for woken in self.waiters().take_ended(now) {
            self.answer(woken.since, &woken.selection, woken.reply);
        }
        for woken in self.waiters().take_gone(|reply| !reply.is_wanted()) {
            self.answer(woken.since, &woken.selection, woken.reply);
        }
    }

    fn answer(&self, since: u64, selection: &Selection, reply: WatchReply) {
        let answer = convert::watched(self.registry.changes_since(since, selection, CHANGES_PER_ANSWER_MAX));
        if let Some(news) = &self.news {
            // The thread ends only after the agent.
            let _ = news.send(News { reply, answer });
        }
    }
}

/// A number that nobody can guess: for tokens, where who knows one may do what its owner may.
///
/// # Panics
/// If the system has none.
pub fn unguessable() -> u128 {
    let mut bytes = [0; 16];
    // It fails only before the system has gathered any randomness, and then waits.
    let got = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    assert!(got == Ok(bytes.len()), "the system has no random numbers: {got:?}");
    u128::from_ne_bytes(bytes)
}

const POA: &str = "IronORBAgent";

/// The agent looks at its clock at least so often.
const TICK_MAX: Duration = Duration::from_millis(250);
/// A process that has not looked at its clock for so long stood still.
const STILL_MIN: Duration = Duration::from_secs(1);
const CHANGES_PER_ANSWER_MAX: usize = 1_000;
