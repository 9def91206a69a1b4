//! The portable object adapter (CORBA 3.3 part 1, clause 15): from object keys to servants.

mod current;
pub(crate) mod key;
mod manager;
mod object_map;
mod policies;
mod upcall;

pub use current::PoaCurrent;
pub use key::describe_object_key;
pub use manager::{ManagerState, PoaManager};
pub use policies::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, PoaPolicies, RequestProcessing,
};
pub(crate) use upcall::{ActiveObject, Naming, Refusal, Upcall, not_exist};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use ironorb_giop::exception::SystemException;

use crate::generated::InterfaceOf;
use crate::object::{ObjectRef, TypedRef};
use crate::orb::OrbCore;
use crate::servant::{Servant, servant};
use crate::sync::{lock, read, write};
use key::{Nonce, Slot};
use object_map::ObjectMap;

/// What an adapter calls an object by: any octets, unique in the adapter.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(Box<[u8]>);

/// Finds or makes the servant of an object that is not active.
pub trait ServantActivator: Send + Sync + 'static {
    /// Gives a servant, which the adapter keeps. Called for one object at a time.
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Arc<dyn Servant>, Unavailable>;

    /// Takes note that an object's servant is no longer used: it was deactivated and its last request is
    /// done. `cleanup_in_progress` says that the adapter is being destroyed, `remaining_activations` that
    /// the servant still is another object.
    fn etherealize(
        &self,
        id: &ObjectId,
        poa: &Poa,
        servant: Arc<dyn Servant>,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) {
        let _ = (id, poa, servant, cleanup_in_progress, remaining_activations);
    }
}

/// Why there is no servant.
#[derive(Debug)]
pub enum Unavailable {
    /// The object is elsewhere: the client gets LOCATION_FORWARD.
    Forward(ObjectRef),
    /// The client gets this exception.
    Raise(SystemException),
}

/// What can be wrong with a call on an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoaError {
    /// A child of this name exists.
    AdapterAlreadyExists,
    /// There is no child of this name.
    AdapterNonExistent,
    /// The manager has been deactivated for good.
    AdapterInactive,
    /// The adapter has been destroyed.
    Destroyed,
    /// Policies contradict each other.
    InvalidPolicy(&'static str),
    /// The adapter's policies do not allow this.
    WrongPolicy(&'static str),
    /// The reference was not made by this adapter.
    WrongAdapter,
    /// An object with this id is active.
    ObjectAlreadyActive,
    /// No object with this id is active.
    ObjectNotActive,
    /// The servant is active as another object.
    ServantAlreadyActive,
    /// The servant is not active.
    ServantNotActive,
    /// The path of the adapter is too long for an object key.
    NameTooLong,
}

impl fmt::Display for PoaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PoaError::AdapterAlreadyExists => "an adapter of this name exists already",
            PoaError::AdapterNonExistent => "there is no adapter of this name",
            PoaError::AdapterInactive => "the adapter's manager has been deactivated",
            PoaError::Destroyed => "the adapter has been destroyed",
            PoaError::InvalidPolicy(why) => return write!(f, "the policies contradict each other: {why}"),
            PoaError::WrongPolicy(why) => {
                return write!(f, "the adapter's policies do not allow this: {why}");
            }
            PoaError::WrongAdapter => "the reference was not made by this adapter",
            PoaError::ObjectAlreadyActive => "an object with this id is active already",
            PoaError::ObjectNotActive => "no object with this id is active",
            PoaError::ServantAlreadyActive => "the servant is active already",
            PoaError::ServantNotActive => "the servant is not active",
            PoaError::NameTooLong => "the adapter's path is longer than 65,535 bytes",
        })
    }
}

impl std::error::Error for PoaError {}

/// An object adapter. Cheap to clone.
#[derive(Clone)]
pub struct Poa(Arc<PoaInner>);

