//! The daemon: it makes the calls of its clients' jobs. It reads no arguments and no results.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironorb::dynamic::ReceivedRequest;
use ironorb::giop::TransmissionCodeSets;
use ironorb::giop::message::Response;
use ironorb::giop::service_context::ServiceContext;
use ironorb::interceptor::FORWARD_CONTEXT;
use ironorb::status::AddedReadings;
use ironorb::{
    CompletionStatus, Deferred, MinorCode, ObjectRef, Orb, Reply, SystemException, SystemExceptionKind,
    TypedRef, with_timeout,
};
use ironorb_fan_out::{Begun, Desk, DeskLimits, Ended, Moment, Order, Part, Plan, Quorum, Taken};

use crate::attended::Attended;
use crate::clock::Alarm;
use crate::counts::{self, Count};
use crate::forward::{self, Networks, TAKES_FORWARDED, TELLERS_MAX, TELLING_MAX};
use crate::generated::iron_orb::{
    DeferredJobDaemon, JobClient as _, JobClientRef, JobDaemonRef, JobFact, JobPart, JobPlan, JobQuorum,
    PartEnd, PartOutcome, PartReport, PartToken,
};
use crate::jobs::Jobs;
use crate::part::Done;
use crate::references::{References, is_reference};
use crate::run::{Ending, News, PartRun, Run, within};
use crate::target::{Chosen, Handles, InTurn, Target, no_server};
use crate::threads::Threads;
use crate::way::Way;
use crate::wire;

/// The plain key of a daemon: `corbaloc::HOST:PORT/IronORBDaemon`.
pub const DAEMON_KEY: &str = "IronORBDaemon";

/// Makes a [`Daemon`].
pub struct DaemonBuilder {
    threads: usize,
    queue_max: usize,
    queue_octets_max: usize,
    handles: Option<Arc<dyn Handles>>,
    networks: Networks,
}

/// A daemon that carries out jobs for its clients: FP and SP of the paper need it.
///
/// It has so many jobs under way as a daemon would whose threads each carry out one: with one thread there is one job at a time, as in
/// the paper's single-threaded daemon. But no thread waits with a job: the threads that bring requests and replies carry it on.
pub struct Daemon {
    shared: Arc<Shared>,
    reference: JobDaemonRef,
    /// Its facts in the ORB's status.
    _readings: AddedReadings,
}

struct Shared {
    orb: Orb,
    jobs: Jobs,
    limits: DeskLimits,
    networks: Networks,
    attended: Attended,
    /// When clients that attend are answered.
    sweep: Mutex<Option<Alarm>>,
    begun: Instant,
    desk: Mutex<Desk<Box<Task>>>,
    references: References,
    /// Threads that tell clients what has become of forwarded parts.
    tellers: Threads,
    /// No job is under way.
    drained: Condvar,
    forwarded: Count,
    synchronous: Count,
}

struct Task {
    parts: Vec<JobPart>,
    plan: JobPlan,
    to: To,
}

impl Task {
    /// About how much memory it takes.
    fn octets(&self) -> usize {
        let of_part = |part: &JobPart| {
            size_of::<JobPart>() + part.target.len() + part.operation.len() + part.arguments.octets.len()
        };
        let of_client = match &self.to {
            To::Caller(_) => 0,
            To::Client(client, tokens) => client.len() + size_of_val(&tokens[..]),
        };
        size_of::<Task>() + of_client + self.parts.iter().map(of_part).sum::<usize>()
    }
}

/// Who is told.
enum To {
    Caller(Reply<Vec<PartReport>, SystemException>),
    Client(String, Vec<PartToken>),
}

impl Daemon {
    /// A daemon that runs as many jobs at a time as there are threads.
    pub fn builder() -> DaemonBuilder {
        let (threads, queue_max, queue_octets_max) = (64, 1_024, 64 << 20);
        DaemonBuilder { threads, queue_max, queue_octets_max, handles: None, networks: Networks::local() }
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
        let mut desk = self.shared.desk();
        desk.drain();
        while !desk.is_drained() {
            desk = self.shared.drained.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
        drop(desk);
        self.shared.attended.end();
    }
}

impl DaemonBuilder {
    /// How many jobs are under way at a time; 1 is the paper's single-threaded daemon. Default: 64.
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

