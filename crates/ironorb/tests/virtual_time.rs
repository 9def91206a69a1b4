//! A client engine and a server engine against each other, in virtual time: what an ORB promises about calls
//! whatever the network does. No socket is opened and no clock is read; a failure prints the seed that
//! repeats it, `IRONORB_TEST_SEED=7 cargo test -p ironorb --test all virtual_time`.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::counter::ADD;
use crate::support::random::{Random, seeds};
use crate::support::{CALL_TIMEOUT, Cut, Kind, Pair, Seen, Side, kinds_seen};
use ironorb::engine::{CallNumber, ClientEngine, ClientEvent, ConnectionId, Time};
use ironorb::giop::message::AddressingDisposition;
use ironorb::{CompletionStatus, MinorCode, OnewayBatching, Orb, SystemExceptionKind};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_ordinary_conversation() {
    for seed in seeds(0..20) {
        let mut pair = Pair::seeded(seed);
        let counter = pair.reference(0, &pair.counter_ior(&[0]));
        for kind in [Kind::Locate, Kind::Add, Kind::Tell, Kind::Refuse, Kind::Add] {
            let call = pair.begin(0, &counter, kind, 100);
            pair.run_until_idle();
            assert!(pair.succeeded(call), "{pair}: {:?}", pair.seen(call));
            if kind != Kind::Locate {
                assert_eq!(pair.executions.of(call), 1, "{pair}");
            }
        }
        assert_eq!(pair.connections(), 1, "{pair}: all calls share a connection");
        pair.check_promises();
    }
}

#[test]
fn many_calls_in_flight_are_answered_in_any_order() {
    let mut out_of_order = 0;
    for seed in seeds(0..10) {
        let mut pair = Pair::seeded(seed);
        let other = pair.add_client(Orb::builder().fragment_bytes(64));
        let mut calls = Vec::new();
        for client in [0, other] {
            let counter = pair.reference(client, &pair.counter_ior(&[0]));
            calls.extend((0..50).map(|n| pair.begin(client, &counter, Kind::Add, n)));
        }
        pair.run_until_idle();
        assert!(calls.iter().all(|&call| pair.succeeded(call)), "{pair}");
        out_of_order +=
            calls.windows(2).filter(|w| pair.record(w[0]).ended_at > pair.record(w[1]).ended_at).count();
        assert_eq!(pair.connections(), 2, "{pair}");
        pair.check_promises();
    }
    assert!(out_of_order > 10, "only {out_of_order} replies came out of order");
}

/// Calls of all kinds, some at once and some later, over one connection.
fn conversation(pair: &mut Pair) -> Vec<u64> {
    let counter = pair.reference(0, &pair.counter_ior(&[0]));
    let mut calls = vec![
        pair.begin(0, &counter, Kind::Add, 20),
        pair.begin(0, &counter, Kind::Refuse, 3),
        pair.begin(0, &counter, Kind::Add, 0),
    ];
    pair.run_until(pair.now() + Duration::from_millis(4));
    calls.push(pair.begin(0, &counter, Kind::Tell, 5));
    calls.push(pair.begin(0, &counter, Kind::Add, 50));
    calls.push(pair.begin(0, &counter, Kind::Locate, 0));
    calls
}

#[test]
fn a_connection_cut_anywhere_never_breaks_a_promise() {
    for seed in seeds(0..2) {
        for toward in [Side::Server, Side::Client] {
            let mut whole = Pair::seeded(seed);
            conversation(&mut whole);
            whole.run_until_idle();
            let length = whole.sent_toward(toward);
            assert!(length > 100, "{whole}: too short to be cut");
            let mut seen = BTreeSet::new();
            for after in 0..length {
                let mut pair = Pair::seeded(seed);
                pair.label = format!("cut toward {toward:?} after {after} bytes of {length}");
                pair.cut = Some(Cut { toward, after });
                let calls = conversation(&mut pair);
                pair.run_until_idle();
                pair.check_promises();
                seen.extend(kinds_seen(&pair));
                let failed = calls.iter().filter(|&&call| !pair.succeeded(call)).count();
                assert!(failed < calls.len(), "{pair}: calls after the cut use a new connection");
                let counter = pair.reference(0, &pair.counter_ior(&[0]));
                let later = pair.begin(0, &counter, Kind::Add, 8);
                pair.run_until_idle();
                assert!(pair.succeeded(later), "{pair}: {:?}", pair.seen(later));
                pair.check_promises();
            }
            assert!(seen.contains("COMM_FAILURE Maybe"), "{whole}: no cut was felt: {seen:?}");
        }
    }
}

