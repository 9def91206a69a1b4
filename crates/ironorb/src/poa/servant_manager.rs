//! Those whom an adapter asks for what it does not have: servant activators, servant locators and adapter activators
//! (CORBA 3.3 part 1, 15.3.3 to 15.3.6). Implemented by applications.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use ironorb_giop::exception::SystemException;

use super::{ObjectId, Poa};
use crate::object::ObjectRef;
use crate::servant::Servant;

/// Finds or makes the servant of an object that is not active, for adapters that keep it
/// ([`ServantRetention::Retain`](super::ServantRetention::Retain)).
///
/// Calls for one object never overlap, neither of the same nor of different operations; those for different objects
/// may run at once. They are made with no lock held, so everything may be done in them except to wait for the object
/// itself. A panic is caught: the client gets UNKNOWN.
pub trait ServantActivator: Send + Sync + 'static {
    /// Gives a servant, which the adapter keeps.
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Arc<dyn Servant>, Unavailable>;

    /// Takes note that an object's servant is no longer used: it was deactivated and its last request is
    /// done. `cleanup_in_progress` says that the adapter is being destroyed or its manager deactivated,
    /// `remaining_activations` that the servant still is another object.
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

/// Finds or makes a servant for one request, for adapters that keep none
/// ([`ServantRetention::NonRetain`](super::ServantRetention::NonRetain)).
///
/// Both operations are called by the thread that calls the servant, unless the servant answers later: then
/// [`postinvoke`](Self::postinvoke) is called by the thread that answers. A LocateRequest asks for the operation
/// `_non_existent`.
pub trait ServantLocator: Send + Sync + 'static {
    /// Gives a servant for a request to carry out `operation` (as on the wire: attributes are `_get_…`), and what it
    /// wants to be given back.
    fn preinvoke(
        &self,
        id: &ObjectId,
        poa: &Poa,
        operation: &str,
    ) -> Result<(Arc<dyn Servant>, Cookie), Unavailable>;

    /// Takes note that the request has been answered. Called once for each servant given.
    fn postinvoke(
        &self,
        id: &ObjectId,
        poa: &Poa,
        operation: &str,
        cookie: Cookie,
        servant: Arc<dyn Servant>,
    ) {
        let _ = (id, poa, operation, cookie, servant);
    }
}

/// What a [`ServantLocator`] remembers of a request while it is served.
pub type Cookie = Option<Box<dyn Any + Send>>;

/// Makes adapters when they are asked for: for requests to objects of theirs, and in
/// [`Poa::find_poa`].
pub trait AdapterActivator: Send + Sync + 'static {
    /// Makes the child `name` of `parent` by [`Poa::create_poa`] and sets it up; true when it did. Requests to
    /// the child, and to children of it, wait until this returns; so the child must not be called meanwhile by others
    /// than this thread. False means that there is no such adapter (OBJECT_NOT_EXIST). An error or a panic
    /// becomes OBJ_ADAPTER.
    ///
    /// For a path of several unknown adapters each parent's activator is asked in turn.
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException>;
}

/// Why there is no servant.
#[derive(Debug)]
pub enum Unavailable {
    /// The object is elsewhere: the client gets LOCATION_FORWARD (the standard's `ForwardRequest`).
    Forward(ObjectRef),
    /// The client gets this exception.
    Raise(SystemException),
}

/// The servant manager of an adapter.
#[derive(Clone)]
pub enum ServantManager {
    /// For adapters that keep servants.
    Activator(Arc<dyn ServantActivator>),
    /// For adapters that do not.
    Locator(Arc<dyn ServantLocator>),
}

impl fmt::Debug for ServantManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ServantManager::Activator(_) => "Activator",
            ServantManager::Locator(_) => "Locator",
        })
    }
}
