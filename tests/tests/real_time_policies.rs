//! Which policies of RTCORBA 1.2 fit together, and which connections calls take by them. A test for each combination that
//! the standard or TAO defines a result for.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use ironorb::giop::ior::{IiopProfile, Ior, Profile, TaggedComponent};
use ironorb::interceptor::{ClientInterceptor, RequestFacts, ServerContext};
use ironorb::poa::{
    Cookie, ObjectId, PoaError, PoaPolicy, PoaPolicyType, RequestProcessing, ServantLocator,
    ServantRetention, Unavailable,
};
use ironorb::rt::{
    ClientPolicies, CodePoint, NetworkPriority, NotBound, Priority, PriorityBand, PriorityBands,
    PriorityModel, Protocol, Protocols, RealTimeConfig, RtPolicyType, TcpProperties, WatchConfig,
    set_thread_policies,
};
use ironorb::status::Snapshot;
use ironorb::{
    InvocationPolicies, LaneConfig, ObjectRef, Orb, Poa, PoaPolicies, Servant, SystemExceptionKind,
    Transport, TypedRef,
};
use ironorb_tests::real_time::{PROPAGATED, priority, real_time};
use ironorb_tests::relay::Relay;
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, eventually, raw};

/// The service contexts with a priority and with a band of priorities.
const RT_CORBA_PRIORITY: u32 = 10;
const RT_CORBA_PRIORITY_RANGE: u32 = 11;

fn bands(list: &[(i16, i16)]) -> PriorityBands {
    let list: Vec<_> = list.iter().map(|&(low, high)| PriorityBand { low, high }).collect();
    PriorityBands::new(&list).unwrap()
}

fn with_bands(list: &[(i16, i16)]) -> ClientPolicies {
    ClientPolicies { bands: Some(bands(list)), ..ClientPolicies::NONE }
}

/// A server with lanes of these priorities.
fn server_with_lanes(config: RealTimeConfig, lanes: &[i16]) -> Orb {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().real_time(config);
    for number in lanes {
        let lane = LaneConfig::new(&format!("of {number}")).endpoint("iiop://127.0.0.1:0");
        builder = builder.lane(lane.priority(priority(*number)));
    }
    builder.build().unwrap()
}

fn server() -> Orb {
    server_with_lanes(real_time(), &[])
}

fn client() -> Orb {
    Orb::builder().real_time(real_time()).build().unwrap()
}

/// The lanes and the priorities of the upcalls.
type Seen = Arc<Mutex<Vec<(String, Option<i16>)>>>;

fn taken(seen: &Seen) -> Vec<(String, Option<i16>)> {
    std::mem::take(&mut seen.lock().unwrap())
}

/// Activates a servant that notes its lane and its priority, in an adapter with these policies.
fn serve(server: &Orb, policies: PoaPolicies, seen: &Seen) -> ProbeRef {
    let (orb, seen, current) = (server.clone(), seen.clone(), server.rt_current());
    let servant = Hooked::new(move || {
        let priority = current.as_ref().and_then(|current| current.priority().ok());
        let lane = orb.current_lane().name().to_owned();
        seen.lock().unwrap().push((lane, priority.map(Priority::number)));
        Ok(())
    });
    server.root_poa().create_poa("real time", None, policies).unwrap().activate(servant).unwrap()
}

fn propagated() -> PoaPolicies {
    PoaPolicies { priority_model: Some(PROPAGATED), ..PoaPolicies::default() }
}

fn reference_in(client: &Orb, served: &ProbeRef) -> ProbeRef {
    client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked()
}

/// The served object behind a relay that counts connections.
fn through(relay: &Relay, client: &Orb, served: &ProbeRef) -> ProbeRef {
    client.string_to_object(&relay.ior_of(served.object())).unwrap().narrow_unchecked()
}

/// Runs `body` on a thread of its own with this priority.
fn at<T: Send>(orb: &Orb, number: i16, body: impl FnOnce() -> T + Send) -> T {
    let current = orb.rt_current().unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            current.set_priority(priority(number)).unwrap();
            body()
        });
        thread.join().unwrap()
    })
}

/// A call fails, and binding names the policies.
fn is_refused(object: &ProbeRef, expected: &[RtPolicyType]) {
    for _ in 0..2 {
        let e = object.ping().unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::InvPolicy, ironorb::CompletionStatus::No));
        assert_eq!(object.ping_async().wait().unwrap_err().kind, SystemExceptionKind::InvPolicy);
    }
    match object.object().validate_connection() {
        Err(NotBound::Inconsistent(found)) => assert_eq!(found.policies, expected),
        other => panic!("{other:?}"),
    }
}

const BANDED: RtPolicyType = RtPolicyType::PriorityBandedConnection;

/// The position of the policy that an adapter is refused for: among the fields, and in a list.
fn refused_index(orb: &Orb, model: Option<PriorityModel>, list: &[(i16, i16)]) -> (PoaPolicyType, u16) {
    let policies =
        PoaPolicies { priority_model: model, priority_bands: Some(bands(list)), ..PoaPolicies::default() };
    match orb.root_poa().create_poa("banded", None, policies) {
        Err(PoaError::InvalidPolicy { policy, index, .. }) => (policy, index),
        other => panic!("{other:?}"),
    }
}

