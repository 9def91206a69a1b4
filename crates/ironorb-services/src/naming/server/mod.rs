//! The naming service as objects of an ORB: CosNaming on the wire, over [`NamingService`].
//!
//! Nothing here decides what CosNaming permits; this finds the context that a request is for, turns references into
//! bytes and faults into exceptions, and goes on at contexts of other naming services. The calling thread of the ORB
//! does the work of the store.
//!
//! Contexts are persistent objects, so references to them outlive a restart at the same endpoint and store. An adapter
//! makes their servants when they are first called. Binding iterators end with the process.

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

/// A naming service that an ORB serves, under the plain key `NameService`.
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
/// The service lives as long as the ORB serves; dropping this changes nothing. A server with clients of an earlier run
/// builds its ORB with [`hold_requests`](ironorb::OrbBuilder::hold_requests) and activates the root adapter's manager
/// when this has started, so that none of them is told that its context is gone.
#[derive(Clone)]
pub struct NamingServer {
    shared: Arc<Shared>,
    root: NamingContextExtRef,
}

/// Hears of faults of the store, which clients only see as PERSIST_STORE: `store stopped` is news for an operator.
pub type StoreFaultReport = Box<dyn Fn(&StoreError) + Send + Sync>;

/// Why a naming service cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The ORB serves one already, or is being shut down.
    #[error("the ORB cannot serve names: {0}")]
    Adapter(#[from] PoaError),
    /// The plain key cannot be given to the root context.
    #[error("the ORB cannot serve names: {0}")]
    Key(#[from] SystemException),
}

impl NamingServer {
    /// Serves the names at the ORB's endpoints, and makes them the ORB's own initial reference `NameService`.
    pub fn start(orb: &Orb, service: NamingService) -> Result<NamingServer, StartError> {
        NamingServer::start_reporting(orb, service, Box::new(|_| ()))
    }

    /// [`start`](Self::start) with a report of faults of the store.
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
        // The adapter keeps the activator after it has been destroyed, so it must not keep the store open. The root
        // context's servant does, until the adapter is destroyed.
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

    /// The root context.
    pub fn root(&self) -> &NamingContextExtRef {
        &self.root
    }

    /// The root context, by stringified names.
    pub fn naming(&self) -> Naming {
        Naming::of(self.root.object().narrow_unchecked())
    }

    /// The service behind it, for programs that look at names without an ORB.
    pub fn service(&self) -> &NamingService {
        &self.shared.service
    }

    /// Where clients find the root context: `corbaloc::1.2@host/NameService`; empty when the ORB does not listen.
    pub fn corbaloc(&self) -> String {
        self.shared.contexts.orb().corbaloc(NAME_SERVICE)
    }
}

impl fmt::Debug for NamingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamingServer").field("root", self.root.object()).finish_non_exhaustive()
    }
}

/// What all servants of one service have in common.
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

    /// Tells the operator of what clients cannot be told.
    fn noted<T>(&self, outcome: Result<T, NamingError>) -> Result<T, NamingError> {
        if let Err(NamingError::Store(fault)) = &outcome {
            (self.report)(fault);
        }
        outcome
    }
}

/// What CosNaming calls a name, checked.
fn checked_name(
    components: &[ironorb::naming::cos_naming::NameComponent],
) -> Result<Name, ironorb::naming::InvalidName> {
    Name::new(components.iter().cloned().map(Into::into).collect())
}

const NAME_SERVICE: &str = "NameService";
/// Part of the object keys of contexts: another name would make all references to them useless.
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
