//! The portable object adapter (CORBA 3.3 part 1, clause 15): from object keys to servants.
//!
//! - the tree of adapters: this file, `destroy`, `servant_manager` (what applications implement)
//! - objects and references: `objects`, `active_object_map` (over `slots` and `ids`), `object_id`, `key`
//! - objects that are elements of an extent: `extent`
//! - requests: `manager` (whether they may pass), `lookup` (to which servant), `upcall` (what is counted),
//!   `single_thread` and `main_thread` (on which thread), `current` (what the servant may ask),
//!   `collocated_binding` (calls that are not counted)
//! - around them: `driver` (what waits and has threads), `host` (the ORB)
//! - `servant`: servants, and their contract with generated code
//!
//! No application code is called with a lock held.

mod active_object_map;
pub(crate) mod adapter;
mod collocated_binding;
mod current;
mod destroy;
mod driver;
mod error;
mod extent;
mod host;
mod ids;
pub(crate) mod key;
mod lookup;
mod main_thread;
mod manager;
mod manager_factory;
mod object_id;
mod objects;
mod objects_with_priority;
mod path;
mod policies;
pub(crate) mod servant;
mod servant_manager;
mod single_thread;
mod slots;
mod upcall;

pub(crate) use collocated_binding::{AdapterLease, CollocatedBinding};
pub use current::PoaCurrent;
pub(crate) use current::{Current, current_object, is_in_upcall_of};
pub(crate) use driver::{AdapterDriver, Task};
pub use error::PoaError;
pub(crate) use extent::exception_of_element;
pub use extent::{ActiveIds, CannotCreateExtent, ElementCells, Extent, ExtentConfig, UsedElement};
pub(crate) use host::AdapterHost;
pub use key::describe_object_key;
pub(crate) use lookup::ObjectSelector;
pub(crate) use main_thread::{MainThread, Request as MainThreadRequest};
pub(crate) use manager::Stripe;
pub(crate) use manager::{Admission, HoldMode};
pub use manager::{ManagerState, PoaManager};
pub(crate) use manager_factory::Managers;
pub use manager_factory::PoaManagerFactory;
pub use object_id::ObjectId;
pub use policies::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, PoaPolicies, PoaPolicy, PoaPolicyType,
    RequestProcessing, ServantRetention, ThreadModel,
};
pub(crate) use servant::WatchedUpcall;
pub use servant_manager::{
    AdapterActivator, Cookie, ServantActivator, ServantLocator, ServantManager, Unavailable,
};
pub(crate) use upcall::{
    ActiveObject, Refusal, Upcall, UpcallShare, host_of_upcall, not_exist, time_of_upcall,
};

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use ironorb_giop::exception::SystemExceptionKind;
use ironorb_giop::ior::TaggedComponent;
use ironorb_giop::minor::MinorCode;

use crate::base::config::{Demultiplexing, ObjectLookup};
use crate::base::discards::Discard;
use crate::base::locks::{PiLock, Snapshot};
use crate::base::monitor::Monitor;
use crate::base::single_thread_lock::SingleThreadLock;
use crate::cache::WithdrawElements;
use crate::object::extent_range::ExtentComponent;
use crate::poa::adapter::{AdapterLookup, CannotRegister, no_such_threadpool};
use crate::poa::servant::{Servant, ServantHandle};
use active_object_map::{ActiveObjectMap, IdState};
use current::enter_adapter;
use destroy::LifecycleState;
use extent::AnyElements;
use key::{Hint, Nonce, Slot};

/// A portable object adapter: it takes requests to the servants of its objects. Cheap to clone; the clones
/// are handles of one adapter.
#[derive(Clone)]
pub struct Poa(Arc<PoaInner>);

