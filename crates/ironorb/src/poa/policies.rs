//! Policies of an object adapter (CORBA 3.3 part 1, 15.3.7).

use super::PoaError;

/// How long references live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifespan {
    /// Until the adapter is destroyed.
    #[default]
    Transient,
    /// Beyond the process: the same adapter path and object id name the same object after a restart at the
    /// same endpoint.
    Persistent,
}

/// Who gives ids to objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdAssignment {
    /// The adapter.
    #[default]
    System,
    /// The application.
    User,
}

/// Whether one servant may be several objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdUniqueness {
    /// It may not.
    #[default]
    Unique,
    /// It may.
    Multiple,
}

/// Whether asking for a servant's reference activates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImplicitActivation {
    /// It does not.
    #[default]
    No,
    /// It does; needs [`IdAssignment::System`].
    Yes,
}

/// What is done with a request for an object that is not active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestProcessing {
    /// It gets OBJECT_NOT_EXIST.
    #[default]
    ActiveObjectMapOnly,
    /// A [`ServantActivator`](super::ServantActivator) is asked for a servant, which is then kept.
    ServantActivator,
    /// One servant serves it; needs [`IdUniqueness::Multiple`].
    DefaultServant,
}

/// The policies of an adapter. The default is that of the standard's `create_POA` without policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoaPolicies {
    /// How long references live.
    pub lifespan: Lifespan,
    /// Who gives ids.
    pub id_assignment: IdAssignment,
    /// Whether a servant may be several objects.
    pub id_uniqueness: IdUniqueness,
    /// Whether asking for a reference activates.
    pub implicit_activation: ImplicitActivation,
    /// What is done for objects that are not active.
    pub request_processing: RequestProcessing,
}

impl PoaPolicies {
    /// The root adapter's: transient, system ids, unique, implicit activation.
    pub const ROOT: PoaPolicies = PoaPolicies {
        lifespan: Lifespan::Transient,
        id_assignment: IdAssignment::System,
        id_uniqueness: IdUniqueness::Unique,
        implicit_activation: ImplicitActivation::Yes,
        request_processing: RequestProcessing::ActiveObjectMapOnly,
    };

    /// Persistent references with ids given by the application: what servers that are restarted want.
    pub const PERSISTENT: PoaPolicies = PoaPolicies {
        lifespan: Lifespan::Persistent,
        id_assignment: IdAssignment::User,
        id_uniqueness: IdUniqueness::Unique,
        implicit_activation: ImplicitActivation::No,
        request_processing: RequestProcessing::ActiveObjectMapOnly,
    };

    /// Refuses combinations that the standard forbids.
    pub(crate) fn check(&self) -> Result<(), PoaError> {
        if self.implicit_activation == ImplicitActivation::Yes && self.id_assignment == IdAssignment::User {
            return Err(PoaError::InvalidPolicy("implicit activation needs system ids"));
        }
        if self.request_processing == RequestProcessing::DefaultServant
            && self.id_uniqueness == IdUniqueness::Unique
        {
            return Err(PoaError::InvalidPolicy("a default servant needs multiple ids for one servant"));
        }
        Ok(())
    }
}
