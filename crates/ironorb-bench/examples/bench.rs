//! The benchmarks alone, without the rest of the `ironorb` command:
//! `cargo run --release -p ironorb-bench --example bench -- bench echo`.

use clap::Parser;
use ironorb_bench::{Bench, BenchError, run};

#[derive(Parser)]
enum Command {
    /// Measure.
    Bench(Bench),
}

fn main() -> Result<(), BenchError> {
    let Command::Bench(bench) = Command::parse();
    run(&bench)
}
