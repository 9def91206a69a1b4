//! Service contexts that programs add to requests and read from them, on the fast path and beside it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ironorb::dynamic::{OperationDescription, Request};
use ironorb::interceptor::{
    ClientContext, ClientInterceptor, ContextData, OutgoingCall, RequestFacts, ServerContext,
    ServerInterceptor, Slot,
};
use ironorb::{
    Orb, OrbBuilder, ServerConcurrency, SyncScope, SystemException, SystemExceptionKind, TypedRef,
};
use ironorb_tests::bulk::{Everything, Pixel, Sample, Store, StoreRef};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually};

/// A service context id of the tests.
const CONTEXT: u32 = 0x494F_0045;

/// Adds the operation's name and a number as a context, to requests of operations with other names than `echo`.
#[derive(Default)]
struct Names(AtomicUsize);

impl ClientContext for Names {
    fn id(&self) -> u32 {
        CONTEXT
    }

    fn write(&self, call: &OutgoingCall<'_>, data: &mut ContextData<'_>) -> bool {
        data.put(call.operation().as_bytes());
        data.put(if call.response_expected() { b"?" } else { b"!" });
        self.0.fetch_add(1, Ordering::SeqCst);
        call.operation() != "echo"
    }
}

/// Puts what has come into a slot, and counts.
struct Reads {
    id: u32,
    slot: Slot<Option<Vec<u8>>>,
    served: AtomicUsize,
}

impl ServerContext for Reads {
    fn id(&self) -> u32 {
        self.id
    }

    fn serve(&self, _request: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        self.served.fetch_add(1, Ordering::SeqCst);
        self.slot.set(data.map(<[u8]>::to_vec));
        upcall();
        upcall(); // does nothing
        self.slot.take();
    }
}

/// What servants have found in the slot.
type Found = Arc<Mutex<Vec<Option<String>>>>;

fn note(found: &Found, slot: Slot<Option<Vec<u8>>>) {
    let data = slot.get().expect("the reader has set it");
    found.lock().unwrap().push((*data).clone().map(|data| String::from_utf8(data).unwrap()));
}

/// A servant that records what it finds in the slot.
struct Notes {
    found: Found,
    slot: Slot<Option<Vec<u8>>>,
}

#[rustfmt::skip]
impl Store for Notes {
    fn all(&self, _: u8, value: &Everything, _: f64) -> Result<Everything, SystemException> { Ok(value.clone()) }
    fn exchange(&self, data: &[u8], last: f64, _: u8) -> Result<(Vec<u8>, f64, Vec<u8>), SystemException> {
        Ok((data.to_vec(), last, data.to_vec()))
    }
    fn put(&self, _: u8, _: &[f64], _: &[u8]) -> Result<(), SystemException> {
        note(&self.found, self.slot);
        Ok(())
    }
    fn taken(&self) -> Result<(Vec<u8>, Vec<f64>), SystemException> { Ok((Vec::new(), Vec::new())) }
    fn length(&self, data: &[u8]) -> Result<u32, SystemException> {
        note(&self.found, self.slot);
        Ok(data.len() as u32)
    }
    fn mirror(&self, pixels: &[Pixel], _: u8, samples: &[Sample])
        -> Result<(Vec<Pixel>, Vec<Sample>), SystemException>
    {
        note(&self.found, self.slot);
        Ok((pixels.to_vec(), samples.to_vec()))
    }
}

fn listening() -> OrbBuilder {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap()
}

fn reference_in<R: TypedRef>(client: &Orb, served: &R) -> R {
    client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked()
}

struct World {
    server: Orb,
    client: Orb,
    names: Arc<Names>,
    reads: Arc<Reads>,
    found: Found,
    probe: ProbeRef,
    store: StoreRef,
}

impl World {
    fn new(server: OrbBuilder, client: OrbBuilder) -> World {
        let (names, found): (Arc<Names>, Found) = Default::default();
        let slot = Slot::allocate();
        let reads = Arc::new(Reads { id: CONTEXT, slot, served: AtomicUsize::new(0) });
        let server = server.server_context(reads.clone()).build().unwrap();
        let client = client.no_endpoint().client_context(names.clone()).build().unwrap();
        let seen = found.clone();
        let hooked = Hooked::new(move || {
            note(&seen, slot);
            Ok(())
        });
        let poa = server.root_poa();
        let served: ProbeRef = poa.activate(hooked).unwrap();
        let stored: StoreRef = poa.activate(Notes { found: found.clone(), slot }).unwrap();
        let (probe, store) = (reference_in(&client, &served), reference_in(&client, &stored));
        World { server, client, names, reads, found, probe, store }
    }

