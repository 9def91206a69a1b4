//! Keeps what a process has registered: one thread a client renews one lease, and registers all again where the agent has
//! forgotten it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ironorb::with_timeout;

use super::Core;
use super::error::AgentError;
use crate::idl::{Agent as _, Offer, OwnerKey};

#[derive(Default)]
pub(super) struct Keeper {
    /// The right to change what the agent knows of this process. Held during calls.
    turn: Mutex<()>,
    kept: Mutex<Kept>,
    wake: Condvar,
}

#[derive(Default)]
struct Kept {
    owner: Option<Owner>,
    offers: BTreeMap<u64, KeptOffer>,
    next_id: u64,
    is_over: bool,
    thread: Option<JoinHandle<()>>,
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
    /// Another process took the exclusive name while the agent had forgotten this one.
    is_lost: bool,
}

/// Registers offers; all plain ones in one request. Returns their numbers.
pub(super) fn register(core: &Arc<Core>, offers: Vec<(Offer, bool)>) -> Result<Vec<u64>, AgentError> {
    let keeper = &core.keeper;
    let _turn = lock(&keeper.turn);
    start_thread(core)?;
    let known = lock(&keeper.kept).owner;
    let owner = match known {
        Some(owner) => owner,
        None => open(core)?,
    };
    match put(core, owner.key, &offers) {
        Err(AgentError::UnknownOwner) => put(core, open(core)?.key, &offers)?,
        outcome => outcome?,
    }
    let mut kept = lock(&keeper.kept);
    let numbers = offers.into_iter().map(|(offer, is_exclusive)| {
        let number = kept.next_id;
        kept.next_id += 1;
        kept.offers.insert(number, KeptOffer { offer, is_exclusive, is_lost: false });
        number
    });
    let numbers = numbers.collect();
    drop(kept);
    keeper.wake.notify_all();
    Ok(numbers)
}

/// Removes an offer: from what is kept at once, and from the agent if it answers. Otherwise the entry leaves with the lease.
pub(super) fn remove(core: &Core, number: u64) {
    let keeper = &core.keeper;
    let _turn = lock(&keeper.turn);
    let (owner, offer, is_last) = {
        let mut kept = lock(&keeper.kept);
        let Some(KeptOffer { offer, is_lost, .. }) = kept.offers.remove(&number) else { return };
        let is_same =
            |other: &KeptOffer| other.offer.name == offer.name && other.offer.reference == offer.reference;
        if is_lost || kept.offers.values().any(is_same) {
            return;
        }
        let is_last = kept.offers.is_empty();
        (if is_last { kept.owner.take() } else { kept.owner }, offer, is_last)
    };
    let Some(owner) = owner else { return };
    // The lease ends what this does not.
    let _ = match is_last {
        true => core.agents.call(|agent| agent.close(&owner.key).map_err(AgentError::from)),
        false => core.agents.call(|agent| {
            agent.remove(&owner.key, &offer.name, &offer.reference).map(drop).map_err(AgentError::from)
        }),
    };
}

/// Whether another process took the exclusive name of an offer.
pub(super) fn is_lost(core: &Core, number: u64) -> bool {
    lock(&core.keeper.kept).offers.get(&number).is_none_or(|kept| kept.is_lost)
}

/// Ends the thread and the lease.
pub(super) fn end(core: &Core) {
    let thread = {
        let mut kept = lock(&core.keeper.kept);
        kept.is_over = true;
        kept.thread.take()
    };
    core.keeper.wake.notify_all();
    // The thread never drops the client, so it does not wait for itself here.
    if let Some(thread) = thread {
        let _ = thread.join();
    }
    let owner = lock(&core.keeper.kept).owner.take();
    if let Some(owner) = owner {
        let _ = core.agents.call(|agent| agent.close(&owner.key));
    }
}

fn start_thread(core: &Arc<Core>) -> Result<(), AgentError> {
    let mut kept = lock(&core.keeper.kept);
    if kept.thread.is_none() {
        let core = core.clone();
        let thread = std::thread::Builder::new().name("agent-keeper".into()).spawn(move || keep(&core));
        kept.thread = Some(thread.map_err(|e| AgentError::Thread(e.to_string()))?);
    }
    Ok(())
}

