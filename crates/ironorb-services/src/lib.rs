//! The standard services as servant libraries: [`naming`], the naming service, and [`ifr`], the interface repository.
//!
//! A program that serves one opens its store, makes the service over it and starts a server, which does the rest:
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
//! // Programs find it there; this one binds the root context under a second name.
//! server.naming().bind("root", server.root())?;
//! let found: NamingContextRef = orb.naming()?.resolve("root")?;
//! # drop(found);
//! orb.shutdown(true)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each service is plain code over its store. Nothing in this crate opens a socket, reads a clock or spawns a thread: the
//! ORB does, and the stores, one file each, are the only other input and output. A change that was acknowledged is on
//! disk.
#![forbid(unsafe_code)]

mod database;
#[cfg(test)]
mod power_cut;
mod store_error;

pub mod ifr;
pub mod naming;
