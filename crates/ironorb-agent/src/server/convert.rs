//! Between the registry's types and those of the IDL.

use std::time::Duration;

use ironorb::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};

use super::Fault;
use crate::idl::{self, agent};
use crate::registry::{self, Change, ChangeKind, Condition, Entry, OwnerSeen, RegistryError, TooOld};
use crate::store::{join, split};

pub(super) fn owner_key(key: &idl::OwnerKey) -> registry::OwnerKey {
    registry::OwnerKey { id: key.id, token: join(key.token_high, key.token_low) }
}

pub(super) fn to_idl_key(key: registry::OwnerKey) -> idl::OwnerKey {
    let (token_high, token_low) = split(key.token);
    idl::OwnerKey { id: key.id, token_high, token_low }
}

pub(super) fn offer(offer: &idl::Offer) -> registry::Offer {
    let property = |property: &idl::Property| registry::Property {
        name: property.name.as_str().into(),
        value: property.value.as_str().into(),
    };
    registry::Offer {
        name: offer.name.clone(),
        reference: offer.reference.clone(),
        properties: offer.properties.iter().map(property).collect(),
    }
}

pub(super) fn filter(conditions: &[idl::Condition]) -> Vec<Condition> {
    let condition = |condition: &idl::Condition| {
        let (name, value) = (condition.name.clone(), condition.value.clone());
        match condition.kind {
            idl::ConditionKind::PropertyEquals => Condition::Equals(name, value),
            idl::ConditionKind::PropertyDiffers => Condition::Differs(name, value),
            idl::ConditionKind::PropertyExists => Condition::Exists(name),
        }
    };
    conditions.iter().map(condition).collect()
}

pub(super) fn server(entry: &Entry) -> idl::Server {
    let property = |property: &registry::Property| idl::Property {
        name: property.name.as_ref().into(),
        value: property.value.as_ref().into(),
    };
    idl::Server {
        reference: entry.reference.as_ref().into(),
        properties: entry.properties.iter().map(property).collect(),
    }
}

pub(super) fn owner_status(seen: OwnerSeen) -> idl::OwnerStatus {
    let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    idl::OwnerStatus {
        id: seen.id,
        lease_ms: millis(seen.lease),
        left_ms: millis(seen.left),
        renewals_total: seen.renewals,
        has_load: seen.requests.is_some(),
        requests: seen.requests.unwrap_or(0),
        names_count: u32::try_from(seen.names_count).unwrap_or(u32::MAX),
        names: seen.names.iter().map(|name| name.as_ref().into()).collect(),
        more: Vec::new(),
    }
}

/// The answer to a watcher; `None` if what it asks for is forgotten.
pub(super) fn watched(found: Result<(Vec<Change>, u64), TooOld>) -> Option<idl::Watched> {
    let (changes, revision) = found.ok()?;
    let changes = changes.into_iter().map(|change| idl::NameChange {
        revision: change.revision,
        name: change.name.as_ref().into(),
        is_removed: change.kind == ChangeKind::Removed,
        owner: change.entry.owner,
        what: server(&change.entry),
    });
    Some(idl::Watched { revision, changes: changes.collect() })
}

pub(super) fn system(kind: SystemExceptionKind, why: impl ToString) -> SystemException {
    SystemException::new(kind, MinorCode::NONE, CompletionStatus::No).with_detail(why.to_string())
}

/// The exceptions that an operation raises for the registry's errors. An error that it does not declare does not happen
/// there.
macro_rules! raises {
    ($($error:ident { $($exception:ident)* })*) => {$(
        impl From<Fault> for agent::$error {
            fn from(fault: Fault) -> Self {
                match fault {
                    $(raises!(@$exception e) => agent::$error::$exception(e.into()),)*
                    Fault::Store(e) => agent::$error::System(system(SystemExceptionKind::PersistStore, e)),
                    #[allow(unreachable_patterns, reason = "some operations declare all")]
                    Fault::Refused(e) => agent::$error::System(system(SystemExceptionKind::Internal, e)),
                }
            }
        }
    )*};
    (@UnknownOwner $e:ident) => { Fault::Refused($e @ RegistryError::UnknownOwner) };
    (@Taken $e:ident) => { Fault::Refused($e @ RegistryError::Taken { .. }) };
    (@UnfitName $e:ident) => { Fault::Refused($e @ RegistryError::InvalidName { .. }) };
    (@Unavailable $e:ident) => { Fault::Refused($e @ RegistryError::Unavailable { .. }) };
    (@LimitReached $e:ident) => { Fault::Refused($e @ RegistryError::Limit { .. }) };
}

raises! {
    OpenError { LimitReached }
    RenewError { UnknownOwner }
    RenewLoadedError { UnknownOwner }
    CloseError { UnknownOwner }
    RegisterError { UnknownOwner Taken UnfitName LimitReached }
    RegisterExclusiveError { UnknownOwner Taken UnfitName LimitReached Unavailable }
    RemoveError { UnknownOwner }
}

impl From<RegistryError> for idl::UnknownOwner {
    fn from(_: RegistryError) -> Self {
        idl::UnknownOwner {}
    }
}

impl From<RegistryError> for idl::Taken {
    fn from(e: RegistryError) -> Self {
        match e {
            RegistryError::Taken { name, revision } => idl::Taken { name, revision },
            _ => idl::Taken::default(),
        }
    }
}

impl From<RegistryError> for idl::UnfitName {
    fn from(e: RegistryError) -> Self {
        match e {
            RegistryError::InvalidName { name, why } => idl::UnfitName { name, why: why.into() },
            _ => idl::UnfitName::default(),
        }
    }
}

impl From<RegistryError> for idl::Unavailable {
    fn from(e: RegistryError) -> Self {
        match e {
            RegistryError::Unavailable { why } => idl::Unavailable { why },
            _ => idl::Unavailable::default(),
        }
    }
}

impl From<RegistryError> for idl::LimitReached {
    fn from(e: RegistryError) -> Self {
        match e {
            RegistryError::Limit { what, max } => idl::LimitReached { what: what.into(), max: max as u64 },
            _ => idl::LimitReached::default(),
        }
    }
}
