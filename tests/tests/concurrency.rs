//! How the concurrency models differ: which threads exist, and which calls wait for others.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use ironorb::{Orb, ServerConcurrency, SystemException, TypedRef};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually, threads_called};

fn serve(concurrency: ServerConcurrency, servant: impl Probe + 'static) -> (Orb, ProbeRef) {
    let orb =
        Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency).build().unwrap();
    let probe = orb.root_poa().activate(servant).unwrap();
    (orb, probe)
}

/// A client with connections of its own.
fn client(probe: &ProbeRef) -> (Orb, ProbeRef) {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let remote = orb.resolve(&probe.object().to_ior_string()).unwrap();
    (orb, remote)
}

#[test]
fn a_reactor_runs_every_servant_on_one_thread() {
    let seen: std::sync::Arc<Mutex<HashSet<ThreadId>>> = Default::default();
    let (threads, inside) = (seen.clone(), AtomicUsize::new(0));
    let servant = Hooked::new(move || {
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
        threads.lock().unwrap().insert(std::thread::current().id());
        std::thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
        Ok::<(), SystemException>(())
    });
    let (orb, probe) = serve(ServerConcurrency::Reactor, servant);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let (_client, remote) = client(&probe);
                // Single calls, and many that arrive together.
                (0..20).for_each(|_| remote.ping().unwrap());
                let together: Vec<_> = (0..50).map(|_| remote.ping_async()).collect();
                together.into_iter().for_each(|pending| pending.wait().unwrap());
            });
        }
    });
    assert_eq!(seen.lock().unwrap().len(), 1);
    orb.shutdown(true).unwrap();
}

const HYBRID: &str = "ironorb-hybrid";

/// Held by the tests with such threads: an ORB's status lists those of all ORBs of the process.
static HAS_HYBRID_THREADS: Mutex<()> = Mutex::new(());

#[test]
fn the_first_connections_of_a_hybrid_server_keep_their_threads() {
    let _alone = HAS_HYBRID_THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let seen: std::sync::Arc<Mutex<Option<String>>> = Default::default();
    let last = seen.clone();
    let servant = Hooked::new(move || {
        *last.lock().unwrap() = std::thread::current().name().map(str::to_owned);
        Ok::<(), SystemException>(())
    });
    // One connection in 32 threads keeps a thread: two.
    let mut builder = Orb::builder().concurrency(ServerConcurrency::Hybrid { threads_max: 64 });
    // A thread that helps where a servant looks blocked has another name.
    builder.config().threads_per_connection_max = 1;
    let orb = builder.endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = orb.root_poa().activate(servant).unwrap();
    let served_by = |remote: &ProbeRef| {
        remote.ping().unwrap();
        seen.lock().unwrap().take().unwrap()
    };
    let mut clients: Vec<(Orb, ProbeRef)> = (0..4)
        .map(|n| {
            let client = client(&probe);
            assert_eq!(served_by(&client.1) == "ironorb-connection", n < 2, "connection {n}");
            client
        })
        .collect();
    assert_eq!(served_by(&clients[0].1), "ironorb-connection");
    // When one of these connections closes, the next new one gets its thread.
    clients.remove(0).0.shutdown(true).unwrap();
    eventually("a place is free", || {
        let (client, remote) = client(&probe);
        let is_own = served_by(&remote) == "ironorb-connection";
        client.shutdown(true).unwrap();
        is_own
    });
    orb.shutdown(true).unwrap();
    eventually("all threads end", || threads_called(&orb, HYBRID) == 0);
}

/// One test, because it counts threads by their names.
#[test]
fn a_hybrid_server_has_threads_for_busy_connections_only() {
    let _alone = HAS_HYBRID_THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    const CONNECTIONS: usize = 200;
    let mut builder = Orb::builder().concurrency(ServerConcurrency::Hybrid { threads_max: 64 });
    // A thread that helps where a servant looks blocked is beyond the limit, and a machine that stands still for a while
    // makes one look so.
    builder.config().threads_per_connection_max = 1;
    let orb = builder.endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
    let clients: Vec<(Orb, ProbeRef)> = (0..CONNECTIONS).map(|_| client(&probe)).collect();
    for round in 0..3 {
        for (_, remote) in &clients {
            assert_eq!(remote.add(round, 1).unwrap(), round + 1);
        }
        assert!(threads_called(&orb, HYBRID) <= 64, "{} threads", threads_called(&orb, HYBRID));
    }
    eventually("threads leave idle connections", || threads_called(&orb, HYBRID) <= 5);
    // The server serves connections that have been idle as before, and large messages too.
    for (_, remote) in &clients {
        let data = vec![7; 100_000];
        assert_eq!(remote.reflect(&data).unwrap(), data);
    }
    orb.shutdown(true).unwrap();
    eventually("all threads end", || threads_called(&orb, HYBRID) == 0);

    // Fewer threads than busy clients: each client is served.
    let (orb, probe) = serve(ServerConcurrency::Hybrid { threads_max: 2 }, Probing::default());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (_client, remote) = client(&probe);
                (0..300).for_each(|n| assert_eq!(remote.add(n, n).unwrap(), 2 * n));
                let together: Vec<_> = (0..100).map(|n| remote.add_async(n, 1)).collect();
                together.into_iter().zip(1..).for_each(|(sum, n)| assert_eq!(sum.wait().unwrap(), n));
            });
        }
        eventually("they are served", || threads_called(&orb, HYBRID) > 0);
        assert!(threads_called(&orb, HYBRID) <= 2);
    });

    // A blocked servant occupies its thread only. Even its own connection is served.
    let (_client, remote) = client(&probe);
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| remote.block());
        eventually("a servant blocks", || probe.blocked().unwrap() == 1);
        assert_eq!(client(&probe).1.add(1, 2).unwrap(), 3);
        remote.release().unwrap();
        blocked.join().unwrap().unwrap();
    });
    orb.shutdown(true).unwrap();
    eventually("all threads end", || threads_called(&orb, HYBRID) == 0);
}
