//! An agent: names of servers that are alive.
#![forbid(unsafe_code)]

pub mod idl;
mod naming;
mod reference;
pub mod registry;
mod server;
mod store;

pub use server::{AGENT_KEY, AGENT_PORT, Agent, AgentBuilder, StartError, StoreFaultReport};
mod client;
pub use client::{
    AgentClient, AgentError, Choice, Chosen, ClientOptions, News, Offering, Pool, Registration, Server, Watch,
};
pub use registry::{Condition, Limits, Property};
