//! Caching proxies between ORBs.

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use ironorb::cache::{Cell, CellRef, ReadOptions, Seen, Source};
use ironorb::poa::{IdAssignment, PoaPolicies};
use ironorb::{
    CacheLimit, Deferred, Orb, OrbConfig, ServerConcurrency, SystemException, SystemExceptionKind, TypedRef,
    warm_cached, watch_cached,
};
use ironorb_tests::cached::{
    Address, Meter, MeterAsync, MeterRef, MeterState, Person, PersonRef, Tariff, TariffRef,
};
use ironorb_tests::{Counting, Living, Pricing};

fn server() -> Orb {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap()
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn elsewhere<R: TypedRef>(client: &Orb, local: &R) -> R {
    client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked()
}

/// Any age will do, as far as the client's own writes are in it.
const ANY: ReadOptions = ReadOptions::new().lag(Duration::from_secs(1_000_000));

/// No older than the read.
const NEW: ReadOptions = ReadOptions::new().lag(Duration::ZERO);

/// A meter in a server, and two clients that hold its state.
struct Site {
    server: Orb,
    cell: Cell<MeterState>,
    local: MeterRef,
    meter: MeterRef,
    other: MeterRef,
}

impl Site {
    fn new() -> Site {
        let (server, servant) = (server(), Counting::default());
        let cell = servant.cell.clone();
        let local: MeterRef = server.root_poa().activate(servant).unwrap();
        let [meter, other] = [client(), client()].map(|client| elsewhere(&client, &local));
        [&meter, &other].into_iter().for_each(hold);
        Site { server, cell, local, meter, other }
    }
}

/// Reads until the client holds the state: the first read opens a session, and the second fills the place.
fn hold(meter: &MeterRef) {
    let sources: Vec<_> = (0..3).map(|_| meter.value_with(&ANY).unwrap().source).collect();
    assert_eq!(sources, [Source::Remote, Source::Remote, Source::Cache]);
}

#[test]
fn a_value_is_read_here_once_it_has_been_filled() {
    let site = Site::new();
    let Site { meter, .. } = &site;
    let seen = meter.factor_with(&ANY).unwrap();
    assert_eq!((seen.value, seen.source, seen.version.is_some()), (1.0, Source::Cache, true));
    assert_eq!((meter.value().unwrap(), meter.factor().unwrap()), (0, 1.0));
    assert_eq!(meter.place().unwrap(), "cellar");
    assert_eq!(meter.value_with(&ANY.remote()).unwrap().source, Source::Remote);
    let whole = meter.cached_state(&ANY).unwrap();
    assert_eq!((whole.value, whole.source), (MeterState { value: 0, factor: 1.0 }, Source::Cache));
    assert_eq!(meter.value_async().wait().unwrap(), 0);
}

/// A read that must be new asks what has changed, and finds all that has been committed before.
#[test]
fn what_has_changed_is_told_when_a_read_asks() {
    let site = Site::new();
    let Site { cell, meter, other, .. } = &site;
    for value in 1..20 {
        cell.update(|mut state| state.set_value(value));
        assert_eq!(other.value_with(&ANY).unwrap().value, 0, "nobody has asked");
        let seen = meter.value_with(&NEW).unwrap();
        assert_eq!((seen.value, seen.source), (value, Source::Cache));
    }
    cell.update(|mut state| state.set_factor(2.5));
    assert_eq!(other.cached_state(&NEW).unwrap().value, MeterState { value: 19, factor: 2.5 });
}

/// The reply to a call tells where the server's log ends, so that the client's own writes are read, also those that a call to
/// one object makes to another.
#[test]
fn a_client_reads_its_own_writes() {
    let site = Site::new();
    let Site { server, cell, meter, .. } = &site;
    for value in 1..20 {
        meter.add(1).unwrap();
        assert_eq!(meter.value_with(&ANY).unwrap().value, value);
    }
    let servant = Counting { other: Some(cell.clone()), ..Counting::default() };
    let agent: MeterRef = server.root_poa().activate(servant).unwrap();
    let agent = same_client(meter, &agent);
    for value in 20..40 {
        agent.add_elsewhere(1).unwrap();
        assert_eq!(meter.value_with(&ANY).unwrap().value, value);
    }
    agent.add_elsewhere_async(1).wait().unwrap();
    assert_eq!(meter.value_with(&ANY).unwrap().value, 40);
    // A call that writes nothing costs no question.
    meter.place().unwrap();
    assert_eq!(meter.value_with(&ANY.held_only()).unwrap().value, 40);
}

/// The reference of another ORB, in the client of `meter`.
fn same_client<R: TypedRef>(meter: &MeterRef, other: &R) -> R {
    let client = meter.object().orb();
    client.string_to_object(&other.object().to_ior_string()).unwrap().narrow_unchecked()
}

#[test]
fn references_to_one_object_share_its_place() {
    let site = Site::new();
    let Site { meter, local, .. } = &site;
    let again: MeterRef = same_client(meter, local);
    assert_eq!(again.value_with(&HELD).unwrap().source, Source::Cache);
    let clone = meter.clone();
    assert_eq!(clone.value_with(&ANY.held_only()).unwrap().source, Source::Cache);
    let other: MeterRef = same_client(meter, &site.server.root_poa().activate(Counting::default()).unwrap());
    assert_eq!(other.value_with(&HELD).unwrap_err().kind, SystemExceptionKind::Transient);
}

/// An object that is no longer active is not read any more, as soon as its clients hear of it.
#[test]
fn a_deactivated_object_has_no_cached_state() {
    let site = Site::new();
    let Site { server, cell, local, meter, .. } = &site;
    let poa = server.root_poa();
    poa.deactivate(&poa.reference_to_id(local.object()).unwrap()).unwrap();
    assert_eq!(meter.value_with(&ANY).unwrap().value, 0, "nobody has asked");
    assert_eq!(meter.value_with(&NEW).unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    assert_eq!(meter.value_with(&ANY).unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    cell.update(|mut state| state.set_value(7));
}

/// A session lasts as long as its server. The next life of the server has nothing to do with it.
#[test]
fn a_new_life_of_the_server_is_noticed() {
    let policies = || PoaPolicies {
        lifespan: ironorb::poa::Lifespan::Persistent,
        id_assignment: IdAssignment::User,
        ..PoaPolicies::default()
    };
    let life = |port: u16, value: i32| {
        let endpoint = format!("iiop://127.0.0.1:{port}");
        let server = Orb::builder().endpoint(&endpoint).unwrap().server_id("meters").build().unwrap();
        let poa = server.root_poa().create_poa("meters", None, policies()).unwrap();
        let servant = Counting { cell: Cell::new(MeterState { value, factor: 1.0 }), other: None };
        let local: MeterRef = poa.activate_with_id("one", servant).unwrap();
        (server, local)
    };
    let (server, local) = life(0, 1);
    let port = server.published_addresses()[0].rsplit(':').next().unwrap().parse().unwrap();
    let meter = elsewhere(&client(), &local);
    hold(&meter);
    server.shutdown(true).unwrap();
    drop((server, local));
    let held = meter.value_with(&NEW.or_within(Duration::from_secs(1_000))).unwrap();
    assert_eq!(
        (held.value, held.source),
        (1, Source::Cache),
        "the server does not answer, and an older value does"
    );
    assert!(meter.value_with(&NEW).is_err());
    let (server, _local) = life(port, 2);
    assert_eq!(meter.value_with(&ANY).unwrap().value, 1, "any age");
    assert_eq!(meter.value_with(&NEW).unwrap().value, 2);
    assert_eq!(meter.value_with(&NEW).unwrap().value, 2);
    let seen = meter.value_with(&ANY).unwrap();
    assert_eq!((seen.value, seen.source), (2, Source::Cache), "it has a session with the new life");
    // The client's own write is in the new life, too.
    meter.add(1).unwrap();
    assert_eq!(meter.value_with(&ANY).unwrap().value, 3);
    drop(server);
}

#[test]
fn states_of_any_type_are_held() {
    let server = server();
    let local: PersonRef = server.root_poa().activate(Living::default()).unwrap();
    let person = elsewhere(&client(), &local);
    let sources: Vec<_> = (0..3).map(|_| person.name_with(&ANY).unwrap().source).collect();
    assert_eq!(sources, [Source::Remote, Source::Remote, Source::Cache]);
    let home = Address { street: "Hill".to_owned(), number: 7 };
    person.move_to(&home).unwrap();
    let seen = person.home_with(&ANY).unwrap();
    assert_eq!((&seen.value, seen.source), (&home, Source::Cache));
    person.set_name("Grace").unwrap();
    assert_eq!((person.name().unwrap(), person.home().unwrap()), ("Grace".to_owned(), home));
}

/// An object of a derived interface has a cell for each interface with cached attributes.
#[test]
fn a_derived_interface_has_its_own_state() {
    let server = server();
    let local: TariffRef = server.root_poa().activate(Pricing::default()).unwrap();
    let tariff = elsewhere(&client(), &local);
    let meter: MeterRef = tariff.clone().into();
    hold(&meter);
    assert_eq!([(); 3].map(|()| tariff.price_with(&ANY).unwrap().value), [7; 3]);
    tariff.set_price(8).unwrap();
    tariff.add(3).unwrap();
    assert_eq!((tariff.price_with(&ANY).unwrap().value, meter.value_with(&ANY).unwrap().value), (8, 3));
    assert_eq!(meter.value_with(&ANY).unwrap().source, Source::Cache);
}

/// In the object's own process, and for servants that answer later, the cell is read.
#[test]
fn an_object_in_this_process_is_read_from_its_cell() {
    let site = Site::new();
    let Site { local, cell, .. } = &site;
    cell.update(|mut state| state.set_value(5));
    assert_eq!(local.value().unwrap(), 5);
    let seen = local.value_with(&ANY).unwrap();
    assert_eq!((seen.value, seen.source), (5, Source::Collocated));
    let whole = local.cached_state(&ANY).unwrap();
    assert_eq!((whole.value.value, whole.source), (5, Source::Collocated));
}

/// A servant that answers later has a cell as any other: clients hold its state, and read their own writes, which are committed
/// after the upcall.
#[test]
fn a_servant_that_answers_later_has_a_cell() {
    let (server, servant) = (server(), Counting::default());
    let cell = servant.cell.clone();
    let local: MeterRef = server.root_poa().activate(Deferred(servant)).unwrap();
    let meter = elsewhere(&client(), &local);
    hold(&meter);
    for value in 1..20 {
        meter.add(1).unwrap();
        let seen = meter.value_with(&ANY).unwrap();
        assert_eq!((seen.value, seen.source), (value, Source::Cache));
    }
    meter.set_factor(2.5).unwrap();
    assert_eq!(meter.factor_with(&ANY).unwrap().value, 2.5);
    cell.update(|mut state| state.set_value(7));
    assert_eq!(meter.value_with(&ANY).unwrap().value, 19, "nobody has asked");
    assert_eq!(meter.value_with(&NEW).unwrap().value, 7);
    assert_eq!(meter.value_with(&ANY.remote()).unwrap().value, 7);
    assert_eq!((local.value().unwrap(), local.value_with(&ANY).unwrap().source), (7, Source::Collocated));
}

/// What a change has done before it panics stays, and clients are told.
#[test]
fn a_panic_in_a_change_ends_it() {
    let site = Site::new();
    let Site { cell, meter, .. } = &site;
    let panics = || {
        cell.update(|mut state| {
            state.set_value(9);
            panic!("on purpose");
        })
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    let seen = meter.value_with(&NEW).unwrap();
    assert_eq!((seen.value, seen.source), (9, Source::Cache));
    assert_eq!(cell.read(|state| state.value), 9);
}

/// A client whose session has been revoked holds nothing once it asks, and may begin another.
#[test]
fn a_revoked_session_is_over_when_its_client_asks() {
    let site = Site::new();
    let Site { server, cell, meter, .. } = &site;
    server.revoke_caches();
    cell.update(|mut state| state.set_value(3));
    assert_eq!(meter.value_with(&ANY).unwrap().value, 0, "the client has not asked");
    let seen = meter.value_with(&NEW).unwrap();
    assert_eq!((seen.value, seen.source), (3, Source::Remote));
    meter.value_with(&NEW).unwrap();
    assert_eq!(meter.value_with(&ANY).unwrap().source, Source::Cache);
}

/// Threads read while the state changes, and while their references come and go: members that change together are read
/// together, and no thread goes backwards.
#[test]
fn threads_read_one_version_at_a_time() {
    let site = Site::new();
    let Site { cell, meter, other, local, .. } = &site;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for value in 1..=2_000 {
                cell.update(|mut state| {
                    state.set_value(value);
                    state.set_factor(f64::from(value));
                });
            }
        });
        for (number, reference) in [meter, meter, other, other].into_iter().enumerate() {
            scope.spawn(move || {
                let options = ReadOptions::new().lag(Duration::from_micros(200));
                let mut newest = 1;
                while newest < 2_000 {
                    let again: MeterRef;
                    let reference = match number % 2 {
                        0 => reference,
                        _ => {
                            again = same_client(reference, local);
                            &again
                        }
                    };
                    let MeterState { value, factor } = reference.cached_state(&options).unwrap().value;
                    assert_eq!(f64::from(value.max(1)), factor);
                    assert!(value.max(1) >= newest, "{value} after {newest}");
                    newest = value.max(newest);
                }
            });
        }
    });
}

