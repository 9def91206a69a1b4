//! Plans: the search for what a target takes, beside trying everything.

use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::time::Duration;

use ironorb_model::analysis::bounds::Saturation;
use ironorb_model::analysis::demands::demands;
use ironorb_model::analysis::plan::{
    Change, Choice, Growth, Limits, Measure, SearchError, Setting, SimulatedLoad, Target, Verdict, growth,
    read, search, with_load,
};
use ironorb_model::queueing::{self, QueueingError};
use ironorb_model::scenario::{
    self, Architecture, Arrivals, Cache, CacheMode, Cycle, Lane, LinkRule, OperationKind, Scenario, Spread,
};
use ironorb_model::{ClassObservations, Digest, Observations, Random, ResourceObservations};

use super::chains::assert_near;
use super::scenarios::*;

/// A queue before the fewer of threads and processors, as a simulation of its own.
fn queue(scenario: &Scenario) -> Result<Vec<Observations>, Infallible> {
    let Arrivals::Open { between: Spread::Exponential(between), .. } = scenario.classes[0].arrivals else {
        unreachable!()
    };
    let Spread::Exponential(demand) = scenario.servers[0].operations[0].demand else { unreachable!() };
    let cores = scenario.hosts[1].cores;
    let servers = scenario.servers[0].threads.unwrap_or(u32::MAX).min(cores);
    let mut random = Random::stream(scenario.seed, 1);
    // When each server is free again, the earliest on top.
    let mut free: BinaryHeap<std::cmp::Reverse<Duration>> =
        (0..servers).map(|_| Default::default()).collect();
    let (mut now, mut busy) = (Duration::ZERO, Duration::ZERO);
    let mut class = ClassObservations::new("calls".to_owned());
    for _ in 0..20_000 {
        now += random.exponential(between);
        let service = random.exponential(demand);
        let start = free.pop().unwrap().0.max(now);
        free.push(std::cmp::Reverse(start + service));
        busy += service;
        class.complete(start + service - now);
    }
    let utilisation = (busy.as_secs_f64() / now.as_secs_f64() / f64::from(cores)).min(1.0);
    let resource = |name: &str, utilisation| ResourceObservations {
        name: name.to_owned(),
        utilisation,
        queue_mean: 0.0,
        queue_max: 0,
        octets: 1_000,
    };
    Ok(vec![Observations {
        span: now,
        classes: vec![class],
        resources: vec![resource("cpu of front[0]", 0.001), resource("cpu of back[0]", utilisation)],
        messages: 0,
        octets: 0,
        calls: 20_000,
        events: 0,
        digest: Digest::default(),
    }])
}

fn choices(counts: &[u32], cost: f64, setting: fn(u32) -> Setting) -> Vec<Choice> {
    let choice = |count: &u32| Choice {
        label: count.to_string(),
        cost: cost * f64::from(*count),
        setting: setting(*count),
    };
    counts.iter().map(choice).collect()
}

fn changes() -> Vec<Change> {
    vec![
        Change {
            name: "hosts.back.cores".to_owned(),
            choices: choices(&[1, 2, 3, 4, 6, 8], 10.0, |n| Setting::Cores(1, n)),
        },
        Change {
            name: "servers.accounts.threads".to_owned(),
            choices: choices(&[1, 2, 4, 8, 16], 1.0, |n| Setting::Threads(0, n)),
        },
    ]
}

