//! Replies that are sent after the upcall, from other threads: each request gets exactly one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::engine::{ConnectionId, ServerAction, ServerEngine, ServerEvent, Time};
use ironorb::generated::{Call, Replied};
use ironorb::poa::{ManagerState, PoaError};
use ironorb::{
    CompletionStatus, MinorCode, Orb, Reply, Servant, ServerConcurrency, SystemException,
    SystemExceptionKind, TypedRef, with_timeout,
};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{eventually, raw};

type Parked = (i32, Reply<i32, SystemException>);

/// Keeps the replies of `add`, with their sums.
#[derive(Default)]
struct Parking(Mutex<Vec<Parked>>);

impl Parking {
    fn parked(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn take(&self) -> Vec<Parked> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

struct ParkingServant(Arc<Parking>);

impl Servant for ParkingServant {
    fn repository_ids(&self) -> &[&'static str] {
        &[ProbeRef::REPOSITORY_ID]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        match call.operation() {
            b"add" => call.deferred(
                |r| Ok((r.get::<i32>()?, r.get::<i32>()?)),
                |(a, b), reply| self.0.0.lock().unwrap().push((a + b, reply)),
                |w, sum| w.put(sum),
            ),
            b"fall_over" => call.deferred(
                |_| Ok(()),
                |(), _: Reply<(), SystemException>| panic!("as asked"),
                |_, ()| Ok(()),
            ),
            _ => call.standard_operation(&[ProbeRef::REPOSITORY_ID]),
        }
    }
}

fn server(concurrency: ServerConcurrency) -> (Orb, Arc<Parking>, ProbeRef) {
    let orb =
        Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency).build().unwrap();
    let parking = Arc::new(Parking::default());
    let poa = orb.root_poa();
    let id = poa.activate_object(Arc::new(ParkingServant(parking.clone()))).unwrap();
    let reference = poa.id_to_reference(&id).unwrap().narrow_unchecked();
    (orb, parking, reference)
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn elsewhere(client: &Orb, reference: &ProbeRef) -> ProbeRef {
    client.string_to_object(&reference.object().to_ior_string()).unwrap().narrow_unchecked()
}

const ALL: [ServerConcurrency; 4] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 1 },
    ServerConcurrency::Reactor,
    ServerConcurrency::Hybrid { threads_max: 1 },
];

#[test]
fn replies_are_sent_in_any_order_while_the_server_goes_on() {
    for concurrency in ALL {
        let (_server, parking, local) = server(concurrency);
        let client = client();
        let remote = elsewhere(&client, &local);
        std::thread::scope(|scope| {
            // Few connections carry all calls. The server with one thread serves them all too.
            let calls: Vec<_> = (0..20)
                .map(|n| {
                    let target = if n % 2 == 0 { &remote } else { &local };
                    scope.spawn(move || target.add(n, 100).unwrap())
                })
                .collect();
            eventually("all have arrived", || parking.parked() == 20);
            for (sum, reply) in parking.take().into_iter().rev() {
                assert!(reply.is_wanted());
                reply.send(Ok(sum));
            }
            for (n, call) in calls.into_iter().enumerate() {
                assert_eq!(call.join().unwrap(), n as i32 + 100);
            }
        });
    }
}

#[test]
fn a_reply_may_be_an_exception_and_a_dropped_reply_is_one() {
    let (_server, parking, local) = server(ServerConcurrency::ThreadPerConnection);
    let client = client();
    for probe in [elsewhere(&client, &local), local] {
        std::thread::scope(|scope| {
            let call = scope.spawn(|| probe.add(1, 2));
            eventually("it has arrived", || parking.parked() == 1);
            let refused =
                SystemException::new(SystemExceptionKind::NoPermission, MinorCode(7), CompletionStatus::Yes);
            for (_, reply) in parking.take() {
                reply.send(Err(refused.clone()));
            }
            assert_eq!(call.join().unwrap().unwrap_err(), refused);

            let call = scope.spawn(|| probe.add(1, 2));
            eventually("it has arrived", || parking.parked() == 1);
            drop(parking.take());
            let e = call.join().unwrap().unwrap_err();
            assert_eq!((e.kind, e.minor), (SystemExceptionKind::Unknown, MinorCode::REPLY_GIVEN_UP));
            let e = probe.fall_over().unwrap_err();
            assert_eq!((e.kind, e.minor), (SystemExceptionKind::Unknown, MinorCode::SERVANT_PANICKED));
        });
    }
}

