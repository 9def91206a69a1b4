//! Connections that get no answers end: after the program's `TCP_USER_TIMEOUT`, or the system's time; silent ones if they are kept
//! alive.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hello::bank::{self, Account as _};
use ironorb::{Orb, SystemExceptionKind};
use ironorb_sim::{Fault, Host, Sim};
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_user_timeout,
    socket_keepalive, tcp_keepidle, tcp_user_timeout,
};
use rustix::net::{AddressFamily, SocketType};

use super::speed::serve;

const TIMEOUT: Duration = Duration::from_secs(20);
/// When Linux gives up without it.
const OF_SYSTEM: Duration = Duration::from_millis(924_600);

/// A server, whose only connection ends in some way, and a client.
struct Pair {
    server: Host,
    client: Host,
    end: Arc<Mutex<Option<Result<usize, ErrorKind>>>>,
}

impl Pair {
    /// The server sends something after a time, and reads then.
    fn new(sim: &mut Sim, sends_after: Option<Duration>) -> Pair {
        let end: Arc<Mutex<Option<Result<usize, ErrorKind>>>> = Arc::default();
        let of_server = end.clone();
        let server = sim.host("server", move || {
            let (mut client, _) = TcpListener::bind("0.0.0.0:7000").unwrap().accept().unwrap();
            if let Some(time) = sends_after {
                thread::sleep(time);
                client.write_all(b"are you there").unwrap();
            }
            *of_server.lock().unwrap() = Some(client.read(&mut [0; 8]).map_err(|e| e.kind()));
        });
        let client = sim.host("client", || {});
        sim.start(&server);
        sim.run_for(Duration::from_millis(1));
        Pair { server, client, end }
    }

    fn end(&self) -> Option<Result<usize, ErrorKind>> {
        *self.end.lock().unwrap()
    }
}

fn set_timeout(stream: &TcpStream) {
    set_tcp_user_timeout(stream, TIMEOUT.as_millis() as u32).unwrap();
}

/// Writes, and reads an error that comes after this time, up to 10 ms for links and programs.
fn sends_in_vain_for(stream: &mut TcpStream, time: Duration) {
    let begun = Instant::now();
    stream.write_all(b"hello").unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::TimedOut);
    takes(begun, time);
}

fn takes(begun: Instant, time: Duration) {
    let took = begun.elapsed();
    assert!((time..time + Duration::from_millis(10)).contains(&took), "{took:?}");
}

#[ironorb_sim::test(seeds = 3)]
fn what_nobody_answers_ends_the_connection_after_the_user_timeout(sim: &mut Sim) {
    let pair = Pair::new(sim, None);
    let mut stream = sim.on(&pair.client, || TcpStream::connect("server:7000").unwrap());
    sim.cut(&pair.server, &pair.client);
    let stream = sim.on(&pair.client, move || {
        set_timeout(&stream);
        sends_in_vain_for(&mut stream, TIMEOUT);
        // The error is told once. From then on the stream has ended.
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(stream.write(b"again").unwrap_err().kind(), ErrorKind::BrokenPipe);
        stream
    });
    sim.join(&pair.server, &pair.client);
    sim.run_for(Duration::from_secs(10_000));
    drop(stream);
    sim.run_for(Duration::from_secs(10_000));
    // What was held up never comes, and nobody tells the server, which waits.
    assert_eq!(pair.end(), None);
}

#[ironorb_sim::test(seeds = 3)]
fn without_a_user_timeout_the_system_gives_up_after_a_quarter_of_an_hour(sim: &mut Sim) {
    let pair = Pair::new(sim, Some(Duration::from_secs(2_000)));
    let mut stream = sim.on(&pair.client, || TcpStream::connect("server:7000").unwrap());
    sim.cut(&pair.server, &pair.client);
    let stream = sim.on(&pair.client, move || {
        sends_in_vain_for(&mut stream, OF_SYSTEM);
        stream
    });
    sim.join(&pair.server, &pair.client);
    sim.run_for(Duration::from_secs(2_000));
    // The server has heard of it when it sent something, whether the client's program has closed the stream or not.
    assert_eq!(pair.end(), Some(Err(ErrorKind::ConnectionReset)));
    drop(stream);
}

#[ironorb_sim::test(seeds = 3)]
fn a_host_without_power_answers_nothing(sim: &mut Sim) {
    let pair = Pair::new(sim, None);
    let mut stream = sim.on(&pair.client, || TcpStream::connect("server:7000").unwrap());
    sim.crash(&pair.server);
    sim.on(&pair.client, move || {
        set_timeout(&stream);
        sends_in_vain_for(&mut stream, TIMEOUT);
    });
}