pub(crate) struct PoaInner {
    orb: Arc<dyn AdapterHost>,
    name: String,
    parent: Option<Poa>,
    /// The names below the root, each after its length, so that no two adapters share a path.
    path: Vec<u8>,
    pub(crate) slot: Slot,
    /// The number that tells this adapter from earlier ones of the same path.
    instance: u32,
    /// The nonce in the keys of its objects.
    nonce: Nonce,
    /// The hint in the path keys of its objects.
    hint: Hint,
    policies: PoaPolicies,
    /// Components that interceptors have added to its references.
    components: Vec<TaggedComponent<'static>>,
    manager: PoaManager,
    /// The children. This lock is taken before that of a descendant's children, and before the table of all
    /// adapters.
    children: PiLock<BTreeMap<String, Poa>>,
    objects: ActiveObjectMap,
    /// The objects, if the adapter is an extent: elements, which need no map.
    extent: Option<Arc<dyn AnyElements>>,
    /// Those of the elements that clients hold.
    held_elements: OnceLock<Arc<dyn WithdrawElements>>,
    /// Ids are made from slots, which gives the shortest ids.
    ids_are_slots: bool,
    /// Keys name slots instead of paths and ids.
    keys_are_slots: bool,
    /// The next id that the adapter assigns, where ids are not slots.
    next_id: AtomicU64,
    servant_manager: Snapshot<ServantManager>,
    default_servant: Snapshot<Arc<dyn Servant>>,
    adapter_activator: Snapshot<Arc<dyn AdapterActivator>>,
    single_thread_lock: SingleThreadLock,
    /// Requests that wait for an incarnation.
    waiting: AtomicUsize,
    /// A [`LifecycleState`].
    life: AtomicU8,
    /// What a destruction waits for: the number of objects being incarnated or deactivated, of requests to objects that are not
    /// active, and of children.
    leaving: AtomicUsize,
    /// Objects to be etherealised when the last request is done.
    doomed: PiLock<Vec<(ObjectId, ServantHandle)>>,
    /// Told when objects or the adapter have ended.
    ended: Monitor,
}

impl Poa {
    /// The root adapter.
    pub(crate) fn root(orb: &Arc<dyn AdapterHost>, state: ManagerState) -> Result<Poa, PoaError> {
        let manager = orb.adapter().create_manager(Some(ROOT_MANAGER), state)?;
        let components = orb.components_for(&[]);
        Poa::register(orb, None, ROOT_NAME, Vec::new(), PoaPolicies::ROOT, (components, None), manager)
    }

    /// The root adapter of an ORB that has been shut down.
    pub(crate) fn destroyed_root(orb: &Arc<dyn AdapterHost>) -> Poa {
        let manager = orb.adapter().make_manager(ROOT_MANAGER.to_owned(), ManagerState::Inactive, 0);
        let slot = Slot { index: u32::MAX, generation: 0 };
        let mut poa =
            PoaInner::new(orb, None, ROOT_NAME, Vec::new(), PoaPolicies::ROOT, Vec::new(), manager, slot, 0);
        poa.life = AtomicU8::new(LifecycleState::Destroyed as u8);
        Poa(Arc::new(poa))
    }

