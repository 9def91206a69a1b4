//! The number of a server's threads, and requests whose client has gone. The tests have a process of their
//! own, because they count threads by their names. The clients are raw sockets, which have no threads.

#[path = "server_threads/borrowing.rs"]
mod borrowing;
#[path = "server_threads/request_order.rs"]
mod request_order;
#[path = "server_threads/static_threads.rs"]
mod static_threads;
#[path = "server_threads/thread_pools.rs"]
mod thread_pools;

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use ironorb::generated::{Call, Replied};
use ironorb::{Orb, OrbConfig, Servant, ServerConcurrency, SystemException, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::wires::{Exchange, ExchangeRef, Listener, ListenerAsync, ListenerRef};
use ironorb_tests::{Exchanging, Hooked, Listening, eventually, raw};
use rustix::time::{ClockId, clock_gettime};

/// Serialises the tests of this process: each counts the threads of all of it.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The number of threads that serve clients. A thread has its name a moment after it has been started, and is
/// listed for a moment after it has ended. So tests wait for a number.
fn serving_threads() -> usize {
    ["hybrid", "connect", "helper", "pool", "reactor", "held"].into_iter().map(threads_named).sum()
}

/// The number of threads whose name is `ironorb-` and this. The system keeps 15 bytes of a name.
fn threads_named(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|comm| comm.trim().trim_start_matches("ironorb-") == name).count()
}

/// Blocks upcalls until it is opened, and knows how many were in it at once.
#[derive(Default)]
struct Barrier {
    entered: AtomicUsize,
    inside: AtomicUsize,
    inside_max: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Barrier {
    fn pass(&self) {
        self.inside_max.fetch_max(1 + self.inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        self.entered.fetch_add(1, Ordering::SeqCst);
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// The most upcalls at once. Each had a thread.
    fn inside_max(&self) -> usize {
        self.inside_max.load(Ordering::SeqCst)
    }

    fn entered(&self) -> usize {
        self.entered.load(Ordering::SeqCst)
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// A server whose `ping` waits at a barrier.
fn server(
    concurrency: ServerConcurrency,
    settings: impl FnOnce(&mut OrbConfig),
) -> (Orb, ProbeRef, Arc<Barrier>) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
    settings(builder.config());
    let orb = builder.build().unwrap();
    let barrier = Arc::new(Barrier::default());
    let at = barrier.clone();
    let servant = Hooked::new(move || {
        at.pass();
        Ok::<(), SystemException>(())
    });
    let probe = orb.root_poa().activate(servant).unwrap();
    (orb, probe, barrier)
}

/// The requests that pools have read and that wait for a thread.
fn buffered(orb: &Orb) -> u64 {
    let status = orb.status();
    status.queues.iter().filter(|queue| queue.name == "buffered_requests").map(|queue| queue.items).sum()
}

/// A client that sends a request so many times, one to three at once, and has a reply to each.
fn client_in_rounds(mut stream: TcpStream, request: Vec<u8>, rounds: usize) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for round in 0..rounds {
            raw::write(&mut stream, &request.repeat(1 + round % 3));
            for _ in 0..=(round % 3) {
                assert_eq!(raw::read_message(&mut stream)[7], 1, "a Reply");
            }
        }
    })
}

fn connect(probe: &ProbeRef) -> TcpStream {
    raw::connect(probe.object())
}

fn oneway(probe: &ProbeRef, operation: &str) -> Vec<u8> {
    let mut request = raw::request(probe.object(), operation, &[]);
    request[16] = 0; // response flags
    request
}

#[test]
fn a_hybrid_server_has_no_more_threads_than_threads_max() {
    const THREADS: usize = 40;
    const CONNECTIONS: usize = 100;
    let _alone = alone();
    for settings in [ServerConcurrency::Hybrid { threads_max: THREADS }, ServerConcurrency::default()] {
        let (orb, probe, barrier) = server(settings, |config| config.server_threads_max = THREADS);
        let request = raw::request(probe.object(), "ping", &[]);
        let mut streams: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect(&probe)).collect();
        streams.iter_mut().for_each(|stream| raw::write(stream, &request.repeat(5)));
        eventually("all threads are in servants", || barrier.entered() == THREADS);
        eventually("these are all threads", || serving_threads() == THREADS);
        barrier.open();
        // No request is lost: the waiting ones are served.
        for stream in &mut streams {
            (0..5).for_each(|_| assert_eq!(raw::read_message(stream)[7], 1, "a Reply"));
        }
        assert_eq!((barrier.entered(), barrier.inside_max()), (5 * CONNECTIONS, THREADS));
        drop(streams);
        orb.shutdown(true).unwrap();
        eventually("all threads end", || serving_threads() == 0);
    }
}

