//! Benchmarks: each claim about speed is a row, measured beside its baseline in one run.
//!
//! This crate is internal to the `ironorb` command.
//!
//! A suite defines groups of sides that take turns (`measure`). The results are rows (`row`) in the tables of
//! a report. One renderer writes reports as text, as lines of JSON and as a page (`render`). Servers run in
//! processes of their own: this program, started again in a role that a suite has registered (`role`).
//!
//! This crate asserts no times: a benchmark reports, and the reader judges. It calls the ORB as an
//! application would, without access to its internals.

mod agent;
mod all;
mod caching;
mod calibration;
mod chart;
mod codec;
mod collocated;
mod concurrency;
mod connections;
mod contender;
mod crowd;
mod cubit;
mod echo;
mod error;
mod extents;
mod goal;
mod hartstone;
mod host;
mod idl;
mod jobs;
mod latency;
mod machine;
mod measure;
mod options;
mod others;
mod overhead;
mod paced;
mod papers;
mod peers;
mod plain;
mod process;
mod realtime;
mod render;
mod role;
mod row;
mod samples;
mod sequences;
mod settings;
mod statistics;
mod tail;
mod ttcp;
mod validation;
mod variant;
mod watch;

pub use calibration::{Calibrate, calibrate, summary};
#[cfg(feature = "sizes")]
#[doc(hidden)]
pub use codec::{Kept, keep};
pub use error::BenchError;
pub use options::with_lists;
pub use render::Report;
pub use row::Row;
pub use validation::{Validate, validate};

use std::io::Write as _;

use clap::Parser as _;
use role::Role;

use agent::AgentOptions;
use all::AllOptions;
use caching::CachingOptions;
use codec::constructs::{self, TypesOptions};
use codec::marshalling::{self, MarshalOptions};
use collocated::CollocatedOptions;
use concurrency::ConcurrencyOptions;
use connections::ConnectionsOptions;
use cubit::CubitOptions;
use echo::EchoOptions;
use extents::ExtentsOptions;
use hartstone::HartstoneOptions;
use idl::IdlOptions;
use jobs::JobsOptions;
use latency::LatencyOptions;
use options::Run;
use overhead::OverheadOptions;
use papers::PapersOptions;
use realtime::RealtimeOptions;
use role::RoleArgs;
use tail::TailOptions;
use ttcp::TtcpOptions;

/// `ironorb bench …`
#[derive(Debug, clap::Args)]
pub struct Bench {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, clap::Subcommand)]
enum BenchCommand {
    /// Measure calls that return at once, beside a plain socket that carries as many bytes.
    Echo(EchoOptions),
    /// Measure how many lines of IDL per second are read and turned into Rust.
    Idl(IdlOptions),
    /// Measure how many bytes per second of each IDL construct are marshalled, beside a plain copy.
    Types(TypesOptions),
    /// Measure the cost of interpreted marshalling, and what it saves.
    Marshal(MarshalOptions),
    /// Measure how many bytes per second calls of each kind carry (CORBA-TTCP), beside a plain stream of as
    /// many bytes.
    Ttcp(TtcpOptions),
    /// Measure calls of many objects, with every type and way to call (the suite of TAO's first paper),
    /// beside a plain socket that carries as many bytes.
    Latency(LatencyOptions),
    /// Measure the calls of IDL_Cubit: cubes of every type, twoway and oneway, beside a plain socket.
    Cubit(CubitOptions),
    /// Measure calls to objects in the same process, beside a virtual call.
    Collocated(CollocatedOptions),
    /// Measure reads of cached attributes, beside the reading of the clock that each needs.
    Caching(CachingOptions),
    /// Measure jobs of many parts whose servers are late now and then, with hedges and without.
    Tail(TailOptions),
    /// Measure an agent: resolving, what names and leases cost, and how soon a killed server is gone; beside a plain call.
    Agent(AgentOptions),
    /// Measure objects that are elements of an extent, up to a billion, beside a hundred of them.
    Extents(ExtentsOptions),
    /// Compare the ways to run jobs of several calls (the architectures S, HP, FP and SP), by processes and in a model.
    Jobs(JobsOptions),
    /// Measure how many calls per second several clients make, beside plain sockets with a thread for each.
    Concurrency(ConcurrencyOptions),
    /// Measure the cost of thousands of connections, idle and active.
    Connections(ConnectionsOptions),
    /// Measure whether calls of a high priority stay fast beside many of lower ones (the test of the paper on real-time
    /// ORBs), beside plain sockets with the same threads.
    Realtime(RealtimeOptions),
    /// Measure the processor time that calls between a client and a server cost, over calls within the process.
    Overhead(OverheadOptions),
    /// Raise the load of periodic calls until one misses its deadline (Distributed Hartstone).
    Hartstone(HartstoneOptions),
    /// Run every suite that has goals, and put the results on one page with the list of goals.
    All(AllOptions),
    /// Measure every figure and table of five papers again, and judge each of their conclusions on one page.
    Papers(PapersOptions),
    /// Build the programs with which other ORBs take part, as far as their packages are installed.
    Peers,
    /// Run one process of a benchmark.
    #[command(hide = true)]
    Role(RoleArgs),
}

