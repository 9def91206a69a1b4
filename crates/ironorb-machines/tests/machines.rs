//! Level L1: scenarios on the ORB's machines.

use std::process::Command;
use std::time::Duration;

use ironorb::OrbConfig;
use ironorb_machines::{self as machines, Machines, MachinesError};
use ironorb_model::scenario::{
    Architecture, Arrivals, Cache, CacheMode, Call, Choice, Class, Cycle, DwellTimes, HostGroup, Lane, Link,
    LinkRule, Operation, OperationKind, Outage, OutageKind, Replications, Scenario, Server, ServerLock,
    Spread, Target, WarmUp, Weighted,
};
use ironorb_model::{
    CONNECTIONS_MAX, CONNECTIONS_PER_SERVER_MAX, ClassObservations, Halt, Observations, ResourceObservations,
    Time, queueing,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);
/// Nothing ends just when the run does.
const WARM_UP: Duration = Duration::from_micros(10_500);

fn fixed(time: Duration) -> Spread {
    Spread::Fixed(time)
}

const NO_LINK: Link = Link {
    latency: Duration::ZERO,
    jitter: Duration::ZERO,
    bandwidth: None,
    mtu: 1_460,
    packet_overhead: 40,
    loss: 0.0,
    reorder: 0.0,
    duplicate: 0.0,
    retransmit_after: Duration::from_millis(200),
};

fn operation(name: &str, demand: Spread) -> Operation {
    Operation {
        name: name.to_owned(),
        kind: OperationKind::Plain,
        request_octets: 20,
        reply_octets: 8,
        is_oneway: false,
        demand,
        sleeps: true,
        calls: Vec::new(),
    }
}

fn server(name: &str, hosts: usize, operations: Vec<Operation>) -> Server {
    Server {
        name: name.to_owned(),
        hosts,
        threads: Some(1),
        lanes: Vec::new(),
        objects: 10,
        object_octets: 0,
        lock: ServerLock::None,
        operations,
    }
}

fn call(server: usize, operation: usize, times: u32) -> Call {
    Call { server, operation, times, target: Target::Random }
}

fn class(name: &str, arrivals: Arrivals, calls: Vec<Call>) -> Class {
    let mix = vec![Weighted { weight: 1.0, cycle: Cycle::Calls(calls) }];
    Class {
        name: name.to_owned(),
        hosts: 0,
        arrivals,
        mix,
        choice: Choice::Random,
        priority: None,
        cache: None,
    }
}

fn closed(clients: u32) -> Arrivals {
    Arrivals::Closed { clients, think: fixed(Duration::ZERO) }
}

/// One group of client hosts and one of servers, and a server whose operation sleeps for 1 ms.
fn scenario(classes: Vec<Class>) -> Scenario {
    let group = |name: &str, count| HostGroup {
        name: name.to_owned(),
        count,
        cores: 1,
        switch_time: Duration::ZERO,
        speed: 1.0,
    };
    Scenario {
        name: "test".to_owned(),
        seed: 1,
        span: 100 * MS,
        warm_up: WarmUp::Fixed(WARM_UP),
        replications: Replications { min: 1, max: 1, half_width: 0.1, confidence: 0.95 },
        hosts: vec![group("clients", 2), group("servers", 2)],
        links: Vec::new(),
        default_link: NO_LINK,
        servers: vec![server("store", 1, vec![operation("get", fixed(MS))])],
        classes,
        dwell: DwellTimes::default(),
    }
}

fn run(scenario: &Scenario) -> Observations {
    machines::run(scenario, scenario.seed, WARM_UP).unwrap()
}

/// The mean response time of a class in microseconds, to the histogram's three digits.
fn response_us(seen: &Observations, class: usize) -> f64 {
    seen.classes[class].response.mean() / 1_000.0
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected / 500.0, "{found} instead of {expected}");
}

