//! From a task set to a report.

use std::collections::{BTreeMap, BTreeSet};

use crate::audsley;
use crate::check::TaskSet;
use crate::description::*;
use crate::holistic::{self, Bounds};
use crate::model::{INTERRUPT_URGENCY, Model, UnitKind};
use crate::priority;
use crate::report::*;
use crate::response::UNBOUNDED;
use crate::suggest;
use crate::time::Nanos;
use crate::timeline::Timeline;

/// Analyses a set: verdicts, bounds, anomalies, a timeline, and what to change when it does not fit.
pub fn analyze(set: &TaskSet) -> Report {
    let found = Findings::of(set);
    let mut report = found.report(set);
    if report.verdict != Verdict::Fits {
        report.suggestions = suggest::suggestions(set, &found);
    }
    report
}

/// The bare result, which the searches for changes compute again and again.
pub(crate) struct Findings {
    pub(crate) model: Model,
    pub(crate) bounds: Bounds,
    pub(crate) notes: Vec<Anomaly>,
}

impl Findings {
    pub(crate) fn of(set: &TaskSet) -> Self {
        let mut notes = Vec::new();
        let mut model = Model::of(set, priority::assign(set));
        if set.description().assignment == Assignment::Audsley {
            match audsley::search(set, &model) {
                Ok(priorities) => model = Model::of(set, priorities),
                Err(note) => notes.push(Anomaly { severity: Severity::Warning, text: note }),
            }
        }
        let bounds = holistic::bounds(&model, set.description());
        Findings { model, bounds, notes }
    }

