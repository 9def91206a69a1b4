//! The longest response of one step on its unit, given the jitter of all.

use crate::description::{LanePolicy, Protocol};
use crate::model::{Model, Step, UnitKind};

/// Without bound, or not within what is computed.
pub(crate) const UNBOUNDED: u64 = u64::MAX;

/// What the analysis knows at some point: the release jitter of each step, and what stays the same.
pub(crate) struct Loads<'m> {
    pub(crate) model: &'m Model,
    /// The longest time from a task's release to a step's start being possible.
    pub(crate) jitter: Vec<u64>,
    /// The longest time for which less urgent steps keep a step waiting.
    pub(crate) blocking: Vec<u64>,
    /// Longer responses count as unbounded.
    pub(crate) horizon: u64,
}

impl<'m> Loads<'m> {
    pub(crate) fn of(model: &'m Model) -> Self {
        Loads {
            jitter: model.steps.iter().map(|step| step.jitter).collect(),
            blocking: blocking(model),
            horizon: horizon(model),
            model,
        }
    }

    /// The longest time from the task's release to the end of a step; [`UNBOUNDED`] if that
    /// is not known.
    pub(crate) fn response(&self, index: usize) -> u64 {
        let step = &self.model.steps[index];
        if self.jitter[index] > self.horizon || self.is_overloaded(index) {
            return UNBOUNDED;
        }
        let response = match step.queue {
            None if self.jitter[index] < step.period => self.in_order(index),
            // Releases may overtake each other: whatever the order, a busy period serves all.
            None => self.any_order(index),
            Some(_) => self.queued(index),
        };
        if response > self.horizon { UNBOUNDED } else { response }
    }

    /// Releases of one step in order, each in a window of its own: Lehoczky's and Tindell's windows.
    fn in_order(&self, index: usize) -> u64 {
        let step = &self.model.steps[index];
        let mut worst = 0;
        let mut window = 0u64;
        for earlier in 0..WINDOWS_MAX {
            let own = step.cost.saturating_mul(earlier + 1).saturating_add(self.blocking[index]);
            window =
                self.fixed_point(window, |window| self.others(index, window).fold(own, u64::saturating_add));
            if window == UNBOUNDED {
                return UNBOUNDED;
            }
            let since = step.period.saturating_mul(earlier);
            worst = worst.max(window.saturating_add(self.jitter[index]).saturating_sub(since));
            if window.saturating_add(self.jitter[index]) <= since.saturating_add(step.period) {
                return worst;
            }
            // The next release comes before this one ends. It may overtake this one where this one waits for a resource.
            if !step.sections.is_empty() {
                return self.any_order(index);
            }
            if worst > self.horizon {
                return UNBOUNDED;
            }
        }
        UNBOUNDED
    }

    /// The longest busy period after the jitter.
    fn any_order(&self, index: usize) -> u64 {
        self.busy_period(index).saturating_add(self.jitter[index])
    }

    fn busy_period(&self, index: usize) -> u64 {
        self.fixed_point(0, |window| {
            let own = self.load(index, window.max(1)).saturating_add(self.blocking[index]);
            self.others(index, window).fold(own, u64::saturating_add)
        })
    }

    /// A step in a queue whose upcalls do not preempt each other: within the deadline if the demand test says so,
    /// and else within a busy period.
    fn queued(&self, index: usize) -> u64 {
        let any_order = self.any_order(index);
        let deadline = self.model.steps[index].deadline;
        if any_order <= deadline || any_order == UNBOUNDED || !self.meets_deadline(index) {
            return any_order;
        }
        deadline
    }

    /// The demand test: for each span `t` from the start of a busy period to a deadline of this step, the blocking, the
    /// queue's work that goes first, and the more urgent load in the time that this takes, fit into `t`.
    fn meets_deadline(&self, index: usize) -> bool {
        let queue = Queue::of(self, index);
        let busy = self.busy_period(index);
        let mut points = 0u32;
        if !self.fits_span(index, &queue, queue.least) {
            return false;
        }
        for rival in &queue.first {
            let period = self.model.steps[rival.step].period;
            let mut at = rival.first_span(self.jitter[rival.step], period, queue.least);
            while at <= busy {
                points += 1;
                if points > POINTS_MAX || !self.fits_span(index, &queue, at) {
                    return false;
                }
                at = at.saturating_add(period);
            }
        }
        true
    }