/// All arrivals end within the run, so that the numbers can be counted by hand.
#[test]
fn calls_messages_and_octets_are_those_of_the_real_machines() {
    let times = (0..10).map(|number| MS * (2 * number)).collect();
    let mut one = scenario(vec![class("one", Arrivals::Trace(times), vec![call(0, 0, 1)])]);
    one.hosts[1].count = 1;
    let seen = run(&one);
    assert_eq!((seen.calls, seen.messages), (10, 20));
    // Each of two client processes has a connection. Its first request tells the code sets in 20 octets, and in 4 more
    // the number of contexts is in every request. GIOP 1.2 aligns bodies to 8.
    let header = |key: usize, operation: usize, contexts: usize| {
        let target = 12 + 8 + 4 + 4 + key.next_multiple_of(4);
        (target + 4 + operation.next_multiple_of(4) + 4 + contexts).next_multiple_of(8)
    };
    let adapter_octets = 7;
    let key = 3 + 8 + 2 + 4 + adapter_octets + 8;
    let request = header(key, 4, 0) + 20;
    let first = header(key, 4, 20) + 20;
    let reply = 24 + 8;
    assert_eq!(seen.octets, (2 * first + 8 * request + 10 * reply) as u64);
    assert_eq!(seen.classes[0].failed, 0);
}

#[test]
fn a_thread_serves_one_request_at_a_time_and_a_pool_several() {
    let mut closed_one = scenario(vec![class("one", closed(4), vec![call(0, 0, 1)])]);
    closed_one.hosts[1].count = 1;
    let seen = run(&closed_one);
    assert_eq!(seen.classes[0].completed, 100, "a call a millisecond");
    assert_close(response_us(&seen, 0), 4_000.0);
    closed_one.servers[0].threads = Some(3);
    assert_eq!(run(&closed_one).classes[0].completed, 300);
    closed_one.servers[0].threads = None;
    assert_eq!(run(&closed_one).classes[0].completed, 400, "each client has a connection, and that a thread");
    closed_one.servers[0].lock = ServerLock::Process;
    assert_eq!(run(&closed_one).classes[0].completed, 100);
}

#[test]
fn processors_and_links_take_their_time() {
    let mut one = scenario(vec![class("one", closed(1), vec![call(0, 0, 1)])]);
    one.dwell = DwellTimes {
        find_proxy: fixed(US),
        write_request: fixed(2 * US),
        read_request: fixed(3 * US),
        channel: fixed(5 * US),
        find_object: fixed(7 * US),
        execute: fixed(11 * US),
        write_reply: fixed(13 * US),
        read_reply: fixed(17 * US),
        thread_switch: fixed(19 * US),
        per_kilo_octet: 100 * US,
        ..DwellTimes::default()
    };
    // 20 octets and 8 are written and read once each: 5.6 us.
    let of_processors = 1.0 + 2.0 + 3.0 + 4.0 * 5.0 + 7.0 + 11.0 + 13.0 + 17.0 + 2.0 * 19.0 + 5.6;
    assert_close(response_us(&run(&one), 0), 1_000.0 + of_processors);
    one.hosts.iter_mut().for_each(|group| group.speed = 2.0);
    assert_close(response_us(&run(&one), 0), 1_000.0 + of_processors / 2.0);
    let latency = Link { latency: 100 * US, ..NO_LINK };
    one.links = vec![LinkRule::new((1, 0), latency)];
    assert_close(response_us(&run(&one), 0), 1_000.0 + of_processors / 2.0 + 200.0);
    one.links[0].outages = vec![Outage { from: 20 * MS, until: 40 * MS, kind: OutageKind::Hold }];
    let held = run(&one);
    let queued = queueing::run(&one, one.seed, WARM_UP).unwrap();
    assert!(held.classes[0].response.max() > 20_000_000, "{held:?}");
    assert_close(response_us(&held, 0), response_us(&queued, 0));
    one.links[0].outages.clear();
    // A demand that computes takes the processor, of which there is one for both threads.
    one.hosts[1].count = 1;
    one.servers[0].threads = Some(2);
    one.servers[0].operations[0].sleeps = false;
    one.classes[0].arrivals = closed(2);
    assert!(response_us(&run(&one), 0) > 900.0);
}

