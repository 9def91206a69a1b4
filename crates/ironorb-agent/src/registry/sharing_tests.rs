//! Seeds of several agents over a model of a shared store in virtual time: requests and answers get lost or come late, agents
//! are cut off and die, leases end, and owners of several agents want one name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;

const SEEDS: u64 = 400;
const STEPS: usize = 250;

/// What a store promises, without its faults.
#[derive(Default)]
struct Model {
    now: Duration,
    revision: u64,
    entries: BTreeMap<SharedKey, (Box<[Property]>, u64)>,
    /// By number: whose it is, and when it ends.
    leases: BTreeMap<u64, (u64, Duration)>,
    next_lease: u64,
    changes: Vec<(u64, Told)>,
    forgotten: u64,
    /// The last write of each agent that has taken effect.
    applied: BTreeMap<u64, u64>,
}

impl Model {
    fn begin(&mut self, agent: u64) -> SharedLease {
        self.next_lease += 1;
        self.leases.insert(self.next_lease, (agent, self.now + LEASE));
        SharedLease { id: self.next_lease, lasts: LEASE }
    }

    fn renew(&mut self, lease: SharedLease) -> Result<(), ShareFault> {
        let (_, ends) = self.leases.get_mut(&lease.id).ok_or(ShareFault::LeaseEnded)?;
        *ends = self.now + LEASE;
        Ok(())
    }

    fn write(
        &mut self,
        agent: u64,
        number: u64,
        lease: SharedLease,
        writes: &[Write],
    ) -> Result<Vec<Written>, ShareFault> {
        if !self.leases.contains_key(&lease.id) {
            return Err(ShareFault::LeaseEnded);
        }
        let applied = self.applied.entry(agent).or_default();
        if *applied > number {
            return Err(ShareFault::Unavailable("overtaken".to_owned()));
        }
        *applied = number;
        Ok(writes.iter().map(|write| self.write_one(lease.id, write)).collect())
    }

    fn write_one(&mut self, lease: u64, write: &Write) -> Written {
        match write {
            Write::Put(SharedEntry { key, .. }) if self.has_rival(key) => return Written::Refused,
            Write::Put(SharedEntry { key, properties }) => {
                self.entries.insert(key.clone(), (properties.clone(), lease));
                self.tell(Told::Put(SharedEntry { key: key.clone(), properties: properties.clone() }));
            }
            Write::Remove(key) => {
                if self.entries.remove(key).is_some() {
                    self.tell(Told::Removed(key.clone()));
                }
            }
        }
        Written::Done
    }

    fn has_rival(&self, key: &SharedKey) -> bool {
        self.entries.keys().filter(|other| other.name == key.name).any(|other| are_rivals(key, other))
    }

    fn tell(&mut self, told: Told) {
        self.revision += 1;
        self.changes.push((self.revision, told));
    }

    fn pass(&mut self, by: Duration) {
        self.now += by;
        let ended: Vec<u64> =
            self.leases.iter().filter(|(_, (_, ends))| *ends <= self.now).map(|(id, _)| *id).collect();
        for id in ended {
            self.leases.remove(&id);
            let gone: Vec<_> =
                self.entries.iter().filter(|(_, (_, of))| *of == id).map(|(key, _)| key.clone()).collect();
            for key in gone {
                self.entries.remove(&key);
                self.tell(Told::Removed(key));
            }
        }
    }

    fn all(&self) -> Vec<SharedEntry> {
        let entry = |(key, (properties, _)): (&SharedKey, &(Box<[Property]>, u64))| SharedEntry {
            key: key.clone(),
            properties: properties.clone(),
        };
        self.entries.iter().map(entry).collect()
    }
}

/// Whether two entries of one name cannot be at one time.
fn are_rivals(a: &SharedKey, b: &SharedKey) -> bool {
    let is_same_owner = a.agent == b.agent && a.owner == b.owner;
    let is_one_server = a.is_exclusive && b.is_exclusive && a.reference == b.reference;
    (a.is_exclusive || b.is_exclusive) && !is_same_owner && !is_one_server
}

struct Node {
    registry: Registry,
    sharing: Sharing<u32>,
    /// A task with its answer, which is on its way.
    under_way: Option<(Task<u32>, Result<Answer, ShareFault>, Duration)>,
    is_cut_off: bool,
    followed: Option<u64>,
    owners: Vec<(OwnerKey, usize)>,
    claims: BTreeSet<u32>,
    picture: BTreeSet<(String, u64, String)>,
    pictured: u64,
}

