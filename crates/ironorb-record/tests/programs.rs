//! Programs that call each other over loopback, and what their recordings say.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::generated::{Call as ServerCall, Replied};
use ironorb::{ObjectRef, Orb, OrbBuilder, Reply, Servant, SystemException, TypedRef};
use ironorb_model::queueing;
use ironorb_model::record::{ArrivalsOf, Call, Outcome, Recording, ServedBy, WorkloadOptions, workload};
use ironorb_model::scenario::{self, Arrivals, Cycle};
use ironorb_record::Recorder;
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually};

fn listening() -> OrbBuilder {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap()
}

fn no_endpoint() -> OrbBuilder {
    Orb::builder().no_endpoint()
}

/// An ORB whose calls go to a file of its own in the folder.
fn recorded(folder: &Path, builder: OrbBuilder) -> Orb {
    Recorder::begin(folder).unwrap().record(builder).build().unwrap()
}

fn seen_by(orb: &Orb, object: &ObjectRef) -> ProbeRef {
    orb.string_to_object(&object.to_ior_string()).unwrap().narrow_unchecked()
}

fn end(orbs: impl IntoIterator<Item = Orb>) {
    for orb in orbs {
        orb.shutdown(true).unwrap();
    }
}

/// The recordings in a folder, once its programs have ended them.
fn recording(folder: &Path) -> Recording {
    let mut read = None;
    eventually("the recordings have ended", || {
        let recording = Recording::read_files([folder]).unwrap();
        let is_ended = recording.sections.iter().all(|section| section.is_ended);
        read = Some(recording);
        is_ended
    });
    let recording = read.unwrap();
    assert_eq!((&recording.notes[..], recording.dropped), (&[][..], 0));
    recording
}

fn name<'r>(recording: &'r Recording, call: &Call) -> &'r str {
    &recording.operations[call.operation].name
}

/// Operation, octets of request and reply, outcome.
fn shapes(recording: &Recording) -> Vec<(String, u64, u64, Outcome)> {
    let shape = |call: &Call| {
        (name(recording, call).to_owned(), call.request_octets, call.reply_octets, call.outcome.clone())
    };
    recording.calls.iter().map(shape).collect()
}

/// Calls of many kinds, one after the other: what each has as octets of request and reply.
fn all_kinds(probe: &ProbeRef) -> Vec<(String, u64, u64, Outcome)> {
    let mut expected = Vec::new();
    let mut expect =
        |name: &str, request, reply, outcome| expected.push((name.to_owned(), request, reply, outcome));
    let user = || Outcome::UserException("IDL:testing/Refused:1.0".to_owned());
    for _ in 0..3 {
        probe.ping().unwrap();
        expect("ping", 0, 0, Outcome::Results);
        probe.add(1, 2).unwrap();
        expect("add", 8, 4, Outcome::Results);
        probe.echo("four").unwrap();
        expect("echo", 9, 9, Outcome::Results);
        // So long that it is sent from where it is.
        probe.reflect(&vec![1; 300_000]).unwrap();
        expect("reflect", 300_004, 300_004, Outcome::Results);
        probe.set_label("a").unwrap();
        expect("_set_label", 6, 0, Outcome::Results);
        probe.label().unwrap();
        expect("_get_label", 0, 6, Outcome::Results);
        probe.tick().unwrap();
        expect("tick", 0, 0, Outcome::Oneway);
        probe.refuse("no").unwrap_err();
        // The id of 24 octets with its length and padding, and the text.
        expect("refuse", 7, 28 + 7, user());
        probe.raise_system(5).unwrap_err();
        let no_permission = "IDL:omg.org/CORBA/NO_PERMISSION:1.0";
        let id_octets = (4 + no_permission.len() as u64 + 1).next_multiple_of(4);
        expect("raise_system", 4, id_octets + 8, Outcome::SystemException(no_permission.to_owned()));
        ProbeAsync::add_async(probe, 1, 2).wait().unwrap();
        expect("add", 8, 4, Outcome::Results);
        ProbeAsync::refuse_async(probe, "no").wait().unwrap_err();
        expect("refuse", 7, 28 + 7, user());
    }
    expected
}