/// As many operations as a file may have in a row.
#[test]
fn long_chains_of_calls_come_back() {
    for servers in [1, 256] {
        let mut long = scenario(vec![class("one", closed(1), vec![call(0, 0, 1)])]);
        (long.span, long.hosts[1].count) = (10 * MS, 1);
        long.servers = (0..servers).map(|number| server(&format!("of{number}"), 1, Vec::new())).collect();
        for number in 0..256 {
            let mut of_chain = operation(&format!("get{number}"), fixed(Duration::ZERO));
            if number < 255 {
                of_chain.calls = vec![call((number + 1) % servers, (number + 1) / servers, 1)];
            } else {
                of_chain.demand = fixed(MS);
            }
            long.servers[number % servers].operations.push(of_chain);
        }
        let seen = run(&long);
        assert_close(response_us(&seen, 0), 1_000.0);
        assert_eq!(seen.calls, (20 + 1) * 256);
    }
}

#[test]
fn servants_call_other_servers_and_themselves() {
    let mut nested = scenario(vec![class("one", closed(1), vec![call(0, 0, 1)])]);
    nested.hosts[1].count = 1;
    nested.servers[0].operations[0].demand = fixed(Duration::ZERO);
    nested.servers[0].operations[0].calls = vec![call(1, 0, 3), call(0, 1, 1)];
    nested.servers[0].operations.push(operation("own", fixed(2 * MS)));
    nested.servers.push(server("other", 1, vec![operation("get", fixed(MS))]));
    let seen = run(&nested);
    assert_close(response_us(&seen, 0), 5_000.0);
    let cycles = 110 / 5;
    assert_eq!(seen.calls, cycles * 5 + 2, "the next cycle has begun, and its first nested call");
    // The call to the own process sends nothing.
    assert_eq!(seen.messages, cycles * 2 * 4 + 2);
}

#[test]
fn callers_of_oneways_go_on() {
    let mut tell = scenario(vec![class("one", closed(1), vec![call(0, 0, 2), call(0, 1, 1)])]);
    tell.hosts[1].count = 1;
    tell.servers[0].operations[0].is_oneway = true;
    tell.servers[0].operations.push(operation("get", fixed(MS)));
    let seen = run(&tell);
    // The twoway waits for the oneways before it: 3 ms.
    assert_close(response_us(&seen, 0), 3_000.0);
    assert_eq!(seen.classes[0].completed, 33);
    tell.servers[0].threads = Some(3);
    assert_close(response_us(&run(&tell), 0), 1_000.0);
}

#[test]
fn a_lane_serves_its_priorities() {
    let mut two = scenario(vec![
        class("low", closed(3), vec![call(0, 0, 1)]),
        class("high", closed(1), vec![call(0, 0, 1)]),
    ]);
    two.hosts[1].count = 1;
    two.servers[0].lanes = vec![Lane { priority: 0, threads: 1 }, Lane { priority: 10, threads: 1 }];
    (two.classes[0].priority, two.classes[1].priority) = (Some(9), Some(10));
    let seen = run(&two);
    assert_close(response_us(&seen, 0), 3_000.0);
    assert_close(response_us(&seen, 1), 1_000.0);
}

#[test]
fn open_classes_do_not_wait_and_mixes_have_their_weights() {
    let between = Spread::Exponential(100 * US);
    let mut open = scenario(vec![class("one", Arrivals::Open { between, burst: 2 }, Vec::new())]);
    open.servers[0].threads = Some(1_000);
    open.servers[0].operations.push(operation("put", fixed(MS)));
    let weighted = |weight, operation| Weighted { weight, cycle: Cycle::Calls(vec![call(0, operation, 1)]) };
    open.classes[0].mix = vec![weighted(1.0, 0), weighted(3.0, 1)];
    (open.servers[0].operations[1].request_octets, open.servers[0].operations[0].request_octets) = (1_000, 0);
    let seen = run(&open);
    let completed = seen.classes[0].completed as f64;
    // 2,000 cycles in pairs: five standard deviations of 1,000 pairs are 316 cycles.
    assert!((completed - 2_000.0).abs() < 316.0, "{completed}");
    let bodies = seen.octets as f64 / seen.calls as f64;
    // Three quarters of the requests have 1,000 octets, all messages have headers: five standard deviations are 50.
    assert!((810.0..930.0).contains(&bodies), "{bodies}");
}

