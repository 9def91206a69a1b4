//! TAO's client with IronORB's server.

use std::sync::Arc;

use ironorb::poa::IdAssignment;
use ironorb::rt::{PriorityModel, RealTimeConfig, SchedulingPolicy};
use ironorb::{LaneConfig, Orb, OrbBuilder, PoaPolicies, ServerConcurrency};
use ironorb_interop::interop_rt::WitnessRef;
use ironorb_interop::process::{free_port, wait_until};
use ironorb_interop::tao::{client, client_in, lines_of, plain_client, start_client};
use ironorb_interop::witness::WitnessServant;

use super::{LANES, MAPPING, PRIORITIES, native, priority, real_time};

pub(super) const PROPAGATED: PriorityModel = PriorityModel::ClientPropagated { default: priority(7) };

pub(super) fn at_any_port(orb: OrbBuilder) -> OrbBuilder {
    orb.endpoint("iiop://127.0.0.1:0").expect("an address")
}

pub(super) fn built(orb: OrbBuilder) -> Orb {
    orb.build().expect("the system grants real-time priorities")
}

fn lane(number: i16, endpoint: &str) -> LaneConfig {
    LaneConfig::new(&lane_name(number)).endpoint(endpoint).priority(priority(number))
}

pub(super) fn lane_name(number: i16) -> String {
    format!("of {number}")
}

pub(super) fn with_lanes() -> Orb {
    built(
        LANES
            .iter()
            .fold(at_any_port(real_time()), |orb, number| orb.lane(lane(*number, "iiop://127.0.0.1:0"))),
    )
}

/// An object with its servant.
pub(super) struct Served {
    pub(super) servant: Arc<WitnessServant>,
    pub(super) reference: String,
}

pub(super) fn serve(orb: &Orb, name: &str, model: Option<PriorityModel>) -> Served {
    serve_as(orb, name, PoaPolicies { priority_model: model, ..PoaPolicies::default() })
}

pub(super) fn serve_as(orb: &Orb, name: &str, policies: PoaPolicies) -> Served {
    let servant = Arc::new(WitnessServant::new(orb));
    let poa = orb.root_poa().create_poa(name, None, policies).expect("the policies fit");
    let untyped = ironorb::servant::<WitnessRef, _>(servant.clone());
    let id = match policies.id_assignment {
        IdAssignment::User => {
            let id = "witness".into();
            poa.activate_object_with_id(&id, untyped).map(|()| id)
        }
        IdAssignment::System => poa.activate_object(untyped),
    };
    let object = id.and_then(|id| poa.id_to_reference(&id)).expect("the object is new");
    Served { servant, reference: object.to_ior_string() }
}

/// Commands by which TAO's client asks from a thread with each of these priorities.
pub(super) fn asking<'c>(reference: &'c str, before: &[&'c str], numbers: &'c [String]) -> Vec<&'c str> {
    let ask = numbers.iter().flat_map(|number| ["priority", number, "where"]);
    ["use", reference].iter().chain(before).copied().chain(ask).collect()
}

pub(super) fn words(numbers: &[i16]) -> Vec<String> {
    numbers.iter().map(ToString::to_string).collect()
}

/// The lines of TAO's client without the system's numbers of threads.
pub(super) fn asked(commands: &[&str]) -> Vec<String> {
    client(commands).iter().map(|line| without_thread(line)).collect()
}

pub(super) fn without_thread(line: &str) -> String {
    match line.strip_prefix("where ").and_then(|place| place.rsplit_once(' ')) {
        Some((place, _)) => place.to_owned(),
        None => line.to_owned(),
    }
}

/// What the servant tells of threads with these priorities.
pub(super) fn told(numbers: &[i16]) -> Vec<String> {
    numbers.iter().map(|number| format!("{number} {}", native(*number))).collect()
}

pub(super) fn names(numbers: &[i16]) -> Vec<String> {
    numbers.iter().map(|number| lane_name(*number)).collect()
}

