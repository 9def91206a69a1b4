//! Priorities from the thread that calls to the servant (RTCORBA 1.2). These tests pass with and without real-time priorities
//! of the system; where it grants them, they look at those, too.

use std::sync::{Arc, Mutex};

use ironorb::giop::ior::{IiopProfile, Ior, TaggedComponent};
use ironorb::interceptor::{ClientInterceptor, RequestFacts, ServerContext, ServerInterceptor};
use ironorb::poa::{PoaError, PoaPolicyType};
use ironorb::rt::{
    DirectMapping, LinearMapping, Priority, PriorityMapping, PriorityModel, PriorityTransform,
    RealTimeConfig, RtCurrent,
};
use ironorb::{
    CompletionStatus, LaneConfig, MinorCode, ObjectRef, Orb, PoaPolicies, ServerConcurrency,
    SystemExceptionKind, TypedRef,
};
use ironorb_tests::real_time::{PROPAGATED, priority, real_time, server_of};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, raw};

/// The service context with a priority.
const RT_CORBA_PRIORITY: u32 = 10;

fn reference_in<R: TypedRef>(client: &Orb, served: &R) -> R {
    client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked()
}

/// The priorities at which servants ran; `None` where the thread had none.
type Seen = Arc<Mutex<Vec<Option<Priority>>>>;

fn taken(seen: &Seen) -> Vec<Option<Priority>> {
    std::mem::take(&mut seen.lock().unwrap())
}

/// Activates a servant that notes its priority, in an adapter with this model.
fn serve(server: &Orb, model: Option<PriorityModel>, seen: &Seen) -> ProbeRef {
    let (seen, current) = (seen.clone(), server.rt_current().unwrap());
    let servant = Hooked::new(move || {
        seen.lock().unwrap().push(current.priority().ok());
        Ok(())
    });
    let policies = PoaPolicies { priority_model: model, ..PoaPolicies::default() };
    let poa = server.root_poa().create_poa("real time", None, policies).unwrap();
    poa.activate(servant).unwrap()
}

/// Runs `body` on a thread whose priority nothing has set.
fn on_new_thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(body).join().unwrap())
}

struct Passive;
impl ClientInterceptor for Passive {}
impl ServerInterceptor for Passive {}

struct Reads;
impl ServerContext for Reads {
    fn id(&self) -> u32 {
        0x494F_0049
    }
    fn serve(&self, _: &RequestFacts<'_>, _: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        upcall();
    }
}

#[test]
fn a_servant_runs_at_the_priority_of_its_caller_in_every_way_to_it() {
    let servers = [
        server_of(real_time()),
        server_of(real_time()).concurrency(ServerConcurrency::LeaderFollowers { threads: 1 }),
        server_of(real_time()).concurrency(ServerConcurrency::Hybrid { threads_max: 2 }),
        server_of(real_time()).server_interceptor(Passive),
        server_of(real_time()).server_context(Reads),
        server_of(real_time()).deadline_propagation(true),
    ];
    let clients = [
        Orb::builder().real_time(real_time()),
        Orb::builder().real_time(real_time()).client_interceptor(Passive),
        Orb::builder().real_time(real_time()).deadline_propagation(true),
        Orb::builder().real_time(real_time()).giop_version(ironorb::Version::V1_1),
    ];
    for server in servers {
        let server = server.build().unwrap();
        let seen = Seen::default();
        let served = serve(&server, Some(PROPAGATED), &seen);
        for client in &clients {
            let client = client.clone().build().unwrap();
            let object = reference_in(&client, &served);
            on_new_thread(|| {
                let current = client.rt_current().unwrap();
                for number in [0, 1, 1_000, 32_767] {
                    current.set_priority(priority(number)).unwrap();
                    // The first requests are parsed, and later ones are recognised.
                    for _ in 0..140 {
                        object.ping().unwrap();
                    }
                    object.ping_async().wait().unwrap();
                    assert_eq!(taken(&seen), vec![Some(priority(number)); 141]);
                    assert_eq!(current.priority().unwrap(), priority(number));
                }
            });
        }
        server.shutdown(true).unwrap();
    }
}

