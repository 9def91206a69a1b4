//! Deferred replies learn that their client no longer waits: it has cancelled the request, or its
//! connection is gone.

use std::collections::HashSet;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ironorb::engine::{ConnectionId, ServerAction, ServerEngine, ServerEvent, Time};
use ironorb::generated::{Call, Replied};
use ironorb::{
    Orb, OrbBuilder, Reply, Servant, ServerConcurrency, SystemException, SystemExceptionKind, TypedRef,
    with_timeout,
};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{eventually, raw};

type Parked = (i32, Reply<i32, SystemException>);

/// Keeps the requests `add` and `raise_system` unanswered, and counts the cancellations of `add`.
#[derive(Default)]
struct Parking {
    parked: Mutex<Vec<Parked>>,
    cancellations: Arc<AtomicUsize>,
    is_open: Mutex<bool>,
    opened: Condvar,
    blocked: AtomicUsize,
}

impl Parking {
    fn parked(&self) -> usize {
        self.parked.lock().unwrap().len()
    }

    fn take(&self) -> Vec<Parked> {
        std::mem::take(&mut *self.parked.lock().unwrap())
    }

    fn cancellations(&self) -> usize {
        self.cancellations.load(Ordering::SeqCst)
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

struct ParkingServant(Arc<Parking>);

impl Servant for ParkingServant {
    fn repository_ids(&self) -> &[&'static str] {
        &[ProbeRef::REPOSITORY_ID]
    }

    fn dispatch(&self, mut call: Call<'_>) -> Replied {
        let asks = call.operation() == b"add";
        match call.operation() {
            b"add" | b"raise_system" => call.deferred(
                |r| Ok((r.get::<i32>()?, if asks { r.get::<i32>()? } else { 0 })),
                |(a, b), reply: Reply<i32, SystemException>| {
                    if asks {
                        let cancellations = self.0.cancellations.clone();
                        reply.on_cancel(move || {
                            cancellations.fetch_add(1, Ordering::SeqCst);
                        });
                    }
                    self.0.parked.lock().unwrap().push((a + b, reply));
                },
                |w, sum| w.put(sum),
            ),
            b"block" => {
                self.0.blocked.fetch_add(1, Ordering::SeqCst);
                let is_open = self.0.is_open.lock().unwrap();
                drop(self.0.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
                call.reply(|_| Ok(()))
            }
            b"ping" => call.reply(|_| Ok(())),
            _ => {
                let _ = call.arguments();
                call.standard_operation(&[ProbeRef::REPOSITORY_ID])
            }
        }
    }
}

const ALL: [ServerConcurrency; 4] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 2 },
    ServerConcurrency::Reactor,
    ServerConcurrency::Hybrid { threads_max: 4 },
];

fn builder(concurrency: ServerConcurrency) -> OrbBuilder {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency)
}

fn serve(orb: &Orb) -> (Arc<Parking>, ProbeRef) {
    let parking = Arc::new(Parking::default());
    let poa = orb.root_poa();
    let id = poa.activate_object(Arc::new(ParkingServant(parking.clone()))).unwrap();
    (parking, poa.id_to_reference(&id).unwrap().narrow_unchecked())
}

fn cancelling_client() -> Orb {
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connection.cancel_requests = true;
    builder.build().unwrap()
}

fn short<T>(call: impl FnOnce() -> Result<T, SystemException>) {
    let e = with_timeout(Some(Duration::from_millis(200)), call).err().unwrap();
    assert_eq!(e.kind, SystemExceptionKind::Timeout);
}

const ADD: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 2];

fn add(reference: &ProbeRef, id: u32) -> Vec<u8> {
    numbered(raw::request(reference.object(), "add", &ADD), id)
}

fn numbered(mut request: Vec<u8>, id: u32) -> Vec<u8> {
    request[12..16].copy_from_slice(&id.to_be_bytes());
    request
}

fn cancel(id: u32) -> Vec<u8> {
    raw::message(2, &id.to_be_bytes())
}

#[test]
fn a_cancelled_call_is_reported_to_its_servant() {
    for concurrency in ALL {
        let server = builder(concurrency).build().unwrap();
        let (parking, local) = serve(&server);
        let client = cancelling_client();
        let remote: ProbeRef = client.resolve(&local.object().to_ior_string()).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| remote.add(20, 22));
            eventually("it has arrived", || parking.parked() == 1);
            short(|| remote.add(1, 2));
            eventually("it is reported", || parking.cancellations() == 1);
            for (sum, reply) in parking.take() {
                assert_eq!(reply.is_cancelled(), sum == 3, "{concurrency:?}");
                reply.send(Ok(sum));
            }
            assert_eq!(other.join().unwrap().unwrap(), 42);
        });
        remote.ping().unwrap();
        assert_eq!(parking.cancellations(), 1, "the others are not");
        // A shutdown does not wait for the cancelled calls.
        client.shutdown(true).unwrap();
        server.shutdown(true).unwrap();
    }
}

