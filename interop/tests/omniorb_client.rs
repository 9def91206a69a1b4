//! omniORB's client with IronORB's server.

use ironorb::giop::Version;
use ironorb_interop::peer::Peer;
use ironorb_interop::process::{Process, free_port, programs};
use ironorb_interop::results::{Side, run_client};
use ironorb_interop::skips::Circumstances;

fn start(arguments: &[&str]) -> (Process, String, String) {
    // omniORB reads only this form of exceptions in anys.
    let arguments = [arguments, &["--bare-exceptions", "yes"]].concat();
    let server = Process::start(programs().join("interop-server"), &arguments);
    let ior = server.line();
    let address = address(&ior);
    (server, ior, address)
}

/// `host:port` of a reference.
fn address(ior: &str) -> String {
    let ior: ironorb::giop::ior::Ior = ior.parse().expect("the first line is a reference");
    let profile = ior.iiop_profiles().next().expect("the reference has a profile");
    profile.addresses().next().expect("the reference has an address").to_string()
}

/// Runs all cases that the list does not leave out.
#[track_caller]
fn check(version: Version, setup: &str, reference: &str) {
    let code_sets = reference.starts_with("IOR:") && version != Version::V1_0;
    let of = Circumstances { peer: Some(Peer::OmniOrb), side: Side::Server, version, code_sets };
    let maximum = format!("1.{}", version.minor());
    run_client(&of, setup, &["-ORBmaxGIOPVersion", &maximum, reference]);
}

/// Tests every version by an IOR and by a corbaloc.
#[track_caller]
fn check_all_forms(concurrency: &str) {
    let endpoint = "giop:tcp:127.0.0.1:0";
    let arguments = ["--key", "suite", "-ORBendPoint", endpoint, "--concurrency", concurrency];
    let (server, ior, address) = start(&arguments);
    for version in [Version::V1_2, Version::V1_1, Version::V1_0] {
        let minor = version.minor();
        check(version, &format!("GIOP 1.{minor}, {concurrency}"), &ior);
        let url = format!("corbaloc:iiop:1.{minor}@{address}/suite");
        check(version, &format!("GIOP 1.{minor}, {concurrency}, corbaloc"), &url);
    }
    let finished = server.terminate();
    assert!(finished.status.success() && finished.errors.is_empty(), "{finished:?}");
}

#[test]
fn all_cases_pass_with_a_thread_per_connection() {
    check_all_forms("connection");
}

#[test]
fn all_cases_pass_with_leader_and_followers() {
    check_all_forms("leader-followers");
}

#[test]
fn replies_in_fragments_are_understood() {
    let (_server, ior, _) = start(&["--fragment", "1000", "--fragments-in-giop-1.1", "yes"]);
    for version in [Version::V1_2, Version::V1_1] {
        check(version, &format!("GIOP 1.{}, fragments of 1000 bytes", version.minor()), &ior);
    }
}

#[test]
fn a_reference_outlives_its_server() {
    let endpoint = format!("giop:tcp:127.0.0.1:{}", free_port());
    let (server, ior, _) = start(&["--poa", "persistent", "-ORBendPoint", &endpoint]);
    let alive = ["--only", "nothing", "--only", "echo_long", "--only", "references", &ior];
    assert!(Peer::OmniOrb.run_client(&alive).is_complete);
    server.kill();
    let dead = Peer::OmniOrb.run_client(&alive);
    assert!(!dead.is_complete && dead.text.contains("TRANSIENT"), "{}", dead.text);

    let (server, again, _) = start(&["--poa", "persistent", "-ORBendPoint", &endpoint]);
    assert_eq!(again, ior);
    let report = Peer::OmniOrb.run_client(&alive);
    assert!(report.is_complete, "{}", report.text);
    server.kill();

    // A reference to a transient object does not outlive its server: the new process does not know the
    // object.
    let (server, transient, _) = start(&["-ORBendPoint", &endpoint]);
    server.kill();
    let (_server, ..) = start(&["-ORBendPoint", &endpoint]);
    let report = Peer::OmniOrb.run_client(&["--only", "nothing", &transient]);
    assert!(report.text.contains("OBJECT_NOT_EXIST"), "{}", report.text);
}

#[test]
fn the_published_address_may_differ_from_the_endpoint() {
    let (_server, ior, published) =
        start(&["-ORBendPoint", "giop:tcp:127.0.0.1:0", "-ORBendPointPublish", "giop:tcp:localhost:"]);
    assert!(published.starts_with("localhost:"), "{published}");
    let report = Peer::OmniOrb.run_client(&["--only", "nothing", "--only", "echo_long", &ior]);
    assert!(report.is_complete, "{}", report.text);
}

#[test]
fn shutdown_is_answered_and_ends_the_server() {
    let (server, ior, _) = start(&[]);
    let report = Peer::OmniOrb.run_client(&["--only", "nothing", "--only", "shutdown", "--shutdown", &ior]);
    assert!(report.is_complete && report.passed.len() == 2, "{}", report.text);
    let finished = server.finish();
    assert!(finished.status.success() && finished.errors.is_empty(), "{finished:?}");
}
