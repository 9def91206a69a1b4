//! What makes a cached read a hit: one function, for the machine and for the fast way of a driver.

use std::time::Duration;

use crate::message::Position;
use crate::time::Moment;

/// What is known of a state that a client holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    /// The position of the object's last write.
    pub version: Position,
    /// No write to the object up to here is missing.
    pub as_of: Position,
    /// When the message left that this state answers.
    pub left: Moment,
}

/// What the answers to probes have proved for everything that a session holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Proof {
    /// When the newest answered probe left.
    pub proved: Option<Moment>,
    /// Up to where the answers to probes have been taken.
    pub taken: Position,
    /// What a read must not be older than: where the client's own writes are in the log.
    pub floor: Position,
}

impl Proof {
    /// The moment up to which it is proved that nothing was missing in a state, on the client's clock.
    #[inline]
    pub fn proved_for(&self, held: &Held) -> Moment {
        self.proved.unwrap_or(Moment::from_nanos(0)).max(held.left)
    }

    /// How old a state is at most, if it may be read now: the object has had it within the lag, and it has the client's own
    /// writes and all up to `at_least` in it.
    #[inline]
    pub fn age_of(&self, held: &Held, lag: Duration, at_least: Position, now: Moment) -> Option<Duration> {
        let has_all = held.as_of.max(self.taken) >= self.floor.max(at_least);
        // A clock that has run backwards says nothing. Compared are nanoseconds, of which a lag may have more than any age: to make a
        // duration of the age, which few readers ask for, takes a division.
        let age = now.as_nanos().checked_sub(self.proved_for(held).as_nanos())?;
        let lag = u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX);
        (has_all && age <= lag).then(|| Duration::from_nanos(age))
    }
}