#[test]
fn both_sides_know_the_octets_of_every_kind_of_call() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let server = recorded(folders[0].path(), listening());
    let client = recorded(folders[1].path(), no_endpoint());
    let served: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let probe = seen_by(&client, served.object());
    let expected = all_kinds(&probe);
    drop((served, probe));
    end([client, server]);
    // Oneways may be carried out later than what follows them, or not be seen by the shut-down server.
    for folder in folders {
        let recording = recording(folder.path());
        let without_oneways = |mut shapes: Vec<(String, u64, u64, Outcome)>| {
            shapes.retain(|(name, ..)| name != "tick");
            shapes
        };
        assert_eq!(without_oneways(shapes(&recording)), without_oneways(expected.clone()));
        assert_eq!(shapes(&recording).iter().filter(|(name, ..)| name == "tick").count(), 3);
    }
}

/// A front end whose `ping` adds twice at a back end; its clients are two threads.
fn front_and_back(folder: &Path) {
    let back = recorded(folder, listening());
    let added: ProbeRef = back.root_poa().activate(Probing::default()).unwrap();
    let front = recorded(folder, listening());
    let back_end = seen_by(&front, added.object());
    let hook = move || {
        back_end.add(1, 2)?;
        back_end.add(3, 4)?;
        back_end.echo("a text").map(drop)
    };
    let pinged: ProbeRef = front.root_poa().activate(Hooked::new(hook)).unwrap();
    let client = recorded(folder, no_endpoint());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let probe = seen_by(&client, pinged.object());
                for _ in 0..20 {
                    probe.ping().unwrap();
                    probe.add(5, 6).unwrap();
                }
            });
        }
    });
    drop((added, pinged));
    end([client, front, back]);
}

#[test]
fn nested_calls_have_their_parents() {
    let folder = tempfile::tempdir().unwrap();
    front_and_back(folder.path());
    let recording = recording(folder.path());
    assert_eq!((recording.sections.len(), recording.calls.len()), (3, 2 * 20 * 5));
    let mut nested = 0;
    for call in &recording.calls {
        let (time, service) = (call.time.unwrap(), call.service.as_ref().unwrap());
        assert!(
            service.time <= time && service.begin >= call.begin && service.begin + service.time <= call.end()
        );
        assert!(service.processor.unwrap() <= service.time + Duration::from_millis(1));
        assert_eq!(call.server, ServedBy::Section(service.section));
        let Some(parent) = call.parent.map(|parent| &recording.calls[parent]) else { continue };
        nested += 1;
        assert_eq!(name(&recording, parent), "ping");
        let around = parent.service.as_ref().unwrap();
        assert!(call.begin >= around.begin && call.end() <= around.begin + around.time);
        // The upcall's thread made the call.
        let client = call.client.unwrap();
        assert_eq!((client.section, client.thread), (around.section, around.thread));
    }
    assert_eq!(nested, 2 * 20 * 3);
    let objects: std::collections::HashSet<u64> = recording.calls.iter().map(|call| call.object).collect();
    assert_eq!(objects.len(), 2);
}

