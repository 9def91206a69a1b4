//! One job under way: threads bring what happens, have the machine decide, and carry out its steps.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironorb::dynamic::{PassingHandle, RawReply, ReceivedRequest};
use ironorb::giop::ior::OMNIORB_ORB_TYPE;
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, PendingHandle, SystemException, SystemExceptionKind, with_timeout,
};
use ironorb_fan_out::{
    Attempt, Ended, Executed, Job, Moment, Next, Order, Outcome, Part, Plan, RaisedBy, Start, Starts, Step,
    Token, Told, Trip, Verdict, daemons_share, is_nearly_over,
};

use crate::clock::Alarm;
use crate::generated::iron_orb::{JobPlan, PartOutcome, PartReport};
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
    /// Whether another server is asked when one is late. Then the latencies of its calls are kept.
    pub(crate) is_hedged: bool,
    /// After which time, if its caller says so.
    pub(crate) hedge_after: Option<Duration>,
    /// Why the servers of its name are not known.
    pub(crate) unknown: Option<SystemException>,
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
    /// By which it ends, and whether its server may be told that.
    handle: Option<(PassingHandle, bool)>,
    _guard: Option<Box<dyn std::any::Any + Send>>,
    /// It has been answered, or cancelled.
    is_over: bool,
}

/// What happens to a run.
pub(crate) enum News {
    Begin,
    Ended(Attempt, Answer),
    /// It has come to nothing here: no servant has spoken.
    Unsent(Attempt, SystemException),
    /// The daemon, or a server, has told how a part has ended.
    Told(Attempt, Result<PartReport, SystemException>),
    /// It may be time for the machine.
    Time,
    GivenUp,
}

impl PartRun {
    pub(crate) fn new(request: Arc<ReceivedRequest>, target: Target) -> PartRun {
        PartRun {
            request,
            target,
            is_idempotent: false,
            within: None,
            is_hedged: false,
            hedge_after: None,
            unknown: None,
            attempts: Vec::new(),
            tried: Vec::new(),
            begun: None,
            failure: None,
            ended: None,
        }
    }

    /// After which time another server is asked.
    pub(crate) fn hedges_after(&self, shared: &Shared) -> Option<Duration> {
        match (self.is_hedged, self.hedge_after) {
            (true, None) => shared.hedge_after(self.request.operation()),
            (_, given) => given,
        }
    }

    /// Keeps an attempt, in the place of what it was before.
    fn put(&mut self, attempt: Attempt, run: AttemptRun) {
        match self.attempts.get_mut(attempt.number as usize) {
            Some(before) => *before = run,
            None => self.attempts.push(run),
        }
    }

