//! Limits that all clients of a server share: requests in flight, and memory for large messages.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use ironorb::engine::{ConnectionId, ServerEngine, ServerEvent, Time};
use ironorb::generated::{Call, Replied};
use ironorb::{
    CompletionStatus, MinorCode, Orb, OrbConfig, Reply, Servant, ServerConcurrency, SystemException,
    SystemExceptionKind, TypedRef,
};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};

const ALL: [ServerConcurrency; 4] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 4 },
    ServerConcurrency::Reactor,
    ServerConcurrency::Hybrid { threads_max: 4 },
];

fn builder(concurrency: ServerConcurrency, limit: impl Fn(&mut OrbConfig)) -> ironorb::OrbBuilder {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
    limit(builder.config());
    builder
}

/// A client with connections of its own.
fn client(probe: &ProbeRef) -> (Orb, ProbeRef) {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let remote = orb.resolve(&probe.object().to_ior_string()).unwrap();
    (orb, remote)
}

fn connect(orb: &Orb) -> TcpStream {
    let address = &orb.published_addresses()[0];
    let stream = TcpStream::connect(address.trim_start_matches("iiop://")).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    stream
}

fn is_refused(refusal: &SystemException) -> bool {
    let SystemException { kind, minor, completed, .. } = refusal;
    let what = (*kind, *minor, *completed);
    what == (SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED, CompletionStatus::No)
}