    fn register(
        orb: &Arc<dyn AdapterHost>,
        parent: Option<Poa>,
        name: &str,
        path: Vec<u8>,
        policies: PoaPolicies,
        (components, extent): (Vec<TaggedComponent<'static>>, Option<Arc<dyn AnyElements>>),
        manager: PoaManager,
    ) -> Result<Poa, PoaError> {
        let adopter = manager.clone();
        let poa = orb.adapter().register(path.clone(), policies.threadpool, |slot, instance| {
            let poa = PoaInner::new(orb, parent, name, path, policies, components, manager, slot, instance);
            Arc::new(PoaInner { extent, ..poa })
        });
        let poa = match poa {
            Ok(poa) => poa,
            Err(CannotRegister::PathIsTaken) => return Err(PoaError::AdapterAlreadyExists),
            Err(CannotRegister::PoolHasEnded) => return Err(no_such_threadpool()),
        };
        adopter.adopt(&poa);
        Ok(Poa(poa))
    }

    /// Makes a child adapter (`create_POA`). Without a `manager` it gets one of its own, which is active. In
    /// the standard, such a manager would have to be activated first.
    ///
    /// A name is taken until the destruction of its last adapter is over, except for etherealisation. Errors:
    /// [`PoaError::InvalidPolicy`], [`PoaError::NameTooLong`], [`PoaError::WrongPolicy`] if the manager
    /// belongs to another ORB, [`PoaError::AdapterAlreadyExists`], and [`PoaError::Destroyed`].
    pub fn create_poa(
        &self,
        name: &str,
        manager: Option<PoaManager>,
        policies: PoaPolicies,
    ) -> Result<Poa, PoaError> {
        self.create_child(name, manager, policies, None)
    }

    /// Makes a child adapter, which is an extent if it has elements.
    fn create_child(
        &self,
        name: &str,
        manager: Option<PoaManager>,
        policies: PoaPolicies,
        extent: Option<Arc<dyn AnyElements>>,
    ) -> Result<Poa, PoaError> {
        policies.check()?;
        self.0.orb.adapter().check_real_time(&policies)?;
        let path = self.path_of_child(name);
        if u16::try_from(path.len()).is_err() {
            return Err(PoaError::NameTooLong);
        }
        let orb = &self.0.orb;
        let manager = match manager {
            Some(manager) if !manager.is_of(orb.adapter().bindings()) => {
                return Err(PoaError::WrongPolicy("the manager is another ORB's"));
            }
            Some(manager) => manager,
            None => orb.adapter().create_manager(None, ManagerState::Active)?,
        };
        // The interceptors run before the adapter can be found and while no lock is held, because they may
        // call anything.
        let mut components = orb.components_for(&path::names(&path));
        components.extend(policies.real_time_component());
        components.extend(extent.as_ref().map(|elements| {
            let id_at = key::id_offset(policies.lifespan, &path);
            ExtentComponent { id_at, count: elements.count() }.to_tagged()
        }));
        orb.adapter().note_policies(&policies);
        let mut children = self.0.children.lock();
        // A destruction needs this lock to see all children.
        self.check_alive()?;
        let parent = Some(self.clone());
        let poa = Poa::register(orb, parent, name, path, policies, (components, extent), manager)?;
        children.insert(name.to_owned(), poa.clone());
        if policies.thread == ThreadModel::MainThread {
            orb.adapter().main_thread().want();
        }
        Ok(poa)
    }

    /// The child of this name (`find_POA`). If there is none and `activate_it`, the adapter activator is
    /// asked to make it. May then block while the activator runs.
    pub fn find_poa(&self, name: &str, activate_it: bool) -> Result<Poa, PoaError> {
        let known = self.0.children.lock().get(name).cloned();
        if !activate_it {
            return known.ok_or(PoaError::AdapterNonExistent);
        }
        // The lookup is needed even if the child is known: it may still be in the making.
        self.check_alive()?;
        match self.0.orb.adapter().find_or_activate(&self.path_of_child(name), AdapterLookup::Direct) {
            Ok(Some(poa)) => Ok(Poa(poa)),
            Ok(None) => Err(PoaError::AdapterNonExistent),
            Err(_) if self.check_alive().is_err() => Err(PoaError::Destroyed),
            Err(_) => Err(PoaError::AdapterActivatorFailed),
        }
    }

    /// The children of the adapter (`the_children`).
    pub fn children(&self) -> Vec<Poa> {
        self.0.children.lock().values().cloned().collect()
    }

    /// The parent of the adapter (`the_parent`); `None` for the root.
    pub fn parent(&self) -> Option<Poa> {
        self.0.parent.clone()
    }

    /// The name of the adapter (`the_name`); `RootPOA` for the root.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Octets that identify the adapter in the ORB (`id`). Those of an adapter with persistent objects are
    /// the same after a restart.
    pub fn id(&self) -> Vec<u8> {
        let mut id = self.0.path.clone();
        if self.0.policies.lifespan == Lifespan::Transient {
            id.extend(self.0.orb.adapter().nonce().0.to_be_bytes());
            id.extend(self.0.instance.to_be_bytes());
        }
        id
    }

    /// The manager of the adapter (`the_POAManager`).
    pub fn manager(&self) -> &PoaManager {
        &self.0.manager
    }

    /// The factory of managers (`the_POAManagerFactory`).
    pub fn manager_factory(&self) -> PoaManagerFactory {
        PoaManagerFactory::new(self.0.orb.clone())
    }

    /// The policies of the adapter.
    pub fn policies(&self) -> &PoaPolicies {
        &self.0.policies
    }

    /// What the adapter knows of its ORB.
    pub(crate) fn host(&self) -> &Arc<dyn AdapterHost> {
        &self.0.orb
    }

    /// The activator that makes children which are asked for and do not exist (`the_activator`).
    pub fn adapter_activator(&self) -> Option<Arc<dyn AdapterActivator>> {
        self.0.adapter_activator.cloned()
    }

    /// Sets the activator that makes children which are asked for and do not exist. The adapter keeps it
    /// until the adapter is destroyed.
    pub fn set_adapter_activator(&self, activator: Option<Arc<dyn AdapterActivator>>) {
        self.0.discard(self.0.adapter_activator.set(activator));
    }

    /// Sets the activator that finds servants for objects that are not active. Needs the policies
    /// `ServantManager` and `Retain`. It can be set once. The adapter keeps it until the adapter is
    /// destroyed.
    pub fn set_servant_activator(&self, activator: Arc<dyn ServantActivator>) -> Result<(), PoaError> {
        if !self.0.policies.retains() {
            return Err(PoaError::WrongPolicy("an adapter that keeps no servants needs a servant locator"));
        }
        self.set_servant_manager(ServantManager::Activator(activator))
    }

    /// Sets the locator that finds a servant for each request. Needs the policies `ServantManager` and
    /// `NonRetain`. It can be set once. The adapter keeps it until the adapter is destroyed.
    pub fn set_servant_locator(&self, locator: Arc<dyn ServantLocator>) -> Result<(), PoaError> {
        if self.0.policies.retains() {
            return Err(PoaError::WrongPolicy("an adapter that keeps servants needs a servant activator"));
        }
        self.set_servant_manager(ServantManager::Locator(locator))
    }

    fn set_servant_manager(&self, manager: ServantManager) -> Result<(), PoaError> {
        self.check_processing(RequestProcessing::ServantManager)?;
        let set = self.0.servant_manager.change(|current| {
            if current.is_some() {
                return Err(PoaError::ServantManagerAlreadySet);
            }
            // A destruction changes it too, when it drops the servant manager.
            self.check_alive()?;
            Ok(Some(manager))
        });
        set.map(drop)
    }

    /// The servant manager (`get_servant_manager`), if one has been set.
    pub fn servant_manager(&self) -> Result<Option<ServantManager>, PoaError> {
        self.check_processing(RequestProcessing::ServantManager)?;
        Ok(self.0.servant_manager.cloned())
    }

    /// Sets the servant of all objects that are not active (`set_servant`). Needs the policy
    /// `DefaultServant`. The adapter keeps it until the adapter is destroyed.
    pub fn set_default_servant(&self, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.check_processing(RequestProcessing::DefaultServant)?;
        let before = self.0.default_servant.change(|_| {
            self.check_alive()?;
            Ok(Some(servant))
        })?;
        self.0.discard(before);
        Ok(())
    }

    /// Makes this adapter take the requests whose object keys no adapter in this process has made. The whole
    /// key is then the object's id. For a server that stands for other servers, such as a bridge. An ORB has
    /// one default adapter: the one set last. Not part of the standard.
    pub fn set_default_adapter(&self) -> Result<(), PoaError> {
        self.check_alive()?;
        self.0.orb.adapter().set_default_adapter(&self.0);
        Ok(())
    }

    /// The servant of all objects that are not active (`get_servant`).
    pub fn default_servant(&self) -> Result<Arc<dyn Servant>, PoaError> {
        self.check_processing(RequestProcessing::DefaultServant)?;
        self.0.default_servant.cloned().ok_or(PoaError::NoServant)
    }

    fn check_processing(&self, needed: RequestProcessing) -> Result<(), PoaError> {
        if self.0.policies.request_processing == needed {
            return Ok(());
        }
        Err(PoaError::WrongPolicy(match needed {
            RequestProcessing::ServantManager => "request processing is not by a servant manager",
            _ => "request processing is not by a default servant",
        }))
    }

    fn check_alive(&self) -> Result<(), PoaError> {
        if self.0.life() == LifecycleState::Alive { Ok(()) } else { Err(PoaError::Destroyed) }
    }

    fn path_of_child(&self, name: &str) -> Vec<u8> {
        let mut path = self.0.path.clone();
        path.extend((name.len() as u32).to_be_bytes());
        path.extend(name.as_bytes());
        path
    }
}

impl PoaInner {
    #[allow(clippy::too_many_arguments)] // all of one adapter, from two places next to each other
    fn new(
        orb: &Arc<dyn AdapterHost>,
        parent: Option<Poa>,
        name: &str,
        path: Vec<u8>,
        policies: PoaPolicies,
        components: Vec<TaggedComponent<'static>>,
        manager: PoaManager,
        slot: Slot,
        instance: u32,
    ) -> PoaInner {
        let config = orb.adapter().config();
        let ids_are_slots = policies.may_use_slots() && config.object_lookup == ObjectLookup::Active;
        let (nonce, hint) = match policies.lifespan {
            Lifespan::Transient => (orb.adapter().nonce(), Hint::of_instance(instance)),
            Lifespan::Persistent => (Nonce::PERSISTENT, Hint::of_path(&path)),
        };
        PoaInner {
            orb: orb.clone(),
            name: name.to_owned(),
            parent,
            path,
            slot,
            instance,
            nonce,
            hint,
            policies,
            components,
            children: PiLock::default(),
            objects: ActiveObjectMap::new(
                &policies,
                ids_are_slots,
                config.object_lookup,
                manager.binding_epoch().clone(),
                orb.adapter().randomness(),
            ),
            manager,
            extent: None,
            held_elements: OnceLock::new(),
            ids_are_slots,
            keys_are_slots: ids_are_slots && config.demultiplexing == Demultiplexing::Delayered,
            next_id: AtomicU64::new(0),
            servant_manager: Snapshot::nothing(),
            default_servant: Snapshot::nothing(),
            adapter_activator: Snapshot::nothing(),
            single_thread_lock: SingleThreadLock::default(),
            waiting: AtomicUsize::new(0),
            life: AtomicU8::new(LifecycleState::Alive as u8),
            leaving: AtomicUsize::new(0),
            doomed: PiLock::default(),
            ended: Monitor::default(),
        }
    }

