//! Pools whose threads grow in number, and what becomes of requests beyond them (RTCORBA 1.2, 5.9 to 5.11). Part of the
//! program of [`super`], which counts threads.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use ironorb::{
    LaneConfig, Orb, RequestBuffering, ServerConcurrency, ThreadLifetime, ThreadPoolConfig, TypedRef,
};
use ironorb_tests::real_time::{real_time, server_of};
use ironorb_tests::testing::ProbeRef;
use ironorb_tests::{eventually, raw};

use super::{Barrier, alone, buffered, client_in_rounds, connect, server, serving_threads, threads_named};

const REFUSED: &[u8] = b"IDL:omg.org/CORBA/TRANSIENT:1.0";
const COMPLETED_NO: u32 = 1;

/// A server with a pool, and clients each of which has sent a request that waits in its servant.
struct Busy {
    orb: Orb,
    probe: ProbeRef,
    barrier: Arc<Barrier>,
    clients: Vec<TcpStream>,
}

impl Busy {
    /// Has all threads of the pool, `threads` of them, in servants.
    fn new(pool: ThreadPoolConfig, threads: usize) -> Busy {
        let (orb, probe, barrier) = server(ServerConcurrency::ThreadPool(pool), |_| {});
        let mut busy = Busy { orb, probe, barrier, clients: Vec::new() };
        for entered in 1..=threads {
            busy.send();
            eventually("the request has a thread", || busy.barrier.entered() == entered);
        }
        busy
    }

    fn send(&mut self) -> &mut TcpStream {
        let mut stream = connect(&self.probe);
        raw::write(&mut stream, &raw::request(self.probe.object(), "ping", &[]));
        self.clients.push(stream);
        self.clients.last_mut().unwrap()
    }

    fn refused(&self) -> u64 {
        self.orb.status().total("requests_refused_total")
    }

    fn buffered(&self) -> u64 {
        buffered(&self.orb)
    }

    /// Lets the servants return. Each client that was not refused has its reply.
    fn end(mut self, refused: usize) {
        self.barrier.open();
        let mut replies = 0;
        for stream in &mut self.clients {
            let reply = raw::read_message(stream);
            let is_refused = reply.windows(REFUSED.len()).any(|part| part == REFUSED);
            replies += usize::from(!is_refused);
            assert_eq!(reply[7], 1, "a Reply");
        }
        assert_eq!(
            (replies, self.barrier.entered()),
            (self.clients.len() - refused, self.clients.len() - refused)
        );
        drop(self.clients);
        self.orb.shutdown(true).unwrap();
        eventually("all threads end", || serving_threads() + threads_named("dynamic") == 0);
    }
}

#[test]
fn dynamic_threads_come_while_all_are_busy_and_no_more_than_allowed() {
    let _alone = alone();
    let mut busy = Busy::new(ThreadPoolConfig::new(1).dynamic_threads(2), 3);
    assert_eq!((threads_named("pool"), threads_named("dynamic")), (1, 2));
    // One more waits in its socket.
    busy.send();
    busy.send();
    assert_eq!((busy.barrier.inside_max(), busy.refused()), (3, 0));
    let barrier = busy.barrier.clone();
    busy.end(0);
    assert_eq!(barrier.inside_max(), 3);
}

#[test]
fn dynamic_threads_end_when_their_time_is_over() {
    let _alone = alone();
    let short = Duration::from_millis(20);
    for (lifetime, ends) in [
        (ThreadLifetime::Idle(short), true),
        (ThreadLifetime::For(short), true),
        (ThreadLifetime::Forever, false),
    ] {
        let pool = ThreadPoolConfig::new(1).dynamic_threads(2).lifetime(lifetime);
        let busy = Busy::new(pool, 2);
        busy.barrier.open();
        if ends {
            eventually("the dynamic threads end", || threads_named("dynamic") == 0);
            assert_eq!(threads_named("pool"), 1, "the static one stays");
        } else {
            // A thread was started when the last one left the wait, so two exist by now.
            eventually("the dynamic threads exist", || threads_named("dynamic") == 2);
        }
        busy.end(0);
    }
}

