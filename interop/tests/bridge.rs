//! Clients of other ORBs to servers of other ORBs, with our bridge between them: whatever a client finds at a server it
//! finds through the bridge as well.

use ironorb_interop::peer::{ClientReport, Peer};
use ironorb_interop::process::{Process, ironorb_command};
use ironorb_interop::results::{Side, case};

/// A bridge to this object, and the reference that leads there through it.
fn bridge(ior: &str) -> (Process, String) {
    let target = format!("suite={ior}");
    let bridge =
        Process::start(ironorb_command(), &["bridge", "--listen", "iiop://127.0.0.1:0", "--stats", &target]);
    let line = bridge.line();
    let through = line.strip_prefix("suite ").expect("the first target is told first").to_owned();
    (bridge, through)
}

/// The exceptions in JacORB's anys end omniORB's server, with a bridge and without.
const SKIPPED: [&str; 4] = ["--skip", "any=18", "--skip", "value_any=18"];

/// What became of each case, in order.
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
        // What one run leaves in a server is not there for the other.
        let (_first, ior) = server.start_server(&[]);
        let direct = client.run_client(&[&SKIPPED[..], &[&ior]].concat());
        let (_second, ior) = server.start_server(&[]);
        let (bridge, through) = bridge(&ior);
        let bridged = client.run_client(&[&SKIPPED[..], &[&through]].concat());
        assert!(direct.passed.len() > 100, "{}", direct.text);
        assert_eq!(outcomes(&bridged), outcomes(&direct), "{}\n{}", direct.text, bridged.text);
        let finished = bridge.terminate();
        assert!(finished.status.success(), "{finished:?}");
        // The calls went there, and no type was known.
        assert!(finished.errors.contains("; 0 read and written anew"), "{finished:?}");
    });
}

#[test]
fn omniorb_finds_jacorb_behind_the_bridge_as_it_is() {
    check(Peer::OmniOrb, Peer::JacOrb);
}

#[test]
fn omniorb_finds_itself_behind_the_bridge_as_it_is() {
    check(Peer::OmniOrb, Peer::OmniOrb);
}

#[test]
fn jacorb_finds_omniorb_behind_the_bridge_as_it_is() {
    check(Peer::JacOrb, Peer::OmniOrb);
}
