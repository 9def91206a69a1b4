//! What `ironorb bench` is told.

use std::path::PathBuf;

use crate::role::RoleArgs;

/// `ironorb bench …`
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Measure calls that come straight back, beside a plain socket that carries the same bytes.
    Echo(EchoOptions),
    /// Be one process of a benchmark.
    #[command(hide = true)]
    Role(RoleArgs),
}

/// `ironorb bench echo`
#[derive(Debug, Clone, Default, clap::Args)]
pub struct EchoOptions {
    /// Calls of one repetition; a quarter of it for rows of 64 KiB. Default 3,000.
    #[arg(long)]
    pub calls: Option<usize>,
    /// Repetitions of each row, taken in turn with its baseline's. Default 11.
    #[arg(long)]
    pub repetitions: Option<usize>,
    /// Only these rows, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Write each row as a line of JSON to this file, too.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Few calls: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
    /// Count system calls, instructions and heap allocations per call; measure no time. Needs strace and
    /// valgrind.
    #[arg(long)]
    pub counts: bool,
}

impl EchoOptions {
    pub(crate) fn calls(&self) -> usize {
        self.calls.unwrap_or(if self.quick { 200 } else { 3000 }).max(1)
    }

    pub(crate) fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(if self.quick { 3 } else { 11 }).max(1)
    }
}
