//! Errors of benchmarks.

use std::io;

use ironorb::{BuildError, SystemException};

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A call of the system failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The step that failed.
        doing: String,
        /// The reason.
        source: io::Error,
    },
    /// A call of the benchmark failed.
    #[error("a call of the benchmark failed: {0}")]
    Call(#[from] SystemException),
    /// The ORB of the benchmark could not be built.
    #[error(transparent)]
    Orb(#[from] BuildError),
    /// The servant could not be activated.
    #[error("the servant cannot be activated: {0}")]
    Poa(#[from] ironorb::poa::PoaError),
    /// No row has this name.
    #[error("there is no row {name:?}; the rows are {known}")]
    UnknownRow {
        /// The requested name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// A process of the benchmark did not do its part.
    #[error("the process {role} {what}")]
    Process {
        /// The process.
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
    /// A receiver did not get everything that was sent.
    #[error("{sent} sequences of {elements} elements in all were sent, but the receiver counted {tally}")]
    Lost {
        /// Sequences that were sent.
        sent: u64,
        /// Elements of all sequences together.
        elements: u64,
        /// The receiver's count.
        tally: String,
    },
    /// A plot could not be drawn.
    #[error("a plot cannot be drawn: {0}")]
    Plot(String),
    /// A buffer is too small for an element, or too large.
    #[error("a buffer of {bytes} bytes holds no element of type {ty}, or is more than {most} bytes")]
    Buffer {
        /// Bytes of the buffer.
        bytes: usize,
        /// The type of the elements.
        ty: String,
        /// Bytes of the largest buffer.
        most: usize,
    },
    /// A value could not be extracted from its `any`.
    #[error("a value of the benchmark could not be extracted from its any: {0}")]
    Extract(#[from] ironorb::ExtractError),
    /// The IDL of the benchmark was refused.
    #[error("the IDL of the benchmark was refused:\n{0}")]
    Idl(String),
    /// A breakdown was requested from a program without probes.
    #[error(
        "this program was built without the ORB's probes, which cost nothing that way; to see where time goes, build it \
         with them: cargo run --release --features probes -p ironorb-cli -- bench ... --breakdown"
    )]
    NoProbes,
    /// A program for counting is not installed.
    #[error("{program} is not installed; on Debian: apt-get install {program}")]
    MissingTool {
        /// The program, and the Debian package that has it.
        program: &'static str,
    },
    /// A program for counting wrote output that is not understood.
    #[error("{program} did not report {what}")]
    NoCount {
        /// The program.
        program: &'static str,
        /// The missing part of the output.
        what: &'static str,
    },
}

impl BenchError {
    /// A process that did not do its part.
    pub(crate) fn process(role: impl Into<String>, what: impl Into<String>) -> BenchError {
        BenchError::Process { role: role.into(), what: what.into() }
    }

    /// Adds the failed step to an error of the system.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        // The text is made only on an error, so that measured calls do not allocate.
        move |source| BenchError::Io { doing: doing.into(), source }
    }
}

/// The known items that have one of these names; all items if there are no names.
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
