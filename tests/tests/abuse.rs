//! Hostile peers. What they send and leave unread costs memory in proportion to the bytes that they have
//! sent. Their connections end, other clients are served meanwhile, and the server uses no processor time
//! for them afterwards.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use ironorb::{Orb, ServerConcurrency, TypedRef, Version, giop};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, ThreadNumber, eventually, raw};

/// One test runs the attacks one after another, because it measures the memory and time of this process.
#[test]
fn hostile_clients_do_not_harm_others() {
    for concurrency in [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 4 },
        ServerConcurrency::Reactor,
        ServerConcurrency::Hybrid { threads_max: 4 },
    ] {
        let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
        let config = builder.config();
        config.connection.framer.message_bytes_max = 4 << 20;
        config.message_timeout = Some(Duration::from_millis(500));
        config.transmit_timeout = Duration::from_millis(500);
        config.server_connections_max = 100;
        let server = builder.build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let ior: giop::Ior = probe.object().to_ior_string().parse().unwrap();
        let victim = Victim {
            port: ior.iiop_profiles().next().unwrap().port(),
            key: ior.iiop_profiles().next().unwrap().object_key().to_vec(),
        };
        let honest = Orb::builder().no_endpoint().build().unwrap();
        let remote: ProbeRef = honest.resolve(&ior.to_string()).unwrap();
        remote.ping().unwrap();
        let before = resident_bytes();
        let attacks: [(&str, Attack); 8] = [
            ("garbage", garbage),
            ("huge sizes", huge_sizes),
            ("half messages", half_messages),
            ("fragments without end", fragments_without_end),
            ("fragments of nothing", fragments_of_nothing),
            ("floods of small messages", floods),
            ("replies that are not read", unread_replies),
            ("many connections", many_connections),
        ];
        for (name, attack) in attacks {
            attack(&victim);
            assert_eq!(remote.add(1, 2).unwrap(), 3, "{name}, {concurrency:?}");
            let grown = resident_bytes().saturating_sub(before);
            assert!(grown < 100 << 20, "{name}, {concurrency:?}: {} MiB", grown >> 20);
        }
        let mut times_at_rest = 0;
        eventually("the threads are at rest, each of many times", || {
            times_at_rest = if others_are_asleep() { times_at_rest + 1 } else { 0 };
            times_at_rest == 50
        });
        assert_eq!(remote.add(1, 2).unwrap(), 3);
        honest.shutdown(true).unwrap();
        server.shutdown(true).unwrap();
    }
    large_messages_in_fragments();
}

/// 64 MB in fragments in each direction. The data arrives whole, and memory stays in proportion.
fn large_messages_in_fragments() {
    const BYTES: usize = 64_000_000;
    for fragment_bytes in [8 << 10, 256 << 10] {
        let mut builder =
            Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().fragment_bytes(fragment_bytes);
        builder.config().giop_version = Version::V1_2;
        let server = builder.build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let client = Orb::builder().no_endpoint().fragment_bytes(fragment_bytes).build().unwrap();
        let remote: ProbeRef = client.resolve(&probe.object().to_ior_string()).unwrap();
        let data: Vec<u8> = (0..BYTES as u32).map(|i| (i / 7) as u8).collect();
        let before = resident_bytes();
        assert!(remote.reflect(&data).unwrap() == data);
        // Both sides are in this process: each of request and reply is written once and read once, and each
        // of these four buffers may take up to twice its size while it grows.
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 8 * BYTES, "{} MiB", grown >> 20);
        assert!(remote.reflect(&data).unwrap() == data);
    }
}

type Attack = fn(&Victim);

struct Victim {
    port: u16,
    key: Vec<u8>,
}

impl Victim {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// A request of GIOP 1.2. The arguments, if there are any, are aligned to 8.
    fn request(&self, id: u32, operation: &str, arguments: &[u8]) -> Vec<u8> {
        let mut body = id.to_be_bytes().to_vec();
        body.extend([3, 0, 0, 0, 0, 0, 0, 0]);
        body.extend((self.key.len() as u32).to_be_bytes());
        body.extend(&self.key);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend((operation.len() as u32 + 1).to_be_bytes());
        body.extend(operation.as_bytes());
        body.push(0);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend([0; 4]);
        if !arguments.is_empty() {
            body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
            body.extend(arguments);
        }
        raw::message(0, &body)
    }
}

/// Reads until the server ends the connection, by a close or a reset.
fn ends(mut stream: TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let mut sink = [0; 4096];
    while let Ok(1..) = stream.read(&mut sink) {}
}

fn garbage(victim: &Victim) {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for round in 0..100 {
        let mut bytes = vec![0; 700];
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
        if round % 2 == 0 {
            // The header is that of a valid Request, so that the server parses the rest.
            bytes[..12].copy_from_slice(b"GIOP\x01\x02\x00\x00\x00\x00\x02\xb0");
        }
        let mut stream = victim.connect();
        let _ = stream.write_all(&bytes);
        ends(stream);
    }
}

