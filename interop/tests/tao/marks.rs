//! How packets are marked for routers (TAO's Diffserv): the test looks at the packets themselves.

use std::collections::BTreeSet;

use ironorb::rt::{ClientPolicies, CodePoint, NetworkPriority, set_thread_policies};
use ironorb::{Orb, PoaPolicies};
use ironorb_interop::interop_rt::{Witness as _, WitnessRef};
use ironorb_interop::packets::{Packet, Packets};
use ironorb_interop::tao::client;

use super::our_client::{client as our_client, profile, reference, start};
use super::our_policies::with;
use super::their_client::{PROPAGATED, at_any_port, built, serve, serve_as};
use super::{priority, real_time};

fn of(code_points: &[u8]) -> BTreeSet<u8> {
    code_points.iter().copied().collect()
}

/// The code points of the packets that have gone to a port since the last look, and of those from it.
fn code_points(packets: &Packets, port: u16) -> [BTreeSet<u8>; 2] {
    let seen = packets.take().expect("the system shows packets");
    let marks = |is_one: fn(&Packet, u16) -> bool| {
        seen.iter().filter(|packet| is_one(packet, port)).map(|packet| packet.code_point).collect()
    };
    [marks(|packet, port| packet.to == port), marks(|packet, port| packet.from == port)]
}

fn port(reference: &str) -> u16 {
    profile(reference, ironorb::giop::ior::IiopProfile::port)
}

/// What TAO and IronORB make of these priorities. Both spread them evenly over 21 code points, TAO with the class selectors
/// before the others.
const MARKED: [(i16, u8, u8); 3] = [(0, 0, 0), (16_384, 14, 26), (32_767, 46, 56)];

#[test]
#[ignore = "needs TAO_TREE"]
fn our_requests_to_tao_and_its_replies_are_marked() {
    let packets = Packets::watch().expect("the test runs as root");
    let server = start(&[
        "--serve",
        "name=plain,model=propagated,pool=default",
        "--serve",
        "name=marked,model=propagated,pool=default,marks=yes",
    ]);
    let port = port(server.printed("plain"));
    let orb = our_client();
    let current = orb.rt_current().expect("the ORB is a real-time ORB");
    let seen = |object: &WitnessRef| {
        code_points(&packets, port);
        object.served_by().expect("the server answers");
        code_points(&packets, port)
    };
    let by = |network_priority| ClientPolicies {
        network_priority: Some(network_priority),
        ..ClientPolicies::NONE
    };
    let expedited = by(NetworkPriority::Fixed(CodePoint::new(46).expect("six bits")));
    let [plain, marked] = ["plain", "marked"].map(|adapter| reference(&orb, &server, adapter));
    let calls = || {
        for (number, of_tao, of_ours) in MARKED {
            current.set_priority(priority(number)).expect("the system grants it");
            set_thread_policies(ClientPolicies::NONE);
            // Of replies only the marked ones: TAO leaves a connection's mark as it is for adapters without.
            assert_eq!(seen(&plain)[0], of(&[0]), "{number}");
            assert_eq!(seen(&marked), [of(&[0]), of(&[of_tao])], "{number}");
            // By the object, the thread and the ORB.
            let object = with(&plain, expedited);
            assert_eq!(seen(&object)[0], of(&[46]), "{number}");
            set_thread_policies(by(NetworkPriority::Mapped));
            assert_eq!(seen(&plain)[0], of(&[of_ours]), "{number}");
            set_thread_policies(ClientPolicies::NONE);
            orb.set_client_policies(expedited);
            assert_eq!(seen(&marked), [of(&[46]), of(&[of_tao])], "{number}");
            orb.set_client_policies(ClientPolicies::NONE);
        }
    };
    std::thread::scope(|scope| scope.spawn(calls).join()).expect("no call fails");
}

fn marking() -> PoaPolicies {
    PoaPolicies {
        priority_model: Some(PROPAGATED),
        network_priority: Some(NetworkPriority::Mapped),
        ..PoaPolicies::default()
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn requests_of_tao_and_our_replies_are_marked() {
    let packets = Packets::watch().expect("the test runs as root");
    let orb: Orb = built(at_any_port(real_time()));
    let plain = serve(&orb, "plain", Some(PROPAGATED));
    let marked = serve_as(&orb, "marked", marking());
    let port = port(&plain.reference);
    let seen = |reference: &str, number: i16, marks: &[&str]| {
        code_points(&packets, port);
        let number = number.to_string();
        let lines = client(&[&["use", reference, "priority", &number], marks, &["where"]].concat());
        assert!(lines.len() == 1 && lines[0].starts_with("where "), "{lines:?}");
        code_points(&packets, port)
    };
    for (number, of_tao, of_ours) in MARKED {
        assert_eq!(seen(&plain.reference, number, &[]), [of(&[0]), of(&[0])], "{number}");
        for level in ["orb", "thread", "object"] {
            let marks = ["marks", level];
            let plain = seen(&plain.reference, number, &marks);
            assert_eq!(plain, [of(&[of_tao]), of(&[0])], "{level} {number}");
            let marked = seen(&marked.reference, number, &marks);
            assert_eq!(marked, [of(&[of_tao]), of(&[of_ours])], "{level} {number}");
        }
    }
}
