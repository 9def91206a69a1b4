//! Unix sockets beside TCP (TAO's UIOP): which of an object's profiles and addresses calls take, by the protocols of either side,
//! bands, lanes, priorities and private connections (TAO's Client_Protocol, MT_Client_Protocol_Priority and
//! Profile_And_Endpoint_Selection).

use std::collections::BTreeSet;

use ironorb::giop::ior::{IiopProfile, Ior};
use ironorb::rt::{ClientPolicies, PriorityBand, PriorityBands, set_thread_policies};
use ironorb::{LaneConfig, Orb, PoaPolicies, Transport, TypedRef as _};
use ironorb_interop::interop_rt::Witness as _;
use ironorb_interop::packets::Packets;
use ironorb_interop::tao::{ANY_PORT_AND_SOCKET, Server, UIOP, UNIX_SOCKETS, client};

use super::our_client::{client as our_client, places, priorities, reference, with_native};
use super::our_policies::{at, made, protocols, with};
use super::their_client::{
    PROPAGATED, Served, accepted, at_any_port, built, lane_name, names, serve, serve_as, told,
    without_thread, words,
};
use super::{LANES, PRIORITIES, priority, real_time};

const BANDS: [(i16, i16); 3] = [(0, 5_000), (5_001, 20_000), (20_001, 32_767)];

fn bands() -> PriorityBands {
    PriorityBands::new(&BANDS.map(|(low, high)| PriorityBand { low, high })).expect("there are few")
}

/// The ports at which a reference says that its server listens: that for all, and those of its lanes.
fn ports(reference: &str) -> Vec<u16> {
    let ior: Ior = reference.parse().expect("a reference");
    let listed = |profile: &IiopProfile| {
        let endpoints = profile.components().find_map(|component| component.tao_endpoints()?.ok());
        endpoints.unwrap_or_default().into_iter().map(|endpoint| endpoint.port).collect::<Vec<_>>()
    };
    let of_iiop = |profile: &&IiopProfile| profile.uiop_path().is_none();
    let all = ior.iiop_profiles().filter(of_iiop).flat_map(|it| [vec![it.port()], listed(it)].concat());
    all.collect()
}

/// How calls went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Tcp,
    UnixSocket,
}

/// The ports of a server to which calls go that this makes.
fn ports_used(packets: &Packets, reference: &str, calls: impl FnOnce()) -> BTreeSet<u16> {
    let _earlier = packets.take().expect("the system shows packets");
    calls();
    let seen = packets.take().expect("the system shows packets");
    let all = ports(reference);
    seen.iter().map(|packet| packet.to).filter(|port| all.contains(port)).collect()
}

/// How calls go that this makes to the object with a reference.
fn way(packets: &Packets, reference: &str, calls: impl FnOnce()) -> By {
    match ports_used(packets, reference, calls).is_empty() {
        true => By::UnixSocket,
        false => By::Tcp,
    }
}

fn start(arguments: &[&str]) -> Server {
    Server::start(&[&UNIX_SOCKETS[..], &ANY_PORT_AND_SOCKET, arguments].concat())
}

const SERVER: [&str; 14] = [
    "--lanes",
    "1000+16384+30000",
    "--serve",
    "name=plain,model=propagated,pool=default",
    "--serve",
    "name=bands,model=propagated,pool=default,bands=0-5000+5001-20000+20001-32767",
    "--serve",
    "name=lanes,model=propagated,pool=lanes",
    "--serve",
    "name=lanes-bands,model=propagated,pool=lanes,bands=0-5000+5001-20000+20001-32767",
    "--serve",
    "name=unix,model=propagated,pool=lanes,protocols=0x54414f00+0",
    "--serve",
    "name=tcp,model=propagated,pool=lanes,protocols=0+0x54414f00",
];

const TCP: Transport = Transport::Tcp;
const UNIX: Transport = Transport::Unix;

/// Lists of protocols, as the two ORBs name them, and how calls go then.
const LISTS: [(&[Transport], &str, By); 5] = [
    (&[], "", By::Tcp),
    (&[TCP], "0", By::Tcp),
    (&[UNIX], UIOP, By::UnixSocket),
    (&[TCP, UNIX], "0+0x54414f00", By::Tcp),
    (&[UNIX, TCP], "0x54414f00+0", By::UnixSocket),
];

/// Adapters of the server, whether the client has bands, and whether it calls at several priorities.
const ROWS: [(&str, bool, bool); 6] = [
    ("plain", false, false),
    ("plain", false, true),
    ("plain", true, true),
    ("bands", false, true),
    ("lanes", true, true),
    ("lanes-bands", false, true),
];

