//! Peers that take no bytes, and connections that nobody uses, in virtual time.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::random::seeds;
use crate::support::{CALL_TIMEOUT, Cut, Kind, Pair, Seen, Side, kinds_seen};
use ironorb::{CompletionStatus, ObjectRef, Orb, SystemExceptionKind};

const SECOND: Duration = Duration::from_secs(1);

/// A pair with a network that holds few bytes, and a reference over which a call has been made.
fn narrow_pair(seed: u64, client: usize) -> (Pair, ObjectRef) {
    let mut pair = Pair::seeded(seed);
    pair.window = Some(500);
    let mut builder = Orb::builder();
    builder.config().transmit_bytes_max = 1000;
    pair.add_client(builder);
    let counter = pair.reference(client, &pair.counter_ior(&[0]));
    pair.call(client, &counter, Kind::Add);
    (pair, counter)
}

/// The client whose calls wait while 1000 bytes are pending.
const BOUNDED: usize = 1;

fn begin(pair: &mut Pair, client: usize, counter: &ObjectRef, count: usize) -> Vec<u64> {
    (0..count).map(|_| pair.begin(client, counter, Kind::Add, 10)).collect()
}

#[test]
fn a_server_takes_no_more_requests_of_a_client_that_reads_nothing() {
    for seed in seeds(0..5) {
        let (mut pair, counter) = narrow_pair(seed, 0);
        pair.read(0, Side::Client, false);
        let calls: Vec<u64> = (0..60)
            .flat_map(|_| {
                let call = begin(&mut pair, 0, &counter, 1);
                pair.run_until(pair.now() + SECOND / 100);
                call
            })
            .collect();
        let carried_out = calls.iter().filter(|&&call| pair.executions.of(call) == 1).count();
        assert!((5..30).contains(&carried_out), "{pair}: {carried_out} calls");
        pair.read(0, Side::Client, true);
        pair.run_until_idle();
        assert!(calls.iter().all(|&call| pair.succeeded(call)), "{pair}");
        pair.check_promises();
    }
}

#[test]
fn a_client_that_reads_nothing_for_long_is_cut_off() {
    for seed in seeds(0..5) {
        let mut pair = Pair::seeded(seed);
        pair.window = Some(500);
        let mut builder = Orb::builder();
        builder.config().transmit_timeout = 10 * SECOND;
        let server = pair.add_server(builder);
        let counter = pair.reference(0, &pair.counter_ior(&[server]));
        pair.call(0, &counter, Kind::Add);
        pair.read(0, Side::Client, false);
        let calls = begin(&mut pair, 0, &counter, 60);
        pair.run_until(pair.now() + 9 * SECOND);
        assert!(!pair.is_closed(0, Side::Server), "{pair}: it has its time");
        // What it takes begins the time anew.
        pair.read(0, Side::Client, true);
        pair.read(0, Side::Client, false);
        pair.run_until(pair.now() + 9 * SECOND);
        assert!(!pair.is_closed(0, Side::Server), "{pair}: it has its time anew");
        pair.run_until(pair.now() + 2 * SECOND);
        assert!(pair.is_closed(0, Side::Server), "{pair}: cut off");
        pair.read(0, Side::Client, true);
        pair.run_until_idle();
        assert!(calls.iter().any(|&call| !pair.succeeded(call)), "{pair}");
        pair.check_promises();
        assert!(matches!(pair.call(0, &counter, Kind::Add), Seen::Value(_)), "{pair}");
    }
}

#[test]
fn calls_wait_for_a_server_that_reads_nothing() {
    for seed in seeds(0..5) {
        let (mut pair, counter) = narrow_pair(seed, BOUNDED);
        pair.read(0, Side::Server, false);
        let calls = begin(&mut pair, BOUNDED, &counter, 60);
        let told = pair.begin(BOUNDED, &counter, Kind::Tell, 10);
        pair.run_until(pair.now() + SECOND);
        assert!(pair.record(told).seen.is_none(), "{pair}: a oneway waits behind the calls before it");
        let hurried = pair.begin_with_timeout(BOUNDED, &counter, Kind::Add, 10, Some(SECOND));
        pair.run_until(pair.now() + 2 * SECOND);
        let e = pair.failure(hurried);
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::No), "{pair}");
        pair.read(0, Side::Server, true);
        pair.run_until_idle();
        assert!(calls.iter().all(|&call| pair.succeeded(call)) && pair.executions.of(told) == 1, "{pair}");
        assert_eq!(pair.connections(), 1, "{pair}");
        pair.check_promises();
    }
}

