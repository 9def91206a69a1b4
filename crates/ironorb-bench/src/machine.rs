//! The machine of a measurement.

use std::fmt;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::error::BenchError;

/// Machine, kernel and compiler, without which a figure says little.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    processor: String,
    processors: usize,
    kernel: String,
    rustc: &'static str,
    profile: &'static str,
}

impl Machine {
    pub(crate) fn this() -> Machine {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            processor: model.map_or("unknown processor", |(_, model)| model).trim().to_owned(),
            processors: cores().len(),
            kernel: kernel.trim().to_owned(),
            rustc: env!("IRONORB_BENCH_RUSTC"),
            profile: env!("IRONORB_BENCH_PROFILE"),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine   {} ({} usable here)", self.processor, self.processors)?;
        writeln!(f, "kernel    {}", self.kernel)?;
        writeln!(f, "compiler  {} ({} build)", self.rustc, self.profile)?;
        if self.profile != "release" {
            writeln!(f, "          not a release build: the figures say nothing about speed")?;
        }
        Ok(())
    }
}

/// The load average of the last minute. Above about 1, other processes disturb the figures.
pub(crate) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

/// Resident memory in bytes of a process, by its number or `self`; 0 where the system does not report it.
pub(crate) fn resident_bytes_of(process: &str) -> u64 {
    bytes_of(process, "VmRSS:")
}

/// A line about memory in a process's status, in bytes.
pub(crate) fn bytes_of(process: &str, name: &str) -> u64 {
    let kib = status_of(process, name).and_then(|line| line.strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// The number of threads of a process; 0 where the system does not report it.
pub(crate) fn threads_of(process: &str) -> u64 {
    status_of(process, "Threads:").and_then(|line| line.parse().ok()).unwrap_or(0)
}

pub(crate) fn status_of(process: &str, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

/// Processor time of this process.
pub(crate) fn busy() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The processors that this thread may run on.
pub(crate) fn cores() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect(),
        Err(_) => Vec::new(),
    }
}

/// Pins the calling thread, and threads that it starts later, to one processor.
pub(crate) fn pin(core: usize) -> Result<(), BenchError> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|e| BenchError::io(format!("stay on processor {core}"))(e.into()))
}

/// The processors that client and server are pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Placement {
    /// Both on one processor.
    OneCore,
    /// Each on a processor of its own. A machine with one processor uses that for both.
    CoreEach,
}

/// A placement on the processors of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) client: usize,
    pub(crate) server: usize,
}

/// The name of the placement on which client and server share a processor.
pub(crate) const ONE_CORE: &str = "one core";

/// The name of the placement on which each has a processor.
pub(crate) const CORE_EACH: &str = "a core each";

impl Layout {
    /// Every placement that is possible on this machine.
    pub(crate) fn possible() -> Vec<Layout> {
        Layout::of(&[Placement::OneCore, Placement::CoreEach])
    }

    /// These placements, as far as this machine allows them.
    pub(crate) fn of(placements: &[Placement]) -> Vec<Layout> {
        let cores = cores();
        let mut layouts: Vec<Layout> = Vec::new();
        for placement in placements {
            let layout = match (placement, &cores[..]) {
                (_, []) => continue,
                (Placement::CoreEach, [first, second, ..]) => {
                    Layout { name: CORE_EACH, client: *first, server: *second }
                }
                (_, [first, ..]) => Layout { name: ONE_CORE, client: *first, server: *first },
            };
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
        }
        layouts
    }
}

/// Restores the calling thread's processors when dropped.
pub(crate) struct Unpin(Option<CpuSet>);

impl Unpin {
    pub(crate) fn later() -> Unpin {
        Unpin(sched_getaffinity(None).ok())
    }
}

impl Drop for Unpin {
    fn drop(&mut self) {
        if let Some(set) = &self.0 {
            // This cannot fail: the processors were allowed before.
            let _ = sched_setaffinity(None, set);
        }
    }
}
