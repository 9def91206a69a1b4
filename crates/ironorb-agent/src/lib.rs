//! An agent: names of servers that are alive.
//!
//! Servers register under names, with a lease of their process; a server that is gone leaves its names within the lease.
//! Clients resolve one name or many, watch names, and choose among a name's servers.
//!
//! | to | use |
//! |---|---|
//! | serve an agent in any program with an ORB | [`Agent::builder`] |
//! | register a server | [`AgentClient::register`], [`Registration`] |
//! | find servers | [`AgentClient::resolve`], [`AgentClient::resolve_many`], [`Condition`] |
//! | follow names | [`AgentClient::watch`], [`Watch`] |
//! | choose a server for each call | [`AgentClient::pool`], [`Pool::choose`], [`Choice`] |
//! | call an agent without this library | [`idl`] |
//! | decide about names and leases without an ORB | [`registry`] |
//!
//! ```
//! use ironorb::Orb;
//! use ironorb::naming::cos_naming::NamingContextRef;
//! use ironorb_agent::{Agent, AgentClient, Choice};
//!
//! let orb = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
//! let agent = Agent::builder().serve(&orb)?;
//!
//! let client = AgentClient::connect(&orb, [agent.corbaloc()])?;
//! let server: NamingContextRef = orb.resolve(&orb.corbaloc("NameService"))?;
//! let registration = client.register("names/main", &server)?.property("zone", "east").start()?;
//!
//! let pool = client.pool::<NamingContextRef>("names/main")?;
//! assert!(pool.choose(Choice::PowerOfTwo).is_some());
//! drop(registration);
//! assert!(client.resolve("names/main")?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The agent promises what `docs/agent.md` says.
#![forbid(unsafe_code)]

mod client;
pub mod idl;
mod naming;
mod reference;
pub mod registry;
mod server;
mod store;

pub use client::{
    AgentClient, AgentError, Choice, Chosen, ClientOptions, News, Offering, Pool, Registration, Server, Watch,
};
pub use registry::{Condition, Limits, Property};
pub use server::{AGENT_KEY, AGENT_PORT, Agent, AgentBuilder, StartError, StoreFaultReport, unguessable};
