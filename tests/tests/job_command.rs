//! `ironorb job`: jobs from files over servers, by names and through daemons.

use std::path::PathBuf;
use std::thread;

use ironorb::{Orb, TypedRef};
use ironorb_tests::command::{Done, ServingProcess, run};
use ironorb_tests::testing::{Probe as _, ProbeRef};
use ironorb_tests::{Probing, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

const PROBE_IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/probe.idl");

/// Servers, and a folder for files of jobs.
struct Stage {
    _orb: Orb,
    probe: ProbeRef,
    folder: TempDir,
}

impl Stage {
    fn new() -> Stage {
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let probe = orb.root_poa().activate(Probing::default()).unwrap();
        Stage { _orb: orb, probe, folder: tempfile::tempdir().unwrap() }
    }

    fn ior(&self) -> String {
        self.probe.object().to_ior_string()
    }

    fn file(&self, job: &Value) -> PathBuf {
        let path = self.folder.path().join(format!("job-{:?}.json", thread::current().id()));
        std::fs::write(&path, job.to_string()).unwrap();
        path
    }

    fn run(&self, job: &Value) -> Done {
        run(["job", "run", self.file(job).to_str().unwrap(), "--idl", PROBE_IDL])
    }

    /// A part that calls the probe.
    fn part(&self, operation: &str, arguments: Value) -> Value {
        part(&self.ior(), operation, arguments)
    }
}

fn part(target: &str, operation: &str, arguments: Value) -> Value {
    json!({"target": target, "operation": operation, "arguments": arguments})
}

/// What a job has printed; the exit code says whether its quorum was met.
#[track_caller]
fn end(done: &Done, code: i32) -> Value {
    assert_eq!(done.code, Some(code), "{}", done.err);
    serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{e}: {}", done.out))
}

#[test]
fn each_part_s_end_is_printed() {
    let stage = Stage::new();
    let parts = [
        stage.part("add", json!([20, 1])),
        stage.part("echo", json!({"text": "21"})),
        stage.part("refuse", json!(["not today"])),
        stage.part("raise_system", json!([7])),
        stage.part("_is_a", json!(["IDL:testing/Probe:1.0"])),
        stage.part("label", json!([])),
    ];
    let job = json!({"parts": parts, "quorum": "best_effort"});
    let end = end(&stage.run(&job), 0);
    assert_eq!(end["verdict"], "met");
    assert!(end["took_ms"].is_number());
    let parts = end["parts"].as_array().unwrap();
    let ends: Vec<_> = parts.iter().map(|part| part["end"].as_str().unwrap()).collect();
    assert_eq!(ends, ["result", "result", "exception", "exception", "result", "result"]);
    assert_eq!((&parts[0]["result"], &parts[1]["result"]), (&json!(21), &json!("21")));
    let refused = json!({"exception": "IDL:testing/Refused:1.0", "members": {"why": "not today"}});
    assert_eq!(parts[2]["exception"], refused);
    assert_eq!(parts[3]["exception"]["exception"], "IDL:omg.org/CORBA/NO_PERMISSION:1.0");
    assert_eq!(parts[3]["exception"]["completed"], "yes");
    assert_eq!((&parts[4]["result"], &parts[5]["result"]), (&json!(true), &json!("")));
    for part in parts {
        assert_eq!(part["attempts"], 1, "{part}");
        assert!(part["took_ms"].is_number() && part["operation"].is_string(), "{part}");
    }
}

#[test]
fn the_exit_code_says_whether_the_quorum_is_met() {
    let stage = Stage::new();
    let (good, bad) = (stage.part("add", json!([1, 1])), stage.part("refuse", json!(["no"])));
    // An exception that the operation declares is an answer, and no result.
    assert_eq!(end(&stage.run(&json!({"parts": [good, bad]})), 0)["verdict"], "met");
    let all = stage.run(&json!({"parts": [good, bad], "quorum": {"at_least": 2}}));
    assert!(all.err.contains("error: the quorum is not met: cannot be met"), "{}", all.err);
    assert_eq!(end(&all, 1)["verdict"], "cannot be met");
    let one = end(&stage.run(&json!({"parts": [good, bad], "quorum": {"at_least": 1}})), 0);
    assert_eq!(one["parts"][0]["result"], 2);
    // A part that no server answers in time.
    let job = json!({"parts": [good, stage.part("block", json!([]))], "within_ms": 2_000});
    let late = end(&stage.run(&job), 1);
    assert_eq!((&late["verdict"], &late["parts"][0]["result"]), (&json!("time is over"), &json!(2)));
    assert_eq!(late["parts"][1]["end"], "cancelled");
    assert_eq!(late["parts"][1]["may_be_executed"], true);
    stage.probe.release().unwrap();
}

#[test]
fn mistakes_are_told_with_their_place_and_nothing_is_called() {
    let stage = Stage::new();
    let tick = stage.part("label", json!([]));
    for (bad, says) in [
        (stage.part("ad", json!([1, 2])), "parts[1]: operation: Probe has no operation or attribute `ad`"),
        (stage.part("add", json!([1])), "parts[1]: arguments: add takes 2 arguments, a, b, not 1"),
        (stage.part("add", json!({"a": 1, "c": 2})), "parts[1]: arguments: add has no parameter `c`"),
        (
            stage.part("add", json!([1, "x"])),
            "parts[1]: arguments: the argument `b`: $: expected a whole number",
        ),
        (stage.part("tick", json!([])), "parts[1]: operation: `tick` is oneway"),
        (part("bank/a", "add", json!([1, 2])), "parts[1]: target: `bank/a` is a name, and no agent is given"),
        (part("IOR:00", "add", json!([1, 2])), "parts[1]: target: the reference leads to no object"),
        (json!({"target": "a", "operaton": "b"}), "parts[1].operaton: there is no such member"),
    ] {
        let said = stage.run(&json!({"parts": [tick, bad]})).expect_failure(2);
        assert!(said.contains(says), "{says} is not in\n{said}");
    }
    let said = stage.run(&json!({"parts": [tick], "architecture": "synchronous"})).expect_failure(2);
    assert!(said.contains("none is named") && said.contains("ironorb job serve"), "{said}");
    run(["job", "run", "/no/such/file"]).expect_failure(1);
}

/// An agent with a daemon, and a name of it.
struct Named {
    _registered: ServingProcess,
    agent: ServingProcess,
    address: String,
}

impl Named {
    fn start(stage: &Stage, more: &[&str]) -> Named {
        let args = ["agent", "serve", "--endpoint", "iiop://127.0.0.1:0"];
        let agent = ServingProcess::start(args.iter().chain(more));
        let address = agent.ready.strip_prefix("corbaloc::1.2@").unwrap();
        let address = address.strip_suffix("/IronORBAgent").unwrap().to_owned();
        let register = ["agent", "register", "--agent", &address, "probe", &stage.ior()];
        Named { _registered: ServingProcess::start(register), agent, address }
    }

    /// The status of the daemon; null if there is none.
    fn daemon(&self) -> Value {
        let said = run(["agent", "status", "--agent", &self.address, "--json"]).expect();
        serde_json::from_str::<Value>(&said).unwrap()["daemon"].take()
    }
}

#[test]
fn names_are_called_on_each_way() {
    let stage = Stage::new();
    let named = Named::start(&stage, &["--daemon", "--daemon-threads", "2"]);
    let facts = named.daemon();
    assert_eq!((&facts["threads"], &facts["jobs_synchronous_total"]), (&json!(2), &json!(0)));
    assert_eq!(facts["bottleneck"], Value::Null);
    for architecture in ["sequential", "handle-driven", "synchronous", "forwarding", "auto"] {
        let parts = [part("probe", "add", json!([1, 2])), stage.part("refuse", json!(["no"]))];
        let job = json!({
            "parts": parts, "quorum": "best_effort", "architecture": architecture,
            "agent": named.address, "daemon": named.address
        });
        let end = end(&stage.run(&job), 0);
        assert_eq!(end["parts"][0]["result"], 3, "{architecture}: {end}");
        assert_eq!(end["parts"][1]["exception"]["members"]["why"], "no", "{architecture}: {end}");
    }
    let facts = named.daemon();
    assert_eq!((&facts["jobs_synchronous_total"], &facts["jobs_forwarding_total"]), (&json!(2), &json!(1)));
    // The daemon alone knows the names, and the file the interface.
    let mut lone = part("probe", "add", json!([2, 2]));
    lone["interface"] = json!("Probe");
    let job = json!({"parts": [lone], "architecture": "synchronous", "daemon": named.address});
    assert_eq!(end(&stage.run(&job), 0)["parts"][0]["result"], 4);
    let unknown = json!({"parts": [part("none", "add", json!([1, 2]))], "agent": named.address});
    let said = stage.run(&unknown).expect_failure(1);
    assert!(said.contains("parts[0]: target: no server is registered under `none`"), "{said}");
}

#[test]
fn a_daemon_asks_the_servers_of_a_name_in_turn() {
    let (one, other) = (Stage::new(), Stage::new());
    let named = Named::start(&one, &["--daemon"]);
    let register = ["agent", "register", "--agent", &named.address, "probe", &other.ior()];
    let registered = ServingProcess::start(register);
    let parts = [part("probe", "itself", json!([])), part("probe", "itself", json!([]))];
    let job = json!({
        "parts": parts, "architecture": "synchronous", "agent": named.address, "daemon": named.address
    });
    let end = end(&one.run(&job), 0);
    assert_ne!(end["parts"][0]["result"], end["parts"][1]["result"], "{end}");
    // One that leaves is not asked any more.
    drop(registered);
    eventually("the other one has left", || {
        run(["agent", "resolve", "--agent", &named.address, "probe"]).expect().lines().count() == 1
    });
    eventually("the daemon knows", || {
        let end: Value = serde_json::from_str(&one.run(&job).out).unwrap();
        end["parts"][0]["result"] == end["parts"][1]["result"] && end["verdict"] == "met"
    });
}

#[test]
fn a_daemon_of_its_own_drains_and_says_that_it_holds_jobs_up() {
    let stage = Stage::new();
    let named = Named::start(&stage, &[]);
    assert_eq!(named.daemon(), Value::Null);
    let args = [
        "job",
        "serve",
        "--agent",
        &named.address,
        "--endpoint",
        "iiop://127.0.0.1:0",
        "--daemon-threads",
        "1",
    ];
    let daemon = ServingProcess::start(args);
    let at = daemon.ready.clone();
    assert!(at.ends_with("/IronORBDaemon"), "{at}");
    let block = part("probe", "block", json!([]));
    let job = json!({
        "parts": [block], "architecture": "synchronous", "agent": named.address, "daemon": at, "within_ms": 60_000
    });
    // `agent status` asks for the daemon at the agent's address.
    let at_daemon = at.strip_prefix("corbaloc::1.2@").unwrap().strip_suffix("/IronORBDaemon").unwrap();
    let busy = || {
        let facts = format!("corbaloc::1.2@{at_daemon}/IronORBDaemon");
        let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/ironorb_jobs.idl");
        let said = run(["call", &facts, "facts", "--idl", idl, "--compact"]).expect();
        let facts: Vec<Value> = serde_json::from_str(&said).unwrap();
        let of =
            |name: &str| facts.iter().find(|fact| fact["name"] == name).unwrap()["value"].as_u64().unwrap();
        (of("busy"), of("queued"))
    };
    // Nobody waits for replies of the daemon, so that its ORB would end at once. The probe takes no forwarded requests: the
    // daemon calls it.
    let mut forwarded = job.clone();
    forwarded["architecture"] = json!("forwarding");
    thread::scope(|scope| {
        let jobs: Vec<_> = (0..2).map(|_| scope.spawn(|| stage.run(&forwarded))).collect();
        eventually("one job runs, and one waits", || busy() == (1, 1));
        // What is queued is still carried out after the signal, and nothing else.
        let ends = scope.spawn(|| daemon.terminate());
        let mut late = forwarded.clone();
        late["within_ms"] = json!(500);
        eventually("no more jobs are taken", || {
            let end: Value = serde_json::from_str(&stage.run(&late).out).unwrap();
            end["parts"][0]["exception"]["exception"] == "IDL:omg.org/CORBA/TRANSIENT:1.0"
        });
        eventually("both are carried out", || {
            stage.probe.release().unwrap();
            jobs.iter().all(|job| job.is_finished())
        });
        for job in jobs {
            assert_eq!(end(&job.join().unwrap(), 0)["parts"][0]["end"], "result");
        }
        assert_eq!(ends.join().unwrap().code, Some(0));
    });
}

#[test]
fn the_status_says_that_the_daemon_is_what_holds_jobs_up() {
    let stage = Stage::new();
    let named = Named::start(&stage, &["--daemon", "--daemon-threads", "1"]);
    let job = json!({
        "parts": [part("probe", "block", json!([]))], "architecture": "synchronous",
        "agent": named.address, "daemon": named.address, "within_ms": 60_000
    });
    thread::scope(|scope| {
        let jobs: Vec<_> = (0..2).map(|_| scope.spawn(|| stage.run(&job))).collect();
        eventually("one job runs, and one waits", || {
            let daemon = named.daemon();
            // Whether processors are idle is up to the machine; the daemon's half is not.
            let says = daemon["bottleneck"].as_str().unwrap_or_default();
            says.starts_with("jobs are queued: 1; ") && daemon["processors_idle"].is_number()
        });
        let shown = run(["agent", "status", "--agent", &named.address]).expect();
        assert!(
            shown.contains("\ndaemon\n  threads ") && shown.contains("  jobs are queued: 1; "),
            "{shown}"
        );
        eventually("both are carried out", || {
            stage.probe.release().unwrap();
            jobs.iter().all(|job| job.is_finished())
        });
        for job in jobs {
            assert_eq!(end(&job.join().unwrap(), 0)["parts"][0]["end"], "result");
        }
    });
    assert_eq!(named.daemon()["bottleneck"], Value::Null);
    assert_eq!(named.agent.terminate().code, Some(0));
}
