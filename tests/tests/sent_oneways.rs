//! Oneways whose callers learn whether they have been sent, and calls of threads that must not wait.

use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use ironorb::dynamic::ReceivedRequest;
use ironorb::giop::message::{RawBody, Response};
use ironorb::giop::{ByteOrder, TransmissionCodeSets};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, Orb, SystemException, SystemExceptionKind, TypedRef, with_timeout,
};
use ironorb_tests::gate::Gate;
use ironorb_tests::raw::{listen, read_message};
use ironorb_tests::testing::ProbeRef;
use ironorb_tests::{Hooked, eventually};
use rustix::net::sockopt::set_socket_recv_buffer_size;

/// Bounds what would hang.
const LONG: Duration = Duration::from_secs(20);

fn request(operation: &str, response: Response, bytes: usize) -> Arc<ReceivedRequest> {
    let octets = vec![7; bytes];
    let body = RawBody { order: ByteOrder::NATIVE, phase: 0, bytes: &octets };
    let request = ReceivedRequest::written(operation, response, &[], body, TransmissionCodeSets::NATIVE);
    Arc::new(request.unwrap())
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

/// Sends a oneway. What becomes of it comes from the receiver.
fn send(object: &ObjectRef, bytes: usize) -> mpsc::Receiver<Result<(), SystemException>> {
    let (sender, receiver) = mpsc::channel();
    let request = request("ping", Response::None, bytes);
    let passing = with_timeout(Some(LONG), || request.passing_to(object)).never_waiting();
    passing.begin_oneway(move |sent| sender.send(sent).unwrap());
    receiver
}

fn is_not_executed(sent: &Result<(), SystemException>) -> bool {
    matches!(sent, Err(e) if e.kind == SystemExceptionKind::Transient && e.completed == CompletionStatus::No)
}

#[test]
fn a_oneway_is_told_when_it_has_been_sent() {
    let gate = Gate::opened();
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let pass = gate.clone();
    let servant = Hooked::new(move || {
        pass.pass();
        Ok(())
    });
    let local: ProbeRef = server.root_poa().activate(servant).unwrap();
    let client = client();
    let remote = client.string_to_object(&local.object().to_ior_string()).unwrap();
    // The first one has no connection yet, the second one has, the third one is for this process.
    for (count, object) in [&remote, &remote, local.object()].into_iter().enumerate() {
        send(object, 0).recv().unwrap().unwrap();
        eventually("it is carried out", || gate.passed() == count + 1);
    }
    // A request that wants a reply is told when that has come.
    let (sender, receiver) = mpsc::channel();
    let passing = request("ping", Response::SyncWithTarget, 0).passing_to(&remote);
    passing.begin_oneway(move |sent| sender.send(sent).unwrap());
    receiver.recv().unwrap().unwrap();
    assert_eq!(gate.passed(), 4);
}

/// An end that the client has not seen when it sends makes no oneway disappear.
#[test]
fn a_oneway_to_a_server_that_has_gone_is_told_so() {
    for has_been_called in [false, true] {
        let (listener, port) = listen();
        let server = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/gone");
        let client = client();
        let object = client.string_to_object(&server).unwrap();
        let accepted = has_been_called.then(|| {
            let sent = send(&object, 0);
            let (mut stream, _) = listener.accept().unwrap();
            sent.recv().unwrap().unwrap();
            assert!(!read_message(&mut stream).is_empty());
            stream
        });
        drop((listener, accepted));
        let sent = send(&object, 0).recv().unwrap();
        assert!(is_not_executed(&sent), "{has_been_called}: {sent:?}");
    }
}

/// A server that accepts connections and reads when it is told to.
struct Silent {
    listener: TcpListener,
    object: ObjectRef,
    _client: Orb,
}

/// So long that the system does not take one for a server that does not read.
const BYTES: usize = 12 << 20;
const COUNT: usize = 4;

impl Silent {
    fn new() -> Silent {
        let ((listener, port), client) = (listen(), client());
        // The connections that it accepts have such buffers too.
        set_socket_recv_buffer_size(&listener, 64 << 10).unwrap();
        let server = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/silent");
        let object = client.string_to_object(&server).unwrap();
        Silent { listener, object, _client: client }
    }

    /// Sends more than the system takes. Nobody has waited for that, and nothing counts as sent.
    fn clog(&self) -> (TcpStream, Vec<mpsc::Receiver<Result<(), SystemException>>>) {
        let mut sent = vec![send(&self.object, BYTES)];
        let (stream, _) = self.listener.accept().unwrap();
        sent.extend((1..COUNT).map(|_| send(&self.object, BYTES)));
        assert!(sent.iter().all(|sent| sent.try_recv().is_err()));
        (stream, sent)
    }
}

fn bodies(stream: &mut TcpStream, count: usize) {
    for number in 0..count {
        assert!(read_message(stream).len() > BYTES, "{number}");
    }
}

#[test]
fn threads_that_must_not_wait_leave_requests_to_the_connection() {
    let server = Silent::new();
    let (mut stream, sent) = server.clog();
    // A call that is given up before it can be sent is not.
    let (sender, given_up) = mpsc::channel();
    let passing = request("ping", Response::SyncWithTarget, BYTES).passing_to(&server.object);
    let handle = passing.handle();
    passing.never_waiting().begin(move |outcome| sender.send(outcome.map(drop)).unwrap()).unwrap();
    handle.cancel();
    let e = given_up.recv().unwrap().unwrap_err();
    assert_eq!(e.minor, MinorCode::REPLY_GIVEN_UP);
    // The one behind it waits for it in vain, and is sent.
    let last = send(&server.object, BYTES);
    bodies(&mut stream, COUNT + 1);
    for (number, sent) in sent.iter().chain([&last]).enumerate() {
        sent.recv().unwrap().unwrap_or_else(|e| panic!("{number}: {e}"));
    }
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.peek(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn what_a_connection_has_not_taken_when_it_ends_is_told_as_not_executed() {
    let server = Silent::new();
    let (stream, sent) = server.clog();
    let Silent { listener, object: _, _client } = server;
    // No other connection can be made.
    drop((listener, stream));
    let outcomes: Vec<_> = sent.iter().map(|sent| sent.recv().unwrap()).collect();
    // The system has taken a part of the first one.
    let is_maybe = matches!(&outcomes[0], Err(e) if e.completed == CompletionStatus::Maybe);
    assert!(is_maybe && outcomes[1..].iter().all(is_not_executed), "{outcomes:?}");
}
