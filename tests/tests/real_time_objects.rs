//! Objects with a priority of their own (RTCORBA 1.2, 5.7.4): their references, and the priority that their servants run at.

use std::sync::{Arc, Mutex};

use ironorb::giop::ior::{IiopProfile, Ior};
use ironorb::interceptor::{RequestFacts, ServerContext, ServerInterceptor};
use ironorb::poa::{
    Cookie, IdAssignment, ImplicitActivation, Lifespan, ObjectId, PoaError, RequestProcessing,
    ServantActivator, ServantLocator, ServantRetention, ThreadModel, Unavailable,
};
use ironorb::rt::{Priority, PriorityBand, PriorityBands, PriorityModel};
use ironorb::status::Snapshot;
use ironorb::{
    LaneConfig, ObjectRef, Orb, OrbBuilder, Poa, PoaPolicies, Servant, ServerConcurrency, SystemException,
    SystemExceptionKind, TypedRef, poa::IdUniqueness,
};
use ironorb_tests::real_time::{priority, real_time, server_of};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, eventually, raw};

fn lane(number: i16, endpoint: &str) -> LaneConfig {
    LaneConfig::new(&format!("of {number}")).endpoint(endpoint).priority(priority(number))
}

fn server_with_lanes(numbers: &[i16]) -> Orb {
    let add = |orb: OrbBuilder, number: &i16| orb.lane(lane(*number, "iiop://127.0.0.1:0"));
    numbers.iter().fold(server_of(real_time()), add).build().unwrap()
}

fn declared(number: i16) -> PoaPolicies {
    let model = PriorityModel::ServerDeclared(priority(number));
    PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() }
}

/// The lanes and the priorities of upcalls.
type Seen = Arc<Mutex<Vec<(String, i16)>>>;

fn taken(seen: &Seen) -> Vec<(String, i16)> {
    std::mem::take(&mut seen.lock().unwrap())
}

/// The priorities of upcalls in the default lane.
fn taken_in_default_lane(seen: &Seen) -> Vec<i16> {
    taken(seen).into_iter().map(|(lane, number)| if lane.is_empty() { number } else { -1 }).collect()
}

/// A servant that notes its lane and its priority.
fn noting(server: &Orb, seen: &Seen) -> Hooked {
    let (orb, seen, current) = (server.clone(), seen.clone(), server.rt_current().unwrap());
    Hooked::new(move || {
        let lane = orb.current_lane().name().to_owned();
        let number = current.priority()?.number();
        seen.lock().unwrap().push((lane, number));
        Ok(())
    })
}

fn untyped(server: &Orb, seen: &Seen) -> Arc<dyn Servant> {
    ironorb::servant::<ProbeRef, _>(Arc::new(noting(server, seen)))
}

fn reference_in(client: &Orb, served: &ObjectRef) -> ProbeRef {
    client.string_to_object(&served.to_ior_string()).unwrap().narrow_unchecked()
}

fn model_in(client: &Orb, served: &ObjectRef) -> Option<i16> {
    match reference_in(client, served).object().priority_model() {
        Some(PriorityModel::ServerDeclared(priority)) => Some(priority.number()),
        _ => None,
    }
}

fn client() -> Orb {
    Orb::builder().real_time(real_time()).build().unwrap()
}

struct Passive;
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

/// Three objects of one adapter, whose keys differ only in the priority and the id. The second has none of its own.
fn three_objects(server: &Orb, policies: PoaPolicies, seen: &Seen) -> [ProbeRef; 3] {
    let poa = server.root_poa().create_poa("objects", None, policies).unwrap();
    match policies.id_assignment {
        IdAssignment::System => [
            poa.activate_with_priority(noting(server, seen), priority(700)).unwrap(),
            poa.activate(noting(server, seen)).unwrap(),
            poa.activate_with_priority(noting(server, seen), priority(900)).unwrap(),
        ],
        IdAssignment::User => [
            poa.activate_with_id_and_priority("a", noting(server, seen), priority(700)).unwrap(),
            poa.activate_with_id("b", noting(server, seen)).unwrap(),
            poa.activate_with_id_and_priority("c", noting(server, seen), priority(900)).unwrap(),
        ],
    }
}

