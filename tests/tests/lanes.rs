//! Lanes: while a test holds the work of one lane at a gate, a call of another completes.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ironorb::poa::{
    AdapterActivator, ObjectId, PoaPolicies, RequestProcessing, ServantActivator, Unavailable,
};
use ironorb::status::{STATUS_KEY, Status as _, StatusRef};
use ironorb::{
    Call, Lane, LaneConfig, MinorCode, ObjectRef, Orb, OrbBuilder, Poa, Replied, Reply, Servant,
    ServerConcurrency, SystemException, SystemExceptionKind, TypedRef, with_timeout,
};
use ironorb_tests::gate::{Gate, GatedTransport};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually, raw};

/// An ORB with a further lane, and that lane.
fn with_lane(builder: OrbBuilder, lane: LaneConfig) -> (Orb, Lane) {
    let orb = builder.lane(lane).build().unwrap();
    let lane = orb.lane("urgent").unwrap();
    (orb, lane)
}

/// A client with a lane.
fn client() -> (Orb, Lane) {
    with_lane(Orb::builder().no_endpoint(), LaneConfig::new("urgent"))
}

/// A server, and its only object.
fn server() -> (Orb, ProbeRef) {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = orb.root_poa().activate(Probing::default()).unwrap();
    (orb, probe)
}

fn reference(orb: &Orb, object: &ObjectRef) -> ProbeRef {
    ProbeRef::from_object(orb.string_to_object(&object.to_ior_string()).unwrap())
}

/// Calls an object in both ways that a client has, in a lane.
fn call_in(lane: &Lane, probe: &ProbeRef) {
    lane.run(|| {
        // The asynchronous call goes first: a thread of the lane must connect for it.
        assert_eq!(probe.add_async(2, 3).wait(), Ok(5));
        probe.ping().unwrap();
    });
}

