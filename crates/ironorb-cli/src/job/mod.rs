//! `ironorb job`: jobs of several calls, and the daemon that runs them for clients.

mod daemon_status;
mod serve;

use clap::{Args, Subcommand};

use crate::failure::Failure;
pub(crate) use daemon_status::DaemonStatus;
pub(crate) use serve::DaemonSettings;

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a daemon, which runs jobs for clients, until a signal (SIGINT, SIGTERM) ends it.
    ///
    /// When clients can be served, the command prints one line `ready URL`; URL is a corbaloc of the daemon. At the signal it
    /// takes no more jobs, and ends when those that it has are over; a second signal ends it at once.
    Serve(serve::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Serve(arguments) => serve::run(arguments),
    }
}
