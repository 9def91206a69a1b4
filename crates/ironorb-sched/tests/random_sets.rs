//! No response in the discrete-event model exceeds its bound, in random task sets.

use ironorb_sched::description::*;
use ironorb_sched::simulation::{Plan, Random, run};
use ironorb_sched::{Nanos, TaskSet, Verdict, analyze};

/// `SCHED_SETS` says how many sets; the whole claim is about 10,000.
#[test]
fn bounds_hold_in_random_sets() {
    let sets = std::env::var("SCHED_SETS").ok().and_then(|sets| sets.parse().ok()).unwrap_or(200);
    let mut counts = Counts::default();
    for seed in 0..sets {
        check_set(seed, &mut counts);
    }
    println!("{sets} sets: {counts:?}");
    assert!(counts.compared > sets, "too few bounds are finite: {counts:?}");
}

#[test]
#[ignore = "takes minutes without optimization"]
fn bounds_hold_in_10_000_random_sets() {
    let mut counts = Counts::default();
    for seed in 0..10_000 {
        check_set(seed, &mut counts);
    }
    println!("{counts:?}");
}

#[test]
fn bounds_of_independent_tasks_are_reached() {
    let mut reached = 0;
    for seed in 0..500 {
        let mut random = Random(seed);
        let set = TaskSet::new(independent(&mut random)).unwrap();
        let report = analyze(&set);
        let until = report.tasks.iter().map(|task| task.period.0).max().unwrap() * 40;
        let observed =
            run(&set, Plan { is_worst: true, seed, until, events_max: 1_000_000, keeps_bars: false });
        for (task, observed) in report.tasks.iter().zip(&observed.responses) {
            let bound = task.response.unwrap();
            if bound <= task.deadline {
                assert_eq!(bound, Nanos(*observed), "seed {seed}: {report}");
                reached += 1;
            } else {
                assert!(
                    *observed > task.deadline.0,
                    "seed {seed}: {} can meet its deadline: {report}",
                    task.name
                );
            }
        }
    }
    assert!(reached > 1_000, "{reached}");
}

/// The exact test for arbitrary deadlines: with all tasks released at once, the busy period shows the worst case.
#[test]
fn bounds_of_overlapping_releases_are_reached() {
    let mut overlapping = 0;
    for seed in 0..300 {
        let mut random = Random(seed);
        let mut description = independent(&mut random);
        for task in &mut description.tasks {
            task.deadline = Some(Nanos(task.period.0 * (1 + random.below(5))));
        }
        let set = TaskSet::new(description).unwrap();
        let report = analyze(&set);
        let until = report.tasks.iter().map(|task| task.period.0).max().unwrap() * 300;
        let plan = Plan { is_worst: true, seed, until, events_max: 1_000_000, keeps_bars: false };
        for (task, observed) in report.tasks.iter().zip(run(&set, plan).responses) {
            let bound = task.response.unwrap();
            if bound != Nanos::MAX {
                assert_eq!(bound, Nanos(observed), "seed {seed}: {}: {report}", task.name);
                overlapping += u64::from(bound > task.period);
            }
        }
    }
    assert!(overlapping > 20, "{overlapping}");
}

#[derive(Debug, Default)]
struct Counts {
    compared: u64,
    reached: u64,
    unbounded: u64,
    fits: u64,
}

fn check_set(seed: u64, counts: &mut Counts) {
    let mut random = Random(seed.wrapping_mul(7919));
    let set =
        TaskSet::new(anything(&mut random)).unwrap_or_else(|problems| panic!("seed {seed}: {problems:?}"));
    let report = analyze(&set);
    let longest = report.tasks.iter().map(|task| task.period.0).max().unwrap();
    let mut worst = vec![0; report.tasks.len()];
    for run_seed in 0..8 {
        let plan = Plan {
            is_worst: run_seed == 0,
            seed: seed.wrapping_mul(31).wrapping_add(run_seed),
            until: longest * 30,
            events_max: 200_000,
            keeps_bars: false,
        };
        for (worst, observed) in worst.iter_mut().zip(run(&set, plan).responses) {
            *worst = observed.max(*worst);
        }
    }
    for (task, &worst) in report.tasks.iter().zip(&worst) {
        let bound = task.response.unwrap_or_else(|| panic!("seed {seed}: {report}"));
        assert!(
            Nanos(worst) <= bound,
            "seed {seed}: {} takes {}, above its bound: {report}\n{:?}\n{:?}",
            task.name,
            Nanos(worst),
            report.tasks.iter().map(|task| &task.steps).collect::<Vec<_>>(),
            set.description()
        );
        counts.unbounded += u64::from(bound == Nanos::MAX);
        counts.compared += u64::from(bound != Nanos::MAX);
        counts.reached += u64::from(Nanos(worst) == bound);
        counts.fits += u64::from(task.verdict == Verdict::Fits);
    }
}

/// Independent tasks on one processor, released together, with constrained deadlines.
fn independent(random: &mut Random) -> Description {
    let mut description = Description { nodes: vec![Node::new("n")], ..Description::default() };
    let count = 2 + random.below(5);
    for index in 0..count {
        let period = 5 + random.below(60);
        let wcet = 1 + random.below((period * 2 / count).max(1));
        let home = Home::Processor { node: "n".to_owned(), processor: 0 };
        let mut task = Task::new(format!("t{index}"), home, Nanos(period), Nanos(wcet));
        task.deadline = Some(Nanos(wcet + random.below(period - wcet.min(period) + 1)).min(Nanos(period)));
        description.tasks.push(task);
    }
    description
}