/// One call of each object in turn, and many in a row: requests are parsed first and recognised later.
fn called_in_every_order(objects: &[ProbeRef; 3], seen: &Seen) {
    for _ in 0..200 {
        objects.iter().for_each(|object| object.ping().unwrap());
    }
    assert_eq!(taken_in_default_lane(seen), [700, 500, 900].repeat(200));
    for (object, number) in objects.iter().zip([700, 500, 900]) {
        (0..200).for_each(|_| object.ping().unwrap());
        object.ping_async().wait().unwrap();
        assert_eq!(taken_in_default_lane(seen), [number; 201]);
    }
}

#[test]
fn a_servant_runs_at_the_priority_of_its_object_in_every_way_to_it() {
    let servers = [
        server_of(real_time()),
        server_of(real_time()).server_interceptor(Passive),
        server_of(real_time()).server_context(Reads),
        server_of(real_time()).deadline_propagation(true),
    ];
    let by_slot = declared(500);
    let by_id = PoaPolicies { id_assignment: IdAssignment::User, ..declared(500) };
    let persistent = PoaPolicies { lifespan: Lifespan::Persistent, ..by_id };
    let one_thread = PoaPolicies { thread: ThreadModel::SingleThread, ..declared(500) };
    for server in servers {
        for policies in [&by_slot, &by_id, &persistent, &one_thread] {
            let (server, seen) = (server.clone().build().unwrap(), Seen::default());
            let served = three_objects(&server, *policies, &seen);
            for client in [client(), Orb::builder().build().unwrap()] {
                let objects = served.each_ref().map(|served| reference_in(&client, served.object()));
                called_in_every_order(&objects, &seen);
            }
            // Within the process, too.
            called_in_every_order(&served, &seen);
            server.shutdown(true).unwrap();
        }
    }
}

/// Whether the request that this thread carries out was recognised by its bytes.
fn is_recognised() -> bool {
    #[cfg(debug_assertions)]
    return ironorb::testing::is_request_cached();
    #[cfg(not(debug_assertions))]
    panic!("only a build with debug assertions tells which requests are recognised: test without --release");
}

/// One thread serves them, so all share a request cache.
#[test]
fn requests_of_objects_with_a_priority_are_recognised() {
    let one_thread = ServerConcurrency::LeaderFollowers { threads: 1 };
    let server = server_of(real_time()).concurrency(one_thread).build().unwrap();
    let recognised: Arc<Mutex<Vec<(i16, bool)>>> = Arc::default();
    let poa = server.root_poa().create_poa("objects", None, declared(500)).unwrap();
    let client = client();
    for number in [700, 500, 900] {
        let (current, noted) = (server.rt_current().unwrap(), recognised.clone());
        let servant = Hooked::new(move || {
            noted.lock().unwrap().push((current.priority()?.number(), is_recognised()));
            Ok(())
        });
        let served: ProbeRef = poa.activate_with_priority(servant, priority(number)).unwrap();
        let object = reference_in(&client, served.object());
        (0..200).for_each(|_| object.ping().unwrap());
        let all = std::mem::take(&mut *recognised.lock().unwrap());
        assert_eq!((all.first(), all.last()), (Some(&(number, false)), Some(&(number, true))));
    }
}

#[test]
fn the_reference_tells_the_priority_of_the_object_and_leads_to_its_lane() {
    let (server, client, seen) = (server_with_lanes(&[100, 200]), client(), Seen::default());
    let poa = server.root_poa().create_poa("objects", None, declared(100)).unwrap();
    let ours: ProbeRef = poa.activate_with_priority(noting(&server, &seen), priority(200)).unwrap();
    let other: ProbeRef = poa.activate(noting(&server, &seen)).unwrap();
    assert_eq!([ours.object(), other.object()].map(|it| model_in(&client, it)), [Some(200), Some(100)]);
    for client in [client, Orb::builder().build().unwrap()] {
        let objects = [&ours, &other].map(|it| reference_in(&client, it.object()));
        for _ in 0..200 {
            objects.iter().for_each(|object| object.ping().unwrap());
            assert_eq!(taken(&seen), [("of 200".to_owned(), 200), ("of 100".to_owned(), 100)]);
        }
    }
    assert_eq!(server.misplaced_requests(), 0);
}

