//! `ironorb sim validate`: what the simulator predicts by a profile, beside what is measured.
//!
//! Each case runs a suite of `ironorb bench` twice, and simulates what each of its rows does. The measured side is the suite's own:
//! nothing is measured here. What a profile was measured by (`calibration`) occurs in no case: other objects, other operations, other
//! processes.

mod cases;
mod compare;
mod page;
mod scenes;

use std::path::PathBuf;

use ironorb_model::profile::Profile;
use serde::Serialize;

use crate::error::{BenchError, select};
use crate::machine::Machine;
use crate::render::Report;
use crate::row::shown;
use cases::{CASES, Case, Foreseen};
use compare::{Bar, Compared, Ratio, ratios};

/// `ironorb sim validate`
#[derive(Debug, Clone, clap::Args)]
pub struct Validate {
    /// The profile of this machine: what `ironorb sim calibrate` has written.
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: PathBuf,
    /// Only these cases, separated by commas: par-04, objects, throughput, shares, lags, latency, realtime.
    #[arg(long, value_delimiter = ',', value_name = "CASES")]
    pub(crate) cases: Vec<String>,
    /// Let stations of par-04 burn their processors instead of sleeping. Only where there are as many processors as stations.
    #[arg(long)]
    pub(crate) burn: bool,
    /// The file to write all figures to, as one JSON object.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// The file to write a page of Markdown to.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Measure little: enough to show that the command works, not to judge anything.
    #[arg(long)]
    pub(crate) quick: bool,
}

/// What all cases have shown. Its `Display` is a table.
#[derive(Debug, Clone, Serialize)]
pub struct Validation {
    machine: Machine,
    level: &'static str,
    is_quick: bool,
    profile: Origin,
    cases: Vec<Outcome>,
}

/// Where the profile comes from.
#[derive(Debug, Clone, Serialize)]
struct Origin {
    commit: String,
    date: String,
    kernel: String,
    /// The machine of the profile is not this one.
    is_foreign: bool,
    is_quick: bool,
}

/// One case.
#[derive(Debug, Clone, Serialize)]
struct Outcome {
    name: &'static str,
    title: &'static str,
    /// What the level leaves out.
    notes: &'static str,
    figures: Vec<Compared>,
    ratios: Vec<Ratio>,
    /// Why there is nothing.
    missing: Option<String>,
}

/// Runs the cases, and writes the requested files. Blocks.
///
/// # Errors
/// The profile cannot be read or has nothing for a case, a suite failed, or a file cannot be written. That figures are off is no
/// error.
pub fn validate(options: &Validate) -> Result<Validation, BenchError> {
    let text = std::fs::read_to_string(&options.profile)
        .map_err(BenchError::io(format!("read {}", options.profile.display())))?;
    let profile = Profile::read(&text).map_err(|e| unusable(options, &e))?;
    let mut machine = Machine::this();
    let here = Machine::this().origin();
    let origin = Origin {
        commit: profile.origin.commit.clone(),
        date: profile.origin.date.clone(),
        kernel: profile.origin.kernel.clone(),
        is_foreign: (&here.processor, &here.kernel) != (&profile.origin.processor, &profile.origin.kernel),
        is_quick: profile.origin.is_quick,
    };
    let mut outcomes = Vec::new();
    for case in select(CASES.to_vec(), &options.cases, |case| case.name.to_owned())? {
        outcomes.push(run(&case, &profile, options)?);
    }
    machine.end();
    let validation = Validation {
        machine,
        level: ironorb_model::queueing::LEVEL,
        is_quick: options.quick,
        profile: origin,
        cases: outcomes,
    };
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&validation).unwrap_or_default();
        write(file, &text)?;
    }
    if let Some(file) = &options.markdown {
        write(file, &validation.markdown())?;
    }
    Ok(validation)
}

fn write(file: &std::path::Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(file, text).map_err(BenchError::io(format!("write {}", file.display())))
}

fn unusable(options: &Validate, why: &dyn std::fmt::Display) -> BenchError {
    BenchError::Unusable(format!("{}: {why}", options.profile.display()))
}

fn run(case: &Case, profile: &Profile, options: &Validate) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome {
        name: case.name,
        title: case.title,
        notes: case.notes,
        figures: Vec::new(),
        ratios: Vec::new(),
        missing: (case.cannot)(options),
    };
    if outcome.missing.is_some() {
        return Ok(outcome);
    }
    let line: Vec<String> = (case.line)(options).split(' ').map(str::to_owned).collect();
    let mut reports = Vec::new();
    for time in ["first", "second"] {
        crate::note(format_args!("{}: {time} measurement by ironorb bench {}", case.name, line.join(" ")));
        reports.push(crate::measure_line(&line)?);
    }
    crate::note(format_args!("{}: simulating", case.name));
    outcome.figures = figures(case, profile, options, &reports)?;
    outcome.ratios = ratios(&outcome.figures);
    if outcome.figures.is_empty() {
        outcome.missing = Some("the suite has no rows for it here".to_owned());
    }
    Ok(outcome)
}

/// Each figure of the first report's rows that the case foresees, beside the same one of the second report.
fn figures(
    case: &Case,
    profile: &Profile,
    options: &Validate,
    reports: &[Report],
) -> Result<Vec<Compared>, BenchError> {
    let [first, second] = reports else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for row in first.rows(case.kind) {
        let Some(foreseen) = (case.foresee)(row, profile, options)? else { continue };
        let keys = |row: &crate::row::Row| case.keys.iter().map(|key| row.text(key)).collect::<Vec<_>>();
        let Some(again) = second.rows(case.kind).iter().find(|other| keys(other) == keys(row)) else {
            continue;
        };
        let place = case.keys.iter().filter_map(|key| Some(format!("{key} {}", shown(row.parameter(key)?))));
        let place = place.collect::<Vec<_>>().join(", ");
        for Foreseen { figure, what, unit, simulated, bar } in foreseen {
            let read = |row: &crate::row::Row| match bar {
                Bar::Reported => row.p99(figure).or_else(|| row.median(figure)),
                Bar::Mean | Bar::Tight => row.mean(figure),
            };
            let (Some(one), Some(other)) = (read(row), read(again)) else { continue };
            all.push(Compared::of(place.clone(), what, unit, [one, other], simulated, bar));
        }
    }
    Ok(all)
}
