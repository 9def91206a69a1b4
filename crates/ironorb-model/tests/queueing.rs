//! The queueing level against theory, and against sums by hand.

use std::collections::BTreeSet;
use std::time::Duration;

use ironorb_model::queueing::{self, QueueingError};
use ironorb_model::scenario::{self, Arrivals, Scenario, Spread};
use ironorb_model::{Halt, Observations, ResourceObservations};

fn scenario(text: &str) -> Scenario {
    let read = scenario::read(text, "test").unwrap_or_else(|problems| {
        panic!("{}", problems.iter().map(|problem| format!("{problem}\n")).collect::<String>())
    });
    read.into_iter().next().expect("a file has a scenario")
}

fn run(text: &str, seed: u64, warm_up: Duration) -> Observations {
    queueing::run(&scenario(text), seed, warm_up).expect("a run that ends")
}

/// A number that a run has shown.
type Figure = fn(&Observations) -> f64;

/// Checks means of runs with different seeds against theory: each may be off by four standard errors, and these must be small
/// enough to tell something.
fn check(text: &str, theory: &[(Figure, f64)]) {
    const RUNS: u64 = 16;
    let scenario = scenario(text);
    let warm_up = scenario.span / 10;
    let runs: Vec<Observations> =
        (0..RUNS).map(|seed| queueing::run(&scenario, seed, warm_up).expect("a run that ends")).collect();
    for (number, (of, theory)) in theory.iter().enumerate() {
        let values: Vec<f64> = runs.iter().map(of).collect();
        let mean = values.iter().sum::<f64>() / RUNS as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (RUNS - 1) as f64 / RUNS as f64).sqrt();
        assert!((mean - theory).abs() < 4.0 * error, "{number}: {mean} +- {error} instead of {theory}");
        assert!(error < 0.02 * theory, "{number}: {error} is too much to tell anything about {theory}");
    }
}

fn response_ms(seen: &Observations) -> f64 {
    seen.classes[0].response_ns as f64 / seen.classes[0].completed as f64 / 1e6
}

fn throughput_per_ms(seen: &Observations) -> f64 {
    seen.classes[0].completed as f64 / seen.span.as_secs_f64() / 1e3
}

/// A server whose servants sleep: a station of queueing theory.
fn station(threads: u32, demand: &str, arrivals: &str) -> String {
    format!(
        r#"
        span = "16 s"
        hosts = [{{ name = "h" }}]
        classes = [{{ name = "c", hosts = "h", {arrivals}, mix = [{{ calls = [{{ call = "s.work" }}] }}] }}]
        [[servers]]
        name = "s"
        hosts = "h"
        threads = {threads}
        operations = [{{ name = "work", sleeps = true, demand = {demand} }}]
        "#
    )
}

const POISSON: &str = "between = { exponential = \"1ms\" }";

