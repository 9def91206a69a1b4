//! Scenarios as programs do what the queues of level L0 do.

use std::time::Duration;

use ironorb_model::scenario::{self, Scenario};
use ironorb_model::{Observations, queueing};
use ironorb_programs::ProgramsError;
use ironorb_sim::Sim;

fn read(text: &str) -> Scenario {
    let scenarios = scenario::read(text, "programs.toml");
    scenarios.unwrap_or_else(|problems| panic!("{problems:?}")).remove(0)
}

/// Runs a scenario at both levels, with the seed of the simulation: what L0 has seen, and what L2 has.
fn both(sim: &mut Sim, text: &str, warm_up: Duration) -> [Observations; 2] {
    let scenario = read(text);
    let queued = queueing::run(&scenario, sim.seed(), warm_up).unwrap();
    let programs = ironorb_programs::run(sim, &scenario, warm_up).unwrap();
    [queued, programs]
}

/// What is equal whatever the order in which equal moments are taken.
fn counts(seen: &Observations) -> (u64, u64, u64, Vec<(u64, u64)>) {
    let classes = seen.classes.iter().map(|class| (class.completed, class.failed));
    (seen.calls, seen.messages, seen.octets, classes.collect())
}

/// Expects equal calls, messages, octets, response times and use of resources.
fn expect_equal([queued, programs]: &[Observations; 2]) {
    assert_eq!(counts(programs), counts(queued), "at L2, and at L0");
    assert!(queued.classes.iter().all(|class| class.completed > 20), "there is something to compare");
    for (ours, theirs) in programs.classes.iter().zip(&queued.classes) {
        assert_eq!(ours.response_ns, theirs.response_ns, "{}", ours.name);
        assert_eq!(ours.response, theirs.response, "{}", ours.name);
        assert_eq!(ours.unfinished, theirs.unfinished, "{}", ours.name);
    }
    let names = |seen: &Observations| -> Vec<String> {
        seen.resources.iter().map(|resource| resource.name.clone()).collect()
    };
    assert_eq!(names(programs), names(queued));
    for (ours, theirs) in programs.resources.iter().zip(&queued.resources) {
        let (ours_used, theirs_used) = (ours.utilisation, theirs.utilisation);
        assert!((ours_used - theirs_used).abs() < 1e-6, "{}: {ours_used} and {theirs_used}", ours.name);
        assert!((ours.queue_mean - theirs.queue_mean).abs() < 1e-6, "{ours:?} and {theirs:?}");
        assert_eq!((ours.queue_max, ours.octets), (theirs.queue_max, theirs.octets), "{}", ours.name);
    }
}

/// Two hosts with a link of 1 Gbit/s.
const HOSTS: &str = r#"
    hosts = [{ name = "a", count = 2, cores = 2 }, { name = "b", cores = 2 }, { name = "c", speed = 2.0 }]
    link = { latency = "100 us", bandwidth = "1 Gbit/s" }
"#;

#[ironorb_sim::test(seeds = 2)]
fn clients_of_one_server(sim: &mut Sim) {
    let text = r#"
        span = "100 ms"
        servers = [{ name = "s", hosts = "b", operations = [
            { name = "get", request_octets = 8, reply_octets = 5_000 }, { name = "note", oneway = true, request_octets = 3 },
        ] }]
        classes = [{ name = "c", hosts = "a", clients = 5, think = { exponential = "2 ms" }, mix = [
            { calls = [{ call = "s.get" }] }, { calls = [{ call = "s.note" }, { call = "s.get", times = 2 }] },
        ] }]
    "#;
    expect_equal(&both(sim, &format!("{text}{HOSTS}"), Duration::ZERO));
}

/// While nothing passes a link, what is sent waits.
#[ironorb_sim::test(seeds = 2)]
fn links_with_outages(sim: &mut Sim) {
    let text = r#"
        span = "200 ms"
        hosts = [{ name = "a" }, { name = "b" }]
        servers = [{ name = "s", hosts = "b", operations = [{ name = "get" }] }]
        classes = [{ name = "c", hosts = "a", clients = 1, think = "800 us", mix = [{ calls = [{ call = "s.get" }] }] }]
        [[links]]
        between = ["b", "a"]
        latency = "100 us"
        retransmit_after = "3 ms"
        outages = [{ from = "40.5 ms", until = "55 ms", kind = "hold" }, { from = "100.8 ms", until = "110 ms" }]
    "#;
    let mut seen = both(sim, text, Duration::ZERO);
    // At L2 what an outage holds waits at its host, and in no queue of the link.
    let link = seen[0].resources.iter_mut().find(|it| it.name == "link a -> b").unwrap();
    assert_eq!(link.queue_max, 1);
    (link.queue_mean, link.queue_max) = (0.0, 0);
    expect_equal(&seen);
    // The client thinks when the link is held and when it is cut. It thinks first: the call that is held begins at 40.8 ms.
    let longest = seen[0].classes[0].response.max();
    assert!((14_000_000..15_000_000).contains(&longest), "{longest}");
}