    pub(crate) fn verdict_of(&self, task: usize) -> Verdict {
        let deadline = self.model.steps[self.model.task_steps[task].start].deadline;
        if self.bounds.task_unknown(&self.model, task).is_some() {
            Verdict::Unknown
        } else if self.bounds.task_response(&self.model, task) <= deadline {
            Verdict::Fits
        } else {
            Verdict::DoesNotFit
        }
    }

    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        (0..self.model.task_steps.len()).map(|task| self.verdict_of(task)).collect()
    }

    fn report(&self, set: &TaskSet) -> Report {
        let all = set.description();
        let tasks: Vec<TaskReport> = (0..all.tasks.len()).map(|task| self.task(all, task)).collect();
        let units = self.units();
        let mut report = Report {
            verdict: tasks.iter().map(|task| task.verdict).max().unwrap_or(Verdict::Fits),
            lanes: self.lanes(all),
            operations: operations(all),
            connections: self.connections(all),
            anomalies: Vec::new(),
            suggestions: Vec::new(),
            passes: self.bounds.passes,
            timeline: Timeline::of(&self.model, all),
            tasks,
            units,
        };
        report.anomalies = self.anomalies(all, &report);
        report
    }

    fn task(&self, all: &Description, task: usize) -> TaskReport {
        let described = &all.tasks[task];
        let steps = self.model.task_steps[task].clone();
        let reason = self.bounds.task_unknown(&self.model, task);
        let (lane, node, processor) = match &described.home {
            Home::Lane(name) => {
                let lane = all.lanes.iter().find(|lane| lane.name == *name);
                let node = lane.map(|lane| lane.node.clone()).unwrap_or_default();
                let unit = self.model.steps[steps.start].unit;
                let number = self.model.units[unit].name.rsplit('/').next().and_then(|it| it.parse().ok());
                (Some(name.clone()), node, number)
            }
            Home::Processor { node, processor } => (None, node.clone(), Some(*processor)),
        };
        TaskReport {
            name: described.name.clone(),
            verdict: self.verdict_of(task),
            proof: if self.is_exact(task) { Proof::Exact } else { Proof::Sufficient },
            reason: reason.map(str::to_owned),
            response: reason.is_none().then(|| Nanos(self.bounds.task_response(&self.model, task))),
            deadline: described.deadline(),
            period: described.period,
            priority: self.model.priorities[task],
            criticality: described.criticality,
            lane,
            node,
            processor,
            steps: steps.map(|step| self.step(step)).collect(),
        }
    }

    fn step(&self, index: usize) -> StepReport {
        let step = &self.model.steps[index];
        StepReport {
            name: step.label.clone(),
            unit: self.model.units[step.unit].name.clone(),
            cost: Nanos(step.cost),
            blocking: Nanos(self.bounds.blocking[index]),
            end: Nanos(self.bounds.ends[index]),
        }
    }

    /// Whether a task's bound is reached: alone in its chain, not blocked, and every more urgent step is the first of
    /// its task with a priority of its own.
    fn is_exact(&self, task: usize) -> bool {
        let steps = self.model.task_steps[task].clone();
        let index = steps.start;
        let step = &self.model.steps[index];
        let rivals = self.model.units[step.unit].steps.iter().map(|&other| (other, &self.model.steps[other]));
        steps.len() == 1
            && step.queue.is_none()
            && (step.sections.is_empty() || self.bounds.ends[index] <= step.period)
            && self.bounds.blocking[index] == 0
            && step.jitter < step.period
            && rivals.filter(|(_, other)| other.urgency >= step.urgency).all(|(other, rival)| {
                rival.predecessor.is_none()
                    && rival.cost == rival.wcet
                    && (other == index || rival.urgency > step.urgency)
            })
    }

    fn units(&self) -> Vec<UnitReport> {
        let is_real = |unit: &&crate::model::Unit| unit.kind != UnitKind::Floating || !unit.steps.is_empty();
        let of_unit = |unit: &crate::model::Unit| UnitReport {
            name: unit.name.clone(),
            utilisation_ppm: unit
                .steps
                .iter()
                .map(|&step| self.utilisation_ppm(step))
                .fold(0, u64::saturating_add),
            steps: unit.steps.len(),
        };
        self.model.units.iter().filter(is_real).map(of_unit).collect()
    }

    fn utilisation_ppm(&self, index: usize) -> u64 {
        let step = &self.model.steps[index];
        let ppm = (u128::from(step.cost) * 1_000_000).div_ceil(u128::from(step.period));
        u64::try_from(ppm).unwrap_or(u64::MAX)
    }

    fn lanes(&self, all: &Description) -> Vec<LaneReport> {
        let mut requests = vec![(0u64, 0u64); all.lanes.len()];
        for steps in &self.model.task_steps {
            let response = steps.clone().map(|step| self.bounds.ends[step]).max().unwrap_or(UNBOUNDED);
            let together = response.div_ceil(self.model.steps[steps.start].period);
            for step in steps.clone().map(|step| &self.model.steps[step]) {
                let Some(lane) = step.lane.filter(|_| !step.resumes) else { continue };
                let (count, bytes) = &mut requests[lane];
                *count = count.saturating_add(together);
                *bytes = bytes.saturating_add(step.request_bytes.saturating_mul(together));
            }
        }
        let report = |(lane, (requests_max, request_bytes_max)): (&Lane, (u64, u64))| LaneReport {
            name: lane.name.clone(),
            node: lane.node.clone(),
            processors: lane.processors.clone(),
            priority: lane.priority,
            order: lane.policy,
            threads: lane.threads.map_or_else(
                || if lane.policy == LanePolicy::FixedPriority { requests_max.max(1) } else { 1 },
                u64::from,
            ),
            requests_max,
            request_bytes_max,
        };
        all.lanes.iter().zip(requests).map(report).collect()
    }

    fn connections(&self, all: &Description) -> Vec<ConnectionReport> {
        let mut uses: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
        for (task, steps) in self.model.task_steps.iter().enumerate() {
            for step in steps.clone().map(|step| &self.model.steps[step]) {
                let sender = step.predecessor.filter(|_| !step.resumes).map(|it| &self.model.steps[it]);
                if let (Some(lane), Some(message)) = (step.lane, sender)
                    && self.model.units[message.unit].kind == UnitKind::Link
                {
                    uses.insert((task, lane, message.unit));
                }
            }
        }
        let mut priorities: BTreeMap<(usize, usize), BTreeSet<u16>> = BTreeMap::new();
        for &(task, lane, link) in &uses {
            priorities.entry((lane, link)).or_default().insert(self.model.priorities[task]);
        }
        let mut connections: Vec<ConnectionReport> = uses
            .iter()
            .map(|&(task, lane, link)| ConnectionReport {
                task: all.tasks[task].name.clone(),
                lane: all.lanes[lane].name.clone(),
                link: self.model.units[link].name.clone(),
                is_private: priorities[&(lane, link)].len() > 1,
                dscp: self.dscp(all, task, link),
            })
            .collect();
        connections.sort();
        connections
    }

    /// The mark of a task's messages on a link: by class, so that links see the order that the analysis assumes.
    fn dscp(&self, all: &Description, task: usize, link: usize) -> u8 {
        let described = all.links.iter().find(|it| it.name == self.model.units[link].name);
        let Some(LinkOrder::Priority { classes }) = described.map(|link| link.order) else { return 0 };
        let mut steps = self.model.task_steps[task].clone().map(|step| &self.model.steps[step]);
        let class = steps.find(|step| step.unit == link).map_or(0, |step| step.urgency);
        let from_top = u32::from(classes).saturating_sub(class + 1) as usize;
        MARKS.get(from_top).copied().unwrap_or(0)
    }

    fn anomalies(&self, all: &Description, report: &Report) -> Vec<Anomaly> {
        let mut found = self.notes.clone();
        let mut note = |severity, text| found.push(Anomaly { severity, text });
        for unit in &report.units {
            let percent = percent(unit.utilisation_ppm);
            if unit.utilisation_ppm > 1_000_000 + unit.steps as u64 && !unit.name.ends_with("/*") {
                note(Severity::Fatal, format!("`{}` has {percent} of what it can do", unit.name));
            } else if unit.utilisation_ppm > 900_000 && !unit.name.ends_with("/*") {
                note(Severity::Warning, format!("`{}` is used to {percent}", unit.name));
            }
        }
        for task in &report.tasks {
            match (task.verdict, task.response, &task.reason) {
                (Verdict::DoesNotFit, Some(response), _) => {
                    let may = if task.proof == Proof::Exact { "misses" } else { "may miss" };
                    let deadline = task.deadline;
                    note(
                        Severity::Error,
                        format!("task `{}` {may} its deadline: {response} of {deadline}", task.name),
                    );
                }
                (Verdict::Unknown, _, Some(reason)) => {
                    note(
                        Severity::Warning,
                        format!("nothing can be said about task `{}`: {reason}", task.name),
                    );
                }
                _ => {}
            }
            if task.deadline > task.period {
                note(
                    Severity::None,
                    format!("releases of task `{}` may overlap: its deadline exceeds its period", task.name),
                );
            }
        }
        for (first, second) in self.ties() {
            let (first, second) = (&all.tasks[first].name, &all.tasks[second].name);
            note(
                Severity::Warning,
                format!(
                    "tasks `{first}` and `{second}` share a priority on one processor: either delays the other"
                ),
            );
        }
        found.sort_by_key(|anomaly| anomaly.severity);
        found
    }

    /// Tasks that run on one processor at one priority of their own, each with one more.
    fn ties(&self) -> Vec<(usize, usize)> {
        let mut ties = Vec::new();
        let processors = self.model.units.iter().filter(|it| matches!(it.kind, UnitKind::Processor { .. }));
        for unit in processors {
            let roots: Vec<usize> = unit
                .steps
                .iter()
                .copied()
                .filter(|&step| self.model.steps[step].predecessor.is_none())
                .collect();
            for pair in roots.windows(2) {
                let (first, second) = (&self.model.steps[pair[0]], &self.model.steps[pair[1]]);
                if let (Some(task), Some(other)) = (first.task, second.task)
                    && first.urgency == second.urgency
                    && first.urgency < INTERRUPT_URGENCY
                    && first.queue.is_none()
                {
                    ties.push((task, other));
                }
            }
        }
        ties
    }
}

/// Millionths as percent, rounded up to a tenth.
pub(crate) fn percent(ppm: u64) -> String {
    let tenths = ppm.div_ceil(1_000);
    format!("{}.{}%", tenths / 10, tenths % 10)
}

/// The marks of the classes of a link, the most urgent first: EF, CS5, AF41, AF31, AF21, AF11, and best effort.
const MARKS: [u8; 7] = [46, 40, 34, 26, 18, 10, 0];

fn operations(all: &Description) -> Vec<OperationReport> {
    let report = |operation: &Operation| OperationReport {
        name: operation.name.clone(),
        lane: operation.lane.clone(),
    };
    all.operations.iter().map(report).collect()
}
