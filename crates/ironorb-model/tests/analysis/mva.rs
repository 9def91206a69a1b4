//! Mean value analysis beside Markov chains of the same networks.

use ironorb_model::Random;
use ironorb_model::analysis::mva::{solve, solve_approximately};
use ironorb_model::analysis::{Chain, Demand, Load, Method, Network, Solution, Station, StationKind};

use super::chains::{assert_near, mean, stationary};

const SINGLE: StationKind = StationKind::Queue { servers: 1 };
const DOUBLE: StationKind = StationKind::Queue { servers: 2 };
const TRIPLE: StationKind = StationKind::Queue { servers: 3 };

fn network(kinds: &[StationKind], chains: &[(Load, &[f64])]) -> Network {
    let station =
        |(index, kind): (usize, &StationKind)| Station { name: format!("s{index}"), kind: *kind, copies: 1 };
    let demand = |seconds: &f64| Demand { seconds: *seconds, copies_visited: 1 };
    Network {
        stations: kinds.iter().enumerate().map(station).collect(),
        chains: chains
            .iter()
            .map(|(load, demands)| Chain {
                name: "chain".to_owned(),
                load: *load,
                demands: demands.iter().map(demand).collect(),
            })
            .collect(),
    }
}

fn closed(customers: u32, think: f64) -> Load {
    Load::Closed { customers, think }
}

/// Throughputs of chains whose customers visit the stations in turn, which share their servers evenly. The last place of a
/// chain is where it thinks.
fn throughputs_of_chain(network: &Network) -> Vec<f64> {
    let stations = network.stations.len();
    let places = stations + 1;
    let think = |chain: &Chain| match chain.load {
        Load::Closed { think, .. } => think,
        Load::Open { .. } => panic!("the chain is open"),
    };
    let start: Vec<Vec<u32>> = network
        .chains
        .iter()
        .map(|chain| {
            let Load::Closed { customers, .. } = chain.load else { panic!("the chain is open") };
            let mut at = vec![0; places];
            at[stations] = customers;
            at
        })
        .collect();
    let rate = |state: &[Vec<u32>], r: usize, k: usize| -> f64 {
        let own = f64::from(state[r][k]);
        let seconds =
            if k == stations { think(&network.chains[r]) } else { network.chains[r].demands[k].seconds };
        let served = match network.stations.get(k).map(|it| it.kind) {
            Some(StationKind::Queue { servers }) => {
                let all: u32 = state.iter().map(|of| of[k]).sum();
                own / f64::from(all.max(1)) * f64::from(all.min(servers))
            }
            _ => own,
        };
        // What takes no time is passed through at once, nearly.
        served / seconds.max(1e-4)
    };
    let probabilities = stationary(start, |state| {
        let mut next = Vec::new();
        for r in 0..state.len() {
            for k in 0..places {
                if state[r][k] > 0 {
                    let mut to = state.clone();
                    to[r][k] -= 1;
                    to[r][(k + 1) % places] += 1;
                    next.push((to, rate(state, r, k)));
                }
            }
        }
        next
    });
    (0..network.chains.len()).map(|r| mean(&probabilities, |state| rate(state, r, 0))).collect()
}

fn throughputs(solution: &Solution) -> Vec<f64> {
    solution.chains.iter().map(|chain| chain.throughput).collect()
}