#[test]
fn calls_are_sent_again_when_the_server_closes_in_order() {
    for seed in seeds(0..2) {
        let mut whole = Pair::seeded(seed);
        conversation(&mut whole);
        whole.run_until_idle();
        let length = whole.sent_toward(Side::Server);
        let mut resent = 0;
        for after in 0..=length {
            let mut pair = Pair::seeded(seed);
            pair.label = format!("closed after {after} bytes of {length}");
            pair.retire_after = Some(after);
            let calls = conversation(&mut pair);
            pair.run_until_idle();
            for call in calls {
                assert!(pair.succeeded(call), "{pair}: {:?}", pair.record(call));
                let executions = pair.executions.of(call);
                match pair.record(call).kind {
                    Kind::Locate => {}
                    // The client does not learn whether a oneway was carried out, so it cannot send it again.
                    Kind::Tell => assert!(executions <= 1, "{pair}: {call}"),
                    _ => assert_eq!(executions, 1, "{pair}: {call}"),
                }
            }
            resent += usize::from(pair.connections() > 1);
            pair.check_promises();
        }
        assert!(resent > length / 2, "{whole}: the close was felt {resent} times only");
    }
}

#[test]
fn a_request_that_waits_is_not_sent_after_the_server_has_closed() {
    const CLOSE_CONNECTION: &[u8] = b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00";
    let orb = Orb::builder().no_endpoint().client_idle_timeout(None).build().unwrap();
    let engine = ClientEngine::new(&orb);
    let call = |number| ClientEvent::Call {
        call: CallNumber(number),
        caller: 0,
        object: orb.string_to_object("corbaloc:iiop:1.2@server:2809/key").unwrap(),
        operation: &ADD,
        arguments: Box::new(|_| Ok(())),
        deadline: None,
    };
    let actions = |events: Vec<ClientEvent<'_>>| {
        events.into_iter().for_each(|event| engine.handle(event, Time::ZERO));
        std::iter::from_fn(|| engine.poll_action()).map(|action| format!("{action:?}")).collect::<Vec<_>>()
    };
    let connection = ConnectionId(0);
    assert!(actions(vec![call(1)])[0].starts_with("Connect"));
    let sent = actions(vec![ClientEvent::Connected { connection }]);
    assert!(sent.len() == 1 && sent[0].starts_with("Transmit"), "{sent:?}");
    // The second request has been written but not sent when CloseConnection comes: both need a new
    // connection.
    let closed = actions(vec![call(2), ClientEvent::Received { connection, bytes: CLOSE_CONNECTION }]);
    assert_eq!(
        closed,
        [
            "Close { connection: ConnectionId(0) }",
            "Connect { connection: ConnectionId(1), host: \"server\", port: 2809 }",
            "SetTimer { at: Time(10s) }",
        ]
    );
    let connection = ConnectionId(1);
    let sent_again = actions(vec![ClientEvent::Connected { connection }]);
    assert!(sent_again.len() == 1 && sent_again[0].len() > sent[0].len(), "both requests: {sent_again:?}");
}

#[test]
fn a_server_that_always_closes_is_tried_a_bounded_number_of_times() {
    let mut pair = Pair::seeded(1);
    pair.hold(0, true);
    let counter = pair.reference(0, &pair.counter_ior(&[0]));
    let call = pair.begin(0, &counter, Kind::Add, 1);
    for _ in 0..20 {
        pair.run_until(pair.now() + Duration::from_millis(20));
        pair.retire_connections(0);
    }
    pair.run_until_idle();
    let e = pair.failure(call);
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No), "{pair}");
    assert_eq!(pair.connections(), 5, "{pair}: the first time, and four more");
    pair.check_promises();
}

