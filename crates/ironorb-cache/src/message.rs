//! What the two machines tell one another. How it is written is the driver's business.

/// One life of a server. Nothing of an old one counts in a new one, so no two lives of a server have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// A place in the log of a server's epoch. The first write has 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

impl Position {
    /// Before all writes.
    pub const START: Position = Position(0);

    pub(crate) fn next(self) -> Position {
        // At one write a nanosecond this lasts for 584 years.
        Position(self.0 + 1)
    }
}

/// A session of a server's epoch. None is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// What tells the fills of a client apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A session that a server has opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// The server's life.
    pub epoch: Epoch,
    /// The session in it.
    pub session: SessionId,
}

/// Asks what has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Of which session.
    pub of: Opened,
    /// Up to where the client has taken what it was told.
    pub taken: Position,
    /// Comes back with the answer.
    pub token: Token,
}

/// Asks for the state of an object, which the client will hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill<K> {
    /// For which session.
    pub of: Opened,
    /// The object.
    pub object: K,
    /// Comes back with the state.
    pub token: Token,
}

/// The answer to a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<K, S> {
    /// All changes up to a position that the client has not taken yet.
    Changes {
        /// Of which session.
        of: Opened,
        /// The probe's token.
        token: Token,
        /// The end of the log when the probe came.
        head: Position,
        /// A unit for each object that has changed.
        units: Vec<Unit<K, S>>,
    },
    /// The server knows no such session, or no longer: the client holds nothing any more.
    Unknown {
        /// The session that was asked about.
        of: Opened,
    },
}

impl<K, S> Answer<K, S> {
    /// The session that it is for.
    pub fn session(&self) -> Opened {
        match self {
            Answer::Changes { of, .. } | Answer::Unknown { of } => *of,
        }
    }
}

/// What has become of one object. A unit means the same without the others of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit<K, S> {
    /// The object.
    pub object: K,
    /// When it happened.
    pub at: Position,
    /// What.
    pub change: Change<S>,
}

/// What can become of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<S> {
    /// It has a new state.
    State(S),
    /// The client may not hold it any more: it is gone, or the server has no room in its book.
    Dropped,
}

/// The answer to a fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filled<K, S> {
    /// The object's state.
    State {
        /// For which session.
        of: Opened,
        /// The fill's token.
        token: Token,
        /// The object.
        object: K,
        /// The position of its last write.
        version: Position,
        /// The end of the log when the fill came.
        head: Position,
        /// The state.
        state: S,
    },
    /// There is no such object, or it cannot be held.
    Refused {
        /// For which session.
        of: Opened,
        /// The fill's token.
        token: Token,
        /// The object.
        object: K,
    },
    /// The server knows no such session, or no longer.
    Unknown {
        /// The session that was asked for.
        of: Opened,
    },
}

impl<K, S> Filled<K, S> {
    /// The session that it is for.
    pub fn session(&self) -> Opened {
        match self {
            Filled::State { of, .. } | Filled::Refused { of, .. } | Filled::Unknown { of } => *of,
        }
    }
}
