//! The `ironorb` command: thin commands over the libraries, one file or folder for each group.
//!
//! The commands only read arguments, call a library and print; programs can call the libraries themselves.
//! Exit codes: 0 done, 1 failed (with `error: …` on standard error), 2 wrong usage.

#![forbid(unsafe_code)]
// The print macros panic when the output is closed. `output` prints without panicking.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod bench;
mod bridge;
mod cache;
mod call;
mod calling;
mod completions;
mod cores;
mod definitions;
mod demo;
mod failure;
mod files;
mod idl;
mod ifr;
mod ior;
mod job;
mod naming;
mod output;
mod record;
mod reference;
mod rt;
mod sched;
mod seconds;
mod serve_mock;
mod serving;
mod sim;
mod status;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// IronORB: a CORBA object request broker.
#[derive(Debug, Parser)]
#[command(name = "ironorb", version, arg_required_else_help = true, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve names, or show and change those of a naming service.
    Naming(naming::Arguments),
    /// Serve names of servers that are alive, or show those of an agent.
    Agent(agent::Arguments),
    /// Run a job of several calls at once, or serve a daemon that runs jobs for clients.
    Job(job::Arguments),
    /// Serve IDL definitions, or show those of an interface repository.
    Ifr(ifr::Arguments),
    /// Call any operation of any CORBA object, with JSON for arguments and results.
    Call(call::Arguments),
    /// Serve objects of any interface, with prepared answers.
    ServeMock(serve_mock::Arguments),
    /// Publish objects of other servers, and pass calls of any interface on.
    Bridge(bridge::Arguments),
    /// Record what the calls of clients to a server look like, and show recordings.
    Record(record::Arguments),
    /// Show what an ORB does: threads, connections, queues, counters and latencies.
    Status(status::Arguments),
    /// Show, empty and audit the caches of a server's clients, and say whether caching pays.
    Cache(cache::Arguments),
    /// Say whether the deadlines of a task set hold, and write the table that a system looks up.
    Sched(sched::Arguments),
    /// Simulate a distributed program: its hosts, links, servers and clients, before there are machines for it.
    Sim(sim::Arguments),
    /// Say what a real-time ORB needs of this machine.
    Rt(rt::Arguments),
    /// Show, make and resolve object references.
    Ior(ior::Arguments),
    /// Check IDL files, generate Rust from them, show their definitions.
    Idl(idl::Arguments),
    /// Show what the ORB does: three processes, calls of all kinds, a burst, a restart, and their cost.
    Demo(demo::Arguments),
    /// Measure the cost of calls.
    Bench(bench::Arguments),
    /// Print a script that completes this command in a shell: `source <(ironorb completions bash)`.
    Completions(completions::Arguments),
    /// Print the operations with which a command line could continue.
    #[command(hide = true)]
    CompleteOperations(call::CompleteArguments),
    /// Run the server of the demo.
    #[command(hide = true)]
    DemoServer(demo::ServerArguments),
}

fn command() -> clap::Command {
    Arguments::command().mut_subcommand("bench", bench::with_lists)
}

/// The longest time that the threads of an ORB may take to end, and with them the recording of its calls.
const RECORDINGS_END_MAX: std::time::Duration = std::time::Duration::from_secs(2);

fn main() -> ExitCode {
    let (command_line, orb) = call::take_orb_options(std::env::args_os().collect());
    let matches = command().get_matches_from(command_line);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|e| e.format(&mut command()).exit());
    let done = match arguments.command {
        Command::Call(arguments) => call::run(&arguments, orb),
        Command::Naming(arguments) => naming::run(arguments),
        Command::Agent(arguments) => agent::run(arguments),
        Command::Job(arguments) => job::run(&arguments),
        Command::Ifr(arguments) => ifr::run(arguments),
        Command::ServeMock(arguments) => serve_mock::run(&arguments),
        Command::Bridge(arguments) => bridge::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Cache(arguments) => cache::run(&arguments),
        Command::Sched(arguments) => sched::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Rt(arguments) => rt::run(&arguments),
        Command::Ior(arguments) => ior::run(&arguments),
        Command::Idl(arguments) => idl::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Completions(arguments) => completions::run(&arguments, command()),
        Command::CompleteOperations(arguments) => call::complete(arguments),
        Command::DemoServer(arguments) => demo::run_server(&arguments),
    };
    ironorb_record::wait_for_ends(RECORDINGS_END_MAX);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    /// clap checks a command only when it is used; this checks all of them.
    #[test]
    fn options_refer_to_options_that_there_are() {
        super::command().debug_assert();
    }
}
