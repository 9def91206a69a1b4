//! A mission computer and its peripherals: on threads and sockets, or in virtual time.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use avionics::plan::{NORMAL, OVERLOAD, Plan};
use avionics::simulation::{Outcome, Settings, simulate};
use avionics::tally::Summary;
use avionics::threads;
use clap::{Args, Parser, Subcommand};
use ironorb::rt::SchedulingPolicy;
use ironorb_sched::{Nanos, Timeline};

/// A mission computer and its peripherals.
#[derive(Debug, Parser)]
#[command(arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the peripherals.
    Server {
        #[command(flatten)]
        system: System,
        #[command(flatten)]
        load: Load,
    },
    /// Run the tasks of the mission computer against a server, and print what became of them.
    Client {
        #[command(flatten)]
        system: System,
        #[command(flatten)]
        load: Load,
        #[command(flatten)]
        length: Length,
    },
    /// Run both in virtual time.
    Simulate {
        #[command(flatten)]
        load: Load,
        #[command(flatten)]
        length: Length,
        /// The seed of the first releases. With 0 all tasks are released at once.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// The file to write the first 400 ms to, as an SVG image.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct System {
    /// The file with the references of the server's objects.
    #[arg(long, value_name = "FILE", default_value = "avionics.references")]
    references: PathBuf,
    /// Ask the system for no real-time priorities.
    #[arg(long)]
    ordinary: bool,
}

impl System {
    fn scheduling(&self) -> SchedulingPolicy {
        if self.ordinary { SchedulingPolicy::Other } else { SchedulingPolicy::Fifo }
    }
}

#[derive(Debug, Args)]
struct Load {
    /// Add the load that is too much.
    #[arg(long)]
    overload: bool,
}

impl Load {
    fn plan(&self) -> Result<Plan, Box<dyn Error>> {
        Ok(Plan::of_toml(if self.overload { OVERLOAD } else { NORMAL })?)
    }
}

#[derive(Debug, Args)]
struct Length {
    /// How long the tasks are released.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().command {
        Command::Server { system, load } => {
            threads::serve(&load.plan()?, system.scheduling(), &system.references)
        }
        Command::Client { system, load, length } => {
            let length = Duration::from_secs(length.seconds);
            let tallies = threads::call(&load.plan()?, system.scheduling(), &system.references, length)?;
            print!("{}", Summary(&tallies));
            Ok(())
        }
        Command::Simulate { load, length, seed, svg } => {
            let (plan, length) = (load.plan()?, Duration::from_secs(length.seconds));
            let outcome = simulate(&plan, Settings { length, seed })?;
            print!("{}", Summary(&outcome.tallies));
            println!("requests that came too late to be carried out: {}", outcome.refused);
            if let Some(file) = svg {
                fs::write(file, timeline(plan, outcome))?;
            }
            Ok(())
        }
    }
}

/// The start of the simulation, drawn as the analysis draws its timelines.
fn timeline(plan: Plan, outcome: Outcome) -> String {
    let until = Nanos::from_millis(400);
    let mut rows = outcome.rows;
    for row in &mut rows {
        row.bars.retain(|bar| bar.to <= until);
    }
    let mut report = plan.report;
    report.timeline = Timeline { until, rows };
    report.to_svg()
}
