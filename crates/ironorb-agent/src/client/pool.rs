//! The servers of a name, kept current: one thread a client watches the names of all its pools.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use ironorb::{ObjectRef, TypedRef};

use super::choice::{self, Choice};
use super::error::AgentError;
use super::watch::{Asked, Place, Selection};
use super::{AgentClient, Core, Server, servers};
use crate::idl::{Agent as _, Resolved, Watched};
use crate::reference::to_object;

/// The servers of a name. Calls go to a server that it chooses.
///
/// While no agent answers, it keeps the servers that it knows.
pub struct Pool<T> {
    client: AgentClient,
    members: Arc<Members>,
    typed: PhantomData<fn() -> T>,
}

/// A server that was chosen for a call, which counts as in flight until this is dropped.
pub struct Chosen<T> {
    reference: T,
    member: Arc<Member>,
}

/// The current servers of a name.
struct Members {
    name: String,
    current: RwLock<Arc<[Arc<Member>]>>,
    turn: AtomicUsize,
}

struct Member {
    server: Server,
    object: ObjectRef,
    hash: u64,
    in_flight: AtomicUsize,
}

impl<T: TypedRef> Pool<T> {
    pub(super) fn open(client: &AgentClient, name: &str) -> Result<Pool<T>, AgentError> {
        let core = &client.core;
        let members = core.pools.members(name);
        let resolved = resolve(core, vec![name.to_owned()])?;
        update(core, std::slice::from_ref(&members), resolved);
        core.pools.watch(core)?;
        Ok(Pool { client: client.clone(), members, typed: PhantomData })
    }

    /// Chooses a server; `None` if there is none.
    pub fn choose(&self, choice: Choice<'_>) -> Option<Chosen<T>> {
        let members = self.members.current();
        if members.is_empty() {
            return None;
        }
        let at = match choice {
            Choice::PowerOfTwo => {
                let load = |at: usize| members[at].in_flight.load(Ordering::Relaxed);
                choice::power_of_two(members.len(), fastrand::u64(..), load)
            }
            Choice::RoundRobin => self.members.turn.fetch_add(1, Ordering::Relaxed) % members.len(),
            Choice::Affinity(key) => choice::affinity(key, members.iter().map(|member| member.hash)),
        };
        Some(Chosen::new(members[at].clone()))
    }

    /// Chooses another server than those, by chance and by calls in flight; `None` if there is no other. For a call that is
    /// tried again, or sent to a second server.
    pub fn choose_other(&self, than: &[&Chosen<T>]) -> Option<Chosen<T>> {
        let members = self.members.current();
        let others: Vec<_> = members
            .iter()
            .filter(|member| than.iter().all(|chosen| !Arc::ptr_eq(&chosen.member, member)))
            .collect();
        let load = |at: usize| others[at].in_flight.load(Ordering::Relaxed);
        let at = choice::power_of_two(others.len(), fastrand::u64(..), load);
        others.get(at).map(|member| Chosen::new((*member).clone()))
    }

    /// All servers.
    pub fn servers(&self) -> Vec<Server> {
        self.members.current().iter().map(|member| member.server.clone()).collect()
    }

    /// References to all servers.
    pub fn references(&self) -> Vec<T> {
        self.members.current().iter().map(|member| T::from_object(member.object.clone())).collect()
    }

    /// How many servers there are.
    pub fn len(&self) -> usize {
        self.members.current().len()
    }

    /// Whether there is no server.
    pub fn is_empty(&self) -> bool {
        self.members.current().is_empty()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.members.name
    }

    /// The client that it belongs to.
    pub fn client(&self) -> &AgentClient {
        &self.client
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("name", &self.members.name).finish_non_exhaustive()
    }
}

impl<T: TypedRef> Chosen<T> {
    fn new(member: Arc<Member>) -> Chosen<T> {
        member.in_flight.fetch_add(1, Ordering::Relaxed);
        Chosen { reference: T::from_object(member.object.clone()), member }
    }

    /// The server, as it is registered.
    pub fn server(&self) -> &Server {
        &self.member.server
    }
}

impl<T> Deref for Chosen<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.reference
    }
}

impl<T> fmt::Debug for Chosen<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chosen").field(&self.member.server.reference).finish()
    }
}

