//! Bidirectional GIOP: a server calls objects of a client over the connection that the client has made.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ironorb::{Orb, ServerConcurrency, SystemException, SystemExceptionKind, TypedRef};
use ironorb_tests::relay::Relay;
use ironorb_tests::wires::{Exchange, ExchangeAsync, ExchangeRef, Listener, ListenerRef};
use ironorb_tests::{Exchanging, Listening, eventually, raw};

const ALL: [ServerConcurrency; 3] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 8 },
    ServerConcurrency::Hybrid { threads_max: 8 },
];

fn server(concurrency: ServerConcurrency, bidirectional: bool) -> (Orb, ExchangeRef) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
    builder.config().bidirectional = bidirectional;
    let orb = builder.build().unwrap();
    let servant = Arc::new(Exchanging::default());
    let exchange: ExchangeRef = orb.root_poa().activate_shared(servant.clone()).unwrap();
    *servant.itself.lock().unwrap() = Some(exchange.clone());
    (orb, exchange)
}

/// A client without a reachable address: servers reach its objects only over the connections that it makes.
fn client(settings: impl FnOnce(&mut ironorb::OrbConfig)) -> (Orb, Arc<Listening>, ListenerRef) {
    let (listener, port) = raw::listen();
    drop(listener);
    let mut builder = Orb::builder().no_endpoint().publish(&format!("127.0.0.1:{port}"));
    builder.config().bidirectional = true;
    settings(builder.config());
    let orb = builder.build().unwrap();
    let servant = Arc::new(Listening::default());
    let listener: ListenerRef = orb.root_poa().activate_shared(servant.clone()).unwrap();
    *servant.itself.lock().unwrap() = Some(listener.clone());
    (orb, servant, listener)
}

#[test]
fn callbacks_arrive_during_a_call_and_after_it() {
    for concurrency in ALL {
        let (server, exchange) = server(concurrency, true);
        let (client, servant, listener) = client(|_| {});
        let remote: ExchangeRef = client.resolve(&exchange.object().to_ior_string()).unwrap();
        // Each call waits for the next one in the opposite direction, over one connection.
        for depth in 0..4 {
            assert_eq!(remote.call_back(Some(&listener), depth).unwrap(), depth + 1, "{concurrency:?}");
        }
        remote.keep(Some(&listener)).unwrap();
        // No thread of the client waits at this time.
        exchange.notify_listener("hello").unwrap();
        eventually("the callback has arrived", || *servant.notified.lock().unwrap() == ["hello"]);
        let data: Vec<u8> = (0..500_000u32).map(|i| i as u8).collect();
        assert!(exchange.fill(&data).unwrap().iter().rev().eq(data.iter()));
        // Calls in both directions at once, many times.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert_eq!(exchange.fill(b"abc").unwrap(), b"cba");
                        assert_eq!(remote.narrow("x").unwrap(), "x");
                    }
                });
            }
        });
        client.shutdown(true).unwrap();
        // Without the connection the client cannot be reached.
        let e = exchange.fill(b"").unwrap_err();
        assert!(matches!(e.kind, SystemExceptionKind::Transient | SystemExceptionKind::CommFailure), "{e}");
        server.shutdown(true).unwrap();
    }
}

#[test]
fn large_callbacks_in_fragments() {
    let (_server, exchange) = server(ServerConcurrency::ThreadPerConnection, true);
    let (client, _servant, listener) = client(|config| config.connection.fragment_bytes = Some(4096));
    let remote: ExchangeRef = client.resolve(&exchange.object().to_ior_string()).unwrap();
    remote.keep(Some(&listener)).unwrap();
    let data: Vec<u8> = (0..8_000_000u32).map(|i| (i / 3) as u8).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(exchange.fill(&data).unwrap().iter().rev().eq(data.iter())));
            scope.spawn(|| assert!(remote.reflect(&data).unwrap() == data));
        }
    });
}

#[test]
fn a_server_without_bidirectional_giop_connects_to_the_client() {
    let (_server, exchange) = server(ServerConcurrency::ThreadPerConnection, false);
    let (client, _servant, listener) = client(|_| {});
    let remote: ExchangeRef = client.resolve(&exchange.object().to_ior_string()).unwrap();
    let e = remote.call_back(Some(&listener), 0).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::Transient, "{e}");
}