#[test]
fn one_server_with_exponential_times() {
    // M/M/1: W = 1 / (mu - lambda).
    let text = station(1, r#"{ exponential = "0.6ms" }"#, POISSON);
    // In the queue: lambda (W - 1 / mu).
    let theory: [(Figure, f64); 3] = [
        (response_ms, 1.0 / (1.0 / 0.6 - 1.0)),
        (|seen| pool_of(seen).utilisation, 0.6),
        (|seen| pool_of(seen).queue_mean, 0.36 / 0.4),
    ];
    check(&text, &theory);
}

fn pool_of(seen: &Observations) -> &ResourceObservations {
    let threads = seen.resources.iter().find(|resource| resource.name == "threads of s");
    threads.expect("the pool is observed")
}

#[test]
fn one_server_with_fixed_times() {
    // M/D/1: W = d + rho d / (2 (1 - rho)).
    let text = station(1, r#""0.6ms""#, POISSON);
    check(&text, &[(response_ms, 0.6 + 0.6 * 0.6 / (2.0 * 0.4))]);
}

#[test]
fn several_servers() {
    // M/M/3 with a = 2.1: Erlang's C.
    let (offered, servers) = (2.1_f64, 3.0);
    let last = offered.powi(3) / 6.0 * servers / (servers - offered);
    let waits = last / (1.0 + offered + offered * offered / 2.0 + last);
    let text = station(3, r#"{ exponential = "2.1ms" }"#, POISSON);
    check(&text, &[(response_ms, 2.1 + waits * 2.1 / (servers - offered))]);
}

#[test]
fn machines_and_their_repairman() {
    // Closed: N clients that think Z and are served S, both exponential. By the recursion for one station.
    let (think, served, clients) = (4.0, 1.0, 6);
    let (mut queue, mut throughput) = (0.0, 0.0);
    for population in 1..=clients {
        let response = served * (1.0 + queue);
        throughput = f64::from(population) / (think + response);
        queue = throughput * response;
    }
    let arrivals = format!(r#"clients = {clients}, think = {{ exponential = "4ms" }}"#);
    let text = station(1, r#"{ exponential = "1ms" }"#, &arrivals);
    let response = f64::from(clients) / throughput - think;
    check(&text, &[(throughput_per_ms, throughput), (response_ms, response)]);
}

#[test]
fn two_servers_one_after_the_other() {
    // Jackson: the sum of two M/M/1.
    let text = r#"
        span = "16 s"
        hosts = [{ name = "h" }]
        [[servers]]
        name = "first"
        hosts = "h"
        threads = 1
        operations = [{ name = "work", sleeps = true, demand = { exponential = "0.5ms" } }]
        [[servers]]
        name = "second"
        hosts = "h"
        threads = 1
        operations = [{ name = "work", sleeps = true, demand = { exponential = "0.3ms" } }]
        [[classes]]
        name = "c"
        hosts = "h"
        between = { exponential = "1ms" }
        mix = [{ calls = [{ call = "first.work" }, { call = "second.work" }] }]
    "#;
    check(text, &[(response_ms, 1.0 / (2.0 - 1.0) + 1.0 / (1.0 / 0.3 - 1.0))]);
}

#[test]
fn processors_are_shared() {
    // An M/M/2 of processors: threads enough for all.
    let text = r#"
        span = "16 s"
        hosts = [{ name = "clients" }, { name = "h", cores = 2, speed = 2.0 }]
        [[servers]]
        name = "s"
        hosts = "h"
        threads = 1000
        operations = [{ name = "work", demand = { exponential = "2.4ms" } }]
        [[classes]]
        name = "c"
        hosts = "clients"
        between = { exponential = "1ms" }
        mix = [{ calls = [{ call = "s.work" }] }]
    "#;
    let offered = 1.2_f64;
    let last = offered * offered / 2.0 * 2.0 / (2.0 - offered);
    let waits = last / (1.0 + offered + last);
    check(text, &[(response_ms, 1.2 + waits * 1.2 / (2.0 - offered))]);
}

/// The workload of the paper on parallel interaction: four stations that serve one request at a time, and clients that ask for
/// two of them at once, in turn the first two and the others.
fn par_04(architecture: &str, clients: u32, daemon_threads: u32) -> String {
    let station = |name: &str, ms: u32| {
        format!(
            r#"{{ name = "{name}", hosts = "{name}", threads = 1, operations = [
                {{ name = "operate", sleeps = true, demand = "{ms}ms", request_octets = 50, reply_octets = 50 }}] }}"#
        )
    };
    let job = |one: &str, other: &str| {
        format!(
            r#"{{ job = "{architecture}", daemon = "daemon",
                parts = [{{ call = "{one}.operate" }}, {{ call = "{other}.operate" }}] }}"#
        )
    };
    format!(
        r#"
        span = "11 s"
        hosts = [{{ name = "clients" }}, {{ name = "a" }}, {{ name = "b" }}, {{ name = "c" }}, {{ name = "d" }}]
        servers = [
            {},
            {},
            {},
            {},
            {{ name = "daemon", hosts = "clients", threads = {daemon_threads}, operations = [{{ name = "none" }}] }},
        ]
        [[classes]]
        name = "jobs"
        hosts = "clients"
        clients = {clients}
        choice = "in-turn"
        mix = [{}, {}]
        "#,
        station("a", 50),
        station("b", 55),
        station("c", 50),
        station("d", 55),
        job("a", "b"),
        job("c", "d"),
    )
}