/// Work takes longer after pauses of threads and of processors.
#[ironorb_sim::test(seeds = 2)]
fn clients_that_pause(sim: &mut Sim) {
    let text = r#"
        span = "200 ms"
        servers = [{ name = "s", hosts = "b", operations = [{ name = "get", demand = "20 us" }] }]
        classes = [{ name = "c", hosts = "c", clients = 1, think = { exponential = "2 ms" }, mix = [{ calls = [{ call = "s.get" }] }] }]
        dwell = { write_request = "3 us", read_reply = "2 us", thread_pause = [["200 us", "5 us"], ["5 ms", "40 us"]],
            processor_pause = [["500 us", "11 us"]] }
    "#;
    let seen = both(sim, &format!("{text}{HOSTS}"), Duration::ZERO);
    expect_equal(&seen);
    let mean = seen[0].classes[0].response_ns as u64 / seen[0].classes[0].completed;
    assert!(mean > 250_000, "it is 225 us without pauses, and here {mean} ns");
}

/// Pools and locks are full at times, processors too; all of them in the order of arrival.
#[ironorb_sim::test(seeds = 4)]
fn pools_locks_processors_and_nested_calls(sim: &mut Sim) {
    let text = r#"
        span = "200 ms"

        [[servers]]
        name = "pooled"
        hosts = "b"
        threads = 2
        objects = 1_000_000
        lock = "object"
        operations = [{ name = "work", reply_octets = 16, demand = { exponential = "300 us" } }]

        [[servers]]
        name = "station"
        hosts = "c"
        threads = 3
        lock = "process"
        operations = [{ name = "sleep", demand = { uniform = ["100 us", "400 us"] }, sleeps = true }]

        [[servers]]
        name = "front"
        hosts = "c"
        objects = 3
        operations = [{ name = "ask", demand = "20 us", calls = [
            { call = "pooled.work", times = 2, target = "robin" }, { call = "station.sleep" },
        ] }]

        [[classes]]
        name = "direct"
        hosts = "a"
        clients = 6
        think = { exponential = "500 us" }
        mix = [{ weight = 2, calls = [{ call = "pooled.work", target = { object = 7 } }] }, { calls = [{ call = "station.sleep" }] }]

        [[classes]]
        name = "nested"
        hosts = "a"
        clients = 3
        think = { exponential = "1 ms" }
        mix = [{ calls = [{ call = "front.ask", times = 2, target = "robin" }] }]

        [dwell]
        find_proxy = "1 us"
        write_request = { exponential = "3 us" }
        read_request = "2 us"
        channel = "5 us"
        find_object = "500 ns"
        execute = "1 us"
        write_reply = "2 us"
        read_reply = "1 us"
        thread_switch = "4 us"
        per_kilo_octet = "1 us"
    "#;
    let text = text.replacen("span", &format!("{HOSTS}\nspan"), 1);
    expect_equal(&both(sim, &text, Duration::from_millis(50)));
}

#[ironorb_sim::test(seeds = 2)]
fn open_classes_and_traces(sim: &mut Sim) {
    let text = r#"
        span = "200 ms"
        servers = [{ name = "s", hosts = "b", threads = 4, operations = [
            { name = "get", request_octets = 8, reply_octets = 4, demand = { exponential = "100 us" }, sleeps = true },
        ] }]
        classes = [
            { name = "open", hosts = "a", between = { exponential = "1 ms" }, mix = [{ calls = [{ call = "s.get" }] }] },
            { name = "bursts", hosts = "c", between = { exponential = "20 ms" }, burst = 3, mix = [{ calls = [{ call = "s.get" }] }] },
            { name = "trace", hosts = "b", trace = ["1 ms", "3 ms", "3.5 ms"], mix = [{ calls = [{ call = "s.get" }] }] },
        ]
    "#;
    let [queued, programs] = both(sim, &format!("{text}{HOSTS}"), Duration::ZERO);
    assert_eq!(counts(&programs), counts(&queued), "at L2, and at L0");
    assert_eq!(programs.classes[2].completed, 3);
    // Those of a burst come in another order, so only the others are known to wait as long.
    let [ours, theirs] = [&programs, &queued].map(|seen| seen.classes[0].response_mean().as_secs_f64());
    assert!((ours / theirs - 1.0).abs() < 0.05, "{ours} and {theirs}");
}

