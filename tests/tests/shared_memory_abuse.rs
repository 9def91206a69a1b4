//! Hostile peers by shared memory: invalid offers, memory that differs from the offer, impossible
//! positions, bytes that change while they are read, and peers that leave in the middle. Other clients are
//! served meanwhile.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ironorb::giop::exception::SystemExceptionKind;
use ironorb::{Orb, ServerConcurrency, Transport, TypedRef};
use ironorb_shm::{CONTROL_BYTES, End, Mapping, Offer, Side, Wanted};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

const ALL: [ServerConcurrency; 4] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 2 },
    ServerConcurrency::Reactor,
    ServerConcurrency::Hybrid { threads_max: 8 },
];

const RING: usize = 64 << 10;
const AREA: usize = CONTROL_BYTES + 2 * RING;

/// The offset where each end writes the count of bytes that it has written. The count of bytes that it has
/// taken is 128 bytes after it, and its wake-up flag 256.
const WRITTEN_BY_SERVER: u64 = 0;
const WRITTEN_BY_CLIENT: u64 = 384;

fn at(folder: &tempfile::TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
}

fn client() -> Orb {
    let mut builder = Orb::builder().no_endpoint();
    builder.config().call_timeout = Some(Duration::from_secs(20));
    builder.build().unwrap()
}

fn seen_by(client: &Orb, probe: &ProbeRef) -> ProbeRef {
    client.string_to_object(&probe.object().to_ior_string()).unwrap().narrow_unchecked()
}

fn server(path: &str, concurrency: ServerConcurrency) -> (Orb, ProbeRef) {
    let mut builder = Orb::builder().endpoint(&format!("shm://{path}")).unwrap().concurrency(concurrency);
    builder.config().shared_memory_bytes = RING;
    let orb = builder.build().unwrap();
    let probe = orb.root_poa().activate(Probing::default()).unwrap();
    (orb, probe)
}

/// A client that has accepted an offer, with the memory as a file in which it can write anywhere.
struct HostileClient {
    socket: UnixStream,
    end: End<Mapping>,
    memory: File,
}

impl HostileClient {
    fn at(path: &str) -> HostileClient {
        let socket = UnixStream::connect(path).unwrap();
        let (offer, memory) = offered(&socket);
        let mapping = Mapping::open(&memory, offer.ring_bytes as usize).unwrap();
        HostileClient { socket, end: End::new(mapping, Side::Client), memory: memory.into() }
    }

    fn scribble(&self, offset: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, offset).unwrap();
    }

    fn ring(&self) {
        let _ = (&self.socket).write(&[1]);
    }

    /// Waits until the server closes the connection.
    fn expect_end(mut self) {
        self.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut scrap = [0; 64];
        // Unread bytes and wake-ups are not the end.
        while !matches!(self.socket.read(&mut scrap), Ok(0)) {
            self.ring();
        }
    }
}

fn offered(socket: &UnixStream) -> (Offer, OwnedFd) {
    let begun = Instant::now();
    loop {
        match Offer::receive(socket) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                assert!(begun.elapsed() < Duration::from_secs(20), "no offer");
                std::thread::yield_now();
            }
            other => return other.unwrap(),
        }
    }
}

/// Pseudo-random bytes, equal in every run.
fn noise(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 16
}

#[test]
fn a_server_closes_invalid_connections_and_serves_others() {
    for concurrency in ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder, "s");
        let (_server, probe) = server(&path, concurrency);
        let client = client();
        let remote = seen_by(&client, &probe);
        remote.ping().unwrap();
        for ahead in [RING as u32 + 1, u32::MAX, 1 << 31] {
            let hostile = HostileClient::at(&path);
            hostile.scribble(WRITTEN_BY_CLIENT, &ahead.to_ne_bytes());
            hostile.ring();
            hostile.expect_end();
            remote.ping().unwrap();
        }
        // Bytes that are not GIOP.
        let hostile = HostileClient::at(&path);
        let _ = hostile.end.write(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        hostile.ring();
        hostile.expect_end();
        // Positions that go back after a valid request, and replies that are taken before the server has
        // written them.
        for offset in [WRITTEN_BY_CLIENT, WRITTEN_BY_CLIENT + 128] {
            let hostile = HostileClient::at(&path);
            let request = raw::request(probe.object(), "ping", &[]);
            assert_eq!(hostile.end.write(&request).unwrap().bytes, request.len());
            hostile.ring();
            eventually("it is answered", || hostile.end.is_ready(Wanted::Bytes));
            hostile.scribble(offset, &0x7000_0000u32.to_ne_bytes());
            let large = raw::request(probe.object(), "reflect", &[&[0, 0, 1, 0][..], &[7; 1 << 16]].concat());
            let _ = hostile.end.write(&large);
            hostile.ring();
            remote.ping().unwrap();
            // The server either finds garbage in the bytes that were never written, or waits for the rest
            // until the client is gone.
            drop(hostile);
        }
        remote.ping().unwrap();
    }
}

