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
    /// A dynamic call of the benchmark failed.
    #[error("a dynamic call of the benchmark failed: {0}")]
    Dynamic(#[from] ironorb::dynamic::DynamicError),
    /// A request of the benchmark could not be built.
    #[error("a request of the benchmark cannot be built: {0}")]
    Request(#[from] ironorb::dynamic::RequestError),
    /// A receiver did not take what was sent.
    #[error("{sent} sequences of {elements} elements in all were sent, but the receiver tells {tally}")]
    Lost {
        /// Sequences.
        sent: u64,
        /// Elements of all of them.
        elements: u64,
        /// What it counted.
        tally: String,
    },
    /// A plot could not be drawn.
    #[error("a plot cannot be drawn: {0}")]
    Plot(String),
    /// The suite was asked for sequences that hold nothing.
    #[error("a buffer of {bytes} bytes holds no element of type {ty}, or is more than {most} bytes")]
    Buffer {
        /// Bytes of the buffer.
        bytes: usize,
        /// What was to be in it.
        ty: String,
        /// Bytes of the largest.
        most: usize,
    },
    /// A value did not come out of its `any`.
    #[error("a value of the benchmark did not come out of its any: {0}")]
    Extract(#[from] ironorb::ExtractError),
    /// The IDL of the benchmark was refused.
    #[error("the IDL of the benchmark was refused:\n{0}")]
    Idl(String),
    /// Time was to be broken down by a program without probes.
    #[error(
        "this program was built without the ORB's probes, which cost nothing that way; to see where time goes, build it \
         with them: cargo run --release --features probes -p ironorb-cli -- bench ... --breakdown"
    )]
    NoProbes,
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

/// Those of the known things that have one of these names; all of them without names.
pub(crate) fn select<T>(
    all: Vec<T>,
    names: &[String],
    name: impl Fn(&T) -> String,
) -> Result<Vec<T>, BenchError> {
    if let Some(unknown) = names.iter().find(|wanted| !all.iter().any(|one| name(one) == **wanted)) {
        let known = all.iter().map(&name).collect::<Vec<_>>().join(", ");
        return Err(BenchError::UnknownRow { name: unknown.clone(), known });
    }
    Ok(all.into_iter().filter(|one| names.is_empty() || names.contains(&name(one))).collect())
}
