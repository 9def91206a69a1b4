//! IronORB's client with JacORB's server.

use ironorb::giop::Version;
use ironorb::{Orb, OrbBuilder, TypedRef};
use ironorb_interop::cases::Target;
use ironorb_interop::interop::{Suite, SuiteRef};
use ironorb_interop::peer::Peer;
use ironorb_interop::results::{Side, run_cases};
use ironorb_interop::skips::Circumstances;

fn builder(version: Version) -> OrbBuilder {
    Orb::builder().giop_version(version).endpoint("iiop://127.0.0.1:0").expect("an address")
}

#[track_caller]
fn check(version: Version, by_key: bool, setup: &str, builder: OrbBuilder) {
    // Without negotiation JacORB assumes its native code set, which must be the standard's.
    let negotiated = !by_key && version != Version::V1_0;
    let native = if negotiated { "UTF8" } else { "ISO8859_1" };
    let native = format!("jacorb.native_char_codeset={native}");
    let (server, ior) = Peer::JacOrb.start_server(&["--key", "suite", "--property", &native]);
    let orb = builder.build().expect("the machine has a port");
    let mut suite: SuiteRef = orb.resolve(&ior).expect("the reference is a suite");
    let mut full_setup = format!("GIOP 1.{}{setup}", version.minor());
    if by_key {
        let profile = suite.object().ior().iiop_profiles().next().expect("the reference has a profile");
        let address = profile.addresses().next().expect("the reference has an address");
        let url = format!("corbaloc:iiop:1.{}@{}:{}/suite", version.minor(), address.host, address.port);
        suite = orb.resolve(&url).expect("the reference is a suite");
        full_setup.push_str(", corbaloc");
    }
    assert_eq!(suite.orb_name().expect("the server answers"), "JacORB");
    let of = Circumstances { peer: Some(Peer::JacOrb), side: Side::Client, version, code_sets: !by_key };
    run_cases(&of, &full_setup, &Target { orb, suite, version, code_sets: !by_key });
    assert!(server.terminate().status.success());
}

#[test]
fn all_cases_pass_in_giop_1_2() {
    check(Version::V1_2, false, "", builder(Version::V1_2));
}

#[test]
fn all_cases_pass_in_giop_1_2_by_key() {
    check(Version::V1_2, true, "", builder(Version::V1_2));
}

#[test]
fn all_cases_pass_in_giop_1_1() {
    check(Version::V1_1, false, "", builder(Version::V1_1));
}

#[test]
fn all_cases_pass_in_giop_1_0() {
    check(Version::V1_0, false, "", builder(Version::V1_0));
}

#[test]
fn all_cases_pass_with_requests_in_fragments() {
    let builder = builder(Version::V1_2).fragment_bytes(1000);
    check(Version::V1_2, false, ", fragments of 1000 bytes", builder);
}