impl Node {
    fn new(life: u64, now: Duration) -> Node {
        let start = Start { life, is_shared: true, ..Start::default() };
        Node {
            registry: Registry::new(start, Limits::default()),
            sharing: Sharing::new(life, now),
            under_way: None,
            is_cut_off: false,
            followed: None,
            owners: Vec::new(),
            claims: BTreeSet::new(),
            picture: BTreeSet::new(),
            pictured: 0,
        }
    }

    fn own(&self) -> Vec<SharedKey> {
        let own = self.registry.all_records().into_iter().filter_map(|record| match record {
            Record::Put(name, entry) => Some(SharedKey {
                name,
                agent: self.registry.life(),
                owner: entry.owner,
                reference: entry.reference.clone(),
                is_exclusive: entry.is_exclusive,
            }),
            _ => None,
        });
        own.collect()
    }

    fn shown(&self) -> BTreeSet<(String, u64, String)> {
        let mut shown = BTreeSet::new();
        for name in self.registry.list("", None, usize::MAX) {
            for entry in self.registry.resolve(name, &[]).1 {
                let is_new = shown.insert((name.to_string(), entry.owner, entry.reference.to_string()));
                assert!(is_new, "{name} shows {} twice", entry.reference);
            }
        }
        shown
    }

    /// A watcher's picture, which is kept by changes alone.
    fn watch(&mut self) {
        let all = Selection::Prefix(String::new());
        let (changes, up_to) =
            self.registry.changes_since(self.pictured, &all, usize::MAX).expect("all are kept");
        for change in changes {
            let entry = &change.entry;
            let server = (change.name.to_string(), entry.owner, entry.reference.to_string());
            match change.kind {
                ChangeKind::Put => drop(self.picture.insert(server)),
                ChangeKind::Removed => assert!(self.picture.remove(&server), "{server:?} goes twice"),
            }
        }
        self.pictured = up_to;
        assert_eq!(self.picture, self.shown());
    }
}

#[derive(Default)]
struct Seen {
    claims: usize,
    joined: usize,
    taken_there: usize,
    unavailable: usize,
    lost_leases: usize,
    overtaken: usize,
    ended_owners: u64,
}

struct World {
    random: fastrand::Rng,
    model: Model,
    nodes: Vec<Node>,
    /// Writes that were given up and may take effect all the same: agent, number, lease and writes.
    late: Vec<(u64, u64, SharedLease, Vec<Write>)>,
    next_life: u64,
    next_write: u64,
    next_claim: u32,
    seen: Seen,
}

impl World {
    fn new(seed: u64) -> World {
        let nodes = (1..=3).map(|life| Node::new(life, Duration::ZERO)).collect();
        World {
            random: fastrand::Rng::with_seed(seed),
            model: Model::default(),
            nodes,
            late: Vec::new(),
            next_life: 4,
            next_write: 0,
            next_claim: 0,
            seen: Seen::default(),
        }
    }

    fn step(&mut self) {
        let at = self.random.usize(..self.nodes.len());
        match self.random.u8(..32) {
            0..=2 => self.open(at),
            3..=5 => self.register(at),
            6..=9 => self.claim(at),
            10 => self.remove(at),
            11 => self.close(at),
            12..=20 => self.ask(at),
            21..=24 => self.follow(at),
            25..=26 => self.arrive_late(),
            27..=28 => {
                let by = Duration::from_millis(self.random.u64(..900));
                self.pass(by);
            }
            29 => self.renew_all(),
            30 => self.nodes[at].is_cut_off = self.random.u8(..3) == 0,
            _ if self.random.u8(..4) == 0 => self.kill(at),
            _ => self.model.forgotten = self.model.revision,
        }
        self.check();
    }

    fn offer(&mut self, process: usize) -> Offer {
        let value = self.random.u8(..2).to_string();
        Offer {
            name: format!("n{}", self.random.u8(..3)),
            reference: format!("r{process}"),
            properties: vec![Property { name: "k".into(), value: value.into() }],
        }
    }

    fn open(&mut self, at: usize) {
        let (token, process) = (self.random.u128(..), self.random.usize(..3));
        let now = self.model.now;
        let (key, _) = self.nodes[at].registry.open(token, Duration::ZERO, now).expect("there is room");
        self.nodes[at].owners.push((key, process));
    }

    fn pick(&mut self, at: usize) -> Option<(OwnerKey, usize)> {
        let owners = &self.nodes[at].owners;
        (!owners.is_empty()).then(|| owners[self.random.usize(..owners.len())])
    }

    fn register(&mut self, at: usize) {
        let Some((key, process)) = self.pick(at) else { return };
        let offer = self.offer(process);
        let _ = self.nodes[at].registry.register(key, vec![offer], self.model.now);
    }