fn targets(texts: &[&str]) -> Vec<Target> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn nothing_cheaper_keeps_the_target() {
    let scenario = open_queue(500, ms(5), 1, Some(1));
    for wanted in [["p99 <= 60 ms"], ["mean <= 6 ms"], ["utilisation of cpu of back <= 40 %"]] {
        let targets = targets(&wanted);
        let outcome = search(&scenario, &changes(), &targets, Limits::default(), queue).unwrap();
        assert!(outcome.found);
        let (cheaper, last) = outcome.tried.split_at(outcome.tried.len() - 1);
        assert!(cheaper.iter().all(|it| it.cost <= last[0].cost));
        let excluded = cheaper.iter().filter(|it| matches!(it.verdict, Verdict::Excluded(_))).count();
        assert!(excluded > 0, "{outcome:?}");
        // What was excluded unsimulated, and what was refused, does not keep the target.
        for tried in cheaper {
            let mut candidate = scenario.clone();
            for (change, choice) in changes().iter().zip(&tried.choices) {
                change.choices[*choice].setting.apply(&mut candidate);
            }
            let runs = queue(&candidate).unwrap();
            let kept = targets.iter().all(|it| it.is_kept_by(it.measured(&runs).unwrap()));
            assert!(!kept, "{tried:?} keeps {wanted:?}");
        }
        let best = outcome.best(&scenario, &changes()).unwrap();
        assert!(targets[0].is_kept_by(targets[0].measured(&queue(&best).unwrap()).unwrap()));
        // Nothing but what is passed decides.
        assert_eq!(search(&scenario, &changes(), &targets, Limits::default(), queue).unwrap(), outcome);
    }
}

#[test]
fn a_search_says_when_it_gives_up() {
    let scenario = open_queue(500, ms(5), 1, Some(1));
    let outcome =
        search(&scenario, &changes(), &targets(&["p99 <= 1 us"]), Limits::default(), queue).unwrap();
    assert!(!outcome.found && !outcome.is_cut_short && outcome.best(&scenario, &changes()).is_none());
    assert_eq!(outcome.tried.len(), 30);
    let limits = Limits { simulations_max: 2, ..Limits::default() };
    let outcome = search(&scenario, &changes(), &targets(&["p99 <= 1 us"]), limits, queue).unwrap();
    assert!(!outcome.found && outcome.is_cut_short);
    let limits = Limits { combinations_max: 10, ..Limits::default() };
    let error = search(&scenario, &changes(), &targets(&["p99 <= 1 us"]), limits, queue).unwrap_err();
    assert!(matches!(error, SearchError::TooMany(30)), "{error}");
    assert!(error.to_string().contains("write fewer `values`"), "{error}");
}

/// Two processes with one thread each whose operation calls another one of the same server: they wait for each other sooner or later.
fn circle(class: &str) -> Scenario {
    let text = format!(
        r#"
        span = "20 s"
        hosts = [{{ name = "a" }}, {{ name = "b", cores = 4, count = 2 }}]
        link = {{ latency = "100 us" }}
        replications = {{ min = 2, max = 2 }}
        servers = [{{ name = "s", hosts = "b", threads = 1, operations = [
            {{ name = "x", demand = {{ exponential = "1 ms" }}, calls = [{{ call = "s.y" }}] }},
            {{ name = "y", demand = {{ exponential = "1 ms" }} }},
        ] }}]
        classes = [{{ name = "c", hosts = "a", {class}, mix = [{{ calls = [{{ call = "s.x" }}] }}] }}]
        "#
    );
    scenario::read(&text, "circle").unwrap().remove(0)
}

fn simulated(scenario: &Scenario) -> Result<Vec<Observations>, QueueingError> {
    (0..2).map(|seed| queueing::run(scenario, seed, Duration::ZERO)).collect()
}

fn threads() -> [Change; 1] {
    [Change { name: "threads".to_owned(), choices: choices(&[1, 64], 1.0, |n| Setting::Threads(0, n)) }]
}

