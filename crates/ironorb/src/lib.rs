//! IronORB: an object request broker.
//!
//! A program makes an [`Orb`], activates servants in its [`Poa`] and calls others through typed references,
//! which a build script generates from IDL with `ironorb-build`. Calls are synchronous and made by the
//! calling thread itself; nothing here needs an async runtime, and there is no global state.
//!
//! Nothing here knows a particular service, and no public type belongs to another crate but those of the
//! protocol core, [`ironorb_giop`].

#![forbid(unsafe_code)]

mod adapter;
mod batching;
mod cancellations;
mod client;
mod coarse_instant;
mod codec;
mod config;
mod context;
mod deadline;
pub mod dynamic;
mod endpoint;
pub mod engine;
pub mod generated;
pub mod ifr;
pub mod interceptor;
pub mod invocation;
mod invoke;
mod lease;
mod loopback;
pub mod marshal_profile;
mod messaging;
pub mod naming;
mod net;
mod object;
mod orb;
mod pending;
pub mod poa;
pub mod probe;
mod remote_call;
mod route;
mod servant;
mod server;
mod sync;
mod waiting;

pub use codec::Codec;
pub use config::{
    BadConcurrency, BareExceptions, Demultiplexing, ObjectLookup, OperationLookup, OrbConfig,
    ServerConcurrency, Transport, Waiting,
};
pub use context::Context;
pub use deadline::{set_thread_timeout, with_timeout};
pub use endpoint::BadAddress;
pub use generated::{Call, Deferred, Replied, Reply};
pub use ironorb_giop as giop;
pub use ironorb_giop::any::{Any, ExtractError};
pub use ironorb_giop::cdr::{LongDouble, WString};
pub use ironorb_giop::dyn_any;
pub use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
pub use ironorb_giop::fixed::{Decimal, Fixed, FixedError};
pub use ironorb_giop::minor::MinorCode;
pub use ironorb_giop::typecode::{TcKind, TypeCode, TypeDef, Typed};
pub use ironorb_giop::value::{Link, Value, ValueBase, ValueGraph};
pub use ironorb_giop::version::Version;
pub use messaging::{
    InvocationPolicies, OnewayBatching, Rebind, SyncScope, set_thread_policies, thread_policies,
};
pub use net::Endpoint;
pub use object::{ObjectRef, TypedRef, WireProfile, nil_reference};
pub use orb::{
    BuildError, CONFIG_FILE_VARIABLE, INIT_REF_VARIABLE, InitialReference, Orb, OrbBuilder, Setting,
    SettingError, settings,
};
pub use pending::Pending;
pub use poa::{Poa, PoaPolicies};
pub use servant::{Servant, servant};

/// Brings in what `ironorb-build` generated from `idl/NAME.idl`: `ironorb::include_idl!("bank");`
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
