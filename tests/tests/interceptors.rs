//! Interceptors see every request, carry service contexts, and can change the outcome of a request.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ironorb::interceptor::{
    ClientInterceptor, ClientRequestInfo, Interrupt, IorInfo, IorInterceptor, PiCurrent, ServerInterceptor,
    ServerRequestInfo, SlotId,
};
use ironorb::{
    Any, CompletionStatus, MinorCode, ObjectRef, Orb, SystemException, SystemExceptionKind, TypedRef, giop,
};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};

/// A service context id of the tests.
const CONTEXT: u32 = 0x494F_0042;

/// What the interceptors of one test have seen, in order.
type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, what: String) {
    log.lock().unwrap().push(what);
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

/// Records what it sees, and interrupts where the test says so.
#[derive(Default)]
struct Witness {
    name: &'static str,
    log: Log,
    /// Interrupts `send_request` or `receive_request_service_contexts` of this operation.
    interrupt: Option<(&'static str, Interrupt)>,
    /// Interrupts `receive_exception` or `send_exception`.
    replacement: Option<Interrupt>,
}

impl Witness {
    fn new(name: &'static str, log: &Log) -> Witness {
        Witness { name, log: log.clone(), ..Witness::default() }
    }

    fn check(&self, operation: &str) -> Result<(), Interrupt> {
        match &self.interrupt {
            Some((wanted, interrupt)) if *wanted == operation => Err(interrupt.clone()),
            _ => Ok(()),
        }
    }

    fn replaced(&self) -> Result<(), Interrupt> {
        self.replacement.clone().map_or(Ok(()), Err)
    }
}

impl ClientInterceptor for Witness {
    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        note(&self.log, format!("{} send {}", self.name, request.operation()));
        request.add_request_service_context(CONTEXT, self.name.as_bytes(), false);
        self.check(request.operation())
    }

    fn receive_reply(&self, request: &ClientRequestInfo) -> Result<(), SystemException> {
        let context = request.reply_service_context(CONTEXT).map(<[u8]>::to_vec);
        let context = String::from_utf8(context.unwrap_or_default()).unwrap();
        note(&self.log, format!("{} reply {:?} {context:?}", self.name, request.reply_status().unwrap()));
        Ok(())
    }

    fn receive_exception(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        let id = request.received_exception_id().unwrap();
        note(&self.log, format!("{} exception {id}", self.name));
        self.replaced()
    }

    fn receive_other(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        note(&self.log, format!("{} other {:?}", self.name, request.reply_status().unwrap()));
        Ok(())
    }
}

impl ServerInterceptor for Witness {
    fn receive_request_service_contexts(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        assert_eq!(request.object_id(), None, "the servant is found later");
        let context = request.request_service_context(CONTEXT).map(<[u8]>::to_vec).unwrap_or_default();
        let operation = String::from_utf8(request.operation().to_vec()).unwrap();
        let context = String::from_utf8(context).unwrap();
        note(&self.log, format!("{} came {operation} {context:?}", self.name));
        self.check(&operation)
    }

    fn receive_request(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let interface = request.target_most_derived_interface().unwrap().to_owned();
        note(&self.log, format!("{} for {interface} {:?}", self.name, request.adapter_name().unwrap()));
        Ok(())
    }

    fn send_reply(&self, request: &mut ServerRequestInfo) -> Result<(), SystemException> {
        request.add_reply_service_context(CONTEXT, self.name.as_bytes(), true);
        note(&self.log, format!("{} answers {:?}", self.name, request.reply_status().unwrap()));
        Ok(())
    }

    fn send_exception(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        note(&self.log, format!("{} raises {}", self.name, request.sending_exception_id().unwrap()));
        self.replaced()
    }

    fn send_other(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        note(&self.log, format!("{} other {:?}", self.name, request.reply_status().unwrap()));
        Ok(())
    }
}

fn listening() -> ironorb::OrbBuilder {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap()
}

/// The object's reference in the client.
fn seen_by(client: &Orb, object: &ObjectRef) -> ProbeRef {
    client.string_to_object(&object.to_ior_string()).unwrap().narrow_unchecked()
}

fn probe(server: &Orb, client: &Orb) -> ProbeRef {
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    seen_by(client, probe.object())
}

fn no_permission() -> SystemException {
    SystemException::new(SystemExceptionKind::NoPermission, MinorCode(9), CompletionStatus::No)
}

#[test]
fn points_are_called_in_order_with_the_contexts_of_both_sides() {
    let (ours, theirs) = (Log::default(), Log::default());
    let server = listening()
        .server_interceptor(Witness::new("s1", &theirs))
        .server_interceptor(Witness::new("s2", &theirs))
        .build()
        .unwrap();
    let client = Orb::builder()
        .no_endpoint()
        .client_interceptor(Witness::new("c1", &ours))
        .client_interceptor(Witness::new("c2", &ours))
        .build()
        .unwrap();
    let probe = probe(&server, &client);

    assert_eq!(probe.add(2, 3).unwrap(), 5);
    // The context of c2 was refused, because c1 had added one with the same id. The context of s1 replaced
    // that of s2.
    assert_eq!(
        taken(&ours),
        ["c1 send add", "c2 send add", "c2 reply Successful \"s1\"", "c1 reply Successful \"s1\""]
    );
    assert_eq!(
        taken(&theirs),
        [
            "s1 came add \"c1\"",
            "s2 came add \"c1\"",
            "s1 for IDL:testing/Probe:1.0 []",
            "s2 for IDL:testing/Probe:1.0 []",
            "s2 answers Successful",
            "s1 answers Successful"
        ]
    );

    probe.refuse("no").unwrap_err();
    assert_eq!(
        taken(&ours)[2..],
        ["c2 exception IDL:testing/Refused:1.0", "c1 exception IDL:testing/Refused:1.0"]
    );
    assert_eq!(
        taken(&theirs)[4..],
        ["s2 raises IDL:testing/Refused:1.0", "s1 raises IDL:testing/Refused:1.0"]
    );

    probe.tick().unwrap();
    assert_eq!(taken(&ours)[2..], ["c2 other Successful", "c1 other Successful"]);
    eventually("the oneway has been served", || theirs.lock().unwrap().len() == 6);
    assert_eq!(taken(&theirs)[4..], ["s2 other Successful", "s1 other Successful"]);
}

/// Notes the octets that it learns of, and the numbers of requests.
#[derive(Default)]
struct Octets {
    log: Log,
    ids: Arc<Mutex<Vec<u64>>>,
}

impl Octets {
    fn note_client(&self, request: &ClientRequestInfo) {
        let (sent, received) = (request.request_octets(), request.reply_octets());
        note(&self.log, format!("{} {sent} {received}", request.operation()));
        self.ids.lock().unwrap().push(request.request_id());
    }
}

impl ClientInterceptor for Octets {
    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        assert_eq!((request.request_octets(), request.reply_octets()), (0, 0));
        self.ids.lock().unwrap().push(request.request_id());
        Ok(())
    }

    fn receive_reply(&self, request: &ClientRequestInfo) -> Result<(), SystemException> {
        self.note_client(request);
        Ok(())
    }

    fn receive_exception(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        self.note_client(request);
        Ok(())
    }

    fn receive_other(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        self.note_client(request);
        Ok(())
    }
}

