//! `ironorb rt`: what a real-time ORB needs of its machine, and what its lanes do.

mod doctor;
mod measure;
mod watch;

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
    /// Look at this machine, and say what delays threads with priorities and what to do about it.
    Doctor(doctor::Arguments),
    Watch(watch::Arguments),
    /// Send each byte of the input back: the other process of the doctor's measurements.
    #[command(hide = true)]
    Echo,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Watch(arguments) => watch::run(arguments),
        Command::Echo => {
            measure::echo();
            Ok(())
        }
    }
}