#[test]
fn jobs_with_fixed_demands_take_what_they_must() {
    for (architecture, messages, response_ms) in
        [("sequential", 12, 105), ("handle-driven", 10, 55), ("forwarding", 11, 55), ("synchronous", 6, 55)]
    {
        let alone = run(&par_04(architecture, 1, 10), 1, Duration::ZERO);
        let seen = &alone.classes[0];
        assert_eq!(seen.response_mean(), Duration::from_millis(response_ms), "{architecture}");
        assert!(seen.response.max() - seen.response.min() < 100_000, "{architecture}: to three digits");
        // The job that is on its way at the end has sent a part of its messages.
        let cycles = alone.messages as f64 / messages as f64;
        assert!(
            (cycles - seen.completed as f64).abs() <= 1.0,
            "{architecture}: {cycles} of {}",
            seen.completed
        );
    }
}

#[test]
fn jobs_of_many_clients_are_bounded_by_the_slow_stations() {
    for (architecture, daemon_threads, bottlenecks) in [
        ("sequential", 10, 2.0),
        ("handle-driven", 10, 2.0),
        ("forwarding", 10, 2.0),
        ("synchronous", 10, 2.0),
        // Its one thread waits with each job.
        ("synchronous", 1, 1.0),
    ] {
        let seen = run(&par_04(architecture, 10, daemon_threads), 1, Duration::from_secs(2));
        let throughput = seen.classes[0].completed as f64 / seen.span.as_secs_f64();
        let bound = bottlenecks / 0.055;
        assert!((throughput / bound - 1.0).abs() < 0.006, "{architecture}: {throughput} instead of {bound}");
    }
}

const TWO_HOSTS: &str = r#"
    span = "100ms"
    hosts = [{ name = "clients", cores = 2 }, { name = "h", cores = 4 }]
    link = { latency = "100us", bandwidth = "8 Mbit/s", packet_overhead = 0 }
"#;

#[test]
fn a_call_is_one_step_after_another() {
    let text = format!(
        r#"{TWO_HOSTS}
        servers = [{{ name = "s", hosts = "h", threads = 1, operations = [
            {{ name = "get", demand = "1ms", request_octets = 4, reply_octets = 4 }}] }}]
        classes = [{{ name = "c", hosts = "clients", trace = ["0ms", "50ms"], mix = [{{ calls = [{{ call = "s.get" }}] }}] }}]
        [dwell]
        find_proxy = "1us"
        write_request = "2us"
        channel = "4us"
        thread_switch = "8us"
        read_request = "16us"
        find_object = "32us"
        execute = "64us"
        write_reply = "128us"
        read_reply = "256us"
        per_kilo_octet = "1ms"
    "#
    );
    let seen = run(&text, 1, Duration::ZERO);
    let sizes = queueing::MessageSizes::of("get", 4, 4, false);
    let steps = 1 + 2 + 4 + (4 + 8 + 16 + 32) + 64 + (128 + 4) + (4 + 8 + 256) + 4 * 4;
    let both = |request: u64| 1_000 + steps + 200 + request + sizes.reply;
    let response = &seen.classes[0].response;
    let close = |us: u64, ns: u64| (ns / 1_000).abs_diff(us) <= 1;
    assert!(
        close(both(sizes.introduction), response.max()),
        "{} {}",
        both(sizes.introduction),
        response.max()
    );
    assert!(close(both(sizes.request), response.min()), "{} {}", both(sizes.request), response.min());
    assert_eq!((seen.calls, seen.messages), (2, 4));
    assert_eq!(seen.octets, sizes.introduction + sizes.request + 2 * sizes.reply);
}

#[test]
fn locks_hold_up_requests_and_lanes_do_not() {
    let lock = |lock: &str, target: &str| {
        let text = format!(
            r#"{TWO_HOSTS}
            servers = [{{ name = "s", hosts = "h", threads = 4, objects = 4, lock = "{lock}", operations = [
                {{ name = "work", sleeps = true, demand = "1ms" }}] }}]
            classes = [{{ name = "c", hosts = "clients", clients = 4, mix = [
                {{ calls = [{{ call = "s.work", target = {target} }}] }}] }}]
        "#
        );
        run(&text, 1, Duration::from_millis(10)).classes[0].completed
    };
    let (free, of_one, of_all) =
        (lock("none", "\"robin\""), lock("object", "{ object = 2 }"), lock("process", "\"robin\""));
    assert!((99..=101).contains(&of_one) && (99..=101).contains(&of_all), "{of_one} {of_all}: one at a time");
    assert!(free > 250, "{free}: four at a time, and the way");
    let lanes = r#"
        span = "1s"
        hosts = [{ name = "h" }]
        [[servers]]
        name = "s"
        hosts = "h"
        lanes = [{ priority = 1, threads = 1 }, { priority = 10, threads = 1 }]
        operations = [{ name = "work", demand = "1ms" }]
        [[classes]]
        name = "low"
        hosts = "h"
        clients = 3
        priority = 5
        mix = [{ calls = [{ call = "s.work" }] }]
        [[classes]]
        name = "high"
        hosts = "h"
        between = "10ms"
        priority = 20
        mix = [{ calls = [{ call = "s.work" }] }]
    "#;
    let seen = run(lanes, 1, Duration::ZERO);
    let high = &seen.classes[1];
    assert_eq!(high.response_mean(), Duration::from_millis(1), "it waits for no thread, and preempts");
    assert_eq!((high.completed, seen.classes[0].completed), (99, 900), "the 901st would end with the run");
}

