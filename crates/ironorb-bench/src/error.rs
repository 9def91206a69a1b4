//! What can go wrong in a benchmark.

use std::io;

use ironorb::{BuildError, SystemException};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The system refused something.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A call of the benchmark failed.
    #[error("a call of the benchmark failed: {0}")]
    Call(#[from] SystemException),
    /// The ORB of the benchmark could not be made.
    #[error(transparent)]
    Orb(#[from] BuildError),
    /// The servant could not be activated.
    #[error("the servant cannot be activated: {0}")]
    Poa(#[from] ironorb::poa::PoaError),
    /// There is no such row.
    #[error("there is no row {name:?}; the rows are {known}")]
    UnknownRow {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A process of the benchmark did not do its part.
    #[error("the process {role} {what}")]
    Process {
        /// Which of them.
        role: String,
        /// What it did.
        what: String,
    },
    /// A value did not come out of its `any`.
    #[error("a value of the benchmark did not come out of its any: {0}")]
    Extract(#[from] ironorb::ExtractError),
    /// The IDL of the benchmark was refused.
    #[error("the IDL of the benchmark was refused:\n{0}")]
    Idl(String),
    /// A program that counts is not installed.
    #[error("{program} is not installed; on Debian: apt-get install {package}")]
    MissingTool {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program that counts wrote something that is not understood.
    #[error("{program} did not report {what}")]
    NoCount {
        /// The program.
        program: &'static str,
        /// What was looked for.
        what: &'static str,
    },
}

impl BenchError {
    /// Says what was being done when the system refused.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        // Only in case of an error, so that measured calls do not allocate.
        move |source| BenchError::Io { doing: doing.into(), source }
    }
}
