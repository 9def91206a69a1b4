//! `ironorb sim plan`: what a target takes, and what breaks first.

use std::cell::Cell;
use std::fmt::Write as _;

use clap::Args;
use ironorb_model::Observations;
use ironorb_model::analysis::plan::{
    self, Change, Growth, Limits, Outcome, Plan, SearchError, Target, Tried, Verdict, growth, search,
};
use ironorb_model::queueing::{self, QueueingError};
use ironorb_model::report::{self, RunOrder};
use ironorb_model::scenario::Scenario;
use serde_json::json;

use super::bounds::{finite, rate};
use super::progress::Progress;
use super::{OneScenario, text_of};
use crate::failure::Failure;
use crate::output;

/// Say which of the changes that a scenario file allows a target takes at least, and what breaks first when load grows.
///
/// All combinations are looked at, the cheapest first. What bounds exclude is not simulated; the others are, at level L0, until one
/// keeps all targets. Then the load grows. Exit code 1 if no combination keeps them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ironorb sim plan registry.toml --target 'p99 <= 5 ms'\n  \
    ironorb sim plan registry.toml --target 'p99 of browse <= 5 ms' --target 'octets <= 1 MB/s' --all\n\n\
    Targets: `p50`, `p99.9` and so on, `mean`, `p99 staleness` with a time; `throughput >= 1000 /s`; `octets <= 1 MB/s`;\n\
    `utilisation <= 70 %`; `failed <= 1 %`; each for all classes, or `of` one class or resource.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    scenario: OneScenario,
    /// What is to be kept, beside the targets of the file.
    #[arg(long, value_name = "TARGET")]
    target: Vec<Target>,
    /// The most combinations to simulate.
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().simulations_max)]
    simulations: usize,
    /// Simulate each combination so often, with seeds that follow on each other, instead of until its means are known.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    replications: Option<u32>,
    /// Do not let the load grow.
    #[arg(long)]
    no_growth: bool,
    /// List all combinations that were looked at, not only the last ones.
    #[arg(long)]
    all: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (scenario, _) = arguments.scenario.read()?;
    let text = text_of(&arguments.scenario.file)?;
    let file = arguments.scenario.file.display();
    let mut plan = plan::read(&text, &scenario).map_err(|problems| {
        let lines: String = problems.iter().map(|it| format!("{file}:{it}\n")).collect();
        Failure::usage(format!("the [plan] of {file} has mistakes")).with_body(lines)
    })?;
    plan.targets.extend(arguments.target.iter().cloned());
    if plan.targets.is_empty() {
        return Err(Failure::usage("there is no target")
            .with_help("add `--target 'p99 <= 5 ms'`, or `targets = [...]` under `[plan]`"));
    }
    let (progress, simulated) = (Progress::begin(), Cell::new(0));
    let simulate = |scenario: &Scenario| {
        simulated.set(simulated.get() + 1);
        let part = format!("simulation {}, ", simulated.get());
        simulate(scenario, arguments.replications, |scenario, order| {
            progress.begin_run(&part, scenario, order);
        })
    };
    let limits = Limits { simulations_max: arguments.simulations, ..Limits::default() };
    let outcome = search(&scenario, &plan.changes, &plan.targets, limits, simulate).map_err(failure)?;
    let best = outcome.best(&scenario, &plan.changes).filter(|_| !arguments.no_growth);
    // A load under which calls pile up or wait for each other for ever is no failure: it keeps no target.
    let loaded = |scenario: &Scenario| match simulate(scenario) {
        Err(QueueingError::Unstable { .. } | QueueingError::Halt(_)) => Ok(Vec::new()),
        other => other,
    };
    let grown = best.map(|best| growth(&best, &plan.targets, loaded)).transpose();
    drop(progress);
    // What was found is told whatever becomes of more load.
    let growth = grown.as_ref().ok().and_then(Option::as_ref);
    let report = Report { name: &scenario.name, plan: &plan, outcome: &outcome, growth };
    match arguments.json {
        true => output::line(report.to_json())?,
        false => output::text(report.to_text(arguments.all))?,
    }
    match outcome.found {
        true => grown.map(drop).map_err(|error| {
            failure(error).with_help("`--no-growth` leaves out what more load does, which failed")
        }),
        false if outcome.is_cut_short => {
            Err(Failure::new(format!("no answer after {} simulations", arguments.simulations))
                .with_help("raise `--simulations`, or allow fewer changes"))
        }
        false => Err(Failure::new("no combination keeps the targets")
            .with_help("allow more under `[[plan.changes]]`; the verdicts say what is missing")),
    }
}

fn failure(error: SearchError<QueueingError>) -> Failure {
    match error {
        SearchError::TooMany(_) | SearchError::Recursion(_) | SearchError::Target(_) => {
            Failure::new(error).of_usage()
        }
        SearchError::Simulation(_) => Failure::new(error),
    }
}

/// Runs of a scenario at level L0.
fn simulate(
    scenario: &Scenario,
    replications: Option<u32>,
    begins: impl Fn(&Scenario, RunOrder),
) -> Result<Vec<Observations>, QueueingError> {
    let mut scenario = scenario.clone();
    if let Some(count) = replications {
        (scenario.replications.min, scenario.replications.max) = (count, count);
    }
    let experiment = report::experiment(&scenario, |order| {
        begins(&scenario, order);
        queueing::run(&scenario, order.seed, order.warm_up)
    });
    experiment.map(|experiment| experiment.runs)
}

struct Report<'a> {
    name: &'a str,
    plan: &'a Plan,
    outcome: &'a Outcome,
    growth: Option<&'a Growth>,
}

