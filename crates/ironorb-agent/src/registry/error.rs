//! Why the registry refuses a request.

/// A refused request. It has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The owner's lease has ended, the agent has forgotten the owner, or the token is wrong. A guesser does not learn
    /// which.
    #[error("the agent does not know this owner: register again")]
    UnknownOwner,
    /// Another owner has the name for itself, or the name's revision is not the expected one.
    #[error("the name `{name}` is taken (revision {revision})")]
    Taken {
        /// The name.
        name: String,
        /// The name's revision; 0 if nothing is registered under it.
        revision: u64,
    },
    /// The name is empty, has an empty component or a control character, or is too long.
    #[error("`{name}` cannot be a name: {why}")]
    InvalidName {
        /// The name, at most its first 64 characters.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The store that agents share cannot be asked now, and an exclusive name needs its word.
    #[error("exclusive names cannot be registered now: {why}")]
    Unavailable {
        /// What is wrong with the store.
        why: String,
    },
    /// A limit is reached.
    #[error("too many {what}: at most {max}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}