#[test]
fn create_poa_refuses_bands_that_fit_nothing_and_names_their_position() {
    let banded = (PoaPolicyType::PriorityBandedConnection, 8);
    let orb = server();
    let declared = PriorityModel::ServerDeclared(priority(50));
    for (model, list) in [
        (None, &[(0, 100)][..]),                   // no model
        (Some(PROPAGATED), &[]),                   // an empty list
        (Some(PROPAGATED), &[(0, 10), (-1, 100)]), // below 0
        (Some(PROPAGATED), &[(0, 10), (30, 20)]),  // the lowest above the highest
        (Some(declared), &[(0, 49), (51, 100)]),   // the declared priority is in none
    ] {
        assert_eq!(refused_index(&orb, model, list), banded, "{list:?}");
        let mut policies = vec![PoaPolicy::PriorityBandedConnection(bands(list))];
        policies.extend(model.map(PoaPolicy::PriorityModel));
        match PoaPolicies::from_list(&policies) {
            Err(PoaError::InvalidPolicy { policy, index, .. }) => assert_eq!((policy, index), (banded.0, 0)),
            other => panic!("{other:?}"),
        }
    }
    // A band that holds no lane, of a server with lanes.
    let orb = server_with_lanes(real_time(), &[100, 200]);
    assert_eq!(refused_index(&orb, Some(PROPAGATED), &[(100, 200), (300, 400)]), banded);
    let policies = PoaPolicies { priority_bands: Some(bands(&[(50, 100), (200, 200)])), ..propagated() };
    assert!(orb.root_poa().create_poa("good", None, policies).is_ok());
    // An ORB without real time.
    let plain = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    assert_eq!(refused_index(&plain, Some(PROPAGATED), &[(0, 1)]), (PoaPolicyType::PriorityModel, 7));
    assert!(PriorityBands::new(&[PriorityBand { low: 0, high: 0 }; PriorityBands::MAX + 1]).is_none());
}

#[test]
fn bands_of_both_the_reference_and_the_client_are_refused_on_use_and_an_empty_list_yields() {
    let server = server();
    let seen = Seen::default();
    let policies = PoaPolicies { priority_bands: Some(bands(&[(0, 100)])), ..propagated() };
    let served = serve(&server, policies, &seen);
    let client = client();
    let object = reference_in(&client, &served);
    at(&client, 50, || {
        is_refused(&object.with_client_policies(with_bands(&[(0, 100)])), &[BANDED]);
        object.with_client_policies(with_bands(&[])).ping().unwrap();
        object.ping().unwrap();
        // At the levels of the thread and of the ORB.
        set_thread_policies(with_bands(&[(0, 9)]));
        is_refused(&object, &[BANDED]);
        set_thread_policies(ClientPolicies::NONE);
        client.set_client_policies(with_bands(&[(0, 9)]));
        is_refused(&object, &[BANDED]);
        client.set_client_policies(ClientPolicies::NONE);
        object.ping().unwrap();
    });
    assert_eq!(taken(&seen), vec![(String::new(), Some(50)); 3]);
}

#[test]
fn bands_without_a_priority_model_are_refused_on_use() {
    let server = server();
    let served = serve(&server, PoaPolicies::default(), &Seen::default());
    let client = client();
    let object = reference_in(&client, &served).with_client_policies(with_bands(&[(0, 100)]));
    at(&client, 50, || is_refused(&object, &[BANDED, RtPolicyType::PriorityModel]));
}

#[test]
fn a_thread_whose_priority_is_in_no_band_is_refused() {
    let server = server();
    let seen = Seen::default();
    let policies = PoaPolicies { priority_bands: Some(bands(&[(0, 40), (60, 100)])), ..propagated() };
    let of_server = reference_in(&client(), &serve(&server, policies, &seen));
    let client = client();
    at(&client, 50, || is_refused(&of_server, &[BANDED]));
    let server = self::server();
    let object = reference_in(&client, &serve(&server, propagated(), &seen));
    let object = object.with_client_policies(with_bands(&[(0, 40), (60, 100)]));
    at(&client, 50, || is_refused(&object, &[BANDED]));
    at(&client, 60, || object.ping().unwrap());
    assert_eq!(taken(&seen), [(String::new(), Some(60))]);
}

/// TAO raises TRANSIENT here.
#[test]
fn bands_of_the_client_that_hold_no_lane_are_refused() {
    let server = server_with_lanes(real_time(), &[100, 200]);
    let served = serve(&server, propagated(), &Seen::default());
    let client = client();
    let object = reference_in(&client, &served).with_client_policies(with_bands(&[(101, 199), (200, 300)]));
    at(&client, 150, || is_refused(&object, &[BANDED]));
    at(&client, 250, || object.ping().unwrap());
}

