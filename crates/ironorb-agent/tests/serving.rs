//! Servers register, are renewed, and go; clients resolve, watch and choose.

use std::collections::BTreeSet;
use std::time::Duration;

use ironorb::naming::cos_naming::NamingContextRef;
use ironorb::{ObjectRef, SystemExceptionKind, TypedRef as _};
use ironorb_agent::idl::{Agent as _, AgentRef, Offer, agent::RemoveError};
use ironorb_agent::{
    Agent, AgentClient, AgentError, Choice, ClientOptions, Condition, Limits, News, Registration,
};

use crate::{Served, client, client_at, client_with, eventually};

/// An object that nobody calls.
fn object(client: &AgentClient, name: &str) -> NamingContextRef {
    let object: ObjectRef =
        client.orb().string_to_object(&format!("corbaloc::1.2@192.0.2.1:2810/{name}")).unwrap();
    object.narrow_unchecked()
}

fn register(client: &AgentClient, name: &str, server: &str) -> Registration {
    client.register(name, &object(client, server)).unwrap().start().unwrap()
}

/// The keys of a name's servers.
fn servers(client: &AgentClient, name: &str) -> BTreeSet<String> {
    let servers = client.resolve(name).unwrap();
    servers
        .iter()
        .map(|server| key_of(client, &server.to::<NamingContextRef>(client.orb()).unwrap()))
        .collect()
}

fn key_of(_: &AgentClient, reference: &NamingContextRef) -> String {
    let ior = reference.object().to_ior();
    let profile = ior.iiop_profiles().next().expect("a profile of IIOP");
    String::from_utf8(profile.object_key().to_vec()).unwrap()
}

