//! What an agent asks of a store that agents share, and when. Plain code: whoever has threads carries out its tasks.
//!
//! The store has each agent's entries under one lease, which the agent renews; owners' renewals stay in the agent. What the
//! store does not know of the registry is a set of keys, not a list of changes: an entry that changes twice is written once,
//! and all that is to be done after a lost lease is to note all keys.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::entry::{Offer, OwnerKey};
use super::error::RegistryError;
use super::names::Registry;
use super::others::{SharedEntry, SharedKey, Told};

/// A store that several agents share. Its calls block, but not for long, whatever the store does.
///
/// Two threads call it: one reads and watches, the other does all else, one call after the other. A write that has failed
/// must not take effect once a later write of the same agent has.
pub trait SharedStore: Send + Sync {
    /// Begins a lease of an agent. What is written under it leaves the store when it ends.
    fn begin(&self, agent: u64) -> Result<SharedLease, ShareFault>;

    /// Renews the lease.
    fn renew(&self, lease: SharedLease) -> Result<(), ShareFault>;

    /// Writes in this order, each by itself or several in one step, and says for each what came of it.
    ///
    /// Within one step with the write, the store must see that no exclusive entry of another owner is under the name; for an
    /// exclusive entry, that no other is at all but exclusive ones of the same reference, which is one owner at several
    /// agents. Otherwise the entry is refused.
    fn write(&self, agent: u64, lease: SharedLease, writes: &[Write]) -> Result<Vec<Written>, ShareFault>;

    /// All entries of all agents at one moment, but no more than so many, and from where a watch goes on.
    fn read(&self, entries_max: usize) -> Result<(Vec<SharedEntry>, u64), ShareFault>;

    /// Watches what changes after a moment.
    fn watch(&self, after: u64) -> Result<Box<dyn Watching>, ShareFault>;

    /// What it is and where, for operators.
    fn place(&self) -> String;
}

/// Changes of a shared store as they happen.
pub trait Watching: Send {
    /// The next changes, and the moment up to which they are complete; none after this time.
    fn next(&mut self, wait: Duration) -> Result<(Vec<Told>, u64), ShareFault>;
}

/// An agent's lease at a shared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedLease {
    /// The number that the store gave it.
    pub id: u64,
    /// How long it lasts from each renewal on.
    pub lasts: Duration,
}

/// What the store is to do with an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// It is there.
    Put(SharedEntry),
    /// It is gone. An entry that is not there is as good.
    Remove(SharedKey),
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The store has it.
    Done,
    /// Another owner stands in the way.
    Refused,
}

/// Why a shared store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShareFault {
    /// It cannot be reached or does not work. Whether the request was carried out is not known.
    #[error("{0}")]
    Unavailable(String),
    /// The agent's lease has ended, and all its entries have left.
    #[error("the agent's lease has ended")]
    LeaseEnded,
    /// The store does not know the changes since then any more.
    #[error("the changes are forgotten")]
    Forgotten,
}

/// What is to be asked of the store.
#[derive(Debug)]
pub enum Task<R> {
    /// A new lease.
    Begin,
    /// The lease is to go on.
    Renew(SharedLease),
    /// The store has to learn something.
    Write {
        /// The agent's lease.
        lease: SharedLease,
        /// What.
        writes: Vec<Write>,
        /// What the last of them is for, if somebody waits for it.
        claim: Option<Claim<R>>,
    },
}

/// What the store answered.
#[derive(Debug)]
pub enum Answer {
    /// A lease.
    Begun(SharedLease),
    /// The lease goes on.
    Renewed,
    /// What came of each write.
    Written(Vec<Written>),
}

/// A request for an exclusive name, which the store decides.
#[derive(Debug)]
pub struct Claim<R> {
    key: OwnerKey,
    offer: Offer,
    expected: u64,
    reply: R,
}

/// A claim that is decided, with what it is answered by.
#[derive(Debug)]
pub struct Claimed<R> {
    /// The revision after it, or why it was refused.
    pub outcome: Result<u64, RegistryError>,
    /// What it is answered by.
    pub reply: R,
}

