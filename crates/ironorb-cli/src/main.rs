//! The `ironorb` command: thin commands over the libraries, one file or folder for each group.
//!
//! Nothing here is more than reading arguments, calling a library and printing; what a command does can be had from
//! the library as well. Exit codes: 0 done, 1 not done (with `error: …` on standard error), 2 wrong usage.

#![forbid(unsafe_code)]

mod failure;
mod naming;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// IronORB: a CORBA object request broker.
#[derive(Debug, Parser)]
#[command(name = "ironorb", version, arg_required_else_help = true, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve names, or look at and change those of a naming service.
    Naming(naming::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Naming(arguments) => naming::run(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