/// The kind of system exception in a raw reply; `None` for results.
fn exception_of(reply: &[u8]) -> Option<String> {
    assert_eq!(reply[7], 1, "a Reply");
    let number = |at: usize| {
        let bytes: [u8; 4] = reply[at..at + 4].try_into().unwrap();
        if reply[6] & 1 != 0 { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    };
    assert_eq!(number(20), 0, "no service contexts");
    // The length counts the final NUL.
    let id = || String::from_utf8_lossy(&reply[28..27 + number(24) as usize]).into_owned();
    (number(16) == 2).then(id)
}

#[test]
fn blocked_servants_are_bounded_by_server_requests_max() {
    for concurrency in ALL {
        if concurrency == ServerConcurrency::Reactor {
            continue; // a blocked servant blocks the reactor
        }
        let server = builder(concurrency, |config| config.server_requests_max = Some(2)).build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let clients: Vec<_> = (0..3).map(|_| client(&probe)).collect();
        std::thread::scope(|scope| {
            let blocked: Vec<_> = clients[..2].iter().map(|(_, it)| scope.spawn(|| it.block())).collect();
            // Calls within the process do not count.
            eventually("two servants block", || probe.blocked().unwrap() == 2);
            let (_, third) = &clients[2];
            for _ in 0..3 {
                assert!(is_refused(&third.block().unwrap_err()), "{concurrency:?}");
            }
            third.tick().unwrap(); // no reply says that it is dropped, but the next call follows it
            assert!(is_refused(&third.ping().unwrap_err()), "{concurrency:?}");
            assert_eq!((probe.blocked().unwrap(), probe.ticks().unwrap()), (2, 0), "{concurrency:?}");
            probe.release().unwrap();
            blocked.into_iter().for_each(|blocked| blocked.join().unwrap().unwrap());
            eventually("there is room again", || third.ping().is_ok());
        });
        server.shutdown(true).unwrap();
    }
}

type Parked = (i32, Reply<i32, SystemException>);

/// Keeps the replies of `add`.
struct Parking(Arc<Mutex<Vec<Parked>>>);

impl Servant for Parking {
    fn repository_ids(&self) -> &[&'static str] {
        &[ProbeRef::REPOSITORY_ID]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        match call.operation() {
            b"add" => call.deferred(
                |r| Ok((r.get::<i32>()?, r.get::<i32>()?)),
                |(a, b), reply| self.0.lock().unwrap().push((a + b, reply)),
                |w, sum| w.put(sum),
            ),
            _ => call.standard_operation(&[ProbeRef::REPOSITORY_ID]),
        }
    }
}

fn parking(server: &Orb) -> (Arc<Mutex<Vec<Parked>>>, ProbeRef) {
    let (parked, poa) = (Arc::<Mutex<Vec<Parked>>>::default(), server.root_poa());
    let id = poa.activate_object(Arc::new(Parking(parked.clone()))).unwrap();
    (parked, poa.id_to_reference(&id).unwrap().narrow_unchecked())
}

#[test]
fn deferred_requests_count_until_they_are_answered() {
    for concurrency in ALL {
        let server = builder(concurrency, |config| config.server_requests_max = Some(2)).build().unwrap();
        let (parked, probe) = parking(&server);
        let (_client, remote) = client(&probe);
        for round in 0..3 {
            let waiting = [remote.add_async(round, 1), remote.add_async(round, 2)];
            eventually("two are parked", || parked.lock().unwrap().len() == 2);
            // The server may still be finishing the upcalls.
            for _ in 0..2 {
                assert!(is_refused(&remote.add(round, 3).unwrap_err()), "{concurrency:?}");
            }
            // A dropped reply ends its request as an answer does.
            let mut two = std::mem::take(&mut *parked.lock().unwrap());
            let (sum, reply) = two.remove(0);
            reply.send(Ok(sum));
            drop(two);
            let ended = waiting.map(|it| it.wait().is_ok());
            assert_eq!(ended.iter().filter(|is_ok| **is_ok).count(), 1, "{concurrency:?}");
            let next = remote.add_async(round, 4);
            eventually("the next request is admitted", || parked.lock().unwrap().len() == 1);
            let (sum, reply) = parked.lock().unwrap().remove(0);
            reply.send(Ok(sum));
            assert_eq!(next.wait().unwrap(), round + 4);
        }
        server.shutdown(true).unwrap();
    }
}

/// The driver without sockets counts requests in flight too.
#[test]
fn the_engine_counts_requests_in_flight() {
    let mut builder = Orb::builder().no_endpoint().publish("127.0.0.1:1");
    builder.config().server_requests_max = Some(1);
    let orb = builder.build().unwrap();
    let (parked, probe) = parking(&orb);
    let mut engine = ServerEngine::new(&orb);
    let connection = ConnectionId(1);
    engine.handle(ServerEvent::Accepted { connection }, Time::ZERO);
    let ask = |engine: &mut ServerEngine| {
        let request = raw::request(probe.object(), "add", &[0, 0, 0, 1, 0, 0, 0, 2]);
        raw::serve(engine, connection, &request)
    };
    assert_eq!(ask(&mut engine), b"");
    assert_eq!(exception_of(&ask(&mut engine)).unwrap(), "IDL:omg.org/CORBA/TRANSIENT:1.0");
    let (sum, reply) = parked.lock().unwrap().remove(0);
    reply.send(Ok(sum));
    // The engine sends the reply to the first request when the program takes this one's action.
    let sent = ask(&mut engine);
    assert_eq!((exception_of(&sent), parked.lock().unwrap().len()), (None, 1));
}

const MEMORY_BYTES: usize = 1 << 20;
const LARGE_BYTES: usize = 600_000;

fn in_fragments(message: &[u8], fragment_bytes: usize) -> Vec<u8> {
    let (header, body) = message.split_at(12);
    let id = body[..4].to_vec();
    let mut stream = Vec::new();
    let parts: Vec<&[u8]> = body.chunks(fragment_bytes).collect();
    for (n, part) in parts.iter().enumerate() {
        let more = u8::from(n + 1 < parts.len()) << 1;
        let (kind, id) = if n == 0 { (header[7], &[][..]) } else { (7, &id[..]) };
        stream.extend([b'G', b'I', b'O', b'P', 1, 2, more, kind]);
        stream.extend(((id.len() + part.len()) as u32).to_be_bytes());
        stream.extend(id);
        stream.extend(*part);
    }
    stream
}

/// Many connections begin large messages, more than there is memory for. Most get NO_MEMORY, no connection
/// closes, and afterwards the server has as much room as before.
#[test]
fn large_messages_of_all_connections_share_the_memory() {
    for concurrency in ALL {
        for fragment_bytes in [None, Some(4096), Some(100_000)] {
            let config = |config: &mut OrbConfig| config.receive_memory_max = Some(MEMORY_BYTES);
            let server = builder(concurrency, config).build().unwrap();
            let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
            let mut arguments = (LARGE_BYTES as u32).to_be_bytes().to_vec();
            arguments.resize(4 + LARGE_BYTES, 7);
            let large = raw::request(probe.object(), "reflect", &arguments);
            let large = fragment_bytes.map_or(large.clone(), |bytes| in_fragments(&large, bytes));
            let ping = raw::request(probe.object(), "ping", &[]);
            let (begin, end) = large.split_at(large.len() * 3 / 4);
            let mut streams: Vec<TcpStream> = (0..12).map(|_| connect(&server)).collect();
            // The server reads all of it. Otherwise these writes would block for ever.
            streams.iter_mut().for_each(|stream| raw::write(stream, begin));
            // Other clients are served meanwhile.
            let (_client, remote) = client(&probe);
            assert_eq!(remote.add(1, 2).unwrap(), 3);
            let mut refused_count = 0;
            for stream in &mut streams {
                raw::write(stream, &[end, &ping].concat());
                // In any order, where several threads serve a connection.
                let replies = [raw::read_message(stream), raw::read_message(stream)];
                let refused: Vec<String> = replies.iter().filter_map(|reply| exception_of(reply)).collect();
                assert!(refused.len() <= 1, "the connection stays open");
                for id in &refused {
                    assert_eq!(id, "IDL:omg.org/CORBA/NO_MEMORY:1.0", "{concurrency:?} {fragment_bytes:?}");
                }
                refused_count += refused.len();
            }
            // There is room for one and a half messages. Some may have arrived after others were finished.
            assert!(refused_count > 0, "{concurrency:?} {fragment_bytes:?}");
            let data = vec![7; LARGE_BYTES];
            eventually("there is room again", || match remote.reflect(&data) {
                Ok(back) => back == data,
                Err(e) => {
                    assert_eq!(e.minor, MinorCode::RECEIVE_MEMORY_TAKEN, "{e}");
                    false
                }
            });
            server.shutdown(true).unwrap();
        }
    }
}

/// A message counts as long as a servant has it.
#[test]
fn messages_that_servants_read_count() {
    for concurrency in ALL {
        if concurrency == ServerConcurrency::Reactor {
            continue; // a blocked servant blocks the reactor
        }
        let config = |config: &mut OrbConfig| config.receive_memory_max = Some(MEMORY_BYTES);
        let server = builder(concurrency, config).build().unwrap();
        let gate = Arc::new((Mutex::new((0, false)), std::sync::Condvar::new()));
        let reading = gate.clone();
        let servant = ironorb_tests::Hooked::new(move || {
            let (state, opened) = &*reading;
            let mut state = state.lock().unwrap();
            state.0 += 1;
            while !state.1 {
                state = opened.wait(state).unwrap();
            }
            Ok::<(), SystemException>(())
        });
        let probe: ProbeRef = server.root_poa().activate(servant).unwrap();
        let mut request = raw::request(probe.object(), "ping", &[]);
        // Bytes that follow the arguments are received, but not read.
        request.resize(request.len() + LARGE_BYTES, 0);
        let body_bytes = (request.len() - 12) as u32;
        request[8..12].copy_from_slice(&body_bytes.to_be_bytes());
        let (mut first, mut second) = (connect(&server), connect(&server));
        raw::write(&mut first, &request);
        eventually("a servant has the message", || gate.0.lock().unwrap().0 == 1);
        raw::write(&mut second, &request);
        let refused = exception_of(&raw::read_message(&mut second));
        assert_eq!(refused.unwrap(), "IDL:omg.org/CORBA/NO_MEMORY:1.0", "{concurrency:?}");
        gate.0.lock().unwrap().1 = true;
        gate.1.notify_all();
        assert_eq!(exception_of(&raw::read_message(&mut first)), None);
        eventually("there is room again", || {
            raw::write(&mut second, &request);
            exception_of(&raw::read_message(&mut second)).is_none()
        });
        server.shutdown(true).unwrap();
    }
}