#[test]
fn who_watches_is_told_of_changes_and_of_errors_once() {
    let site = Site::new();
    let (told, tells) = std::sync::mpsc::channel();
    let options = ReadOptions::new().lag(Duration::from_millis(1));
    let tell = move |seen: Result<Seen<i32>, SystemException>| {
        let _gone = told.send(seen.map(|seen| seen.value).map_err(|e| e.kind));
    };
    let watching = watch_cached(&site.meter, options, MeterRef::value_with, tell).unwrap();
    assert_eq!(tells.recv().unwrap(), Ok(0));
    for value in [5, 7] {
        site.cell.update(|mut state| state.set_value(value));
        assert_eq!(tells.recv().unwrap(), Ok(value));
    }
    site.cell.update(|mut state| state.set_value(7));
    site.server.shutdown(true).unwrap();
    assert!(tells.recv().unwrap().is_err(), "what has not changed is not told again");
    drop(watching);
    assert!(tells.recv().is_err(), "the watch has ended, and told one error");
}

/// What is no number is not equal to itself, and has not changed all the same.
#[test]
fn who_watches_is_told_once_of_what_is_no_number() {
    let site = Site::new();
    let (told, tells) = std::sync::mpsc::channel();
    let tell = move |seen: Result<Seen<f64>, SystemException>| told.send(seen.unwrap().value).unwrap_or(());
    let watching = watch_cached(&site.meter, NEW, MeterRef::factor_with, tell).unwrap();
    assert_eq!(tells.recv().unwrap(), 1.0);
    let client = site.meter.object().orb();
    let probes = || client.status().total_where("cache_probes_total", "side", "client");
    site.cell.update(|mut state| state.set_factor(f64::NAN));
    assert!(tells.recv().unwrap().is_nan());
    let before = probes();
    while probes() < before + 3 {
        std::thread::yield_now();
    }
    site.cell.update(|mut state| state.set_factor(2.0));
    assert_eq!(tells.recv().unwrap(), 2.0);
    drop(watching);
}

