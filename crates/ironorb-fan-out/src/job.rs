//! The machine of one job.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::budget::Budget;
use crate::plan::{HEDGES_MAX, Order, Part, Plan, Quorum};
use crate::time::Moment;

/// One try to have a part executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// The part's place in its plan.
    pub part: usize,
    /// 0 for the first one.
    pub number: u32,
}

/// What is known of an attempt that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// The server has answered with a result.
    Result,
    /// The server has answered with an exception of the application: one that the operation declares, or that its servant raised.
    Exception,
    /// The attempt has failed, and its server has certainly not executed the operation: COMPLETED_NO.
    NotExecuted,
    /// The attempt has failed, and its server may have executed the operation: COMPLETED_MAYBE, or COMPLETED_YES without results.
    MaybeExecuted,
    /// The attempt was cancelled, by the job or by its driver, and its server may have executed the operation.
    Cancelled,
}

/// What a driver does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Send the part's request.
    Start {
        /// The attempt that this is.
        attempt: Attempt,
        /// Where.
        server: Server,
    },
    /// Cancel a request that was sent. What comes of it does not matter any more.
    Cancel(Attempt),
    /// Tell the caller what has become of a part. Each part is told once.
    Tell {
        /// The part's place in its plan.
        part: usize,
        /// What has become of it.
        outcome: Outcome,
    },
    /// The job is over, and all parts have been told. No step follows.
    Over(Verdict),
}

/// Which of its servers an attempt of a part is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Server {
    /// The one that the driver likes best.
    FirstChoice,
    /// Any to which no attempt of this part has been sent.
    Another,
}

/// What has become of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was executed, and this attempt brought the result.
    Result(Attempt),
    /// It has raised an exception, which this attempt brought.
    Exception(Attempt, RaisedBy),
    /// The job has ended without it, its time was over, or its driver has cancelled it.
    Cancelled(Executed),
    /// It has failed, and a server may have executed it.
    Unknown,
}

/// Where an exception comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RaisedBy {
    /// The servant. The part has been executed.
    Application,
    /// The ORB: no server could be brought to execute the part, and none has (COMPLETED_NO). The attempt is the one that failed last.
    System,
}

/// Whether a part that was cancelled has been executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Executed {
    /// Certainly not: it was not sent, or all attempts have failed before a server executed them.
    No,
    /// A server may have executed it, or still may.
    Maybe,
}

/// Why a job is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The quorum is met.
    Met,
    /// Too few parts were left for the quorum.
    CannotBeMet,
    /// The job's time was over.
    Deadline,
    /// The caller has given up.
    GivenUp,
}

/// One job: from its plan, from what happens and from the time it decides which attempts to start and to cancel, and what to tell.
///
/// A driver hands in events with `handle_…`, and then takes all steps with [`Job::poll_step`] in their order. It tells the time
/// when [`Job::wakes_at`] says. Events may come from several threads, under one lock, while another thread still takes steps: an
/// attempt whose step has not been taken yet is forgotten rather than cancelled, and counts as not executed.
///
/// The moments are those of one clock. One that is earlier than the last counts as that.
///
/// Memory: about 100 bytes a part, and 1 byte an attempt. Nothing is allocated after the beginning, unless a part has more than
/// three attempts or the queue of steps grows beyond four for each part.
#[derive(Debug)]
pub struct Job {
    parts: Vec<PartState>,
    quorum: Quorum,
    order: Order,
    time: Option<std::time::Duration>,
    budget: Arc<Budget>,
    has_begun: bool,
    deadline: Option<Moment>,
    verdict: Option<Verdict>,
    /// The parts that have not been told.
    open: usize,
    /// Those that a server has answered, with a result or an application's exception.
    answers: usize,
    results: usize,
    /// The first part that has not started.
    next: usize,
    /// No deadline and no hedge is due before.
    due: Option<Moment>,
    latest: Moment,
    steps: VecDeque<Step>,
}

