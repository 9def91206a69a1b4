//! Contexts between ORBs over TCP.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use ironorb::dynamic::{OperationDescription, Request};
use ironorb::generated::{Call, Replied};
use ironorb::interceptor::{ClientContext, ContextData, OutgoingCall, RequestFacts, ServerContext};
use ironorb::{Orb, OrbBuilder, Reply, Servant, SystemException, TypedRef};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, eventually};
use ironorb_trace::{CurrentTrace, TRACE_CONTEXT, TraceContext};

/// Records the data of the trace contexts that come.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Vec<Option<Vec<u8>>>>>);

impl ServerContext for Wire {
    fn id(&self) -> u32 {
        TRACE_CONTEXT
    }

    fn serve(&self, request: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        // The ORB knows the context by its number, too.
        assert_eq!(request.trace(), data);
        self.0.lock().unwrap().push(data.map(<[u8]>::to_vec));
        upcall();
    }
}

impl Wire {
    fn take(&self) -> Vec<Option<Vec<u8>>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// An ORB that serves one object.
struct Host {
    orb: Orb,
    wire: Wire,
    probe: ProbeRef,
    /// The current context of each `ping`.
    served: Receiver<Option<TraceContext>>,
}

impl Host {
    /// An object whose `ping` does this within the upcall.
    fn new(install: fn(OrbBuilder) -> OrbBuilder, on_ping: Hook) -> Host {
        let wire = Wire::default();
        let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
        let orb = install(builder.server_context(wire.clone())).build().unwrap();
        let (sender, served): (Sender<Option<TraceContext>>, _) = channel();
        let note = move || {
            sender.send(CurrentTrace::get()).unwrap();
            on_ping()
        };
        let probe = orb.root_poa().activate(Hooked::new(note)).unwrap();
        Host { orb, wire, probe, served }
    }