#[test]
fn a_server_dies_and_comes_back() {
    for seed in seeds(0..50) {
        let mut pair = Pair::seeded(seed);
        let counter = pair.reference(0, &pair.counter_ior(&[0]));
        assert!(matches!(pair.call(0, &counter, Kind::Add), Seen::Value(_)));
        let in_flight: Vec<u64> = (0..10).map(|_| pair.begin(0, &counter, Kind::Add, 30)).collect();
        let when = pair.random.micros(0..6_000);
        pair.after(when, |pair| pair.kill(0));
        pair.run_until_idle();
        pair.check_promises();
        for call in in_flight {
            if let Seen::Failed(e) = pair.seen(call) {
                let kind = (e.kind, e.completed);
                let lost = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);
                assert_eq!(kind, lost, "{pair}: {call}");
            }
        }
        let call = pair.begin(0, &counter, Kind::Add, 1);
        pair.run_until_idle();
        let e = pair.failure(call);
        let refused = (SystemExceptionKind::Transient, MinorCode::CONNECT_REFUSED, CompletionStatus::No);
        assert_eq!((e.kind, e.minor, e.completed), refused, "{pair}");
        pair.start(0);
        let call = pair.begin(0, &counter, Kind::Add, 1);
        pair.run_until_idle();
        assert!(pair.succeeded(call), "{pair}: the reference is persistent");
        pair.check_promises();
    }
}

#[test]
fn an_address_without_a_server_is_a_transient_failure() {
    let mut pair = Pair::seeded(3);
    let counter = pair.reference(0, &pair.counter_ior(&[0]));
    pair.black_hole(0, true);
    let call = pair.begin(0, &counter, Kind::Add, 1);
    pair.run_until_idle();
    let e = pair.failure(call);
    let timed_out = (SystemExceptionKind::Transient, MinorCode::CONNECT_TIMEOUT, CompletionStatus::No);
    assert_eq!((e.kind, e.minor, e.completed), timed_out, "{pair}");
    assert_eq!(
        pair.record(call).ended_at,
        Time::ZERO + Duration::from_secs(10),
        "{pair}: the default connect timeout"
    );

    let hurried = pair.begin_with_timeout(0, &counter, Kind::Add, 1, Some(SECOND));
    let begun = pair.now();
    pair.run_until_idle();
    let e = pair.failure(hurried);
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::No), "{pair}");
    assert_eq!(pair.record(hurried).ended_at, begun + SECOND, "{pair}: a nearer deadline of the call counts");
    pair.check_promises();
}

#[test]
fn the_second_address_is_tried_when_the_first_refuses() {
    for seed in seeds(0..10) {
        let mut pair = Pair::seeded(seed);
        let spare = pair.add_server(Orb::builder());
        let counter = pair.reference(0, &pair.counter_ior(&[0, spare]));
        pair.kill(0);
        let calls: Vec<u64> = (0..5).map(|_| pair.begin(0, &counter, Kind::Add, 9)).collect();
        pair.run_until_idle();
        assert!(calls.iter().all(|&call| pair.succeeded(call)), "{pair}");
        assert_eq!(pair.upcalls(spare), 5, "{pair}");
        pair.check_promises();
    }
}

#[test]
fn an_address_that_failed_is_tried_last_for_a_while() {
    let mut pair = Pair::seeded(4);
    let spare = pair.add_server(Orb::builder());
    let counter = pair.reference(0, &pair.counter_ior(&[0, spare]));
    let call_within = |pair: &mut Pair, seconds| {
        let call = pair.begin(0, &counter, Kind::Add, 5);
        pair.run_until(pair.now() + Duration::from_secs(seconds));
        assert!(pair.succeeded(call), "{pair}: {:?}", pair.seen(call));
    };
    pair.black_hole(0, true);
    call_within(&mut pair, 11);
    assert_eq!(pair.connections(), 2, "{pair}: the first has given no answer");
    pair.break_connections(spare);
    pair.run_until(pair.now() + SECOND);
    call_within(&mut pair, 1);
    assert_eq!(pair.connections(), 3, "{pair}: the first is not waited for again");
    // After the pause the address is tried again, and answers.
    pair.black_hole(0, false);
    pair.break_connections(spare);
    pair.run_until(pair.now() + Duration::from_secs(30));
    assert_eq!(pair.upcalls(0), 0);
    call_within(&mut pair, 1);
    assert_eq!(pair.upcalls(0), 1, "{pair}");
    pair.run_until_idle();
    pair.check_promises();
}