#[test]
fn the_end_of_a_connection_cancels_its_calls() {
    for concurrency in ALL {
        let server = builder(concurrency).build().unwrap();
        let (parking, local) = serve(&server);
        let address = server.published_addresses()[0].clone();
        let staying = cancelling_client();
        let remote: ProbeRef = staying.resolve(&local.object().to_ior_string()).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| remote.add(20, 22));
            eventually("it has arrived", || parking.parked() == 1);
            // A client that closes the connection, one that sends CloseConnection, and one that sends
            // garbage.
            for (round, last) in
                [vec![], raw::message(raw::CLOSE, &[]), b"nonsense!".repeat(3)].iter().enumerate()
            {
                let mut stream = TcpStream::connect(&address).unwrap();
                for id in 0..100 {
                    stream.write_all(&add(&local, id)).unwrap();
                }
                eventually("all have arrived", || parking.parked() == 1 + 100 * (round + 1));
                stream.write_all(last).unwrap();
                let _open = (!last.is_empty()).then_some(stream);
                eventually("all are reported", || parking.cancellations() == 100 * (round + 1));
            }
            // A client whose ORB another thread shuts down.
            let gone = Orb::builder().no_endpoint().build().unwrap();
            let remote: ProbeRef = gone.resolve(&local.object().to_ior_string()).unwrap();
            let ended = scope.spawn(move || remote.add(1, 2));
            eventually("it has arrived", || parking.parked() == 302);
            gone.shutdown(false).unwrap();
            assert!(ended.join().unwrap().is_err());
            eventually("it is reported", || parking.cancellations() == 301);
            for (sum, reply) in parking.take() {
                assert_eq!(reply.is_cancelled(), sum == 3);
                reply.send(Ok(sum));
            }
            assert_eq!(other.join().unwrap().unwrap(), 42);
        });
        // A shutdown that waits for requests finds none left.
        server.shutdown(true).unwrap();
    }
}