/// Cached requests reach the servant without being counted. Their deferred replies are counted.
#[test]
fn a_manager_waits_for_deferred_replies_to_cached_requests() {
    for concurrency in [ServerConcurrency::ThreadPerConnection, ServerConcurrency::default()] {
        let (server, parking, local) = server(concurrency);
        let client = client();
        let remote = elsewhere(&client, &local);
        const MANY: usize = 200;
        let poa = server.root_poa();
        let manager = poa.manager();
        std::thread::scope(|scope| {
            let calls =
                scope.spawn(|| (0..=MANY as i32).for_each(|n| assert_eq!(remote.add(n, 1).unwrap(), n + 1)));
            for _ in 0..MANY {
                eventually("it has arrived", || parking.parked() == 1);
                parking.take().into_iter().for_each(|(sum, reply)| reply.send(Ok(sum)));
            }
            eventually("the last has arrived", || parking.parked() == 1);
            let waits = scope.spawn(|| manager.hold_requests(true).unwrap());
            eventually("requests are held", || manager.state() == ManagerState::Holding);
            for _ in 0..100 {
                std::thread::yield_now();
                assert!(!waits.is_finished(), "a reply is outstanding");
            }
            parking.take().into_iter().for_each(|(sum, reply)| reply.send(Ok(sum)));
            waits.join().unwrap();
            calls.join().unwrap();
        });
    }
}

/// The object is activated again and again under its old id, each time with a request that is not answered
/// yet.
#[test]
fn an_object_with_unanswered_requests_is_reactivated_at_most_256_times() {
    let (server, parking, local) = server(ServerConcurrency::default());
    let client = client();
    let poa = server.root_poa();
    let id = poa.reference_to_id(local.object()).unwrap();
    let remote = elsewhere(&client, &local);
    let mut calls = Vec::new();
    let refused = loop {
        calls.push(remote.add_async(calls.len() as i32, 1));
        eventually("it has arrived", || parking.parked() == calls.len());
        poa.deactivate(&id).unwrap();
        if let Err(e) = poa.activate_object_with_id(&id, Arc::new(ParkingServant(parking.clone()))) {
            break e;
        }
    };
    assert_eq!((refused, calls.len()), (PoaError::TooManyObjects, 256));
    parking.take().into_iter().for_each(|(sum, reply)| reply.send(Ok(sum)));
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.wait().unwrap(), n as i32 + 1);
    }
    poa.activate_object_with_id(&id, Arc::new(ParkingServant(parking))).unwrap();
}

#[test]
fn a_late_reply_is_dropped() {
    for concurrency in ALL {
        let (_server, parking, local) = server(concurrency);
        let gone = client();
        let remote = elsewhere(&gone, &local);
        let e = with_timeout(Some(Duration::from_millis(200)), || remote.add(1, 2)).unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
        let e = with_timeout(Some(Duration::from_millis(200)), || local.add(1, 2)).unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
        eventually("both have arrived", || parking.parked() == 2);
        gone.shutdown(true).unwrap();
        for (sum, reply) in parking.take() {
            reply.send(Ok(sum));
        }
        // The client has left the connection alone, and the server serves other clients.
        let client = client();
        let remote = elsewhere(&client, &local);
        std::thread::scope(|scope| {
            let call = scope.spawn(|| remote.add(20, 2));
            eventually("it has arrived", || parking.parked() == 1);
            parking.take().into_iter().for_each(|(sum, reply)| reply.send(Ok(sum)));
            assert_eq!(call.join().unwrap().unwrap(), 22);
        });
    }
}