#[test]
fn what_a_client_holds_is_bounded_by_entries_and_by_bytes() {
    let bounds: [fn(&mut OrbConfig); 2] = [|it| it.cache_entries_max = 1, |it| it.cache_bytes_max = Some(1)];
    for bound in bounds {
        let server = server();
        let mut builder = Orb::builder().no_endpoint();
        bound(builder.config());
        let client = builder.build().unwrap();
        let [first, second] = [(); 2].map(|()| {
            let local: MeterRef = server.root_poa().activate(Counting::default()).unwrap();
            elsewhere(&client, &local)
        });
        hold(&first);
        let read = |meter: &MeterRef| meter.value_with(&ANY).unwrap().source;
        assert_eq!((read(&second), read(&second)), (Source::Remote, Source::Cache));
        assert_eq!(read(&first), Source::Remote, "the place has been taken");
    }
}

/// A servant that once waits before it shows its cell: it has been asked, and it may.
struct Slow {
    shows: Counting,
    waits: Arc<Mutex<Option<[Arc<Barrier>; 2]>>>,
}

impl Meter for Slow {
    fn cell(&self) -> CellRef<'_, MeterState> {
        let waits = self.waits.lock().unwrap().take();
        for barrier in waits.into_iter().flatten() {
            barrier.wait();
        }
        Meter::cell(&self.shows)
    }

    fn set_factor(&self, _: f64) -> Result<(), SystemException> {
        unreachable!()
    }

    fn place(&self) -> Result<String, SystemException> {
        unreachable!()
    }

    fn add(&self, _: i32) -> Result<(), SystemException> {
        unreachable!()
    }

    fn add_later(&self, _: i32) -> Result<(), SystemException> {
        unreachable!()
    }

    fn add_elsewhere(&self, _: i32) -> Result<(), SystemException> {
        unreachable!()
    }
}

