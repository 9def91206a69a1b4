//! Checks a record of clients with jobs, a daemon and servers: what all of them together promise of each part.
//!
//! Like [`history`](crate::history), it knows the promises and nothing of who keeps them. An entry is what somebody has done, or what
//! only a test can see. What one job's machine promises of itself, hedges and quorums, is checked there.

use std::collections::BTreeMap;
use std::fmt;

use crate::time::Moment;

/// A job among those of all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// A part of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId {
    /// Whose part it is.
    pub job: JobId,
    /// Its place there.
    pub part: usize,
}

/// A job that a daemon has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// One run of an operation: what it answers with is known by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionId(pub u64);

/// Something that has happened, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Moment,
    /// What.
    pub what: Happened,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// A client has begun a job.
    JobBegun {
        /// Which.
        job: JobId,
        /// When its caller must have its end, if it has a deadline.
        ends_by: Option<Moment>,
    },
    /// The job has this part. Follows its job's beginning.
    PartBegun {
        /// Which.
        part: PartId,
        /// Whether its operation may be executed twice.
        may_be_repeated: bool,
    },
    /// The client has sent the part, to a server or to the daemon.
    Sent(PartId),
    /// A server has executed the part.
    Executed(PartId, ExecutionId),
    /// The caller was told what has become of the part.
    Told(PartId, ToldAs),
    /// The job is over.
    JobOver(JobId),
    /// The daemon has taken a job.
    Taken {
        /// Which.
        task: TaskId,
        /// When its client waits for it no longer.
        ends_by: Option<Moment>,
    },
    /// The daemon has sent a part of the job to a server.
    Asked(TaskId),
    /// The daemon has told its client what has become of all parts, or has left that to their servers.
    Answered(TaskId),
    /// The daemon has been killed: nobody is told of what it had.
    Killed,
    /// The daemon says that it is drained.
    Drained,
}

/// What a caller is told of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToldAs {
    /// The answer of this execution: a result, or an exception of the application.
    Answer(ExecutionId),
    /// No server has executed it, and none will.
    NotExecuted,
    /// A server may have executed it, or may yet.
    MayBeExecuted,
}

/// What is left when nothing happens any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Left {
    /// Jobs that wait at daemons.
    pub queued: usize,
    /// Threads of daemons that have a job.
    pub busy: usize,
    /// Tokens that clients expect.
    pub tokens: usize,
    /// Further attempts that budgets have paid for, and that nobody has made.
    pub unmade_attempts: u64,
}

/// A promise that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// The entry that shows it: its place, or the number of entries if something is missing at the end.
    pub entry: usize,
    /// What is wrong.
    pub what: Wrong,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// An entry names what there is not.
    Unknown,
    /// A part was told twice.
    ToldTwice,
    /// A job is over, and one of its parts was not told; or a job is not over at the end.
    NotTold,
    /// A job was over after its deadline.
    Late,
    /// A part was sent that its caller had been told of.
    SentAfterTold,
    /// A part that must not be repeated was executed twice.
    ExecutedTwice,
    /// A caller was told an answer that no server has given.
    AnswerFromNowhere,
    /// A caller was told that a part was not executed, and it was.
    ExecutedAllTheSame,
    /// A daemon has sent a part for which its client had ceased to wait.
    AskedLate,
    /// A daemon says that it is drained, and a client was not answered.
    DrainedTooEarly,
    /// A daemon has not answered a client.
    NotAnswered,
    /// Something is left at the end.
    LeftOver,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}: {:?}", self.entry, self.what)
    }
}

/// The first promise that was broken.
///
/// # Errors
/// There is one.
pub fn check(entries: &[Entry], left: Left) -> Result<(), Violation> {
    let mut seen = Seen::default();
    for (entry, Entry { at, what }) in entries.iter().enumerate() {
        seen.see(*at, *what).map_err(|what| Violation { entry, what })?;
    }
    seen.at_end(left).map_err(|what| Violation { entry: entries.len(), what })
}