/// Has threads begin work in the default lane, and holds them at a gate while `then` runs in the test's thread.
fn while_held(gate: &Gate, work: Vec<Box<dyn FnOnce() + Send + '_>>, then: impl FnOnce()) {
    thread::scope(|scope| {
        let _open = gate.open_at_end();
        let count = work.len();
        let threads: Vec<_> = work.into_iter().map(|work| scope.spawn(work)).collect();
        eventually("the work of the default lane is held", || gate.held() >= count);
        then();
        assert!(gate.held() >= count, "it is held all the time");
        gate.open();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn lanes_are_found_by_name_and_threads_are_in_one_at_a_time() {
    let (orb, urgent) = client();
    let names: Vec<_> = orb.lanes().iter().map(|lane| lane.name().to_owned()).collect();
    assert_eq!(names, ["", "urgent"]);
    assert!(orb.lane("other").is_none());
    assert_eq!(orb.current_lane().name(), "");
    urgent.run(|| {
        assert_eq!(orb.current_lane().name(), "urgent");
        orb.lane("").unwrap().run(|| assert_eq!(orb.current_lane().name(), ""));
        assert_eq!(orb.current_lane().name(), "urgent");
    });
    assert_eq!(orb.current_lane().name(), "");
}

#[test]
fn lanes_that_cannot_be_made_are_named() {
    let error = |lanes: Vec<LaneConfig>| {
        let builder = lanes.into_iter().fold(Orb::builder().no_endpoint(), OrbBuilder::lane);
        builder.build().map(drop).unwrap_err().to_string()
    };
    let twice = error(vec![LaneConfig::new("a"), LaneConfig::new("a")]);
    assert_eq!(twice, "lane \"a\": another lane has this name; choose one for each lane");
    assert_eq!(error(vec![LaneConfig::new("")]), "lane \"\": a further lane needs a name");
    let address = error(vec![LaneConfig::new("a").endpoint("iiop:/nowhere")]);
    assert!(address.starts_with("lane \"a\": ") && address.contains("iiop:/nowhere"), "{address}");
    let many = error((0..64).map(|number| LaneConfig::new(&number.to_string())).collect());
    assert_eq!(many, "lane \"63\": an ORB has at most 64 lanes, the default lane included");
}

#[test]
fn a_lane_serves_at_its_own_endpoint_and_nested_calls_stay_in_it() {
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
    let (orb, urgent) = with_lane(Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap(), lane);
    let (_elsewhere, foreign) = server();
    let last = reference(&orb, foreign.object());
    let (tell, told) = mpsc::channel();
    let serving = orb.clone();
    let servant = Hooked::new(move || {
        last.ping()?;
        tell.send(serving.current_lane().name().to_owned()).unwrap();
        Ok(())
    });
    let probe: ProbeRef = orb.root_poa().activate(servant).unwrap();
    let (client, _) = client();
    for (at, name) in [(probe.object().clone(), ""), (urgent.reference(probe.object()).unwrap(), "urgent")] {
        reference(&client, &at).ping().unwrap();
        assert_eq!(told.recv().unwrap(), name);
    }
    assert_ne!(urgent.addresses(), orb.published_addresses());
    // A reference to the lane leads to the object in this process as well.
    let within = ProbeRef::from_object(urgent.reference(probe.object()).unwrap());
    assert_eq!(within.add(2, 3), Ok(5));
    // Only the ORB's own objects can be served by its lanes.
    let refused = urgent.reference(foreign.object()).unwrap_err();
    assert_eq!((refused.kind, refused.minor), (SystemExceptionKind::BadParam, MinorCode::WRONG_LANE));
}

#[test]
fn a_slow_name_look_up_holds_its_own_lane() {
    let gate = Gate::closed();
    let held = gate.clone();
    ironorb::testing::before_name_look_ups("held.invalid", move || held.pass());
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().publish("localhost");
    let server = builder.build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let (client, urgent) = client();
    let probe = reference(&client, probe.object());
    // As many as the ORB looks up at a time.
    let look_up = |number: usize| -> Box<dyn FnOnce() + Send + '_> {
        let object = client.string_to_object(&format!("corbaloc::{number}.held.invalid:9/x")).unwrap();
        Box::new(move || drop(with_timeout(None, || object.non_existent())))
    };
    while_held(&gate, (0..8).map(look_up).collect(), || call_in(&urgent, &probe));
}

#[test]
fn a_slow_connect_holds_its_own_lane() {
    let gated = GatedTransport::opened();
    gated.connect.close();
    let builder = Orb::builder().no_endpoint().transport(Arc::new(gated.clone())).background_threads_max(1);
    let (client, urgent) = with_lane(builder, LaneConfig::new("urgent"));
    let (_server, probe) = server();
    let slow = client.string_to_object(&GatedTransport::reference(probe.object())).unwrap();
    let (slow, probe) = (ProbeRef::from_object(slow), reference(&client, probe.object()));
    let work: Vec<Box<dyn FnOnce() + Send + '_>> =
        vec![Box::new(|| slow.ping().unwrap()), Box::new(|| assert_eq!(slow.add_async(1, 1).wait(), Ok(2)))];
    while_held(&gated.connect, work, || call_in(&urgent, &probe));
}

#[test]
fn a_slow_callback_holds_its_own_lane() {
    let gate = Gate::closed();
    let (client, urgent) = client();
    let (_server, probe) = server();
    let probe = reference(&client, probe.object());
    let held = gate.clone();
    let begin = || probe.ping_async().on_reply(move |_| held.pass());
    while_held(&gate, vec![Box::new(begin)], || {
        let (tell, told) = mpsc::channel();
        urgent.run(|| probe.add_async(2, 3).on_reply(move |sum| tell.send(sum).unwrap()));
        assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap(), Ok(5));
        call_in(&urgent, &probe);
    });
}

#[test]
fn a_full_socket_holds_its_own_lane() {
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connections_per_endpoint_max = 1;
    let (client, urgent) = with_lane(builder, LaneConfig::new("urgent"));
    let (listener, port) = raw::listen();
    let probe = client.string_to_object(&format!("corbaloc::127.0.0.1:{port}/probe")).unwrap();
    let probe = ProbeRef::from_object(probe);
    let gate = Gate::closed();
    thread::scope(|scope| {
        let _open = gate.open_at_end();
        // More than a socket's queues take, sent before anything is read.
        let flood = scope.spawn(|| with_timeout(None, || probe.reflect(&vec![0; 64 << 20])));
        let (first, _) = listener.accept().unwrap();
        let reads = gate.clone();
        scope.spawn(move || {
            let mut first = first;
            reads.pass();
            let request = raw::read_message(&mut first);
            raw::write(&mut first, &raw::reply(raw::id_of(&request), 0, &[0; 4]));
        });
        eventually("the reader of the flood waits", || gate.held() == 1);
        let answering = scope.spawn(move || {
            let (mut second, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut second);
            raw::write(&mut second, &raw::reply(raw::id_of(&request), 0, &[]));
        });
        urgent.run(|| probe.ping().unwrap());
        answering.join().unwrap();
        assert!(!flood.is_finished());
        gate.open();
        assert_eq!(flood.join().unwrap(), Ok(Vec::new()));
    });
}

#[test]
fn an_exhausted_budget_of_connections_is_its_lanes() {
    let mut builder = Orb::builder().no_endpoint();
    builder.config().client_connections_max = 1;
    let (client, urgent) = with_lane(builder, LaneConfig::new("urgent"));
    let ((_one, first), (_two, second)) = (server(), server());
    let (first, second) = (reference(&client, first.object()), reference(&client, second.object()));
    thread::scope(|scope| {
        let blocked = scope.spawn(|| first.block());
        let direct = ProbeRef::from_object(_one.string_to_object(&first.object().to_ior_string()).unwrap());
        eventually("the servant blocks", || direct.blocked() == Ok(1));
        let refused = second.ping().unwrap_err();
        assert_eq!(
            (refused.kind, refused.minor),
            (SystemExceptionKind::NoResources, MinorCode::TOO_MANY_CONNECTIONS)
        );
        call_in(&urgent, &second);
        direct.release().unwrap();
        blocked.join().unwrap().unwrap();
    });
}

#[test]
fn a_reaper_that_waits_holds_its_own_lane() {
    let gated = GatedTransport::opened();
    let mut builder = Orb::builder().no_endpoint().transport(Arc::new(gated.clone()));
    builder.config().client_idle_timeout = Some(Duration::from_millis(40));
    let (client, urgent) = with_lane(builder, LaneConfig::new("urgent"));
    let (_server, probe) = server();
    let probe = client.string_to_object(&GatedTransport::reference(probe.object())).unwrap();
    let probe = ProbeRef::from_object(probe);
    gated.shutdown.close();
    let _open = gated.shutdown.open_at_end();
    probe.ping().unwrap();
    eventually("the reaper of the default lane waits", || gated.shutdown.held() == 1);
    call_in(&urgent, &probe);
    eventually("the reaper of the other lane is another thread", || gated.shutdown.held() == 2);
}

#[test]
fn servants_that_take_all_threads_hold_their_own_lane() {
    for concurrency in [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 2 },
        ServerConcurrency::Hybrid { threads_max: 2 },
    ] {
        let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
        let mut builder = Orb::builder()
            .endpoint("iiop://127.0.0.1:0")
            .unwrap()
            .concurrency(concurrency)
            .server_threads_max(2);
        builder.config().server_requests_max = Some(2);
        let (orb, urgent) = with_lane(builder, lane);
        let gate = Gate::closed();
        let held = gate.clone();
        let slow: ProbeRef = orb
            .root_poa()
            .activate(Hooked::new(move || {
                held.pass();
                Ok(())
            }))
            .unwrap();
        let quick: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
        let quick = urgent.reference(quick.object()).unwrap();
        let clients: Vec<_> = (0..2).map(|_| client()).collect();
        let call = |(client, _): &(Orb, Lane)| -> Box<dyn FnOnce() + Send> {
            let slow = reference(client, slow.object());
            Box::new(move || slow.ping().unwrap())
        };
        while_held(&gate, clients.iter().map(call).collect(), || {
            let (client, urgent) = client();
            call_in(&urgent, &reference(&client, &quick));
        });
    }
}