impl ServerInterceptor for Octets {
    fn send_reply(&self, request: &mut ServerRequestInfo) -> Result<(), SystemException> {
        assert_eq!(request.reply_octets(), 0);
        Ok(())
    }

    fn request_ended(&self, request: &ServerRequestInfo) {
        let (received, sent) = (request.request_octets(), request.reply_octets());
        let operation = String::from_utf8_lossy(request.operation()).into_owned();
        note(&self.log, format!("{operation} {received} {sent}"));
        self.ids.lock().unwrap().push(request.request_id());
    }
}

#[test]
fn both_sides_know_the_octets_of_bodies() {
    let (ours, theirs) = (Octets::default(), Octets::default());
    let logs = [ours.log.clone(), theirs.log.clone()];
    let ids = [ours.ids.clone(), theirs.ids.clone()];
    let mut builder = listening().server_interceptor(theirs);
    // A thread that helps where a servant looks blocked would note a later request first.
    builder.config().threads_per_connection_max = 1;
    let server = builder.build().unwrap();
    let client = Orb::builder().no_endpoint().client_interceptor(ours).build().unwrap();
    let probe = probe(&server, &client);
    // The second time the request is recognised by its bytes.
    for _ in 0..2 {
        probe.reflect(b"123").unwrap();
        probe.reflect(&vec![0; 200_000]).unwrap();
        probe.refuse("no").unwrap_err();
        probe.raise_system(5).unwrap_err();
        ProbeAsync::add_async(&probe, 1, 2).wait().unwrap();
        probe.tick().unwrap();
    }
    eventually("the oneways have been served", || logs[1].lock().unwrap().len() == 12);
    let once =
        ["reflect 7 7", "reflect 200004 200004", "refuse 7 35", "raise_system 4 48", "add 8 4", "tick 0 0"];
    for log in logs {
        assert_eq!(taken(&log), [once, once].concat());
    }
    let [ours, theirs] = ids.map(|ids| ids.lock().unwrap().clone());
    assert_eq!((ours.len(), theirs.len()), (24, 12));
    // The same one at the beginning and at the end, and another for each request on either side.
    for pair in ours.chunks(2) {
        assert_eq!(pair[0], pair[1]);
    }
    let mut all: Vec<u64> = ours.iter().step_by(2).chain(&theirs).copied().collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 24);
}