fn set(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[test]
fn servers_are_found_by_name_until_they_are_dropped() {
    let served = Served::start(Agent::builder());
    let (one, two, client) = (client(&[&served]), client(&[&served]), client(&[&served]));
    let first = register(&one, "bank/main", "a");
    let second =
        two.register("bank/main", &object(&two, "b")).unwrap().property("zone", "east").start().unwrap();
    assert_eq!(servers(&client, "bank/main"), set(&["a", "b"]));
    let east = client.resolve_where("bank/main", &[Condition::Equals("zone".into(), "east".into())]).unwrap();
    assert_eq!(east.len(), 1);
    assert_eq!(east[0].property("zone"), Some("east"));
    let many = client.resolve_many(&["bank/main", "bank/none"]).unwrap();
    assert_eq!(many.iter().map(Vec::len).collect::<Vec<_>>(), [2, 0]);
    drop(first);
    assert_eq!(servers(&client, "bank/main"), set(&["b"]));
    // The last registration ends the owner, and the next one opens another.
    drop(second);
    assert_eq!(served.agent.status().owners, 0);
    let _again = register(&two, "bank/main", "c");
    assert_eq!(servers(&client, "bank/main"), set(&["c"]));
}

#[test]
fn one_renewal_a_process_keeps_all_its_names() {
    let served = Served::start(Agent::builder());
    let (server, client) = (client(&[&served]), client(&[&served]));
    let offerings =
        (0..500).map(|n| server.register(&format!("n/{n}"), &object(&server, "o")).unwrap()).collect();
    let _registrations = server.register_all(offerings).unwrap();
    let before = served.agent.status();
    assert_eq!((before.names, before.owners), (500, 1));
    // Ten thirds of the lease, and more than three leases.
    eventually("renewals come", || served.agent.status().renewals_total >= before.renewals_total + 10);
    let status = client.status().unwrap();
    assert_eq!((status.names, status.expired_owners_total), (500, 0));
    assert_eq!(status.registrations_total, 500, "renewals register nothing");
}

#[test]
fn a_server_that_does_not_renew_is_gone_and_watchers_hear_it() {
    let served = Served::start(Agent::builder());
    let client = client(&[&served]);
    let agent: AgentRef = client.orb().string_to_object(&served.agent.corbaloc()).unwrap().narrow_unchecked();
    // By hand: nobody renews.
    let lease = agent.open(1).unwrap();
    assert_eq!(lease.lease_ms, 1_000);
    let offer = Offer { name: "silent".into(), reference: "corbaloc::h/a".into(), properties: Vec::new() };
    agent.register(&lease.key, &[offer]).unwrap();
    let mut watch = client.watch(&["silent"]);
    match &*watch.next(Duration::ZERO).unwrap() {
        [News::All(names)] => assert_eq!((names[0].0.as_str(), names[0].1.len()), ("silent", 1)),
        other => panic!("{other:?}"),
    }
    let mut gone = Vec::new();
    eventually("the watcher hears of the end", || {
        gone.extend(watch.next(Duration::from_secs(5)).unwrap());
        !gone.is_empty()
    });
    assert!(matches!(&*gone, [News::Removed { name, .. }] if name == "silent"), "{gone:?}");
    assert_eq!(served.agent.status().expired_owners_total, 1);
    let removed = agent.remove(&lease.key, "silent", "corbaloc::h/a");
    assert!(matches!(removed, Err(RemoveError::UnknownOwner(_))), "{removed:?}");
}

#[test]
fn an_exclusive_name_has_one_server() {
    let served = Served::start(Agent::builder());
    let (one, two) = (client(&[&served]), client(&[&served]));
    let first = one.register("leader", &object(&one, "a")).unwrap().exclusive().start().unwrap();
    let refused = |outcome: Result<Registration, AgentError>| match outcome {
        Err(AgentError::Taken { name, .. }) => assert_eq!(name, "leader"),
        other => panic!("{other:?}"),
    };
    refused(two.register("leader", &object(&two, "b")).unwrap().exclusive().start());
    refused(two.register("leader", &object(&two, "b")).unwrap().start());
    assert!(!first.is_lost());
    drop(first);
    let _second = two.register("leader", &object(&two, "b")).unwrap().exclusive().start().unwrap();
    assert_eq!(servers(&one, "leader"), set(&["b"]));
}

#[test]
fn a_pool_follows_its_name_and_chooses() {
    let served = Served::start(Agent::builder());
    let (server, client) = (client(&[&served]), client(&[&served]));
    let pool = client.pool::<NamingContextRef>("p").unwrap();
    let other = client.pool::<NamingContextRef>("q").unwrap();
    assert!(pool.choose(Choice::PowerOfTwo).is_none());
    let first = register(&server, "p", "a");
    let _second = register(&server, "p", "b");
    let _third = register(&server, "q", "c");
    eventually("both pools have what was registered", || (pool.len(), other.len()) == (2, 1));
    let key = |choice| key_of(&client, &pool.choose(choice).unwrap());
    assert_ne!(key(Choice::RoundRobin), key(Choice::RoundRobin));
    assert_eq!(key(Choice::Affinity(b"k")), key(Choice::Affinity(b"k")));
    // A server with a call in flight is not chosen while another has none.
    let busy = pool.choose(Choice::PowerOfTwo).unwrap();
    let others: BTreeSet<_> = (0..20).map(|_| key(Choice::PowerOfTwo)).collect();
    assert_eq!(others.len(), 1);
    assert!(!others.contains(&key_of(&client, &busy)));
    let second = pool.choose_other(&[&busy]).unwrap();
    assert_ne!(second.server(), busy.server());
    assert!(pool.choose_other(&[&busy, &second]).is_none());
    drop(first);
    eventually("a server has gone", || pool.len() == 1);
    assert_eq!(key(Choice::RoundRobin), "b");
}

#[test]
fn an_agent_without_a_store_hears_all_again_within_a_lease() {
    let served = Served::start(Agent::builder());
    let address = served.address();
    let addresses = [served.agent.corbaloc()];
    let (server, client) = (client_at(&addresses), client_at(&addresses));
    let _registrations = [register(&server, "a", "1"), register(&server, "b", "2")];
    let leader = server.register("leader", &object(&server, "3")).unwrap().exclusive().start().unwrap();
    let pool = client.pool::<NamingContextRef>("a").unwrap();
    let mut watch = client.watch_prefix("");
    watch.next(Duration::ZERO).unwrap();
    drop(served);
    assert_eq!(pool.len(), 1, "a pool keeps what it knows");
    let served = Served::start_at(&address, Agent::builder());
    eventually("all is registered again", || served.agent.status().servers == 3);
    assert!(!leader.is_lost());
    assert_eq!(servers(&client, "a"), set(&["1"]));
    // The watch is told that it must begin anew.
    let mut all = false;
    eventually("the watcher is told all", || {
        all |= watch.next(Duration::from_millis(100)).is_ok_and(|news| matches!(news[..], [News::All(_)]));
        all
    });
    let _more = register(&server, "a", "4");
    eventually("the pool follows the new agent", || pool.len() == 2);
}

#[test]
fn a_store_keeps_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("agent.redb");
    let served = Served::start(Agent::builder().store(&store));
    let client = client(&[&served]);
    let agent: AgentRef = client.orb().string_to_object(&served.agent.corbaloc()).unwrap().narrow_unchecked();
    let lease = agent.open(5_000).unwrap();
    let offer =
        |name: &str| Offer { name: name.into(), reference: "corbaloc::h/a".into(), properties: Vec::new() };
    let revision = agent.register(&lease.key, &[offer("kept"), offer("removed")]).unwrap();
    agent.remove(&lease.key, "removed", "corbaloc::h/a").unwrap();
    let address = served.address();
    drop(served);
    let served = Served::start_at(&address, Agent::builder().store(&store));
    assert_eq!((served.agent.status().names, served.agent.status().owners), (1, 1));
    assert!(served.agent.status().revision > revision);
    assert_eq!(client.resolve("kept").unwrap().len(), 1);
    // The owner goes on as if nothing had happened. Without it the entry leaves.
    agent.renew(&lease.key).unwrap();
    eventually("the entry leaves with the lease", || served.agent.status().names == 0);
    drop(served);
    let served = Served::start_at(&address, Agent::builder().store(&store));
    assert_eq!((served.agent.status().names, served.agent.status().owners), (0, 0));
}