/// What an agent has to ask of its store.
pub struct Sharing<R> {
    agent: u64,
    lease: Option<SharedLease>,
    /// When the lease was renewed last: before that request left, so that it is never thought longer than the store does.
    renewed: Duration,
    claims: VecDeque<Claim<R>>,
    /// Why the store cannot be asked now; `None` if it can.
    fault: Option<String>,
    /// Since when it can or cannot.
    since: Duration,
    retry_at: Duration,
    refused: u64,
}

impl<R> Sharing<R> {
    /// The sharing of an agent that has not asked its store yet.
    pub fn new(agent: u64, now: Duration) -> Self {
        Sharing {
            agent,
            lease: None,
            renewed: now,
            claims: VecDeque::new(),
            fault: Some("it has not been asked yet".to_owned()),
            since: now,
            retry_at: now,
            refused: 0,
        }
    }

    /// Why the store cannot be asked now, if it cannot.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Since when the store can be asked, or cannot.
    pub fn since(&self) -> Duration {
        self.since
    }

    /// How many entries the store has refused.
    pub fn refused_count(&self) -> u64 {
        self.refused
    }

    /// Has the store decide about an exclusive name. The answer comes at once if the store is not needed or cannot be asked.
    pub fn claim(
        &mut self,
        registry: &mut Registry,
        (key, offer, expected): (OwnerKey, Offer, u64),
        reply: R,
        now: Duration,
    ) -> Option<Claimed<R>> {
        let outcome = match registry.check_exclusive(key, &offer, expected, now) {
            Err(e) => Err(e),
            Ok(()) if registry.has_exclusive(key, &offer) => Ok(registry.revision()),
            Ok(()) => match &self.fault {
                Some(why) => Err(RegistryError::Unavailable { why: why.clone() }),
                None => {
                    self.claims.push_back(Claim { key, offer, expected, reply });
                    return None;
                }
            },
        };
        Some(Claimed { outcome, reply })
    }

    /// What is to be asked now. The answer goes to [`Sharing::handle_answer`] before the next call.
    pub fn poll_task(&mut self, registry: &mut Registry, now: Duration) -> Option<Task<R>> {
        if registry.unshared_count() > registry.entries_count() + FORGOTTEN_MAX {
            // So much has left while the store could not be asked. It leaves with the lease, too.
            self.lease = None;
            registry.unshare_all();
        }
        if now < self.retry_at {
            return None;
        }
        let Some(lease) = self.lease else { return Some(Task::Begin) };
        if now >= self.renewed + lease.lasts / 3 {
            return Some(Task::Renew(lease));
        }
        if let Some(claim) = self.claims.pop_front() {
            return Some(self.claim_task(registry, lease, claim));
        }
        let writes = registry.take_writes(None, WRITES_MAX);
        (!writes.is_empty()).then_some(Task::Write { lease, writes, claim: None })
    }

    /// When there may be something to ask, if nothing happens before.
    pub fn next_due(&self) -> Duration {
        let renewal = self.lease.map_or(self.retry_at, |lease| self.renewed + lease.lasts / 3);
        renewal.max(self.retry_at)
    }

    /// Takes the answer to a task that was asked at `asked`. Returns the claims that are decided.
    pub fn handle_answer(
        &mut self,
        registry: &mut Registry,
        task: Task<R>,
        answer: Result<Answer, ShareFault>,
        asked: Duration,
        now: Duration,
    ) -> Vec<Claimed<R>> {
        let fault = match answer {
            Ok(answer) => {
                if self.fault.take().is_some() {
                    self.since = now;
                }
                return self.carry_on(registry, task, answer, asked, now).into_iter().collect();
            }
            Err(fault) => fault,
        };
        // The store may have done it, and must learn at the next occasion what is true.
        if let Task::Write { writes, claim, .. } = task {
            for write in writes {
                registry.note_shared(write.into_key(), false);
            }
            self.claims.extend(claim);
        }
        if fault == ShareFault::LeaseEnded && self.lease.take().is_some() {
            // A new one begins at once.
            registry.unshare_all();
            return Vec::new();
        }
        self.retry_at = now + RETRY;
        if self.fault.replace(fault.to_string()).is_none() {
            self.since = now;
        }
        let why = fault.to_string();
        let refused = self.claims.drain(..).map(|Claim { reply, .. }| Claimed {
            outcome: Err(RegistryError::Unavailable { why: why.clone() }),
            reply,
        });
        refused.collect()
    }