#[test]
fn nested_calls_oneways_and_connections() {
    let text = format!(
        r#"{TWO_HOSTS}
        [[servers]]
        name = "front"
        hosts = "clients"
        operations = [{{ name = "ask", calls = [
            {{ call = "back.get", times = 3 }}, {{ call = "back.note" }}, {{ call = "front.local" }}] }}, {{ name = "local" }}]
        [[servers]]
        name = "back"
        hosts = "h"
        threads = 1
        operations = [{{ name = "get" }}, {{ name = "note", oneway = true, demand = "7ms" }}]
        [[classes]]
        name = "c"
        hosts = "h"
        trace = ["0ms"]
        mix = [{{ calls = [{{ call = "front.ask" }}] }}]
    "#
    );
    let seen = run(&text, 1, Duration::ZERO);
    assert_eq!(seen.calls, 6);
    assert_eq!(seen.messages, 2 + 3 * 2 + 1, "the call within the process sends nothing");
    let sizes = |name| queueing::MessageSizes::of(name, 0, 0, false);
    let get = sizes("get");
    let octets = sizes("ask").introduction + sizes("ask").reply;
    let octets = octets + get.introduction + 2 * get.request + 3 * get.reply + sizes("note").request;
    assert_eq!(seen.octets, octets);
    assert!(seen.classes[0].response.max() < 1_600_000, "nothing waits for the oneway");
}

#[test]
fn equal_seeds_give_equal_runs() {
    // Caches, jobs, lanes, locks, nested calls and oneways over links that lose, delay, overtake and double.
    let mut all = scenario(include_str!("scenarios/all.toml"));
    all.span = Duration::from_millis(20);
    let run = |seed| queueing::run(&all, seed, Duration::from_millis(1)).expect("a run that ends");
    let shown = |seen: &Observations| {
        let times: Vec<u128> = seen.classes.iter().map(|class| class.response_ns).collect();
        (seen.digest.value(), seen.messages, seen.octets, seen.calls, seen.events, times)
    };
    let mut digests = BTreeSet::new();
    for seed in 0..100 {
        let (once, again) = (run(seed), run(seed));
        assert!(once.messages > 100, "{} messages", once.messages);
        assert_eq!(shown(&once), shown(&again), "seed {seed}");
        digests.insert(once.digest.value());
    }
    assert_eq!(digests.len(), 100, "another seed is another run");
}

/// Of a oneway nothing is sent back: only its arrival and its end tell runs apart that send the same.
#[test]
fn digests_have_what_sends_nothing() {
    let digest = |latency: &str, demand: &str, think: &str| {
        let text = format!(
            r#"
            span = "100 ms"
            hosts = [{{ name = "front" }}, {{ name = "back" }}]
            link = {{ latency = "{latency}" }}
            servers = [{{ name = "s", hosts = "back", threads = 1, operations = [{{ name = "note", oneway = true, demand = "{demand}" }}] }}]
            [[classes]]
            name = "c"
            hosts = "front"
            clients = 1
            think = "{think}"
            mix = [{{ calls = [{{ call = "s.note" }}] }}]
            "#
        );
        run(&text, 1, Duration::ZERO).digest.value()
    };
    let digests = [
        digest("1 ms", "1 ms", "60 ms"),
        digest("2 ms", "1 ms", "60 ms"),
        digest("1 ms", "2 ms", "60 ms"),
        digest("1 ms", "1 ms", "61 ms"),
        digest("1 ms", "1 ms", "1 s"),
    ];
    assert_eq!(BTreeSet::from(digests).len(), digests.len(), "{digests:x?}");
}

