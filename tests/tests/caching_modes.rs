//! Caching proxies whose servers tell of changes at once, and whose writes wait for those that would miss too many.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use ironorb::cache::{Cell, ReadOptions, Source};
use ironorb::poa::{IdAssignment, PoaError, PoaPolicies};
use ironorb::{Orb, ServerConcurrency, SystemException, SystemExceptionKind, TypedRef};
use ironorb_tests::Counting;
use ironorb_tests::cached::{
    Counter, CounterRef, CounterState, Gauge, GaugeAsync, GaugeRef, GaugeState, Lever, LeverAsync, LeverRef,
    LeverState, Meter, MeterRef, MeterState,
};
use ironorb_tests::{Holding, RUNS};

const HELD: ReadOptions = ReadOptions::new().held_only();

fn server() -> Orb {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap()
}

/// The object in a client of its own.
fn elsewhere<R: TypedRef>(local: &R) -> R {
    let client = Orb::builder().no_endpoint().build().unwrap();
    client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked()
}

/// Reads until the client holds the state.
fn hold<T>(read: impl Fn() -> Result<ironorb::cache::Seen<T>, SystemException>) {
    while read().unwrap().source != Source::Cache {}
}

fn gauge() -> (Orb, Cell<GaugeState>, GaugeRef) {
    let (server, (servant, cell)) = (server(), Holding::new(GaugeState { value: 0, text: "0".to_owned() }));
    let local = server.root_poa().activate(servant).unwrap();
    (server, cell, local)
}

fn lever() -> (Orb, Cell<LeverState>, LeverRef) {
    let (server, (servant, cell)) = (server(), Holding::new(LeverState { value: 0 }));
    let local = server.root_poa().activate(servant).unwrap();
    (server, cell, local)
}

fn holding_lever(local: &LeverRef) -> LeverRef {
    let lever = elsewhere(local);
    hold(|| lever.value_with(&ReadOptions::new()));
    lever
}

/// A client that reads only what it holds gets to read what is written.
#[test]
fn what_is_written_comes_by_itself() {
    let (_server, cell, local) = gauge();
    let gauges = [elsewhere(&local), elsewhere(&local)];
    gauges.iter().for_each(|gauge| hold(|| gauge.value_with(&ReadOptions::new())));
    let mut questions = 0;
    for value in 1..20 {
        cell.update(|mut state| {
            state.set_value(value);
            state.set_text(value.to_string());
        });
        for gauge in &gauges {
            loop {
                let seen = gauge.cached_state(&HELD).or_else(|_| {
                    // The client has stopped for longer than the term.
                    questions += 1;
                    gauge.cached_state(&ReadOptions::new())
                });
                let seen = seen.unwrap().value;
                assert_eq!(seen.text, seen.value.to_string());
                if seen.value == value {
                    break;
                }
                assert_eq!(seen.value, value - 1);
                thread::yield_now();
            }
        }
    }
    assert!(questions < 10, "{questions}");
}

/// A client that is cut off reads what it holds until the term of its session is over.
#[test]
fn what_cannot_be_renewed_is_read_until_its_term_is_over() {
    let (server, _cell, local) = gauge();
    let gauge = elsewhere(&local);
    hold(|| gauge.value_with(&ReadOptions::new()));
    server.shutdown(true).unwrap();
    let mut reads = (0..10_000).map(|_| {
        thread::sleep(Duration::from_millis(1));
        gauge.value_with(&HELD)
    });
    let over = reads.find_map(Result::err).expect("ten seconds are more than a term");
    assert_eq!(over.kind, SystemExceptionKind::Transient);
    assert!(gauge.value().is_err());
}

/// A client's own write is read at once, whether the server's message has come or not.
#[test]
fn a_client_reads_what_it_has_written() {
    let (_server, _cell, local) = gauge();
    let gauge = elsewhere(&local);
    hold(|| gauge.value_with(&ReadOptions::new()));
    for value in 1..50 {
        gauge.set_value(value).unwrap();
        assert_eq!((gauge.value().unwrap(), gauge.text().unwrap()), (value, value.to_string()));
    }
}

