//! `ironorb bench`: the benchmarks, in a build that has them.

#[cfg(feature = "bench")]
pub(crate) use with_benchmarks::{Arguments, run, with_lists};
#[cfg(not(feature = "bench"))]
pub(crate) use without_benchmarks::{Arguments, run, with_lists};

#[cfg(feature = "bench")]
mod with_benchmarks {
    pub(crate) use ironorb_bench::{Bench as Arguments, with_lists};

    use crate::failure::Failure;

    pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
        ironorb_bench::run(&arguments).map_err(Failure::new)
    }
}

#[cfg(not(feature = "bench"))]
mod without_benchmarks {
    use clap::{Args, Command};

    use crate::failure::Failure;

    #[derive(Debug, Args)]
    #[command(after_help = HOW_TO_GET_IT)]
    pub(crate) struct Arguments {
        /// What to measure.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SUITE AND OPTIONS")]
        rest: Vec<String>,
    }

    const HOW_TO_GET_IT: &str = "This build has no benchmarks. Build with them: \
                                 cargo run --release --features bench -- bench";

    pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
        let rest: String = arguments.rest.iter().map(|word| format!(" {word}")).collect();
        Err(Failure::new(format!(
            "this build of ironorb has no benchmarks; build with them: \
             cargo run --release --features bench -- bench{rest}"
        )))
    }

    pub(crate) fn with_lists(command: Command) -> Command {
        command
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_build_without_benchmarks_prints_the_command_that_runs_them() {
            let rest = ["echo", "--rows", "void"].map(str::to_owned).to_vec();
            let failure = format!("{:?}", run(Arguments { rest }).unwrap_err());
            assert!(failure.contains("--features bench -- bench echo --rows void"), "{failure}");
        }
    }
}