/// Idle connections must not keep the threads that others need, however low the limit.
#[test]
fn idle_connections_leave_threads_to_others() {
    const THREADS: usize = 8;
    let _alone = alone();
    let (orb, probe, barrier) =
        server(ServerConcurrency::default(), |config| config.server_threads_max = THREADS);
    let mut streams: Vec<TcpStream> = (0..3 * THREADS).map(|_| connect(&probe)).collect();
    for stream in &mut streams {
        raw::write(stream, &raw::request(probe.object(), "blocked", &[]));
        assert_eq!(raw::read_message(stream)[7], 1, "a Reply");
    }
    let ping = raw::request(probe.object(), "ping", &[]);
    let late = &mut streams[2 * THREADS..];
    late.iter_mut().for_each(|stream| raw::write(stream, &ping));
    eventually("all threads serve the busy connections", || barrier.entered() == THREADS);
    barrier.open();
    late.iter_mut().for_each(|stream| assert_eq!(raw::read_message(stream)[7], 1, "a Reply"));
    drop(streams);
    orb.shutdown(true).unwrap();
    eventually("all threads end", || serving_threads() == 0);
}

#[test]
fn every_concurrency_model_respects_server_threads_max() {
    const THREADS: usize = 5;
    let _alone = alone();
    for concurrency in
        [ServerConcurrency::ThreadPerConnection, ServerConcurrency::LeaderFollowers { threads: 50 }]
    {
        let (orb, probe, barrier) = server(concurrency, |config| config.server_threads_max = THREADS);
        let request = raw::request(probe.object(), "ping", &[]);
        let mut streams: Vec<TcpStream> = (0..3).map(|_| connect(&probe)).collect();
        streams.iter_mut().for_each(|stream| raw::write(stream, &request.repeat(5)));
        eventually("all threads are in servants", || barrier.entered() == THREADS);
        eventually("these are all threads", || serving_threads() == THREADS);
        if concurrency == ServerConcurrency::ThreadPerConnection {
            // One more connection finds no thread, and the server closes it at once.
            let mut refused = connect(&probe);
            let closed = raw::read_message(&mut refused);
            assert!(closed.is_empty() || closed[7] == 5, "no bytes, or CloseConnection");
        }
        barrier.open();
        for stream in &mut streams {
            (0..5).for_each(|_| assert_eq!(raw::read_message(stream)[7], 1, "a Reply"));
        }
        assert_eq!(barrier.inside_max(), THREADS, "{concurrency:?}");
        drop(streams);
        orb.shutdown(true).unwrap();
        eventually("all threads end", || serving_threads() == 0);
    }
}

/// The time of the system's last tick. The server checks for a client once in each tick, so that short
/// requests do not pay for it.
fn tick() -> (i64, i64) {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    (time.tv_sec, time.tv_nsec)
}

#[test]
fn requests_of_lost_clients_are_not_executed() {
    const CONNECTIONS: usize = 8;
    const EACH: usize = 5;
    let _alone = alone();
    for (concurrency, threads) in [
        (ServerConcurrency::ThreadPerConnection, 2 * CONNECTIONS),
        (ServerConcurrency::LeaderFollowers { threads: 3 }, 3),
        (ServerConcurrency::Reactor, 1),
        (ServerConcurrency::Hybrid { threads_max: 4 }, 4),
        // Two of these connections have threads of their own.
        (ServerConcurrency::Hybrid { threads_max: 64 }, 2 * CONNECTIONS),
    ] {
        let (orb, probe, barrier) = server(concurrency, |config| config.threads_per_connection_max = 2);
        let together =
            [raw::request(probe.object(), "ping", &[]).repeat(EACH), oneway(&probe, "tick")].concat();
        let mut streams: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect(&probe)).collect();
        streams.iter_mut().for_each(|stream| raw::write(stream, &together));
        eventually("all threads are in servants", || barrier.entered() == threads);
        drop(streams);
        let lost_at = tick();
        eventually("the clock ticks", || tick() > lost_at);
        barrier.open();
        // Oneways are executed: their clients may have closed the connection on purpose.
        eventually("oneways are carried out", || probe.ticks().unwrap() as usize == CONNECTIONS);
        let mut stream = connect(&probe);
        raw::write(&mut stream, &raw::request(probe.object(), "blocked", &[]));
        assert_eq!(raw::read_message(&mut stream)[7], 1, "a Reply");
        assert_eq!(barrier.entered(), threads, "{concurrency:?}");
        drop(stream);
        orb.shutdown(true).unwrap();
    }
}