#[test]
fn the_model_is_in_the_reference_and_orbs_without_real_time_pass_over_it() {
    let server = server_of(real_time()).build().unwrap();
    let seen = Seen::default();
    let model = PriorityModel::ClientPropagated { default: priority(77) };
    let served = serve(&server, Some(model), &seen);
    let client = Orb::builder().real_time(real_time()).build().unwrap();
    assert_eq!(reference_in(&client, &served).object().priority_model(), Some(model));
    let plain = Orb::builder().build().unwrap();
    let object = reference_in(&plain, &served);
    assert_eq!((object.object().priority_model(), plain.rt_current().is_none()), (None, true));
    object.ping().unwrap();
    // A thread without a priority tells none either.
    let object = reference_in(&client, &served);
    on_new_thread(|| object.ping().unwrap());
    assert_eq!(taken(&seen), [Some(priority(77)), Some(priority(77))]);
    // Without a model the thread has no priority.
    let root: ProbeRef = server.root_poa().activate(Hooked::new(|| Ok(()))).unwrap();
    assert_eq!(reference_in(&client, &root).object().priority_model(), None);
}

#[test]
fn a_servant_with_a_declared_priority_runs_at_it_whatever_its_caller_has() {
    let server = server_of(real_time()).build().unwrap();
    let seen = Seen::default();
    let served = serve(&server, Some(PriorityModel::ServerDeclared(priority(500))), &seen);
    let client = Orb::builder().real_time(real_time()).build().unwrap();
    let object = reference_in(&client, &served);
    on_new_thread(|| {
        object.ping().unwrap();
        client.rt_current().unwrap().set_priority(priority(9)).unwrap();
        for _ in 0..200 {
            object.ping().unwrap();
        }
    });
    assert_eq!(taken(&seen), [Some(priority(500)); 201]);
    // A call within the process runs at it, too, and then the thread has its own again.
    on_new_thread(|| {
        let current = server.rt_current().unwrap();
        current.set_priority(priority(3)).unwrap();
        for _ in 0..200 {
            served.ping().unwrap();
        }
        assert_eq!(current.priority().unwrap(), priority(3));
    });
    assert_eq!(taken(&seen), [Some(priority(500)); 200]);
}

#[test]
fn a_call_within_the_process_keeps_the_priority_that_it_propagates() {
    let server = server_of(real_time()).build().unwrap();
    let seen = Seen::default();
    let served = serve(&server, Some(PROPAGATED), &seen);
    on_new_thread(|| {
        server.rt_current().unwrap().set_priority(priority(12)).unwrap();
        for _ in 0..200 {
            served.ping().unwrap();
        }
    });
    assert_eq!(taken(&seen), [Some(priority(12)); 200]);
}

/// The priority that a reply tells, and what the servant has seen.
fn echoed(object: &ObjectRef, operation: &str, data: &[u8]) -> Option<i16> {
    let mut stream = raw::connect(object);
    raw::write(
        &mut stream,
        &raw::request_with(object, operation, &[(RT_CORBA_PRIORITY, data.to_vec())], &[]),
    );
    let reply = raw::read_message(&mut stream);
    // The id, the status, and the number of contexts; then the first context: its number, its length, and its data.
    let number = |at: usize| u32::from_ne_bytes(reply[at..at + 4].try_into().unwrap());
    match number(20) {
        0 => None,
        _ => {
            assert_eq!((number(24), number(28)), (RT_CORBA_PRIORITY, 4));
            Some(i16::from_ne_bytes([reply[34], reply[35]]))
        }
    }
}

#[test]
fn a_reply_echoes_the_priority_and_what_is_no_priority_does_no_harm() {
    let server = server_of(real_time().propagated_priority_max(priority(1_000))).build().unwrap();
    let seen = Seen::default();
    let model = PriorityModel::ClientPropagated { default: priority(5) };
    let served = serve(&server, Some(model), &seen);
    let object = served.object();
    // Big-endian, little-endian, above the limit, below 0, cut, and of no byte order.
    assert_eq!(echoed(object, "ping", &[0, 0, 0x01, 0x02]), Some(0x0102));
    assert_eq!(echoed(object, "ping", &[1, 0, 0x01, 0x02]), Some(0x0201));
    assert_eq!(echoed(object, "ping", &[0, 0, 0x7F, 0xFF]), Some(0x7FFF));
    assert_eq!(echoed(object, "ping", &[0, 0, 0xFF, 0xFF]), Some(-1));
    assert_eq!(echoed(object, "ping", &[0, 0, 1]), None);
    assert_eq!(echoed(object, "ping", &[]), None);
    assert_eq!(echoed(object, "ping", &[9, 0, 1, 1]), None);
    let expected = [0x0102, 0x0201, 1_000, 5, 5, 5, 5].map(|number| Some(priority(number)));
    assert_eq!(
        taken(&seen),
        [&[Some(priority(0x0102)), Some(priority(0x0201).min(priority(1_000)))], &expected[2..]].concat()
    );
    // An exception tells it, too.
    assert_eq!(echoed(object, "no_such_operation", &[0, 0, 0, 7]), Some(7));
}