/// The reply to a write may be received by a thread that waits for an answer to its cache.
#[test]
fn a_client_reads_its_own_writes_whoever_receives_the_replies() {
    let concurrency = ServerConcurrency::LeaderFollowers { threads: 4 };
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    let server = builder.concurrency(concurrency).build().unwrap();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connections_per_endpoint_max = 1;
    let client = builder.build().unwrap();
    let meter: MeterRef = elsewhere(&client, &server.root_poa().activate(Counting::default()).unwrap());
    hold(&meter);
    let waits = Arc::new(Mutex::new(None));
    let slow = Slow { shows: Counting::default(), waits: waits.clone() };
    let slow: MeterRef = elsewhere(&client, &server.root_poa().activate(slow).unwrap());
    let [asked, may_show] = [(); 2].map(|()| Arc::new(Barrier::new(2)));
    *waits.lock().unwrap() = Some([asked.clone(), may_show.clone()]);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| slow.value_with(&ANY).unwrap().value);
        asked.wait();
        let added = meter.add_async(1);
        // Whoever waits for it may receive it, too.
        while !added.is_ready() {
            std::thread::yield_now();
        }
        let seen = meter.value_with(&ANY).unwrap();
        may_show.wait();
        assert_eq!(seen.value, 1);
        assert_eq!(reading.join().unwrap(), 0);
    });
}

