//! `ironorb sim validate`, in a build that has benchmarks.

use crate::failure::Failure;

#[cfg(feature = "bench")]
pub(crate) use ironorb_bench::Validate as Arguments;

#[cfg(feature = "bench")]
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let validation = ironorb_bench::validate(arguments).map_err(Failure::new)?;
    crate::output::text(validation)
}

#[cfg(not(feature = "bench"))]
pub(crate) use Unavailable as Arguments;

#[cfg(not(feature = "bench"))]
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.refuse("validate")
}

/// What a build without benchmarks takes instead of options.
#[cfg(not(feature = "bench"))]
#[derive(Debug, clap::Args)]
pub(crate) struct Unavailable {
    /// The options of a build with benchmarks.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    rest: Vec<String>,
}

#[cfg(not(feature = "bench"))]
impl Unavailable {
    pub(super) fn refuse(&self, command: &str) -> Result<(), Failure> {
        let rest: String = self.rest.iter().map(|word| format!(" {word}")).collect();
        Err(Failure::new(format!(
            "this build of ironorb measures nothing; build it with benchmarks: \
             cargo run --release --features bench -- sim {command}{rest}"
        )))
    }
}
