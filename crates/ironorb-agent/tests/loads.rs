//! What an agent knows of the processes that have registered: their leases, and how much they have to do.

use std::thread;
use std::time::Duration;

use ironorb::{ObjectRef, Orb};
use ironorb_agent::idl::{Agent as _, AgentRef, AgentWatch as _, OwnerStatus};
use ironorb_agent::{Agent, AgentClient, ClientOptions};

use crate::{Served, client, eventually};

fn server(orb: &Orb, served: &Served, tells_load: bool) -> AgentClient {
    let mut options = ClientOptions::default();
    options.lease = Duration::from_secs(1);
    options.tells_load = tells_load;
    AgentClient::connect_with(orb, [served.agent.corbaloc()], options).unwrap()
}

fn object(client: &AgentClient) -> ObjectRef {
    client.orb().string_to_object("corbaloc::192.0.2.1/o").unwrap()
}

fn owner_of(client: &AgentClient, name: &str) -> Option<OwnerStatus> {
    client.owners(0, 100).unwrap().into_iter().find(|owner| owner.names.iter().any(|known| known == name))
}

#[test]
fn renewals_tell_how_many_requests_a_process_has_not_answered() {
    let served = Served::start(Agent::builder());
    let asking = client(&[&served]);
    // The agent's own ORB is a server with requests that take their time: watchers wait there.
    let busy = server(&served.orb, &served, true);
    let _busy = busy.register_object("busy", &object(&busy)).unwrap().start().unwrap();
    let silent = server(&served.orb, &served, false);
    let _silent = silent.register_object("silent", &object(&silent)).unwrap().start().unwrap();
    let requests = || owner_of(&asking, "busy").and_then(|owner| owner.has_load.then_some(owner.requests));
    eventually("one with nothing to do says so", || requests() == Some(0));
    let agent: AgentRef = asking.orb().string_to_object(&served.agent.corbaloc()).unwrap().narrow_unchecked();
    let changes = agent.changes().unwrap().unwrap();
    let status = served.agent.status();
    let watch = || changes.watch(status.life, status.revision, &["awaited".into()], 60_000).unwrap();
    thread::scope(|scope| {
        let watchers: Vec<_> = (0..3).map(|_| scope.spawn(watch)).collect();
        eventually("three requests wait", || served.orb.requests_in_flight() == 3);
        eventually("the agent hears of them", || requests() == Some(3));
        let awaited = asking.register_object("awaited", &object(&asking)).unwrap().start().unwrap();
        assert!(watchers.into_iter().all(|watcher| watcher.join().unwrap().changes.len() == 1));
        drop(awaited);
    });
    eventually("the agent hears that they are answered", || requests() == Some(0));
    let renewed = |name: &str| owner_of(&asking, name).map_or(0, |owner| owner.renewals_total);
    eventually("the other one renews, too", || renewed("silent") > 1);
    let silent = owner_of(&asking, "silent").unwrap();
    assert_eq!((silent.has_load, silent.names_count, silent.lease_ms), (false, 1, 1_000));
    assert!((1..=1_000).contains(&silent.left_ms), "{silent:?}");
}