#[test]
fn what_cannot_go_on_is_told() {
    let stuck = r#"
        span = "1s"
        hosts = [{ name = "h" }, { name = "i" }]
        [[servers]]
        name = "a"
        hosts = "h"
        threads = 1
        operations = [{ name = "outer", calls = [{ call = "b.middle" }] }, { name = "inner" }]
        [[servers]]
        name = "b"
        hosts = "i"
        threads = 1
        operations = [{ name = "middle", calls = [{ call = "a.inner" }] }]
        [[classes]]
        name = "c"
        hosts = "i"
        clients = 1
        mix = [{ calls = [{ call = "a.outer" }] }]
    "#;
    let error = queueing::run(&scenario(stuck), 1, Duration::ZERO).unwrap_err();
    assert!(matches!(error, QueueingError::Halt(Halt::Standstill { calls: 3, .. })), "{error}");
    let idle = station(1, "\"0s\"", "clients = 1");
    let error = queueing::run(&scenario(&idle), 1, Duration::ZERO).unwrap_err();
    assert!(matches!(error, QueueingError::Halt(Halt::NoTime { .. })), "{error}");
}

/// As a plan may make them, of a file that is good.
#[test]
fn more_processors_than_there_is_memory_for_are_refused() {
    let mut many = scenario(&station(1, "\"0s\"", "between = \"100 ms\""));
    (many.hosts[0].count, many.hosts[0].cores) = (100_000, 1_024);
    let error = queueing::run(&many, 1, Duration::ZERO).unwrap_err();
    assert!(matches!(error, QueueingError::TooMany { what: "processors", most: 1_000_000, .. }), "{error}");
    assert!(error.to_string().ends_with("lower `count` or `cores` of `[[hosts]]`"), "{error}");
    (many.hosts[0].cores, many.servers[0].threads) = (1, Some(100_000));
    let error = queueing::run(&many, 1, Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("threads: lower `threads` of `[[servers]]`"), "{error}");
}

/// Reads and writes of objects that a second client holds.
fn caching(cache: &str, write_between: &str) -> String {
    format!(
        r#"
        span = "2s"
        hosts = [{{ name = "clients", count = 2 }}, {{ name = "h" }}]
        link = {{ latency = "200us", mtu = 1000 }}
        servers = [{{ name = "s", hosts = "h", threads = 4, objects = 50, operations = [
            {{ name = "get", kind = "read" }}, {{ name = "set", kind = "write", request_octets = 4 }}] }}]
        [[classes]]
        name = "readers"
        hosts = "clients"
        clients = 2
        think = {{ exponential = "100us" }}
        mix = [{{ calls = [{{ call = "s.get" }}] }}]
        cache = {cache}
        [[classes]]
        name = "writers"
        hosts = "clients"
        between = {{ exponential = "{write_between}" }}
        mix = [{{ calls = [{{ call = "s.set" }}] }}]
        [dwell]
        cached_read = "1us"
        write_request = "20us"
        read_request = "20us"
    "#
    )
}

