//! The daemon: it makes the calls of its clients' jobs. It reads no arguments and no results.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ironorb::dynamic::ReceivedRequest;
use ironorb::giop::TransmissionCodeSets;
use ironorb::giop::message::Response;
use ironorb::giop::service_context::ServiceContext;
use ironorb::interceptor::FORWARD_CONTEXT;
use ironorb::{
    CompletionStatus, Deferred, MinorCode, ObjectRef, Orb, Reply, SystemException, SystemExceptionKind,
    TypedRef,
};
use ironorb_fan_out::{Order, Part, Plan, Quorum};

use crate::attended::Attended;
use crate::forward::{self, Networks, TAKES_FORWARDED};
use crate::generated::iron_orb::{
    DeferredJobDaemon, JobClient as _, JobClientRef, JobDaemonRef, JobFact, JobPart, JobPlan, JobQuorum,
    PartEnd, PartOutcome, PartReport, PartToken,
};
use crate::jobs::{Count, Jobs};
use crate::part::Done;
use crate::run::{Ending, News, PartRun, Run};
use crate::target::{Handles, InTurn, Target, no_server};
use crate::way::Way;
use crate::wire;

/// The plain key of a daemon: `corbaloc::HOST:PORT/IronORBDaemon`.
pub const DAEMON_KEY: &str = "IronORBDaemon";

/// Makes a [`Daemon`].
pub struct DaemonBuilder {
    threads: usize,
    queue_max: usize,
    handles: Option<Arc<dyn Handles>>,
    networks: Networks,
}

/// A daemon that carries out jobs for its clients: S, HP and FP, SP of the paper need it in their ways.
///
/// A thread carries out a job: with one thread there is one job at a time, as in the paper's single-threaded daemon. Threads are made
/// when they are needed.
pub struct Daemon {
    shared: Arc<Shared>,
    reference: JobDaemonRef,
}

struct Shared {
    orb: Orb,
    jobs: Jobs,
    threads: usize,
    queue_max: usize,
    networks: Networks,
    attended: Attended,
    queue: Mutex<Queue>,
    /// No thread is busy, and the daemon drains.
    drained: Condvar,
    refused: Count,
    forwarded: Count,
    synchronous: Count,
    /// Jobs that began when no thread waited and others were queued.
    queued: Count,
}

#[derive(Default)]
struct Queue {
    /// What waits for a thread.
    tasks: VecDeque<Box<Task>>,
    /// Threads that have a task.
    busy: usize,
    longest: usize,
    /// No more tasks are taken.
    drains: bool,
}

struct Task {
    come: Instant,
    parts: Vec<JobPart>,
    plan: JobPlan,
    to: To,
}

/// Who is told.
enum To {
    Caller(Reply<Vec<PartReport>, SystemException>),
    Client(String, Vec<PartToken>),
}

impl Daemon {
    /// A daemon that runs as many jobs at a time as there are threads.
    pub fn builder() -> DaemonBuilder {
        DaemonBuilder { threads: 64, queue_max: 1_024, handles: None, networks: Networks::local() }
    }

    /// Its reference.
    pub fn reference(&self) -> &JobDaemonRef {
        &self.reference
    }

    /// Its facts, as clients see them.
    pub fn facts(&self) -> Vec<(String, u64)> {
        self.shared.facts().into_iter().map(|fact| (fact.name, fact.value)).collect()
    }

    /// Takes no more jobs, and waits until those that it has are over. New ones get TRANSIENT.
    pub fn drain(self) {
        let mut queue = self.shared.queue();
        queue.drains = true;
        while queue.busy > 0 {
            queue = self.shared.drained.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        drop(queue);
        self.shared.attended.end();
    }
}

impl DaemonBuilder {
    /// How many jobs run at a time; 1 is the paper's single-threaded daemon. Default: 64.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> DaemonBuilder {
        self.threads = threads.max(1);
        self
    }

    /// How many jobs may wait for a thread; more are refused with TRANSIENT. Default: 1,024.
    #[must_use]
    pub fn queue_max(mut self, jobs: usize) -> DaemonBuilder {
        self.queue_max = jobs;
        self
    }

