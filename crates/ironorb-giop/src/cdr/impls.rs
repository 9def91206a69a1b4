//! [`Marshal`] and [`Unmarshal`] of Rust's own types.

use super::block::{self, BlockLayout, BlockReader, BlockWriter};
use super::{Marshal, Reader, Unmarshal, WString, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};

macro_rules! number {
    ($($ty:ty, $write:ident, $read:ident;)*) => {$(
        impl Marshal for $ty {
            #[inline]
            fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
                w.$write(*self);
                Ok(())
            }
            #[inline]
            fn marshal_elements(items: &[Self], w: &mut Writer<'_>) -> Result<(), Misuse> {
                w.write_numbers(items);
                Ok(())
            }
            #[inline]
            fn elements_as_written(items: &[Self]) -> Option<&[u8]> {
                Some(bytemuck::cast_slice(items))
            }
            #[inline(always)]
            fn put_blocks(items: &[Self], block: &mut BlockWriter<'_>) {
                block::put_numbers(items, block);
            }
        }
        impl Unmarshal for $ty {
            const BYTES_MIN: usize = size_of::<$ty>();
            const LAYOUT: BlockLayout = BlockLayout::number(size_of::<$ty>());
            #[inline]
            fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
                r.$read()
            }
            #[inline]
            fn unmarshal_elements(r: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, Malformed> {
                r.number_vec(count)
            }
            #[inline]
            fn borrow_elements<'a>(r: &mut Reader<'a>, count: usize) -> Option<&'a [Self]> {
                r.borrow_numbers(count)
            }
            #[inline]
            fn elements_in_memory(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::try_cast_slice(bytes).ok()
            }
            #[inline(always)]
            fn get_block(block: &mut BlockReader<'_>) -> Option<Self> {
                block.take()
            }
            #[inline(always)]
            fn get_block_array<const N: usize>(block: &mut BlockReader<'_>) -> Option<[Self; N]> {
                block::take_numbers(block)
            }
        }
    )*};
}

number! {
    i16, write_i16, read_i16;
    u16, write_u16, read_u16;
    i32, write_i32, read_i32;
    u32, write_u32, read_u32;
    i64, write_i64, read_i64;
    u64, write_u64, read_u64;
    f32, write_f32, read_f32;
    f64, write_f64, read_f64;
}

impl Marshal for u8 {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u8(*self);
        Ok(())
    }
    #[inline]
    fn marshal_elements(items: &[Self], w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_run(items);
        Ok(())
    }
    #[inline]
    fn elements_as_written(items: &[Self]) -> Option<&[u8]> {
        Some(items)
    }
    #[inline(always)]
    fn put_blocks(items: &[Self], block: &mut BlockWriter<'_>) {
        block::put_numbers(items, block);
    }
}

impl Unmarshal for u8 {
    const LAYOUT: BlockLayout = BlockLayout::number(1);
    #[inline]
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.read_u8()
    }
    #[inline]
    fn unmarshal_elements(r: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, Malformed> {
        r.read_bytes_split(count).map(std::borrow::Cow::into_owned)
    }
    #[inline]
    fn borrow_elements<'a>(r: &mut Reader<'a>, count: usize) -> Option<&'a [Self]> {
        r.borrow_octets(count)
    }
    #[inline]
    fn elements_in_memory(bytes: &[u8]) -> Option<&[Self]> {
        Some(bytes)
    }
    #[inline(always)]
    fn get_block(block: &mut BlockReader<'_>) -> Option<Self> {
        block.take()
    }
    #[inline(always)]
    fn get_block_array<const N: usize>(block: &mut BlockReader<'_>) -> Option<[Self; N]> {
        block::take_numbers(block)
    }
}

