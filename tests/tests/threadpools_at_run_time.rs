//! Thread pools that a program makes and destroys while its ORB runs (`create_threadpool`, `destroy_threadpool`; RTCORBA 1.2,
//! 5.9).

use std::sync::{Arc, Mutex};

use ironorb::poa::{PoaError, PoaPolicyType};
use ironorb::rt::{Priority, PriorityModel, ThreadpoolId};
use ironorb::{
    LaneConfig, Orb, Poa, PoaPolicies, RequestBuffering, ServerConcurrency, ThreadPoolConfig,
    ThreadpoolError, TypedRef,
};
use ironorb_tests::Hooked;
use ironorb_tests::gate::Gate;
use ironorb_tests::real_time::{
    Lanes, PROPAGATED, listening_lane as lane, noting_lanes, priority, real_time, server_of,
};
use ironorb_tests::testing::{Probe, ProbeRef};

/// A lane at an address where no other test listens, so that it finds its port free when it comes back.
fn lane_alone(name: &str) -> LaneConfig {
    LaneConfig::new(name).endpoint("iiop://127.0.9.9:0")
}

fn adapter(server: &Orb, name: &str, threadpool: ThreadpoolId) -> Result<Poa, PoaError> {
    let root = server.root_poa();
    let policies = PoaPolicies {
        threadpool: Some(threadpool),
        priority_model: Some(PROPAGATED),
        ..PoaPolicies::default()
    };
    root.create_poa(name, Some(root.manager().clone()), policies)
}

/// Another process's view of an object.
fn seen_from_outside(object: &ProbeRef) -> (Orb, ProbeRef) {
    let client = Orb::builder().real_time(real_time()).build().unwrap();
    let seen = client.string_to_object(&object.object().to_ior_string()).unwrap().narrow_unchecked();
    (client, seen)
}

fn ping_at(client: &Orb, object: &ProbeRef, number: i16) -> Result<(), ironorb::SystemException> {
    let current = client.rt_current().unwrap();
    let _stay = current.stay_at(priority(number)).unwrap();
    object.ping()
}

#[test]
fn a_pool_that_comes_later_serves_its_adapters_until_it_is_destroyed() {
    let server = server_of(real_time()).lane(lane("built")).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    for round in 0..3 {
        let lanes_before = server.lanes().len();
        let lanes = [100, 200].map(|number| lane(&format!("{number}")).priority(priority(number)));
        let pool = rt_orb.create_threadpool("mission", lanes).unwrap();
        assert_eq!(rt_orb.threadpool("mission"), Some(pool));
        assert_eq!(server.lanes().len(), lanes_before + 2);

        let seen = Lanes::default();
        let poa = adapter(&server, "mission", pool).unwrap();
        let (client, object) =
            seen_from_outside(&poa.activate::<ProbeRef, _>(noting_lanes(&server, &seen)).unwrap());
        for number in [100, 200, 100] {
            ping_at(&client, &object, number).unwrap();
        }
        assert_eq!(*seen.lock().unwrap(), ["100", "200", "100"], "round {round}");

        let in_use = rt_orb.destroy_threadpool(pool).unwrap_err();
        assert!(matches!(in_use, ThreadpoolError::InUse { adapters: 1 }), "{in_use}");
        ping_at(&client, &object, 200).unwrap();
        poa.destroy(true, true).unwrap();
        rt_orb.destroy_threadpool(pool).unwrap();

        assert_eq!((rt_orb.threadpool("mission"), server.lanes().len()), (None, lanes_before));
        assert!(server.lane("100").is_none());
        assert!(ping_at(&client, &object, 200).is_err(), "nothing listens there");
        let again = rt_orb.destroy_threadpool(pool).unwrap_err();
        assert!(matches!(again, ThreadpoolError::InvalidThreadpool), "{again}");
        let refused = adapter(&server, "late", pool).unwrap_err();
        assert!(
            matches!(refused, PoaError::InvalidPolicy { policy: PoaPolicyType::Threadpool, .. }),
            "{refused}"
        );
    }
    // The rest of the ORB has not noticed.
    let (_client, object) = seen_from_outside(
        &server.root_poa().activate::<ProbeRef, _>(noting_lanes(&server, &Lanes::default())).unwrap(),
    );
    object.ping().unwrap();
    server.shutdown(true).unwrap();
}

