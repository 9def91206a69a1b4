//! Benchmarks: each claim of speed is a row, measured beside its baseline in the same run.
//!
//! `ironorb bench echo` measures what a call costs against a plain socket that carries the same bytes;
//! `ironorb bench idl` how fast IDL is read and turned into Rust.
//! `ironorb bench latency` what calls of many objects take, of every type and in every way;
//! `ironorb bench cubit`, `collocated`, `concurrency`, `connections` what their names say, and `all` all of these;
//! `ironorb bench ttcp` how many bytes a second calls of each kind carry, beside a plain stream;
//! `ironorb bench types` how fast each construct of IDL is marshalled, beside a plain copy.
//! `ironorb bench marshal` what the interpreter of marshalling costs and saves.
//! Servers run in processes of their own, which are this same program started again with a hidden role
//! ([`run_role`]).
//!
//! Nothing here asserts a time: a benchmark reports, and the reader judges. Nothing here reaches into the
//! ORB: rows call it as an application would.

mod all;
mod breakdown;
mod chart;
mod collocated;
mod compile;
mod concurrency;
mod connections;
mod contest;
mod counts;
mod cubit;
mod data;
mod echo;
mod error;
mod idl_rustc;
mod latency;
mod lists;
mod machine;
mod marshal;
mod options;
mod peers;
mod process;
mod raw_ring;
mod report;
mod role;
mod rows;
mod servant;
mod settings;
mod sizes;
mod statistics;
mod suite;
mod targets;
mod ttcp;
mod types;
mod variant;

pub use all::{AllOptions, AllReport, Suites, all};
pub use breakdown::{CallBreakdown, Shares, StageShare};
pub use collocated::{CollocatedOptions, collocated};
pub use compile::{IdlReport, IdlRow, idl};
pub use concurrency::{ConcurrencyOptions, concurrency};
pub use connections::{ConnectionsOptions, connections};
pub use cubit::{CubitOptions, Sides, cubit};
pub use echo::echo;
pub use error::BenchError;
pub use latency::{
    ActivationRow, Algorithm, CellRow, LatencyBreakdown, LatencyOptions, LatencyReport, LookupRow, Measured,
    latency, latency_breakdown,
};
pub use lists::with_lists;
pub use machine::Placement;
#[cfg(feature = "sizes")]
#[doc(hidden)]
pub use marshal::{Kept, keep};
pub use marshal::{MarshalReport, MarshalRow, SizeRow, marshal};
pub use options::{BenchCommand, EchoOptions, IdlOptions, MarshalOptions, TypesOptions};
pub use peers::peers;
pub use report::{CountsRow, EchoReport, LatencyRow, Outcome};
pub use role::{RoleArgs, run_role};
pub use settings::Settings;
pub use statistics::{Latency, Ratio};
pub use suite::{Compared, Files, SuiteReport, SuiteRow};
pub use targets::Target;
pub use ttcp::{
    BreakdownRow, CallRow, Category, PaperColumn, PaperFigure, Part, Rates, Throughput, TtcpBreakdown,
    TtcpOptions, TtcpReport, TtcpRow, WatchedSide, paper, ttcp, ttcp_breakdown,
};
pub use types::{TypesReport, TypesRow, types};
pub use variant::{Bytes, DataType, Invocation, Mode, Peer, ServantKind, Transport};

/// Carries out `ironorb bench …`: prints the report, or is a server of one.
pub fn run(command: BenchCommand) -> Result<(), BenchError> {
    match command {
        BenchCommand::Echo(options) => {
            println!("{}", echo(&options)?);
            Ok(())
        }
        BenchCommand::Idl(options) if options.rustc => {
            let rows = idl_rustc::measure(&options.files, &options.include_dirs)?;
            print!("{}", idl_rustc::RustcReport(&rows));
            Ok(())
        }
        BenchCommand::Idl(options) => {
            println!("{}", compile::idl(&options)?);
            Ok(())
        }
        BenchCommand::Latency(options) if options.breakdown => {
            println!("{}", latency_breakdown(&options)?);
            Ok(())
        }
        BenchCommand::Latency(options) => {
            println!("{}", latency(&options)?);
            Ok(())
        }
        BenchCommand::All(options) => {
            println!("{}", all(&options)?);
            Ok(())
        }
        BenchCommand::Cubit(options) => {
            println!("{}", cubit(&options)?);
            Ok(())
        }
        BenchCommand::Collocated(options) => {
            println!("{}", collocated(&options)?);
            Ok(())
        }
        BenchCommand::Concurrency(options) => {
            println!("{}", concurrency(&options)?);
            Ok(())
        }
        BenchCommand::Connections(options) => {
            println!("{}", connections(&options)?);
            Ok(())
        }
        BenchCommand::Peers => peers(),
        BenchCommand::Types(options) => {
            println!("{}", types(&options)?);
            Ok(())
        }
        BenchCommand::Ttcp(options) if options.breakdown => {
            println!("{}", ttcp_breakdown(&options)?);
            Ok(())
        }
        BenchCommand::Ttcp(options) => {
            println!("{}", ttcp(&options)?);
            Ok(())
        }
        BenchCommand::Marshal(options) => {
            println!("{}", marshal(&options)?);
            Ok(())
        }
        BenchCommand::Role(args) => run_role(&args),
    }
}

/// What the build script made of `idl/echo.idl`.
#[allow(missing_docs)]
mod generated {
    ironorb::include_idl!("echo");
}

/// What the build script made of `idl/cubit.idl`.
#[allow(missing_docs)]
mod generated_cubit {
    ironorb::include_idl!("cubit");
}

/// What the build script made of `idl/latency.idl`.
#[allow(missing_docs)]
mod generated_latency {
    ironorb::include_idl!("latency");
}

/// What the build script made of `idl/probes.idl`.
#[allow(missing_docs)]
mod generated_probes {
    ironorb::include_idl!("probes");
}

/// What the build script made of `idl/types.idl`.
#[allow(missing_docs)]
mod generated_types {
    ironorb::include_idl!("types");
}

/// What the build script made of `idl/ttcp.idl`.
#[allow(missing_docs)]
mod generated_ttcp {
    ironorb::include_idl!("ttcp");
}
