//! Numbers at the ends of their ranges: every analysis ends, and none panics.

use ironorb_sched::description::*;
use ironorb_sched::simulation::Random;
use ironorb_sched::{Nanos, TaskSet, Verdict, analyze, sensitivity, table};

/// A number of any magnitude up to a limit.
fn magnitude(random: &mut Random, most: u64) -> u64 {
    let most = most >> random.below(64).min(u64::from(most.max(1).ilog2()));
    if random.chance(30) { most } else { random.below(most.saturating_add(1)) }
}

fn time(random: &mut Random, least: u64) -> Nanos {
    Nanos(magnitude(random, Nanos::DESCRIBED_MAX.0).max(least))
}

fn extreme(random: &mut Random) -> Description {
    let mut all = Description { nodes: vec![Node::new("n")], ..Description::default() };
    all.nodes[0].context_switch = time(random, 0);
    all.nodes[0].non_preemptible = time(random, 0);
    let mut link = Link::new("net", magnitude(random, u64::MAX).max(1));
    link.delay = time(random, 0);
    link.frame = random.chance(50).then(|| magnitude(random, u64::MAX).max(1));
    link.frame_overhead = magnitude(random, u64::MAX);
    link.order = if random.chance(50) { LinkOrder::Fifo } else { LinkOrder::Priority { classes: 7 } };
    all.links.push(link);
    let policy = [LanePolicy::FixedPriority, LanePolicy::Edf, LanePolicy::Muf][random.below(3) as usize];
    all.lanes.push(Lane { priority: Some(7), policy, ..Lane::new("lane", "n") });
    all.operations.push(Operation {
        name: "o".to_owned(),
        lane: "lane".to_owned(),
        wcet: time(random, 1),
        sections: Vec::new(),
        calls: Vec::new(),
    });
    for number in 0..1 + random.below(4) {
        let home = Home::Processor { node: "n".to_owned(), processor: 0 };
        let (period, wcet) = (time(random, 1), time(random, 1));
        let mut task = Task::new(format!("t{number}"), home, period, wcet);
        task.deadline = random.chance(50).then(|| time(random, 1));
        task.jitter = time(random, 0);
        if random.chance(50) {
            let mut call = Call::new("o");
            call.link = Some("net".to_owned());
            call.request_bytes = magnitude(random, u64::MAX);
            call.reply_bytes = magnitude(random, u64::MAX);
            call.then = time(random, 0);
            task.calls.push(call);
        }
        all.tasks.push(task);
    }
    all
}

#[test]
fn analyses_of_extreme_numbers_end() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let set = TaskSet::new(extreme(&mut random)).unwrap_or_else(|found| panic!("seed {seed}: {found:?}"));
        let report = analyze(&set);
        let text = table(&report).to_toml();
        assert!(text.is_ok(), "seed {seed}: {text:?}");
        assert!(report.to_html().contains("<svg"), "seed {seed}");
        let _ = sensitivity(&set, "t0");
    }
}

#[test]
fn a_message_that_takes_centuries_does_not_fit() {
    let set = TaskSet::from_toml(
        r#"
        [[node]]
        name = "n"
        [[link]]
        name = "slow"
        bandwidth = "1 bit/s"
        [[lane]]
        name = "l"
        node = "n"
        [[operation]]
        name = "o"
        lane = "l"
        wcet = "1us"
        [[task]]
        name = "t"
        node = "n"
        period = "1s"
        wcet = "1us"
        calls = [{ operation = "o", link = "slow", request = 1099511627776 }]
        "#,
    )
    .unwrap();
    let report = analyze(&set);
    assert_eq!(report.verdict, Verdict::DoesNotFit);
    assert_eq!(report.tasks[0].response, Some(Nanos::MAX));
}