/// A client that reads for longer than a term goes on to read what it holds: the probe that waits renews it.
#[test]
fn what_is_read_is_renewed_without_a_question() {
    let (_server, _cell, local) = gauge();
    let gauge = elsewhere(&local);
    hold(|| gauge.value_with(&ReadOptions::new()));
    let mut newest = Duration::ZERO;
    let mut renewed = 0;
    while renewed < 8 {
        let age = match gauge.value_with(&HELD) {
            Ok(seen) => seen.age,
            Err(_) => gauge.value_with(&ReadOptions::new()).unwrap().age,
        };
        renewed += usize::from(age < newest);
        newest = age;
        thread::sleep(Duration::from_millis(10));
    }
}

/// An operation that is a function of the state is run by the server for clients without it, and by the thread that asks where it
/// is held.
#[test]
fn a_read_operation_runs_where_the_state_is() {
    let (_server, cell, local) = gauge();
    let gauge = elsewhere(&local);
    let runs = |run: &dyn Fn() -> bool| {
        let before = RUNS.get();
        (run(), RUNS.get() - before)
    };
    hold(|| gauge.value_with(&ReadOptions::new()));
    assert_eq!(runs(&|| gauge.is_over(-1).unwrap()), (true, 1));
    assert_eq!(runs(&|| gauge.is_over_async(-1).wait().unwrap()), (true, 0), "the server runs it");
    assert_eq!(runs(&|| local.is_over(0).unwrap()), (false, 1), "the object is in this process");
    cell.update(|mut state| {
        state.set_value(7);
        state.set_text("7".to_owned());
    });
    while gauge.described("mm").unwrap() != "7 mm" {}
    gauge.set_value(8).unwrap();
    assert_eq!(gauge.described("mm").unwrap(), "8 mm");
    assert_eq!(local.described("mm").unwrap(), "8 mm");
    // A first read asks the object.
    assert_eq!(elsewhere(&local).described("cm").unwrap(), "8 cm");
}

#[test]
fn no_client_reads_the_value_from_before_a_write() {
    let (_server, cell, local) = lever();
    let levers = [holding_lever(&local), holding_lever(&local)];
    for value in 1..100 {
        cell.update(|mut state| state.set_value(value));
        for lever in &levers {
            assert_eq!(lever.value().unwrap(), value);
            hold(|| lever.value_with(&ReadOptions::new()));
        }
    }
    // What it holds it reads without a call.
    let held = levers[0].value_with(&HELD).unwrap();
    assert_eq!((held.value, held.source), (99, Source::Cache));
}

/// The client that writes holds the value itself: its connection is busy with the write when it is to drop that.
#[test]
fn a_client_that_holds_the_value_writes_it() {
    let (_server, _cell, local) = lever();
    let levers = [holding_lever(&local), holding_lever(&local)];
    for value in 1..100 {
        let (writer, reader) = (&levers[value as usize % 2], &levers[(value as usize + 1) % 2]);
        writer.set_value(value).unwrap();
        assert_eq!(reader.value().unwrap(), value);
        assert_eq!(writer.value().unwrap(), value);
        levers.iter().for_each(|lever| hold(|| lever.value_with(&ReadOptions::new())));
    }
    levers[0].set_value_async(100).wait().unwrap();
    assert_eq!(levers[1].value().unwrap(), 100);
}

/// Threads read while others write. A read that begins after a write has returned gives its value or a later one.
#[test]
fn a_read_gives_no_value_from_before_a_write_that_has_returned() {
    let (_server, cell, local) = lever();
    let levers = [holding_lever(&local), holding_lever(&local)];
    let (returned, is_over) = (AtomicI32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for lever in &levers {
            scope.spawn(|| {
                let mut newest = 0;
                while !is_over.load(Ordering::Acquire) {
                    let least = returned.load(Ordering::Acquire);
                    let value = lever.value().unwrap();
                    assert!(value >= least.max(newest), "{value} after {least} and {newest}");
                    newest = value;
                }
            });
        }
        for value in 1..300 {
            cell.update(|mut state| state.set_value(value));
            returned.store(value, Ordering::Release);
            if value % 3 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        is_over.store(true, Ordering::Release);
    });
}

