//! `ironorb sim calibrate`, in a build that has benchmarks.

#[cfg(feature = "bench")]
pub(crate) use ironorb_bench::Calibrate as Arguments;

#[cfg(not(feature = "bench"))]
pub(crate) use super::validate::Unavailable as Arguments;

use crate::failure::Failure;

#[cfg(feature = "bench")]
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let profile = ironorb_bench::calibrate(arguments).map_err(Failure::new)?;
    crate::output::text(ironorb_bench::summary(&profile))
}

#[cfg(not(feature = "bench"))]
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.refuse("calibrate")
}