    /// How many octets the jobs that wait may have together, as arguments and texts; more are refused with TRANSIENT. Default: 64 MiB.
    #[must_use]
    pub fn queue_octets_max(mut self, octets: usize) -> DaemonBuilder {
        self.queue_octets_max = octets;
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
        let DaemonBuilder { threads, queue_max, queue_octets_max, handles, networks } = self;
        let mut jobs = Jobs::builder(orb);
        if let Some(handles) = handles {
            jobs = jobs.handles(handles);
        }
        let (references, drained, forwarded, synchronous) = Default::default();
        let limits = DeskLimits { threads, queue_max, queue_octets_max };
        let jobs = jobs.build();
        let orb_of = orb.clone();
        let shared = Arc::new(Shared {
            orb: orb_of,
            jobs,
            limits,
            networks,
            attended: Attended::default(),
            sweep: Mutex::default(),
            begun: Instant::now(),
            desk: Mutex::new(Desk::new(limits)),
            references,
            tellers: Threads::at_most(TELLERS_MAX),
            drained,
            forwarded,
            synchronous,
        });
        let failed = |e: &dyn fmt::Display| {
            SystemException::new(SystemExceptionKind::Initialize, MinorCode::NONE, CompletionStatus::No)
                .with_detail(format!("the daemon cannot be served: {e}"))
        };
        let servant = Deferred(Servant(shared.clone()));
        let reference: JobDaemonRef = orb.root_poa().activate(servant).map_err(|e| failed(&e))?;
        orb.bind_key(DAEMON_KEY, reference.object()).map_err(|e| failed(&e))?;
        let told = Arc::downgrade(&shared);
        let readings = orb.add_readings(move || {
            let facts = told.upgrade().map(|shared| shared.facts()).unwrap_or_default();
            facts.iter().filter_map(|fact| counts::of_daemon((&fact.name, fact.value))).collect()
        });
        Ok(Daemon { shared, reference, _readings: readings })
    }
}

struct Servant(Arc<Shared>);

impl DeferredJobDaemon for Servant {
    fn run(&self, parts: &[JobPart], plan: &JobPlan, reply: Reply<Vec<PartReport>, SystemException>) {
        let shared = Arc::downgrade(&self.0);
        // Once the task is carried out, another callback takes the place of this one.
        reply.on_cancel(move || {
            if let Some(shared) = shared.upgrade() {
                shared.forget_one();
            }
        });
        let task = Task { parts: parts.to_vec(), plan: *plan, to: To::Caller(reply) };
        if let Err(task) = self.0.take(Box::new(task))
            && let To::Caller(reply) = task.to
        {
            reply.send(Err(full()));
        }
    }

    fn forward(&self, parts: &[JobPart], plan: &JobPlan, client: &str, tokens: &[PartToken]) {
        let to = To::Client(client.to_owned(), tokens.to_vec());
        let task = Task { parts: parts.to_vec(), plan: *plan, to };
        if let Err(task) = self.0.take(Box::new(task))
            && let To::Client(client, tokens) = task.to
        {
            let shared = self.0.clone();
            self.0.tellers.run(move || {
                for token in &tokens {
                    shared.tell(&client, token, &report(Ending::failed(full())));
                }
            });
        }
    }

    fn attend(&self, reply: Reply<bool, SystemException>) {
        self.0.attended.keep(reply);
        self.0.set_sweep();
    }

