//! `ironorb bridge` on the command line.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use ironorb::{Orb, TypedRef as _};
use ironorb_tests::command::{ServingProcess, ironorb, run};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};
use rustix::process::{Pid, Signal, kill_process};

const PROBE_IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/probe.idl");

#[test]
fn a_bridge_publishes_targets_and_traces_calls() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    server.bind_key("Other", probe.object()).unwrap();
    let target = format!("probe={}", probe.object().to_ior_string());
    let to = server.published_addresses()[0].clone();
    let mut bridge = Command::new(ironorb())
        .args([
            "bridge",
            "--listen",
            "iiop://127.0.0.1:0",
            "--trace",
            "--stats",
            "--idl",
            PROBE_IDL,
            "--to",
            &to,
        ])
        .arg(&target)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines().map(Result::unwrap);
    let published = lines.next().unwrap();
    let ior = published.strip_prefix("probe ").unwrap();
    let ready = lines.next().unwrap();
    let address = ready.strip_prefix("ready ").unwrap();

    let client = Orb::builder().no_endpoint().build().unwrap();
    let through: ProbeRef = client.resolve(ior).unwrap();
    assert_eq!(through.object().type_id(), ProbeRef::REPOSITORY_ID);
    assert_eq!(through.add(20, 22).unwrap(), 42);
    assert!(through.refuse("no").is_err());
    through.tick().unwrap();
    for key in ["probe", "Other"] {
        let other: ProbeRef = client.resolve(&format!("corbaloc::{address}/{key}")).unwrap();
        assert_eq!(other.echo("a").unwrap(), "a");
    }
    let pid = Pid::from_raw(bridge.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let mut output = String::new();
    bridge.stderr.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(bridge.wait().unwrap().success(), "{output}");
    for part in [
        "probe  add(20, 22) -> 42  [8 > 4 bytes, GIOP 1.2]",
        "probe  refuse(\"no\") -> raised IDL:testing/Refused:1.0 {\"why\":\"no\"}",
        "probe  tick() sent",
        "Other  echo(\"a\") -> \"a\"",
        "1 oneways, 1 user exceptions, 0 system exceptions",
        "; 0 rewritten",
    ] {
        assert!(output.contains(part), "{part} is not in\n{output}");
    }
}

#[test]
fn wrong_usage_is_reported() {
    let failure = |args: &[&str], code: i32| run([&["bridge"], args].concat()).expect_failure(code);
    assert!(failure(&["--listen", "iiop://127.0.0.1:0", "nonsense"], 2).contains("leads to no object"));
    assert!(failure(&["--endpoint", "iiop://127.0.0.1:0", "nonsense"], 2).contains("leads to no object"));
    assert!(failure(&["--to", "nowhere"], 2).contains("HOST:PORT"));
    assert!(failure(&["--giop", "1.3", "--to", "a:1"], 2).contains("1.0, 1.1 or 1.2"));
    assert!(failure(&["--through", "--to", "a:1"], 2).contains("--idl"));
}

/// A few copies of the largest messages exist at a time, and their memory is freed when they have passed.
#[test]
fn the_memory_of_large_bodies_is_freed() {
    const OCTETS: usize = 63 << 20;
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let target = format!("probe={}", probe.object().to_ior_string());
    let mut bridge = Command::new(ironorb())
        .args(["bridge", "--with-parent", "--listen", "iiop://127.0.0.1:0", &target])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines().map(Result::unwrap);
    let published = lines.next().unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let through: ProbeRef = client.resolve(published.strip_prefix("probe ").unwrap()).unwrap();
    let sent = b"as it was ".repeat(OCTETS / 10);
    for _ in 0..4 {
        assert!(through.reflect(&sent).unwrap() == sent);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", bridge.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let kib: usize = peak.strip_suffix(" kB").unwrap().parse().unwrap();
    // One call takes up to three copies: one as it arrives, one that is kept, and one that the target's
    // socket has not taken yet.
    assert!(kib >> 10 < 5 * (OCTETS >> 20), "{peak}");
    drop(bridge.stdin.take());
    assert!(bridge.wait().unwrap().success());
}

/// The type repository starts after the bridge. Calls pass before, and the trace shows their values after.
#[test]
fn types_come_from_a_repository_that_starts_later() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let target = format!("probe={}", probe.object().to_ior_string());
    let (reserved, port) = raw::listen();
    drop(reserved);
    let place = format!("127.0.0.1:{port}");
    let mut bridge = Command::new(ironorb())
        .args([
            "bridge",
            "--with-parent",
            "--listen",
            "iiop://127.0.0.1:0",
            "--trace",
            "--ifr",
            &place,
            &target,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines().map(Result::unwrap);
    let published = lines.next().unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let through: ProbeRef = client.resolve(published.strip_prefix("probe ").unwrap()).unwrap();
    assert_eq!(through.add(20, 22).unwrap(), 42);
    let endpoint = format!("iiop://{place}");
    let repository =
        ServingProcess::start(["ifr", "serve", "--memory", "--listen", &endpoint, "--load", PROBE_IDL]);
    // The bridge asks again only after as much time as the failed attempt took.
    let trace = std::thread::scope(|scope| {
        let mut trace = BufReader::new(bridge.stderr.take().unwrap()).lines().map(Result::unwrap);
        let first = trace.find(|line| line.contains("add(")).unwrap();
        assert!(first.contains("add(…) -> …"), "{first}");
        let calling = scope.spawn(move || trace.find(|line| line.contains("add(30, 3) -> 33")));
        eventually("the bridge knows the operation", || {
            assert_eq!(through.add(30, 3).unwrap(), 33);
            calling.is_finished()
        });
        calling.join().unwrap()
    });
    assert!(trace.is_some());
    drop(repository);
    drop(bridge.stdin.take());
    assert!(bridge.wait().unwrap().success());
}
