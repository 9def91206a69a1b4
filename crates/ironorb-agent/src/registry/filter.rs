//! What a client asks of the servers that it resolves.

use super::entry::Entry;

/// A condition on a server's properties. A filter is a list of them, and a server must meet all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The property is there and has this value.
    Equals(String, String),
    /// The property has another value, or is not there.
    Differs(String, String),
    /// The property is there.
    Exists(String),
}

impl Condition {
    /// Whether a server meets it.
    pub fn is_met_by(&self, entry: &Entry) -> bool {
        match self {
            Condition::Equals(name, value) => entry.property(name) == Some(value),
            Condition::Differs(name, value) => entry.property(name) != Some(value),
            Condition::Exists(name) => entry.property(name).is_some(),
        }
    }
}