#[test]
fn staleness_is_bounded_by_the_lag_and_the_way_of_a_message() {
    let text = caching(r#"{ lag = "3ms", update_octets = 20 }"#, "150us");
    let seen = run(&text, 3, Duration::from_millis(100));
    let readers = &seen.classes[0];
    assert!(readers.cache_hits > 20_000 && readers.cache_misses == 0, "{}", readers.cache_hits);
    // The server's and the holder's work, which may have to wait for a processor behind some others, and the link.
    let way = 200_000 + 20_000 + 20_000;
    let oldest = readers.staleness.max();
    assert!(oldest <= 3_000_000 + way + 10 * 20_000, "{oldest} ns");
    assert!(oldest > 2_000_000, "{oldest} ns: updates are collected");
}

#[test]
fn updates_leave_by_lag_by_size_and_at_once() {
    let updates = |cache: &str| {
        let seen = run(&caching(cache, "150us"), 3, Duration::ZERO);
        let writes = seen.classes[1].completed;
        ((seen.messages - 2 * writes) as f64 / 2.0 / writes as f64, seen)
    };
    let (by_lag, _) = updates(r#"{ lag = "3ms", update_octets = 20 }"#);
    assert!((0.03..0.06).contains(&by_lag), "{by_lag}: about one message for 21 writes");
    let (by_size, _) = updates(r#"{ lag = "30ms", update_octets = 200 }"#);
    assert!((0.24..0.28).contains(&by_size), "{by_size}: four updates fill a message");
    let (at_once, pushed) = updates(r#"{ lag = "3ms", update_octets = 20, mode = "push" }"#);
    assert!((0.99..1.01).contains(&at_once), "{at_once}");
    assert!(pushed.classes[0].staleness.max() < 500_000, "{}", pushed.classes[0].staleness.max());
    let (answered, linear) = updates(r#"{ lag = "3ms", update_octets = 20, mode = "linearizable" }"#);
    assert!((1.99..2.01).contains(&answered), "{answered}: an update and an answer");
    assert_eq!(linear.classes[0].staleness.max(), 0, "no write has returned that a read does not see");
    let (write, pushed) = (linear.classes[1].response_mean(), pushed.classes[1].response_mean());
    assert!(
        write > pushed + Duration::from_micros(400),
        "{write:?} and {pushed:?}: a write waits for the holders"
    );
}

#[test]
fn what_does_not_fit_into_a_cache_is_called() {
    let seen =
        run(&caching(r#"{ lag = "3ms", capacity = "40 %", update_octets = 20 }"#, "1ms"), 3, Duration::ZERO);
    let readers = &seen.classes[0];
    let share = readers.cache_hits as f64 / (readers.cache_hits + readers.cache_misses) as f64;
    assert!((0.3..0.5).contains(&share), "{share} of 50 objects");
    assert!(readers.response.value_at_quantile(0.99) > 400_000, "a miss takes the way to the server");
}

#[test]
fn the_intelligent_network_makes_ten_calls_an_attempt() {
    let text = include_str!("../../../examples/scenarios/intelligent-network.toml");
    let mut network = scenario(text);
    (network.span, network.classes[0].arrivals) = (
        Duration::from_millis(30),
        Arrivals::Open { between: Spread::Fixed(Duration::from_micros(10)), burst: 1 },
    );
    let seen = queueing::run(&network, 1, Duration::ZERO).expect("a run that ends");
    let attempts = 2_999;
    // Some are on their way at the end. One in a thousand calls is to the own process.
    let (most, least) = (11 * attempts, 11 * attempts - 11 * 600);
    assert!((least..=most).contains(&seen.calls), "{} of {most}", seen.calls);
    let within = 2.0 * seen.calls as f64 - seen.messages as f64;
    assert!(within > 0.0 && within < 0.05 * seen.messages as f64, "{within} messages were not sent");
    let response = seen.classes[0].response_mean();
    // Eleven round trips of 0.4 ms, and the work for them.
    assert!((4_400..5_500).contains(&response.as_micros()), "{response:?}");
}

/// Cycles of a client whose caches ask: writes, as many as `writes`, and then a read. All are of one object.
fn asking(cache: &str, writes: u32, others: &str) -> String {
    format!(
        r#"
        span = "1s"
        hosts = [{{ name = "h" }}, {{ name = "others" }}]
        link = {{ latency = "10us" }}
        servers = [{{ name = "s", hosts = "h", threads = 1, objects = 100, operations = [
            {{ name = "get", kind = "read" }}, {{ name = "set", kind = "write", request_octets = 4 }}] }}]
        [[classes]]
        name = "client"
        hosts = "h"
        clients = 1
        think = "1ms"
        mix = [{{ calls = [{{ call = "s.set", times = {writes}, target = {{ object = 0 }} }}, {{ call = "s.get", target = {{ object = 0 }} }}] }}]
        cache = {{ lag = "1000 s", update_octets = 36, mode = "asked", {cache} }}
        {others}
        [dwell]
        cached_read = "1us"
        write_request = "20us"
        read_request = "20us"
        apply_update = "2us"
        tell_update = "3us"
        carry_probe = "1us"
    "#
    )
}

#[test]
fn calls_carry_the_questions_of_caches_after_a_read_that_had_to_ask() {
    let seen = run(&asking("carried_probes = 16", 1, ""), 1, Duration::ZERO);
    let client = &seen.classes[0];
    // The read after the first write asks, and so does that after each 17th: its write was the first that carried nothing.
    let (cycles, asked) = (client.completed, client.cache_probes);
    assert_eq!((client.cache_misses, client.cache_hits + client.cache_misses), (asked, cycles));
    assert_eq!(asked, cycles.div_ceil(17), "{cycles}");
    assert_eq!(client.cache_probes_carried, cycles - asked);
    assert_eq!(seen.messages, 2 * (seen.calls + asked));
    assert_eq!(client.staleness.max(), 0, "a client reads its own writes");
    // A write that carries nothing, its probe with one update, the read; and one that carries it.
    let [apart, carried] = [40 + 40 + 5 + 1, 40 + 2 + 5 + 1].map(Duration::from_micros);
    let mean = (apart * asked as u32 + carried * (cycles - asked) as u32) / cycles as u32;
    assert!(
        client.response_mean().abs_diff(mean) < Duration::from_nanos(100),
        "{:?}, {mean:?}",
        client.response_mean()
    );
    let never = run(&asking("carried_probes = 0", 1, ""), 1, Duration::ZERO);
    let client = &never.classes[0];
    assert_eq!((client.cache_hits, client.cache_probes_carried), (0, 0));
    assert_eq!(client.cache_probes, client.completed);
}

#[test]
fn reads_of_caches_that_ask_are_as_old_as_the_lag_at_most() {
    let others = r#"
        [[classes]]
        name = "writers"
        hosts = "others"
        clients = 1
        think = { exponential = "100us" }
        mix = [{ calls = [{ call = "s.set" }] }]
        [[classes]]
        name = "readers"
        hosts = "others"
        clients = 3
        think = { exponential = "20us" }
        mix = [{ calls = [{ call = "s.get" }] }]
        cache = { lag = "2ms", update_octets = 40, mode = "asked" }
    "#;
    let seen = run(&asking("warm = false", 1, others), 1, Duration::ZERO);
    let readers = &seen.classes[2];
    assert!(readers.cache_hits > 50_000 && readers.cache_probes > 200, "{} hits", readers.cache_hits);
    // A probe for each lag and server, not for each read; what is read after one may be older by the way of its answer.
    assert!(readers.cache_probes < 3 * 500, "{}", readers.cache_probes);
    let oldest = readers.staleness.max();
    assert!((1_800_000..2_400_000).contains(&oldest), "{oldest} ns");
    let [messages, octets] = [seen.messages, seen.octets];
    assert!(messages > 0 && octets / messages < 400, "{octets} octets of {messages} messages");
}

#[test]
fn more_updates_than_an_answer_has_room_for_come_in_parts() {
    let others = r#"
        [[classes]]
        name = "writers"
        hosts = "others"
        between = "100ms"
        mix = [{ calls = [{ call = "s.set", times = 100, target = "robin" }] }]
        [[classes]]
        name = "readers"
        hosts = "others"
        clients = 1
        think = "130ms"
        mix = [{ calls = [{ call = "s.get" }] }]
        cache = { lag = "1ms", update_octets = 40, mode = "asked" }
    "#;
    let seen = run(&asking("warm = true", 1, others), 1, Duration::from_millis(50));
    let readers = &seen.classes[2];
    // 100 objects of 40 octets: 36 and then 64.
    assert_eq!(readers.cache_probes, 2 * readers.cache_misses);
    assert_eq!(readers.cache_misses, readers.completed);
}

/// What is sent while nothing passes leaves afterwards: at once, or when TCP tries again.
#[test]
fn outages_of_links_hold_calls_up() {
    for (kind, longest) in [("hold", 12_000_000_u64), ("cut", 17_000_000)] {
        let text = format!(
            r#"
            span = "100 ms"
            hosts = [{{ name = "a" }}, {{ name = "b" }}]
            servers = [{{ name = "s", hosts = "b", operations = [{{ name = "get" }}] }}]
            classes = [{{ name = "c", hosts = "a", clients = 1, mix = [{{ calls = [{{ call = "s.get" }}] }}] }}]
            [[links]]
            between = ["a", "b"]
            latency = "1 ms"
            retransmit_after = "5 ms"
            outages = [{{ from = "9.5 ms", until = "20 ms", kind = "{kind}" }}]
            "#
        );
        let seen = run(&text, 1, Duration::ZERO);
        let response = &seen.classes[0].response;
        // Calls of 2 ms follow on each other. The reply of the fifth leaves at 9 ms; the sixth begins at 10.
        assert!(response.min().abs_diff(2_000_000) < 4_000, "{kind}: {}", response.min());
        assert!(response.max().abs_diff(longest) < longest / 500, "{kind}: {}", response.max());
    }
}
