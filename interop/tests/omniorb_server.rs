//! IronORB's client with omniORB's server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb::giop::Version;
use ironorb::interceptor::{ClientInterceptor, ClientRequestInfo, Interrupt};
use ironorb::{Orb, SystemExceptionKind, TypedRef};
use ironorb_interop::cases::Target;
use ironorb_interop::interop::{Basics, Suite, SuiteRef};
use ironorb_interop::peer::Peer;
use ironorb_interop::process::{free_port, wait_until};
use ironorb_interop::results::{Side, run_cases};
use ironorb_interop::skips::Circumstances;
use ironorb_trace::{CurrentTrace, TraceContext};

fn client(version: Version) -> Orb {
    let orb = Orb::builder().giop_version(version).endpoint("iiop://127.0.0.1:0").expect("an address");
    orb.build().expect("the machine has a port")
}

#[track_caller]
fn check(version: Version, by_key: bool) {
    let (server, ior) =
        Peer::OmniOrb.start_server(&["--key", "suite", "-ORBendPoint", "giop:tcp:127.0.0.1:"]);
    let orb = client(version);
    let mut suite: SuiteRef = orb.resolve(&ior).expect("the reference is a suite");
    if by_key {
        let profile = suite.object().ior().iiop_profiles().next().expect("the reference has a profile");
        let address = profile.addresses().next().expect("the reference has an address");
        let url = format!("corbaloc:iiop:1.{}@{}:{}/suite", version.minor(), address.host, address.port);
        suite = orb.resolve(&url).expect("the reference is a suite");
    }
    assert_eq!(suite.orb_name().expect("the server answers"), "omniORB");
    let of = Circumstances { peer: Some(Peer::OmniOrb), side: Side::Client, version, code_sets: !by_key };
    let setup = format!("GIOP 1.{}{}", version.minor(), if by_key { ", corbaloc" } else { "" });
    run_cases(&of, &setup, &Target { orb, suite, version, code_sets: !by_key });
    assert!(server.terminate().status.success());
}

#[test]
fn all_cases_pass_in_giop_1_2() {
    check(Version::V1_2, false);
}

#[test]
fn all_cases_pass_in_giop_1_2_by_key() {
    check(Version::V1_2, true);
}

#[test]
fn all_cases_pass_in_giop_1_1() {
    check(Version::V1_1, false);
}

#[test]
fn all_cases_pass_in_giop_1_0() {
    check(Version::V1_0, false);
}

#[test]
fn all_cases_pass_in_giop_1_0_by_key() {
    check(Version::V1_0, true);
}

#[test]
fn requests_in_fragments_are_understood() {
    let (_server, ior) = Peer::OmniOrb.start_server(&["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
    for version in [Version::V1_2, Version::V1_1] {
        let builder =
            Orb::builder().endpoint("iiop://127.0.0.1:0").expect("an address").giop_version(version);
        let builder = builder.fragment_bytes(1000).fragments_in_giop_1_1(true);
        let orb = builder.build().expect("the machine has a port");
        let suite: SuiteRef = orb.resolve(&ior).expect("the reference is a suite");
        let of = Circumstances { peer: Some(Peer::OmniOrb), side: Side::Client, version, code_sets: true };
        let setup = format!("GIOP 1.{}, fragments of 1000 bytes", version.minor());
        run_cases(&of, &setup, &Target { orb, suite, version, code_sets: true });
    }
}

#[test]
fn a_reference_outlives_its_server() {
    let endpoint = format!("giop:tcp:127.0.0.1:{}", free_port());
    let (server, ior) = Peer::OmniOrb.start_server(&["--poa", "persistent", "-ORBendPoint", &endpoint]);
    let orb = client(Version::V1_2);
    let suite: SuiteRef = orb.resolve(&ior).expect("the reference is a suite");
    suite.nothing().expect("the server answers");
    server.kill();

    // The first call may find the connection closed. After it, no process listens.
    let mut last = None;
    wait_until("the calls go on succeeding", || {
        last = suite.nothing().err();
        last.as_ref().is_some_and(|e| e.kind == SystemExceptionKind::Transient)
    });
    assert!(last.expect("the call failed").to_string().contains("is the server running"));

    let (_server, again) = Peer::OmniOrb.start_server(&["--poa", "persistent", "-ORBendPoint", &endpoint]);
    assert_eq!(again, ior);
    suite.nothing().expect("the restarted server answers");
    assert_eq!(suite.echo_long(1, 2).expect("the server answers"), (1, 1, 2));
}

#[test]
fn an_orderly_shutdown_is_answered() {
    use ironorb_interop::interop::Control;
    let (server, ior) = Peer::OmniOrb.start_server(&["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
    let orb = client(Version::V1_2);
    let suite: SuiteRef = orb.resolve(&ior).expect("the reference is a suite");
    suite.shutdown().expect("the call is answered before the end");
    let finished = server.finish();
    assert!(finished.status.success(), "{}", finished.errors);
    let e = suite.nothing().expect_err("nobody is there");
    assert!(matches!(e.kind, SystemExceptionKind::Transient | SystemExceptionKind::CommFailure), "{e}");
}

#[test]
fn trace_contexts_are_ignored() {
    let (_server, ior) = Peer::OmniOrb.start_server(&["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
    let state = "rojo=00f067aa0ba902b7,congo=t61".parse().expect("it keeps to the grammar");
    let _guard = CurrentTrace::enter(TraceContext::begin(true).with_state(state));
    for version in [Version::V1_2, Version::V1_1, Version::V1_0] {
        let orb = ironorb_trace::install(Orb::builder().giop_version(version));
        let orb = orb.build().expect("an ORB without endpoint can be built");
        let suite: SuiteRef = orb.resolve(&ior).expect("the reference is a suite");
        suite.nothing().expect("the server answers");
        assert_eq!(suite.echo_long(1, 2).expect("the server answers"), (1, 1, 2));
    }
}

/// Adds a service context of this many octets to each request.
struct ContextOf(Arc<AtomicUsize>);

impl ClientInterceptor for ContextOf {
    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        let length = self.0.load(Ordering::Relaxed);
        request.add_request_service_context(0x494F_0042, &vec![7; length], false);
        Ok(())
    }
}

/// omniORB answers a request without arguments with MessageError if octets follow its last service context.
#[test]
fn requests_without_arguments_end_with_their_contexts() {
    let (_server, ior) = Peer::OmniOrb.start_server(&["-ORBendPoint", "giop:tcp:127.0.0.1:"]);
    for version in [Version::V1_2, Version::V1_1, Version::V1_0] {
        let length = Arc::new(AtomicUsize::new(0));
        let orb = Orb::builder().giop_version(version).client_interceptor(ContextOf(length.clone()));
        let orb = orb.build().expect("an ORB without endpoint can be built");
        let suite: SuiteRef = orb.resolve(&ior).expect("the reference is a suite");
        for octets in (0..17).chain([100, 1001]) {
            length.store(octets, Ordering::Relaxed);
            suite.nothing().unwrap_or_else(|e| panic!("{version:?}, a context of {octets} octets: {e}"));
            assert_eq!(suite.echo_long(1, 2).expect("the server answers"), (1, 1, 2));
        }
    }
}
