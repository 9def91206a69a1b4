//! Lanes whose busy pools take waiting threads of lower ones (RTCORBA 1.2, 5.9.2: `allow_borrowing`). Part of the program of
//! [`super`], which counts threads. `inheritance.rs` shows that the lent thread has its priority before it wakes.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use ironorb::rt::{Priority, PriorityModel, ThreadpoolId};
use ironorb::{
    LaneConfig, Orb, PoaPolicies, RequestBuffering, ServerConcurrency, SystemException, ThreadPoolConfig,
    TypedRef,
};
use ironorb_tests::real_time::{priority, real_time, server_of};
use ironorb_tests::testing::ProbeRef;
use ironorb_tests::{Hooked, eventually, raw};

use super::{Barrier, alone, buffered, client_in_rounds, serving_threads, threads_named};

const LOW: i16 = 1_000;
const HIGH: i16 = 30_000;

fn lane(name: &str, number: i16, pool: ThreadPoolConfig) -> LaneConfig {
    let lane = LaneConfig::new(name).endpoint("iiop://127.0.0.1:0").priority(priority(number));
    lane.concurrency(ServerConcurrency::ThreadPool(pool))
}

/// A thread in a servant, and its priority there.
type Seen = (ThreadId, Option<Priority>);

/// A server with a low and a high lane, whose servant waits at a barrier, and clients.
struct Lanes {
    orb: Orb,
    probe: ProbeRef,
    barrier: Arc<Barrier>,
    /// Where the servant waits in the low lane, for a test in which the two lanes go on at different times.
    low_barrier: Arc<Barrier>,
    /// The threads that have been in the servant, with their priorities there.
    seen: Arc<Mutex<Vec<Seen>>>,
    clients: Vec<TcpStream>,
}

impl Lanes {
    fn new(low: ThreadPoolConfig, high: ThreadPoolConfig) -> Lanes {
        let barrier = Arc::<Barrier>::default();
        Lanes::with_barriers(low, high, [barrier.clone(), barrier])
    }

    fn with_barriers(low: ThreadPoolConfig, high: ThreadPoolConfig, barriers: [Arc<Barrier>; 2]) -> Lanes {
        let builder = server_of(real_time()).lane(lane("low", LOW, low)).lane(lane("high", HIGH, high));
        Lanes::of_orb(builder.build().unwrap(), None, barriers)
    }

    /// Lanes of a pool that is made while the ORB serves, the urgent one first.
    fn that_come_later(low: ThreadPoolConfig, high: ThreadPoolConfig) -> Lanes {
        let orb = server_of(real_time()).build().unwrap();
        let lanes = [lane("high", HIGH, high), lane("low", LOW, low)];
        let pool = orb.rt_orb().unwrap().create_threadpool("lanes", lanes).unwrap();
        let barrier = Arc::<Barrier>::default();
        Lanes::of_orb(orb, Some(pool), [barrier.clone(), barrier])
    }

    fn of_orb(orb: Orb, threadpool: Option<ThreadpoolId>, barriers: [Arc<Barrier>; 2]) -> Lanes {
        let [low_barrier, barrier] = barriers;
        let (at_low, at) = (low_barrier.clone(), barrier.clone());
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let (told, current) = (seen.clone(), orb.rt_current().unwrap());
        let servant = Hooked::new(move || {
            let it = current.priority().ok();
            told.lock().unwrap().push((std::thread::current().id(), it));
            if it == Some(priority(LOW)) {
                at_low.pass()
            } else {
                at.pass()
            }
            Ok::<(), SystemException>(())
        });
        let model = Some(PriorityModel::ClientPropagated { default: Priority::MIN });
        let policies = PoaPolicies { priority_model: model, threadpool, ..PoaPolicies::default() };
        let poa = orb.root_poa().create_poa("lanes", None, policies).unwrap();
        poa.manager().activate().unwrap();
        let probe = poa.activate(servant).unwrap();
        Lanes { orb, probe, barrier, low_barrier, seen, clients: Vec::new() }
    }

    fn connect(&self, lane: &str) -> TcpStream {
        raw::connect(&self.orb.lane(lane).unwrap().reference(self.probe.object()).unwrap())
    }

    fn ping(&self) -> Vec<u8> {
        raw::request(self.probe.object(), "ping", &[])
    }

    fn send(&mut self, lane: &str) {
        let mut stream = self.connect(lane);
        raw::write(&mut stream, &self.ping());
        self.clients.push(stream);
    }

    /// Sends a request, and waits until so many are in the servant.
    fn enter(&mut self, lane: &str, entered: usize) {
        self.send(lane);
        eventually("the request has a thread", || self.barrier.entered() == entered);
    }

    /// Has the one thread of a lane come back for work twice, or be lent.
    fn serve_twice(&self, lane: &str) {
        let mut stream = self.connect(lane);
        for _ in 0..2 {
            raw::write(&mut stream, &raw::request(self.probe.object(), "blocked", &[]));
            stream.set_nonblocking(true).unwrap();
            let is_answered = || stream.peek(&mut [0]).is_ok();
            eventually("the lane serves, or its thread is lent", || is_answered() || self.borrowed() > 0);
            if self.borrowed() > 0 {
                return;
            }
            stream.set_nonblocking(false).unwrap();
            assert_eq!(raw::read_message(&mut stream)[7], 1, "a Reply");
        }
    }

    fn borrowed(&self) -> u64 {
        self.orb.status().total("threads_borrowed_total")
    }

    fn buffered(&self) -> u64 {
        buffered(&self.orb)
    }

