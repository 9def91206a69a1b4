//! Agents that share names, over a store in memory that an agent can lose.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ironorb::ObjectRef;
use ironorb::naming::cos_naming::NamingContextRef;
use ironorb_agent::registry::{
    Property, ShareFault, SharedEntry, SharedKey, SharedLease, SharedStore, Told, Watching, Write, Written,
};
use ironorb_agent::{Agent, AgentClient, AgentError, Offering};

use crate::{Served, client, eventually};

type Properties = Box<[Property]>;

/// What all agents share.
#[derive(Default)]
struct Memory {
    entries: BTreeMap<SharedKey, Properties>,
    changes: Vec<Told>,
    /// The agents whose leases are good.
    leases: Vec<u64>,
}

/// One agent's way to it.
#[derive(Clone, Default)]
struct Way {
    memory: Arc<Mutex<Memory>>,
    is_cut_off: Arc<AtomicBool>,
}

impl Way {
    fn another(&self) -> Way {
        Way { memory: self.memory.clone(), is_cut_off: Arc::default() }
    }

    fn cut(&self, is_cut_off: bool) {
        self.is_cut_off.store(is_cut_off, Ordering::SeqCst);
    }

    /// Ends all leases, and so removes what is under them.
    fn end_leases(&self) {
        let mut memory = self.memory.lock().unwrap();
        memory.leases.clear();
        let gone: Vec<_> = std::mem::take(&mut memory.entries).into_keys().map(Told::Removed).collect();
        memory.changes.extend(gone);
    }

    fn reach(&self) -> Result<MutexGuard<'_, Memory>, ShareFault> {
        match self.is_cut_off.load(Ordering::SeqCst) {
            true => Err(ShareFault::Unavailable("the way is cut off".to_owned())),
            false => Ok(self.memory.lock().unwrap()),
        }
    }
}

impl SharedStore for Way {
    fn begin(&self, agent: u64) -> Result<SharedLease, ShareFault> {
        self.reach()?.leases.push(agent);
        Ok(SharedLease { id: agent, lasts: Duration::from_secs(1) })
    }

    fn renew(&self, lease: SharedLease) -> Result<(), ShareFault> {
        match self.reach()?.leases.contains(&lease.id) {
            true => Ok(()),
            false => Err(ShareFault::LeaseEnded),
        }
    }

    fn write(&self, agent: u64, _: SharedLease, writes: &[Write]) -> Result<Vec<Written>, ShareFault> {
        let mut memory = self.reach()?;
        if !memory.leases.contains(&agent) {
            return Err(ShareFault::LeaseEnded);
        }
        let written = writes.iter().map(|write| match write {
            Write::Put(SharedEntry { key, properties }) => {
                let is_rival = |other: &SharedKey| {
                    other.name == key.name
                        && (other.is_exclusive || key.is_exclusive)
                        && other.reference != key.reference
                };
                if memory.entries.keys().any(is_rival) {
                    return Written::Refused;
                }
                memory.entries.insert(key.clone(), properties.clone());
                memory
                    .changes
                    .push(Told::Put(SharedEntry { key: key.clone(), properties: properties.clone() }));
                Written::Done
            }
            Write::Remove(key) => {
                memory.entries.remove(key);
                memory.changes.push(Told::Removed(key.clone()));
                Written::Done
            }
        });
        Ok(written.collect())
    }

    fn read(&self, _: usize) -> Result<(Vec<SharedEntry>, u64), ShareFault> {
        let memory = self.reach()?;
        let entry = |(key, properties): (&SharedKey, &Properties)| SharedEntry {
            key: key.clone(),
            properties: properties.clone(),
        };
        Ok((memory.entries.iter().map(entry).collect(), memory.changes.len() as u64))
    }

    fn watch(&self, after: u64) -> Result<Box<dyn Watching>, ShareFault> {
        drop(self.reach()?);
        Ok(Box::new(Watched { way: self.clone(), after }))
    }

    fn place(&self) -> String {
        "memory".to_owned()
    }
}

struct Watched {
    way: Way,
    after: u64,
}

impl Watching for Watched {
    fn next(&mut self, _: Duration) -> Result<(Vec<Told>, u64), ShareFault> {
        std::thread::sleep(Duration::from_millis(5));
        let told = self.way.reach()?.changes[self.after as usize..].to_vec();
        self.after += told.len() as u64;
        Ok((told, self.after))
    }
}

fn offering(client: &AgentClient, name: &str, key: &str) -> Offering {
    let object: ObjectRef =
        client.orb().string_to_object(&format!("corbaloc::1.2@192.0.2.1:2810/{key}")).unwrap();
    client.register(name, &object.narrow_unchecked::<NamingContextRef>()).unwrap()
}

