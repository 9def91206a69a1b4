//! What to change when a set does not fit. Each change is verified by an analysis before it is told.

use std::fmt;

use serde::Serialize;

use crate::analysis::Findings;
use crate::check::TaskSet;
use crate::description::*;
use crate::report::Verdict;
use crate::sensitivity::{Part, longest};
use crate::time::Nanos;

/// A verified change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// What to change.
    pub text: String,
    /// The tasks that fit with the change, and do not without it.
    pub mends: Vec<String>,
    /// Whether the whole set then fits.
    pub mends_all: bool,
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mended = match (self.mends_all, self.mends.as_slice()) {
            (true, _) => "every task fits".to_owned(),
            (false, [one]) => format!("task `{one}` fits"),
            (false, [one, rest @ ..]) => format!("task `{one}` and {} more fit", rest.len()),
            (false, []) => "nothing changes".to_owned(),
        };
        write!(f, "{}: then {mended}", self.text)
    }
}

/// Verified changes, those first that mend all.
pub(crate) fn suggestions(set: &TaskSet, found: &Findings) -> Vec<Suggestion> {
    let steps = found.model.steps.len().max(1);
    let mut search = Search {
        set,
        before: found.verdicts(),
        analyses_left: std::cell::Cell::new((STEPS_ANALYSED_MAX / steps).min(ANALYSES_MAX)),
        found: Vec::new(),
    };
    search.other_assignments();
    search.pin_lanes();
    search.move_tasks_and_lanes(found);
    search.shorten_and_lengthen();
    search.found.sort_by_key(|suggestion| !suggestion.mends_all);
    search.found.truncate(SUGGESTIONS_MAX);
    search.found
}

struct Search<'s> {
    set: &'s TaskSet,
    before: Vec<Verdict>,
    analyses_left: std::cell::Cell<usize>,
    found: Vec<Suggestion>,
}