#[test]
fn the_workload_of_known_programs_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    front_and_back(folder.path());
    let recording = recording(folder.path());
    let scenario = workload(&recording, &WorkloadOptions::default()).scenario;
    assert_eq!((scenario.hosts.len(), scenario.servers.len()), (1, 2));
    let of = |name: &str, nested: usize| {
        let operations = scenario.servers.iter().flat_map(|server| &server.operations);
        let found: Vec<_> = operations.filter(|it| it.name == name && it.calls.len() == nested).collect();
        assert!(!found.is_empty(), "{name}");
        found.into_iter().map(|it| (it.request_octets, it.reply_octets)).collect::<Vec<_>>()
    };
    assert_eq!((of("ping", 2), of("echo", 0)), (vec![(0, 0)], vec![(11, 11)]));
    assert_eq!(of("add", 0), [(8, 4), (8, 4)]); // of both servers
    // Two calls of `add` one after the other, then one of `echo`.
    let ping = scenario.servers.iter().flat_map(|it| &it.operations).find(|it| it.name == "ping").unwrap();
    assert_eq!(ping.calls.iter().map(|call| call.times).collect::<Vec<_>>(), [2, 1]);
    let begun: Vec<(&str, usize)> = (scenario.classes.iter())
        .map(|class| {
            let Arrivals::Trace(begins) = &class.arrivals else { panic!("no trace") };
            let Cycle::Calls(calls) = &class.mix[0].cycle else { panic!("a job") };
            let operation = &scenario.servers[calls[0].server].operations[calls[0].operation];
            (operation.name.as_str(), begins.len())
        })
        .collect();
    assert_eq!(begun.len(), 2);
    assert!(begun.contains(&("ping", 40)) && begun.contains(&("add", 40)), "{begun:?}");
    // The queueing level makes these calls, with a request and a reply each.
    let seen = queueing::run(&scenario, 1, Duration::ZERO).unwrap();
    assert_eq!((seen.calls, seen.messages), (200, 400));
    assert_eq!(scenario::read(&scenario::write(&scenario), "recorded.toml").unwrap(), [scenario]);
    let options = WorkloadOptions { arrivals: ArrivalsOf::Closed, ..WorkloadOptions::default() };
    let closed = workload(&recording, &options).scenario;
    let [class] = &closed.classes[..] else { panic!("{:?}", closed.classes) };
    assert!(matches!(class.arrivals, Arrivals::Closed { clients: 2, .. }));
    assert_eq!(class.mix.iter().map(|it| it.weight).collect::<Vec<_>>(), [40.0, 40.0]);
}

/// Keeps the replies of `add`.
struct Later(Arc<Mutex<Vec<Reply<i32, SystemException>>>>);

impl Servant for Later {
    fn repository_ids(&self) -> &[&'static str] {
        &[ProbeRef::REPOSITORY_ID]
    }

    fn dispatch(&self, call: ServerCall<'_>) -> Replied {
        call.deferred(
            |r| Ok((r.get::<i32>()?, r.get::<i32>()?)),
            |_, reply| self.0.lock().unwrap().push(reply),
            |w, sum| w.put(sum),
        )
    }
}

#[test]
fn answers_of_other_threads_are_recorded_and_requests_that_nobody_answers() {
    let folder = tempfile::tempdir().unwrap();
    let server = recorded(folder.path(), listening());
    let later = Arc::new(Mutex::new(Vec::new()));
    let poa = server.root_poa();
    let id = poa.activate_object(Arc::new(Later(later.clone()))).unwrap();
    let served = poa.id_to_reference(&id).unwrap();
    let client = no_endpoint().build().unwrap();
    let probe = seen_by(&client, &served);
    let answered = ProbeAsync::add_async(&probe, 1, 2);
    eventually("one has come", || later.lock().unwrap().len() == 1);
    let abandoned = ProbeAsync::add_async(&probe, 3, 4);
    eventually("both have come", || later.lock().unwrap().len() == 2);
    let mut replies = std::mem::take(&mut *later.lock().unwrap());
    let dropped = replies.pop();
    if let Some(reply) = replies.pop() {
        reply.send(Ok(3));
    }
    assert_eq!(answered.wait().unwrap(), 3);
    drop(dropped);
    abandoned.wait().unwrap_err();
    drop((served, poa, probe));
    end([client, server]);
    let recording = recording(folder.path());
    let [call, failed] = &recording.calls[..] else { panic!("{recording:?}") };
    assert_eq!((name(&recording, call), call.request_octets, call.reply_octets), ("add", 8, 4));
    assert_eq!((call.client, call.service.as_ref().unwrap().processor), (None, None));
    assert!(call.outcome == Outcome::Results && failed.outcome.is_exception());
}