/// Answers in time keep a connection, however often nothing passes for a while.
#[ironorb_sim::test(seeds = 3)]
fn answers_begin_the_time_anew(sim: &mut Sim) {
    let server = sim.host("server", || {
        let (mut client, _) = TcpListener::bind("0.0.0.0:7000").unwrap().accept().unwrap();
        std::io::copy(&mut client.try_clone().unwrap(), &mut client).unwrap();
    });
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    let mut stream = sim.on(&client, || TcpStream::connect("server:7000").unwrap());
    set_timeout(&stream);
    for _ in 0..10 {
        sim.cut(&server, &client);
        stream.write_all(&[7]).unwrap();
        sim.run_for(TIMEOUT - Duration::from_secs(1));
        sim.join(&server, &client);
        sim.run_for(Duration::from_millis(10));
        stream.read_exact(&mut [0]).unwrap();
    }
    // A timer of before that has no effect.
    sim.run_for(TIMEOUT * 2);
    stream.write_all(&[7]).unwrap();
    stream.read_exact(&mut [0]).unwrap();
}

/// A peer that answers and takes nothing ends a connection as well, if its program has set the time.
#[ironorb_sim::test(seeds = 3)]
fn a_peer_that_takes_nothing_is_left_after_the_user_timeout(sim: &mut Sim) {
    let server = sim.host("server", || {
        let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
        let _clients: Vec<_> = (0..2).map(|_| listener.accept().unwrap()).collect();
        thread::sleep(Duration::from_secs(1_000_000));
    });
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    sim.on(&client, || {
        let mut patient = TcpStream::connect("server:7000").unwrap();
        let of_patient = patient.try_clone().unwrap();
        let waiting = thread::spawn(move || patient.write_all(&[0; 1_000_000]).map_err(|e| e.kind()));
        let mut stream = TcpStream::connect("server:7000").unwrap();
        set_timeout(&stream);
        let begun = Instant::now();
        assert_eq!(stream.write_all(&[0; 1_000_000]).unwrap_err().kind(), ErrorKind::TimedOut);
        takes(begun, TIMEOUT);
        thread::sleep(OF_SYSTEM * 2);
        assert!(!waiting.is_finished());
        of_patient.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(waiting.join().unwrap(), Err(ErrorKind::BrokenPipe));
    });
}

#[ironorb_sim::test(seeds = 3)]
fn connecting_ends_after_the_user_timeout(sim: &mut Sim) {
    let pair = Pair::new(sim, None);
    sim.cut(&pair.server, &pair.client);
    sim.on(&pair.client, || {
        let SocketAddr::V4(address) = "server:7000".to_socket_addrs().unwrap().next().unwrap() else {
            panic!("hosts have IPv4 alone")
        };
        let stream =
            TcpStream::from(rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap());
        set_timeout(&stream);
        let begun = Instant::now();
        let ended = rustix::net::connect(&stream, &address);
        assert_eq!(ended, Err(rustix::io::Errno::TIMEDOUT));
        takes(begun, TIMEOUT);
    });
}

#[ironorb_sim::test(seeds = 1)]
fn accepted_streams_have_the_options_of_their_listener(sim: &mut Sim) {
    let server = sim.host("server", || {
        let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
        set_tcp_user_timeout(&listener, 1_500).unwrap();
        set_socket_keepalive(&listener, true).unwrap();
        set_tcp_keepidle(&listener, Duration::from_secs(7)).unwrap();
        let (client, _) = listener.accept().unwrap();
        assert_eq!(tcp_user_timeout(&client), Ok(1_500));
        assert_eq!(
            (socket_keepalive(&client), tcp_keepidle(&client)),
            (Ok(true), Ok(Duration::from_secs(7)))
        );
        set_tcp_user_timeout(&client, 0).unwrap();
        assert_eq!(tcp_user_timeout(&client), Ok(0));
        let _ = (&client).write(&[1]);
    });
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    sim.on(&client, || TcpStream::connect("server:7000").unwrap().read_exact(&mut [0]).unwrap());
}

/// Has a stream ask after 10 s of silence, and twice more, every 3 s.
fn keep_alive(stream: &TcpStream) {
    set_socket_keepalive(stream, true).unwrap();
    set_tcp_keepidle(stream, Duration::from_secs(10)).unwrap();
    set_tcp_keepintvl(stream, Duration::from_secs(3)).unwrap();
    set_tcp_keepcnt(stream, 3).unwrap();
}

