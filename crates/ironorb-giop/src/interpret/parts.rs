//! The implementations of [`Interpret`] for Rust's own types and for those of the mapping.

use std::collections::BTreeMap;

use super::{Blank, Interpret, Type, resolved, wrong};
use crate::any::Any;
use crate::cdr::{
    LongDouble, MarshalNillable, Reader, Unmarshal, UnmarshalNillable, WString, Writer, bounded, check_bound,
};
use crate::error::{Malformed, Misuse};
use crate::fixed::Fixed;
use crate::typecode::{TypeCode, TypeDef};
use crate::value::{Abstract, FormalValue, Link};

/// Types that are one part. Their description adds nothing that the Rust type does not say.
macro_rules! whole {
    ($([$($parameters:tt)*] $ty:ty = $blank:expr;)*) => {$(
        impl<$($parameters)*> Interpret for $ty {
            fn write_as(&self, _: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
                w.put(self)
            }

            fn read_as(&mut self, _: Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
                *self = r.get()?;
                Ok(())
            }
        }

        impl<$($parameters)*> Blank for $ty {
            fn blank() -> Self {
                $blank
            }
        }
    )*};
}

whole! {
    [] char = '\0';
    [] LongDouble = LongDouble::from_bits(0);
    [] Any = Any::default();
    [] TypeCode = TypeCode::default();
    [const DIGITS: u16, const SCALE: u16] Fixed<DIGITS, SCALE> = Fixed::ZERO;
    [O: MarshalNillable + UnmarshalNillable, V: FormalValue + ?Sized] Abstract<O, V> = Abstract::Nil;
    [T: FormalValue + ?Sized] Link<T> = Link::null();
}

/// References.
impl<T: MarshalNillable + UnmarshalNillable> Interpret for Option<T> {
    fn write_as(&self, _: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(self)
    }

    fn read_as(&mut self, _: Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
        *self = r.get()?;
        Ok(())
    }
}

impl<T> Blank for Option<T> {
    #[inline]
    fn blank() -> Self {
        None
    }
}

impl Interpret for String {
    fn write_as(&self, ty: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
        if let Some(bound) = text_bound(ty) {
            check_bound(length(self, bound), bound)?;
        }
        w.write_str(self)
    }

    fn read_as(&mut self, ty: Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let text = r.read_str()?;
        if let Some(bound) = text_bound(ty) {
            bounded(r, length(&text, bound), bound)?;
        }
        *self = text.into_owned();
        Ok(())
    }
}

impl Blank for String {
    #[inline]
    fn blank() -> Self {
        String::new()
    }
}

impl Interpret for WString {
    fn write_as(&self, ty: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
        if let Some(bound) = text_bound(ty) {
            check_bound(self.encode_utf16().count(), bound)?;
        }
        w.write_wstr(self)
    }

    fn read_as(&mut self, ty: Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let text = r.read_wstr()?;
        if let Some(bound) = text_bound(ty) {
            bounded(r, text.encode_utf16().count(), bound)?;
        }
        *self = WString::from(text);
        Ok(())
    }
}

impl Blank for WString {
    #[inline]
    fn blank() -> Self {
        WString::default()
    }
}

impl<T: Interpret + Blank + Unmarshal> Interpret for Vec<T> {
    fn write_as(&self, ty: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
        T::write_elements_as(self, write_sequence(self.len(), ty, w)?, w)
    }

    fn read_as(&mut self, ty: Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let (element, count) = read_sequence(T::BYTES_MIN, ty, r)?;
        self.clear();
        T::read_elements_as(self, count, element, r)
    }
}

impl<T> Blank for Vec<T> {
    #[inline]
    fn blank() -> Self {
        Vec::new()
    }
}

impl<T: Interpret, const N: usize> Interpret for [T; N] {
    fn write_as(&self, ty: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
        T::write_elements_as(self, array_element(ty).ok_or(Misuse::BadTypeCode)?, w)
    }