#[test]
fn with_bands_the_lane_of_the_band_serves_and_nothing_is_misplaced() {
    for of_server in [false, true] {
        let server = server_with_lanes(real_time(), &[100, 180, 300]);
        let seen = Seen::default();
        let list = bands(&[(0, 199), (200, 400)]);
        let own = of_server.then_some(list);
        let served = serve(&server, PoaPolicies { priority_bands: own, ..propagated() }, &seen);
        let client = client();
        let mut object = reference_in(&client, &served);
        if !of_server {
            object = object.with_client_policies(with_bands(&[(0, 199), (200, 400)]));
        }
        // Its own lane, the next above, the highest of the band.
        for (number, lane) in [(100, 100), (120, 180), (7, 100), (190, 180), (200, 300), (400, 300)] {
            at(&client, number, || {
                for _ in 0..70 {
                    object.ping().unwrap();
                }
                object.ping_async().wait().unwrap();
            });
            assert_eq!(taken(&seen), vec![(format!("of {lane}"), Some(lane)); 71], "{number}");
        }
        assert_eq!(server.misplaced_requests(), 0);
    }
}

#[test]
fn a_declared_priority_chooses_the_band_whatever_the_clients_is() {
    let server = server();
    let seen = Seen::default();
    let declared = Some(PriorityModel::ServerDeclared(priority(70)));
    let policies = PoaPolicies { priority_model: declared, ..PoaPolicies::default() };
    let served = serve(&server, policies, &seen);
    let client = client();
    let object = reference_in(&client, &served);
    at(&client, 5, || {
        object.with_client_policies(with_bands(&[(60, 80)])).ping().unwrap();
        is_refused(&object.with_client_policies(with_bands(&[(0, 10)])), &[BANDED]);
    });
    assert_eq!(taken(&seen), [(String::new(), Some(70))]);
}

/// The standard's way, for servers without addresses of lanes: a connection for each band.
#[test]
fn each_band_has_one_connection_and_its_priorities() {
    let server = server_with_lanes(real_time().tao_endpoints(false), &[]);
    let seen = Seen::default();
    let served = serve(&server, propagated(), &seen);
    let relay = Relay::to(served.object());
    let client = client();
    let object = through(&relay, &client, &served).with_client_policies(with_bands(&[(0, 99), (100, 199)]));
    let call = |number: i16| {
        at(&client, number, || {
            for _ in 0..70 {
                object.ping().unwrap();
            }
            object.ping_async().wait().unwrap();
        });
        assert_eq!(taken(&seen), vec![(String::new(), Some(number)); 71]);
        relay.connections()
    };
    assert_eq!([10, 99, 100, 150, 10].map(call), [1, 1, 2, 2, 2]);
    // Without bands there is a third connection, for all priorities.
    let plain = through(&relay, &client, &served);
    at(&client, 10, || {
        plain.ping().unwrap();
        client.rt_current().unwrap().set_priority(priority(150)).unwrap();
        plain.ping().unwrap();
    });
    assert_eq!(relay.connections(), 3);
}

/// Notes the bands that requests tell; `None` for a request without one.
struct SeesBands(Arc<Mutex<Vec<Option<Vec<u8>>>>>);

impl ServerContext for SeesBands {
    fn id(&self) -> u32 {
        RT_CORBA_PRIORITY_RANGE
    }

    fn serve(&self, _: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        self.0.lock().unwrap().push(data.map(<[u8]>::to_vec));
        upcall();
    }
}

/// The bytes that docs/wire.md has, by every way that the first request takes.
#[test]
fn each_band_has_its_own_context_once() {
    let told = Arc::default();
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().real_time(real_time());
    let server = server.server_context(SeesBands(Arc::clone(&told))).build().unwrap();
    let served = serve(&server, propagated(), &Seen::default());
    let context = |low: i16, high: i16| {
        let order = u8::from(cfg!(target_endian = "little"));
        Some([&[order, 0][..], &low.to_ne_bytes(), &high.to_ne_bytes()].concat())
    };
    type Way = fn(&ProbeRef);
    let ways: [Way; 4] = [
        |object| object.ping().unwrap(),
        |object| object.ping_async().wait().unwrap(),
        |object| object.tick().unwrap(),
        |object| assert!(object.object().validate_connection().unwrap()),
    ];
    for first in ways {
        for builder in [Orb::builder(), Orb::builder().client_interceptor(Passive)] {
            let client = builder.real_time(real_time()).build().unwrap();
            let object = reference_in(&client, &served);
            let object = object.with_client_policies(with_bands(&[(0, 99), (1_000, 2_000)]));
            for (number, low, high) in [(50, 0, 99), (1_000, 1_000, 2_000)] {
                at(&client, number, || {
                    first(&object);
                    (0..3).for_each(|_| object.ping().unwrap());
                    object.ping_async().wait().unwrap();
                });
                let expected = vec![context(low, high), None, None, None, None];
                assert_eq!(std::mem::take(&mut *told.lock().unwrap()), expected);
            }
        }
    }
}

struct Passive;
impl ClientInterceptor for Passive {}

/// An operation, and the band and the priority that its request tells.
type RawRequest<'r> = (&'r str, Option<[i16; 2]>, Option<i16>);