/// A CancelRequest for one request does not apply to the next request with the same id, however late it
/// arrives.
#[test]
fn a_request_id_may_be_used_again() {
    for concurrency in ALL {
        let server = builder(concurrency).build().unwrap();
        let (parking, local) = serve(&server);
        let mut stream = TcpStream::connect(&server.published_addresses()[0]).unwrap();
        // Request and CancelRequest arrive together: in a pool, a thread may read the second before the
        // servant has called `on_cancel`.
        for round in 1..50 {
            stream.write_all(&[add(&local, 7), cancel(7)].concat()).unwrap();
            eventually("it is reported", || parking.cancellations() == round && parking.parked() == 1);
            parking.take().into_iter().for_each(|(sum, reply)| {
                assert!(reply.is_cancelled());
                reply.send(Ok(sum));
            });
        }
        // A request with another id is in progress, so the server has to compare the ids.
        stream.write_all(&add(&local, 1)).unwrap();
        eventually("it has arrived", || parking.parked() == 1);
        let unasked = numbered(raw::request(local.object(), "raise_system", &[0, 0, 0, 5]), 7);
        let mut seen = HashSet::new();
        for late in [vec![], [cancel(7), cancel(7)].concat()] {
            stream.write_all(&unasked).unwrap();
            eventually("it has arrived", || parking.parked() == 2);
            let (sum, reply) = parking.parked.lock().unwrap().pop().unwrap();
            reply.send(Ok(sum));
            seen.insert(raw::id_of(&raw::read_message(&mut stream)));
            stream.write_all(&[late, add(&local, 7)].concat()).unwrap();
            eventually("it has arrived", || parking.parked() == 2);
            let (sum, reply) = parking.parked.lock().unwrap().pop().unwrap();
            assert!(!reply.is_cancelled());
            reply.send(Ok(sum));
            seen.insert(raw::id_of(&raw::read_message(&mut stream)));
        }
        assert_eq!(seen, HashSet::from([[0, 0, 0, 7]]));
        // `on_cancel` calls its closure at once if the request is cancelled already. The reply is not sent.
        stream.write_all(&[unasked, cancel(7)].concat()).unwrap();
        stream.write_all(&numbered(raw::request(local.object(), "ping", &[]), 8)).unwrap();
        assert_eq!(raw::id_of(&raw::read_message(&mut stream)), [0, 0, 0, 8]);
        eventually("it has arrived", || parking.parked() == 2);
        let (sum, reply) = parking.parked.lock().unwrap().pop().unwrap();
        let cancellations = parking.cancellations();
        let count = parking.cancellations.clone();
        reply.on_cancel(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(parking.cancellations(), cancellations + 1);
        reply.send(Ok(sum));
        for (sum, reply) in parking.take() {
            assert!(!reply.is_cancelled());
            reply.send(Ok(sum));
        }
        assert_eq!(raw::id_of(&raw::read_message(&mut stream)), [0, 0, 0, 1]);
    }
}

/// A thread that does not read for a while finds the CancelRequest at its next read.
#[test]
fn a_cancel_request_is_found_when_the_thread_reads_again() {
    let mut builder = builder(ServerConcurrency::ThreadPerConnection);
    builder.config().threads_per_connection_max = 1;
    let server = builder.build().unwrap();
    let (parking, local) = serve(&server);
    let mut stream = TcpStream::connect(&server.published_addresses()[0]).unwrap();
    let block = numbered(raw::request(local.object(), "block", &[]), 9);
    stream.write_all(&[add(&local, 1), add(&local, 2), block, cancel(1)].concat()).unwrap();
    eventually("it blocks", || parking.blocked.load(Ordering::SeqCst) == 1 && parking.parked() == 2);
    drop(stream);
    assert_eq!(parking.cancellations(), 0);
    parking.open();
    eventually("both are reported", || parking.cancellations() == 2);
}

/// A server that shuts down sends the replies of its clients and reports no cancellation.
#[test]
fn a_server_shutdown_cancels_no_request() {
    for concurrency in ALL {
        let server = builder(concurrency).build().unwrap();
        let (parking, local) = serve(&server);
        let client = cancelling_client();
        let remote: ProbeRef = client.resolve(&local.object().to_ior_string()).unwrap();
        std::thread::scope(|scope| {
            let call = scope.spawn(|| remote.add(20, 22));
            eventually("it has arrived", || parking.parked() == 1);
            let stopping = scope.spawn(|| server.shutdown(true));
            let address = server.published_addresses()[0].clone();
            eventually("the server stops listening", || TcpStream::connect(&address).is_err());
            let (sum, reply) = parking.take().pop().unwrap();
            assert!(!reply.is_cancelled());
            reply.send(Ok(sum));
            assert_eq!(call.join().unwrap().unwrap(), 42);
            stopping.join().unwrap().unwrap();
        });
        assert_eq!(parking.cancellations(), 0);
    }
}

/// A server calls its client over the client's connection and abandons the call. The client does likewise
/// on that connection.
#[test]
fn calls_in_both_directions_of_a_connection_can_be_cancelled() {
    for concurrency in ALL {
        let mut builder = builder(concurrency);
        builder.config().bidirectional = true;
        builder.config().connection.cancel_requests = true;
        let server = builder.build().unwrap();
        let (served, exported) = serve(&server);
        let (listener, port) = raw::listen();
        drop(listener);
        let mut builder = Orb::builder().no_endpoint().publish(&format!("127.0.0.1:{port}"));
        builder.config().bidirectional = true;
        builder.config().connection.cancel_requests = true;
        let client = builder.build().unwrap();
        let (called_back, callback) = serve(&client);
        let remote: ProbeRef = client.resolve(&exported.object().to_ior_string()).unwrap();
        remote.ping().unwrap();
        let back: ProbeRef = server.resolve(&callback.object().to_ior_string()).unwrap();
        back.ping().unwrap();
        short(|| back.add(1, 2));
        eventually("the client has noticed", || called_back.cancellations() == 1);
        short(|| remote.add(1, 2));
        eventually("the server has noticed", || served.cancellations() == 1);
        // The end of the connection cancels the remaining calls at both ends.
        std::thread::scope(|scope| {
            let one = scope.spawn(|| back.add(1, 2));
            let other = scope.spawn(|| remote.add(1, 2));
            eventually("both calls have arrived", || called_back.parked() == 2 && served.parked() == 2);
            client.shutdown(false).unwrap();
            assert!(one.join().unwrap().is_err() && other.join().unwrap().is_err());
        });
        eventually("both are reported", || called_back.cancellations() == 2 && served.cancellations() == 2);
    }
}

#[test]
fn an_engine_reports_cancellations() {
    let orb = Orb::builder().no_endpoint().publish("127.0.0.1:1").build().unwrap();
    let (parking, reference) = serve(&orb);
    let mut engine = ServerEngine::new(&orb);
    let (connection, now) = (ConnectionId(1), Time::ZERO);
    engine.handle(ServerEvent::Accepted { connection }, now);
    for id in 1..=2 {
        engine.handle(ServerEvent::Received { connection, bytes: &add(&reference, id) }, now);
        let Some(ServerAction::Upcall { upcall, .. }) = engine.poll_action() else { panic!() };
        engine.handle(ServerEvent::CarryOut { upcall }, now);
    }
    engine.handle(ServerEvent::Received { connection, bytes: &cancel(2) }, now);
    assert_eq!((parking.cancellations(), parking.parked()), (1, 2));
    let (sum, reply) = parking.parked.lock().unwrap().pop().unwrap();
    assert!(reply.is_cancelled());
    reply.send(Ok(sum));
    assert_eq!(engine.poll_action(), None, "the engine sends no reply to a cancelled request");
    engine.handle(ServerEvent::Closed { connection }, now);
    assert_eq!(parking.cancellations(), 2);
    // The request is announced, and cancelled before the program executes it.
    let connection = ConnectionId(2);
    engine.handle(ServerEvent::Accepted { connection }, now);
    let both = [add(&reference, 1), cancel(1)].concat();
    engine.handle(ServerEvent::Received { connection, bytes: &both }, now);
    let Some(ServerAction::Upcall { upcall, .. }) = engine.poll_action() else { panic!() };
    engine.handle(ServerEvent::CarryOut { upcall }, now);
    assert_eq!(parking.cancellations(), 3);
}
