//! Caching between processes that are stopped, killed and cut off.
//!
//! A server writes a state all the time, and notes each write in a file. Clients read it and note each read. Both read the
//! machine's clock, which is the same for both. At the end the reads are held against the writes. Nothing is asserted of how
//! long something takes: a test waits until it has happened.
//!
//! This program is the servers and clients, too: it starts itself with the one test [`part`].

mod forked;
mod logs;
mod part;
mod site;
mod unread;

use std::time::Duration;

use logs::Outcome;
use site::{LAG, Site};

/// The test that is a process of another test, and passes at once otherwise.
#[test]
fn part() {
    part::play();
}

/// The server goes on writing while a client stops, and waits for none. However much it writes, it keeps one change for each
/// object that the client holds. The client's first read afterwards is as new as any.
#[test]
fn a_stopped_client_reads_nothing_stale() {
    let site = Site::new(1);
    let server = site.server();
    let client = site.client("client");
    for _ in 0..5 {
        client.reads_from_its_cache(10);
        client.stop();
        site.writes_past(logs::now() + 5 * LAG);
        assert_eq!(site.untold(), 1);
        client.go_on();
    }
    client.reads_from_its_cache(10);
    drop((client, server));
    site.check();
}

/// What a stopped server cannot renew is read no longer than its lag.
#[test]
fn a_stopped_server_is_not_read_beyond_the_lag() {
    let site = Site::new(2);
    let server = site.server();
    let client = site.client("client");
    for _ in 0..3 {
        client.reads_from_its_cache(10);
        server.stop();
        let stopped = logs::now();
        client.fails_after(stopped);
        let goes_on = logs::now();
        client.holds_nothing_between(stopped + LAG, goes_on);
        server.go_on();
    }
    client.reads_from_its_cache(10);
    drop((client, server));
    site.check();
}

/// A server that is killed and started again has nothing to do with what was read of it before; nor has a new client.
#[test]
fn killed_processes_leave_nothing_behind() {
    let site = Site::new(3);
    let mut server = site.server();
    let client = site.client("client");
    for life in 0..3 {
        client.reads_from_its_cache(10);
        server.kill();
        client.fails_after(logs::now());
        server = site.server();
        client.reads_from_its_cache(10);
        let other = site.client(&format!("other-{life}"));
        other.reads_from_its_cache(10);
        other.kill();
    }
    drop((client, server));
    site.check();
}

/// A client that was stopped meanwhile asks the new life of its server about a session of the old one. The new life has
/// a session with the same number by then.
#[test]
fn a_session_of_an_old_life_is_none_of_the_new_one() {
    let site = Site::new(4);
    let server = site.server();
    let client = site.client("client");
    client.reads_from_its_cache(10);
    client.stop();
    server.kill();
    let server = site.server();
    let other = site.client("other");
    other.reads_from_its_cache(10);
    site.writes_past(logs::now() + 5 * LAG);
    client.go_on();
    client.reads_from_its_cache(50);
    drop((client, other, server));
    site.check();
}

/// A client that is cut off reads nothing that is older than its lag, and goes on when it can.
#[test]
fn a_partition_ends_what_is_held() {
    let site = Site::new(5);
    let server = site.server();
    let client = site.client("client");
    for _ in 0..3 {
        client.reads_from_its_cache(10);
        site.relay.hold(true, true);
        let cut = logs::now();
        client.fails_after(cut);
        site.writes_past(logs::now() + 5 * LAG);
        let goes_on = logs::now();
        client.holds_nothing_between(cut + LAG, goes_on);
        site.relay.hold(false, false);
    }
    client.reads_from_its_cache(10);
    drop((client, server));
    site.check();
}

/// An answer that comes late proves nothing newer than the question. The client waits for it as long as it takes.
#[test]
fn late_answers_renew_nothing() {
    let site = Site::new(6);
    let server = site.server();
    let client = site.patient_client("client");
    for _ in 0..10 {
        client.reads_from_its_cache(5);
        site.relay.hold(false, true);
        site.writes_past(logs::now() + 5 * LAG);
        site.relay.hold(false, false);
    }
    client.reads_from_its_cache(10);
    drop((client, server));
    site.check();
}

/// A child of a fork reads what its parent held as long as it is fresh, and asks nothing with its parent's ORB. With an ORB of its
/// own it has a session of its own. Its parent goes on.
#[test]
fn a_child_asks_nothing_with_its_parents_orb() {
    let site = Site::new(7);
    let server = site.server();
    let client = site.client("client");
    client.reads_from_its_cache(10);
    let forked = client.forks(&["child", "child-with-its-own-orb"]);
    forked[0].fails_after(logs::now());
    let from = logs::now();
    forked[1].reads_from_its_cache(50);
    client.reads_from_its_cache(50);
    forked[0].holds_nothing_between(from + LAG, logs::now());
    drop((client, server));
    site.check();
}

/// The check itself finds what must not be.
#[test]
fn broken_promises_are_found() {
    let write = |number: u64, at: u64| logs::Write { number, begun: at, done: at + 1 };
    let lag = LAG.as_nanos() as u64;
    let writes = [write(1, 10), write(2, 20), write(4, 30 + lag)];
    let read = |number, written_at, from, to| logs::Read {
        from,
        to,
        outcome: Outcome::Value { number, written_at, is_held: true },
    };
    let good = [
        read(1, 10, 21 + lag, 22 + lag),
        read(2, 20, 50 + lag, 60 + lag),
        read(3, 25, 31 + 2 * lag, 40 + 3 * lag),
    ];
    assert_eq!(logs::violations(&writes, &good, LAG), Vec::<String>::new());
    for (bad, why) in [
        (read(1, 10, 22 + lag, 23 + lag), "too old"),
        (read(2, 20, 15, 19), "from the future"),
        (read(2, 21, 25, 26), "never written"),
    ] {
        let found = logs::violations(&writes, &[bad], LAG);
        assert!(found.len() == 1 && found[0].starts_with(why), "{why}: {found:?}");
    }
    let found = logs::violations(&writes, &[read(2, 20, 30, 31), read(1, 10, 32, 33)], LAG);
    assert!(found.len() == 1 && found[0].starts_with("backwards"), "{found:?}");
    assert!(LAG > Duration::ZERO);
}