    fn claim(&mut self, at: usize) {
        let Some((key, process)) = self.pick(at) else { return };
        let offer = self.offer(process);
        let node = &mut self.nodes[at];
        let (revision, servers) = node.registry.resolve(&offer.name, &[]);
        let is_elsewhere = servers.into_iter().any(|entry| entry.owner == 0);
        self.next_claim += 1;
        node.claims.insert(self.next_claim);
        let now = self.model.now;
        let decided = node.sharing.claim(&mut node.registry, (key, offer, revision), self.next_claim, now);
        self.seen.joined += usize::from(is_elsewhere && decided.is_none());
        self.settle(at, decided.into_iter().collect());
    }

    /// Each claim is answered once.
    fn settle(&mut self, at: usize, decided: Vec<Claimed<u32>>) {
        for Claimed { outcome, reply } in decided {
            assert!(self.nodes[at].claims.remove(&reply), "answered twice");
            match outcome {
                Ok(_) => self.seen.claims += 1,
                Err(RegistryError::Taken { .. }) => self.seen.taken_there += 1,
                Err(RegistryError::Unavailable { .. }) => self.seen.unavailable += 1,
                Err(_) => {}
            }
        }
    }

    fn remove(&mut self, at: usize) {
        let Some((key, process)) = self.pick(at) else { return };
        let Offer { name, reference, .. } = self.offer(process);
        let _ = self.nodes[at].registry.remove(key, &name, &reference, self.model.now);
    }

    fn close(&mut self, at: usize) {
        let Some((key, _)) = self.pick(at) else { return };
        let _ = self.nodes[at].registry.close(key, self.model.now);
        self.nodes[at].owners.retain(|(other, _)| *other != key);
    }

    /// Takes an answer that is on its way, or asks the next question: request or answer may be lost or late.
    fn ask(&mut self, at: usize) {
        let now = self.model.now;
        if self.nodes[at].under_way.is_none() {
            let node = &mut self.nodes[at];
            let Some(task) = node.sharing.poll_task(&mut node.registry, now) else { return };
            let fate = if node.is_cut_off { 0 } else { self.random.u8(..12) };
            let answer = match fate {
                0 => Err(lost()),
                1 => self.carry_out(at, &task).and(Err(lost())),
                2 => {
                    if let Task::Write { lease, writes, .. } = &task {
                        self.next_write += 1;
                        let agent = self.nodes[at].registry.life();
                        self.late.push((agent, self.next_write, *lease, writes.clone()));
                    }
                    Err(lost())
                }
                _ => self.carry_out(at, &task),
            };
            self.nodes[at].under_way = Some((task, answer, now));
            if self.random.bool() {
                return;
            }
        }
        let node = &mut self.nodes[at];
        let Some((task, answer, asked)) = node.under_way.take() else { return };
        self.seen.lost_leases +=
            usize::from(answer.as_ref().is_err_and(|fault| *fault == ShareFault::LeaseEnded));
        let before = node.sharing.refused_count();
        let decided = node.sharing.handle_answer(&mut node.registry, task, answer, asked, now);
        self.seen.ended_owners += node.sharing.refused_count() - before;
        self.settle(at, decided);
    }

    fn carry_out(&mut self, at: usize, task: &Task<u32>) -> Result<Answer, ShareFault> {
        let agent = self.nodes[at].registry.life();
        match task {
            Task::Begin => Ok(Answer::Begun(self.model.begin(agent))),
            Task::Renew(lease) => self.model.renew(*lease).map(|()| Answer::Renewed),
            Task::Write { lease, writes, .. } => {
                self.next_write += 1;
                self.model.write(agent, self.next_write, *lease, writes).map(Answer::Written)
            }
        }
    }

    fn arrive_late(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let (agent, number, lease, writes) = self.late.swap_remove(self.random.usize(..self.late.len()));
        let outcome = self.model.write(agent, number, lease, &writes);
        self.seen.overtaken += usize::from(matches!(outcome, Err(ShareFault::Unavailable(_))));
    }

    fn follow(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.is_cut_off {
            return;
        }
        match node.followed {
            Some(after) if after >= self.model.forgotten => {
                let count = self.random.usize(1..6);
                let after = usize::try_from(after).expect("a revision is an index");
                for (revision, told) in self.model.changes[after..].iter().take(count) {
                    node.registry.tell(told.clone());
                    node.followed = Some(*revision);
                }
            }
            _ => {
                node.registry.tell_all(self.model.all());
                node.followed = Some(self.model.revision);
            }
        }
    }

    fn pass(&mut self, by: Duration) {
        self.model.pass(by);
        for node in &mut self.nodes {
            node.registry.expire(self.model.now);
        }
    }

