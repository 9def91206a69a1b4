//! The way of a job's requests: through a daemon or not, and what a daemon's word, or its silence, means for a part.

use std::time::Duration;

use crate::job::{Attempt, Ended, Job};

/// The way of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the client to the servers.
    Direct {
        /// Servers are asked first whether they have the object.
        verifies: bool,
    },
    /// The daemon makes the calls, and answers for all of them.
    Daemon {
        /// Parts that the daemon has not taken, and those that may be repeated, go directly then.
        falls_back: bool,
        /// The daemon takes the job if a thread of its is free.
        at_once: bool,
    },
    /// The daemon passes the parts on, and their servers tell the client.
    Forwarded {
        /// As above.
        falls_back: bool,
    },
}

impl Way {
    /// Whether servers are asked before they are called.
    pub fn verifies(self) -> bool {
        matches!(self, Way::Direct { verifies: true })
    }

    /// Whether parts go directly if the daemon fails.
    pub fn falls_back(self) -> bool {
        matches!(self, Way::Daemon { falls_back: true, .. } | Way::Forwarded { falls_back: true })
    }

    /// How many servers a part has, of which its target knows `known`: the daemon, which chooses by itself, is one more.
    pub fn servers(self, known: usize) -> usize {
        match self {
            Way::Direct { .. } => known,
            Way::Daemon { .. } | Way::Forwarded { .. } if self.falls_back() => known.saturating_add(1),
            Way::Daemon { .. } | Way::Forwarded { .. } => 1,
        }
    }
}

/// A system exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Failure {
    /// Whether the operation was executed.
    pub completed: Completed,
    /// Whether it says more of the server, or of the way to it, than of the call: another server may do better. Any other one may
    /// be the servant's word.
    pub of_server: bool,
}

/// The completion status of an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Completed {
    /// It was executed.
    Yes,
    /// It was not.
    No,
    /// Nobody knows.
    Maybe,
}

impl Failure {
    /// What it says of the attempt that has ended with it.
    pub fn ended(self) -> Ended {
        match (self.completed, self.of_server) {
            (Completed::Maybe, _) => Ended::MaybeExecuted,
            (Completed::No, true) => Ended::NotExecuted,
            (Completed::No | Completed::Yes, _) => Ended::Exception,
        }
    }
}

/// What a client learns of a part that the daemon has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Told {
    /// It has a result.
    Result,
    /// It has raised an exception of the application.
    Exception,
    /// Its servers have failed, as the daemon or a server says.
    Failed(Failure),
    /// It has been executed, or may have been, and its result is lost or cannot be read.
    Lost,
    /// The daemon has ended the job without it, and the time of the part is not over soon.
    Cancelled,
    /// The daemon's time is over, which ends a little earlier than the client's.
    Late,
    /// The daemon has failed.
    DaemonFailed(Failure),
}

/// What a client does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// The attempt has ended.
    Ended(Ended),
    /// The attempt goes to a server directly, with those that start next: the daemon has not taken it, so that it is no further one.
    Directly,
    /// Nothing: nobody waits for the attempt, or the machine's own time ends it.
    Nothing,
}

/// The ways of the attempts of one job: which wait to be started, and which are at the daemon.
#[derive(Debug)]
pub struct Trip {
    way: Way,
    /// Whether the first attempt of the part is at the daemon.
    at_daemon: Vec<bool>,
    waiting: Vec<Start>,
}

/// An attempt that waits to be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Which.
    pub attempt: Attempt,
    /// Whether it goes to the daemon, or else to a server.
    pub through_daemon: bool,
}

/// Attempts to be started now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// To the daemon, together.
    pub through_daemon: Vec<Attempt>,
    /// Each to a server.
    pub directly: Vec<Attempt>,
}

impl Trip {
    /// A job of so many parts, of which none has started.
    pub fn new(way: Way, parts: usize) -> Trip {
        Trip { way, at_daemon: vec![false; parts], waiting: Vec::new() }
    }

    /// The way of the job.
    pub fn way(&self) -> Way {
        self.way
    }

    /// An attempt is to be started: the first one of a part on the job's way, all others directly.
    pub fn start(&mut self, attempt: Attempt) {
        let through_daemon = !matches!(self.way, Way::Direct { .. }) && attempt.number == 0;
        self.waiting.push(Start { attempt, through_daemon });
    }

    /// The attempts that wait to be started.
    pub fn waiting(&self) -> &[Start] {
        &self.waiting
    }

    /// All that wait to be started, but those whose parts have ended meanwhile.
    pub fn take_starts(&mut self, job: &Job) -> Starts {
        let mut starts = Starts::default();
        for Start { attempt, through_daemon } in self.waiting.drain(..) {
            if !job.is_under_way(attempt) {
                continue;
            }
            if through_daemon {
                self.at_daemon[attempt.part] = true;
                starts.through_daemon.push(attempt);
            } else {
                starts.directly.push(attempt);
            }
        }
        starts
    }

    /// A part has been told. Only the first word counts, and only while its attempt is under way: what falls back is started, and
    /// nothing may start of a part that has ended.
    pub fn told(&mut self, attempt: Attempt, told: Told, job: &Job) -> Next {
        let at_daemon = self.at_daemon.get_mut(attempt.part).filter(|_| attempt.number == 0);
        if !at_daemon.is_some_and(std::mem::take) || !job.is_under_way(attempt) {
            return Next::Nothing;
        }
        Next::Ended(match told {
            Told::Result => Ended::Result,
            Told::Exception => Ended::Exception,
            Told::Failed(failure) => failure.ended(),
            Told::Lost => Ended::MaybeExecuted,
            Told::Cancelled => Ended::Cancelled,
            Told::Late => return Next::Nothing,
            // Whatever the exception: the servant has not spoken, so that it is no answer.
            Told::DaemonFailed(Failure { completed: Completed::No, .. }) if self.way.falls_back() => {
                self.waiting.push(Start { attempt, through_daemon: false });
                return Next::Directly;
            }
            Told::DaemonFailed(Failure { completed: Completed::No, .. }) => Ended::NotExecuted,
            Told::DaemonFailed(failure) => failure.ended(),
        })
    }
}

/// How much time a daemon has for a job, of what is left: its answer must have come when the job's time is over.
pub fn daemons_share(left: Duration) -> Duration {
    left - (left / 20).clamp(ANSWER_MIN, ANSWER_MAX).min(left / 2)
}

/// Whether so little time is left that a daemon whose time is over may already say so.
pub fn is_nearly_over(left: Duration) -> bool {
    left <= ANSWER_MAX
}

/// How much earlier than the job's time that of the daemon is over: a twentieth, within these limits.
const ANSWER_MIN: Duration = Duration::from_millis(1);
const ANSWER_MAX: Duration = Duration::from_millis(20);
