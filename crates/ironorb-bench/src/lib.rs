//! Benchmarks: each claim of speed is a row, measured beside its baseline in the same run.
//!
//! A suite says what it compares, as groups of sides that take turns (`measure`); what comes of it are rows (`row`), in
//! tables of one report, which one renderer writes as text, as lines of JSON and as a page (`render`). Servers run in
//! processes of their own, which are this same program started again in a role that a suite has registered (`role`).
//!
//! Nothing here asserts a time: a benchmark reports, and the reader judges. Nothing here reaches into the ORB: rows call it
//! as an application would.

mod all;
mod chart;
mod collocated;
mod concurrency;
mod connections;
mod contender;
mod cubit;
mod data;
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
pub use latency::{Algorithm, LatencyOptions};
pub use machine::Placement;
pub use marshal::MarshalOptions;
#[cfg(feature = "sizes")]
#[doc(hidden)]
pub use marshal::{Kept, keep};
pub use options::{Run, Sides, with_lists};
pub use render::{Report, Table};
pub use role::RoleArgs;
pub use row::{Figure, Measure, Parameters, Row};
pub use settings::Settings;
pub use statistics::Ratio;
pub use ttcp::TtcpOptions;
pub use types::TypesOptions;
pub use variant::{Bytes, CallType, DataType, Invocation, Mode, Peer, ServantKind, Transport};

use clap::Parser as _;
use role::Role;

/// `ironorb bench …`
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Measure calls that come straight back, beside a plain socket that carries the same bytes.
    Echo(EchoOptions),
    /// Measure how many lines of IDL a second are read, and turned into Rust.
    Idl(IdlOptions),
    /// Measure how many bytes a second of each construct of IDL are marshalled, beside a plain copy.
    Types(TypesOptions),
    /// Measure what it costs and saves to leave marshalling to the interpreter.
    Marshal(MarshalOptions),
    /// Measure how many bytes a second calls of each kind carry (CORBA-TTCP), beside a plain stream of the same bytes.
    Ttcp(TtcpOptions),
    /// Measure what calls of many objects take, with every type and way to call (the suite of TAO's first paper), beside a
    /// plain socket that carries the same bytes.
    Latency(LatencyOptions),
    /// Measure the calls of IDL_Cubit: cubes of every type, twoway and oneway, beside a plain socket.
    Cubit(CubitOptions),
    /// Measure calls of objects in the same process, beside a virtual call.
    Collocated(CollocatedOptions),
    /// Measure how many calls a second clients make at once, beside plain sockets with a thread for each.
    Concurrency(ConcurrencyOptions),
    /// Measure what thousands of connections cost, idle and active.
    Connections(ConnectionsOptions),
    /// Run every suite that has goals, on one page, with the list of goals at the end.
    All(AllOptions),
    /// Build the programs by which other ORBs take part, as far as what they need is installed.
    Peers,
    /// Be one process of a benchmark.
    #[command(hide = true)]
    Role(RoleArgs),
}

/// Every role that a suite has for a child process.
const ROLES: &[&[Role]] =
    &[plain::ROLES, echo::ROLES, cubit::ROLES, concurrency::ROLES, latency::ROLES, ttcp::ROLES];

/// Carries out `ironorb bench …`: prints the report and writes the files that were asked for, or is a server of a report.
///
/// # Errors
/// A process, a call or a file of the benchmark failed, or no row has a name that was asked for.
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

/// Carries out one suite, and tells where its report goes.
///
/// # Errors
/// A process or a call of the benchmark failed, no row has a name that was asked for, or the command is no suite.
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

/// Carries out every suite that was asked for; all of them take about twenty minutes.
fn all(options: &AllOptions) -> Result<Vec<Report>, BenchError> {
    #[derive(clap::Parser)]
    struct Alone {
        #[command(subcommand)]
        command: BenchCommand,
    }
    let parsed = |line: Vec<&'static str>| Alone::parse_from([&["bench"], &line[..]].concat());
    options.command_lines().map(|line| Ok(measure(&parsed(line).command)?.0)).collect()
}

/// What the build script made of the IDL of each suite.
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
    generated_ttcp "ttcp"
}