#[test]
#[ignore = "needs TAO_TREE"]
fn our_servant_runs_at_the_priority_of_tao_s_thread() {
    for concurrency in [
        ServerConcurrency::LeaderFollowers { threads: 1 },
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::Hybrid { threads_max: 2 },
    ] {
        let orb = built(at_any_port(real_time()).concurrency(concurrency));
        let served = serve(&orb, "propagated", Some(PROPAGATED));
        let lines = asked(&asking(&served.reference, &["model"], &words(&PRIORITIES)));
        assert_eq!(
            lines,
            [vec!["model propagated 7".to_owned()], told(&PRIORITIES)].concat(),
            "{concurrency:?}"
        );
        // The thread has its own priority again.
        let plain = serve(&orb, "none", None);
        assert_eq!(asked(&asking(&plain.reference, &["model", "where"], &[])), ["model none", "-1 0"]);
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_declared_priority_counts_whatever_tao_s_is() {
    let orb = with_lanes();
    for (declared, lane) in [(12_000, ""), (16_384, "of 16384")] {
        let model = PriorityModel::ServerDeclared(priority(declared));
        let served = serve(&orb, &declared.to_string(), Some(model));
        let lines = asked(&asking(&served.reference, &["model"], &words(&PRIORITIES)));
        assert_eq!(lines, [vec![format!("model declared {declared}")], told(&[declared; 6])].concat());
        assert_eq!(served.servant.take_lanes(), [lane; 6]);
    }
    assert_eq!(orb.misplaced_requests(), 0);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn an_object_of_its_own_priority_counts_whatever_the_adapter_declares() {
    let orb = with_lanes();
    let model = PriorityModel::ServerDeclared(priority(1_000));
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    let poa = orb.root_poa().create_poa("objects", None, policies).expect("the policies fit");
    for number in [16_384, 30_000] {
        let servant = Arc::new(WitnessServant::new(&orb));
        let untyped = ironorb::servant::<WitnessRef, _>(servant.clone());
        let id = poa.activate_object_with_priority(untyped, priority(number)).expect("a lane has it");
        let reference = poa.id_to_reference(&id).expect("the object is active").to_ior_string();
        let lines = asked(&asking(&reference, &["model"], &words(&PRIORITIES)));
        assert_eq!(lines, [vec![format!("model declared {number}")], told(&[number; 6])].concat());
        assert_eq!(servant.take_lanes(), names(&[number; 6]));
    }
    assert_eq!(orb.misplaced_requests(), 0);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_reaches_the_lane_of_its_priority() {
    let orb = with_lanes();
    let served = serve(&orb, "lanes", Some(PROPAGATED));
    let lines = asked(&asking(&served.reference, &[], &words(&[LANES, LANES].concat())));
    assert_eq!(lines, told(&[LANES, LANES].concat()));
    assert_eq!(served.servant.take_lanes(), names(&[LANES, LANES].concat()));
    // TAO finds no address for a priority that has no lane.
    let lines = asked(&asking(&served.reference, &[], &words(&[2_000])));
    assert_eq!(lines, ["TRANSIENT 2"]);
    // Nor for a thread that has set none: it takes what the mapping has for the system's.
    assert_eq!(client(&["use", &served.reference, "where"]), ["TRANSIENT 2"]);
    assert_eq!(orb.misplaced_requests(), 0);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn each_model_is_served_as_it_says_with_and_without_lanes() {
    let declared = PriorityModel::ServerDeclared(priority(30_000));
    let models = [None, Some(PROPAGATED), Some(declared)];
    let places =
        ["-1 0".to_owned(), format!("16384 {}", native(16_384)), format!("30000 {}", native(30_000))];
    let lanes_of = [["", "", ""], ["", "of 16384", "of 30000"]];
    for (orb, lanes) in [built(at_any_port(real_time())), with_lanes()].iter().zip(lanes_of) {
        for ((model, place), lane) in models.iter().zip(&places).zip(lanes) {
            let served = serve(orb, place, *model);
            assert_eq!(asked(&asking(&served.reference, &[], &words(&[16_384]))), [&place[..]], "{model:?}");
            assert_eq!(served.servant.take_lanes(), [lane], "{model:?}");
        }
        assert_eq!(orb.misplaced_requests(), 0);
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn bands_of_tao_choose_our_lanes() {
    let orb = with_lanes();
    let served = serve(&orb, "lanes", Some(PROPAGATED));
    let bands = ["bands", "0-5000+5001-20000+20001-31000"];
    let lines = asked(&asking(&served.reference, &bands, &words(&[10, 5_000, 5_001, 20_001, 31_000])));
    let lanes = [1_000, 1_000, 16_384, 30_000, 30_000];
    assert_eq!((lines, served.servant.take_lanes()), (told(&lanes), names(&lanes)));
    // A thread in none of its bands, and a band without a lane of ours.
    let refused = asked(&asking(&served.reference, &bands, &words(&[31_001])));
    let unmatched = asked(&asking(&served.reference, &["bands", "0-500"], &words(&[10])));
    assert_eq!(
        (&refused[..], &unmatched[..]),
        (&["INV_POLICY 0".to_owned()][..], &["TRANSIENT 2".to_owned()][..])
    );
    assert_eq!(served.servant.take_lanes(), [""; 0]);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_s_mappings_give_each_priority_back() {
    assert_eq!(client(&["maps"]), ["maps 32768"]);
    // A continuous mapping has no more priorities than the system.
    assert_eq!(client_in("SCHED_FIFO", "continuous", &["maps"]), ["maps 99"]);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn priorities_arrive_whatever_class_of_the_system_either_side_has() {
    let classes = [SchedulingPolicy::Fifo, SchedulingPolicy::RoundRobin, SchedulingPolicy::Other];
    for ours in classes {
        let config = RealTimeConfig::new().mapping(MAPPING).scheduling(ours);
        let orb = built(at_any_port(Orb::builder().real_time(config)));
        let served = serve(&orb, "propagated", Some(PROPAGATED));
        let numbers = words(&PRIORITIES);
        for class in ["SCHED_FIFO", "SCHED_RR", "SCHED_OTHER"] {
            let lines = client_in(class, "linear", &asking(&served.reference, &[], &numbers));
            let of_system = |number| if ours == SchedulingPolicy::Other { 0 } else { native(number) };
            let expected = PRIORITIES.map(|number| format!("{number} {}", of_system(number)));
            let lines: Vec<String> = lines.iter().map(|line| without_thread(line)).collect();
            assert_eq!(lines, expected, "{ours:?} {class}");
        }
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_reference_outlives_our_server() {
    let ports: Vec<u16> = std::iter::repeat_with(free_port).take(2).collect();
    let endpoint = |port: u16| format!("iiop://127.0.0.1:{port}");
    let start = || {
        let orb = real_time().endpoint(&endpoint(ports[0])).expect("an address");
        let orb = built(orb.lane(lane(1_000, &endpoint(ports[1]))));
        let served = serve_as(
            &orb,
            "lanes",
            PoaPolicies { priority_model: Some(PROPAGATED), ..PoaPolicies::PERSISTENT },
        );
        (orb, served)
    };
    let (orb, first) = start();
    let ask = || asked(&asking(&first.reference, &[], &words(&[1_000])));
    assert_eq!(ask(), told(&[1_000]));
    orb.shutdown(true).expect("the ORB ends");
    assert_eq!(ask(), ["TRANSIENT 2"]);
    let (_orb, second) = start();
    assert_eq!(second.reference, first.reference);
    assert_eq!(ask(), told(&[1_000]));
    assert_eq!(second.servant.take_lanes(), names(&[1_000]));
}

/// Connections that clients have made to an ORB.
pub(super) fn accepted(orb: &Orb) -> u64 {
    orb.status().total_where("connections_opened_total", "direction", "in")
}

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_binds_before_it_calls_and_calls_over_the_same_connection() {
    let orb = with_lanes();
    let served = serve(&orb, "lanes", Some(PROPAGATED));
    let commands = ["use", &served.reference, "priority", "1000", "validate"];
    assert_eq!(client(&commands), ["validate true"]);
    assert_eq!((accepted(&orb), served.servant.take_lanes()), (1, vec![]));
    let lines = asked(&[&commands[..], &["where", "where"]].concat());
    assert_eq!(lines, [vec!["validate true".to_owned()], told(&[1_000; 2])].concat());
    assert_eq!((accepted(&orb), served.servant.take_lanes()), (2, names(&[1_000; 2])));
    // The reference has no profile of TAO's Unix sockets, and the policy that asks for one (43) does not fit.
    let lines = client(&[&commands[..4], &["protocols", "0x54414f00", "validate", "where"]].concat());
    assert_eq!(lines, ["validate false 43", "INV_POLICY 0"]);
    let lines = asked(&[&commands[..4], &["protocols", "0x54414f00+0", "validate", "where"]].concat());
    assert_eq!(lines, [vec!["validate true".to_owned()], told(&[1_000])].concat());
    assert_eq!(accepted(&orb), 3);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn private_connections_of_tao_are_its_references_own() {
    let orb = built(at_any_port(real_time()));
    let [first, second] = ["first", "second"].map(|name| serve(&orb, name, Some(PROPAGATED)));
    let both = ["use", &first.reference, "where", "use", &second.reference, "where"];
    let run = |before: &[&str]| {
        let made = accepted(&orb);
        let lines = client(&[before, &both, &both].concat());
        assert_eq!(lines.len(), 4, "{lines:?}");
        accepted(&orb) - made
    };
    // One connection for both references, and then one for each; later calls make no other.
    let made = [run(&["priority", "5"]), run(&["priority", "5", "private"])];
    assert_eq!(made, [1, 2]);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn several_clients_of_tao_are_inside_at_once() {
    const CLIENTS: usize = 4;
    for (orb, number) in [(built(at_any_port(real_time())), "5"), (with_lanes(), "1000")] {
        let served = serve(&orb, "meeting", Some(PROPAGATED));
        let commands = ["use", &served.reference, "priority", number, "meet", "4"];
        let clients: Vec<_> = (0..CLIENTS).map(|_| start_client(&commands)).collect();
        for client in clients {
            assert_eq!(lines_of(client), ["meet true"]);
        }
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn threads_of_tao_keep_their_priorities_side_by_side() {
    for orb in [built(at_any_port(real_time())), with_lanes()] {
        let served = serve(&orb, "many", Some(PROPAGATED));
        assert_eq!(client(&["use", &served.reference, "threads", "1000+16384+30000"]), ["threads 0"]);
        assert_eq!((served.servant.take_lanes().len(), orb.misplaced_requests()), (600, 0));
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_held_lane_of_ours_does_not_hold_up_tao_s_calls_to_another() {
    let one_thread = |number| {
        lane(number, "iiop://127.0.0.1:0").concurrency(ServerConcurrency::LeaderFollowers { threads: 1 })
    };
    for bands in [&[][..], &["bands", "0-5000+5001-32767"]] {
        let orb = built(at_any_port(real_time()).lane(one_thread(1_000)).lane(one_thread(30_000)));
        let served = serve(&orb, "lanes", Some(PROPAGATED));
        let meet = |number| {
            start_client(&[&["use", &served.reference], bands, &["priority", number, "meet", "2"]].concat())
        };
        // The low lane's only thread is inside until the high lane's has come.
        let low = meet("1000");
        wait_until("the low lane's thread does not come inside", || served.servant.inside() == 1);
        let high = meet("30000");
        assert_eq!([lines_of(low), lines_of(high)], [["meet true"]; 2]);
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_without_real_time_is_served_at_the_default() {
    let orb = with_lanes();
    for (model, expected) in [
        (None, "-1 0".to_owned()),
        (Some(PROPAGATED), format!("7 {}", native(7))),
        (Some(PriorityModel::ServerDeclared(priority(30_000))), format!("30000 {}", native(30_000))),
    ] {
        let served = serve(&orb, &expected, model);
        let lines = plain_client(&served.reference);
        assert_eq!(without_thread(&lines[0]), expected);
    }
    assert_eq!(orb.misplaced_requests(), 0);
}