    /// The instance in the path keys of its objects.
    fn key_instance(&self) -> u32 {
        match self.policies.lifespan {
            Lifespan::Transient => self.instance,
            Lifespan::Persistent => 0,
        }
    }

    /// The hint in the path keys of its objects.
    pub(crate) fn hint(&self) -> Hint {
        self.hint
    }

    /// The names below the root, each after its length.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Whether a path key with this nonce and instance is of this adapter.
    pub(crate) fn accepts(&self, nonce: Nonce, instance: u32) -> bool {
        nonce == self.nonce && instance == self.key_instance()
    }

    /// The adapter at a path below this one, found name by name.
    pub(crate) fn descendant(self: &Arc<Self>, path: &[u8]) -> Option<Arc<PoaInner>> {
        let mut found = self.clone();
        let mut at = 0;
        while let Some((name, end)) = key::name_at(path, at) {
            let child = found.children.lock().get(std::str::from_utf8(name).ok()?)?.0.clone();
            (found, at) = (child, end);
        }
        // A malformed path may be read as if it were a valid one.
        (found.path == path).then_some(found)
    }

    pub(crate) fn manager(&self) -> &PoaManager {
        &self.manager
    }

    /// What its requests wait for, and by what.
    pub(super) fn driver(&self) -> &dyn AdapterDriver {
        &**self.orb.adapter().driver()
    }

