//! Two scenarios, run with the same seeds.

use super::{Experiment, Interval, RunOrder, experiment};
use crate::Observations;
use crate::scenario::{Replications, Scenario};

/// Two experiments whose runs belong together, seed by seed.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The first one.
    pub before: Experiment,
    /// The second one.
    pub after: Experiment,
    /// What both have, in the order of the first.
    pub differences: Vec<Difference>,
    /// What only one of them has, or no two runs with the same seed have seen: a line for each.
    pub left_out: Vec<String>,
}

/// How much a figure differs: the second less the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Of which class or resource.
    pub of: String,
    /// Which figure: `response s`, `throughput /s`, `p99 s`, `utilisation`, `octets /s`.
    pub figure: &'static str,
    /// The first one's.
    pub before: Interval,
    /// The second one's.
    pub after: Interval,
    /// The mean of the differences of runs with the same seed.
    pub difference: Interval,
}

impl Difference {
    /// Whether the interval of the difference leaves out zero.
    pub fn is_clear(&self) -> bool {
        let (low, high) = self.difference.ends();
        low > 0.0 || high < 0.0
    }
}

/// Runs both scenarios equally often, with the seeds of the first: as often as either asks for.
///
/// # Errors
/// That of the first run that fails.
pub fn compare<E>(
    (before, mut run_before): (&Scenario, impl FnMut(RunOrder) -> Result<Observations, E>),
    (after, mut run_after): (&Scenario, impl FnMut(RunOrder) -> Result<Observations, E>),
) -> Result<Comparison, E> {
    let after = Scenario { seed: before.seed, ..after.clone() };
    let first = experiment(before, &mut run_before)?;
    let second = experiment(&after, &mut run_after)?;
    let count = first.runs.len().max(second.runs.len()) as u32;
    let exactly = |scenario: &Scenario| {
        let replications = Replications { min: count, max: count, ..scenario.replications };
        Scenario { replications, ..scenario.clone() }
    };
    let is_short = |experiment: &Experiment| (experiment.runs.len() as u32) < count;
    let before = if is_short(&first) { experiment(&exactly(before), run_before)? } else { first };
    let after = if is_short(&second) { experiment(&exactly(&after), run_after)? } else { second };
    let (differences, left_out) = differences(&before, &after);
    Ok(Comparison { before, after, differences, left_out })
}

fn differences(before: &Experiment, after: &Experiment) -> (Vec<Difference>, Vec<String>) {
    let mut all = Vec::new();
    let mut left_out = in_one_only(before, after);
    let mut add = |of: &str, figure: &'static str, values: [Vec<Option<f64>>; 2]| {
        // Of the runs with a seed both have seen it, or neither counts.
        let [first, second] = values;
        let both = first.into_iter().zip(second).filter_map(|(first, second)| first.zip(second));
        let (first, second): (Vec<f64>, Vec<f64>) = both.unzip();
        if first.is_empty() {
            let figure = figure.split(' ').next().unwrap_or_default();
            left_out.push(format!("the {figure} of {of}, which no two runs with the same seed have seen"));
            return;
        }
        let confidence = before.confidence;
        let pairs: Vec<f64> = first.iter().zip(&second).map(|(first, second)| second - first).collect();
        all.push(Difference {
            of: of.to_owned(),
            figure,
            before: Interval::of(&first, confidence),
            after: Interval::of(&second, confidence),
            difference: Interval::of(&pairs, confidence),
        });
    };
    type Figure = fn(&crate::ClassObservations, f64) -> Option<f64>;
    let figures: [(&'static str, Figure); 3] = [
        ("response s", |seen, _| {
            (seen.completed > 0).then(|| seen.response_ns as f64 / seen.completed as f64 / 1e9)
        }),
        ("p99 s", |seen, _| (seen.completed > 0).then(|| seen.response.value_at_quantile(0.99) as f64 / 1e9)),
        ("throughput /s", |seen, span| Some(seen.completed as f64 / span)),
    ];
    for name in in_both(classes(before), &classes(after)) {
        for (figure, of) in figures {
            let values = [before, after].map(|experiment| {
                let class = |run: &Observations| {
                    let seen = run.classes.iter().find(|class| class.name == name)?;
                    of(seen, run.span.as_secs_f64())
                };
                experiment.runs.iter().map(class).collect()
            });
            add(name, figure, values);
        }
    }
    for name in in_both(resources(before), &resources(after)) {
        let values = [before, after].map(|experiment| {
            let used = |run: &Observations| {
                run.resources.iter().find(|resource| resource.name == name).map(|it| it.utilisation)
            };
            experiment.runs.iter().map(used).collect()
        });
        add(name, "utilisation", values);
    }
    let octets = [before, after].map(|experiment| {
        let span = |run: &Observations| (run.span + experiment.warm_up).as_secs_f64();
        experiment.runs.iter().map(|run| Some(run.octets as f64 / span(run))).collect()
    });
    add("all links", "octets /s", octets);
    (all, left_out)
}

fn classes(experiment: &Experiment) -> Vec<&str> {
    let classes = experiment.runs.first().map_or(&[][..], |run| &run.classes);
    classes.iter().map(|class| class.name.as_str()).collect()
}

fn resources(experiment: &Experiment) -> Vec<&str> {
    super::resources(experiment).map(|resource| resource.name.as_str()).collect()
}

fn in_both<'e>(mut names: Vec<&'e str>, others: &[&str]) -> Vec<&'e str> {
    names.retain(|name| others.contains(name));
    names
}

/// Classes and resources of one experiment whose names the other does not have.
fn in_one_only(before: &Experiment, after: &Experiment) -> Vec<String> {
    let mut lines = Vec::new();
    for (one, other) in [(before, after), (after, before)] {
        let kinds = [("class", classes(one), classes(other)), ("resource", resources(one), resources(other))];
        for (kind, names, others) in kinds {
            let only: Vec<&str> = names.into_iter().filter(|name| !others.contains(name)).collect();
            let listed = only.iter().take(LISTED_MAX).map(|name| format!("`{name}`"));
            let listed = listed.collect::<Vec<_>>().join(", ");
            let scenario = &one.scenario;
            match only.len() {
                0 => {}
                count @ ..=LISTED_MAX => {
                    let kind = if count == 1 { kind.to_owned() } else { plural(kind) };
                    lines.push(format!("the {kind} {listed}, which only {scenario} has"));
                }
                count => {
                    lines.push(format!("{count} {} that only {scenario} has, as {listed}", plural(kind)))
                }
            }
        }
    }
    lines
}

fn plural(kind: &str) -> String {
    if kind == "class" { "classes".to_owned() } else { format!("{kind}s") }
}

/// The most names that a line lists.
const LISTED_MAX: usize = 5;