#[test]
fn exact_values_are_those_of_the_markov_chain() {
    let networks = [
        (network(&[SINGLE, SINGLE], &[(closed(4, 0.3), &[0.2, 0.5])]), Method::ExactMeanValues),
        (
            network(&[SINGLE, SINGLE, StationKind::Delay], &[(closed(3, 0.4), &[0.2, 0.5, 1.0])]),
            Method::ExactMeanValues,
        ),
        (
            network(&[SINGLE, SINGLE], &[(closed(3, 0.5), &[0.2, 0.5]), (closed(2, 1.0), &[0.7, 0.1])]),
            Method::ExactMeanValues,
        ),
        (network(&[DOUBLE, SINGLE], &[(closed(5, 0.2), &[0.8, 0.3])]), Method::ExactConvolution),
        (network(&[TRIPLE], &[(closed(6, 0.5), &[1.0])]), Method::ExactConvolution),
        (
            network(&[DOUBLE, SINGLE], &[(closed(3, 0.5), &[0.4, 0.3]), (closed(2, 1.0), &[0.9, 0.2])]),
            Method::ExactConvolution,
        ),
    ];
    for (network, method) in networks {
        let solution = solve(&network);
        assert_eq!(solution.method, method, "{network:?}");
        for (solved, exact) in throughputs(&solution).into_iter().zip(throughputs_of_chain(&network)) {
            assert_near(solved, exact, 1e-6);
        }
    }
}

#[test]
fn customers_are_conserved() {
    for kinds in [[SINGLE, SINGLE], [DOUBLE, TRIPLE], [DOUBLE, StationKind::Delay]] {
        let network = network(&kinds, &[(closed(7, 0.4), &[0.2, 0.5]), (closed(5, 2.0), &[0.7, 0.1])]);
        for solution in [solve(&network), solve_approximately(&network)] {
            for (chain, customers, think) in [(0, 7.0, 0.4), (1, 5.0, 2.0)] {
                let chain = &solution.chains[chain];
                assert_near(chain.throughput * (chain.response + think), customers, 1e-7);
            }
            let there: f64 = solution.stations.iter().map(|station| station.customers).sum();
            let thinking = solution.chains[0].throughput * 0.4 + solution.chains[1].throughput * 2.0;
            assert_near(there + thinking, 12.0, 1e-7);
        }
    }
}

#[test]
fn linearizer_is_within_a_per_cent_for_single_servers_and_a_quarter_for_several() {
    let mut random = Random::stream(1, 0);
    let (mut worst, mut sum) = ((0.0_f64, 0.0_f64), 0.0);
    for _ in 0..40 {
        let mut any = || 0.05 + random.unit();
        let demands = [[any(), any(), any()], [any(), any(), any()]];
        for (kinds, is_single) in [([SINGLE, SINGLE, SINGLE], true), ([DOUBLE, SINGLE, TRIPLE], false)] {
            let chains = [(closed(8, 1.0), demands[0].as_slice()), (closed(5, 0.0), demands[1].as_slice())];
            let network = network(&kinds, &chains);
            for (near, exact) in
                throughputs(&solve_approximately(&network)).into_iter().zip(throughputs(&solve(&network)))
            {
                let error = (near / exact - 1.0).abs();
                let worst = if is_single { &mut worst.0 } else { &mut worst.1 };
                *worst = worst.max(error);
                sum += error / 80.0;
            }
        }
    }
    // Half of the networks have single servers alone.
    assert!(worst.0 < 0.01 && worst.1 < 0.25 && sum < 0.1, "{worst:?} {sum}");
}

/// Marginal probabilities, which exact mean value analysis of several servers would need, are lost here: the station is full.
#[test]
fn many_customers_before_many_servers_lose_no_digits() {
    let (servers, customers, think, service) = (8_u32, 300_u32, 20.0, 1.0);
    let network = network(&[StationKind::Queue { servers }], &[(closed(customers, think), &[service])]);
    let solution = solve(&network);
    assert_eq!(solution.method, Method::ExactConvolution);
    // The machine repairman: a chain of births and deaths, summed by logarithms.
    let mut logs = vec![0.0_f64];
    for n in 1..=customers {
        let broken = f64::from(customers - n + 1) / think;
        let mended = f64::from(n.min(servers)) / service;
        logs.push(logs[n as usize - 1] + (broken / mended).ln());
    }
    let most = logs.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let busy: f64 =
        weights.iter().enumerate().map(|(n, weight)| weight * (n as u32).min(servers) as f64).sum();
    assert_near(solution.chains[0].throughput, busy / sum / service, 1e-9);
}