    /// Chooses where an attempt goes.
    fn choose(&mut self) -> Result<Chosen, SystemException> {
        match self.unknown.take() {
            Some(e) => Err(e),
            // The program's own choice may panic, on a thread that the whole job depends on.
            None => {
                let choose = || self.target.choose(&self.tried, self.request.operation());
                catch_unwind(AssertUnwindSafe(choose)).unwrap_or_else(|_reported| Err(no_choice()))
            }
        }
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

/// One job under way. No thread waits with it: whoever brings news has the machine decide, and carries out its steps. One thread does
/// so at a time; news that come meanwhile wait for it.
pub(crate) struct Run {
    pub(crate) shared: Arc<Shared>,
    plan: Plan,
    begun: Instant,
    inbox: Mutex<Inbox>,
    /// Of the thread that drives.
    course: Mutex<Course>,
    /// The job is over, or its caller must look at the time anew.
    changed: Condvar,
}

/// What has come, and what the run has come to.
struct Inbox {
    news: VecDeque<News>,
    /// A thread drives.
    is_driven: bool,
    /// When it is time for the machine.
    wakes_at: Option<Moment>,
    then: Then,
}

/// Who is told that the job is over.
enum Then {
    /// The thread that waits in [`Run::run`].
    Waits,
    Calls(Box<dyn FnOnce(Over) + Send>),
    /// It is over.
    Over(Option<Over>),
}

/// The end of a run.
pub(crate) struct Over {
    pub(crate) verdict: Verdict,
    pub(crate) parts: Vec<Ending>,
    /// Parts went directly, because the daemon had not taken them.
    pub(crate) has_fallen_back: bool,
}

/// Where a run stands.
struct Course {
    machine: Job,
    parts: Vec<PartRun>,
    /// Which attempts wait to be started, and which are at the daemon.
    trip: Trip,
    /// What servers are to tell results with.
    tokens: Vec<Token>,
    /// The requests that the daemon answers.
    calls: Vec<PendingHandle>,
    /// By which the run is woken.
    alarm: Option<Alarm>,
    /// Attempts that began while another one of their part was not answered.
    hedges: Vec<Attempt>,
    has_fallen_back: bool,
}

/// A thread that drives a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Driver {
    /// The job's caller, who waits for its end.
    Caller,
    /// One that may wait for an answer.
    Worker,
    /// One that others need: it must not wait.
    Busy,
}

impl Run {
    /// A run, which begins when [`run`](Self::run) or [`begin`](Self::begin) is called.
    pub(crate) fn new(shared: &Arc<Shared>, plan: Plan, parts: Vec<PartRun>, way: Way) -> Arc<Run> {
        let machine = Job::new(&plan, shared.budget.clone());
        let trip = Trip::new(way, parts.len());
        let (tokens, calls, alarm, hedges, has_fallen_back) = Default::default();
        let course = Course { machine, parts, trip, tokens, calls, alarm, hedges, has_fallen_back };
        let course = Mutex::new(course);
        let news = VecDeque::from([News::Begin]);
        // Until it begins nobody else may drive it.
        let inbox = Inbox { news, is_driven: true, wakes_at: None, then: Then::Waits };
        let (shared, inbox, changed) = (shared.clone(), Mutex::new(inbox), Condvar::new());
        Arc::new(Run { shared, plan, begun: Instant::now(), inbox, course, changed })
    }

