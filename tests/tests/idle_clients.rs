//! What an idle client costs, and how it learns that its servers have gone. The tests count threads, descriptors and
//! memory, so they have a process of their own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironorb::naming::cos_naming::{NamingContext as _, NamingContextExtRef};
use ironorb::{LaneConfig, Orb, TypedRef};
use ironorb_tests::command::NamingProcess;
use ironorb_tests::counting::CountingAllocator;
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Serialises the tests of this process: each counts what all of it has.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of a thread in /proc, for each thread whose name begins with `ironorb-`.
fn threads_of_orbs(file: &str) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let read = |path: &std::path::Path, file| std::fs::read_to_string(path.join(file)).ok();
    let threads = tasks.filter_map(|task| {
        let path = task.ok()?.path();
        Some((read(&path, "comm")?.trim().to_owned(), read(&path, file)?))
    });
    threads.filter(|(name, _)| name.starts_with("ironorb-")).collect()
}

fn names_of_threads() -> Vec<String> {
    let mut names: Vec<_> = threads_of_orbs("comm").into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

/// How often the idle reaper's thread has gone to sleep.
fn sleeps_of_idle_reaper() -> u64 {
    let threads = threads_of_orbs("status");
    let (_, status) = threads.iter().find(|(name, _)| name == "ironorb-idle").expect("it runs");
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

/// The connections of this process to the port.
fn connections_to(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let wanted = format!(":{port:04X}");
    let inodes: Vec<_> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields[2].ends_with(&wanted))
        .map(|fields| format!("socket:[{}]", fields[9]))
        .collect();
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    names.filter(|name| inodes.contains(&name.to_string_lossy().into_owned())).count()
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn at(orb: &Orb, port: u16) -> ProbeRef {
    orb.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked()
}

/// Answers calls without results, on a thread that no ORB has made. Ends with its clients.
fn serve() -> u16 {
    let (listener, port) = raw::listen();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                loop {
                    let request = raw::read_message(&mut stream);
                    if request.is_empty() {
                        return;
                    }
                    raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[]));
                }
            });
        }
    });
    port
}

#[test]
fn an_idle_lane_has_two_threads_and_little_memory() {
    let _alone = alone();
    eventually("no ORB has a thread", || names_of_threads().is_empty());
    let orb = |lanes: usize| {
        let begin = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
        let lane = |number: usize| LaneConfig::new(&number.to_string()).endpoint("iiop://127.0.0.1:0");
        (0..lanes).fold(begin, |builder, number| builder.lane(lane(number))).build().unwrap()
    };
    drop(orb(1)); // what the process has only once is there already
    eventually("no ORB has a thread", || names_of_threads().is_empty());
    let bytes_with = |lanes| {
        let before = ALLOCATOR.bytes();
        let orb = orb(lanes);
        // An ORB with further lanes has one thread that drops what their calls leave behind.
        let of_lanes = [vec!["ironorb-hybrid"; 1 + lanes], vec!["ironorb-keeper"; 1 + lanes]].concat();
        let expected = [vec!["ironorb-drop"], of_lanes].concat();
        eventually("two threads a lane", || names_of_threads() == expected);
        let bytes = ALLOCATOR.bytes() - before;
        drop(orb);
        eventually("no ORB has a thread", || names_of_threads().is_empty());
        bytes
    };
    let each = (bytes_with(9) - bytes_with(1)) / 8;
    println!("{each} bytes for an idle lane");
    assert!(each <= 64 << 10, "{each} bytes");
}

#[test]
fn an_idle_client_has_two_threads_and_little_memory() {
    let _alone = alone();
    eventually("no ORB has a thread", || names_of_threads().is_empty());
    let port = serve();
    // What the process has only once is there already.
    let first = client();
    at(&first, port).ping_async().wait().unwrap();
    drop(first);
    eventually("no ORB has a thread", || names_of_threads().is_empty());
    let before = ALLOCATOR.bytes();
    let client = client();
    let probe = at(&client, port);
    assert_eq!(names_of_threads(), [""; 0]);
    probe.ping().unwrap();
    eventually("one thread for what is idle", || names_of_threads() == ["ironorb-idle"]);
    probe.ping_async().wait().unwrap();
    let (replied, has_replied) = std::sync::mpsc::channel();
    probe.ping_async().on_reply(move |_| replied.send(()).unwrap());
    has_replied.recv().unwrap();
    eventually("and one that receives", || {
        names_of_threads()
            .iter()
            .filter(|name| *name != "ironorb-backgrou")
            .eq(["ironorb-idle", "ironorb-receive"])
    });
    let bytes = ALLOCATOR.bytes() - before;
    println!("{bytes} bytes");
    assert!(bytes <= 64 << 10, "{bytes}");
    drop((probe, client));
    eventually("the threads end with the ORB", || names_of_threads().is_empty());
}

