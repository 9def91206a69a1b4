//! Checks what a job has done against its plan, from a record of what has happened and of the steps that its driver has taken.
//!
//! The checker knows the promises and not the machine: it decides nothing, and only says what must not have been.

use std::fmt;

use crate::budget::BudgetLimits;
use crate::job::{Attempt, Ended, Executed, Outcome, RaisedBy, Server, Step, Verdict};
use crate::plan::{HEDGES_MAX, Order, Part, Plan, Quorum};
use crate::time::Moment;

/// Something that has happened, in the order in which the job has learnt of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// When, on the clock of the job.
    pub at: Moment,
    /// What.
    pub what: Happened,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// The job was begun.
    Begun,
    /// It was told that an attempt has ended.
    Ended(Attempt, Ended),
    /// It was told the time.
    Time,
    /// The caller has given up.
    GivenUp,
    /// The driver has taken a step.
    Took(Step),
    /// The driver has asked for a step, and there was none.
    TookAll,
    /// A server has executed a part: what only a test can see.
    Executed(Attempt),
}

/// A promise that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// The entry that shows it: its place in the record, or the number of entries if something is missing at the end.
    pub entry: usize,
    /// What is wrong.
    pub what: Wrong,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// A step names a part or an attempt that there is not.
    NoSuchAttempt,
    /// An attempt began before the job, after it was decided, or after its part was told.
    StartedLate,
    /// The attempt has the wrong number, or the wrong kind of server.
    Misnumbered,
    /// There are more attempts than servers.
    ServersUsedUp,
    /// A part began before the one before it was told, or did not begin when it could.
    OutOfTurn,
    /// A part that must not be repeated was sent again though it may have been executed.
    Repeated,
    /// A hedge began too early, or for a part that has none.
    HedgedEarly,
    /// A part has more hedges than there may be.
    HedgedTooOften,
    /// An attempt was cancelled twice, or though its part still waits for it.
    CancelledWrongly,
    /// An attempt is under way, and its part has been told.
    NotCancelled,
    /// A part was told twice.
    ToldTwice,
    /// All attempts of a part have ended or its time is over, and it was not told.
    NotTold,
    /// What was told of a part is not what has happened.
    WrongOutcome,
    /// The job has ended twice, or a step followed.
    EndedTwice,
    /// The job has ended with a verdict that what was told does not bear out.
    WrongVerdict,
    /// The job is decided, or its time is over, and it has not ended.
    NotEnded,
    /// A part that must not be repeated was executed twice.
    ExecutedTwice,
    /// There are more retries and hedges than the budget allows.
    OverBudget,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}: {:?}", self.entry, self.what)
    }
}

/// The first promise that a job has broken.
///
/// # Errors
/// There is one.
pub fn check(plan: &Plan, entries: &[Entry]) -> Result<(), Violation> {
    let mut seen = Seen::of(plan);
    for (entry, Entry { at, what }) in entries.iter().enumerate() {
        seen.see(*at, *what).map_err(|what| Violation { entry, what })?;
    }
    match seen.over {
        Some(_) => Ok(()),
        None => Err(Violation { entry: entries.len(), what: Wrong::NotEnded }),
    }
}

/// Whether all jobs of a client together have kept their budget. The steps are those of all jobs, in the order in which they were
/// taken.
///
/// # Errors
/// They have not.
pub fn check_budget(limits: BudgetLimits, steps: &[Step]) -> Result<(), Violation> {
    let (mut first, mut further) = (0_u64, 0_u64);
    for (entry, step) in steps.iter().enumerate() {
        match step {
            Step::Start { attempt, .. } if attempt.number == 0 => first += 1,
            Step::Start { .. } => further += 1,
            _ => continue,
        }
        if further as f64 > limits.share * first as f64 + f64::from(limits.burst) {
            return Err(Violation { entry, what: Wrong::OverBudget });
        }
    }
    Ok(())
}

struct Seen<'a> {
    plan: &'a Plan,
    parts: Vec<SeenPart>,
    begun: Option<Moment>,
    over: Option<Verdict>,
    given_up: bool,
    now: Moment,
    /// The first event since the driver had taken all steps. What it takes now was decided at this moment or later.
    decided_from: Option<Moment>,
}