#[test]
fn objects_made_after_the_connection_can_be_called_over_it() {
    let (_server, exchange) = server(ServerConcurrency::ThreadPerConnection, true);
    let (listener, port) = raw::listen();
    drop(listener);
    let mut builder = Orb::builder().no_endpoint().publish(&format!("127.0.0.1:{port}"));
    builder.config().bidirectional = true;
    let client = builder.build().unwrap();
    let remote: ExchangeRef = client.resolve(&exchange.object().to_ior_string()).unwrap();
    assert_eq!(remote.narrow("before").unwrap(), "before");
    let listener: ListenerRef = client.root_poa().activate(Listening::default()).unwrap();
    assert_eq!(remote.call_back(Some(&listener), 0).unwrap(), 1);
}

/// Calls in both directions share the client's connection.
#[test]
fn calls_in_both_directions_use_one_connection() {
    let (_server, exchange) = server(ServerConcurrency::ThreadPerConnection, true);
    let relay = Relay::to(exchange.object());
    let (client, servant, listener) = client(|_| {});
    let remote: ExchangeRef = client.resolve(&relay.ior_of(exchange.object())).unwrap();
    assert_eq!(remote.call_back(Some(&listener), 0).unwrap(), 1);
    remote.keep(Some(&listener)).unwrap();
    exchange.notify_listener("over the relay").unwrap();
    eventually("the callback has arrived", || servant.notified.lock().unwrap().len() == 1);
    assert_eq!(relay.connections(), 1);
}

/// The clients make more requests at once than the server may have threads for a connection, and all of
/// them call back. The replies come although every thread waits for one.
#[test]
fn all_server_threads_may_wait_for_the_client() {
    for (concurrency, together) in [
        (ServerConcurrency::ThreadPerConnection, 16),
        (ServerConcurrency::LeaderFollowers { threads: 4 }, 4),
        (ServerConcurrency::Hybrid { threads_max: 4 }, 4),
    ] {
        let (_server, exchange) = server(concurrency, true);
        let (client, _, _) = client(|config| {
            config.connections_per_endpoint_max = 1;
            config.callback_threads_max = 40;
        });
        let crowd: ListenerRef = client.root_poa().activate(Crowd::of(together)).unwrap();
        let remote: ExchangeRef = client.resolve(&exchange.object().to_ior_string()).unwrap();
        let pending: Vec<_> = (0..40).map(|_| remote.call_back_async(Some(&crowd), 0)).collect();
        for answer in pending {
            assert_eq!(answer.wait().unwrap(), 1, "{concurrency:?}");
        }
        // Without callbacks the order of requests is kept.
        remote.keep(Some(&crowd)).unwrap();
    }
}

/// Answers only after a given number of calls has arrived.
struct Crowd {
    together: usize,
    come: Mutex<usize>,
    complete: Condvar,
}

impl Crowd {
    fn of(together: usize) -> Crowd {
        Crowd { together, come: Mutex::default(), complete: Condvar::new() }
    }
}

impl Listener for Crowd {
    fn nested_call(&self, _: Option<&ExchangeRef>, _: i32) -> Result<i32, SystemException> {
        let mut come = self.come.lock().unwrap();
        *come += 1;
        self.complete.notify_all();
        drop(self.complete.wait_while(come, |come| *come < self.together));
        Ok(1)
    }

    fn notify(&self, _: &str) -> Result<(), SystemException> {
        Ok(())
    }

    fn filled(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }
}

/// A client that does not offer bidirectional GIOP refuses requests from the server.
#[test]
fn requests_to_a_client_without_bidirectional_giop_end_the_connection() {
    let (listener, port) = raw::listen();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let exchange: ExchangeRef =
        client.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut stream);
            raw::write(&mut stream, &request); // to the client
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let answer = raw::read_message(&mut stream);
            assert_eq!(answer[7], 6, "MessageError");
        });
        let e = exchange.narrow("x").unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::CommFailure, "{e}");
    });
}
