//! Common Data Representation (CORBA 3.3 part 2, 9.3): values to bytes and back.
//!
//! [`Writer`] and [`Reader`] handle the primitive types, strings and encapsulations. Generated types
//! implement [`Marshal`] and [`Unmarshal`]. Sequences of primitives are copied in bulk.

mod block;
mod cuts;
mod environment;
mod idl4;
mod impls;
mod long_double;
mod nillable;
mod owned;
mod reader;
mod segments;
mod shift;
mod wide;
mod wide_form;
mod wire;
mod writer;

pub use block::{Block, BlockLayout, BlockReader, BlockWriter};
pub(crate) use cuts::Cuts;
pub use environment::Environment;
pub use impls::{bounded, check_bound};
pub use long_double::{LongDouble, NotALongDouble};
pub use nillable::{MarshalNillable, UnmarshalNillable};
pub use owned::{Ownable, OwnedSlice, ReceivedSlice};
pub use reader::{NESTING_MAX, Number, Reader};
pub(crate) use segments::{NO_CHUNK, Place};
pub use shift::Shifts;
pub use wide::WString;
pub use wire::{Elements, WireImage, WireLayout, nothing_in_memory, wire_elements_in_memory};
pub use writer::Writer;
pub(crate) use writer::{RUN_BYTES_MIN, Run, RunSink, Runs};

pub use bytemuck::{AnyBitPattern, Zeroable};

use crate::error::{Malformed, MalformedKind, Misuse};

/// A value that can be written as CDR.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent in a message",
    label = "not a type that IDL maps to",
    note = "types that are generated from IDL can be sent, and those that IDL's basic types, strings, sequences and arrays map to",
    note = "`usize` is none of them, nor `&str`: say `u32` or `u64`, and `String`"
)]
pub trait Marshal {
    /// Appends the value. After an error the contents of the writer are meaningless, and the caller discards
    /// them.
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Appends the elements of a slice without a length. Primitives override it with a bulk copy.
    #[inline]
    fn marshal_elements(items: &[Self], w: &mut Writer<'_>) -> Result<(), Misuse>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.marshal(w))
    }

    /// The elements of a slice as they are written in the processor's byte order at a multiple of their size,
    /// if they have the same bytes in memory. Primitives do; the default is `None`.
    #[inline]
    fn elements_as_written(items: &[Self]) -> Option<&[u8]>
    where
        Self: Sized,
    {
        let _ = items;
        None
    }

    /// Puts values into a block, one after the other. Never called for types whose [`Unmarshal::LAYOUT`] is
    /// variable; the default is for those.
    #[inline]
    fn put_blocks(items: &[Self], block: &mut BlockWriter<'_>)
    where
        Self: Sized,
    {
        let _ = (items, block);
    }
}

/// A value that can be read from CDR.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be received in a message",
    label = "not a type that IDL maps to",
    note = "types that are generated from IDL can be received, and those that IDL's basic types, strings, sequences and arrays map to"
)]
pub trait Unmarshal: Sized {
    /// A lower bound of the bytes of a value; 0 only where no value takes any. A sequence that announces more
    /// elements than the rest of the message can hold is refused before memory is allocated.
    const BYTES_MIN: usize = 1;

    /// The layout of values, for types that always have the same size and say so.
    const LAYOUT: BlockLayout = BlockLayout::VARIABLE;

    /// Reads one value.
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Reads `count` elements. Primitives override it with a bulk copy. The caller has checked that `count *
    /// BYTES_MIN` bytes are left.
    #[inline]
    fn unmarshal_elements(r: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, Malformed> {
        r.get_elements(count)
    }

    /// Borrows `count` elements where their bytes are as in memory. `None`, without moving the reader, where
    /// they must be read. Types that can be borrowed override it.
    #[inline]
    fn borrow_elements<'a>(r: &mut Reader<'a>, count: usize) -> Option<&'a [Self]> {
        let _ = (r, count);
        None
    }

    /// The elements whose images in memory these bytes are. `None` where they are none, or not aligned. Types that
    /// can be borrowed override it.
    #[inline]
    fn elements_in_memory(bytes: &[u8]) -> Option<&[Self]> {
        let _ = bytes;
        None
    }

    /// Reads `N` elements of an array.
    #[inline]
    fn unmarshal_array<const N: usize>(r: &mut Reader<'_>) -> Result<[Self; N], Malformed> {
        let at = r.position();
        let items = Self::unmarshal_elements(r, N)?;
        // Only a wrong override of `unmarshal_elements` returns another count.
        items.try_into().map_err(|_| Malformed::new(MalformedKind::Truncated, at))
    }

    /// Takes the next value of a block. `None` if there is none or it is invalid; [`Unmarshal::unmarshal`]
    /// then reports the error. Never called where [`LAYOUT`](Self::LAYOUT) is variable.
    #[inline]
    fn get_block(block: &mut BlockReader<'_>) -> Option<Self> {
        let _ = block;
        None
    }

    /// Takes the elements of an array.
    #[inline]
    fn get_block_array<const N: usize>(block: &mut BlockReader<'_>) -> Option<[Self; N]> {
        let items: [Option<Self>; N] = std::array::from_fn(|_| Self::get_block(block));
        let is_whole = items.iter().all(Option::is_some);
        is_whole.then(|| items.map(|item| item.expect("all were looked at")))
    }
}

#[cfg(test)]
mod tests;
