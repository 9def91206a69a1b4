//! IronORB's client against omniORB's server.

use ironorb::giop::Version;
use ironorb::{Orb, SystemExceptionKind, TypedRef};
use ironorb_interop::cases::{self, Target};
use ironorb_interop::interop::{Basics, Suite, SuiteRef};
use ironorb_interop::omniorb::start_server;
use ironorb_interop::process::wait_until;

/// Why IronORB leaves cases out under GIOP 1.1.
const FRAGMENTS_1_1: &str = "IronORB reads the fragments of GIOP 1.1 with the alignment of GIOP 1.2";
/// Why nobody can speak these cases with omniORB 4.2 under GIOP 1.1.
const STRINGS_1_1: &str = "omniORB 4.2 breaks a string across GIOP 1.1 fragments wrongly";

/// Cases that are left out under GIOP 1.1, each with the reason. README.md has the same table.
const SKIPPED_1_1: [(&str, &str); 8] = [
    ("wide", "omniORB 4.2 finds no wide code set for GIOP 1.1"),
    ("echo_string/long", STRINGS_1_1),
    ("big/one_string", STRINGS_1_1),
    ("echo_llongs", FRAGMENTS_1_1),
    ("echo_ullongs", FRAGMENTS_1_1),
    ("echo_doubles", FRAGMENTS_1_1),
    ("echo_bins", FRAGMENTS_1_1),
    ("big/bins", FRAGMENTS_1_1),
];

/// Cases that are left out under GIOP 1.2, each with the reason.
const SKIPPED_1_2: [(&str, &str); 1] =
    [("wide/echo_wchar/beyond_the_bmp", "a wchar of omniORB 4.2 is one UTF-16 unit")];

fn client(version: Version) -> Orb {
    let orb = Orb::builder().giop_version(version).endpoint("iiop://127.0.0.1:0").expect("an address");
    orb.build().expect("the machine has a port")
}

#[track_caller]
fn check(version: Version, by_key: bool, skips: &[(&str, &str)]) {
    let (server, ior) = start_server(&["--key", "suite", "-ORBendPoint", "giop:tcp:127.0.0.1:"]);
    let orb = client(version);
    let mut suite: SuiteRef = orb.resolve(&ior).expect("it is a suite");
    if by_key {
        let profile = suite.object().ior().iiop_profiles().next().expect("it has a profile");
        let address = profile.addresses().next().expect("it has an address");
        let url = format!("corbaloc:iiop:1.{}@{}:{}/suite", version.minor(), address.host, address.port);
        suite = orb.resolve(&url).expect("it is a suite");
    }
    assert_eq!(suite.orb_name().expect("it answers"), "omniORB");
    let target = Target { orb, suite, version, code_sets: !by_key };
    let report = cases::run(&target, skips);
    assert!(report.failed.is_empty(), "{:#?}\n{}", report.failed, server.errors());
    assert!(report.passed.len() > 130, "{report:#?}");
    assert!(server.terminate().status.success());
}

#[test]
fn all_cases_pass_in_giop_1_2() {
    check(Version::V1_2, false, &SKIPPED_1_2);
}

#[test]
fn all_cases_pass_in_giop_1_2_by_key() {
    check(Version::V1_2, true, &[("wide", "a corbaloc offers no code sets")]);
}

#[test]
fn all_cases_pass_in_giop_1_1() {
    check(Version::V1_1, false, &SKIPPED_1_1);
}

#[test]
fn all_cases_pass_in_giop_1_0() {
    check(Version::V1_0, false, &[]);
}

#[test]
fn all_cases_pass_in_giop_1_0_by_key() {
    check(Version::V1_0, true, &[]);
}

#[test]
fn requests_in_fragments_are_understood() {
    let (_server, ior) = start_server(&["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").expect("an address").fragment_bytes(1000);
    let orb = builder.build().expect("the machine has a port");
    let suite: SuiteRef = orb.resolve(&ior).expect("it is a suite");
    let target = Target { orb, suite, version: Version::V1_2, code_sets: true };
    let report = cases::run(&target, &SKIPPED_1_2);
    assert!(report.failed.is_empty(), "{:#?}", report.failed);
}

#[test]
fn a_reference_outlives_its_server() {
    let (server, ior) = start_server(&["--poa", "persistent", "-ORBendPoint", "giop:tcp:127.0.0.1:"]);
    let orb = client(Version::V1_2);
    let suite: SuiteRef = orb.resolve(&ior).expect("it is a suite");
    suite.nothing().expect("it answers");
    let profile = suite.object().ior().iiop_profiles().next().expect("it has a profile");
    let endpoint = format!("giop:tcp:{}", profile.addresses().next().expect("it has an address"));
    server.kill();

    // The first call may find the end of the connection; then there is nobody to connect to.
    let mut last = None;
    wait_until("the calls go on succeeding", || {
        last = suite.nothing().err();
        last.as_ref().is_some_and(|e| e.kind == SystemExceptionKind::Transient)
    });
    assert!(last.expect("the call failed").to_string().contains("is the server running"));

    let (_server, again) = start_server(&["--poa", "persistent", "-ORBendPoint", &endpoint]);
    assert_eq!(again, ior);
    suite.nothing().expect("it answers again");
    assert_eq!(suite.echo_long(1, 2).expect("it answers"), (1, 1, 2));
}

#[test]
fn an_orderly_shutdown_is_answered() {
    use ironorb_interop::interop::Control;
    let (server, ior) = start_server(&["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
    let orb = client(Version::V1_2);
    let suite: SuiteRef = orb.resolve(&ior).expect("it is a suite");
    suite.shutdown().expect("the call is answered before the end");
    let finished = server.finish();
    assert!(finished.status.success(), "{}", finished.errors);
    let e = suite.nothing().expect_err("nobody is there");
    assert!(matches!(e.kind, SystemExceptionKind::Transient | SystemExceptionKind::CommFailure), "{e}");
}
