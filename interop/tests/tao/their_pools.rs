//! TAO's client with IronORB's thread pools, and with limits of priorities.

use ironorb::rt::{PeerNetwork, PriorityModel, RealTimeConfig};
use ironorb::{
    LaneConfig, Orb, PoaPolicies, RequestBuffering, RequestOrder, ServerConcurrency, ThreadPoolConfig,
};
use ironorb_interop::process::wait_until;
use ironorb_interop::tao::{client, lines_of, start_client};

use super::their_client::{
    PROPAGATED, accepted, asked, asking, at_any_port, built, lane_name, names, serve, serve_as, told, words,
};
use super::{LANES, MAPPING, priority, real_time};

fn lane(name: &str, number: i16) -> LaneConfig {
    LaneConfig::new(name).endpoint("iiop://127.0.0.1:0").priority(priority(number))
}

/// A lane of this pool for each of these priorities.
fn in_pool(number: i16) -> LaneConfig {
    lane(&format!("own {number}"), number).threadpool("own")
}

fn of_pool(orb: &Orb, priority_model: PriorityModel) -> PoaPolicies {
    let threadpool = orb.rt_orb().and_then(|rt_orb| rt_orb.threadpool("own"));
    assert!(threadpool.is_some());
    PoaPolicies { priority_model: Some(priority_model), threadpool, ..PoaPolicies::default() }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_reaches_the_lanes_of_the_adapter_s_pool_and_no_others() {
    let all = LANES.iter().fold(at_any_port(real_time()), |orb, number| {
        orb.lane(lane(&lane_name(*number), *number)).lane(in_pool(*number))
    });
    let orb = built(all);
    let pooled = serve_as(&orb, "pooled", of_pool(&orb, PROPAGATED));
    let outside = serve(&orb, "outside", Some(PROPAGATED));
    let declared = PriorityModel::ServerDeclared(priority(30_000));
    let declared = serve_as(&orb, "declared", of_pool(&orb, declared));
    let ask = |reference: &str| asked(&asking(reference, &[], &words(&LANES)));
    assert_eq!((ask(&pooled.reference), ask(&outside.reference)), (told(&LANES), told(&LANES)));
    assert_eq!(pooled.servant.take_lanes(), LANES.map(|number| format!("own {number}")));
    assert_eq!(outside.servant.take_lanes(), names(&LANES));
    assert_eq!(ask(&declared.reference), told(&[30_000; 3]));
    assert_eq!(declared.servant.take_lanes(), ["own 30000"; 3]);
    assert_eq!(orb.misplaced_requests(), 0);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_s_threads_are_served_by_pools_in_an_order_that_lend_one_another_threads() {
    let pool = ThreadPoolConfig::new(1).dynamic_threads(1);
    let pools = [
        pool.order(RequestOrder::Priority),
        pool.order(RequestOrder::EarliestDeadline)
            .buffering(RequestBuffering::UpTo { requests_max: 64, bytes_max: 64 << 10 }),
        pool.borrowing(true),
    ];
    for pool in pools {
        let concurrency = ServerConcurrency::ThreadPool(pool);
        let with = |orb: ironorb::OrbBuilder, number: &i16| {
            orb.lane(lane(&lane_name(*number), *number).concurrency(concurrency))
        };
        let orb = built(LANES.iter().fold(at_any_port(real_time()), with));
        let served = serve(&orb, "many", Some(PROPAGATED));
        assert_eq!(client(&["use", &served.reference, "threads", "1000+16384+30000"]), ["threads 0"]);
        assert_eq!((served.servant.take_lanes().len(), orb.misplaced_requests()), (600, 0), "{pool:?}");
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_thread_of_a_low_lane_serves_tao_s_call_to_a_busy_one() {
    let pool = ServerConcurrency::ThreadPool(ThreadPoolConfig::new(1).borrowing(true));
    let orb = [1_000, 30_000].iter().fold(at_any_port(real_time()), |orb, number| {
        orb.lane(lane(&lane_name(*number), *number).concurrency(pool))
    });
    let orb = built(orb);
    let served = serve(&orb, "lanes", Some(PROPAGATED));
    let meet = || start_client(&["use", &served.reference, "priority", "30000", "meet", "2"]);
    // The high lane has one thread, and the first call keeps it until the second one is inside.
    let first = meet();
    wait_until("the first call is not inside", || served.servant.inside() == 1);
    let second = meet();
    assert_eq!([lines_of(first), lines_of(second)], [["meet true"]; 2]);
    // The end of a connection may need it once more.
    assert!(orb.status().total("threads_borrowed_total") >= 1);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_s_priorities_reach_as_high_as_its_address_and_the_adapter_may() {
    let peers: PeerNetwork = "127.0.0.0/8".parse().expect("a network");
    let config = RealTimeConfig::new().mapping(MAPPING).peer_priority_max(peers, priority(16_384));
    let with = |orb: ironorb::OrbBuilder, number: &i16| orb.lane(lane(&lane_name(*number), *number));
    let orb = built(LANES.iter().fold(at_any_port(Orb::builder().real_time(config)), with));
    let served = serve(&orb, "open", Some(PROPAGATED));
    let lines = asked(&asking(&served.reference, &[], &words(&LANES)));
    assert_eq!(lines, told(&[1_000, 16_384, 16_384]));
    // TAO connects to the lane of 30000, from which the connection is handed down.
    assert_eq!(served.servant.take_lanes(), ["of 1000", "of 16384", ""]);
    assert_eq!(orb.status().total("connections_handed_down_total"), 1);
    assert_eq!((accepted(&orb), orb.misplaced_requests()), (3, 0));

    // References of an adapter with a limit of its own lead to no lane above it.
    let limit = Some(priority(1_000));
    let policies = PoaPolicies { propagated_priority_max: limit, ..PoaPolicies::default() };
    let served = serve_as(&orb, "limited", PoaPolicies { priority_model: Some(PROPAGATED), ..policies });
    let lines = asked(&asking(&served.reference, &[], &words(&LANES)));
    assert_eq!(lines, [told(&[1_000]), vec!["TRANSIENT 2".to_owned(); 2]].concat());
}
