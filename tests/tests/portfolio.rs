//! `examples/portfolio`: slow servers are given up at the deadline, or others are asked in their place.

use std::time::Duration;

use portfolio::exchange::{Exchange, MARKETS};
use portfolio::front_end::FrontEnd;

/// What a slow server takes: its answers are not waited for.
const SLOW: Duration = Duration::from_secs(5);

#[test]
fn what_is_late_is_given_up_and_the_rest_is_right() {
    let exchange = Exchange::open(Duration::ZERO, SLOW).unwrap();
    let front_end = FrontEnd::open(&exchange.agent()).unwrap();
    let seen = front_end.ask_all(&exchange.references(), Duration::from_secs(2), 1).unwrap();
    assert_eq!((seen.prices, seen.late, seen.failed, seen.wrong, seen.unmet), (6, 2, 0, 0, 0));
    assert_eq!(exchange.calls(), [1; 8]);
}

#[test]
fn a_second_server_answers_where_the_first_is_slow() {
    let exchange = Exchange::open(Duration::ZERO, SLOW).unwrap();
    let front_end = FrontEnd::open(&exchange.agent()).unwrap();
    // Fewer hedges than the ten that the budget has at first.
    const ROUNDS: u64 = 4;
    let seen = front_end.ask_hedged(Duration::from_millis(100), ROUNDS as i32);
    let prices = ROUNDS * MARKETS as u64;
    assert_eq!((seen.prices, seen.late, seen.failed, seen.wrong, seen.unmet), (prices, 0, 0, 0, 0));
    let counts = front_end.counts();
    assert_eq!((counts.jobs, counts.attempts.first), (ROUNDS, prices));
    // Each slow server that was asked, by chance, has had another one asked in its place.
    let calls = exchange.calls();
    assert!(counts.attempts.further >= calls[0] + calls[2], "{counts:?}, {calls:?}");
}
