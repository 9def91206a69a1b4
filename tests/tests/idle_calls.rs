//! Calls over connections that nobody has used for a while. They make one send and one receive on each side, like all
//! calls, and find out in time that their server has gone.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::transport::{CustomListener, CustomStream, CustomTransport, Moved};
use ironorb::{
    CompletionStatus, InvocationPolicies, Orb, OrbBuilder, ServerConcurrency, SyncScope, SystemExceptionKind,
    TypedRef,
};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// What a stream did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Sent,
    /// Received some bytes.
    Received,
    /// Received in vain.
    Tried,
}

/// TCP connections whose sends and receives are noted.
#[derive(Debug, Clone)]
struct Noted {
    shows_end: bool,
    by_clients: Arc<Mutex<Vec<Done>>>,
    by_servers: Arc<Mutex<Vec<Done>>>,
    /// The connections that clients have made.
    connects: Arc<AtomicUsize>,
}

impl Noted {
    fn new(shows_end: bool) -> Noted {
        Noted { shows_end, by_clients: Arc::default(), by_servers: Arc::default(), connects: Arc::default() }
    }

    fn builder(&self) -> OrbBuilder {
        OrbBuilder::default().transport(Arc::new(self.clone()))
    }

    /// A server and a client. The reference is the client's.
    fn pair(&self, server: OrbBuilder) -> (Orb, Orb, ProbeRef) {
        let server = server.build().unwrap();
        let client = self.builder().no_endpoint().build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let remote = client.resolve(&server.object_to_string(probe.object()).unwrap()).unwrap();
        (server, client, remote)
    }
}

impl CustomTransport for Noted {
    fn scheme(&self) -> &str {
        "noted"
    }

    fn component_tag(&self) -> u32 {
        0x7F00_0002
    }

    fn component(&self, address: &str) -> Option<Vec<u8>> {
        Some(address.into())
    }

    fn address(&self, component: &[u8]) -> Option<String> {
        String::from_utf8(component.into()).ok()
    }

    fn connect(&self, address: &str, _timeout: Option<Duration>) -> io::Result<Box<dyn CustomStream>> {
        self.connects.fetch_add(1, Ordering::SeqCst);
        NotedStream::over(TcpStream::connect(address)?, &self.by_clients, self.shows_end)
    }

    fn listen(&self, address: &str) -> io::Result<(Box<dyn CustomListener>, String)> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?.to_string();
        Ok((Box::new(NotedListener { listener, noted: self.clone() }), address))
    }
}

#[derive(Debug)]
struct NotedListener {
    listener: TcpListener,
    noted: Noted,
}

impl CustomListener for NotedListener {
    fn accept(&self) -> io::Result<Box<dyn CustomStream>> {
        NotedStream::over(self.listener.accept()?.0, &self.noted.by_servers, self.noted.shows_end)
    }

    fn close(&self) {
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
    }
}

#[derive(Debug)]
struct NotedStream {
    stream: TcpStream,
    notes: Arc<Mutex<Vec<Done>>>,
    shows_end: bool,
}

impl NotedStream {
    fn over(
        stream: TcpStream,
        notes: &Arc<Mutex<Vec<Done>>>,
        shows_end: bool,
    ) -> io::Result<Box<dyn CustomStream>> {
        stream.set_nonblocking(true)?;
        Ok(Box::new(NotedStream { stream, notes: notes.clone(), shows_end }))
    }

    fn note(&self, done: Done) {
        self.notes.lock().unwrap().push(done);
    }
}

impl AsFd for NotedStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl CustomStream for NotedStream {
    fn receive(&self, space: &mut [u8]) -> io::Result<Moved> {
        let received = moved((&self.stream).read(space), Moved::End);
        self.note(if matches!(received, Ok(Moved::Bytes(_))) { Done::Received } else { Done::Tried });
        received
    }

    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<Moved> {
        self.note(Done::Sent);
        moved((&self.stream).write_vectored(pieces), Moved::Nothing)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how)
    }

    fn shows_end(&self) -> bool {
        self.shows_end
    }
}

fn moved(count: io::Result<usize>, nothing: Moved) -> io::Result<Moved> {
    match count {
        Ok(0) => Ok(nothing),
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Moved::Nothing),
        Err(e) => Err(e),
    }
}