impl Search<'_> {
    /// The verdicts with a change; `None` if it is not allowed, or too much was analysed already.
    fn verdicts(&self, change: impl FnOnce(&mut Description)) -> Option<Vec<Verdict>> {
        self.analyses_left.set(self.analyses_left.get().checked_sub(1)?);
        let mut all = self.set.description().clone();
        change(&mut all);
        Some(Findings::of(&TaskSet::new(all).ok()?).verdicts())
    }

    /// Keeps a change that mends something and breaks nothing.
    fn offer(&mut self, text: String, change: impl FnOnce(&mut Description)) {
        let Some(after) = self.verdicts(change) else { return };
        let is_worse = self.before.iter().zip(&after).any(|(before, after)| after > before);
        let tasks = &self.set.description().tasks;
        let mends: Vec<String> = tasks
            .iter()
            .zip(self.before.iter().zip(&after))
            .filter(|(_, (before, after))| **before != Verdict::Fits && **after == Verdict::Fits)
            .map(|(task, _)| task.name.clone())
            .collect();
        if !is_worse && !mends.is_empty() {
            let mends_all = after.iter().all(|&verdict| verdict == Verdict::Fits);
            self.found.push(Suggestion { text, mends, mends_all });
        }
    }

    fn other_assignments(&mut self) {
        for (assignment, word) in [
            (Assignment::RateMonotonic, "rate-monotonic"),
            (Assignment::DeadlineMonotonic, "deadline-monotonic"),
            (Assignment::Audsley, "audsley"),
        ] {
            if assignment != self.set.description().assignment {
                self.offer(format!("set `assignment = \"{word}\"`"), |all| all.assignment = assignment);
            }
        }
    }

    /// Pins lanes that are on several processors to one of them.
    fn pin_lanes(&mut self) {
        let all = self.set.description();
        for (index, lane) in all.lanes.iter().enumerate().filter(|(_, lane)| lane.processors.len() != 1) {
            let Some(node) = all.nodes.iter().find(|node| node.name == lane.node && node.processors > 1)
            else {
                continue;
            };
            for processor in 0..node.processors.min(PLACES_MAX) {
                let text = format!("pin lane `{}` with `processor = {processor}`", lane.name);
                self.offer(text, |all| all.lanes[index].processors = vec![processor]);
            }
        }
    }

    /// Moves lanes and tasks of misfits to other processors of their nodes, and tasks without calls to other nodes.
    fn move_tasks_and_lanes(&mut self, found: &Findings) {
        let all = self.set.description();
        let late: Vec<usize> = self.late_tasks();
        let units: Vec<usize> = late.iter().map(|&task| self.unit_of(found, task)).collect();
        for (index, lane) in all.lanes.iter().enumerate() {
            let unit = found.model.steps.iter().find(|step| step.lane == Some(index)).map(|step| step.unit);
            if !unit.is_some_and(|unit| units.contains(&unit)) || lane.processors.len() != 1 {
                continue;
            }
            let Some(node) = all.nodes.iter().find(|node| node.name == lane.node) else { continue };
            for processor in (0..node.processors.min(PLACES_MAX)).filter(|it| lane.processors != [*it]) {
                let text = format!("move lane `{}` to `processor = {processor}`", lane.name);
                self.offer(text, |all| all.lanes[index].processors = vec![processor]);
            }
        }
        for task in 0..all.tasks.len() {
            if matches!(all.tasks[task].home, Home::Processor { .. })
                && units.contains(&self.unit_of(found, task))
            {
                self.move_task(task);
            }
        }
    }

    fn move_task(&mut self, task: usize) {
        let all = self.set.description();
        let described = &all.tasks[task];
        let Home::Processor { node: home, processor: at } = &described.home else { return };
        let can_leave = described.calls.is_empty() && described.sections.is_empty();
        for node in all.nodes.iter().filter(|node| can_leave || node.name == *home).take(PLACES_MAX as usize)
        {
            for processor in 0..node.processors.min(PLACES_MAX) {
                if node.name == *home && processor == *at {
                    continue;
                }
                let text = format!("move task `{}` to `{}/{processor}`", described.name, node.name);
                let place = Home::Processor { node: node.name.clone(), processor };
                self.offer(text, |all| all.tasks[task].home = place);
            }
        }
    }

    /// For each late task, how short a run of it, or of a task beside it, mends it; and how long a period.
    fn shorten_and_lengthen(&mut self) {
        for late in self.late_tasks().into_iter().take(LATE_MAX) {
            for part in (0..self.set.description().tasks.len()).take(PARTS_MAX).map(Part::Task) {
                self.shorten(part, late);
            }
            for part in (0..self.set.description().operations.len()).take(PARTS_MAX).map(Part::Operation) {
                self.shorten(part, late);
            }
            for task in 0..self.set.description().tasks.len().min(PARTS_MAX) {
                self.lengthen(task, late);
            }
        }
    }

    fn shorten(&mut self, part: Part, late: usize) {
        let wcet = part.wcet(self.set).0;
        let set_wcet = |all: &mut Description, wcet: u64| match part {
            Part::Task(index) => all.tasks[index].wcet = Nanos(wcet),
            Part::Operation(index) => all.operations[index].wcet = Nanos(wcet),
        };
        let fits = |wcet: u64| self.fits(late, |all| set_wcet(all, wcet));
        let Some(longest) = longest(part.least(self.set), wcet, wcet / 2, fits) else { return };
        let (kind, name) = match part {
            Part::Task(index) => ("task", &self.set.description().tasks[index].name),
            Part::Operation(index) => ("operation", &self.set.description().operations[index].name),
        };
        let (now, at_most) = (Nanos(wcet), Nanos(longest));
        let text = format!("shorten the run of {kind} `{name}` from {now} to at most {at_most}");
        self.offer(text, |all| set_wcet(all, longest));
    }

    fn lengthen(&mut self, task: usize, late: usize) {
        let period = self.set.description().tasks[task].period.0;
        let most = period.saturating_mul(PERIOD_FACTOR_MAX).min(Nanos::DESCRIBED_MAX.0);
        // A task that leaves its deadline to its period keeps the deadline that it has.
        let deadline = self.set.description().tasks[task].deadline();
        let set_period = |all: &mut Description, period: u64| {
            all.tasks[task].period = Nanos(period);
            all.tasks[task].deadline = Some(deadline);
        };
        let fits = |cut: u64| self.fits(late, |all| set_period(all, most - cut));
        let Some(cut) = longest(0, most - period, most / 2, fits) else { return };
        let (name, at_least) = (&self.set.description().tasks[task].name, Nanos(most - cut));
        let text =
            format!("lengthen the period of task `{name}` from {} to at least {at_least}", Nanos(period));
        self.offer(text, |all| set_period(all, most - cut));
    }

    fn fits(&self, task: usize, change: impl FnOnce(&mut Description)) -> bool {
        self.verdicts(change).is_some_and(|verdicts| verdicts[task] == Verdict::Fits)
    }

    fn late_tasks(&self) -> Vec<usize> {
        (0..self.before.len()).filter(|&task| self.before[task] == Verdict::DoesNotFit).collect()
    }

    fn unit_of(&self, found: &Findings, task: usize) -> usize {
        found.model.steps[found.model.task_steps[task].start].unit
    }
}

/// The most analyses in a search.
const ANALYSES_MAX: usize = 4_000;

/// The most steps in all analyses of a search together, which bounds the time for large sets.
const STEPS_ANALYSED_MAX: usize = 100_000;

const SUGGESTIONS_MAX: usize = 12;

/// The most late tasks, parts to change, and places to move to, that are tried.
const LATE_MAX: usize = 3;
const PARTS_MAX: usize = 16;
const PLACES_MAX: u32 = 8;

/// Periods are lengthened to at most so many times theirs.
const PERIOD_FACTOR_MAX: u64 = 10;
