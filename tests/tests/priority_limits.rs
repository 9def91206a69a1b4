//! How far clients reach with the priorities that they ask for: limits of adapters and of peers.

use std::sync::{Arc, Mutex};

use ironorb::poa::{PoaError, PoaPolicyType};
use ironorb::rt::{PeerNetwork, Priority, PriorityModel, RealTimeConfig};
use ironorb::{LaneConfig, Orb, PoaPolicies, TypedRef};
use ironorb_tests::Hooked;
use ironorb_tests::real_time::{PROPAGATED, priority, real_time, server_of};
use ironorb_tests::testing::{Probe, ProbeRef};

/// Lanes in which a servant has run, and its priorities there.
type Seen = Arc<Mutex<Vec<(String, i16)>>>;

/// A server with lanes of priorities 100 and 200.
fn with_lanes(config: RealTimeConfig) -> Orb {
    let lane = |number: i16| {
        LaneConfig::new(&number.to_string()).endpoint("iiop://127.0.0.1:0").priority(priority(number))
    };
    server_of(config).lane(lane(100)).lane(lane(200)).build().unwrap()
}

/// Activates a servant that notes where it runs, in an adapter with this limit.
fn serve(server: &Orb, name: &str, propagated_priority_max: Option<Priority>, seen: &Seen) -> String {
    let (orb, seen, current) = (server.clone(), seen.clone(), server.rt_current().unwrap());
    let servant = Hooked::new(move || {
        let at = (orb.current_lane().name().to_owned(), current.priority()?.number());
        seen.lock().unwrap().push(at);
        Ok(())
    });
    let policies =
        PoaPolicies { priority_model: Some(PROPAGATED), propagated_priority_max, ..PoaPolicies::default() };
    let root = server.root_poa();
    let poa = root.create_poa(name, Some(root.manager().clone()), policies).unwrap();
    let probe: ProbeRef = poa.activate(servant).unwrap();
    probe.object().to_ior_string()
}

/// Calls at each priority, twice: the second request is recognised by its bytes.
fn call(ior: &str, priorities: &[i16]) {
    let client = Orb::builder().real_time(real_time()).build().unwrap();
    let object: ProbeRef = client.string_to_object(ior).unwrap().narrow_unchecked();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in priorities {
                client.rt_current().unwrap().set_priority(priority(*number)).unwrap();
                (0..70).for_each(|_| object.ping().unwrap());
            }
        });
    });
}

fn taken(seen: &Seen) -> Vec<(String, i16)> {
    let mut taken = std::mem::take(&mut *seen.lock().unwrap());
    taken.dedup();
    taken
}

fn at(lane: &str, number: i16) -> (String, i16) {
    (lane.to_owned(), number)
}

#[test]
fn an_adapter_bounds_what_requests_ask_for() {
    let seen = Seen::default();
    let server = server_of(real_time().propagated_priority_max(priority(500))).build().unwrap();
    let bounded = serve(&server, "bounded", Some(priority(300)), &seen);
    let more = serve(&server, "more", Some(priority(900)), &seen);
    let free = serve(&server, "free", None, &seen);
    for (ior, expected) in [(bounded, [200, 300, 300]), (more, [200, 400, 500]), (free, [200, 400, 500])] {
        call(&ior, &[200, 400, 600]);
        assert_eq!(taken(&seen), {
            let mut expected = expected.map(|number| at("", number)).to_vec();
            expected.dedup();
            expected
        });
    }
    server.shutdown(true).unwrap();
}

#[test]
fn references_list_no_lane_above_their_adapters_limit() {
    let (server, seen) = (with_lanes(real_time()), Seen::default());
    let bounded = serve(&server, "bounded", Some(priority(150)), &seen);
    call(&bounded, &[100, 200]);
    assert_eq!(taken(&seen), [at("100", 100), at("", 150)]);
    assert_eq!(server.misplaced_requests(), 0);
    server.shutdown(true).unwrap();
}

#[test]
fn a_peer_reaches_no_lane_above_its_limit() {
    let peers: PeerNetwork = "127.0.0.0/8".parse().unwrap();
    for (limit, expected) in [
        (99, vec![at("", 99)]),
        (150, vec![at("100", 100), at("", 150)]),
        (200, vec![at("100", 100), at("200", 200)]),
    ] {
        let config = real_time().peer_priority_max(peers, priority(limit));
        let (server, seen) =
            (with_lanes(config.peer_priority_max(PeerNetwork::LOCAL, Priority::MIN)), Seen::default());
        call(&serve(&server, "open", None, &seen), &[100, 200]);
        assert_eq!(taken(&seen), expected);
        let refused = server.status().total("connections_handed_down_total");
        assert_eq!(refused > 0, limit < 200, "{limit}: {refused}");
        assert_eq!(server.misplaced_requests(), 0);
        server.shutdown(true).unwrap();
    }
}

#[test]
fn limits_of_peers_are_settings_and_what_names_no_peers_is_refused() {
    let build = |value: &str| {
        let mut options =
            ["-ORBscheduling", "other", "-ORBpeerPriorityMax", value].map(str::to_owned).to_vec();
        Orb::builder().no_endpoint().arguments(&mut options).build()
    };
    for value in ["local:5", "10.0.0.0/8:1000", "::1/128:7"] {
        build(value).unwrap();
    }
    for (value, why) in
        [("10.0.0.0/33:5", "10.0.0.0/8"), ("10.0.0.0", "PEERS:NUMBER"), ("local:-1", "0 to 32767")]
    {
        let said = build(value).map(drop).unwrap_err().to_string();
        assert!(said.contains(why) && said.contains("peerPriorityMax"), "{value}: {said}");
    }
}

#[test]
fn a_limit_of_what_is_not_propagated_is_refused() {
    let policies = PoaPolicies { propagated_priority_max: Some(Priority::MAX), ..PoaPolicies::default() };
    let declared = Some(PriorityModel::ServerDeclared(Priority::MIN));
    for policies in [policies, PoaPolicies { priority_model: declared, ..policies }] {
        let refused = policies.check().unwrap_err();
        let PoaError::InvalidPolicy { policy: PoaPolicyType::PropagatedPriorityMax, .. } = refused else {
            panic!("{refused:?}");
        };
    }
}