#[test]
fn copies_are_stations_of_their_own() {
    let mut grouped = network(&[SINGLE, SINGLE], &[(closed(6, 0.5), &[0.2, 0.9])]);
    grouped.stations[1].copies = 3;
    grouped.chains[0].demands[1].copies_visited = 3;
    let apart = network(&[SINGLE, SINGLE, SINGLE, SINGLE], &[(closed(6, 0.5), &[0.2, 0.3, 0.3, 0.3])]);
    for solve in [solve, solve_approximately] {
        assert_near(solve(&grouped).chains[0].throughput, solve(&apart).chains[0].throughput, 1e-9);
    }
    // And of several servers.
    let mut apart = apart;
    (grouped.stations[0].kind, apart.stations[0].kind) = (DOUBLE, DOUBLE);
    assert_near(solve(&grouped).chains[0].throughput, solve(&apart).chains[0].throughput, 1e-9);
}

/// Eight clients with a host each meet at the server, and never on their hosts.
#[test]
fn clients_on_hosts_of_their_own_do_not_meet_there() {
    let mut grouped = network(&[SINGLE, SINGLE], &[(closed(8, 0.0), &[0.5, 0.05])]);
    grouped.stations[0].copies = 8;
    let own = solve(&grouped);
    assert_eq!(own.method, Method::Linearizer);
    // As if they thought on their hosts.
    let thinking = network(&[SINGLE], &[(closed(8, 0.5), &[0.05])]);
    assert_near(own.chains[0].throughput, solve(&thinking).chains[0].throughput, 0.005);
    grouped.chains[0].demands[0].copies_visited = 8;
    assert!(solve(&grouped).chains[0].throughput < own.chains[0].throughput * 0.95);
}

#[test]
fn open_queues_are_those_of_erlang() {
    for servers in [1, 2, 5] {
        let network = network(
            &[StationKind::Queue { servers }],
            &[(Load::Open { rate: 0.8 * f64::from(servers) }, &[1.0])],
        );
        let solution = solve(&network);
        assert_eq!(solution.method, Method::Open);
        let probabilities = stationary(0_u32, |n| {
            let mut next = vec![(n + 1, 0.8 * f64::from(servers))];
            next.retain(|(n, _)| *n <= 200);
            if *n > 0 {
                next.push((n - 1, f64::from(*n.min(&servers))));
            }
            next
        });
        assert_near(solution.stations[0].customers, mean(&probabilities, |n| f64::from(*n)), 1e-6);
        assert_near(solution.stations[0].utilisation, 0.8, 1e-12);
    }
    let full = network(&[SINGLE], &[(Load::Open { rate: 1.1 }, &[1.0])]);
    assert_eq!(solve(&full).chains[0].response, f64::INFINITY);
}

#[test]
fn open_and_closed_customers_share_a_station() {
    let network = network(&[SINGLE], &[(Load::Open { rate: 0.4 }, &[1.0]), (closed(3, 2.0), &[0.5])]);
    let solution = solve(&network);
    assert_eq!(solution.method, Method::Mixed { exact: true });
    // Open customers, and closed ones at the station, which share it evenly.
    let probabilities = stationary((0_u32, 0_u32), |&(open, own)| {
        let all = f64::from((open + own).max(1));
        let mut next = vec![((open + 1, own), 0.4), ((open, own + 1), f64::from(3 - own) / 2.0)];
        next.retain(|((open, own), _)| *open <= 150 && *own <= 3);
        if open > 0 {
            next.push(((open - 1, own), f64::from(open) / all));
        }
        if own > 0 {
            next.push(((open, own - 1), f64::from(own) / all / 0.5));
        }
        next
    });
    let open = mean(&probabilities, |(open, _)| f64::from(*open));
    let thinking = mean(&probabilities, |(_, own)| f64::from(3 - own));
    assert_near(solution.chains[0].response, open / 0.4, 1e-5);
    assert_near(solution.chains[1].throughput, thinking / 2.0, 1e-5);
}