/// Sends requests over one connection, and returns the status of each reply. Contexts are big-endian.
fn replies(object: &ObjectRef, requests: &[RawRequest<'_>]) -> Vec<u32> {
    let mut stream = raw::connect(object);
    requests.iter().map(|request| status_of(&mut stream, object, *request)).collect()
}

fn status_of(stream: &mut TcpStream, object: &ObjectRef, (operation, band, priority): RawRequest<'_>) -> u32 {
    let mut contexts = Vec::new();
    if let Some([low, high]) = band {
        let data = [&[0, 0][..], &low.to_be_bytes(), &high.to_be_bytes()].concat();
        contexts.push((RT_CORBA_PRIORITY_RANGE, data));
    }
    if let Some(priority) = priority {
        contexts.push((RT_CORBA_PRIORITY, [&[0, 0][..], &priority.to_be_bytes()].concat()));
    }
    raw::write(stream, &raw::request_with(object, operation, &contexts, &[]));
    let reply = raw::read_message(stream);
    u32::from_ne_bytes(reply[16..20].try_into().unwrap())
}

const DONE: u32 = 0;
const SYSTEM_EXCEPTION: u32 = 2;

#[test]
fn a_connection_that_is_bound_to_a_band_has_its_priorities() {
    let server = server_with_lanes(real_time().propagated_priority_max(priority(1_500)), &[]);
    let seen = Seen::default();
    let served = serve(&server, propagated(), &seen);
    let object = served.object();
    let bound = Some([1_000, 2_000]);
    // By the first request, and by the implicit operation. Then requests have priorities within the band and the limit.
    for first in [("ping", bound, Some(1_200)), ("_bind_priority_band", bound, None)] {
        let requests = [
            first,
            ("ping", None, Some(1_300)),
            ("ping", None, Some(7)),
            ("ping", None, Some(9_000)),
            ("ping", None, None),
        ];
        assert_eq!(replies(object, &requests), [DONE; 5]);
        let expected = [1_200, 1_300, 1_000, 1_500, 1_000].map(|number| (String::new(), Some(number)));
        let skipped = if first.0 == "ping" { 0 } else { 1 };
        assert_eq!(taken(&seen), expected[skipped..]);
    }
    // No band: the lowest above the highest, below 0. The connection stays as it was.
    for none in [[2_000, 1_000], [-1, 10], [-2, -1]] {
        let requests = [("ping", Some(none), Some(7)), ("_bind_priority_band", Some(none), None)];
        assert_eq!(replies(object, &requests), [DONE, SYSTEM_EXCEPTION]);
        assert_eq!(taken(&seen), [(String::new(), Some(7))]);
    }
    assert_eq!(replies(object, &[("_bind_priority_band", None, None)]), [SYSTEM_EXCEPTION]);
    // A request that waits for its manager keeps the band.
    let mut stream = raw::connect(object);
    assert_eq!(status_of(&mut stream, object, ("ping", bound, Some(1_200))), DONE);
    let manager = server.root_poa().find_poa("real time", false).unwrap().manager().clone();
    manager.hold_requests(false).unwrap();
    raw::write(&mut stream, &raw::request(object, "ping", &[]));
    let held = |seen: Snapshot| seen.queues.into_iter().any(|it| it.name == "held_requests" && it.items == 1);
    eventually("the request waits", || held(server.status()));
    manager.activate().unwrap();
    raw::read_message(&mut stream);
    assert_eq!(taken(&seen), [1_200, 1_000].map(|number| (String::new(), Some(number))));
    // A server without real time does not know the operation, and passes over the context.
    let plain = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let served: ProbeRef = plain.root_poa().activate(Hooked::new(|| Ok(()))).unwrap();
    let requests = [("ping", bound, Some(7)), ("_bind_priority_band", bound, None)];
    assert_eq!(replies(served.object(), &requests), [DONE, SYSTEM_EXCEPTION]);
}

#[test]
fn private_connections_are_not_shared_and_end_with_their_reference() {
    let server = server();
    let served = serve(&server, propagated(), &Seen::default());
    let relay = Relay::to(served.object());
    let client = client();
    let shared = through(&relay, &client, &served);
    let private = ClientPolicies { private_connection: Some(true), ..ClientPolicies::NONE };
    let (first, second) = (shared.with_client_policies(private), shared.with_client_policies(private));
    let (clone, later) = (first.clone(), first.with_timeout(None));
    let calls = [&shared, &first, &clone, &second, &shared, &first, &later, &second];
    // Which of the calls make a connection.
    let mut made = Vec::new();
    for object in calls {
        let before = relay.connections();
        object.ping().unwrap();
        made.push(relay.connections() - before);
    }
    assert_eq!(made, [1, 1, 0, 1, 0, 0, 0, 0]);
    let open = || client.status().total("connections_open");
    assert_eq!(open(), 3);
    drop(second);
    assert_eq!(open(), 2);
    drop((first, clone, later));
    assert_eq!(open(), 1);
    shared.ping().unwrap();
    // Other threads share it, and so do bands have private connections of their own.
    let banded = shared.with_client_policies(private).with_client_policies(with_bands(&[(0, 9), (10, 19)]));
    for (number, connections) in [(5, 4), (6, 4), (15, 5), (5, 5)] {
        at(&client, number, || banded.ping().unwrap());
        assert_eq!(relay.connections(), connections);
    }
    // At the level of the thread each reference has its own.
    set_thread_policies(private);
    let other = through(&relay, &client, &served);
    other.ping().unwrap();
    shared.ping().unwrap();
    other.ping().unwrap();
    set_thread_policies(ClientPolicies::NONE);
    assert_eq!(relay.connections(), 7);
}

#[test]
fn validate_connection_connects_so_that_the_next_call_does_not() {
    let server = server_with_lanes(real_time().tao_endpoints(false), &[]);
    let seen = Seen::default();
    let served = serve(&server, propagated(), &seen);
    let relay = Relay::to(served.object());
    let client = client();
    let object = through(&relay, &client, &served);
    let private = ClientPolicies { private_connection: Some(true), ..ClientPolicies::NONE };
    for (count, policies) in
        [ClientPolicies::NONE, with_bands(&[(0, 99), (100, 199)]), private].into_iter().enumerate()
    {
        let object = object.with_client_policies(policies);
        at(&client, 50, || {
            assert_eq!(object.object().validate_connection(), Ok(true));
            assert_eq!(relay.connections(), count + 1);
            object.ping().unwrap();
            assert_eq!(relay.connections(), count + 1);
        });
        assert_eq!(taken(&seen), [(String::new(), Some(50))]);
    }
    // An object of this process has no connection; one that is gone is not there.
    assert_eq!(served.object().with_client_policies(with_bands(&[(0, 1)])).validate_connection(), Ok(true));
    let gone = served.object().clone();
    server.root_poa().find_poa("real time", false).unwrap().destroy(true, true).unwrap();
    let gone = client.string_to_object(&gone.to_ior_string()).unwrap();
    assert_eq!(gone.validate_connection(), Ok(false));
    server.shutdown(true).unwrap();
    assert!(matches!(gone.validate_connection(), Err(NotBound::Failed(_))));
}

struct Forwards(ObjectRef);

impl ServantLocator for Forwards {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Unavailable> {
        Err(Unavailable::Forward(self.0.clone()))
    }
}

/// The policies of the reference that a call is forwarded to count, and its connections.
#[test]
fn the_policies_of_a_forwarded_reference_count() {
    let seen = Seen::default();
    let there = server_with_lanes(real_time().tao_endpoints(false), &[]);
    let policies = PoaPolicies { priority_bands: Some(bands(&[(0, 99), (100, 199)])), ..propagated() };
    let served = serve(&there, policies, &seen);
    let relay = Relay::to(served.object());
    let here = server();
    let locator = PoaPolicies {
        servant_retention: ServantRetention::NonRetain,
        request_processing: RequestProcessing::ServantManager,
        ..propagated()
    };
    let poa = here.root_poa().create_poa("forwards", None, locator).unwrap();
    let to = here.string_to_object(&relay.ior_of(served.object())).unwrap();
    poa.set_servant_locator(Arc::new(Forwards(to))).unwrap();
    let forwarding: ProbeRef = poa.create_reference(ProbeRef::REPOSITORY_ID).unwrap().narrow_unchecked();
    let client = client();
    let object = reference_in(&client, &forwarding);
    at(&client, 50, || {
        assert_eq!(object.object().validate_connection(), Ok(true));
        object.ping().unwrap();
    });
    at(&client, 150, || object.ping().unwrap());
    assert_eq!((taken(&seen).len(), relay.connections()), (2, 2));
    at(&client, 500, || is_refused(&object, &[BANDED]));
}

/// The standard has a client that overrides the priority model, the thread pool or the protocols of a server fail with
/// NO_PERMISSION. No level has a place for them: this does not compile with a further policy.
#[test]
fn no_level_overrides_policies_of_the_server() {
    let ClientPolicies { bands, private_connection, protocols, network_priority } = ClientPolicies::NONE;
    assert!(protocols.is_none() && network_priority.is_none());
    let InvocationPolicies { rebind, sync_scope, oneway_batching, roundtrip_timeout } =
        InvocationPolicies::NONE;
    assert!(bands.is_none() && private_connection.is_none() && rebind.is_none());
    assert!(sync_scope.is_none() && oneway_batching.is_none() && roundtrip_timeout.is_none());
}

fn protocols(list: &[Transport]) -> Protocols {
    Protocols::new(&list.iter().map(|transport| (*transport).into()).collect::<Vec<_>>()).unwrap()
}

fn with_protocols(list: &[Transport]) -> ClientPolicies {
    ClientPolicies { protocols: Some(protocols(list)), ..ClientPolicies::NONE }
}

const PROTOCOL: RtPolicyType = RtPolicyType::ClientProtocol;

/// A server that listens over TCP and at a Unix socket.
fn server_of_two() -> Orb {
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().endpoint("uiop://").unwrap();
    builder.real_time(real_time()).build().unwrap()
}

/// Over what the connections of a client go.
fn ways(client: &Orb) -> Vec<&'static str> {
    let of = |peer: &String| if peer.starts_with("Unix") { "uiop" } else { "iiop" };
    let mut ways: Vec<_> = client.status().connections.iter().map(|it| of(&it.peer)).collect();
    ways.sort_unstable();
    ways
}

