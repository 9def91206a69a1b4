//! Calls by shared memory: what works as over TCP, and what this transport has of its own: its component in
//! references, its settings, and peers that die. Hostile peers are in `shared_memory_abuse`.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ironorb::giop::exception::{CompletionStatus, SystemExceptionKind};
use ironorb::{Orb, OrbBuilder, ServerConcurrency, Transport, TypedRef};
use ironorb_tests::command::{ServingProcess, run};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::wires::{Exchange, ExchangeRef, ListenerRef};
use ironorb_tests::{Exchanging, Listening, Probing, eventually};

const BOTH: [ServerConcurrency; 2] =
    [ServerConcurrency::ThreadPerConnection, ServerConcurrency::LeaderFollowers { threads: 2 }];

const ALL: [ServerConcurrency; 4] =
    [BOTH[0], BOTH[1], ServerConcurrency::Reactor, ServerConcurrency::Hybrid { threads_max: 20 }];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn at(folder: &tempfile::TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
}

fn listening(path: &str) -> OrbBuilder {
    Orb::builder().endpoint(&format!("shm://{path}")).unwrap()
}

/// A client whose only transport is shared memory.
fn client() -> Orb {
    let mut builder = Orb::builder().no_endpoint();
    builder.config().client_transports = vec![Transport::SharedMemory];
    builder.build().unwrap()
}

fn served(orb: &Orb) -> ProbeRef {
    orb.root_poa().activate(Probing::default()).unwrap()
}

/// The reference as another process has it.
fn seen_by(client: &Orb, probe: &ProbeRef) -> ProbeRef {
    client.string_to_object(&probe.object().to_ior_string()).unwrap().narrow_unchecked()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i % 251) as u8).collect()
}