/// The one thread of a reactor would wait for what it alone can receive.
#[test]
fn a_reactor_takes_no_object_of_which_writes_wait() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    let server = server.concurrency(ServerConcurrency::Reactor).build().unwrap();
    let poa = server.root_poa();
    let (lever, _) = Holding::new(LeverState { value: 0 });
    let refused = poa.activate::<LeverRef, _>(lever).unwrap_err();
    assert!(matches!(refused, PoaError::WritesWaitInVain), "{refused}");
    let e = SystemException::from(refused);
    assert_eq!(e.kind, SystemExceptionKind::BadInvOrder, "{e}");
    // The others are held there as anywhere.
    let (gauge, cell) = Holding::new(GaugeState { value: 0, text: String::new() });
    let gauge = elsewhere(&poa.activate::<GaugeRef, _>(gauge).unwrap());
    hold(|| gauge.value_with(&ReadOptions::new()));
    cell.update(|mut state| state.set_value(1));
    while gauge.value().unwrap() != 1 {}
}

/// Writes of one cell are made one after the other.
#[test]
fn threads_write_in_turn() {
    let (_server, cell, local) = lever();
    let lever = holding_lever(&local);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| cell.update(|mut state| *state.value_mut() += 1)));
        }
        while lever.value().unwrap() < 200 {}
    });
    assert_eq!(lever.value().unwrap(), 200);
}

/// Nobody answers for a client that is gone: the write waits until its term is over, and for nothing else.
#[test]
fn a_write_does_not_wait_for_a_client_that_is_gone() {
    let (_server, cell, local) = lever();
    let gone = holding_lever(&local);
    gone.object().orb().shutdown(true).unwrap();
    drop(gone);
    let lever = holding_lever(&local);
    cell.update(|mut state| state.set_value(1));
    assert_eq!(lever.value().unwrap(), 1);
}

/// A client may read the value of the server's last life until its term is over. The next life waits for that before it writes.
#[test]
fn a_new_life_of_the_server_waits_for_the_terms_of_the_last() {
    let life = |port: u16| {
        let policies = PoaPolicies {
            lifespan: ironorb::poa::Lifespan::Persistent,
            id_assignment: IdAssignment::User,
            ..PoaPolicies::default()
        };
        let endpoint = format!("iiop://127.0.0.1:{port}");
        let server = Orb::builder().endpoint(&endpoint).unwrap().server_id("levers").build().unwrap();
        let poa = server.root_poa().create_poa("levers", None, policies).unwrap();
        let (servant, cell) = Holding::new(LeverState { value: 0 });
        let local: LeverRef = poa.activate_with_id("one", servant).unwrap();
        (server, cell, local)
    };
    let (server, _, local) = life(0);
    let port = server.published_addresses()[0].rsplit(':').next().unwrap().parse().unwrap();
    let lever = holding_lever(&local);
    server.shutdown(true).unwrap();
    drop((server, local));
    let (_server, cell, _local) = life(port);
    cell.update(|mut state| state.set_value(1));
    let held = lever.value_with(&HELD).map(|seen| seen.value);
    assert_eq!(held.unwrap_err().kind, SystemExceptionKind::Transient, "its term is over");
    assert_eq!(lever.value().unwrap(), 1);
}

#[test]
fn no_client_misses_more_writes_than_it_may() {
    let (server, (servant, cell)) = (server(), Holding::new(CounterState { value: 0, twice: 0 }));
    let local: CounterRef = server.root_poa().activate(servant).unwrap();
    let counters = [elsewhere(&local), elsewhere(&local)];
    counters.iter().for_each(|counter| hold(|| counter.value_with(&ReadOptions::new())));
    let mut held = 0;
    for value in 1..500 {
        if value % 7 == 0 {
            counters[0].set_value(value).unwrap();
        } else {
            cell.update(|mut state| {
                state.set_value(value);
                state.set_twice(2 * value);
            });
        }
        for counter in &counters {
            let seen = counter.cached_state(&ReadOptions::new()).unwrap();
            assert!(seen.value.value >= value - 2, "{} at {value}", seen.value.value);
            assert_eq!(seen.value.twice, 2 * seen.value.value);
            held += usize::from(seen.source == Source::Cache);
        }
    }
    assert!(held > 500, "{held}");
}

