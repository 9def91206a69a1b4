//! Clients of other ORBs call servers of other ORBs through IronORB's bridge. A client gets the same
//! results with the bridge and without it.

use ironorb_interop::peer::{ClientReport, Peer};
use ironorb_interop::process::{Process, ironorb_command};
use ironorb_interop::results::{Side, case};

/// Starts a bridge to this object. Returns it and the reference that leads through it.
fn bridge(ior: &str) -> (Process, String) {
    let target = format!("suite={ior}");
    let bridge =
        Process::start(ironorb_command(), &["bridge", "--listen", "iiop://127.0.0.1:0", "--stats", &target]);
    let line = bridge.line();
    let through = line.strip_prefix("suite ").expect("the bridge prints the first target first").to_owned();
    (bridge, through)
}

/// JacORB's exceptions in anys end omniORB's server, with a bridge and without.
const SKIPPED: [&str; 4] = ["--skip", "any=18", "--skip", "value_any=18"];

/// The outcome of each case, in order.
fn outcomes(report: &ClientReport) -> Vec<(&str, &str)> {
    let passed = report.passed.iter().map(|case| (&**case, "passed"));
    let failed = report.failed.iter().map(|(case, _)| (&**case, "failed"));
    let mut all: Vec<_> = passed.chain(failed).collect();
    all.sort_unstable();
    all
}

#[track_caller]
fn check(client: Peer, server: Peer) {
    case(client, Side::Server, &format!("bridge/to_{}", server.name()), || {
        // Each run has a server of its own, because a run leaves state in its server.
        let (_first, ior) = server.start_server(&[]);
        let direct = client.run_client(&[&SKIPPED[..], &[&ior]].concat());
        let (_second, ior) = server.start_server(&[]);
        let (bridge, through) = bridge(&ior);
        let bridged = client.run_client(&[&SKIPPED[..], &[&through]].concat());
        assert!(direct.passed.len() > 100, "{}", direct.text);
        assert_eq!(outcomes(&bridged), outcomes(&direct), "{}\n{}", direct.text, bridged.text);
        let finished = bridge.terminate();
        assert!(finished.status.success(), "{finished:?}");
        // The calls went through the bridge, which had no types.
        assert!(finished.errors.contains("; 0 rewritten"), "{finished:?}");
    });
}

#[test]
fn omniorb_calls_jacorb_through_the_bridge_as_without_it() {
    check(Peer::OmniOrb, Peer::JacOrb);
}

#[test]
fn omniorb_calls_omniorb_through_the_bridge_as_without_it() {
    check(Peer::OmniOrb, Peer::OmniOrb);
}

#[test]
fn jacorb_calls_omniorb_through_the_bridge_as_without_it() {
    check(Peer::JacOrb, Peer::OmniOrb);
}