#[test]
fn a_pool_that_comes_back_serves_the_references_of_before() {
    let server = server_of(real_time()).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    let create = || rt_orb.create_threadpool("mode", [lane_alone("mode").priority(priority(9))]).unwrap();
    let activate = |pool| {
        let root = server.root_poa();
        let policies = PoaPolicies {
            threadpool: Some(pool),
            priority_model: Some(PROPAGATED),
            lifespan: ironorb::poa::Lifespan::Persistent,
            id_assignment: ironorb::poa::IdAssignment::User,
            ..PoaPolicies::default()
        };
        let poa = root.create_poa("mode", Some(root.manager().clone()), policies).unwrap();
        let seen = Lanes::default();
        let object: ProbeRef = poa.activate_with_id("it", noting_lanes(&server, &seen)).unwrap();
        (poa, object, seen)
    };
    let pool = create();
    let (poa, object, _) = activate(pool);
    let (client, object) = seen_from_outside(&object);
    ping_at(&client, &object, 9).unwrap();
    poa.destroy(true, true).unwrap();
    rt_orb.destroy_threadpool(pool).unwrap();
    assert!(ping_at(&client, &object, 9).is_err());

    assert_eq!(create(), pool);
    let (poa, _, seen) = activate(pool);
    ironorb_tests::eventually("the client connects again", || ping_at(&client, &object, 9).is_ok());
    assert_eq!(seen.lock().unwrap().as_slice(), ["mode"]);
    poa.destroy(true, true).unwrap();

    // Where another process has taken the port, the lane is another one.
    let address: String = server.lane("mode").unwrap().addresses().remove(0);
    rt_orb.destroy_threadpool(pool).unwrap();
    let _taken = std::net::TcpListener::bind(&address).unwrap();
    assert_eq!(create(), pool);
    let second = server.lane("mode").unwrap().addresses().remove(0);
    assert_ne!(second, address);
    rt_orb.destroy_threadpool(pool).unwrap();
    assert_eq!(create(), pool);
    assert_eq!(server.lane("mode").unwrap().addresses(), [second], "the lane that came last comes back");
    server.shutdown(true).unwrap();
}

#[test]
fn lanes_of_every_concurrency_end_with_their_pool() {
    let pool = ThreadPoolConfig::new(1)
        .dynamic_threads(2)
        .buffering(RequestBuffering::UpTo { requests_max: 4, bytes_max: 1 << 20 });
    let models = [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 2 },
        ServerConcurrency::Reactor,
        ServerConcurrency::Hybrid { threads_max: 2 },
        ServerConcurrency::ThreadPool(pool),
        ServerConcurrency::ThreadPool(ThreadPoolConfig::new(2).borrowing(true)),
        ServerConcurrency::ThreadPerConnection, // again
    ];
    let server = server_of(real_time()).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    for model in models {
        let lanes =
            [1, 2].map(|number| lane(&number.to_string()).priority(priority(number)).concurrency(model));
        let pool = rt_orb.create_threadpool("p", lanes).unwrap();
        let poa = adapter(&server, "p", pool).unwrap();
        let seen = Lanes::default();
        let object = poa.activate::<ProbeRef, _>(noting_lanes(&server, &seen)).unwrap();
        let (client, object) = seen_from_outside(&object);
        ping_at(&client, &object, 1).unwrap();
        ping_at(&client, &object, 2).unwrap();
        poa.destroy(true, true).unwrap();
        rt_orb.destroy_threadpool(pool).unwrap();
        assert_eq!(seen.lock().unwrap().len(), 2);
    }
    server.shutdown(true).unwrap();
}

