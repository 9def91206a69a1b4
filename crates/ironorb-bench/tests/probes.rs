//! The counts of the ORB's probes for calls: the exact number for each stage, on either side.
//!
//! A build without the feature `probes` counts nothing, and the test checks that. Times are compared only
//! with other times of the same thread.

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use ironorb::dynamic::{
    self, DynamicServant, InterfaceDescription, OperationDescription, ParameterMode, Request,
};
use ironorb::poa::ObjectId;
use ironorb::probe::{self, Snapshot, Stage};
use ironorb::{Any, Orb, Replied, ServerConcurrency, SystemException, TypeDef, Typed, TypedRef};

mod idl {
    ironorb::include_idl!("echo");
}

use idl::bench::{BinStruct, Echo, EchoAsync, EchoRef};

/// The expected count of each stage per call.
type Expected<'e> = &'e [(Stage, u64)];

#[test]
fn probes_see_a_static_call_pass_each_stage_as_often_as_it_should() {
    let (seen, _orbs, echo) = connected();
    let counted = count(&seen, || echo.nothing().unwrap());
    check(
        &counted.client,
        &[
            (Stage::Call, 1),
            (Stage::Marshal, 1),
            (Stage::Write, 1),
            (Stage::Wait, 1),
            (Stage::Read, 1),
            (Stage::Probes, 2),
            (Stage::Frame, 1),
            (Stage::Demarshal, 1),
        ],
    );
    check(
        &counted.server,
        &[
            (Stage::Wait, 1),
            (Stage::Read, 1),
            (Stage::Probes, 2),
            // One pass looks for a message, and one reads the header of the message found.
            (Stage::Frame, 2),
            (Stage::Serve, 1),
            (Stage::ObjectLookup, 1),
            (Stage::OperationLookup, 1),
            (Stage::Demarshal, 1),
            (Stage::Upcall, 1),
            (Stage::Marshal, 1),
            (Stage::Write, 1),
        ],
    );
}

#[test]
fn probes_see_asynchronous_calls_begin_and_wait() {
    let (seen, _orbs, echo) = connected();
    let counted = count(&seen, || echo.nothing_async().wait().unwrap());
    let enabled = u64::from(probe::ENABLED) * CALLS;
    assert_eq!(stage(&counted.client, Stage::Call), 2 * enabled, "one to begin, one to wait");
    assert_eq!(stage(&counted.client, Stage::Marshal), enabled);
    assert_eq!(stage(&counted.client, Stage::Demarshal), enabled);
    assert_eq!(stage(&counted.server, Stage::Serve), enabled);
}

#[test]
fn probes_see_bulk_data_being_copied() {
    let (seen, _orbs, echo) = connected();
    let structs = vec![BinStruct { s: 1, c: b'c', l: 2, o: 3, d: 4.5 }; 64];
    let counted = count(&seen, || echo.take_structs(&structs).unwrap());
    assert_eq!(stage(&counted.server, Stage::Allocate), u64::from(probe::ENABLED) * CALLS);
    let counted = count(&seen, || drop(echo.take_doubles(&[1.5; 1000]).unwrap()));
    assert!(stage(&counted.client, Stage::Copy) >= u64::from(probe::ENABLED) * CALLS);
}

#[test]
fn probes_see_the_stages_of_dynamic_calls() {
    let describe = || {
        OperationDescription::new("take")
            .parameter("values", ParameterMode::In, <[u8] as Typed>::TYPE)
            .returns(&TypeDef::Long)
    };
    let seen: Arc<Seen> = Arc::default();
    let (_server, url) = serve(|orb| {
        let interface = InterfaceDescription::new("IDL:Taker:1.0", "Taker").operation(describe());
        let taker = Arc::new(Taker { interface: Arc::new(interface), seen: seen.clone() });
        let poa = orb.root_poa();
        let id = poa.activate_object(dynamic::servant(taker)).unwrap();
        poa.id_to_reference(&id).unwrap().to_ior_string()
    });
    let client = Orb::builder().no_endpoint().build().unwrap();
    let target = client.string_to_object(&url).unwrap();
    let operation = Arc::new(describe());
    let data = vec![7u8; 128];
    let counted = count(&seen, || {
        let mut request = Request::new(&target, operation.clone());
        request.borrow(0, &data).unwrap();
        assert_eq!(request.invoke().unwrap().result_as::<i32>().unwrap(), 128);
    });
    assert_eq!(stage(&counted.client, Stage::Populate), u64::from(probe::ENABLED) * 2 * CALLS);
    // The argument's type and the result's type.
    assert_eq!(stage(&counted.client, Stage::TypeCode), u64::from(probe::ENABLED) * 2 * CALLS);
    for (of_server, a_call) in [
        (Stage::OperationLookup, 1),
        (Stage::Upcall, 1),
        // Into an `any`, and out of it.
        (Stage::Demarshal, 2),
        // The extracted value, and the answered one.
        (Stage::TypeCode, 2),
    ] {
        let expected = u64::from(probe::ENABLED) * a_call * CALLS;
        assert_eq!(stage(&counted.server, of_server), expected, "{of_server:?}");
    }
}

