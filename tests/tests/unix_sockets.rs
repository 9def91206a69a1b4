//! Calls over Unix domain sockets: what works as over TCP, and what this transport has of its own: the
//! socket's file, its component in references, and the fallback to TCP.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ironorb::giop::Version;
use ironorb::giop::exception::{CompletionStatus, SystemExceptionKind};
use ironorb::giop::ior::{IiopProfile, Ior, Profile, TaggedComponent};
use ironorb::{MinorCode, Orb, OrbBuilder, ServerConcurrency, SystemException, Transport, TypedRef};
use ironorb_tests::command::{ServingProcess, run};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::wires::{Exchange, ExchangeRef, ListenerRef};
use ironorb_tests::{Exchanging, Hooked, Listening, Probing, ThreadNumber, eventually, raw};

const ALL: [ServerConcurrency; 3] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 2 },
    ServerConcurrency::Hybrid { threads_max: 2 },
];

/// The GIOP message type MessageError.
const MESSAGE_ERROR: u8 = 6;

/// A folder for the sockets of one test.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn at(folder: &tempfile::TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
}

fn listening(path: &str) -> OrbBuilder {
    Orb::builder().endpoint(&format!("uiop://{path}")).unwrap()
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn served(orb: &Orb) -> ProbeRef {
    orb.root_poa().activate(Probing::default()).unwrap()
}

/// The reference as another process has it.
fn seen_by(client: &Orb, probe: &ProbeRef) -> ProbeRef {
    client.string_to_object(&probe.object().to_ior_string()).unwrap().narrow_unchecked()
}

fn machine() -> String {
    let output = std::process::Command::new("uname").arg("-n").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A reference with a TCP port, unless it is 0, and sockets.
fn reference(port: u16, key: &[u8], sockets: &[(&str, &str)]) -> String {
    let components: Vec<TaggedComponent<'_>> =
        sockets.iter().map(|(host, path)| TaggedComponent::new_unix_address(host, path).unwrap()).collect();
    let profile = IiopProfile::new(Version::V1_2, "127.0.0.1", port, key, &components).unwrap();
    Ior::with_profile("IDL:testing/Probe:1.0", profile).to_string()
}

#[test]
fn calls_go_over_a_socket() {
    for concurrency in ALL {
        let folder = folder();
        let path = at(&folder, "s");
        let server = listening(&path).concurrency(concurrency).build().unwrap();
        assert_eq!(server.published_addresses(), [format!("uiop://{path}")]);
        let (probe, client) = (served(&server), client());
        let remote = seen_by(&client, &probe);
        assert_eq!(remote.add(2, 3).unwrap(), 5);
        remote.tick().unwrap();
        assert_eq!(remote.echo("grüße").unwrap(), "grüße");
        eventually("the oneway has come", || remote.ticks().unwrap() == 1);
        for bytes in [0, 1, 70_000, 3 << 20] {
            let data: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
            assert!(remote.reflect(&data).unwrap() == data, "{bytes}");
        }
        // Several threads over several connections.
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let remote = &remote;
                scope.spawn(move || {
                    (0..50).for_each(|i| assert_eq!(remote.add(thread, i).unwrap(), thread + i))
                });
            }
        });
        server.shutdown(true).unwrap();
        assert!(!Path::new(&path).exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// A reference of which a client sees the profiles of one kind alone.
fn only(probe: &ProbeRef, is_uiop: bool) -> Ior {
    let mut ior = probe.object().to_ior();
    ior.profiles.retain(|it| matches!(it, Profile::Iiop(it) if it.uiop_path().is_some() == is_uiop));
    ior
}

#[test]
fn references_name_sockets_as_tao_does_where_the_orb_is_told_to() {
    let folder = folder();
    let [path, second] = ["s", "t"].map(|name| at(&folder, name));
    let paths = |probe: &ProbeRef| -> Vec<_> {
        let ior = probe.object().to_ior();
        ior.iiop_profiles().map(|profile| profile.uiop_path().map(str::to_owned)).collect()
    };
    let server = listening(&path).build().unwrap();
    assert_eq!(paths(&served(&server)), [None]);
    server.shutdown(true).unwrap();
    let both = || listening(&path).uiop_profiles(true).endpoint("iiop://127.0.0.1:0").unwrap();
    let server = both().endpoint(&format!("uiop://{second}")).unwrap().build().unwrap();
    let probe = served(&server);
    assert_eq!(paths(&probe), [Some(path.clone()), Some(second.clone()), None]);
    let client = client();
    let ior = only(&probe, true);
    let remote: ProbeRef = client.string_to_object(&ior.to_string()).unwrap().narrow_unchecked();
    assert_eq!(remote.add(2, 3).unwrap(), 5);
    let peers: Vec<_> = client.status().connections.iter().map(|it| it.peer.clone()).collect();
    assert!(peers.len() == 1 && peers[0].starts_with("Unix"), "{peers:?}");
    // The server knows its object by it, and both parts of the reference are for one object.
    let local: ProbeRef = server.string_to_object(&ior.to_string()).unwrap().narrow_unchecked();
    assert_eq!((local.add(1, 1).unwrap(), server.status().connections.len()), (2, 1));
    assert!(ior.is_equivalent(&only(&probe, false)));
    server.shutdown(true).unwrap();
    // Where TCP is first, so is its profile.
    let tcp = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    let tcp = tcp.uiop_profiles(true).endpoint(&format!("uiop://{path}")).unwrap().build().unwrap();
    assert_eq!(paths(&served(&tcp)), [None, Some(path)]);
}

/// TAO's profiles do not say which machine they mean; those of IronORB do.
#[test]
fn a_uiop_profile_is_for_this_machine_unless_it_names_another() {
    let folder = folder();
    let path = at(&folder, "s");
    let server = listening(&path).build().unwrap();
    let probe = served(&server);
    let key = probe.object().to_ior().iiop_profiles().next().unwrap().object_key().to_vec();
    let with = |components: &[TaggedComponent<'_>]| {
        let profile = IiopProfile::new_uiop(Version::V1_2, &path, &key, components).unwrap();
        let ior = Ior::with_profile("IDL:testing/Probe:1.0", profile).to_string();
        let remote: ProbeRef = client().string_to_object(&ior).unwrap().narrow_unchecked();
        remote.add(2, 3)
    };
    let on = |host: &str| TaggedComponent::new_unix_address(host, &path).unwrap();
    assert_eq!((with(&[]).unwrap(), with(&[on(&machine())]).unwrap()), (5, 5));
    assert_eq!(with(&[on("elsewhere")]).unwrap_err().kind, SystemExceptionKind::InvObjref);
}

/// The profiles of a server are one server: that it refuses a request, it says once.
#[test]
fn a_server_that_refuses_is_not_asked_again_by_its_other_profile() {
    let folder = folder();
    let server = listening(&at(&folder, "s")).uiop_profiles(true).endpoint("iiop://127.0.0.1:0").unwrap();
    let server = server.build().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let probe: ProbeRef = server
        .root_poa()
        .activate(Hooked::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let (kind, completed) = (SystemExceptionKind::Transient, CompletionStatus::No);
            Err(SystemException::new(kind, MinorCode::NONE, completed))
        }))
        .unwrap();
    assert_eq!(probe.object().to_ior().profiles.len(), 2);
    let remote = seen_by(&client(), &probe);
    assert_eq!(remote.ping().unwrap_err().kind, SystemExceptionKind::Transient);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_reference_has_both_transports_and_the_socket_comes_first() {
    let folder = folder();
    let path = at(&folder, "s");
    let server = listening(&path).endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let (probe, client) = (served(&server), client());
    let ior = probe.object().ior();
    let profile = ior.iiop_profiles().next().unwrap();
    assert_eq!((profile.host(), profile.port() > 0), ("127.0.0.1", true));
    let sockets: Vec<_> =
        profile.unix_addresses().map(|socket| (socket.host.into(), socket.path.into())).collect();
    assert_eq!(sockets, [(machine(), path.clone())]);
    // Clients connect to the path, also when a new server listens there.
    std::fs::rename(&path, at(&folder, "elsewhere")).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| answer_one(&listener));
        seen_by(&client, &probe).ping().unwrap();
    });
}

