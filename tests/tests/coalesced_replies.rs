//! Replies to requests that have come together: they leave together, all of them, in order, and none of them waits for a
//! servant that takes long.
//!
//! Replies wait for others only where servants are quick. Each test stops the server's clock, so that replies wait on a
//! slow machine too. The clock belongs to the process, so these tests are a program of their own.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ironorb::{Orb, OrbBuilder, ServerConcurrency, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually, raw};
use rustix::net::{RecvFlags, recv};

const MODELS: [ServerConcurrency; 4] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::Hybrid { threads_max: 8 },
    ServerConcurrency::Reactor,
    ServerConcurrency::LeaderFollowers { threads: 3 },
];

fn server(concurrency: ServerConcurrency) -> (Orb, ProbeRef) {
    serving(concurrency, Probing::default())
}

fn serving(concurrency: ServerConcurrency, servant: impl Probe + 'static) -> (Orb, ProbeRef) {
    serving_by(Orb::builder().concurrency(concurrency), servant)
}

/// A server no thread of which helps another: where a machine stands still for a while, a servant looks as if it were
/// blocked.
fn server_without_helpers(concurrency: ServerConcurrency) -> (Orb, ProbeRef) {
    let mut builder = Orb::builder().concurrency(concurrency);
    builder.config().threads_per_connection_max = 1;
    serving_by(builder, Probing::default())
}

fn serving_by(builder: OrbBuilder, servant: impl Probe + 'static) -> (Orb, ProbeRef) {
    // Without it these tests would pass although no reply waits for another.
    #[cfg(debug_assertions)]
    ironorb::testing::stop_clock_of_replies();
    #[cfg(not(debug_assertions))]
    panic!(
        "only a build with debug assertions lets tests see that replies wait for others: test without --release"
    );
    let orb = builder.endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = orb.root_poa().activate(servant).unwrap();
    (orb, probe)
}

fn connect(probe: &ProbeRef) -> TcpStream {
    let profile = probe.object().ior().iiop_profiles().next().unwrap();
    TcpStream::connect((profile.host(), profile.port())).unwrap()
}

/// A request with this id. Without an answer it is a oneway.
fn request(probe: &ProbeRef, operation: &str, id: u32, is_answered: bool) -> Vec<u8> {
    let mut bytes = raw::request(probe.object(), operation, &[]);
    bytes[12..16].copy_from_slice(&id.to_be_bytes());
    bytes[16] = if is_answered { 3 } else { 0 };
    bytes
}

fn id_of_reply(stream: &mut TcpStream) -> u32 {
    let reply = raw::read_message(stream);
    assert_eq!(reply[7], 1, "a reply");
    let id = reply[12..16].try_into().unwrap();
    if reply[6] & 1 != 0 { u32::from_le_bytes(id) } else { u32::from_be_bytes(id) }
}

/// Sends `count` requests at once and reads their replies. A pool may serve them at the same time.
fn exchange(stream: &mut TcpStream, probe: &ProbeRef, count: u32, is_ordered: bool) {
    let bytes: Vec<u8> = (0..count).flat_map(|id| request(probe, "ping", id, true)).collect();
    stream.write_all(&bytes).unwrap();
    let mut ids: Vec<u32> = (0..count).map(|_| id_of_reply(stream)).collect();
    if !is_ordered {
        ids.sort_unstable();
    }
    assert!(ids.iter().copied().eq(0..count), "{ids:?}");
}

fn is_ordered(model: ServerConcurrency) -> bool {
    !matches!(model, ServerConcurrency::LeaderFollowers { .. })
}

/// Bytes that a client has not read yet.
fn unread(stream: &TcpStream) -> usize {
    let mut bytes = [0; 65536];
    recv(stream, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).map_or(0, |(_, count)| count)
}