    /// Where names are resolved. Without it, parts name references.
    #[must_use]
    pub fn handles(mut self, handles: Arc<dyn Handles>) -> DaemonBuilder {
        self.handles = Some(handles);
        self
    }

    /// Where clients are that may be called with results. Default: on this machine.
    #[must_use]
    pub fn networks(mut self, networks: Networks) -> DaemonBuilder {
        self.networks = networks;
        self
    }

    /// Serves clients at the plain key [`DAEMON_KEY`] of the ORB.
    pub fn serve(self, orb: &Orb) -> Result<Daemon, SystemException> {
        let DaemonBuilder { threads, queue_max, handles, networks } = self;
        let mut jobs = Jobs::builder(orb);
        if let Some(handles) = handles {
            jobs = jobs.handles(handles);
        }
        let (queue, drained, refused, forwarded, synchronous, queued) = Default::default();
        let jobs = jobs.build();
        let orb_of = orb.clone();
        let shared = Arc::new(Shared {
            orb: orb_of,
            jobs,
            threads,
            queue_max,
            networks,
            attended: Attended::default(),
            queue,
            drained,
            refused,
            forwarded,
            synchronous,
            queued,
        });
        let failed = |e: &dyn fmt::Display| {
            SystemException::new(SystemExceptionKind::Initialize, MinorCode::NONE, CompletionStatus::No)
                .with_detail(format!("the daemon cannot be served: {e}"))
        };
        let servant = Deferred(Servant(shared.clone()));
        let reference: JobDaemonRef = orb.root_poa().activate(servant).map_err(|e| failed(&e))?;
        orb.bind_key(DAEMON_KEY, reference.object()).map_err(|e| failed(&e))?;
        Ok(Daemon { shared, reference })
    }
}

struct Servant(Arc<Shared>);

impl DeferredJobDaemon for Servant {
    fn run(&self, parts: &[JobPart], plan: &JobPlan, reply: Reply<Vec<PartReport>, SystemException>) {
        let task = Task { come: Instant::now(), parts: parts.to_vec(), plan: *plan, to: To::Caller(reply) };
        if let Err(task) = self.0.take(Box::new(task))
            && let To::Caller(reply) = task.to
        {
            reply.send(Err(full()));
        }
    }

    fn forward(&self, parts: &[JobPart], plan: &JobPlan, client: &str, tokens: &[PartToken]) {
        let to = To::Client(client.to_owned(), tokens.to_vec());
        let task = Task { come: Instant::now(), parts: parts.to_vec(), plan: *plan, to };
        if let Err(task) = self.0.take(Box::new(task))
            && let To::Client(client, tokens) = task.to
        {
            let shared = self.0.clone();
            self.0.jobs.0.threads.run(move || {
                for token in &tokens {
                    shared.tell(&client, token, &report(Ending::failed(full())));
                }
            });
        }
    }

    fn attend(&self, reply: Reply<bool, SystemException>) {
        self.0.attended.sweep();
        self.0.attended.keep(reply);
    }

