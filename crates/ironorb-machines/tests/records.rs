//! What runs write down.

use std::fs::{self, File};
use std::time::Duration;

use ironorb_machines::{self as machines, Records};
use ironorb_model::record::Timeline;
use ironorb_model::record::pcapng::About;
use ironorb_model::scenario::{self, Scenario};
use ironorb_model::{Observations, queueing};

const SCENARIO: &str = r#"
    span = "40 ms"
    [[hosts]]
    name = "front"
    count = 3
    [[hosts]]
    name = "back"
    count = 2
    cores = 2
    [link]
    latency = "70 us"
    bandwidth = "100 Mbit/s"
    [[servers]]
    name = "outer"
    hosts = "back"
    threads = 2
    lock = "process"
    operations = [{ name = "run", request_octets = 40, demand = { exponential = "300us" }, calls = [
        { call = "inner.get" }] }]
    [[servers]]
    name = "inner"
    hosts = "back"
    lanes = [{ priority = 0, threads = 1 }, { priority = 10, threads = 1 }]
    operations = [
        { name = "get", reply_octets = 3000, demand = { exponential = "200us" }, sleeps = true, calls = [
            { call = "inner.note" }] },
        { name = "note", oneway = true, demand = "100us" }]
    [[classes]]
    name = "callers"
    hosts = "front"
    clients = 5
    think = { exponential = "1ms" }
    priority = 5
    mix = [{ calls = [{ call = "outer.run" }, { call = "inner.note" }] }]
    [[classes]]
    name = "urgent"
    hosts = "front"
    clients = 2
    think = { exponential = "1ms" }
    priority = 20
    mix = [{ calls = [{ call = "inner.get" }] }]
    [dwell]
    write_request = "3us"
    thread_switch = { exponential = "5us" }
    write_reply = "2us"
"#;

/// Runs a scenario with a timeline. Returns what has been seen, and the lines of the trace but for those that name the level.
fn traced(
    scenario: &Scenario,
    run: impl FnOnce(&mut Timeline) -> Observations,
) -> (Observations, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let about = About { level: "?", name: "test", seed: 5, commit: "" };
    let mut timeline =
        Timeline::begin(Box::new(File::create(&path).unwrap()), &about, scenario, u64::MAX).unwrap();
    let seen = run(&mut timeline);
    assert!(timeline.end().unwrap().is_whole);
    let text = fs::read_to_string(&path).unwrap();
    (seen, text.lines().map(|line| line.trim_end_matches(',').to_owned()).collect())
}

#[test]
fn the_machines_threads_do_what_the_queues_do() {
    let scenario = scenario::read(SCENARIO, "test").unwrap_or_else(|e| panic!("{e:?}")).remove(0);
    let (queues, mut expected) = traced(&scenario, |timeline| {
        queueing::run_recorded(&scenario, 5, Duration::ZERO, Some(timeline)).unwrap()
    });
    let (seen, mut lines) = traced(&scenario, |timeline| {
        let records = Records { timeline: Some(timeline), packets: None };
        machines::run_recorded(&scenario, 5, Duration::ZERO, records).unwrap()
    });
    let without = machines::run(&scenario, 5, Duration::ZERO).unwrap();
    assert_eq!((seen.digest.value(), seen.events), (without.digest.value(), without.events));
    assert_eq!(seen.calls, queues.calls);
    let calls = lines.iter().filter(|line| line.contains("\"cat\":\"call\"")).count() as u64;
    assert_eq!(calls, seen.calls);
    for kind in ["cycle", "wait", "queue", "upcall", "lock", "sleep"] {
        assert!(lines.iter().any(|line| line.contains(&format!("\"cat\":\"{kind}\""))), "{kind}");
    }
    // Two things that happen at the same time may come in another order.
    lines.sort();
    expected.sort();
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), expected.len());
}
