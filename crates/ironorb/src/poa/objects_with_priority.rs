//! Objects of an adapter that have a priority of their own instead of the one that the adapter declares
//! (`RTPortableServer::POA`; RTCORBA 1.2, 5.7.4).

use std::sync::Arc;

use ironorb_giop::ior::TaggedComponent;

use super::{ObjectId, Poa, PoaError, PoaInner, PoaPolicies};
use crate::object::priority::{Priority, PriorityModel};
use crate::object::{ObjectRef, TypedRef};
use crate::poa::servant::InterfaceOf;
use crate::poa::servant::{Servant, servant};

/// Objects with a priority of their own, in an adapter whose model is
/// [`ServerDeclared`](crate::rt::PriorityModel::ServerDeclared).
///
/// References tell the object's priority and lead to the lane that has it. The priority is a part of the object key:
/// requests run at the priority that their reference tells. Adapters with persistent objects need not be told it again
/// after a restart. A reference that was made without an own priority keeps the adapter's.
///
/// What all of these refuse: [`PoaError::WrongPolicy`] if the adapter declares no priority, or activates objects
/// implicitly; [`PoaError::PriorityNotServed`] if the ORB has lanes with priorities and none has this one, if no
/// band of the adapter holds it, or if no lane has a priority and this one is above both the adapter's and
/// [`propagated_priority_max`](crate::rt::RealTimeConfig::propagated_priority_max).
impl Poa {
    /// Activates a servant as a new object with this priority and returns its reference, as
    /// [`activate`](Self::activate) does.
    pub fn activate_with_priority<R, S>(&self, implementation: S, priority: Priority) -> Result<R, PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        let id = self.activate_object_with_priority(servant::<R, S>(Arc::new(implementation)), priority)?;
        Ok(R::from_object(self.reference_at(&id, R::REPOSITORY_ID, Some(priority))?))
    }

    /// Activates a servant under an id that the application assigns, with this priority, and returns its reference. May
    /// block as [`activate_object_with_id`](Self::activate_object_with_id) does.
    pub fn activate_with_id_and_priority<R, S>(
        &self,
        id: impl Into<ObjectId>,
        implementation: S,
        priority: Priority,
    ) -> Result<R, PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        let (id, servant) = (id.into(), servant::<R, S>(Arc::new(implementation)));
        self.activate_object_with_id_and_priority(&id, servant, priority)?;
        Ok(R::from_object(self.reference_at(&id, R::REPOSITORY_ID, Some(priority))?))
    }

    /// Activates an untyped servant under a new id, with this priority. The references that the adapter makes of the id
    /// tell it, until the object is deactivated.
    pub fn activate_object_with_priority(
        &self,
        servant: Arc<dyn Servant>,
        priority: Priority,
    ) -> Result<ObjectId, PoaError> {
        self.check_own_priority(priority)?;
        self.activate_object_at(servant, Some(priority))
    }

    /// Activates an untyped servant under an id that the application assigns, with this priority, as
    /// [`activate_object_with_id`](Self::activate_object_with_id) does. The references that the adapter makes of the id
    /// tell it, until the object is deactivated.
    pub fn activate_object_with_id_and_priority(
        &self,
        id: &ObjectId,
        servant: Arc<dyn Servant>,
        priority: Priority,
    ) -> Result<(), PoaError> {
        self.check_own_priority(priority)?;
        self.activate_object_with_id_at(id, servant, Some(priority))
    }

    /// Makes a reference to an object that need not be active, under a new id and with this priority. Activators,
    /// locators and default servants serve its requests at it. It takes no memory beyond what
    /// [`create_reference`](Self::create_reference) takes.
    pub fn create_reference_with_priority(
        &self,
        repository_id: &str,
        priority: Priority,
    ) -> Result<ObjectRef, PoaError> {
        self.check_own_priority(priority)?;
        self.reference_at(&self.new_id_of_reference()?, repository_id, Some(priority))
    }

    /// Makes a reference to an object that need not be active, under an id that the application assigns and with this
    /// priority, as [`create_reference_with_priority`](Self::create_reference_with_priority) does.
    pub fn create_reference_with_id_and_priority(
        &self,
        id: impl Into<ObjectId>,
        repository_id: &str,
        priority: Priority,
    ) -> Result<ObjectRef, PoaError> {
        self.check_own_priority(priority)?;
        let id = id.into();
        self.check_may_name(&id)?;
        self.reference_at(&id, repository_id, Some(priority))
    }

    fn check_own_priority(&self, priority: Priority) -> Result<(), PoaError> {
        self.0.orb.adapter().check_own_priority(&self.0.policies, priority)
    }

    /// The priority with which an object was activated, if it has its own.
    pub(super) fn own_priority_of(&self, id: &ObjectId) -> Option<Priority> {
        match self.0.policies.priority_model? {
            PriorityModel::ServerDeclared(_) => self.0.objects.priority_of(id.as_bytes()),
            PriorityModel::ClientPropagated { .. } => None,
        }
    }
}

impl PoaInner {
    /// The components of references to an object with this priority.
    pub(super) fn components_at(&self, priority: Priority) -> Vec<TaggedComponent<'static>> {
        let of_adapter = self.policies.real_time_component();
        let priority_model = Some(PriorityModel::ServerDeclared(priority));
        let of_object = PoaPolicies { priority_model, ..self.policies }.real_time_component();
        let others = self.components.iter().filter(|it| Some(*it) != of_adapter.as_ref());
        others.cloned().chain(of_object).collect()
    }
}