/// Those that end are fast, and half of them never do.
#[test]
fn cycles_that_do_not_end_keep_no_target() {
    let scenario = circle(r#"between = { exponential = "50 ms" }"#);
    for target in ["p99 <= 30 ms", "mean <= 30 ms"] {
        let outcome =
            search(&scenario, &threads(), &targets(&[target]), Limits::default(), simulated).unwrap();
        assert!(outcome.found && outcome.tried.len() == 2, "{outcome:?}");
        let Verdict::Simulated(values) = &outcome.tried[0].verdict else { panic!("{outcome:?}") };
        assert!(values[0].0.unwrap() > 0.03 && !values[0].1, "{target}: {values:?}");
    }
}

#[test]
fn a_combination_that_stands_still_is_passed_over() {
    let scenario = circle(r#"clients = 4, think = { exponential = "20 ms" }"#);
    let targets = targets(&["p99 <= 30 ms"]);
    let outcome = search(&scenario, &threads(), &targets, Limits::default(), simulated).unwrap();
    let Verdict::Stopped(why) = &outcome.tried[0].verdict else { panic!("{outcome:?}") };
    assert!(why.contains("nothing can happen any more"), "{why}");
    assert!(outcome.found, "{outcome:?}");
}

#[test]
fn a_limit_that_all_times_are_equal_to_is_kept() {
    let mut runs = queue(&open_queue(100, ms(5), 2, None)).unwrap();
    runs[0].classes[0].restart();
    (0..100).for_each(|_| runs[0].classes[0].complete(ms(1)));
    let target: Target = "p99 <= 1 ms".parse().unwrap();
    assert!(target.is_kept_by(target.measured(&runs).unwrap()));
}

#[test]
fn a_resource_is_meant_by_its_whole_name_if_there_is_one() {
    let mut runs = queue(&open_queue(100, ms(5), 2, None)).unwrap();
    let mut like = runs[0].resources[1].clone();
    (like.name, like.utilisation) = ("cpu of backup[0]".to_owned(), 0.99);
    runs[0].resources.push(like);
    let measured = |text: &str| text.parse::<Target>().unwrap().measured(&runs).unwrap();
    assert_eq!(measured("utilisation of cpu of back <= 1 %"), runs[0].resources[1].utilisation);
    assert_eq!(measured("utilisation of cpu of backup <= 1 %"), 0.99);
    assert_eq!(measured("utilisation of cpu of ba <= 1 %"), 0.99);
}

#[test]
fn fixed_times_exclude_percentiles_below_them() {
    let mut scenario = open_queue(10, ms(5), 8, None);
    scenario.servers[0].operations[0].demand = Spread::Fixed(ms(5));
    let simulate = |_: &Scenario| -> Result<Vec<Observations>, Infallible> { panic!("it is excluded") };
    let outcome = search(&scenario, &[], &targets(&["p50 <= 4 ms"]), Limits::default(), simulate).unwrap();
    assert_eq!(
        outcome.tried[0].verdict,
        Verdict::Excluded("a cycle of calls takes 5.000 ms at least".to_owned())
    );
    let outcome =
        search(&scenario, &[], &targets(&["throughput >= 11 /s"]), Limits::default(), simulate).unwrap();
    let Verdict::Excluded(why) = &outcome.tried[0].verdict else { panic!("{outcome:?}") };
    assert_eq!(why, "calls makes 10.0000 cycles/s at most, for its arrivals");
}

/// A trace ends: its mean rate, though more than the processor carries, says nothing of its percentiles.
#[test]
fn traces_are_not_excluded_for_their_rate() {
    let mut scenario = open_queue(10, ms(5), 1, None);
    scenario.classes[0].arrivals = Arrivals::Trace((0..100).map(ms).collect());
    for target in targets(&["p99 <= 1 s", "utilisation <= 50 %", "throughput >= 20000 /s"]) {
        assert_eq!(
            target.excluded_by(&demands(&scenario).unwrap()).is_some(),
            target.limit == 20_000.0,
            "{target}"
        );
    }
    let between = Spread::Fixed(ms(1));
    scenario.classes[0].arrivals = Arrivals::Open { between, burst: 1 };
    for target in targets(&["p99 <= 1 s", "utilisation <= 50 %", "throughput >= 300 /s"]) {
        assert!(target.excluded_by(&demands(&scenario).unwrap()).is_some(), "{target}");
    }
}

/// What a class asks for at a processor that others overload may be there in time: it goes before them, or has its share.
#[test]
fn what_others_ask_for_excludes_no_target_of_one_class() {
    let mut scenario = open_queue(10, ms(5), 1, None);
    let between = Spread::Exponential(ms(4));
    let arrivals = Arrivals::Open { between, burst: 1 };
    scenario.classes.push(class("batch", 0, arrivals, vec![Cycle::Calls(vec![call(0, 0)])]));
    let demands = demands(&scenario).unwrap();
    for (text, is_excluded) in [
        ("p99 of calls <= 1 s", false),
        ("mean of calls <= 1 s", false),
        ("p99 of batch <= 1 s", true),
        ("p99 <= 1 s", true),
        ("utilisation <= 90 %", true),
        ("throughput of calls >= 1 /s", false),
    ] {
        let target: Target = text.parse().unwrap();
        let why = target.excluded_by(&demands);
        assert_eq!(why.is_some(), is_excluded, "{text}: {why:?}");
    }
}

#[test]
fn targets_of_nothing_are_refused() {
    let scenario = open_queue(100, ms(5), 1, None);
    let refused = |text: &str| {
        let error = search(&scenario, &[], &targets(&[text]), Limits::default(), queue).unwrap_err();
        assert!(matches!(error, SearchError::Target(_)), "{error}");
        error.to_string()
    };
    for (text, why) in [
        ("p99 of brwose <= 5 ms", "there is no class `brwose`; classes are `calls`"),
        ("octets of calls <= 1 MB/s", "leave `of …` out"),
        ("p99 staleness <= 1 ms", "no class has a `cache`"),
        ("p99 staleness of calls <= 1 ms", "class `calls` has no `cache`"),
        (
            "utilisation of gpu of back <= 50 %",
            "no resource begins with `gpu of back`; resources are `cpu of front[0]`, `cpu of back[0]`",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(text) && error.contains(why), "{error}");
    }
    let problems = read("[plan]\ntargets = [\"p99 of brwose <= 5 ms\"]", &scenario).unwrap_err();
    assert!(problems[0].line == 2 && problems[0].mend.contains("classes are `calls`"), "{problems:?}");
}

/// Clients that think for long fill a processor when there are millions of them: nobody simulates that to plan.
#[test]
fn load_does_not_grow_beyond_what_can_be_simulated() {
    let mut scenario = open_queue(100, ms(1), 1, None);
    let think = Spread::Fixed(Duration::from_secs(100_000));
    scenario.classes[0].arrivals = Arrivals::Closed { clients: 1_000, think };
    let most = std::cell::Cell::new(0);
    let simulate = |loaded: &Scenario| -> Result<Vec<Observations>, Infallible> {
        let Arrivals::Closed { clients, .. } = loaded.classes[0].arrivals else { unreachable!() };
        most.set(most.get().max(clients));
        queue(&open_queue(100, ms(1), 1, None))
    };
    let growth = growth(&scenario, &targets(&["p99 <= 1 s"]), simulate).unwrap();
    assert!(growth.by_bounds[0].factor > 10_000.0, "{growth:?}");
    assert_eq!(growth.simulated, None);
    assert_eq!((growth.kept_up_to, most.get()), ((100.0, None), 100_000));
}

/// A queue before one processor, of which theory knows all: with rate x the response is exponential, of mean 1/(200 - x).
#[test]
fn the_load_that_breaks_a_target_is_found() {
    let scenario = open_queue(100, ms(5), 1, None);
    let targets = targets(&["p99 <= 100 ms"]);
    let growth = growth(&scenario, &targets, queue).unwrap();
    assert_eq!(growth.by_bounds[0].resource, "cpu of back");
    assert_near(growth.by_bounds[0].factor, 2.0, 1e-9);
    assert!(growth.is_confirmed(), "{growth:?}");
    let seen = growth.simulated.clone().unwrap();
    assert_near(seen.factor, 1.9, 1e-9);
    assert_eq!(seen.busiest[0].0, "cpu of back[0]");
    assert_near(seen.busiest[0].1, 0.95, 0.03);
    let theory = (200.0 - 100.0_f64.ln() / 0.1) / 100.0;
    let (kept, broken) = growth.kept_up_to;
    assert!(kept < broken.unwrap() && broken.unwrap() - kept < 0.02, "{growth:?}");
    // 20,000 calls that follow on each other tell a 99th percentile to some per cent.
    assert_near(kept, theory, 0.05);
}

/// Threads are full because processors are: that does not speak against these. A full link would.
#[test]
fn what_breaks_first_is_confirmed_by_what_requests_wait_for() {
    let saturation = |resource: &str, factor| Saturation { resource: resource.to_owned(), factor };
    let growth = |first: &str, busiest: &[&str]| Growth {
        by_bounds: vec![saturation(first, 2.0), saturation("link a -> b", 2.05), saturation("cpu of c", 3.0)],
        simulated: Some(SimulatedLoad {
            factor: 1.9,
            busiest: busiest.iter().map(|name| ((*name).to_owned(), 0.9)).collect(),
        }),
        kept_up_to: (1.0, None),
    };
    for (first, busiest, is_confirmed) in [
        ("cpu of back", vec!["threads of accounts", "cpu of back[3]", "link a -> b"], true),
        ("cpu of back", vec!["cpu of back (mean of 40)"], true),
        ("cpu of back", vec!["link a -> b", "cpu of back"], true),
        ("cpu of back", vec!["cpu of c", "cpu of back"], false),
        ("cpu of back", vec!["cpu of backup"], false),
        ("threads of accounts, lane 5", vec!["threads of accounts[1], lane 5"], true),
        ("threads of accounts", vec!["cpu of back", "threads of accounts"], false),
        ("servants of accounts", vec!["threads of accounts"], true),
        ("cpu of back", vec![], false),
    ] {
        assert_eq!(growth(first, &busiest).is_confirmed(), is_confirmed, "{first} {busiest:?}");
    }
    // Threads that wait for each other break while processors sleep.
    let mut idle = growth("cpu of back", &["threads of accounts", "cpu of back"]);
    assert!(idle.is_confirmed());
    idle.simulated.as_mut().unwrap().busiest[1].1 = 0.03;
    assert!(!idle.is_confirmed(), "{idle:?}");
}

#[test]
fn load_grows_alike_for_all_classes() {
    let mut scenario = open_queue(100, ms(5), 1, None);
    scenario.classes.push(class(
        "closed",
        0,
        Arrivals::Closed { clients: 3, think: Spread::Fixed(ms(1)) },
        Vec::new(),
    ));
    scenario.classes.push(class("traced", 0, Arrivals::Trace(vec![ms(10), ms(30)]), Vec::new()));
    let loaded = with_load(&scenario, 2.5);
    assert_eq!(loaded.classes[0].arrivals, Arrivals::Open { between: Spread::Exponential(ms(4)), burst: 1 });
    assert_eq!(loaded.classes[1].arrivals, Arrivals::Closed { clients: 8, think: Spread::Fixed(ms(1)) });
    assert_eq!(loaded.classes[2].arrivals, Arrivals::Trace(vec![ms(4), ms(12)]));
}

#[test]
fn targets_are_read_with_their_units() {
    for (text, measure, of, limit) in [
        ("p99 <= 5 ms", Measure::Percentile(99.0), None, 0.005),
        ("p99.9 of browse <= 250us", Measure::Percentile(99.9), Some("browse"), 0.000_25),
        ("mean ≤ 1s", Measure::Mean, None, 1.0),
        ("p95 staleness of browse <= 10 ms", Measure::Staleness(95.0), Some("browse"), 0.010),
        ("throughput >= 1000 /s", Measure::Throughput, None, 1000.0),
        ("throughput of jobs >= 1.5 k/s", Measure::Throughput, Some("jobs"), 1500.0),
        ("octets <= 10 MB/s", Measure::Octets, None, 1e7),
        ("utilisation <= 70 %", Measure::Utilisation, None, 0.7),
        ("utilization of cpu of back <= 70%", Measure::Utilisation, Some("cpu of back"), 0.7),
        ("failed <= 0.1 %", Measure::Failed, None, 0.001),
    ] {
        let target: Target = text.parse().unwrap();
        assert_eq!((target.measure, target.of.as_deref()), (measure, of), "{text}");
        assert_near(target.limit, limit, 1e-12);
        assert_eq!(target.to_string(), text);
    }
    for (text, why) in [
        ("p99 5 ms", "write a measure, `<=` or `>=`, and a limit"),
        ("p100 <= 5 ms", "`p100` is no measure"),
        ("speed <= 5 ms", "`speed` is no measure"),
        ("p99 <= 5", "`5` is no limit; write a time"),
        ("throughput <= 5 /s", "a limit of `throughput` is written with `>=`"),
        ("p99 >= 5 ms", "a limit of `p99` is written with `<=`"),
        ("utilisation <= 120 %", "`120 %` is no limit; write a percentage"),
        ("octets <= 5 Mbit/s", "write octets a second"),
    ] {
        let error = text.parse::<Target>().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn targets_take_the_worst_of_what_they_mean() {
    let runs = queue(&open_queue(100, ms(5), 2, None)).unwrap();
    let measured = |text: &str| text.parse::<Target>().unwrap().measured(&runs);
    assert_near(measured("mean <= 1 s").unwrap(), runs[0].classes[0].response_mean().as_secs_f64(), 1e-6);
    assert!(measured("p50 <= 1 s").unwrap() < measured("p99 <= 1 s").unwrap());
    assert_near(measured("throughput >= 1 /s").unwrap(), 100.0, 0.03);
    assert_eq!(measured("utilisation <= 1 %").unwrap(), runs[0].resources[1].utilisation);
    assert_eq!(measured("utilisation of cpu of front <= 1 %").unwrap(), 0.001);
    assert_near(measured("octets <= 1 kB/s").unwrap(), 2_000.0 / runs[0].span.as_secs_f64(), 1e-9);
    assert_eq!(measured("failed <= 1 %"), Some(0.0));
    assert_eq!(measured("mean of others <= 1 s"), None);
    let mut two = vec![runs[0].clone(), runs[0].clone()];
    two[1].classes[0].failed = 20_000;
    let target: Target = "failed <= 1 %".parse().unwrap();
    assert_near(target.measured(&two).unwrap(), 1.0 / 3.0, 1e-9);
}

fn planned() -> Scenario {
    let mut scenario = open_queue(100, ms(5), 1, None);
    scenario.servers[0].operations[0].kind = OperationKind::Read;
    scenario.servers.push(server("ledger", 1, None, Vec::new()));
    scenario.servers[1].lanes = vec![Lane { priority: 0, threads: 1 }, Lane { priority: 100, threads: 1 }];
    scenario.links.push(LinkRule::new((0, 1), link()));
    scenario.classes[0].cache =
        Some(Cache { lag: ms(1), capacity: 1.0, update_octets: 1, mode: CacheMode::Bounded });
    let job = Cycle::Job { architecture: Architecture::Sequential, parts: vec![call(0, 0)], daemon: 1 };
    let arrivals = Arrivals::Closed { clients: 1, think: Spread::Fixed(ms(1)) };
    scenario.classes.push(class("jobs", 0, arrivals, vec![job]));
    scenario
}

#[test]
fn a_plan_is_read_from_its_file() {
    let text = r#"
        [plan]
        targets = ["p99 <= 5 ms", "octets <= 1 MB/s"]

        [[plan.changes]]
        of = "servers.accounts.threads"
        values = [1, 2, 4]
        cost = 0.5

        [[plan.changes]]
        of = "classes.calls.cache.lag"
        values = ["1 ms", "10 ms"]
        costs = [3, 1.5]
        "#;
    let plan = read(text, &planned()).unwrap();
    assert_eq!(plan.targets, targets(&["p99 <= 5 ms", "octets <= 1 MB/s"]));
    let costs = |index: usize| plan.changes[index].choices.iter().map(|it| it.cost).collect::<Vec<_>>();
    assert_eq!((costs(0), costs(1)), (vec![0.5, 1.0, 2.0], vec![3.0, 1.5]));
    assert_eq!(plan.changes[0].choices[2].setting, Setting::Threads(0, 4));
    assert_eq!(plan.changes[1].choices[1].setting, Setting::Lag(0, ms(10)));
    assert_eq!(plan.changes[1].choices[1].label, "10 ms");
    assert_eq!(read("name = \"no plan\"", &planned()).unwrap().changes, []);
}

#[test]
fn everything_that_a_plan_may_change_can_be_written() {
    for (of, value, setting) in [
        ("hosts.back.count", "3", Setting::Hosts(1, 3)),
        ("hosts.back.cores", "8", Setting::Cores(1, 8)),
        ("hosts.front.speed", "1.5", Setting::Speed(0, 1.5)),
        ("servers.ledger.lanes.100.threads", "2", Setting::LaneThreads(1, 1, 2)),
        ("classes.calls.cache.capacity", "\"25 %\"", Setting::Capacity(0, 0.25)),
        ("classes.calls.cache.mode", "\"push\"", Setting::Mode(0, CacheMode::Push)),
        ("classes.jobs.job", "\"handle-driven\"", Setting::Architecture(1, Architecture::HandleDriven)),
        ("link.bandwidth", "\"10 Mbit/s\"", Setting::DefaultBandwidth(10_000_000)),
        ("links.back.front.bandwidth", "\"1 Gbit/s\"", Setting::LinkBandwidth(0, 1_000_000_000)),
    ] {
        let text = format!("[[plan.changes]]\nof = \"{of}\"\nvalues = [{value}]");
        let plan = read(&text, &planned()).unwrap();
        assert_eq!(plan.changes[0].choices[0].setting, setting, "{of}");
        let mut changed = planned();
        setting.apply(&mut changed);
        assert_ne!(changed, planned(), "{of}");
    }
}

#[test]
fn a_bad_plan_is_told_with_line_and_mend() {
    let change = |rest: &str| format!("[[plan.changes]]\nof = \"servers.accounts.threads\"\n{rest}");
    for (text, line, message, mend) in [
        ("plan = 3".to_owned(), 1, "`plan` is no table", "write `[plan]`"),
        ("[plan]\ntarget = []".to_owned(), 2, "`target` has no meaning here", "known are `targets`"),
        ("[plan]\ntargets = [\"p99 <= 5\"]".to_owned(), 2, "`p99 <= 5` is no target", "write a time"),
        (
            "[[plan.changes]]\nof = \"servers.acounts.threads\"\nvalues = [1]".to_owned(),
            2,
            "is nothing that a plan can change",
            "servers are `accounts`",
        ),
        (
            "[[plan.changes]]\nof = \"servers.ledger.threads\"\nvalues = [1]".to_owned(),
            2,
            "is nothing that a plan can change",
            ".lanes.PRIORITY.threads",
        ),
        ("[[plan.changes]]\nvalues = [1]".to_owned(), 1, "`of` is missing", "add `of"),
        (change(""), 1, "`values` is missing", "add `values"),
        (change("values = []"), 1, "has no values", "write `values"),
        (change("values = [0]"), 3, "this is no value of", "from 1 to 100,000"),
        (change("values = [1, \"2\"]"), 3, "this is no value of", "from 1 to 100,000"),
        (change("values = [1, 2]\ncosts = [1]"), 4, "has not one number for each", "as many"),
        (
            change("values = [1]\ncost = 1\ncosts = [1]"),
            4,
            "`cost` and `costs` exclude each other",
            "leave one of them out",
        ),
        (
            format!("{}\n{}", change("values = [1]"), change("values = [2]")),
            5,
            "two changes of `servers.accounts.threads`",
            "into one `[[plan.changes]]`",
        ),
        (
            ["front.back", "back.front"]
                .map(|of| {
                    format!("[[plan.changes]]\nof = \"links.{of}.bandwidth\"\nvalues = [\"1 Mbit/s\"]\n")
                })
                .concat(),
            5,
            "two changes of `links.back.front.bandwidth`",
            "into one `[[plan.changes]]`",
        ),
        (change("values = [1]\ncost = \"1\""), 4, "`cost` is no number", "write `cost = 1`"),
        (
            "[[plan.changes]]\nof = \"hosts.back.speed\"\nvalues = [1e-300]".to_owned(),
            3,
            "this is no value of",
            "from 0.001 to 1,000",
        ),
        (
            "[[plan.changes]]\nof = \"link.bandwidth\"\nvalues = [\"20000 Gbit/s\"]".to_owned(),
            3,
            "this is no value of",
            "to 10,000 Gbit/s",
        ),
        ("[plan".to_owned(), 1, "this is no TOML", "mend the syntax"),
    ] {
        let problems = read(&text, &planned()).unwrap_err();
        let it = &problems[0];
        assert!(
            it.line == line && it.message.contains(message) && it.mend.contains(mend),
            "{text}: {problems:?}"
        );
    }
}