/// From here on the calls of this thread take every connection for an idle one.
fn find_connections_idle() {
    #[cfg(debug_assertions)]
    ironorb::testing::look_at_connections_first();
    #[cfg(not(debug_assertions))]
    panic!("a release build looks at idle connections only: test without --release");
}

/// What a stream did that counts: a blocking receive over a transport of the program begins with one in vain.
fn without_vain_receives(notes: &[Done]) -> Vec<Done> {
    notes.iter().copied().filter(|done| *done != Done::Tried).collect()
}

#[test]
fn a_call_over_an_idle_connection_sends_once_and_receives_once() {
    const CALLS: usize = 20;
    find_connections_idle();
    for (shows_end, concurrency) in [
        (true, ServerConcurrency::default()),
        (true, ServerConcurrency::ThreadPerConnection),
        (true, ServerConcurrency::LeaderFollowers { threads: 2 }),
        (true, ServerConcurrency::Reactor),
        (false, ServerConcurrency::default()),
    ] {
        let noted = Noted::new(shows_end);
        let server = noted.builder().endpoint("noted://127.0.0.1:0").unwrap().concurrency(concurrency);
        let (server, _client, probe) = noted.pair(server);
        probe.ping().unwrap();
        let served = || without_vain_receives(&noted.by_servers.lock().unwrap());
        let before = served().len();
        for _ in 0..CALLS {
            noted.by_clients.lock().unwrap().clear();
            probe.ping().unwrap();
            let notes = noted.by_clients.lock().unwrap().clone();
            // Before it sends, a call receives only where the ORB cannot know of the connection's end.
            assert_eq!(notes[0] == Done::Sent, shows_end, "{notes:?}");
            assert_eq!(without_vain_receives(&notes), [Done::Sent, Done::Received]);
        }
        assert_eq!(served()[before..], [Done::Received, Done::Sent].repeat(CALLS), "{concurrency:?}");
        assert_eq!(noted.connects.load(Ordering::SeqCst), 1);
        server.shutdown(true).unwrap();
    }
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn at(orb: &Orb, host_and_port: &str) -> ProbeRef {
    orb.string_to_object(&format!("corbaloc:iiop:1.2@{host_and_port}/Probe")).unwrap().narrow_unchecked()
}

/// Answers the next request, which expects no results.
fn answer(stream: &mut TcpStream) -> Vec<u8> {
    let request = raw::read_message(stream);
    raw::write(stream, &raw::reply(raw::id_of(&request), 0, &[]));
    request
}

/// Accepts a connection. The timeouts only bound a hang.
fn accept(listener: &TcpListener) -> TcpStream {
    set_socket_timeout(listener, Timeout::Recv, Some(Duration::from_secs(30))).unwrap();
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

#[test]
fn a_connection_ends_as_soon_as_the_peer_sends_no_more() {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, &format!("127.0.0.1:{port}"));
    let (noticed, has_noticed) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..3 {
                let mut stream = accept(&listener);
                answer(&mut stream);
                stream.shutdown(Shutdown::Write).unwrap();
                // The client ends the connection although no call uses it.
                assert_eq!(stream.read(&mut [0]).unwrap(), 0);
                noticed.send(()).unwrap();
            }
        });
        for _ in 0..3 {
            probe.ping().unwrap();
            has_noticed.recv().unwrap();
        }
    });
}

/// Where the ORB cannot know of the end, an idle connection's next call finds it before it sends.
#[test]
fn a_call_finds_an_end_that_the_descriptor_may_not_show() {
    find_connections_idle();
    let (listener, port) = raw::listen();
    let noted = Noted::new(false);
    let server = noted.builder().no_endpoint().publish(&format!("noted://127.0.0.1:{port}"));
    let (_server, _client, probe) = noted.pair(server);
    let (closed, has_closed) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..3 {
                answer(&mut accept(&listener));
                closed.send(()).unwrap();
            }
        });
        for _ in 0..3 {
            probe.ping().unwrap();
            has_closed.recv().unwrap();
        }
    });
    assert_eq!(noted.connects.load(Ordering::SeqCst), 3);
}