/// Prints a line about progress on standard error. A closed standard error is ignored, where `eprintln!` would panic.
fn note(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints a line on standard output. A closed standard output is ignored, where `println!` would panic.
fn say(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The roles of all suites for child processes.
const ROLES: &[&[Role]] = &[
    plain::ROLES,
    agent::ROLES,
    jobs::ROLES,
    tail::ROLES,
    caching::ROLES,
    echo::ROLES,
    cubit::ROLES,
    concurrency::ROLES,
    sequences::ROLES,
    ttcp::ROLES,
    paced::ROLES,
    overhead::ROLES,
    calibration::ROLES,
    validation::ROLES,
];

/// Runs `ironorb bench …`: prints the report and writes the requested files, or acts as a process of a
/// benchmark. Blocks.
///
/// # Errors
/// A process, a call or a file of the benchmark failed, or no row has a requested name.
pub fn run(bench: &Bench) -> Result<(), BenchError> {
    match &bench.command {
        BenchCommand::Peers => peers::peers(),
        BenchCommand::Papers(options) => papers::papers(options),
        BenchCommand::Role(args) => role::run(ROLES, args),
        BenchCommand::All(options) => render::publish(&all(options)?, &options.run),
        suite => render::publish(&[suite.measure()?], suite.run()),
    }
}

/// Runs one suite, and returns its report. Blocks.
///
/// # Errors
/// A process or a call of the benchmark failed, no row has a requested name, or the command is not a suite.
pub fn measure(bench: &Bench) -> Result<Report, BenchError> {
    bench.command.measure()
}

/// The suites: each command has options of its own, which have those of every suite, and a function that measures.
macro_rules! suites {
    ($($suite:ident $module:ident)*) => {
        impl BenchCommand {
            fn measure(&self) -> Result<Report, BenchError> {
                match self {
                    $(BenchCommand::$suite(options) => $module::measure(options).map(Report::with_goals),)*
                    BenchCommand::All(_) | BenchCommand::Papers(_) | BenchCommand::Peers | BenchCommand::Role(_) => {
                        Err(BenchError::process("bench", "is asked for no suite"))
                    }
                }
            }

            fn run(&self) -> &Run {
                match self {
                    $(BenchCommand::$suite(options) => &options.run,)*
                    BenchCommand::All(_) | BenchCommand::Papers(_) | BenchCommand::Peers | BenchCommand::Role(_) => &Run::DEFAULT,
                }
            }
        }
    };
}

suites! {
    Echo echo Idl idl Types constructs Marshal marshalling Ttcp ttcp Latency latency Cubit cubit
    Collocated collocated Caching caching Agent agent Extents extents Jobs jobs Concurrency concurrency Connections connections
    Realtime realtime Tail tail
    Overhead overhead Hartstone hartstone
}

/// Runs every requested suite. All of them together take about half an hour.
fn all(options: &AllOptions) -> Result<Vec<Report>, BenchError> {
    options.command_lines().map(|line| measure_line(&line)).collect()
}

/// Runs the suite of a command line: its name and its options.
fn measure_line(line: &[String]) -> Result<Report, BenchError> {
    #[derive(clap::Parser)]
    struct Alone {
        #[command(subcommand)]
        command: BenchCommand,
    }
    Alone::parse_from([&["bench".to_owned()], line].concat()).command.measure()
}

/// The generated code for the IDL of each suite.
macro_rules! generated {
    ($($module:ident $file:literal)*) => {$(
        mod $module {
            ironorb::include_idl!($file);
        }
    )*};
}

generated! {
    generated "echo"
    generated_caching "caching"
    generated_cases "caching_cases"
    generated_cubit "cubit"
    generated_deployment "deployment"
    generated_extents "extents"
    generated_jobs "jobs"
    generated_latency "latency"
    generated_probes "probes"
    generated_realtime "realtime"
}