#[test]
fn the_addressing_that_a_server_demands_is_sent_and_kept() {
    for demanded in [AddressingDisposition::Profile, AddressingDisposition::Reference] {
        let mut pair = Pair::seeded(9);
        let mut builder = Orb::builder();
        builder.config().addressing_demanded = Some(demanded);
        let server = pair.add_server(builder);
        let counter = pair.reference(0, &pair.counter_ior(&[0, server]));
        pair.kill(0);
        for (n, kind) in [Kind::Add, Kind::Locate, Kind::Refuse, Kind::Tell].into_iter().enumerate() {
            let call = pair.begin(0, &counter, kind, 5);
            pair.run_until_idle();
            assert!(pair.succeeded(call), "{pair}: {:?}", pair.seen(call));
            assert_eq!(pair.upcalls(server), n + 2, "{pair}: sent twice the first time only");
        }
        pair.check_promises();
    }
}

#[test]
fn a_manager_that_holds_requests_does_not_hold_the_engine() {
    for seed in seeds(0..10) {
        let mut pair = Pair::seeded(seed);
        let counter = pair.reference(0, &pair.counter_ior(&[0]));
        assert!(matches!(pair.call(0, &counter, Kind::Add), Seen::Value(_)));
        pair.hold_manager(0, true);
        let held: Vec<u64> =
            [Kind::Add, Kind::Locate, Kind::Refuse].map(|kind| pair.begin(0, &counter, kind, 8)).to_vec();
        let hurried = pair.begin_with_timeout(0, &counter, Kind::Add, 8, Some(SECOND));
        pair.run_until(pair.now() + 2 * SECOND);
        let e = pair.failure(hurried);
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{pair}");
        pair.hold_manager(0, false);
        pair.run_until_idle();
        assert!(held.iter().all(|&call| pair.succeeded(call)), "{pair}");
        pair.check_promises();
    }
}

#[test]
fn a_silent_server_ends_calls_at_their_deadline() {
    for seed in seeds(0..20) {
        let mut pair = Pair::seeded(seed);
        let counter = pair.reference(0, &pair.counter_ior(&[0]));
        pair.hold(0, true);
        let timeouts = [Duration::from_millis(70), Duration::from_micros(10_001), SECOND];
        let calls = timeouts.map(|timeout| {
            (pair.begin_with_timeout(0, &counter, Kind::Add, 4, Some(timeout)), pair.now() + timeout)
        });
        pair.run_until(pair.now() + 2 * SECOND);
        for (call, deadline) in calls {
            let e = pair.failure(call);
            assert_eq!(
                (e.kind, e.completed),
                (SystemExceptionKind::Timeout, CompletionStatus::Maybe),
                "{pair}"
            );
            assert_eq!(pair.record(call).ended_at, deadline, "{pair}");
        }
        let asked = pair.sent_toward(Side::Server);
        assert!(asked > 0, "{pair}");
        // The replies come late, while another call waits on the same connection.
        let next = pair.begin(0, &counter, Kind::Add, 40);
        pair.hold(0, false);
        pair.run_until_idle();
        assert!(pair.succeeded(next), "{pair}: {:?}", pair.seen(next));
        assert_eq!(pair.connections(), 1, "{pair}: a late reply does no harm");
        pair.check_promises();
    }
}

#[test]
fn a_call_given_up_is_cancelled_where_that_is_wanted() {
    const CANCEL_REQUEST_BYTES: usize = 16;
    let sent_in_all = |timeout| {
        let mut pair = Pair::seeded(5);
        let mut builder = Orb::builder();
        builder.config().connection.cancel_requests = true;
        let client = pair.add_client(builder);
        let counter = pair.reference(client, &pair.counter_ior(&[0]));
        pair.hold(0, true);
        pair.begin_with_timeout(client, &counter, Kind::Add, 4, Some(timeout));
        pair.run_until(pair.now() + 2 * SECOND);
        pair.sent_toward(Side::Server)
    };
    assert_eq!(sent_in_all(SECOND), sent_in_all(3 * SECOND) + CANCEL_REQUEST_BYTES);
}