#[test]
fn calls_go_by_shared_memory() {
    for concurrency in ALL {
        for ring_bytes in [4 << 10, 256 << 10] {
            let folder = folder();
            let path = at(&folder, "s");
            let mut builder = listening(&path).concurrency(concurrency);
            builder.config().shared_memory_bytes = ring_bytes;
            let server = builder.build().unwrap();
            assert_eq!(server.published_addresses(), [format!("shm://{path}")]);
            let (probe, client) = (served(&server), client());
            let remote = seen_by(&client, &probe);
            assert_eq!(remote.add(2, 3).unwrap(), 5);
            remote.tick().unwrap();
            assert_eq!(remote.echo("grüße").unwrap(), "grüße");
            eventually("the oneway has come", || remote.ticks().unwrap() == 1);
            for count in [0, 1, 7, 4000, 4096, 70_000, 3 << 20] {
                let data = bytes(count);
                assert!(remote.reflect(&data).unwrap() == data, "{count}");
            }
            // Several threads over several connections.
            std::thread::scope(|scope| {
                for thread in 0..6 {
                    let remote = &remote;
                    scope.spawn(move || {
                        (0..50).for_each(|i| assert_eq!(remote.add(thread, i).unwrap(), thread + i));
                        let data = bytes(9000 + thread as usize);
                        assert!(remote.reflect(&data).unwrap() == data);
                    });
                }
            });
            // Several threads over one connection.
            let mut builder = Orb::builder().no_endpoint();
            builder.config().connections_per_endpoint_max = 1;
            let client = builder.build().unwrap();
            let remote = seen_by(&client, &probe);
            std::thread::scope(|scope| {
                for thread in 0..6 {
                    let remote = &remote;
                    scope.spawn(move || {
                        for i in 0..30 {
                            assert_eq!(remote.add(thread, i).unwrap(), thread + i);
                            let data = bytes(700 * (i as usize % 20));
                            assert!(remote.reflect(&data).unwrap() == data);
                        }
                    });
                }
            });
            server.shutdown(true).unwrap();
            assert!(!Path::new(&path).exists());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn messages_of_60_megabytes_are_sent_in_both_directions() {
    let folder = folder();
    let server = listening(&at(&folder, "s")).build().unwrap();
    let (probe, client) = (served(&server), client());
    let data = bytes(60 << 20);
    assert!(seen_by(&client, &probe).reflect(&data).unwrap() == data);
}

#[test]
fn asynchronous_calls_go_by_shared_memory() {
    for concurrency in ALL {
        let folder = folder();
        let mut builder = listening(&at(&folder, "s")).concurrency(concurrency);
        builder.config().shared_memory_bytes = 4 << 10;
        let server = builder.build().unwrap();
        let (probe, client) = (served(&server), client());
        let remote = seen_by(&client, &probe);
        for round in 0..5 {
            let pending: Vec<_> = (0..200).map(|i| (i, remote.add_async(i, round))).collect();
            pending.into_iter().for_each(|(i, reply)| assert_eq!(reply.wait().unwrap(), i + round));
        }
        // More data than the rings hold, in both directions, without a waiting thread.
        let (sender, receiver) = std::sync::mpsc::channel();
        let data = bytes(100_000);
        for _ in 0..20 {
            let sender = sender.clone();
            remote.reflect_async(&data).on_reply(move |reply| sender.send(reply.unwrap()).unwrap());
        }
        for _ in 0..20 {
            assert!(receiver.recv_timeout(Duration::from_secs(60)).unwrap() == data);
        }
    }
}

#[test]
fn a_reference_has_all_transports_and_clients_use_the_best() {
    let folder = folder();
    let (shared, socket) = (at(&folder, "shared"), at(&folder, "socket"));
    let server = Orb::builder()
        .endpoint("iiop://127.0.0.1:0")
        .and_then(|builder| builder.endpoint(&format!("uiop://{socket}")))
        .and_then(|builder| builder.endpoint(&format!("shm://{shared}")))
        .unwrap()
        .build()
        .unwrap();
    let probe = served(&server);
    let profile = probe.object().ior().iiop_profiles().next().unwrap().clone();
    assert_eq!((profile.host(), profile.port() > 0), ("127.0.0.1", true));
    let paths = |addresses: Vec<ironorb::giop::ior::UnixAddress<'_>>| -> Vec<String> {
        addresses.into_iter().map(|address| address.path.into_owned()).collect()
    };
    assert_eq!(paths(profile.unix_addresses().collect()), [socket.as_str()]);
    assert_eq!(paths(profile.shared_memory_addresses().collect()), [shared.as_str()]);
    // Each transport alone, and every client by the best one that is left.
    let by = |transports: &str| {
        let arguments = &mut vec![format!("-ORBclientTransports={transports}")];
        let client = Orb::builder().no_endpoint().arguments(arguments).build().unwrap();
        seen_by(&client, &probe).add(1, 1)
    };
    for transports in ["shm", "unix", "tcp", "shm,unix,tcp", "tcp,shm", "unix,shm"] {
        assert_eq!(by(transports).unwrap(), 2, "{transports}");
    }
    std::fs::rename(&shared, at(&folder, "elsewhere")).unwrap();
    by("shm").unwrap_err();
    assert_eq!(by("shm,unix").unwrap(), 2);
    assert_eq!(seen_by(&Orb::builder().no_endpoint().build().unwrap(), &probe).add(1, 1).unwrap(), 2);
    std::fs::rename(&socket, at(&folder, "nowhere")).unwrap();
    by("shm,unix").unwrap_err();
    assert_eq!(by("shm,unix,tcp").unwrap(), 2);
}

#[test]
fn settings_give_the_path_the_size_and_the_rights() {
    let folder = folder();
    let path = at(&folder, "s");
    let arguments = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut given = arguments(&[
        &format!("-ORBendpoint=shm://{path}"),
        "-ORBsharedMemoryBytes=8KiB",
        "-ORBunixSocketMode=600",
    ]);
    let server = Orb::builder().arguments(&mut given).build().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    seen_by(&client(), &served(&server)).ping().unwrap();
    for size in ["3KiB", "100000", "128MiB", "0", "many"] {
        let mut given = arguments(&[&format!("-ORBsharedMemoryBytes={size}")]);
        let refused = Orb::builder().arguments(&mut given).build().unwrap_err().to_string();
        assert!(refused.contains(size), "{refused}");
    }
    let mut builder = listening(&at(&folder, "t"));
    builder.config().shared_memory_bytes = 5000;
    let refused = builder.build().unwrap_err().to_string();
    assert!(refused.contains("a power of two of bytes, from 4 KiB to 64 MiB"), "{refused}");
}

#[test]
fn a_server_without_a_path_gets_its_own_and_is_found_by_corbaloc() {
    let server = listening("").build().unwrap();
    let address = server.published_addresses().remove(0);
    let path = address.strip_prefix("shm://").unwrap().to_owned();
    let probe = served(&server);
    server.bind_key("Probe", probe.object()).unwrap();
    let text = server.corbaloc("Probe");
    assert_eq!(text, format!("corbaloc:shm:1.2@{path}:/Probe"));
    let client = client();
    for text in [text, format!("corbaloc:shm:{path}|Probe")] {
        let remote: ProbeRef = client.string_to_object(&text).unwrap().narrow_unchecked();
        remote.ping().unwrap();
    }
    // Calls from the server's own process are collocated.
    std::fs::rename(&path, format!("{path}.gone")).unwrap();
    seen_by(&server, &probe).ping().unwrap();
    std::fs::rename(format!("{path}.gone"), &path).unwrap();
    server.shutdown(true).unwrap();
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_restarted_server_is_found_again() {
    let folder = folder();
    let path = at(&folder, "s");
    let client = client();
    let text = format!("corbaloc:shm:{path}|Probe");
    let remote: ProbeRef = client.string_to_object(&text).unwrap().narrow_unchecked();
    remote.ping().unwrap_err();
    for concurrency in BOTH {
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
fn a_server_killed_during_calls_is_noticed_and_found_again() {
    let folder = folder();
    let path = at(&folder, "names");
    let endpoint = format!("shm://{path}");
    let arguments = ["naming", "serve", "--memory", "--endpoint", &endpoint];
    let client = client();
    for _ in 0..2 {
        let server = ServingProcess::start(arguments);
        assert_eq!(server.ready, format!("corbaloc:shm:1.2@{path}:/NameService"));
        let root = client.string_to_object(&server.ready).unwrap();
        // This thread has not noticed yet that its connection to the previous server is lost.
        eventually("it is found", || root.non_existent() == Ok(false));
        let refused = run(arguments).expect_failure(1);
        assert!(refused.contains("another server listens there"), "{refused}");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut errors = 0;
                    // Each call ends, whenever the server is killed.
                    while !is_over.load(Ordering::SeqCst) || errors == 0 {
                        errors += usize::from(root.non_existent().is_err());
                    }
                });
            }
            eventually("calls are being made", || root.non_existent().is_ok());
            drop(server); // SIGKILL
            is_over.store(true, Ordering::SeqCst);
        });
        assert!(Path::new(&path).exists());
    }
}

