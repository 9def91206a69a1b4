//! Clients, a daemon and servers, each time from a seed: whatever happens, all promises are kept.

use ironorb_fan_out::history;
use ironorb_fan_out::ledger::{self, Entry};

use crate::network::{self, Course, Reached};
use crate::seeds::seeds;

const SEEDS: u64 = 6_000;

#[test]
fn whatever_happens_between_clients_daemon_and_servers_all_promises_are_kept() {
    let mut all = Reached::default();
    let seeds = seeds(SEEDS);
    let (number, is_one) = (seeds.end - seeds.start, seeds.end - seeds.start == 1);
    for seed in seeds {
        let course = network::run(seed);
        check(seed, &course);
        all.add(course.reached);
    }
    // What never happens is not tested.
    assert!(is_one || all.each().into_iter().all(|times| times >= number / 100), "{all:?}");
}

fn check(seed: u64, course: &Course) {
    if let Err(wrong) = ledger::check(&course.entries, course.left) {
        let until = course.entries.iter().take(wrong.entry + 1);
        let until: String = until.map(|Entry { at, what }| format!("\n{at:?} {what:?}")).collect();
        panic!("seed {seed}: {wrong}, {:?}{until}", course.left);
    }
    for driven in &course.machines {
        history::check(&driven.plan, &driven.entries)
            .unwrap_or_else(|wrong| panic!("seed {seed}: {wrong} of {:?}", driven.plan));
    }
    for (limits, steps) in &course.steps {
        history::check_budget(*limits, steps).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}
