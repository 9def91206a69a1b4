//! The machine of a measurement.

use std::fmt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use ironorb_model::profile::ProfileOrigin;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::error::BenchError;
use crate::others::others;

/// Machine, kernel and compiler, without which a figure says little.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    processor: String,
    processors: usize,
    kernel: String,
    /// How the kernel lets threads preempt its own work.
    preemption: String,
    rustc: &'static str,
    profile: &'static str,
    /// The commit of the sources.
    commit: &'static str,
    /// When the measurement began: seconds since 1970, and the date in UTC.
    began: u64,
    date: String,
    /// Time in which other virtual machines had this one's processors during the measurement, in milliseconds.
    steal_ms: f64,
    /// Processor time of other programs during the measurement, in milliseconds.
    others_ms: f64,
    /// What decided the order of blocks, where chance does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// Names and versions of the other ORBs whose programs are here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) orbs: Vec<String>,
    #[serde(skip)]
    before: Before,
}

/// What was so when the measurement began.
#[derive(Debug, Clone)]
struct Before {
    at: Instant,
    steal: Duration,
    others: Duration,
}

impl Machine {
    pub(crate) fn this() -> Machine {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let began =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Machine {
            processor: model.map_or("unknown processor", |(_, model)| model).trim().to_owned(),
            processors: cores().len(),
            kernel: kernel.trim().to_owned(),
            preemption: preemption(),
            rustc: env!("IRONORB_BENCH_RUSTC"),
            profile: env!("IRONORB_BENCH_PROFILE"),
            commit: env!("IRONORB_BENCH_COMMIT"),
            began,
            date: date(began),
            steal_ms: 0.0,
            others_ms: 0.0,
            seed: None,
            orbs: Vec::new(),
            before: Before { at: Instant::now(), steal: steal(), others: others() },
        }
    }

    /// What rows of one run must have in common: what they are called, and what they are here.
    pub(crate) fn identity(&self) -> [(&'static str, String); 5] {
        [
            ("processor", self.processor.clone()),
            ("processors", self.processors.to_string()),
            ("kernel", self.kernel.clone()),
            ("profile", self.profile.to_owned()),
            ("commit", self.commit.to_owned()),
        ]
    }

    /// As a profile names it.
    pub(crate) fn origin(self) -> ProfileOrigin {
        ProfileOrigin {
            processor: self.processor,
            processors: u32::try_from(self.processors).unwrap_or(u32::MAX),
            kernel: self.kernel,
            preemption: self.preemption,
            compiler: format!("{} ({} build)", self.rustc, self.profile),
            commit: self.commit.to_owned(),
            date: self.date,
            orb: String::new(),
            method: String::new(),
            load: 0.0,
            others_percent: 0.0,
            is_quick: false,
        }
    }

    /// The measurement is over.
    pub(crate) fn end(&mut self) {
        self.steal_ms = steal().saturating_sub(self.before.steal).as_secs_f64() * 1e3;
        self.others_ms = others().saturating_sub(self.before.others).as_secs_f64() * 1e3;
    }

    /// Processor time of other programs, in per cent of the time that the measurement took.
    pub(crate) fn others_percent(&self) -> f64 {
        self.others_ms / (self.before.at.elapsed().as_secs_f64() * 1e3) * 100.0
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine   {} ({} usable here)", self.processor, self.processors)?;
        writeln!(f, "kernel    {}, preemption {}", self.kernel, self.preemption)?;
        writeln!(f, "compiler  {} ({} build), commit {}", self.rustc, self.profile, self.commit)?;
        let seed = self.seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
        if !self.orbs.is_empty() {
            writeln!(f, "ORBs      beside this one: {}", self.orbs.join(", "))?;
        }
        let (steal, others) = (self.steal_ms, self.others_ms);
        writeln!(
            f,
            "run       {}, steal time {steal:.0} ms, other programs {others:.0} ms{seed}",
            self.date
        )?;
        if self.profile != "release" {
            writeln!(f, "          not a release build: the figures say nothing about speed")?;
        }
        Ok(())
    }
}

/// How the kernel lets threads preempt its own work, as far as it says so.
fn preemption() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    if read("/sys/kernel/realtime").trim() == "1" {
        return "rt".to_owned();
    }
    // What is in effect stands in parentheses.
    let chosen = read("/sys/kernel/debug/sched/preempt");
    if let Some(model) = chosen.split_once('(').and_then(|(_, rest)| rest.split_once(')')) {
        return model.0.to_owned();
    }
    let asked = read("/proc/cmdline")
        .split_whitespace()
        .find_map(|word| word.strip_prefix("preempt=").map(str::to_owned));
    let version = read("/proc/sys/kernel/version");
    let built = version.split_whitespace().find(|word| word.starts_with("PREEMPT")).unwrap_or("none");
    asked.or_else(preemption_default).unwrap_or_else(|| format!("{built}, model in effect unknown"))
}

/// The model that the kernel was built to have where nothing else is asked for.
fn preemption_default() -> Option<String> {
    let unpacked = Command::new("zcat").arg("/proc/config.gz").stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(unpacked.stdout).ok()?;
    let models = ["none", "voluntary", "lazy", "rt"];
    let is_set = |name: &str| text.lines().any(|line| line.strip_suffix("=y") == Some(name));
    let named = models.into_iter().find(|model| is_set(&format!("CONFIG_PREEMPT_{}", model.to_uppercase())));
    named.or_else(|| is_set("CONFIG_PREEMPT").then_some("full")).map(str::to_owned)
}

/// Time in which other virtual machines had this one's processors, since it was started.
pub(crate) fn steal() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse().ok());
    // The system counts in hundredths of a second here, on every processor.
    Duration::from_millis(ticks.unwrap_or(0_u64) * 10)
}

/// A day and time in UTC, from seconds since 1970.
fn date(seconds: u64) -> String {
    let (days, of_day) = ((seconds / 86_400) as i64, seconds % 86_400);
    // Years are counted from March, so that the day that may be missing is the last one: 719,468 days lie between
    // 1 March of the year 0 and 1970, and 400 years have 146,097 days.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = (if month < 10 { month + 3 } else { month - 9 }, year + era * 400);
    let year = year + i64::from(month <= 2);
    let (hours, minutes) = (of_day / 3_600, of_day / 60 % 60);
    format!("{year}-{month:02}-{of_month:02} {hours:02}:{minutes:02} UTC")
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

/// Runs `start` on one processor. Processes and threads that it starts stay there.
pub(crate) fn on_one_core<T>(start: impl FnOnce() -> Result<T, BenchError>) -> Result<T, BenchError> {
    let _unpin = Unpin::later();
    if let Some(last) = cores().last() {
        pin(*last)?;
    }
    start()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, day) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_772_323_200, "2026-03-01 00:00 UTC"),
            (4_107_542_340, "2100-02-28 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), day);
        }
    }
}
