//! One job under way: a thread takes what happens, has the machine decide, and carries out its steps.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use ironorb::dynamic::{PassingHandle, RawReply, ReceivedRequest};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, PendingHandle, SystemException, SystemExceptionKind, with_timeout,
};
use ironorb_fan_out::{Attempt, Ended, Executed, Job, Moment, Order, Outcome, Plan, RaisedBy, Step, Verdict};

use crate::generated::iron_orb::{JobPlan, PartOutcome, PartReport, PartToken};
use crate::jobs::Shared;
use crate::part::Done;
use crate::target::{Chosen, Target, no_server};
use crate::way::{self, Way};
use crate::wire;

/// What a run knows of a part.
pub(crate) struct PartRun {
    pub(crate) request: Arc<ReceivedRequest>,
    pub(crate) target: Target,
    pub(crate) is_idempotent: bool,
    pub(crate) within: Option<Duration>,
    /// Whether the latencies of its calls are to be kept.
    pub(crate) is_measured: bool,
    attempts: Vec<AttemptRun>,
    tried: Vec<ObjectRef>,
    begun: Option<Instant>,
    failure: Option<SystemException>,
    ended: Option<Ending>,
}

/// How a part has ended.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) done: Done,
    /// The reply, or the exception, that has answered it.
    pub(crate) answer: Option<Answer>,
    /// Since the beginning of the job.
    pub(crate) took: Duration,
    pub(crate) attempts: usize,
}

/// What an attempt comes to.
pub(crate) type Answer = Result<RawReply, SystemException>;

struct AttemptRun {
    begun: Instant,
    handle: Option<PassingHandle>,
    _guard: Option<Box<dyn std::any::Any + Send>>,
}

/// What happens to a run.
pub(crate) enum News {
    Ended(Attempt, Answer),
    /// The daemon, or a server, has told how a part has ended.
    Told(Attempt, Result<PartReport, SystemException>),
    GivenUp,
}

impl PartRun {
    pub(crate) fn new(request: Arc<ReceivedRequest>, target: Target) -> PartRun {
        PartRun {
            request,
            target,
            is_idempotent: false,
            within: None,
            is_measured: false,
            attempts: Vec::new(),
            tried: Vec::new(),
            begun: None,
            failure: None,
            ended: None,
        }
    }

    /// Keeps an attempt, in the place of what it was before.
    fn put(&mut self, attempt: Attempt, run: AttemptRun) {
        match self.attempts.get_mut(attempt.number as usize) {
            Some(before) => *before = run,
            None => self.attempts.push(run),
        }
    }

    /// Chooses where an attempt goes. Blocks where a name must be resolved.
    fn choose(&self, shared: &Shared) -> Result<Chosen, SystemException> {
        self.target.choose(shared, &self.tried, self.request.operation())
    }
}

impl Ending {
    /// The end of a part that could not be sent.
    pub(crate) fn failed(e: SystemException) -> Ending {
        Ending { done: Done::Answered, answer: Some(Err(e)), took: Duration::ZERO, attempts: 0 }
    }

    /// The end of a part that was not begun.
    pub(crate) fn unsent() -> Ending {
        let done = Done::Cancelled { may_be_executed: false };
        Ending { done, answer: None, took: Duration::ZERO, attempts: 0 }
    }
}

/// A run of a job.
pub(crate) struct Run<'r> {
    shared: &'r Shared,
    machine: Job,
    plan: &'r Plan,
    parts: Vec<PartRun>,
    way: &'r Way,
    begun: Instant,
    /// What servers are to tell results with.
    tokens: Vec<PartToken>,
    /// The requests that the daemon answers.
    calls: Vec<PendingHandle>,
    sender: Sender<News>,
    news: Receiver<News>,
}

