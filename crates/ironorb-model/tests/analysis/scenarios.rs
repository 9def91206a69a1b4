//! Scenarios that several tests use.

use std::time::Duration;

use ironorb_model::scenario::*;

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

pub(super) fn link() -> Link {
    Link {
        latency: Duration::ZERO,
        jitter: Duration::ZERO,
        bandwidth: None,
        mtu: 1448,
        packet_overhead: 90,
        loss: 0.0,
        reorder: 0.0,
        duplicate: 0.0,
        retransmit_after: ms(200),
    }
}

pub(super) fn host(name: &str, cores: u32) -> HostGroup {
    HostGroup { name: name.to_owned(), count: 1, cores, switch_time: Duration::ZERO, speed: 1.0 }
}

pub(super) fn operation(name: &str, demand: Spread) -> Operation {
    Operation {
        name: name.to_owned(),
        kind: OperationKind::Plain,
        request_octets: 50,
        reply_octets: 50,
        is_oneway: false,
        demand,
        sleeps: false,
        calls: Vec::new(),
    }
}

pub(super) fn server(name: &str, hosts: usize, threads: Option<u32>, operations: Vec<Operation>) -> Server {
    Server {
        name: name.to_owned(),
        hosts,
        threads,
        lanes: Vec::new(),
        objects: 1,
        object_octets: 0,
        lock: ServerLock::None,
        operations,
    }
}

pub(super) fn call(server: usize, operation: usize) -> Call {
    Call { server, operation, times: 1, target: Target::Random }
}

pub(super) fn class(name: &str, hosts: usize, arrivals: Arrivals, cycles: Vec<Cycle>) -> Class {
    let mix = cycles.into_iter().map(|cycle| Weighted { weight: 1.0, cycle }).collect();
    Class { name: name.to_owned(), hosts, arrivals, mix, choice: Choice::Random, priority: None, cache: None }
}

pub(super) fn scenario(hosts: Vec<HostGroup>, servers: Vec<Server>, classes: Vec<Class>) -> Scenario {
    Scenario {
        name: "test".to_owned(),
        seed: 1,
        span: Duration::from_secs(10),
        warm_up: WarmUp::Fixed(Duration::ZERO),
        replications: Replications { min: 1, max: 1, half_width: 0.025, confidence: 0.95 },
        hosts,
        links: Vec::new(),
        default_link: link(),
        servers,
        classes,
        dwell: DwellTimes::default(),
    }
}

/// PAR-04's workload: clients alternate between two pairs of servers that serve one request at a time, for 50 and 55 ms.
pub(super) fn par_04(
    architecture: Architecture,
    clients: u32,
    daemon_threads: Option<u32>,
    demand: fn(Duration) -> Spread,
) -> Scenario {
    let station = |name: &str, host: usize, time: u64| {
        let work = Operation { sleeps: true, ..operation("work", demand(ms(time))) };
        server(name, host, Some(1), vec![work])
    };
    let job = |first: usize, second: usize| Cycle::Job {
        architecture,
        parts: vec![call(first, 0), call(second, 0)],
        daemon: 4,
    };
    let hosts = ["clients", "a", "b", "c", "d", "daemon"].map(|name| host(name, 4)).to_vec();
    let servers = vec![
        station("A", 1, 50),
        station("B", 2, 55),
        station("C", 3, 50),
        station("D", 4, 55),
        server("daemon", 5, daemon_threads, Vec::new()),
    ];
    let arrivals = Arrivals::Closed { clients, think: Spread::Fixed(Duration::ZERO) };
    scenario(hosts, servers, vec![class("jobs", 0, arrivals, vec![job(0, 1), job(2, 3)])])
}

/// Customers that arrive by Poisson's law at a server on a host of its own.
pub(super) fn open_queue(rate: u64, demand: Duration, cores: u32, threads: Option<u32>) -> Scenario {
    let between = Spread::Exponential(Duration::from_secs(1) / u32::try_from(rate).unwrap());
    let servers = vec![server("accounts", 1, threads, vec![operation("get", Spread::Exponential(demand))])];
    let classes =
        vec![class("calls", 0, Arrivals::Open { between, burst: 1 }, vec![Cycle::Calls(vec![call(0, 0)])])];
    scenario(vec![host("front", 64), host("back", cores)], servers, classes)
}