#[test]
fn clients_that_leave_within_a_request_leave_nothing_behind() {
    for concurrency in ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder, "s");
        let mut builder = Orb::builder().endpoint(&format!("shm://{path}")).unwrap().concurrency(concurrency);
        builder.config().server_connections_max = 8;
        let server = builder.build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let request = raw::request(probe.object(), "ping", &[]);
        for cut in 0..=request.len() {
            let hostile = HostileClient::at(&path);
            let _ = hostile.end.write(&request[..cut]).unwrap();
            if cut % 2 == 0 {
                hostile.ring();
            }
        }
        // A client that does not read its replies.
        let hostile = HostileClient::at(&path);
        while hostile.end.write(&request).unwrap().bytes == request.len() {}
        hostile.ring();
        drop(hostile);
        // Connections that the server has not closed would take all of its places.
        let clients: Vec<Orb> = (0..8).map(|_| client()).collect();
        for client in &clients {
            let remote = seen_by(client, &probe);
            eventually("there is room", || remote.ping().is_ok());
        }
    }
}

#[test]
fn memory_that_changes_at_random_does_not_harm_others() {
    for concurrency in ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder, "s");
        let (_server, probe) = server(&path, concurrency);
        let client = client();
        let remote = seen_by(&client, &probe);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (path, probe, is_over) = (&path, &probe, &is_over);
                scope.spawn(move || {
                    let mut seed = 77 + thread;
                    while !is_over.load(Ordering::Relaxed) {
                        let hostile = HostileClient::at(path);
                        let request = raw::request(probe.object(), "echo", b"\x04\0\0\0abc\0");
                        for _ in 0..200 {
                            let _ = hostile.end.write(&request);
                            let word = noise(&mut seed).to_ne_bytes();
                            let offset = match noise(&mut seed) % 4 {
                                0 => noise(&mut seed) % (AREA as u64 - 8),
                                1 => WRITTEN_BY_SERVER + 128 * (noise(&mut seed) % 6),
                                2 => WRITTEN_BY_CLIENT + 256 + 4 * (noise(&mut seed) % 2),
                                _ => CONTROL_BYTES as u64 + RING as u64 + noise(&mut seed) % 512,
                            };
                            hostile.scribble(offset, &word[..4]);
                            if noise(&mut seed).is_multiple_of(8) {
                                hostile.ring();
                            }
                        }
                    }
                });
            }
            for i in 0..300 {
                assert_eq!(remote.add(i, 1).unwrap(), i + 1, "{concurrency:?}");
            }
            is_over.store(true, Ordering::Relaxed);
        });
        remote.ping().unwrap();
    }
}

/// What a false server does with each connection.
type Offering = Box<dyn Fn(UnixStream) + Send>;

fn false_offers() -> Vec<(&'static str, Offering)> {
    let memfd = |bytes: usize, seals: SealFlags| {
        let memory = memfd_create("false", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&memory, bytes as u64).unwrap();
        fcntl_add_seals(&memory, seals).unwrap();
        memory
    };
    let offer = |ring_bytes: u32, memory: OwnedFd| -> Offering {
        Box::new(move |socket| Offer { ring_bytes }.send(socket, &memory).unwrap())
    };
    vec![
        ("nothing", Box::new(drop)),
        ("other bytes", Box::new(|mut socket| socket.write_all(b"+OK POP3 ready\r\n").unwrap())),
        (
            "no memory",
            Box::new(|mut socket| socket.write_all(&Offer { ring_bytes: 65536 }.to_bytes()).unwrap()),
        ),
        ("too short", offer(RING as u32, memfd(AREA - 1, SealFlags::SHRINK))),
        ("empty", offer(RING as u32, memfd(0, SealFlags::SHRINK))),
        ("not sealed", offer(RING as u32, memfd(AREA, SealFlags::GROW))),
        ("not to be written", offer(RING as u32, memfd(AREA, SealFlags::SHRINK | SealFlags::WRITE))),
        ("no ring", offer(0, memfd(CONTROL_BYTES, SealFlags::SHRINK))),
        ("an odd ring", offer(65535, memfd(CONTROL_BYTES + 2 * 65535, SealFlags::SHRINK))),
        ("huge", offer(1 << 31, memfd(AREA, SealFlags::SHRINK))),
        ("no memory at all", offer(RING as u32, File::open("/dev/null").unwrap().into())),
    ]
}