fn fact(served: &Served, name: &str) -> String {
    let more = served.agent.status().more;
    more.into_iter().find(|fact| fact.name == name).map(|fact| fact.value).unwrap_or_default()
}

/// Until an agent knows whether it reaches the store.
fn wait_for(served: &Served, state: &str) {
    eventually(state, || fact(served, "shared_state").starts_with(state));
}

fn count(client: &AgentClient, name: &str) -> usize {
    client.resolve(name).unwrap().len()
}

#[test]
fn an_exclusive_name_that_nobody_can_decide_is_refused_and_nothing_is_left_of_it() {
    let way = Way::default();
    way.cut(true);
    let served = Served::start(Agent::builder().share(way.clone()));
    wait_for(&served, "unavailable: the way is cut off");
    let client = client(&[&served]);
    let plain = offering(&client, "plain", "p").start().unwrap();
    let refused = offering(&client, "leader", "l").exclusive().start().unwrap_err();
    assert_eq!(refused, AgentError::Unavailable { why: "the way is cut off".to_owned() });
    let renewals = served.agent.status().renewals_total;
    eventually("it is renewed", || served.agent.status().renewals_total > renewals + 2);
    assert_eq!((count(&client, "plain"), count(&client, "leader")), (1, 0));
    way.cut(false);
    wait_for(&served, "reachable");
    let leader = offering(&client, "leader", "l").exclusive().start().unwrap();
    assert_eq!(count(&client, "leader"), 1);
    eventually("both are in the store", || way.memory.lock().unwrap().entries.len() == 2);
    drop((plain, leader));
    eventually("all has left the store", || way.memory.lock().unwrap().entries.is_empty());
}

#[test]
fn an_agent_that_cannot_decide_is_asked_again_and_keeps_the_other_names() {
    let way = Way::default();
    way.cut(true);
    let (shared, alone) =
        (Served::start(Agent::builder().share(way.clone())), Served::start(Agent::builder()));
    wait_for(&shared, "unavailable: the way is cut off");
    let both = client(&[&shared, &alone]);
    let _plain = offering(&both, "plain", "p").start().unwrap();
    let leader = offering(&both, "leader", "l").exclusive().start().unwrap();
    let asks = client(&[&shared]);
    assert_eq!((count(&asks, "plain"), count(&asks, "leader")), (1, 0));
    let (renewals, revision) = (shared.agent.status().renewals_total, shared.agent.status().revision);
    eventually("it is renewed", || shared.agent.status().renewals_total > renewals + 3);
    assert_eq!((count(&asks, "plain"), shared.agent.status().owners), (1, 1));
    assert_eq!(shared.agent.status().revision, revision, "the plain name neither goes nor comes again");
    way.cut(false);
    eventually("the exclusive name is registered, too", || count(&asks, "leader") == 1);
    assert!(!leader.is_lost());
}

#[test]
fn whoever_is_cut_off_for_longer_than_a_lease_may_lose_an_exclusive_name_and_hears_it() {
    let way = Way::default();
    let (one, two) = (
        Served::start(Agent::builder().share(way.clone())),
        Served::start(Agent::builder().share(way.another())),
    );
    wait_for(&one, "reachable");
    wait_for(&two, "reachable");
    let (first, second) = (client(&[&one]), client(&[&two]));
    let leader = offering(&first, "leader", "a").exclusive().start().unwrap();
    let _plain = offering(&first, "plain", "p").start().unwrap();
    eventually("all names are at the other", || {
        count(&second, "leader") == 1 && count(&second, "plain") == 1
    });
    let refused = offering(&second, "leader", "b").exclusive().start().unwrap_err();
    assert!(matches!(refused, AgentError::Taken { .. }), "{refused}");

    way.cut(true);
    way.end_leases();
    eventually("the names have left", || count(&second, "leader") == 0 && count(&second, "plain") == 0);
    assert_eq!((count(&first, "leader"), count(&first, "plain")), (1, 1), "an agent serves its own");
    wait_for(&two, "reachable");
    let mut next = None;
    eventually("the name is given anew", || {
        // Its lease has ended, too.
        next = offering(&second, "leader", "b").exclusive().start().ok();
        next.is_some()
    });
    way.cut(false);
    eventually("who had it hears that it is lost", || leader.is_lost());
    eventually("its other name is back", || count(&second, "plain") == 1);
    for client in [&first, &second] {
        eventually("all agree on the new owner", || count(client, "leader") == 1);
    }
    assert_eq!(first.resolve("leader").unwrap(), second.resolve("leader").unwrap());
}
