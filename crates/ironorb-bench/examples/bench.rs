//! The benchmarks alone, without the rest of the `ironorb` command:
//! `cargo run --release -p ironorb-bench --example bench -- bench echo`.

use clap::Parser;
use ironorb_bench::{BenchCommand, BenchError, run};

#[derive(Parser)]
enum Command {
    /// Measure.
    #[command(subcommand)]
    Bench(BenchCommand),
}

fn main() -> Result<(), BenchError> {
    let Command::Bench(command) = Command::parse();
    run(command)
}
