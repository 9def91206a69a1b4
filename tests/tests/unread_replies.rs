//! A client sends requests and does not read the replies. The server stops serving it, and goes on when it
//! reads.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ironorb::{ObjectRef, Orb, ServerConcurrency, SystemException, TypedRef};
use ironorb_tests::testing::ProbeRef;
use ironorb_tests::wires::{ExchangeRef, Listener, ListenerAsync, ListenerRef};
use ironorb_tests::{Probing, eventually, raw};

/// More than the system's buffers of a connection hold.
const REPLY_BYTES: usize = 16 << 20;
const REQUESTS: usize = 20;

/// On a busy machine a reply may take longer than the time after which the server starts another thread,
/// but not repeatedly. Without a bound the number of threads would be `threads_per_connection_max`.
const HELPED_MAX: usize = 15;

#[test]
fn a_client_that_does_not_read_is_not_served() {
    for (concurrency, served_max) in [
        (ServerConcurrency::ThreadPerConnection, HELPED_MAX),
        (ServerConcurrency::LeaderFollowers { threads: 3 }, 3),
        (ServerConcurrency::Hybrid { threads_max: 3 }, 3),
        (ServerConcurrency::Reactor, 1),
    ] {
        let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
        builder.config().transmit_bytes_max = 1 << 20;
        builder.config().transmit_timeout = Duration::from_secs(300);
        let server = builder.build().unwrap();
        let generous = Arc::new(Generous::default());
        let listener: ListenerRef = server.root_poa().activate_shared(generous.clone()).unwrap();
        let mut stream = connect(listener.object());
        let request = raw::request(listener.object(), "filled", &[0; 4]);
        raw::write(&mut stream, &request.repeat(REQUESTS));
        eventually("the first is served", || generous.asked() >= 1);
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        if concurrency == ServerConcurrency::ThreadPerConnection {
            (0..20).for_each(|_| go_on_beside_a_blocked_servant(probe.object()));
        }
        assert!(generous.asked() <= served_max, "{} for {concurrency:?}", generous.asked());
        for _ in 0..REQUESTS {
            let reply = raw::read_message(&mut stream);
            assert!(reply.len() > REPLY_BYTES);
            assert_eq!(reply[16..20], [0; 4], "no exception");
        }
        assert_eq!(generous.asked(), REQUESTS);
    }
}

/// Replies that are larger than what each transport takes at once, from servers whose threads may not wait.
#[test]
fn large_replies_leave_over_every_transport() {
    for endpoint in ["iiop://127.0.0.1:0", "uiop://", "shm://"] {
        for concurrency in [
            ServerConcurrency::LeaderFollowers { threads: 1 },
            ServerConcurrency::Hybrid { threads_max: 1 },
            ServerConcurrency::Reactor,
        ] {
            let (server, listener, client) = pair(endpoint, concurrency);
            let remote: ListenerRef = client.resolve(&listener.object().to_ior_string()).unwrap();
            let calls = [(); 3].map(|()| remote.filled_async(&[]));
            for call in calls {
                assert_eq!(call.wait().unwrap().len(), REPLY_BYTES, "{endpoint} {concurrency:?}");
            }
            client.shutdown(true).unwrap();
            server.shutdown(true).unwrap();
        }
    }
}

fn pair(endpoint: &str, concurrency: ServerConcurrency) -> (Orb, ListenerRef, Orb) {
    let mut builder = Orb::builder().endpoint(endpoint).unwrap().concurrency(concurrency);
    builder.config().server_threads_max = 1;
    builder.config().transmit_timeout = Duration::from_secs(300);
    let server = builder.build().unwrap();
    let listener = server.root_poa().activate(Generous::default()).unwrap();
    (server, listener, Orb::builder().no_endpoint().build().unwrap())
}

/// A servant blocks until another thread serves the next request of its connection. The blocked-servant
/// monitor starts that thread, after it has looked at all connections twice.
fn go_on_beside_a_blocked_servant(probe: &ObjectRef) {
    let mut stream = connect(probe);
    let both = [raw::request(probe, "block", &[]), raw::request(probe, "release", &[])].concat();
    raw::write(&mut stream, &both);
    for _ in 0..2 {
        assert!(!raw::read_message(&mut stream).is_empty());
    }
}

fn connect(object: &ObjectRef) -> TcpStream {
    let port = object.ior().iiop_profiles().next().unwrap().port();
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Answers `filled` with much more data than the request has.
#[derive(Default)]
struct Generous(AtomicUsize);

impl Generous {
    fn asked(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Listener for Generous {
    fn nested_call(&self, _: Option<&ExchangeRef>, _: i32) -> Result<i32, SystemException> {
        Ok(1)
    }

    fn notify(&self, _: &str) -> Result<(), SystemException> {
        Ok(())
    }

    fn filled(&self, _: &[u8]) -> Result<Vec<u8>, SystemException> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(vec![7; REPLY_BYTES])
    }
}
