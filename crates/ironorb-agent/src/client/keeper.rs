//! Keeps what a process has registered: for each agent a thread renews one lease, and registers all again where the agent
//! has forgotten it, or did not answer. A server is registered with all of them, so that none's end takes its names away.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ironorb::{SystemExceptionKind, with_timeout};

use super::Core;
use super::error::AgentError;
use crate::idl::{Agent as _, AgentRef, Offer, OwnerKey};

pub(super) struct Keeper {
    kept: Mutex<Kept>,
    wake: Condvar,
    /// For each agent the right to change what it knows of this process. Held during calls of that agent.
    turns: Vec<Mutex<()>>,
}

struct Kept {
    /// One for each agent.
    places: Vec<Place>,
    offers: BTreeMap<u64, KeptOffer>,
    next_id: u64,
    is_over: bool,
    threads: Vec<JoinHandle<()>>,
}

/// What one agent knows of this process.
#[derive(Clone, Copy, Default)]
struct Place {
    /// `None` if all must be registered there.
    owner: Option<Owner>,
    /// When the agent did not answer, unless it has answered since.
    failed: Option<Instant>,
    /// Whether it may not know what was registered or removed since then.
    has_missed: bool,
    /// Whether it could not say yet who has an exclusive name. It is asked again with the next renewal.
    has_open_claims: bool,
}

#[derive(Clone, Copy)]
struct Owner {
    key: OwnerKey,
    lease: Duration,
    renewed: Instant,
}

#[derive(Clone)]
struct KeptOffer {
    offer: Offer,
    is_exclusive: bool,
    /// Another process took the exclusive name while an agent had forgotten this one.
    is_lost: bool,
}

impl Keeper {
    pub(super) fn new(agents: usize) -> Keeper {
        let kept = Kept {
            places: vec![Place::default(); agents],
            offers: BTreeMap::new(),
            next_id: 0,
            is_over: false,
            threads: Vec::new(),
        };
        Keeper {
            kept: Mutex::new(kept),
            wake: Condvar::new(),
            turns: (0..agents).map(|_| Mutex::default()).collect(),
        }
    }
}

/// Registers offers with all agents; all plain ones in one request. Good if one agent takes them and none refuses: the
/// threads register with those that do not answer now. Returns the offers' numbers.
pub(super) fn register(core: &Arc<Core>, offers: Vec<(Offer, bool)>) -> Result<Vec<u64>, AgentError> {
    // They are kept before they are registered. A thread that registers all meanwhile does no harm.
    let numbers: Vec<u64> = {
        let mut kept = lock(&core.keeper.kept);
        let first = kept.next_id;
        kept.next_id += offers.len() as u64;
        let numbers = first..kept.next_id;
        for (number, (offer, is_exclusive)) in numbers.clone().zip(&offers) {
            let (offer, is_exclusive) = (offer.clone(), *is_exclusive);
            kept.offers.insert(number, KeptOffer { offer, is_exclusive, is_lost: false });
        }
        numbers.collect()
    };
    // A thread that starts finds no owner, and registers all: not before this one has.
    let outcome = register_everywhere(core, &offers, &numbers).and_then(|()| start_threads(core));
    if outcome.is_err() {
        numbers.iter().for_each(|number| remove(core, *number));
    }
    core.keeper.wake.notify_all();
    outcome.map(|()| numbers)
}

fn register_everywhere(core: &Core, offers: &[(Offer, bool)], numbers: &[u64]) -> Result<(), AgentError> {
    let places = lock(&core.keeper.kept).places.clone();
    // An agent that has not answered costs a whole timeout: it is left to its thread, unless there is no other.
    let all_failed = places.iter().all(|place| place.failed.is_some());
    let mut outcome = None;
    for (at, agent) in core.agents.all().iter().enumerate() {
        if places[at].failed.is_some() && !all_failed {
            lock(&core.keeper.kept).places[at].has_missed = true;
            continue;
        }
        let registered = {
            let _turn = lock(&core.keeper.turns[at]);
            let registered = register_at(core, at, agent, offers, numbers);
            note(core, at, &registered);
            registered
        };
        match registered {
            Ok(()) => outcome = Some(Ok(())),
            Err(e) if e.is_of_one_agent() => outcome = outcome.or(Some(Err(e))),
            Err(e @ AgentError::Unavailable { .. }) => {
                lock(&core.keeper.kept).places[at].has_open_claims = true;
                outcome = outcome.or(Some(Err(e)));
            }
            Err(refused) => return Err(refused),
        }
    }
    outcome.unwrap_or(Err(AgentError::UnknownOwner))
}