#[test]
fn interceptors_that_let_a_request_pass_see_its_interruption() {
    let log = Log::default();
    let second = Witness { interrupt: Some(("ping", no_permission().into())), ..Witness::new("c2", &log) };
    let server = listening().build().unwrap();
    let client = Orb::builder()
        .no_endpoint()
        .client_interceptor(Witness::new("c1", &log))
        .client_interceptor(second)
        .client_interceptor(Witness::new("c3", &log))
        .build()
        .unwrap();
    let e = probe(&server, &client).ping().unwrap_err();
    assert_eq!((e.kind, e.minor), (SystemExceptionKind::NoPermission, MinorCode(9)));
    assert_eq!(
        taken(&log),
        ["c1 send ping", "c2 send ping", "c1 exception IDL:omg.org/CORBA/NO_PERMISSION:1.0"]
    );
}

#[test]
fn an_interceptor_refuses_or_forwards_before_the_upcall() {
    let (log, ours) = (Log::default(), Log::default());
    let elsewhere = listening().build().unwrap();
    let refuge: ProbeRef = elsewhere.root_poa().activate(Probing::default()).unwrap();
    refuge.set_label("refuge").unwrap();
    let client = Orb::builder().no_endpoint().client_interceptor(Witness::new("c", &ours)).build().unwrap();
    let forward = Interrupt::Forward(refuge.object().clone());
    let server = listening()
        .server_interceptor(Witness::new("s1", &log))
        .server_interceptor(Witness {
            interrupt: Some(("ping", no_permission().into())),
            ..Witness::new("s2", &log)
        })
        .server_interceptor(Witness { interrupt: Some(("_get_label", forward)), ..Witness::new("s3", &log) })
        .build()
        .unwrap();
    let probe = probe(&server, &client);
    let e = probe.ping().unwrap_err();
    assert_eq!((e.kind, e.minor), (SystemExceptionKind::NoPermission, MinorCode(9)));
    assert_eq!(taken(&log)[2..], ["s1 raises IDL:omg.org/CORBA/NO_PERMISSION:1.0"]);
    taken(&ours);

    assert_eq!(probe.label().unwrap(), "refuge");
    assert_eq!(taken(&log)[3..], ["s2 other LocationForward", "s1 other LocationForward"]);
    // The request ended for the client's interceptors, and a new one began.
    assert_eq!(
        taken(&ours),
        ["c send _get_label", "c other LocationForward", "c send _get_label", "c reply Successful \"\""]
    );
}

#[test]
fn an_interceptor_replaces_an_exception() {
    let log = Log::default();
    let server = listening()
        .server_interceptor(Witness { replacement: Some(no_permission().into()), ..Witness::new("s", &log) })
        .build()
        .unwrap();
    let plain = Orb::builder().no_endpoint().build().unwrap();
    match probe(&server, &plain).refuse("no").unwrap_err() {
        ironorb_tests::testing::probe::RefuseError::System(e) => assert_eq!(e.minor, MinorCode(9)),
        other => panic!("{other:?}"),
    }

    // A client's interceptor may even send the request to another object after an exception.
    let other: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let client = Orb::builder().no_endpoint();
    let healthy = listening().build().unwrap();
    let refuge: ProbeRef = healthy.root_poa().activate(Probing::default()).unwrap();
    let forward = Interrupt::Forward(refuge.object().clone());
    let client = client
        .client_interceptor(Witness { replacement: Some(forward), ..Witness::new("c", &log) })
        .build()
        .unwrap();
    let probe = seen_by(&client, other.object());
    server.root_poa().deactivate(&server.root_poa().reference_to_id(other.object()).unwrap()).unwrap();
    assert_eq!(probe.add(1, 1).unwrap(), 2);
}

