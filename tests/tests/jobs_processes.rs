//! Jobs whose daemon, servers or client are killed or stopped, as processes.
//!
//! Nothing is asserted of how long something takes: a test waits until it has happened. The limits of jobs only end those that
//! would hang.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ironorb::{CompletionStatus, ObjectRef, Orb, SystemException, SystemExceptionKind, TypedRef};
use ironorb_jobs::{
    Architecture, Chosen, Daemon, Jobs, Networks, PartEnd, PartOptions, Quorum, Servers, Verdict,
    accept_forwarded,
};
use ironorb_tests::command::{ServingProcess, ironorb};
use ironorb_tests::executor::run;
use ironorb_tests::gate::{Gate, OpenAtEnd};
use ironorb_tests::testing::{Probe as _, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::json;

/// Bounds what would hang.
const LONG: Duration = Duration::from_secs(40);

/// The variable that makes a process a server of a test.
const PART: &str = "IRONORB_TEST_JOBS_SERVER";

/// The ways that need a daemon.
const BY_DAEMON: [Architecture; 2] = [Architecture::Synchronous, Architecture::Forwarding];

fn orb() -> Orb {
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    accept_forwarded(builder, Networks::local()).build().unwrap()
}

/// The test that is a server of another test, and passes at once otherwise.
#[test]
fn part() {
    if std::env::var_os(PART).is_none() {
        return;
    }
    let server = orb();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    println!("\nready {}", probe.object().to_ior_string());
    // Ends with the test.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// A server that can be killed and stopped.
struct Server {
    child: Child,
    probe: ProbeRef,
}

impl Server {
    fn start(client: &Orb) -> Server {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "jobs_processes::part", "--nocapture"]).env(PART, "yes");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let ior = lines.into_iter().find_map(|line| Some(line.strip_prefix("ready ")?.to_owned()));
        let ior = ior.expect("the server has started");
        Server { child, probe: client.string_to_object(&ior).unwrap().narrow_unchecked() }
    }

    fn stop(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).unwrap();
        let stopped = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        assert!(stopped.is_some_and(|(_, status)| status.stopped()), "{stopped:?}");
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A server of this process whose `ping` is counted, and held by the gate of the stage.
struct Held {
    _orb: Orb,
    probe: ProbeRef,
    calls: Arc<AtomicUsize>,
}

impl Held {
    fn start(client: &Orb, gate: &Gate) -> Held {
        let (orb, calls, gate) = (orb(), Arc::new(AtomicUsize::new(0)), gate.clone());
        let counted = calls.clone();
        let servant = Hooked::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            gate.pass();
            Ok(())
        });
        let own: ProbeRef = orb.root_poa().activate(servant).unwrap();
        let probe = client.string_to_object(&own.object().to_ior_string()).unwrap().narrow_unchecked();
        Held { _orb: orb, probe, calls }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Two servers, a client, and a daemon that is a process.
struct Stage {
    gate: Gate,
    servers: [Held; 2],
    jobs: Jobs,
    client: Orb,
    daemon: ServingProcess,
    _opens: OpenAtEnd,
}

impl Stage {
    fn new() -> Stage {
        Stage::with(&[])
    }

    fn with(args: &[&str]) -> Stage {
        let client = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let all = ["job", "serve", "--endpoint", "iiop://127.0.0.1:0"];
        let daemon = ServingProcess::start(all.iter().chain(args));
        let jobs = Jobs::builder(&client).daemon(&daemon.ready).unwrap().build();
        let gate = Gate::closed();
        let servers = [(); 2].map(|()| Held::start(&client, &gate));
        Stage { _opens: gate.open_at_end(), gate, servers, jobs, client, daemon }
    }

    fn calls(&self) -> [usize; 2] {
        self.servers.each_ref().map(Held::calls)
    }
}

type End = PartEnd<(), SystemException>;

/// COMM_FAILURE, maybe.
fn is_lost(end: &End) -> bool {
    matches!(end, PartEnd::Unknown(e)
        if e.kind == SystemExceptionKind::CommFailure && e.completed == CompletionStatus::Maybe)
}

/// What the daemon had called when it died may have been carried out: it is told so, and not called again but where that does no
/// harm and the job says so.
#[test]
fn what_a_killed_daemon_had_called_is_unknown_or_idempotent() {
    for architecture in BY_DAEMON {
        for falls_back in [false, true] {
            let mut stage = Stage::new();
            let [once, twice] = stage.servers.each_ref().map(|server| &server.probe);
            let job = stage.jobs.job().call(|| once.ping_async());
            let running = job
                .call_as(PartOptions::new().idempotent(), || twice.ping_async())
                .architecture(architecture)
                .falls_back(falls_back)
                .quorum(Quorum::BestEffort)
                .within(LONG)
                .begin();
            eventually("both are called", || stage.calls() == [1, 1]);
            stage.daemon.kill();
            if falls_back {
                eventually("the idempotent one is called again", || stage.calls() == [1, 2]);
                stage.gate.open();
            }
            // Otherwise the job ends while its servers are still at work.
            let end = run(running);
            let (first, second) = &end.parts;
            assert!(is_lost(first), "{architecture:?}, {falls_back}: {:?}", end.parts);
            assert_eq!(is_lost(second), !falls_back, "{architecture:?}: {:?}", end.parts);
            assert_eq!(second.is_result(), falls_back, "{architecture:?}: {:?}", end.parts);
            assert_eq!(
                end.times.iter().map(|time| time.attempts).sum::<usize>(),
                2 + usize::from(falls_back)
            );
            assert_eq!(stage.calls(), [1, 1 + usize::from(falls_back)]);
            assert_eq!(stage.jobs.counts().awaited, 0);
        }
    }
}

/// Parts that a daemon took and never passed on do not wait for ever. Nobody knows that they were not carried out.
#[test]
fn what_a_killed_daemon_had_queued_is_unknown() {
    for architecture in BY_DAEMON {
        let mut stage = Stage::with(&["--daemon-threads", "1"]);
        let [first, second] = stage.servers.each_ref().map(|server| &server.probe);
        // The daemon's one thread waits for a server.
        let busy =
            stage.jobs.job().call(|| first.ping_async()).architecture(Architecture::Synchronous).begin();
        eventually("the daemon is busy", || stage.calls() == [1, 0]);
        let queued =
            stage.jobs.job().call(|| second.ping_async()).architecture(architecture).within(LONG).begin();
        let daemon: ironorb_jobs::JobDaemonRef =
            stage.client.string_to_object(&stage.daemon.ready).unwrap().narrow_unchecked();
        eventually("the other job is queued", || {
            use ironorb_jobs::JobDaemon as _;
            let facts = daemon.facts().unwrap();
            facts.iter().any(|fact| fact.name == "queued" && fact.value == 1)
        });
        stage.daemon.kill();
        let (busy, queued) = (run(busy), run(queued));
        assert!(is_lost(&busy.parts.0), "{:?}", busy.parts);
        assert!(is_lost(&queued.parts.0), "{architecture:?}: {:?}", queued.parts);
        assert_eq!(stage.calls(), [1, 0], "{architecture:?}");
    }
}

/// A daemon that has died before is sent nothing: parts have not been carried out, or are from here.
#[test]
fn a_daemon_that_is_dead_takes_nothing() {
    for architecture in [Architecture::Synchronous, Architecture::Forwarding, Architecture::Auto] {
        for has_been_used in [false, true] {
            let mut stage = Stage::new();
            stage.gate.open();
            let job = |stage: &Stage, architecture, falls_back| {
                let [one, other] = stage.servers.each_ref().map(|server| &server.probe);
                let job = stage.jobs.job().call(|| one.ping_async()).call(|| other.ping_async());
                let job = job.architecture(architecture).falls_back(falls_back).within(LONG);
                job.quorum(Quorum::BestEffort).run()
            };
            let before = usize::from(has_been_used);
            if has_been_used {
                let (first, second) = job(&stage, architecture, false).parts;
                assert!(first.is_result() && second.is_result());
            }
            stage.daemon.kill();
            if has_been_used {
                // The client may send a request before it sees that the connection has ended.
                job(&stage, Architecture::Synchronous, false);
                assert_eq!(stage.calls(), [1, 1], "{architecture:?}");
            }
            if architecture != Architecture::Auto {
                let end = job(&stage, architecture, false);
                let is_unsent =
                    |end: &End| matches!(end, PartEnd::Exception(e) if e.completed == CompletionStatus::No);
                let (first, second) = &end.parts;
                assert!(is_unsent(first) && is_unsent(second), "{architecture:?}: {:?}", end.parts);
                assert_eq!(stage.calls(), [before; 2], "{architecture:?}");
            }
            let end = job(&stage, architecture, true);
            let (first, second) = &end.parts;
            assert!(
                first.is_result() && second.is_result(),
                "{architecture:?}, {has_been_used}: {:?}",
                end.parts
            );
            assert_eq!(stage.calls(), [before + 1; 2], "{architecture:?}");
        }
    }
}

/// A server that dies with a request leaves its part unknown, and the others as they are. With a forwarded part it tells nobody:
/// the job's time is over then.
#[test]
fn what_a_killed_server_had_is_unknown() {
    use Architecture::{Auto, Forwarding, HandleDriven, Sequential, Synchronous};
    for architecture in [Sequential, HandleDriven, Synchronous, Forwarding, Auto] {
        let stage = Stage::new();
        stage.gate.open();
        let mut server = Server::start(&stage.client);
        let (mortal, other) = (server.probe.clone(), &stage.servers[0]);
        let limit = if architecture == Forwarding { Duration::from_secs(3) } else { LONG };
        let running = stage
            .jobs
            .job()
            .call(|| mortal.block_async())
            .call(|| other.probe.ping_async())
            .architecture(architecture)
            .quorum(Quorum::BestEffort)
            .within(limit)
            .begin();
        eventually("the server has the request", || server.probe.blocked().unwrap() == 1);
        server.kill();
        let end = run(running);
        let (lost, result) = &end.parts;
        match architecture {
            Forwarding => assert!(matches!(lost, PartEnd::Cancelled { may_be_executed: true }), "{lost:?}"),
            _ => assert!(is_lost(lost), "{architecture:?}: {lost:?}"),
        }
        assert!(result.is_result(), "{architecture:?}: {result:?}");
        assert_eq!(other.calls(), 1, "{architecture:?}");
    }
}

/// A server that has died before a part is forwarded to it has not carried it out, and the client is told so, though no server is left
/// to tell it: no time of the job has to pass.
#[test]
fn what_is_forwarded_to_a_server_that_has_been_killed_is_not_executed() {
    let stage = Stage::new();
    stage.gate.open();
    for has_been_called in [false, true] {
        let mut server = Server::start(&stage.client);
        let [mortal, other] = [&server.probe, &stage.servers[0].probe].map(Clone::clone);
        let run = || {
            let job = stage.jobs.job().call(|| mortal.ping_async()).call(|| other.ping_async());
            job.architecture(Architecture::Forwarding).quorum(Quorum::BestEffort).within(LONG).run().parts
        };
        if has_been_called {
            let (first, second) = run();
            assert!(first.is_result() && second.is_result(), "{first:?}, {second:?}");
        }
        server.kill();
        let (unsent, result) = run();
        assert!(
            matches!(&unsent, PartEnd::Exception(e) if e.completed == CompletionStatus::No),
            "{has_been_called}: {unsent:?}"
        );
        assert!(result.is_result(), "{result:?}");
    }
    assert_eq!(stage.jobs.counts().awaited, 0);
}

/// Servers that are asked in this order.
struct InOrder(Vec<ObjectRef>);

impl Servers for InOrder {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn choose(&self, tried: &[ObjectRef]) -> Option<Chosen> {
        let left = self.0.iter().find(|server| !tried.iter().any(|tried| tried.is_equivalent(server)));
        left.map(|object| Chosen { object: object.clone(), guard: None })
    }
}

/// What may be carried out twice goes to another server: after the first one's death, or, hedged, before.
#[test]
fn an_idempotent_part_survives_a_killed_server() {
    for is_hedged in [false, true] {
        let stage = Stage::new();
        let mut servers = [(); 2].map(|()| Server::start(&stage.client));
        let objects = servers.each_ref().map(|server| server.probe.object().clone()).to_vec();
        let options = PartOptions::new().idempotent();
        let options = if is_hedged { options.hedged_after(Duration::from_millis(1)) } else { options };
        let running = stage
            .jobs
            .job()
            .call_any(Arc::new(InOrder(objects)), options, |probe: &ProbeRef| probe.block_async())
            .within(LONG)
            .begin();
        let [mortal, other] = &mut servers;
        eventually("the first has the request", || mortal.probe.blocked().unwrap() == 1);
        if is_hedged {
            eventually("the second has it, too", || other.probe.blocked().unwrap() == 1);
        }
        mortal.kill();
        eventually("the second has the request", || other.probe.blocked().unwrap() == 1);
        other.probe.release().unwrap();
        let end = run(running);
        assert!(end.parts.0.is_result(), "{:?}", end.parts);
        assert_eq!(end.times[0].attempts, 2);
        assert_eq!(stage.jobs.counts().attempts.further, 1);
    }
}

/// A server that hangs holds a job no longer than its time.
#[test]
fn a_stopped_server_is_given_up_in_time() {
    use Architecture::{Auto, Forwarding, HandleDriven, Sequential, Synchronous};
    let stage = Stage::new();
    stage.gate.open();
    let server = Server::start(&stage.client);
    // Connections are made; a server that is stopped still accepts some.
    server.probe.ping().unwrap();
    server.stop();
    for (before, architecture) in
        [Sequential, HandleDriven, Synchronous, Forwarding, Auto].into_iter().enumerate()
    {
        let other = &stage.servers[0];
        let end = stage
            .jobs
            .job()
            .call(|| other.probe.ping_async())
            .call(|| server.probe.ping_async())
            .architecture(architecture)
            .within(Duration::from_secs(1))
            .run();
        assert_eq!(end.verdict, Verdict::Deadline, "{architecture:?}");
        assert!(matches!(end.parts.1, PartEnd::Cancelled { may_be_executed: true }), "{:?}", end.parts);
        eventually("the other one is called", || other.calls() == before + 1);
    }
    assert_eq!(stage.jobs.counts().awaited, 0);
}

/// Clients that are killed leave nothing at the daemon: what is under way for them is cancelled, what is queued is not begun, and
/// its threads serve others.
#[test]
fn killed_clients_leave_nothing_at_the_daemon() {
    let server_orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let daemon = Daemon::builder().threads(1).serve(&server_orb).unwrap();
    let fact = |name: &str| {
        let facts = daemon.facts();
        facts.iter().find(|(known, _)| known == name).map_or_else(|| panic!("no {name}"), |fact| fact.1)
    };
    let client = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let gate = Gate::closed();
    let _opens = gate.open_at_end();
    let server = Held::start(&client, &gate);
    let folder = tempfile::tempdir().unwrap();
    let (ior, at) = (server.probe.object().to_ior_string(), daemon.reference().object().to_ior_string());
    let client_of = |architecture: &str| {
        let part = json!({"target": ior, "operation": "ping", "arguments": []});
        let job = json!({"parts": [part], "architecture": architecture, "daemon": at});
        let path = folder.path().join(format!("{architecture}.json"));
        std::fs::write(&path, job.to_string()).unwrap();
        let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/probe.idl");
        let mut command = Command::new(ironorb());
        command.args(["job", "run", path.to_str().unwrap(), "--idl", idl]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let kill = |client: &mut Child| {
        client.kill().unwrap();
        client.wait().unwrap();
    };
    let mut busy = client_of("synchronous");
    eventually("a job is under way", || server.calls() == 1 && fact("busy") == 1);
    let mut queued = client_of("synchronous");
    eventually("another one is queued", || fact("queued") == 1);
    let cancels = server._orb.status().total("cancel_requests_total");
    // Nobody waits for the one in the queue: it leaves, though none is over.
    kill(&mut queued);
    eventually("the queue is empty", || fact("queued") == 0 && fact("queued_octets") == 0);
    assert_eq!(fact("busy"), 1);
    kill(&mut busy);
    // The gate is still closed: the daemon does not wait for the server.
    eventually("the daemon is idle", || fact("busy") == 0 && fact("queued") == 0);
    eventually("the server is told", || server._orb.status().total("cancel_requests_total") == cancels + 1);
    assert_eq!((server.calls(), fact("cancelled_total"), fact("parts_total")), (1, 1, 1));
    // One that forwards.
    let mut forwards = client_of("forwarding");
    eventually("the part is passed on", || server.calls() == 2 && fact("clients_attending") == 1);
    kill(&mut forwards);
    eventually("the daemon has forgotten it", || fact("clients_attending") == 0);
    eventually("the daemon is idle", || fact("busy") == 0);
    // Its thread serves others.
    gate.open();
    let jobs = Jobs::builder(&client).daemon(&at).unwrap().build();
    let end = jobs.job().call(|| server.probe.ping_async()).architecture(Architecture::Synchronous).run();
    assert!(end.is_met(), "{:?}", end.parts);
    assert_eq!(server.calls(), 3);
    daemon.drain();
}