    fn facts(&self, reply: Reply<Vec<JobFact>, SystemException>) {
        reply.send(Ok(self.0.facts()));
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk<Box<Task>>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has those that attend answered when they have waited long enough.
    fn set_sweep(self: &Arc<Self>) {
        let mut sweep = self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        if sweep.is_some() {
            return;
        }
        let shared = Arc::downgrade(self);
        let wake = move || {
            if let Some(shared) = shared.upgrade() {
                shared.attended.sweep();
                *shared.sweep.lock().unwrap_or_else(PoisonError::into_inner) = None;
                shared.set_sweep();
            }
        };
        *sweep = self.attended.sweeps_at().map(|at| self.jobs.0.clock.wake(at, wake));
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// A caller has gone: its task takes no room where others wait.
    fn forget_one(&self) {
        let gone = self.desk().remove(|task| matches!(&task.to, To::Caller(reply) if reply.is_cancelled()));
        drop(gone); // not under the lock: it has the reply
    }

    /// Begins a task, or has it wait, unless there are too many.
    fn take(self: &Arc<Self>, task: Box<Task>) -> Result<(), Box<Task>> {
        let (octets, at_once) = (task.octets(), task.plan.at_once);
        let taken = self.desk().take(task, octets, at_once, self.now());
        let begun = match taken {
            Taken::Begins(begun) => begun,
            Taken::Waits => return Ok(()),
            Taken::Refused(task) => return Err(task),
        };
        let slot = Slot(self.clone());
        if self.knows_targets(&begun.task.parts) {
            self.carry_out(begun, slot);
        } else {
            self.carry_out_later(begun, slot);
        }
        Ok(())
    }

    /// Carries a task out by a thread that may wait for an answer.
    fn carry_out_later(self: &Arc<Self>, begun: Begun<Box<Task>>, slot: Slot) {
        let shared = self.clone();
        self.jobs.0.threads.run(move || shared.carry_out(begun, slot));
    }

    /// Whether nobody need be asked where the parts go.
    fn knows_targets(&self, parts: &[JobPart]) -> bool {
        parts.iter().all(|part| is_reference(&part.target) || self.jobs.0.knows(&part.target))
    }

    /// Begins what a task asks for. `slot` is its own until all of that is over.
    fn carry_out(self: &Arc<Self>, begun: Begun<Box<Task>>, slot: Slot) {
        let time = begun.left(wire::limit(begun.task.plan.within_us));
        let times: Vec<_> =
            begun.task.parts.iter().map(|part| begun.left(wire::limit(part.within_us))).collect();
        let Task { parts, plan, to } = *begun.task;
        match to {
            To::Caller(reply) => {
                let parts: Vec<TimedPart<'_>> = parts.iter().zip(times).collect();
                self.synchronous.add();
                if reply.is_cancelled() {
                    return; // nobody waits
                }
                let prepared = self.prepare(&parts, quorum(&plan), time);
                if let Some(run) = prepared.run.clone() {
                    reply.on_cancel(move || run.bring(News::GivenUp));
                }
                let tellers = self.tellers.clone();
                prepared.begin(move |endings| {
                    let clogged = reply.is_clogged();
                    // The thread that has brought the last news may be one that all jobs need.
                    if !clogged {
                        reply.never_wait();
                    }
                    let send = move || {
                        reply.send(Ok(endings.into_iter().map(report).collect()));
                        drop(slot);
                    };
                    if clogged { tellers.run(send) } else { send() }
                });
            }
            To::Client(client, tokens) => {
                self.forwarded.add();
                let (client, slot, begun) = (Arc::from(client), Arc::new(slot), Instant::now());
                for ((part, of_part), token) in parts.into_iter().zip(times).zip(tokens) {
                    let whom = Whom { client: Arc::clone(&client), token, slot: Arc::clone(&slot) };
                    let until = [time, of_part].into_iter().flatten().min().map(|time| begun + time);
                    self.forward(part, until, whom);
                }
            }
        }
    }

    /// Makes a run of some parts.
    fn prepare(&self, parts: &[TimedPart<'_>], quorum: Quorum, time: Option<Duration>) -> Prepared {
        let begun = Instant::now();
        let mut unsent: Vec<Option<SystemException>> = Vec::with_capacity(parts.len());
        let mut runs = Vec::new();
        for (part, time) in parts.iter().copied() {
            match part_run(part, time, self.target(&part.target)) {
                Ok(run) => {
                    runs.push(run);
                    unsent.push(None);
                }
                Err(e) => unsent.push(Some(e)),
            }
        }
        // To find servers may take a while.
        let passed = begun.elapsed();
        let left = |time: Option<Duration>| time.map(|time| time.saturating_sub(passed));
        runs.iter_mut().for_each(|run: &mut PartRun| run.within = left(run.within));
        let time = left(time);
        // A part that cannot be sent is one without a result: then all are not to be had.
        let is_in_vain = quorum == Quorum::All && unsent.iter().any(Option::is_some);
        let plan = Plan {
            parts: runs.iter().map(|run| self.listed(run)).collect(),
            quorum,
            order: Order::AtOnce,
            time,
        };
        Prepared { run: (!is_in_vain).then(|| self.run_of(plan, runs)), unsent }
    }

    /// A part in the plan of its run.
    fn listed(&self, run: &PartRun) -> Part {
        let servers = u32::try_from(run.target.servers()).unwrap_or(u32::MAX);
        let hedge_after = run.hedges_after(&self.jobs.0);
        Part { time: run.within, may_be_repeated: run.is_idempotent, servers, hedge_after }
    }

    fn run_of(&self, plan: Plan, parts: Vec<PartRun>) -> Arc<Run> {
        Run::new(&self.jobs.0, plan, parts, Way::Direct { verifies: false })
    }

    fn target(&self, text: &str) -> Result<Target, SystemException> {
        if is_reference(text) {
            return Ok(Target::Object(self.references.object(&self.orb, text)?));
        }
        let found = self.jobs.0.resolve(&[text]).pop().unwrap_or_else(|| Err(no_server(text)))?;
        Ok(Target::Servers(InTurn::new(found)))
    }

    /// Has a server of a part tell the client what has become of it. A server that cannot is called.
    fn forward(self: &Arc<Self>, part: JobPart, until: Option<Instant>, whom: Whom) {
        match self.target(&part.target) {
            Ok(target) => {
                self.forward_on(Box::new(Forward { part, target, tried: Vec::new(), until, whom }));
            }
            Err(e) => self.tell_later(whom, Ending::failed(e)),
        }
    }

    /// Sends a part to a server that has not had it. Does not wait.
    fn forward_on(self: &Arc<Self>, mut forward: Box<Forward>) {
        let left = forward.until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return self.tell_later(forward.whom, Ending::unsent());
        }
        let Chosen { object, guard } = match forward.target.choose(&forward.tried, &forward.part.target) {
            Ok(chosen) => chosen,
            Err(e) => return self.tell_later(forward.whom, Ending::failed(e)),
        };
        if !takes_forwarded(&object) {
            let Forward { part, target, whom, .. } = *forward;
            return self.call_for(whom, &part, target, left);
        }
        if forward.tried.is_empty() {
            self.jobs.0.budget.earn();
        }
        forward.tried.push(object.clone());
        match forwarded(&object, &forward.part, &forward.whom) {
            Ok((request, server)) => {
                let passing = within(left, || request.passing_to(&server)).never_waiting();
                let shared = self.clone();
                passing.begin_oneway(move |sent| {
                    drop(guard);
                    shared.was_forwarded(forward, sent);
                });
            }
            Err(e) => self.was_forwarded(forward, Err(e)),
        }
    }

    /// Carries a part out, alone: how many its job needs is its client's affair.
    fn call_for(self: &Arc<Self>, whom: Whom, part: &JobPart, target: Target, time: Option<Duration>) {
        let shared = self.clone();
        match part_run(part, time, Ok(target)) {
            Ok(run) => {
                let plan = Plan {
                    parts: vec![self.listed(&run)],
                    quorum: Quorum::All,
                    order: Order::AtOnce,
                    time: None,
                };
                self.run_of(plan, vec![run]).begin(move |mut over| {
                    shared.tell_later(whom, over.parts.pop().unwrap_or_else(Ending::unsent));
                });
            }
            Err(e) => self.tell_later(whom, Ending::failed(e)),
        }
    }

    /// A server has been sent a part, or has not. Then another one is, if there is one and the budget allows it, and else the client
    /// is told: nobody else would.
    fn was_forwarded(self: &Arc<Self>, forward: Box<Forward>, sent: Result<(), SystemException>) {
        let Err(e) = sent else { return };
        let may_go_on = match wire::of_attempt(&e).ended() {
            Ended::NotExecuted => true,
            Ended::MaybeExecuted => forward.part.idempotent,
            Ended::Result | Ended::Exception | Ended::Cancelled => false,
        };
        let has_others = forward.tried.len() < forward.target.servers();
        match may_go_on && has_others && self.jobs.0.budget.spend() {
            true => self.forward_on(forward),
            false => self.tell_later(forward.whom, Ending::failed(e)),
        }
    }

    /// Tells a client what has become of a part, by a thread that may wait for an answer.
    fn tell_later(self: &Arc<Self>, whom: Whom, ending: Ending) {
        let shared = self.clone();
        self.tellers.run(move || {
            shared.tell(&whom.client, &whom.token, &report(ending));
            drop(whom.slot);
        });
    }

    fn tell(&self, client: &str, token: &PartToken, report: &PartReport) {
        let told = with_timeout(Some(TELLING_MAX), || {
            forward::client_at(&self.orb, client, &self.networks)
                .and_then(|client: JobClientRef| client.part_done(token, report))
        });
        // A client that cannot be told waits until its time is over.
        drop(told);
    }

    fn facts(&self) -> Vec<JobFact> {
        let desk = self.desk().counts();
        let counts = self.jobs.counts();
        let facts = [
            ("threads", self.limits.threads as u64),
            ("busy", desk.busy as u64),
            ("queued", desk.queued as u64),
            ("queued_octets", desk.queued_octets as u64),
            ("queue_max", self.limits.queue_max as u64),
            ("queued_longest", desk.queued_longest as u64),
            ("clients_attending", self.attended.clients() as u64),
            ("jobs_queued_total", desk.queued_total),
            ("jobs_refused_total", desk.refused_total),
            ("jobs_synchronous_total", self.synchronous.get()),
            ("jobs_forwarding_total", self.forwarded.get()),
            ("parts_total", counts.attempts.first),
            ("further_attempts_total", counts.attempts.further),
            ("hedges_total", counts.hedges),
            ("cancelled_total", counts.cancelled),
        ];
        facts.into_iter().map(|(name, value)| JobFact { name: name.to_owned(), value }).collect()
    }
}

fn part_run(
    part: &JobPart,
    time: Option<Duration>,
    target: Result<Target, SystemException>,
) -> Result<PartRun, SystemException> {
    let mut run = PartRun::new(Arc::new(wire::request(part)?), target?);
    run.is_idempotent = part.idempotent;
    run.within = time;
    run.is_hedged = part.hedged && part.idempotent;
    run.hedge_after = wire::limit(part.hedge_after_us).filter(|_| run.is_hedged);
    Ok(run)
}

/// Parts that are about to be carried out.
struct Prepared {
    /// None if nothing is to be sent.
    run: Option<Arc<Run>>,
    /// Of each part, why it cannot be sent if it cannot.
    unsent: Vec<Option<SystemException>>,
}

impl Prepared {
    /// Carries them out, and calls `then` with the end of each.
    fn begin(self, then: impl FnOnce(Vec<Ending>) + Send + 'static) {
        let Prepared { run, unsent } = self;
        let all = move |ended: Vec<Ending>| {
            let mut ended = ended.into_iter();
            let end = |failure: Option<SystemException>| match failure {
                Some(e) => Ending::failed(e),
                None => ended.next().unwrap_or_else(Ending::unsent),
            };
            then(unsent.into_iter().map(end).collect());
        };
        match run {
            Some(run) => run.begin(move |over| all(over.parts)),
            None => all(Vec::new()),
        }
    }
}

/// A task's right to be under way. When it is dropped, the next task begins.
struct Slot(Arc<Shared>);

impl Drop for Slot {
    fn drop(&mut self) {
        let mut desk = self.0.desk();
        let next = desk.finish(self.0.now());
        if desk.is_drained() {
            self.0.drained.notify_all();
        }
        drop(desk);
        if let Some(next) = next {
            // Not here: a chain of tasks that end at once has any length.
            self.0.carry_out_later(next, Slot(self.0.clone()));
        }
    }
}

/// A part that a server is to have, and to tell a client of.
struct Forward {
    part: JobPart,
    target: Target,
    /// The servers to which it has been sent, in vain but for the last.
    tried: Vec<ObjectRef>,
    /// When its time, or that of its job, is over.
    until: Option<Instant>,
    whom: Whom,
}

/// The client that is told of a part.
struct Whom {
    client: Arc<str>,
    token: PartToken,
    /// Of its job, until a server has been sent the part or the client has been told.
    slot: Arc<Slot>,
}

/// A part, and how much of its own time is left.
type TimedPart<'a> = (&'a JobPart, Option<Duration>);

fn quorum(plan: &JobPlan) -> Quorum {
    match plan.quorum {
        JobQuorum::AllParts => Quorum::All,
        JobQuorum::SomeParts => Quorum::AtLeast(plan.count as usize),
        JobQuorum::BestEffort => Quorum::BestEffort,
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

/// The request by which a server learns of a part, and whom it is to tell, and the server that reads it.
fn forwarded(
    server: &ObjectRef,
    part: &JobPart,
    whom: &Whom,
) -> Result<(Arc<ReceivedRequest>, ObjectRef), SystemException> {
    let kept = wire::request(part)?;
    let data = forward::encoded(&whom.client, &whom.token)?;
    let context = ServiceContext { id: FORWARD_CONTEXT, data: &data };
    let code_sets = kept.code_sets().unwrap_or(TransmissionCodeSets::UNNEGOTIATED);
    let Some(body) = kept.body() else { return Err(full()) };
    let request = ReceivedRequest::written(&part.operation, Response::None, &[context], body, code_sets);
    let request = request.map_err(SystemException::from)?.with_characters(kept.characters());
    let server = request.readable_by(server)?;
    Ok((Arc::new(request), server))
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