#[derive(Debug)]
struct PartState {
    part: Part,
    attempts: Vec<AttemptState>,
    outcome: Option<Outcome>,
    deadline: Option<Moment>,
    /// When the next hedge starts.
    hedge_at: Option<Moment>,
    hedges: u32,
    /// Whether an attempt has failed that may have been executed.
    may_be_executed: bool,
    /// Whether the driver has cancelled an attempt by itself.
    was_cancelled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptState {
    /// The driver has not taken the step yet.
    Queued,
    InFlight,
    /// It was cancelled in flight.
    Cancelled,
    /// It was cancelled before the driver took the step.
    Forgotten,
    NotExecuted,
    Ended,
}

impl Job {
    /// A job that has not begun, with its client's budget for retries and hedges.
    pub fn new(plan: &Plan, budget: Arc<Budget>) -> Job {
        let parts: Vec<PartState> = plan.parts.iter().map(|part| PartState::new(*part)).collect();
        Job {
            open: parts.len(),
            // A start, a cancel and a word to the caller for each part, and some hedges.
            steps: VecDeque::with_capacity(4 * parts.len() + 1),
            parts,
            quorum: plan.quorum,
            order: plan.order,
            time: plan.time,
            budget,
            has_begun: false,
            deadline: None,
            verdict: None,
            answers: 0,
            results: 0,
            next: 0,
            due: None,
            latest: Moment::from_nanos(0),
        }
    }

    /// Why the job is over, if it is. Steps may still be waiting: a driver may wake its caller before it takes them.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// What has become of a part, if that is known.
    pub fn outcome(&self, part: usize) -> Option<Outcome> {
        self.parts.get(part)?.outcome
    }

    /// Whether an attempt is one that its driver has sent, and that its part waits for.
    pub fn is_under_way(&self, attempt: Attempt) -> bool {
        let state = self.parts.get(attempt.part).and_then(|part| part.attempts.get(attempt.number as usize));
        state == Some(&AttemptState::InFlight)
    }

    /// Whether another attempt of a part than this one has been executed, or may be. Then an exception that this one brought says nothing
    /// of the part as a whole.
    pub fn may_be_executed_by_another(&self, attempt: Attempt) -> bool {
        let attempts = self.parts.get(attempt.part).map_or(&[][..], |part| &part.attempts);
        let mut others = (0..).zip(attempts).filter(|(number, _)| *number != attempt.number);
        others.any(|(_, state)| {
            !matches!(state, AttemptState::Queued | AttemptState::Forgotten | AttemptState::NotExecuted)
        })
    }

    /// When [`Job::handle_time`] has something to do, unless something else happens first. It may find that there is nothing to
    /// do yet; then this is later afterwards.
    pub fn wakes_at(&self) -> Option<Moment> {
        self.due.filter(|_| self.verdict.is_none())
    }

    /// Begins the job.
    pub fn begin(&mut self, now: Moment) {
        if self.has_begun || self.verdict.is_some() {
            return;
        }
        self.has_begun = true;
        let now = self.advance(now);
        self.deadline = self.time.map(|time| now.after(time));
        self.wake_at(self.deadline);
        self.go_on(now);
    }

    /// An attempt has ended. Gives whether that has decided its part: then the part's outcome names this attempt, or says that all
    /// attempts have failed. What comes late or twice changes nothing.
    pub fn handle_end(&mut self, attempt: Attempt, ended: Ended, now: Moment) -> bool {
        let now = self.advance(now);
        self.expire(now);
        let has_decided = self.take(attempt, ended, now);
        self.hedge(now);
        self.go_on(now);
        has_decided
    }

    /// Time has passed.
    pub fn handle_time(&mut self, now: Moment) {
        let now = self.advance(now);
        self.expire(now);
        self.hedge(now);
        self.go_on(now);
    }

    /// So many servers could carry the part out, as is known by now. Fewer than have been tried count as these: there is no other one.
    pub fn know_servers(&mut self, part: usize, count: u32) {
        if let Some(part) = self.parts.get_mut(part) {
            let tried = u32::try_from(part.attempts.len()).unwrap_or(u32::MAX);
            part.part.servers = count.max(tried).max(1);
        }
    }

    /// The caller does not want the rest any more.
    pub fn give_up(&mut self) {
        if self.verdict.is_none() {
            self.end(Verdict::GivenUp);
        }
    }