/// Interrupts one point once, after the test has armed it.
struct Trap {
    log: Log,
    is_armed: Arc<AtomicBool>,
    point: &'static str,
    interrupt: Interrupt,
}

impl Trap {
    fn at(&self, point: &str) -> Result<(), Interrupt> {
        note(&self.log, point.to_owned());
        let is_sprung = point == self.point && self.is_armed.swap(false, Ordering::SeqCst);
        if is_sprung { Err(self.interrupt.clone()) } else { Ok(()) }
    }
}

impl ClientInterceptor for Trap {
    fn send_request(&self, _: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        self.at("send")
    }

    fn receive_reply(&self, _: &ClientRequestInfo) -> Result<(), SystemException> {
        match self.at("reply") {
            Err(Interrupt::Raise(e)) => Err(e),
            _ => Ok(()),
        }
    }

    fn receive_exception(&self, _: &ClientRequestInfo) -> Result<(), Interrupt> {
        self.at("exception")
    }

    fn receive_other(&self, _: &ClientRequestInfo) -> Result<(), Interrupt> {
        self.at("other")
    }
}

/// A call by a reference that has been called before takes another way than the first one.
#[test]
fn interceptors_see_the_same_of_first_and_later_calls() {
    let server = listening().build().unwrap();
    let refuge: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    refuge.set_label("refuge").unwrap();
    let forward = || Interrupt::Forward(refuge.object().clone());
    let raise = || Interrupt::Raise(no_permission());
    let label = |probe: &ProbeRef| probe.label().map_err(|e| e.to_string().replace(char::is_numeric, ""));
    let refuse = |probe: &ProbeRef| {
        probe.refuse("no").map(|_| String::new()).map_err(|e| format!("{e:?}").replace(char::is_numeric, ""))
    };
    type Call<'c> = &'c dyn Fn(&ProbeRef) -> Result<String, String>;
    let calls: [Call<'_>; 2] = [&label, &refuse];
    for point in ["none", "send", "reply", "exception", "other"] {
        for interrupt in [raise(), forward()] {
            for call in calls {
                let seen = |earlier_calls: usize| {
                    let (log, is_armed) = (Log::default(), Arc::new(AtomicBool::new(false)));
                    let trap = Trap {
                        log: log.clone(),
                        is_armed: is_armed.clone(),
                        point,
                        interrupt: interrupt.clone(),
                    };
                    let client = Orb::builder().no_endpoint().client_interceptor(trap).build().unwrap();
                    let probe = probe(&server, &client);
                    for _ in 0..earlier_calls {
                        probe.ping().unwrap();
                    }
                    taken(&log);
                    is_armed.store(true, Ordering::SeqCst);
                    let outcome = call(&probe);
                    (outcome, taken(&log))
                };
                let first = seen(0);
                assert_eq!(seen(1), first, "{point} {interrupt:?}");
            }
        }
    }
}

/// Puts the request's context into a slot, so that calls of the servant carry it on.
struct Carrier(SlotId);

impl ServerInterceptor for Carrier {
    fn receive_request_service_contexts(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        if let Some(context) = request.request_service_context(CONTEXT) {
            request.set_slot(self.0, Any::new(&String::from_utf8(context.to_vec()).unwrap()).unwrap());
        }
        Ok(())
    }
}

impl ClientInterceptor for Carrier {
    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        if let Ok(text) = request.slot(self.0).extract::<String>() {
            request.add_request_service_context(CONTEXT, text.as_bytes(), true);
        }
        Ok(())
    }
}