    /// Lets the servants return. Each client has its reply.
    fn answer(&mut self) {
        self.barrier.open();
        self.low_barrier.open();
        for stream in &mut self.clients {
            assert_eq!(raw::read_message(stream)[7], 1, "a Reply");
        }
        self.clients.clear();
    }

    fn end(mut self) {
        self.answer();
        self.orb.shutdown(true).unwrap();
        eventually("all threads end", || {
            serving_threads() + threads_named("dynamic") + threads_named("overflow") == 0
        });
    }
}

/// A pool of this many threads that helps others out.
fn helping(threads: usize) -> ThreadPoolConfig {
    ThreadPoolConfig::new(threads).borrowing(true)
}

#[test]
fn a_busy_lane_takes_waiting_threads_of_a_lower_one_and_gives_them_back() {
    let _alone = alone();
    // With one thread in the low lane, the lent one is that which waits for connections. With more, most follow it.
    let make: [fn(_, _) -> Lanes; 2] = [Lanes::new, Lanes::that_come_later];
    for (low, make) in [(1, make[0]), (3, make[0]), (3, make[1])] {
        let mut lanes = make(helping(low), helping(1));
        for entered in 1..=1 + low {
            lanes.enter("high", entered);
        }
        assert_eq!(lanes.borrowed(), low as u64);
        // No thread is left: these wait in their sockets.
        lanes.send("high");
        lanes.send("low");
        lanes.answer();
        lanes.enter("low", 4 + low);
        lanes.answer();

        let seen = lanes.seen.lock().unwrap().clone();
        let at = |number| seen.iter().filter(|(_, it)| *it == Some(priority(number))).count();
        assert_eq!((at(HIGH), at(LOW)), (2 + low, 2), "each request has the priority of its lane");
        let (last, _) = *seen.last().unwrap();
        assert!(
            low > 1 || seen[1].0 == last,
            "a thread of the low lane was lent, and serves the low lane again"
        );
        assert_eq!(threads_named("pool"), 1 + low, "no thread was made");
        lanes.end();
    }
}

#[test]
fn a_thread_that_becomes_free_serves_a_more_urgent_lane_before_its_own() {
    let _alone = alone();
    let buffering = RequestBuffering::UpTo { requests_max: 2, bytes_max: 1 << 20 };
    for high in [helping(1), helping(1).buffering(buffering)] {
        let mut lanes = Lanes::with_barriers(helping(1), high, Default::default());
        lanes.send("low");
        eventually("the low lane is busy", || lanes.low_barrier.entered() == 1);
        lanes.enter("high", 1);
        lanes.send("high");
        lanes.send("low");
        if high != helping(1) {
            eventually("the request is buffered", || lanes.buffered() == 1);
        }
        lanes.low_barrier.open();
        eventually("the low lane's thread serves the high lane", || lanes.barrier.entered() == 2);
        assert_eq!(lanes.borrowed(), 1);
        lanes.end();
    }
}

#[test]
fn a_lane_lends_to_none_that_is_less_urgent_and_to_none_that_does_not_lend() {
    let _alone = alone();
    let buffering = RequestBuffering::UpTo { requests_max: 4, bytes_max: 1 << 20 };
    let lends_nothing = ThreadPoolConfig::new(1);
    for (busy, low, high) in [
        ("low", helping(1).buffering(buffering), helping(1)),
        ("high", lends_nothing, helping(1).buffering(buffering)),
        ("high", helping(1), lends_nothing.buffering(buffering)),
    ] {
        let idle = if busy == "low" { "high" } else { "low" };
        let mut lanes = Lanes::new(low, high);
        lanes.enter(busy, 1);
        lanes.send(busy);
        eventually("the second request is buffered", || lanes.buffered() == 1 || lanes.borrowed() > 0);
        // The thread may not have waited yet when the request came, and helps before it serves its own lane.
        lanes.serve_twice(idle);
        assert_eq!((lanes.buffered(), lanes.borrowed()), (1, 0), "{busy}");
        lanes.end();
    }
}

#[test]
fn a_request_takes_a_dynamic_thread_before_a_borrowed_one_and_that_before_the_buffer() {
    let _alone = alone();
    let buffering = RequestBuffering::UpTo { requests_max: 1, bytes_max: 1 << 20 };
    let mut lanes = Lanes::new(helping(1), helping(1).dynamic_threads(1).buffering(buffering));
    lanes.enter("high", 1);
    lanes.enter("high", 2);
    assert_eq!((lanes.borrowed(), threads_named("dynamic")), (0, 1));
    lanes.enter("high", 3);
    assert_eq!((lanes.borrowed(), lanes.buffered()), (1, 0));
    lanes.send("high");
    eventually("the request is buffered", || lanes.buffered() == 1);
    lanes.send("high");
    eventually("the request is refused", || lanes.orb.status().total("requests_refused_total") == 1);
    lanes.end();
}

/// Threads are lent, lead and follow while requests come to both lanes.
#[test]
fn no_request_is_lost_while_threads_come_and_go_between_lanes() {
    const CLIENTS: usize = 4;
    const EACH: usize = 150;
    let _alone = alone();
    let lanes = Lanes::new(helping(2), helping(1));
    lanes.barrier.open();
    let clients: Vec<_> = ["low", "high"]
        .into_iter()
        .flat_map(|lane| (0..CLIENTS).map(move |_| lane))
        .map(|lane| client_in_rounds(lanes.connect(lane), lanes.ping(), EACH))
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let seen = lanes.seen.lock().unwrap().len();
    assert_eq!(seen, 2 * CLIENTS * 2 * EACH, "each request once");
    lanes.end();
}
