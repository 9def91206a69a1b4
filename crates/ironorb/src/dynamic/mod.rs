//! Calls and servants whose types are known only at run time: the dynamic invocation interface (DII; CORBA 3.3 part 1,
//! clause 11) and the dynamic skeleton interface (DSI; clause 12).
//!
//! Nothing here reads IDL or asks a repository: descriptions come from whoever has them.

mod description;

pub use description::{InterfaceDescription, OperationDescription, Parameter, ParameterMode};