/// A set with any of what a description can say, except what makes verdicts unknown.
fn anything(random: &mut Random) -> Description {
    let mut all = Description { assignment: assignment(random), ..Description::default() };
    let nodes = 1 + random.below(3);
    for node in 0..nodes {
        all.nodes.push(Node {
            name: format!("n{node}"),
            processors: 1,
            context_switch: Nanos(random.below(6).saturating_sub(3)),
            non_preemptible: Nanos(random.below(8).saturating_sub(3)),
        });
        for number in 0..1 + random.below(3) {
            all.lanes.push(lane(random, node, number));
        }
        for number in 0..random.below(3) {
            let protocol = if random.chance(60) { Protocol::Inheritance } else { Protocol::Ceiling };
            all.resources.push(Resource { name: format!("r{node}.{number}"), protocol });
        }
        if random.chance(30) {
            all.interrupts.push(Interrupt {
                name: format!("i{node}"),
                node: format!("n{node}"),
                processor: 0,
                period: Nanos(40 + random.below(100)),
                wcet: Nanos(1 + random.below(5)),
            });
        }
    }
    for number in 0..1 + random.below(2) {
        let mut link = Link::new(format!("l{number}"), 8_000_000_000);
        link.delay = Nanos(random.below(10));
        link.frame = random.chance(50).then(|| 1 + random.below(8));
        link.frame_overhead = random.below(2);
        if random.chance(50) {
            link.order = LinkOrder::Priority { classes: 1 + random.below(4) as u8 };
        }
        all.links.push(link);
    }
    for index in 0..random.below(5) {
        let lane = &all.lanes[random.below(all.lanes.len() as u64) as usize];
        let wcet = 1 + random.below(12);
        let is_queued = lane.policy != LanePolicy::FixedPriority;
        let (name, node) = (lane.name.clone(), lane.node.clone());
        let sections = sections(random, &all, &node, wcet);
        let calls = if is_queued { Vec::new() } else { calls(random, &all, &node, 30) };
        all.operations.push(Operation {
            name: format!("o{index}"),
            lane: name,
            wcet: Nanos(wcet),
            sections,
            calls,
        });
    }
    let load = 20 + random.below(80);
    let count = 2 + random.below(6);
    for index in 0..count {
        let task = task(random, &all, index, load * nodes / count);
        all.tasks.push(task);
    }
    all
}

fn assignment(random: &mut Random) -> Assignment {
    match random.below(4) {
        0 => Assignment::RateMonotonic,
        1 => Assignment::Audsley,
        _ => Assignment::DeadlineMonotonic,
    }
}

fn lane(random: &mut Random, node: u64, number: u64) -> Lane {
    let mut lane = Lane::new(format!("n{node}.{number}"), format!("n{node}"));
    if random.chance(50) {
        lane.priority = Some(random.below(32768) as u16);
    }
    if lane.priority.is_some() && random.chance(60) {
        lane.policy = if random.chance(50) { LanePolicy::Edf } else { LanePolicy::Muf };
    }
    lane
}

fn sections(random: &mut Random, all: &Description, node: &str, wcet: u64) -> Vec<Section> {
    let here = |it: &&Resource| it.name[1..].split('.').next() == Some(&node[1..]);
    let resources: Vec<&Resource> = all.resources.iter().filter(here).collect();
    let mut left = wcet;
    let mut sections = Vec::new();
    while !resources.is_empty() && left > 0 && random.chance(45) {
        let length = 1 + random.below(left);
        left -= length;
        let resource = resources[random.below(resources.len() as u64) as usize];
        sections.push(Section { resource: resource.name.clone(), wcet: Nanos(length) });
    }
    sections
}

fn calls(random: &mut Random, all: &Description, node: &str, percent: u64) -> Vec<Call> {
    let mut calls = Vec::new();
    while !all.operations.is_empty() && calls.len() < 3 && random.chance(percent) {
        let operation = &all.operations[random.below(all.operations.len() as u64) as usize];
        let mut call = Call::new(operation.name.clone());
        let is_near = all.lanes.iter().any(|lane| lane.name == operation.lane && lane.node == node);
        if !is_near || random.chance(20) {
            let mut link = || all.links[random.below(all.links.len() as u64) as usize].name.clone();
            call.link = Some(link());
            call.reply_link = Some(link());
        }
        call.request_bytes = random.below(20);
        call.reply_bytes = random.below(20);
        call.is_oneway = random.chance(25);
        let then = random.below(5);
        call.then = Nanos(then);
        call.then_sections = sections(random, all, node, then);
        calls.push(call);
    }
    calls
}

fn task(random: &mut Random, all: &Description, index: u64, percent: u64) -> Task {
    let period = 30 + random.below(300);
    let wcet = (1 + random.below(period * 2 * percent / 100 + 1)).min(period);
    let home_lane = &all.lanes[random.below(all.lanes.len() as u64) as usize];
    let is_queued = home_lane.policy != LanePolicy::FixedPriority;
    let node = home_lane.node.clone();
    let is_in_lane = random.chance(50);
    let home = if is_in_lane {
        Home::Lane(home_lane.name.clone())
    } else {
        Home::Processor { node: node.clone(), processor: 0 }
    };
    let mut task = Task::new(format!("t{index}"), home, Nanos(period), Nanos(wcet));
    task.sections = sections(random, all, &node, wcet);
    if !(is_queued && is_in_lane) {
        task.calls = calls(random, all, &node, 50);
    }
    if random.chance(60) {
        task.deadline = Some(Nanos(wcet + random.below(period * 2)));
    }
    if random.chance(40) {
        let most = if random.chance(10) { period * 5 / 2 } else { period / 2 };
        task.jitter = Nanos(random.below(most));
    }
    let level = |random: &mut Random| [Level::Low, Level::Medium, Level::High][random.below(3) as usize];
    task.criticality = level(random);
    task.importance = level(random);
    task
}
