//! Peers that lie by shared memory: offers that are none, memory that is not what was told, positions that cannot be, bytes
//! that change while they are read, and peers that go in the middle. Others are served meanwhile.

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

/// Where each end tells how much it has written; how much it has taken is 128 bytes behind it, and how it is woken 256.
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

/// A client that has been made an offer, with the memory as a file that can be written anywhere.
struct Liar {
    socket: UnixStream,
    end: End<Mapping>,
    memory: File,
}

impl Liar {
    fn at(path: &str) -> Liar {
        let socket = UnixStream::connect(path).unwrap();
        let (offer, memory) = offered(&socket);
        let mapping = Mapping::open(&memory, offer.ring_bytes as usize).unwrap();
        Liar { socket, end: End::new(mapping, Side::Client), memory: memory.into() }
    }

    fn scribble(&self, offset: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, offset).unwrap();
    }

    fn ring(&self) {
        let _ = (&self.socket).write(&[1]);
    }

    /// Waits until the server has had enough.
    fn expect_end(mut self) {
        self.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut scrap = [0; 64];
        // What we have not read, or a bell, is no end.
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

/// Bytes by chance, the same in every run.
fn noise(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 16
}

#[test]
fn a_server_ends_what_cannot_be_and_serves_others() {
    for concurrency in ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder, "s");
        let (_server, probe) = server(&path, concurrency);
        let client = client();
        let remote = seen_by(&client, &probe);
        remote.ping().unwrap();
        for ahead in [RING as u32 + 1, u32::MAX, 1 << 31] {
            let liar = Liar::at(&path);
            liar.scribble(WRITTEN_BY_CLIENT, &ahead.to_ne_bytes());
            liar.ring();
            liar.expect_end();
            remote.ping().unwrap();
        }
        // No GIOP.
        let liar = Liar::at(&path);
        let _ = liar.end.write(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        liar.ring();
        liar.expect_end();
        // Positions that go back after a good request, and replies that were taken before they were there.
        for offset in [WRITTEN_BY_CLIENT, WRITTEN_BY_CLIENT + 128] {
            let liar = Liar::at(&path);
            let request = raw::request(probe.object(), "ping", &[]);
            assert_eq!(liar.end.write(&request).unwrap().bytes, request.len());
            liar.ring();
            eventually("it is answered", || liar.end.is_ready(Wanted::Bytes));
            liar.scribble(offset, &0x7000_0000u32.to_ne_bytes());
            let large = raw::request(probe.object(), "reflect", &[&[0, 0, 1, 0][..], &[7; 1 << 16]].concat());
            let _ = liar.end.write(&large);
            liar.ring();
            remote.ping().unwrap();
            // With bytes that were never written the rest makes no sense, or is waited for until the client is gone.
            drop(liar);
        }
        remote.ping().unwrap();
    }
}

#[test]
fn clients_that_go_in_the_middle_leave_nothing_behind() {
    for concurrency in ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder, "s");
        let mut builder = Orb::builder().endpoint(&format!("shm://{path}")).unwrap().concurrency(concurrency);
        builder.config().server_connections_max = 8;
        let server = builder.build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let request = raw::request(probe.object(), "ping", &[]);
        for cut in 0..=request.len() {
            let liar = Liar::at(&path);
            let _ = liar.end.write(&request[..cut]).unwrap();
            if cut % 2 == 0 {
                liar.ring();
            }
        }
        // One that takes nothing of what it is answered.
        let liar = Liar::at(&path);
        while liar.end.write(&request).unwrap().bytes == request.len() {}
        liar.ring();
        drop(liar);
        // What they have left would take all places.
        let clients: Vec<Orb> = (0..8).map(|_| client()).collect();
        for client in &clients {
            let remote = seen_by(client, &probe);
            eventually("there is room", || remote.ping().is_ok());
        }
    }
}

#[test]
fn memory_that_changes_at_random_hurts_nobody_else() {
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
                        let liar = Liar::at(path);
                        let request = raw::request(probe.object(), "echo", b"\x04\0\0\0abc\0");
                        for _ in 0..200 {
                            let _ = liar.end.write(&request);
                            let word = noise(&mut seed).to_ne_bytes();
                            let offset = match noise(&mut seed) % 4 {
                                0 => noise(&mut seed) % (AREA as u64 - 8),
                                1 => WRITTEN_BY_SERVER + 128 * (noise(&mut seed) % 6),
                                2 => WRITTEN_BY_CLIENT + 256 + 4 * (noise(&mut seed) % 2),
                                _ => CONTROL_BYTES as u64 + RING as u64 + noise(&mut seed) % 512,
                            };
                            liar.scribble(offset, &word[..4]);
                            if noise(&mut seed).is_multiple_of(8) {
                                liar.ring();
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

/// What a false server does with whoever connects.
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

/// A server that has a plain socket too, and somebody else who listens where it had offered shared memory.
fn with_another_in_its_place(folder: &tempfile::TempDir) -> (Orb, ProbeRef, UnixListener) {
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
fn a_client_takes_no_false_offer_and_goes_on_by_another_way() {
    for (what, offering) in false_offers() {
        let folder = tempfile::tempdir().unwrap();
        let (_server, probe, listener) = with_another_in_its_place(&folder);
        std::thread::spawn(move || listener.incoming().for_each(|stream| offering(stream.unwrap())));
        assert_eq!(seen_by(&client(), &probe).add(2, 2).unwrap(), 4, "{what}");
        let mut builder = Orb::builder().no_endpoint();
        builder.config().client_transports = vec![Transport::SharedMemory];
        let refused = seen_by(&builder.build().unwrap(), &probe).ping().unwrap_err();
        assert_eq!(refused.kind, SystemExceptionKind::Transient, "{what}: {refused}");
    }
}

#[test]
fn who_offers_nothing_is_waited_for_no_longer_than_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, probe, _silent) = with_another_in_its_place(&folder);
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connect_timeout = Duration::from_millis(100);
    assert_eq!(seen_by(&builder.build().unwrap(), &probe).add(1, 2).unwrap(), 3);
}

/// Takes a request and answers it by these writes into the memory, and goes or stays.
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
fn a_client_that_is_lied_to_ends_its_call() {
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
            // It goes when it has answered, so a reply that never ends has one all the same.
            scope.spawn(|| drop(false_server(&listener, &answer)));
            let client = client();
            let text = format!("corbaloc:shm:{path}|key");
            let remote: ProbeRef = client.string_to_object(&text).unwrap().narrow_unchecked();
            let error = remote.ping().unwrap_err();
            assert_eq!(error.kind, SystemExceptionKind::CommFailure, "{what}: {error}");
        });
    }
    // One that answers well is believed, and one that then wakes for nothing is not listened to for ever.
    let folder = tempfile::tempdir().unwrap();
    let path = at(&folder, "s");
    let listener = UnixListener::bind(&path).unwrap();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().call_timeout = Some(Duration::from_millis(300));
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