#[test]
fn a_pool_that_ends_answers_what_has_come_to_its_lanes() {
    let server = server_of(real_time()).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    let pool = rt_orb.create_threadpool("p", [lane("late")]).unwrap();
    let (gate, at) = (Gate::closed(), Gate::closed());
    let _open = gate.open_at_end();
    let held = gate.clone();
    let servant = Hooked::new(move || {
        held.pass();
        Ok(())
    });
    // An object of no pool, whose reference a program leads there.
    let object: ProbeRef = server.root_poa().activate(servant).unwrap();
    let object = server.lane("late").unwrap().reference(object.object()).unwrap().narrow_unchecked();
    let (_client, object) = seen_from_outside(&object);
    std::thread::scope(|scope| {
        let reply = scope.spawn(|| object.ping());
        ironorb_tests::eventually("the servant runs", || gate.held() == 1);
        let ending = scope.spawn(|| {
            at.open();
            rt_orb.destroy_threadpool(pool)
        });
        at.pass();
        ironorb_tests::eventually("no reference leads there", || server.lane("late").is_none());
        assert!(!ending.is_finished(), "a request of the pool is in progress");
        gate.open();
        reply.join().unwrap().unwrap();
        ending.join().unwrap().unwrap();
    });
    server.shutdown(true).unwrap();
}

#[test]
fn what_cannot_be_made_leaves_nothing_behind() {
    let server = server_of(real_time()).lane(lane("built").threadpool("of the builder")).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    let create = |name: &str, lanes: Vec<LaneConfig>| rt_orb.create_threadpool(name, lanes);
    let text = |result: Result<ThreadpoolId, ThreadpoolError>| result.unwrap_err().to_string();

    assert!(text(create("p", vec![])).contains("give it one"));
    assert!(text(create("p", vec![LaneConfig::new("silent")])).contains("give it an endpoint"));
    assert!(text(create("p", vec![lane("built")])).contains("another lane of the ORB has this name"));
    assert!(text(create("p", vec![lane("x").best_effort()])).contains("take one of the two away"));
    let taken = create("of the builder", vec![lane("x")]).unwrap_err();
    assert!(matches!(taken, ThreadpoolError::AlreadyExists));

    // The second lane cannot listen where the first does.
    let first = lane_alone("first");
    let address = server.lane("built").unwrap().addresses()[0].clone();
    let second = LaneConfig::new("second").endpoint(&format!("iiop://{address}"));
    let refused = create("p", vec![first.clone(), second]).unwrap_err();
    assert!(matches!(refused, ThreadpoolError::Io(_)), "{refused}");
    assert!(rt_orb.threadpool("p").is_none() && server.lane("first").is_none());
    let pool = create("p", vec![first.clone()]).unwrap();
    rt_orb.destroy_threadpool(pool).unwrap();

    // A pool of the builder ends as others do.
    let built = rt_orb.threadpool("of the builder").unwrap();
    rt_orb.destroy_threadpool(built).unwrap();
    assert!(server.lane("built").is_none());

    // The same lane may come as often as it likes; an ORB has room for 64 different ones.
    for _ in 0..100 {
        rt_orb.destroy_threadpool(create("again", vec![lane_alone("again")]).unwrap()).unwrap();
    }
    let mut made = 0;
    let refused = loop {
        match create("other", vec![lane(&format!("other {made}"))]) {
            Ok(pool) => rt_orb.destroy_threadpool(pool).unwrap(),
            Err(refused) => break refused,
        }
        made += 1;
    };
    assert!(matches!(refused, ThreadpoolError::TooMany), "{refused}");
    assert_eq!(made, 64 - 2 - 2 - 1, "beside two of the builder, two of \"p\", and \"again\"");
    // The lane is the one of before, unless another program has its port just now: then it would be one more.
    ironorb_tests::eventually("the lane of before comes again", || {
        create("again", vec![lane_alone("again")]).is_ok_and(|again| rt_orb.destroy_threadpool(again).is_ok())
    });

    server.shutdown(true).unwrap();
    assert!(matches!(create("p", vec![lane("p")]), Err(ThreadpoolError::ShutDown)));
    let other = server_of(real_time()).build().unwrap().rt_orb().unwrap();
    assert!(matches!(other.create_threadpool("p", [lane("p")]), Err(ThreadpoolError::ShutDown)));
}