fn register_at(
    core: &Core,
    at: usize,
    agent: &AgentRef,
    offers: &[(Offer, bool)],
    numbers: &[u64],
) -> Result<(), AgentError> {
    let known = lock(&core.keeper.kept).places[at].owner;
    let owner = match known {
        Some(owner) => owner,
        None => open(core, at, agent, numbers)?,
    };
    match put(agent, owner.key, offers) {
        Err(AgentError::UnknownOwner) => put(agent, open(core, at, agent, numbers)?.key, offers),
        outcome => outcome,
    }
}

/// Notes whether an agent answers to a change of what it is to know. One that does not may have missed it.
fn note<T>(core: &Core, at: usize, outcome: &Result<T, AgentError>) {
    let mut kept = lock(&core.keeper.kept);
    let place = &mut kept.places[at];
    match outcome {
        Err(e) if e.is_of_one_agent() => {
            place.failed = Some(Instant::now());
            place.has_missed = true;
        }
        _ => place.failed = None,
    }
}

/// Removes an offer: from what is kept at once, and from the agents that answer. Elsewhere the entry leaves with the lease.
pub(super) fn remove(core: &Core, number: u64) {
    let (offer, is_last, places) = {
        let mut kept = lock(&core.keeper.kept);
        let Some(KeptOffer { offer, is_lost, .. }) = kept.offers.remove(&number) else { return };
        let is_same =
            |other: &KeptOffer| other.offer.name == offer.name && other.offer.reference == offer.reference;
        if is_lost || kept.offers.values().any(is_same) {
            return;
        }
        (offer, kept.offers.is_empty(), kept.places.clone())
    };
    for (at, agent) in core.agents.all().iter().enumerate() {
        // The turn comes first: a thread may just be registering all, this one among them.
        let _turn = lock(&core.keeper.turns[at]);
        let place = lock(&core.keeper.kept).places[at];
        let Some(owner) = place.owner else { continue };
        if places[at].failed.is_some() {
            // Another timeout would help nobody.
            lock(&core.keeper.kept).places[at].has_missed = true;
            continue;
        }
        let removed = match is_last && lock(&core.keeper.kept).offers.is_empty() {
            true => {
                lock(&core.keeper.kept).places[at].owner = None;
                agent.close(&owner.key).map_err(AgentError::from)
            }
            false => {
                agent.remove(&owner.key, &offer.name, &offer.reference).map(drop).map_err(AgentError::from)
            }
        };
        // An agent that does not answer keeps the entry, as long as its owner renews: all is registered there anew.
        note(core, at, &removed);
    }
}

/// Whether another process took the exclusive name of an offer.
pub(super) fn is_lost(core: &Core, number: u64) -> bool {
    lock(&core.keeper.kept).offers.get(&number).is_none_or(|kept| kept.is_lost)
}

/// Ends the threads and the leases.
pub(super) fn end(core: &Core) {
    let threads = {
        let mut kept = lock(&core.keeper.kept);
        kept.is_over = true;
        std::mem::take(&mut kept.threads)
    };
    core.keeper.wake.notify_all();
    // The threads never drop the client, so they do not wait for themselves here.
    for thread in threads {
        let _ = thread.join();
    }
    for (at, agent) in core.agents.all().iter().enumerate() {
        let owner = lock(&core.keeper.kept).places[at].owner.take();
        if let Some(owner) = owner {
            // The lease ends what this does not.
            let _ = agent.close(&owner.key);
        }
    }
}

