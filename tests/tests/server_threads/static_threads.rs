//! Threads that a lane makes before a client comes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use ironorb::rt::PriorityModel;
use ironorb::{LaneConfig, Orb, OrbBuilder, PoaPolicies, ServerConcurrency, TypedRef};
use ironorb_tests::real_time::{listening_lane, priority, real_time, server_of};
use ironorb_tests::testing::ProbeRef;
use ironorb_tests::{Hooked, ThreadNumber, eventually, raw};

use super::{Barrier, alone, connect, threads_named};

/// What a lane with a priority has if its program says nothing.
const THREADS: usize = 8;

fn lane() -> LaneConfig {
    listening_lane("urgent").priority(priority(100))
}

/// An object that is called in the lane. Notes the threads of its upcalls, each of which waits at the barrier.
struct Called {
    orb: Orb,
    probe: ProbeRef,
    barrier: Arc<Barrier>,
    threads: Arc<Mutex<Vec<ThreadNumber>>>,
}

fn called(builder: OrbBuilder) -> Called {
    let orb = builder.build().unwrap();
    let model = PriorityModel::ServerDeclared(priority(100));
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    let poa = orb.root_poa().create_poa("urgent", None, policies).unwrap();
    poa.manager().activate().unwrap();
    let (barrier, threads) = (Arc::new(Barrier::default()), Arc::new(Mutex::new(Vec::new())));
    let (at, noted, own) = (barrier.clone(), threads.clone(), orb.clone());
    let servant = Hooked::new(move || {
        assert_eq!(own.current_lane().name(), "urgent");
        noted.lock().unwrap().push(ThreadNumber::own());
        at.pass();
        Ok(())
    });
    let probe = poa.activate(servant).unwrap();
    Called { orb, probe, barrier, threads }
}

#[test]
fn a_lane_with_a_priority_makes_no_thread_while_it_serves() {
    let _alone = alone();
    let Called { orb, probe, barrier, threads } = called(server_of(real_time()).lane(lane()));
    let before = ThreadNumber::all();
    eventually("they have their names", || threads_named("static") == THREADS);
    let ping = raw::request(probe.object(), "ping", &[]);
    let mut streams: Vec<_> = (0..3 * THREADS).map(|_| connect(&probe)).collect();
    streams.iter_mut().for_each(|stream| raw::write(stream, &ping));
    eventually("all of its threads are in servants", || barrier.entered() == THREADS);
    barrier.open();
    for stream in &mut streams {
        assert_eq!(raw::read_message(stream)[7], 1, "a Reply");
    }
    assert_eq!((barrier.entered(), barrier.inside_max()), (3 * THREADS, THREADS));
    let new: Vec<_> =
        threads.lock().unwrap().iter().filter(|thread| !before.contains(thread)).copied().collect();
    assert!(new.is_empty(), "made while it served: {new:?}");
    // Those that are busy are listed by what they do.
    let names: BTreeSet<String> = orb.status().threads.into_iter().map(|thread| thread.name).collect();
    assert!(names.contains("ironorb-connection") && names.contains("ironorb-hybrid"), "{names:?}");

    // Connections come and go, and the threads stay.
    drop(streams);
    for _ in 0..10 {
        let mut streams: Vec<_> = (0..THREADS).map(|_| connect(&probe)).collect();
        streams.iter_mut().for_each(|stream| raw::write(stream, &ping));
        streams.iter_mut().for_each(|stream| assert_eq!(raw::read_message(stream)[7], 1, "a Reply"));
    }
    assert!(threads.lock().unwrap().iter().all(|thread| before.contains(thread)));
    assert_eq!(threads_named("static"), THREADS);
    orb.shutdown(true).unwrap();
    eventually("all of them end", || threads_named("static") == 0);
}

