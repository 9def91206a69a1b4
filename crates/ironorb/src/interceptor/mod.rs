//! Portable interceptors (CORBA 3.3 part 1, clause 16): application code that sees each request and reply of
//! an ORB, and the making of each reference.
//!
//! Nothing here knows a connection: the invocation and the adapter call a chain of interceptors at the points
//! that the standard names. An ORB without interceptors pays for one look at an empty list per call.
//!
//! | standard | here |
//! |---|---|
//! | `ORBInitializer`, `ORBInitInfo` | [`OrbBuilder`](crate::OrbBuilder): interceptors are given before the ORB exists |
//! | `ClientRequestInterceptor`, `ClientRequestInfo` | [`ClientInterceptor`], [`ClientRequestInfo`] |
//! | `ServerRequestInterceptor`, `ServerRequestInfo` | [`ServerInterceptor`], [`ServerRequestInfo`] |
//! | `IORInterceptor`, `IORInfo` | [`IorInterceptor`], [`IorInfo`] |
//! | raising a system exception, `ForwardRequest` | [`Interrupt`] |
//! | `PICurrent` | [`PiCurrent`]; [`Slot`] for values of a Rust type |
//!
//! Beyond the standard, both sides know the octets of bodies, and a server has one more point,
//! [`request_ended`](ServerInterceptor::request_ended).
//!
//! An interceptor that only adds or reads a service context is better a [`ClientContext`] or a [`ServerContext`]: its
//! requests stay on the fast path, where a context costs some tens of instructions. Requests with interceptors take the
//! general path of the client, and the server copies their header for the interceptors.
//!
//! `send_poll` does not exist: an asynchronous call is an ordinary one, and the thread that receives its
//! reply calls its ending points.

mod client;
mod current;
mod forwarded;
mod ior;
mod outcome;
mod server;

pub(crate) use client::{Attempt, ClientChain};
pub use client::{ClientInterceptor, ClientRequestInfo};
pub(crate) use current::{FreshSlots, SlotValue};
pub use current::{PiCurrent, Slot, SlotId};
pub use forwarded::{ForwardedRequest, ForwardedRequests};
pub(crate) use ior::IorChain;
pub use ior::{IorInfo, IorInterceptor};
pub(crate) use outcome::Outcome;
pub(crate) use server::{InterceptedOrb, Interception, ServerChain, Target};
pub use server::{ServerInterceptor, ServerRequestInfo};

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ironorb_giop::exception::SystemException;
use ironorb_giop::service_context::{ServiceContext, ServiceContextList, ServiceContexts};
use ironorb_giop::{Misuse, Writer};

use crate::object::ObjectRef;
pub use crate::object::request_contexts::{ClientContext, ContextData, OutgoingCall, ServerContext};
use crate::object::request_contexts::{ClientContexts, ServerContexts};
pub use crate::object::request_facts::RequestFacts;
pub use crate::object::wire_numbers::FORWARD_CONTEXT;

/// How an interceptor ends a request instead of letting it go on.
#[derive(Debug, Clone)]
pub enum Interrupt {
    /// The caller gets this exception.
    Raise(SystemException),
    /// The request goes to another object (`ForwardRequest`).
    Forward(ObjectRef),
}

impl From<SystemException> for Interrupt {
    fn from(e: SystemException) -> Self {
        Interrupt::Raise(e)
    }
}

/// How a request ended, as its interceptors see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyStatus {
    /// The request ended with results, or it was a oneway and has been sent.
    Successful,
    /// The request ended with a system exception.
    SystemException,
    /// The request ended with a user exception.
    UserException,
    /// The request goes to another object.
    LocationForward,
    /// The request is sent again to the same object, because its connection was closed before the server
    /// carried it out.
    TransportRetry,
}

/// The number of the next request that interceptors see, on either side.
fn next_request_id() -> u64 {
    // A counter for the whole process: an interceptor may be one of several ORBs.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Counts the octets of a body while it is written.
#[derive(Debug, Default)]
pub(crate) struct BodyCount(Cell<usize>);

impl BodyCount {
    /// Writes a body by `body`. If it is written again, the last time counts.
    pub(crate) fn write(
        &self,
        w: &mut Writer<'_>,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        let begin = w.position();
        body(w)?;
        self.0.set(w.position().wrapping_sub(begin));
        Ok(())
    }

    pub(crate) fn note(&self, octets: usize) {
        self.0.set(octets);
    }

    fn octets(&self) -> usize {
        self.0.get()
    }
}

/// The service contexts of one message, as copies that outlive the message.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContextList(Vec<(u32, Vec<u8>)>);

impl From<ServiceContexts<'_>> for ContextList {
    fn from(contexts: ServiceContexts<'_>) -> Self {
        ContextList(contexts.map(|context| (context.id, context.data.to_owned())).collect())
    }
}

impl ContextList {
    /// Adds a context. False when there is one with this id and `replace` is not set.
    fn add(&mut self, id: u32, data: &[u8], replace: bool) -> bool {
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            Some((_, old)) if replace => data.clone_into(old),
            Some(_) => return false,
            None => self.0.push((id, data.to_owned())),
        }
        true
    }

    /// The contexts in the form for a message. Contexts that are too long for one are left out.
    pub(crate) fn to_send(&self) -> ServiceContextList {
        let mut list = ServiceContextList::default();
        for context in self.iter() {
            let _ = list.push(context);
        }
        list
    }

    fn find(&self, id: u32) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| *known == id).map(|(_, data)| data.as_slice())
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = ServiceContext<'_>> {
        self.0.iter().map(|(id, data)| ServiceContext { id: *id, data })
    }
}

/// All interceptors that were registered with the builder.
#[derive(Clone, Default)]
pub(crate) struct Interceptors {
    pub(crate) client: ClientChain,
    pub(crate) server: ServerChain,
    pub(crate) ior: IorChain,
    pub(crate) client_contexts: ClientContexts,
    pub(crate) server_contexts: ServerContexts,
    pub(crate) forwarded: Option<Arc<dyn ForwardedRequests>>,
}

impl std::fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interceptors")
            .field("client", &self.client.len())
            .field("server", &self.server.len())
            .field("ior", &self.ior.len())
            .field("client_contexts", &self.client_contexts)
            .field("server_contexts", &self.server_contexts)
            .field("forwarded", &self.forwarded.is_some())
            .finish()
    }
}