#[test]
fn a_reply_that_arrives_at_the_deadline_counts() {
    for seed in seeds(0..5) {
        let ended = |timeout| {
            let mut pair = Pair::seeded(seed);
            pair.timer_lag = Duration::from_millis(1);
            // All of the reply comes at once: what comes at the deadline ends calls whose replies come after it.
            pair.segment_bytes = 1_000..1_001;
            let counter = pair.reference(0, &pair.counter_ior(&[0]));
            let call = pair.begin_with_timeout(0, &counter, Kind::Add, 4, timeout);
            pair.run_until_idle();
            assert!(pair.succeeded(call), "{pair}: {:?}", pair.seen(call));
            pair.record(call).ended_at.since(Time::ZERO)
        };
        let in_time = ended(None);
        assert_eq!(ended(Some(in_time)), in_time);
    }
}

#[test]
fn a_deadline_that_has_passed_sends_nothing() {
    let mut pair = Pair::seeded(1);
    let counter = pair.reference(0, &pair.counter_ior(&[0]));
    let call = pair.begin_with_timeout(0, &counter, Kind::Add, 4, Some(Duration::ZERO));
    pair.run_until_idle();
    let e = pair.failure(call);
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::No), "{pair}");
    assert_eq!(pair.connections(), 0, "{pair}");
}

#[test]
fn forwards_are_followed() {
    for seed in seeds(0..10) {
        let mut pair = Pair::seeded(seed);
        let middle = pair.add_server(Orb::builder());
        let last = pair.add_server(Orb::builder().fragment_bytes(64));
        pair.forward(0, pair.moved_ior(middle));
        pair.forward(middle, pair.counter_ior(&[last]));
        let moved = pair.reference(0, &pair.moved_ior(0));
        for kind in [Kind::Locate, Kind::Add, Kind::Refuse, Kind::Tell] {
            let call = pair.begin(0, &moved, kind, 5);
            pair.run_until_idle();
            assert!(pair.succeeded(call), "{pair}: {:?}", pair.seen(call));
        }
        assert_eq!((pair.upcalls(0), pair.upcalls(middle)), (1, 1), "{pair}: the route is kept");
        pair.check_promises();
    }
}

#[test]
fn an_object_of_the_client_itself_is_called_without_a_connection() {
    let mut pair = Pair::seeded(2);
    let ior = pair.own_counter_ior(0);
    let direct = pair.reference(0, &ior);
    for kind in [Kind::Locate, Kind::Add, Kind::Refuse, Kind::Tell] {
        let call = pair.begin(0, &direct, kind, 5);
        pair.run_until_idle();
        assert!(pair.succeeded(call), "{pair}: {:?}", pair.seen(call));
    }
    assert_eq!(pair.connections(), 0, "{pair}");
    pair.forward(0, ior);
    let moved = pair.reference(0, &pair.moved_ior(0));
    for kind in [Kind::Add, Kind::Tell, Kind::Locate] {
        let call = pair.begin(0, &moved, kind, 5);
        pair.run_until_idle();
        assert!(pair.succeeded(call), "{pair}: {:?}", pair.seen(call));
    }
    assert_eq!((pair.connections(), pair.upcalls(0)), (1, 1), "{pair}: the server is called once");
    pair.check_promises();
}

#[test]
fn forwards_in_a_circle_come_to_an_end() {
    for seed in seeds(0..5) {
        let mut pair = Pair::seeded(seed);
        let other = pair.add_server(Orb::builder());
        pair.forward(0, pair.moved_ior(other));
        pair.forward(other, pair.moved_ior(0));
        let moved = pair.reference(0, &pair.moved_ior(0));
        for kind in [Kind::Add, Kind::Locate] {
            let call = pair.begin(0, &moved, kind, 5);
            pair.run_until_idle();
            let e = pair.failure(call);
            let circle = (SystemExceptionKind::Transient, MinorCode::FORWARD_LOOP, CompletionStatus::No);
            assert_eq!((e.kind, e.minor, e.completed), circle, "{pair}");
        }
        pair.check_promises();
    }
}