#[test]
fn requests_beyond_the_threads_are_buffered_up_to_a_number() {
    let _alone = alone();
    let buffering = RequestBuffering::UpTo { requests_max: 2, bytes_max: 1 << 20 };
    let pool = ThreadPoolConfig::new(1).dynamic_threads(1).buffering(buffering);
    let mut busy = Busy::new(pool, 2);
    for buffered in 1..=2 {
        busy.send();
        eventually("the request is buffered", || busy.buffered() == buffered);
    }
    let refused = raw::read_message(busy.send());
    let native = u32::to_ne_bytes;
    let exception = [REFUSED, b"\0", &native(0x4f4d_0001), &native(COMPLETED_NO)].concat();
    assert!(refused.windows(exception.len()).any(|part| part == exception), "{refused:?}");
    assert_eq!((busy.refused(), busy.barrier.entered()), (1, 2));
    busy.clients.pop();
    busy.end(0);
}

#[test]
fn requests_beyond_the_threads_are_buffered_up_to_a_size() {
    let _alone = alone();
    for (bytes_max, buffered) in [(1 << 20, 1), (10, 0)] {
        let buffering = RequestBuffering::UpTo { requests_max: 8, bytes_max };
        let mut busy = Busy::new(ThreadPoolConfig::new(1).buffering(buffering), 1);
        busy.send();
        eventually("the request is buffered or refused", || busy.buffered() + busy.refused() == 1);
        assert_eq!(busy.buffered(), buffered);
        busy.end(1 - buffered as usize);
    }
}

#[test]
fn requests_beyond_the_threads_are_refused_where_none_may_wait() {
    let _alone = alone();
    let pool = ThreadPoolConfig::new(2).buffering(RequestBuffering::Refused);
    let mut busy = Busy::new(pool, 2);
    for refused in 1..=3 {
        busy.send();
        eventually("the request is refused", || busy.refused() == refused);
    }
    busy.end(3);
}

/// The overflow thread and the others take turns at the same connections.
#[test]
fn no_request_is_lost_between_the_buffer_and_the_threads() {
    const CLIENTS: usize = 8;
    const EACH: usize = 200;
    let _alone = alone();
    let buffering = RequestBuffering::UpTo { requests_max: CLIENTS * EACH, bytes_max: 1 << 30 };
    let pool = ThreadPoolConfig::new(1)
        .dynamic_threads(1)
        .lifetime(ThreadLifetime::Idle(Duration::from_micros(50)))
        .buffering(buffering);
    let (orb, probe, barrier) = server(ServerConcurrency::ThreadPool(pool), |_| {});
    barrier.open();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| client_in_rounds(connect(&probe), raw::request(probe.object(), "ping", &[]), EACH))
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert_eq!(orb.status().total("requests_refused_total"), 0);
    orb.shutdown(true).unwrap();
    eventually("all threads end", || serving_threads() + threads_named("dynamic") == 0);
}

#[test]
fn the_threads_of_a_pool_end_with_it() {
    let _alone = alone();
    let orb = server_of(real_time()).concurrency(ServerConcurrency::Reactor).build().unwrap();
    let rt_orb = orb.rt_orb().unwrap();
    eventually("the default lane serves", || threads_named("reactor") == 1);
    let model = ServerConcurrency::ThreadPool(ThreadPoolConfig::new(3));
    let lane = LaneConfig::new("mode").endpoint("iiop://127.0.0.1:0").concurrency(model);
    eventually("and accepts", || threads_named("keeper") == 1);
    let of_default = 1;
    for _ in 0..3 {
        let pool = rt_orb.create_threadpool("mode", [lane.clone()]).unwrap();
        let serve = || threads_named("pool") == 3 && threads_named("keeper") == of_default + 1;
        eventually("three threads serve, and one accepts", serve);
        rt_orb.destroy_threadpool(pool).unwrap();
        eventually("they end", || threads_named("pool") == 0 && threads_named("keeper") == of_default);
    }
    orb.shutdown(true).unwrap();
}