    fn carry_on(
        &mut self,
        registry: &mut Registry,
        task: Task<R>,
        answer: Answer,
        asked: Duration,
        now: Duration,
    ) -> Option<Claimed<R>> {
        match (task, answer) {
            (Task::Begin, Answer::Begun(lease)) => {
                self.lease = Some(lease);
                self.renewed = asked;
                registry.unshare_all();
            }
            (Task::Renew(_), Answer::Renewed) => self.renewed = asked,
            (Task::Write { mut writes, claim, .. }, Answer::Written(mut outcomes)) => {
                let claimed = claim.and_then(|claim| Some((claim, writes.pop()?, outcomes.pop()?)));
                for (write, written) in writes.into_iter().zip(outcomes) {
                    if written == Written::Refused && registry.end_refused(&write.into_key()) {
                        self.refused += 1;
                    }
                }
                let (claim, write, written) = claimed?;
                return Some(self.settle(registry, claim, write.into_key(), written, now));
            }
            // The driver answers another question.
            _ => debug_assert!(false, "an answer to another task"),
        }
        None
    }

    /// What has left the name goes before the claim: it would stand in the way.
    fn claim_task(&mut self, registry: &mut Registry, lease: SharedLease, claim: Claim<R>) -> Task<R> {
        let name: Arc<str> = claim.offer.name.as_str().into();
        let mut writes = registry.take_writes(Some(&name), WRITES_MAX);
        if writes.len() == WRITES_MAX {
            self.claims.push_front(claim);
            return Task::Write { lease, writes, claim: None };
        }
        let mut properties = claim.offer.properties.clone();
        properties.sort_unstable();
        let key = SharedKey {
            name,
            agent: self.agent,
            owner: claim.key.id,
            reference: claim.offer.reference.as_str().into(),
            is_exclusive: true,
        };
        writes.push(Write::Put(SharedEntry { key, properties: properties.into() }));
        Task::Write { lease, writes, claim: Some(claim) }
    }

    fn settle(
        &mut self,
        registry: &mut Registry,
        claim: Claim<R>,
        key: SharedKey,
        written: Written,
        now: Duration,
    ) -> Claimed<R> {
        let Claim { key: owner, offer, expected, reply } = claim;
        let outcome = match written {
            Written::Done => registry.register_exclusive(owner, offer, expected, now),
            Written::Refused => {
                let revision = registry.resolve(&offer.name, &[]).0;
                Err(RegistryError::Taken { name: offer.name, revision })
            }
        };
        // What the registry has not taken after all, because the owner has gone meanwhile, leaves the store again.
        registry.note_shared(key, outcome.is_ok());
        Claimed { outcome, reply }
    }
}

impl<R> Task<R> {
    /// Asks the store.
    pub fn carry_out(&self, store: &dyn SharedStore, agent: u64) -> Result<Answer, ShareFault> {
        match self {
            Task::Begin => store.begin(agent).map(Answer::Begun),
            Task::Renew(lease) => store.renew(*lease).map(|()| Answer::Renewed),
            Task::Write { lease, writes, .. } => {
                let written = store.write(agent, *lease, writes)?;
                match written.len() == writes.len() {
                    true => Ok(Answer::Written(written)),
                    false => Err(ShareFault::Unavailable("it does not say what came of each write".into())),
                }
            }
        }
    }
}

impl<R> fmt::Debug for Sharing<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sharing { agent, lease, fault, .. } = self;
        f.debug_struct("Sharing")
            .field("agent", agent)
            .field("lease", lease)
            .field("fault", fault)
            .finish_non_exhaustive()
    }
}

impl Write {
    fn into_key(self) -> SharedKey {
        match self {
            Write::Put(entry) => entry.key,
            Write::Remove(key) => key,
        }
    }
}

/// After a fault the store is left alone for so long.
const RETRY: Duration = Duration::from_millis(500);
/// Entries in one request of the store.
const WRITES_MAX: usize = 50;
/// Entries that have left and that the store may still have, before the lease is given up.
const FORGOTTEN_MAX: usize = 20_000;
