//! Traits that applications implement to supply what an adapter does not have: servant activators, servant
//! locators and adapter activators (CORBA 3.3 part 1, 15.3.3 to 15.3.6).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use ironorb_giop::exception::SystemException;

use super::{ObjectId, Poa};
use crate::object::ObjectRef;
use crate::poa::servant::Servant;

/// Finds or makes the servant of an object that is not active, for adapters that keep it
/// ([`ServantRetention::Retain`](super::ServantRetention::Retain)).
///
/// Calls for one object never overlap, neither of one operation nor of both. Calls for different objects may
/// run at once. The adapter holds no lock during a call, so the activator may do anything except wait for the
/// object itself. A panic is caught: the client gets UNKNOWN.
pub trait ServantActivator: Send + Sync + 'static {
    /// Returns a servant for the object, which the adapter keeps. The client's request waits for it.
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Arc<dyn Servant>, Unavailable>;

    /// Called when an object's servant is no longer used: the object was deactivated and its last request is
    /// done. `cleanup_in_progress` says that the adapter is being destroyed or its manager deactivated.
    /// `remaining_activations` says that the servant still incarnates another object.
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
/// The thread that calls the servant also calls both operations. If the servant answers later, the thread
/// that answers calls [`postinvoke`](Self::postinvoke). For a LocateRequest the operation is `_non_existent`.
pub trait ServantLocator: Send + Sync + 'static {
    /// Returns a servant for one request, and a cookie that [`postinvoke`](Self::postinvoke) gets back.
    /// `operation` is the name on the wire: attributes are `_get_…`.
    fn preinvoke(
        &self,
        id: &ObjectId,
        poa: &Poa,
        operation: &str,
    ) -> Result<(Arc<dyn Servant>, Cookie), Unavailable>;

    /// Called when the request has been answered, once for each servant returned.
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

/// What a [`ServantLocator`] keeps about a request while it is served.
pub type Cookie = Option<Box<dyn Any + Send>>;

/// Makes adapters on demand: for requests to their objects, and in [`Poa::find_poa`].
pub trait AdapterActivator: Send + Sync + 'static {
    /// Makes the child `name` of `parent` with [`Poa::create_poa`] and sets it up. True when it did. Requests
    /// to the child and to its descendants wait until this returns, so only this thread may call the child
    /// meanwhile. False means that there is no such adapter (OBJECT_NOT_EXIST). An error or a panic becomes
    /// OBJ_ADAPTER.
    ///
    /// For a path of several unknown adapters, the adapter asks each parent's activator in turn.
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException>;
}

/// Why there is no servant.
#[derive(Debug)]
pub enum Unavailable {
    /// The object is at another reference: the client gets LOCATION_FORWARD (the standard's
    /// `ForwardRequest`).
    Forward(ObjectRef),
    /// The client gets this exception.
    Raise(SystemException),
}

/// The servant manager of an adapter.
#[derive(Clone)]
pub enum ServantManager {
    /// For adapters that keep servants.
    Activator(Arc<dyn ServantActivator>),
    /// For adapters that keep no servants.
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