    /// Runs the job. Blocks until it is over.
    pub(crate) fn run(self: &Arc<Self>) -> Over {
        self.drive(Driver::Caller);
        let mut inbox = self.inbox();
        loop {
            if let Then::Over(over) = &mut inbox.then
                && let Some(over) = over.take()
            {
                return over;
            }
            let left = inbox.wakes_at.map(|at| self.left_until(at));
            inbox = match left {
                Some(left) if left.is_zero() && !inbox.is_driven => {
                    drop(inbox);
                    self.bring_by(News::Time, Driver::Caller);
                    self.inbox()
                }
                Some(left) if !left.is_zero() => {
                    self.changed.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner).0
                }
                // Who drives looks at the time before it leaves.
                _ => self.changed.wait(inbox).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Runs the job, and calls `then` when it is over: before this returns, or on another thread, which must not be kept. Does not wait.
    pub(crate) fn begin(self: &Arc<Self>, then: impl FnOnce(Over) + Send + 'static) {
        self.inbox().then = Then::Calls(Box::new(then));
        self.drive(Driver::Busy);
    }

    /// Tells the run what has happened. Does not wait.
    pub(crate) fn bring(self: &Arc<Self>, news: News) {
        self.bring_by(news, Driver::Busy);
    }

    fn bring_by(self: &Arc<Self>, news: News, driver: Driver) {
        let mut inbox = self.inbox();
        if matches!(inbox.then, Then::Over(_)) {
            return;
        }
        inbox.news.push_back(news);
        if !std::mem::replace(&mut inbox.is_driven, true) {
            drop(inbox);
            self.drive(driver);
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn left_until(&self, at: Moment) -> Duration {
        Duration::from_nanos(at.as_nanos().saturating_sub(self.now().as_nanos()))
    }

    /// Takes the news until there are none. A thread that must not wait leaves the run to another where it would have to.
    fn drive(self: &Arc<Self>, driver: Driver) {
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let stopped = self.carry_out(&mut course, driver);
            match stopped {
                Some(Stopped::Waits) => {
                    drop(course);
                    let run = self.clone();
                    return self.shared.threads.run(move || run.drive(Driver::Worker));
                }
                Some(Stopped::Over(verdict)) => {
                    let over = self.end(&mut course, verdict);
                    drop(course);
                    return self.is_over(over);
                }
                None => {}
            }
            let mut inbox = self.inbox();
            if let Some(news) = inbox.news.pop_front() {
                drop(inbox);
                self.happens(&mut course, news);
                continue;
            }
            let wakes_at = course.machine.wakes_at();
            if wakes_at.is_some_and(|at| self.left_until(at).is_zero()) {
                drop(inbox);
                course.machine.handle_time(self.now());
                continue;
            }
            let is_new = std::mem::replace(&mut inbox.wakes_at, wakes_at) != wakes_at;
            inbox.is_driven = false;
            match inbox.then {
                // The caller itself looks at the time when it has left here.
                Then::Waits if is_new && driver != Driver::Caller => self.changed.notify_all(),
                Then::Calls(_) if is_new => {
                    drop(inbox);
                    self.set_alarm(&mut course, wakes_at);
                }
                Then::Waits | Then::Calls(_) | Then::Over(_) => {}
            }
            return;
        }
    }

    /// Has the run woken when it is time for the machine.
    fn set_alarm(self: &Arc<Self>, course: &mut Course, wakes_at: Option<Moment>) {
        course.alarm = None;
        course.alarm = wakes_at.map(|at| {
            let run = Arc::downgrade(self);
            let wake = move || {
                if let Some(run) = run.upgrade() {
                    run.bring(News::Time);
                }
            };
            self.shared.clock.wake(self.begun + Duration::from_nanos(at.as_nanos()), wake)
        });
    }

    fn happens(self: &Arc<Self>, course: &mut Course, news: News) {
        match news {
            News::Begin => course.machine.begin(self.now()),
            News::Ended(attempt, answer) => self.ended(course, attempt, answer),
            News::Unsent(attempt, e) => {
                course.let_go(attempt);
                self.answered(course, attempt, Ended::NotExecuted, Err(e));
            }
            News::Told(attempt, report) => self.told(course, attempt, report),
            News::Time => course.machine.handle_time(self.now()),
            News::GivenUp => course.machine.give_up(),
        }
    }

    /// What the run has come to. What is told from now on is passed over.
    fn end(&self, course: &mut Course, verdict: Verdict) -> Over {
        course.alarm = None;
        way::forget(&self.shared, &std::mem::take(&mut course.tokens));
        // A daemon that has answered is not disturbed.
        course.calls.drain(..).for_each(|call| call.cancel());
        let parts = std::mem::take(&mut course.parts).into_iter();
        let parts = parts.map(|part| part.ended.unwrap_or_else(Ending::unsent)).collect();
        Over { verdict, parts, has_fallen_back: course.has_fallen_back }
    }

    fn is_over(&self, over: Over) {
        let mut inbox = self.inbox();
        inbox.news.clear();
        match std::mem::replace(&mut inbox.then, Then::Over(None)) {
            Then::Calls(then) => {
                drop(inbox);
                then(over);
            }
            Then::Waits | Then::Over(_) => {
                inbox.then = Then::Over(Some(over));
                drop(inbox);
                self.changed.notify_all();
            }
        }
    }

    /// Carries out all steps.
    fn carry_out(self: &Arc<Self>, course: &mut Course, driver: Driver) -> Option<Stopped> {
        loop {
            match course.machine.poll_step() {
                // A server that has been tried is never chosen again.
                Some(Step::Start { attempt, .. }) => {
                    self.count(course, attempt);
                    course.trip.start(attempt);
                }
                Some(Step::Cancel(attempt)) => self.cancel(course, attempt),
                Some(Step::Tell { part, outcome }) => self.tell(course, part, outcome),
                Some(Step::Over(verdict)) => return Some(Stopped::Over(verdict)),
                None if course.trip.waiting().is_empty() => return None,
                None if driver == Driver::Busy && self.waits(course) => return Some(Stopped::Waits),
                // Those that start together may leave as one message.
                None => self.start(course, driver),
            }
        }
    }

    /// Counts an attempt that is about to start, if it is a further one.
    fn count(&self, course: &mut Course, attempt: Attempt) {
        let counts = &self.shared.counts;
        match course.parts[attempt.part].attempts.iter().any(|other| !other.is_over) {
            _ if attempt.number == 0 => {}
            true => {
                counts.hedges.add();
                course.hedges.push(attempt);
            }
            false => counts.retries.add(),
        }
    }

    /// Whether an answer must be waited for before all attempts have started that are to be.
    fn waits(&self, course: &Course) -> bool {
        let waits = |start: &Start| {
            let is_named = matches!(course.parts[start.attempt.part].target, Target::Name(_));
            is_named || (course.trip.way().verifies() && self.plan.order == Order::InTurn)
        };
        course.trip.waiting().iter().any(|start| !start.through_daemon && waits(start))
    }

    fn start(self: &Arc<Self>, course: &mut Course, driver: Driver) {
        let Starts { through_daemon, directly } = course.trip.take_starts(&course.machine);
        if !through_daemon.is_empty() {
            self.start_through_daemon(course, &through_daemon, driver);
        }
        if !directly.is_empty() {
            // All handles that are needed now are asked for at once.
            self.resolve(course, &directly);
            directly.into_iter().for_each(|attempt| self.start_directly(course, attempt));
        }
    }

    /// Finds the servers of parts that have names. Blocks if there are any.
    fn resolve(&self, course: &mut Course, attempts: &[Attempt]) {
        let is_named = |attempt: &&Attempt| matches!(course.parts[attempt.part].target, Target::Name(_));
        let named: Vec<usize> = attempts.iter().filter(is_named).map(|attempt| attempt.part).collect();
        if named.is_empty() {
            return;
        }
        let ask = || way::resolve(&self.shared, named.iter().copied(), &mut course.parts);
        // The program's own table of names may panic, on a thread that the whole job depends on.
        let asked = catch_unwind(AssertUnwindSafe(|| within(self.time_left(), ask)));
        for part in named {
            if asked.is_err() {
                course.parts[part].unknown = Some(no_choice());
            }
            let known = course.trip.way().servers(course.parts[part].target.servers());
            course.machine.know_servers(part, u32::try_from(known).unwrap_or(u32::MAX));
        }
    }

    fn start_through_daemon(self: &Arc<Self>, course: &mut Course, attempts: &[Attempt], driver: Driver) {
        let begun = Instant::now();
        for attempt in attempts {
            let part = &mut course.parts[attempt.part];
            part.begun.get_or_insert(begun);
            part.put(*attempt, AttemptRun { begun, handle: None, _guard: None, is_over: false });
        }
        let way = course.trip.way();
        let plan = self.plan_left(way);
        let sent = way::send((way, &course.parts), (attempts, &plan, self.time_left()), self);
        course.tokens.extend(sent.tokens);
        let Some(asked) = sent.asked else { return };
        let attempts = attempts.to_vec();
        // The caller has nothing else to do, unless parts have times of their own.
        let is_all = |part: &Part| part.time.is_none() && part.hedge_after.is_none();
        if driver == Driver::Caller && self.plan.parts.iter().all(is_all) {
            let answer = asked.wait();
            course.machine.handle_time(self.now());
            way::tell(self, attempts, answer);
            return;
        }
        course.calls.push(asked.handle());
        let run = self.clone();
        asked.on_reply(move |answer| way::tell(&run, attempts, answer));
    }

    /// What is left of the plan, for a daemon.
    fn plan_left(&self, way: Way) -> JobPlan {
        let (quorum, count) = way::quorum(self.plan.quorum);
        let at_once = matches!(way, Way::Daemon { at_once: true, .. });
        let within = self.time_left().map(daemons_share);
        JobPlan { quorum, count, within_us: wire::micros(within), at_once }
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

    fn start_directly(self: &Arc<Self>, course: &mut Course, attempt: Attempt) {
        let begun = Instant::now();
        course.parts[attempt.part].begun.get_or_insert(begun);
        let limit = self.limit(&course.parts[attempt.part]);
        let part = &mut course.parts[attempt.part];
        let Chosen { object, guard } = match part.choose() {
            Ok(chosen) => chosen,
            Err(e) => {
                part.put(attempt, AttemptRun { begun, handle: None, _guard: None, is_over: false });
                // There is no other server.
                course.machine.know_servers(attempt.part, 0);
                self.bring(News::Unsent(attempt, e));
                return;
            }
        };
        part.tried.push(object.clone());
        let object = match part.request.readable_by(&object) {
            Ok(object) => object,
            Err(e) => {
                part.put(attempt, AttemptRun { begun, handle: None, _guard: None, is_over: false });
                self.bring(News::Unsent(attempt, e));
                return;
            }
        };
        // The thread may be a receiver, or the clock.
        let passing = within(limit, || part.request.passing_to(&object)).never_waiting();
        part.put(
            attempt,
            AttemptRun {
                begun,
                handle: Some((passing.handle(), bears_cancels(&object))),
                _guard: guard,
                is_over: false,
            },
        );
        let run = self.clone();
        let begin = move || {
            let then = run.clone();
            let then = move |answer| then.bring(News::Ended(attempt, answer));
            if let Err(e) = passing.begin(then) {
                run.bring(News::Ended(attempt, Err(e)));
            }
        };
        match course.trip.way().verifies() {
            false => begin(),
            true => {
                let run = self.clone();
                let failed = move |e| run.bring(News::Ended(attempt, Err(e)));
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

    fn cancel(&self, course: &mut Course, attempt: Attempt) {
        self.shared.counts.cancelled.add();
        let part = &mut course.parts[attempt.part];
        if let Some(run) = part.attempts.get_mut(attempt.number as usize) {
            if let Some((handle, bears_cancels)) = run.handle.take() {
                match bears_cancels {
                    true => handle.cancel(),
                    false => handle.give_up(),
                }
            }
            run._guard = None;
            run.is_over = true;
            // What has lost against a hedge: else the delay after which one starts would sink. Of others no time is known.
            let took = run.begun.elapsed();
            if part.attempts.len() > 1 {
                self.measure(course, attempt, took);
            }
        }
    }

    /// Takes note of how long a first attempt has taken. A hedge that comes to nothing has begun too late to tell.
    fn measure(&self, course: &Course, attempt: Attempt, took: Duration) {
        let part = &course.parts[attempt.part];
        if part.is_hedged && attempt.number == 0 {
            self.shared.measured(part.request.operation(), took);
        }
    }

    fn ended(&self, course: &mut Course, attempt: Attempt, answer: Answer) {
        let took = course.let_go(attempt);
        let ended = match &answer {
            Ok(reply) if reply.is_user_exception() => Ended::Exception,
            Ok(_) => Ended::Result,
            // The machine knows when the time is over, and says so then.
            Err(e) if self.is_late(course, attempt, e) => return,
            Err(e) => wire::of_attempt(e).ended(),
        };
        if let Some(took) = took
            && matches!(ended, Ended::Result | Ended::Exception)
        {
            self.measure(course, attempt, took);
        }
        self.answered(course, attempt, ended, answer);
    }

    /// Whether an attempt has failed because its time was over.
    fn is_late(&self, course: &Course, attempt: Attempt, e: &SystemException) -> bool {
        let is_limited = self.plan.time.is_some() || course.parts[attempt.part].within.is_some();
        e.kind == SystemExceptionKind::Timeout && e.minor == MinorCode::CALL_TIMEOUT && is_limited
    }

    fn told(&self, course: &mut Course, attempt: Attempt, report: Result<PartReport, SystemException>) {
        course.let_go(attempt);
        let (told, answer) = self.read(&course.parts[attempt.part], report);
        match course.trip.told(attempt, told, &course.machine) {
            Next::Ended(ended) => self.answered(course, attempt, ended, answer),
            Next::Directly => {
                self.shared.counts.fallbacks.add();
                course.has_fallen_back = true;
            }
            Next::Nothing => {}
        }
    }

    /// What a report says, and the answer that is in it.
    fn read(&self, part: &PartRun, report: Result<PartReport, SystemException>) -> (Told, Answer) {
        let outcome = match report {
            Ok(report) => report.outcome,
            Err(e) => return (Told::DaemonFailed(wire::of_attempt(&e)), Err(e)),
        };
        let object = self.shared.origin();
        let reply = |user_exception, body| match &object {
            Some(object) => wire::reply(object, user_exception, body),
            None => Err(no_server("the job")),
        };
        match &outcome {
            PartOutcome::Results(body) => readable(Told::Result, reply(false, body)),
            PartOutcome::Raised(body) => readable(Told::Exception, reply(true, body)),
            PartOutcome::Failure(failure) => {
                let e = wire::exception(failure);
                (Told::Failed(wire::of_attempt(&e)), Err(e))
            }
            PartOutcome::Lost(failure) => (Told::Lost, Err(wire::exception(failure))),
            _ => {
                let is_late = self.limit(part).is_some_and(is_nearly_over);
                (if is_late { Told::Late } else { Told::Cancelled }, Err(no_server("the part")))
            }
        }
    }

    fn answered(&self, course: &mut Course, attempt: Attempt, ended: Ended, answer: Answer) {
        let has_decided = course.machine.handle_end(attempt, ended, self.now());
        // COMPLETED_NO is what this server knows.
        let is_maybe = has_decided && course.machine.may_be_executed_by_another(attempt);
        let answer = answer.map_err(|e| match e.completed {
            CompletionStatus::No if is_maybe => e.with_completed(CompletionStatus::Maybe),
            _ => e,
        });
        let failure = answer.as_ref().err().cloned();
        let part = &mut course.parts[attempt.part];
        if let Some(e) = failure {
            part.failure = Some(e);
        }
        if has_decided {
            let (took, attempts) = (self.begun.elapsed(), part.attempts.len());
            let done = Done::Answered;
            part.ended = Some(Ending { done, answer: Some(answer), took, attempts });
        }
    }

    fn tell(&self, course: &mut Course, part: usize, outcome: Outcome) {
        if let Outcome::Result(attempt) | Outcome::Exception(attempt, RaisedBy::Application) = outcome
            && course.hedges.contains(&attempt)
        {
            self.shared.counts.hedges_won.add();
        }
        let part = &mut course.parts[part];
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

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// Why a thread no longer carries out steps.
enum Stopped {
    Over(Verdict),
    /// It would have to wait.
    Waits,
}

impl Course {
    /// An attempt is outstanding no longer. Gives how long it was.
    fn let_go(&mut self, attempt: Attempt) -> Option<Duration> {
        let run = self.parts[attempt.part].attempts.get_mut(attempt.number as usize)?;
        run._guard = None;
        run.handle = None;
        run.is_over = true;
        Some(run.begun.elapsed())
    }
}

/// What cannot be read has been carried out nevertheless.
fn readable(told: Told, answer: Answer) -> (Told, Answer) {
    (if answer.is_ok() { told } else { Told::Lost }, answer)
}

/// Whether a CancelRequest does a server no harm. omniORB's loses the connection, with other calls on it; a reference that names no
/// ORB, as a `corbaloc:`, may be one of its.
fn bears_cancels(object: &ObjectRef) -> bool {
    let orb_type = object.ior().iiop_profiles().find_map(|profile| profile.orb_type());
    orb_type.is_some_and(|orb_type| orb_type != OMNIORB_ORB_TYPE)
}

/// Runs `begin`, in which each call may take so long.
pub(crate) fn within<T>(limit: Option<Duration>, begin: impl FnOnce() -> T) -> T {
    match limit {
        Some(limit) => with_timeout(Some(limit), begin),
        None => begin(),
    }
}

#[cold]
fn no_choice() -> SystemException {
    SystemException::new(SystemExceptionKind::Internal, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the choice of a server has panicked")
}

#[cold]
fn not_there() -> SystemException {
    SystemException::new(SystemExceptionKind::ObjectNotExist, MinorCode::NONE, CompletionStatus::No)
}

#[cold]
fn unknown() -> SystemException {
    SystemException::new(SystemExceptionKind::CommFailure, MinorCode::NONE, CompletionStatus::Maybe)
}
