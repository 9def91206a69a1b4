//! Benchmarks: each claim about speed is a row, measured beside its baseline in one run.
//!
//! A suite defines groups of sides that take turns (`measure`). The results are rows (`row`) in the tables of
//! a report. One renderer writes reports as text, as lines of JSON and as a page (`render`). Servers run in
//! processes of their own: this program, started again in a role that a suite has registered (`role`).
//!
//! This crate asserts no times: a benchmark reports, and the reader judges. It calls the ORB as an
//! application would, without access to its internals.

mod all;
mod chart;
mod collocated;
mod concurrency;
mod connections;
mod contender;
mod cubit;
mod echo;
mod error;
mod goal;
mod idl;
mod latency;
mod machine;
mod marshal;
mod measure;
mod options;
mod peers;
mod plain;
mod process;
mod render;
mod role;
mod row;
mod sequences;
mod settings;
mod statistics;
mod ttcp;
mod types;
mod variant;
mod watch;

pub use all::{AllOptions, Suite};
pub use collocated::CollocatedOptions;
pub use concurrency::ConcurrencyOptions;
pub use connections::ConnectionsOptions;
pub use cubit::CubitOptions;
pub use echo::EchoOptions;
pub use error::BenchError;
pub use goal::{Goal, Verdict};
pub use idl::IdlOptions;
pub use latency::LatencyOptions;
pub use machine::Placement;
pub use marshal::MarshalOptions;
#[cfg(feature = "sizes")]
#[doc(hidden)]
pub use marshal::{Kept, keep};
pub use options::{Run, Sides, with_lists};
pub use render::{Report, Table};
pub use role::RoleArgs;
pub use row::{Figure, Measure, Parameters, Row};
pub use sequences::Algorithm;
pub use settings::Settings;
pub use statistics::Ratio;
pub use ttcp::TtcpOptions;
pub use types::TypesOptions;
pub use variant::{Bytes, DataType, Invocation, Mode, Peer, ServantKind, Transport};

use std::io::Write as _;

use clap::Parser as _;
use role::Role;

/// `ironorb bench …`
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
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
    /// Measure how many calls per second several clients make, beside plain sockets with a thread for each.
    Concurrency(ConcurrencyOptions),
    /// Measure the cost of thousands of connections, idle and active.
    Connections(ConnectionsOptions),
    /// Run every suite that has goals, and put the results on one page with the list of goals.
    All(AllOptions),
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
const ROLES: &[&[Role]] =
    &[plain::ROLES, echo::ROLES, cubit::ROLES, concurrency::ROLES, sequences::ROLES, ttcp::ROLES];

/// Runs `ironorb bench …`: prints the report and writes the requested files, or acts as a process of a
/// benchmark. Blocks.
///
/// # Errors
/// A process, a call or a file of the benchmark failed, or no row has a requested name.
pub fn run(command: BenchCommand) -> Result<(), BenchError> {
    match &command {
        BenchCommand::Peers => peers::peers(),
        BenchCommand::Role(args) => role::run(ROLES, args),
        BenchCommand::All(options) => render::publish(&all(options)?, &options.run()),
        suite => {
            let (report, run) = measure(suite)?;
            render::publish(&[report], run)
        }
    }
}

/// Runs one suite, and returns its report with the options that say where the report goes. Blocks.
///
/// # Errors
/// A process or a call of the benchmark failed, no row has a requested name, or the command is not a suite.
pub fn measure(command: &BenchCommand) -> Result<(Report, &Run), BenchError> {
    Ok(match command {
        BenchCommand::Echo(options) => (echo::measure(options)?, &options.run),
        BenchCommand::Idl(options) => (idl::measure(options)?, &options.run),
        BenchCommand::Types(options) => (types::measure(options)?, &options.run),
        BenchCommand::Marshal(options) => (marshal::measure(options)?, &options.run),
        BenchCommand::Ttcp(options) => (ttcp::measure(options)?, &options.run),
        BenchCommand::Latency(options) => (latency::measure(options)?, &options.run),
        BenchCommand::Cubit(options) => (cubit::measure(options)?, &options.run),
        BenchCommand::Collocated(options) => (collocated::measure(options)?, &options.run),
        BenchCommand::Concurrency(options) => (concurrency::measure(options)?, &options.run),
        BenchCommand::Connections(options) => (connections::measure(options)?, &options.run),
        BenchCommand::All(_) | BenchCommand::Peers | BenchCommand::Role(_) => {
            return Err(BenchError::Process {
                role: "bench".to_owned(),
                what: "is asked for no suite".to_owned(),
            });
        }
    })
}

/// Runs every requested suite. All of them together take about twenty minutes.
fn all(options: &AllOptions) -> Result<Vec<Report>, BenchError> {
    #[derive(clap::Parser)]
    struct Alone {
        #[command(subcommand)]
        command: BenchCommand,
    }
    let parsed = |line: Vec<&'static str>| Alone::parse_from([&["bench"], &line[..]].concat());
    options.command_lines().map(|line| Ok(measure(&parsed(line).command)?.0)).collect()
}

/// The generated code for the IDL of each suite.
macro_rules! generated {
    ($($module:ident $file:literal)*) => {$(
        #[allow(missing_docs)]
        mod $module {
            ironorb::include_idl!($file);
        }
    )*};
}

generated! {
    generated "echo"
    generated_cubit "cubit"
    generated_latency "latency"
    generated_probes "probes"
    generated_types "types"
}