#[test]
fn what_this_level_does_not_simulate_is_refused() {
    let mut cached = scenario(vec![class("one", closed(1), vec![call(0, 0, 1)])]);
    cached.classes[0].cache =
        Some(Cache { lag: MS, capacity: 1.0, update_octets: 8, mode: CacheMode::Bounded });
    let e = machines::run(&cached, 1, WARM_UP).unwrap_err();
    assert!(matches!(e, MachinesError::Caches { .. }) && e.to_string().contains("simulated at L0;"), "{e}");
    let mut jobs = scenario(vec![class("one", closed(1), Vec::new())]);
    jobs.classes[0].mix[0].cycle =
        Cycle::Job { architecture: Architecture::Synchronous, parts: vec![call(0, 0, 1)], daemon: 0 };
    let e = machines::run(&jobs, 1, WARM_UP).unwrap_err();
    assert!(matches!(e, MachinesError::Jobs { .. }) && e.to_string().contains("simulated at L0;"), "{e}");
}

#[test]
fn what_never_gets_on_is_told() {
    let mut circle = scenario(vec![class("one", closed(2), vec![call(0, 0, 1)])]);
    circle.hosts[1].count = 1;
    circle.servers[0].operations[0].calls = vec![call(1, 0, 1)];
    circle.servers.push(server("other", 1, vec![operation("back", fixed(MS))]));
    circle.servers[1].operations[0].calls = vec![call(0, 1, 1)];
    circle.servers[0].operations.push(operation("end", fixed(MS)));
    let e = machines::run(&circle, 1, WARM_UP).map(drop).unwrap_err();
    assert!(matches!(e, MachinesError::Halt(Halt::Standstill { calls: 4.., .. })), "{e}");
    let mut idle = scenario(vec![class("one", closed(1), vec![call(0, 0, 1)])]);
    idle.servers[0].operations[0].demand = fixed(Duration::ZERO);
    let e = machines::run(&idle, 1, WARM_UP).map(drop).unwrap_err();
    assert!(matches!(e, MachinesError::Halt(Halt::NoTime { .. })), "{e}");
    (idle.hosts[1].count, idle.hosts[1].cores) = (100_000, 1_024);
    let e = machines::run(&idle, 1, WARM_UP).map(drop).unwrap_err();
    assert!(matches!(e, MachinesError::TooMany { what: "processors", most: 1_000_000, .. }), "{e}");
    assert!(e.to_string().ends_with("lower `count` or `cores` of `[[hosts]]`"), "{e}");
    idle.hosts[1].cores = 1;
    idle.classes = vec![class("many", closed(100_000_000), vec![call(0, 0, 1)])];
    let e = machines::run(&idle, 1, WARM_UP).map(drop).unwrap_err().to_string();
    assert!(e.contains("67108864 clients: lower `clients` of `[[classes]]`"), "{e}");
}

/// Everything that is random, on several hosts.
fn varied() -> Scenario {
    let mut varied = scenario(vec![
        class("closed", Arrivals::Closed { clients: 5, think: Spread::Exponential(MS) }, vec![call(0, 0, 2)]),
        class("open", Arrivals::Open { between: Spread::Uniform(US, MS), burst: 3 }, vec![call(0, 1, 1)]),
    ]);
    varied.servers[0].threads = Some(2);
    varied.servers[0].lock = ServerLock::Object;
    varied.servers[0].operations[0].demand = Spread::Exponential(100 * US);
    varied.servers[0].operations[0].sleeps = false;
    varied.servers[0].operations[0].calls = vec![call(1, 0, 2)];
    varied.servers[0].operations.push(operation("put", Spread::Samples(vec![US, 10 * US])));
    varied.servers[0].operations[1].is_oneway = true;
    varied.servers.push(server("other", 0, vec![operation("get", Spread::Uniform(US, 20 * US))]));
    varied.servers[1].threads = None;
    varied.default_link =
        Link { latency: 20 * US, jitter: 10 * US, bandwidth: Some(1_000_000_000), loss: 0.01, ..NO_LINK };
    varied.dwell.write_request = Spread::Exponential(5 * US);
    varied
}

