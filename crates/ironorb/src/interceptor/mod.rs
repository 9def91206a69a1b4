//! Portable interceptors (CORBA 3.3 part 1, clause 16): code of the application that sees each request go out and
//! come back, and each reference being made.
//!
//! Nothing here knows a connection: the invocation and the adapter call a chain at the points that the standard
//! names. Where no interceptor is registered that costs one look at an empty list.
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
//! `send_poll` does not exist: a call that does not wait for its reply is an ordinary one whose end is seen by the thread
//! that receives it.

mod client;
mod current;
mod ior;
mod outcome;
mod server;

pub(crate) use client::{Attempt, ClientChain};
pub use client::{ClientInterceptor, ClientRequestInfo};
pub(crate) use current::{FreshSlots, SlotValue};
pub use current::{PiCurrent, Slot, SlotId};
pub(crate) use ior::IorChain;
pub use ior::{IorInfo, IorInterceptor};
pub(crate) use outcome::Outcome;
pub(crate) use server::{Interception, ServerChain, Target};
pub use server::{ServerInterceptor, ServerRequestInfo};

use ironorb_giop::exception::SystemException;
use ironorb_giop::service_context::{ServiceContext, ServiceContextList, ServiceContexts};

use crate::object::ObjectRef;

/// What an interceptor makes of a request instead of letting it go on.
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

/// How a request ended, as far as its interceptors are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyStatus {
    /// With results, or, for a oneway, by having been sent.
    Successful,
    /// With a system exception.
    SystemException,
    /// With a user exception.
    UserException,
    /// It goes to another object.
    LocationForward,
    /// It is sent again to the same object: its connection was closed before it was served.
    TransportRetry,
}

/// The service contexts of one message, of its own: it may be looked at after the message is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContextList(Vec<(u32, Vec<u8>)>);

impl From<ServiceContexts<'_>> for ContextList {
    fn from(contexts: ServiceContexts<'_>) -> Self {
        ContextList(contexts.map(|context| (context.id, context.data.to_owned())).collect())
    }
}

impl ContextList {
    /// Adds a context. False when there is one of that id and it is not to be replaced.
    fn add(&mut self, id: u32, data: &[u8], replace: bool) -> bool {
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            Some((_, old)) if replace => data.clone_into(old),
            Some(_) => return false,
            None => self.0.push((id, data.to_owned())),
        }
        true
    }

    /// As they go into a message. Contexts that are too long for one are left out.
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

/// Everything that was registered with the builder.
#[derive(Clone, Default)]
pub(crate) struct Interceptors {
    pub(crate) client: ClientChain,
    pub(crate) server: ServerChain,
    pub(crate) ior: IorChain,
}

impl std::fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interceptors")
            .field("client", &self.client.len())
            .field("server", &self.server.len())
            .field("ior", &self.ior.len())
            .finish()
    }
}
