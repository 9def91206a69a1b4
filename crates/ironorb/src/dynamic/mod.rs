//! Calls and servants whose types are known only at run time: the dynamic invocation interface (DII; CORBA 3.3 part 1,
//! clause 11) and the dynamic skeleton interface (DSI; clause 12).
//!
//! Nothing here reads IDL or calls a repository: the program supplies the descriptions.

mod alignment;
mod argument;
mod deferred;
mod description;
mod error;
mod relay;
mod request;
mod results;
mod servant;
mod server_request;
mod written;

pub use crate::object::received_request::{Characters, ReceivedRequest};
pub use deferred::{DeferredResponse, DeferredResponses, send_multiple_deferred, send_multiple_oneway};
pub use description::{InterfaceDescription, OperationDescription, Parameter, ParameterMode};
pub use error::{DynamicError, RequestError};
pub use relay::{Passing, PassingHandle};
pub use request::{Request, call_raw, send_raw};
pub use results::{RawReply, Results};
pub use servant::{DynamicServant, servant};
pub use server_request::{DynamicReply, ServerRequest};
pub use written::{WrittenCall, write_down};