fn history(seed: u64) -> String {
    let seen = machines::run(&varied(), seed, WARM_UP).unwrap();
    let Observations { messages, octets, calls, events, .. } = seen;
    let completed = [seen.classes[0].completed, seen.classes[1].completed];
    format!("{:016x} {messages} {octets} {calls} {events} {completed:?}", seen.digest.value())
}

#[test]
fn a_seed_decides_what_happens() {
    assert_eq!(history(1), history(1));
    assert_ne!(history(1), history(2));
    // Also where the run is looked at in between.
    let scenario = varied();
    let mut watched = Machines::new(&scenario, 1, WARM_UP).unwrap();
    for step in 1..=50 {
        watched.run_to(Time::ZERO + 2 * step * MS).unwrap();
        watched.observe();
    }
    watched.run_to(watched.end()).unwrap();
    assert_eq!(watched.observe().digest, machines::run(&scenario, 1, WARM_UP).unwrap().digest);
}

/// Of a oneway nothing is sent back: only its arrival and its end tell runs apart that send the same.
#[test]
fn digests_have_what_sends_nothing() {
    let digest = |latency: Duration, demand: Duration| {
        let mut scenario = varied();
        scenario.servers[0].operations.truncate(1);
        scenario.servers[0].operations[0] = operation("put", Spread::Fixed(demand));
        scenario.servers[0].operations[0].is_oneway = true;
        let cycle = Cycle::Calls(vec![call(0, 0, 1)]);
        let mix = vec![Weighted { weight: 1.0, cycle }];
        scenario.classes.iter_mut().for_each(|class| class.mix = mix.clone());
        scenario.hosts.iter_mut().for_each(|group| group.cores = 64);
        scenario.default_link = Link { latency, ..NO_LINK };
        machines::run(&scenario, 1, WARM_UP).unwrap().digest.value()
    };
    let usual = digest(10 * US, 5 * US);
    assert_ne!(usual, digest(11 * US, 5 * US));
    assert_ne!(usual, digest(10 * US, 6 * US));
}

/// What both levels must agree on: the machines send what the queues count, and at the same times.
fn compare_with_queues(scenario: &Scenario, seed: u64) {
    let (machines, queues) =
        (machines::run(scenario, seed, WARM_UP).unwrap(), queueing::run(scenario, seed, WARM_UP).unwrap());
    let counts = |seen: &Observations| (seen.calls, seen.messages, seen.octets);
    assert_eq!(counts(&machines), counts(&queues), "{} {seed}", scenario.name);
    for (machines, queues) in machines.classes.iter().zip(&queues.classes) {
        let seen = |of: &ClassObservations| {
            (of.name.clone(), of.completed, of.failed, of.response_ns, of.unfinished.clone())
        };
        assert_eq!(seen(machines), seen(queues), "{} {seed}", scenario.name);
    }
    let resources = |seen: Observations| -> Vec<_> {
        let of_one = |it: &ResourceObservations| {
            (it.name.clone(), it.utilisation, it.queue_mean, it.queue_max, it.octets)
        };
        seen.resources.iter().map(of_one).collect()
    };
    assert_eq!(resources(machines), resources(queues), "{} {seed}", scenario.name);
}

