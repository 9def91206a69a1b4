//! The errors of calls on adapters and managers.

use std::fmt;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::policies::PoaPolicyType;
use crate::object::priority::Priority;

/// The error of a call on an adapter or a manager. It covers the user exceptions of their interfaces (CORBA
/// 3.3 part 1, 15.3) and what the standard reports by system exceptions. In a servant, `?` turns it into such
/// an exception.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoaError {
    /// A child of this name exists, or is still being destroyed.
    AdapterAlreadyExists,
    /// There is no child of this name.
    AdapterNonExistent,
    /// The adapter activator failed (OBJ_ADAPTER).
    AdapterActivatorFailed,
    /// The manager has been deactivated for good.
    AdapterInactive,
    /// A manager of this id exists.
    ManagerAlreadyExists,
    /// The adapter has been destroyed, or is about to be (BAD_INV_ORDER or OBJECT_NOT_EXIST in the standard).
    Destroyed,
    /// Policies contradict each other.
    InvalidPolicy {
        /// The policy that contradicts another one.
        policy: PoaPolicyType,
        /// The position of the policy in the given list; in a [`PoaPolicies`](super::PoaPolicies), among its
        /// fields.
        index: u16,
        /// What the policy needs.
        why: &'static str,
    },
    /// The adapter's policies do not allow this.
    WrongPolicy(&'static str),
    /// An object cannot have this priority (BAD_PARAM; RTCORBA 1.2, 5.7.4).
    PriorityNotServed {
        /// The priority.
        priority: Priority,
        /// What it lacks.
        why: &'static str,
    },
    /// The reference was not made by this adapter.
    WrongAdapter,
    /// The adapter assigns ids itself and did not make this one (BAD_PARAM).
    ForeignId,
    /// An object with this id is active, or about to be.
    ObjectAlreadyActive,
    /// No object with this id is active.
    ObjectNotActive,
    /// The servant is active as another object.
    ServantAlreadyActive,
    /// The servant is not active.
    ServantNotActive,
    /// No default servant has been set.
    NoServant,
    /// A servant manager has been set already (BAD_INV_ORDER).
    ServantManagerAlreadySet,
    /// The call would wait for the upcall that makes it (BAD_INV_ORDER).
    WouldDeadlock,
    /// Writes of the servant's cell wait for clients, and the one thread of a [reactor](crate::ServerConcurrency::Reactor) would wait
    /// for what it alone can receive (BAD_INV_ORDER).
    WritesWaitInVain,
    /// The path of the adapter is too long for an object key.
    NameTooLong,
    /// The adapter has as many objects as it can have: one for each 32-bit number but two (NO_RESOURCES).
    TooManyObjects,
}

impl fmt::Display for PoaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PoaError::AdapterAlreadyExists => "an adapter of this name exists already",
            PoaError::AdapterNonExistent => "there is no adapter of this name",
            PoaError::AdapterActivatorFailed => "the adapter activator failed",
            PoaError::AdapterInactive => "the adapter's manager has been deactivated",
            PoaError::ManagerAlreadyExists => "a manager of this id exists already",
            PoaError::Destroyed => "the adapter has been destroyed",
            PoaError::InvalidPolicy { policy, why, .. } => {
                return write!(f, "the policies contradict each other: {policy:?} {why}");
            }
            PoaError::WrongPolicy(why) => {
                return write!(f, "the adapter's policies do not allow this: {why}");
            }
            PoaError::PriorityNotServed { priority, why } => {
                return write!(f, "an object cannot have priority {priority}: {why}");
            }
            PoaError::WrongAdapter => "the reference was not made by this adapter",
            PoaError::ForeignId => "the id was not made by this adapter",
            PoaError::ObjectAlreadyActive => "an object with this id is active already",
            PoaError::ObjectNotActive => "no object with this id is active",
            PoaError::ServantAlreadyActive => "the servant is active already",
            PoaError::ServantNotActive => "the servant is not active",
            PoaError::NoServant => "no default servant has been set",
            PoaError::ServantManagerAlreadySet => "a servant manager has been set already",
            PoaError::WouldDeadlock => "the call would wait for the upcall that makes it",
            PoaError::WritesWaitInVain => {
                "writes of this object's cached attributes wait for clients, which a reactor's one thread does not hear meanwhile: \
                 give the server another concurrency"
            }
            PoaError::TooManyObjects => "the adapter has as many objects as it can have",
            PoaError::NameTooLong => "the adapter's path is longer than 65,535 bytes",
        })
    }
}

/// The text of [`Display`](fmt::Display), which a program's `main` shows for an error that it returns.
impl fmt::Debug for PoaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for PoaError {}

/// For servants that call adapters.
impl From<PoaError> for SystemException {
    #[cold]
    fn from(error: PoaError) -> Self {
        use SystemExceptionKind as S;
        let (kind, minor) = match error {
            PoaError::WouldDeadlock | PoaError::WritesWaitInVain => {
                (S::BadInvOrder, MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK)
            }
            PoaError::ServantManagerAlreadySet => (S::BadInvOrder, MinorCode::BAD_INV_ORDER_MANAGER_SET),
            PoaError::Destroyed => (S::BadInvOrder, MinorCode::BAD_INV_ORDER_POA_DESTROYED),
            PoaError::ForeignId => (S::BadParam, MinorCode::BAD_PARAM_FOREIGN_ID),
            PoaError::PriorityNotServed { .. } => (S::BadParam, MinorCode::NONE),
            PoaError::AdapterActivatorFailed => (S::ObjAdapter, MinorCode::OBJ_ADAPTER_ACTIVATOR_FAILED),
            PoaError::TooManyObjects => (S::NoResources, MinorCode::NONE),
            PoaError::InvalidPolicy { .. } => (S::InvPolicy, MinorCode::NONE),
            _ => (S::ObjAdapter, MinorCode::WRONG_POLICY),
        };
        SystemException::new(kind, minor, CompletionStatus::No).with_detail(error.to_string())
    }
}