#[test]
fn slots_carry_data_from_the_application_to_the_servant() {
    struct SlotReader(SlotId, Arc<Mutex<String>>);
    impl ServerInterceptor for SlotReader {
        fn receive_request(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
            *self.1.lock().unwrap() = request.slot(self.0).extract().unwrap_or_default();
            Ok(())
        }
    }
    let slot = SlotId::allocate();
    let seen_slot = Arc::new(Mutex::new(String::new()));
    let server = listening()
        .server_interceptor(Carrier(slot))
        .server_interceptor(SlotReader(slot, seen_slot.clone()))
        .build()
        .unwrap();
    let client = Orb::builder().no_endpoint().client_interceptor(Carrier(slot)).build().unwrap();
    let probe = probe(&server, &client);
    probe.ping().unwrap();
    assert_eq!(*seen_slot.lock().unwrap(), "");
    PiCurrent.set_slot(slot, Any::new("transaction 7").unwrap());
    probe.ping().unwrap();
    assert_eq!(*seen_slot.lock().unwrap(), "transaction 7");
    PiCurrent.set_slot(slot, Any::default());
    probe.ping().unwrap();
    assert_eq!(*seen_slot.lock().unwrap(), "", "slots of one request are not seen by the next");
}

/// Serves `label` with the contents of its slot.
struct MainThreadProbe(SlotId);

impl ironorb::Servant for MainThreadProbe {
    fn repository_ids(&self) -> &[&'static str] {
        &["IDL:testing/Probe:1.0"]
    }

    fn dispatch(&self, call: ironorb::Call<'_>) -> ironorb::Replied {
        call.twoway(
            |_| Ok(Ok::<_, SystemException>(PiCurrent.slot(self.0).extract::<String>().unwrap_or_default())),
            |w, text| w.write_str(text),
        )
    }
}

#[test]
fn slots_reach_a_servant_of_the_main_thread() {
    let slot = SlotId::allocate();
    let server = listening().server_interceptor(Carrier(slot)).build().unwrap();
    let client = Orb::builder().no_endpoint().client_interceptor(Carrier(slot)).build().unwrap();
    let policies =
        ironorb::PoaPolicies { thread: ironorb::poa::ThreadModel::MainThread, ..Default::default() };
    let poa = server.root_poa().create_poa("main", None, policies).unwrap();
    let id = poa.activate_object(Arc::new(MainThreadProbe(slot))).unwrap();
    let probe = seen_by(&client, &poa.id_to_reference(&id).unwrap());
    let caller = std::thread::spawn(move || {
        PiCurrent.set_slot(slot, Any::new("to the main thread").unwrap());
        probe.label().unwrap()
    });
    eventually("the request is served", || {
        server.perform_work();
        caller.is_finished()
    });
    assert_eq!(caller.join().unwrap(), "to the main thread");
}

#[test]
fn references_carry_what_ior_interceptors_add() {
    struct Stamp;
    impl IorInterceptor for Stamp {
        fn establish_components(&self, adapter: &mut IorInfo<'_>) {
            let name = adapter.adapter_name().join("/");
            adapter.add_component(giop::ior::TaggedComponent {
                tag: 0x494F_0001,
                data: name.into_bytes().into(),
            });
        }
    }
    let server = listening().ior_interceptor(Stamp).build().unwrap();
    let inner = server.root_poa().create_poa("inner", None, ironorb::PoaPolicies::default()).unwrap();
    let stamp_of = |object: &ObjectRef| -> Vec<u8> {
        let profile = object.ior().iiop_profiles().next().unwrap();
        let stamp = profile.components().find(|component| component.tag == 0x494F_0001);
        stamp.unwrap().data.into_owned()
    };
    let at_root: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let inside: ProbeRef = inner.activate(Probing::default()).unwrap();
    assert_eq!(stamp_of(at_root.object()), b"");
    assert_eq!(stamp_of(inside.object()), b"inner");
}

#[test]
fn interceptors_see_asynchronous_calls() {
    let log = Log::default();
    let server = listening().build().unwrap();
    let client = Orb::builder().no_endpoint().client_interceptor(Witness::new("c", &log)).build().unwrap();
    let probe = probe(&server, &client);
    assert_eq!(ProbeAsync::add_async(&probe, 2, 3).wait().unwrap(), 5);
    assert_eq!(taken(&log), ["c send add", "c reply Successful \"\""]);
    ProbeAsync::refuse_async(&probe, "no").wait().unwrap_err();
    assert_eq!(taken(&log), ["c send refuse", "c exception IDL:testing/Refused:1.0"]);
}

/// Does something in `send_request`, and records all points.
struct Doing<F> {
    log: Log,
    at_send: F,
}

impl<F: Fn() + Send + Sync + 'static> Doing<F> {
    fn client(log: &Log, at_send: F) -> Orb {
        let doing = Doing { log: log.clone(), at_send };
        Orb::builder().no_endpoint().client_interceptor(doing).build().unwrap()
    }
}