    /// The next step, if there is one.
    pub fn poll_step(&mut self) -> Option<Step> {
        while let Some(step) = self.steps.pop_front() {
            if let Step::Start { attempt, .. } = step {
                let state = &mut self.parts[attempt.part].attempts[attempt.number as usize];
                if *state == AttemptState::Forgotten {
                    continue;
                }
                *state = AttemptState::InFlight;
                if attempt.number == 0 {
                    self.budget.earn();
                }
            }
            return Some(step);
        }
        None
    }

    fn advance(&mut self, now: Moment) -> Moment {
        self.latest = self.latest.max(now);
        self.latest
    }

    fn wake_at(&mut self, moment: Option<Moment>) {
        self.due = [self.due, moment].into_iter().flatten().min();
    }

    /// Ends what has no time left. It comes before all else, so that an answer after the deadline is late.
    fn expire(&mut self, now: Moment) {
        if self.verdict.is_some() || self.due.is_none_or(|due| now < due) {
            return;
        }
        // First the job: a part whose time is over at the same moment is one of those that are cancelled with it.
        if self.ends(now) {
            return;
        }
        for index in 0..self.parts.len() {
            let part = &self.parts[index];
            if part.outcome.is_none() && part.deadline.is_some_and(|deadline| deadline <= now) {
                self.tell_cancelled(index);
            }
        }
        self.ends(now);
    }

    fn take(&mut self, attempt: Attempt, ended: Ended, now: Moment) -> bool {
        let Some(part) = self.parts.get_mut(attempt.part) else { return false };
        let Some(state) = part.attempts.get_mut(attempt.number as usize) else { return false };
        // Those of a part that has been told are no longer in flight.
        if *state != AttemptState::InFlight {
            return false;
        }
        *state = if ended == Ended::NotExecuted { AttemptState::NotExecuted } else { AttemptState::Ended };
        match ended {
            Ended::Result => self.tell(attempt.part, Outcome::Result(attempt)),
            Ended::Exception => {
                self.tell(attempt.part, Outcome::Exception(attempt, RaisedBy::Application));
            }
            Ended::NotExecuted | Ended::MaybeExecuted | Ended::Cancelled => {
                part.may_be_executed |= ended == Ended::MaybeExecuted;
                part.was_cancelled |= ended == Ended::Cancelled;
                if part.has_live_attempts() || self.retries(attempt.part, now) {
                    return false;
                }
                let failure = self.parts[attempt.part].failure(attempt);
                self.tell(attempt.part, failure);
            }
        }
        true
    }

    /// Starts another attempt of a part of which all have failed, if it may have one.
    fn retries(&mut self, index: usize, now: Moment) -> bool {
        let part = &self.parts[index];
        let may_retry = part.part.may_be_repeated || !part.may_be_executed;
        if !may_retry || part.was_cancelled || !part.has_untried_servers() || !self.budget.spend() {
            return false;
        }
        self.start(index, now);
        true
    }

    /// Starts the hedges that are due. One that the budget refuses is not made later: its part has had its turn.
    fn hedge(&mut self, now: Moment) {
        if self.verdict.is_some() || self.due.is_none_or(|due| now < due) {
            return;
        }
        for index in 0..self.parts.len() {
            let part = &mut self.parts[index];
            if part.outcome.is_some() || part.hedge_at.is_none_or(|at| now < at) {
                continue;
            }
            part.hedge_at = None;
            if self.budget.spend() {
                self.parts[index].hedges += 1;
                self.start(index, now);
            }
        }
        let open = self.parts.iter().filter(|part| part.outcome.is_none());
        self.due =
            open.flat_map(|part| [part.deadline, part.hedge_at]).chain([self.deadline]).flatten().min();
    }

    /// Ends the job if it is decided, and else starts what may start now.
    fn go_on(&mut self, now: Moment) {
        while self.has_begun && !self.ends(now) && self.next < self.parts.len() {
            let index = self.next;
            if self.order == Order::InTurn && index > 0 && self.parts[index - 1].outcome.is_none() {
                return;
            }
            self.next += 1;
            let part = &mut self.parts[index];
            part.deadline = part.part.time.map(|time| now.after(time));
            if part.deadline.is_some_and(|deadline| deadline <= now) {
                self.tell_cancelled(index);
                continue;
            }
            let deadline = part.deadline;
            self.wake_at(deadline);
            self.start(index, now);
        }
    }

