//! GIOP, CDR and object references of CORBA, without I/O (CORBA 3.3 part 2, clauses 7 and 9).
//!
//! This crate is the protocol core of IronORB. It turns values into bytes and bytes into values: CDR data, GIOP
//! messages, object references and their textual forms. State machines decide what a connection sends next.
//!
//! A client writes a request, and a server reads it:
//!
//! ```
//! use ironorb_giop::framer::{Framer, FramerLimits};
//! use ironorb_giop::message::{MessageStart, RequestId, RequestTarget, Response};
//! use ironorb_giop::{TransmissionCodeSets, Version};
//!
//! // The client writes the header, then the arguments, and then the size of the message.
//! let target = RequestTarget::new(Version::V1_2, None, b"object key");
//! let mut bytes = Vec::new();
//! let start = MessageStart::request(
//!     &mut bytes,
//!     &target,
//!     TransmissionCodeSets::UNNEGOTIATED,
//!     RequestId(7),
//!     Response::SyncWithTarget,
//!     "deposit".into(),
//!     &[],
//! )?;
//! {
//!     let mut arguments = start.body(&mut bytes);
//!     arguments.put(&250i32)?;
//!     arguments.put("EUR")?;
//! }
//! start.finish(&mut bytes, 1 << 20)?; // at most 1 MiB
//!
//! // The server cuts the received bytes into messages and reads one.
//! let mut framer = Framer::new(FramerLimits::default());
//! framer.push(&bytes);
//! let message = framer.next()?.expect("the message is complete");
//! let request = message.parse_request()?;
//! assert_eq!(request.id, RequestId(7));
//! assert_eq!(request.operation, b"deposit");
//! let mut arguments = request.body.reader();
//! assert_eq!(arguments.get::<i32>()?, 250);
//! assert_eq!(arguments.get::<String>()?, "EUR");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! - [`cdr`]: Common Data Representation. [`Marshal`] and [`Unmarshal`] are the traits of generated types.
//! - [`message`]: GIOP messages. [`framer`]: cuts received bytes into messages and joins fragments.
//! - [`connection`]: the state machines of both sides of a connection.
//! - [`ior`] and [`url`]: object references as bytes, as `IOR:` text and as `corbaloc:` and `corbaname:` URLs.
//! - [`value`]: valuetypes. [`fixed`]: the IDL type `fixed`.
//! - [`typecode`], [`any`] and [`dyn_any`]: types and values whose Rust types are not known at compile time.
//! - [`exception`] and [`minor`]: system exceptions and their minor codes.
//! - [`probe`]: measures how long a thread is in each stage of a call, in builds with the feature `probes`.
//!
//! # What the crate does not do
//!
//! The crate opens no socket, reads no clock, spawns no thread and holds no lock. (Builds with the feature `probes`
//! are the exception: they measure.) Bytes come in as arguments and go out as results. So the code that serves
//! sockets also runs under a fuzzer and in a simulator.
//!
//! # Trust
//!
//! Bytes from a peer are never trusted. A length is checked against the bytes that have arrived before memory is
//! allocated for it, and nesting is bounded. Malformed bytes give a [`Malformed`] error, never a panic.
//! A program's own mistake gives a [`Misuse`] error.

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
pub mod real_time;
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
