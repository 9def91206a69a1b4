//! The number of a server's threads, and requests whose client has gone. The tests have a process of their
//! own, because they count threads by their names. The clients are raw sockets, which have no threads.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use ironorb::{Orb, OrbConfig, ServerConcurrency, SystemException, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::wires::{Exchange, ExchangeRef, ListenerRef};
use ironorb_tests::{Exchanging, Hooked, Listening, eventually, raw};

/// Serialises the tests of this process: each counts the threads of all of it.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The number of threads that serve or wait for a client. The system keeps 15 bytes of a name.
fn serving_threads() -> usize {
    const NAMES: [&str; 7] = ["hybrid", "connect", "helper", "stalled", "pool", "reactor", "held"];
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let serves = |comm: &str| NAMES.iter().any(|name| comm.trim().trim_start_matches("ironorb-") == *name);
    names.filter(|comm| serves(comm)).count()
}

/// Blocks upcalls until it is opened.
#[derive(Default)]
struct Barrier {
    entered: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Barrier {
    fn pass(&self) {
        self.entered.fetch_add(1, Ordering::SeqCst);
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
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

fn connect(probe: &ProbeRef) -> TcpStream {
    let port = probe.object().ior().iiop_profiles().next().unwrap().port();
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
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
        assert_eq!(serving_threads(), THREADS);
        barrier.open();
        // No request is lost: the waiting ones are served.
        for stream in &mut streams {
            (0..5).for_each(|_| assert_eq!(raw::read_message(stream)[7], 1, "a Reply"));
            assert!(serving_threads() <= THREADS);
        }
        assert_eq!(barrier.entered(), 5 * CONNECTIONS);
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
        assert_eq!(serving_threads(), THREADS, "{concurrency:?}");
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
        drop(streams);
        orb.shutdown(true).unwrap();
        eventually("all threads end", || serving_threads() == 0);
    }
}

/// The server checks for a client once in each tick of the system's clock, so that short requests do not
/// pay for it.
const TICK_MAX: Duration = Duration::from_millis(20);

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
        std::thread::sleep(TICK_MAX);
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
    assert!(serving_threads() <= 3);
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