pub(crate) struct PoaInner {
    orb: Arc<OrbCore>,
    name: String,
    /// Names from below the root, each with its length before it, so that no two adapters share a path.
    path: Vec<u8>,
    slot: Slot,
    policies: PoaPolicies,
    manager: PoaManager,
    children: Mutex<BTreeMap<String, Poa>>,
    objects: RwLock<ObjectMap>,
    activator: RwLock<Option<Arc<dyn ServantActivator>>>,
    default_servant: RwLock<Option<Arc<dyn Servant>>>,
    /// Held while an activator is asked, so that one object is not incarnated twice.
    incarnating: Mutex<()>,
    destroyed: AtomicBool,
}

impl Poa {
    pub(crate) fn root(orb: &Arc<OrbCore>, manager: PoaManager) -> Result<Poa, PoaError> {
        Poa::register(orb, "RootPOA", Vec::new(), PoaPolicies::ROOT, manager)
    }

    /// What the root adapter is after the ORB has been shut down.
    pub(crate) fn destroyed_root(orb: &Arc<OrbCore>) -> Poa {
        let manager = PoaManager::new(ManagerState::Inactive, 0);
        let slot = Slot { index: u32::MAX, generation: 0 };
        let poa = PoaInner::new(orb, "RootPOA", Vec::new(), slot, PoaPolicies::ROOT, manager);
        poa.destroyed.store(true, Ordering::SeqCst);
        Poa(Arc::new(poa))
    }

    fn register(
        orb: &Arc<OrbCore>,
        name: &str,
        path: Vec<u8>,
        policies: PoaPolicies,
        manager: PoaManager,
    ) -> Result<Poa, PoaError> {
        orb.adapter
            .register(path.clone(), |slot| Arc::new(PoaInner::new(orb, name, path, slot, policies, manager)))
            .map(Poa)
            .ok_or(PoaError::AdapterAlreadyExists)
    }

    /// Makes a child. Without a manager it gets one of its own, which is active.
    pub fn create_poa(
        &self,
        name: &str,
        manager: Option<PoaManager>,
        policies: PoaPolicies,
    ) -> Result<Poa, PoaError> {
        policies.check()?;
        self.check_alive()?;
        let mut path = self.0.path.clone();
        path.extend((name.len() as u32).to_be_bytes());
        path.extend(name.as_bytes());
        if u16::try_from(path.len()).is_err() {
            return Err(PoaError::NameTooLong);
        }
        let manager = manager
            .unwrap_or_else(|| PoaManager::new(ManagerState::Active, self.0.orb.config.held_requests_max));
        let mut children = lock(&self.0.children);
        let poa = Poa::register(&self.0.orb, name, path, policies, manager)?;
        children.insert(name.to_owned(), poa.clone());
        Ok(poa)
    }

    /// The child of this name.
    pub fn find_poa(&self, name: &str) -> Result<Poa, PoaError> {
        lock(&self.0.children).get(name).cloned().ok_or(PoaError::AdapterNonExistent)
    }

    /// Its children.
    pub fn children(&self) -> Vec<Poa> {
        lock(&self.0.children).values().cloned().collect()
    }

    /// Its name; `RootPOA` for the root.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its manager.
    pub fn manager(&self) -> &PoaManager {
        &self.0.manager
    }

    /// Its policies.
    pub fn policies(&self) -> &PoaPolicies {
        &self.0.policies
    }

    /// The ORB that it belongs to.
    pub fn orb(&self) -> crate::Orb {
        crate::Orb::from_core(self.0.orb.clone())
    }

