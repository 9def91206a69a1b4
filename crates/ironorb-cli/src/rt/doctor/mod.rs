//! `ironorb rt doctor`: what delays threads with priorities on this machine, and what to do about it.
//!
//! [`machine`] reads; one module for each subject makes findings of what was read, as plain functions; [`render`] prints.

mod finding;
mod kernel;
mod machine;
mod memory;
mod network;
mod processors;
mod render;
mod rights;
mod throttling;
mod timing;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::output;
use finding::Severity;
use kernel::Preemption;
use machine::Machine;
use render::Report;
use timing::Ticks;

/// Look at this machine, and say what delays threads with priorities and what to do about it.
///
/// Each finding is ok, a note, unknown, a warning (threads with priorities are late at times) or a problem (priorities have
/// no effect). docs/rt-doctor.md says more about each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        ironorb rt doctor\n  \
        sudo ironorb rt doctor --strict --json\n  \
        ironorb rt doctor --process 4711")]
pub(crate) struct Arguments {
    /// End with exit code 1 if there is a warning or a problem. What is unknown is neither.
    #[arg(long)]
    strict: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Look at the rights, limits and environment of this process instead of the doctor's own.
    #[arg(long, value_name = "ID")]
    process: Option<u32>,
    /// Read /proc, /sys and /boot below this folder: a copy from another machine. Nothing is tried then.
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let machine = Machine::new(&arguments.root, arguments.process);
    let report = examine(&machine)?;
    match arguments.json {
        true => output::line(format_args!("{:#}", report.to_json()))?,
        false => output::text(report.to_text())?,
    }
    if arguments.strict && report.worst() >= Severity::Warning {
        return Err(Failure::new("this machine is not ready for real time, as the findings above say"));
    }
    Ok(())
}

fn examine(machine: &Machine) -> Result<Report, Failure> {
    let kernel = machine.read("/proc/sys/kernel/osrelease");
    let kernel = kernel.map_err(|why| {
        Failure::new(format!("no Linux to look at: {why}"))
            .with_help("give the folder that has /proc in it as --root")
    })?;
    let stolen = stolen(machine);
    let findings = [
        rights::findings(machine),
        kernel::findings(machine, None),
        throttling::findings(machine),
        processors::findings(machine),
        network::findings(machine, None),
        memory::findings(machine),
        timing::findings(machine, stolen),
    ];
    let preemption = Preemption::read(machine).map(Preemption::word);
    Ok(Report { kernel, preemption, stolen, findings: findings.into_iter().flatten().collect() })
}

/// The stolen part of a second; of the time since the start for a copy of another machine's files.
fn stolen(machine: &Machine) -> Option<f64> {
    let before = Ticks::read(machine)?;
    if !machine.is_this() {
        return before.stolen_since(Ticks::default());
    }
    thread::sleep(STEAL_WATCH);
    Ticks::read(machine)?.stolen_since(before)
}

/// A hundred ticks or more.
const STEAL_WATCH: Duration = Duration::from_secs(1);
