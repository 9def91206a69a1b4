//! What moves bytes, time and threads: connections to servers and from clients, waiting, the blocking and the
//! asynchronous calls, and the engines for virtual time.

pub(crate) mod adapter_threads;
pub(crate) mod batching;
pub(crate) mod blocking;
pub(crate) mod cache;
pub(crate) mod call_contexts;
pub(crate) mod call_policies;
pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod counting;
pub(crate) mod distributable;
pub mod engine;
pub(crate) mod invoke;
pub(crate) mod loopback;
pub(crate) mod orb_core;
pub(crate) mod pending;
mod real_time;
pub(crate) mod reference;
pub(crate) mod server;
pub(crate) mod simulated;
pub(crate) mod threadpools;
mod upcall_watch;
pub(crate) mod waiting;
pub(crate) mod wakeable_epoll;
pub(crate) mod written;
