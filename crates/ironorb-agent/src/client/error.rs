//! What goes wrong with an agent.

use ironorb::{SystemException, SystemExceptionKind};

use crate::idl::agent::{
    CloseError, OpenError, RegisterError, RegisterExclusiveError, RemoveError, RenewError, RenewLoadedError,
};
use crate::idl::agent_watch::{WatchError, WatchPrefixError};

/// Why a client's request to an agent failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The agent does not know the owner. The client opens a new one by itself and registers all again.
    #[error("the agent does not know this process: it must register again")]
    UnknownOwner,
    /// Another process has the name for itself, or servers that stand in the way of having it.
    #[error("the name `{name}` is taken")]
    Taken {
        /// The name.
        name: String,
        /// Its revision; 0 if nothing is registered under it.
        revision: u64,
    },
    /// The text cannot be a name.
    #[error("`{name}` cannot be a name: {why}")]
    UnfitName {
        /// The text, or its beginning.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The agent has no room.
    #[error("the agent refuses: too many {what} (at most {max})")]
    LimitReached {
        /// What there is too much of.
        what: String,
        /// The limit.
        max: u64,
    },
    /// The agent shares names with others, and the store that decides about exclusive names cannot be asked now. Not an error
    /// of the agent: plain names can be registered.
    #[error("the agent cannot register exclusive names now: {why}")]
    Unavailable {
        /// What is wrong.
        why: String,
    },
    /// The agent does not know the changes any more. A [`Watch`](crate::Watch) resolves anew by itself.
    #[error("the agent does not know the changes since then")]
    Forgotten,
    /// No agent can be reached, or one failed.
    #[error("{0}")]
    System(#[from] SystemException),
    /// The system makes no thread.
    #[error("cannot make a thread: {0}")]
    Thread(String),
}

impl AgentError {
    /// Whether another agent may be able to do what this one was not.
    pub(super) fn is_of_one_agent(&self) -> bool {
        use SystemExceptionKind::{
            CommFailure, Internal, NoResources, NoResponse, ObjAdapter, ObjectNotExist, PersistStore,
            Timeout, Transient, Unknown,
        };
        match self {
            AgentError::System(e) => matches!(
                e.kind,
                CommFailure
                    | Internal
                    | NoResources
                    | NoResponse
                    | ObjAdapter
                    | ObjectNotExist
                    | PersistStore
                    | Timeout
                    | Transient
                    | Unknown
            ),
            _ => false,
        }
    }
}

/// Converts the errors of operations.
macro_rules! converts {
    ($($error:ident { $($exception:ident)* })*) => {$(
        impl From<$error> for AgentError {
            fn from(e: $error) -> Self {
                match e {
                    $($error::$exception(e) => converts!(@$exception e),)*
                    $error::System(e) => AgentError::System(e),
                }
            }
        }
    )*};
    (@UnknownOwner $e:ident) => {{ let _ = $e; AgentError::UnknownOwner }};
    (@Taken $e:ident) => { AgentError::Taken { name: $e.name, revision: $e.revision } };
    (@UnfitName $e:ident) => { AgentError::UnfitName { name: $e.name, why: $e.why } };
    (@LimitReached $e:ident) => { AgentError::LimitReached { what: $e.what, max: $e.max } };
    (@Unavailable $e:ident) => { AgentError::Unavailable { why: $e.why } };
    (@Forgotten $e:ident) => {{ let _ = $e; AgentError::Forgotten }};
}

converts! {
    OpenError { LimitReached }
    RenewError { UnknownOwner }
    RenewLoadedError { UnknownOwner }
    CloseError { UnknownOwner }
    RegisterError { UnknownOwner Taken UnfitName LimitReached }
    RegisterExclusiveError { UnknownOwner Taken UnfitName LimitReached Unavailable }
    RemoveError { UnknownOwner }
    WatchError { Forgotten LimitReached }
    WatchPrefixError { Forgotten LimitReached }
}