    fn read_as(&mut self, ty: Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let element = array_element(ty).ok_or_else(|| wrong(r))?;
        T::read_array_as(self, element, r)
    }
}

impl<T: Blank, const N: usize> Blank for [T; N] {
    #[inline]
    fn blank() -> Self {
        std::array::from_fn(|_| T::blank())
    }
}

/// A sequence of pairs on the wire. Where two pairs have the same key, the later one counts.
impl<K, V> Interpret for BTreeMap<K, V>
where
    K: Interpret + Blank + Unmarshal + Ord,
    V: Interpret + Blank + Unmarshal,
{
    fn write_as(&self, ty: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
        let (key_type, value_type) = pair(write_sequence(self.len(), ty, w)?).ok_or(Misuse::BadTypeCode)?;
        self.iter().try_for_each(|(key, value)| {
            key.write_as(key_type, w)?;
            value.write_as(value_type, w)
        })
    }

    fn read_as(&mut self, ty: Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let (element, count) = read_sequence(K::BYTES_MIN + V::BYTES_MIN, ty, r)?;
        let (key_type, value_type) = pair(element).ok_or_else(|| wrong(r))?;
        self.clear();
        r.nested(|r| {
            for _ in 0..count {
                let (mut key, mut value) = (K::blank(), V::blank());
                key.read_as(key_type, r)?;
                value.read_as(value_type, r)?;
                self.insert(key, value);
            }
            Ok(())
        })
    }
}

impl<K, V> Blank for BTreeMap<K, V> {
    #[inline]
    fn blank() -> Self {
        BTreeMap::new()
    }
}

/// Starts a sequence, and returns the type of its elements.
#[inline(never)]
fn write_sequence(length: usize, ty: Type, w: &mut Writer<'_>) -> Result<Type, Misuse> {
    let element = match ty.map(resolved) {
        None => None,
        Some(&TypeDef::Sequence { element, bound }) => {
            if bound > 0 {
                check_bound(length, bound)?;
            }
            Some(element)
        }
        Some(_) => return Err(Misuse::BadTypeCode),
    };
    w.write_length(length)?;
    Ok(element)
}

/// The type of the elements of a sequence, and their number, for which there are enough bytes.
#[inline(never)]
fn read_sequence(bytes_min: usize, ty: Type, r: &mut Reader<'_>) -> Result<(Type, usize), Malformed> {
    let count = r.read_length(bytes_min)?;
    match ty.map(resolved) {
        None => Ok((None, count)),
        Some(&TypeDef::Sequence { element, bound }) => {
            if bound > 0 {
                bounded(r, count, bound)?;
            }
            Ok((Some(element), count))
        }
        Some(_) => Err(wrong(r)),
    }
}

/// The type of the elements of an array, if it is one.
fn array_element(ty: Type) -> Option<Type> {
    match ty.map(resolved) {
        None => Some(None),
        Some(&TypeDef::Array { element, .. }) => Some(Some(element)),
        Some(_) => None,
    }
}

/// The types of the key and the value of a map, if the type is that of its pairs.
fn pair(ty: Type) -> Option<(Type, Type)> {
    match ty.map(resolved) {
        None => Some((None, None)),
        Some(&TypeDef::Struct { members: [(_, key), (_, value)], .. }) => Some((Some(key), Some(value))),
        Some(_) => None,
    }
}

/// The bound of a text, if it has one.
fn text_bound(ty: Type) -> Option<u32> {
    match *resolved(ty?) {
        TypeDef::String { bound: bound @ 1.. } | TypeDef::WString { bound: bound @ 1.. } => Some(bound),
        _ => None,
    }
}

/// The length of a string in characters, for comparison with a bound. Counted only if the bytes exceed the
/// bound.
fn length(text: &str, bound: u32) -> usize {
    if text.len() <= bound as usize { text.len() } else { text.chars().count() }
}
