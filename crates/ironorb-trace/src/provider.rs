//! Where contexts come from, and what they are given to.

use ironorb::interceptor::{ClientContext, ContextData, OutgoingCall, RequestFacts, ServerContext};

use crate::{CurrentTrace, TRACE_CONTEXT, TraceContext};

/// Knows the current context: the crate's own [`CurrentTrace`], a tracing library, or the program.
///
/// Runs on the path of every call of an ORB that has [`Client`] or [`Server`], with no lock held. It should not block.
pub trait TraceProvider: Send + Sync + 'static {
    /// Hands `send` the context for a request. Without it the request carries none. The thread that makes the call
    /// asks; the request may leave later, and perhaps again.
    fn outgoing(&self, call: &OutgoingCall<'_>, send: impl FnOnce(&TraceContext));

    /// Calls `upcall`, which calls the servant, within the context of the request. `None` if the request has none that
    /// can be read. What was current on the thread before is not to be the parent: a thread that waits may serve
    /// requests of others meanwhile. Without a call of `upcall` the ORB calls the servant after the return.
    fn serve(&self, request: &RequestFacts<'_>, remote: Option<TraceContext>, upcall: &mut dyn FnMut());
}

/// Adds the current trace context to requests: for [`OrbBuilder::client_context`](ironorb::OrbBuilder::client_context).
#[derive(Debug, Clone, Default)]
pub struct Client<P = CurrentTrace>(P);

impl Client {
    /// Sends the contexts of [`CurrentTrace`].
    pub fn new() -> Client {
        Client(CurrentTrace)
    }
}

impl<P: TraceProvider> Client<P> {
    /// Sends the contexts of this provider.
    pub fn with_provider(provider: P) -> Client<P> {
        Client(provider)
    }
}

impl<P: TraceProvider> ClientContext for Client<P> {
    fn id(&self) -> u32 {
        TRACE_CONTEXT
    }

    #[inline]
    fn write(&self, call: &OutgoingCall<'_>, data: &mut ContextData<'_>) -> bool {
        let mut is_sent = false;
        self.0.outgoing(call, |context| {
            data.put(&context.head());
            data.put(context.state().as_str().as_bytes());
            is_sent = true;
        });
        is_sent
    }
}

/// Reads the trace contexts of requests: for [`OrbBuilder::server_context`](ironorb::OrbBuilder::server_context).
#[derive(Debug, Clone, Default)]
pub struct Server<P = CurrentTrace>(P);

impl Server {
    /// Gives the contexts to [`CurrentTrace`].
    pub fn new() -> Server {
        Server(CurrentTrace)
    }
}

impl<P: TraceProvider> Server<P> {
    /// Gives the contexts to this provider.
    pub fn with_provider(provider: P) -> Server<P> {
        Server(provider)
    }
}

impl<P: TraceProvider> ServerContext for Server<P> {
    fn id(&self) -> u32 {
        TRACE_CONTEXT
    }

    #[inline]
    fn serve(&self, request: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        let remote = data.and_then(|data| TraceContext::from_bytes(data).ok());
        self.0.serve(request, remote, upcall);
    }
}
