//! `ironorb sched`: whether the deadlines of a task set hold, and the table that a system looks up.

mod timings;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use ironorb_sched::{Problem, Report, TaskSet, Verdict, analyze, table};

use crate::failure::Failure;
use crate::{idl, output};

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say whether all deadlines of a task set hold, and what to change when they do not. Exit code 1 unless they do.
    Analyze {
        /// How to print the report.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
        /// The file to write the timeline to, as an SVG image.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// The file to write the report with its timeline to, as an HTML page.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        #[command(flatten)]
        input: Input,
    },
    /// Write the table of priorities, lanes and connections that a system looks up, as TOML. Only for a task set that fits.
    Table {
        /// The file to write the table to, instead of standard output.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        input: Input,
    },
}

#[derive(Debug, Args)]
struct Input {
    /// The task set, as TOML, and IDL files. An operation of the task set without a `wcet` has that of the operation with its
    /// scoped name in IDL, such as `plant::Valve::set`. Without TOML each operation with a period and a wcet in `@rt` is
    /// called once a period, all on one processor.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    settings: idl::Settings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Analyze { format, svg, html, input } => {
            let (report, file) = report_of(input)?;
            match format {
                Format::Text => output::line(report.to_string().trim_end())?,
                Format::Json => output::line(json(&report)?)?,
            }
            write(svg.as_deref(), || report.to_svg())?;
            write(html.as_deref(), || report.to_html())?;
            verdict(&report, &file)
        }
        Command::Table { output, input } => {
            let (report, file) = report_of(input)?;
            verdict(&report, &file)?;
            let text = table(&report).to_toml().map_err(Failure::new)?;
            match output {
                Some(output) => write(Some(output), || text),
                None => output::text(text),
            }
        }
    }
}

/// The report, and the file that it is about.
fn report_of(input: &Input) -> Result<(Report, PathBuf), Failure> {
    let is_idl = |file: &PathBuf| file.extension().is_some_and(|end| end.eq_ignore_ascii_case("idl"));
    let (idl, toml): (Vec<_>, Vec<_>) = input.files.iter().cloned().partition(is_idl);
    let timings = timings::read(&idl, &input.settings)?;
    match (toml.as_slice(), idl.first()) {
        ([file], _) => Ok((report_of_toml(file, &timings)?, file.clone())),
        ([], Some(file)) => {
            let set = TaskSet::new(timings::task_set(&timings)?);
            let set = set.map_err(|problems| no_task_set(file, &problems))?;
            Ok((analyze(&set), file.clone()))
        }
        _ => Err(Failure::usage("there is more than one task set")
            .with_help("give one file of TOML, and any number of IDL files, whose names end in .idl")),
    }
}

fn report_of_toml(file: &Path, timings: &timings::Timings) -> Result<Report, Failure> {
    let text = fs::read_to_string(file)
        .map_err(|e| Failure::new(format!("cannot read {}: {e}", file.display())).of_usage())?;
    match TaskSet::from_toml_with(&text, &timings::wcets(timings)) {
        Ok(set) => Ok(analyze(&set)),
        Err(problems) => Err(no_task_set(file, &problems)),
    }
}

fn no_task_set(file: &Path, problems: &[Problem]) -> Failure {
    let lines: String = problems.iter().map(|it| format!("{}:{it}\n", file.display())).collect();
    Failure::usage(format!("{} is no task set", file.display())).with_body(lines)
}

fn json(report: &Report) -> Result<String, Failure> {
    serde_json::to_string_pretty(report).map_err(Failure::new)
}

fn verdict(report: &Report, file: &Path) -> Result<(), Failure> {
    let file = file.display();
    match report.verdict {
        Verdict::Fits => Ok(()),
        Verdict::Unknown => Err(Failure::new(format!("{file}: not all can be analysed"))
            .with_help("`ironorb sched analyze` says of which tasks nothing can be said, and why")),
        Verdict::DoesNotFit => Err(Failure::new(format!("{file}: not all deadlines hold"))
            .with_help("`ironorb sched analyze` says which, and what to change")),
    }
}

fn write(file: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    fs::write(file, text()).map_err(|e| Failure::new(format!("cannot write {}: {e}", file.display())))
}
