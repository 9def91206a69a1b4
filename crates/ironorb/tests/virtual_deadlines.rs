//! Deadlines that requests carry, over a network whose delays the test decides.

use std::time::Duration;

use ironorb::{CompletionStatus, Orb, OrbBuilder, SystemExceptionKind};

use crate::support::random::seeds;
use crate::support::{Kind, Pair};

/// A client and a server that both have the setting, or not. Their numbers are 1.
fn pair(seed: u64, client: bool, server: bool) -> Pair {
    let orb = |yes: bool| -> OrbBuilder { Orb::builder().deadline_propagation(yes) };
    let mut pair = Pair::seeded(seed);
    pair.segment_bytes = 1_000..1_001;
    pair.add_client(orb(client));
    pair.add_server(orb(server));
    pair
}

const QUICK_US: std::ops::Range<usize> = 100..101;
const SLOW_US: std::ops::Range<usize> = 2_000_000..2_000_001;

/// Bytes that a network or a socket keeps for two seconds: the server carries out what has more time than that.
#[test]
fn what_is_late_is_not_carried_out() {
    for seed in seeds(0..5) {
        for kind in [Kind::Add, Kind::Tell] {
            let mut pair = pair(seed, true, true);
            let counter = pair.reference(1, &pair.counter_ior(&[1]));
            pair.latency_us = QUICK_US;
            let quick = pair.begin_with_timeout(1, &counter, kind, 4, Some(Duration::from_secs(1)));
            pair.run_until_idle();
            assert!(pair.succeeded(quick), "{pair}: {:?}", pair.seen(quick));
            pair.latency_us = SLOW_US;
            let late = pair.begin_with_timeout(1, &counter, kind, 4, Some(Duration::from_secs(1)));
            let in_time = pair.begin_with_timeout(1, &counter, kind, 4, Some(Duration::from_secs(5)));
            let ever = pair.begin_with_timeout(1, &counter, kind, 4, None);
            pair.run_until_idle();
            for call in [quick, in_time, ever] {
                assert!(pair.succeeded(call), "{pair}: {:?}", pair.seen(call));
                assert_eq!(pair.executions.of(call), 1, "{pair}");
            }
            assert_eq!(pair.executions.of(late), 0, "{pair}");
            assert_eq!(pair.late_requests(1), 1, "{pair}");
            if kind == Kind::Add {
                assert_eq!(pair.failure(late).kind, SystemExceptionKind::Timeout, "{pair}");
            }
        }
    }
}

#[test]
fn both_sides_need_the_setting() {
    for (client, server) in [(false, true), (true, false)] {
        let mut pair = pair(1, client, server);
        let counter = pair.reference(1, &pair.counter_ior(&[1]));
        pair.latency_us = QUICK_US;
        let quick = pair.begin(1, &counter, Kind::Tell, 4);
        pair.run_until_idle();
        pair.latency_us = SLOW_US;
        let late = pair.begin_with_timeout(1, &counter, Kind::Tell, 4, Some(Duration::from_secs(1)));
        pair.run_until_idle();
        assert_eq!((pair.executions.of(quick), pair.executions.of(late)), (1, 1), "{pair}");
        assert_eq!(pair.late_requests(1), 0, "{pair}");
    }
}

/// Under overload each request waits behind those before it, and more come than can be served. A server that knows of
/// deadlines serves what is in time, and no caller whose request is served has given up before.
#[test]
fn an_overloaded_server_serves_what_is_in_time() {
    let mut pair = pair(3, true, true);
    let counter = pair.reference(1, &pair.counter_ior(&[1]));
    pair.latency_us = QUICK_US;
    let first = pair.begin(1, &counter, Kind::Add, 4);
    pair.run_until_idle();
    assert!(pair.succeeded(first), "{pair}");
    let mut calls = Vec::new();
    for queue_us in (0..20).map(|round| 100 + round * 200_000) {
        // The queue grows by 0.2 s with each request; callers wait for 2 s.
        pair.latency_us = queue_us..queue_us + 1;
        calls.push(pair.begin_with_timeout(1, &counter, Kind::Tell, 4, Some(Duration::from_secs(2))));
        pair.run_until(pair.now()); // it is on its way
    }
    pair.run_until_idle();
    let served: Vec<u32> = calls.iter().map(|call| pair.executions.of(*call)).collect();
    // What waited for less than 2 s is served. Clocks may have run apart by a little, so one more may be.
    let count = served.iter().filter(|times| **times == 1).count();
    assert!((10..=11).contains(&count), "{served:?}");
    assert!(served[..10].iter().all(|times| *times == 1), "{served:?}");
    assert_eq!(pair.late_requests(1), 20 - count as u64, "{pair}");
}

#[test]
fn a_late_request_is_answered_with_completed_no() {
    let mut pair = pair(4, true, true);
    let counter = pair.reference(1, &pair.counter_ior(&[1]));
    pair.latency_us = QUICK_US;
    pair.begin(1, &counter, Kind::Add, 4);
    pair.run_until_idle();
    // The request is late, and the answer comes at once: its caller has given up by its own clock before.
    pair.latency_us = SLOW_US;
    let late = pair.begin_with_timeout(1, &counter, Kind::Add, 4, Some(Duration::from_secs(1)));
    pair.run_until_idle();
    let e = pair.failure(late);
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{pair}");
    assert_eq!((pair.executions.of(late), pair.late_requests(1)), (0, 1), "{pair}");
    pair.check_promises();
}