#[test]
fn a_client_that_does_not_read_holds_its_own_lane() {
    for concurrency in [ServerConcurrency::Hybrid { threads_max: 2 }, ServerConcurrency::Reactor] {
        let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0").concurrency(concurrency);
        let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
        let (orb, urgent) =
            with_lane(builder.server_connections_max(1).transmit_memory_max(Some(1 << 20)), lane);
        let probe: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
        let mut silent = raw::connect_narrow(probe.object());
        let length = 32 << 20_u32;
        let flood = [&u32::to_ne_bytes(length)[..], &vec![0; length as usize]].concat();
        raw::write(&mut silent, &raw::request(probe.object(), "reflect", &flood));
        // The default lane takes no further client, and has a reply that nobody reads.
        let (client, elsewhere) = client();
        let quick = reference(&client, &urgent.reference(probe.object()).unwrap());
        call_in(&elsewhere, &quick);
        let length = elsewhere.run(|| quick.reflect(&vec![7; 2 << 20])).map(|data| data.len());
        assert_eq!(length, Ok(2 << 20));
    }
}

/// Incarnates and etherealises, with a gate before each.
struct GatedActivator(Gate);

impl ServantActivator for GatedActivator {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        if id.as_bytes() == b"slow" {
            self.0.pass();
        }
        Ok(ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default())))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.0.pass();
    }
}

