//! What the jobs of a client have in common.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ironorb::status::AddedReadings;
use ironorb::{ObjectRef, Orb, SystemException, TypedRef};
use ironorb_fan_out::{Budget, BudgetLimits, FLOOR, Latencies};

use crate::clock::Clock;
use crate::counts::{Counts, JobCounts};
use crate::forward::Forwards;
use crate::generated::iron_orb::JobDaemonRef;
use crate::job::Job;
use crate::target::{Handles, no_server};
use crate::threads::Threads;

/// What the jobs of a client have in common: where names are resolved, the daemon, and the budget of further requests.
#[derive(Clone)]
pub struct Jobs(pub(crate) Arc<Shared>);

/// Makes [`Jobs`].
pub struct JobsBuilder {
    orb: Option<Orb>,
    handles: Option<Arc<dyn Handles>>,
    daemon: Option<JobDaemonRef>,
    budget: BudgetLimits,
    hedge_floor: Duration,
}

pub(crate) struct Shared {
    orb: Option<Orb>,
    handles: Option<Arc<dyn Handles>>,
    daemon: Option<JobDaemonRef>,
    pub(crate) budget: Arc<Budget>,
    hedge_floor: Duration,
    /// By operation.
    latencies: Mutex<BTreeMap<String, Latencies>>,
    forwards: OnceLock<Result<Forwards, SystemException>>,
    pub(crate) threads: Threads,
    pub(crate) clock: Clock,
    pub(crate) counts: Arc<Counts>,
    /// The counts in the ORB's status. They do not hold what this does.
    _readings: Option<AddedReadings>,
}

impl Jobs {
    /// Jobs of the clients of an ORB.
    pub fn builder(orb: &Orb) -> JobsBuilder {
        let (handles, daemon, budget) = Default::default();
        JobsBuilder { orb: Some(orb.clone()), handles, daemon, budget, hedge_floor: FLOOR }
    }

    /// A job without parts.
    pub fn job(&self) -> Job<()> {
        Job::of(self.clone())
    }

    /// What they have done. The status of the ORB shows the same, of all `Jobs` together.
    pub fn counts(&self) -> JobCounts {
        let awaited = match self.0.forwards.get() {
            Some(Ok(forwards)) => forwards.awaited() as u64,
            Some(Err(_)) | None => 0,
        };
        self.0.counts.get(awaited)
    }

    /// Jobs whose parts have references.
    pub(crate) fn without_orb() -> Jobs {
        let (orb, handles, daemon, budget) = Default::default();
        JobsBuilder { orb, handles, daemon, budget, hedge_floor: FLOOR }.build()
    }
}

impl JobsBuilder {
    /// Where names are resolved.
    #[must_use]
    pub fn handles(mut self, handles: Arc<dyn Handles>) -> JobsBuilder {
        self.handles = Some(handles);
        self
    }

    /// The daemon, by a reference or a `corbaloc:`.
    pub fn daemon(mut self, daemon: &str) -> Result<JobsBuilder, SystemException> {
        let orb = self.orb.as_ref().ok_or_else(|| no_server("the daemon"))?;
        self.daemon = Some(orb.string_to_object(daemon)?.narrow_unchecked());
        Ok(self)
    }

    /// How many further requests, retries and hedges, the jobs may send. Default: 5 % of the first ones, and ten.
    #[must_use]
    pub fn budget(mut self, budget: BudgetLimits) -> JobsBuilder {
        self.budget = budget;
        self
    }

    /// The shortest time after which another server is asked. Default: 1 ms.
    #[must_use]
    pub fn hedge_floor(mut self, floor: Duration) -> JobsBuilder {
        self.hedge_floor = floor;
        self
    }

    /// Makes them.
    pub fn build(self) -> Jobs {
        let JobsBuilder { orb, handles, daemon, budget, hedge_floor } = self;
        let (latencies, forwards, threads, clock) = Default::default();
        let budget = Arc::new(Budget::new(budget));
        let counts = Arc::new(Counts::new(budget.clone()));
        let told = counts.clone();
        let readings = orb.as_ref().map(|orb| orb.add_readings(move || told.readings()));
        Jobs(Arc::new(Shared {
            orb,
            handles,
            daemon,
            budget,
            hedge_floor,
            latencies,
            forwards,
            threads,
            clock,
            counts,
            _readings: readings,
        }))
    }
}

impl Shared {
    /// The servers of names. Blocks as calls do.
    pub(crate) fn resolve(&self, names: &[&str]) -> Vec<Result<Vec<ObjectRef>, SystemException>> {
        match &self.handles {
            Some(handles) => handles.resolve(names),
            None => names.iter().map(|name| Err(no_server(name))).collect(),
        }
    }

    /// Whether the servers of a name are known here.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.handles.as_ref().is_none_or(|handles| handles.knows(name))
    }

    /// The servers of a name, each with the part of the object that it says to be. Blocks as calls do.
    pub(crate) fn part_servers(
        &self,
        name: &str,
    ) -> Result<Vec<(ObjectRef, Option<String>)>, SystemException> {
        self.handles.as_ref().map_or_else(|| Err(no_server(name)), |handles| handles.part_servers(name))
    }

    pub(crate) fn orb(&self) -> Option<&Orb> {
        self.orb.as_ref()
    }

    pub(crate) fn daemon(&self) -> Option<&JobDaemonRef> {
        self.daemon.as_ref()
    }

    /// By what the daemon's bodies are read.
    pub(crate) fn origin(&self) -> Option<ObjectRef> {
        self.daemon.as_ref().map(|daemon| daemon.object().clone())
    }

    /// Who waits for the results of forwarded parts.
    pub(crate) fn forwards(&self) -> Result<&Forwards, SystemException> {
        let make = || Forwards::new(self.orb.as_ref().ok_or_else(|| no_server("the client"))?);
        self.forwards.get_or_init(make).as_ref().map_err(SystemException::clone)
    }

    pub(crate) fn measured(&self, operation: &str, took: Duration) {
        let mut all = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = all.len() < OPERATIONS_MAX;
        match all.get_mut(operation) {
            Some(latencies) => latencies.record(took),
            None if has_room => {
                let mut latencies = Latencies::new(self.hedge_floor);
                latencies.record(took);
                all.insert(operation.to_owned(), latencies);
            }
            None => {}
        }
    }

    /// After which time another server is asked for an operation.
    pub(crate) fn hedge_after(&self, operation: &str) -> Option<Duration> {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).get(operation)?.hedge_after()
    }
}

/// The most operations whose latencies are kept: a daemon's clients name them. About 3.5 KB each. Others have hedges only after times that
/// their callers say.
const OPERATIONS_MAX: usize = 1_024;

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl fmt::Debug for JobsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobsBuilder").field("budget", &self.budget).finish_non_exhaustive()
    }
}
