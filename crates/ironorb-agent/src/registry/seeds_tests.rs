//! Seeds of histories in virtual time: owners that renew late, register twice and go silently, watchers that come back
//! late, and an agent that forgets. A model knows what each owner was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;

const SEEDS: u64 = 2_000;
const STEPS: usize = 120;

/// An owner as it sees itself.
struct Client {
    key: OwnerKey,
    lease: Duration,
    /// Until when the agent must keep its entries, and from when it must not.
    ends: Duration,
    entries: BTreeSet<(String, String)>,
}

/// A watcher's picture of the names, kept by changes alone.
#[derive(Default)]
struct Picture {
    revision: u64,
    servers: BTreeSet<(String, u64, String)>,
}

impl Picture {
    fn resolved(registry: &Registry) -> Picture {
        let mut servers = BTreeSet::new();
        for name in registry.list("", None, usize::MAX) {
            for entry in registry.resolve(name, &[]).1 {
                servers.insert((name.to_string(), entry.owner, entry.reference.to_string()));
            }
        }
        Picture { revision: registry.revision(), servers }
    }

    fn follow(&mut self, registry: &Registry, count_max: usize) -> Result<(), TooOld> {
        let all = Selection::Prefix(String::new());
        loop {
            let (changes, up_to) = registry.changes_since(self.revision, &all, count_max)?;
            for change in changes {
                assert!(change.revision > self.revision && change.revision <= up_to);
                let server =
                    (change.name.to_string(), change.entry.owner, change.entry.reference.to_string());
                match change.kind {
                    ChangeKind::Put => self.servers.insert(server),
                    ChangeKind::Removed => self.servers.remove(&server),
                };
            }
            self.revision = up_to;
            if up_to == registry.revision() {
                return Ok(());
            }
        }
    }
}