#[test]
fn a_forwarded_target_that_is_gone_leads_back_to_the_original() {
    for seed in seeds(0..20) {
        let mut pair = Pair::seeded(seed);
        let first = pair.add_server(Orb::builder());
        let second = pair.add_server(Orb::builder());
        pair.forward(0, pair.counter_ior(&[first]));
        let moved = pair.reference(0, &pair.moved_ior(0));
        assert!(matches!(pair.call(0, &moved, Kind::Add), Seen::Value(_)));

        // The server has gone. Several calls find out at once.
        pair.kill(first);
        pair.run_until_idle();
        pair.forward(0, pair.counter_ior(&[second]));
        let calls: Vec<u64> = (0..3).map(|_| pair.begin(0, &moved, Kind::Add, 2)).collect();
        pair.run_until_idle();
        for call in calls {
            assert!(pair.succeeded(call), "{pair}: {:?}", pair.seen(call));
        }

        // The object has gone. The client tries the original reference once more, which forwards it to the
        // same place.
        pair.deactivate_counter(second);
        let asked = pair.upcalls(0);
        let call = pair.begin(0, &moved, Kind::Add, 2);
        pair.run_until_idle();
        let e = pair.failure(call);
        let gone = (SystemExceptionKind::ObjectNotExist, CompletionStatus::No);
        assert_eq!((e.kind, e.completed), gone, "{pair}");
        assert_eq!(pair.upcalls(0), asked + 1, "{pair}");
        pair.check_promises();
    }
}

#[test]
fn garbage_from_a_server_ends_its_connection_only() {
    for seed in seeds(0..20) {
        let mut pair = Pair::seeded(seed);
        let other = pair.add_server(Orb::builder());
        pair.hold(0, true);
        let bad = pair.reference(0, &pair.counter_ior(&[0]));
        let good = pair.reference(0, &pair.counter_ior(&[other]));
        let lost = pair.begin(0, &bad, Kind::Add, 5);
        pair.run_until(pair.now() + SECOND);
        let sent = pair.sent_toward(Side::Server);
        // The bytes belong to no known protocol. Bytes of another protocol would show that the peer is no ORB,
        // and that it has not executed the request.
        pair.inject(0, Side::Client, b"\xff\xfe of no protocol at all\r\n");
        let unaffected = pair.begin(0, &good, Kind::Add, 5);
        pair.run_until_idle();
        let e = pair.failure(lost);
        let malformed =
            (SystemExceptionKind::CommFailure, MinorCode::MALFORMED_REPLY, CompletionStatus::Maybe);
        assert_eq!((e.kind, e.minor, e.completed), malformed, "{pair}");
        assert_eq!(pair.sent_toward(Side::Server), sent + 12, "{pair}: a MessageError is 12 bytes");
        assert!(pair.succeeded(unaffected), "{pair}");
        pair.hold(0, false);
        assert!(matches!(pair.call(0, &bad, Kind::Add), Seen::Value(_)), "{pair}: over a new connection");
        pair.check_promises();
    }
}

#[test]
fn garbage_from_a_client_ends_its_connection_only() {
    for seed in seeds(0..20) {
        let mut pair = Pair::seeded(seed);
        let other = pair.add_client(Orb::builder());
        let ior = pair.counter_ior(&[0]);
        let (first, second) = (pair.reference(0, &ior), pair.reference(other, &ior));
        pair.call(0, &first, Kind::Add);
        pair.call(other, &second, Kind::Add);
        let before = pair.begin(0, &first, Kind::Add, 5);
        pair.run_until(pair.now());
        pair.inject(0, Side::Server, b"GIOP\x01\x02\x01\x09\x00\x00\x00\x00");
        let after = pair.begin(0, &first, Kind::Add, 5);
        let unaffected = pair.begin(other, &second, Kind::Add, 5);
        pair.run_until_idle();
        assert!(pair.succeeded(before), "{pair}: what came before the garbage is answered");
        let e = pair.failure(after);
        let peer_error = (SystemExceptionKind::CommFailure, MinorCode::PEER_MESSAGE_ERROR);
        assert_eq!((e.kind, e.minor), peer_error, "{pair}");
        assert_eq!(pair.executions.of(after), 0, "{pair}: nothing after the garbage is carried out");
        assert!(pair.succeeded(unaffected), "{pair}");
        assert!(matches!(pair.call(0, &first, Kind::Add), Seen::Value(_)), "{pair}: over a new connection");
        pair.check_promises();
    }
}

