//! Thread pools as groups of lanes, each for its own adapters (`ThreadpoolPolicy`; RTCORBA 1.2, 5.9).

use ironorb::poa::{PoaError, PoaPolicy, PoaPolicyType};
use ironorb::rt::{PriorityBand, PriorityBands, PriorityModel, ThreadpoolId};
use ironorb::{LaneConfig, Orb, Poa, PoaPolicies, TypedRef};
use ironorb_tests::real_time::{
    Lanes, PROPAGATED, listening_lane as lane, noting_lanes, priority, real_time, server_of,
};
use ironorb_tests::testing::{Probe, ProbeRef};

/// A server with two pools of lanes, one of a lane without a priority, and a lane of none.
fn server() -> Orb {
    server_of(real_time())
        .lane(lane("plain 100").priority(priority(100)))
        .lane(lane("a 100").priority(priority(100)).threadpool("a"))
        .lane(lane("a 200").priority(priority(200)).threadpool("a"))
        .lane(lane("b 100").priority(priority(100)).threadpool("b"))
        .lane(lane("c").threadpool("c"))
        .build()
        .unwrap()
}

fn pool(server: &Orb, name: &str) -> Option<ThreadpoolId> {
    Some(server.rt_orb().unwrap().threadpool(name).unwrap())
}

fn create(server: &Orb, name: &str, policies: PoaPolicies) -> Result<Poa, PoaError> {
    let root = server.root_poa();
    root.create_poa(name, Some(root.manager().clone()), policies)
}

#[test]
fn an_adapter_is_served_by_the_lanes_of_its_pool_and_by_no_others() {
    let server = server();
    let lanes = Lanes::default();
    let served = |name, threadpool, priority_model| {
        let policies = PoaPolicies { threadpool, priority_model, ..PoaPolicies::default() };
        let poa = create(&server, name, policies).unwrap();
        let probe: ProbeRef = poa.activate(noting_lanes(&server, &lanes)).unwrap();
        probe.object().to_ior_string()
    };
    let declared = Some(PriorityModel::ServerDeclared(priority(200)));
    for (ior, of_caller) in [
        (served("in a", pool(&server, "a"), Some(PROPAGATED)), ["a 100", "a 200", "a 100"]),
        (served("declared in a", pool(&server, "a"), declared), ["a 200"; 3]),
        (served("in b", pool(&server, "b"), Some(PROPAGATED)), ["b 100"; 3]),
        (served("in c", pool(&server, "c"), None), ["c"; 3]),
        (served("in none", None, Some(PROPAGATED)), ["plain 100", "", ""]),
    ] {
        let client = Orb::builder().real_time(real_time()).build().unwrap();
        let object: ProbeRef = client.string_to_object(&ior).unwrap().narrow_unchecked();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in [100, 200] {
                    client.rt_current().unwrap().set_priority(priority(number)).unwrap();
                    object.ping().unwrap();
                }
            });
        });
        // Clients without real time reach the pool, too.
        let plain = Orb::builder().build().unwrap();
        let object: ProbeRef = plain.string_to_object(&ior).unwrap().narrow_unchecked();
        object.ping().unwrap();
        assert_eq!(std::mem::take(&mut *lanes.lock().unwrap()), of_caller);
    }
    server.shutdown(true).unwrap();
}

#[test]
fn what_does_not_fit_a_pool_is_refused_by_its_place_in_the_list() {
    let server = server();
    let refused = |list: &[PoaPolicy]| {
        let policies = PoaPolicies::from_list(list).unwrap();
        match create(&server, "refused", policies) {
            Err(PoaError::InvalidPolicy { policy, .. }) => policy,
            other => panic!("{other:?}"),
        }
    };
    let other = server_of(real_time());
    let names = ["p", "q", "r", "s"];
    let lanes = names.into_iter().fold(other, |builder, name| builder.lane(lane(name).threadpool(name)));
    let unknown = pool(&lanes.build().unwrap(), "s").unwrap();
    assert_eq!(refused(&[PoaPolicy::Threadpool(unknown)]), PoaPolicyType::Threadpool);

    let [a, b] = ["a", "b"].map(|name| PoaPolicy::Threadpool(pool(&server, name).unwrap()));
    assert_eq!(
        refused(&[a]),
        PoaPolicyType::PriorityModel,
        "lanes have priorities, and the adapter no model"
    );
    let declared = PoaPolicy::PriorityModel(PriorityModel::ServerDeclared(priority(200)));
    assert_eq!(refused(&[b, declared]), PoaPolicyType::PriorityModel, "no lane of the pool has it");
    let bands = PriorityBands::new(&[PriorityBand { low: 150, high: 250 }]).unwrap();
    let banded = [b, PoaPolicy::PriorityModel(PROPAGATED), PoaPolicy::PriorityBandedConnection(bands)];
    assert_eq!(
        refused(&banded),
        PoaPolicyType::PriorityBandedConnection,
        "no lane of the pool is in the band"
    );
    let twice = PoaPolicies::from_list(&[a, b]).unwrap_err();
    assert!(matches!(twice, PoaError::InvalidPolicy { policy: PoaPolicyType::Threadpool, index: 1, .. }));

    let threadpool = pool(&server, "b");
    let priority_model = Some(PriorityModel::ServerDeclared(priority(100)));
    let policies = PoaPolicies { threadpool, priority_model, ..PoaPolicies::default() };
    let poa = create(&server, "own", policies).unwrap();
    let own = |number| poa.create_reference_with_priority(ProbeRef::REPOSITORY_ID, priority(number));
    assert!(own(100).is_ok());
    assert!(matches!(own(200), Err(PoaError::PriorityNotServed { .. })), "a lane of another pool has it");
    server.shutdown(true).unwrap();
}

#[test]
fn lanes_that_cannot_be_of_a_pool_are_refused_with_what_to_do() {
    let build =
        |lane: LaneConfig| server_of(real_time()).lane(lane).build().map(drop).unwrap_err().to_string();
    let silent = build(LaneConfig::new("silent").threadpool("a"));
    assert!(silent.contains("\"silent\"") && silent.contains("give it an endpoint"), "{silent}");
    let best_effort = build(lane("rest").threadpool("a").best_effort());
    assert!(best_effort.contains("take one of the two away"), "{best_effort}");
    let mut options = vec!["-ORBlane".to_owned(), "x; endpoint=iiop://127.0.0.1:0; threadpool=a".to_owned()];
    let plain = Orb::builder().arguments(&mut options.clone()).build().map(drop).unwrap_err().to_string();
    assert!(plain.contains("needs a real-time ORB"), "{plain}");
    let orb = Orb::builder().real_time(real_time()).arguments(&mut options).build().unwrap();
    let rt_orb = orb.rt_orb().unwrap();
    assert!(rt_orb.threadpool("a").is_some() && rt_orb.threadpool("b").is_none());
}