/// Answers one request with an empty reply.
fn answer_one(listener: &UnixListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut header = [0; 12];
    stream.read_exact(&mut header).unwrap();
    let mut body = vec![0; u32::from_le_bytes(header[8..].try_into().unwrap()) as usize];
    stream.read_exact(&mut body).unwrap();
    let request = [&header[..], &body].concat();
    std::io::Write::write_all(&mut stream, &raw::reply(raw::id_of(&request), 0, &[])).unwrap();
}

#[test]
fn without_the_socket_calls_go_over_tcp() {
    let folder = folder();
    let path = at(&folder, "s");
    let server = listening(&path).endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = served(&server);
    let port = probe.object().ior().iiop_profiles().next().unwrap().port();
    // Before the first call.
    std::fs::rename(&path, at(&folder, "elsewhere")).unwrap();
    seen_by(&client(), &probe).ping().unwrap();
    // The client ignores sockets of another machine, and passes over sockets to which it cannot connect.
    let key = probe.object().ior().iiop_profiles().next().unwrap().object_key().to_vec();
    let long = format!("/{}", "x".repeat(107));
    let machine = machine();
    let absent = at(&folder, "absent");
    let trap = at(&folder, "trap");
    let _trap = UnixListener::bind(&trap).unwrap(); // it does not answer
    let file = at(&folder, "file");
    std::fs::write(&file, "").unwrap();
    for socket in [
        ("elsewhere.example", trap.as_str()),
        ("", &trap),
        (&machine, &long),
        (&machine, ""),
        (&machine, "relative"),
        (&machine, &absent),
        (&machine, &file),
        (&machine, folder.path().to_str().unwrap()),
        (&machine, "/dev/null"),
    ] {
        let text = reference(port, &key, &[socket]);
        let remote: ProbeRef = client().string_to_object(&text).unwrap().narrow_unchecked();
        assert_eq!(remote.add(1, 1).unwrap(), 2, "{socket:?}");
        // Without TCP the reference leads nowhere, and the call fails.
        let text = reference(0, &key, &[socket]);
        let remote: ProbeRef = client().string_to_object(&text).unwrap().narrow_unchecked();
        remote.ping().unwrap_err();
    }
}