    /// Destroys it and its children: their objects are deactivated. With `wait_for_completion`, blocks until
    /// the requests being served are done; a servant must not ask for that.
    pub fn destroy(&self, etherealize_objects: bool, wait_for_completion: bool) {
        let children = std::mem::take(&mut *lock(&self.0.children));
        for child in children.into_values() {
            child.destroy(etherealize_objects, wait_for_completion);
        }
        if self.0.destroyed.swap(true, Ordering::SeqCst) {
            return;
        }
        self.0.orb.adapter.unregister(self.0.slot, &self.0.path);
        if !etherealize_objects {
            *write(&self.0.activator) = None;
        }
        let ids = read(&self.0.objects).ids();
        let mut removed = Vec::new();
        for id in ids {
            // Not under the lock: etherealising looks at the map.
            let object = write(&self.0.objects).remove(id.as_bytes());
            if let Some(object) = object {
                object.deactivate(true);
                removed.push(object);
            }
        }
        if wait_for_completion {
            removed.iter().for_each(|object| object.wait_until_idle());
        }
    }

    /// Activates a servant as a new object and gives its reference. Needs system ids. Which interface is
    /// served follows from the type of reference asked for.
    pub fn activate<R, S>(&self, implementation: S) -> Result<R, PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        self.activate_shared(Arc::new(implementation))
    }

    /// [`activate`](Self::activate) for a servant that the application keeps as well.
    pub fn activate_shared<R, S>(&self, implementation: Arc<S>) -> Result<R, PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        let id = self.activate_object(servant::<R, S>(implementation))?;
        Ok(R::from_object(self.reference(&id, R::REPOSITORY_ID)?))
    }

    /// Activates a servant under an id given by the application and gives its reference.
    pub fn activate_with_id<R, S>(&self, id: impl Into<ObjectId>, implementation: S) -> Result<R, PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        let id = id.into();
        self.activate_object_with_id(&id, servant::<R, S>(Arc::new(implementation)))?;
        Ok(R::from_object(self.reference(&id, R::REPOSITORY_ID)?))
    }

    /// Activates an untyped servant under a new id.
    pub fn activate_object(&self, servant: Arc<dyn Servant>) -> Result<ObjectId, PoaError> {
        if self.0.policies.id_assignment == IdAssignment::User {
            return Err(PoaError::WrongPolicy("ids are given by the application: use activate_with_id"));
        }
        self.check_alive()?;
        let mut objects = write(&self.0.objects);
        self.check_unique(&objects, &servant)?;
        let (slot, id) = objects.reserve_with(|slot| self.new_id(slot));
        self.put(&mut objects, slot, id.clone(), servant);
        Ok(id)
    }

    /// Activates an untyped servant under an id given by the application. An id given by the adapter may be
    /// used again where it came from (a reference made before its servant).
    pub fn activate_object_with_id(&self, id: &ObjectId, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.check_alive()?;
        let mut objects = write(&self.0.objects);
        if objects.by_id(id.as_bytes()).is_some() {
            return Err(PoaError::ObjectAlreadyActive);
        }
        self.check_unique(&objects, &servant)?;
        let slot = match objects.slot_of(id.as_bytes()) {
            Some(slot) => slot,
            None if self.0.uses_slot_keys() => {
                return Err(PoaError::WrongPolicy("the id was not made by this adapter"));
            }
            None => objects.reserve_with(|_| id.clone()).0,
        };
        self.put(&mut objects, slot, id.clone(), servant);
        Ok(())
    }

    /// A reference to an object that need not be active, under a new id.
    pub fn create_reference(&self, repository_id: &str) -> Result<ObjectRef, PoaError> {
        if self.0.policies.id_assignment == IdAssignment::User {
            return Err(PoaError::WrongPolicy(
                "ids are given by the application: use create_reference_with_id",
            ));
        }
        self.check_alive()?;
        let (_, id) = write(&self.0.objects).reserve_with(|slot| self.new_id(slot));
        self.reference(&id, repository_id)
    }

    /// A reference to an object that need not be active, under an id given by the application.
    pub fn create_reference_with_id(
        &self,
        id: impl Into<ObjectId>,
        repository_id: &str,
    ) -> Result<ObjectRef, PoaError> {
        self.reference(&id.into(), repository_id)
    }

    /// Ends an object: requests from now on get OBJECT_NOT_EXIST, those being served are finished, and then the
    /// servant is etherealised and dropped.
    pub fn deactivate(&self, id: &ObjectId) -> Result<(), PoaError> {
        let removed = write(&self.0.objects).remove(id.as_bytes());
        removed.ok_or(PoaError::ObjectNotActive)?.deactivate(false);
        Ok(())
    }

    /// The reference of a servant. A servant that is not active is activated where implicit activation is on.
    pub fn servant_to_reference<R, S>(&self, implementation: &Arc<S>) -> Result<R, PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        let servant = servant::<R, S>(implementation.clone());
        if self.0.policies.id_uniqueness == IdUniqueness::Unique {
            let found = read(&self.0.objects).by_servant(&servant).map(|object| object.id.clone());
            if let Some(id) = found {
                return Ok(R::from_object(self.reference(&id, R::REPOSITORY_ID)?));
            }
        }
        if self.0.policies.implicit_activation == ImplicitActivation::No {
            return Err(PoaError::ServantNotActive);
        }
        let id = self.activate_object(servant)?;
        Ok(R::from_object(self.reference(&id, R::REPOSITORY_ID)?))
    }

    /// The id of an object of this adapter, active or not. A persistent reference must also lead to an address of
    /// this ORB: another server may have an adapter of the same name.
    pub fn reference_to_id(&self, reference: &ObjectRef) -> Result<ObjectId, PoaError> {
        let adapter = &self.0.orb.adapter;
        reference
            .ior()
            .iiop_profiles()
            .filter_map(|profile| self.0.orb.local_key(profile))
            .find_map(|key| match key::parse(&adapter.without_alias(key)) {
                key::ParsedKey::Slot { nonce, poa, object }
                    if nonce == adapter.nonce() && poa == self.0.slot =>
                {
                    read(&self.0.objects).id_in_slot(object).cloned()
                }
                key::ParsedKey::Path { nonce, path, id }
                    if nonce == self.0.nonce() && path == self.0.path =>
                {
                    Some(ObjectId::from(id))
                }
                _ => None,
            })
            .ok_or(PoaError::WrongAdapter)
    }

    /// The reference of an active object.
    pub fn id_to_reference(&self, id: &ObjectId) -> Result<ObjectRef, PoaError> {
        let repository_id = {
            let objects = read(&self.0.objects);
            let object = objects.by_id(id.as_bytes()).ok_or(PoaError::ObjectNotActive)?;
            object.servant.repository_ids().first().copied().unwrap_or_default()
        };
        self.reference(id, repository_id)
    }

    /// The servant of an active object.
    pub fn id_to_servant(&self, id: &ObjectId) -> Result<Arc<dyn Servant>, PoaError> {
        let objects = read(&self.0.objects);
        Ok(objects.by_id(id.as_bytes()).ok_or(PoaError::ObjectNotActive)?.servant.clone())
    }

    /// Sets who finds servants for objects that are not active.
    pub fn set_servant_activator(&self, activator: Arc<dyn ServantActivator>) -> Result<(), PoaError> {
        if self.0.policies.request_processing != RequestProcessing::ServantActivator {
            return Err(PoaError::WrongPolicy("request processing is not by a servant activator"));
        }
        *write(&self.0.activator) = Some(activator);
        Ok(())
    }

    /// Sets the servant of all objects that are not active.
    pub fn set_default_servant(&self, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        if self.0.policies.request_processing != RequestProcessing::DefaultServant {
            return Err(PoaError::WrongPolicy("request processing is not by a default servant"));
        }
        *write(&self.0.default_servant) = Some(servant);
        Ok(())
    }

    fn check_alive(&self) -> Result<(), PoaError> {
        if self.0.destroyed.load(Ordering::SeqCst) { Err(PoaError::Destroyed) } else { Ok(()) }
    }

    fn check_unique(&self, objects: &ObjectMap, servant: &Arc<dyn Servant>) -> Result<(), PoaError> {
        let unique = self.0.policies.id_uniqueness == IdUniqueness::Unique;
        if unique && objects.by_servant(servant).is_some() {
            return Err(PoaError::ServantAlreadyActive);
        }
        Ok(())
    }

    fn new_id(&self, slot: Slot) -> ObjectId {
        let mut id = Vec::with_capacity(16);
        if self.0.policies.lifespan == Lifespan::Persistent {
            // Ids of earlier runs may still be known to clients.
            id.extend(self.0.orb.adapter.nonce().0.to_be_bytes());
        }
        id.extend(slot.index.to_be_bytes());
        id.extend(slot.generation.to_be_bytes());
        ObjectId(id.into_boxed_slice())
    }

    fn put(&self, objects: &mut ObjectMap, slot: Slot, id: ObjectId, servant: Arc<dyn Servant>) {
        let unique = self.0.policies.id_uniqueness == IdUniqueness::Unique;
        objects.activate(slot, ActiveObject::new(self.0.clone(), id, servant), unique);
    }

    fn reference(&self, id: &ObjectId, repository_id: &str) -> Result<ObjectRef, PoaError> {
        self.check_alive()?;
        let key = if self.0.uses_slot_keys() {
            let slot = read(&self.0.objects).slot_of(id.as_bytes());
            let slot = slot.ok_or(PoaError::WrongPolicy("the id was not made by this adapter"))?;
            key::slot_key(self.0.orb.adapter.nonce(), self.0.slot, slot)
        } else {
            key::path_key(self.0.nonce(), &self.0.path, id.as_bytes())
        };
        Ok(self.0.orb.reference(repository_id, &key))
    }
}

