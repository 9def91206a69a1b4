//! What is computed, beside what level L0 simulates.

use std::time::Duration;

use ironorb_model::analysis::bounds::bounds;
use ironorb_model::analysis::demands::{Demands, demands};
use ironorb_model::analysis::mva::solve;
use ironorb_model::scenario::*;
use ironorb_model::{Observations, queueing};

use super::chains::assert_near;
use super::scenarios::*;

const ARCHITECTURES: [Architecture; 4] = [
    Architecture::Sequential,
    Architecture::HandleDriven,
    Architecture::Forwarding,
    Architecture::Synchronous,
];

fn simulated(scenario: &Scenario) -> Observations {
    queueing::run(scenario, scenario.seed, Duration::from_secs(1)).unwrap()
}

/// Steps that all differ.
fn dwell() -> DwellTimes {
    let fixed = |micros| Spread::Fixed(us(micros));
    DwellTimes {
        find_proxy: fixed(1),
        write_request: fixed(2),
        channel: fixed(4),
        read_request: fixed(8),
        find_object: fixed(16),
        execute: fixed(32),
        write_reply: fixed(64),
        read_reply: fixed(128),
        thread_switch: fixed(256),
        cached_read: fixed(3),
        apply_update: fixed(5),
        tell_update: fixed(5),
        carry_probe: fixed(5),
        per_kilo_octet: Duration::from_micros(10),
        ..DwellTimes::default()
    }
}

/// One client whose times are all fixed: what is computed is what happens.
#[test]
fn one_client_takes_what_is_computed() {
    let mut scenarios: Vec<Scenario> =
        ARCHITECTURES.iter().map(|it| par_04(*it, 1, Some(4), Spread::Fixed)).collect();
    let mut nested = open_queue(1, ms(5), 2, Some(3));
    nested.servers[0].operations[0].demand = Spread::Fixed(ms(5));
    nested.hosts.push(host("third", 2));
    nested.servers.push(server("ledger", 2, None, vec![operation("put", Spread::Fixed(ms(3)))]));
    nested.servers[0].operations[0].calls = vec![Call { times: 2, ..call(1, 0) }];
    // And one within the process.
    let own = operation("check", Spread::Fixed(ms(1)));
    nested.servers[0].operations.push(own);
    nested.servers[0].operations[0].calls.push(call(0, 1));
    nested.classes[0].arrivals = Arrivals::Closed { clients: 1, think: Spread::Fixed(ms(2)) };
    scenarios.push(nested);
    for mut scenario in scenarios {
        scenario.classes[0].choice = Choice::InTurn;
        scenario.dwell = dwell();
        scenario.hosts[1].speed = 2.0;
        scenario.default_link = Link { latency: us(300), bandwidth: Some(10_000_000), ..link() };
        scenario.span = Duration::from_secs(60);
        let computed = demands(&scenario).unwrap();
        let seen = simulated(&scenario);
        let class = &computed.classes[0];
        let name = format!("{:?}", scenario.classes[0].mix[0].cycle);
        assert_near(seen.classes[0].response_mean().as_secs_f64(), class.alone, 1e-4);
        let think = match class.load {
            ironorb_model::analysis::Load::Closed { think, .. } => think,
            ironorb_model::analysis::Load::Open { .. } => unreachable!("{name}"),
        };
        // Messages, octets and calls are told from the beginning on; so many cycles there were.
        let cycles = 61.0 / (class.alone + think);
        assert_near(seen.messages as f64 / cycles, class.messages, 0.01);
        assert_near(seen.octets as f64 / cycles, class.octets, 0.01);
        assert_near(seen.calls as f64 / cycles, class.calls, 0.01);
        utilisations_agree(&computed, &seen, 1.0 / (class.alone + think));
    }
}

/// Resources that both know by the same name are as busy as their demands say.
fn utilisations_agree(computed: &Demands, seen: &Observations, throughput: f64) {
    let mut compared = 0;
    for resource in &computed.resources {
        if let Some(it) = seen.resources.iter().find(|it| it.name == resource.name) {
            let servers = f64::from(resource.servers) * f64::from(resource.copies);
            let asked = resource.demands[0].seconds * throughput / servers;
            assert!(
                (it.utilisation - asked).abs() < 0.01 * asked + 1e-4,
                "{}: {} {asked}",
                it.name,
                it.utilisation
            );
            compared += 1;
        }
    }
    assert!(compared >= 4, "{compared}");
}

/// Networks of product form, with exponential times.
#[test]
fn mean_values_are_those_of_the_simulation() {
    for (clients, cores, threads, sleeps) in
        [(1, 1, None, false), (8, 1, Some(1), true), (12, 4, Some(2), true)]
    {
        let mut scenario = open_queue(100, ms(5), cores, threads);
        scenario.servers[0].operations[0].sleeps = sleeps;
        scenario.classes[0].arrivals = Arrivals::Closed { clients, think: Spread::Exponential(ms(20)) };
        scenario.default_link.latency = ms(1);
        scenario.span = Duration::from_secs(100);
        let expected = solve(&demands(&scenario).unwrap().network()).chains[0].throughput;
        let seen = simulated(&scenario);
        // 4,000 cycles or more, whose mean is known to a hundredth.
        assert_near(seen.classes[0].completed as f64 / 100.0, expected, 0.025);
    }
}

/// PAR-04's jobs, with exponential times: simulated ones are within the bounds, and near the estimate.
#[test]
fn jobs_are_within_their_bounds() {
    for architecture in ARCHITECTURES {
        for (clients, daemon_threads) in [(1, Some(1)), (10, None), (10, Some(1))] {
            let mut scenario = par_04(architecture, clients, daemon_threads, Spread::Exponential);
            scenario.default_link.latency = us(650);
            scenario.span = Duration::from_secs(400);
            let computed = demands(&scenario).unwrap();
            let throughput = simulated(&scenario).classes[0].completed as f64 / 400.0;
            let bounds = bounds(&computed).remove(0).throughput;
            // 3,500 jobs or more, of which the mean is known to a hundredth.
            let (lower, upper) = (bounds.lower * 0.98, bounds.upper * 1.02);
            assert!(
                lower < throughput && throughput < upper,
                "{architecture:?} {clients}: {throughput} {bounds:?}"
            );
            if let Some(jobs) = computed.fork_and_join() {
                let cycle: f64 = jobs.iter().map(|(weight, job)| weight * job.estimate().1).sum();
                assert_near(f64::from(clients) / cycle, throughput, 0.06);
            }
        }
    }
}
