//! Calls that are written down: where their requests go, and what ends them, is decided later.

use std::sync::{Arc, Mutex, mpsc};

use ironorb::dynamic::{OperationDescription, RawReply, ReceivedRequest, Request, WrittenCall, write_down};
use ironorb::giop::TransmissionCodeSets;
use ironorb::giop::message::Response;
use ironorb::giop::service_context::ServiceContext;
use ironorb::interceptor::{FORWARD_CONTEXT, ForwardedRequest, ForwardedRequests};
use ironorb::{CompletionStatus, Orb, SystemException, SystemExceptionKind, TypeCode, TypeDef, TypedRef};
use ironorb_tests::cached::{MeterAsync, MeterRef};
use ironorb_tests::testing::probe::RefuseError;
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Counting, Probing, eventually};

fn server() -> (Orb, ProbeRef) {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = server.root_poa().activate(Probing::default()).unwrap();
    (server, probe)
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn elsewhere(client: &Orb, reference: &ProbeRef) -> ProbeRef {
    client.resolve(&reference.object().to_ior_string()).unwrap()
}

fn one<T>(begin: impl FnOnce() -> T) -> (T, WrittenCall) {
    let (begun, mut written) = write_down(begin);
    assert_eq!(written.len(), 1);
    (begun, written.remove(0))
}

/// Sends the request to an object, and waits for the reply.
fn ask(written: &WrittenCall, target: &ProbeRef) -> Result<RawReply, SystemException> {
    let (sender, receiver) = mpsc::channel();
    let passing = written.request().passing_to(target.object());
    passing.begin(move |outcome| sender.send(outcome).unwrap())?;
    receiver.recv().unwrap()
}

#[test]
fn a_call_goes_wherever_it_is_sent_and_ends_once() {
    let (servers, client) = ([server(), server()], client());
    let [here, there] = servers.each_ref().map(|(_, probe)| elsewhere(&client, probe));
    // The reference need not lead anywhere.
    let nowhere: ProbeRef =
        client.string_to_object("corbaloc:iiop:1.2@127.0.0.1:1/nobody").unwrap().narrow_unchecked();
    for target in [&here, &there, &servers[0].1] {
        let (pending, written) = one(|| nowhere.echo_async("żółw 🐢"));
        assert_eq!(written.request().operation(), "echo");
        assert!(!pending.is_ready());
        for _ in 0..2 {
            written.end(ask(&written, target));
        }
        assert_eq!(pending.wait().unwrap(), "żółw 🐢");
    }
    // A user exception is one of the operation.
    let (pending, written) = one(|| nowhere.refuse_async("no"));
    written.end(ask(&written, &here));
    assert!(matches!(pending.wait(), Err(RefuseError::Refused(e)) if e.why == "no"));
}

#[test]
fn objects_of_this_process_are_not_called() {
    let (_server, local) = server();
    let ((first, second), written) = write_down(|| (local.add_async(1, 2), local.add_async(3, 4)));
    assert_eq!(written.len(), 2);
    assert!(!first.is_ready() && !second.is_ready());
    written[1].end(ask(&written[1], &local));
    written[0].end(ask(&written[0], &local));
    assert_eq!((first.wait().unwrap(), second.wait().unwrap()), (3, 7));
    // Afterwards calls are calls.
    assert_eq!(local.add_async(5, 6).wait().unwrap(), 11);
}

/// Who sends a request twice must know whether that is the same as once.
#[test]
fn a_call_knows_whether_it_may_be_carried_out_twice() {
    let ((_server, probe), client) = (server(), client());
    let text = || TypeCode::from(&TypeDef::String { bound: 0 });
    for probe in [&probe, &elsewhere(&client, &probe)] {
        let of = |begin: &dyn Fn(&ProbeRef)| one(|| begin(probe)).1.is_idempotent();
        assert!(of(&|probe| drop(probe.echo_async("text"))), "the IDL says so");
        assert!(of(&|probe| drop(probe.set_label_async("text"))), "the IDL says so of the attribute");
        assert!(of(&|probe| drop(probe.ticks_async())), "an attribute is read");
        assert!(!of(&|probe| drop(probe.add_async(1, 2))));
        assert!(!of(&|probe| drop(probe.refuse_async("no"))));
        let dynamic = |description: OperationDescription| {
            let knows = description.is_idempotent();
            let mut request = Request::new(probe.object(), description);
            let written = one(|| request.send_deferred().unwrap()).1;
            assert_eq!(written.is_idempotent(), knows);
            knows
        };
        assert!(!dynamic(OperationDescription::new("ping")));
        assert!(dynamic(OperationDescription::new("ping").idempotent()));
        assert!(dynamic(OperationDescription::getter("label", text())));
        let set = OperationDescription::setter("label", text());
        assert!(!set.is_idempotent() && set.idempotent().is_idempotent());
        assert!(dynamic(OperationDescription::new("_non_existent").returns(&TypeDef::Boolean)));
    }
}

/// Results may come by any way, as the bytes of a body.
#[test]
fn a_body_from_elsewhere_ends_a_call() {
    let ((_server, local), client) = (server(), client());
    let probe = elsewhere(&client, &local);
    let (pending, written) = one(|| probe.echo_async("text"));
    let reply = ask(&written, &probe).unwrap();
    let code_sets = reply.code_sets();
    let copy = RawReply::of_body(probe.object(), false, reply.body().unwrap(), code_sets).unwrap();
    assert_eq!(copy.reader().read_str().unwrap(), "text");
    written.end(Ok(copy));
    assert_eq!(pending.wait().unwrap(), "text");

    let (pending, written) = one(|| probe.refuse_async("why"));
    let reply = ask(&written, &probe).unwrap();
    let copy = RawReply::of_body(probe.object(), true, reply.body().unwrap(), code_sets).unwrap();
    written.end(Ok(copy));
    assert!(matches!(pending.wait(), Err(RefuseError::Refused(e)) if e.why == "why"));
    assert_eq!(code_sets, TransmissionCodeSets::NATIVE);
}

#[test]
fn a_call_that_nobody_sends_ends_without_having_been_executed() {
    let (_server, local) = server();
    let (pending, written) = one(|| local.add_async(1, 2));
    drop(written);
    let e = pending.wait().unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
    // A panic leaves the thread as it was.
    let panicked = std::panic::catch_unwind(|| write_down(|| panic!("in the middle")));
    assert!(panicked.is_err());
    assert_eq!(local.add_async(1, 2).wait().unwrap(), 3);
    // Who writes down within does not disturb who writes down without.
    let ((first, inner, last), outer) =
        write_down(|| (local.add_async(1, 1), one(|| local.add_async(2, 2)), local.add_async(3, 3)));
    assert_eq!(outer.len(), 2);
    for written in outer.iter().chain([&inner.1]) {
        written.end(ask(written, &local));
    }
    assert_eq!((first.wait().unwrap(), inner.0.wait().unwrap(), last.wait().unwrap()), (2, 4, 6));
}

/// A request that is given up may be cancelled at its server, whatever the client's configuration says.
#[test]
fn a_request_is_cancelled_at_its_server() {
    let ((server, local), client) = (server(), client());
    let probe = elsewhere(&client, &local);
    let (pending, written) = one(|| probe.block_async());
    let passing = written.request().passing_to(probe.object());
    let (handle, (sender, receiver)) = (passing.handle(), mpsc::channel());
    passing.begin(move |outcome| sender.send(outcome.map(drop)).unwrap()).unwrap();
    let other = elsewhere(&self::client(), &local);
    eventually("the servant blocks", || other.blocked().unwrap() == 1);
    handle.cancel();
    let e = receiver.recv().unwrap().unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::Unknown);
    other.release().unwrap();
    eventually("the server is told", || server.status().total("cancel_requests_total") == 1);
    written.end(Err(e));
    assert_eq!(pending.wait().unwrap_err().kind, SystemExceptionKind::Unknown);
}