/// How reading ends on a connection on which nothing is sent, and after which time since its server is out of reach.
fn silence(
    sim: &mut Sim,
    out_of_reach: impl FnOnce(&mut Sim, &Pair),
    set: impl FnOnce(&TcpStream) + Send + 'static,
) -> (ErrorKind, Duration) {
    let pair = Pair::new(sim, None);
    let mut stream = sim.on(&pair.client, move || {
        let stream = TcpStream::connect("server:7000").unwrap();
        set(&stream);
        stream
    });
    sim.run_for(Duration::from_secs(60));
    out_of_reach(sim, &pair);
    sim.on(&pair.client, move || {
        let begun = Instant::now();
        (stream.read(&mut [0]).unwrap_err().kind(), begun.elapsed())
    })
}

fn after(time: Duration, seconds: u64) -> bool {
    (Duration::from_secs(seconds)..Duration::from_millis(seconds * 1_000 + 10)).contains(&time)
}

#[ironorb_sim::test(seeds = 3)]
fn who_keeps_a_connection_alive_notices_a_cut_link(sim: &mut Sim) {
    let (error, time) = silence(sim, |sim, pair| sim.cut(&pair.server, &pair.client), keep_alive);
    assert!(error == ErrorKind::TimedOut && after(time, 10 + 3 * 3), "{error} {time:?}");
}

#[ironorb_sim::test(seeds = 3)]
fn keep_alive_takes_two_hours_unless_a_program_says_otherwise(sim: &mut Sim) {
    let set = |stream: &TcpStream| set_socket_keepalive(stream, true).unwrap();
    let (error, time) = silence(sim, |sim, pair| sim.crash(&pair.server), set);
    assert!(error == ErrorKind::TimedOut && after(time, 7_200 + 9 * 75), "{error} {time:?}");
}

#[ironorb_sim::test(seeds = 3)]
fn a_user_timeout_ends_silence_as_well(sim: &mut Sim) {
    let set = |stream: &TcpStream| {
        keep_alive(stream);
        set_tcp_user_timeout(stream, 14_000).unwrap();
    };
    // It is looked at with each question: after 10, 13 and 16 seconds.
    let (error, time) = silence(sim, |sim, pair| sim.cut(&pair.server, &pair.client), set);
    assert!(error == ErrorKind::TimedOut && after(time, 16), "{error} {time:?}");
}

/// A host that is up again knows nothing of the connections that it had.
#[ironorb_sim::test(seeds = 3)]
fn who_keeps_a_connection_alive_notices_a_new_life(sim: &mut Sim) {
    let reboot = |sim: &mut Sim, pair: &Pair| {
        sim.crash(&pair.server);
        sim.inflict_after(Duration::from_secs(11), &Fault::Start(pair.server.clone()));
    };
    let (error, time) = silence(sim, reboot, keep_alive);
    assert!(error == ErrorKind::ConnectionReset && after(time, 13), "{error} {time:?}");
}

#[ironorb_sim::test(seeds = 3)]
fn a_connection_that_is_kept_alive_outlives_short_cuts(sim: &mut Sim) {
    let pair = Pair::new(sim, Some(Duration::from_secs(1_000)));
    let mut stream = sim.on(&pair.client, || TcpStream::connect("server:7000").unwrap());
    keep_alive(&stream);
    for _ in 0..10 {
        sim.cut(&pair.server, &pair.client);
        sim.run_for(Duration::from_secs(18));
        sim.join(&pair.server, &pair.client);
        sim.run_for(Duration::from_secs(10));
    }
    stream.read_exact(&mut [0; 13]).unwrap();
    drop(stream);
    sim.run_for(Duration::from_secs(1));
    assert_eq!(pair.end(), Some(Ok(0)));
}

/// The ORB's setting: a call without a deadline fails when its server has been out of reach for that long.
#[ironorb_sim::test(seeds = 3)]
fn an_orb_leaves_a_server_that_does_not_answer(sim: &mut Sim) {
    let server = sim.host("server", serve);
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.run_for(Duration::from_secs(1));
    sim.inflict_after(Duration::from_secs(1), &Fault::Cut(server.clone(), client.clone()));
    sim.on(&client, || {
        let orb = Orb::builder().no_endpoint().tcp_user_timeout(Some(TIMEOUT)).build().unwrap();
        let account: bank::AccountRef = orb.resolve("corbaloc::server:2810/account").unwrap();
        assert_eq!(account.balance().unwrap(), 1);
        thread::sleep(Duration::from_secs(2));
        let begun = Instant::now();
        let failed = account.balance().unwrap_err();
        assert_eq!(failed.kind, SystemExceptionKind::CommFailure, "{failed}");
        takes(begun, TIMEOUT);
    });
}