/// What has changed comes in parts of the client's size, which double, and a read asks until there is nothing left.
#[test]
fn a_long_answer_comes_in_parts() {
    let server = server();
    let mut builder = Orb::builder().no_endpoint().cache_update_bytes(100);
    builder.config().cache_entries_max = 10;
    let client = builder.build().unwrap();
    let (cells, meters) = meters(&server, &client);
    hold_all(&meters);
    cells.iter().for_each(|cell| cell.update(|mut state| state.set_value(7)));
    let probes = || server.status().total_where("cache_probes_total", "side", "server");
    let before = probes();
    assert_eq!(meters[9].value_with(&NEW).unwrap().value, 7);
    // A unit has 28 octets and a state of 17: two come in the first part, four in the second, and the rest.
    assert_eq!(probes() - before, 3);
    for meter in &meters {
        let seen = meter.value_with(&ANY.held_only()).unwrap();
        assert_eq!((seen.value, seen.source), (7, Source::Cache));
    }
}

/// Ten meters of a server, and their references in a client.
fn meters(server: &Orb, client: &Orb) -> (Vec<Cell<MeterState>>, Vec<MeterRef>) {
    let meter = |_| {
        let servant = Counting::default();
        let cell = servant.cell.clone();
        let local: MeterRef = server.root_poa().activate(servant).unwrap();
        (cell, elsewhere(client, &local))
    };
    (0..10).map(meter).unzip()
}