/// A client that closes only its sending side counts as gone. It still gets the reply to a request that a
/// servant has begun.
#[test]
fn a_client_that_half_closes_counts_as_gone() {
    let _alone = alone();
    for concurrency in [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 1 },
        ServerConcurrency::Reactor,
        ServerConcurrency::Hybrid { threads_max: 1 },
    ] {
        let (orb, probe, barrier) = server(concurrency, |config| config.threads_per_connection_max = 1);
        let ping = raw::request(probe.object(), "ping", &[]);
        let mut with_server = ping.clone();
        with_server[16] = 1; // SYNC_WITH_SERVER
        let mut stream = connect(&probe);
        raw::write(&mut stream, &[&ping[..], &ping, &with_server, &oneway(&probe, "tick")].concat());
        eventually("the first is in its servant", || barrier.entered() == 1);
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let closed_at = tick();
        eventually("the clock ticks", || tick() > closed_at);
        barrier.open();
        assert_eq!(raw::read_message(&mut stream)[7], 1, "a Reply");
        eventually("the oneway is carried out", || probe.ticks().unwrap() == 1);
        assert_eq!(barrier.entered(), 1, "{concurrency:?}");
        let last = raw::read_message(&mut stream);
        assert!(last.is_empty() || last[7] == raw::CLOSE, "no other reply");
        orb.shutdown(true).unwrap();
    }
}

/// Nested calls back and forth over one connection need more threads than there are. The call without a
/// thread fails, and so do the calls around it, without a timeout.
#[test]
fn circular_calls_fail_when_the_threads_are_used_up() {
    let _alone = alone();
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    builder.config().concurrency = ServerConcurrency::Hybrid { threads_max: 3 };
    builder.config().bidirectional = true;
    builder.config().call_timeout = None;
    let orb = builder.build().unwrap();
    let servant = Arc::new(Exchanging::default());
    let exchange: ExchangeRef = orb.root_poa().activate_shared(servant.clone()).unwrap();
    *servant.itself.lock().unwrap() = Some(exchange.clone());

    let mut builder = Orb::builder().no_endpoint().call_timeout(None);
    builder.config().bidirectional = true;
    builder.config().connections_per_endpoint_max = 1;
    let client = builder.build().unwrap();
    let servant = Arc::new(Listening::default());
    let listener: ListenerRef = client.root_poa().activate_shared(servant.clone()).unwrap();
    *servant.itself.lock().unwrap() = Some(listener.clone());
    let remote: ExchangeRef = client.resolve(&exchange.object().to_ior_string()).unwrap();

    assert_eq!(remote.call_back(Some(&listener), 2).unwrap(), 3, "as deep as the number of threads allows");
    let e = remote.call_back(Some(&listener), 9).unwrap_err();
    assert_eq!(e.kind, ironorb::SystemExceptionKind::Transient, "{e}");
    assert_eq!(remote.call_back(Some(&listener), 2).unwrap(), 3, "as before");
    eventually("the bound holds", || serving_threads() <= 3);
    client.shutdown(true).unwrap();
    orb.shutdown(true).unwrap();
}

/// A manager holds requests of a client that closes its connection.
#[test]
fn held_requests_of_lost_clients_are_not_executed() {
    let _alone = alone();
    let (orb, probe, barrier) = server(ServerConcurrency::ThreadPerConnection, |_| {});
    barrier.open();
    orb.root_poa().manager().hold_requests(false).unwrap();
    let mut stream = connect(&probe);
    let pings = raw::request(probe.object(), "ping", &[]).repeat(3);
    raw::write(&mut stream, &[pings, oneway(&probe, "tick")].concat());
    eventually("it has a thread", || serving_threads() == 1);
    drop(stream);
    eventually("the thread has found the end", || serving_threads() == 0);
    orb.root_poa().manager().activate().unwrap();
    // The manager releases the requests of a client in order, and the oneway is its last.
    eventually("the oneway is carried out", || probe.ticks().unwrap() == 1);
    assert_eq!(barrier.entered(), 0);
    orb.shutdown(true).unwrap();
}

/// More than the system takes for a client that does not read, with the buffers that `Filling` sets.
const REPLY_BYTES: usize = 1 << 20;

/// Answers `filled` with [`REPLY_BYTES`], after a barrier.
#[derive(Default)]
struct Filling(Barrier);

impl Listener for Filling {
    fn nested_call(&self, _: Option<&ExchangeRef>, _: i32) -> Result<i32, SystemException> {
        Ok(1)
    }

