//! What the jobs of a client count, and how its ORB's status shows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ironorb::status::{Reading, ReadingKind};
use ironorb_fan_out::{Budget, BudgetCounts, Verdict};

use crate::way::{Architecture, Way};

/// What the jobs of a client have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobCounts {
    /// Jobs that have begun.
    pub jobs: u64,
    /// Their parts.
    pub parts: u64,
    /// Jobs that are over, by the ways that they went: in the order of [`JobWay::ALL`].
    pub over: [WayCounts; JobWay::ALL.len()],
    /// Retries: further requests of parts whose last one had failed.
    pub retries: u64,
    /// Hedges: further requests of parts whose last one was not answered yet.
    pub hedges: u64,
    /// Hedges that were answered first.
    pub hedges_won: u64,
    /// Requests that were cancelled.
    pub cancelled: u64,
    /// Parts that went directly, because the daemon had not taken them.
    pub fallbacks: u64,
    /// Parts of jobs that run, whose servers are to tell their results.
    pub awaited: u64,
    /// First and further requests.
    pub attempts: BudgetCounts,
}

/// Which way a job has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobWay {
    /// [`Architecture::Sequential`].
    Sequential,
    /// [`Architecture::HandleDriven`].
    HandleDriven,
    /// [`Architecture::Forwarding`].
    Forwarding,
    /// [`Architecture::Synchronous`].
    Synchronous,
    /// [`Architecture::Auto`], and the daemon has carried it out.
    AutoSynchronous,
    /// [`Architecture::Auto`], and parts of it went from here: there is no daemon, or it has not taken them.
    AutoHandleDriven,
}

/// Jobs that are over and have gone one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WayCounts {
    /// Those whose quorum was met.
    pub met: u64,
    /// Those with too few parts left for their quorum.
    pub unmet: u64,
    /// Those whose time was over before.
    pub late: u64,
    /// Those that were given up.
    pub given_up: u64,
}

impl JobWay {
    /// All ways.
    pub const ALL: [JobWay; 6] = [
        JobWay::Sequential,
        JobWay::HandleDriven,
        JobWay::Forwarding,
        JobWay::Synchronous,
        JobWay::AutoSynchronous,
        JobWay::AutoHandleDriven,
    ];

    /// The paper's name, and whether it was the client's choice: `S`, `HP`, `FP`, `SP`, `auto-SP`, `auto-HP`.
    pub fn name(self) -> &'static str {
        match self {
            JobWay::Sequential => "S",
            JobWay::HandleDriven => "HP",
            JobWay::Forwarding => "FP",
            JobWay::Synchronous => "SP",
            JobWay::AutoSynchronous => "auto-SP",
            JobWay::AutoHandleDriven => "auto-HP",
        }
    }

    /// The way of a job that is over.
    pub(crate) fn of(asked: Architecture, way: &Way, has_fallen_back: bool) -> JobWay {
        match (asked, way) {
            (Architecture::Sequential, _) => JobWay::Sequential,
            (Architecture::HandleDriven, _) => JobWay::HandleDriven,
            (Architecture::Forwarding, _) => JobWay::Forwarding,
            (Architecture::Synchronous, _) => JobWay::Synchronous,
            (Architecture::Auto, Way::Direct { .. }) => JobWay::AutoHandleDriven,
            (Architecture::Auto, _) if has_fallen_back => JobWay::AutoHandleDriven,
            (Architecture::Auto, _) => JobWay::AutoSynchronous,
        }
    }
}

impl JobCounts {
    /// Jobs that are over and have gone this way.
    pub fn of(&self, way: JobWay) -> WayCounts {
        self.over[way as usize]
    }

    /// Jobs that are not over.
    pub fn under_way(&self) -> u64 {
        let WayCounts { met, unmet, late, given_up } = self.over_all();
        self.jobs.saturating_sub(met + unmet + late + given_up)
    }

    fn over_all(&self) -> WayCounts {
        let add = |sum: WayCounts, one: &WayCounts| WayCounts {
            met: sum.met + one.met,
            unmet: sum.unmet + one.unmet,
            late: sum.late + one.late,
            given_up: sum.given_up + one.given_up,
        };
        self.over.iter().fold(WayCounts::default(), add)
    }
}