/// The thread: renews at a third of the lease, and tries again sooner where that failed.
fn keep(core: &Core) {
    let keeper = &core.keeper;
    let mut failed_at = None;
    loop {
        let lease = {
            let mut kept = lock(&keeper.kept);
            loop {
                if kept.is_over {
                    return;
                }
                let now = Instant::now();
                let due = match (kept.offers.is_empty(), kept.owner, failed_at) {
                    (true, ..) => None,
                    (false, _, Some(failed_at)) => Some(failed_at + RETRY),
                    (false, Some(owner), None) => Some(owner.renewed + owner.lease / 3),
                    (false, None, None) => Some(now),
                };
                kept = match due {
                    None => keeper.wake.wait(kept).unwrap_or_else(PoisonError::into_inner),
                    Some(due) if due > now => {
                        keeper.wake.wait_timeout(kept, due - now).unwrap_or_else(PoisonError::into_inner).0
                    }
                    Some(_) => break kept.owner.map_or(core.options.timeout, |owner| owner.lease),
                };
            }
        };
        // A call that takes longer than this is of no use: another agent must be asked before the lease ends.
        let renewed = with_timeout(Some((lease / 3).min(core.options.timeout)), || renew(core));
        failed_at = renewed.is_err().then(Instant::now);
    }
}

fn renew(core: &Core) -> Result<(), AgentError> {
    let _turn = lock(&core.keeper.turn);
    let owner = {
        let kept = lock(&core.keeper.kept);
        if kept.offers.is_empty() {
            return Ok(());
        }
        kept.owner
    };
    let Some(Owner { key, .. }) = owner else { return open(core).map(drop) };
    let began = Instant::now();
    match core.agents.call(|agent| agent.renew(&key).map_err(AgentError::from)) {
        Ok(lease) => {
            // From before the request left, so that this end never thinks the lease longer than the agent does.
            let owner = Owner { key, lease: Duration::from_millis(lease.into()), renewed: began };
            lock(&core.keeper.kept).owner = Some(owner);
            Ok(())
        }
        Err(AgentError::UnknownOwner) => open(core).map(drop),
        Err(e) => Err(e),
    }
}

/// Opens an owner, and registers all that is kept. The caller has the turn.
fn open(core: &Core) -> Result<Owner, AgentError> {
    let asked = u32::try_from(core.options.lease.as_millis()).unwrap_or(u32::MAX);
    lock(&core.keeper.kept).owner = None;
    let renewed = Instant::now();
    let lease = core.agents.call(|agent| agent.open(asked).map_err(AgentError::from))?;
    let owner = Owner { key: lease.key, lease: Duration::from_millis(lease.lease_ms.into()), renewed };
    let offers: Vec<_> =
        lock(&core.keeper.kept).offers.iter().map(|(id, kept)| (*id, kept.clone())).collect();
    let plain: Vec<_> = offers.iter().filter(|(_, kept)| !kept.is_exclusive).collect();
    for some in plain.chunks(OFFERS_PER_REQUEST) {
        let some: Vec<_> = some.iter().map(|(_, kept)| kept.offer.clone()).collect();
        match core.agents.call(|agent| agent.register(&owner.key, &some).map_err(AgentError::from)) {
            // One of the names has been taken meanwhile, and so none was registered.
            Err(AgentError::Taken { .. }) => register_one_by_one(core, &owner, &some)?,
            outcome => drop(outcome?),
        }
    }
    for (id, KeptOffer { offer, .. }) in offers.iter().filter(|(_, kept)| kept.is_exclusive && !kept.is_lost)
    {
        let registered = core
            .agents
            .call(|agent| agent.register_exclusive(&owner.key, offer, 0).map(drop).map_err(AgentError::from));
        match registered {
            Err(AgentError::Taken { .. }) => {
                if let Some(kept) = lock(&core.keeper.kept).offers.get_mut(id) {
                    kept.is_lost = true;
                }
            }
            outcome => outcome?,
        }
    }
    lock(&core.keeper.kept).owner = Some(owner);
    Ok(owner)
}

fn register_one_by_one(core: &Core, owner: &Owner, offers: &[Offer]) -> Result<(), AgentError> {
    for offer in offers {
        let one = std::slice::from_ref(offer);
        match core.agents.call(|agent| agent.register(&owner.key, one).map_err(AgentError::from)) {
            Err(AgentError::Taken { .. }) => {}
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

fn put(core: &Core, key: OwnerKey, offers: &[(Offer, bool)]) -> Result<(), AgentError> {
    let plain: Vec<_> =
        offers.iter().filter(|(_, is_exclusive)| !is_exclusive).map(|(offer, _)| offer.clone()).collect();
    if !plain.is_empty() {
        core.agents.call(|agent| agent.register(&key, &plain).map_err(AgentError::from))?;
    }
    for (offer, _) in offers.iter().filter(|(_, is_exclusive)| *is_exclusive) {
        core.agents.call(|agent| agent.register_exclusive(&key, offer, 0).map_err(AgentError::from))?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const RETRY: Duration = Duration::from_millis(200);
const OFFERS_PER_REQUEST: usize = 1_000;
