//! Audsley's search for priorities: from the lowest up, any task that fits there takes it.

use std::collections::BTreeMap;

use crate::check::TaskSet;
use crate::description::{Home, LanePolicy};
use crate::model::Model;
use crate::priority::{spread, stated_priorities};
use crate::response::Loads;

/// Priorities under which all tasks fit, if there are any; or why they are not searched for, or not found.
pub(crate) fn search(set: &TaskSet, model: &Model) -> Result<Vec<u16>, String> {
    let all = set.description();
    let queued = |name: &String| {
        all.lanes.iter().any(|lane| lane.name == *name && lane.policy != LanePolicy::FixedPriority)
    };
    let is_queued = all.tasks.iter().any(|task| matches!(&task.home, Home::Lane(name) if queued(name)));
    let is_stated = stated_priorities(all).iter().any(Option::is_some);
    if is_queued || is_stated || all.tasks.iter().any(|task| !task.calls.is_empty()) {
        return Err("Audsley's search is for tasks without calls, stated priorities or ordered queues; \
                    priorities are deadline-monotonic"
            .to_owned());
    }
    let mut by_unit: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (task, steps) in model.task_steps.iter().enumerate() {
        by_unit.entry(model.steps[steps.start].unit).or_default().push(task);
    }
    let mut ranks = vec![0usize; all.tasks.len()];
    for tasks in by_unit.values() {
        rank_unit(model, tasks, &mut ranks)
            .map_err(|()| "no priorities fit; they are deadline-monotonic".to_owned())?;
    }
    let count = ranks.iter().max().map_or(0, |&highest| highest + 1);
    Ok(ranks.into_iter().map(|rank| spread(rank, count, all.priorities)).collect())
}

/// Ranks the tasks of one processor, 0 for the lowest.
fn rank_unit(model: &Model, tasks: &[usize], ranks: &mut [usize]) -> Result<(), ()> {
    let mut trial = model.clone();
    let mut open: Vec<usize> = tasks.to_vec();
    // Long deadlines first: they mostly fit, and so the search is mostly short.
    open.sort_by_key(|&task| std::cmp::Reverse(trial.steps[trial.task_steps[task].start].deadline));
    for &task in &open {
        trial.steps[model.task_steps[task].start].urgency = ABOVE_RANKS;
    }
    for rank in 0..tasks.len() {
        let fits = |trial: &mut Model, task: usize| {
            let step = trial.task_steps[task].start;
            trial.steps[step].urgency = rank as u32;
            trial.settle();
            let response = Loads::of(trial).response(step);
            let fits = response <= trial.steps[step].deadline;
            if !fits {
                trial.steps[step].urgency = ABOVE_RANKS;
            }
            fits
        };
        let position = (0..open.len()).find(|&at| fits(&mut trial, open[at])).ok_or(())?;
        ranks[open.remove(position)] = rank;
    }
    Ok(())
}

/// Above all ranks, and below interrupts.
const ABOVE_RANKS: u32 = 1 << 15;
