//! The interface repository (CORBA 3.3 part 1, clause 14): definitions over an embedded transactional store, and servants
//! over that.
//!
//! Nothing but `server` knows an ORB's references. Numbers and records come in, answers come out. A change that was
//! acknowledged is on disk.
//!
//! Programs that serve definitions start an [`InterfaceRepositoryServer`]. To understand the repository, read [`Record`]
//! first, then [`InterfaceRepository`].

mod error;
mod limits;
mod load;
mod queries;
mod record;
mod repository;
mod rules;
mod server;
mod store;
mod types;
mod values;

pub use crate::store_error::StoreError;
pub use error::RepositoryError;
pub use limits::Limits;
pub use load::{LoadError, Loaded};
pub use record::{
    Attribute, Body, Case, DefinitionNumber, Initializer, Member, Operation, Parameter, Record, Value,
};
pub use repository::InterfaceRepository;
pub use server::{InterfaceRepositoryServer, StartError, StoreFaultReport};
pub use store::Store;

#[cfg(test)]
mod damage_tests;
