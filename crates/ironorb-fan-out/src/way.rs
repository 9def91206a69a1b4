//! The way of a job's requests: through a daemon or not, and what a daemon's word, or its silence, means for a part.

use crate::job::{Attempt, Ended};

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

/// Where an attempt goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// To the daemon.
    ThroughDaemon,
    /// To a server.
    Directly,
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
    /// Nobody waited for it any more.
    Cancelled,
    /// The daemon has failed.
    DaemonFailed(Failure),
}

/// What a client does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// The attempt has ended.
    Ended(Ended),
    /// The attempt goes to a server directly: the daemon has not taken it, so that it is no further one.
    Directly,
    /// Nothing: nobody waits for the attempt.
    Nothing,
}

/// The ways of the parts of one job.
#[derive(Debug)]
pub struct Trip {
    way: Way,
    /// Whether the part is at the daemon.
    at_daemon: Vec<bool>,
}

impl Trip {
    /// A job of so many parts, of which none has started.
    pub fn new(way: Way, parts: usize) -> Trip {
        Trip { way, at_daemon: vec![false; parts] }
    }

    /// The way of the job.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Where an attempt goes that starts: the first one of a part goes on the job's way, all others directly.
    pub fn start(&mut self, attempt: Attempt) -> Route {
        if matches!(self.way, Way::Direct { .. }) || attempt.number > 0 {
            return Route::Directly;
        }
        self.at_daemon[attempt.part] = true;
        Route::ThroughDaemon
    }

    /// A part has been told. Only the first word counts, and only while the attempt `is_under_way`: what falls back is started, and
    /// nothing may start of a part that has ended.
    pub fn told(&mut self, attempt: Attempt, told: Told, is_under_way: bool) -> Next {
        let at_daemon = self.at_daemon.get_mut(attempt.part).filter(|_| attempt.number == 0);
        if !at_daemon.is_some_and(std::mem::take) || !is_under_way {
            return Next::Nothing;
        }
        Next::Ended(match told {
            Told::Result => Ended::Result,
            Told::Exception => Ended::Exception,
            Told::Failed(failure) => failure.ended(),
            Told::Lost => Ended::MaybeExecuted,
            Told::Cancelled => Ended::Cancelled,
            // Whatever the exception: the servant has not spoken.
            Told::DaemonFailed(Failure { completed: Completed::No, .. }) if self.way.falls_back() => {
                return Next::Directly;
            }
            Told::DaemonFailed(failure) => failure.ended(),
        })
    }
}