    fn renew_all(&mut self) {
        for node in &mut self.nodes {
            node.owners.retain(|(key, _)| node.registry.renew(*key, self.model.now).is_ok());
        }
    }

    fn kill(&mut self, at: usize) {
        self.nodes[at] = Node::new(self.next_life, self.model.now);
        self.next_life += 1;
    }

    /// What holds at every moment.
    fn check(&mut self) {
        let keys: Vec<_> = self.model.entries.keys().collect();
        for (at, a) in keys.iter().enumerate() {
            for b in keys[at + 1..].iter().take_while(|b| b.name == a.name) {
                assert!(!are_rivals(a, b), "{a:?} and {b:?}");
            }
        }
        self.nodes.iter_mut().for_each(Node::watch);
    }

    /// The faults end, and all goes on until nothing changes any more.
    fn settle_down(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.is_cut_off = false);
        while !self.late.is_empty() {
            self.arrive_late();
        }
        let ends = self.model.now + 3 * LEASE;
        while self.model.now < ends {
            self.pass(Duration::from_millis(300));
            self.renew_all();
            for at in 0..self.nodes.len() {
                loop {
                    let now = self.model.now;
                    let node = &mut self.nodes[at];
                    let (task, answer, asked) = match node.under_way.take() {
                        Some(under_way) => under_way,
                        None => match node.sharing.poll_task(&mut node.registry, now) {
                            Some(task) => {
                                let answer = self.carry_out(at, &task);
                                (task, answer, now)
                            }
                            None => break,
                        },
                    };
                    let node = &mut self.nodes[at];
                    let decided = node.sharing.handle_answer(&mut node.registry, task, answer, asked, now);
                    self.settle(at, decided);
                }
                for _ in 0..self.model.changes.len() + 1 {
                    self.follow(at);
                }
            }
            self.check();
        }
    }

    /// All agents know the same, and the store knows what they have.
    fn check_settled(&self) {
        let all: BTreeSet<SharedKey> = self.nodes.iter().flat_map(Node::own).collect();
        assert_eq!(self.model.entries.keys().cloned().collect::<BTreeSet<_>>(), all);
        let servers: BTreeSet<(String, String)> =
            all.iter().map(|key| (key.name.to_string(), key.reference.to_string())).collect();
        for node in &self.nodes {
            let shown: BTreeSet<_> =
                node.shown().into_iter().map(|(name, _, reference)| (name, reference)).collect();
            assert_eq!(shown, servers);
            assert_eq!(node.registry.others_count() + node.own().len(), all.len());
            assert_eq!(node.registry.unshared_count(), 0);
            assert!(node.claims.is_empty(), "claims that nobody answers: {:?}", node.claims);
        }
    }
}

fn lost() -> ShareFault {
    ShareFault::Unavailable("no answer".to_owned())
}

const LEASE: Duration = Duration::from_secs(5);

#[test]
fn agents_that_share_names_agree_once_faults_end_and_never_give_an_exclusive_name_to_two() {
    let mut all = Seen::default();
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        let run = std::panic::AssertUnwindSafe(|| {
            (0..STEPS).for_each(|_| world.step());
            world.settle_down();
            world.check_settled();
        });
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
        let seen = world.seen;
        all.claims += seen.claims;
        all.joined += seen.joined;
        all.taken_there += seen.taken_there;
        all.unavailable += seen.unavailable;
        all.lost_leases += seen.lost_leases;
        all.overtaken += seen.overtaken;
        all.ended_owners += seen.ended_owners;
    }
    let Seen { claims, joined, taken_there, unavailable, lost_leases, overtaken, ended_owners } = all;
    let told = format!(
        "{claims} claims, {joined} joined, {taken_there} taken, {unavailable} unavailable, {lost_leases} lost leases, \
         {overtaken} overtaken, {ended_owners} ended owners"
    );
    let counts = [claims, joined, taken_there, unavailable, lost_leases, overtaken];
    assert!(counts.iter().all(|count| *count > 20) && ended_owners > 20, "seldom seen: {told}");
}

fn entry(name: &str, agent: u64, reference: &str, is_exclusive: bool) -> SharedEntry {
    let key = SharedKey { name: name.into(), agent, owner: 1, reference: reference.into(), is_exclusive };
    SharedEntry { key, properties: Box::default() }
}

fn shared_registry(limits: Limits) -> Registry {
    Registry::new(Start { life: 1, is_shared: true, ..Start::default() }, limits)
}