#[derive(Default)]
struct Seen {
    jobs: BTreeMap<JobId, SeenJob>,
    parts: BTreeMap<PartId, SeenPart>,
    /// Those that the daemon has not answered.
    tasks: BTreeMap<TaskId, Option<Moment>>,
}

struct SeenJob {
    ends_by: Option<Moment>,
    is_over: bool,
}

struct SeenPart {
    may_be_repeated: bool,
    executions: Vec<ExecutionId>,
    told: Option<ToldAs>,
}

fn must(holds: bool, wrong: Wrong) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(wrong) }
}

impl Seen {
    fn see(&mut self, at: Moment, what: Happened) -> Result<(), Wrong> {
        match what {
            Happened::JobBegun { job, ends_by } => {
                let before = self.jobs.insert(job, SeenJob { ends_by, is_over: false });
                must(before.is_none(), Wrong::Unknown)
            }
            Happened::PartBegun { part, may_be_repeated } => {
                let seen = SeenPart { may_be_repeated, executions: Vec::new(), told: None };
                let is_new = self.parts.insert(part, seen).is_none();
                must(is_new && self.jobs.contains_key(&part.job), Wrong::Unknown)
            }
            Happened::Sent(part) => must(self.part(part)?.told.is_none(), Wrong::SentAfterTold),
            Happened::Executed(part, execution) => self.part(part)?.executed(execution),
            Happened::Told(part, told) => self.part(part)?.tell(told),
            Happened::JobOver(job) => self.over(job, at),
            Happened::Taken { task, ends_by } => {
                must(self.tasks.insert(task, ends_by).is_none(), Wrong::Unknown)
            }
            Happened::Asked(task) => {
                let ends_by = self.tasks.get(&task).ok_or(Wrong::Unknown)?;
                must(ends_by.is_none_or(|ends_by| at < ends_by), Wrong::AskedLate)
            }
            Happened::Answered(task) => must(self.tasks.remove(&task).is_some(), Wrong::Unknown),
            Happened::Killed => {
                self.tasks.clear();
                Ok(())
            }
            Happened::Drained => must(self.tasks.is_empty(), Wrong::DrainedTooEarly),
        }
    }

    fn part(&mut self, part: PartId) -> Result<&mut SeenPart, Wrong> {
        self.parts.get_mut(&part).ok_or(Wrong::Unknown)
    }

    fn over(&mut self, job: JobId, at: Moment) -> Result<(), Wrong> {
        let seen = self.jobs.get_mut(&job).filter(|job| !job.is_over).ok_or(Wrong::Unknown)?;
        seen.is_over = true;
        must(seen.ends_by.is_none_or(|ends_by| at <= ends_by), Wrong::Late)?;
        let of_job = PartId { job, part: 0 }..=PartId { job, part: usize::MAX };
        must(self.parts.range(of_job).all(|(_, part)| part.told.is_some()), Wrong::NotTold)
    }

    fn at_end(&self, left: Left) -> Result<(), Wrong> {
        must(self.jobs.values().all(|job| job.is_over), Wrong::NotTold)?;
        must(self.tasks.is_empty(), Wrong::NotAnswered)?;
        must(left == Left::default(), Wrong::LeftOver)
    }
}

impl SeenPart {
    fn executed(&mut self, execution: ExecutionId) -> Result<(), Wrong> {
        must(self.told != Some(ToldAs::NotExecuted), Wrong::ExecutedAllTheSame)?;
        self.executions.push(execution);
        must(self.executions.len() == 1 || self.may_be_repeated, Wrong::ExecutedTwice)
    }

    fn tell(&mut self, told: ToldAs) -> Result<(), Wrong> {
        must(self.told.is_none(), Wrong::ToldTwice)?;
        self.told = Some(told);
        match told {
            ToldAs::Answer(execution) => must(self.executions.contains(&execution), Wrong::AnswerFromNowhere),
            ToldAs::NotExecuted => must(self.executions.is_empty(), Wrong::ExecutedAllTheSame),
            ToldAs::MayBeExecuted => Ok(()),
        }
    }
}