#[test]
fn protocols_of_both_the_reference_and_the_client_are_refused_on_use_and_an_empty_list_yields() {
    let server = server_of_two();
    let own = Some(protocols(&[Transport::Unix]));
    let policies = PoaPolicies { client_protocols: own, ..PoaPolicies::default() };
    let served = serve(&server, policies, &Seen::default());
    let client = client();
    let object = reference_in(&client, &served);
    is_refused(&object.with_client_policies(with_protocols(&[Transport::Unix])), &[PROTOCOL]);
    client.set_client_policies(with_protocols(&[Transport::Tcp]));
    is_refused(&object, &[PROTOCOL]);
    client.set_client_policies(ClientPolicies::NONE);
    object.with_client_policies(with_protocols(&[])).ping().unwrap();
    object.ping().unwrap();
    assert_eq!(ways(&client), ["uiop"]);
}

#[test]
fn an_object_without_an_address_of_the_listed_protocols_is_refused_and_a_later_one_is_taken() {
    let server = server();
    let served = serve(&server, PoaPolicies::default(), &Seen::default());
    let client = client();
    let object = reference_in(&client, &served);
    is_refused(&object.with_client_policies(with_protocols(&[Transport::Unix])), &[PROTOCOL]);
    let local = [Transport::SharedMemory, Transport::Unix];
    is_refused(&object.with_client_policies(with_protocols(&local)), &[PROTOCOL]);
    set_thread_policies(with_protocols(&local));
    is_refused(&object, &[PROTOCOL]);
    set_thread_policies(ClientPolicies::NONE);
    object.with_client_policies(with_protocols(&[Transport::Unix, Transport::Tcp])).ping().unwrap();
}