#[test]
fn a_client_that_shuts_down_ends_its_calls() {
    for seed in seeds(0..20) {
        let mut pair = Pair::seeded(seed);
        let counter = pair.reference(0, &pair.counter_ior(&[0]));
        let calls: Vec<u64> = (0..5).map(|_| pair.begin(0, &counter, Kind::Add, 5)).collect();
        let when = pair.random.micros(0..8_000);
        pair.after(when, |pair| pair.client_event(0, ClientEvent::Shutdown));
        pair.run_until_idle();
        let late = pair.begin(0, &counter, Kind::Add, 5);
        pair.run_until_idle();
        for call in calls.into_iter().chain([late]) {
            if let Seen::Failed(e) = pair.seen(call) {
                assert_eq!(e.kind, SystemExceptionKind::BadInvOrder, "{pair}");
            }
        }
        assert_eq!(pair.failure(late).completed, CompletionStatus::No, "{pair}");
        pair.check_promises();
    }
}

#[test]
fn more_calls_than_a_connection_takes_are_refused() {
    let mut pair = Pair::seeded(6);
    let mut builder = Orb::builder();
    builder.config().connection.calls_in_flight_max = 3;
    let client = pair.add_client(builder);
    pair.hold(0, true);
    let counter = pair.reference(client, &pair.counter_ior(&[0]));
    let calls: Vec<u64> = (0..5).map(|_| pair.begin(client, &counter, Kind::Add, 5)).collect();
    pair.run_until(pair.now() + SECOND);
    pair.hold(0, false);
    pair.run_until_idle();
    for (n, &call) in calls.iter().enumerate() {
        match pair.seen(call) {
            Seen::Value(_) => assert!(n < 3, "{pair}"),
            Seen::Failed(e) => assert_eq!(
                (e.kind, e.minor, e.completed, n >= 3),
                (SystemExceptionKind::NoResources, MinorCode::TOO_MANY_CALLS, CompletionStatus::No, true),
                "{pair}"
            ),
            other => panic!("{pair}: {other:?}"),
        }
    }
    pair.check_promises();
}

#[test]
fn a_client_that_floods_a_server_waits_at_its_own_connection() {
    let mut pair = Pair::seeded(6);
    let mut builder = Orb::builder();
    builder.config().connection.calls_in_flight_max = 3;
    let server = pair.add_server(builder);
    pair.hold(server, true);
    let counter = pair.reference(0, &pair.counter_ior(&[server]));
    let calls: Vec<u64> = (0..20).map(|_| pair.begin(0, &counter, Kind::Add, 5)).collect();
    pair.run_until(pair.now() + SECOND);
    assert_eq!(pair.upcalls(server), 3, "{pair}: only so many are announced at once");
    pair.hold(server, false);
    pair.run_until_idle();
    assert!(calls.iter().all(|&call| pair.succeeded(call)), "{pair}");
    pair.check_promises();
}