const CALLS: u64 = 50;

/// The counts of calls on their two threads.
struct Counted {
    client: Snapshot,
    server: Snapshot,
}

/// Makes [`CALLS`] calls. The server counts from within the call before them to within the last one.
fn count(seen: &Seen, call: impl Fn()) -> Counted {
    loop {
        call(); // the first one connects
        call();
        let (server_before, client_before) = (seen.last(), probe::thread_snapshot());
        (0..CALLS).for_each(|_| call());
        let (client_after, server_after) = (probe::thread_snapshot(), seen.last());
        // A server in which a request waits for long hands it to another thread.
        if (server_before.threads, server_before.thread) != (server_after.threads, server_after.thread) {
            continue;
        }
        let client = client_after.since(&client_before);
        let server = server_after.counted.since(&server_before.counted);
        for side in [&client, &server] {
            assert!(side.accounted() <= side.elapsed(), "{side:?}");
        }
        assert!(client.stages().all(|(_, times)| times.self_time <= times.total_time), "{client:?}");
        return Counted { client, server };
    }
}

fn check(snapshot: &Snapshot, expected: Expected<'_>) {
    for stage in Stage::ALL {
        let a_call = expected.iter().find(|(other, _)| *other == stage).map_or(0, |(_, count)| *count);
        let a_call = if probe::ENABLED { a_call } else { 0 };
        assert_eq!(snapshot.stage(stage).count, a_call * CALLS, "{stage:?} in {snapshot:?}");
    }
}

fn stage(snapshot: &Snapshot, stage: Stage) -> u64 {
    snapshot.stage(stage).count
}

/// The counts of the serving thread at its last upcall.
#[derive(Default)]
struct Seen(Mutex<Last>);

#[derive(Default, Clone)]
struct Last {
    counted: Snapshot,
    thread: Option<ThreadId>,
    /// How often the thread differed from the one before.
    threads: usize,
}

impl Seen {
    fn note(&self) {
        let mut last = self.0.lock().unwrap();
        let thread = Some(std::thread::current().id());
        last.threads += usize::from(last.thread != thread);
        (last.counted, last.thread) = (probe::thread_snapshot(), thread);
    }

    fn last(&self) -> Last {
        self.0.lock().unwrap().clone()
    }
}

/// A watched object in a server of its own, as a client sees it.
fn connected() -> (Arc<Seen>, [Orb; 2], EchoRef) {
    let seen: Arc<Seen> = Arc::default();
    let (server, url) = serve(|orb| {
        let served: EchoRef = orb.root_poa().activate(Watched(Arc::clone(&seen))).unwrap();
        served.object().to_ior_string()
    });
    let client = Orb::builder().no_endpoint().build().unwrap();
    let echo = client.string_to_object(&url).unwrap().narrow_unchecked();
    (seen, [server, client], echo)
}

fn serve(activate: impl FnOnce(&Orb) -> String) -> (Orb, String) {
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    // Probes count per thread. One thread must serve a connection all the time, however long its pauses.
    let orb = builder.concurrency(ServerConcurrency::ThreadPerConnection).build().unwrap();
    let url = activate(&orb);
    (orb, url)
}

/// Records the counts of its thread.
struct Watched(Arc<Seen>);

impl Echo for Watched {
    fn nothing(&self) -> Result<(), SystemException> {
        self.0.note();
        Ok(())
    }

    fn take_structs(&self, _: &[BinStruct]) -> Result<(), SystemException> {
        self.0.note();
        Ok(())
    }

    fn take_doubles(&self, values: &[f64]) -> Result<Vec<f64>, SystemException> {
        self.0.note();
        Ok(values.to_vec())
    }
}

/// Returns the number of octets in its argument.
struct Taker {
    interface: Arc<InterfaceDescription>,
    seen: Arc<Seen>,
}

impl DynamicServant for Taker {
    fn interface(&self, _: &ObjectId) -> Option<Arc<InterfaceDescription>> {
        Some(self.interface.clone())
    }

    fn invoke(&self, mut request: dynamic::ServerRequest<'_>) -> Replied {
        self.seen.note();
        let arguments = request.arguments().unwrap();
        let octets: Vec<u8> = arguments[0].extract().unwrap();
        request.reply(Some(&Any::new(&(octets.len() as i32)).unwrap()), &[])
    }
}