impl<T> Drop for Chosen<T> {
    fn drop(&mut self) {
        self.member.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Members {
    fn current(&self) -> Arc<[Arc<Member>]> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the new servers. Those that stay keep their counts.
    fn set(&self, core: &Core, servers: Vec<Server>) {
        let before = self.current();
        let mut now: Vec<Arc<Member>> = Vec::with_capacity(servers.len());
        for server in servers {
            if now.iter().any(|member| member.server.reference == server.reference) {
                // Two processes have registered one server.
                continue;
            }
            let known = before.iter().find(|member| member.server.reference == server.reference);
            let member = match known {
                Some(known) if known.server == server => known.clone(),
                // A reference that cannot be read is no server.
                _ => match to_object(&core.orb, &server.reference) {
                    Ok(object) => Arc::new(Member {
                        object,
                        hash: choice::hash(server.reference.as_bytes()),
                        in_flight: AtomicUsize::new(0),
                        server,
                    }),
                    Err(_) => continue,
                },
            };
            now.push(member);
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = now.into();
    }
}

/// All pools of a client, and the thread that keeps them current.
#[derive(Default)]
pub(super) struct Pools {
    by_name: Mutex<BTreeMap<String, Weak<Members>>>,
    thread: Mutex<Option<(JoinHandle<()>, Arc<Signals>)>>,
}

/// What the thread is told.
#[derive(Default)]
struct Signals {
    is_over: AtomicBool,
    /// There are other names than before.
    is_changed: AtomicBool,
}

impl Pools {
    fn members(&self, name: &str) -> Arc<Members> {
        let mut by_name = lock(&self.by_name);
        by_name.retain(|_, members| members.strong_count() > 0);
        if let Some(members) = by_name.get(name).and_then(Weak::upgrade) {
            return members;
        }
        let members = Arc::new(Members {
            name: name.to_owned(),
            current: RwLock::new(Arc::new([])),
            turn: AtomicUsize::new(0),
        });
        by_name.insert(name.to_owned(), Arc::downgrade(&members));
        members
    }

    fn all(&self) -> Vec<Arc<Members>> {
        lock(&self.by_name).values().filter_map(Weak::upgrade).collect()
    }

    /// Has the thread watch all names, and starts it if there is none.
    fn watch(&self, core: &Arc<Core>) -> Result<(), AgentError> {
        let mut thread = lock(&self.thread);
        match &*thread {
            Some((thread, signals)) => {
                signals.is_changed.store(true, Ordering::Release);
                thread.thread().unpark();
            }
            None => {
                let signals = Arc::new(Signals::default());
                let (core, told) = (core.clone(), signals.clone());
                let made = std::thread::Builder::new()
                    .name("agent-pools".into())
                    .spawn(move || keep_current(&core, &told))
                    .map_err(|e| AgentError::Thread(e.to_string()))?;
                *thread = Some((made, signals));
            }
        }
        Ok(())
    }

    pub(super) fn end(&self) {
        let thread = lock(&self.thread).take();
        if let Some((thread, signals)) = thread {
            signals.is_over.store(true, Ordering::Release);
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// The thread: resolves all names, and those that change after that.
fn keep_current(core: &Core, signals: &Signals) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    while !signals.is_over.load(Ordering::Acquire) {
        if follow(core, signals, &waker).is_err() {
            std::thread::park_timeout(RETRY);
        }
    }
}

/// Follows the changes of the names that there are now, until there are others or something fails.
fn follow(core: &Core, signals: &Signals, waker: &Waker) -> Result<(), AgentError> {
    signals.is_changed.store(false, Ordering::Release);
    let pools = core.pools.all();
    let names: Vec<_> = pools.iter().map(|members| members.name.clone()).collect();
    drop(pools);
    let (number, _) = core.agents.current();
    let followed = (|| {
        let (_, agent) = core.agents.current();
        let resolved = agent.resolve_many(&names, &[])?;
        let mut place = Place::at(number, agent, &resolved)?;
        update(core, &core.pools.all(), resolved);
        let selection = match names.len() {
            ..=NAMES_MAX => Selection::Names(names.clone()),
            _ => Selection::Prefix(String::new()),
        };
        loop {
            let asked = place.ask(&selection, WAIT, core.options.timeout);
            let Some(watched) = wait(asked, signals, waker)? else {
                return Ok(());
            };
            place.go_on(&watched);
            let mut changed: Vec<_> = watched.changes.into_iter().map(|change| change.name).collect();
            changed.sort_unstable();
            changed.dedup();
            changed.retain(|name| names.binary_search(name).is_ok());
            if !changed.is_empty() {
                update(core, &core.pools.all(), agent.resolve_many(&changed, &[])?);
            }
        }
    })();
    match followed {
        // The agent has forgotten: all names are resolved anew.
        Err(AgentError::Forgotten) => Ok(()),
        Err(e) => {
            core.agents.leave(number);
            Err(e)
        }
        Ok(()) => Ok(()),
    }
}

/// Waits for changes. `None` if there are other names now, or the client is over.
fn wait(mut asked: Asked, signals: &Signals, waker: &Waker) -> Result<Option<Watched>, AgentError> {
    let mut context = Context::from_waker(waker);
    loop {
        if signals.is_over.load(Ordering::Acquire) || signals.is_changed.load(Ordering::Acquire) {
            return Ok(None);
        }
        if let Poll::Ready(watched) = Pin::new(&mut asked).poll(&mut context) {
            return watched.map(Some);
        }
        std::thread::park();
    }
}

fn resolve(core: &Core, names: Vec<String>) -> Result<Resolved, AgentError> {
    core.agents.call(|agent| agent.resolve_many(&names, &[]).map_err(AgentError::from))
}

fn update(core: &Core, pools: &[Arc<Members>], resolved: Resolved) {
    for resolution in resolved.names {
        if let Some(members) = pools.iter().find(|members| members.name == resolution.name) {
            members.set(core, servers(resolution.servers));
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a watch waits at the agent.
const WAIT: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(200);
/// More names are watched as all names.
const NAMES_MAX: usize = 1_000;