    fn notify(&self, _: &str) -> Result<(), SystemException> {
        Ok(())
    }

    fn filled(&self, _: &[u8]) -> Result<Vec<u8>, SystemException> {
        self.0.pass();
        Ok(vec![7; REPLY_BYTES])
    }
}

/// A server of an object with large replies, and of one with small replies.
fn filling_server(
    concurrency: ServerConcurrency,
    settings: impl FnOnce(&mut OrbConfig),
) -> (Orb, Arc<Filling>, ListenerRef, ProbeRef) {
    let (orb, probe, barrier) = server(concurrency, |config| {
        config.send_queue_bytes = Some(32 << 10);
        config.transmit_timeout = Duration::from_secs(300);
        settings(config);
    });
    barrier.open();
    let filling = Arc::new(Filling::default());
    let listener = orb.root_poa().activate_shared(filling.clone()).unwrap();
    (orb, filling, listener, probe)
}

fn fill(listener: &ListenerRef) -> Vec<u8> {
    raw::request(listener.object(), "filled", &[0; 4])
}

fn is_served(probe: &ProbeRef) -> bool {
    let mut stream = connect(probe);
    raw::write(&mut stream, &raw::request(probe.object(), "ping", &[]));
    raw::read_message(&mut stream).get(7) == Some(&1)
}

const WITHOUT_OWN_THREADS: [ServerConcurrency; 3] = [
    ServerConcurrency::LeaderFollowers { threads: 4 },
    ServerConcurrency::Hybrid { threads_max: 4096 },
    ServerConcurrency::Reactor,
];

/// More clients than there may be threads do not read. No thread waits for them, and each gets all its
/// replies once it reads.
#[test]
fn clients_that_do_not_read_keep_no_thread_from_others() {
    const THREADS: usize = 4;
    const CONNECTIONS: usize = 3 * THREADS;
    let _alone = alone();
    for concurrency in WITHOUT_OWN_THREADS {
        let (orb, filling, listener, probe) =
            filling_server(concurrency, |config| config.server_threads_max = THREADS);
        filling.0.open();
        let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| raw::connect_narrow(listener.object())).collect();
        streams.iter_mut().for_each(|stream| raw::write(stream, &fill(&listener).repeat(3)));
        eventually("each has a reply", || filling.0.entered() >= CONNECTIONS);
        assert!(is_served(&probe), "{concurrency:?}");
        eventually("the bound holds", || serving_threads() <= THREADS);
        eventually("one thread writes", || threads_named("writer") == 1);
        for stream in &mut streams {
            for _ in 0..3 {
                assert!(raw::read_message(stream).len() > REPLY_BYTES, "{concurrency:?}");
            }
        }
        assert_eq!(filling.0.entered(), 3 * CONNECTIONS);
        assert!(filling.0.inside_max() <= THREADS);
        drop(streams);
        orb.shutdown(true).unwrap();
        eventually("all threads end", || serving_threads() + threads_named("writer") == 0);
    }
}

/// A client that reads nothing is closed after `transmit_timeout`, and one that reads is not.
#[test]
fn clients_that_never_read_are_closed() {
    let _alone = alone();
    for concurrency in WITHOUT_OWN_THREADS {
        let (orb, filling, listener, probe) = filling_server(concurrency, |config| {
            config.server_threads_max = 4;
            config.server_connections_max = 1;
            config.transmit_timeout = Duration::from_secs(1);
        });
        filling.0.open();
        let mut silent = raw::connect_narrow(listener.object());
        raw::write(&mut silent, &fill(&listener));
        eventually("its connection has gone", || is_served(&probe));
        let (mut rest, mut taken) = ([0; 4096], 0);
        while let Ok(count @ 1..) = std::io::Read::read(&mut silent, &mut rest) {
            taken += count;
        }
        assert!(taken < REPLY_BYTES, "{concurrency:?}: {taken}");
        // The next one has the server for itself.
        eventually("there is room for one more", || {
            let mut stream = raw::connect_narrow(listener.object());
            raw::write(&mut stream, &fill(&listener));
            raw::read_message(&mut stream).len() > REPLY_BYTES
        });
        orb.shutdown(true).unwrap();
    }
}

