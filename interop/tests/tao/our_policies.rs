//! IronORB's client chooses connections to TAO's server by policies: bands, private connections, protocols.

use ironorb::giop::real_time::{self, RealTimePolicies, TcpProtocolProperties};
use ironorb::rt::{ClientPolicies, NotBound, PriorityBand, PriorityBands, Protocol, Protocols, RtPolicyType};
use ironorb::{Orb, SystemExceptionKind, Transport, TypedRef};
use ironorb_interop::interop_rt::{Witness as _, WitnessRef};

use super::our_client::{all_meet, client, places, priorities, profile, reference, start, with_native};
use super::{PRIORITIES, priority};

/// Lanes, and adapters with and without bands and protocols of their own.
const SERVER: [&str; 10] = [
    "--lanes",
    "1000+16384+30000",
    "--serve",
    "name=lanes,model=propagated,pool=lanes",
    "--serve",
    "name=bands,model=propagated,pool=lanes,bands=0-5000+5001-20000+20001-31000",
    "--serve",
    "name=default,model=propagated,pool=default",
    "--serve",
    "name=protocol,model=propagated,pool=default,protocols=0",
];

fn bands(ends: &[(i16, i16)]) -> ClientPolicies {
    let bands: Vec<_> = ends.iter().map(|&(low, high)| PriorityBand { low, high }).collect();
    ClientPolicies { bands: PriorityBands::new(&bands), ..ClientPolicies::NONE }
}

fn three_bands() -> ClientPolicies {
    bands(&[(0, 5_000), (5_001, 20_000), (20_001, 31_000)])
}

pub(super) fn protocols(transports: &[Transport]) -> Option<Protocols> {
    Protocols::new(&transports.iter().map(|transport| (*transport).into()).collect::<Vec<Protocol>>())
}

fn by(transports: &[Transport]) -> ClientPolicies {
    ClientPolicies { protocols: protocols(transports), ..ClientPolicies::NONE }
}

pub(super) fn with(object: &WitnessRef, policies: ClientPolicies) -> WitnessRef {
    object.object().with_client_policies(policies).narrow_unchecked()
}

/// What a call from a thread with a priority fails with.
fn failure(client: &Orb, object: &WitnessRef, number: i16) -> SystemExceptionKind {
    at(client, number, || object.served_by().expect_err("the policies do not fit").kind)
}

/// Runs on a thread with a priority.
pub(super) fn at<T: Send>(client: &Orb, number: i16, run: impl FnOnce() -> T + Send) -> T {
    let current = client.rt_current().expect("the ORB is a real-time ORB");
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            current.set_priority(priority(number)).expect("the system grants it");
            run()
        });
        thread.join().expect("nothing fails")
    })
}

/// The connections that an ORB has made.
pub(super) fn made(client: &Orb) -> u64 {
    client.status().total_where("connections_opened_total", "direction", "out")
}