/// What has been done.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) jobs: Count,
    pub(crate) parts: Count,
    over: [Over; JobWay::ALL.len()],
    pub(crate) retries: Count,
    pub(crate) hedges: Count,
    pub(crate) hedges_won: Count,
    pub(crate) cancelled: Count,
    pub(crate) fallbacks: Count,
    budget: Arc<Budget>,
}

#[derive(Debug, Default)]
struct Over {
    met: Count,
    unmet: Count,
    late: Count,
    given_up: Count,
}

#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.add_many(1);
    }

    pub(crate) fn add_many(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counts {
    pub(crate) fn new(budget: Arc<Budget>) -> Counts {
        let (jobs, parts, over, retries, hedges, hedges_won, cancelled, fallbacks) = Default::default();
        Counts { jobs, parts, over, retries, hedges, hedges_won, cancelled, fallbacks, budget }
    }

    /// A job is over.
    pub(crate) fn over(&self, way: JobWay, verdict: Verdict) {
        let over = &self.over[way as usize];
        let count = match verdict {
            Verdict::Met => &over.met,
            Verdict::CannotBeMet => &over.unmet,
            Verdict::Deadline => &over.late,
            Verdict::GivenUp => &over.given_up,
        };
        count.add();
    }

    pub(crate) fn get(&self, awaited: u64) -> JobCounts {
        // Those that are over are read before those that have begun: no more are over than have begun.
        let over = self.over.each_ref().map(|over| WayCounts {
            met: over.met.get(),
            unmet: over.unmet.get(),
            late: over.late.get(),
            given_up: over.given_up.get(),
        });
        JobCounts {
            over,
            jobs: self.jobs.get(),
            parts: self.parts.get(),
            retries: self.retries.get(),
            hedges: self.hedges.get(),
            hedges_won: self.hedges_won.get(),
            cancelled: self.cancelled.get(),
            fallbacks: self.fallbacks.get(),
            awaited,
            attempts: self.budget.counts(),
        }
    }

    /// What the status of the ORB shows.
    pub(crate) fn readings(&self) -> Vec<Reading> {
        let counts = self.get(0);
        let mut readings = vec![
            counter("jobs_total", None, counts.jobs, "Jobs that have begun."),
            Reading {
                kind: ReadingKind::Gauge,
                ..counter("jobs_under_way", None, counts.under_way(), "Jobs that are not over.")
            },
            counter("job_parts_total", None, counts.parts, "Parts of jobs that have begun."),
        ];
        for way in JobWay::ALL {
            let WayCounts { met, unmet, late, given_up } = counts.of(way);
            let label = Some(("architecture", way.name()));
            readings.extend([
                counter("jobs_met_total", label, met, "Jobs whose quorum was met."),
                counter("jobs_unmet_total", label, unmet, "Jobs with too few parts left for their quorum."),
                counter(
                    "jobs_late_total",
                    label,
                    late,
                    "Jobs whose time was over before their quorum was met.",
                ),
                counter("jobs_given_up_total", label, given_up, "Jobs that were given up."),
            ]);
        }
        let attempts = "Requests for parts of jobs: the first of each, and further ones.";
        let attempt = |kind, value| counter("job_requests_total", Some(("kind", kind)), value, attempts);
        readings.extend([
            attempt("first", counts.attempts.first),
            attempt("retry", counts.retries),
            attempt("hedge", counts.hedges),
            counter("job_hedges_won_total", None, counts.hedges_won, "Hedges that were answered first."),
            counter(
                "job_requests_refused_total",
                None,
                counts.attempts.refused,
                "Retries and hedges that the budget did not allow.",
            ),
            counter("job_cancels_total", None, counts.cancelled, "Requests of jobs that were cancelled."),
            counter(
                "job_fallbacks_total",
                None,
                counts.fallbacks,
                "Parts that went directly, because the daemon had not taken them.",
            ),
        ]);
        readings
    }
}

/// A number that only grows.
fn counter(
    name: &'static str,
    label: Option<(&'static str, &'static str)>,
    value: u64,
    help: &'static str,
) -> Reading {
    Reading { name, kind: ReadingKind::Counter, help, label, value }
}

/// A number of the daemon, as the status of its ORB shows it.
pub(crate) fn of_daemon((name, value): (&str, u64)) -> Option<Reading> {
    let (_, name, help) = *DAEMON.iter().find(|(fact, ..)| *fact == name)?;
    let kind = if name.ends_with("_total") { ReadingKind::Counter } else { ReadingKind::Gauge };
    Some(Reading { kind, ..counter(name, None, value, help) })
}

/// The daemon's facts that are not told by its requests.
const DAEMON: [(&str, &str, &str); 10] = [
    ("threads", "job_daemon_threads", "How many jobs the daemon carries out at a time."),
    ("busy", "job_daemon_busy", "Threads of the daemon that carry out jobs."),
    ("queued", "job_daemon_queued", "Jobs that wait for a thread of the daemon."),
    ("queued_octets", "job_daemon_queued_octets", "The octets of those jobs."),
    ("queue_max", "job_daemon_queue_max", "How many may wait."),
    ("queued_longest", "job_daemon_queued_longest", "The most that have waited."),
    (
        "jobs_queued_total",
        "job_daemon_jobs_queued_total",
        "Jobs that had to wait for a thread of the daemon.",
    ),
    ("jobs_refused_total", "job_daemon_jobs_refused_total", "Jobs that the daemon has refused."),
    (
        "jobs_synchronous_total",
        "job_daemon_jobs_synchronous_total",
        "Jobs that the daemon has carried out and answered (SP).",
    ),
    ("jobs_forwarding_total", "job_daemon_jobs_forwarding_total", "Jobs that the daemon has forwarded (FP)."),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn value(readings: &[Reading], name: &str, label: Option<&str>) -> u64 {
        let found = readings.iter().find(|it| it.name == name && it.label.map(|(_, value)| value) == label);
        found.unwrap_or_else(|| panic!("{name} {label:?}")).value
    }

    #[test]
    fn jobs_are_counted_by_the_way_that_they_went() {
        let (direct, daemon) =
            (Way::Direct { verifies: false }, Way::Daemon { falls_back: true, at_once: true });
        assert_eq!(JobWay::of(Architecture::Auto, &direct, false).name(), "auto-HP");
        assert_eq!(JobWay::of(Architecture::Auto, &daemon, true).name(), "auto-HP");
        assert_eq!(JobWay::of(Architecture::Auto, &daemon, false).name(), "auto-SP");
        // Who asks for SP has SP, also where parts fall back.
        assert_eq!(JobWay::of(Architecture::Synchronous, &daemon, true).name(), "SP");
        for (place, way) in JobWay::ALL.into_iter().enumerate() {
            assert_eq!(place, way as usize);
        }
    }

    #[test]
    fn readings_have_all_counts() {
        let counts = Counts::new(Arc::default());
        counts.jobs.add_many(5);
        counts.over(JobWay::Synchronous, Verdict::Met);
        counts.over(JobWay::AutoHandleDriven, Verdict::Deadline);
        counts.over(JobWay::AutoHandleDriven, Verdict::GivenUp);
        counts.over(JobWay::Sequential, Verdict::CannotBeMet);
        counts.hedges.add_many(3);
        let seen = counts.get(7);
        assert_eq!((seen.awaited, seen.under_way(), seen.of(JobWay::Synchronous).met), (7, 1, 1));
        let readings = counts.readings();
        let of = |name, label| value(&readings, name, label);
        assert_eq!((of("jobs_total", None), of("jobs_under_way", None)), (5, 1));
        assert_eq!((of("jobs_met_total", Some("SP")), of("jobs_met_total", Some("S"))), (1, 0));
        assert_eq!(
            (of("jobs_late_total", Some("auto-HP")), of("jobs_given_up_total", Some("auto-HP"))),
            (1, 1)
        );
        assert_eq!((of("jobs_unmet_total", Some("S")), of("job_requests_total", Some("hedge"))), (1, 3));
    }
}