/// A server with a lane, and an adapter whose objects are activated when they are called.
fn activating_server(gate: &Gate) -> (Orb, Lane, Poa) {
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
    let (orb, urgent) = with_lane(Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap(), lane);
    let policies =
        PoaPolicies { request_processing: RequestProcessing::ServantManager, ..PoaPolicies::PERSISTENT };
    let root = orb.root_poa();
    let poa = root.create_poa("activated", Some(root.manager().clone()), policies).unwrap();
    poa.set_servant_activator(Arc::new(GatedActivator(gate.clone()))).unwrap();
    (orb, urgent, poa)
}

fn object(poa: &Poa, id: &str) -> ObjectRef {
    poa.create_reference_with_id(id, ProbeRef::REPOSITORY_ID).unwrap()
}

#[test]
fn a_slow_activation_holds_its_own_lane() {
    let gate = Gate::closed();
    let (_orb, urgent, poa) = activating_server(&gate);
    let ((slow_client, _), (quick_client, lane)) = (client(), client());
    let slow = reference(&slow_client, &object(&poa, "slow"));
    while_held(&gate, vec![Box::new(|| slow.ping().unwrap())], || {
        let quick = urgent.reference(&object(&poa, "quick")).unwrap();
        call_in(&lane, &reference(&quick_client, &quick));
    });
}

#[test]
fn a_slow_deactivation_holds_its_own_lane() {
    let gate = Gate::opened();
    let (_orb, urgent, poa) = activating_server(&gate);
    let ((slow_client, _), (quick_client, lane)) = (client(), client());
    reference(&slow_client, &object(&poa, "slow")).ping().unwrap();
    gate.close();
    while_held(&gate, vec![Box::new(|| poa.deactivate(&"slow".into()).unwrap())], || {
        let quick = urgent.reference(&object(&poa, "quick")).unwrap();
        call_in(&lane, &reference(&quick_client, &quick));
    });
}

/// Makes adapters, with a gate before.
struct Making(Gate);

impl AdapterActivator for Making {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        self.0.pass();
        let poa = parent.create_poa(name, Some(parent.manager().clone()), PoaPolicies::PERSISTENT)?;
        let _: ProbeRef = poa.activate_with_id("object", Probing::default())?;
        Ok(true)
    }
}

#[test]
fn the_first_use_of_an_adapter_holds_its_own_lane() {
    let gate = Gate::closed();
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
    let (orb, urgent) = with_lane(Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap(), lane);
    let root = orb.root_poa();
    let make = |name| root.create_poa(name, Some(root.manager().clone()), PoaPolicies::PERSISTENT).unwrap();
    // The reference of an earlier adapter, which a request makes again.
    let earlier = make("made");
    let slow = object(&earlier, "object");
    earlier.destroy(false, true).unwrap();
    root.set_adapter_activator(Some(Arc::new(Making(gate.clone()))));
    let there: ProbeRef = make("there").activate_with_id("object", Probing::default()).unwrap();
    let ((slow_client, _), (quick_client, lane)) = (client(), client());
    let slow = reference(&slow_client, &slow);
    while_held(&gate, vec![Box::new(|| slow.ping().unwrap())], || {
        let quick = urgent.reference(there.object()).unwrap();
        call_in(&lane, &reference(&quick_client, &quick));
    });
}

#[test]
fn a_servant_of_one_lane_shuts_all_down() {
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
    let (orb, urgent) = with_lane(Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap(), lane);
    let serving = orb.clone();
    let servant = Hooked::new(move || serving.shutdown(false));
    let probe: ProbeRef = orb.root_poa().activate(servant).unwrap();
    let ((first, _), (second, _)) = (client(), client());
    let in_lane = reference(&first, &urgent.reference(probe.object()).unwrap());
    let in_default = reference(&second, probe.object());
    assert_eq!(in_default.add(1, 2), Ok(3));
    let _answer_or_its_loss = in_lane.ping();
    eventually("no lane serves any more", || in_lane.ping().is_err() && in_default.ping().is_err());
}

/// Begins a call in the lane of the request, and gives it away.
struct Giving(std::sync::Mutex<Option<ironorb::Pending<i32, SystemException>>>);

#[test]
fn a_call_that_is_begun_in_one_lane_is_awaited_in_another() {
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
    let (orb, urgent) = with_lane(Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap(), lane);
    let (_server, last) = server();
    let last = reference(&orb, last.object());
    let given = Arc::new(Giving(std::sync::Mutex::default()));
    let giving = given.clone();
    let begin = Hooked::new(move || {
        *giving.0.lock().unwrap() = Some(last.add_async(2, 3));
        Ok(())
    });
    let await_here = Hooked::new(move || {
        let begun = given.0.lock().unwrap().take().unwrap();
        assert_eq!(begun.wait(), Ok(5));
        Ok(())
    });
    let begin: ProbeRef = orb.root_poa().activate(begin).unwrap();
    let await_here: ProbeRef = orb.root_poa().activate(await_here).unwrap();
    let (client, _) = client();
    for _ in 0..20 {
        reference(&client, &urgent.reference(begin.object()).unwrap()).ping().unwrap();
        reference(&client, await_here.object()).ping().unwrap();
    }
}

