//! `ironorb sim export`: a scenario in the form of other solvers.

use std::path::PathBuf;

use clap::Args;
use ironorb_model::analysis::lqn::{check, of_scenario};

use super::{OneScenario, write};
use crate::failure::Failure;
use crate::files::check_files;
use crate::output;

/// Write a scenario as a layered queueing network (LQNX), for LQNS, LQSIM and LINE.
///
/// Hosts are processors, threads are tasks, operations are entries, and jobs whose parts run at once are activities that fork and
/// join. What such a network has no place for is written into its comment.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ironorb sim export par-04.toml -o par-04.lqnx && lqns par-04.lqnx")]
pub(crate) struct Arguments {
    #[command(flatten)]
    scenario: OneScenario,
    /// The file to write to, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (scenario, read) = arguments.scenario.read()?;
    let text = of_scenario(&scenario).map_err(|e| Failure::new(e).of_usage())?.to_xml();
    if let Some(problem) = check(&text).first() {
        return Err(Failure::new(format!("the network breaks a rule of its format: {problem}")));
    }
    match &arguments.output {
        None => output::text(text),
        Some(file) => {
            check_files(read.iter().map(PathBuf::as_path), [Some(file)])?;
            write(Some(file), || text)
        }
    }
}