#[test]
fn the_order_of_protocols_is_that_of_preference() {
    let server = server_of_two();
    let served = serve(&server, PoaPolicies::default(), &Seen::default());
    for (list, way) in
        [([Transport::Unix, Transport::Tcp], "uiop"), ([Transport::Tcp, Transport::Unix], "iiop")]
    {
        let client = client();
        let object = reference_in(&client, &served).with_client_policies(with_protocols(&list));
        for _ in 0..3 {
            object.ping().unwrap();
            object.ping_async().wait().unwrap();
        }
        assert_eq!(ways(&client), [way]);
    }
}

/// The lanes of a server at both transports: each call reaches the lane of its priority by the first of its protocols.
#[test]
fn lanes_are_reached_by_the_protocol_that_comes_first() {
    const LANES: [&str; 2] = ["of 1000", "of 16384"];
    let both = |lane: LaneConfig| lane.endpoint("iiop://127.0.0.1:0").endpoint("uiop://");
    let server = [1_000, 16_384].iter().fold(
        Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().endpoint("uiop://").unwrap(),
        |builder, number| {
            builder.lane(both(LaneConfig::new(&format!("of {number}"))).priority(priority(*number)))
        },
    );
    let server = server.real_time(real_time()).uiop_profiles(true).build().unwrap();
    let seen = Seen::default();
    let served = serve(&server, propagated(), &seen);
    for (list, way) in
        [(vec![Transport::Unix, Transport::Tcp], "uiop"), (vec![Transport::Tcp, Transport::Unix], "iiop")]
    {
        for bands in [None, Some(bands(&[(0, 5_000), (5_001, 20_000)]))] {
            let client = client();
            let policies = ClientPolicies { bands, ..with_protocols(&list) };
            let object = reference_in(&client, &served).with_client_policies(policies);
            for number in [1_000, 4_000, 16_384] {
                at(&client, number, || object.ping().unwrap());
            }
            // Above the only lane of its band, a call takes that; without bands, the address for all.
            let (own, connections) = if bands.is_none() { ("", 3) } else { (LANES[0], 2) };
            let lanes: Vec<_> = taken(&seen).into_iter().map(|(lane, _)| lane).collect();
            assert_eq!(lanes, [LANES[0], own, LANES[1]], "{list:?} {bands:?}");
            assert_eq!(ways(&client), vec![way; connections], "{list:?} {bands:?}");
        }
    }
}