#[derive(Default)]
struct SeenPart {
    attempts: Vec<SeenAttempt>,
    told: Option<Outcome>,
    hedges: u32,
    executed: u32,
    /// Between these moments the first attempt was decided.
    begun: Option<(Moment, Moment)>,
    /// The last attempt was decided at this moment or later.
    last_from: Option<Moment>,
}

#[derive(Clone, Copy, Default)]
struct SeenAttempt {
    ended: Option<(Ended, Moment)>,
    cancelled: bool,
}

impl SeenAttempt {
    fn is_live(&self) -> bool {
        self.ended.is_none() && !self.cancelled
    }

    fn has_ended_as(&self, wanted: Ended) -> bool {
        self.ended.is_some_and(|(ended, _)| ended == wanted)
    }
}

impl SeenPart {
    fn any_live(&self) -> bool {
        self.attempts.iter().any(SeenAttempt::is_live)
    }

    fn any_ended_as(&self, wanted: Ended) -> bool {
        self.attempts.iter().any(|attempt| attempt.has_ended_as(wanted))
    }

    /// Whether no server can have executed the part.
    fn was_not_executed(&self) -> bool {
        self.attempts.iter().all(|attempt| attempt.has_ended_as(Ended::NotExecuted))
    }

    /// Whether that was known before a moment.
    fn was_not_executed_before(&self, moment: Moment) -> bool {
        let was_not = |attempt: &SeenAttempt| {
            attempt.ended.is_some_and(|(ended, at)| ended == Ended::NotExecuted && at < moment)
        };
        self.attempts.iter().all(was_not)
    }

    /// Whether the part's own time may be over: it may have begun so early. If no driver has seen it begin, it may have begun
    /// with the job.
    fn may_have_expired(&self, part: &Part, job_begun: Option<Moment>, now: Moment) -> bool {
        let earliest = self.begun.map(|(earliest, _)| earliest).or(job_begun);
        part.time.zip(earliest).is_some_and(|(time, earliest)| earliest.after(time) <= now)
    }

    fn has_expired(&self, part: &Part, now: Moment) -> bool {
        match (part.time, self.begun) {
            (Some(time), Some((_, latest))) => latest.after(time) <= now,
            _ => false,
        }
    }
}

fn must(holds: bool, wrong: Wrong) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(wrong) }
}