#[test]
fn a_pool_may_come_before_the_orb_listens_and_cannot_end_in_an_upcall() {
    let server = Orb::builder().real_time(real_time()).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    let pool = rt_orb.create_threadpool("early", [lane("early").priority(priority(7))]).unwrap();
    assert!(server.lane("early").unwrap().addresses().is_empty());
    let poa = adapter(&server, "early", pool).unwrap();
    assert_eq!(server.lane("early").unwrap().addresses().len(), 1);
    let other = rt_orb.create_threadpool("other", [lane("other")]).unwrap();
    let in_upcall = Arc::new(Mutex::new(None));
    let (own, told) = (rt_orb.clone(), in_upcall.clone());
    let servant = Hooked::new(move || {
        *told.lock().unwrap() = Some(own.destroy_threadpool(other));
        Ok(())
    });
    let (client, object) = seen_from_outside(&poa.activate::<ProbeRef, _>(servant).unwrap());
    ping_at(&client, &object, 7).unwrap();
    let result = in_upcall.lock().unwrap().take();
    assert!(matches!(result, Some(Err(ThreadpoolError::WouldDeadlock))));
    rt_orb.destroy_threadpool(other).unwrap();
    server.shutdown(true).unwrap();
}

#[test]
fn pools_come_and_go_while_others_serve() {
    let server = server_of(real_time()).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    let steady = rt_orb.create_threadpool("steady", [lane("steady").priority(priority(5))]).unwrap();
    let seen = Lanes::default();
    let object = adapter(&server, "steady", steady)
        .unwrap()
        .activate::<ProbeRef, _>(noting_lanes(&server, &seen))
        .unwrap();
    let (client, object) = seen_from_outside(&object);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (rt_orb, server) = (&rt_orb, &server);
            scope.spawn(move || {
                for round in 0..5 {
                    let name = format!("{thread} {round}");
                    let pool = rt_orb.create_threadpool(&name, [lane(&name)]).unwrap();
                    let poa = adapter(server, &name, pool).unwrap();
                    let own = poa.activate::<ProbeRef, _>(noting_lanes(server, &Lanes::default())).unwrap();
                    let (_client, own) = seen_from_outside(&own);
                    own.ping().unwrap();
                    poa.destroy(false, true).unwrap();
                    rt_orb.destroy_threadpool(pool).unwrap();
                }
            });
        }
        for _ in 0..200 {
            ping_at(&client, &object, 5).unwrap();
        }
    });
    assert_eq!(*seen.lock().unwrap(), vec!["steady"; 200]);
    server.shutdown(true).unwrap();
}

#[test]
fn what_a_pool_had_before_its_adapters_do_not_find() {
    let server = server_of(real_time()).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    let create = |number| {
        let lane = lane_alone(&format!("{number}")).priority(priority(number));
        rt_orb.create_threadpool("mode", [lane]).unwrap()
    };
    let declared = |pool, number| {
        let policies = PoaPolicies {
            threadpool: Some(pool),
            priority_model: Some(PriorityModel::ServerDeclared(priority(number))),
            ..PoaPolicies::default()
        };
        server.root_poa().create_poa("declared", None, policies)
    };
    let pool = create(100);
    rt_orb.destroy_threadpool(pool).unwrap();
    assert_eq!(create(300), pool);
    let refused = declared(pool, 100).unwrap_err();
    assert!(
        matches!(refused, PoaError::InvalidPolicy { policy: PoaPolicyType::PriorityModel, .. }),
        "{refused}"
    );
    let poa = declared(pool, 300).unwrap();
    let own = poa.create_reference_with_priority(ProbeRef::REPOSITORY_ID, priority(100));
    assert!(matches!(own, Err(PoaError::PriorityNotServed { .. })));
    poa.destroy(true, true).unwrap();
    rt_orb.destroy_threadpool(pool).unwrap();
    assert_eq!(create(100), pool);
    declared(pool, 100).unwrap();
    server.shutdown(true).unwrap();
}

