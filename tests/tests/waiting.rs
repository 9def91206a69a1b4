//! Calls under every waiting policy: on either side, over each transport, from one caller and from several
//! on one connection, and up to their deadlines.

use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use ironorb::{CompletionStatus, Orb, OrbBuilder, ServerConcurrency, SystemExceptionKind, TypedRef, Waiting};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Probing, eventually};

const POLICIES: [Waiting; 4] = [
    Waiting::Block,
    Waiting::ADAPTIVE,
    // The thread that receives hardly ever stops spinning. Callers that find another thread receiving
    // sleep.
    Waiting::Adaptive { spin_max: Duration::from_secs(3600) },
    Waiting::Spin,
];

fn server(endpoint: &str, waiting: Waiting) -> OrbBuilder {
    Orb::builder().endpoint(endpoint).unwrap().server_waiting(waiting)
}

fn client(waiting: Waiting) -> OrbBuilder {
    Orb::builder().no_endpoint().client_waiting(waiting)
}

fn seen_by(client: &Orb, probe: &ProbeRef) -> ProbeRef {
    client.string_to_object(&probe.object().to_ior_string()).unwrap().narrow_unchecked()
}

#[test]
fn calls_work_under_every_policy_on_either_side() {
    for waiting in POLICIES {
        for concurrency in
            [ServerConcurrency::ThreadPerConnection, ServerConcurrency::LeaderFollowers { threads: 2 }]
        {
            for endpoint in ["iiop://127.0.0.1:0", "uiop://"] {
                let server = server(endpoint, waiting).concurrency(concurrency).build().unwrap();
                let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
                let mut client = client(waiting);
                client.config().connections_per_endpoint_max = 2;
                let client = client.build().unwrap();
                let remote = seen_by(&client, &probe);
                for i in 0..200 {
                    assert_eq!(remote.add(i, 1).unwrap(), i + 1);
                    remote.tick().unwrap();
                }
                eventually("the oneways arrive", || remote.ticks().unwrap() == 200);
                assert_eq!(remote.reflect(&vec![7; 1 << 20]).unwrap(), vec![7; 1 << 20]);
                // Several callers a connection: one receives, the others sleep.
                std::thread::scope(|scope| {
                    for thread in 0..6 {
                        let remote = &remote;
                        scope.spawn(move || {
                            (0..50).for_each(|i| assert_eq!(remote.add(thread, i).unwrap(), thread + i));
                        });
                    }
                });
                // The reply is received by the receiver thread: no caller waits.
                let (sender, receiver) = mpsc::channel();
                remote.add_async(3, 4).on_reply(move |sum| sender.send(sum).unwrap());
                assert_eq!(receiver.recv().unwrap().unwrap(), 7);
                // A connection whose thread spins for requests for ever ends too, from either side.
                if matches!(endpoint, "uiop://") {
                    client.shutdown(true).unwrap();
                }
                server.shutdown(true).unwrap();
            }
        }
    }
}

#[test]
fn a_blocked_servant_does_not_block_its_connection() {
    for waiting in POLICIES {
        let server = server("iiop://127.0.0.1:0", waiting).build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let mut client = client(waiting);
        client.config().connections_per_endpoint_max = 1;
        let client = client.build().unwrap();
        let remote = seen_by(&client, &probe);
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| remote.block());
            eventually("it blocks", || remote.blocked().unwrap() == 1);
            remote.release().unwrap();
            blocked.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_call_ends_at_its_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for waiting in POLICIES {
        let client = client(waiting).build().unwrap();
        let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/Probe");
        let probe: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
        let probe = probe.with_timeout(Some(Duration::from_millis(200)));
        for _ in 0..3 {
            let e = probe.ping().unwrap_err();
            assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
        }
        let e = probe.ping_async().wait().unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::Timeout);
    }
}