#[test]
fn settings_select_the_transport() {
    let folder = folder();
    let path = at(&folder, "s");
    let server = listening(&path).endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = served(&server);
    let silent = at(&folder, "silent");
    let client = |transports: &str| {
        Orb::builder()
            .no_endpoint()
            .call_timeout(Some(Duration::from_secs(20)))
            .arguments(&mut vec![format!("-ORBclientTransports={transports}")])
            .build()
            .unwrap()
    };
    seen_by(&client("tcp"), &probe).ping().unwrap();
    seen_by(&client("unix"), &probe).ping().unwrap();
    std::fs::rename(&path, &silent).unwrap();
    seen_by(&client("tcp,unix"), &probe).ping().unwrap();
    seen_by(&client("unix"), &probe).ping().unwrap_err();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().client_transports = vec![Transport::Unix];
    let tcp_only = reference(1, b"x", &[]);
    let remote: ProbeRef = builder.build().unwrap().string_to_object(&tcp_only).unwrap().narrow_unchecked();
    let refused = remote.ping().unwrap_err().to_string();
    assert!(refused.contains("INV_OBJREF"), "{refused}");
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_kept() {
    let folder = folder();
    let path = at(&folder, "s");
    // A socket of a program that takes no lock: at first the program lives, then it does not.
    let other = UnixListener::bind(&path).unwrap();
    let refused = listening(&path).build().unwrap_err().to_string();
    assert_eq!(refused, format!("cannot listen at uiop://{path}: another server listens there"));
    assert!(!Path::new(&format!("{path}.lock")).exists(), "a failed start leaves no lock file");
    drop(other);
    assert!(Path::new(&path).exists());
    let server = listening(&path).build().unwrap();
    seen_by(&client(), &served(&server)).ping().unwrap();
    // A socket of an IronORB server.
    let refused = listening(&path).build().unwrap_err().to_string();
    assert_eq!(refused, format!("cannot listen at uiop://{path}: another server listens there"));
    seen_by(&client(), &served(&server)).ping().unwrap();
    server.shutdown(true).unwrap();
    drop(listening(&path).build().unwrap());
    // A file that is no socket stays.
    std::fs::write(&path, "precious").unwrap();
    let refused = listening(&path).build().unwrap_err().to_string();
    assert_eq!(refused, format!("cannot listen at uiop://{path}: a file is there that is no socket"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    assert!(!Path::new(&format!("{path}.lock")).exists());
}

#[test]
fn a_setting_gives_the_permissions_of_the_socket() {
    let folder = folder();
    for mode in [0o600, 0o660, 0o777] {
        let path = at(&folder, "s");
        let mut builder = listening(&path);
        builder.config().unix_socket_mode = Some(mode);
        let server = builder.build().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        server.shutdown(true).unwrap();
    }
}

#[test]
fn a_server_without_a_path_gets_its_own() {
    let (first, second) = (listening("").build().unwrap(), listening("").build().unwrap());
    let (one, two) = (first.published_addresses(), second.published_addresses());
    assert_ne!(one, two);
    let path = one[0].strip_prefix("uiop://").unwrap();
    let parent = Path::new(path).parent().unwrap();
    assert_eq!(std::fs::metadata(parent).unwrap().permissions().mode() & 0o777, 0o700);
    let (probe, client) = (served(&first), client());
    seen_by(&client, &probe).ping().unwrap();
    // By a plain key, in a URL that omniORB reads too.
    first.bind_key("Probe", probe.object()).unwrap();
    let text = first.corbaloc("Probe");
    assert_eq!(text, format!("corbaloc:omniunix:1.2@{path}:/Probe"));
    let remote: ProbeRef = client.string_to_object(&text).unwrap().narrow_unchecked();
    remote.ping().unwrap();
    let remote: ProbeRef =
        client.string_to_object(&format!("corbaloc:uiop:{path}|Probe")).unwrap().narrow_unchecked();
    remote.ping().unwrap();
    first.shutdown(true).unwrap();
    assert!(!Path::new(path).exists());
}

#[test]
fn objects_at_a_socket_of_this_process_are_collocated() {
    let folder = folder();
    let server = listening(&at(&folder, "s")).build().unwrap();
    let probe = served(&server);
    server.bind_key("Probe", probe.object()).unwrap();
    let remote: ProbeRef =
        server.string_to_object(&probe.object().to_ior_string()).unwrap().narrow_unchecked();
    std::fs::rename(at(&folder, "s"), at(&folder, "elsewhere")).unwrap();
    remote.ping().unwrap();
    // Two servers on one machine that listen only at sockets are different servers.
    let other = listening(&at(&folder, "t")).build().unwrap();
    let there = reference(0, b"key", &[(&machine(), &at(&folder, "t"))]);
    let here = reference(0, b"key", &[(&machine(), &at(&folder, "s"))]);
    let [there, here] = [there, here].map(|text| other.string_to_object(&text).unwrap());
    assert!(!there.ior().is_equivalent(here.ior()));
    assert!(there.ior().is_equivalent(there.ior()));
}

#[test]
fn a_restarted_server_is_found_again() {
    let folder = folder();
    let path = at(&folder, "s");
    let client = client();
    let text = format!("corbaloc:uiop:{path}|Probe");
    let remote: ProbeRef = client.string_to_object(&text).unwrap().narrow_unchecked();
    remote.ping().unwrap_err();
    for concurrency in ALL {
        for round in 0..3 {
            let server = listening(&path).concurrency(concurrency).build().unwrap();
            let probe = served(&server);
            server.bind_key("Probe", probe.object()).unwrap();
            assert_eq!(remote.add(round, 1).unwrap(), round + 1);
            server.shutdown(round % 2 == 0).unwrap();
        }
    }
}

#[test]
fn a_shutdown_answers_requests_in_progress_and_refuses_later_ones() {
    for concurrency in ALL {
        let folder = folder();
        let path = at(&folder, "s");
        let server = listening(&path).concurrency(concurrency).build().unwrap();
        let probe = served(&server);
        let mut builder = Orb::builder().no_endpoint();
        builder.config().connections_per_endpoint_max = 1;
        let client = builder.build().unwrap();
        let remote = seen_by(&client, &probe);
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| remote.block());
            eventually("the servant blocks", || probe.blocked().unwrap() == 1);
            let stopping = scope.spawn(|| server.shutdown(true));
            eventually("nobody listens", || UnixStream::connect(&path).is_err());
            eventually("the connection takes no more requests", || server.status().connections.is_empty());
            // On the same connection, which takes no more requests: not carried out, and nobody listens elsewhere.
            let (thread, number) = std::sync::mpsc::channel();
            let remote = &remote;
            let refused = scope.spawn(move || {
                thread.send(ThreadNumber::own()).unwrap();
                remote.add(1, 2)
            });
            // It has been sent and waits for its answer, or waits to be sent: the server must refuse it in either case.
            let number = number.recv().unwrap();
            eventually("it waits or is over", || refused.is_finished() || number.is_asleep());
            probe.release().unwrap();
            blocked.join().unwrap().unwrap();
            stopping.join().unwrap().unwrap();
            let refused = refused.join().unwrap().unwrap_err();
            assert_eq!(
                (refused.kind, refused.completed),
                (SystemExceptionKind::Transient, CompletionStatus::No),
                "{concurrency:?}: {refused}"
            );
        });
    }
}