struct Doubles;

impl PriorityTransform for Doubles {
    fn inbound(&self, priority: Priority, object_id: &[u8]) -> Option<Priority> {
        assert!(!object_id.is_empty());
        priority.number().checked_mul(2).and_then(Priority::new)
    }

    fn outbound(&self, priority: Priority, _: &ObjectRef) -> Option<Priority> {
        priority.number().checked_add(1).and_then(Priority::new)
    }
}

#[test]
fn transforms_change_priorities_on_their_way() {
    let server = server_of(real_time().transform(Doubles)).build().unwrap();
    let seen = Seen::default();
    let served = serve(&server, Some(PROPAGATED), &seen);
    let client = Orb::builder().real_time(real_time().transform(Doubles)).build().unwrap();
    let object = reference_in(&client, &served);
    on_new_thread(|| {
        let current = client.rt_current().unwrap();
        current.set_priority(priority(20)).unwrap();
        for _ in 0..200 {
            object.ping().unwrap();
        }
        assert_eq!(taken(&seen), [Some(priority(42)); 200]);
        // Twice this is no priority.
        current.set_priority(priority(20_000)).unwrap();
        let refused = object.ping().unwrap_err();
        assert_eq!(
            (refused.kind, refused.minor),
            (SystemExceptionKind::DataConversion, MinorCode::DATA_CONVERSION_PRIORITY)
        );
        assert_eq!(refused.completed, CompletionStatus::No);
        assert_eq!(taken(&seen), []);
    });
}

fn refused(current: &RtCurrent, number: i16) -> (SystemExceptionKind, MinorCode) {
    let e = current.set_priority(priority(number)).unwrap_err();
    (e.kind, e.minor)
}

#[test]
fn a_thread_has_no_priority_before_one_is_set_and_none_that_is_not_mapped() {
    let orb = Orb::builder().real_time(RealTimeConfig::new().mapping(DirectMapping)).build().unwrap();
    let current = orb.rt_current().unwrap();
    on_new_thread(|| {
        assert_eq!(current.priority().unwrap_err().kind, SystemExceptionKind::Initialize);
        let unmapped = (SystemExceptionKind::DataConversion, MinorCode::DATA_CONVERSION_PRIORITY);
        assert_eq!(refused(&current, 0), unmapped);
        assert_eq!(refused(&current, 100), unmapped);
        assert_eq!(current.priority().unwrap_err().kind, SystemExceptionKind::Initialize);
        assert_eq!(Priority::new(-1), None);
    });
}

#[test]
fn what_needs_real_time_is_refused_without_it() {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let policies = PoaPolicies { priority_model: Some(PROPAGATED), ..PoaPolicies::default() };
    match orb.root_poa().create_poa("real time", None, policies) {
        Err(PoaError::InvalidPolicy { policy, index, .. }) => {
            assert_eq!((policy, index), (PoaPolicyType::PriorityModel, 7));
        }
        other => panic!("{other:?}"),
    }
    let lane = || LaneConfig::new("urgent").priority(Priority::MAX);
    let error = Orb::builder().lane(lane()).build().unwrap_err().to_string();
    assert!(error.contains("urgent") && error.contains("real_time"), "{error}");
    let direct = RealTimeConfig::new().mapping(DirectMapping);
    let error = Orb::builder().lane(lane()).real_time(direct).build().unwrap_err().to_string();
    assert!(error.contains("urgent") && error.contains("32767"), "{error}");
}

