//! How many calls level L1 carries out in a second of one processor: `cargo run --profile dist -p ironorb-machines --example
//! calls_a_second -- pair`, or `network 1000` for MinORB's intelligent network with so many hosts.

use std::process::ExitCode;
use std::time::Duration;

use ironorb_machines::Machines;
use ironorb_model::Time;
use ironorb_model::scenario::{
    Arrivals, Call, Choice, Class, Cycle, DwellTimes, HostGroup, Link, Operation, OperationKind,
    Replications, Scenario, Server, ServerLock, Spread, Target, WarmUp, Weighted,
};
use rustix::time::{ClockId, clock_gettime};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u32>().ok());
    let scenario = match arguments.first().map(String::as_str) {
        Some("pair") => pair(number(1).unwrap_or(1_000)),
        Some("network") => network(number(1).unwrap_or(1_000), number(2).unwrap_or(100)),
        _ => {
            eprintln!("usage: calls_a_second pair [ms] | network [hosts] [ms]");
            return ExitCode::FAILURE;
        }
    };
    match measure(&scenario) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a scenario in ten parts, because the first ones make connections.
fn measure(scenario: &Scenario) -> Result<(), Box<dyn std::error::Error>> {
    const PARTS: u32 = 10;
    let mut machines = Machines::new(scenario, scenario.seed, Duration::ZERO)?;
    for part in 1..=PARTS {
        let (calls, events) = (machines.calls(), machines.observe().events);
        let began = processor_time();
        machines.run_to(Time::ZERO + scenario.span * part / PARTS)?;
        let (seconds, seen) = ((processor_time() - began).as_secs_f64(), machines.observe());
        println!(
            "{} s: {:.0} calls/s, {:.0} events/s, {} connections, {} MiB",
            scenario.span.as_secs_f64() * f64::from(part) / f64::from(PARTS),
            (machines.calls() - calls) as f64 / seconds,
            (seen.events - events) as f64 / seconds,
            machines.connections(),
            resident_kib() / 1024,
        );
    }
    let seen = machines.observe();
    println!(
        "{} calls, {} messages, {} octets, digest {:016x}",
        seen.calls,
        seen.messages,
        seen.octets,
        seen.digest.value()
    );
    Ok(())
}

/// One client and one server, as fast as they are.
fn pair(ms: u32) -> Scenario {
    let arrivals = Arrivals::Closed { clients: 1, think: Spread::Fixed(Duration::ZERO) };
    scenario(ms, [1, 1], vec![server("server", 1, Vec::new())], arrivals)
}

/// Each host begins 10^6 / hosts attempts a second, each with ten nested calls to objects anywhere.
fn network(hosts: u32, ms: u32) -> Scenario {
    let between = Spread::Exponential(Duration::from_nanos(1_100));
    let nested = Call { server: 1, operation: 0, times: 10, target: Target::Random };
    let servers = vec![server("control", 0, vec![nested]), server("data", 0, Vec::new())];
    scenario(ms, [hosts, 1], servers, Arrivals::Open { between, burst: 1 })
}

fn server(name: &str, hosts: usize, calls: Vec<Call>) -> Server {
    let operation = Operation {
        name: "attempt".to_owned(),
        kind: OperationKind::Plain,
        request_octets: 32,
        reply_octets: 16,
        is_oneway: false,
        demand: Spread::Exponential(Duration::from_micros(5)),
        sleeps: false,
        calls,
    };
    Server {
        name: name.to_owned(),
        hosts,
        threads: Some(1_000),
        lanes: Vec::new(),
        objects: 1_000_000,
        object_octets: 100,
        lock: ServerLock::None,
        operations: vec![operation],
    }
}

fn scenario(ms: u32, hosts: [u32; 2], servers: Vec<Server>, arrivals: Arrivals) -> Scenario {
    let group = |name: &str, count| HostGroup {
        name: name.to_owned(),
        count,
        cores: 16,
        switch_time: Duration::ZERO,
        speed: 1.0,
    };
    let call = Call { server: 0, operation: 0, times: 1, target: Target::Random };
    let mix = vec![Weighted { weight: 1.0, cycle: Cycle::Calls(vec![call]) }];
    let some = || Spread::Fixed(Duration::from_nanos(500));
    Scenario {
        name: "calls a second".to_owned(),
        seed: 1,
        span: Duration::from_millis(u64::from(ms)),
        warm_up: WarmUp::Fixed(Duration::ZERO),
        replications: Replications { min: 1, max: 1, half_width: 0.1, confidence: 0.95 },
        hosts: vec![group("hosts", hosts[0]), group("others", hosts[1])],
        links: Vec::new(),
        default_link: Link {
            latency: Duration::from_micros(50),
            jitter: Duration::ZERO,
            bandwidth: Some(10_000_000_000),
            mtu: 1_460,
            packet_overhead: 78,
            loss: 0.0,
            reorder: 0.0,
            duplicate: 0.0,
            retransmit_after: Duration::from_millis(200),
        },
        servers,
        classes: vec![Class {
            name: "clients".to_owned(),
            hosts: 0,
            arrivals,
            mix,
            choice: Choice::Random,
            priority: None,
            cache: None,
        }],
        dwell: DwellTimes {
            find_proxy: some(),
            write_request: some(),
            read_request: some(),
            channel: some(),
            find_object: some(),
            execute: some(),
            write_reply: some(),
            read_reply: some(),
            thread_switch: some(),
            cached_read: some(),
            apply_update: some(),
            ..DwellTimes::default()
        },
    }
}

/// What this process has had of processors: others that work beside it make it no greater.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The memory of this process, as the system tells it.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}
