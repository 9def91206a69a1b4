//! What the annotation `@cached` says.

use std::time::Duration;

/// How clients may cache an attribute, from `@cached(lag = "1ms")`. Where `lag`, `updates` and `is_linearizable` say nothing,
/// there is no annotation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caching {
    /// How old the value of a cached read may be. Zero: the server sends what changes at once, and a client reads what it holds for
    /// as long as its session lives. `None`: only `updates` bounds it, or the attribute is linearizable.
    pub lag: Option<Duration>,
    /// How many writes of the interface's cached attributes a cached read may miss.
    pub updates: Option<u32>,
    /// A cached read misses no write that has returned.
    pub is_linearizable: bool,
    /// The group, whose attributes a client always holds at one version.
    pub group: Option<String>,
}

impl Caching {
    /// How many writes a cached read may miss, if that is bounded: none of a linearizable attribute.
    pub fn missed_max(&self) -> Option<u32> {
        if self.is_linearizable { Some(0) } else { self.updates }
    }

    /// Whether the server sends what changes at once.
    pub fn is_pushed(&self) -> bool {
        self.lag == Some(Duration::ZERO)
    }

    /// Whether two attributes can be of one state: a client holds it, and is told of its changes, in one way.
    pub(crate) fn has_mode_of(&self, other: &Caching) -> bool {
        self.missed_max() == other.missed_max() && self.is_pushed() == other.is_pushed()
    }
}
