//! What all layers read of an ORB. References hold it, and the driver behind it.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ironorb_giop::cdr::Environment;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::IiopProfile;
use ironorb_giop::minor::MinorCode;
use ironorb_giop::typecode::TypeCode;
use ironorb_giop::value::ValueFactory;

use crate::base::config::{OrbConfig, StatusAccess};
use crate::base::locks::SnapshotMap;
use crate::base::randomness::HashKeys;
use crate::object::ObjectRef;
use crate::object::client_policies::OrbClientPolicies;
use crate::object::deadline_context::DeadlineClock;
use crate::object::messaging::OrbPolicies;
use crate::object::priority::RealTimeConfig;
use crate::object::request_contexts::ClientContexts;
use crate::object::server_profile::{Partition, ServerEndpoint, ServerProfiles};
use crate::transport::{Address, CustomTransport};

/// What all layers only read of their ORB, but for the policies and the registered values.
pub(crate) struct OrbShared {
    pub(crate) config: OrbConfig,
    /// The transports that the program has added.
    pub(crate) transports: Vec<Arc<dyn CustomTransport>>,
    /// The policies set by `Orb::set_policies`.
    pub(crate) policies: OrbPolicies,
    /// The policies set by `Orb::set_client_policies`.
    pub(crate) client_policies: OrbClientPolicies,
    /// Whether client interceptors see the calls of this ORB.
    pub(crate) has_client_interceptors: bool,
    /// Whether the latencies of calls are measured.
    pub(crate) measures_calls: bool,
    /// Whether calls are measured, or watched for how long they wait.
    pub(crate) observes_calls: bool,
    /// What the program adds to the requests of this ORB.
    pub(crate) client_contexts: ClientContexts,
    /// How the ORB treats priorities, if it is a real-time ORB.
    pub(crate) real_time: Option<RealTimeConfig>,
    /// The clock by which requests tell how long their callers wait, if they tell it.
    pub(crate) deadline_clock: Option<DeadlineClock>,
    /// What calls have beside their arguments: the number of a [`CallExtras`].
    call_extras: AtomicU8,
    /// Whether the ORB holds states of objects, so that requests ask for the end of the server's log.
    caches: AtomicBool,
    /// Whether the calls run in virtual time.
    pub(crate) is_simulated: bool,
    pub(crate) values: ValueRegistry,
    /// What references have in common.
    pub(crate) server_profiles: ServerProfiles,
    /// The driver, which holds this. Set once, when the driver is made.
    driver: OnceLock<Weak<dyn OrbDriver>>,
}

/// What the calls of an ORB have beside their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CallExtras {
    /// Nothing.
    None,
    /// Service contexts of the ORB itself: a priority, or how long the caller waits.
    OwnContexts,
    /// The ORB caches: its requests ask for the end of the server's log. They may have other contexts of the ORB itself.
    Caching,
    /// Service contexts of the program, and perhaps some of the ORB itself.
    Contexts,
    /// Interceptors see them, or a clock measures them. They may have contexts, too.
    Observed,
    /// This process is a child of the ORB's, and must leave its connections alone: no call is made.
    OfParent,
}

/// What the part of an ORB that all layers read is made of.
pub(crate) struct SharedParts {
    pub(crate) config: OrbConfig,
    pub(crate) transports: Vec<Arc<dyn CustomTransport>>,
    pub(crate) has_client_interceptors: bool,
    pub(crate) client_contexts: ClientContexts,
    pub(crate) deadline_clock: Option<DeadlineClock>,
    pub(crate) real_time: Option<RealTimeConfig>,
    pub(crate) is_simulated: bool,
    pub(crate) hash_keys: HashKeys,
}

impl OrbShared {
    pub(crate) fn new(parts: SharedParts) -> OrbShared {
        let SharedParts { config, transports, has_client_interceptors, client_contexts, .. } = parts;
        let SharedParts { deadline_clock, real_time, is_simulated, hash_keys, .. } = parts;
        let watches = real_time.as_ref().is_some_and(|real_time| real_time.watch.is_some());
        let measures_calls = config.status != StatusAccess::Off && !is_simulated;
        let observes_calls = measures_calls || (watches && !is_simulated);
        let has_contexts = !client_contexts.is_empty();
        let has_own_contexts = deadline_clock.is_some() || real_time.is_some();
        OrbShared {
            policies: OrbPolicies::new(config.call_timeout.into()),
            client_policies: OrbClientPolicies::new(),
            config,
            transports,
            measures_calls,
            observes_calls,
            has_client_interceptors,
            call_extras: AtomicU8::new(match has_client_interceptors || observes_calls {
                true => CallExtras::Observed,
                false if has_contexts => CallExtras::Contexts,
                false if has_own_contexts => CallExtras::OwnContexts,
                false => CallExtras::None,
            } as u8),
            caches: AtomicBool::new(false),
            client_contexts,
            deadline_clock,
            real_time,
            is_simulated,
            values: ValueRegistry::default(),
            server_profiles: ServerProfiles::new(hash_keys),
            driver: OnceLock::new(),
        }
    }

    /// What calls have beside their arguments.
    #[inline(always)] // a step of every call
    pub(crate) fn call_extras(&self) -> CallExtras {
        match self.call_extras.load(Ordering::Relaxed) {
            0 => CallExtras::None,
            1 => CallExtras::OwnContexts,
            2 => CallExtras::Caching,
            3 => CallExtras::Contexts,
            4 => CallExtras::Observed,
            _ => CallExtras::OfParent,
        }
    }

