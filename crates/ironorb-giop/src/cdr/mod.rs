//! Common Data Representation (CORBA 3.3 part 2, 9.3): values to bytes and back.
//!
//! [`Writer`] and [`Reader`] know the primitive types, strings and encapsulations. [`Marshal`] and
//! [`Unmarshal`] are what generated types implement; sequences of primitives go in bulk.

mod cuts;
mod environment;
mod idl4;
mod impls;
mod long_double;
mod nillable;
mod reader;
mod segments;
mod wide;
mod wide_form;
mod writer;

pub(crate) use cuts::Cuts;
pub use environment::Environment;
pub use impls::{bounded, check_bound};
pub use long_double::{LongDouble, NotALongDouble};
pub use nillable::{MarshalNillable, UnmarshalNillable};
pub use reader::{NESTING_MAX, Number, Reader};
pub(crate) use segments::{NO_CHUNK, Place};
pub use wide::WString;
pub use writer::Writer;
pub(crate) use writer::{RUN_BYTES_MIN, Run, TakeRun};

use crate::error::{Malformed, MalformedKind, Misuse};
use crate::probe::{self, Stage};

/// A value that can be written as CDR.
pub trait Marshal {
    /// Appends the value. After an error the writer's contents are meaningless and the caller drops them.
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Appends the elements of a slice without a length. Primitives override it by a bulk copy.
    #[inline]
    fn marshal_elements(items: &[Self], w: &mut Writer<'_>) -> Result<(), Misuse>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.marshal(w))
    }

    /// The elements of a slice as they would be written in this processor's byte order at a multiple of their size,
    /// where that is how they lie in memory: primitives do.
    #[inline]
    fn elements_as_written(items: &[Self]) -> Option<&[u8]>
    where
        Self: Sized,
    {
        let _ = items;
        None
    }
}

/// A value that can be read from CDR.
pub trait Unmarshal: Sized {
    /// A lower bound of the bytes that a value takes; 0 only where no value takes any. A sequence that announces
    /// more elements than the rest of the message could hold is refused before memory is taken.
    const BYTES_MIN: usize = 1;

    /// Reads one value.
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Reads `count` elements. Primitives override it by a bulk copy. `count * BYTES_MIN` has been
    /// checked against what is left.
    #[inline]
    fn unmarshal_elements(r: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, Malformed> {
        // A small element on the wire may be a large one in memory: memory follows what has really been read.
        let first = (PREALLOCATE_BYTES_MAX / size_of::<Self>().max(1)).max(1);
        let probe = probe::enter(Stage::Allocate);
        let mut items = Vec::with_capacity(count.min(first));
        drop(probe);
        r.nested(|r| {
            for _ in 0..count {
                items.push(Self::unmarshal(r)?);
            }
            Ok(())
        })?;
        Ok(items)
    }

    /// Reads `N` elements of an array.
    #[inline]
    fn unmarshal_array<const N: usize>(r: &mut Reader<'_>) -> Result<[Self; N], Malformed> {
        let at = r.position();
        let items = Self::unmarshal_elements(r, N)?;
        // Only a wrong override of `unmarshal_elements` could give another count.
        items.try_into().map_err(|_| Malformed::new(MalformedKind::Truncated, at))
    }
}

/// Memory reserved for a sequence before its elements have been read, in bytes.
const PREALLOCATE_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests;