#[test]
fn the_idle_reaper_sleeps_while_calls_are_made() {
    const CALLS: u64 = 2_000;
    let _alone = alone();
    let client = client();
    let probe = at(&client, serve());
    probe.ping().unwrap();
    eventually("the thread waits", || names_of_threads() == ["ironorb-idle"] && sleeps_of_idle_reaper() > 0);
    let before = sleeps_of_idle_reaper();
    for _ in 0..CALLS {
        probe.ping().unwrap();
    }
    // It looks every 5 s.
    let sleeps = sleeps_of_idle_reaper() - before;
    assert!(sleeps < CALLS / 20, "{sleeps}");
}

/// The open sockets of this process.
fn sockets() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    names.filter(|name| name.to_string_lossy().starts_with("socket:")).count()
}

#[test]
fn connections_of_every_transport_end_with_their_server() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket").display().to_string();
    for endpoint in ["iiop://127.0.0.1:0", &format!("uiop://{path}"), &format!("shm://{path}")] {
        let client = client();
        let before = sockets();
        for _ in 0..3 {
            let server = Orb::builder().endpoint(endpoint).unwrap().build().unwrap();
            let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
            let remote: ProbeRef = client.resolve(&probe.object().to_ior_string()).unwrap();
            remote.ping().unwrap();
            assert!(sockets() >= before + 2, "{endpoint}: a connection");
            server.shutdown(true).unwrap();
            eventually("both sides are closed", || sockets() <= before);
        }
    }
}

/// The client closes the connections to a server that was killed, although no call uses them. The next call of each thread
/// meets the new server.
#[test]
fn the_first_calls_after_a_killed_server_meet_the_new_one() {
    const ROUNDS: usize = 20;
    let _alone = alone();
    // An address that no other test uses, so that the port stays free meanwhile.
    let mut service = NamingProcess::start_with(&["--memory"], "127.0.79.6:0");
    let address = service.address.clone();
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    let client = client();
    let root: NamingContextExtRef = service.root(&client);
    for _ in 0..ROUNDS {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| root.list(0).unwrap());
            }
        });
        root.list(0).unwrap();
        service.kill();
        eventually("the client has closed all connections", || connections_to(port) == 0);
        service = NamingProcess::start_with(&["--memory"], &address);
        root.list(0).unwrap();
    }
}

/// A oneway that is sent alone finds the end as well, and so does one that waits for others.
#[test]
fn oneways_meet_the_new_server() {
    let _alone = alone();
    for batching in [false, true] {
        let mut builder = Orb::builder().no_endpoint();
        if batching {
            builder.config().oneway_batching = Some(ironorb::OnewayBatching::default());
        }
        let client = builder.build().unwrap();
        let start = |port: u16| {
            let endpoint = format!("iiop://127.0.79.7:{port}");
            let server = Orb::builder().endpoint(&endpoint).unwrap().build().unwrap();
            let servant = Arc::new(Probing::default());
            let probe: ProbeRef = server.root_poa().activate_shared(servant).unwrap();
            server.bind_key("Probe", probe.object()).unwrap();
            (server, probe)
        };
        let (mut server, mut served) = start(0);
        let port = served.object().ior().iiop_profiles().next().unwrap().port();
        let url = format!("corbaloc:iiop:1.2@127.0.79.7:{port}/Probe");
        let probe: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
        for _ in 0..10 {
            probe.tick().unwrap();
            client.flush().unwrap();
            eventually("the oneway has come", || served.ticks().unwrap() == 1);
            server.shutdown(true).unwrap();
            eventually("the client has closed the connection", || connections_to(port) == 0);
            (server, served) = start(port);
        }
    }
}
