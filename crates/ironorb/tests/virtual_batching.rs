//! Oneways that leave together, in virtual time.

use std::time::Duration;

use crate::support::random::seeds;
use crate::support::{Cut, Kind, Pair, Side};
use ironorb::engine::ClientEvent;
use ironorb::{ObjectRef, OnewayBatching, Orb, OrbBuilder, SystemExceptionKind};

const DELAY: Duration = Duration::from_millis(5);
const TICK: Duration = Duration::from_nanos(1);

fn batching() -> OrbBuilder {
    let limits = OnewayBatching { count_max: 10, delay_max: DELAY, ..OnewayBatching::DEFAULT };
    Orb::builder().oneway_batching(Some(limits))
}

/// A pair whose second client lets oneways wait, and its reference, over which a call has been made.
fn pair(seed: u64) -> (Pair, usize, ObjectRef) {
    let mut pair = Pair::seeded(seed);
    let client = pair.add_client(batching());
    let counter = pair.reference(client, &pair.counter_ior(&[0]));
    pair.call(client, &counter, Kind::Add);
    (pair, client, counter)
}

fn tell(pair: &mut Pair, client: usize, counter: &ObjectRef, count: usize) -> Vec<u64> {
    (0..count).map(|_| pair.begin(client, counter, Kind::Tell, 10)).collect()
}

fn executed(pair: &Pair, calls: &[u64]) -> usize {
    calls.iter().filter(|&&call| pair.executions.of(call) == 1).count()
}

#[test]
fn oneways_leave_when_the_first_has_waited_long_enough() {
    for seed in seeds(0..5) {
        let (mut pair, client, counter) = pair(seed);
        let sent = pair.sent_toward(Side::Server);
        let begun = pair.now();
        let mut calls = tell(&mut pair, client, &counter, 2);
        pair.run_until(begun + DELAY / 2);
        calls.extend(tell(&mut pair, client, &counter, 2));
        pair.run_until(begun + (DELAY - TICK));
        assert!(calls.iter().all(|&call| pair.succeeded(call)), "{pair}: a oneway that waits has ended");
        assert_eq!(pair.sent_toward(Side::Server), sent, "{pair}: nothing leaves yet");
        pair.run_until(begun + DELAY);
        let together = pair.sent_toward(Side::Server) - sent;
        pair.run_until_idle();
        assert_eq!(pair.sent_toward(Side::Server) - sent, together, "{pair}: all leave together");
        assert_eq!(executed(&pair, &calls), 4, "{pair}");
        pair.check_promises();
    }
}

#[test]
fn oneways_leave_when_they_are_enough() {
    let (mut pair, client, counter) = pair(1);
    let sent = pair.sent_toward(Side::Server);
    let mut calls = tell(&mut pair, client, &counter, 9);
    pair.run_until(pair.now());
    assert_eq!(pair.sent_toward(Side::Server), sent, "{pair}");
    calls.extend(tell(&mut pair, client, &counter, 1));
    pair.run_until(pair.now());
    assert!(pair.sent_toward(Side::Server) > sent, "{pair}: the tenth of ten");
    pair.run_until_idle();
    assert_eq!(executed(&pair, &calls), 10, "{pair}");
}

#[test]
fn the_next_call_takes_oneways_along_and_keeps_their_order() {
    let (mut pair, client, counter) = pair(2);
    let calls = tell(&mut pair, client, &counter, 3);
    let asks = pair.begin(client, &counter, Kind::Add, 10);
    pair.run_until(pair.now());
    let sent = pair.sent_toward(Side::Server);
    pair.run_until_idle();
    assert_eq!(pair.sent_toward(Side::Server), sent, "{pair}: nothing was left behind");
    assert!(pair.succeeded(asks), "{pair}");
    assert_eq!(executed(&pair, &calls), 3, "{pair}");
}

#[test]
fn a_flush_sends_what_waits() {
    let (mut pair, client, counter) = pair(3);
    let sent = pair.sent_toward(Side::Server);
    tell(&mut pair, client, &counter, 3);
    pair.client_event(client, ClientEvent::Flush);
    pair.run_until(pair.now());
    assert!(pair.sent_toward(Side::Server) > sent, "{pair}");
}

#[test]
fn oneways_that_are_lost_while_they_wait_are_reported_once() {
    let (mut pair, client, counter) = pair(4);
    let calls = tell(&mut pair, client, &counter, 3);
    pair.break_connections(0);
    pair.run_until_idle();
    assert_eq!(executed(&pair, &calls), 0, "{pair}");
    let e = counter.flush().unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::CommFailure, "{pair}: {e}");
    assert!(e.to_string().contains("up to 3 oneways"), "{pair}: {e}");
    counter.flush().unwrap();
    // Those that come later go over a new connection.
    let later = tell(&mut pair, client, &counter, 2);
    pair.run_until_idle();
    assert_eq!(executed(&pair, &later), 2, "{pair}");
    counter.flush().unwrap();
}

#[test]
fn a_client_that_shuts_down_sends_what_waits() {
    let (mut pair, client, counter) = pair(5);
    let calls = tell(&mut pair, client, &counter, 3);
    pair.client_event(client, ClientEvent::Shutdown);
    pair.run_until_idle();
    assert_eq!(executed(&pair, &calls), 3, "{pair}");
}

#[test]
fn a_batch_cut_anywhere_is_carried_out_from_its_beginning() {
    let (mut whole, client, counter) = pair(6);
    let begins = whole.sent_toward(Side::Server);
    tell(&mut whole, client, &counter, 4);
    whole.run_until_idle();
    let ends = whole.sent_toward(Side::Server);
    let mut counts = [0; 5];
    for after in begins..=ends {
        let (mut pair, client, counter) = pair(6);
        pair.label = format!("cut after {after} bytes of {ends}");
        pair.cut = Some(Cut { toward: Side::Server, after });
        let calls = tell(&mut pair, client, &counter, 4);
        pair.run_until_idle();
        let executed = executed(&pair, &calls);
        assert!(
            calls[..executed].iter().all(|&call| pair.executions.of(call) == 1),
            "{pair}: in their order"
        );
        counts[executed] += 1;
        pair.check_promises();
    }
    assert!(counts.iter().all(|&count| count > 0), "{whole}: {counts:?}");
}