impl Marshal for bool {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_bool(*self);
        Ok(())
    }
    #[inline]
    fn marshal_elements(items: &[Self], w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_run(bytemuck::cast_slice(items));
        Ok(())
    }
    #[inline]
    fn elements_as_written(items: &[Self]) -> Option<&[u8]> {
        Some(bytemuck::cast_slice(items))
    }
    #[inline(always)]
    fn put_blocks(items: &[Self], block: &mut BlockWriter<'_>) {
        block::put_numbers::<u8, 1>(bytemuck::cast_slice(items), block);
    }
}

impl Unmarshal for bool {
    const LAYOUT: BlockLayout = BlockLayout::number(1);
    #[inline]
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.read_bool()
    }
    #[inline]
    fn unmarshal_elements(r: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, Malformed> {
        Ok(r.read_bytes_split(count)?.iter().map(|&byte| byte != 0).collect())
    }
    #[inline(always)]
    fn get_block(block: &mut BlockReader<'_>) -> Option<Self> {
        block.take::<u8, 1>().map(|octet| octet != 0)
    }
    #[inline(always)]
    fn get_block_array<const N: usize>(block: &mut BlockReader<'_>) -> Option<[Self; N]> {
        block::take_numbers::<u8, 1, N>(block).map(|octets| octets.map(|octet| octet != 0))
    }
}

/// A Rust `char` is an IDL `wchar`; IDL `char` is `u8`.
impl Marshal for char {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_wchar(*self)
    }
}

impl Unmarshal for char {
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.read_wchar()
    }
}

impl Marshal for str {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_str(self)
    }
}

impl Marshal for String {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_str(self)
    }
}

impl Unmarshal for String {
    const BYTES_MIN: usize = 4;
    #[inline]
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.read_str().map(std::borrow::Cow::into_owned)
    }
}

impl Marshal for WString {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_wstr(self)
    }
}

impl Unmarshal for WString {
    const BYTES_MIN: usize = 4;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.read_wstr().map(WString::from)
    }
}

impl<T: Marshal> Marshal for [T] {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_length(self.len())?;
        T::marshal_elements(self, w)
    }
}

impl<T: Marshal> Marshal for Vec<T> {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        self.as_slice().marshal(w)
    }
}

impl<T: Unmarshal> Unmarshal for Vec<T> {
    const BYTES_MIN: usize = 4;
    #[inline]
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = r.read_length(T::BYTES_MIN)?;
        T::unmarshal_elements(r, count)
    }
}

impl<T: Marshal, const N: usize> Marshal for [T; N] {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        T::marshal_elements(self, w)
    }
    #[inline(always)]
    fn put_blocks(items: &[Self], block: &mut BlockWriter<'_>) {
        T::put_blocks(items.as_flattened(), block);
    }
}

impl<T: Unmarshal, const N: usize> Unmarshal for [T; N] {
    const BYTES_MIN: usize = N * T::BYTES_MIN;
    const LAYOUT: BlockLayout = T::LAYOUT.times(N);
    #[inline]
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        T::unmarshal_array(r)
    }
    #[inline(always)]
    fn get_block(block: &mut BlockReader<'_>) -> Option<Self> {
        T::get_block_array(block)
    }
}

/// Recursive members are boxed in Rust. The box does not appear on the wire.
impl<T: Marshal + ?Sized> Marshal for Box<T> {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        (**self).marshal(w)
    }
}

impl<T: Unmarshal> Unmarshal for Box<T> {
    const BYTES_MIN: usize = T::BYTES_MIN;
    #[inline]
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        T::unmarshal(r).map(Box::new)
    }
}

/// Refuses a value longer than its IDL bound before it is written.
#[inline]
pub fn check_bound(length: usize, bound: u32) -> Result<(), Misuse> {
    if length > bound as usize { Err(Misuse::BoundExceeded { bound, length }) } else { Ok(()) }
}

/// Refuses a value longer than its IDL bound after it was read. The error gives the reader's position.
#[inline]
pub fn bounded(r: &Reader<'_>, length: usize, bound: u32) -> Result<(), Malformed> {
    if length > bound as usize { Err(r.malformed(MalformedKind::BoundExceeded)) } else { Ok(()) }
}
