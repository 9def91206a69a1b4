//! Calls in both directions over one connection, in virtual time (CORBA 3.3 part 2, 9.8).

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::random::seeds;
use crate::support::{Cut, Kind, Pair, Side, kinds_seen};
use ironorb::{ObjectRef, Orb, OrbBuilder, SystemExceptionKind};

fn bidirectional() -> OrbBuilder {
    let mut builder = Orb::builder();
    builder.config().bidirectional = true;
    builder
}

/// A client that no server can connect to, and a server that can call it.
struct BothWays {
    pair: Pair,
    client: usize,
    server: usize,
    /// The server's counter, as the client sees it.
    counter: ObjectRef,
}

fn both_ways(seed: u64) -> BothWays {
    let mut pair = Pair::seeded(seed);
    let (client, server) = (pair.add_client(bidirectional()), pair.add_two_way_server(bidirectional()));
    let _root_adapter = pair.own_counter_ior(client);
    let counter = pair.reference(client, &pair.counter_ior(&[server]));
    BothWays { pair, client, server, counter }
}

impl BothWays {
    /// The client's counter, as the server sees it.
    fn own(&self) -> ObjectRef {
        self.pair.reference(self.caller(), &self.pair.own_counter_ior(self.client))
    }

    fn caller(&self) -> usize {
        self.pair.caller_of(self.server).unwrap()
    }

    /// Calls of both sides, some at once and some later.
    fn conversation(&mut self) -> Vec<u64> {
        let (client, caller, counter, own) = (self.client, self.caller(), self.counter.clone(), self.own());
        let pair = &mut self.pair;
        let mut calls = vec![pair.begin(client, &counter, Kind::Add, 20)];
        pair.run_until(pair.now() + Duration::from_millis(10));
        for (kind, bytes) in [(Kind::Add, 3), (Kind::Tell, 100), (Kind::Refuse, 8), (Kind::Locate, 0)] {
            calls.push(pair.begin(caller, &own, kind, bytes));
            calls.push(pair.begin(client, &counter, kind, bytes));
        }
        pair.run_until(pair.now() + Duration::from_millis(2));
        calls.push(pair.begin(caller, &own, Kind::Add, 200));
        calls
    }
}

#[test]
fn calls_of_both_sides_share_the_connection_of_the_client() {
    for seed in seeds(0..20) {
        let mut both = both_ways(seed);
        let calls = both.conversation();
        let BothWays { pair, .. } = &mut both;
        pair.run_until_idle();
        for &call in &calls {
            assert!(pair.succeeded(call), "{pair}: {:?}", pair.record(call));
            if pair.record(call).kind != Kind::Locate {
                assert_eq!(pair.executions.of(call), 1, "{pair}: {call}");
            }
        }
        assert_eq!(pair.connections(), 1, "{pair}");
        pair.check_promises();
    }
}

#[test]
fn a_client_that_has_not_called_cannot_be_called() {
    let mut both = both_ways(1);
    let (caller, own) = (both.caller(), both.own());
    let call = both.pair.begin(caller, &own, Kind::Add, 10);
    both.pair.run_until_idle();
    assert_eq!(both.pair.failure(call).kind, SystemExceptionKind::Transient, "{}", both.pair);
}

#[test]
fn an_orb_that_is_not_bidirectional_calls_nobody_back() {
    let mut pair = Pair::seeded(2);
    let (client, server) = (pair.add_client(bidirectional()), pair.add_two_way_server(Orb::builder()));
    let own = pair.own_counter_ior(client);
    let counter = pair.reference(client, &pair.counter_ior(&[server]));
    pair.call(client, &counter, Kind::Add);
    let caller = pair.caller_of(server).unwrap();
    let call = pair.begin(caller, &pair.reference(caller, &own), Kind::Add, 10);
    pair.run_until_idle();
    assert_eq!(pair.failure(call).kind, SystemExceptionKind::Transient, "{pair}");
}

