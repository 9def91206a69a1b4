//! What `ironorb bench` is told.

use std::path::PathBuf;

use crate::all::AllOptions;
use crate::collocated::CollocatedOptions;
use crate::concurrency::ConcurrencyOptions;
use crate::connections::ConnectionsOptions;
use crate::cubit::CubitOptions;
use crate::latency::LatencyOptions;
use crate::role::RoleArgs;
use crate::ttcp::TtcpOptions;

/// `ironorb bench …`
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Measure calls that come straight back, beside a plain socket that carries the same bytes.
    Echo(EchoOptions),
    /// Measure how many lines of IDL a second are read, and turned into Rust.
    Idl(IdlOptions),
    /// Measure how many bytes a second of each construct of IDL are marshalled, beside a plain copy.
    Types(TypesOptions),
    /// Measure how many bytes a second calls of each kind carry (CORBA-TTCP), beside a plain stream of the same bytes.
    Ttcp(TtcpOptions),
    /// Measure what calls of many objects take, with every type and way to call (the suite of TAO's first paper), beside a
    /// plain socket that carries the same bytes.
    Latency(LatencyOptions),
    /// Run every suite that has goals, on one page, with the list of goals at the end.
    All(AllOptions),
    /// Measure the calls of IDL_Cubit: cubes of every type, twoway and oneway, beside a plain socket.
    Cubit(CubitOptions),
    /// Measure calls of objects in the same process, beside a virtual call.
    Collocated(CollocatedOptions),
    /// Measure how many calls a second clients make at once, beside plain sockets with a thread for each.
    Concurrency(ConcurrencyOptions),
    /// Measure what thousands of connections cost, idle and active.
    Connections(ConnectionsOptions),
    /// Build the programs by which other ORBs take part, as far as what they need is installed.
    Peers,
    /// Measure what it costs and saves to leave marshalling to the interpreter.
    Marshal(MarshalOptions),
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
    /// Tell where the time of a call goes on either side, stage by stage, instead of how long it is. Only the rows that
    /// pass a wire to a thread of their own. Needs a build with the feature `probes`.
    #[arg(long, conflicts_with = "counts")]
    pub breakdown: bool,
}

/// `ironorb bench idl`
#[derive(Debug, Clone, Default, clap::Args)]
pub struct IdlOptions {
    /// Lines of each input, separated by commas. Default 10000,100000.
    #[arg(long, value_delimiter = ',')]
    pub lines: Vec<usize>,
    /// Repetitions of each row, taken in turn with its baseline's. Default 11.
    #[arg(long)]
    pub repetitions: Option<usize>,
    /// Write each row as a line of JSON to this file, too.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Few repetitions of small inputs: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
    /// What `cargo check` takes for the Rust that is generated. Needs this project's sources.
    #[arg(long)]
    pub rustc: bool,
    /// IDL files to be checked instead of the standard's and a made-up one.
    #[arg(long = "idl", value_name = "FILE", requires = "rustc")]
    pub files: Vec<PathBuf>,
    /// Directories for the includes of these files.
    #[arg(long = "include", short = 'I', value_name = "DIR", requires = "rustc")]
    pub include_dirs: Vec<PathBuf>,
}

/// `ironorb bench types`
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TypesOptions {
    /// Only these rows, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Repetitions of each row, taken in turn with its baseline's. Default 15.
    #[arg(long)]
    pub repetitions: Option<usize>,
    /// Write each row as a line of JSON to this file, too.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Few repetitions: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
}

/// `ironorb bench marshal`
#[derive(Debug, Clone, Default, clap::Args)]
pub struct MarshalOptions {
    /// Only these rows, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Repetitions of each row, taken in turn with its baseline's. Default 15.
    #[arg(long)]
    pub repetitions: Option<usize>,
    /// Write each row as a line of JSON to this file, too.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Few repetitions: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
    /// Compare what types add to a program in either way; measure no time. Builds programs, and so needs the sources.
    #[arg(long)]
    pub sizes: bool,
}

impl MarshalOptions {
    pub(crate) fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(if self.quick { 3 } else { 15 }).max(1)
    }

    /// Bytes that are marshalled in one repetition.
    pub(crate) fn bytes_per_sample(&self) -> usize {
        if self.quick { 1 } else { 2 << 20 }
    }
}

impl TypesOptions {
    pub(crate) fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(if self.quick { 3 } else { 15 }).max(1)
    }

    /// Bytes that are marshalled in one repetition.
    pub(crate) fn bytes_per_sample(&self) -> usize {
        if self.quick { 1 } else { 16 << 20 }
    }
}

impl IdlOptions {
    pub(crate) fn lines(&self) -> &[usize] {
        match (self.lines.as_slice(), self.quick) {
            ([], true) => &[1_000],
            ([], false) => &[10_000, 100_000],
            (lines, _) => lines,
        }
    }

    pub(crate) fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(if self.quick { 3 } else { 11 }).max(1)
    }
}

impl EchoOptions {
    pub(crate) fn calls(&self) -> usize {
        self.calls.unwrap_or(if self.quick { 200 } else { 3000 }).max(1)
    }

    pub(crate) fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(if self.quick { 3 } else { 11 }).max(1)
    }
}
