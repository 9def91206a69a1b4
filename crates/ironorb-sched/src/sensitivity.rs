//! How much longer, or how much shorter, something may run.

use serde::Serialize;

use crate::analysis::Findings;
use crate::check::TaskSet;
use crate::report::Verdict;
use crate::time::Nanos;

/// The longest run of a task or operation with which everything fits, all else unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sensitivity {
    /// The run as described.
    pub wcet: Nanos,
    /// The longest run with which every task fits; `None` if no run of at least 1 ns does.
    pub wcet_max: Option<Nanos>,
}

/// How long a task, or else an operation, of this name may run before its first call. `None` if there is neither.
///
/// Every answer is verified: the set fits with `wcet_max`, and does not with 1 ns more.
pub fn sensitivity(set: &TaskSet, name: &str) -> Option<Sensitivity> {
    let part = Part::named(set, name)?;
    let wcet = part.wcet(set);
    let fits = |wcet: u64| part.with_wcet(set, Nanos(wcet)).is_some_and(|set| fits(&set));
    Some(Sensitivity {
        wcet,
        wcet_max: longest(part.least(set), Nanos::DESCRIBED_MAX.0, wcet.0, fits).map(Nanos),
    })
}

fn fits(set: &TaskSet) -> bool {
    Findings::of(set).verdicts().into_iter().all(|verdict| verdict == Verdict::Fits)
}

/// The largest number of a range for which a shrinking property holds. The search widens from a guess.
pub(crate) fn longest(least: u64, most: u64, guess: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(least) {
        return None;
    }
    let (mut good, mut bad) = (least, most.saturating_add(1));
    let mut at = guess.clamp(least, most);
    while good < bad - 1 {
        if holds(at) {
            good = at;
            let wider = at.saturating_mul(2).max(at + 1);
            at = if wider < bad { wider } else { good + (bad - good) / 2 };
        } else {
            bad = at;
            at = good + (bad - good) / 2;
        }
    }
    Some(good)
}

/// A task or an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Task(usize),
    Operation(usize),
}

impl Part {
    fn named(set: &TaskSet, name: &str) -> Option<Part> {
        let all = set.description();
        let task = all.tasks.iter().position(|task| task.name == name).map(Part::Task);
        task.or_else(|| all.operations.iter().position(|it| it.name == name).map(Part::Operation))
    }

    pub(crate) fn wcet(self, set: &TaskSet) -> Nanos {
        match self {
            Part::Task(index) => set.description().tasks[index].wcet,
            Part::Operation(index) => set.description().operations[index].wcet,
        }
    }

    /// The shortest run: its critical sections, or 1 ns.
    pub(crate) fn least(self, set: &TaskSet) -> u64 {
        let sections = match self {
            Part::Task(index) => &set.description().tasks[index].sections,
            Part::Operation(index) => &set.description().operations[index].sections,
        };
        sections.iter().map(|section| section.wcet.0).sum::<u64>().max(1)
    }

    pub(crate) fn with_wcet(self, set: &TaskSet, wcet: Nanos) -> Option<TaskSet> {
        let mut all = set.description().clone();
        match self {
            Part::Task(index) => all.tasks[index].wcet = wcet,
            Part::Operation(index) => all.operations[index].wcet = wcet,
        }
        TaskSet::new(all).ok()
    }
}
