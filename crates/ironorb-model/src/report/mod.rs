//! Experiments: a scenario run again and again until its means are known, two scenarios compared, and both as text, JSON, CSV
//! and a page.
//!
//! - **Replications.** Each has a seed of its own, and its mean is one number. The interval of the mean of these numbers is
//!   Student's. After [`Replications::min`](crate::scenario::Replications) of them an experiment ends as soon as the half-width of each class's response time is at
//!   most the share that is asked for, or at [`Replications::max`](crate::scenario::Replications).
//! - **Warm-up.** A fixed time, or found by the marginal standard error rule on batches of five (MSER-5): a pilot run with the
//!   first seed gives the response times of each class in their order; of these, as many are left out as make the
//!   standard error of the rest least; the longest time of all classes is the warm-up of all runs. If the rule would leave out
//!   more than half of a class's, the run is too short to tell. Then half of it is the warm-up, and the report says so.
//! - **Comparison.** Two scenarios run with the same seeds. What is random is drawn by class, client and cycle, so both have
//!   the same arrivals and demands as far as they are alike, and their difference is known better than either.
//!
//! Every output names the level, the seeds, the commit and the digest of all runs.

mod compare;
mod csv;
mod html;
mod json;
mod statistics;
mod text;

use std::time::Duration;

use crate::scenario::{Arrivals, Scenario, WarmUp};
use crate::{ClassObservations, Digest, Observations, ResourceObservations, SeenTimes};

pub use compare::{Comparison, Difference, compare};
pub use csv::{comparison_csv, experiments_csv};
pub use html::{comparison_html, experiments_html};
pub use json::{comparison_json, experiments_json};
pub use statistics::{Interval, student_quantile};
pub use text::{comparison_text, experiments_text};

/// Where results come from: every output says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The level of simulation, as `L0`.
    pub level: String,
    /// The commit of the simulator.
    pub commit: String,
}

/// All runs of one scenario.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The scenario's name.
    pub scenario: String,
    /// The seed of the first run; each has the next one.
    pub seed: u64,
    /// What was left out at the beginning of each run.
    pub warm_up: Duration,
    /// What the rule could not tell.
    pub warm_up_note: Option<String>,
    /// Traces of which a part is behind the end of the runs.
    pub cut_traces: Vec<String>,
    /// The level of confidence of all intervals.
    pub confidence: f64,
    /// Whether the means are known as well as was asked for.
    pub is_precise: bool,
    /// The runs, in the order of their seeds.
    pub runs: Vec<Observations>,
    /// The digest of all runs.
    pub digest: Digest,
}

/// A run to be done: a seed, and what is left out at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOrder {
    /// The seed.
    pub seed: u64,
    /// What is not observed.
    pub warm_up: Duration,
}

/// Runs a scenario as often as it asks for. `run` does one run, at any level.
///
/// # Errors
/// That of the first run that fails.
pub fn experiment<E>(
    scenario: &Scenario,
    mut run: impl FnMut(RunOrder) -> Result<Observations, E>,
) -> Result<Experiment, E> {
    let seed = scenario.seed;
    let (warm_up, warm_up_note) = match scenario.warm_up {
        WarmUp::Fixed(warm_up) => (warm_up, None),
        WarmUp::Found => found_warm_up(scenario, &run(RunOrder { seed, warm_up: Duration::ZERO })?),
    };
    let order = scenario.replications;
    let mut experiment = Experiment {
        scenario: scenario.name.clone(),
        seed,
        warm_up,
        warm_up_note,
        cut_traces: cut_traces(scenario, warm_up + scenario.span),
        confidence: order.confidence,
        is_precise: false,
        runs: Vec::new(),
        digest: Digest::default(),
    };
    for number in 0..order.max.max(1) {
        let seen = run(RunOrder { seed: seed + u64::from(number), warm_up })?;
        experiment.digest.take(seen.digest.value());
        experiment.runs.push(seen);
        let is_known = (0..scenario.classes.len())
            .all(|class| experiment.response(class).half_width_share() <= order.half_width);
        // Of what never ends more runs would not tell more either.
        experiment.is_precise = is_known && experiment.without_cycles().next().is_none();
        if number + 1 >= order.min && is_known {
            break;
        }
    }
    Ok(experiment)
}