impl<'a> Seen<'a> {
    fn of(plan: &'a Plan) -> Seen<'a> {
        Seen {
            plan,
            parts: plan.parts.iter().map(|_| SeenPart::default()).collect(),
            begun: None,
            over: None,
            given_up: false,
            now: Moment::from_nanos(0),
            decided_from: None,
        }
    }

    fn see(&mut self, at: Moment, what: Happened) -> Result<(), Wrong> {
        if let Happened::Took(step) = what {
            return self.took(step);
        }
        if let Happened::Executed(attempt) = what {
            return self.executed(attempt);
        }
        if what == Happened::TookAll {
            self.decided_from = None;
            return self.at_rest();
        }
        self.now = self.now.max(at);
        self.decided_from.get_or_insert(self.now);
        match what {
            Happened::Begun if self.over.is_none() && !self.given_up => {
                self.begun.get_or_insert(self.now);
            }
            Happened::GivenUp => self.given_up |= self.over.is_none(),
            Happened::Ended(attempt, ended) => {
                let part = self.parts.get_mut(attempt.part);
                let attempt = part.and_then(|part| part.attempts.get_mut(attempt.number as usize));
                // Copies of answers come as the network likes.
                attempt.ok_or(Wrong::NoSuchAttempt)?.ended.get_or_insert((ended, self.now));
            }
            _ => {}
        }
        Ok(())
    }

    fn executed(&mut self, attempt: Attempt) -> Result<(), Wrong> {
        let part = self.parts.get_mut(attempt.part).ok_or(Wrong::NoSuchAttempt)?;
        part.executed += 1;
        must(part.executed == 1 || self.plan.parts[attempt.part].may_be_repeated, Wrong::ExecutedTwice)
    }

    fn took(&mut self, step: Step) -> Result<(), Wrong> {
        must(self.over.is_none(), Wrong::EndedTwice)?;
        match step {
            Step::Start { attempt, server } => self.started(attempt, server),
            Step::Cancel(attempt) => self.cancelled(attempt),
            Step::Tell { part, outcome } => self.told(part, outcome),
            Step::Over(verdict) => self.ended(verdict),
        }
    }

    fn started(&mut self, attempt: Attempt, server: Server) -> Result<(), Wrong> {
        let index = attempt.part;
        let is_open = self.begun.is_some() && !self.is_decided();
        let part = self.plan.parts.get(index).ok_or(Wrong::NoSuchAttempt)?;
        let earlier_are_told = self.parts[..index].iter().all(|part| part.told.is_some());
        let decided_from = self.decided_from.unwrap_or(self.now);
        let seen = &mut self.parts[index];
        must(is_open && seen.told.is_none(), Wrong::StartedLate)?;
        let is_first = attempt.number == 0;
        must(
            attempt.number as usize == seen.attempts.len() && is_first == (server == Server::FirstChoice),
            Wrong::Misnumbered,
        )?;
        must(is_first || attempt.number < part.servers, Wrong::ServersUsedUp)?;
        if is_first {
            must(self.plan.order == Order::AtOnce || earlier_are_told, Wrong::OutOfTurn)?;
            seen.begun = Some((decided_from, self.now));
        } else {
            must(part.may_be_repeated || seen.was_not_executed(), Wrong::Repeated)?;
            if seen.any_live() {
                let due = part.hedge_after.zip(seen.last_from).map(|(delay, last)| last.after(delay));
                must(due.is_some_and(|due| due <= self.now), Wrong::HedgedEarly)?;
                seen.hedges += 1;
                must(seen.hedges <= HEDGES_MAX, Wrong::HedgedTooOften)?;
            }
        }
        seen.last_from = Some(decided_from);
        seen.attempts.push(SeenAttempt::default());
        Ok(())
    }

    fn cancelled(&mut self, attempt: Attempt) -> Result<(), Wrong> {
        let part = self.parts.get_mut(attempt.part).ok_or(Wrong::NoSuchAttempt)?;
        let seen = part.attempts.get_mut(attempt.number as usize).ok_or(Wrong::NoSuchAttempt)?;
        must(part.told.is_some() && !seen.cancelled, Wrong::CancelledWrongly)?;
        seen.cancelled = true;
        Ok(())
    }

    fn told(&mut self, index: usize, outcome: Outcome) -> Result<(), Wrong> {
        let part = self.plan.parts.get(index).ok_or(Wrong::NoSuchAttempt)?;
        let seen = &self.parts[index];
        must(seen.told.is_none(), Wrong::ToldTwice)?;
        let answered = |attempt: Attempt, wanted: Ended| {
            let seen_attempt = seen.attempts.get(attempt.number as usize);
            let at = seen_attempt.and_then(|attempt| attempt.ended).filter(|(ended, _)| *ended == wanted);
            let is_in_time = |at| !seen.has_expired(part, at) && !self.is_past_deadline(at);
            attempt.part == index && at.is_some_and(|(_, at)| is_in_time(at))
        };
        let holds = match outcome {
            Outcome::Result(attempt) => answered(attempt, Ended::Result),
            Outcome::Exception(attempt, RaisedBy::Application) => answered(attempt, Ended::Exception),
            Outcome::Exception(attempt, RaisedBy::System) => {
                let ends = seen.attempts.iter().filter_map(|attempt| Some(attempt.ended?.1));
                let failed = seen.attempts.get(attempt.number as usize).and_then(|attempt| attempt.ended);
                attempt.part == index
                    && seen.was_not_executed()
                    && failed.is_some_and(|(_, at)| ends.max() == Some(at))
            }
            Outcome::Unknown => {
                !seen.any_live()
                    && seen.any_ended_as(Ended::MaybeExecuted)
                    && !seen.any_ended_as(Ended::Result)
                    && !seen.any_ended_as(Ended::Exception)
            }
            Outcome::Cancelled(executed) => {
                let by_driver = !seen.any_live() && seen.any_ended_as(Ended::Cancelled);
                let has_cause =
                    by_driver || seen.may_have_expired(part, self.begun, self.now) || self.is_decided();
                let is_known = match executed {
                    Executed::No => seen.was_not_executed(),
                    // It may have become known in the meantime.
                    Executed::Maybe => !seen.was_not_executed_before(self.decided_from.unwrap_or(self.now)),
                };
                has_cause && is_known
            }
        };
        must(holds, Wrong::WrongOutcome)?;
        self.parts[index].told = Some(outcome);
        Ok(())
    }

    fn ended(&mut self, verdict: Verdict) -> Result<(), Wrong> {
        must(self.parts.iter().all(|part| part.told.is_some()), Wrong::NotTold)?;
        let is_best_effort = self.plan.quorum == Quorum::BestEffort;
        let holds = match verdict {
            Verdict::Met if is_best_effort => self.is_past_deadline(self.now) || self.lost_by_themselves(),
            Verdict::Met => self.has_enough(),
            Verdict::CannotBeMet => !self.has_enough() && self.lacks_too_many(),
            Verdict::Deadline => !is_best_effort && !self.has_enough() && self.is_past_deadline(self.now),
            // A job that has not begun has nothing, though that may be enough.
            Verdict::GivenUp => {
                self.given_up && (is_best_effort || self.begun.is_none() || !self.has_enough())
            }
        };
        must(holds, Wrong::WrongVerdict)?;
        self.over = Some(verdict);
        Ok(())
    }

    /// The driver has taken all steps: what must have been decided by now, has been.
    fn at_rest(&self) -> Result<(), Wrong> {
        must(self.over.is_some() || !self.is_decided(), Wrong::NotEnded)?;
        for (part, seen) in self.plan.parts.iter().zip(&self.parts) {
            match seen.told {
                Some(_) => must(!seen.any_live(), Wrong::NotCancelled)?,
                None => {
                    let has_failed = !seen.attempts.is_empty() && !seen.any_live();
                    must(!has_failed && !seen.has_expired(part, self.now), Wrong::NotTold)?;
                }
            }
        }
        if self.begun.is_some() {
            let mut waiting = self.parts.iter().filter(|part| part.told.is_none());
            let has_begun = |part: &SeenPart| !part.attempts.is_empty();
            let is_in_turn = match self.plan.order {
                Order::InTurn => waiting.next().is_none_or(has_begun),
                Order::AtOnce => waiting.all(has_begun),
            };
            must(is_in_turn, Wrong::OutOfTurn)?;
        }
        Ok(())
    }

    /// Whether nothing may be started any more.
    fn is_decided(&self) -> bool {
        if self.given_up {
            return true;
        }
        self.begun.is_some()
            && match self.plan.quorum {
                Quorum::BestEffort => {
                    self.is_past_deadline(self.now) || self.parts.iter().all(|part| part.told.is_some())
                }
                _ => self.has_enough() || self.lacks_too_many() || self.is_past_deadline(self.now),
            }
    }

    fn is_past_deadline(&self, at: Moment) -> bool {
        let deadline = self.begun.zip(self.plan.time).map(|(begun, time)| begun.after(time));
        deadline.is_some_and(|deadline| deadline <= at)
    }

    fn needed(&self) -> usize {
        match self.plan.quorum {
            Quorum::All => self.parts.len(),
            Quorum::Any => 1,
            Quorum::AtLeast(parts) => parts,
            Quorum::BestEffort => 0,
        }
    }

    fn counts(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Result(_) => true,
            Outcome::Exception(_, RaisedBy::Application) => self.plan.quorum == Quorum::All,
            _ => false,
        }
    }

    fn has_enough(&self) -> bool {
        let told = self.parts.iter().filter_map(|part| part.told);
        told.filter(|outcome| self.counts(*outcome)).count() >= self.needed()
    }

    /// Whether so many parts have been lost that the others are too few.
    fn lacks_too_many(&self) -> bool {
        let lost = |(part, seen): (&Part, &SeenPart)| {
            seen.told.is_some_and(|outcome| !self.counts(outcome)) && self.is_lost_by_itself(part, seen)
        };
        let lost = self.plan.parts.iter().zip(&self.parts).filter(|part| lost(*part)).count();
        self.parts.len() < self.needed() + lost
    }

    /// Whether all parts have come to an end without that of the job.
    fn lost_by_themselves(&self) -> bool {
        self.plan.parts.iter().zip(&self.parts).all(|(part, seen)| self.is_lost_by_itself(part, seen))
    }

    fn is_lost_by_itself(&self, part: &Part, seen: &SeenPart) -> bool {
        match seen.told {
            Some(Outcome::Cancelled(_)) => {
                seen.may_have_expired(part, self.begun, self.now) || seen.any_ended_as(Ended::Cancelled)
            }
            told => told.is_some(),
        }
    }
}
