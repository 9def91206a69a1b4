//! The interface repository as objects of an ORB: the interfaces of `idl/ir.idl` over
//! [`InterfaceRepository`].
//!
//! This module finds the definition that a request is for, and converts references to numbers and records to
//! descriptions. It does not decide what definitions may be. All definitions are objects of one servant type,
//! [`Definition`], which implements all interfaces. The kind of the record decides at the first call which of
//! them an object has.
//!
//! Definitions are persistent objects: references to them stay valid after a restart at the same endpoint and
//! store.

mod container;
mod definition;
mod describe;
mod fault;
mod interfaces;
mod seen;
mod types;
mod values;

use std::fmt;
use std::sync::{Arc, Weak};

use ironorb::ifr::INTERFACE_REPOSITORY;
use ironorb::ifr::corba::{self, DefinitionKind, RepositoryRef};
use ironorb::poa::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectId, PoaError, RequestProcessing,
    ServantActivator, Unavailable,
};
use ironorb::{Orb, Poa, PoaPolicies, Servant, SystemException, TypedRef, servant};

use super::{DefinitionNumber, InterfaceRepository, RepositoryError, StoreError};
use definition::Definition;
use fault::Fault;

/// An interface repository that an ORB serves under the object key `InterfaceRepository`.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ironorb_services::ifr::{InterfaceRepository, InterfaceRepositoryServer, Limits, Store};
///
/// let orb = ironorb::Orb::builder().endpoint("iiop://:2900")?.build()?;
/// let repository = InterfaceRepository::new(Store::open("definitions.redb")?, Limits::default());
/// let server = InterfaceRepositoryServer::start(&orb, repository)?;
/// println!("serving {}", server.corbaloc());
/// orb.run()?;
/// # Ok(()) }
/// ```
///
/// The ORB serves it until it shuts down. Dropping this handle changes nothing.
#[derive(Clone)]
pub struct InterfaceRepositoryServer {
    shared: Arc<Shared>,
    root: RepositoryRef,
}

/// A callback for errors of the store. Clients see such an error only as PERSIST_STORE. Called on the thread
/// that serves the request.
pub type StoreFaultReport = Box<dyn Fn(&StoreError) + Send + Sync>;

/// The reason why an interface repository cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The ORB serves an interface repository already, or is shutting down.
    #[error("the ORB cannot serve definitions: {0}")]
    Adapter(#[from] PoaError),
    /// The repository cannot have its object key.
    #[error("the ORB cannot serve definitions: {0}")]
    Key(#[from] SystemException),
}

impl InterfaceRepositoryServer {
    /// Serves the definitions at the ORB's endpoints, and registers the repository as the ORB's own initial
    /// reference `InterfaceRepository`, so that its servants answer `get_interface`.
    pub fn start(orb: &Orb, repository: InterfaceRepository) -> Result<Self, StartError> {
        Self::start_reporting(orb, repository, Box::new(|_| ()))
    }

    /// Starts a repository as [`start`](Self::start) does, with a callback for errors of the store.
    pub fn start_reporting(
        orb: &Orb,
        repository: InterfaceRepository,
        report: StoreFaultReport,
    ) -> Result<Self, StartError> {
        let root_poa = orb.root_poa();
        let definitions =
            root_poa.create_poa(DEFINITIONS_POA, Some(root_poa.manager().clone()), DEFINITIONS_POLICIES)?;
        let shared = Arc::new(Shared { repository, definitions, report });
        // The adapter keeps the activator even after it has been destroyed, so the activator must not keep
        // the store open. The root's servant keeps it open until the adapter is destroyed.
        shared.definitions.set_servant_activator(Arc::new(Activator(Arc::downgrade(&shared))))?;
        let root = Definition::new(shared.clone(), DefinitionNumber::REPOSITORY);
        let root_id = object_id(DefinitionNumber::REPOSITORY);
        shared.definitions.activate_object_with_id(&root_id, servant::<RepositoryRef, _>(Arc::new(root)))?;
        let root: RepositoryRef = shared
            .definitions
            .create_reference_with_id(root_id, RepositoryRef::REPOSITORY_ID)?
            .narrow_unchecked();
        orb.bind_key(INTERFACE_REPOSITORY, root.object())?;
        orb.register_initial_reference(INTERFACE_REPOSITORY, root.object());
        Ok(InterfaceRepositoryServer { shared, root })
    }

    /// A reference to the repository.
    pub fn root(&self) -> &RepositoryRef {
        &self.root
    }

    /// The repository as plain code, for programs that read definitions without an ORB.
    pub fn repository(&self) -> &InterfaceRepository {
        &self.shared.repository
    }

    /// The address for clients: `corbaloc::1.2@host:2900/InterfaceRepository`; empty when the ORB does not
    /// listen.
    pub fn corbaloc(&self) -> String {
        self.shared.definitions.orb().corbaloc(INTERFACE_REPOSITORY)
    }
}

impl fmt::Debug for InterfaceRepositoryServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterfaceRepositoryServer").field("root", self.root.object()).finish_non_exhaustive()
    }
}

/// The state that all servants of one repository share.
struct Shared {
    repository: InterfaceRepository,
    definitions: Poa,
    report: StoreFaultReport,
}

