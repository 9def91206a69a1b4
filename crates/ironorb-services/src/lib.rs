//! The standard services as libraries: a naming service and an interface repository.
//!
//! | to | use |
//! |---|---|
//! | serve names | [`naming::NamingServer`] over a [`naming::NamingService`] and its [`naming::Store`] |
//! | bind and resolve names without an ORB | [`naming::NamingService`] |
//! | bound what clients of the naming service may store | [`naming::Limits`] |
//! | make and read `corbaname:` URLs | [`naming::to_url`], [`naming::escape`], [`naming::unescape`] |
//! | serve interface definitions | [`ifr::InterfaceRepositoryServer`] over an [`ifr::InterfaceRepository`] |
//! | load IDL into a repository | [`ifr::InterfaceRepository::load`] |
//! | read and change definitions without an ORB | [`ifr::InterfaceRepository`] |
//! | bound what clients of the repository may store | [`ifr::Limits`] |
//! | learn of errors of a store | `start_reporting` of either server |
//!
//! To call a naming service or an interface repository, a client needs only [`ironorb::naming`] and
//! [`ironorb::ifr`].
//!
//! A program opens a store, creates the service over it, and starts a server:
//!
//! ```
//! use ironorb::Orb;
//! use ironorb::naming::cos_naming::NamingContextRef;
//! use ironorb_services::naming::{Limits, NamingServer, NamingService, Store};
//!
//! let orb = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
//! let service = NamingService::new(Store::in_memory()?, Limits::default());
//! let server = NamingServer::start(&orb, service)?;
//! assert!(server.corbaloc().starts_with("corbaloc::1.2@127.0.0.1:"));
//!
//! // Clients find it there. This program binds the root context under a second name.
//! server.naming().bind("root", server.root())?;
//! let found: NamingContextRef = orb.naming()?.resolve("root")?;
//! # drop(found);
//! orb.shutdown(true)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each service is plain code over its store, and its servants only convert requests. This crate opens no
//! socket, reads no clock and starts no thread: the ORB does. Each store is one file, and a change is on disk
//! before it is acknowledged. The `ironorb` command serves both services: `ironorb naming serve`, `ironorb
//! ifr serve`.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod database;
#[cfg(test)]
mod power_cut;
mod store_error;

pub use store_error::StoreError;

pub mod ifr;
pub mod naming;
