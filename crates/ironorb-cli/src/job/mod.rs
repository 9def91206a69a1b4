//! `ironorb job`: jobs of several calls, and the daemon that runs them for clients.

mod daemon_status;
mod file;
mod run;
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
    /// Run a job of several calls at once, and print how each has ended.
    ///
    /// Each part is a call of any operation of any object; types are found as by `ironorb call`. Exit code 0 if the
    /// quorum is met, 1 if not.
    #[command(after_help = EXAMPLE)]
    Run(run::Arguments),
    /// Serve a daemon, which runs jobs for clients, until a signal (SIGINT, SIGTERM) ends it.
    ///
    /// When clients can be served, the command prints one line `ready URL`; URL is a corbaloc of the daemon. At the signal it
    /// takes no more jobs, and ends when those that it has are over; a second signal ends it at once.
    Serve(serve::Arguments),
}

const EXAMPLE: &str = r#"A job:
  {"parts": [
     {"target": "bank/east", "operation": "balance", "arguments": {"account": 7}, "idempotent": true, "within_ms": 50},
     {"target": "corbaloc::bank:2810/West", "operation": "balance", "arguments": [7]}],
   "quorum": "all", "within_ms": 100, "agent": "localhost:2811"}

  target          a name of the agent, or a reference: IOR:…, corbaloc:…, corbaname:…, file:…
  arguments       an array, or an object by their names
  interface       what the target is, if it is not to be asked
  idempotent      may be carried out twice, so that another server may be asked; hedge_after_ms says when
  quorum          "all" have answered, "any" or {"at_least": N} have results, "best_effort" when the time is over
  architecture    "auto", "sequential", "handle-driven", "forwarding" or "synchronous"; the last two need a daemon
  daemon          HOST:PORT; falls_back: true has parts go from here if it fails"#;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
    }
}
