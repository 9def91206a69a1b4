//! JacORB's client with IronORB's server.

use ironorb::giop::Version;
use ironorb_interop::peer::Peer;
use ironorb_interop::process::{Process, programs};
use ironorb_interop::results::{Side, run_client};
use ironorb_interop::skips::Circumstances;

/// Starts a server with references of one version. Returns it, its reference, and its `host:port`.
fn start(version: Version, arguments: &[&str]) -> (Process, String, String) {
    let maximum = format!("1.{}", version.minor());
    let mut all = vec!["-ORBmaxGIOPVersion", &maximum, "--key", "suite"];
    all.extend(arguments);
    let server = Process::start(programs().join("interop-server"), &all);
    let ior = server.line();
    let parsed: ironorb::giop::ior::Ior = ior.parse().expect("the first line is a reference");
    let profile = parsed.iiop_profiles().next().expect("the reference has a profile");
    let address = profile.addresses().next().expect("the reference has an address").to_string();
    (server, ior, address)
}

/// JacORB's client uses the version of the reference.
#[track_caller]
fn check(version: Version, by_key: bool, setup: &str, server: &[&str]) {
    let (server, ior, address) = start(version, server);
    let minor = version.minor();
    let (reference, setup) = if by_key {
        (format!("corbaloc:iiop:1.{minor}@{address}/suite"), format!("GIOP 1.{minor}, corbaloc{setup}"))
    } else {
        (ior, format!("GIOP 1.{minor}{setup}"))
    };
    let code_sets = !by_key && version != Version::V1_0;
    let of = Circumstances { peer: Some(Peer::JacOrb), side: Side::Server, version, code_sets };
    run_client(&of, &setup, &[&reference]);
    let finished = server.terminate();
    assert!(finished.status.success() && finished.errors.is_empty(), "{finished:?}");
}

#[test]
fn all_cases_pass_in_giop_1_2() {
    check(Version::V1_2, false, "", &[]);
}

#[test]
fn all_cases_pass_in_giop_1_2_by_key() {
    check(Version::V1_2, true, "", &[]);
}

#[test]
fn all_cases_pass_in_giop_1_1() {
    check(Version::V1_1, false, "", &[]);
}

#[test]
fn all_cases_pass_in_giop_1_0() {
    check(Version::V1_0, false, "", &[]);
}

#[test]
fn all_cases_pass_with_replies_in_fragments() {
    check(Version::V1_2, false, ", fragments of 1000 bytes", &["--fragment", "1000"]);
}