#[test]
fn idle_connections_and_connections_above_the_limit_are_closed() {
    for concurrency in ALL {
        let folder = folder();
        let path = at(&folder, "s");
        let mut builder = listening(&path).concurrency(concurrency);
        builder.config().server_idle_timeout = Some(Duration::from_millis(60));
        builder.config().server_connections_max = 3;
        let server = builder.build().unwrap();
        let probe = served(&server);
        let connect = || {
            let stream = UnixStream::connect(&path).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream
        };
        let rest = |mut stream: UnixStream| {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            rest
        };
        assert_eq!(rest(connect())[7], raw::CLOSE, "{concurrency:?}");
        let held = [connect(), connect(), connect()];
        assert_eq!(rest(connect())[7], raw::CLOSE, "{concurrency:?}");
        drop(held);
        let client = client();
        let remote = seen_by(&client, &probe);
        eventually("there is room again", || remote.ping().is_ok());
        for _ in 0..3 {
            remote.ping().unwrap();
            // The server closes what has been idle for longer, too.
            assert_eq!(rest(connect())[7], raw::CLOSE);
        }
        // Garbage ends its own connection, and no other.
        eventually("the error says so, and not that there are too many", || {
            let mut rude = connect();
            // What was not read may reset it.
            let _ = std::io::Write::write_all(&mut rude, b"GET / HTTP/1.1\r\n\r\n");
            let mut answer = Vec::new();
            let _ = rude.read_to_end(&mut answer);
            answer.is_empty() || answer[7] == MESSAGE_ERROR
        });
        remote.ping().unwrap();
    }
}