fn huge_sizes(victim: &Victim) {
    for size in [u32::MAX, i32::MAX as u32, (4 << 20) - 12] {
        for _ in 0..20 {
            let mut stream = victim.connect();
            let mut header = b"GIOP\x01\x02\x00\x00".to_vec();
            header.extend(size.to_be_bytes());
            stream.write_all(&header).unwrap();
            ends(stream);
        }
    }
    // Sizes inside a message: of a context list, of a key, and of a body with more elements than there are
    // bytes.
    for at in [0, 12, 16] {
        let mut message = victim.request(1, "reflect", &[0, 0, 0, 1, 0]);
        let end = message.len();
        let place = if at == 0 { end - 5 } else { 12 + at };
        message[place..place + 4].copy_from_slice(&u32::MAX.to_be_bytes());
        let mut stream = victim.connect();
        stream.write_all(&message).unwrap();
        ends(stream);
    }
}

fn half_messages(victim: &Victim) {
    let message = victim.request(1, "reflect", &[0, 0, 0, 4, 1, 2, 3, 4]);
    let held: Vec<_> = (1..message.len())
        .step_by(2)
        .map(|cut| {
            let mut stream = victim.connect();
            stream.write_all(&message[..cut]).unwrap();
            stream
        })
        .collect();
    // The server closes them, since the messages do not go on.
    for mut stream in held {
        let mut sink = [0; 64];
        while let Ok(1..) = stream.read(&mut sink) {}
    }
}

fn fragments_without_end(victim: &Victim) {
    let mut first = victim.request(1, "reflect", &[0; 64]);
    first[6] |= 2;
    let mut stream = victim.connect();
    stream.write_all(&first).unwrap();
    let mut body = 1u32.to_be_bytes().to_vec();
    body.resize(60 << 10, 7);
    let mut more = raw::message(7, &body);
    more[6] |= 2;
    // More fragments than a message may have.
    for _ in 0..200 {
        if stream.write_all(&more).is_err() {
            break;
        }
    }
    ends(stream);
}

fn fragments_of_nothing(victim: &Victim) {
    // Many messages are begun, and none ends.
    let mut stream = victim.connect();
    for id in 0..1000 {
        let mut first = victim.request(id, "ping", &[]);
        first[6] |= 2;
        if stream.write_all(&first).is_err() {
            break;
        }
    }
    ends(stream);
    // Fragments that add nothing, until the server ends the connection.
    let mut stream = victim.connect();
    let mut first = victim.request(1, "ping", &[]);
    first[6] |= 2;
    stream.write_all(&first).unwrap();
    let mut more = raw::message(7, &1u32.to_be_bytes());
    more[6] |= 2;
    let more = more.repeat(1000);
    for _ in 0..100 {
        if stream.write_all(&more).is_err() {
            break;
        }
    }
    ends(stream);
}

fn floods(victim: &Victim) {
    let mut locate = 1u32.to_be_bytes().to_vec();
    locate.extend([0, 0, 0, 0, 0, 0, 0, 3]);
    locate.extend(b"abc");
    let cancel = raw::message(2, &5u32.to_be_bytes());
    for message in [raw::message(3, &locate), cancel, victim.request(1, "no_such_operation", &[])] {
        let flood = message.repeat(1000);
        std::thread::scope(|scope| {
            let mut stream = victim.connect();
            let mut reader = stream.try_clone().unwrap();
            scope.spawn(move || {
                let mut sink = [0; 65536];
                while let Ok(1..) = reader.read(&mut sink) {}
            });
            for _ in 0..20 {
                stream.write_all(&flood).unwrap();
            }
            let _ = stream.shutdown(Shutdown::Write);
        });
    }
}

fn unread_replies(victim: &Victim) {
    let mut arguments = (1u32 << 20).to_be_bytes().to_vec();
    arguments.resize(4 + (1 << 20), 7);
    let message = victim.request(1, "reflect", &arguments);
    let held: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = victim.connect();
            stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
            // Writes until the server takes no more, because it waits for its replies to be read.
            for _ in 0..50 {
                if stream.write_all(&message).is_err() {
                    break;
                }
            }
            stream
        })
        .collect();
    // It gives up sending and ends them, though its replies still lie there.
    for mut stream in held {
        stream.set_nonblocking(true).unwrap();
        eventually("the server ends the connection", || {
            let written = stream.write(&[0]);
            written.is_err_and(|e| e.kind() != std::io::ErrorKind::WouldBlock)
        });
    }
}

fn many_connections(victim: &Victim) {
    let held: Vec<_> = (0..200).map_while(|_| TcpStream::connect(("127.0.0.1", victim.port)).ok()).collect();
    // The server closes the connections above its limit. Those below it do no harm.
    let mut closed = 0;
    for stream in &held {
        stream.set_nonblocking(true).unwrap();
    }
    eventually("the surplus connections are closed", || {
        closed = held
            .iter()
            .filter(|stream| {
                let mut byte = [0; 64];
                (&mut &**stream).read(&mut byte).is_ok()
            })
            .count();
        closed >= 90
    });
    drop(held);
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Whether no thread of this process runs but the caller. A thread that goes round for nothing is never found asleep so
/// often in a row.
fn others_are_asleep() -> bool {
    let own = ThreadNumber::own();
    ThreadNumber::all().into_iter().filter(|thread| *thread != own).all(ThreadNumber::is_asleep)
}