impl<F: Fn() + Send + Sync + 'static> ClientInterceptor for Doing<F> {
    fn send_request(&self, _: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        note(&self.log, "send".to_owned());
        (self.at_send)();
        Ok(())
    }

    fn receive_reply(&self, _: &ClientRequestInfo) -> Result<(), SystemException> {
        note(&self.log, "reply".to_owned());
        Ok(())
    }

    fn receive_exception(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        let kind = request.system_exception().unwrap().kind;
        note(&self.log, format!("{kind:?}"));
        Ok(())
    }

    fn receive_other(&self, _: &ClientRequestInfo) -> Result<(), Interrupt> {
        note(&self.log, "other".to_owned());
        Ok(())
    }
}

type Adding<'c> = &'c dyn Fn(&ProbeRef) -> Result<i32, SystemException>;

const ADDING: [Adding<'_>; 2] =
    [&|probe| probe.add(1, 1), &|probe| ProbeAsync::add_async(probe, 1, 1).wait()];

#[test]
fn a_call_whose_time_the_interceptors_take_is_not_sent() {
    let (log, served) = (Log::default(), Log::default());
    let server = listening().server_interceptor(Witness::new("s", &served)).build().unwrap();
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = is_slow.clone();
    let client = Doing::client(&log, move || {
        if slow.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(60));
        }
    });
    for call in ADDING {
        let probe = probe(&server, &client);
        // Of a reference that has not been called, and of one that has.
        for _ in 0..2 {
            taken(&log);
            taken(&served);
            is_slow.store(true, Ordering::SeqCst);
            let limited: ProbeRef =
                probe.object().with_timeout(Some(Duration::from_millis(30))).narrow_unchecked();
            let e = call(&limited).unwrap_err();
            is_slow.store(false, Ordering::SeqCst);
            assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::No));
            assert_eq!(taken(&log), ["send", "Timeout"]);
            assert!(taken(&served).is_empty(), "the server has been called");
            call(&probe).unwrap();
        }
    }
}

#[test]
fn a_connection_that_ends_while_interceptors_see_the_request_is_made_anew() {
    for call in ADDING {
        let log = Log::default();
        let (listener, port) = raw::listen();
        let accepted = Arc::new(Mutex::new(None::<TcpStream>));
        let cut = accepted.clone();
        let client = Doing::client(&log, move || {
            if let Some(stream) = cut.lock().unwrap().take() {
                stream.shutdown(Shutdown::Both).unwrap();
                // A connection that was used a moment ago counts as open.
                std::thread::sleep(Duration::from_millis(60));
            }
        });
        let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x");
        let probe: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
        let answer = || {
            let mut stream = listener.accept().unwrap().0;
            let request = raw::read_message(&mut stream);
            raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[0, 0, 0, 42]));
            stream
        };
        for _ in 0..2 {
            std::thread::scope(|scope| {
                let answered = scope.spawn(answer);
                assert_eq!(call(&probe).unwrap(), 42);
                *accepted.lock().unwrap() = Some(answered.join().unwrap());
            });
            assert_eq!(taken(&log), ["send", "reply"]);
        }
    }
}

/// A gate that a test opens.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn pass(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |is_open| !*is_open).unwrap());
    }
}

#[test]
fn interceptors_see_the_end_of_an_attempt_that_began_after_the_call_had_ended() {
    let log = Log::default();
    let server = listening().build().unwrap();
    let there: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let forward = Interrupt::Forward(there.object().clone());
    let forwarder = listening()
        .server_interceptor(Witness { interrupt: Some(("add", forward)), ..Witness::default() })
        .build()
        .unwrap();
    let (gate, attempts) = (Arc::new(Gate::default()), AtomicUsize::new(0));
    let held = gate.clone();
    let client = Doing::client(&log, move || {
        // The first attempt is the one that is forwarded.
        if attempts.fetch_add(1, Ordering::SeqCst) == 1 {
            held.pass();
        }
    });
    let limited = probe(&forwarder, &client).object().with_timeout(Some(Duration::from_secs(1)));
    let limited: ProbeRef = limited.narrow_unchecked();
    let e = ProbeAsync::add_async(&limited, 1, 1).wait().unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::Timeout);
    assert_eq!(taken(&log), ["send", "other", "send"]);
    gate.open();
    eventually("the attempt ends", || taken(&log) == ["Unknown"]);
}