/// Reads each until the client holds it, whether it has a session or not.
fn hold_all(meters: &[MeterRef]) {
    for meter in meters {
        while meter.value_with(&ANY).unwrap().source == Source::Remote {}
    }
}

const HELD: ReadOptions = ANY.held_only();

/// A warm list is held before it is read and without its references, and makes room for nothing.
#[test]
fn a_warm_list_is_held() {
    let (server, mut builder) = (server(), Orb::builder().no_endpoint());
    builder.config().cache_entries_max = 6;
    let client = builder.build().unwrap();
    let (cells, meters) = meters(&server, &client);
    let local: MeterRef = server.root_poa().activate(Counting::default()).unwrap();
    let warm = warm_cached(meters[..5].iter().cloned().chain([local])).unwrap();
    assert_eq!((warm.len(), warm.held()), (5, 5), "one of them is in this process");
    let iors: Vec<_> = meters.iter().map(|meter| meter.object().to_ior_string()).collect();
    drop(meters);
    let meters: Vec<MeterRef> =
        iors.iter().map(|ior| client.string_to_object(ior).unwrap().narrow_unchecked()).collect();
    assert!(meters[..5].iter().all(|meter| meter.value_with(&HELD).is_ok()));
    // The others take turns in the place that is left.
    hold_all(&meters[5..]);
    assert_eq!(warm.held(), 5);
    assert!(meters[5].value_with(&HELD).is_err());
    assert_eq!(warm_cached(meters[4..7].iter().cloned()).unwrap_err().kind, SystemExceptionKind::ImpLimit);
    assert!(warm_cached(meters[4..6].iter().cloned()).is_ok(), "what was refused has been let go");
    // One question renews them all.
    cells.iter().for_each(|cell| cell.update(|mut state| state.set_value(7)));
    assert_eq!(meters[0].value_with(&NEW).unwrap().value, 7);
    assert_eq!(meters[4].value_with(&HELD).unwrap().value, 7);
    // A read that finds one of them gone fills the others, too.
    server.revoke_caches();
    assert_eq!(meters[0].value_with(&NEW).unwrap().value, 7);
    assert_eq!(warm.held(), 0, "the server does not know the session");
    (0..2).for_each(|_| assert_eq!(meters[0].value_with(&ANY).unwrap().value, 7));
    assert_eq!(warm.held(), 5);
    drop(warm);
    hold_all(&meters[5..]);
    assert!(meters[..4].iter().all(|meter| meter.value_with(&HELD).is_err()));
}