fn found_warm_up(scenario: &Scenario, pilot: &Observations) -> (Duration, Option<String>) {
    let mut warm_up = Duration::ZERO;
    let mut unknown = Vec::new();
    for class in &pilot.classes {
        match class.series.truncation_ns() {
            Some(ns) => warm_up = warm_up.max(Duration::from_nanos(ns)),
            None => unknown.push(class.name.as_str()),
        }
    }
    if unknown.is_empty() {
        return (warm_up, None);
    }
    let note = format!(
        "the warm-up is half of the span: a run is too short to tell when {} has warmed up",
        unknown.join(", ")
    );
    (warm_up.max(scenario.span / 2), Some(note))
}

/// Times at which nothing begins, since they are behind the end.
fn cut_traces(scenario: &Scenario, end: Duration) -> Vec<String> {
    let cut = scenario.classes.iter().filter_map(|class| {
        let Arrivals::Trace(times) = &class.arrivals else { return None };
        let behind = times.iter().filter(|time| **time > end).count();
        (behind > 0).then(|| {
            format!(
                "{behind} of {} cycles of {} do not begin: runs end at {}, warm-up included, and its `trace` at {}; raise `span` for all",
                times.len(),
                class.name,
                shown_time(end.as_secs_f64()),
                shown_time(times.last().unwrap_or(&end).as_secs_f64())
            )
        })
    });
    cut.collect()
}

impl Experiment {
    /// The mean response time of a class's cycles, in seconds.
    pub fn response(&self, class: usize) -> Interval {
        self.interval(|run| {
            let seen = &run.classes[class];
            (seen.completed > 0).then(|| seen.response_ns as f64 / seen.completed as f64 / 1e9)
        })
    }

    /// The classes of which no cycle has ended in any run.
    pub fn without_cycles(&self) -> impl Iterator<Item = &str> {
        let classes = self.runs.first().into_iter().flat_map(|run| &run.classes).enumerate();
        classes
            .filter(|(class, _)| self.runs.iter().all(|run| run.classes[*class].completed == 0))
            .map(|(_, class)| class.name.as_str())
    }

    /// What a reader must know before all figures.
    fn notes(&self) -> Vec<String> {
        let without: Vec<&str> = self.without_cycles().collect();
        let mut notes: Vec<String> = self.warm_up_note.iter().chain(&self.cut_traces).cloned().collect();
        if !without.is_empty() {
            notes.push(format!(
                "no cycle of {} ended well while it was observed: raise `span`, or `min` if they are rare, or look in `failed` and in \
                 the queues for what keeps them",
                without.join(", ")
            ));
        } else if !self.is_precise {
            notes.push(
                "the means are not known as well as `half_width` asks for: raise `max` or `span`".to_owned(),
            );
        }
        let classes = self.runs.first().map_or(0, |run| run.classes.len());
        notes.extend((0..classes).filter_map(|class| self.note_of_overdue(class)));
        notes
    }

    /// That more than one of a hundred cycles had not ended and were older than any that did: figures of those that end say nothing of
    /// them.
    fn note_of_overdue(&self, class: usize) -> Option<String> {
        let seen = || self.runs.iter().map(|run| &run.classes[class]);
        let each: Vec<SeenTimes> = seen().map(ClassObservations::overdue).collect();
        let overdue: SeenTimes = each.iter().collect();
        let ended: u64 = seen().map(|seen| seen.completed + seen.failed).sum();
        (overdue.len() * OVERDUE_PART > ended + overdue.len()).then(|| {
            format!(
                "{} cycles of {} had not ended at the end, beside {ended} that did; they were older than any of these, the oldest {}: look \
                 in the queues for what keeps them",
                overdue.len(),
                self.runs[0].classes[class].name,
                shown_time(overdue.max() as f64 / 1e9)
            )
        })
    }

    /// Cycles of a class that ended in a second.
    pub fn throughput(&self, class: usize) -> Interval {
        self.interval(|run| Some(run.classes[class].completed as f64 / run.span.as_secs_f64()))
    }

