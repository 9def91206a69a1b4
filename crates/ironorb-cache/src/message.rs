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

    pub(crate) fn before(self) -> Position {
        Position(self.0.saturating_sub(1))
    }

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opened {
    /// The server's life.
    pub epoch: Epoch,
    /// The session in it.
    pub session: SessionId,
}

/// Asks what has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Of which session.
    pub of: Opened,
    /// Up to where the client has taken what it was told.
    pub taken: Position,
    /// How many bytes of units the answer may have.
    pub room: usize,
    /// Comes back with the answer.
    pub token: Token,
}

/// Asks an object for its state, which the client will hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fill {
    /// For which session.
    pub of: Opened,
    /// Comes back with the state.
    pub token: Token,
}

/// Which members of an object's state, a bit for each. A member beyond the 63rd shares the last bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Members(pub u64);

impl Members {
    /// None of them.
    pub const NONE: Members = Members(0);
    /// The whole state.
    pub const ALL: Members = Members(u64::MAX);

    /// One member, by its place.
    pub const fn one(place: usize) -> Members {
        Members(1 << if place < 63 { place } else { 63 })
    }

    /// These and others.
    #[must_use]
    pub const fn and(self, others: Members) -> Members {
        Members(self.0 | others.0)
    }

    /// Whether the member at a place is among them.
    pub const fn has(self, place: usize) -> bool {
        self.0 & Members::one(place).0 != 0
    }
}

/// The answer to a probe. `S` is what it has of a state: what is [`Due`] when the server's machine has made it, and the values
/// once the driver has read them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
        /// There was no room for all that has changed. Then this is an answer as of an earlier end of the log, and proves nothing of
        /// how fresh the rest is: the client asks again at once.
        is_part: bool,
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

    /// Whether the client is to ask again at once, because there was no room for all that has changed.
    pub fn is_part(&self) -> bool {
        matches!(self, Answer::Changes { is_part: true, .. })
    }
}

/// What of an object's state a session has not been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Due {
    /// The position of the last write that it has not been told of.
    at: Position,
    /// What has been written.
    members: Members,
}

impl Due {
    pub(crate) const fn new(at: Position, members: Members) -> Due {
        Due { at, members }
    }

    /// Which members to send of a state whose last write has this position. A write since then may have changed others.
    pub fn of_version(self, version: Position) -> Members {
        if version == self.at { self.members } else { Members::ALL }
    }
}

impl<K: Clone, S> Answer<K, S> {
    /// The answer without its values, for a client whose driver has read them.
    pub fn without_values(&self) -> Answer<K, ()> {
        match self {
            Answer::Unknown { of } => Answer::Unknown { of: *of },
            Answer::Changes { of, token, head, units, is_part } => {
                let without = |unit: &Unit<K, S>| Unit {
                    object: unit.object.clone(),
                    at: unit.at,
                    change: match unit.change {
                        Change::Members(members, _) => Change::Members(members, ()),
                        Change::Dropped => Change::Dropped,
                    },
                };
                let units = units.iter().map(without).collect();
                Answer::Changes { of: *of, token: *token, head: *head, units, is_part: *is_part }
            }
        }
    }
}

impl<K> Answer<K, Due> {
    /// Has the values read that are due. `read` gives the position of an object's last write, the members that are due of
    /// that version ([`Due::of_version`]), and their values; all at one moment after the answer was made. `None` if the object
    /// is gone.
    pub fn with_values<S>(
        self,
        mut read: impl FnMut(&K, Due) -> Option<(Position, Members, S)>,
    ) -> Answer<K, S> {
        let (of, token, head, units, is_part) = match self {
            Answer::Unknown { of } => return Answer::Unknown { of },
            Answer::Changes { of, token, head, units, is_part } => (of, token, head, units, is_part),
        };
        let with_values = |Unit { object, at, change }: Unit<K, Due>| {
            let values = match change {
                Change::Members(_, due) => read(&object, due),
                Change::Dropped => None,
            };
            let (at, change) = match values {
                Some((version, members, values)) => (version, Change::Members(members, values)),
                None => (at, Change::Dropped),
            };
            Unit { object, at, change }
        };
        let units = units.into_iter().map(with_values).collect();
        Answer::Changes { of, token, head, units, is_part }
    }
}

/// What has become of one object. A unit means the same without the others of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unit<K, S> {
    /// The object.
    pub object: K,
    /// When it happened.
    pub at: Position,
    /// What.
    pub change: Change<S>,
}

/// What can become of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change<S> {
    /// These members have new values; where they are all, that is the whole state.
    Members(Members, S),
    /// The client may not hold it any more: it is gone, or the server has no room in its book.
    Dropped,
}

/// The answer to a fill. The state comes beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filled<K> {
    /// The object's state.
    State {
        /// For which session.
        of: Opened,
        /// The fill's token.
        token: Token,
        /// The object, as answers to probes name it.
        object: K,
        /// The position of its last write.
        version: Position,
        /// The end of the log when the fill came.
        head: Position,
    },
    /// The object cannot be held now.
    Refused {
        /// For which session.
        of: Opened,
        /// The fill's token.
        token: Token,
    },
    /// The server knows no such session, or no longer.
    Unknown {
        /// The session that was asked for.
        of: Opened,
    },
}

impl<K> Filled<K> {
    /// The session that it is for.
    pub fn session(&self) -> Opened {
        match self {
            Filled::State { of, .. } | Filled::Refused { of, .. } | Filled::Unknown { of } => *of,
        }
    }
}