/// Random clients, servers and objects of all sorts, with every fault.
fn soak(seed: u64) -> Pair {
    let mut pair = Pair::seeded(seed);
    let mut random = Random::new(!seed);
    if random.once_in(2) {
        pair.segment_bytes = 1..2_000;
    }
    if random.once_in(4) {
        pair.timer_lag = random.micros(0..5_000);
    }
    if random.once_in(3) {
        pair.window = Some(random.within(50..2_000));
    }
    if random.once_in(4) {
        pair.client_idle_timeout = Some(random.micros(1_000..50_000));
    }
    for _ in 0..random.within(0..3) {
        let mut builder = Orb::builder();
        if random.once_in(2) {
            builder = builder.fragment_bytes(64);
        }
        if random.once_in(2) {
            builder = builder.oneway_batching(Some(OnewayBatching::DEFAULT));
        }
        builder.config().bidirectional = random.once_in(2);
        if random.once_in(2) {
            builder.config().transmit_bytes_max = random.within(0..1_000);
        }
        pair.add_client(builder);
    }
    for _ in 0..random.within(1..3) {
        let mut builder = Orb::builder();
        if random.once_in(3) {
            let demands = [AddressingDisposition::Profile, AddressingDisposition::Reference];
            builder.config().addressing_demanded = Some(demands[random.within(0..2)]);
        }
        builder.config().bidirectional = random.once_in(2);
        let builder = if random.once_in(2) { builder.fragment_bytes(64) } else { builder };
        if random.once_in(2) {
            pair.add_two_way_server(builder)
        } else {
            pair.add_server(builder)
        };
    }
    let callers: Vec<usize> = (0..pair.servers()).filter_map(|server| pair.caller_of(server)).collect();
    let (clients, servers) = (pair.clients(), pair.servers());
    let mut iors: Vec<_> = (0..servers).map(|server| pair.counter_ior(&[server])).collect();
    iors.push(pair.counter_ior(&(0..servers).collect::<Vec<_>>()));
    iors.extend((0..servers).map(|server| pair.moved_ior(server)));
    let objects: Vec<Vec<_>> =
        (0..clients).map(|client| iors.iter().map(|ior| pair.reference(client, ior)).collect()).collect();
    let own: Vec<_> = (0..clients).filter(|client| !callers.contains(client)).collect();
    let own: Vec<_> = own.into_iter().map(|client| pair.own_counter_ior(client)).collect();
    for _ in 0..random.within(20..80) {
        let wait = random.micros(0..2_000);
        match random.within(0..40) {
            0 => pair.break_connections(random.within(0..servers)),
            1 => pair.retire_connections(random.within(0..servers)),
            2 => {
                let server = random.within(0..servers);
                pair.kill(server);
                pair.after(random.micros(0..20_000), move |pair| pair.start(server));
            }
            3 => {
                let server = random.within(0..servers);
                pair.hold(server, true);
                pair.after(random.micros(0..60_000_000), move |pair| pair.hold(server, false));
            }
            4 => {
                let server = random.within(0..servers);
                pair.black_hole(server, true);
                pair.after(random.micros(0..15_000_000), move |pair| pair.black_hole(server, false));
            }
            5 if pair.connections() > 0 => {
                let wire = random.within(0..pair.connections());
                let toward = if random.once_in(2) { Side::Client } else { Side::Server };
                pair.inject(wire, toward, &[random.next() as u8; 40]);
            }
            8 if pair.connections() > 0 => {
                let wire = random.within(0..pair.connections());
                let end = if random.once_in(2) { Side::Client } else { Side::Server };
                pair.read(wire, end, false);
                pair.after(random.micros(0..40_000_000), move |pair| pair.read(wire, end, true));
            }
            7 => {
                let server = random.within(0..servers);
                pair.hold_manager(server, true);
                pair.after(random.micros(0..3_000_000), move |pair| pair.hold_manager(server, false));
            }
            6 => {
                let target = iors[random.within(0..iors.len())].clone();
                pair.forward(random.within(0..servers), target);
            }
            _ => {
                let client = random.within(0..clients);
                let object = match callers.contains(&client) {
                    // Its process may have been started again.
                    true => pair.reference(client, &own[random.within(0..own.len())]),
                    false => objects[client][random.within(0..iors.len())].clone(),
                };
                let kinds = [Kind::Add, Kind::Add, Kind::Add, Kind::Refuse, Kind::Tell, Kind::Locate];
                let kind = kinds[random.within(0..kinds.len())];
                let timeout = if random.once_in(4) { random.micros(0..6_000) } else { CALL_TIMEOUT };
                pair.begin_with_timeout(client, &object, kind, random.within(0..300), Some(timeout));
            }
        }
        let until = pair.now() + wait;
        pair.run_until(until);
    }
    pair.run_until_idle();
    pair.check_promises();
    pair
}

#[test]
fn everything_at_once_never_breaks_a_promise() {
    let all = seeds(0..200);
    let mut seen = BTreeSet::new();
    for &seed in &all {
        seen.extend(kinds_seen(&soak(seed)));
    }
    if all.len() > 1 {
        for kind in [
            "value",
            "value called back",
            "refused",
            "sent",
            "located true",
            "COMM_FAILURE Maybe",
            "TRANSIENT No",
            "TIMEOUT No",
            "TIMEOUT Maybe",
        ] {
            assert!(seen.contains(kind), "the random choices have left out {kind}: {seen:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in seeds(0..5) {
        assert_eq!(soak(seed).history(), soak(seed).history(), "seed {seed}");
    }
}