impl PoaInner {
    fn new(
        orb: &Arc<OrbCore>,
        name: &str,
        path: Vec<u8>,
        slot: Slot,
        policies: PoaPolicies,
        manager: PoaManager,
    ) -> PoaInner {
        PoaInner {
            orb: orb.clone(),
            name: name.to_owned(),
            path,
            slot,
            policies,
            manager,
            children: Mutex::default(),
            objects: RwLock::default(),
            activator: RwLock::default(),
            default_servant: RwLock::default(),
            incarnating: Mutex::default(),
            destroyed: AtomicBool::new(false),
        }
    }

    fn nonce(&self) -> Nonce {
        match self.policies.lifespan {
            Lifespan::Transient => self.orb.adapter.nonce(),
            Lifespan::Persistent => Nonce::PERSISTENT,
        }
    }

    /// Whether a path key with this nonce is one of this adapter's.
    pub(crate) fn accepts(&self, nonce: Nonce) -> bool {
        nonce == self.nonce()
    }

    /// Returns when the manager does not hold requests, at once if it is active.
    pub(crate) fn wait_while_holding(&self) -> Result<(), SystemException> {
        self.manager.enter()?;
        self.manager.leave();
        Ok(())
    }

    fn uses_slot_keys(&self) -> bool {
        self.policies.lifespan == Lifespan::Transient && self.policies.id_assignment == IdAssignment::System
    }
}

impl fmt::Debug for Poa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poa").field("name", &self.0.name).field("policies", &self.0.policies).finish()
    }
}

impl ObjectId {
    /// The octets.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for ObjectId {
    fn from(text: &str) -> Self {
        ObjectId(text.as_bytes().into())
    }
}

impl From<&[u8]> for ObjectId {
    fn from(bytes: &[u8]) -> Self {
        ObjectId(bytes.into())
    }
}

impl From<Vec<u8>> for ObjectId {
    fn from(bytes: Vec<u8>) -> Self {
        ObjectId(bytes.into_boxed_slice())
    }
}

impl std::borrow::Borrow<[u8]> for ObjectId {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({})", self.0.escape_ascii())
    }
}
