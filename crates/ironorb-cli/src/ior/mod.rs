//! `ironorb ior`: shows, makes and resolves object references.

mod decode;
mod make;
mod resolve;

use clap::{Args, Subcommand};

use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the contents of a reference: type, profiles, addresses, object key, components. Asks no server.
    Decode {
        /// An IOR, corbaloc or corbaname; `file:PATH` reads it from a file, `-` from standard input.
        reference: String,
    },
    /// Print a new IOR, or another reference with changes. Asks no server.
    Make(make::Arguments),
    /// Print the full IOR of a reachable object, and on standard error where it comes from.
    Resolve(resolve::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Decode { reference } => decode::run(reference),
        Command::Make(arguments) => make::run(arguments),
        Command::Resolve(arguments) => resolve::run(arguments),
    }
}
