//! [`Marshal`] and [`Unmarshal`] of the additions of IDL 4.2: `int8` and maps. A map travels as a sequence of
//! key-value pairs.

use std::collections::BTreeMap;

use super::block::{self, BlockLayout, BlockReader, BlockWriter};
use super::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};
use crate::typecode::{TypeDef, Typed};

impl Marshal for i8 {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u8(self.cast_unsigned());
        Ok(())
    }
    #[inline]
    fn marshal_elements(items: &[Self], w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_bytes(bytemuck::cast_slice(items));
        Ok(())
    }
    #[inline(always)]
    fn put_blocks(items: &[Self], block: &mut BlockWriter<'_>) {
        block::put_numbers::<u8, 1>(bytemuck::cast_slice(items), block);
    }
}

impl Unmarshal for i8 {
    const LAYOUT: BlockLayout = BlockLayout::number(1);
    #[inline]
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.read_u8().map(u8::cast_signed)
    }
    #[inline]
    fn unmarshal_elements(r: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, Malformed> {
        u8::unmarshal_elements(r, count).map(|bytes| bytes.into_iter().map(u8::cast_signed).collect())
    }
    #[inline(always)]
    fn get_block(block: &mut BlockReader<'_>) -> Option<Self> {
        block.take::<u8, 1>().map(u8::cast_signed)
    }
    #[inline(always)]
    fn get_block_array<const N: usize>(block: &mut BlockReader<'_>) -> Option<[Self; N]> {
        block::take_numbers::<u8, 1, N>(block).map(|octets| octets.map(u8::cast_signed))
    }
}

/// CORBA has no TypeCode for 8-bit integers, so the TypeCode is that of an octet, which has the same bits.
impl Typed for i8 {
    const TYPE: &'static TypeDef = &TypeDef::Octet;
}

/// A key-value pair of a map.
impl<K: Marshal, V: Marshal> Marshal for (K, V) {
    #[inline]
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&self.0)?;
        w.put(&self.1)
    }
}

impl<K: Unmarshal, V: Unmarshal> Unmarshal for (K, V) {
    const BYTES_MIN: usize = K::BYTES_MIN + V::BYTES_MIN;
    #[inline]
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok((r.get()?, r.get()?))
    }
}

/// CORBA has no TypeCode for maps, so the TypeCode of a pair is a struct without a name.
impl<K: Typed, V: Typed> Typed for (K, V) {
    const TYPE: &'static TypeDef =
        &TypeDef::Struct { id: "", name: "", members: &[("key", K::TYPE), ("value", V::TYPE)] };
}

impl<K: Marshal, V: Marshal> Marshal for BTreeMap<K, V> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_length(self.len())?;
        self.iter().try_for_each(|(key, value)| {
            w.put(key)?;
            w.put(value)
        })
    }
}

/// Where two pairs have the same key, the later one counts.
impl<K: Unmarshal + Ord, V: Unmarshal> Unmarshal for BTreeMap<K, V> {
    const BYTES_MIN: usize = 4;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Vec::<(K, V)>::unmarshal(r)?.into_iter().collect())
    }
}

impl<K: Typed, V: Typed> Typed for BTreeMap<K, V> {
    const TYPE: &'static TypeDef = <Vec<(K, V)> as Typed>::TYPE;
}