/// Where the system grants real-time priorities, threads have them.
#[test]
fn the_threads_of_a_lane_have_its_priority_and_no_client_moves_them() {
    let (low, high) = (priority(2_000), priority(30_000));
    let mapping = LinearMapping::default();
    let lane = |name: &str, priority: Priority| {
        LaneConfig::new(name).endpoint("iiop://127.0.0.1:0").priority(priority)
    };
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().real_time(RealTimeConfig::new());
    let server = server.lane(lane("low", low)).lane(lane("high", high)).build().unwrap();
    let natives: Arc<Mutex<Vec<i32>>> = Arc::default();
    let (seen, noted) = (Seen::default(), natives.clone());
    let (priorities, current) = (seen.clone(), server.rt_current().unwrap());
    let servant = Hooked::new(move || {
        priorities.lock().unwrap().push(current.priority().ok());
        noted.lock().unwrap().push(native_priority());
        Ok(())
    });
    let policies = PoaPolicies { priority_model: Some(PROPAGATED), ..PoaPolicies::default() };
    let poa = server.root_poa().create_poa("lanes", None, policies).unwrap();
    let served: ProbeRef = poa.activate(servant).unwrap();
    let client = Orb::builder().real_time(real_time()).build().unwrap();
    let mut misplaced = server.misplaced_requests();
    // The system may grant low priorities and refuse high ones.
    let native_of = |priority: Priority| {
        let is_granted = on_new_thread(|| server.rt_current().unwrap().set_priority(priority).is_ok());
        if is_granted { i32::from(mapping.to_native(priority).unwrap()) } else { 0 }
    };
    for (name, of_lane) in [("low", low), ("high", high)] {
        let at_lane = server.lane(name).unwrap().reference(served.object()).unwrap();
        let object: ProbeRef = client.string_to_object(&at_lane.to_ior_string()).unwrap().narrow_unchecked();
        on_new_thread(|| {
            // The lane's own priority, and one that does not belong there.
            for number in [of_lane.number(), 7] {
                client.rt_current().unwrap().set_priority(priority(number)).unwrap();
                object.ping().unwrap();
            }
        });
        assert_eq!(taken(&seen), [Some(of_lane); 2]);
        assert_eq!(
            std::mem::replace(&mut misplaced, server.misplaced_requests()) + 1,
            server.misplaced_requests()
        );
        assert_eq!(std::mem::take(&mut *natives.lock().unwrap()), [native_of(of_lane); 2]);
    }
    // Threads of the default lane have none of their own: the servant has that of the request meanwhile.
    let object = reference_in(&client, &served);
    on_new_thread(|| {
        client.rt_current().unwrap().set_priority(high).unwrap();
        object.ping().unwrap();
    });
    let native = native_of(high);
    assert_eq!(
        (taken(&seen), std::mem::take(&mut *natives.lock().unwrap())),
        (vec![Some(high)], vec![native])
    );
}

/// Where the system grants real-time priorities. The process may have waited already when other tests have run in it.
#[test]
fn a_thread_of_a_lane_waits_for_no_processor_when_it_begins_to_serve_by_leases() {
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0").priority(priority(30_000));
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().real_time(RealTimeConfig::new());
    let server = server.lane(lane).build().unwrap();
    let served: ProbeRef = server.root_poa().activate(Hooked::new(|| Ok(()))).unwrap();
    let at_lane = server.lane("urgent").unwrap().reference(served.object()).unwrap();
    let client = Orb::builder().build().unwrap();
    let object: ProbeRef = client.string_to_object(&at_lane.to_ior_string()).unwrap().narrow_unchecked();
    // The server asserts it in builds with debug assertions. Only after some requests of one object it serves by lease.
    (0..200).for_each(|_| object.ping().unwrap());
    server.shutdown(true).unwrap();
}

/// The calling thread's priority in a real-time class of the system; 0 in another class.
fn native_priority() -> i32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // The 40th field, counted from the one behind the name, which is in parentheses.
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields.skip(37).map(|field| field.parse().unwrap()).next().unwrap()
}

/// A server with lanes of these priorities. Its servants note the name of the lane and their priority.
fn server_with_lanes(priorities: &[i16]) -> Orb {
    let mut builder = server_of(real_time());
    for number in priorities {
        let lane = LaneConfig::new(&format!("of {number}")).endpoint("iiop://127.0.0.1:0");
        builder = builder.lane(lane.priority(priority(*number)));
    }
    builder.build().unwrap()
}

type Lanes = Arc<Mutex<Vec<(String, i16)>>>;

fn noting_lanes(server: &Orb, lanes: &Lanes) -> Hooked {
    let (orb, lanes, current) = (server.clone(), lanes.clone(), server.rt_current().unwrap());
    Hooked::new(move || {
        let lane = (orb.current_lane().name().to_owned(), current.priority()?.number());
        lanes.lock().unwrap().push(lane);
        Ok(())
    })
}

fn in_adapter(server: &Orb, name: &str, model: PriorityModel, servant: Hooked) -> ProbeRef {
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    server.root_poa().create_poa(name, None, policies).unwrap().activate(servant).unwrap()
}