#[test]
fn references_of_an_id_tell_the_priority_of_its_activation() {
    let (server, client, seen) = (server_of(real_time()).build().unwrap(), client(), Seen::default());
    let user = PoaPolicies { id_assignment: IdAssignment::User, ..declared(5) };
    for (name, policies) in [("slots", declared(5)), ("ids", user)] {
        let poa = server.root_poa().create_poa(name, None, policies).unwrap();
        let id = match poa.policies().id_assignment {
            IdAssignment::System => {
                poa.activate_object_with_priority(untyped(&server, &seen), priority(9)).unwrap()
            }
            IdAssignment::User => {
                let (id, servant) = (ObjectId::from("x"), untyped(&server, &seen));
                poa.activate_object_with_id_and_priority(&id, servant, priority(9)).unwrap();
                id
            }
        };
        let reference = poa.id_to_reference(&id).unwrap();
        assert_eq!(
            (poa.reference_to_id(&reference).unwrap(), model_in(&client, &reference)),
            (id.clone(), Some(9))
        );
        let again = poa.activate_object_with_id_and_priority(&id, untyped(&server, &seen), priority(7));
        assert!(matches!(again, Err(PoaError::ObjectAlreadyActive)));
        assert_eq!(model_in(&client, &poa.id_to_reference(&id).unwrap()), Some(9));
        // The next activation has the adapter's again.
        poa.deactivate(&id).unwrap();
        poa.activate_object_with_id(&id, untyped(&server, &seen)).unwrap();
        assert_eq!(model_in(&client, &poa.id_to_reference(&id).unwrap()), Some(5));
        // A reference keeps what it has told.
        reference_in(&client, &reference).ping().unwrap();
        reference_in(&client, &poa.id_to_reference(&id).unwrap()).ping().unwrap();
        assert_eq!(taken_in_default_lane(&seen), [9, 5]);
    }
}

struct Gives(Orb, Seen);

impl ServantActivator for Gives {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        Ok(untyped(&self.0, &self.1))
    }
}

impl ServantLocator for Gives {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Unavailable> {
        Ok((untyped(&self.0, &self.1), None))
    }
}

fn managed() -> PoaPolicies {
    PoaPolicies { request_processing: RequestProcessing::ServantManager, ..declared(500) }
}

/// An adapter for each way to find the servant of an object that is not active.
fn adapters_on_demand(server: &Orb, seen: &Seen) -> Vec<Poa> {
    let gives = || Arc::new(Gives(server.clone(), seen.clone()));
    let root = server.root_poa();
    let activated = root.create_poa("activated", None, managed()).unwrap();
    activated.set_servant_activator(gives()).unwrap();
    let located = PoaPolicies { servant_retention: ServantRetention::NonRetain, ..managed() };
    let located = root.create_poa("located", None, located).unwrap();
    located.set_servant_locator(gives()).unwrap();
    let default = PoaPolicies {
        request_processing: RequestProcessing::DefaultServant,
        id_uniqueness: IdUniqueness::Multiple,
        id_assignment: IdAssignment::User,
        ..declared(500)
    };
    let default = root.create_poa("default", None, default).unwrap();
    default.set_default_servant(untyped(server, seen)).unwrap();
    vec![activated, located, default]
}

#[test]
fn objects_that_are_not_active_are_served_at_the_priority_of_their_reference() {
    let (server, client, seen) = (server_of(real_time()).build().unwrap(), client(), Seen::default());
    for poa in adapters_on_demand(&server, &seen) {
        let id = ProbeRef::REPOSITORY_ID;
        let references = match poa.policies().id_assignment {
            IdAssignment::System => [
                poa.create_reference_with_priority(id, priority(700)).unwrap(),
                poa.create_reference(id).unwrap(),
                poa.create_reference_with_priority(id, priority(900)).unwrap(),
            ],
            IdAssignment::User => [
                poa.create_reference_with_id_and_priority("a", id, priority(700)).unwrap(),
                poa.create_reference_with_id("b", id).unwrap(),
                poa.create_reference_with_id_and_priority("c", id, priority(900)).unwrap(),
            ],
        };
        assert_eq!(references.each_ref().map(|it| model_in(&client, it)), [Some(700), Some(500), Some(900)]);
        called_in_every_order(&references.each_ref().map(|it| reference_in(&client, it)), &seen);
        called_in_every_order(&references.map(TypedRef::from_object), &seen);
    }
}