    fn end(self) {
        self.orb.shutdown(true).unwrap();
    }
}

type Hook = Box<dyn Fn() -> Result<(), SystemException> + Send + Sync>;

fn nothing() -> Hook {
    Box::new(|| Ok(()))
}

fn traced_client() -> Orb {
    ironorb_trace::install(Orb::builder().no_endpoint()).build().unwrap()
}

fn reference_in(client: &Orb, served: &ProbeRef) -> ProbeRef {
    client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked()
}

/// A context with a state that has whitespace and an empty member, which stays.
fn begun() -> TraceContext {
    TraceContext::begin(true).with_state("rojo=00f067aa0ba902b7 ,,congo=t61".parse().unwrap())
}

#[test]
fn parents_chain_through_nested_calls_and_the_state_stays() {
    let last = Host::new(ironorb_trace::install, nothing());
    let nested_client = traced_client();
    let nested = reference_in(&nested_client, &last.probe);
    let first = Host::new(ironorb_trace::install, Box::new(move || nested.ping()));
    let client = traced_client();
    let probe = reference_in(&client, &first.probe);
    // The first requests are parsed, later ones recognised by their bytes.
    for _ in 0..150 {
        let root = begun();
        let guard = CurrentTrace::enter(root.clone());
        probe.ping().unwrap();
        assert_eq!(CurrentTrace::get().as_ref(), Some(&root));
        drop(guard);
        let [in_first, in_last] = [&first, &last].map(|host| host.served.recv().unwrap().unwrap());
        assert_eq!(first.wire.take(), [Some(root.to_bytes())]);
        assert_eq!(last.wire.take(), [Some(in_first.to_bytes())]);
        for (parent, servant) in [(&root, &in_first), (&in_first, &in_last)] {
            assert_ne!(servant.parent_id(), parent.parent_id());
            assert_eq!((servant.trace_id(), servant.flags()), (root.trace_id(), root.flags()));
            assert_eq!(servant.state().as_str(), "rojo=00f067aa0ba902b7 ,,congo=t61");
        }
    }
    for orb in [client, nested_client] {
        orb.shutdown(true).unwrap();
    }
    first.end();
    last.end();
}

#[test]
fn a_call_outside_a_trace_sends_nothing_and_begins_none() {
    let host = Host::new(ironorb_trace::install, nothing());
    let client = traced_client();
    let probe = reference_in(&client, &host.probe);
    for _ in 0..150 {
        probe.ping().unwrap();
        assert_eq!((host.wire.take(), host.served.recv().unwrap()), (vec![None], None));
    }
    client.shutdown(true).unwrap();
    host.end();
}

#[test]
fn a_request_without_a_context_is_outside_the_trace_of_its_thread() {
    /// A thread that works in a trace when it begins to serve.
    struct Busy;
    impl ServerContext for Busy {
        fn id(&self) -> u32 {
            0x494F_0045
        }
        fn serve(&self, _: &RequestFacts<'_>, _: Option<&[u8]>, upcall: &mut dyn FnMut()) {
            let _guard = CurrentTrace::enter(begun());
            upcall();
        }
    }
    let host = Host::new(|builder| ironorb_trace::install(builder.server_context(Busy)), nothing());
    let client = traced_client();
    reference_in(&client, &host.probe).ping().unwrap();
    assert_eq!((host.wire.take(), host.served.recv().unwrap()), (vec![None], None));
    client.shutdown(true).unwrap();
    host.end();
}

/// What is not sampled travels too, so that the next server does not begin a trace of its own.
#[test]
fn every_kind_of_call_carries_the_context_of_its_thread() {
    let host = Host::new(ironorb_trace::install, nothing());
    let client = traced_client();
    let probe = reference_in(&client, &host.probe);
    let root = TraceContext::begin(false);
    let guard = CurrentTrace::enter(root.clone());
    for _ in 0..3 {
        probe.tick().unwrap();
    }
    // The context is that of the beginning, whenever the reply is received.
    let pending = probe.ping_async();
    drop(guard);
    pending.wait().unwrap();
    let guard = CurrentTrace::enter(root.clone());
    Request::new(probe.object(), OperationDescription::new("ping")).invoke().unwrap();
    drop(guard);
    for _ in 0..2 {
        let servant = host.served.recv().unwrap().unwrap();
        assert_eq!((servant.trace_id(), servant.is_sampled()), (root.trace_id(), false));
    }
    let seen = &host.wire.0;
    eventually("the oneways arrive", || seen.lock().unwrap().len() == 5);
    assert_eq!(host.wire.take(), vec![Some(root.to_bytes()); 5]);
    client.shutdown(true).unwrap();
    host.end();
}

/// Answers `add` on another thread, after a call of its own.
struct Later {
    nested: ProbeRef,
    served: Mutex<Sender<TraceContext>>,
}

impl Servant for Later {
    fn repository_ids(&self) -> &[&'static str] {
        &[ProbeRef::REPOSITORY_ID]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        call.deferred(
            |r| Ok((r.get::<i32>()?, r.get::<i32>()?)),
            |(a, b), reply: Reply<i32, SystemException>| {
                let context = CurrentTrace::get().unwrap();
                self.served.lock().unwrap().send(context.clone()).unwrap();
                let nested = self.nested.clone();
                thread::spawn(move || {
                    let _guard = CurrentTrace::enter(context);
                    reply.send(nested.ping().map(|()| a + b));
                });
            },
            |w, sum| w.put(sum),
        )
    }
}

#[test]
fn a_servant_that_answers_later_takes_its_context_along() {
    let last = Host::new(ironorb_trace::install, nothing());
    let (nested_client, client) = (traced_client(), traced_client());
    let (sender, served) = channel();
    let later = Later { nested: reference_in(&nested_client, &last.probe), served: Mutex::new(sender) };
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    let server = ironorb_trace::install(builder).build().unwrap();
    let id = server.root_poa().activate_object(Arc::new(later)).unwrap();
    let first: ProbeRef = server.root_poa().id_to_reference(&id).unwrap().narrow_unchecked();
    let guard = CurrentTrace::enter(begun());
    assert_eq!(reference_in(&client, &first).add(2, 3).unwrap(), 5);
    drop(guard);
    assert_eq!(last.wire.take(), [Some(served.recv().unwrap().to_bytes())]);
    for orb in [client, nested_client, server] {
        orb.shutdown(true).unwrap();
    }
    last.end();
}

#[test]
fn calls_within_the_process_stay_in_the_span_of_the_caller() {
    let host = Host::new(ironorb_trace::install, nothing());
    let root = begun();
    let guard = CurrentTrace::enter(root.clone());
    host.probe.ping().unwrap();
    drop(guard);
    assert_eq!(host.served.recv().unwrap(), Some(root));
    assert!(host.wire.take().is_empty());
    host.end();
}

#[test]
fn a_context_that_cannot_be_read_is_no_context() {
    /// Sends these bytes.
    struct Hostile(Arc<Mutex<Vec<u8>>>);
    impl ClientContext for Hostile {
        fn id(&self) -> u32 {
            TRACE_CONTEXT
        }
        fn write(&self, _: &OutgoingCall<'_>, data: &mut ContextData<'_>) -> bool {
            data.put(&self.0.lock().unwrap());
            true
        }
    }
    let host = Host::new(ironorb_trace::install, nothing());
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let client = Orb::builder().no_endpoint().client_context(Hostile(bytes.clone())).build().unwrap();
    let probe = reference_in(&client, &host.probe);
    let call = |data: Vec<u8>| {
        *bytes.lock().unwrap() = data.clone();
        probe.ping().unwrap();
        assert_eq!(host.wire.take(), [Some(data)]);
        host.served.recv().unwrap()
    };
    let good = begun().to_bytes();
    for end in 0..good.len() {
        assert_eq!(call(good[..end].to_vec()), None, "{end}");
    }
    let with = |at: usize, octet: u8| {
        let mut data = good.clone();
        data[at] = octet;
        data
    };
    assert_eq!(call(with(0, 0xFF)), None);
    assert_eq!(call(with(26, 0xFF)), None);
    assert_eq!(call(vec![0; 100_000]), None);
    // A state that cannot be read is dropped alone.
    let servant = call(with(good.len() - 1, b'=')).unwrap();
    assert_eq!(servant.state().as_str(), "");
    assert!(call(good.clone()).is_some());
    client.shutdown(true).unwrap();
    host.end();
}

#[test]
fn an_orb_without_traces_serves_requests_with_them() {
    let host = Host::new(|builder| builder, nothing());
    let client = traced_client();
    let probe = reference_in(&client, &host.probe);
    let root = begun();
    let guard = CurrentTrace::enter(root.clone());
    for _ in 0..150 {
        probe.ping().unwrap();
        assert_eq!((host.wire.take(), host.served.recv().unwrap()), (vec![Some(root.to_bytes())], None));
    }
    drop(guard);
    client.shutdown(true).unwrap();
    host.end();
}