/// The limits of an ORB are those of all servers together, and an interface may have its own.
#[test]
fn limits_are_those_of_all_servers() {
    let servers = [server(), server()];
    let mut builder = Orb::builder().no_endpoint();
    builder.config().cache_entries_max = 12;
    let limit = CacheLimit { interface: "IDL:cached/Meter:1.0".to_owned(), entries_max: 5, bytes_max: None };
    builder.config().cache_limits.push(limit);
    let client = builder.build().unwrap();
    let here = servers.each_ref().map(|server| meters(server, &client).1);
    let held = |meters: &[MeterRef]| meters.iter().filter(|meter| meter.value_with(&HELD).is_ok()).count();
    hold_all(&here[0]);
    assert_eq!(held(&here[0]), 5);
    hold_all(&here[1][..2]);
    assert_eq!((held(&here[0]), held(&here[1])), (3, 2), "the server that has the most makes room");
    assert!(here[0][9].value_with(&HELD).is_ok());
    let persons: Vec<PersonRef> = (0..10)
        .map(|_| elsewhere(&client, &servers[1].root_poa().activate(Living::default()).unwrap()))
        .collect();
    for person in &persons {
        while person.name_with(&ANY).unwrap().source == Source::Remote {}
    }
    let persons = persons.iter().filter(|person| person.name_with(&HELD).is_ok()).count();
    assert_eq!(persons + held(&here[0]) + held(&here[1]), 12);
    assert_eq!(held(&here[0]), 3);
}

/// How many questions what has changed came by themselves, and with calls.
fn questions(server: &Orb) -> [u64; 2] {
    let seen = server.status();
    ["cache_probes_total", "cache_probes_carried_total"].map(|name| seen.total_where(name, "side", "server"))
}

/// The reply to a write answers what a read behind it would ask, as long as reads follow.
#[test]
fn a_read_behind_a_write_asks_with_the_write() {
    let site = Site::new();
    let Site { server, meter, other, .. } = &site;
    type Add = fn(&MeterRef) -> Result<(), SystemException>;
    let adds: [Add; 2] = [|meter| meter.add(1), |meter| meter.add_async(1).wait()];
    for (round, add) in adds.into_iter().enumerate() {
        let before = questions(server);
        for write in 1..=340 {
            add(meter).unwrap();
            let seen = meter.value_with(&ANY).unwrap();
            assert_eq!((seen.value, seen.source), (340 * round as i32 + write, Source::Cache));
        }
        let [alone, carried] = questions(server);
        // One of seventeen writes carries none, and shows whether reads follow.
        assert_eq!([alone - before[0], carried - before[1]], [20, 320]);
    }
    // What comes with a reply is what an answer is: other clients' writes, and how fresh all is.
    meter.value_with(&NEW).unwrap();
    other.add(1).unwrap();
    meter.add(1).unwrap();
    let before = questions(server);
    assert_eq!(meter.value_with(&ANY).unwrap().value, 682);
    meter.place().unwrap();
    assert_eq!(meter.value_with(&ANY).unwrap().value, 682);
    assert_eq!(
        questions(server),
        [before[0], before[1] + 1],
        "a call that writes nothing renews what is held"
    );
    // Where no read follows, nothing is asked.
    (0..100).for_each(|_| meter.add(1).unwrap());
    let before = questions(server);
    (0..100).for_each(|_| meter.add(1).unwrap());
    assert_eq!(questions(server), before);
    assert_eq!(meter.value_with(&ANY).unwrap().value, 882);
    // A client may ask by messages of its own alone.
    let apart = Orb::builder().no_endpoint().cache_carried_probes(0).build().unwrap();
    let meter: MeterRef = elsewhere(&apart, &site.local);
    hold(&meter);
    let before = questions(server);
    for value in 883..893 {
        meter.add(1).unwrap();
        assert_eq!(meter.value_with(&ANY).unwrap().value, value);
    }
    assert_eq!(questions(server), [before[0] + 10, before[1]]);
}

