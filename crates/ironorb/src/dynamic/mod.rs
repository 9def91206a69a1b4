//! Calls and servants whose interfaces are known only at run time.
//!
//! Nothing here reads IDL or knows where descriptions come from.

mod description;

pub use description::{InterfaceDescription, OperationDescription, Parameter, ParameterMode};
