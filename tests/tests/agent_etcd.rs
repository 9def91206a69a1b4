//! Agents that share names through etcd, of which members and agents are killed.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use ironorb_agent::registry::{ShareFault, SharedEntry, SharedKey, SharedStore as _, Write, Written};
use ironorb_agent_etcd::{EtcdOptions, EtcdStore};
use ironorb_tests::command::{ServingProcess, run};
use ironorb_tests::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent::AgentProcess;

/// Three members of etcd. Dropping them kills them.
struct Etcd {
    members: Vec<Member>,
    _folder: TempDir,
}

struct Member {
    process: Child,
    address: String,
}

impl Etcd {
    /// Starts members that have a leader.
    ///
    /// They must know their ports before they have them. Whoever takes one meanwhile has them start with others.
    fn start() -> Etcd {
        const PROGRAM: &str = "/usr/bin/etcd";
        assert!(
            Path::new(PROGRAM).exists(),
            "the tests of agents that share names need etcd. Run:\n\n    sudo apt-get install -y etcd-server\n"
        );
        for _ in 0..5 {
            let mut etcd = Etcd::on_free_ports(PROGRAM);
            let mut has_ended = false;
            eventually("the members have a leader", || {
                has_ended = etcd.members.iter_mut().any(|m| m.process.try_wait().expect("a child").is_some());
                has_ended || etcd.members.iter().all(|member| member.leader().is_some())
            });
            if !has_ended {
                return etcd;
            }
        }
        panic!("etcd does not start");
    }

    fn on_free_ports(program: &str) -> Etcd {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let held: Vec<_> = (0..6).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let address = |at: usize| held[at].local_addr().expect("it is bound").to_string();
        let (clients, peers): (Vec<_>, Vec<_>) = (0..3).map(|at| (address(at), address(at + 3))).unzip();
        drop(held);
        let all: Vec<_> = peers.iter().enumerate().map(|(at, peer)| format!("m{at}=http://{peer}")).collect();
        let members = clients.into_iter().zip(&peers).enumerate().map(|(at, (address, peer))| {
            let (client, peer) = (format!("http://{address}"), format!("http://{peer}"));
            let mut command = Command::new(program);
            command.args(["--name", &format!("m{at}"), "--initial-cluster", &all.join(",")]);
            command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
            command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
            // Nothing outlives the machine here, and a leader is missed soon.
            command.args(["--unsafe-no-fsync", "--heartbeat-interval", "50", "--election-timeout", "500"]);
            command.arg("--data-dir").arg(folder.path().join(at.to_string()));
            let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            Member { process: process.expect("etcd can be started"), address }
        });
        Etcd { members: members.collect(), _folder: folder }
    }

    fn addresses(&self) -> String {
        let addresses: Vec<_> = self.members.iter().map(|member| &*member.address).collect();
        addresses.join(",")
    }

    fn agent(&self) -> AgentProcess {
        AgentProcess::start("127.0.0.1:0", &["--etcd", &self.addresses(), "--etcd-lease", "2"])
    }

    fn signal(&self, signal: Signal) {
        for member in &self.members {
            kill_process(Pid::from_child(&member.process), signal).expect("a child can be signalled");
        }
    }

    /// Kills a member, which does not come back.
    fn kill(&mut self, at: usize) {
        drop(self.members.remove(at));
    }

    /// Has another member lead.
    fn change_leader(&self) {
        let before = self.members.iter().find_map(Member::leader).expect("there is a leader");
        let id = |member: &Member| member.status().map(|status| status["header"]["member_id"].clone());
        let (leader, others): (Vec<_>, Vec<_>) =
            self.members.iter().partition(|member| id(member).as_ref() == Some(&before));
        let target = id(others[0]).expect("it answers");
        leader[0]
            .ask("/v3/maintenance/transfer-leadership", &json!({ "targetID": target }))
            .expect("it goes");
        eventually("another member leads", || {
            self.members.iter().all(|member| member.leader().as_ref() == Some(&target))
        });
    }
}