#[test]
fn calls_that_wait_end_or_go_on_when_the_connection_ends() {
    for seed in seeds(0..5) {
        let (mut pair, counter) = narrow_pair(seed, BOUNDED);
        pair.read(0, Side::Server, false);
        let calls = begin(&mut pair, BOUNDED, &counter, 60);
        pair.run_until(pair.now() + SECOND);
        pair.break_connections(0);
        pair.run_until_idle();
        let is_lost = |call: &&u64| matches!(pair.seen(**call), Seen::Failed(_));
        let lost = calls.iter().filter(is_lost).count();
        // What was in the network is lost; the calls that waited take a new connection.
        assert!((5..40).contains(&lost), "{pair}: {lost} calls");
        assert_eq!(pair.connections(), 2, "{pair}");
        pair.check_promises();
    }
}

#[test]
fn calls_that_wait_for_a_server_keep_their_deadlines() {
    let (mut pair, counter) = narrow_pair(7, BOUNDED);
    pair.read(0, Side::Server, false);
    let calls = begin(&mut pair, BOUNDED, &counter, 60);
    pair.run_until(pair.now() + 2 * CALL_TIMEOUT);
    let completed: BTreeSet<String> =
        calls.iter().map(|&call| format!("{:?}", pair.failure(call).completed)).collect();
    assert_eq!(completed, ["Maybe".to_owned(), "No".to_owned()].into(), "{pair}");
    pair.check_promises();
}

/// Calls and oneways over a network that holds few bytes.
fn conversation(pair: &mut Pair) -> Vec<u64> {
    pair.window = Some(150);
    let mut builder = Orb::builder();
    builder.config().transmit_bytes_max = 100;
    let client = pair.add_client(builder);
    let counter = pair.reference(client, &pair.counter_ior(&[0]));
    (0..8)
        .map(|n| pair.begin(client, &counter, if n % 3 == 0 { Kind::Tell } else { Kind::Add }, 20))
        .collect()
}

#[test]
fn a_narrow_connection_cut_anywhere_never_breaks_a_promise() {
    for seed in seeds(0..2) {
        for toward in [Side::Server, Side::Client] {
            let mut whole = Pair::seeded(seed);
            let calls = conversation(&mut whole);
            whole.run_until_idle();
            assert!(calls.iter().all(|&call| whole.succeeded(call)), "{whole}");
            let (length, mut seen) = (whole.sent_toward(toward), BTreeSet::new());
            for after in 0..length {
                let mut pair = Pair::seeded(seed);
                pair.label = format!("cut toward {toward:?} after {after} bytes of {length}");
                pair.cut = Some(Cut { toward, after });
                conversation(&mut pair);
                pair.run_until_idle();
                pair.check_promises();
                seen.extend(kinds_seen(&pair));
            }
            assert!(seen.contains("COMM_FAILURE Maybe"), "{whole}: no cut was felt: {seen:?}");
        }
    }
}

#[test]
fn a_client_closes_a_connection_that_nobody_uses() {
    for is_bidirectional in [false, true] {
        let mut pair = Pair::seeded(3);
        pair.client_idle_timeout = Some(10 * SECOND);
        let mut builder = Orb::builder();
        builder.config().bidirectional = is_bidirectional;
        let client = pair.add_client(builder);
        let counter = pair.reference(client, &pair.counter_ior(&[0]));
        let at = |pair: &mut Pair, seconds: u32| pair.run_until(pair.now() + seconds * SECOND);
        pair.begin(client, &counter, Kind::Add, 10);
        at(&mut pair, 9);
        pair.begin(client, &counter, Kind::Tell, 10);
        at(&mut pair, 9);
        assert!(!pair.is_closed(0, Side::Client), "{pair}: every request begins the time anew");
        // So does a reply, and a call that waits for it keeps the connection.
        pair.hold(0, true);
        let long = pair.begin(client, &counter, Kind::Add, 10);
        at(&mut pair, 20);
        pair.hold(0, false);
        at(&mut pair, 9);
        assert!(pair.succeeded(long) && !pair.is_closed(0, Side::Client), "{pair}");
        at(&mut pair, 2);
        assert_eq!(pair.is_closed(0, Side::Client), !is_bidirectional, "{pair}: the server may use it");
        let again = pair.begin(client, &counter, Kind::Add, 10);
        at(&mut pair, 1);
        assert!(pair.succeeded(again), "{pair}");
        assert_eq!(pair.connections(), if is_bidirectional { 1 } else { 2 }, "{pair}");
    }
}