/// A reference that begins with the profile of a Unix socket: its lanes count on this machine, and else those of the other profile.
#[test]
fn the_profiles_of_a_server_tell_its_lanes_together() {
    let lane = |number: i16| LaneConfig::new(&format!("of {number}")).priority(priority(number));
    let builder = Orb::builder().endpoint("uiop://").unwrap().endpoint("iiop://127.0.0.1:0").unwrap();
    let both = lane(1_000).endpoint("uiop://").endpoint("iiop://127.0.0.1:0");
    let tcp = lane(16_384).endpoint("iiop://127.0.0.1:0");
    let seen = Seen::default();
    let call = |server: &Orb, client: &Orb, ior: Ior, numbers: &[i16]| {
        let served: ProbeRef = client.string_to_object(&ior.to_string()).unwrap().narrow_unchecked();
        for number in numbers {
            at(client, *number, || served.ping().unwrap());
            at(client, *number, || served.ping().unwrap());
        }
        assert_eq!(server.misplaced_requests(), 0);
        taken(&seen).into_iter().map(|(lane, _)| lane).step_by(2).collect::<Vec<_>>()
    };
    // Only TCP has lanes, and the socket's profile is first.
    let server = builder.real_time(real_time()).uiop_profiles(true).lane(tcp).build().unwrap();
    let served = serve(&server, propagated(), &seen);
    assert_eq!(call(&server, &client(), served.object().to_ior(), &[16_384]), ["of 16384"]);
    // Both have. A client elsewhere, or one without sockets, takes those of TCP.
    let builder = Orb::builder().endpoint("uiop://").unwrap().endpoint("iiop://127.0.0.1:0").unwrap();
    let server = builder.real_time(real_time()).uiop_profiles(true).lane(both).build().unwrap();
    let served = serve(&server, propagated(), &seen);
    let here = client();
    assert_eq!(call(&server, &here, served.object().to_ior(), &[1_000]), ["of 1000"]);
    assert!(ways(&here).iter().all(|way| *way == "uiop"), "{:?}", ways(&here));
    let without =
        Orb::builder().real_time(real_time()).client_transports(vec![Transport::Tcp]).build().unwrap();
    assert_eq!(call(&server, &without, served.object().to_ior(), &[1_000]), ["of 1000"]);
    assert!(ways(&without).iter().all(|way| *way == "iiop"), "{:?}", ways(&without));
    let elsewhere = client();
    assert_eq!(call(&server, &elsewhere, on_another_machine(served.object()), &[1_000]), ["of 1000"]);
    assert!(ways(&elsewhere).iter().all(|way| *way == "iiop"), "{:?}", ways(&elsewhere));
}

/// A reference as the same server would write it on another machine.
fn on_another_machine(object: &ObjectRef) -> Ior {
    let ior = object.to_ior();
    let moved = |component: TaggedComponent<'_>| match component.unix_address() {
        Some(address) => TaggedComponent::new_unix_address("elsewhere", &address.unwrap().path).unwrap(),
        None => TaggedComponent { tag: component.tag, data: component.data.into_owned().into() },
    };
    let profiles = ior.iiop_profiles().map(|profile| {
        let components: Vec<_> = profile.components().map(moved).collect();
        let (version, key) = (profile.version(), profile.object_key());
        let made = match profile.uiop_path() {
            Some(path) => IiopProfile::new_uiop(version, path, key, &components),
            None => IiopProfile::new(version, profile.host(), profile.port(), key, &components),
        };
        Profile::Iiop(made.unwrap())
    });
    Ior { type_id: ior.type_id.clone(), profiles: profiles.collect() }
}

#[test]
fn references_have_the_addresses_of_the_servers_protocols_alone_and_others_are_refused() {
    let server = server_of_two();
    let made = |name: &str, list: &[Transport]| {
        let policies = PoaPolicies { server_protocols: Some(protocols(list)), ..PoaPolicies::default() };
        server.root_poa().create_poa(name, None, policies)
    };
    for (name, list, ports, sockets) in [
        ("all", &[][..], 1, 1),
        ("tcp", &[Transport::Tcp], 1, 0),
        ("unix", &[Transport::Unix], 0, 1),
        ("both", &[Transport::Unix, Transport::Tcp], 1, 1),
    ] {
        let served: ProbeRef = made(name, list).unwrap().activate(Hooked::new(|| Ok(()))).unwrap();
        let ior = served.object().to_ior();
        let profile = ior.iiop_profiles().next().unwrap();
        let found = (usize::from(profile.port() != 0), profile.unix_addresses().count());
        assert_eq!(found, (ports, sockets), "{name}");
        reference_in(&client(), &served).ping().unwrap();
    }
    let refused = |made: Result<Poa, PoaError>| match made {
        Err(PoaError::InvalidPolicy { policy, index, .. }) => (policy, index),
        other => panic!("{other:?}"),
    };
    let of_server = (PoaPolicyType::ServerProtocol, 9);
    assert_eq!(refused(made("shared", &[Transport::Tcp, Transport::SharedMemory])), of_server);
    // Connections of clients are the ORB's, and so are their properties.
    let tcp = Protocol { transport: Transport::Tcp, tcp: Some(TcpProperties::default()) };
    let list = [PoaPolicy::ServerProtocol(Protocols::new(&[tcp]).unwrap())];
    assert_eq!(refused(PoaPolicies::from_list(&list).map(|_| server.root_poa())).1, 0);
}