    /// Drops the handle of a value that may be the application's: on this thread only if calls of no other lane may have
    /// handles.
    pub(super) fn discard(&self, value: Option<impl Discard + 'static>) {
        if let Some(value) = value {
            self.driver().discard(Box::new(value));
        }
    }

    /// Returns when the manager does not hold requests. Waits as `on_hold` says.
    pub(crate) fn wait_while_holding(&self, on_hold: HoldMode<'_>) -> Result<(), Refusal> {
        let entered = self.manager.enter(on_hold)?;
        self.manager.leave(entered);
        Ok(())
    }

    /// Whether there is an adapter activator to ask for children that do not exist.
    pub(crate) fn has_adapter_activator(&self) -> bool {
        self.adapter_activator.is_some()
    }

    /// Prepares to ask the adapter activator for a child, if there is one; may wait for the manager.
    #[cold]
    pub(crate) fn inquire(
        self: &Arc<Self>,
        activation: AdapterLookup<'_>,
    ) -> Result<Option<AdapterActivation>, Refusal> {
        if let Some(refusal) = self.absence() {
            return Err(refusal);
        }
        let Some(activator) = self.adapter_activator.cloned() else { return Ok(None) };
        let counted = match activation {
            // 15.3.2.1: the manager's state applies to this question as it does to requests.
            AdapterLookup::ForRequest(on_hold) => Some(self.manager.enter(on_hold)?),
            AdapterLookup::Direct => None,
        };
        Ok(Some(AdapterActivation { parent: self.clone(), activator, counted }))
    }