#[test]
fn a_call_to_a_stopping_server_raises_comm_failure() {
    for concurrency in BOTH {
        let folder = folder();
        let server = listening(&at(&folder, "s")).concurrency(concurrency).build().unwrap();
        let servant = Arc::new(Probing::default());
        let probe: ProbeRef = server.root_poa().activate_shared(servant.clone()).unwrap();
        let client = client();
        let remote = seen_by(&client, &probe);
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| remote.block());
            eventually("the servant blocks", || servant.blocked().unwrap() == 1);
            server.shutdown(false).unwrap();
            let lost = blocked.join().unwrap().unwrap_err();
            assert_eq!(
                (lost.kind, lost.completed),
                (SystemExceptionKind::CommFailure, CompletionStatus::Maybe)
            );
        });
        servant.release().unwrap();
    }
}

#[test]
fn a_shutdown_answers_requests_in_progress_and_refuses_later_ones() {
    for concurrency in BOTH {
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
            eventually("the listener is closed", || UnixStream::connect(&path).is_err());
            eventually("the connection takes no more requests", || server.status().connections.is_empty());
            // The call uses the old connection, which takes no more requests. It is not executed, and no
            // new server listens.
            let refused = scope.spawn(|| remote.add(1, 2));
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
fn a_call_ends_at_its_deadline() {
    let folder = folder();
    let server = listening(&at(&folder, "s")).build().unwrap();
    let probe = served(&server);
    for timeout_ms in [3, 60, 250] {
        let mut builder = Orb::builder().no_endpoint();
        builder.config().call_timeout = Some(Duration::from_millis(timeout_ms));
        let client = builder.build().unwrap();
        let remote = seen_by(&client, &probe);
        let late = remote.block().unwrap_err();
        assert_eq!(late.kind, SystemExceptionKind::Timeout, "{late}");
        probe.release().unwrap();
    }
}

#[test]
fn idle_connections_are_closed_and_made_again() {
    for concurrency in ALL {
        let folder = folder();
        let mut builder = listening(&at(&folder, "s")).concurrency(concurrency);
        builder.config().server_idle_timeout = Some(Duration::from_millis(60));
        let server = builder.build().unwrap();
        let probe = served(&server);
        // Connects, and is closed when it has been idle for as long as others before it.
        let be_idle = || {
            let mut witness = UnixStream::connect(at(&folder, "s")).unwrap();
            witness.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            witness.read_to_end(&mut Vec::new()).unwrap();
        };
        let clients: Vec<Orb> = (0..100).map(|_| client()).collect();
        let remotes: Vec<ProbeRef> = clients.iter().map(|client| seen_by(client, &probe)).collect();
        for round in 0..3 {
            remotes.iter().for_each(|remote| assert_eq!(remote.add(round, 1).unwrap(), round + 1));
            be_idle();
        }
    }
}

#[test]
fn a_client_closes_an_idle_connection_and_makes_another() {
    let folder = folder();
    let mut builder = listening(&at(&folder, "s"));
    builder.config().server_connections_max = 1;
    let server = builder.build().unwrap();
    let probe = served(&server);
    let mut builder = Orb::builder().no_endpoint();
    builder.config().client_idle_timeout = Some(Duration::from_millis(40));
    let idle = builder.build().unwrap();
    let remote = seen_by(&idle, &probe);
    for round in 0..3 {
        eventually("there is room again", || remote.add(round, 1).is_ok_and(|sum| sum == round + 1));
        // Another has room when the first has closed.
        let other = client();
        let beside = seen_by(&other, &probe);
        eventually("the client has closed", || beside.ping().is_ok());
        other.shutdown(true).unwrap();
    }
}

#[test]
fn one_connection_too_many_is_closed_at_once() {
    let folder = folder();
    let mut builder = listening(&at(&folder, "s"));
    builder.config().server_connections_max = 1;
    let server = builder.build().unwrap();
    let probe = served(&server);
    let (first, second) = (client(), client());
    let (first, second) = (seen_by(&first, &probe), seen_by(&second, &probe));
    first.ping().unwrap();
    let refused = second.ping().unwrap_err();
    assert_eq!(refused.completed, CompletionStatus::No, "{refused}");
    first.ping().unwrap();
}

#[test]
fn a_client_is_called_back_over_its_own_connection() {
    for concurrency in
        [ServerConcurrency::ThreadPerConnection, ServerConcurrency::LeaderFollowers { threads: 8 }]
    {
        let folder = folder();
        let mut builder = listening(&at(&folder, "s")).concurrency(concurrency);
        builder.config().bidirectional = true;
        let server = builder.build().unwrap();
        let servant = Arc::new(Exchanging::default());
        let exchange: ExchangeRef = server.root_poa().activate_shared(servant.clone()).unwrap();
        *servant.itself.lock().unwrap() = Some(exchange.clone());
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