/// What a cache asks goes with each sending, as the request of any other call.
#[test]
fn a_request_tells_caches_of_the_log() {
    let (server, client) = (server().0, client());
    let local: MeterRef = server.root_poa().activate(Counting::default()).unwrap();
    let meter: MeterRef = client.resolve(&local.object().to_ior_string()).unwrap();
    (0..3).for_each(|_| assert_eq!(meter.value().unwrap(), 0));
    let (pending, mut written) = write_down(|| meter.add_async(7));
    let (sender, receiver) = mpsc::channel();
    let passing = written[0].request().passing_to(meter.object());
    passing.begin(move |outcome| sender.send(outcome).unwrap()).unwrap();
    written.remove(0).end(receiver.recv().unwrap());
    pending.wait().unwrap();
    assert_eq!(meter.value().unwrap(), 7);
}

/// Passes forwarded requests on to their objects, and tells what has come of them.
struct Forwarded(Mutex<mpsc::Sender<(Vec<u8>, String, String)>>);

impl ForwardedRequests for Forwarded {
    fn serve(&self, forwarded: ForwardedRequest<'_>) {
        let ForwardedRequest { object, request, data } = forwarded;
        let (data, operation) = (data.to_vec(), request.operation().to_owned());
        let sender = self.0.lock().unwrap().clone();
        let then = move |outcome: Result<RawReply, SystemException>| {
            let result = outcome.map(|reply| reply.reader().read_str().unwrap().into_owned());
            sender.send((data, operation, result.unwrap_or_else(|e| e.to_string()))).unwrap();
        };
        request.passing_to(&object).begin(then).unwrap();
    }
}

/// A oneway may ask that its results go elsewhere. Servers that do not know that carry it out, and tell nobody.
#[test]
fn a_oneway_may_be_one_whose_results_another_client_waits_for() {
    let (sender, receiver) = mpsc::channel();
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    let server = server.forwarded_requests(Forwarded(Mutex::new(sender))).build().unwrap();
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let (other_server, other) = self::server();
    let client = client();
    let context = ServiceContext { id: FORWARD_CONTEXT, data: b"to whom" };
    for (probe, is_known) in [(&local, true), (&other, false)] {
        let probe = elsewhere(&client, probe);
        let (pending, written) = one(|| probe.echo_async("żółw"));
        let asked = written.request();
        let (body, code_sets) = (asked.body().unwrap(), asked.code_sets().unwrap());
        for contexts in [&[context][..], &[]] {
            let request =
                ReceivedRequest::written("echo", Response::None, contexts, body, code_sets).unwrap();
            Arc::new(request).passing_to(probe.object()).begin(|_| ()).unwrap();
        }
        assert_eq!(probe.echo("after").unwrap(), "after", "both have been served before");
        if is_known {
            let told = receiver.recv().unwrap();
            assert_eq!(told, (b"to whom".to_vec(), "echo".to_owned(), "żółw".to_owned()));
        }
        assert!(receiver.try_recv().is_err());
        drop(written);
        assert!(pending.wait().is_err());
    }
    drop(other_server);
}