/// The program may declare that threads come and go.
#[test]
fn a_lane_makes_threads_beyond_the_static_ones_where_its_program_says_so() {
    let _alone = alone();
    let declared = lane().concurrency(ServerConcurrency::Hybrid { threads_max: 6 }).server_threads_static(2);
    let Called { orb, probe, barrier, threads } = called(server_of(real_time()).lane(declared));
    let before = ThreadNumber::all();
    eventually("they have their names", || threads_named("static") == 2);
    let ping = raw::request(probe.object(), "ping", &[]);
    let mut streams: Vec<_> = (0..10).map(|_| connect(&probe)).collect();
    streams.iter_mut().for_each(|stream| raw::write(stream, &ping));
    eventually("all threads that may be are in servants", || barrier.entered() == 6);
    barrier.open();
    streams.iter_mut().for_each(|stream| assert_eq!(raw::read_message(stream)[7], 1, "a Reply"));
    assert_eq!(barrier.inside_max(), 6);
    let served: BTreeSet<_> = threads.lock().unwrap().iter().map(|thread| before.contains(thread)).collect();
    assert_eq!(served, BTreeSet::from([false, true]), "by threads of both kinds");
    drop(streams);
    orb.shutdown(true).unwrap();
    eventually("all of them end", || threads_named("static") == 0);
}

/// A limit, or a number of threads, is no declaration that threads come and go.
#[test]
fn a_number_of_threads_is_all_that_a_lane_with_a_priority_has() {
    let _alone = alone();
    for lane in [lane().server_threads_max(3), lane().server_threads_static(3)] {
        let Called { orb, probe, barrier, threads } = called(server_of(real_time()).lane(lane));
        let before = ThreadNumber::all();
        eventually("they have their names", || threads_named("static") == 3);
        let ping = raw::request(probe.object(), "ping", &[]);
        let mut streams: Vec<_> = (0..10).map(|_| connect(&probe)).collect();
        streams.iter_mut().for_each(|stream| raw::write(stream, &ping));
        eventually("all of its threads are in servants", || barrier.entered() == 3);
        barrier.open();
        streams.iter_mut().for_each(|stream| assert_eq!(raw::read_message(stream)[7], 1, "a Reply"));
        assert_eq!(barrier.inside_max(), 3);
        assert!(threads.lock().unwrap().iter().all(|thread| before.contains(thread)));
        drop(streams);
        orb.shutdown(true).unwrap();
        eventually("all of them end", || threads_named("static") == 0);
    }
}

#[test]
fn static_threads_end_with_the_thread_pool_of_their_lane() {
    let _alone = alone();
    let orb = server_of(real_time()).build().unwrap();
    let rt_orb = orb.rt_orb().unwrap();
    for _ in 0..2 {
        let pool = rt_orb.create_threadpool("urgent", [lane()]).unwrap();
        eventually("they have their names", || threads_named("static") == THREADS);
        rt_orb.destroy_threadpool(pool).unwrap();
        eventually("they end", || threads_named("static") == 0);
    }
    orb.shutdown(true).unwrap();
}

/// As text, and for an ORB's default lane.
#[test]
fn an_orb_may_have_static_threads_too() {
    let _alone = alone();
    let words = [
        "-ORBserverThreadsStatic",
        "3",
        "-ORBconcurrency",
        "threadPerConnection",
        // No other thread helps where one of these begins late.
        "-ORBthreadsPerConnectionMax",
        "1",
    ];
    let mut arguments = words.map(str::to_owned).to_vec();
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    let orb = builder.arguments(&mut arguments).build().unwrap();
    let before = ThreadNumber::all();
    let served = Arc::new(Mutex::new(Vec::new()));
    let noted = served.clone();
    let servant = Hooked::new(move || {
        noted.lock().unwrap().push(before.contains(&ThreadNumber::own()));
        Ok(())
    });
    let probe: ProbeRef = orb.root_poa().activate(servant).unwrap();
    let mut streams: Vec<_> = (0..4).map(|_| connect(&probe)).collect();
    for stream in &mut streams {
        raw::write(stream, &raw::request(probe.object(), "ping", &[]));
        assert_eq!(raw::read_message(stream)[7], 1, "a Reply");
    }
    assert_eq!(*served.lock().unwrap(), [true, true, true, false]);
    drop(streams);
    orb.shutdown(true).unwrap();
    eventually("all of them end", || threads_named("static") == 0);
}
