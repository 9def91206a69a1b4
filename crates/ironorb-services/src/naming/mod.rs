//! The naming service (OMG Naming 1.3): plain code over an embedded transactional store, and servants over that.
//!
//! Nothing but `server` knows an ORB's references, or calls another naming service. Names and bytes come in, answers
//! come out; when a name leads to a context that lives elsewhere, the answer is [`Step::Forward`] and the servant goes
//! on there. A change that was acknowledged is on disk.
//!
//! Programs that serve names start a [`NamingServer`]. To understand the service, read [`NamingService`] first: it has
//! one method for each operation of the IDL interfaces, and everything else is an argument or a result of one of them.

mod binding;
mod error;
mod iterators;
mod limits;
mod resolver;
mod server;
mod service;
mod store;
mod url;

pub use crate::store_error::StoreError;
pub use binding::{Binding, BindingType, Bound, ContextId, ContextRef, Reference};
pub use error::{NamingError, NotFoundReason};
pub use ironorb::naming::{InvalidName, Name, NameComponent};
pub use iterators::IteratorId;
pub use limits::Limits;
pub use resolver::Step;
pub use server::{NamingServer, StartError, StoreFaultReport};
pub use service::{Listing, NamingService};
pub use store::Store;
pub use url::{InvalidAddress, InvalidEscape, escape, to_url, unescape};

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod power_cut_tests;