/// One reference leads callers of each priority to the lane of that priority, by every way that calls take.
#[test]
fn a_call_reaches_the_lane_of_its_priority() {
    let server = server_with_lanes(&[100, 200]);
    let lanes = Lanes::default();
    let served = in_adapter(&server, "propagated", PROPAGATED, noting_lanes(&server, &lanes));
    for client in [
        Orb::builder().real_time(real_time()),
        Orb::builder().real_time(real_time()).client_interceptor(Passive),
    ] {
        let client = client.build().unwrap();
        let object = reference_in(&client, &served);
        on_new_thread(|| {
            let current = client.rt_current().unwrap();
            for round in 0..3 {
                for (number, lane) in [(200, "of 200"), (100, "of 100"), (150, "")] {
                    current.set_priority(priority(number)).unwrap();
                    for _ in 0..70 {
                        object.ping().unwrap();
                    }
                    object.ping_async().wait().unwrap();
                    let expected = vec![(lane.to_owned(), number); 71];
                    assert_eq!(std::mem::take(&mut *lanes.lock().unwrap()), expected, "{round}");
                }
            }
        });
    }
    assert_eq!(server.misplaced_requests(), 0);
    // Clients without real time, and threads without a priority, reach the default lane.
    let plain = Orb::builder().build().unwrap();
    reference_in(&plain, &served).ping().unwrap();
    let client = Orb::builder().real_time(real_time()).build().unwrap();
    on_new_thread(|| reference_in(&client, &served).ping().unwrap());
    assert_eq!(*lanes.lock().unwrap(), vec![(String::new(), 0); 2]);
}

#[test]
fn a_declared_priority_is_served_by_its_lane_whoever_calls() {
    let server = server_with_lanes(&[100, 200]);
    let lanes = Lanes::default();
    let declared = |number| PriorityModel::ServerDeclared(priority(number));
    let in_lane = in_adapter(&server, "200", declared(200), noting_lanes(&server, &lanes));
    let in_none = in_adapter(&server, "300", declared(300), noting_lanes(&server, &lanes));
    for client in [Orb::builder(), Orb::builder().real_time(real_time())] {
        let client = client.build().unwrap();
        on_new_thread(|| {
            if let Some(current) = client.rt_current() {
                current.set_priority(priority(100)).unwrap();
            }
            reference_in(&client, &in_lane).ping().unwrap();
            reference_in(&client, &in_none).ping().unwrap();
        });
        let expected = [("of 200".to_owned(), 200), (String::new(), 300)];
        assert_eq!(std::mem::take(&mut *lanes.lock().unwrap()), expected);
    }
    assert_eq!(server.misplaced_requests(), 0);
}

/// The address for the priority is tried first, and is not the only one.
#[test]
fn a_lane_that_does_not_answer_leaves_the_other_addresses() {
    let server = server_with_lanes(&[100]);
    let lanes = Lanes::default();
    let served = in_adapter(&server, "propagated", PROPAGATED, noting_lanes(&server, &lanes));
    let ior = served.object().to_ior();
    let profile = ior.iiop_profiles().next().unwrap();
    let mut endpoints = profile.components().find_map(|it| it.tao_endpoints()).unwrap().unwrap();
    assert_eq!(endpoints.iter().map(|endpoint| endpoint.priority).collect::<Vec<_>>(), [-1, 100]);
    assert_eq!((&*endpoints[0].host, endpoints[0].port), (profile.host(), profile.port()));
    let (listener, port) = raw::listen();
    drop(listener);
    endpoints[1].port = port;
    let others = profile.components().filter(|it| it.tao_endpoints().is_none());
    let components: Vec<_> =
        others.chain([TaggedComponent::new_tao_endpoints(&endpoints).unwrap()]).collect();
    let moved = IiopProfile::new(
        profile.version(),
        profile.host(),
        profile.port(),
        profile.object_key(),
        &components,
    );
    let moved = Ior::with_profile(ior.type_id.clone(), moved.unwrap());
    let client = Orb::builder().real_time(real_time()).build().unwrap();
    let object: ProbeRef = client.ior_to_object(moved).unwrap().narrow_unchecked();
    on_new_thread(|| {
        client.rt_current().unwrap().set_priority(priority(100)).unwrap();
        for _ in 0..3 {
            object.ping().unwrap();
        }
    });
    assert_eq!(*lanes.lock().unwrap(), vec![(String::new(), 100); 3]);
}
