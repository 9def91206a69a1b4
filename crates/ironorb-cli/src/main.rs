//! The `ironorb` command: thin commands over the libraries, one file or folder for each group.
//!
//! Nothing here is more than reading arguments, calling a library and printing; what a command does can be had from
//! the library as well. Exit codes: 0 done, 1 not done (with `error: …` on standard error), 2 wrong usage.

#![forbid(unsafe_code)]

mod failure;
mod idl;
mod ior;
mod naming;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Look inside object references.
    Ior(ior::Arguments),
    /// Check IDL files, generate Rust from them, show what they define.
    Idl(idl::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Naming(arguments) => naming::run(arguments),
        Command::Ior(arguments) => ior::run(&arguments),
        Command::Idl(arguments) => idl::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
