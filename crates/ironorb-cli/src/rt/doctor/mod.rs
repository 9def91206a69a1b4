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
mod trials;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::output;
use crate::rt::measure::{self, Measurements, Plan};
use crate::seconds::seconds;
use finding::{Finding, Severity};
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
    /// Also measure what the system's own means cost: switches, system calls, locks, clock, wake-ups, and how late a thread
    /// on each processor wakes each millisecond. Takes 5 seconds and the time of --probe, and uses real-time priorities
    /// where the system grants them.
    #[arg(long)]
    measure: bool,
    /// How long the periodic wake-ups are measured, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds, requires = "measure")]
    probe: Duration,
    /// How often each other thing is measured. A p99 is shown from 10,000 samples on.
    #[arg(long, value_name = "NUMBER", default_value = "10000", requires = "measure", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    samples: u32,
    /// Look at the rights, limits and environment of this process instead of the doctor's own.
    #[arg(long, value_name = "ID")]
    process: Option<u32>,
    /// Read /proc, /sys and /boot below this folder: a copy from another machine. Nothing is tried then.
    #[arg(long, value_name = "FOLDER", default_value = "/", conflicts_with = "measure")]
    root: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let machine = Machine::new(&arguments.root, arguments.process);
    let report = examine(&machine, arguments)?;
    match arguments.json {
        true => output::line(format_args!("{:#}", report.to_json()))?,
        false => output::text(report.to_text())?,
    }
    if arguments.strict && report.worst() >= Severity::Warning {
        return Err(Failure::new("this machine is not ready for real time, as the findings above say"));
    }
    Ok(())
}

fn examine(machine: &Machine, arguments: &Arguments) -> Result<Report, Failure> {
    let kernel = machine.read("/proc/sys/kernel/osrelease");
    let kernel = kernel.map_err(|why| {
        Failure::new(format!("no Linux to look at: {why}"))
            .with_help("give the folder that has /proc in it as --root")
    })?;
    let before = Ticks::read(machine);
    let measurements = arguments
        .measure
        .then(|| measure(Plan { samples: arguments.samples, probe: arguments.probe }))
        .transpose()?;
    let stolen = stolen(machine, before, measurements.is_some());
    let preemption = Preemption::read(machine).map(Preemption::word);
    Ok(Report { kernel, preemption, stolen, findings: findings(machine, stolen), measurements })
}

fn findings(machine: &Machine, stolen: Option<f64>) -> Vec<Finding> {
    let pi_futexes = machine.is_this().then(trials::pi_futexes).flatten();
    let queues = machine.is_this().then(|| trials::queues(machine)).flatten();
    let findings = [
        rights::findings(machine),
        kernel::findings(machine, pi_futexes),
        throttling::findings(machine),
        processors::findings(machine),
        network::findings(machine, queues.as_deref()),
        memory::findings(machine),
        timing::findings(machine, stolen),
    ];
    findings.into_iter().flatten().collect()
}

fn measure(plan: Plan) -> Result<Measurements, Failure> {
    let cannot = |e| Failure::new(format!("cannot measure: {e}"));
    let program = std::env::current_exe().map_err(cannot)?;
    measure::all(&program, plan).map_err(cannot)
}

/// The stolen part of the time of measurements, else of a second; of the time since the start for a copy of another
/// machine's files.
fn stolen(machine: &Machine, before: Option<Ticks>, has_measured: bool) -> Option<f64> {
    let before = before?;
    if !machine.is_this() {
        return before.stolen_since(Ticks::default());
    }
    if !has_measured {
        thread::sleep(STEAL_WATCH);
    }
    Ticks::read(machine)?.stolen_since(before)
}

/// A hundred ticks or more.
const STEAL_WATCH: Duration = Duration::from_secs(1);
