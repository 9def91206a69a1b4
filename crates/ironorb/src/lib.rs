//! IronORB: a CORBA object request broker.
//!
//! A program makes an [`Orb`], activates servants in its [`Poa`] and calls objects through typed references.
//! A build script generates these from IDL with `ironorb-build`. A call runs on the thread that makes it. The
//! crate needs no async runtime, and ORBs of one process share no state: only probes, recorded counts of
//! marshalling and the slots of collocated calls are global.
//!
//! ```no_run
//! use ironorb::Orb;
//!
//! fn main() -> Result<(), ironorb::Error> {
//!     let orb = Orb::builder().arguments(&mut std::env::args().collect()).endpoint("iiop://:2810")?.build()?;
//!     // With code generated from IDL: `orb.root_poa().activate(Servant)?` and `orb.resolve::<BankRef>(url)?`.
//!     let object = orb.string_to_object("corbaloc::localhost:2809/NameService")?;
//!     println!("{}", object.to_ior_string());
//!     orb.run()?;
//!     Ok(())
//! }
//! ```
//!
//! # Where to begin
//!
//! | to | see |
//! |---|---|
//! | make and configure an ORB | [`Orb::builder`], [`OrbBuilder`], [`settings`] |
//! | serve objects | [`Poa::activate`], [`poa`] |
//! | find and call objects | [`Orb::resolve`], [`TypedRef`], [`ObjectRef`], [`naming`] |
//! | call an object that is several parts, each with its share of a sequence | [`parallel`] |
//! | call asynchronously, reply after the upcall | [`Pending`], [`Deferred`], [`Reply`] |
//! | set timeouts and other policies of calls | [`with_timeout`], [`InvocationPolicies`] |
//! | pass deadlines on to servers | [`OrbBuilder::deadline_propagation`], [`remaining_time`] |
//! | handle errors | [`Error`], [`SystemException`], [`MinorCode`] |
//! | call and serve without generated code | [`dynamic`], [`Any`], [`dyn_any`], [`ifr`] |
//! | see every request and reply, add service contexts | [`interceptor`] |
//! | pass graphs of valuetypes | [`Value`], [`Link`], [`ValueGraph`] |
//! | bring a transport of one's own | [`transport`], [`OrbBuilder::transport`] |
//! | use another network or a virtual clock | [`engine`], [`invocation`] |
//! | see what an ORB does | [`status`], [`Orb::status`] |
//! | measure calls and marshalling | [`probe`], [`marshal_profile`] |
//!
//! The crate knows no particular service but the clients in [`naming`] and [`ifr`]. Its public types are its
//! own or those of the protocol core, [`ironorb_giop`].

#![forbid(unsafe_code)]

mod base;
pub mod cache;
mod call;
mod codegen;
mod connection;
mod driver;
pub mod dynamic;
mod initial;
pub mod interceptor;
mod lane;
mod object;
mod orb;
pub mod parallel;
pub mod poa;
pub mod rt;
pub mod status;
pub mod transport;

#[cfg(debug_assertions)]
#[doc(hidden)]
pub use base::testing;
pub use base::{marshal_profile, probe};
pub use call::invocation;
pub use driver::engine;
pub use initial::{ifr, naming};

/// The path by which generated code names what it is built on.
#[doc(hidden)]
pub mod generated {
    pub use crate::codegen::*;
}

// The ORB and its configuration.
pub use base::config::{
    BadConcurrency, BareExceptions, CacheLimit, Demultiplexing, ObjectLookup, OnewayBatching,
    OperationLookup, OrbConfig, ServerConcurrency, StatusAccess, Transport, Waiting,
};
pub use base::thread_pool_config::{RequestBuffering, RequestOrder, ThreadLifetime, ThreadPoolConfig};
pub use base::thread_settings::LaneThread;
pub use orb::{
    AuditFinding, AuditReport, BuildError, CONFIG_FILE_VARIABLE, CacheAudit, INIT_REF_VARIABLE, InLane,
    InitialReference, InstallRecorder, Lane, LaneConfig, LaneSetting, Orb, OrbBuilder, Policy, PolicyError,
    PolicyErrorCode, Setting, SettingError, ThreadpoolError, lane_settings, set_thread_policy_overrides,
    settings,
};
pub use transport::Endpoint;
pub use transport::endpoint::BadAddress;

// Objects and servants.
pub use ironorb_extent::{
    Durability, Element, ElementError, ElementId, Elements, ExtentError, FileOptions, Generation, Pages,
};
pub use object::extent_range::{ExtentRange, ExtentReferences};
pub use object::{ObjectRef, TypedRef, WireProfile, nil_reference};
pub use poa::servant::{Call, Deferred, Replied, Reply, Servant, servant};
pub use poa::{CannotCreateExtent, ElementCells, Extent, ExtentConfig, Poa, PoaPolicies, UsedElement};

// Calls.
pub use driver::cache::warm::{PrefetchingRange, Warm, warm_cached};
pub use driver::cache::watch::{Watching, watch_cached};
pub use driver::call_policies::{
    remaining_time, set_thread_policies, set_thread_timeout, thread_policies, with_timeout,
};
pub use driver::context::Context;
pub use driver::distributable::SpawnedThread;
pub use driver::pending::{Pending, PendingHandle};
pub use object::messaging::{InvocationPolicies, Rebind, SyncScope};

// Errors.
pub use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
pub use ironorb_giop::minor::MinorCode;
pub use orb::Error;

// Data.
pub use ironorb_giop as giop;
pub use ironorb_giop::any::{Any, ExtractError};
pub use ironorb_giop::cdr::{LongDouble, Ownable, OwnedSlice, WString};
pub use ironorb_giop::dyn_any;
pub use ironorb_giop::fixed::{Decimal, Fixed, FixedError};
pub use ironorb_giop::typecode::{TcKind, TypeCode, TypeDef, Typed};
pub use ironorb_giop::value::{Link, Value, ValueBase, ValueGraph, ValueId};
pub use ironorb_giop::version::Version;
pub use object::codec::Codec;

/// Includes the code that `ironorb-build` generated from `idl/NAME.idl`: `ironorb::include_idl!("bank");`
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
