//! The naming service as objects of an ORB: CosNaming on the wire, over [`NamingService`].
//!
//! This module finds the context that a request is for, converts references to bytes and errors to
//! exceptions, and continues at contexts of other naming services. It does not decide what CosNaming permits.
//! The ORB's thread that serves the request does the work of the store.
//!
//! Contexts are persistent objects: references to them stay valid after a restart at the same endpoint and
//! store. An adapter creates their servants when they are first called. Binding iterators end with the
//! process.

mod context;
mod fault;
mod iterator;
mod references;

use std::fmt;
use std::sync::Arc;

use ironorb::naming::cos_naming::{NamingContextExtRef, NamingContextRef};
use ironorb::naming::{Name, Naming};
use ironorb::poa::{IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, PoaError, RequestProcessing};
use ironorb::{Orb, Poa, PoaPolicies, SystemException, TypedRef, servant};

use super::{ContextId, NamingError, NamingService, StoreError};
use context::{Activator, Context};

/// A naming service that an ORB serves under the object key `NameService`.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ironorb_services::naming::{Limits, NamingServer, NamingService, Store};
///
/// let orb = ironorb::Orb::builder().endpoint("iiop://:2809")?.build()?;
/// let naming = NamingServer::start(&orb, NamingService::new(Store::open("names.redb")?, Limits::default()))?;
/// println!("serving {}", naming.corbaloc());
/// orb.run()?;
/// # Ok(()) }
/// ```
///
/// The ORB serves it until it shuts down. Dropping this handle changes nothing. A server with clients of an
/// earlier run builds its ORB with [`hold_requests`](ironorb::OrbBuilder::hold_requests), and activates the
/// root adapter's manager after the naming service has started. Clients then do not get OBJECT_NOT_EXIST for
/// their contexts during the start.
#[derive(Clone)]
pub struct NamingServer {
    shared: Arc<Shared>,
    root: NamingContextExtRef,
}

/// A callback for errors of the store. Clients see such an error only as PERSIST_STORE. Called on the thread
/// that serves the request.
pub type StoreFaultReport = Box<dyn Fn(&StoreError) + Send + Sync>;

/// The reason why a naming service cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The ORB serves a naming service already, or is shutting down.
    #[error("the ORB cannot serve names: {0}")]
    Adapter(#[from] PoaError),
    /// The root context cannot have its object key.
    #[error("the ORB cannot serve names: {0}")]
    Key(#[from] SystemException),
}

impl NamingServer {
    /// Serves the names at the ORB's endpoints, and registers the root context as the ORB's own initial
    /// reference `NameService`.
    pub fn start(orb: &Orb, service: NamingService) -> Result<NamingServer, StartError> {
        NamingServer::start_reporting(orb, service, Box::new(|_| ()))
    }

    /// Starts a naming service as [`start`](Self::start) does, with a callback for errors of the store.
    pub fn start_reporting(
        orb: &Orb,
        service: NamingService,
        report: StoreFaultReport,
    ) -> Result<NamingServer, StartError> {
        let root_poa = orb.root_poa();
        let manager = root_poa.manager();
        let contexts = root_poa.create_poa(CONTEXTS_POA, Some(manager.clone()), CONTEXTS_POLICIES)?;
        let iterators = root_poa.create_poa(ITERATORS_POA, Some(manager.clone()), ITERATORS_POLICIES)?;
        let shared = Arc::new(Shared { service, contexts, iterators, report });
        // The adapter keeps the activator even after it has been destroyed, so the activator must not keep
        // the store open. The root context's servant keeps it open until the adapter is destroyed.
        shared.contexts.set_servant_activator(Arc::new(Activator::new(&shared)))?;
        let root = Context::new(shared.clone(), ContextId::ROOT);
        let root_id = references::context_object_id(ContextId::ROOT);
        shared
            .contexts
            .activate_object_with_id(&root_id, servant::<NamingContextExtRef, _>(Arc::new(root)))?;
        let root: NamingContextExtRef =
            shared.context_reference(ContextId::ROOT)?.object().narrow_unchecked();
        orb.bind_key(NAME_SERVICE, root.object())?;
        orb.register_initial_reference(NAME_SERVICE, root.object());
        Ok(NamingServer { shared, root })
    }

    /// A reference to the root context.
    pub fn root(&self) -> &NamingContextExtRef {
        &self.root
    }

    /// The root context as a client for stringified names.
    pub fn naming(&self) -> Naming {
        Naming::of(self.root.object().narrow_unchecked())
    }

    /// The service as plain code, for programs that use names without an ORB.
    pub fn service(&self) -> &NamingService {
        &self.shared.service
    }

    /// The address of the root context for clients: `corbaloc::1.2@host/NameService`; empty when the ORB does
    /// not listen.
    pub fn corbaloc(&self) -> String {
        self.shared.contexts.orb().corbaloc(NAME_SERVICE)
    }
}

impl fmt::Debug for NamingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamingServer").field("root", self.root.object()).finish_non_exhaustive()
    }
}

/// The state that all servants of one service share.
struct Shared {
    service: NamingService,
    contexts: Poa,
    iterators: Poa,
    report: StoreFaultReport,
}

impl Shared {
    fn context_reference(&self, context: ContextId) -> Result<NamingContextRef, PoaError> {
        let id = references::context_object_id(context);
        let object = self.contexts.create_reference_with_id(id, NamingContextExtRef::REPOSITORY_ID)?;
        Ok(object.narrow_unchecked())
    }

    /// Reports errors of the store to the operator.
    fn noted<T>(&self, outcome: Result<T, NamingError>) -> Result<T, NamingError> {
        if let Err(NamingError::Store(fault)) = &outcome {
            (self.report)(fault);
        }
        outcome
    }
}

/// A name of CosNaming, checked.
fn checked_name(
    components: &[ironorb::naming::cos_naming::NameComponent],
) -> Result<Name, ironorb::naming::InvalidName> {
    Name::new(components.iter().cloned().map(Into::into).collect())
}

const NAME_SERVICE: &str = "NameService";
/// Part of the object keys of contexts. A change of this name would invalidate all references to them.
const CONTEXTS_POA: &str = "NamingContexts";
const ITERATORS_POA: &str = "NamingIterators";

const CONTEXTS_POLICIES: PoaPolicies = PoaPolicies {
    lifespan: Lifespan::Persistent,
    id_assignment: IdAssignment::User,
    id_uniqueness: IdUniqueness::Unique,
    implicit_activation: ImplicitActivation::No,
    request_processing: RequestProcessing::ServantManager,
    ..PoaPolicies::PERSISTENT
};

const ITERATORS_POLICIES: PoaPolicies = PoaPolicies {
    lifespan: Lifespan::Transient,
    request_processing: RequestProcessing::ActiveObjectMapOnly,
    ..CONTEXTS_POLICIES
};