impl Shared {
    /// A reference to a definition. Its type id is the interface that all ORBs know for the kind.
    fn reference<R: TypedRef>(&self, number: DefinitionNumber, kind: DefinitionKind) -> Result<R, Fault> {
        let object = self.definitions.create_reference_with_id(object_id(number), repository_id(kind))?;
        Ok(object.narrow_unchecked())
    }

    /// The number of the definition that a reference leads to. A nil reference, or one of another repository,
    /// is BAD_PARAM.
    fn number(&self, reference: Option<&impl TypedRef>) -> Result<DefinitionNumber, Fault> {
        let reference = reference.ok_or_else(|| Fault::bad_param("a definition is missing: nil"))?;
        let id = self.definitions.reference_to_id(reference.object()).ok();
        let number = id.as_ref().and_then(number_of);
        number.ok_or_else(|| Fault::bad_param("the definition is not of this repository"))
    }

    fn numbers<R: TypedRef>(&self, references: &[Option<R>]) -> Result<Vec<DefinitionNumber>, Fault> {
        references.iter().map(|reference| self.number(reference.as_ref())).collect()
    }

    /// Converts the outcome of an operation, and reports errors of the store to the operator.
    fn answer<T>(&self, outcome: Result<T, Fault>) -> Result<T, SystemException> {
        if let Err(Fault::Repository(RepositoryError::Store(fault))) = &outcome {
            (self.report)(fault);
        }
        outcome.map_err(Into::into)
    }
}

/// Creates servants for definitions of the store when they are first called.
struct Activator(Weak<Shared>);

impl ServantActivator for Activator {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        let gone = || Unavailable::Raise(Fault::from(RepositoryError::NoSuchDefinition).into());
        let shared = self.0.upgrade().ok_or_else(gone)?;
        let number = number_of(id).ok_or_else(gone)?;
        let record = shared.answer(shared.repository.get(number).map_err(Fault::from));
        let kind = record.map_err(Unavailable::Raise)?.kind();
        skeleton(Definition::new(shared, number), kind).ok_or_else(gone)
    }
}

macro_rules! kinds {
    ($($kind:ident => $shown:ident as $served:ident,)*) => {
        /// The type id of references to definitions of a kind.
        fn repository_id(kind: DefinitionKind) -> &'static str {
            match kind {
                $(DefinitionKind::$kind => corba::$shown::REPOSITORY_ID,)*
                _ => corba::IrObjectRef::REPOSITORY_ID,
            }
        }

        /// The servant for definitions of a kind, with the kind's interface.
        fn skeleton(definition: Definition, kind: DefinitionKind) -> Option<Arc<dyn Servant>> {
            let definition = Arc::new(definition);
            Some(match kind {
                $(DefinitionKind::$kind => servant::<corba::$served, _>(definition),)*
                _ => return None,
            })
        }
    };
}

// The first interface of each pair is the one of CORBA 2. Older clients know it and need not ask whether the
// object has it. Newer clients narrow to the second one.
kinds! {
    DkRepository => RepositoryRef as RepositoryRef,
    DkModule => ModuleDefRef as ModuleDefRef,
    DkConstant => ConstantDefRef as ConstantDefRef,
    DkStruct => StructDefRef as StructDefRef,
    DkUnion => UnionDefRef as UnionDefRef,
    DkEnum => EnumDefRef as EnumDefRef,
    DkAlias => AliasDefRef as AliasDefRef,
    DkNative => NativeDefRef as NativeDefRef,
    DkPrimitive => PrimitiveDefRef as PrimitiveDefRef,
    DkString => StringDefRef as StringDefRef,
    DkWstring => WstringDefRef as WstringDefRef,
    DkFixed => FixedDefRef as FixedDefRef,
    DkSequence => SequenceDefRef as SequenceDefRef,
    DkArray => ArrayDefRef as ArrayDefRef,
    DkException => ExceptionDefRef as ExceptionDefRef,
    DkAttribute => AttributeDefRef as ExtAttributeDefRef,
    DkOperation => OperationDefRef as OperationDefRef,
    DkInterface => InterfaceDefRef as ExtInterfaceDefRef,
    DkAbstractInterface => AbstractInterfaceDefRef as ExtAbstractInterfaceDefRef,
    DkLocalInterface => LocalInterfaceDefRef as ExtLocalInterfaceDefRef,
    DkValue => ValueDefRef as ExtValueDefRef,
    DkValueMember => ValueMemberDefRef as ValueMemberDefRef,
    DkValueBox => ValueBoxDefRef as ValueBoxDefRef,
}

/// The object id of a definition: its number in decimal digits, which is readable in an object key.
fn object_id(number: DefinitionNumber) -> ObjectId {
    ObjectId::from(number.number().to_string().as_str())
}

/// The inverse of [`object_id`]; `None` for any other id, so that a definition is one object.
fn number_of(id: &ObjectId) -> Option<DefinitionNumber> {
    let text = std::str::from_utf8(id.as_bytes()).ok()?;
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(DefinitionNumber::from_number(number))
}

/// Part of the object keys of definitions. A change of this name would invalidate all references to them.
const DEFINITIONS_POA: &str = "InterfaceRepository";

const DEFINITIONS_POLICIES: PoaPolicies = PoaPolicies {
    lifespan: Lifespan::Persistent,
    id_assignment: IdAssignment::User,
    id_uniqueness: IdUniqueness::Unique,
    implicit_activation: ImplicitActivation::No,
    request_processing: RequestProcessing::ServantManager,
    ..PoaPolicies::PERSISTENT
};
