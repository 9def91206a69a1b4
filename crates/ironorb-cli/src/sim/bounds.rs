//! `ironorb sim bounds`: what can be said of a scenario without simulating it.

use std::fmt::Write as _;

use clap::Args;
use ironorb_model::analysis::Solution;
use ironorb_model::analysis::bounds::{ClassBounds, Saturation, bounds, saturations};
use ironorb_model::analysis::demands::{Demands, demands};
use ironorb_model::analysis::fork_join::Bounds;
use ironorb_model::analysis::mva;
use ironorb_model::analysis::plan::Seconds;
use serde_json::json;

use super::OneScenario;
use crate::failure::Failure;
use crate::output;

/// Say what no deployment of a scenario can pass, which resource is full first, and what mean value analysis expects.
///
/// Nothing is simulated. The bounds are proven; the expectation is right as far as the scenario has a product form, and what has
/// none is listed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ironorb sim bounds examples/scenarios/par-04.toml")]
pub(crate) struct Arguments {
    #[command(flatten)]
    scenario: OneScenario,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (scenario, _) = arguments.scenario.read()?;
    let demands = demands(&scenario).map_err(|e| Failure::new(e).of_usage())?;
    let report = Report {
        name: &scenario.name,
        classes: bounds(&demands),
        saturations: saturations(&demands),
        expected: mva::solve(&demands.network()),
        forked: forked(&demands),
        demands: &demands,
    };
    match arguments.json {
        true => output::line(report.to_json()),
        false => output::text(report.to_text()),
    }
}

/// Jobs a second, and the mean of a job in seconds, where all cycles are jobs whose parts run at once.
fn forked(demands: &Demands) -> Option<(f64, f64)> {
    let jobs = demands.fork_and_join()?;
    let response: f64 = jobs.iter().map(|(weight, job)| weight * job.estimate().1).sum();
    let (customers, think) = jobs.first().map(|(_, job)| (f64::from(job.customers), job.think))?;
    Some((customers / (think + response), response))
}

struct Report<'a> {
    name: &'a str,
    classes: Vec<ClassBounds>,
    saturations: Vec<Saturation>,
    expected: Solution,
    forked: Option<(f64, f64)>,
    demands: &'a Demands,
}

impl Report<'_> {
    fn to_text(&self) -> String {
        let as_if = if self.demands.deviations.is_empty() { "" } else { ", as if all had product form" };
        let method = self.expected.method.name();
        let mut text = format!("{}: bounds, and mean values by {method}{as_if}\n", self.name);
        for (index, class) in self.classes.iter().enumerate() {
            let (throughput, response) = self.expected(index);
            let _ = writeln!(text, "\nclass {}", class.name);
            let _ = writeln!(
                text,
                "  cycles/s      {}, expected {}; limited by {}",
                between(class.throughput, rate),
                rate(throughput),
                class.limited_by
            );
            let _ = writeln!(
                text,
                "  mean          {}, expected {}",
                between(class.response, |seconds| Seconds(seconds).to_string()),
                Seconds(response)
            );
            let of = &self.demands.classes[index];
            let _ = writeln!(text, "  percentiles   {} at least", Seconds(class.least));
            let _ = writeln!(
                text,
                "  a cycle       {:.2} calls, {:.2} messages, {:.0} octets, on connections in use",
                of.calls, of.messages, of.octets
            );
        }
        let _ = writeln!(text, "\nfull when the load of all classes is so many times that of the scenario:");
        for saturation in &self.saturations {
            let _ = writeln!(text, "  {:>10} x  {}", rate(saturation.factor), saturation.resource);
        }
        if !self.demands.deviations.is_empty() {
            let _ = writeln!(text, "\nwhat the expectation leaves out, but for its bounds, which hold:");
            for deviation in &self.demands.deviations {
                let _ = writeln!(text, "  {deviation}");
            }
        }
        text
    }

    /// Cycles a second and their mean response time. Mean value analysis knows neither threads nor locks; where it expects what they
    /// exclude, the bound itself is the best that is known.
    fn expected(&self, class: usize) -> (f64, f64) {
        let solved = &self.expected.chains[class];
        let (throughput, response) = self.forked.unwrap_or((solved.throughput, solved.response));
        let within = |value: f64, Bounds { lower, upper }: Bounds| value.max(lower).min(upper.max(lower));
        let of = &self.classes[class];
        (within(throughput, of.throughput), within(response, of.response))
    }

    fn to_json(&self) -> serde_json::Value {
        let class = |(index, class): (usize, &ClassBounds)| {
            let (throughput, response) = self.expected(index);
            let of = &self.demands.classes[index];
            json!({
                "name": class.name,
                "throughput_per_s": {
                    "lower": class.throughput.lower, "upper": finite(class.throughput.upper), "expected": finite(throughput),
                },
                "mean_s": {
                    "lower": class.response.lower, "upper": finite(class.response.upper), "expected": finite(response),
                },
                "percentiles_s_at_least": class.least,
                "limited_by": class.limited_by,
                "calls": of.calls, "messages": of.messages, "octets": of.octets,
            })
        };
        let saturation = |it: &Saturation| json!({ "resource": it.resource, "load": it.factor });
        json!({
            "scenario": self.name,
            "method": self.expected.method.name(),
            "classes": self.classes.iter().enumerate().map(class).collect::<Vec<_>>(),
            "saturations": self.saturations.iter().map(saturation).collect::<Vec<_>>(),
            "left_out": self.demands.deviations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

/// Bounds in words, without those that say nothing.
fn between(bounds: Bounds, shown: impl Fn(f64) -> String) -> String {
    let Bounds { lower, upper } = bounds;
    match (lower > 0.0, upper.is_finite()) {
        (true, true) => format!("{} to {}", shown(lower), shown(upper)),
        (true, false) => format!("{} at least", shown(lower)),
        (false, _) => format!("{} at most", shown(upper)),
    }
}

/// JSON has no number for what has no end.
pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Four digits, of small numbers and of great ones.
pub(super) fn rate(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "any".to_owned(),
        _ if value >= 1_000.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