    fn facts(&self, reply: Reply<Vec<JobFact>, SystemException>) {
        reply.send(Ok(self.0.facts()));
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a thread a task, or queues it, unless there are too many.
    fn take(self: &Arc<Self>, task: Box<Task>) -> Result<(), Box<Task>> {
        let mut queue = self.queue();
        let waits = queue.busy >= self.threads;
        if queue.drains || (waits && (task.plan.at_once || queue.tasks.len() >= self.queue_max)) {
            drop(queue);
            self.refused.add();
            return Err(task);
        }
        if waits {
            queue.tasks.push_back(task);
            queue.longest = queue.longest.max(queue.tasks.len());
            self.queued.add();
            return Ok(());
        }
        queue.busy += 1;
        drop(queue);
        let shared = self.clone();
        self.jobs.0.threads.run(move || shared.work(task));
        Ok(())
    }

    /// Carries out a task, and those that wait then.
    fn work(&self, task: Box<Task>) {
        let mut next = task;
        loop {
            // A panic was reported, and its client has been told when the reply was dropped.
            let _its_panic_ends_it_alone = catch_unwind(AssertUnwindSafe(|| self.carry_out(*next)));
            let mut queue = self.queue();
            match queue.tasks.pop_front() {
                Some(task) => next = task,
                None => {
                    queue.busy -= 1;
                    if queue.busy == 0 {
                        self.drained.notify_all();
                    }
                    return;
                }
            }
        }
    }

    fn carry_out(&self, task: Task) {
        let Task { come, parts, mut plan, to } = task;
        // What has passed while it waited.
        if let Some(limit) = wire::limit(plan.within_us) {
            plan.within_us = wire::micros(Some(limit.saturating_sub(come.elapsed())));
        }
        match to {
            To::Caller(reply) => {
                self.synchronous.add();
                if reply.is_cancelled() {
                    return; // nobody waits
                }
                let note = |sender: Sender<News>| {
                    reply.on_cancel(move || drop(sender.send(News::GivenUp)));
                };
                let endings = self.run(&parts, &plan, note);
                reply.send(Ok(endings.into_iter().map(report).collect()));
            }
            To::Client(client, tokens) => {
                self.forwarded.add();
                self.forward(&parts, &plan, &client, &tokens);
            }
        }
    }

    /// Makes the calls of some parts. `note` is told by what they are given up.
    fn run(&self, parts: &[JobPart], plan: &JobPlan, note: impl FnOnce(Sender<News>)) -> Vec<Ending> {
        let mut failures: Vec<Option<SystemException>> = Vec::with_capacity(parts.len());
        let (mut listed, mut runs) = (Vec::new(), Vec::new());
        for part in parts {
            match self.part_run(part) {
                Ok(run) => {
                    let servers = u32::try_from(run.target.servers()).unwrap_or(u32::MAX);
                    let time = wire::limit(part.within_us);
                    listed.push(Part { time, may_be_repeated: part.idempotent, servers, hedge_after: None });
                    runs.push(run);
                    failures.push(None);
                }
                Err(e) => failures.push(Some(e)),
            }
        }
        let unsent = parts.len() - runs.len();
        let quorum = match plan.quorum {
            JobQuorum::AllParts => Quorum::All,
            JobQuorum::SomeParts => Quorum::AtLeast(plan.count as usize),
            JobQuorum::BestEffort => Quorum::BestEffort,
        };
        // A part that cannot be sent is one without a result: then all are not to be had.
        let plan = Plan { parts: listed, quorum, order: Order::AtOnce, time: wire::limit(plan.within_us) };
        let way = Way::Direct { verifies: false };
        let mut ended = match quorum {
            Quorum::All if unsent > 0 => runs.iter().map(|_| Ending::unsent()).collect(),
            _ => {
                let run = Run::new(&self.jobs.0, &plan, runs, &way);
                note(run.sender());
                run.run().1
            }
        }
        .into_iter();
        let ending = |failure: Option<SystemException>| match failure {
            Some(e) => Ending::failed(e),
            None => ended.next().unwrap_or_else(Ending::unsent),
        };
        failures.into_iter().map(ending).collect()
    }

    fn part_run(&self, part: &JobPart) -> Result<PartRun, SystemException> {
        let request = Arc::new(wire::request(part)?);
        let mut run = PartRun::new(request, self.target(&part.target)?);
        run.is_idempotent = part.idempotent;
        run.within = wire::limit(part.within_us);
        Ok(run)
    }

    fn target(&self, text: &str) -> Result<Target, SystemException> {
        if text.starts_with("IOR:") || text.starts_with("corbaloc:") {
            return Ok(Target::Object(self.orb.string_to_object(text)?));
        }
        let found = self.jobs.0.resolve(&[text]).pop().unwrap_or_else(|| Err(no_server(text)))?;
        Ok(Target::Servers(InTurn::new(found)))
    }

    /// Has the servers of some parts tell a client what has become of them. Servers that cannot are called.
    fn forward(&self, parts: &[JobPart], plan: &JobPlan, client: &str, tokens: &[PartToken]) {
        for (part, token) in parts.iter().zip(tokens) {
            let server = self.target(&part.target).and_then(|to| to.choose(&self.jobs.0, &[], &part.target));
            let sent = server.and_then(|server| match takes_forwarded(&server.object) {
                true => forward_to(&server.object, part, client, token).map(|()| true),
                false => Ok(false),
            });
            let ending = match sent {
                Ok(true) => continue,
                Ok(false) => {
                    self.run(std::slice::from_ref(part), plan, drop).pop().unwrap_or_else(Ending::unsent)
                }
                Err(e) => Ending::failed(e),
            };
            self.tell(client, token, &report(ending));
        }
    }

    fn tell(&self, client: &str, token: &PartToken, report: &PartReport) {
        let told = forward::client_at(&self.orb, client, &self.networks)
            .and_then(|client: JobClientRef| client.part_done(token, report));
        // A client that cannot be told waits until its time is over.
        drop(told);
    }

    fn facts(&self) -> Vec<JobFact> {
        let queue = self.queue();
        let (queued, busy, longest) = (queue.tasks.len(), queue.busy, queue.longest);
        drop(queue);
        let counts = self.jobs.counts();
        let facts = [
            ("threads", self.threads as u64),
            ("busy", busy as u64),
            ("queued", queued as u64),
            ("queue_max", self.queue_max as u64),
            ("queued_longest", longest as u64),
            ("clients_attending", self.attended.clients() as u64),
            ("jobs_queued_total", self.queued.get()),
            ("jobs_refused_total", self.refused.get()),
            ("jobs_synchronous_total", self.synchronous.get()),
            ("jobs_forwarding_total", self.forwarded.get()),
            ("parts_total", counts.attempts.first),
            ("further_attempts_total", counts.attempts.further),
            ("cancelled_total", counts.cancelled),
        ];
        facts.into_iter().map(|(name, value)| JobFact { name: name.to_owned(), value }).collect()
    }
}

/// How a part has ended, as clients are told.
pub(crate) fn report(ending: Ending) -> PartReport {
    let Ending { done, answer, took, attempts } = ending;
    let outcome = match (done, answer) {
        (Done::Answered, Some(Ok(reply))) => match (wire::results(&reply), reply.is_user_exception()) {
            (Ok(body), false) => PartOutcome::Results(body),
            (Ok(body), true) => PartOutcome::Raised(body),
            (Err(e), _) => PartOutcome::Lost(wire::failure(&e)),
        },
        (Done::Answered, Some(Err(e))) if e.completed == CompletionStatus::Maybe => {
            PartOutcome::Lost(wire::failure(&e))
        }
        (Done::Answered, Some(Err(e))) => PartOutcome::Failure(wire::failure(&e)),
        (Done::Unknown(e), _) => PartOutcome::Lost(wire::failure(&e)),
        (Done::Cancelled { .. } | Done::Answered, _) => PartOutcome::Unlisted { label: PartEnd::Cancelled },
    };
    let attempts = u16::try_from(attempts).unwrap_or(u16::MAX);
    PartReport { outcome, took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX), attempts }
}

