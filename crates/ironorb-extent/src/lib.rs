//! Extents: states of one type, one after another in memory or in a file, each with a lock of its own. A billion of them fit
//! a process, because beside its state an element takes eight bytes: a lock that lends priorities, and a mark that tells
//! whether it exists and how often it has been made anew. The crate knows no ORB.
//!
//! ```
//! use ironorb_extent::{ElementError, Elements};
//!
//! let counters = Elements::in_memory(1_000_000, |_| 0_u64)?;
//! counters.update(7, |count| *count += 1)?;
//! assert_eq!(counters.read(7, |count| *count)?, 1);
//! counters.destroy(8)?;
//! assert!(matches!(counters.read(8, |count| *count), Err(ElementError::Absent)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Access
//!
//! A thread uses an element by a closure, alone: [`Elements::read`], [`Elements::update`], and for several at once
//! [`Elements::update_all`]. A closure that comes back to its own element gets [`ElementError::Reentered`]. An update that
//! panics changes nothing.
//!
//! # Durability
//!
//! An extent in memory ends with its process. One in a file ([`File`](FileOptions)) survives it, as the file's
//! [`Durability`] says: `Process` for the end of the process at any instruction, `Power` for that of the machine, too.
//!
//! # Unsafe code
//!
//! In `memory.rs` alone: mapped memory as rows of values, elements that the thread with their lock uses, and the settings of
//! the C library's allocator.

mod durability;
mod elements;
mod error;
mod file;
mod lanes;
mod log;
mod memory;

pub use durability::Durability;
pub use elements::{Element, ElementId, Elements, Generation, Watcher, WeakElements};
pub use error::{ElementError, ExtentError};
pub use file::FileOptions;
pub use memory::{Pages, keep_heap, reserve_heap};
