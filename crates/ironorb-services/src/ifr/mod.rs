//! The interface repository (CORBA 3.3 part 1, clause 14): plain code over an embedded transactional store,
//! and its servants.
//!
//! A program that serves definitions starts an [`InterfaceRepositoryServer`]. To use the repository without
//! an ORB, read [`Record`] first, then [`InterfaceRepository`]. A change is on disk before it is
//! acknowledged.
//!
//! Only the private module `server` uses an ORB and its references. The rest works with definition numbers
//! and records.

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