fn refused(object: &WitnessRef) -> Vec<RtPolicyType> {
    match object.object().validate_connection() {
        Err(NotBound::Inconsistent(inconsistent)) => inconsistent.policies.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn bands_of_either_side_choose_tao_s_lanes() {
    let server = start(&SERVER);
    let client = client();
    let lanes = with(&reference(&client, &server, "lanes"), three_bands());
    for object in [lanes.clone(), reference(&client, &server, "bands")] {
        let places = places(&client, &object, &[10, 5_000, 5_001, 20_001, 31_000]);
        assert_eq!(priorities(&places), with_native(&[1_000, 1_000, 16_384, 30_000, 30_000]));
        assert_eq!(failure(&client, &object, 31_001), SystemExceptionKind::InvPolicy);
    }
    // Bands of both sides, and a band without a lane of TAO's.
    let both = with(&reference(&client, &server, "bands"), three_bands());
    let without_lane = with(&lanes, bands(&[(0, 500)]));
    for object in [both, without_lane] {
        assert_eq!(failure(&client, &object, 10), SystemExceptionKind::InvPolicy);
        assert_eq!(at(&client, 10, || refused(&object)), [RtPolicyType::PriorityBandedConnection]);
    }
}

/// TAO passes over the context that tells a connection's band.
#[test]
#[ignore = "needs TAO_TREE"]
fn bands_have_connections_of_their_own_to_a_server_of_tao_without_lanes() {
    let server = start(&SERVER);
    let client = client();
    let object = with(&reference(&client, &server, "default"), three_bands());
    let numbers = [10, 5_000, 16_384, 30_000, 11, 20_000];
    assert_eq!(priorities(&places(&client, &object, &numbers)), with_native(&numbers));
    assert_eq!(made(&client), 3);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn we_bind_before_we_call_tao_and_call_over_the_same_connection() {
    let server = start(&SERVER);
    let client = client();
    // A band shares its connection with no other, nor with calls that have none.
    for (adapter, connections) in [("lanes", 1), ("bands", 2), ("default", 3)] {
        let object = reference(&client, &server, adapter);
        at(&client, 1_000, || {
            assert_eq!(object.object().validate_connection(), Ok(true), "{adapter}");
            assert_eq!(made(&client), connections, "{adapter}");
            object.served_by().expect("the server answers");
            assert_eq!(made(&client), connections, "{adapter}");
        });
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_held_lane_of_tao_does_not_hold_up_our_calls_to_another() {
    for policies in [ClientPolicies::NONE, bands(&[(0, 5_000), (5_001, 32_767)])] {
        let server = start(&SERVER);
        let client = client();
        let object = with(&reference(&client, &server, "lanes"), policies);
        // The low lane's only thread is inside until the high lane's has come.
        all_meet(&client, &object, &[1_000, 30_000]);
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn private_connections_to_tao_are_our_references_own() {
    let server = start(&SERVER);
    let client = client();
    let both = ["default", "protocol"].map(|adapter| reference(&client, &server, adapter));
    let call = |objects: &[WitnessRef; 2]| {
        for object in objects.iter().chain(objects) {
            object.served_by().expect("the server answers");
        }
    };
    let alone = ClientPolicies { private_connection: Some(true), ..ClientPolicies::NONE };
    let private = both.each_ref().map(|object| with(object, alone));
    call(&private);
    assert_eq!(made(&client), 2);
    call(&private);
    assert_eq!(made(&client), 2);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn protocols_choose_among_tao_s_addresses() {
    let server = start(&SERVER);
    let client = client();
    let object = reference(&client, &server, "default");
    let over_unix = with(&object, by(&[Transport::Unix]));
    assert_eq!(failure(&client, &over_unix, 5), SystemExceptionKind::InvPolicy);
    assert_eq!(at(&client, 5, || refused(&over_unix)), [RtPolicyType::ClientProtocol]);
    let over_second = with(&object, by(&[Transport::Unix, Transport::Tcp]));
    assert_eq!(priorities(&places(&client, &over_second, &PRIORITIES)), with_native(&PRIORITIES));
    // TAO's list is in the reference, and one of both sides is one too many.
    let printed = server.printed("protocol");
    let policies =
        profile(printed, |profile| RealTimePolicies::read(profile.components())).expect("it is read");
    let tcp = TcpProtocolProperties {
        send_buffer_size: 65_536,
        recv_buffer_size: 32_768,
        keep_alive: true,
        dont_route: false,
        no_delay: true,
    };
    let listed = policies.client_protocols.expect("TAO tells its list");
    assert_eq!(listed.protocols, [real_time::Protocol::Iiop(tcp)]);
    let object = reference(&client, &server, "protocol");
    assert_eq!(priorities(&places(&client, &object, &PRIORITIES)), with_native(&PRIORITIES));
    let both = with(&object, by(&[Transport::Tcp]));
    assert_eq!(failure(&client, &both, 5), SystemExceptionKind::InvPolicy);
}