impl<'r> Run<'r> {
    pub(crate) fn new(shared: &'r Shared, plan: &'r Plan, parts: Vec<PartRun>, way: &'r Way) -> Run<'r> {
        let (sender, news) = mpsc::channel();
        let machine = Job::new(plan, shared.budget.clone());
        let (tokens, calls, begun) = (Vec::new(), Vec::new(), Instant::now());
        Run { shared, machine, plan, parts, way, begun, tokens, calls, sender, news }
    }

    /// By which the run may be given up.
    pub(crate) fn sender(&self) -> Sender<News> {
        self.sender.clone()
    }

    /// Runs the job. Blocks until it is over.
    pub(crate) fn run(mut self) -> (Verdict, Vec<Ending>) {
        way::prepare(self.shared, (self.way, self.plan.order), &mut self.parts);
        self.machine.begin(self.now());
        let verdict = loop {
            if let Some(verdict) = self.carry_out() {
                break verdict;
            }
            match self.next() {
                Some(News::Ended(attempt, answer)) => self.ended(attempt, answer),
                Some(News::Told(attempt, report)) => self.told(attempt, report),
                Some(News::GivenUp) => self.machine.give_up(),
                None => self.machine.handle_time(self.now()),
            }
        };
        // What they tell from now on is passed over.
        way::forget(self.shared, &self.tokens);
        // A daemon that has answered is not disturbed.
        self.calls.iter().for_each(PendingHandle::cancel);
        (verdict, self.parts.into_iter().map(|part| part.ended.unwrap_or_else(Ending::unsent)).collect())
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits for what happens next. `None` if it is time for the machine.
    fn next(&self) -> Option<News> {
        let Some(at) = self.machine.wakes_at() else { return self.news.recv().ok() };
        let left = Duration::from_nanos(at.as_nanos().saturating_sub(self.now().as_nanos()));
        self.news.recv_timeout(left).ok()
    }

    /// Carries out all steps. Gives the verdict when the job is over.
    fn carry_out(&mut self) -> Option<Verdict> {
        let mut starts = Vec::new();
        loop {
            match self.machine.poll_step() {
                // A server that has been tried is never chosen again.
                Some(Step::Start { attempt, .. }) => starts.push(attempt),
                Some(Step::Cancel(attempt)) => self.cancel(attempt),
                Some(Step::Tell { part, outcome }) => self.tell(part, outcome),
                Some(Step::Over(verdict)) => return Some(verdict),
                None if starts.is_empty() => return None,
                // Those that start together may leave as one message.
                None => self.start(std::mem::take(&mut starts)),
            }
        }
    }

    fn start(&mut self, starts: Vec<Attempt>) {
        let is_direct = matches!(self.way, Way::Direct { .. });
        let (through_daemon, directly): (Vec<_>, Vec<_>) =
            starts.into_iter().partition(|attempt| !is_direct && attempt.number == 0);
        if !through_daemon.is_empty() {
            let begun = Instant::now();
            for attempt in &through_daemon {
                let part = &mut self.parts[attempt.part];
                part.begun.get_or_insert(begun);
                part.put(*attempt, AttemptRun { begun, handle: None, _guard: None });
            }
            let plan = self.plan_left();
            let sent = (&through_daemon[..], &plan);
            let sent = way::send(self.shared, self.way, &self.parts, sent, &self.sender);
            self.tokens.extend(sent.tokens);
            self.calls.extend(sent.call);
        }
        directly.into_iter().for_each(|attempt| self.start_directly(attempt));
    }

    /// What is left of the plan, for a daemon.
    fn plan_left(&self) -> JobPlan {
        let (quorum, count) = way::quorum(self.plan.quorum);
        let at_once = matches!(self.way, Way::Daemon { at_once: true, .. });
        JobPlan { quorum, count, within_us: wire::micros(self.time_left()), at_once }
    }

    /// How much time the job has left, if it has a limit.
    fn time_left(&self) -> Option<Duration> {
        self.plan.time.map(|time| time.saturating_sub(self.begun.elapsed()))
    }

    /// How long an attempt of a part may take.
    fn limit(&self, part: &PartRun) -> Option<Duration> {
        let since = |begun: Instant| begun.elapsed();
        let of_part =
            part.within.map(|within| within.saturating_sub(part.begun.map(since).unwrap_or_default()));
        [self.time_left(), of_part].into_iter().flatten().min()
    }

    fn start_directly(&mut self, attempt: Attempt) {
        let begun = Instant::now();
        self.parts[attempt.part].begun.get_or_insert(begun);
        let limit = self.limit(&self.parts[attempt.part]);
        let part = &mut self.parts[attempt.part];
        let Chosen { object, guard } = match part.choose(self.shared) {
            Ok(chosen) => chosen,
            Err(e) => {
                part.put(attempt, AttemptRun { begun, handle: None, _guard: None });
                let _the_run_waits = self.sender.send(News::Ended(attempt, Err(e)));
                return;
            }
        };
        part.tried.push(object.clone());
        let object = match part.request.readable_by(&object) {
            Ok(object) => object,
            Err(e) => {
                part.put(attempt, AttemptRun { begun, handle: None, _guard: None });
                let _the_run_waits = self.sender.send(News::Ended(attempt, Err(e)));
                return;
            }
        };
        let passing = within(limit, || part.request.passing_to(&object));
        part.put(attempt, AttemptRun { begun, handle: Some(passing.handle()), _guard: guard });
        let sender = self.sender.clone();
        let begin = move || {
            let on_end = sender.clone();
            let then = move |answer| drop(on_end.send(News::Ended(attempt, answer)));
            if let Err(e) = passing.begin(then) {
                let _the_run_waits = sender.send(News::Ended(attempt, Err(e)));
            }
        };
        match self.way.verifies() {
            false => begin(),
            true => {
                let sender = self.sender.clone();
                let failed = move |e| drop(sender.send(News::Ended(attempt, Err(e))));
                let verify = move || match within(limit, || object.locate()) {
                    Ok(true) => begin(),
                    Ok(false) => failed(not_there()),
                    Err(e) => failed(e.with_completed(CompletionStatus::No)),
                };
                match self.plan.order {
                    Order::InTurn => verify(),
                    Order::AtOnce => self.shared.threads.run(verify),
                }
            }
        }
    }

    fn cancel(&mut self, attempt: Attempt) {
        self.shared.counts.cancelled.add();
        let part = &mut self.parts[attempt.part];
        if let Some(run) = part.attempts.get_mut(attempt.number as usize) {
            if let Some(handle) = run.handle.take() {
                handle.cancel();
            }
            run._guard = None;
            // Else the delay after which a hedge starts would sink.
            let took = run.begun.elapsed();
            self.measure(attempt, took);
        }
    }

    /// Takes note of how long a first attempt has taken. A hedge that comes to nothing has begun too late to tell.
    fn measure(&self, attempt: Attempt, took: Duration) {
        let part = &self.parts[attempt.part];
        if part.is_measured && attempt.number == 0 {
            self.shared.measured(part.request.operation(), took);
        }
    }

    fn ended(&mut self, attempt: Attempt, answer: Answer) {
        let took = self.let_go(attempt);
        let ended = match &answer {
            Ok(reply) if reply.is_user_exception() => Ended::Exception,
            Ok(_) => Ended::Result,
            // The machine knows when the time is over, and says so then.
            Err(e) if self.is_late(attempt, e) => return,
            Err(e) => ended_by(e),
        };
        if let Some(took) = took
            && matches!(ended, Ended::Result | Ended::Exception)
        {
            self.measure(attempt, took);
        }
        self.answered(attempt, ended, answer);
    }

    /// Whether an attempt has failed because its time was over.
    fn is_late(&self, attempt: Attempt, e: &SystemException) -> bool {
        let is_limited = self.plan.time.is_some() || self.parts[attempt.part].within.is_some();
        e.kind == SystemExceptionKind::Timeout && e.minor == MinorCode::CALL_TIMEOUT && is_limited
    }

    fn told(&mut self, attempt: Attempt, report: Result<PartReport, SystemException>) {
        self.let_go(attempt);
        let object = self.shared.origin();
        let outcome = match report {
            Ok(report) => report.outcome,
            // The daemon has not taken it. That is no further attempt.
            Err(e) if e.completed == CompletionStatus::No && self.way.falls_back() => {
                self.shared.counts.fallbacks.add();
                return self.start_directly(attempt);
            }
            Err(e) => return self.answered(attempt, ended_by(&e), Err(e)),
        };
        let reply = |user_exception, body| match &object {
            Some(object) => wire::reply(object, user_exception, body),
            None => Err(no_server("the job")),
        };
        let (ended, answer) = match &outcome {
            PartOutcome::Results(body) => (Ended::Result, reply(false, body)),
            PartOutcome::Raised(body) => (Ended::Exception, reply(true, body)),
            PartOutcome::Failure(failure) => {
                let e = wire::exception(failure);
                (ended_by(&e), Err(e))
            }
            PartOutcome::Lost(failure) => (Ended::MaybeExecuted, Err(wire::exception(failure))),
            _ => (Ended::Cancelled, Err(no_server("the part"))),
        };
        // What cannot be read has been carried out nevertheless.
        let ended = match (&answer, ended) {
            (Err(_), Ended::Result | Ended::Exception) => Ended::MaybeExecuted,
            (_, ended) => ended,
        };
        self.answered(attempt, ended, answer);
    }

    /// An attempt is outstanding no longer. Gives how long it was.
    fn let_go(&mut self, attempt: Attempt) -> Option<Duration> {
        let run = self.parts[attempt.part].attempts.get_mut(attempt.number as usize)?;
        run._guard = None;
        run.handle = None;
        Some(run.begun.elapsed())
    }

    fn answered(&mut self, attempt: Attempt, ended: Ended, answer: Answer) {
        let failure = answer.as_ref().err().cloned();
        let has_decided = self.machine.handle_end(attempt, ended, self.now());
        let part = &mut self.parts[attempt.part];
        if let Some(e) = failure {
            part.failure = Some(e);
        }
        if has_decided {
            let (took, attempts) = (self.begun.elapsed(), part.attempts.len());
            let done = Done::Answered;
            part.ended = Some(Ending { done, answer: Some(answer), took, attempts });
        }
    }

    fn tell(&mut self, part: usize, outcome: Outcome) {
        let part = &mut self.parts[part];
        let (took, attempts) = (self.begun.elapsed(), part.attempts.len());
        let done = match outcome {
            Outcome::Result(_) | Outcome::Exception(_, RaisedBy::Application | RaisedBy::System) => {
                Done::Answered
            }
            Outcome::Cancelled(executed) => Done::Cancelled { may_be_executed: executed == Executed::Maybe },
            Outcome::Unknown => Done::Unknown(part.failure.clone().unwrap_or_else(unknown)),
        };
        match (&done, &mut part.ended) {
            // The answer has come with the event that has decided the part.
            (Done::Answered, Some(_)) => {}
            _ => part.ended = Some(Ending { done, answer: None, took, attempts }),
        }
    }
}

/// What an exception says of an attempt. One that a servant may have raised is an answer, unless it says that another server may do
/// better.
fn ended_by(e: &SystemException) -> Ended {
    use SystemExceptionKind::{
        CodesetIncompatible, CommFailure, NoResources, ObjectNotExist, Rebind, Timeout, Transient,
    };
    match (e.completed, e.kind) {
        (CompletionStatus::Maybe, _) => Ended::MaybeExecuted,
        (
            CompletionStatus::No,
            CodesetIncompatible | Transient | CommFailure | ObjectNotExist | NoResources | Rebind | Timeout,
        ) => Ended::NotExecuted,
        (CompletionStatus::No | CompletionStatus::Yes, _) => Ended::Exception,
    }
}

/// Runs `begin`, in which each call may take so long.
fn within<T>(limit: Option<Duration>, begin: impl FnOnce() -> T) -> T {
    match limit {
        Some(limit) => with_timeout(Some(limit), begin),
        None => begin(),
    }
}

#[cold]
fn not_there() -> SystemException {
    SystemException::new(SystemExceptionKind::ObjectNotExist, MinorCode::NONE, CompletionStatus::No)
}

#[cold]
fn unknown() -> SystemException {
    SystemException::new(SystemExceptionKind::CommFailure, MinorCode::NONE, CompletionStatus::Maybe)
}
