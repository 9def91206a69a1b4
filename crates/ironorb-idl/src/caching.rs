//! What the annotation `@cached` says.

use std::time::Duration;

/// How clients may cache an attribute, from `@cached(lag = "1ms")`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caching {
    /// How old the value of a cached read may be. More than 0.
    pub lag: Duration,
}
