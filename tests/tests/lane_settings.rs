//! Lanes as operators write them, and what the system says of their threads and sockets then.

use std::fs;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use ironorb::{Lane, Orb, OrbBuilder, TypedRef};
use ironorb_tests::Hooked;
use ironorb_tests::testing::{Probe, ProbeRef};
use rustix::net::sockopt::{socket_keepalive, socket_recv_buffer_size, tcp_nodelay, tcp_user_timeout};
use rustix::net::{getpeername, getsockname};
use rustix::process::{ForeignRawFd, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::thread::{CpuSet, current_timer_slack, sched_getaffinity};
use socket2::SockRef;

/// An ORB with these options, as a command line has them.
fn with_options(builder: OrbBuilder, options: &[&str]) -> Result<Orb, String> {
    let mut arguments = options.iter().map(|option| (*option).to_owned()).collect();
    builder.arguments(&mut arguments).build().map_err(|e| e.to_string())
}

fn lane_of(builder: OrbBuilder, text: &str) -> (Orb, Lane) {
    let orb = with_options(builder, &["-ORBlane", text]).unwrap();
    let lane = orb.lane("urgent").unwrap();
    (orb, lane)
}

/// What the system says of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ThreadFacts {
    processors: String,
    nice: i64,
    timer_slack_ns: u64,
}

impl ThreadFacts {
    fn of_this_thread() -> ThreadFacts {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let processors = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let nice = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19 - 3).unwrap().parse().unwrap();
        let timer_slack_ns = current_timer_slack().unwrap();
        ThreadFacts { processors: processors.trim().to_owned(), nice, timer_slack_ns }
    }
}

/// Sockets of this process, as duplicates.
fn sockets() -> Vec<OwnedFd> {
    let this = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let numbers = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<ForeignRawFd>().ok());
    numbers.filter_map(|number| pidfd_getfd(&this, number, PidfdGetfdFlags::empty()).ok()).collect()
}

/// Priority and timeout of the two sockets of a connection to this address: the client's, the server's.
fn ends(address: SocketAddr) -> [Option<(u32, u32)>; 2] {
    let (mut client, mut server) = (None, None);
    for socket in sockets() {
        let own = getsockname(&socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
        let peer = getpeername(&socket).ok().flatten().and_then(|peer| SocketAddr::try_from(peer).ok());
        let facts = || (SockRef::from(&socket).priority().unwrap(), tcp_user_timeout(&socket).unwrap());
        match (own, peer) {
            (_, Some(peer)) if peer == address => client = Some(facts()),
            (Some(own), Some(_)) if own == address => server = Some(facts()),
            _ => {}
        }
    }
    [client, server]
}

fn last_processor() -> usize {
    let allowed = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).unwrap()
}

/// Receive queue, keep-alive and no delay of the server's socket of a connection to this address.
fn accepted(address: SocketAddr) -> Option<(usize, bool, bool)> {
    let is_it = |socket: &OwnedFd| {
        let own = getsockname(socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
        own == Some(address) && getpeername(socket).ok().flatten().is_some()
    };
    let socket = sockets().into_iter().find(is_it)?;
    let of = |result: rustix::io::Result<bool>| result.unwrap();
    Some((socket_recv_buffer_size(&socket).unwrap(), of(socket_keepalive(&socket)), of(tcp_nodelay(&socket))))
}

#[test]
fn threads_and_sockets_of_a_lane_are_as_its_text_says() {
    // 19 is as far as it goes, and may be where this program is itself.
    let (processor, nice) = (last_processor(), (ThreadFacts::of_this_thread().nice + 2).min(19));
    let text = format!(
        "urgent; endpoint=iiop://127.0.0.1:0; processors={processor}; nice={nice}; timerSlack=7us; \
         prefaultStackBytes=64KiB; prefaultHeapBytes=64KiB; socketPriority=5; tcpUserTimeout=7s; tcpQuickAck=yes; \
         receiveQueueBytes=20000; keepAlive=no; noDelay=no"
    );
    let (server, lane) = lane_of(Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap(), &text);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let servant = Hooked::new(move || {
        told.lock().unwrap().push(ThreadFacts::of_this_thread());
        Ok(())
    });
    let probe: ProbeRef = server.root_poa().activate(servant).unwrap();
    let urgent = lane.reference(probe.object()).unwrap().to_ior_string();
    let plain = probe.object().to_ior_string();

    let (client, own) = lane_of(Orb::builder().no_endpoint(), "urgent; socketPriority=3; tcpQuickAck=yes");
    let reference = |ior: &str| ProbeRef::from_object(client.string_to_object(ior).unwrap());
    let address = lane.addresses()[0].trim_start_matches("iiop://").parse().unwrap();
    own.run(|| {
        reference(&urgent).ping().unwrap();
        let label = "x".repeat(100_000);
        reference(&urgent).set_label(&label).unwrap();
        assert_eq!(reference(&urgent).label().unwrap(), label, "what acknowledges at once carries all bytes");
        assert_eq!(ends(address), [Some((3, 0)), Some((5, 7_000))]);
        // Linux doubles the given length to make room for its own bookkeeping.
        assert_eq!(accepted(address), Some((40_000, false, false)));
    });
    reference(&plain).ping().unwrap();

    let seen = seen.lock().unwrap();
    let expected = ThreadFacts { processors: processor.to_string(), nice, timer_slack_ns: 7_000 };
    assert_eq!(seen[0], expected);
    assert_eq!(seen[1], ThreadFacts::of_this_thread(), "the default lane is as it was");
}

#[test]
fn lanes_that_cannot_be_are_refused_with_what_to_do() {
    let refused =
        |options: &[&str]| with_options(Orb::builder().no_endpoint(), options).map(drop).unwrap_err();
    for (text, why) in [
        ("a; processors=1023", "this process may use none"),
        ("a; nice=20", "from -20 to 19"),
        ("a; timerSlack=2s", "from 1 ns to 1 s"),
        ("a; prefaultStackBytes=17MiB", "at most 16MiB"),
        ("a; prefaultHeapBytes=2GiB", "at most 1GiB"),
        ("a; socketPriority=16", "from 0 to 15"),
        ("a; busyPoll=1s", "to 100ms"),
        ("a; tcpUserTimeout=0s", "from 1ms to 24h"),
        ("a; priority=30000", "needs a real-time ORB"),
        ("a; endpoint=nowhere://", "lane \"a\""),
    ] {
        let said = refused(&["-ORBlane", text]);
        assert!(said.contains(why), "{text}: {said}");
    }
    let text = refused(&["-ORBlane", "a", "-ORBlane=a"]);
    assert!(text.contains("another lane has this name"), "{text}");
}

#[test]
fn a_file_declares_a_real_time_orb_with_lanes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orb.conf");
    fs::write(&file, "scheduling = other\npriorityMapping = linear:1-50\nlane = urgent; priority=30000\n")
        .unwrap();
    let orb =
        with_options(Orb::builder().no_endpoint(), &["-ORBconfigFile", file.to_str().unwrap()]).unwrap();
    assert!(orb.rt_current().is_some() && orb.lane("urgent").is_some());
    let plain = with_options(Orb::builder().no_endpoint(), &["-ORBscheduling", "no"]).unwrap();
    assert!(plain.rt_current().is_none());
}