    fn start(&mut self, index: usize, now: Moment) {
        let part = &mut self.parts[index];
        let number = part.attempts.len() as u32;
        part.attempts.push(AttemptState::Queued);
        let may_hedge = part.part.may_be_repeated && part.hedges < HEDGES_MAX && part.has_untried_servers();
        part.hedge_at = part.part.hedge_after.filter(|_| may_hedge).map(|delay| now.after(delay));
        let hedge_at = part.hedge_at;
        self.wake_at(hedge_at);
        let server = if number == 0 { Server::FirstChoice } else { Server::Another };
        self.steps.push_back(Step::Start { attempt: Attempt { part: index, number }, server });
    }

    /// Ends the job if it is decided. Gives whether it has ended, now or before.
    fn ends(&mut self, now: Moment) -> bool {
        if self.verdict.is_none()
            && let Some(verdict) = self.decided(now)
        {
            self.end(verdict);
        }
        self.verdict.is_some()
    }

    fn decided(&self, now: Moment) -> Option<Verdict> {
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now);
        let (has, needs) = match self.quorum {
            Quorum::All => (self.answers, self.parts.len()),
            Quorum::Any => (self.results, 1),
            Quorum::AtLeast(needs) => (self.results, needs),
            Quorum::BestEffort => return (self.open == 0 || is_late).then_some(Verdict::Met),
        };
        if has >= needs {
            Some(Verdict::Met)
        } else if has + self.open < needs {
            Some(Verdict::CannotBeMet)
        } else {
            is_late.then_some(Verdict::Deadline)
        }
    }

    fn end(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
        for index in 0..self.parts.len() {
            if self.parts[index].outcome.is_none() {
                self.tell_cancelled(index);
            }
        }
        self.steps.push_back(Step::Over(verdict));
    }

    fn tell_cancelled(&mut self, index: usize) {
        let executed = self.parts[index].executed();
        self.tell(index, Outcome::Cancelled(executed));
    }

    /// Tells the caller, and cancels what is under way.
    fn tell(&mut self, index: usize, outcome: Outcome) {
        let part = &mut self.parts[index];
        part.outcome = Some(outcome);
        self.open -= 1;
        self.results += usize::from(matches!(outcome, Outcome::Result(_)));
        self.answers +=
            usize::from(matches!(outcome, Outcome::Result(_) | Outcome::Exception(_, RaisedBy::Application)));
        self.steps.push_back(Step::Tell { part: index, outcome });
        for (number, state) in (0..).zip(&mut part.attempts) {
            match *state {
                AttemptState::InFlight => {
                    *state = AttemptState::Cancelled;
                    self.steps.push_back(Step::Cancel(Attempt { part: index, number }));
                }
                AttemptState::Queued => {
                    *state = AttemptState::Forgotten;
                    if number > 0 {
                        self.budget.give_back();
                    }
                }
                _ => {}
            }
        }
    }
}

impl PartState {
    fn new(part: Part) -> PartState {
        let part = Part { servers: part.servers.max(1), ..part };
        PartState {
            part,
            attempts: Vec::with_capacity(part.servers.min(1 + HEDGES_MAX) as usize),
            outcome: None,
            deadline: None,
            hedge_at: None,
            hedges: 0,
            may_be_executed: false,
            was_cancelled: false,
        }
    }

    fn has_live_attempts(&self) -> bool {
        self.attempts.iter().any(|state| matches!(state, AttemptState::Queued | AttemptState::InFlight))
    }

    fn has_untried_servers(&self) -> bool {
        self.attempts.len() < self.part.servers as usize
    }

    /// Whether a server has executed the part, or may yet.
    fn executed(&self) -> Executed {
        let was_not =
            |state: &AttemptState| matches!(state, AttemptState::Queued | AttemptState::NotExecuted);
        if self.attempts.iter().all(was_not) { Executed::No } else { Executed::Maybe }
    }

    /// The outcome if no attempt has brought an answer, the last of which is this one.
    fn failure(&self, last: Attempt) -> Outcome {
        if self.may_be_executed {
            Outcome::Unknown
        } else if self.was_cancelled {
            Outcome::Cancelled(Executed::Maybe)
        } else {
            Outcome::Exception(last, RaisedBy::System)
        }
    }
}