#[test]
fn a_pool_that_comes_while_the_orb_ends_ends_with_it() {
    let server = server_of(real_time()).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    let gate = Gate::closed();
    let _open = gate.open_at_end();
    let held = gate.clone();
    let servant = Hooked::new(move || {
        held.pass();
        Ok(())
    });
    let (_client, object) = seen_from_outside(&server.root_poa().activate::<ProbeRef, _>(servant).unwrap());
    std::thread::scope(|scope| {
        let reply = scope.spawn(|| object.ping());
        ironorb_tests::eventually("the servant runs", || gate.held() == 1);
        let address = server.published_addresses().remove(0);
        let ending = scope.spawn(|| server.shutdown(true));
        let has_ended = || std::net::TcpStream::connect(&address).is_err();
        ironorb_tests::eventually("the default lane listens no longer", has_ended);
        let late = rt_orb.create_threadpool("late", [lane_alone("late")]);
        let address = server.lane("late").map(|lane| lane.addresses());
        gate.open();
        reply.join().unwrap().unwrap();
        ending.join().unwrap().unwrap();
        match late {
            Ok(_) => {
                let address = address.unwrap().remove(0);
                assert!(std::net::TcpStream::connect(address).is_err(), "the late lane has ended, too");
            }
            Err(e) => assert!(matches!(e, ThreadpoolError::ShutDown), "{e}"),
        }
    });
}

#[test]
fn a_pool_that_cannot_listen_may_be_tried_as_often_as_one_likes() {
    let server = server_of(real_time()).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    let taken = std::net::TcpListener::bind("127.0.9.8:0").unwrap();
    let fixed = format!("iiop://{}", taken.local_addr().unwrap());
    let lanes = || [lane_alone("open"), LaneConfig::new("fixed").endpoint(&fixed)];
    for _ in 0..100 {
        let refused = rt_orb.create_threadpool("p", lanes()).unwrap_err();
        assert!(matches!(refused, ThreadpoolError::Io(_)), "{refused}");
    }
    drop(taken);
    rt_orb.create_threadpool("p", lanes()).unwrap();
    server.shutdown(true).unwrap();
}

#[test]
fn errors_of_pools_are_the_standards_exceptions() {
    use ironorb::giop::exception::SystemExceptionKind as Kind;
    use ironorb::giop::minor::MinorCode;
    let mapping = ironorb::rt::RealTimeConfig::new().mapping(Unmapping);
    let server = server_of(mapping).build().unwrap();
    let rt_orb = server.rt_orb().unwrap();
    let told = |lanes: Vec<LaneConfig>| {
        let error = ironorb::SystemException::from(rt_orb.create_threadpool("p", lanes).unwrap_err());
        (error.kind, error.minor)
    };
    assert_eq!(
        told(vec![lane("x").priority(priority(7))]),
        (Kind::DataConversion, MinorCode::DATA_CONVERSION_PRIORITY)
    );
    assert_eq!(told(vec![]).0, Kind::BadParam);
    let no_threads = ServerConcurrency::ThreadPool(ThreadPoolConfig::new(0));
    assert_eq!(told(vec![lane("x").concurrency(no_threads)]).0, Kind::BadParam);
    let pool = rt_orb.create_threadpool("p", [lane("x")]).unwrap();
    rt_orb.destroy_threadpool(pool).unwrap();
    let unknown = ironorb::SystemException::from(rt_orb.destroy_threadpool(pool).unwrap_err());
    assert_eq!(unknown.kind, Kind::BadParam);
}

/// Maps nothing.
#[derive(Debug)]
struct Unmapping;

impl ironorb::rt::PriorityMapping for Unmapping {
    fn to_native(&self, _: Priority) -> Option<i16> {
        None
    }

    fn to_corba(&self, _: i16) -> Option<Priority> {
        None
    }
}
