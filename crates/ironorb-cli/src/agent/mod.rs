//! `ironorb agent`: names of servers that are alive.

mod owners;
mod place;
mod register;
mod serve;
mod show;

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::seconds::seconds;
use place::Place;

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve an agent until a signal (SIGINT, SIGTERM) ends it.
    ///
    /// Servers register under names, with leases that they renew; a server that is gone leaves its names within its lease.
    /// When clients can be served, the command prints one line `ready URL`; URL is a corbaloc of the agent. Clients that
    /// know only CosNaming resolve the same names at the address of a naming service there.
    Serve(serve::Arguments),
    /// Register a server, and renew its lease until a signal (SIGINT, SIGTERM) ends the command.
    ///
    /// For servers of other ORBs, started beside each of them: the name is theirs as long as this command runs. It does not
    /// call the server. When the server is registered, the command prints one line `ready NAME`.
    Register(register::Arguments),
    /// Show what an agent holds and has done: its numbers; the processes that have registered, the busiest first, with their
    /// leases and the requests that each has not answered; and the daemon beside it. Exit code 1 if no agent answers.
    Status {
        #[command(flatten)]
        place: Place,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the references of a name's servers, one a line. Exit code 1 if a name has none.
    Resolve {
        #[command(flatten)]
        place: Place,
        /// Only servers with this property, or with this value of it; may be given several times.
        #[arg(long = "where", value_name = "PROPERTY[=VALUE|!=VALUE]")]
        filter: Vec<String>,
        /// The names.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// List names, and how many servers each has.
    List {
        #[command(flatten)]
        place: Place,
        /// Only names that begin with this text.
        #[arg(default_value = "")]
        prefix: String,
    },
    /// Print the servers of all names with a prefix, and every change from then on.
    Watch {
        #[command(flatten)]
        place: Place,
        /// Only names that begin with this text.
        #[arg(default_value = "")]
        prefix: String,
        /// End after this time, in seconds.
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        duration: Option<Duration>,
    },
    /// Have an agent write a copy of its names, and print its path on the agent's machine. The agent must have been started
    /// with --backups. A copy is a store: `ironorb agent serve --store COPY`.
    Backup {
        #[command(flatten)]
        place: Place,
    },
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Register(arguments) => register::run(&arguments),
        Command::Status { place, json } => show::status(&place, json),
        Command::Resolve { place, filter, names } => show::resolve(&place, &filter, &names),
        Command::List { place, prefix } => show::list(&place, &prefix),
        Command::Watch { place, prefix, duration } => show::watch(&place, &prefix, duration),
        Command::Backup { place } => show::backup(&place),
    }
}