    fn fits_span(&self, index: usize, queue: &Queue, span: u64) -> bool {
        let demand =
            queue.first.iter().fold(queue.blocker.saturating_add(self.blocking[index]), |sum, it| {
                let other = &self.model.steps[it.step];
                let reach =
                    span.saturating_add(self.jitter[it.step]).saturating_add(it.credit).checked_sub(it.key);
                let releases = reach.map_or(0, |reach| reach / other.period + 1);
                sum.saturating_add(releases.saturating_mul(other.cost))
            });
        let served = self.fixed_point(0, |window| {
            queue.urgent.iter().map(|&other| self.load(other, window)).fold(demand, u64::saturating_add)
        });
        served <= span
    }

    /// The work of each other step of the unit that is at least as urgent, in a window.
    fn others(&self, index: usize, window: u64) -> impl Iterator<Item = u64> + '_ {
        let step = &self.model.steps[index];
        self.rivals(step).filter(move |&other| other != index).map(move |other| self.load(other, window))
    }

    /// The steps of a step's unit that are at least as urgent, with itself.
    fn rivals(&self, step: &Step) -> impl Iterator<Item = usize> + '_ {
        let urgency = step.urgency;
        let steps = &self.model.units[step.unit].steps;
        steps.iter().copied().take_while(move |&other| self.model.steps[other].urgency >= urgency)
    }

    /// The work that a step brings in a half-open window.
    fn load(&self, index: usize, window: u64) -> u64 {
        let step = &self.model.steps[index];
        window.saturating_add(self.jitter[index]).div_ceil(step.period).saturating_mul(step.cost)
    }

    /// The least fixed point of a growing function, from a value that is not above it.
    fn fixed_point(&self, from: u64, next: impl Fn(u64) -> u64) -> u64 {
        let mut at = from;
        for _ in 0..ROUNDS_MAX {
            let then = next(at);
            if then <= at {
                return at;
            }
            if then > self.horizon {
                return UNBOUNDED;
            }
            at = then;
        }
        UNBOUNDED
    }

    /// Whether a step and what is at least as urgent certainly ask for more than the unit has. The margin keeps
    /// rounding from calling a fully used unit overloaded.
    fn is_overloaded(&self, index: usize) -> bool {
        let step = &self.model.steps[index];
        let part = |other: usize| self.model.steps[other].cost as f64 / self.model.steps[other].period as f64;
        self.rivals(step).map(part).sum::<f64>() > 1.0 + 1e-9
    }
}

/// A step of a queue that competes with another by deadline or laxity.
struct Rival {
    step: usize,
    /// From its release, so much later must the other's deadline be for it to go first; less the credit.
    key: u64,
    credit: u64,
}

impl Rival {
    /// The shortest span, not below `least`, at which one more release goes first.
    fn first_span(&self, jitter: u64, period: u64, least: u64) -> u64 {
        let early = jitter.saturating_add(self.credit).saturating_add(least);
        let missing = early.saturating_sub(self.key).div_ceil(period).saturating_mul(period);
        self.key.saturating_add(missing).saturating_sub(jitter.saturating_add(self.credit))
    }
}

/// What a queued step competes with.
struct Queue {
    /// Steps of the queue that compete by deadline or laxity, with the step itself.
    first: Vec<Rival>,
    /// Steps that always go first: more urgent ones, and those of higher criticality.
    urgent: Vec<usize>,
    /// The longest upcall of the queue that may have started before.
    blocker: u64,
    /// The least span: the deadline after the most jitter.
    least: u64,
}

