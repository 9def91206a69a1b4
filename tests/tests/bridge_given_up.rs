//! Calls through a bridge whose clients no longer wait. The bridge abandons them and keeps nothing of them.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::{Orb, ServerConcurrency, SystemExceptionKind, TypedRef, with_timeout};
use ironorb_dynamic::bridge::{Bridge, BridgeOptions, Outcome};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};

const BOTH: [ServerConcurrency; 2] =
    [ServerConcurrency::ThreadPerConnection, ServerConcurrency::LeaderFollowers { threads: 2 }];

const REQUEST: u8 = 0;
const CANCEL: u8 = 2;

/// A bridge that cancels abandoned calls at their targets, and the operations that it has abandoned.
fn bridge(concurrency: ServerConcurrency) -> (Orb, Bridge, Arc<Mutex<Vec<String>>>) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
    builder.config().connection.cancel_requests = true;
    // One connection for each target, so that the test sees all messages on the connection that it has
    // accepted.
    builder.config().connections_per_endpoint_max = 1;
    let orb = builder.build().unwrap();
    let given_up: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = given_up.clone();
    let options = BridgeOptions {
        observer: Some(Arc::new(move |passed| {
            if matches!(passed.outcome, Outcome::GivenUp) {
                seen.lock().unwrap().push(passed.operation.to_owned());
            }
        })),
        call_timeout: Some(Duration::from_secs(30)), // bounds the time of a failing test
        ..BridgeOptions::default()
    };
    let bridge = Bridge::new(&orb, options).unwrap();
    (orb, bridge, given_up)
}

fn client() -> Orb {
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connection.cancel_requests = true;
    builder.build().unwrap()
}

/// The client's reference to the bridged object, made without a call.
fn probe_of(client: &Orb, bridge: &Orb) -> ProbeRef {
    let url = format!("corbaloc:iiop:1.2@{}/probe", bridge.published_addresses()[0]);
    client.string_to_object(&url).unwrap().narrow_unchecked()
}

fn kind_and_id(message: &[u8]) -> (u8, [u8; 4]) {
    (message[7], raw::id_of(message))
}

/// A target that never answers gets a CancelRequest for the cancelled call. Other calls go on.
#[test]
fn a_cancelled_call_is_cancelled_at_the_target() {
    for concurrency in BOTH {
        let (target, port) = raw::listen();
        let (orb, bridge, given_up) = bridge(concurrency);
        bridge.pass_others_to("127.0.0.1", port);
        let client = client();
        let object = probe_of(&client, &orb);
        std::thread::scope(|scope| {
            let staying = scope.spawn(|| object.add(1, 2));
            let (mut target, _) = target.accept().unwrap();
            let first = raw::read_message(&mut target);
            assert_eq!(first[7], REQUEST);
            let e = with_timeout(Some(Duration::from_millis(500)), || object.ping()).unwrap_err();
            assert_eq!(e.kind, SystemExceptionKind::Timeout);
            let second = raw::read_message(&mut target);
            let third = raw::read_message(&mut target);
            assert_eq!((second[7], kind_and_id(&third)), (REQUEST, (CANCEL, raw::id_of(&second))));
            eventually("only the other call is in progress", || bridge.calls_in_progress() == 1);
            assert_eq!(*given_up.lock().unwrap(), ["ping"]);
            raw::write(&mut target, &raw::reply(raw::id_of(&first), 0, &[0, 0, 0, 3]));
            assert_eq!(staying.join().unwrap().unwrap(), 3);
        });
        eventually("nothing is left", || bridge.calls_in_progress() == 0);
        orb.shutdown(true).unwrap();
    }
}

#[test]
fn calls_of_a_lost_client_are_abandoned() {
    for concurrency in BOTH {
        let (target, port) = raw::listen();
        let (orb, bridge, given_up) = bridge(concurrency);
        bridge.pass_others_to("127.0.0.1", port);
        let template = probe_of(&orb, &orb);
        let request = raw::request(template.object(), "ping", &[]);
        let mut stream = TcpStream::connect(&orb.published_addresses()[0]).unwrap();
        for id in 0..100_u32 {
            let mut request = request.clone();
            request[12..16].copy_from_slice(&id.to_be_bytes());
            stream.write_all(&request).unwrap();
        }
        let (mut target, _) = target.accept().unwrap();
        let mut asked: Vec<_> = (0..100).map(|_| kind_and_id(&raw::read_message(&mut target))).collect();
        assert_eq!(bridge.calls_in_progress(), 100);
        drop(stream);
        let mut cancelled: Vec<_> = (0..100).map(|_| kind_and_id(&raw::read_message(&mut target))).collect();
        asked.sort_unstable();
        cancelled.sort_unstable();
        assert!(asked.iter().all(|(kind, _)| *kind == REQUEST));
        assert!(cancelled.iter().zip(&asked).all(|(it, asked)| *it == (CANCEL, asked.1)));
        eventually("nothing is left", || bridge.calls_in_progress() == 0);
        assert_eq!(given_up.lock().unwrap().len(), 100);
        // A target may still send late replies. The bridge drops them and goes on.
        for (_, id) in &asked {
            raw::write(&mut target, &raw::reply(*id, 0, &[]));
        }
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let reference = bridge
            .publish(b"other", &orb.string_to_object(&probe.object().to_ior_string()).unwrap())
            .unwrap();
        let through: ProbeRef = client().resolve(&reference.to_ior_string()).unwrap();
        assert_eq!(through.add(1, 2).unwrap(), 3);
        orb.shutdown(true).unwrap();
    }
}

/// Calls that are not sent yet, because the bridge cannot connect to their target.
#[test]
fn calls_that_wait_for_a_connection_are_abandoned_too() {
    let (orb, bridge, given_up) = bridge(ServerConcurrency::ThreadPerConnection);
    // The listener does not accept, and the first connections fill its queue. Later ones stay incomplete.
    let full = listener_with_shortest_queue();
    let mut fillers = Vec::new();
    let address = full.local_addr().unwrap();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        fillers.push(stream);
        assert!(fillers.len() < 100, "the queue has no end");
    }
    bridge.pass_others_to("127.0.0.1", address.port());
    let client = client();
    let object = probe_of(&client, &orb);
    let e = with_timeout(Some(Duration::from_secs(1)), || object.ping()).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::Timeout);
    eventually("the call is given up", || *given_up.lock().unwrap() == ["ping"]);
    eventually("nothing is left", || bridge.calls_in_progress() == 0);
}

/// A listener with the shortest possible queue.
fn listener_with_shortest_queue() -> std::net::TcpListener {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    listen(&socket, 0).unwrap();
    socket.into()
}
