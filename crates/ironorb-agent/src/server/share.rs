//! Two threads that ask the store that agents share: one does what [`Sharing`] says, one reads and watches what others have.

use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Fault, Shared, State};
use crate::idl::Property;
use crate::registry::{Claimed, Offer, OwnerKey, RegistryError, ShareFault, SharedStore, Watching};
use crate::store::Ticket;

/// To whom the answer to a claim goes.
pub(super) type ClaimReply = Sender<(Result<u64, RegistryError>, Option<Ticket>)>;

/// The store, and what its threads tell each other.
pub(super) struct Shares {
    store: Box<dyn SharedStore>,
    has_work: Mutex<bool>,
    wake: Condvar,
    /// Why the entries of others may be old; `None` if they are followed.
    others: Mutex<Option<String>>,
}

impl Shares {
    pub(super) fn new(store: Box<dyn SharedStore>) -> Shares {
        let others = Mutex::new(Some("they have not been read yet".to_owned()));
        Shares { store, has_work: Mutex::new(false), wake: Condvar::new(), others }
    }

    /// Has the thread look for work.
    pub(super) fn wake(&self) {
        *lock(&self.has_work) = true;
        self.wake.notify_all();
    }

    fn wait(&self, wait: Duration) {
        let has_work = lock(&self.has_work);
        let has_work = self.wake.wait_timeout_while(has_work, wait, |has_work| !*has_work);
        *has_work.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

impl Shared {
    /// Registers the only server of a name. Where agents share names, their store decides.
    pub(super) fn claim(&self, key: OwnerKey, offer: Offer, expected: u64) -> Result<u64, Fault> {
        let Some(shares) = &self.shares else {
            return self.change(|registry, now| registry.register_exclusive(key, offer, expected, now));
        };
        let over = || Fault::Refused(RegistryError::Unavailable { why: "the agent ends".to_owned() });
        let (reply, answer) = mpsc::channel();
        {
            let (mut state, now) = self.write();
            let State { registry, sharing, .. } = &mut *state;
            let sharing = sharing.as_mut().ok_or_else(over)?;
            if let Some(claimed) = sharing.claim(registry, (key, offer, expected), reply, now) {
                return claimed.outcome.map_err(Fault::Refused);
            }
        }
        shares.wake();
        let (outcome, ticket) = answer.recv().map_err(|_| over())?;
        let revision = outcome.map_err(Fault::Refused)?;
        self.commit(ticket)?;
        Ok(revision)
    }

    /// Asks the store what there is to ask, until the agent is over.
    pub(super) fn share(&self) {
        let Some(shares) = &self.shares else { return };
        loop {
            let (task, agent, asked) = {
                let (mut state, now) = self.write();
                let State { registry, sharing, .. } = &mut *state;
                let Some(sharing) = sharing else { return };
                let task = sharing.poll_task(registry, now);
                let Some(task) = task else {
                    let wait = sharing.next_due().saturating_sub(now);
                    drop(state);
                    shares.wait(wait.min(IDLE_MAX));
                    continue;
                };
                (task, registry.life(), now)
            };
            let answer = task.carry_out(&*shares.store, agent);
            let (mut state, now) = self.write();
            let before = state.registry.revision();
            let State { registry, sharing, .. } = &mut *state;
            let Some(sharing) = sharing else { return };
            let decided = sharing.handle_answer(registry, task, answer, asked, now);
            let ticket = self.announce(&mut state, before);
            drop(state);
            for Claimed { outcome, reply } in decided {
                // Who waited may have given up.
                let _ = reply.send((outcome, ticket));
            }
        }
    }

    /// Reads what other agents have, and follows it, until the agent is over.
    pub(super) fn follow_others(&self) {
        let Some(shares) = &self.shares else { return };
        let mut at = None;
        while !*self.over() {
            let fault = match at {
                None => self.read_others(shares, &mut at),
                Some(after) => {
                    shares.store.watch(after).and_then(|watch| self.follow(shares, watch, &mut at))
                }
            };
            let Err(fault) = fault else { continue };
            if fault == ShareFault::Forgotten {
                at = None;
                continue;
            }
            *lock(&shares.others) = Some(fault.to_string());
            let is_over = self.over();
            if !*is_over {
                drop(self.clock.wait_timeout(is_over, RETRY));
            }
        }
    }

    fn read_others(&self, shares: &Shares, at: &mut Option<u64>) -> Result<(), ShareFault> {
        let entries_max = {
            let state = self.read();
            state.registry.limits().others_max + state.registry.limits().names_max
        };
        let (all, up_to) = shares.store.read(entries_max)?;
        let (mut state, _) = self.write();
        let before = state.registry.revision();
        state.registry.tell_all(all);
        self.announce(&mut state, before);
        *at = Some(up_to);
        Ok(())
    }

    /// Follows until the store fails or the agent is over.
    fn follow(
        &self,
        shares: &Shares,
        mut watch: Box<dyn Watching>,
        at: &mut Option<u64>,
    ) -> Result<(), ShareFault> {
        *lock(&shares.others) = None;
        while !*self.over() {
            let (told, up_to) = watch.next(LOOK)?;
            if !told.is_empty() {
                let (mut state, _) = self.write();
                let before = state.registry.revision();
                told.into_iter().for_each(|told| state.registry.tell(told));
                self.announce(&mut state, before);
            }
            *at = Some(up_to);
        }
        Ok(())
    }

    /// What an operator wants to know of it.
    pub(super) fn sharing_facts(&self, state: &State) -> Vec<Property> {
        let (Some(shares), Some(sharing)) = (&self.shares, &state.sharing) else { return Vec::new() };
        let registry = &state.registry;
        let since = self.started.elapsed().saturating_sub(sharing.since()).as_millis();
        let others = lock(&shares.others).clone();
        let mut facts = vec![
            ("shared_store", shares.store.place()),
            (
                "shared_state",
                sharing.fault().map_or("reachable".to_owned(), |why| format!("unavailable: {why}")),
            ),
            ("shared_state_ms", since.to_string()),
            ("shared_others", others.map_or("followed".to_owned(), |why| format!("may be old: {why}"))),
            ("servers_of_others", registry.others_count().to_string()),
            ("shared_unsent", registry.unshared_count().to_string()),
            ("shared_refused_total", sharing.refused_count().to_string()),
        ];
        if registry.others_ignored() > 0 {
            facts.push(("servers_of_others_ignored", registry.others_ignored().to_string()));
        }
        facts.into_iter().map(|(name, value)| Property { name: name.into(), value }).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread looks at least so often whether there is work.
const IDLE_MAX: Duration = Duration::from_millis(250);
/// A watch looks at least so often whether the agent is over.
const LOOK: Duration = Duration::from_millis(250);
const RETRY: Duration = Duration::from_millis(500);