/// The lock of a cell is held while it changes: a remote call would have others wait for the network.
#[test]
fn a_change_makes_no_remote_call() {
    let (server, _cell, local) = lever();
    let local_meter: MeterRef = server.root_poa().activate(Counting::default()).unwrap();
    let (elsewhere_meter, lever) = (elsewhere(&local_meter), holding_lever(&local));
    let cell = Cell::new(MeterState { value: 0, factor: 1.0 });
    let is_refused = |e: SystemException| {
        assert_eq!(
            (e.kind, e.minor),
            (SystemExceptionKind::BadInvOrder, ironorb::MinorCode::CALL_IN_UPDATE),
            "{e}"
        );
    };
    for _ in 0..2 {
        cell.update(|_| {
            is_refused(elsewhere_meter.place().unwrap_err());
            is_refused(elsewhere_meter.value().unwrap_err());
            is_refused(elsewhere_meter.add_later(7).unwrap_err());
            is_refused(lever.set_value(7).unwrap_err());
            is_refused(lever.set_value_async(7).wait().unwrap_err());
            // What is held here is read without a call.
            assert_eq!(lever.value_with(&HELD).unwrap().value, 0);
        });
        assert_eq!(elsewhere_meter.place().unwrap(), "cellar");
    }
    assert_eq!((local.value().unwrap(), local_meter.value().unwrap()), (0, 0));
}

/// A change that would wait for itself panics.
#[test]
fn a_change_updates_neither_its_cell_nor_one_whose_writes_may_wait() {
    let meter = Cell::new(MeterState { value: 0, factor: 1.0 });
    let lever = Cell::new(LeverState { value: 0 });
    let panics = |change: &dyn Fn()| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| meter.update(|_| change()))).is_err()
    };
    assert!(panics(&|| meter.update(|mut state| state.set_value(1))));
    assert!(panics(&|| lever.update(|mut state| state.set_value(1))));
    let other = Cell::new(MeterState { value: 0, factor: 1.0 });
    assert!(!panics(&|| other.update(|mut state| state.set_value(1))));
    assert_eq!([meter.read(|it| it.value), lever.read(|it| it.value), other.read(|it| it.value)], [0, 0, 1]);
    lever.update(|mut state| state.set_value(2));
    assert_eq!(lever.read(|it| it.value), 2);
}

/// Threads change two cells in different orders. One is told by a panic, and the other goes on.
#[test]
fn changes_do_not_wait_for_one_another_for_ever() {
    let cells = [0, 0].map(|value| Cell::new(MeterState { value, factor: 1.0 }));
    let both_have_one = Arc::new(Barrier::new(2));
    let (says, said) = mpsc::channel();
    for own in 0..2 {
        let (cells, both_have_one, says) = (cells.clone(), both_have_one.clone(), says.clone());
        thread::spawn(move || {
            let change = || {
                cells[own].update(|mut state| {
                    state.set_value(1);
                    both_have_one.wait();
                    cells[1 - own].update(|mut state| *state.value_mut() += 10);
                });
            };
            let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(change));
            says.send(changed.is_ok()).unwrap();
        });
    }
    let mut changed = [(); 2].map(|()| said.recv_timeout(Duration::from_secs(60)).expect("none hangs"));
    changed.sort();
    assert_eq!(changed, [false, true]);
    // What the one has changed before it panicked stays, and it has not changed the other's.
    let mut values = cells.map(|cell| cell.read(|state| state.value));
    values.sort();
    assert_eq!(values, [1, 11]);
}