/// The servant sees what of the replies before has come to the client: nothing, while they wait for its own.
#[test]
fn replies_leave_together() {
    const BATCH: u32 = 8;
    for model in MODELS.into_iter().filter(|model| is_ordered(*model)) {
        let client: Arc<Mutex<Option<TcpStream>>> = Arc::default();
        let came_first = Arc::new(AtomicUsize::new(0));
        let (seen, early) = (client.clone(), came_first.clone());
        let servant = Hooked::new(move || {
            if let Some(stream) = &*seen.lock().unwrap() {
                early.store(unread(stream), Ordering::SeqCst);
            }
            Ok(())
        });
        let (_orb, probe) = serving(model, servant);
        let mut stream = connect(&probe);
        for _ in 0..40 {
            exchange(&mut stream, &probe, 32, true);
        }
        *client.lock().unwrap() = Some(stream.try_clone().unwrap());
        // The receiver thread comes by now and then and sends what waits. It does not each time.
        let mut together = 0;
        eventually("replies leave together three times in a row", || {
            exchange(&mut stream, &probe, BATCH, true);
            // What the last servant has seen.
            together = if came_first.swap(usize::MAX, Ordering::SeqCst) == 0 { together + 1 } else { 0 };
            together == 3
        });
    }
}

#[test]
fn all_replies_come_in_order() {
    for model in MODELS {
        let (_orb, probe) = server_without_helpers(model);
        let mut stream = connect(&probe);
        for count in [1, 2, 100, 1, 3000, 7] {
            exchange(&mut stream, &probe, count, is_ordered(model));
        }
    }
}

#[test]
fn no_reply_waits_for_a_blocked_servant() {
    for model in MODELS.into_iter().filter(|model| *model != ServerConcurrency::Reactor) {
        let (_orb, probe) = server(model);
        let mut stream = connect(&probe);
        for round in 0..4 {
            // Quick requests make the server expect a quick servant next.
            for _ in 0..40 {
                // In no order, for a servant may look blocked where the machine stands still.
                exchange(&mut stream, &probe, 32, false);
            }
            let mut bytes: Vec<u8> = (0..8).flat_map(|id| request(&probe, "ping", id, true)).collect();
            bytes.extend(request(&probe, "block", 8, true));
            stream.write_all(&bytes).unwrap();
            // The servant is released only after these replies.
            let mut ids: Vec<u32> = (0..8).map(|_| id_of_reply(&mut stream)).collect();
            ids.sort_unstable();
            assert!(ids.into_iter().eq(0..8), "{model:?} {round}");
            while probe.blocked().unwrap() == 0 {
                std::thread::yield_now();
            }
            probe.release().unwrap();
            assert_eq!(id_of_reply(&mut stream), 8);
        }
    }
}

#[test]
fn no_reply_waits_for_a_oneway() {
    for model in MODELS {
        let (_orb, probe) = server(model);
        let mut stream = connect(&probe);
        for _ in 0..40 {
            exchange(&mut stream, &probe, 32, is_ordered(model));
        }
        for count in [1, 1000] {
            let mut bytes: Vec<u8> = (0..3).flat_map(|id| request(&probe, "ping", id, true)).collect();
            bytes.extend((0..count).flat_map(|id| request(&probe, "tick", id, false)));
            stream.write_all(&bytes).unwrap();
            let mut ids: Vec<u32> = (0..3).map(|_| id_of_reply(&mut stream)).collect();
            ids.sort_unstable();
            assert_eq!(ids, [0, 1, 2]);
        }
    }
}

#[test]
fn waiting_replies_are_sent_when_the_server_shuts_down() {
    for model in MODELS {
        let (orb, probe) = server(model);
        let mut stream = connect(&probe);
        for _ in 0..40 {
            exchange(&mut stream, &probe, 32, is_ordered(model));
        }
        let bytes: Vec<u8> = (0..2000).flat_map(|id| request(&probe, "ping", id, true)).collect();
        stream.write_all(&bytes).unwrap();
        orb.shutdown(true).unwrap();
        // The server answers the requests that it has admitted, the first of them first. Then it sends
        // CloseConnection.
        let mut ids = Vec::new();
        loop {
            let message = raw::read_message(&mut stream);
            match message.get(7) {
                Some(1) => ids.push(message[12..16].to_vec()),
                kind => {
                    assert_eq!(kind, Some(&raw::CLOSE), "{model:?}, after {} replies", ids.len());
                    break;
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.len() <= 2000);
    }
}
