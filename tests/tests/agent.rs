//! The agent as a process, and servers as processes, which are killed.

use std::path::Path;
use std::time::Duration;

use ironorb_tests::command::{Done, ServingProcess, run};
use ironorb_tests::eventually;
use rustix::process::Signal;

/// An agent, and its address.
pub(crate) struct AgentProcess {
    pub(crate) process: ServingProcess,
    pub(crate) address: String,
}

impl AgentProcess {
    pub(crate) fn start(address: &str, more: &[&str]) -> AgentProcess {
        let endpoint = format!("iiop://{address}");
        let args = ["agent", "serve", "--lease", "2", "--endpoint", &endpoint];
        let process = ServingProcess::start(args.iter().chain(more));
        let address =
            process.ready.strip_prefix("corbaloc::1.2@").and_then(|url| url.strip_suffix("/IronORBAgent"));
        AgentProcess { address: address.expect("a corbaloc of the agent").to_owned(), process }
    }

    fn with_store(address: &str, store: &Path) -> AgentProcess {
        AgentProcess::start(address, &["--store", store.to_str().expect("a plain path")])
    }

    pub(crate) fn ask(&self, command: &str, args: &[&str]) -> Done {
        run(["agent", command, "--agent", &self.address].iter().chain(args))
    }

    /// The references of a name's servers; none if there are none.
    pub(crate) fn servers(&self, name: &str) -> Vec<String> {
        let done = self.ask("resolve", &[name]);
        done.out.lines().map(str::to_owned).collect()
    }

    pub(crate) fn fact(&self, name: &str) -> u64 {
        let status: serde_json::Value =
            serde_json::from_str(&self.ask("status", &["--json"]).expect()).expect("the status is JSON");
        status[name].as_u64().unwrap_or_else(|| panic!("{name} in {status}"))
    }

    /// A process that registers, as it runs.
    pub(crate) fn register(&self, name: &str, key: &str, more: &[&str]) -> ServingProcess {
        let reference = format!("corbaloc::1.2@192.0.2.1:2810/{key}");
        let args = ["agent", "register", "--agent", &self.address, name, &reference];
        ServingProcess::start(args.iter().chain(more))
    }
}

#[test]
fn a_killed_server_leaves_and_others_stay() {
    let agent = AgentProcess::start("127.0.0.1:0", &[]);
    let killed = agent.register("bank/main", "a", &["--property", "zone=east"]);
    let _stays = agent.register("bank/main", "b", &["--property", "zone=west"]);
    let _leader = agent.register("leader", "l", &["--exclusive"]);
    assert_eq!(agent.servers("bank/main").len(), 2);
    assert_eq!(agent.ask("resolve", &["--where", "zone=east", "bank/main"]).expect().lines().count(), 1);
    assert_eq!(agent.ask("list", &[]).expect(), "bank/main  2\nleader  1\n");
    let refused = ["agent", "register", "--agent", &agent.address, "leader", "corbaloc::h/x"];
    let said = run(refused).expect_failure(1);
    assert!(said.contains("the name `leader` is taken"), "{said}");
    // SIGKILL: the process says nothing to the agent.
    drop(killed);
    eventually("the killed server leaves", || agent.servers("bank/main").len() == 1);
    assert_eq!(agent.fact("expired_owners_total"), 1);
    // The others are renewed for more than one lease.
    let renewals = agent.fact("renewals_total");
    eventually("the others are renewed", || agent.fact("renewals_total") >= renewals + 10);
    assert_eq!((agent.servers("bank/main").len(), agent.servers("leader").len()), (1, 1));
    assert_eq!(agent.fact("expired_owners_total"), 1);
    let said = agent.ask("resolve", &["nothing"]).expect_failure(1);
    assert!(said.contains("no server is registered under `nothing`"), "{said}");
}

#[test]
fn a_killed_agent_with_a_store_knows_all_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("agent.redb");
    // An address at which no other test takes the port before the agent is there again.
    let agent = AgentProcess::with_store("127.0.79.8:0", &store);
    let address = agent.address.clone();
    let servers: Vec<_> = ["a", "b", "c"].map(|key| agent.register("n", key, &[])).into();
    // One that cannot register again: it is known by the store alone.
    let silent = agent.register("silent", "s", &[]);
    let revision = agent.fact("revision");
    drop(silent);
    drop(agent);
    let agent = AgentProcess::with_store(&address, &store);
    assert_eq!(agent.fact("registrations_total"), 0, "nobody has registered again");
    assert_eq!(agent.servers("n").len(), 3);
    assert!(agent.fact("revision") > revision);
    eventually("the dead server leaves with a lease", || agent.servers("silent").is_empty());
    assert_eq!(agent.servers("n").len(), 3);
    drop(servers);
    eventually("all have left", || agent.fact("names") == 0);
    assert_eq!(agent.process.terminate().code, Some(0));
}

#[test]
fn a_killed_agent_without_a_store_hears_all_again() {
    let agent = AgentProcess::start("127.0.79.9:0", &[]);
    let address = agent.address.clone();
    let _servers = ["a", "b", "c"].map(|key| agent.register("n", key, &[]));
    drop(agent);
    let said = run(["agent", "status", "--agent", &address]).expect_failure(1);
    assert!(said.contains("is an agent at"), "{said}");
    let agent = AgentProcess::start(&address, &[]);
    eventually("all have registered again", || agent.servers("n").len() == 3);
}

#[test]
fn changes_are_watched_and_copies_are_stores() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let backups = folder.path().to_str().expect("a plain path");
    let agent = AgentProcess::start("127.0.0.1:0", &["--backups", backups]);
    let server = agent.register("a/1", "o", &["--property", "zone=east"]);
    let watched = agent.ask("watch", &["a/", "--duration", "0.2"]).expect();
    assert!(watched.starts_with("= all\n+ a/1  IOR:") && watched.ends_with("  zone=east\n"), "{watched}");
    let copy = agent.ask("backup", &[]).expect();
    assert_eq!(server.terminate().code, Some(0));
    assert_eq!(agent.fact("names"), 0, "a server that ends in order leaves at once");
    let restored = AgentProcess::with_store("127.0.0.1:0", Path::new(copy.trim()));
    assert_eq!(restored.servers("a/1").len(), 1);
}

#[test]
fn leases_go_on_where_they_were_when_the_agent_stood_still() {
    let agent = AgentProcess::start("127.0.0.1:0", &[]);
    let _servers = ["a", "b", "c"].map(|key| agent.register("n", key, &[]));
    let renewals = agent.fact("renewals_total");
    agent.process.signal(Signal::STOP);
    // More than two leases.
    std::thread::sleep(Duration::from_millis(4_500));
    agent.process.signal(Signal::CONT);
    assert_eq!(agent.servers("n").len(), 3);
    eventually("renewals come again", || agent.fact("renewals_total") >= renewals + 10);
    // A client whose renewal had no answer may register anew; that is the same entry.
    assert_eq!((agent.fact("expired_owners_total"), agent.servers("n").len()), (0, 3));
}
