//! Requests whose results go to another client than the one that has sent them.

use std::fmt;
use std::sync::Arc;

use crate::object::ObjectRef;
use crate::object::received_request::ReceivedRequest;

/// Carries out requests that were forwarded: oneways with the service context `0x494F_5207`, whose results another client waits for
/// (`docs/wire.md`). An ORB without one carries them out as any other oneway, and nobody learns of the results.
pub trait ForwardedRequests: Send + Sync + 'static {
    /// Carries a request out. Called by the thread that serves the connection, in the place of the servant; it should begin with
    /// [`passing_to`](ReceivedRequest::passing_to) the object, which calls the servant on this thread.
    fn serve(&self, forwarded: ForwardedRequest<'_>);
}

/// A request that was forwarded.
pub struct ForwardedRequest<'f> {
    /// The object, of this ORB.
    pub object: ObjectRef,
    /// The request, as one that wants results.
    pub request: Arc<ReceivedRequest>,
    /// The data of the context.
    pub data: &'f [u8],
}

impl fmt::Debug for ForwardedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardedRequest").field("request", &self.request).finish_non_exhaustive()
    }
}