impl Report<'_> {
    fn to_text(&self, all: bool) -> String {
        let tried = &self.outcome.tried;
        let is_simulated = |it: &&Tried| !matches!(it.verdict, Verdict::Excluded(_));
        let simulated = tried.iter().filter(is_simulated).count();
        let mut text = format!(
            "{} (level {}): {} combinations; {} excluded by bounds, {simulated} simulated\n",
            self.name,
            queueing::LEVEL,
            self.outcome.combinations,
            tried.len() - simulated
        );
        let listed = if all { tried.len() } else { LISTED_MAX.min(tried.len()) };
        if listed < tried.len() {
            let _ = writeln!(text, "  … {} cheaper ones; `--all` lists them", tried.len() - listed);
        }
        for it in &tried[tried.len() - listed..] {
            let _ = writeln!(text, "  cost {}: {}\n    {}", rate(it.cost), self.values(it), self.verdict(it));
        }
        if let Some(last) = tried.last().filter(|_| self.outcome.found) {
            let _ = writeln!(text, "\nthe cheapest that keeps the targets, for {}:", rate(last.cost));
            if last.choices.is_empty() {
                text.push_str("  as it is\n");
            }
            for (change, choice) in self.plan.changes.iter().zip(&last.choices) {
                let _ = writeln!(text, "  {} = {}", change.name, change.choices[*choice].label);
            }
        }
        if let Some(growth) = self.growth {
            self.add_growth(growth, &mut text);
        }
        text
    }

    fn values(&self, tried: &Tried) -> String {
        let value = |(change, choice): (&Change, &usize)| {
            format!("{} = {}", change.name, change.choices[*choice].label)
        };
        let values: Vec<String> = self.plan.changes.iter().zip(&tried.choices).map(value).collect();
        if values.is_empty() { "as it is".to_owned() } else { values.join(", ") }
    }

    fn verdict(&self, tried: &Tried) -> String {
        match &tried.verdict {
            Verdict::Excluded(why) => format!("excluded: {why}"),
            Verdict::Stopped(why) => format!("not kept: {why}"),
            Verdict::Simulated(values) => {
                let value = |(target, (value, is_kept)): (&Target, &(Option<f64>, bool))| {
                    let value = value.map_or("none ended".to_owned(), |value| target.in_words(value));
                    format!("{target}: {value}{}", if *is_kept { "" } else { ", not kept" })
                };
                self.plan.targets.iter().zip(values).map(value).collect::<Vec<_>>().join("; ")
            }
        }
    }

    fn add_growth(&self, growth: &Growth, text: &mut String) {
        let _ = writeln!(text, "\nwhen the load grows:");
        for saturation in growth.by_bounds.iter().take(3) {
            let _ = writeln!(
                text,
                "  {} is full at {} x, by its demands",
                saturation.resource,
                rate(saturation.factor)
            );
        }
        if let Some(seen) = &growth.simulated {
            let word = if growth.is_confirmed() { "confirms" } else { "does not confirm" };
            let part = |(name, part): &(String, f64)| format!("{name} {:.1} %", part * 100.0);
            let busiest: Vec<String> = seen.busiest.iter().take(3).map(part).collect();
            let _ = writeln!(
                text,
                "  simulation {word} the first; busy at {} x: {}",
                rate(seen.factor),
                busiest.join(", ")
            );
        }
        let (kept, broken) = growth.kept_up_to;
        match broken {
            Some(broken) => {
                let _ = writeln!(
                    text,
                    "  the targets are kept at {} x, and not at {} x",
                    rate(kept),
                    rate(broken)
                );
            }
            None => {
                let _ =
                    writeln!(text, "  the targets are kept at {} x, the most that was looked at", rate(kept));
            }
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let tried = |it: &Tried| {
            let choice = |(change, choice): (&Change, &usize)| {
                (change.name.clone(), json!(change.choices[*choice].label))
            };
            let choices: serde_json::Map<_, _> =
                self.plan.changes.iter().zip(&it.choices).map(choice).collect();
            match &it.verdict {
                Verdict::Excluded(why) => json!({ "cost": it.cost, "choices": choices, "excluded": why }),
                Verdict::Stopped(why) => json!({ "cost": it.cost, "choices": choices, "stopped": why }),
                Verdict::Simulated(values) => {
                    let value = |(target, (value, is_kept)): (&Target, &(Option<f64>, bool))| json!({ "target": target.to_string(), "value": value, "kept": is_kept });
                    let values: Vec<_> = self.plan.targets.iter().zip(values).map(value).collect();
                    json!({ "cost": it.cost, "choices": choices, "simulated": values })
                }
            }
        };
        let growth = self.growth.map(|growth| {
            let full: Vec<_> = growth
                .by_bounds
                .iter()
                .map(|it| json!({ "resource": it.resource, "load": finite(it.factor) }))
                .collect();
            let simulated = growth.simulated.as_ref().map(|seen| {
                let busy = |(name, part): &(String, f64)| json!({ "resource": name, "utilisation": part });
                json!({ "load": seen.factor, "busiest": seen.busiest.iter().map(busy).collect::<Vec<_>>() })
            });
            json!({
                "full_by_demands": full,
                "simulated": simulated,
                "confirmed": growth.is_confirmed(),
                "kept_at_load": growth.kept_up_to.0,
                "broken_at_load": growth.kept_up_to.1,
            })
        });
        json!({
            "scenario": self.name,
            "level": queueing::LEVEL,
            "combinations": self.outcome.combinations,
            "found": self.outcome.found,
            "tried": self.outcome.tried.iter().map(tried).collect::<Vec<_>>(),
            "growth": growth,
        })
    }
}

/// Combinations that are listed without being asked for.
const LISTED_MAX: usize = 5;