#[test]
fn a_server_that_stands_under_several_agents_is_shown_once() {
    let mut registry = shared_registry(Limits::default());
    let count = |registry: &Registry| registry.resolve("n", &[]).1.count();
    for agent in [1, 2, 3] {
        registry.tell(Told::Put(entry("n", agent, "r", false)));
    }
    assert_eq!(
        (count(&registry), registry.others_count(), registry.revision()),
        (1, 2, 1),
        "its own tell it nothing"
    );
    let (key, _) = registry.open(7, Duration::ZERO, Duration::ZERO).unwrap();
    let offer = Offer { name: "n".into(), reference: "r".into(), properties: Vec::new() };
    registry.register(key, vec![offer], Duration::ZERO).unwrap();
    assert_eq!(count(&registry), 1);
    registry.close(key, Duration::ZERO).unwrap();
    assert_eq!(count(&registry), 1, "another agent still has it");
    let revision = registry.revision();
    registry.tell(Told::Removed(entry("n", 2, "r", false).key));
    assert_eq!((count(&registry), registry.revision()), (1, revision), "watchers see one server");
    registry.tell_all(Vec::new());
    assert_eq!((count(&registry), registry.names_count(), registry.others_count()), (0, 0, 0));
}

#[test]
fn what_others_have_is_within_the_limits() {
    let limits = Limits { others_max: 3, names_max: 2, servers_per_name_max: 2, ..Limits::default() };
    let mut registry = shared_registry(limits);
    let told = |registry: &mut Registry, name: &str, reference: &str| {
        let before = registry.others_count();
        registry.tell(Told::Put(entry(name, 2, reference, false)));
        registry.others_count() > before
    };
    assert!(told(&mut registry, "a", "1") && told(&mut registry, "a", "2"));
    assert!(!told(&mut registry, "a", "3"), "too many servers of a name");
    assert!(
        !told(&mut registry, "a//b", "1") && !told(&mut registry, "c", &"x".repeat(20_000)),
        "no entries"
    );
    assert!(told(&mut registry, "b", "1"));
    assert!(!told(&mut registry, "c", "1"), "too many names");
    assert!(!told(&mut registry, "b", "2"), "too many entries");
    assert_eq!((registry.others_count(), registry.others_ignored()), (3, 5));
}

#[test]
fn what_leaves_while_the_store_is_away_is_not_kept_for_ever() {
    let mut registry = shared_registry(Limits::default());
    let mut sharing = Sharing::<()>::new(1, Duration::ZERO);
    let Some(Task::Begin) = sharing.poll_task(&mut registry, Duration::ZERO) else {
        panic!("a lease is first")
    };
    let lease = SharedLease { id: 9, lasts: Duration::from_secs(3_600) };
    let now = Duration::ZERO;
    assert!(sharing.handle_answer(&mut registry, Task::Begin, Ok(Answer::Begun(lease)), now, now).is_empty());
    let (key, _) = registry.open(7, Duration::ZERO, now).unwrap();
    for n in 0..21_000 {
        let offer = Offer { name: "n".into(), reference: n.to_string(), properties: Vec::new() };
        registry.register(key, vec![offer], now).unwrap();
        registry.remove(key, "n", &n.to_string(), now).unwrap();
    }
    assert_eq!(registry.unshared_count(), 21_000);
    // The old lease has to end by itself.
    assert!(matches!(sharing.poll_task(&mut registry, now), Some(Task::Begin)));
    assert_eq!(registry.unshared_count(), 0);
}

#[test]
fn what_stands_in_a_claims_way_goes_first() {
    let mut registry = shared_registry(Limits::default());
    let mut sharing = Sharing::new(1, Duration::ZERO);
    let lease = SharedLease { id: 9, lasts: Duration::from_secs(3_600) };
    let now = Duration::ZERO;
    sharing.handle_answer(&mut registry, Task::Begin, Ok(Answer::Begun(lease)), now, now);
    let offer =
        |reference: &str| Offer { name: "n".into(), reference: reference.into(), properties: Vec::new() };
    let (first, _) = registry.open(7, Duration::ZERO, now).unwrap();
    let (second, _) = registry.open(8, Duration::ZERO, now).unwrap();
    registry.register(first, vec![offer("a")], now).unwrap();
    registry.close(first, now).unwrap();
    assert!(sharing.claim(&mut registry, (second, offer("b"), 0), (), now).is_none());
    let Some(Task::Write { writes, claim: Some(_), .. }) = sharing.poll_task(&mut registry, now) else {
        panic!("the claim is asked")
    };
    assert!(
        matches!(&*writes, [Write::Remove(gone), Write::Put(new)] if &*gone.reference == "a" && new.key.is_exclusive)
    );
}
