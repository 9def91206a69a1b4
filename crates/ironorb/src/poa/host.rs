//! What the adapters need of the ORB that they belong to.

use std::sync::Arc;

use ironorb_cache::Moment;
use ironorb_giop::cdr::Environment;
use ironorb_giop::exception::SystemException;
use ironorb_giop::ior::TaggedComponent;
use ironorb_giop::message::Request;

use super::adapter::Adapter;
use crate::base::config::Transport;
use crate::interceptor::{Interception, Outcome};
use crate::object::ObjectRef;
use crate::object::threadpool::ReachedBy;
use crate::object::timing::TimingFault;

/// An ORB, as its adapters see it: it makes references, and calls interceptors.
pub(crate) trait AdapterHost: Environment {
    /// The ORB's adapters.
    fn adapter(&self) -> &Adapter;

    /// The components that interceptors add to the references of a new adapter with this name.
    fn components_for(&self, adapter_name: &[String]) -> Vec<TaggedComponent<'static>>;

    /// Calls the interceptors when a request has come, as [`Interception::begin`] does.
    fn intercept(self: Arc<Self>, request: &Request<'_>) -> (Interception, Option<Outcome>);

    /// The moment now, for caches: on the clock that goes on while the system sleeps.
    fn steady(&self) -> Moment;

    /// The object that opens sessions for clients' caches. `None` if it cannot be made.
    fn cache_object(self: Arc<Self>) -> Option<ObjectRef>;

    /// Whether the ORB listens by a transport.
    fn listens_by(&self, transport: Transport) -> bool;

    /// Makes a reference to an object of this ORB, at these of its addresses.
    fn reference(
        self: Arc<Self>,
        repository_id: &str,
        key: &[u8],
        components: &[TaggedComponent<'static>],
        reached_by: ReachedBy,
    ) -> ObjectRef;

    /// Counts an upcall that did not keep to the timing of its operation, and tells the program. Runs application code.
    fn timing_fault(&self, fault: &TimingFault<'_>);

    /// The object key of a reference to an object of this ORB.
    fn local_key(&self, reference: &ObjectRef) -> Option<Vec<u8>>;

    /// What the ORB's interface repository says of an interface. INTF_REPOS where there is none. Calls the
    /// repository.
    fn interface_in_repository(
        self: Arc<Self>,
        repository_id: &str,
    ) -> Result<Option<ObjectRef>, SystemException>;
}