#[test]
fn a_reference_is_made_before_its_object_is_activated() {
    let (server, client, seen) = (server_of(real_time()).build().unwrap(), client(), Seen::default());
    let poa = server.root_poa().create_poa("objects", None, declared(500)).unwrap();
    let reference = poa.create_reference_with_priority(ProbeRef::REPOSITORY_ID, priority(700)).unwrap();
    let object = reference_in(&client, &reference);
    assert_eq!(object.ping().unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    let id = poa.reference_to_id(&reference).unwrap();
    poa.activate_object_with_id_and_priority(&id, untyped(&server, &seen), priority(700)).unwrap();
    object.ping().unwrap();
    assert_eq!(taken_in_default_lane(&seen), [700]);
    assert!(poa.id_to_reference(&id).unwrap().is_equivalent(&reference));
}

#[test]
fn a_request_that_waits_for_its_manager_keeps_the_priority_of_its_object() {
    let (server, seen) = (server_of(real_time()).build().unwrap(), Seen::default());
    let [object, ..] = three_objects(&server, declared(500), &seen);
    let manager = server.root_poa().find_poa("objects", false).unwrap().manager().clone();
    manager.hold_requests(false).unwrap();
    let mut stream = raw::connect(object.object());
    raw::write(&mut stream, &raw::request(object.object(), "ping", &[]));
    let held = |seen: Snapshot| seen.queues.into_iter().any(|it| it.name == "held_requests" && it.items == 1);
    eventually("the request waits", || held(server.status()));
    manager.activate().unwrap();
    raw::read_message(&mut stream);
    assert_eq!(taken_in_default_lane(&seen), [700]);
}

/// What each of the four operations answers.
fn refusals(poa: &Poa, server: &Orb, number: i16) -> [PoaError; 4] {
    let (priority, id) = (priority(number), ProbeRef::REPOSITORY_ID);
    let servant = || untyped(server, &Seen::default());
    [
        poa.activate_object_with_priority(servant(), priority).unwrap_err(),
        poa.activate_object_with_id_and_priority(&"x".into(), servant(), priority).unwrap_err(),
        poa.create_reference_with_priority(id, priority).unwrap_err(),
        poa.create_reference_with_id_and_priority("x", id, priority).unwrap_err(),
    ]
}

#[test]
fn an_adapter_that_declares_no_priority_or_activates_implicitly_gives_objects_none() {
    let server = server_of(real_time()).build().unwrap();
    let propagated = PriorityModel::ClientPropagated { default: Priority::MIN };
    let propagated = PoaPolicies { priority_model: Some(propagated), ..declared(5) };
    let implicit = PoaPolicies { implicit_activation: ImplicitActivation::Yes, ..declared(5) };
    let none = PoaPolicies { priority_model: None, ..declared(5) };
    for (name, policies) in [("propagated", propagated), ("implicit", implicit), ("none", none)] {
        let poa = server.root_poa().create_poa(name, None, policies).unwrap();
        for refused in refusals(&poa, &server, 5) {
            assert!(matches!(refused, PoaError::WrongPolicy(_)), "{name}: {refused:?}");
        }
        assert_eq!(poa.active_ids().next(), None);
    }
}

#[test]
fn a_priority_that_no_lane_and_no_band_has_is_refused() {
    let bands = PriorityBands::new(&[PriorityBand { low: 100, high: 149 }]);
    let banded = PoaPolicies { priority_bands: bands, ..declared(100) };
    let limited = server_of(real_time().propagated_priority_max(priority(300))).build().unwrap();
    for (server, policies, number, place) in [
        (server_with_lanes(&[100, 200]), declared(100), 150, "lane"),
        (server_with_lanes(&[100, 200]), banded, 200, "band"),
        (server_of(real_time()).build().unwrap(), banded, 150, "band"),
        (limited.clone(), declared(100), 301, "propagated_priority_max"),
    ] {
        let poa = server.root_poa().create_poa(place, None, policies).unwrap();
        for refused in refusals(&poa, &server, number) {
            assert!(matches!(refused, PoaError::PriorityNotServed { .. }), "{refused:?}");
            let text = refused.to_string();
            assert!(text.contains(place) && text.contains(&number.to_string()), "{text}");
            assert_eq!(SystemException::from(refused).kind, SystemExceptionKind::BadParam);
        }
    }
    // At the limit, and at the adapter's own above it.
    for number in [300, 400] {
        let name = number.to_string();
        let poa = limited.root_poa().create_poa(&name, None, declared(number)).unwrap();
        poa.create_reference_with_priority(ProbeRef::REPOSITORY_ID, priority(number)).unwrap();
    }
}

/// The reference with another object key.
fn with_key(client: &Orb, reference: &ObjectRef, key: &[u8]) -> ProbeRef {
    let ior = reference.to_ior();
    let profile = ior.iiop_profiles().next().unwrap();
    let forged = IiopProfile::new(profile.version(), profile.host(), profile.port(), key, &[]).unwrap();
    client.ior_to_object(Ior::with_profile(ior.type_id.clone(), forged)).unwrap().narrow_unchecked()
}

/// The keys of an object that a client makes of the key of an object without a priority of its own.
#[test]
fn a_client_that_writes_a_key_gains_no_priority() {
    let limited = real_time().propagated_priority_max(priority(600));
    let propagated = PriorityModel::ClientPropagated { default: priority(3) };
    let propagated = PoaPolicies { priority_model: Some(propagated), ..declared(5) };
    let implicit = PoaPolicies { implicit_activation: ImplicitActivation::Yes, ..declared(5) };
    for (policies, served_at) in [(declared(5), 5), (implicit, 5), (propagated, 3)] {
        let (server, client, seen) = (server_of(limited.clone()).build().unwrap(), client(), Seen::default());
        let poa = server.root_poa().create_poa("objects", None, policies).unwrap();
        let served: ProbeRef = poa.activate(noting(&server, &seen)).unwrap();
        let ior = served.object().to_ior();
        let key = ior.iiop_profiles().next().unwrap().object_key().to_vec();
        let claiming = |number: i16, key: &[u8]| [b"IO\x04", &number.to_be_bytes()[..], key].concat();
        for number in [601, i16::MAX, -1] {
            let object = with_key(&client, served.object(), &claiming(number, &key));
            (0..200).for_each(|_| object.ping().unwrap());
            assert_eq!(taken_in_default_lane(&seen), [served_at; 200], "{number}");
        }
        // Two priorities, and many: a message is no measure for the stack.
        let mut many = key.clone();
        for depth in [2, 2_000] {
            (0..depth).for_each(|_| many = claiming(5, &many));
            let refused = with_key(&client, served.object(), &many).ping().unwrap_err();
            assert_eq!(refused.kind, SystemExceptionKind::ObjectNotExist);
        }
    }
}

fn persistent_server(default: &str, lane_at: (i16, &str), seen: &Seen) -> (Orb, Poa) {
    let orb = Orb::builder().endpoint(default).unwrap().real_time(real_time());
    let orb = orb.lane(lane(lane_at.0, lane_at.1)).build().unwrap();
    let policies =
        PoaPolicies { lifespan: Lifespan::Persistent, id_assignment: IdAssignment::User, ..managed() };
    let poa = orb.root_poa().create_poa("kept", None, policies).unwrap();
    poa.set_servant_activator(Arc::new(Gives(orb.clone(), seen.clone()))).unwrap();
    (orb, poa)
}

#[test]
fn the_priority_of_a_persistent_object_outlives_its_server() {
    let (client, seen) = (client(), Seen::default());
    let (first, poa) = persistent_server("iiop://127.0.0.1:0", (700, "iiop://127.0.0.1:0"), &seen);
    let id = ProbeRef::REPOSITORY_ID;
    let reference = poa.create_reference_with_id_and_priority("four", id, priority(700)).unwrap();
    let object = reference_in(&client, &reference);
    object.ping().unwrap();
    assert_eq!(taken(&seen), [("of 700".to_owned(), 700)]);
    let default = format!("iiop://{}", first.published_addresses()[0]);
    let at_lane = reference.to_ior().iiop_profiles().next().unwrap().port();
    let at_lane = format!("iiop://127.0.0.1:{at_lane}");
    drop(poa);
    first.shutdown(true).unwrap();
    drop(first);
    // Nothing tells the second server of the object.
    let (second, poa) = persistent_server(&default, (700, &at_lane), &seen);
    object.ping().unwrap();
    assert_eq!(taken(&seen), [("of 700".to_owned(), 700)]);
    let again = poa.create_reference_with_id_and_priority("four", id, priority(700)).unwrap();
    assert!(again.is_equivalent(&reference));
    drop(poa);
    second.shutdown(true).unwrap();
    drop(second);
    // The third has no lane of the priority any more. A request there is served at the lane's, and is counted.
    let (third, _poa) = persistent_server(&default, (800, &at_lane), &seen);
    object.ping().unwrap();
    assert_eq!((taken(&seen), third.misplaced_requests()), (vec![("of 800".to_owned(), 800)], 1));
}