    /// Cycles of a class that failed in a second.
    pub fn failed(&self, class: usize) -> Interval {
        self.interval(|run| Some(run.classes[class].failed as f64 / run.span.as_secs_f64()))
    }

    /// Cycles of a class that had not ended at the end of a run.
    pub fn unfinished(&self, class: usize) -> Interval {
        self.interval(|run| Some(run.classes[class].unfinished.len() as f64))
    }

    /// The share of a class's reads that a cache answered; of no run if there were none.
    pub fn hits(&self, class: usize) -> Interval {
        self.interval(|run| {
            let seen = &run.classes[class];
            let reads = seen.cache_hits + seen.cache_misses;
            (reads > 0).then(|| seen.cache_hits as f64 / reads as f64)
        })
    }

    /// Questions of a class's caches in a second: by messages of their own, and with calls. Of no run if its caches ask nothing.
    pub fn probes(&self, class: usize) -> [Interval; 2] {
        let of = |count: fn(&ClassObservations) -> u64| {
            self.interval(|run| {
                let seen = &run.classes[class];
                let asks = seen.cache_probes + seen.cache_probes_carried > 0;
                asks.then(|| count(seen) as f64 / run.span.as_secs_f64())
            })
        };
        [of(|seen| seen.cache_probes), of(|seen| seen.cache_probes_carried)]
    }

    /// A figure of a resource, by its name: its use, its queue, its octets.
    pub fn of_resource(&self, name: &str, figure: impl Fn(&ResourceObservations) -> f64) -> Interval {
        self.interval(|run| run.resources.iter().find(|it| it.name == name).map(&figure))
    }

    /// Response times of a class in all runs.
    pub fn all_responses(&self, class: usize) -> SeenTimes {
        self.runs.iter().map(|run| &run.classes[class].response).collect()
    }

    /// How long ago cycles of a class began that had not ended at the end of a run, of all runs.
    pub fn all_unfinished(&self, class: usize) -> SeenTimes {
        self.runs.iter().map(|run| &run.classes[class].unfinished).collect()
    }

    /// How old was what caches answered a class in all runs.
    pub fn all_staleness(&self, class: usize) -> SeenTimes {
        self.runs.iter().map(|run| &run.classes[class].staleness).collect()
    }

    /// Octets of messages in a second, over all links, warm-up included.
    pub fn octets_per_second(&self) -> Interval {
        self.interval(|run| Some(run.octets as f64 / (run.span + self.warm_up).as_secs_f64()))
    }

    /// Events of all runs.
    pub fn events(&self) -> u64 {
        self.runs.iter().map(|run| run.events).sum()
    }

    fn interval(&self, of: impl Fn(&Observations) -> Option<f64>) -> Interval {
        let values: Vec<f64> = self.runs.iter().filter_map(of).collect();
        Interval::of(&values, self.confidence)
    }
}

/// One of so many cycles may be overdue without a word.
const OVERDUE_PART: u64 = 100;

/// The percentiles that reports show.
const PERCENTILES: [(f64, &str); 5] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (1.0, "max")];

/// A name for each resource of an experiment, in its order.
fn resources(experiment: &Experiment) -> impl Iterator<Item = &ResourceObservations> {
    experiment.runs.first().into_iter().flat_map(|run| &run.resources)
}

/// A time in seconds with a unit and four digits.
fn shown_time(seconds: f64) -> String {
    let (number, unit) = match seconds.abs() {
        s if s >= 1.0 => (seconds, "s"),
        s if s >= 1e-3 => (seconds * 1e3, "ms"),
        s if s >= 1e-6 || s == 0.0 => (seconds * 1e6, "us"),
        _ => (seconds * 1e9, "ns"),
    };
    format!("{} {unit}", shown(number))
}

/// A number with four digits, or all those before the point.
fn shown(number: f64) -> String {
    let decimals = match number.abs() {
        n if n >= 1_000.0 => 0,
        n if n >= 100.0 => 1,
        n if n >= 10.0 => 2,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

fn shown_share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