#[test]
fn a_connection_used_both_ways_and_cut_anywhere_breaks_no_promise() {
    for toward in [Side::Server, Side::Client] {
        let mut whole = both_ways(3);
        whole.conversation();
        whole.pair.run_until_idle();
        let length = whole.pair.sent_toward(toward);
        let mut seen = BTreeSet::new();
        for after in 0..length {
            let mut both = both_ways(3);
            both.pair.label = format!("cut toward {toward:?} after {after} bytes of {length}");
            both.pair.cut = Some(Cut { toward, after });
            both.conversation();
            both.pair.run_until_idle();
            both.pair.check_promises();
            seen.extend(kinds_seen(&both.pair));
            // The next call of the client lets the server call again.
            let (client, caller) = (both.client, both.caller());
            let (counter, own) = (both.counter.clone(), both.own());
            both.pair.call(client, &counter, Kind::Add);
            let later = both.pair.begin(caller, &own, Kind::Add, 8);
            both.pair.run_until_idle();
            assert!(both.pair.succeeded(later), "{}: {:?}", both.pair, both.pair.seen(later));
            both.pair.check_promises();
        }
        assert!(seen.contains("COMM_FAILURE Maybe") && seen.contains("TRANSIENT No"), "{toward:?}: {seen:?}");
    }
}

#[test]
fn calls_to_a_client_end_with_its_connection() {
    let mut both = both_ways(4);
    both.pair.service_us = 50_000..60_000;
    let (client, caller, counter, own) = (both.client, both.caller(), both.counter.clone(), both.own());
    let BothWays { pair, server, .. } = &mut both;
    pair.call(client, &counter, Kind::Add);
    let call = pair.begin(caller, &own, Kind::Add, 8);
    pair.run_until(pair.now() + Duration::from_millis(20));
    pair.retire_connections(*server);
    pair.run_until(pair.now() + Duration::from_millis(20));
    assert_eq!(pair.failure(call).kind, SystemExceptionKind::CommFailure, "{pair}");
    pair.run_until_idle();
    pair.check_promises();
}

#[test]
fn a_server_that_sends_more_than_can_wait_loses_its_connection() {
    let mut pair = Pair::seeded(5);
    let mut few = bidirectional();
    few.config().connection.calls_in_flight_max = 2;
    let (client, server) = (pair.add_client(few), pair.add_two_way_server(bidirectional()));
    let own = pair.own_counter_ior(client);
    let counter = pair.reference(client, &pair.counter_ior(&[server]));
    pair.call(client, &counter, Kind::Add);
    let caller = pair.caller_of(server).unwrap();
    let own = pair.reference(caller, &own);
    pair.service_us = 5_000_000..6_000_000;
    let calls: Vec<u64> = (0..100).map(|_| pair.begin(caller, &own, Kind::Add, 5)).collect();
    pair.run_until(pair.now() + Duration::from_secs(1));
    assert!(pair.is_closed(0, Side::Client), "{pair}");
    assert_eq!(pair.failure(calls[0]).kind, SystemExceptionKind::CommFailure, "{pair}");
    pair.run_until_idle();
    pair.check_promises();
}

/// The client has many requests under way whose servants wait, and the reply to the server's call comes behind them.
#[test]
fn a_reply_behind_many_requests_arrives() {
    let mut pair = Pair::seeded(6);
    let mut few = bidirectional();
    few.config().connection.calls_in_flight_max = 3;
    let (client, server) = (pair.add_client(bidirectional()), pair.add_two_way_server(few));
    let own = pair.own_counter_ior(client);
    let counter = pair.reference(client, &pair.counter_ior(&[server]));
    pair.call(client, &counter, Kind::Add);
    let caller = pair.caller_of(server).unwrap();
    let own = pair.reference(caller, &own);
    pair.hold(server, true);
    let waiting: Vec<u64> = (0..10).map(|_| pair.begin(client, &counter, Kind::Add, 5)).collect();
    pair.run_until(pair.now() + Duration::from_millis(100));
    let call = pair.begin(caller, &own, Kind::Add, 5);
    pair.run_until(pair.now() + Duration::from_millis(100));
    assert!(pair.succeeded(call), "{pair}: {:?}", pair.record(call));
    pair.hold(server, false);
    pair.run_until_idle();
    assert!(waiting.iter().all(|&call| pair.succeeded(call)), "{pair}");
    pair.check_promises();
}