    /// This process is a child of the ORB's. Takes no lock.
    pub(crate) fn begin_in_child(&self) {
        self.call_extras.store(CallExtras::OfParent as u8, Ordering::Relaxed);
    }

    /// Fails in a child of the ORB's process. A request of the child would go over its parent's connection, and its reply would come
    /// to either.
    #[inline]
    pub(crate) fn in_its_own_process(&self) -> Result<(), SystemException> {
        match self.call_extras() {
            CallExtras::OfParent => Err(of_the_parent()),
            _ => Ok(()),
        }
    }

    /// Whether the ORB holds states of objects.
    #[inline]
    pub(crate) fn caches(&self) -> bool {
        self.caches.load(Ordering::Relaxed)
    }

    /// Has requests ask for the end of the server's log from now on.
    #[cold]
    pub(crate) fn begin_caching(&self) {
        self.caches.store(true, Ordering::Relaxed);
        if matches!(self.call_extras(), CallExtras::None | CallExtras::OwnContexts) {
            self.call_extras.store(CallExtras::Caching as u8, Ordering::Relaxed);
        }
    }

    /// Names the driver. The first one stays.
    pub(crate) fn set_driver(&self, driver: Weak<dyn OrbDriver>) {
        let _first = self.driver.set(driver);
    }
}

/// What calls by the ORB of a parent process give.
#[cold]
pub(crate) fn of_the_parent() -> SystemException {
    SystemException::new(SystemExceptionKind::BadInvOrder, MinorCode::NONE, CompletionStatus::No).with_detail(
        "the ORB belongs to the process that has forked this one; a child needs an ORB of its own",
    )
}

impl Environment for OrbShared {
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.values.factory(repository_id)
    }

    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.values.value_type(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        self.driver.get()?.upgrade().map(|driver| -> Arc<dyn Environment> { driver })
    }
}

/// What carries out the calls of an ORB, as its references see it. Its environment extends the [`OrbShared`].
pub(crate) trait OrbDriver: Environment {
    /// What all layers read.
    fn shared(&self) -> &Arc<OrbShared>;

    /// Whether the object with this key is in this process. The profile leads to it, but need not have its key.
    fn is_local(&self, key: &[u8], profile: &IiopProfile) -> bool;

    /// Whether objects in this process are called directly, without a connection.
    fn calls_directly(&self) -> bool;

    /// The endpoint at an address whose connections the references of a partition share. Does not connect.
    fn endpoint(&self, address: Address, partition: Partition) -> Arc<dyn ServerEndpoint>;

    /// Whether an object has an interface. Calls the object when its reference does not say, and blocks in that case.
    fn is_a(&self, object: &ObjectRef, repository_id: &str) -> Result<bool, SystemException>;
}

/// An ORB, as its references hold it: they keep it alive.
#[derive(Clone)]
pub(crate) struct OrbHandle {
    shared: Arc<OrbShared>,
    driver: Arc<dyn OrbDriver>,
}

impl OrbHandle {
    pub(crate) fn new(driver: Arc<dyn OrbDriver>) -> OrbHandle {
        OrbHandle { shared: driver.shared().clone(), driver }
    }

    /// The ORB of the environment with which values are read. `None` where there is none, and while it is
    /// being dropped.
    pub(crate) fn of_environment(environment: &dyn Environment) -> Option<OrbHandle> {
        let of = |shared: &OrbShared| Some(OrbHandle::new(shared.driver.get()?.upgrade()?));
        match environment.downcast_ref::<OrbShared>() {
            Some(shared) => of(shared),
            None => of(environment.share()?.downcast_ref::<OrbShared>()?),
        }
    }

    /// What all layers read.
    #[inline]
    pub(crate) fn shared(&self) -> &OrbShared {
        &self.shared
    }

    pub(crate) fn driver(&self) -> &Arc<dyn OrbDriver> {
        &self.driver
    }

    /// The ORB as an environment that can outlive a message.
    pub(crate) fn environment(&self) -> Arc<dyn Environment> {
        self.driver.clone()
    }

    /// The driver, if it is of this type.
    #[inline]
    pub(crate) fn driver_as<D: OrbDriver>(&self) -> Option<&D> {
        (&*self.driver as &dyn Any).downcast_ref()
    }
}

impl fmt::Debug for OrbHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OrbHandle")
    }
}

/// The factories of valuetypes (CORBA 3.3 part 1, 9.4.1 and 8.5.4), and the types of those that have none, by
/// repository id.
#[derive(Default)]
pub(crate) struct ValueRegistry {
    factories: SnapshotMap<String, Arc<dyn ValueFactory>>,
    /// Copies of values borrow the types, so each is leaked. Only the program registers them, and each only
    /// once.
    types: SnapshotMap<String, &'static TypeCode>,
}

impl ValueRegistry {
    pub(crate) fn factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.factories.get(repository_id)
    }

    /// Registers a factory. Returns the one that was registered before.
    pub(crate) fn set_factory(
        &self,
        repository_id: &str,
        factory: Arc<dyn ValueFactory>,
    ) -> Option<Arc<dyn ValueFactory>> {
        self.factories.insert(repository_id.to_owned(), factory)
    }

    pub(crate) fn remove_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.factories.remove(repository_id.to_owned())
    }

    pub(crate) fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.types.get(repository_id)
    }

    /// Registers a type. The first registration of an id counts.
    pub(crate) fn add_type(&self, id: String, type_code: TypeCode) {
        self.types.insert_if_absent(id, || Box::leak(Box::new(type_code)));
    }
}