/// The end comes while a call is in flight. The call gets its reply, and the next one a new connection.
#[test]
fn the_call_in_flight_gets_the_reply_that_came_before_the_end() {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, &format!("127.0.0.1:{port}"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                let mut stream = accept(&listener);
                answer(&mut stream);
                let request = raw::read_message(&mut stream);
                let mut last = raw::reply(raw::id_of(&request), 0, &[]);
                last.extend(raw::message(raw::CLOSE, &[]));
                raw::write(&mut stream, &last);
            }
        });
        for _ in 0..100 {
            probe.ping().unwrap();
        }
    });
}

/// A server that announces the end of its first connection once `call` has been made and leaves the closing to the client,
/// which then makes `call_again`. Returns what came over the first connection after that, and what came over the next.
fn announced_end(call_again: impl Fn(&ProbeRef)) -> (Vec<u8>, Vec<u8>) {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, &format!("127.0.0.1:{port}"));
    let (called, has_called) = mpsc::channel();
    let (closed, has_closed) = mpsc::channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let mut first = accept(&listener);
            answer(&mut first);
            has_called.recv().unwrap();
            raw::write(&mut first, &raw::message(raw::CLOSE, &[]));
            closed.send(()).unwrap();
            let mut second = accept(&listener);
            let again = answer(&mut second);
            let lost = raw::read_message(&mut first);
            assert!(
                lost.is_empty() || raw::read_message(&mut first).is_empty(),
                "the client closes the connection"
            );
            (lost, again)
        });
        probe.ping().unwrap();
        called.send(()).unwrap();
        has_closed.recv().unwrap();
        call_again(&probe);
        server.join().unwrap()
    })
}

/// A call loses a send by that and nothing else: its request comes over the first connection and again over the second.
#[test]
fn a_call_goes_on_after_close_connection_from_a_peer_that_does_not_close() {
    let calls: [fn(&ProbeRef); 2] =
        [|probe| probe.ping().unwrap(), |probe| probe.ping_async().wait().unwrap()];
    for call in calls {
        let (lost, again) = announced_end(call);
        assert_eq!((lost[7], again[7]), (0, 0), "two Requests");
    }
}

/// A oneway would be lost without a word. So it looks at an idle connection first.
#[test]
fn a_oneway_is_not_sent_after_close_connection_from_a_peer_that_does_not_close() {
    find_connections_idle();
    let oneways: [fn(&ProbeRef); 2] = [
        |probe| probe.tick().unwrap(),
        |probe| {
            let policies =
                InvocationPolicies { sync_scope: Some(SyncScope::None), ..InvocationPolicies::NONE };
            probe.object().with_policies(policies).narrow_unchecked::<ProbeRef>().tick().unwrap();
        },
    ];
    for oneway in oneways {
        let (lost, again) = announced_end(oneway);
        assert_eq!((lost.len(), again[7]), (0, 0), "a Request over the second connection alone");
    }
}

#[test]
fn a_server_may_start_again_while_its_client_is_idle() {
    // An address that no other test uses, so that the port stays free meanwhile.
    let start = |port: u16| {
        let endpoint = format!("iiop://127.0.79.5:{port}");
        let server = Orb::builder().endpoint(&endpoint).unwrap().build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        server.bind_key("Probe", probe.object()).unwrap();
        (server, probe)
    };
    let (mut server, served) = start(0);
    let port = served.object().ior().iiop_profiles().next().unwrap().port();
    let client = client();
    let probe = at(&client, &format!("127.0.79.5:{port}"));
    for _ in 0..100 {
        probe.ping().unwrap();
        server.shutdown(true).unwrap();
        server = start(port).0;
        // Nothing waits until the client has noticed.
        probe.ping().unwrap();
    }
}

/// A peer that closes without a word after a request may have carried it out.
#[test]
fn a_call_that_meets_the_end_may_have_been_carried_out() {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, &format!("127.0.0.1:{port}"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = accept(&listener);
            answer(&mut stream);
            raw::read_message(&mut stream);
            stream.shutdown(Shutdown::Write).unwrap();
            raw::read_message(&mut stream);
        });
        probe.ping().unwrap();
        let e = probe.ping().unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
    });
    listener.set_nonblocking(true).unwrap();
    eventually("it is not sent again", || listener.accept().is_err());
}