#[test]
fn a_client_is_called_back_over_its_own_connection() {
    for concurrency in [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 8 },
        ServerConcurrency::Hybrid { threads_max: 8 },
    ] {
        let folder = folder();
        let mut builder = listening(&at(&folder, "s")).concurrency(concurrency);
        builder.config().bidirectional = true;
        let server = builder.build().unwrap();
        let servant = Arc::new(Exchanging::default());
        let exchange: ExchangeRef = server.root_poa().activate_shared(servant.clone()).unwrap();
        *servant.itself.lock().unwrap() = Some(exchange.clone());
        // One client has no endpoint, and one listens only at a socket.
        for listens in [false, true] {
            let mut builder = match listens {
                false => Orb::builder().no_endpoint(),
                true => listening(&at(&folder, "c")),
            };
            builder.config().bidirectional = true;
            let client = builder.build().unwrap();
            let servant = Arc::new(Listening::default());
            let listener: ListenerRef = client.root_poa().activate_shared(servant.clone()).unwrap();
            *servant.itself.lock().unwrap() = Some(listener.clone());
            let remote: ExchangeRef =
                client.string_to_object(&exchange.object().to_ior_string()).unwrap().narrow_unchecked();
            for depth in 0..4 {
                assert_eq!(
                    remote.call_back(Some(&listener), depth).unwrap(),
                    depth + 1,
                    "{concurrency:?}, {listens}, {depth}"
                );
            }
            client.shutdown(true).unwrap();
        }
        server.shutdown(true).unwrap();
    }
}

#[test]
fn a_killed_server_leaves_a_socket_that_the_next_one_replaces() {
    let folder = folder();
    let path = at(&folder, "names");
    let endpoint = format!("uiop://{path}");
    let arguments = ["naming", "serve", "--memory", "--endpoint", &endpoint];
    let client = client();
    for _ in 0..2 {
        let server = ServingProcess::start(arguments);
        assert_eq!(server.ready, format!("corbaloc:omniunix:1.2@{path}:/NameService"));
        let root = client.string_to_object(&server.ready).unwrap();
        assert!(!root.non_existent().unwrap());
        let refused = run(arguments).expect_failure(1);
        assert!(refused.contains("another server listens there"), "{refused}");
        drop(server); // SIGKILL
        assert!(Path::new(&path).exists());
    }
}