#[ironorb_sim::test(seeds = 2)]
fn priorities_travel_and_have_processors_first(sim: &mut Sim) {
    let text = r#"
        span = "200 ms"
        servers = [{ name = "s", hosts = "c", lanes = [
            { priority = 0, threads = 2 }, { priority = 100, threads = 1 }, { priority = 20_000, threads = 2 },
        ], operations = [{ name = "work", request_octets = 4, reply_octets = 4, demand = { exponential = "500 us" } }] }]
        classes = [
            { name = "low", hosts = "a", clients = 2, priority = 50, think = { exponential = "1 ms" }, mix = [{ calls = [{ call = "s.work" }] }] },
            { name = "middle", hosts = "a", clients = 2, priority = 100, think = { exponential = "2 ms" }, mix = [{ calls = [{ call = "s.work" }] }] },
            { name = "high", hosts = "a", clients = 2, priority = 20_000, think = { exponential = "3 ms" }, mix = [{ calls = [{ call = "s.work" }] }] },
        ]
    "#;
    let seen = both(sim, &format!("{text}{HOSTS}"), Duration::ZERO);
    expect_equal(&seen);
    let [low, _, high] = &seen[1].classes[..] else { panic!("three classes") };
    let means = (high.response_mean(), low.response_mean());
    assert!(means.0 * 4 < means.1 * 3, "the processor is nearly full: {means:?}");
}

/// Cycles without end would take threads without end.
#[ironorb_sim::test(seeds = 1)]
fn more_cycles_than_threads_are_told(sim: &mut Sim) {
    let text = r#"
        span = "10 s"
        hosts = [{ name = "a" }]
        servers = [{ name = "s", hosts = "a", threads = 1, operations = [{ name = "get", demand = "1 s", sleeps = true }] }]
        classes = [{ name = "c", hosts = "a", between = "1 ms", mix = [{ calls = [{ call = "s.get" }] }] }]
    "#;
    let why = ironorb_programs::run(sim, &read(text), Duration::ZERO).unwrap_err();
    assert!(matches!(&why, ProgramsError::Unstable { at, .. } if at.starts_with("2.0")), "{why}");
}

#[ironorb_sim::test(seeds = 1)]
fn what_no_program_is_made_of_is_refused(sim: &mut Sim) {
    let with = |server: &str, class: &str| {
        let text = format!(
            r#"
            span = "1 s"
            hosts = [{{ name = "a" }}]
            servers = [{{ name = "s", hosts = "a", {server} operations = [{{ name = "get", kind = "read" }}] }}]
            classes = [{{ name = "c", hosts = "a", clients = 1, {class} }}]
            "#
        );
        read(&text)
    };
    let calls = r#"mix = [{ calls = [{ call = "s.get" }] }]"#;
    let mut refused = |server: &str, class: &str| {
        let why = ironorb_programs::run(sim, &with(server, class), Duration::ZERO).unwrap_err();
        (why.to_string(), why)
    };
    let (said, why) = refused("", &format!(r#"cache = {{ lag = "1 ms", update_octets = 8 }}, {calls}"#));
    assert!(matches!(why, ProgramsError::Caches { .. }) && said.contains("class c: `cache`"), "{said}");
    let job = r#"mix = [{ job = "synchronous", parts = [{ call = "s.get" }], daemon = "s" }]"#;
    let (said, why) = refused("threads = 1,", job);
    assert!(matches!(why, ProgramsError::Jobs { .. }) && said.contains("class c: `job`"), "{said}");
    let lanes = "lanes = [{ priority = 0, threads = 1 }, { priority = 5, threads = 1 }],";
    let (said, why) = refused(lanes, &format!("priority = 6, {calls}"));
    assert!(matches!(why, ProgramsError::Lane { priority: 6, lane: 5, .. }), "{said}");
    let (said, why) = refused("", calls);
    assert!(matches!(why, ProgramsError::NoTime { .. }) && said.contains("think time"), "{said}");
}
