//! The naming service (OMG Naming 1.3): plain code over an embedded transactional store, and its servants.
//!
//! A program that serves names starts a [`NamingServer`]. To use the service without an ORB, read
//! [`NamingService`] first: it has one method for each operation of the IDL interfaces, and the other types
//! are their arguments and results. A change is on disk before it is acknowledged.
//!
//! Only the private module `server` uses an ORB and its references, and calls other naming services. The rest
//! works with names and bytes. If a name leads to a context of another naming service, the result is
//! [`Step::Forward`], and the servant continues there.

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