#[test]
fn a_backup_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(Agent::builder().backups(folder.path()));
    // To write all to a disk that is busy may take longer than a client waits by default.
    let mut options = ClientOptions::default();
    options.timeout = crate::PATIENCE;
    let client = client_with(&[served.agent.corbaloc()], options);
    let _registration = register(&client, "a", "1");
    let copy = client.backup().unwrap();
    assert!(copy.starts_with(folder.path().to_str().unwrap()), "{copy}");
    let restored = Served::start(Agent::builder().store(copy));
    assert_eq!(restored.agent.status().names, 1);

    let without = Served::start(Agent::builder());
    match crate::client(&[&without]).backup() {
        Err(AgentError::System(e)) => assert_eq!(e.kind, SystemExceptionKind::NoPermission),
        other => panic!("{other:?}"),
    }
}

#[test]
fn servers_register_with_all_agents_and_clients_go_on_to_the_next() {
    let (first, second) = (Served::start(Agent::builder()), Served::start(Agent::builder()));
    let address = first.address();
    let (server, client) = (client(&[&first, &second]), client(&[&first, &second]));
    let registration = register(&server, "a", "1");
    assert_eq!((first.agent.status().names, second.agent.status().names), (1, 1));
    let pool = client.pool::<NamingContextRef>("a").unwrap();
    drop(first);
    assert_eq!(servers(&client, "a"), set(&["1"]), "the second agent knows it already");
    let _more = register(&server, "a", "2");
    eventually("the pool follows it there", || pool.len() == 2);
    // What leaves while an agent is away does not come back with it.
    drop(registration);
    let first = Served::start_at(&address, Agent::builder());
    eventually("the first agent hears all again", || first.agent.status().servers == 1);
    assert_eq!(second.agent.status().servers, 1);
    // A name that one agent refuses is registered with none.
    let alone = crate::client(&[&second]);
    let _leader = alone.register("leader", &object(&alone, "l")).unwrap().exclusive().start().unwrap();
    let refused = server.register("leader", &object(&server, "m")).unwrap().start();
    assert!(matches!(refused, Err(AgentError::Taken { .. })), "{refused:?}");
    eventually("the first agent does not have it", || first.agent.status().names == 1);
}

#[test]
fn limits_and_unfit_names_are_told() {
    let mut limits = Limits::default();
    limits.names_max = 1;
    let served = Served::start(Agent::builder().limits(limits));
    let client = client(&[&served]);
    let start = |name: &str| client.register(name, &object(&client, "o")).unwrap().start();
    let _registration = start("a").unwrap();
    assert_eq!(start("b").unwrap_err(), AgentError::LimitReached { what: "names".into(), max: 1 });
    assert!(matches!(start("a//b").unwrap_err(), AgentError::UnfitName { .. }));
    assert_eq!(served.agent.status().servers, 1);
}