    fn found(&self) -> Vec<Option<String>> {
        std::mem::take(&mut self.found.lock().unwrap())
    }

    fn served(&self) -> usize {
        self.reads.served.swap(0, Ordering::SeqCst)
    }

    fn end(self) {
        self.client.shutdown(true).unwrap();
        self.server.shutdown(true).unwrap();
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn contexts_reach_the_servant_in_every_kind_of_call() {
    struct Passive;
    impl ClientInterceptor for Passive {}
    impl ServerInterceptor for Passive {}
    let concurrencies =
        [ServerConcurrency::ThreadPerConnection, ServerConcurrency::LeaderFollowers { threads: 2 }];
    for concurrency in concurrencies {
        for is_intercepted in [false, true] {
            let (mut server, mut client) = (listening().concurrency(concurrency), Orb::builder());
            if is_intercepted {
                (server, client) = (server.server_interceptor(Passive), client.client_interceptor(Passive));
            }
            let world = World::new(server, client);
            // The first calls are parsed, the later ones recognised.
            for _ in 0..200 {
                world.probe.ping().unwrap();
            }
            assert_eq!((world.found(), world.served()), (vec![some("ping?"); 200], 200));
            world.probe.ping_async().wait().unwrap();
            let mut request = Request::new(world.probe.object(), OperationDescription::new("ping"));
            request.invoke().unwrap();
            assert_eq!((world.found(), world.served()), (vec![some("ping?"); 2], 2));
            // This one is not wanted.
            world.probe.echo("text").unwrap();
            assert_eq!(world.served(), 1);
            for _ in 0..3 {
                world.store.put(1, &[1.0], &[2]).unwrap();
            }
            eventually("the oneways arrive", || world.found.lock().unwrap().len() == 3);
            assert_eq!(world.found(), vec![some("put!"); 3]);
            assert!(world.names.0.load(Ordering::SeqCst) >= 206);
            world.end();
        }
    }
}

/// Adds the number of the request as a context, in as many words as the number has units.
#[derive(Default)]
struct Counts(AtomicUsize);

impl Counts {
    fn text(number: usize) -> String {
        format!("{number} ").repeat(number % 10)
    }
}

impl ClientContext for Counts {
    fn id(&self) -> u32 {
        CONTEXT
    }

    fn write(&self, _: &OutgoingCall<'_>, data: &mut ContextData<'_>) -> bool {
        data.put(Counts::text(self.0.fetch_add(1, Ordering::SeqCst)).as_bytes());
        true
    }
}

/// Whether the request that this thread carries out was recognised by its bytes.
fn is_recognised() -> bool {
    #[cfg(debug_assertions)]
    return ironorb::testing::is_request_cached();
    #[cfg(not(debug_assertions))]
    panic!("only a build with debug assertions tells which requests are recognised: test without --release");
}

/// The bytes of the contexts differ in each request, and so does their length.
#[test]
fn requests_are_recognised_whatever_their_contexts_say() {
    struct Passive;
    impl ServerInterceptor for Passive {}
    const CALLS: usize = 300;
    for is_intercepted in [false, true] {
        let slot = Slot::allocate();
        let reads = Reads { id: CONTEXT, slot, served: AtomicUsize::new(0) };
        // One thread, which alone must learn to recognise the requests.
        let mut builder = listening().concurrency(ServerConcurrency::LeaderFollowers { threads: 1 });
        if is_intercepted {
            builder = builder.server_interceptor(Passive);
        }
        let server = builder.server_context(reads).build().unwrap();
        let client = Orb::builder().no_endpoint().client_context(Counts::default()).build().unwrap();
        let (found, recognised): (Found, Arc<Mutex<Vec<bool>>>) = Default::default();
        let (seen, known) = (found.clone(), recognised.clone());
        let hooked = Hooked::new(move || {
            note(&seen, slot);
            known.lock().unwrap().push(is_recognised());
            Ok(())
        });
        let served: ProbeRef = server.root_poa().activate(hooked).unwrap();
        let probe = reference_in(&client, &served);
        for _ in 0..CALLS {
            probe.ping().unwrap();
        }
        let expected: Vec<_> = (0..CALLS).map(|number| some(&Counts::text(number))).collect();
        assert_eq!(*found.lock().unwrap(), expected);
        let recognised = recognised.lock().unwrap();
        assert!(!recognised[0] && recognised[CALLS / 2..].iter().all(|is| *is), "{recognised:?}");
        client.shutdown(true).unwrap();
        server.shutdown(true).unwrap();
    }
}

#[test]
fn oneways_of_every_scope_and_batch_carry_contexts() {
    let world = World::new(listening(), Orb::builder().arguments(&mut batching()));
    for _ in 0..5 {
        world.store.put(1, &[], &[]).unwrap();
    }
    world.client.flush().unwrap();
    eventually("the batch arrives", || world.found.lock().unwrap().len() == 5);
    assert_eq!(world.found(), vec![some("put!"); 5]);
    for scope in [SyncScope::None, SyncScope::WithServer, SyncScope::WithTarget] {
        let policies = ironorb::InvocationPolicies { sync_scope: Some(scope), ..Default::default() };
        let store: StoreRef = world.store.object().with_policies(policies).narrow_unchecked();
        store.put(1, &[], &[]).unwrap();
        world.client.flush().unwrap();
        eventually("the oneway arrives", || world.found.lock().unwrap().len() == 1);
        let expected = if scope == SyncScope::WithTarget { "put?" } else { "put!" };
        assert_eq!(world.found(), [some(expected)]);
    }
    world.end();
}

fn batching() -> Vec<String> {
    vec!["-ORBonewayBatching=64KiB,100,60s".to_owned()]
}

/// The reader sees each request once, although its arguments are read more than once.
#[test]
fn large_arguments_are_read_within_what_the_context_says() {
    let world = World::new(listening(), Orb::builder());
    let pixels: Vec<Pixel> = (0..3000).map(|i| Pixel { x: i as f32, y: 0.5, tint: i }).collect();
    let samples: Vec<Sample> =
        (0..3000).map(|i| Sample { channel: i as i16, quality: 1, value: f64::from(i) }).collect();
    for _ in 0..150 {
        let (same, again) = world.store.mirror(&pixels, 7, &samples).unwrap();
        assert!(same == pixels && again == samples);
    }
    assert_eq!(world.store.length(&vec![7; 1_000_000]).unwrap(), 1_000_000);
    let mut expected = vec![some("mirror?"); 150];
    expected.push(some("length?"));
    assert_eq!((world.found(), world.served()), (expected, 151));
    world.end();
}

#[test]
fn readers_enclose_one_another() {
    /// Notes its name around the upcall; one of them does not make the upcall itself.
    struct Around(&'static str, Arc<Mutex<Vec<&'static str>>>);
    impl ServerContext for Around {
        fn id(&self) -> u32 {
            CONTEXT
        }
        fn serve(&self, request: &RequestFacts<'_>, _: Option<&[u8]>, upcall: &mut dyn FnMut()) {
            assert!(matches!(request.operation(), b"ping" | b"ticks"));
            self.1.lock().unwrap().push(self.0);
            if self.0 != "lazy" {
                upcall();
            }
            self.1.lock().unwrap().push(self.0);
        }
    }
    let log: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let builder = ["outer", "lazy", "inner"]
        .into_iter()
        .fold(listening(), |builder, name| builder.server_context(Around(name, log.clone())));
    let server = builder.concurrency(ServerConcurrency::LeaderFollowers { threads: 1 }).build().unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let seen = log.clone();
    let hooked = Hooked::new(move || {
        seen.lock().unwrap().push("servant");
        Ok(())
    });
    let served: ProbeRef = server.root_poa().activate(hooked).unwrap();
    let probe = reference_in(&client, &served);
    for _ in 0..150 {
        probe.ping().unwrap();
        // The answer comes while the readers still end.
        eventually("the readers end", || log.lock().unwrap().len() == 7);
        let order = std::mem::take(&mut *log.lock().unwrap());
        assert_eq!(order, ["outer", "lazy", "lazy", "inner", "servant", "inner", "outer"]);
    }
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

#[test]
fn a_reader_that_panics_becomes_unknown() {
    struct Panics;
    impl ServerContext for Panics {
        fn id(&self) -> u32 {
            CONTEXT
        }
        fn serve(&self, request: &RequestFacts<'_>, _: Option<&[u8]>, upcall: &mut dyn FnMut()) {
            assert!(request.operation() != b"_get_ticks", "as asked");
            upcall();
            assert!(request.operation() != b"add", "as asked");
        }
    }
    let server = listening().server_context(Panics).build().unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let served: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let probe = reference_in(&client, &served);
    for _ in 0..150 {
        assert_eq!(probe.ticks().unwrap_err().kind, SystemExceptionKind::Unknown);
        assert_eq!(probe.add(2, 3).unwrap(), 5); // it was answered before
        probe.ping().unwrap();
    }
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}