    /// Whether a request to an object would wait for its incarnation or etherealisation.
    pub(crate) fn is_busy(&self, naming: ObjectSelector<'_>) -> bool {
        match naming {
            ObjectSelector::Slot(slot) => {
                let id = self.objects.id_in_slot(slot);
                id.is_some_and(|id| self.is_busy(ObjectSelector::Id(id.as_bytes())))
            }
            ObjectSelector::Id(id) => matches!(self.objects.open().find(id), IdState::Busy(_)),
        }
    }

    /// Whether an object may exist, as far as that is known without asking a servant manager. An error if it
    /// does not.
    pub(crate) fn may_have(&self, naming: ObjectSelector<'_>) -> Result<(), Refusal> {
        let is_active = match naming {
            ObjectSelector::Slot(slot) => self.objects.has_slot(slot),
            ObjectSelector::Id(id) => self.objects.has_id(id),
        };
        if is_active || self.policies.request_processing != RequestProcessing::ActiveObjectMapOnly {
            return Ok(());
        }
        Err(not_exist(MinorCode::NO_SUCH_OBJECT))
    }
}

/// A question to an adapter activator. The manager counts it until this is dropped.
pub(crate) struct AdapterActivation {
    parent: Arc<PoaInner>,
    activator: Arc<dyn AdapterActivator>,
    counted: Option<Stripe>,
}

impl AdapterActivation {
    /// Asks the activator for the child. Returns whether the activator has made it.
    pub(crate) fn ask(&self, name: &str) -> Result<bool, Refusal> {
        let _current = enter_adapter(&self.parent);
        let parent = Poa(self.parent.clone());
        match catch_unwind(AssertUnwindSafe(|| self.activator.unknown_adapter(&parent, name))) {
            Ok(Ok(made)) => Ok(made),
            Ok(Err(_)) | Err(_) => {
                let failed = MinorCode::OBJ_ADAPTER_ACTIVATOR_FAILED;
                Err(upcall::refusal(SystemExceptionKind::ObjAdapter, failed))
            }
        }
    }
}

impl Drop for AdapterActivation {
    fn drop(&mut self) {
        if let Some(counted) = self.counted {
            self.parent.manager.leave(counted);
        }
    }
}

impl fmt::Debug for Poa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poa").field("name", &self.0.name).field("policies", &self.0.policies).finish()
    }
}

const ROOT_NAME: &str = "RootPOA";
const ROOT_MANAGER: &str = "RootPOAManager";