/// The priorities at which a client calls in a row, each with that at which it is served.
fn asked_and_served(adapter: &str, is_multiple: bool) -> (Vec<i16>, Vec<i16>) {
    match (adapter.starts_with("lanes"), is_multiple) {
        (_, false) => (vec![1_000], vec![1_000]),
        (false, true) => (PRIORITIES.to_vec(), PRIORITIES.to_vec()),
        (true, true) => (vec![10, 5_000, 5_001, 20_001, 31_000], vec![1_000, 1_000, 16_384, 30_000, 30_000]),
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn our_calls_take_the_profile_and_the_address_of_tao_that_policies_choose() {
    let packets = Packets::watch().expect("the test runs as root");
    let server = start(&SERVER);
    for (adapter, has_bands, is_multiple) in ROWS {
        let (asked, served) = asked_and_served(adapter, is_multiple);
        let printed = server.printed(adapter);
        for ((list, _, expected), is_private) in LISTS.iter().flat_map(|list| [(list, false), (list, true)]) {
            let client = our_client();
            let policies = ClientPolicies {
                bands: has_bands.then(bands),
                protocols: protocols(list).filter(|list| !list.is_empty()),
                private_connection: is_private.then_some(true),
                ..ClientPolicies::NONE
            };
            let object = reference(&client, &server, adapter);
            let object = with(&object, policies);
            let row = format!("{adapter}, bands {has_bands}, {list:?}, private {is_private}");
            let way = way(&packets, printed, || {
                assert_eq!(priorities(&places(&client, &object, &asked)), with_native(&served), "{row}");
            });
            assert_eq!(way, *expected, "{row}");
            // A connection for each band or lane, else one.
            let is_divided = has_bands || adapter != "plain";
            assert_eq!(made(&client), if is_divided { 3 } else { 1 }, "{row}");
        }
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn protocols_in_references_of_tao_choose_its_unix_sockets() {
    let packets = Packets::watch().expect("the test runs as root");
    let server = start(&SERVER);
    let client = our_client();
    for (adapter, expected) in [("unix", By::UnixSocket), ("tcp", By::Tcp), ("lanes", By::Tcp)] {
        let object = reference(&client, &server, adapter);
        let way = way(&packets, server.printed(adapter), || {
            assert_eq!(priorities(&places(&client, &object, &LANES)), with_native(&LANES), "{adapter}");
        });
        assert_eq!(way, expected, "{adapter}");
    }
}

/// TAO's Server_Protocol.
#[test]
#[ignore = "needs TAO_TREE"]
fn the_protocols_of_an_adapter_of_tao_are_where_we_reach_its_objects() {
    let packets = Packets::watch().expect("the test runs as root");
    let server = start(&[
        "--serve",
        "name=tcp,model=propagated,pool=default,at=0",
        "--serve",
        "name=unix,model=propagated,pool=default,at=0x54414f00",
        "--serve",
        "name=missing,model=propagated,pool=default,at=0x54414f02",
    ]);
    assert_eq!(server.printed("missing"), "IDL:omg.org/PortableServer/POA/InvalidPolicy:2.3");
    let client = our_client();
    for (adapter, expected) in [("tcp", By::Tcp), ("unix", By::UnixSocket)] {
        let object = reference(&client, &server, adapter);
        assert_eq!(object.object().ior().iiop_profiles().count(), 1, "{adapter}");
        let way = way(&packets, server.printed("tcp"), || {
            assert_eq!(
                priorities(&places(&client, &object, &PRIORITIES)),
                with_native(&PRIORITIES),
                "{adapter}"
            );
        });
        assert_eq!(way, expected, "{adapter}");
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn the_protocols_of_an_adapter_of_ours_are_where_tao_reaches_its_objects() {
    let packets = Packets::watch().expect("the test runs as root");
    let orb = server(false);
    let all = serve(&orb, "all", Some(PROPAGATED));
    for (name, transport, expected) in [("tcp", TCP, By::Tcp), ("unix", UNIX, By::UnixSocket)] {
        let policies = PoaPolicies { server_protocols: protocols(&[transport]), ..PoaPolicies::default() };
        let served = served_by(&orb, name, policies);
        let way = way(&packets, &all.reference, || {
            let lines = client_with_unix_sockets(&["use", &served.reference, "priority", "1000", "where"]);
            assert_eq!(lines, told(&[1_000]), "{name}");
        });
        assert_eq!(way, expected, "{name}");
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn each_thread_of_ours_keeps_its_protocol_and_its_priority() {
    let packets = Packets::watch().expect("the test runs as root");
    let server = start(&SERVER);
    let client = our_client();
    for adapter in ["plain", "lanes"] {
        let object = reference(&client, &server, adapter);
        let calls = |number, transport| {
            at(&client, number, || {
                set_thread_policies(ClientPolicies {
                    protocols: protocols(&[transport]),
                    ..ClientPolicies::NONE
                });
                (0..200).all(|_| object.served_by().is_ok_and(|place| place.priority == number))
            })
        };
        let used = ports_used(&packets, server.printed(adapter), || {
            std::thread::scope(|scope| {
                let threads = [(1_000, UNIX), (30_000, TCP), (16_384, UNIX)]
                    .map(|(number, transport)| scope.spawn(move || calls(number, transport)));
                assert_eq!(threads.map(|thread| thread.join().expect("no call fails")), [true; 3]);
            });
        });
        assert_eq!(used, [*ports(server.printed(adapter)).last().expect("it has ports")].into());
    }
}

/// IronORB's server at TCP and Unix sockets, perhaps with lanes.
fn server(has_lanes: bool) -> Orb {
    let mut builder = at_any_port(real_time()).endpoint("uiop://").expect("an address").uiop_profiles(true);
    if has_lanes {
        for number in LANES {
            let lane = LaneConfig::new(&lane_name(number)).priority(priority(number));
            builder = builder.lane(lane.endpoint("iiop://127.0.0.1:0").endpoint("uiop://"));
        }
    }
    built(builder)
}

fn served_by(orb: &Orb, name: &str, policies: PoaPolicies) -> Served {
    serve_as(orb, name, PoaPolicies { priority_model: Some(PROPAGATED), ..policies })
}

fn client_with_unix_sockets(commands: &[&str]) -> Vec<String> {
    let lines = client(&[&UNIX_SOCKETS[..], commands].concat());
    lines.iter().map(|line| without_thread(line)).collect()
}

#[test]
#[ignore = "needs TAO_TREE"]
fn calls_of_tao_take_the_profile_and_the_address_of_ours_that_policies_choose() {
    let packets = Packets::watch().expect("the test runs as root");
    let text = BANDS.map(|(low, high)| format!("{low}-{high}")).join("+");
    for (adapter, has_bands, is_multiple) in ROWS {
        let (asked, expected_at) = asked_and_served(adapter, is_multiple);
        let has_lanes = adapter.starts_with("lanes");
        let orb = server(has_lanes);
        let ours = adapter.ends_with("bands").then(bands);
        let served = served_by(&orb, adapter, PoaPolicies { priority_bands: ours, ..PoaPolicies::default() });
        let numbers = words(&asked);
        for ((_, list, expected), is_private) in LISTS.iter().flat_map(|list| [(list, false), (list, true)]) {
            let mut commands = vec!["use", &served.reference];
            if has_bands {
                commands.extend(["bands", &text]);
            }
            if !list.is_empty() {
                commands.extend(["protocols", list]);
            }
            if is_private {
                commands.push("private");
            }
            commands.extend(numbers.iter().flat_map(|number| ["priority", number, "where"]));
            let row = format!("{adapter}, bands {has_bands}, {list:?}, private {is_private}");
            let before = accepted(&orb);
            let way = way(&packets, &served.reference, || {
                assert_eq!(client_with_unix_sockets(&commands), told(&expected_at), "{row}");
            });
            assert_eq!(way, *expected, "{row}");
            let is_divided = has_bands || adapter != "plain";
            assert_eq!(accepted(&orb) - before, if is_divided { 3 } else { 1 }, "{row}");
            let lanes = if has_lanes { names(&expected_at) } else { vec![String::new(); asked.len()] };
            assert_eq!(served.servant.take_lanes(), lanes, "{row}");
        }
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn protocols_in_our_references_choose_our_unix_sockets() {
    let packets = Packets::watch().expect("the test runs as root");
    let orb = server(true);
    for (name, list, expected) in [("unix", [UNIX, TCP], By::UnixSocket), ("tcp", [TCP, UNIX], By::Tcp)] {
        let policies = PoaPolicies { client_protocols: protocols(&list), ..PoaPolicies::default() };
        let served = served_by(&orb, name, policies);
        let numbers = words(&LANES);
        let ask = numbers.iter().flat_map(|number| ["priority", number, "where"]);
        let commands: Vec<&str> = ["use", &served.reference].into_iter().chain(ask).collect();
        let way = way(&packets, &served.reference, || {
            assert_eq!(client_with_unix_sockets(&commands), told(&LANES), "{name}");
        });
        assert_eq!((way, served.servant.take_lanes()), (expected, names(&LANES)), "{name}");
    }
    // TAO's client without Unix sockets passes over the profile.
    let served = serve(&orb, "both", Some(PROPAGATED));
    let lines = client(&["use", &served.reference, "priority", "1000", "where"]);
    assert_eq!(lines.iter().map(|line| without_thread(line)).collect::<Vec<_>>(), told(&[1_000]));
}

#[test]
#[ignore = "needs TAO_TREE"]
fn each_thread_of_tao_keeps_its_protocol_and_its_priority() {
    let packets = Packets::watch().expect("the test runs as root");
    for has_lanes in [false, true] {
        let orb = server(has_lanes);
        let served = serve(&orb, "many", Some(PROPAGATED));
        let threads = format!("1000@{UIOP}+30000@0+16384@{UIOP}");
        let used = ports_used(&packets, &served.reference, || {
            assert_eq!(
                client_with_unix_sockets(&["use", &served.reference, "threads", &threads]),
                ["threads 0"]
            );
        });
        assert_eq!(used, [*ports(&served.reference).last().expect("it has ports")].into());
        assert_eq!((served.servant.take_lanes().len(), orb.misplaced_requests()), (600, 0));
    }
}