fn start_threads(core: &Arc<Core>) -> Result<(), AgentError> {
    let mut kept = lock(&core.keeper.kept);
    while kept.threads.len() < core.agents.all().len() {
        let (core, at) = (core.clone(), kept.threads.len());
        let thread = std::thread::Builder::new().name("agent-keeper".into()).spawn(move || keep(&core, at));
        kept.threads.push(thread.map_err(|e| AgentError::Thread(e.to_string()))?);
    }
    Ok(())
}

/// The thread of an agent: renews at a third of the lease, and tries again sooner where that failed.
fn keep(core: &Core, at: usize) {
    let keeper = &core.keeper;
    loop {
        let lease = {
            let mut kept = lock(&keeper.kept);
            loop {
                if kept.is_over {
                    return;
                }
                let now = Instant::now();
                let due = match (kept.offers.is_empty(), kept.places[at]) {
                    (true, _) => None,
                    (false, Place { failed: Some(failed), .. }) => Some(failed + RETRY),
                    (false, Place { owner: Some(owner), .. }) => Some(owner.renewed + owner.lease / 3),
                    (false, Place { owner: None, failed: None, .. }) => Some(now),
                };
                kept = match due {
                    None => keeper.wake.wait(kept).unwrap_or_else(PoisonError::into_inner),
                    Some(due) if due > now => {
                        keeper.wake.wait_timeout(kept, due - now).unwrap_or_else(PoisonError::into_inner).0
                    }
                    Some(_) => {
                        break kept.places[at].owner.map_or(core.options.timeout * 3, |owner| owner.lease);
                    }
                };
            }
        };
        // A renewal that takes longer is as good as none: the next one must come before the lease ends.
        with_timeout(Some((lease / 3).min(core.options.timeout)), || {
            let _turn = lock(&keeper.turns[at]);
            // Also where the agent refuses what it had taken before: not again and again without a pause.
            let failed = renew(core, at).is_err().then(Instant::now);
            lock(&keeper.kept).places[at].failed = failed;
        });
    }
}

fn renew(core: &Core, at: usize) -> Result<(), AgentError> {
    let agent = &core.agents.all()[at];
    let place = {
        let kept = lock(&core.keeper.kept);
        if kept.offers.is_empty() {
            return Ok(());
        }
        kept.places[at]
    };
    let Some(Owner { key, .. }) = place.owner else { return open(core, at, agent, &[]).map(drop) };
    if place.has_missed {
        // The old entries go first: they would stand beside the new ones, and in the way of exclusive ones.
        match agent.close(&key).map_err(AgentError::from) {
            Ok(()) | Err(AgentError::UnknownOwner) => return open(core, at, agent, &[]).map(drop),
            Err(e) => return Err(e),
        }
    }
    let began = Instant::now();
    match renew_loaded(core, agent, &key) {
        Ok(lease) => {
            // From before the request left, so that this end never thinks the lease longer than the agent does.
            let owner = Owner { key, lease: Duration::from_millis(lease.into()), renewed: began };
            lock(&core.keeper.kept).places[at].owner = Some(owner);
            if place.has_open_claims {
                let offers = others_kept(core, &[]);
                lock(&core.keeper.kept).places[at].has_open_claims = false;
                let registered = register_exclusive_ones(core, at, &owner, &offers);
                // What was not answered is asked for again, too.
                lock(&core.keeper.kept).places[at].has_open_claims |= registered.is_err();
                registered?;
            }
            Ok(())
        }
        Err(AgentError::UnknownOwner) => open(core, at, agent, &[]).map(drop),
        Err(e) => Err(e),
    }
}

/// Renews, and tells the agent how much this process has to do. An agent of an earlier version takes no such number.
fn renew_loaded(core: &Core, agent: &AgentRef, key: &OwnerKey) -> Result<u32, AgentError> {
    if !core.options.tells_load {
        return Ok(agent.renew(key)?);
    }
    let requests = u32::try_from(core.orb.requests_in_flight()).unwrap_or(u32::MAX);
    match agent.renew_loaded(key, requests).map_err(AgentError::from) {
        Err(AgentError::System(e)) if e.kind == SystemExceptionKind::BadOperation => Ok(agent.renew(key)?),
        answered => answered,
    }
}