#[test]
fn calls_with_equal_properties_share_a_connection_and_others_do_not() {
    let server = server();
    let served = serve(&server, PoaPolicies::default(), &Seen::default());
    let relay = Relay::to(served.object());
    let client = client();
    let object = through(&relay, &client, &served);
    let with = |tcp: Option<TcpProperties>| {
        let list = [Protocol { transport: Transport::Tcp, tcp }];
        object
            .with_client_policies(ClientPolicies { protocols: Protocols::new(&list), ..ClientPolicies::NONE })
    };
    let small = TcpProperties { send_buffer_bytes: Some(8_192), no_delay: false, ..TcpProperties::default() };
    let objects = [object.clone(), with(None), with(Some(small)), with(Some(small)), with(None)];
    let counts = objects.map(|object| {
        object.ping().unwrap();
        relay.connections()
    });
    assert_eq!(counts, [1, 1, 2, 2, 2]);
}

/// The code points of the sockets that have connected to a port, and of those that have been accepted there.
fn code_points(port: u16) -> (Vec<u8>, Vec<u8>) {
    use rustix::net::{getpeername, getsockname, sockopt::ip_tos};
    let own = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty());
    let own = own.unwrap();
    let port_of = |address: rustix::net::SocketAddrAny| {
        let address: Option<std::net::SocketAddr> = address.try_into().ok();
        address.map(|address| address.port())
    };
    let (mut connected, mut accepted) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let Ok(fd) = entry.unwrap().file_name().into_string().unwrap().parse() else { continue };
        let flags = rustix::process::PidfdGetfdFlags::empty();
        let Ok(fd) = rustix::process::pidfd_getfd(&own, fd, flags) else { continue };
        let Ok(Some(peer)) = getpeername(&fd) else { continue };
        let mark = || ip_tos(&fd).unwrap() >> 2;
        match (port_of(getsockname(&fd).unwrap()), port_of(peer)) {
            (Some(here), _) if here == port => accepted.push(mark()),
            (_, Some(there)) if there == port => connected.push(mark()),
            _ => {}
        }
    }
    connected.sort_unstable();
    accepted.sort_unstable();
    (connected, accepted)
}

#[test]
fn packets_are_marked_by_policies_of_the_client_and_of_the_servers_adapter() {
    let server = server();
    let policies = PoaPolicies { network_priority: Some(NetworkPriority::Mapped), ..propagated() };
    let served = serve(&server, policies, &Seen::default());
    let plain: ProbeRef = {
        let poa = server.root_poa().create_poa("plain", None, propagated()).unwrap();
        poa.activate(Hooked::new(|| Ok(()))).unwrap()
    };
    let port = served.object().ior().iiop_profiles().next().unwrap().port();
    let client = client();
    let marked = |network_priority| ClientPolicies {
        network_priority: Some(network_priority),
        ..ClientPolicies::NONE
    };
    let object = reference_in(&client, &served);
    let current = client.rt_current().unwrap();
    std::thread::scope(|scope| {
        let calls = || {
            current.set_priority(Priority::MAX).unwrap();
            object.ping().unwrap();
            assert_eq!(code_points(port), (vec![0], vec![56]));
            // By the reference, the thread and the ORB: a connection for each code point.
            let expedited = NetworkPriority::Fixed(CodePoint::new(46).unwrap());
            object.with_client_policies(marked(expedited)).ping().unwrap();
            assert_eq!(code_points(port), (vec![0, 46], vec![56, 56]));
            set_thread_policies(marked(NetworkPriority::Mapped));
            object.ping().unwrap();
            current.set_priority(priority(2_000)).unwrap();
            object.ping().unwrap();
            object.ping().unwrap();
            assert_eq!(code_points(port), (vec![0, 8, 46, 56], vec![8, 56, 56, 56]));
            set_thread_policies(ClientPolicies::NONE);
            client.set_client_policies(marked(expedited));
            object.ping().unwrap();
            assert_eq!(code_points(port), (vec![0, 8, 46, 56], vec![8, 8, 56, 56]));
            // An adapter without marks answers without any.
            reference_in(&client, &plain).ping().unwrap();
            assert_eq!(code_points(port), (vec![0, 8, 46, 56], vec![0, 8, 56, 56]));
        };
        scope.spawn(calls).join().unwrap();
    });
    let unmodelled = PoaPolicies { priority_model: None, ..policies };
    match server.root_poa().create_poa("unmodelled", None, unmodelled) {
        Err(PoaError::InvalidPolicy { policy, index, .. }) => {
            assert_eq!((policy, index), (PoaPolicyType::NetworkPriority, 11));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn replies_of_counted_and_of_watched_requests_are_marked() {
    for (requests_max, watch) in
        [(Some(4), None), (None, Some(WatchConfig::new())), (Some(4), Some(WatchConfig::new()))]
    {
        let config = watch.map_or_else(real_time, |watch| real_time().watch(watch));
        let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().real_time(config);
        builder.config().server_requests_max = requests_max;
        let server = builder.build().unwrap();
        let expedited = NetworkPriority::Fixed(CodePoint::new(46).unwrap());
        let policies = PoaPolicies { network_priority: Some(expedited), ..propagated() };
        let served = serve(&server, policies, &Seen::default());
        let port = served.object().ior().iiop_profiles().next().unwrap().port();
        let client = client();
        reference_in(&client, &served).ping().unwrap();
        assert_eq!(
            code_points(port).1,
            [46],
            "serverRequestsMax {requests_max:?}, watched: {}",
            watch.is_some()
        );
    }
}
