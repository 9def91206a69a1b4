//! `ironorb sim validate`: what the simulator predicts by a profile, beside what is measured.
//!
//! Each case but one measures twice by a suite of `ironorb bench`, and simulates what each of its rows does. The measured side is the
//! suite's own, or that of an earlier run ([`measured`]). What a profile was measured by (`calibration`) occurs in no case: these have
//! other numbers of objects, other types, other mixes of operations and other numbers of clients.
//! The last case has no profile: it records a system, and builds what it predicts from the recording (`deployment`).

mod cases;
mod compare;
mod deployment;
mod measured;
mod page;
mod scenes;
mod two_tiers;

use std::path::PathBuf;

use ironorb_model::check_outputs;
use ironorb_model::profile::Profile;
use serde::Serialize;

use crate::error::{BenchError, select};
use crate::machine::Machine;
use crate::variant::Peer;
use cases::{CASES, Case, Foreseen};
use compare::{Compared, Ratio, ratios};
use measured::{Earlier, Measured, place_of};

pub(crate) use two_tiers::ROLES;

/// `ironorb sim validate`
#[derive(Debug, Clone, clap::Args)]
pub struct Validate {
    /// The profile of this machine: what `ironorb sim calibrate` has written.
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: PathBuf,
    /// Only these cases, separated by commas: par-04, par-04-exponential, objects, throughput, shares, lags, latency, realtime,
    /// deployment.
    #[arg(long, value_delimiter = ',', value_name = "CASES")]
    pub(crate) cases: Vec<String>,
    /// Let stations of par-04 burn their processors instead of sleeping. Only where there are as many processors as stations.
    #[arg(long)]
    pub(crate) burn: bool,
    /// Take the measurements from this file, which an earlier run has written by `--json`, and measure nothing.
    #[arg(long, value_name = "FILE")]
    pub(crate) measured: Option<PathBuf>,
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
    /// Commit and date of the measurements, if they are of an earlier run.
    measured: Option<String>,
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
    /// What ratios are to.
    ratios_to: &'static str,
    /// Why there is nothing.
    missing: Option<String>,
    /// What the predictions come from, as a scenario file, if that was measured as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<String>,
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
    let here = Machine::this().origin();
    let origin = Origin {
        commit: profile.origin.commit.clone(),
        date: profile.origin.date.clone(),
        kernel: profile.origin.kernel.clone(),
        is_foreign: (&here.processor, &here.kernel) != (&profile.origin.processor, &profile.origin.kernel),
        is_quick: profile.origin.is_quick,
    };
    if profile.origin.orb != Peer::Ironorb.title() {
        let why = format!("it is of {}, and what is measured are calls of this ORB", profile.origin.orb);
        return Err(unusable(options, &why));
    }
    let read = [Some(&options.profile), options.measured.as_ref()];
    let written = [&options.json, &options.markdown].map(Option::as_ref);
    let [read, written] =
        [&read, &written].map(|files| files.iter().copied().flatten().map(PathBuf::as_path));
    check_outputs(read, written).map_err(BenchError::output)?;
    let earlier = options.measured.as_deref().map(Earlier::read).transpose()?;
    let mut validation = Validation {
        machine: Machine::this(),
        measured: earlier.as_ref().map(Earlier::origin),
        level: ironorb_model::queueing::LEVEL,
        is_quick: options.quick,
        profile: origin,
        cases: Vec::new(),
    };
    let all: Vec<Option<&Case>> = CASES.iter().map(Some).chain([None]).collect();
    for case in select(all, &options.cases, |case| case.map_or(deployment::NAME, |it| it.name).to_owned())? {
        validation.cases.push(match case {
            Some(case) => run(case, &profile, options, earlier.as_ref())?,
            None => deployment::run(options, earlier.as_ref())?,
        });
        // After each case: a later one that fails takes nothing of it.
        validation.machine.end();
        if let Some(file) = &options.json {
            let text = serde_json::to_string_pretty(&validation).unwrap_or_default();
            write(file, &text)?;
        }
        if let Some(file) = &options.markdown {
            write(file, &validation.markdown())?;
        }
    }
    Ok(validation)
}

fn write(file: &std::path::Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(file, text).map_err(BenchError::io(format!("write {}", file.display())))
}

fn unusable(options: &Validate, why: &dyn std::fmt::Display) -> BenchError {
    BenchError::Unusable(format!("{}: {why}", options.profile.display()))
}

fn run(
    case: &Case,
    profile: &Profile,
    options: &Validate,
    earlier: Option<&Earlier>,
) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome {
        name: case.name,
        title: case.title,
        notes: case.notes,
        figures: Vec::new(),
        ratios: Vec::new(),
        ratios_to: "the row before",
        missing: None,
        scenario: None,
    };
    let measured = match earlier {
        Some(earlier) => earlier.case(case.name).ok_or_else(|| "the file has nothing of it".to_owned()),
        None => match (case.cannot)(options) {
            Some(why) => Err(why),
            None => Ok(measure(case, options)?),
        },
    };
    let measured = match measured {
        Ok(measured) => measured,
        Err(why) => return Ok(Outcome { missing: Some(why), ..outcome }),
    };
    crate::note(format_args!("{}: simulating", case.name));
    outcome.figures = figures(case, profile, options, &measured)?;
    outcome.ratios = ratios(&outcome.figures);
    if outcome.figures.is_empty() {
        outcome.missing = Some("the suite has no rows for it here".to_owned());
    }
    Ok(outcome)
}

/// Measures a case twice by its suite.
fn measure(case: &Case, options: &Validate) -> Result<Measured, BenchError> {
    let mut measurements = [Vec::new(), Vec::new()];
    let runs = if options.quick { 1 } else { case.runs };
    for number in 1..=runs {
        for (runs_so_far, (time, more)) in
            measurements.iter_mut().zip([("first", ""), ("second", case.again)])
        {
            let line = (case.line)(options) + more;
            crate::note(format_args!(
                "{}: {time} measurement, run {number} of {runs}, by ironorb bench {line}",
                case.name
            ));
            runs_so_far.push(crate::measure_line(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())?);
        }
    }
    Ok(Measured::Suite(measurements))
}

/// Each figure of the rows that the case foresees, as it was measured twice and as it is simulated.
fn figures(
    case: &Case,
    profile: &Profile,
    options: &Validate,
    measured: &Measured,
) -> Result<Vec<Compared>, BenchError> {
    let mut all = Vec::new();
    for row in &measured.rows(case) {
        for foreseen in (case.foresee)(row, profile, options)?.unwrap_or_default() {
            let Some(twice) = measured.figure(case, row, &foreseen) else { continue };
            let Foreseen { what, unit, simulated, bar, .. } = foreseen;
            all.push(Compared::of(place_of(case, row), what, unit, twice, simulated, bar));
        }
    }
    Ok(all)
}
