//! The protocol core: CDR, GIOP messages, connection state machines, object references and their
//! textual forms (CORBA 3.3 part 2, clauses 7 and 9).
//!
//! Nothing here opens a socket, reads a clock, spawns a thread or holds a lock - but for [`probe`] in
//! builds with the feature of that name, which are made to measure. Bytes come in as
//! arguments and go out as results, so the same code runs over sockets, under a fuzzer and in a
//! simulator. Bytes from a peer are never trusted: a length is checked against what has arrived
//! before memory is taken for it, and nesting is bounded.

#![deny(unsafe_code)] // but in `cdr::wire`, which copies structs as they lie in memory

pub mod any;
pub mod cdr;
pub mod connection;
pub mod dyn_any;
pub mod error;
pub mod exception;
pub mod fixed;
pub mod framer;
pub mod interpret;
pub mod ior;
pub mod message;
pub mod minor;
pub mod probe;
pub mod service_context;
pub mod typecode;
pub mod url;
pub mod value;
pub mod version;

pub use any::Any;
pub use cdr::{Marshal, Reader, Shifts, Unmarshal, Writer};
pub use dyn_any::DynAny;
pub use error::{Malformed, MalformedKind, Misuse};
pub use exception::{CompletionStatus, SystemException, SystemExceptionKind};
pub use fixed::Fixed;
pub use ior::Ior;
pub use typecode::{TypeCode, TypeDef, Typed};
pub use url::ObjectUrl;
pub use version::{ByteOrder, CharSet, CodeSetId, Encoding, TransmissionCodeSets, Version, WideCharSet};