/// A servant that keeps its callers waiting until another thread answers them.
#[derive(Default)]
struct Parking(std::sync::Mutex<Vec<Reply<i32, SystemException>>>);

impl Servant for Parking {
    fn repository_ids(&self) -> &[&'static str] {
        &[ProbeRef::REPOSITORY_ID]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        call.deferred(
            |r| Ok((r.get::<i32>()?, r.get::<i32>()?)),
            |_, reply| self.0.lock().unwrap().push(reply),
            |w, sum| w.put(sum),
        )
    }
}

/// Every way of a reply that a thread of the other lane gives: to a client over the wire, to one of this process, and
/// to one that has gone.
#[test]
fn a_request_of_one_lane_is_answered_by_a_thread_of_another() {
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
    let (orb, urgent) = with_lane(Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap(), lane);
    let parking = Arc::new(Parking::default());
    let poa = orb.root_poa();
    let id = poa.activate_object(parking.clone()).unwrap();
    let parked: ProbeRef = poa.id_to_reference(&id).unwrap().narrow_unchecked();
    let all = parking.clone();
    let answer: ProbeRef = poa
        .activate(Hooked::new(move || {
            all.0.lock().unwrap().drain(..).for_each(|reply| reply.send(Ok(7)));
            Ok(())
        }))
        .unwrap();
    let (client, client_lane) = client();
    let over_the_wire = reference(&client, parked.object());
    let answer_urgently = reference(&client, &urgent.reference(answer.object()).unwrap());
    for _ in 0..20 {
        let begun = [over_the_wire.add_async(0, 0), parked.add_async(0, 0)];
        eventually("both are parked", || parking.0.lock().unwrap().len() == 2);
        client_lane.run(|| answer_urgently.ping().unwrap());
        begun.into_iter().for_each(|begun| assert_eq!(begun.wait(), Ok(7)));
    }
    let (gone, _) = self::client();
    let begun = reference(&gone, parked.object()).add_async(0, 0);
    eventually("it is parked", || parking.0.lock().unwrap().len() == 1);
    gone.shutdown(true).unwrap();
    assert!(begun.wait().is_err());
    client_lane.run(|| answer_urgently.ping().unwrap());
    orb.shutdown(true).unwrap();
}

#[test]
fn a_thread_of_a_lane_calls_through_an_orb_that_lacks_the_lane() {
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
    let (orb, urgent) = with_lane(Orb::builder().no_endpoint(), lane);
    let (_server, last) = server();
    let plain = Orb::builder().no_endpoint().build().unwrap();
    let through = reference(&plain, last.object());
    let servant = Hooked::new(move || {
        assert_eq!(through.add_async(2, 3).wait(), Ok(5));
        through.ping()?;
        let (tell, told) = mpsc::channel();
        through.add_async(2, 3).on_reply(move |sum| tell.send(sum).unwrap());
        assert_eq!(told.recv().unwrap(), Ok(5));
        last.ping()
    });
    let probe: ProbeRef = orb.root_poa().activate(servant).unwrap();
    let (client, _) = client();
    let remote = reference(&client, &urgent.reference(probe.object()).unwrap());
    for _ in 0..5 {
        remote.ping().unwrap();
    }
    plain.shutdown(true).unwrap();
}

#[test]
fn the_status_that_one_lane_tells_shows_the_connections_of_all() {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().status(true);
    builder.config().message_timeout = Some(Duration::from_millis(80));
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
    let (orb, urgent) = with_lane(builder, lane);
    let probe: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
    let (client, _) = client();
    let url = format!("corbaloc::1.2@{}/{}", orb.published_addresses()[0], STATUS_KEY);
    let status: StatusRef = client.string_to_object(&url).unwrap().narrow_unchecked();
    let remote = reference(&client, &urgent.reference(probe.object()).unwrap());
    (0..3).for_each(|_| remote.ping().unwrap());
    let of_urgent = || {
        let seen = status.take_snapshot().unwrap();
        let urgent = seen.lanes.iter().find(|lane| lane.name == "urgent").unwrap().number;
        seen.connections.into_iter().filter(|connection| connection.lane == urgent).collect::<Vec<_>>()
    };
    eventually("a thread of the lane has looked", || {
        of_urgent().iter().any(|connection| connection.requests_total == 3 && !connection.peer.is_empty())
    });
}
