//! Objects of an adapter: activation, references, and the conversions between ids, servants and references
//! (CORBA 3.3 part 1, 15.3.9).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::active_object_map::{IdState, MapGuard};
use super::extent::ActiveIds;
use super::key::{self, Slot};
use super::{
    ActiveObject, IdAssignment, ImplicitActivation, Lifespan, ObjectId, Poa, PoaError, RequestProcessing,
    current_object,
};
use crate::object::priority::Priority;
use crate::object::threadpool::ReachedBy;
use crate::object::{ObjectRef, TypedRef};
use crate::poa::servant::InterfaceOf;
use crate::poa::servant::{Servant, ServantHandle, servant};

/// Activation and references.
impl Poa {
    /// Activates a servant as a new object and returns its reference. Needs system ids. The type of the
    /// reference determines which interface is served.
    pub fn activate<R, S>(&self, implementation: S) -> Result<R, PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        self.activate_shared(Arc::new(implementation))
    }

    /// Activates a servant that the application shares, as [`activate`](Self::activate) does.
    pub fn activate_shared<R, S>(&self, implementation: Arc<S>) -> Result<R, PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        let id = self.activate_object(servant::<R, S>(implementation))?;
        Ok(R::from_object(self.reference(&id, R::REPOSITORY_ID)?))
    }

    /// Activates a servant under an id that the application assigns and returns its reference. May block as
    /// [`activate_object_with_id`](Self::activate_object_with_id) does.
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
        self.activate_object_at(servant, None)
    }

    /// Activates a servant under a new id, with a priority of its own if there is one.
    pub(super) fn activate_object_at(
        &self,
        servant: Arc<dyn Servant>,
        priority: Option<Priority>,
    ) -> Result<ObjectId, PoaError> {
        self.check_retains()?;
        self.check_system_ids("use activate_with_id")?;
        let servant = self.0.keep_active(servant)?;
        let mut objects = self.0.objects.open();
        self.check_can_activate(&mut objects, &servant)?;
        let (slot, id) = objects.reserve_with(|slot| self.new_id(slot)).ok_or(PoaError::TooManyObjects)?;
        objects.activate_at(slot, servant, priority);
        Ok(id)
    }

    /// Activates an untyped servant under an id that the application assigns. An id that the adapter assigned
    /// may be used again with this adapter: for a reference made before its servant, or for an object that
    /// has been deactivated. It is refused if another object has taken its slot meanwhile.
    ///
    /// Blocks while the last servant of the id is being etherealised. In an upcall to that object this is
    /// [`PoaError::WouldDeadlock`].
    pub fn activate_object_with_id(&self, id: &ObjectId, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.activate_object_with_id_at(id, servant, None)
    }

    /// Activates a servant under an id, with a priority of its own if there is one.
    pub(super) fn activate_object_with_id_at(
        &self,
        id: &ObjectId,
        servant: Arc<dyn Servant>,
        priority: Option<Priority>,
    ) -> Result<(), PoaError> {
        self.check_retains()?;
        let servant = self.0.keep_active(servant)?;
        loop {
            let gate = {
                let mut objects = self.0.objects.open();
                self.check_can_activate(&mut objects, &servant)?;
                match objects.find(id.as_bytes()) {
                    IdState::Active => return Err(PoaError::ObjectAlreadyActive),
                    IdState::Busy(gate) if gate.is_ours() => return Err(PoaError::ObjectAlreadyActive),
                    IdState::Busy(gate) => gate,
                    IdState::Nothing => {
                        let slot = self.slot_for(&mut objects, id)?;
                        objects.activate_at(slot, servant, priority);
                        return Ok(());
                    }
                }
            };
            if self.0.would_wait_for_itself(&gate, id) {
                return Err(PoaError::WouldDeadlock);
            }
            if !self.0.driver().wait_at(&gate, None) {
                return Err(PoaError::WouldDeadlock);
            }
        }
    }

    /// Makes a reference to an object that need not be active, under a new id.
    pub fn create_reference(&self, repository_id: &str) -> Result<ObjectRef, PoaError> {
        self.reference(&self.new_id_of_reference()?, repository_id)
    }

    /// A new id for a reference whose object need not be active.
    pub(super) fn new_id_of_reference(&self) -> Result<ObjectId, PoaError> {
        self.check_system_ids("use create_reference_with_id")?;
        self.check_alive()?;
        if !self.0.ids_are_slots {
            return Ok(self.new_id(Slot { index: 0, generation: 0 }));
        }
        let reserved = self.0.objects.open().reserve_with(|slot| self.new_id(slot));
        Ok(reserved.ok_or(PoaError::TooManyObjects)?.1)
    }

    /// Makes a reference to an object that need not be active, under an id that the application assigns.
    pub fn create_reference_with_id(
        &self,
        id: impl Into<ObjectId>,
        repository_id: &str,
    ) -> Result<ObjectRef, PoaError> {
        let id = id.into();
        self.check_may_name(&id)?;
        self.reference(&id, repository_id)
    }

    /// Refuses an id that an adapter with system ids has not assigned.
    pub(super) fn check_may_name(&self, id: &ObjectId) -> Result<(), PoaError> {
        match self.0.policies.id_assignment == IdAssignment::System && !self.is_own_id(id) {
            true => Err(PoaError::ForeignId),
            false => Ok(()),
        }
    }

    /// The id of a servant's object (`servant_to_id`). A servant that is not active, or may incarnate several
    /// objects, is activated where implicit activation is on. During an upcall to the default servant, the id
    /// is that of the object which it incarnates there.
    pub fn servant_to_id(&self, servant: &Arc<dyn Servant>) -> Result<ObjectId, PoaError> {
        let policies = &self.0.policies;
        let is_implicit = policies.implicit_activation == ImplicitActivation::Yes;
        let has_default = policies.request_processing == RequestProcessing::DefaultServant;
        if !has_default && !policies.is_unique() && !is_implicit {
            return Err(PoaError::WrongPolicy(
                "it has neither unique ids, implicit activation, nor a default servant",
            ));
        }
        if let Some(id) = self.0.objects.open().by_servant(servant.address()) {
            return Ok(id);
        }
        if is_implicit {
            return match self.activate_object(servant.clone()) {
                // Another thread has activated it meanwhile.
                Err(PoaError::ServantAlreadyActive) => {
                    let id = self.0.objects.open().by_servant(servant.address());
                    id.ok_or(PoaError::ServantNotActive)
                }
                activated => activated,
            };
        }
        if has_default && let Some(object) = self.current_object_of(servant) {
            return Ok(object.id.clone());
        }
        Err(PoaError::ServantNotActive)
    }

    /// The reference of a servant. A servant that is not active is activated where implicit activation is on.
    /// During an upcall to this servant, the reference is that of the object which it incarnates there.
    pub fn servant_to_reference<R, S>(&self, implementation: &Arc<S>) -> Result<R, PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        let servant = servant::<R, S>(implementation.clone());
        let id = match self.current_object_of(&servant) {
            Some(object) => object.id.clone(),
            None => self.servant_to_id(&servant)?,
        };
        Ok(R::from_object(self.reference(&id, R::REPOSITORY_ID)?))
    }

    /// The id of an object of this adapter, active or not. A persistent reference must also contain an
    /// address of this ORB, because another server may have an adapter of the same name.
    pub fn reference_to_id(&self, reference: &ObjectRef) -> Result<ObjectId, PoaError> {
        let adapter = self.0.orb.adapter();
        self.0
            .orb
            .local_key(reference)
            .and_then(|key| match key::parse(&adapter.without_alias(key)) {
                key::ParsedKey::Slot { nonce, poa, object }
                    if nonce == adapter.nonce() && poa == self.0.slot =>
                {
                    self.0.objects.id_in_slot(object)
                }
                key::ParsedKey::Path { nonce, instance, path, id, .. }
                    if self.0.accepts(nonce, instance) && path == self.0.path =>
                {
                    Some(ObjectId::from(id))
                }
                _ => None,
            })
            .ok_or(PoaError::WrongAdapter)
    }

    /// The servant of an object (`reference_to_servant`): that of the active object, or else the default
    /// servant.
    pub fn reference_to_servant(&self, reference: &ObjectRef) -> Result<Arc<dyn Servant>, PoaError> {
        self.check_has_servants()?;
        self.id_to_servant(&self.reference_to_id(reference)?)
    }

    /// The reference of an active object (`id_to_reference`).
    pub fn id_to_reference(&self, id: &ObjectId) -> Result<ObjectRef, PoaError> {
        self.check_retains()?;
        let servant = self.0.objects.servant_of(id.as_bytes()).ok_or(PoaError::ObjectNotActive)?.whole();
        self.reference_of(&ActiveObject { poa: self.0.clone(), id: id.clone(), servant })
    }

    /// The servant of an object (`id_to_servant`): that of the active object, or else the default servant.
    pub fn id_to_servant(&self, id: &ObjectId) -> Result<Arc<dyn Servant>, PoaError> {
        self.check_has_servants()?;
        if let Some(servant) = self.0.objects.servant_of(id.as_bytes()) {
            return Ok(servant.whole());
        }
        let default = self.0.default_servant.cloned();
        default.ok_or(PoaError::ObjectNotActive)
    }

    /// The implementation of an object, as [`id_to_servant`](Self::id_to_servant) finds it, if it is an `S`.
    pub fn id_to_implementation<S: Send + Sync + 'static>(&self, id: &ObjectId) -> Result<Arc<S>, PoaError> {
        let implementation = self.id_to_servant(id)?.implementation();
        implementation.and_then(|it| it.downcast().ok()).ok_or(PoaError::ObjectNotActive)
    }

    /// The ids of all active objects, in no order; those of an extent's elements in the order of their indices, each looked for
    /// when it is asked for.
    pub fn active_ids(&self) -> ActiveIds {
        match &self.0.extent {
            None => ActiveIds::kept(self.0.objects.open().ids()),
            Some(elements) => ActiveIds::of(elements),
        }
    }

    /// Lets clients reach an object under a plain key. Makes no reference, so that the ORB need not listen yet.
    pub(crate) fn bind_plain_key(&self, plain_key: &str, id: &ObjectId) -> Result<(), PoaError> {
        let key = self.key_at(id, self.own_priority_of(id))?;
        self.0.orb.adapter().set_alias(plain_key.as_bytes().to_vec(), key);
        Ok(())
    }

    /// Makes a reference. It tells the priority with which the object was activated, if it has its own.
    fn reference(&self, id: &ObjectId, repository_id: &str) -> Result<ObjectRef, PoaError> {
        self.reference_at(id, repository_id, self.own_priority_of(id))
    }

    /// Makes a reference. An adapter makes references only here.
    pub(super) fn reference_at(
        &self,
        id: &ObjectId,
        repository_id: &str,
        own_priority: Option<Priority>,
    ) -> Result<ObjectRef, PoaError> {
        let key = self.key_at(id, own_priority)?;
        let policies = &self.0.policies;
        let reached_by = ReachedBy {
            protocols: policies.server_protocols.unwrap_or_default(),
            threadpool: policies.threadpool,
            propagated_max: policies.propagated_priority_max,
        };
        let components = match own_priority {
            None => Cow::Borrowed(&self.0.components),
            Some(priority) => Cow::Owned(self.0.components_at(priority)),
        };
        Ok(self.0.orb.clone().reference(repository_id, &key, &components, reached_by))
    }

    /// The object key of an id, with the priority of the object if it has its own.
    fn key_at(&self, id: &ObjectId, own_priority: Option<Priority>) -> Result<Vec<u8>, PoaError> {
        let key = self.key_of(id)?;
        Ok(own_priority.map(|priority| key::with_priority(priority.number(), &key)).unwrap_or(key))
    }

    /// The object key of an id, without a priority.
    fn key_of(&self, id: &ObjectId) -> Result<Vec<u8>, PoaError> {
        self.check_alive()?;
        let slot = match self.0.ids_are_slots {
            true => Some(self.0.objects.slot_of(id.as_bytes()).ok_or(PoaError::ForeignId)?),
            false => None,
        };
        Ok(
            if let Some(slot) = slot
                && self.0.keys_are_slots
            {
                key::slot_key(self.0.orb.adapter().nonce(), self.0.slot, slot)
            } else {
                key::path_key(self.0.nonce, self.0.hint, self.0.key_instance(), &self.0.path, id.as_bytes())
            },
        )
    }

    pub(super) fn reference_of(&self, object: &ActiveObject) -> Result<ObjectRef, PoaError> {
        self.reference(&object.id, &object.primary_interface())
    }

    /// The object of this adapter that a servant incarnates in this thread.
    fn current_object_of(&self, servant: &Arc<dyn Servant>) -> Option<ActiveObject> {
        current_object().filter(|object| {
            Arc::ptr_eq(&object.poa, &self.0) && object.servant.address() == servant.address()
        })
    }

    pub(super) fn check_retains(&self) -> Result<(), PoaError> {
        if self.0.policies.retains() { Ok(()) } else { Err(PoaError::WrongPolicy("it keeps no servants")) }
    }

    fn check_has_servants(&self) -> Result<(), PoaError> {
        let has_default = self.0.policies.request_processing == RequestProcessing::DefaultServant;
        if has_default { Ok(()) } else { self.check_retains() }
    }

    fn check_system_ids(&self, instead: &'static str) -> Result<(), PoaError> {
        match self.0.policies.id_assignment {
            IdAssignment::System => Ok(()),
            IdAssignment::User => Err(PoaError::WrongPolicy(match instead {
                "use activate_with_id" => "ids are given by the application: use activate_with_id",
                _ => "ids are given by the application: use create_reference_with_id",
            })),
        }
    }

    /// Checks that a servant can be activated. The caller holds the map's lock, which a destruction needs to
    /// see all objects.
    fn check_can_activate(
        &self,
        objects: &mut MapGuard<'_>,
        servant: &ServantHandle,
    ) -> Result<(), PoaError> {
        self.check_alive()?;
        if objects.is_object(servant) { Err(PoaError::ServantAlreadyActive) } else { Ok(()) }
    }

    fn slot_for(&self, objects: &mut MapGuard<'_>, id: &ObjectId) -> Result<Slot, PoaError> {
        if let Some(slot) = objects.slot_of(id.as_bytes()) {
            return Ok(slot);
        }
        if self.0.ids_are_slots {
            let slot = ObjectId::slot_in(id.as_bytes()).ok_or(PoaError::ForeignId)?;
            if objects.has_no_incarnation_left(slot) {
                return Err(PoaError::TooManyObjects);
            }
            return objects.reserve_again(slot).ok_or(PoaError::ForeignId);
        }
        self.check_may_name(id)?;
        Ok(objects.reserve_with(|_| id.clone()).ok_or(PoaError::TooManyObjects)?.0)
    }

    fn new_id(&self, slot: Slot) -> ObjectId {
        if self.0.ids_are_slots {
            return ObjectId::of_slot(slot);
        }
        let number = self.0.next_id.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        match self.0.policies.lifespan {
            Lifespan::Transient => ObjectId::from(&number[..]),
            // Ids of earlier runs may still be known to clients.
            Lifespan::Persistent => {
                let run = self.0.orb.adapter().nonce().0.to_be_bytes();
                ObjectId::from(&[run, number].concat()[..])
            }
        }
    }

    /// Whether an id looks like one that the adapter has assigned, in this run or, if its objects are
    /// persistent, in an earlier one.
    fn is_own_id(&self, id: &ObjectId) -> bool {
        if self.0.ids_are_slots {
            return self.0.objects.slot_of(id.as_bytes()).is_some();
        }
        let number = match (self.0.policies.lifespan, id.as_bytes().split_last_chunk::<8>()) {
            (_, None) => return false,
            (Lifespan::Transient, Some(([], number))) => number,
            (Lifespan::Transient, Some(_)) => return false,
            (Lifespan::Persistent, Some((run, number))) => {
                if *run != self.0.orb.adapter().nonce().0.to_be_bytes() {
                    return run.len() == 8;
                }
                number
            }
        };
        u64::from_be_bytes(*number) < self.0.next_id.load(Ordering::Relaxed)
    }
}
