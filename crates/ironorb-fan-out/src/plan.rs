//! What a job is made of, and what it may do.

use std::time::Duration;

/// The most hedges of a part: attempts beside one that is under way.
pub const HEDGES_MAX: u32 = 2;

/// A job: its parts, and when it has enough of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The calls. Each is known by its place here.
    pub parts: Vec<Part>,
    /// When the job has enough.
    pub quorum: Quorum,
    /// Which parts run at a time.
    pub order: Order,
    /// How much time the job has from its beginning. `None`: as much as its parts take.
    pub time: Option<Duration>,
}

/// One call of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// How much time the part has from its first attempt, beside that of the job. `None`: as much as the job.
    pub time: Option<Duration>,
    /// Whether the operation may be executed twice (`@idempotent`).
    pub may_be_repeated: bool,
    /// How many servers could execute it: at most so many attempts are made, each at another server. 0 counts as 1.
    pub servers: u32,
    /// How long an attempt may take until the next one starts beside it. `None`: it has no hedges. A part that must not be
    /// repeated has none either.
    pub hedge_after: Option<Duration>,
}

impl Part {
    /// A part that one server can execute, at most once.
    pub const ONE: Part = Part { time: None, may_be_repeated: false, servers: 1, hedge_after: None };
}

/// When a job has enough.
///
/// An application's exception is an answer: its part has been executed, and is not tried again. [`Quorum::All`] waits for
/// answers, of which exceptions are some. [`Quorum::Any`] and [`Quorum::AtLeast`] choose among parts, and count results alone. So
/// a job of all parts does not abandon calls under way because one has raised an exception; a job of `AtLeast(n)` of `n` parts does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quorum {
    /// Each part has answered: with a result, or with an application's exception.
    All,
    /// One part has a result. An exception does not end the job while another part may have a result.
    Any,
    /// So many parts have results. 0 is met at once.
    AtLeast(usize),
    /// The job takes what has come when its time is over, or when all parts have ended. It is always met.
    BestEffort,
}

/// Which parts run at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Each part starts when the one before has ended.
    InTurn,
    /// All parts start together.
    AtOnce,
}