#[test]
fn waiting_for_completion_includes_deferred_replies() {
    for concurrency in ALL {
        let (server, parking, local) = server(concurrency);
        let client = client();
        let remote = elsewhere(&client, &local);
        std::thread::scope(|scope| {
            let call = scope.spawn(|| remote.add(1, 2));
            eventually("it has arrived", || parking.parked() == 1);
            let manager = server.root_poa().manager().clone();
            let holding = scope.spawn(move || manager.hold_requests(true));
            eventually("the manager holds requests", || {
                server.root_poa().manager().state() == ironorb::poa::ManagerState::Holding
            });
            assert!(!holding.is_finished());
            let ending = scope.spawn(|| server.shutdown(true));
            assert!(!ending.is_finished());
            parking.take().into_iter().for_each(|(sum, reply)| reply.send(Ok(sum)));
            assert_eq!(call.join().unwrap().unwrap(), 3);
            holding.join().unwrap().unwrap();
            ending.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_connection_has_no_more_deferred_replies_than_its_limit() {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    builder.config().connection.calls_in_flight_max = 2;
    let server = builder.build().unwrap();
    let parking = Arc::new(Parking::default());
    let poa = server.root_poa();
    let id = poa.activate_object(Arc::new(ParkingServant(parking.clone()))).unwrap();
    let local: ProbeRef = poa.id_to_reference(&id).unwrap().narrow_unchecked();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connections_per_endpoint_max = 1;
    let client = builder.build().unwrap();
    let remote = elsewhere(&client, &local);
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..2)
            .map(|n| {
                let remote = &remote;
                scope.spawn(move || remote.add(n, 0))
            })
            .collect();
        eventually("two have arrived", || parking.parked() == 2);
        let e = remote.add(1, 2).unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
        parking.take().into_iter().for_each(|(sum, reply)| reply.send(Ok(sum)));
        calls.into_iter().for_each(|call| assert!(call.join().unwrap().is_ok()));
    });
}

#[test]
fn an_engine_sends_a_deferred_reply_when_it_is_ready() {
    let orb = Orb::builder().no_endpoint().publish("somewhere:1").build().unwrap();
    let parking = Arc::new(Parking::default());
    let poa = orb.root_poa();
    let id = poa.activate_object(Arc::new(ParkingServant(parking.clone()))).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    let add = raw::request(&reference, "add", &[0, 0, 0, 1, 0, 0, 0, 2]);
    let mut engine = ServerEngine::new(&orb);
    let (connection, now) = (ConnectionId(1), Time::ZERO);
    engine.handle(ServerEvent::Accepted { connection }, now);
    assert!(matches!(engine.poll_action(), Some(ServerAction::SetTimer { .. })), "for the idle timeout");
    let ask = |engine: &mut ServerEngine| {
        engine.handle(ServerEvent::Received { connection, bytes: &add }, now);
        let Some(ServerAction::Upcall { upcall, .. }) = engine.poll_action() else { panic!() };
        engine.handle(ServerEvent::CarryOut { upcall }, now);
        assert_eq!(engine.poll_action(), None, "the reply is deferred");
        parking.take().pop().unwrap()
    };
    let (sum, reply) = ask(&mut engine);
    std::thread::spawn(move || reply.send(Ok(sum))).join().unwrap();
    let Some(ServerAction::Transmit { bytes, .. }) = engine.poll_action() else { panic!() };
    assert!(bytes.ends_with(&3_i32.to_ne_bytes()));
    assert_eq!(engine.poll_action(), None);
    // A CloseConnection of the client does not cut off the replies that the server owes it.
    let (sum, reply) = ask(&mut engine);
    engine.handle(ServerEvent::Received { connection, bytes: &raw::message(raw::CLOSE, &[]) }, now);
    assert_eq!(engine.poll_action(), None);
    reply.send(Ok(sum));
    assert!(matches!(engine.poll_action(), Some(ServerAction::Transmit { .. })));
    assert!(matches!(engine.poll_action(), Some(ServerAction::Close { .. })));
    // A lost connection needs no reply.
    let connection = ConnectionId(2);
    engine.handle(ServerEvent::Accepted { connection }, now);
    engine.handle(ServerEvent::Received { connection, bytes: &add }, now);
    let Some(ServerAction::Upcall { upcall, .. }) = engine.poll_action() else { panic!() };
    engine.handle(ServerEvent::CarryOut { upcall }, now);
    engine.handle(ServerEvent::Closed { connection }, now);
    let (sum, reply) = parking.take().pop().unwrap();
    reply.send(Ok(sum));
    assert_eq!(engine.poll_action(), None);
}