/// Opens an owner, and registers all that is kept but these numbers. The caller has the agent's turn.
fn open(core: &Core, at: usize, agent: &AgentRef, but: &[u64]) -> Result<Owner, AgentError> {
    let asked = u32::try_from(core.options.lease.as_millis()).unwrap_or(u32::MAX);
    {
        let place = &mut lock(&core.keeper.kept).places[at];
        place.owner = None;
        // What changes from here on is registered or removed by itself, after this.
        place.has_missed = false;
        place.has_open_claims = false;
    }
    let renewed = Instant::now();
    let lease = agent.open(asked)?;
    let owner = Owner { key: lease.key, lease: Duration::from_millis(lease.lease_ms.into()), renewed };
    let offers = others_kept(core, but);
    let plain: Vec<_> =
        offers.iter().filter(|(_, kept)| !kept.is_exclusive).map(|(_, kept)| kept.offer.clone()).collect();
    for some in plain.chunks(OFFERS_PER_REQUEST) {
        match agent.register(&owner.key, some).map_err(AgentError::from) {
            // One of the names is taken or unfit, and so none was registered.
            Err(
                AgentError::Taken { .. } | AgentError::UnfitName { .. } | AgentError::LimitReached { .. },
            ) => {
                register_one_by_one(agent, &owner, some)?;
            }
            outcome => drop(outcome?),
        }
    }
    register_exclusive_ones(core, at, &owner, &offers)?;
    lock(&core.keeper.kept).places[at].owner = Some(owner);
    Ok(owner)
}

/// What is kept, but these numbers.
fn others_kept(core: &Core, but: &[u64]) -> Vec<(u64, KeptOffer)> {
    let kept = lock(&core.keeper.kept);
    let others = kept.offers.iter().filter(|(number, _)| but.binary_search(number).is_err());
    others.map(|(number, kept)| (*number, kept.clone())).collect()
}

fn register_exclusive_ones(
    core: &Core,
    at: usize,
    owner: &Owner,
    offers: &[(u64, KeptOffer)],
) -> Result<(), AgentError> {
    let agent = &core.agents.all()[at];
    for (id, KeptOffer { offer, .. }) in offers.iter().filter(|(_, kept)| kept.is_exclusive && !kept.is_lost)
    {
        match agent.register_exclusive(&owner.key, offer, 0).map_err(AgentError::from) {
            Err(AgentError::Taken { .. }) => {
                if let Some(kept) = lock(&core.keeper.kept).offers.get_mut(id) {
                    kept.is_lost = true;
                }
            }
            // An owner that is given up for this would leave its other names behind.
            Err(AgentError::Unavailable { .. }) => {
                lock(&core.keeper.kept).places[at].has_open_claims = true;
            }
            Err(AgentError::UnfitName { .. } | AgentError::LimitReached { .. }) => {}
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

/// What is refused is left out: the other names of the process must not leave with it.
fn register_one_by_one(agent: &AgentRef, owner: &Owner, offers: &[Offer]) -> Result<(), AgentError> {
    for offer in offers {
        match agent.register(&owner.key, std::slice::from_ref(offer)).map_err(AgentError::from) {
            Err(
                AgentError::Taken { .. } | AgentError::UnfitName { .. } | AgentError::LimitReached { .. },
            ) => {}
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

fn put(agent: &AgentRef, key: OwnerKey, offers: &[(Offer, bool)]) -> Result<(), AgentError> {
    let plain: Vec<_> =
        offers.iter().filter(|(_, is_exclusive)| !is_exclusive).map(|(offer, _)| offer.clone()).collect();
    if !plain.is_empty() {
        agent.register(&key, &plain)?;
    }
    for (offer, _) in offers.iter().filter(|(_, is_exclusive)| *is_exclusive) {
        agent.register_exclusive(&key, offer, 0)?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const RETRY: Duration = Duration::from_millis(200);
const OFFERS_PER_REQUEST: usize = 1_000;