/// The reply to a request in progress is sent whole before the server has stopped, although its client reads
/// late.
#[test]
fn a_server_that_stops_sends_its_last_replies() {
    let _alone = alone();
    for concurrency in WITHOUT_OWN_THREADS {
        let (orb, filling, listener, _) = filling_server(concurrency, |config| config.server_threads_max = 4);
        let mut stream = raw::connect_narrow(listener.object());
        raw::write(&mut stream, &fill(&listener));
        eventually("the servant has the request", || filling.0.entered() == 1);
        std::thread::scope(|scope| {
            let stops = scope.spawn(|| orb.shutdown(true).unwrap());
            let address = stream.peer_addr().unwrap();
            eventually("the server accepts no more", || TcpStream::connect(address).is_err());
            filling.0.open();
            eventually("the reply waits", || threads_named("writer") == 1);
            assert!(raw::read_message(&mut stream).len() > REPLY_BYTES, "{concurrency:?}");
            // CloseConnection follows where the socket has room for it by then.
            let last = raw::read_message(&mut stream);
            assert!(last.is_empty() || last[7] == raw::CLOSE, "{concurrency:?}: {last:?}");
            stops.join().unwrap();
        });
        eventually("all threads end", || serving_threads() + threads_named("writer") == 0);
    }
}

/// Without waiting, a server stops although clients do not read.
#[test]
fn a_server_stops_at_once_without_waiting_for_clients_that_do_not_read() {
    let _alone = alone();
    for concurrency in WITHOUT_OWN_THREADS {
        let (orb, filling, listener, _) = filling_server(concurrency, |config| config.server_threads_max = 4);
        filling.0.open();
        let mut stream = raw::connect_narrow(listener.object());
        raw::write(&mut stream, &fill(&listener));
        eventually("the reply waits", || threads_named("writer") == 1);
        orb.shutdown(false).unwrap();
        eventually("all threads end", || serving_threads() + threads_named("writer") == 0);
        drop(stream);
    }
}

/// Passes `filled` on to another server. The thread that receives all replies of the ORB sends the reply.
struct Passing(ListenerRef);

impl Servant for Passing {
    fn repository_ids(&self) -> &[&'static str] {
        &[ListenerRef::REPOSITORY_ID]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        call.deferred(
            |_| Ok(()),
            |(), reply| self.0.filled_async(&[]).on_reply(move |result| reply.send(result)),
            |w, filled: &Vec<u8>| w.write_octets(filled),
        )
    }
}

#[test]
fn a_reply_that_is_passed_on_needs_no_thread() {
    let _alone = alone();
    for concurrency in
        [ServerConcurrency::ThreadPerConnection, ServerConcurrency::LeaderFollowers { threads: 1 }]
    {
        let (target, filling, listener, _) = filling_server(ServerConcurrency::ThreadPerConnection, |_| {});
        filling.0.open();
        let (orb, _, _, _) = filling_server(concurrency, |config| config.server_threads_max = 1);
        let passed_on: ListenerRef = orb.resolve(&listener.object().to_ior_string()).unwrap();
        let poa = orb.root_poa();
        let id = poa.activate_object(Arc::new(Passing(passed_on))).unwrap();
        let passing: ListenerRef = poa.id_to_reference(&id).unwrap().narrow_unchecked();
        let mut stream = raw::connect_narrow(passing.object());
        raw::write(&mut stream, &fill(&passing).repeat(2));
        eventually("the replies wait", || threads_named("writer") == 1);
        for _ in 0..2 {
            assert!(raw::read_message(&mut stream).len() > REPLY_BYTES, "{concurrency:?}");
        }
        drop(stream);
        orb.shutdown(true).unwrap();
        target.shutdown(true).unwrap();
        eventually("all threads end", || serving_threads() + threads_named("writer") == 0);
    }
}

/// A server that has no thread left calls its client over the client's connection, with more than the socket
/// takes.
#[test]
fn large_calls_to_a_client_need_no_thread() {
    let _alone = alone();
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    builder.config().concurrency = ServerConcurrency::ThreadPerConnection;
    builder.config().server_threads_max = 1;
    builder.config().bidirectional = true;
    let orb = builder.build().unwrap();
    let servant = Arc::new(Exchanging::default());
    let exchange: ExchangeRef = orb.root_poa().activate_shared(servant.clone()).unwrap();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().bidirectional = true;
    builder.config().connections_per_endpoint_max = 1;
    let client = builder.build().unwrap();
    let listener: ListenerRef = client.root_poa().activate(Listening::default()).unwrap();
    let remote: ExchangeRef = client.resolve(&exchange.object().to_ior_string()).unwrap();
    remote.keep(Some(&listener)).unwrap();
    let data = vec![7; 16 << 20];
    let calls = [(); 3].map(|()| servant.kept().unwrap().filled_async(&data));
    for call in calls {
        assert_eq!(call.wait().unwrap().len(), data.len());
    }
    client.shutdown(true).unwrap();
    orb.shutdown(true).unwrap();
}