impl Queue {
    fn of(loads: &Loads<'_>, index: usize) -> Self {
        let model = loads.model;
        let step = &model.steps[index];
        let is_muf = step.queue == Some(LanePolicy::Muf);
        let mut queue = Queue {
            first: Vec::new(),
            urgent: Vec::new(),
            blocker: 0,
            least: step.deadline.saturating_sub(loads.jitter[index]),
        };
        for other in loads.rivals(step) {
            let rival = &model.steps[other];
            if rival.lane != step.lane || rival.queue != step.queue {
                queue.urgent.push(other);
                continue;
            }
            // A later release of the step itself may have come before, and have started.
            if other != index || loads.jitter[index] >= step.period {
                queue.blocker = queue.blocker.max(rival.cost);
            }
            match is_muf {
                true if rival.criticality > step.criticality => queue.urgent.push(other),
                true if rival.criticality < step.criticality => {}
                // Laxities are compared: deadlines less runs. Each run stands on its own side, lest one be negative.
                true => queue.first.push(Rival {
                    step: other,
                    key: rival.deadline.saturating_add(step.wcet),
                    credit: rival.wcet,
                }),
                false => queue.first.push(Rival { step: other, key: rival.deadline, credit: 0 }),
            }
        }
        queue
    }
}

/// How long less urgent steps, and the kernel, keep each step waiting, once a busy period.
///
/// On a processor: the kernel's longest section, a switch, the longest less urgent section of each resource with
/// inheritance that this step or a more urgent one uses, and the longest of all resources with ceilings. On a link: the
/// longest less urgent frame.
pub(crate) fn blocking(model: &Model) -> Vec<u64> {
    let mut blocking = vec![0; model.steps.len()];
    for (number, unit) in model.units.iter().enumerate() {
        let sections = sections_of_unit(model, number);
        for &index in &unit.steps {
            let step = &model.steps[index];
            blocking[index] = match unit.kind {
                UnitKind::Processor { non_preemptible, switch } => non_preemptible
                    .saturating_add(switch)
                    .saturating_add(held_by_less_urgent(model, step, &sections, switch)),
                UnitKind::Link => unit
                    .steps
                    .iter()
                    .map(|&other| &model.steps[other])
                    .filter(|other| other.urgency < step.urgency)
                    .map(|other| other.frame)
                    .max()
                    .unwrap_or(0),
                UnitKind::Floating => 0,
            };
        }
    }
    blocking
}

/// A section: the urgency of its step, the resource, the longest time.
type UnitSection = (u32, usize, u64);

fn sections_of_unit(model: &Model, unit: usize) -> Vec<UnitSection> {
    let steps = model.units[unit].steps.iter().map(|&index| &model.steps[index]);
    let sections = steps.flat_map(|step| {
        step.sections.iter().map(|held| (step.urgency, held.resource, held.wcet)).collect::<Vec<_>>()
    });
    sections.collect()
}

fn held_by_less_urgent(model: &Model, step: &Step, sections: &[UnitSection], switch: u64) -> u64 {
    let mut inherited = std::collections::BTreeMap::<usize, u64>::new();
    let mut ceiling = 0;
    for &(urgency, resource, wcet) in sections {
        if urgency >= step.urgency || model.resources[resource].ceiling < step.urgency {
            continue;
        }
        match model.resources[resource].protocol {
            Protocol::Ceiling => ceiling = ceiling.max(wcet),
            Protocol::Inheritance => {
                let longest = inherited.entry(resource).or_default();
                *longest = wcet.max(*longest);
            }
        }
    }
    inherited
        .values()
        .map(|longest| longest.saturating_add(switch.saturating_mul(2)))
        .fold(ceiling, u64::saturating_add)
}

/// The longest response that is computed: far beyond all deadlines and periods.
fn horizon(model: &Model) -> u64 {
    let longest =
        model.steps.iter().filter(|step| step.task.is_some()).map(|step| step.deadline.max(step.period));
    longest.max().unwrap_or(0).saturating_mul(HORIZON_FACTOR).min(UNBOUNDED - 1)
}

/// Responses are computed up to so many times the longest deadline or period.
const HORIZON_FACTOR: u64 = 32;

/// The most releases of one step in a busy period.
const WINDOWS_MAX: u64 = 100_000;

/// The most rounds of a fixed point.
const ROUNDS_MAX: u32 = 1_000_000;

/// The most spans that a demand test looks at.
const POINTS_MAX: u32 = 100_000;
