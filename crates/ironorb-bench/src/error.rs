//! Errors of benchmarks.

use std::io;

use ironorb_model::OutputError;

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
    /// The ORB reported an error: a call of the benchmark failed, or a setting is wrong.
    #[error("the ORB of the benchmark reports: {0}")]
    Orb(ironorb::Error),
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
    /// A breakdown was requested from a program without probes.
    #[error(
        "this program was built without the ORB's probes, which cost nothing that way; to see where time goes, build it \
         with them: cargo run --release --features probes -p ironorb-cli -- bench ... --breakdown"
    )]
    NoProbes,
    /// An option, an input or a tool's output cannot be used, for this reason.
    #[error("{0}")]
    Unusable(String),
}

impl<E: Into<ironorb::Error>> From<E> for BenchError {
    fn from(error: E) -> BenchError {
        BenchError::Orb(error.into())
    }
}

impl BenchError {
    /// A process that did not do its part.
    pub(crate) fn process(role: impl Into<String>, what: impl Into<String>) -> BenchError {
        BenchError::Process { role: role.into(), what: what.into() }
    }

    /// An output that is refused.
    pub(crate) fn output(why: OutputError) -> BenchError {
        match why {
            OutputError::CannotWrite { file, source } => {
                BenchError::io(format!("write {}", file.display()))(source)
            }
            other => BenchError::Unusable(other.to_string()),
        }
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
