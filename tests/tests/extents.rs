//! Objects that are elements of an extent.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use ironorb::cache::{ReadOptions, Source};
use ironorb::poa::{Lifespan, ObjectId, PoaError};
use ironorb::{
    Call, CannotCreateExtent, Durability, Extent, ExtentConfig, ExtentError, ExtentRange, FileOptions,
    MinorCode, Orb, Replied, Servant, SystemException, SystemExceptionKind, TypedRef,
};
use ironorb_tests::command::run;
use ironorb_tests::extents::{
    Counter, CounterRef, DialRef, LampRef, Line as _, LineRef, LineState, SensorRef,
};
use ironorb_tests::{Counters, Dials, Lamps, Lines, Sensors, eventually};

const COUNTERS_IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/extents.idl");

fn server() -> Orb {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap()
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn elsewhere<R: TypedRef>(client: &Orb, local: &R) -> R {
    client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked()
}

/// The endpoint where a server listens.
fn endpoint_of<R: TypedRef>(reference: &R) -> String {
    let ior = reference.object().to_ior();
    let port = ior.iiop_profiles().next().unwrap().port();
    format!("iiop://127.0.0.1:{port}")
}

/// Counters that begin with their index.
fn counters(server: &Orb, count: u64, config: ExtentConfig) -> Extent<i64> {
    let extent = server.root_poa().create_extent("counters", count, config, |index| index as i64).unwrap();
    extent.serve::<CounterRef, _>(Counters(extent.clone())).unwrap();
    extent
}

#[track_caller]
fn is_gone<T: std::fmt::Debug>(result: Result<T, SystemException>) {
    let e = result.unwrap_err();
    assert_eq!((e.kind, e.minor), (SystemExceptionKind::ObjectNotExist, MinorCode::NO_SUCH_OBJECT));
}

#[test]
fn any_element_is_called_from_here_and_from_elsewhere() {
    let (server, client) = (server(), client());
    let extent = counters(&server, 1000, ExtentConfig::in_memory());
    for index in [0, 7, 999] {
        let local: CounterRef = extent.reference(index).unwrap();
        let remote = elsewhere(&client, &local);
        for (counter, added) in [(&local, 1), (&remote, 3)] {
            assert_eq!(counter.place().unwrap(), index);
            assert_eq!(counter.add(added).unwrap(), index as i64 + added.min(1) + 3 * (added / 3));
        }
        assert_eq!(extent.elements().read(index, |count| *count).unwrap(), index as i64 + 4);
        assert_eq!((local.value().unwrap(), remote.value().unwrap()), (index as i64 + 4, index as i64 + 4));
        assert_eq!(extent.index_of(local.object()).unwrap(), index);
    }
    assert_eq!(extent.reference::<CounterRef>(1000).unwrap_err(), PoaError::ForeignId);
    assert!(extent.current().is_err(), "no upcall is under way");
}

#[test]
fn a_client_computes_references_from_one() {
    let (server, client) = (server(), client());
    let extent = counters(&server, 500, ExtentConfig::in_memory());
    let one = elsewhere(&client, &extent.exact_reference::<CounterRef>(3).unwrap());
    let all = ExtentRange::of(&one).unwrap();
    assert_eq!(all.indices(), 0..500);
    let places: Vec<u64> = all.slice(490..500).unwrap().into_iter().map(|it| it.place().unwrap()).collect();
    assert_eq!(places, Vec::from_iter(490..500));
    assert_eq!(all.get(41).unwrap().value().unwrap(), 41);
    assert!(all.get(500).is_none() && all.slice(499..501).is_none());
    let part = all.slice(10..12).unwrap();
    assert!(part.get(9).is_none() && part.slice(9..11).is_none() && part.get(11).is_some());
    let here = extent.range::<CounterRef>().unwrap().unwrap();
    assert!(
        here.get(41).unwrap().object().is_equivalent(extent.reference::<CounterRef>(41).unwrap().object())
    );
    // References are independent values: what is computed can be handed on.
    let again = elsewhere(&server, &all.get(42).unwrap());
    assert_eq!(again.value().unwrap(), 42);
    let plain: CounterRef = server.root_poa().activate(Counters(extent)).unwrap();
    assert!(ExtentRange::of(&plain).is_none());
}

#[test]
fn an_element_is_destroyed_and_another_made_in_its_place() {
    let (server, client) = (server(), client());
    let extent = counters(&server, 10, ExtentConfig::in_memory());
    let plain = elsewhere(&client, &extent.reference::<CounterRef>(4).unwrap());
    let exact = elsewhere(&client, &extent.exact_reference::<CounterRef>(4).unwrap());
    exact.end().unwrap();
    is_gone(plain.value());
    is_gone(exact.value());
    assert_eq!(extent.exact_reference::<CounterRef>(4).unwrap_err(), PoaError::ObjectNotActive);
    let ids: Vec<ObjectId> = extent.poa().active_ids().collect();
    assert_eq!(ids.len(), 9);
    assert_eq!(ids[4], ObjectId::from(&5_u64.to_be_bytes()[..]));
    extent.elements().create(4, 70).unwrap();
    assert_eq!(plain.value().unwrap(), 70);
    is_gone(exact.value());
    let exact = elsewhere(&client, &extent.exact_reference::<CounterRef>(4).unwrap());
    assert_eq!(exact.add(1).unwrap(), 71);
}

#[test]
fn ids_that_name_no_element_are_refused() {
    let (server, client) = (server(), client());
    let extent = counters(&server, 10, ExtentConfig::in_memory());
    for id in [&b""[..], b"1", &10_u64.to_be_bytes(), &u64::MAX.to_be_bytes(), b"much too long an id"] {
        let object = extent.poa().create_reference_with_id(id, CounterRef::REPOSITORY_ID).unwrap();
        let counter: CounterRef = object.narrow_unchecked();
        is_gone(counter.value());
        is_gone(elsewhere(&client, &counter).value());
        assert!(elsewhere(&client, &counter).object().non_existent().unwrap());
    }
    let there: CounterRef = extent.reference(9).unwrap();
    assert!(!elsewhere(&client, &there).object().non_existent().unwrap());
}

#[test]
fn who_comes_back_to_its_element_does_not_wait_for_itself() {
    let (server, client) = (server(), client());
    let extent = counters(&server, 2, ExtentConfig::in_memory());
    let counter = elsewhere(&client, &extent.reference::<CounterRef>(1).unwrap());
    let e = counter.again().unwrap_err();
    assert_eq!(
        (e.kind, e.minor),
        (SystemExceptionKind::BadInvOrder, MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK)
    );
    assert_eq!(counter.value().unwrap(), 1, "the element is free again");
}

#[test]
fn clients_count_at_one_element_and_none_is_lost() {
    let server = server();
    let extent = counters(&server, 3, ExtentConfig::in_memory());
    thread::scope(|scope| {
        for _client in 0..4 {
            let local: CounterRef = extent.reference(2).unwrap();
            scope.spawn(move || {
                let counter = elsewhere(&client(), &local);
                (0..200).for_each(|_| assert!(counter.add(1).is_ok()));
            });
        }
    });
    assert_eq!(extent.elements().read(2, |count| *count).unwrap(), 802);
}

#[test]
fn a_file_outlives_its_server_and_so_do_references() {
    let folder = tempfile::tempdir().unwrap();
    for durability in [Durability::None, Durability::Process, Durability::Power] {
        let file = FileOptions::new(folder.path().join(format!("{durability:?}"))).durability(durability);
        let config = ExtentConfig::in_file(file);
        let first = server();
        let extent = counters(&first, 100, config.clone());
        let local: CounterRef = extent.reference(60).unwrap();
        let (endpoint, text) = (endpoint_of(&local), local.object().to_ior_string());
        let counter: CounterRef = client().string_to_object(&text).unwrap().narrow_unchecked();
        assert_eq!(counter.add(5).unwrap(), 65);
        elsewhere(&client(), &extent.reference::<CounterRef>(61).unwrap()).end().unwrap();
        first.shutdown(true).unwrap();
        drop((local, extent, first));
        let second = Orb::builder().endpoint(&endpoint).unwrap().build().unwrap();
        let _extent = counters(&second, 100, config);
        let client = client();
        let counter: CounterRef = client.string_to_object(&text).unwrap().narrow_unchecked();
        assert_eq!(counter.add(1).unwrap(), 66);
        is_gone(ExtentRange::of(&counter).unwrap().get(61).unwrap().value());
    }
}

#[test]
fn references_to_elements_in_memory_end_with_their_server_unless_they_are_to_stay() {
    for (lifespan, stays) in [(Lifespan::Transient, false), (Lifespan::Persistent, true)] {
        let config = ExtentConfig::in_memory().lifespan(lifespan);
        let first = server();
        let local: CounterRef = counters(&first, 5, config.clone()).reference(3).unwrap();
        let (endpoint, text) = (endpoint_of(&local), local.object().to_ior_string());
        first.shutdown(true).unwrap();
        let second = Orb::builder().endpoint(&endpoint).unwrap().build().unwrap();
        let _extent = counters(&second, 5, config);
        let client = client();
        let counter: CounterRef = client.string_to_object(&text).unwrap().narrow_unchecked();
        assert_eq!(counter.value().is_ok(), stays, "{lifespan:?}");
    }
}

#[test]
fn what_does_not_fit_is_an_error_at_creation() {
    let server = server();
    let root = server.root_poa();
    let create =
        |count| root.create_extent("large", count, ExtentConfig::in_memory(), |_| 0_i64).unwrap_err();
    for count in [1 << 40, (1 << 40) + 1, u64::MAX] {
        assert!(matches!(create(count), CannotCreateExtent::Elements(_)), "{count}");
    }
    let _kept = root.create_extent("large", 1, ExtentConfig::in_memory(), |_| 0_i64).unwrap();
    assert!(matches!(create(1), CannotCreateExtent::Adapter(PoaError::AdapterAlreadyExists)));
    let folder = tempfile::tempdir().unwrap();
    let file = ExtentConfig::in_file(FileOptions::new(folder.path().join("elements")));
    let _kept = root.create_extent("one", 1, file.clone(), |_| 0_i64).unwrap();
    let twice = root.create_extent("two", 1, file, |_| 0_i64).unwrap_err();
    assert!(matches!(twice, CannotCreateExtent::Elements(ExtentError::InUse { .. })));
}

/// A servant without a skeleton.
struct Untyped(Extent<i64>);

impl Servant for Untyped {
    fn repository_ids(&self) -> &[&'static str] {
        &["IDL:extents/Counter:1.0"]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        match call.operation() {
            b"_get_value" => match self.0.current().and_then(|element| element.read(|count| *count)) {
                Ok(count) => call.reply(|w| w.put(&count)),
                Err(e) => call.raise(&e),
            },
            _ => call.standard_operation(&[]),
        }
    }
}

#[test]
fn the_dynamic_skeleton_and_the_command_see_elements() {
    let server = server();
    let create = |name| {
        let config = ExtentConfig::in_memory();
        server.root_poa().create_extent(name, 100, config, |index| 2 * index as i64).unwrap()
    };
    let (typed, untyped) = (create("typed"), create("untyped"));
    typed.serve::<CounterRef, _>(Counters(typed.clone())).unwrap();
    untyped.serve_any(Arc::new(Untyped(untyped.clone()))).unwrap();
    for extent in [&typed, &untyped] {
        let ior = extent.reference::<CounterRef>(21).unwrap().object().to_ior_string();
        let said = run(["call", &ior, "value", "--idl", COUNTERS_IDL]).expect();
        assert!(said.contains("42"), "{said}");
    }
    let ior = typed.reference::<CounterRef>(21).unwrap().object().to_ior_string();
    run(["call", &ior, "add", "1", "--idl", COUNTERS_IDL]).expect();
    assert_eq!(typed.elements().read(21, |count| *count).unwrap(), 43);
}

/// Waits in an upcall until it is told to go on.
struct Waiting {
    extent: Extent<i64>,
    begun: Sender<()>,
    go_on: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Counter for Waiting {
    fn value(&self) -> Result<i64, SystemException> {
        self.begun.send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        self.extent.current()?.read(|count| *count)
    }

    fn place(&self) -> Result<u64, SystemException> {
        Ok(self.extent.current()?.index())
    }

    fn add(&self, _: i64) -> Result<i64, SystemException> {
        Ok(0)
    }

    fn again(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn end(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn the_destruction_of_an_extent_waits_for_its_requests() {
    let (server, client) = (server(), client());
    let extent =
        server.root_poa().create_extent("counters", 5, ExtentConfig::in_memory(), |_| 7_i64).unwrap();
    let ((begun, has_begun), (go, go_on)) = (channel(), channel());
    let waiting = Waiting { extent: extent.clone(), begun, go_on: go_on.into() };
    extent.serve::<CounterRef, _>(waiting).unwrap();
    let counter = elsewhere(&client, &extent.reference::<CounterRef>(1).unwrap());
    let call = {
        let counter = counter.clone();
        thread::spawn(move || counter.value())
    };
    has_begun.recv().unwrap();
    extent.poa().destroy(true, false).unwrap();
    assert!(counter.place().is_err(), "no further request is let in");
    let adapter = server.root_poa();
    assert!(adapter.create_extent("counters", 5, ExtentConfig::in_memory(), |_| 0_i64).is_err());
    go.send(()).unwrap();
    assert_eq!(call.join().unwrap().unwrap(), 7);
    eventually("the name is free", || {
        adapter.create_extent("counters", 5, ExtentConfig::in_memory(), |_| 0_i64).is_ok()
    });
}

/// A server of a hundred lines, and one of them with its client.
fn lines() -> (Orb, Extent<i32>, Orb, LineRef) {
    let (server, client) = (server(), client());
    let extent = server.root_poa().create_extent("lines", 100, ExtentConfig::in_memory(), |_| 5_i32).unwrap();
    extent.serve::<LineRef, _>(Lines(extent.cells().unwrap())).unwrap();
    let line = elsewhere(&client, &extent.reference::<LineRef>(7).unwrap());
    (server, extent, client, line)
}

/// No older than the read.
const NEW: ReadOptions = ReadOptions::new().lag(std::time::Duration::ZERO);

#[test]
fn clients_hold_the_cached_attributes_of_elements() {
    let (_server, extent, _client, line) = lines();
    let any = ReadOptions::new();
    let sources: Vec<_> = (0..3).map(|_| line.carrier_with(&any).unwrap().source).collect();
    assert_eq!(sources, [Source::Remote, Source::Remote, Source::Cache]);
    // Whoever changes the element, and several at once.
    extent.elements().update(7, |element| *element += 1_001).unwrap();
    let seen = line.cached_state(&NEW).unwrap();
    assert_eq!((seen.value, seen.source), (LineState { carrier: 6, is_busy: true }, Source::Cache));
    extent.elements().update_all(&[6, 7], |elements| elements.fill(9)).unwrap();
    assert_eq!(line.carrier_with(&NEW).unwrap().value, 9);
    // The client's own write is read at once, whatever the lag.
    line.move_to(11).unwrap();
    let seen = line.carrier_with(&any).unwrap();
    assert_eq!((seen.value, seen.source), (11, Source::Cache));
    // A client of another ORB calls the getter.
    let ior = extent.reference::<LineRef>(7).unwrap().object().to_ior_string();
    assert!(run(["call", &ior, "carrier", "--idl", COUNTERS_IDL]).expect().contains("11"));
    assert_eq!(extent.reference::<LineRef>(7).unwrap().carrier().unwrap(), 11, "here");
    assert!(matches!(extent.cells::<LineState>(), Err(PoaError::WrongPolicy(_))));
}

/// A read that must ask for an element asks for the next ones, too, and only those.
#[test]
fn reads_of_a_prefetching_range_ask_for_the_next_elements() {
    let (server, _extent, _client, line) = lines();
    (0..3).for_each(|_| assert_eq!(line.carrier().unwrap(), 5)); // there is a session
    let fills = || server.status().total_where("cache_fills_total", "side", "server");
    let before = fills();
    let lines = ExtentRange::of(&line).unwrap().slice(0..50).unwrap().prefetching(20);
    let held = ReadOptions::new().held_only();
    assert_eq!(lines.get(10).unwrap().carrier().unwrap(), 5);
    assert_eq!(fills() - before, 21);
    for index in [11, 30] {
        assert_eq!(lines.get(index).unwrap().carrier_with(&held).unwrap().source, Source::Cache);
    }
    // Another reference to the element finds it, too.
    assert_eq!(lines.range().get(30).unwrap().carrier_with(&held).unwrap().value, 5);
    assert!(lines.get(31).unwrap().carrier_with(&held).is_err());
    // At the end of the range there are fewer; the first elements have gone by now.
    assert_eq!(lines.get(45).unwrap().carrier().unwrap(), 5);
    assert_eq!(fills() - before, 26);
    assert_eq!(lines.iter().map(|line| line.carrier().unwrap()).sum::<i32>(), 250);
    drop(lines);
    let lines = ExtentRange::of(&line).unwrap();
    assert!(lines.get(30).unwrap().carrier_with(&held).is_err(), "nobody keeps it");
}

/// An element does not tell what has changed in it. What clients do not see tells them nothing.
#[test]
fn clients_are_told_what_has_changed_of_an_element() {
    let (server, extent, _client, line) = lines();
    (0..3).for_each(|_| assert_eq!(line.carrier().unwrap(), 5));
    let writes = || server.status().total("cache_writes_total");
    let before = writes();
    for (value, told, state) in [
        (1_005, 1, LineState { carrier: 5, is_busy: true }),
        (2_005, 1, LineState { carrier: 5, is_busy: true }),
        (2_006, 2, LineState { carrier: 6, is_busy: true }),
    ] {
        extent.elements().update(7, |element| *element = value).unwrap();
        assert_eq!(writes() - before, told);
        assert_eq!(line.cached_state(&NEW).unwrap().value, state);
    }
}

/// Numbers have changed if their bits have: 0 and -0 are two values, and one that is no number is equal to itself.
#[test]
fn the_bits_of_an_elements_numbers_count() {
    let (server, client) = (server(), client());
    let (of_words, of_any) = (ExtentConfig::in_memory(), ExtentConfig::in_memory());
    let sensors = server.root_poa().create_extent("sensors", 1, of_words, |_| 0_u64).unwrap();
    sensors.serve::<SensorRef, _>(Sensors(sensors.cells().unwrap())).unwrap();
    let dials = server.root_poa().create_extent("dials", 1, of_any, |_| 0_u64).unwrap();
    dials.serve::<DialRef, _>(Dials(dials.cells().unwrap())).unwrap();
    let sensor = elsewhere(&client, &sensors.reference::<SensorRef>(0).unwrap());
    let dial = elsewhere(&client, &dials.reference::<DialRef>(0).unwrap());
    let read_sensor = |options: &ReadOptions| sensor.reading_with(options).unwrap().value.to_bits();
    let read_dial = |options: &ReadOptions| dial.shown_with(options).unwrap().value.at.to_bits();
    let writes = || server.status().total("cache_writes_total");
    let check = |extent: &Extent<u64>, read: &dyn Fn(&ReadOptions) -> u64| {
        (0..3).for_each(|_| assert_eq!(read(&ReadOptions::new()), 0));
        for (number, is_told) in [(-0.0, 1), (f64::NAN, 1), (f64::NAN, 0), (-f64::NAN, 1), (0.0, 1), (0.0, 0)]
        {
            let before = writes();
            extent.elements().update(0, |element| *element = number.to_bits()).unwrap();
            assert_eq!((read(&NEW), writes() - before), (number.to_bits(), is_told), "{number:?}");
        }
    };
    check(&sensors, &read_sensor);
    check(&dials, &read_dial);
}

#[test]
fn a_destroyed_element_is_held_by_no_client() {
    let (_server, extent, client, line) = lines();
    (0..3).for_each(|_| assert_eq!(line.carrier().unwrap(), 5));
    let other = elsewhere(&client, &extent.reference::<LineRef>(8).unwrap());
    (0..3).for_each(|_| assert_eq!(other.carrier().unwrap(), 5));
    extent.elements().destroy(7).unwrap();
    is_gone(line.carrier_with(&NEW));
    assert_eq!(other.carrier_with(&NEW).unwrap().source, Source::Cache);
    extent.elements().create(7, 70).unwrap();
    assert_eq!(line.carrier_with(&NEW).unwrap().value, 70);
    extent.elements().update(7, |element| *element = 71).unwrap();
    assert_eq!(line.carrier_with(&NEW).unwrap().value, 71);
}

#[test]
fn clients_are_told_at_once_of_elements_that_are_pushed() {
    let (server, client) = (server(), client());
    let extent = server.root_poa().create_extent("lamps", 10, ExtentConfig::in_memory(), |_| 1_i32).unwrap();
    extent.serve::<LampRef, _>(Lamps(extent.cells().unwrap())).unwrap();
    let lamp = elsewhere(&client, &extent.reference::<LampRef>(3).unwrap());
    (0..3).for_each(|_| assert_eq!(lamp.level().unwrap(), 1));
    extent.elements().update(3, |level| *level = 2).unwrap();
    eventually("the client is told", || lamp.level().unwrap() == 2);
}

#[test]
fn no_client_holds_elements_of_an_extent_that_has_been_destroyed() {
    let (server, extent, client, line) = lines();
    (0..3).for_each(|_| assert_eq!(line.carrier().unwrap(), 5));
    extent.poa().destroy(true, true).unwrap();
    let e = line.carrier_with(&NEW).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::ObjectNotExist);
    // Another extent of the same elements is another adapter, with other references.
    let again = server.root_poa().create_extent("lines", 100, ExtentConfig::in_memory(), |_| 6_i32).unwrap();
    again.serve::<LineRef, _>(Lines(again.cells().unwrap())).unwrap();
    let other = elsewhere(&client, &again.reference::<LineRef>(7).unwrap());
    assert_eq!(other.carrier_with(&NEW).unwrap().value, 6);
    drop((extent, again));
    assert!(line.carrier_with(&NEW).is_err());
}
