//! The decisions about a call: where it goes, and what follows its failures.

pub mod invocation;
pub(crate) mod remote_call;
pub(crate) mod route;