/// Whether the server of an object tells results to whom it is asked to.
fn takes_forwarded(object: &ObjectRef) -> bool {
    let mut profiles = object.ior().iiop_profiles();
    profiles.any(|profile| profile.components().any(|component| component.tag == TAKES_FORWARDED))
}

fn forward_to(
    server: &ObjectRef,
    part: &JobPart,
    client: &str,
    token: &PartToken,
) -> Result<(), SystemException> {
    let kept = wire::request(part)?;
    let data = forward::encoded(client, token)?;
    let context = ServiceContext { id: FORWARD_CONTEXT, data: &data };
    let code_sets = kept.code_sets().unwrap_or(TransmissionCodeSets::UNNEGOTIATED);
    let Some(body) = kept.body() else { return Err(full()) };
    let request = ReceivedRequest::written(&part.operation, Response::None, &[context], body, code_sets);
    let request = request.map_err(SystemException::from)?.with_characters(kept.characters());
    let server = request.readable_by(server)?;
    Arc::new(request).passing_to(&server).begin(|_| ())
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon").field("facts", &self.facts()).finish_non_exhaustive()
    }
}

impl fmt::Debug for DaemonBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DaemonBuilder").field("threads", &self.threads).finish_non_exhaustive()
    }
}

#[cold]
fn full() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the daemon has as many jobs as it may have")
}