#[test]
fn the_machines_send_what_the_queues_count() {
    let closed_one = scenario(vec![class("one", closed(4), vec![call(0, 0, 1)])]);
    compare_with_queues(&closed_one, 1);
    for seed in 0..5 {
        let mut varied = varied();
        compare_with_queues(&varied, seed);
        varied.name = "with priorities".to_owned();
        (varied.classes[0].priority, varied.servers[0].lanes) =
            (Some(7), vec![Lane { priority: 0, threads: 1 }, Lane { priority: 5, threads: 2 }]);
        compare_with_queues(&varied, seed);
    }
}

/// Threads of clients, and those of servants that call: the connections are as many at both levels.
#[test]
fn each_thread_that_calls_has_a_connection_of_its_own() {
    let mut nested = scenario(vec![class("one", closed(3), vec![call(0, 0, 2)])]);
    nested.hosts.iter_mut().for_each(|group| group.count = 1);
    nested.servers[0].threads = Some(2);
    nested.servers[0].operations[0].calls = vec![call(1, 0, 1)];
    nested.servers.push(server("other", 0, vec![operation("get", fixed(MS))]));
    nested.servers[1].threads = None;
    let mut machines = Machines::new(&nested, 1, WARM_UP).unwrap();
    machines.run_to(machines.end()).unwrap();
    assert_eq!(machines.connections(), 3 + 2, "of three clients, and of two threads of a server");
    compare_with_queues(&nested, 1);
    let seen = run(&nested);
    assert_eq!(
        seen.classes[0].completed, 50,
        "two cycles of 4 ms at a time: no thread waits for the other's connection"
    );
    // As many threads as one connection of each would be too many.
    nested.classes[0].arrivals = closed(70);
    nested.servers[0].threads = Some(66);
    let mut machines = Machines::new(&nested, 1, WARM_UP).unwrap();
    machines.run_to(machines.end()).unwrap();
    assert_eq!(machines.connections(), 64 + 64);
    compare_with_queues(&nested, 1);
}

/// The rule of connections is written down once for all models. Its numbers are the ORB's.
#[test]
fn models_have_the_limits_of_the_orb() {
    let config = OrbConfig::default();
    assert_eq!(config.connections_per_endpoint_max, CONNECTIONS_PER_SERVER_MAX as usize);
    assert_eq!(config.client_connections_max, CONNECTIONS_MAX as usize);
}

/// Names the file into which a second process of this test writes what it has seen.
const HISTORY: &str = "IRONORB_TEST_HISTORY";

/// Another process has its memory at other addresses.
#[test]
fn runs_are_equal_with_one_processor_another_environment_and_other_addresses() {
    if let Some(file) = std::env::var_os(HISTORY) {
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|&it| sched_getaffinity(None).unwrap().is_set(it)).unwrap());
        sched_setaffinity(None, &one).unwrap();
        return std::fs::write(file, history(3)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history");
    let itself = "machines::runs_are_equal_with_one_processor_another_environment_and_other_addresses";
    let mut elsewhere = Command::new(std::env::current_exe().unwrap());
    elsewhere.args(["--exact", itself]).current_dir(&folder).env_clear();
    // The last one is a setting of ORBs that programs make.
    elsewhere.envs([("HOME", "/nonexistent"), ("LANG", "tr_TR.UTF-8"), ("IRONORB_GIOP_VERSION", "1.0")]);
    let ended = elsewhere.env(HISTORY, &file).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), history(3));
}

#[test]
fn operations_of_one_name_are_refused_by_name() {
    let text = r#"
        span = "1 s"
        hosts = [{ name = "here" }]
        servers = [{ name = "s", hosts = "here", operations = [{ name = "put" }, { name = "put#2", request_octets = 8 }] }]
        classes = [{ name = "c", hosts = "here", clients = 1, think = "1 ms", mix = [{ calls = [{ call = "s.put" }] }] }]
    "#;
    let scenario = ironorb_model::scenario::read(text, "variants").unwrap().remove(0);
    let refused = ironorb_machines::run(&scenario, 1, Duration::ZERO).unwrap_err().to_string();
    assert!(refused.contains("server s: `put#2` is simulated at L0"), "{refused}");
}