impl Member {
    fn ask(&self, path: &str, body: &Value) -> Option<Value> {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let length = body.len();
        write!(stream, "POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| serde_json::from_str(body).expect("JSON"))
    }

    fn status(&self) -> Option<Value> {
        self.ask("/v3/maintenance/status", &json!({}))
    }

    fn leader(&self) -> Option<Value> {
        self.status()?.get("leader").filter(|leader| *leader != "0").cloned()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn state(agent: &AgentProcess) -> String {
    let status: Value = serde_json::from_str(&agent.ask("status", &["--json"]).expect()).expect("JSON");
    status["shared_state"].as_str().expect("the agent shares names").to_owned()
}

/// Tries until the agent takes it.
fn register_exclusively(agent: &AgentProcess, name: &str) -> ServingProcess {
    let reference = "corbaloc::192.0.2.9/x";
    eventually("the name is free", || {
        // Standard input is at its end, so the command ends as soon as it has registered.
        let done = run([
            "agent",
            "register",
            "--agent",
            &agent.address,
            name,
            reference,
            "--exclusive",
            "--with-parent",
        ]);
        done.code == Some(0)
    });
    agent.register(name, "x", &["--exclusive"])
}

#[test]
fn names_are_shared_while_members_leaders_and_agents_go() {
    let mut etcd = Etcd::start();
    let (one, two) = (etcd.agent(), etcd.agent());
    let _plain = one.register("bank/main", "a", &["--property", "zone=east"]);
    eventually("a name of the one is at the other", || two.servers("bank/main").len() == 1);
    eventually("it has the same reference", || two.servers("bank/main") == one.servers("bank/main"));
    assert_eq!(two.ask("resolve", &["bank/main", "--where", "zone=west"]).code, Some(1));

    let _leader = one.register("leader", "l", &["--exclusive"]);
    let refused = ["agent", "register", "--agent", &two.address, "leader", "corbaloc::h/x", "--exclusive"];
    let said = run(refused).expect_failure(1);
    assert!(said.contains("the name `leader` is taken"), "{said}");
    let plain = ["agent", "register", "--agent", &two.address, "leader", "corbaloc::h/x"];
    eventually("nobody joins it elsewhere", || two.servers("leader").len() == 1);
    let said = run(plain).expect_failure(1);
    assert!(said.contains("the name `leader` is taken"), "{said}");

    // One server at both is one server, also where its name is exclusive.
    let _both = one.register("both", "b", &["--exclusive", "--agent", &two.address]);
    eventually("it is registered at both", || one.fact("owners") == 3 && two.fact("owners") == 1);
    for agent in [&one, &two] {
        let all = "bank/main  1\nboth  1\nleader  1\n";
        eventually("all names are there, with one server each", || agent.ask("list", &[]).expect() == all);
    }

    // Renewals stay in the agents.
    let written = |etcd: &Etcd| etcd.members[0].status().expect("it answers")["header"]["revision"].clone();
    eventually("renewals write nothing, unless one comes too late", || {
        let (revision, renewals) = (written(&etcd), one.fact("renewals_total"));
        eventually("owners renew", || one.fact("renewals_total") >= renewals + 8);
        written(&etcd) == revision
    });

    // Both agents ask the first member.
    etcd.kill(0);
    let _after_kill = two.register("after/kill", "k", &[]);
    eventually("names are shared by the others", || one.servers("after/kill").len() == 1);
    eventually("a leader is left", || etcd.members.iter().all(|member| member.leader().is_some()));
    etcd.change_leader();
    let _after_change = one.register("after/change", "c", &[]);
    eventually("names are shared under another leader", || two.servers("after/change").len() == 1);
    eventually("nothing was lost", || (one.fact("names"), two.fact("names")) == (5, 5));

    // An agent that dies takes its names with it, but not those whose owners another agent has.
    drop(one);
    eventually("its names leave", || two.ask("list", &[]).expect() == "after/kill  1\nboth  1\n");
    let _next = register_exclusively(&two, "leader");
    assert_eq!(two.servers("leader").len(), 1);
    assert_eq!(two.process.terminate().code, Some(0));
}

#[test]
fn agents_go_on_without_etcd_and_agree_when_it_is_back() {
    let etcd = Etcd::start();
    let (one, two) = (etcd.agent(), etcd.agent());
    let _known = one.register("known", "k", &[]);
    let _leader = one.register("leader", "l", &["--exclusive"]);
    eventually("names of the one are at the other", || two.fact("names") == 2);

    etcd.signal(Signal::STOP);
    eventually("the agents notice", || {
        [&one, &two].iter().all(|agent| state(agent).starts_with("unavailable"))
    });
    let _new = one.register("new", "n", &[]);
    assert_eq!(one.servers("new").len(), 1, "an agent serves its own owners");
    assert_eq!((two.servers("known").len(), two.servers("leader").len()), (1, 1), "and what it knows");
    let refused = ["agent", "register", "--agent", &two.address, "other", "corbaloc::h/x", "--exclusive"];
    let said = run(refused).expect_failure(1);
    assert!(said.contains("the agent cannot register exclusive names now"), "{said}");
    // A name that another agent holds is known to be taken without etcd's word.
    let refused = ["agent", "register", "--agent", &two.address, "leader", "corbaloc::h/x", "--exclusive"];
    let said = run(refused).expect_failure(1);
    assert!(said.contains("is taken"), "{said}");
    // So long that the agents' leases may end.
    std::thread::sleep(Duration::from_millis(4_500));
    etcd.signal(Signal::CONT);

    eventually("what is new is shared", || two.servers("new").len() == 1);
    eventually("the agents are back", || [&one, &two].iter().all(|agent| state(agent) == "reachable"));
    eventually("they agree", || {
        let all = "known  1\nleader  1\nnew  1\n";
        [&one, &two].iter().all(|agent| agent.ask("list", &[]).expect() == all)
    });
    let _other = register_exclusively(&two, "other");
    eventually("and share exclusive names", || one.servers("other").len() == 1);

    // Agents that lose their leases put all anew.
    let leases = || {
        let found = etcd.members[0].ask("/v3/lease/leases", &json!({})).expect("it answers");
        let found = found["leases"].as_array().into_iter().flatten().map(|lease| lease["ID"].clone());
        found.collect::<Vec<_>>()
    };
    let before = leases();
    for id in &before {
        etcd.members[0].ask("/v3/lease/revoke", &json!({ "ID": id })).expect("it is revoked");
    }
    eventually("the agents have other leases", || {
        let now = leases();
        now.len() == 2 && !now.iter().any(|id| before.contains(id))
    });
    // Who knows this one knows what has left before.
    let _fresh = one.register("fresh", "f", &[]);
    eventually("the leases' ends are known", || two.servers("fresh").len() == 1);
    eventually("they agree again", || {
        let all = "fresh  1\nknown  1\nleader  1\nnew  1\nother  1\n";
        [&one, &two].iter().all(|agent| agent.ask("list", &[]).expect() == all)
    });
}

/// Agents that all want one name at one time, again and again. Each begins with another member.
#[test]
fn of_many_that_want_a_name_one_gets_it() {
    const AGENTS: usize = 4;
    const ROUNDS: usize = 30;
    let etcd = Etcd::start();
    let barrier = Arc::new(Barrier::new(AGENTS));
    let mut options = EtcdOptions::default();
    (options.lease, options.timeout) = (Duration::from_secs(60), Duration::from_secs(30));
    let agents: Vec<_> = (0..AGENTS)
        .map(|agent| {
            let mut members: Vec<_> = etcd.members.iter().map(|member| member.address.clone()).collect();
            let first = agent % members.len();
            members.rotate_left(first);
            let store = EtcdStore::new(members, options.clone()).expect("these are addresses");
            let (barrier, agent) = (barrier.clone(), agent as u64 + 1);
            let lease = store.begin(agent).expect("it gives a lease");
            // Nothing here may panic: the others would wait for ever.
            std::thread::spawn(move || {
                let put = |name: String, is_exclusive| {
                    let reference = agent.to_string().into();
                    let key = SharedKey { name: name.into(), agent, owner: 1, reference, is_exclusive };
                    Write::Put(SharedEntry { key, properties: Box::default() })
                };
                let write = |writes: &[Write]| {
                    barrier.wait();
                    store.write(agent, lease, writes)
                };
                let round = |round| {
                    let one = write(&[put(format!("one/{round}"), true)]);
                    // Half of them want it for themselves; the others have a name beside it, which is nobody's.
                    let some = put(format!("some/{round}"), agent.is_multiple_of(2));
                    let some = write(&[put(format!("free/{round}"), false), some]);
                    Ok((one?, some?))
                };
                (0..ROUNDS).map(round).collect::<Vec<Result<_, ShareFault>>>()
            })
        })
        .collect();
    let rounds = agents.into_iter().map(|agent| agent.join().expect("it ends").into_iter().collect());
    let rounds = rounds.collect::<Result<Vec<Vec<_>>, ShareFault>>().expect("etcd works");
    for round in 0..ROUNDS {
        let got = rounds.iter().filter(|rounds| rounds[round].0 == [Written::Done]).count();
        assert_eq!(got, 1, "one/{round}");
        assert!(rounds.iter().all(|rounds| rounds[round].1[0] == Written::Done), "free/{round}");
    }
    let store = EtcdStore::new([etcd.addresses().split(',').next().expect("a member")], options);
    let (entries, _) = store.expect("it is an address").read(10_000).expect("etcd works");
    for round in 0..ROUNDS {
        let of = |name: String| entries.iter().filter(move |entry| *entry.key.name == *name);
        assert_eq!((of(format!("free/{round}")).count(), of(format!("one/{round}")).count()), (AGENTS, 1));
        let some: Vec<_> = of(format!("some/{round}")).collect();
        let exclusive = some.iter().filter(|entry| entry.key.is_exclusive).count();
        assert!(exclusive == 0 && some.len() == AGENTS / 2 || exclusive == 1 && some.len() == 1, "{some:?}");
    }
}

/// A write that was given up may still be on its way when a later one is done. Here it is that of a second store, which has
/// written less for the same agent.
#[test]
fn a_write_that_comes_late_changes_nothing() {
    let etcd = Etcd::start();
    let store = || {
        let members = etcd.members.iter().map(|member| &member.address);
        EtcdStore::new(members, EtcdOptions::default()).expect("these are addresses")
    };
    let (first, second) = (store(), store());
    let put = |name: &str, is_exclusive| {
        let key = SharedKey { name: name.into(), agent: 1, owner: 1, reference: "r".into(), is_exclusive };
        [Write::Put(SharedEntry { key, properties: Box::default() })]
    };
    let lease = first.begin(1).expect("it gives a lease");
    second.begin(1).expect("it gives a lease");
    for name in ["a", "b"] {
        assert_eq!(first.write(1, lease, &put(name, false)), Ok(vec![Written::Done]));
    }
    for is_exclusive in [false, true] {
        let late = second.write(1, lease, &put("late", is_exclusive));
        assert!(matches!(&late, Err(ShareFault::Unavailable(why)) if why.contains("overtaken")), "{late:?}");
        // Each try counts; the first store is to stay ahead.
        assert_eq!(first.write(1, lease, &put("b", false)), Ok(vec![Written::Done]));
    }
    let (entries, _) = first.read(10).expect("etcd works");
    assert_eq!(entries.iter().map(|entry| &*entry.key.name).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn what_is_no_member_is_told_with_the_mend() {
    let serve =
        |more: &[&str]| run(["agent", "serve", "--endpoint", "iiop://127.0.0.1:0"].iter().chain(more));
    let said = serve(&["--etcd", "nowhere"]).expect_failure(2);
    assert!(said.contains("--etcd: `nowhere` is no HOST:PORT") && said.contains("HOST:2379"), "{said}");
    let said = serve(&["--etcd", "h:1", "--etcd-prefix", "x"]).expect_failure(2);
    assert!(said.contains("--etcd-prefix: `x` cannot be a prefix"), "{said}");
    let said = serve(&["--etcd", "https://h:1"]).expect_failure(2);
    assert!(said.contains("plain HTTP only"), "{said}");
    let said = serve(&["--etcd", "h:1", "--etcd-lease", "1"]).expect_failure(2);
    assert!(said.contains("lasts 2 to 60 seconds"), "{said}");
    // An agent begins without etcd, too, and says what is missing.
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it is bound").port();
    let agent = AgentProcess::start("127.0.0.1:0", &["--etcd", &format!("127.0.0.1:{port}")]);
    assert!(state(&agent).starts_with("unavailable"), "{}", state(&agent));
    let done = agent.process.terminate();
    assert!(
        done.err.contains("etcd cannot be asked") && done.err.contains("is `etcd` running there?"),
        "{}",
        done.err
    );
}
