//! The holistic analysis: the end of a step is the jitter of its successors, to a fixed point.

use std::collections::BTreeMap;

use crate::description::Description;
use crate::model::{Model, UnitKind};
use crate::response::{Loads, UNBOUNDED};

/// What the analysis finds for each step.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// The longest time from the task's release to the step's end, with what passes afterwards.
    pub(crate) ends: Vec<u64>,
    /// Why nothing can be said about a step.
    pub(crate) unknown: Vec<Option<String>>,
    pub(crate) blocking: Vec<u64>,
    /// How often all steps were looked at.
    pub(crate) passes: u32,
}

impl Bounds {
    /// The longest response of a task.
    pub(crate) fn task_response(&self, model: &Model, task: usize) -> u64 {
        model.task_steps[task].clone().map(|step| self.ends[step]).max().unwrap_or(UNBOUNDED)
    }

    /// Why nothing can be said about a task.
    pub(crate) fn task_unknown(&self, model: &Model, task: usize) -> Option<&str> {
        model.task_steps[task].clone().find_map(|step| self.unknown[step].as_deref())
    }
}

/// Analyses all steps.
pub(crate) fn bounds(model: &Model, all: &Description) -> Bounds {
    let mut unknown = unknown_by_place(model, all);
    let (ends, blocking, passes) = fixed_point(model);
    let threads_needed = threads_needed(model, &ends, all.lanes.len());
    unknown_by_threads(model, all, &threads_needed, &mut unknown);
    spread_unknown(model, &mut unknown);
    Bounds { ends, unknown, blocking, passes }
}

fn fixed_point(model: &Model) -> (Vec<u64>, Vec<u64>, u32) {
    let mut loads = Loads::of(model);
    let mut ends = vec![0u64; model.steps.len()];
    let mut is_stale: Vec<bool> = model.steps.iter().map(|step| step.task.is_some()).collect();
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); model.steps.len()];
    for (index, step) in model.steps.iter().enumerate() {
        if let Some(predecessor) = step.predecessor {
            successors[predecessor].push(index);
        }
    }
    let mut passes = 0;
    while is_stale.contains(&true) {
        passes += 1;
        for index in 0..model.steps.len() {
            if !std::mem::take(&mut is_stale[index]) {
                continue;
            }
            let step = &model.steps[index];
            let is_floating = model.units[step.unit].kind == UnitKind::Floating;
            let found = if is_floating {
                loads.jitter[index].saturating_add(step.cost)
            } else {
                loads.response(index)
            };
            let end = found.saturating_add(step.after).max(ends[index]);
            if end == ends[index] {
                continue;
            }
            // What still grows after so many passes counts as unbounded, and so ends the search.
            ends[index] = if passes > PASSES_MAX { UNBOUNDED } else { end };
            for &successor in &successors[index] {
                loads.jitter[successor] = ends[index];
                mark_stale(model, successor, &mut is_stale);
            }
        }
    }
    (ends, loads.blocking, passes)
}

/// Marks what a step's jitter delays: all of its unit that is not more urgent.
fn mark_stale(model: &Model, changed: usize, is_stale: &mut [bool]) {
    let step = &model.steps[changed];
    let steps = model.units[step.unit].steps.iter().rev();
    for &other in steps.take_while(|&&other| model.steps[other].urgency <= step.urgency) {
        is_stale[other] = model.steps[other].task.is_some();
    }
}

/// Steps in lanes that are not pinned to one processor, and users of resources that several processors share.
fn unknown_by_place(model: &Model, all: &Description) -> Vec<Option<String>> {
    let reason = |step: &crate::model::Step| {
        if let (false, Some(lane)) = (step.floats_over.is_empty(), step.lane) {
            return Some(format!("lane `{}` is not pinned to one processor", all.lanes[lane].name));
        }
        let shared = step.sections.iter().find(|held| model.resources[held.resource].is_shared)?;
        Some(format!("resource `{}` is used on several processors", all.resources[shared.resource].name))
    };
    model.steps.iter().map(reason).collect()
}