/// A server that has a plain socket too. A second listener has taken the path at which the server offered
/// shared memory.
fn with_false_listener(folder: &tempfile::TempDir) -> (Orb, ProbeRef, UnixListener) {
    let (shared, socket) = (at(folder, "shared"), at(folder, "socket"));
    let server = Orb::builder()
        .endpoint(&format!("shm://{shared}"))
        .and_then(|builder| builder.endpoint(&format!("uiop://{socket}")))
        .unwrap()
        .build()
        .unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    std::fs::rename(&shared, at(folder, "elsewhere")).unwrap();
    let listener = UnixListener::bind(&shared).unwrap();
    (server, probe, listener)
}

#[test]
fn a_client_refuses_a_false_offer_and_uses_another_transport() {
    for (what, offering) in false_offers() {
        let folder = tempfile::tempdir().unwrap();
        let (_server, probe, listener) = with_false_listener(&folder);
        std::thread::spawn(move || listener.incoming().for_each(|stream| offering(stream.unwrap())));
        assert_eq!(seen_by(&client(), &probe).add(2, 2).unwrap(), 4, "{what}");
        let mut builder = Orb::builder().no_endpoint();
        builder.config().client_transports = vec![Transport::SharedMemory];
        let refused = seen_by(&builder.build().unwrap(), &probe).ping().unwrap_err();
        assert_eq!(refused.kind, SystemExceptionKind::Transient, "{what}: {refused}");
    }
}

#[test]
fn waiting_for_an_offer_ends_at_the_connect_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, probe, _silent) = with_false_listener(&folder);
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connect_timeout = Duration::from_millis(100);
    assert_eq!(seen_by(&builder.build().unwrap(), &probe).add(1, 2).unwrap(), 3);
}

/// Reads a request and answers it with these writes into the memory. Returns the socket.
fn false_server(listener: &UnixListener, answer: impl Fn(&End<Mapping>, &File, [u8; 4])) -> UnixStream {
    let (socket, _) = listener.accept().unwrap();
    let (mapping, memory) = Mapping::create(RING).unwrap();
    Offer { ring_bytes: RING as u32 }.send(&socket, &memory).unwrap();
    let end = End::new(mapping, Side::Server);
    let mut request = [0; 4096];
    let mut came = 0;
    eventually("a request comes", || {
        came += end.read(&mut request[came..]).unwrap().bytes;
        came > 12 && came >= 12 + u32::from_le_bytes(request[8..12].try_into().unwrap()) as usize
    });
    answer(&end, &File::from(memory), raw::id_of(&request[..came]));
    let _ = (&socket).write(&[1]);
    socket
}

fn written(end: &End<Mapping>, bytes: &[u8]) {
    assert_eq!(end.write(bytes).unwrap().bytes, bytes.len());
}

#[test]
fn a_client_ends_its_call_to_a_hostile_server() {
    type Answer = Box<dyn Fn(&End<Mapping>, &File, [u8; 4]) + Send + Sync>;
    let scribble = |offset: u64, value: u32| -> Answer {
        Box::new(move |_, memory, _| memory.write_all_at(&value.to_ne_bytes(), offset).unwrap())
    };
    let answers: Vec<(&str, Answer)> = vec![
        ("too much written", scribble(WRITTEN_BY_SERVER, RING as u32 + 1)),
        ("written backwards", scribble(WRITTEN_BY_SERVER, u32::MAX)),
        ("no GIOP", Box::new(|end, _, _| written(end, &[0x55; 200]))),
        ("half a reply", Box::new(|end, _, id| written(end, &raw::reply(id, 0, &[])[..14]))),
    ];
    for (what, answer) in answers {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder, "s");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            // Dropping the socket ends the connection, which is the end of a reply that never ends.
            scope.spawn(|| drop(false_server(&listener, &answer)));
            let client = client();
            let text = format!("corbaloc:shm:{path}|key");
            let remote: ProbeRef = client.string_to_object(&text).unwrap().narrow_unchecked();
            let error = remote.ping().unwrap_err();
            assert_eq!(error.kind, SystemExceptionKind::CommFailure, "{what}: {error}");
        });
    }
    // The client accepts a valid reply. A server that then wakes it for nothing does not keep a call beyond
    // its deadline.
    let folder = tempfile::tempdir().unwrap();
    let path = at(&folder, "s");
    let listener = UnixListener::bind(&path).unwrap();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().call_timeout = Some(Duration::from_secs(1));
    let client = builder.build().unwrap();
    let text = format!("corbaloc:shm:{path}|key");
    let remote: ProbeRef = client.string_to_object(&text).unwrap().narrow_unchecked();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = false_server(&listener, |end, _, id| written(end, &raw::reply(id, 0, &[])));
            while (&socket).write(&[1; 16]).is_ok() {
                std::thread::yield_now();
            }
        });
        remote.ping().unwrap();
        assert_eq!(remote.ping().unwrap_err().kind, SystemExceptionKind::Timeout);
        client.shutdown(true).unwrap();
    });
}