struct World {
    random: fastrand::Rng,
    now: Duration,
    registry: Registry,
    clients: Vec<Client>,
    picture: Picture,
    resolved_anew: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let registry = Registry::new(Start { life: seed, ..Start::default() }, limits());
        World {
            random: fastrand::Rng::with_seed(seed),
            now: Duration::from_secs(1),
            registry,
            clients: Vec::new(),
            picture: Picture::default(),
            resolved_anew: 0,
        }
    }

    fn step(&mut self) {
        match self.random.u8(..20) {
            0..=1 => self.open(),
            2..=6 => self.register(),
            7 => self.register_exclusively(),
            8..=9 => self.remove(),
            10..=13 => self.renew(),
            14 => self.meddle(),
            15..=17 => self.pass(),
            18 => self.watch(),
            _ if self.random.u8(..8) == 0 => self.forget_all(),
            _ => self.pass(),
        }
        self.check();
    }

    fn open(&mut self) {
        let lease = Duration::from_millis(self.random.u64(..5_000));
        if let Ok((key, lease)) = self.registry.open(self.random.u128(..), lease, self.now) {
            let ends = self.now + lease;
            self.clients.push(Client { key, lease, ends, entries: BTreeSet::new() });
        }
    }

    fn pick(&mut self) -> Option<usize> {
        (!self.clients.is_empty()).then(|| self.random.usize(..self.clients.len()))
    }

    fn offer(&mut self) -> Offer {
        let properties = match self.random.bool() {
            true => vec![Property { name: "k".into(), value: self.random.u8(..2).to_string().into() }],
            false => Vec::new(),
        };
        Offer {
            name: format!("n{}", self.random.u8(..4)),
            reference: format!("r{}", self.random.u8(..3)),
            properties,
        }
    }

    fn register(&mut self) {
        let Some(at) = self.pick() else { return };
        let offers: Vec<_> = (0..self.random.usize(1..4)).map(|_| self.offer()).collect();
        let outcome = self.registry.register(self.clients[at].key, offers.clone(), self.now);
        let client = &mut self.clients[at];
        match outcome {
            Ok(_) => client.entries.extend(offers.into_iter().map(|offer| (offer.name, offer.reference))),
            Err(RegistryError::UnknownOwner) => assert!(self.now >= client.ends),
            Err(RegistryError::Taken { .. } | RegistryError::Limit { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn register_exclusively(&mut self) {
        let Some(at) = self.pick() else { return };
        let offer = self.offer();
        let (revision, _) = self.registry.resolve(&offer.name, &[]);
        let outcome =
            self.registry.register_exclusive(self.clients[at].key, offer.clone(), revision, self.now);
        if outcome.is_ok() {
            let client = &mut self.clients[at];
            client.entries.retain(|(name, _)| *name != offer.name);
            client.entries.insert((offer.name.clone(), offer.reference));
            let (_, servers) = self.registry.resolve(&offer.name, &[]);
            assert_eq!(servers.count(), 1);
        }
    }

    fn remove(&mut self) {
        let Some(at) = self.pick() else { return };
        let Offer { name, reference, .. } = self.offer();
        let client = &mut self.clients[at];
        match self.registry.remove(client.key, &name, &reference, self.now) {
            Ok(removed) => assert_eq!(removed, client.entries.remove(&(name, reference))),
            Err(_) => assert!(self.now >= client.ends),
        }
    }

    fn renew(&mut self) {
        let Some(at) = self.pick() else { return };
        let client = &mut self.clients[at];
        match self.registry.renew(client.key, self.now) {
            Ok(lease) => {
                assert!(self.now < client.ends);
                client.ends = self.now + lease;
            }
            Err(_) => assert!(self.now >= client.ends, "the lease is good until {:?}", client.ends),
        }
    }

    /// Requests with a key that is not right change nothing.
    fn meddle(&mut self) {
        let Some(at) = self.pick() else { return };
        let revision = self.registry.revision();
        let key = self.clients[at].key;
        let wrong = OwnerKey { token: key.token ^ (1 << self.random.u32(..128)), ..key };
        let Offer { name, reference, .. } = self.offer();
        assert!(self.registry.remove(wrong, &name, &reference, self.now).is_err());
        assert!(self.registry.renew(wrong, self.now).is_err());
        assert!(self.registry.close(wrong, self.now).is_err());
        assert_eq!(self.registry.revision(), revision);
    }

    /// Time passes, and the agent looks for ends of leases when it said that there may be some.
    fn pass(&mut self) {
        let until = self.now + Duration::from_millis(self.random.u64(..2_500));
        while let Some(next) = self.registry.next_expiry().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.registry.expire(self.now);
        }
        self.now = until;
        let now = self.now;
        self.clients.retain(|client| now < client.ends);
    }

    fn watch(&mut self) {
        let count_max = self.random.usize(1..4);
        if self.picture.follow(&self.registry, count_max).is_err() {
            self.picture = Picture::resolved(&self.registry);
            self.resolved_anew += 1;
        }
        assert_eq!(self.picture.servers, Picture::resolved(&self.registry).servers);
    }

    /// The agent is restarted without a store. Its clients hear it at their next renewal, and register all again.
    fn forget_all(&mut self) {
        let life = self.registry.life() + SEEDS;
        self.registry = Registry::new(Start { life, ..Start::default() }, limits());
        // The life is another: the watcher resolves anew.
        self.picture = Picture::resolved(&self.registry);
        for client in &mut self.clients {
            assert_eq!(self.registry.renew(client.key, self.now), Err(RegistryError::UnknownOwner));
            let opened = self.registry.open(self.random.u128(..), client.lease, self.now);
            (client.key, client.lease) = opened.expect("they had room before");
            client.ends = self.now + client.lease;
            let offers = client.entries.iter().map(|(name, reference)| Offer {
                name: name.clone(),
                reference: reference.clone(),
                properties: Vec::new(),
            });
            self.registry.register(client.key, offers.collect(), self.now).expect("they had room before");
        }
    }

    /// The registry has what its clients were promised, and nothing else.
    fn check(&self) {
        let mut promised: BTreeMap<u64, &Client> = BTreeMap::new();
        for client in self.clients.iter().filter(|client| self.now < client.ends) {
            promised.insert(client.key.id, client);
        }
        let have = Picture::resolved(&self.registry).servers;
        for (name, owner, reference) in &have {
            let client = promised.get(owner).expect("an entry outlived its lease");
            assert!(client.entries.contains(&(name.clone(), reference.clone())), "{name} {reference}");
        }
        let promised: usize = promised.values().map(|client| client.entries.len()).sum();
        assert_eq!(have.len(), promised, "an entry is gone before its lease");
        assert_eq!(have.len(), self.registry.entries_count());
    }
}

fn limits() -> Limits {
    Limits { owners_max: 6, servers_per_name_max: 5, changes_max: 12, ..Limits::default() }
}

#[test]
fn leases_owners_and_watchers_get_what_they_were_promised() {
    let mut resolved_anew = 0;
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        let run = std::panic::AssertUnwindSafe(|| (0..STEPS).for_each(|_| world.step()));
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
        resolved_anew += world.resolved_anew;
    }
    assert!(resolved_anew > 500, "watchers never came too late: {resolved_anew}");
}