/// Lanes in which a request may wait for a thread while a less urgent one, or one that waits itself, has it.
fn unknown_by_threads(model: &Model, all: &Description, needed: &[u64], unknown: &mut [Option<String>]) {
    let mut urgencies: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
    let mut waits = vec![false; all.lanes.len()];
    for step in &model.steps {
        let Some(lane) = step.lane else { continue };
        let range = urgencies.entry(lane).or_insert((step.urgency, step.urgency));
        *range = (range.0.min(step.urgency), range.1.max(step.urgency));
        waits[lane] |= step.waits;
    }
    for (index, step) in model.steps.iter().enumerate() {
        let Some(lane) = step.lane else { continue };
        let queue_threads = u32::from(step.queue.is_some());
        let threads = all.lanes[lane].threads.or(step.queue.map(|_| queue_threads));
        let Some(threads) = threads.filter(|&threads| u64::from(threads) < needed[lane]) else { continue };
        let (lowest, highest) = urgencies[&lane];
        if waits[lane] || lowest != highest {
            let (name, needed) = (&all.lanes[lane].name, needed[lane]);
            let needed = if needed == UNBOUNDED { "any number".to_owned() } else { needed.to_string() };
            let reason =
                format!("lane `{name}` has {threads} threads; its requests may need {needed} at once");
            unknown[index].get_or_insert(reason);
        }
    }
}

/// The threads that requests of each lane may hold at once: for each task, those that one release holds, times the
/// releases that are in progress together.
fn threads_needed(model: &Model, ends: &[u64], lanes: usize) -> Vec<u64> {
    let mut needed = vec![0u64; lanes];
    for steps in &model.task_steps {
        let Some(response) = steps.clone().map(|step| ends[step]).max() else { continue };
        let together = match response {
            UNBOUNDED => UNBOUNDED,
            _ => response.div_ceil(model.steps[steps.start].period),
        };
        // Runs after replies are on the thread of the run before them: only the first runs count. Runs that end
        // before others start count nevertheless.
        for step in steps.clone().map(|step| &model.steps[step]) {
            if let Some(lane) = step.lane.filter(|_| !step.resumes) {
                needed[lane] = needed[lane].saturating_add(together);
            }
        }
    }
    needed
}

/// What an unknown step may delay is unknown, too: its successors, and all of its processors that is not more urgent.
fn spread_unknown(model: &Model, unknown: &mut [Option<String>]) {
    loop {
        let mut worst: BTreeMap<usize, (u32, String)> = BTreeMap::new();
        for (index, step) in model.steps.iter().enumerate() {
            if let Some(reason) = &unknown[index] {
                let urgency = reach(model, index);
                let on_own = std::iter::once(step.unit);
                for unit in on_own.chain(step.floats_over.iter().copied()) {
                    let entry = worst.entry(unit).or_insert((urgency, reason.clone()));
                    if entry.0 < urgency {
                        *entry = (urgency, reason.clone());
                    }
                }
            }
        }
        let mut has_changed = false;
        for (index, step) in model.steps.iter().enumerate() {
            if unknown[index].is_some() || step.task.is_none() {
                continue;
            }
            let by_unit = worst.get(&step.unit).filter(|(urgency, _)| *urgency >= step.urgency);
            let by_predecessor = step.predecessor.and_then(|predecessor| unknown[predecessor].clone());
            if let Some(reason) = by_predecessor.or(by_unit.map(|(_, reason)| reason.clone())) {
                unknown[index] = Some(reason);
                has_changed = true;
            }
        }
        if !has_changed {
            return;
        }
    }
}

/// How urgent a step may become: its own urgency, or that of what waits for its resources if it is not pinned.
fn reach(model: &Model, index: usize) -> u32 {
    let step = &model.steps[index];
    let ceilings = step.sections.iter().map(|held| model.resources[held.resource].ceiling);
    let lifted = if step.floats_over.is_empty() { 0 } else { ceilings.max().unwrap_or(0) };
    step.urgency.max(lifted)
}

/// Jitters that grow for longer are taken to grow without end.
const PASSES_MAX: u32 = 1_000;