/// An answer for which a reply has no room is asked for by a message of its own.
#[test]
fn replies_carry_no_long_answers() {
    let site = Site::new();
    let Site { server, meter, .. } = &site;
    let servant = Living::default();
    let cell = servant.cell.clone();
    let local: PersonRef = server.root_poa().activate(servant).unwrap();
    let person = same_client(meter, &local);
    (0..2).for_each(|_| drop(person.name_with(&ANY).unwrap()));
    for length in [10, 1_300, 2_000, 100_000] {
        // The next calls carry probes.
        meter.value_with(&NEW).unwrap();
        let before = questions(server);
        let name = "x".repeat(length);
        cell.update(|mut state| state.set_name(name.clone()));
        meter.add(1).unwrap();
        let seen = person.name_with(&ANY).unwrap();
        assert_eq!((seen.value, seen.source), (name, Source::Cache));
        let asked_alone = questions(server)[0] - before[0];
        assert_eq!(asked_alone > 0, length > 1_400, "{length}");
    }
}

/// Replies from within a change.
struct Hasty(Counting);

impl ironorb_tests::cached::DeferredMeter for Hasty {
    fn cell(&self) -> CellRef<'_, MeterState> {
        (&self.0.cell).into()
    }

    fn set_factor(&self, _: f64, reply: ironorb::Reply<(), SystemException>) {
        reply.send(Ok(()));
    }

    fn place(&self, reply: ironorb::Reply<String, SystemException>) {
        reply.send(Ok(String::new()));
    }

    fn add(&self, amount: i32, reply: ironorb::Reply<(), SystemException>) {
        // The first change is due when the reply is sent.
        self.0.cell.update(|mut state| *state.value_mut() += amount);
        self.0.cell.update(|mut state| {
            *state.value_mut() += amount;
            reply.send(Ok(()));
        });
    }

    fn add_later(&self, _: i32) {}

    fn add_elsewhere(&self, _: i32, reply: ironorb::Reply<(), SystemException>) {
        reply.send(Ok(()));
    }
}

/// A reply waits for no cell: its thread may have the lock.
#[test]
fn a_reply_from_within_a_change_carries_no_answer() {
    let (server, servant) = (server(), Hasty(Counting::default()));
    let meter: MeterRef = elsewhere(&client(), &server.root_poa().activate(Deferred(servant)).unwrap());
    hold(&meter);
    let [mut seen, before] = [questions(&server); 2];
    for add in 1..=20 {
        meter.add(1).unwrap();
        // The second change is committed behind the reply.
        while meter.value_with(&NEW).unwrap().value < 2 * add {}
        seen = questions(&server);
    }
    assert_eq!(seen[1], before[1], "nothing was carried");
}

/// The server of a session may have begun a new life when a call that would carry a probe of it leaves.
#[test]
fn no_probe_is_carried_to_a_new_life() {
    let life = |port: u16, value: i32| {
        let endpoint = format!("iiop://127.0.0.1:{port}");
        let server = Orb::builder().endpoint(&endpoint).unwrap().server_id("lives").build().unwrap();
        let policies = PoaPolicies {
            lifespan: ironorb::poa::Lifespan::Persistent,
            id_assignment: IdAssignment::User,
            ..PoaPolicies::default()
        };
        let poa = server.root_poa().create_poa("lives", None, policies).unwrap();
        let servant = Counting { cell: Cell::new(MeterState { value, factor: 1.0 }), other: None };
        let local: MeterRef = poa.activate_with_id("one", servant).unwrap();
        (server, local)
    };
    let (server, local) = life(0, 1);
    let port = server.published_addresses()[0].rsplit(':').next().unwrap().parse().unwrap();
    let meter = elsewhere(&client(), &local);
    hold(&meter);
    meter.value_with(&NEW).unwrap();
    meter.add(1).unwrap();
    assert_eq!(questions(&server)[1], 1);
    server.shutdown(true).unwrap();
    drop((server, local));
    let (server, _local) = life(port, 10);
    // The connection has ended, and the next one tells another life.
    while meter.add(1).is_err() {}
    assert_eq!(questions(&server), [0, 0]);
    assert_eq!(meter.value_with(&NEW).unwrap().value, 11);
}
