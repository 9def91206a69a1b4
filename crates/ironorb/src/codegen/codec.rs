//! What generated code calls to write values to the wire and to find operations by name.
//!
//! Nothing here knows a connection, an object or an adapter. A [`Codec`] is a type on the wire. Most codecs
//! are the Rust types themselves. Those with IDL bounds are markers, which check the bounds when they write
//! ([`Misuse::BoundExceeded`]) and when they read ([`MalformedKind::BoundExceeded`]).

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use ironorb_giop::cdr::{
    BlockLayout, BlockReader, BlockWriter, Marshal, Reader, Unmarshal, WString, Writer, bounded, check_bound,
};
use ironorb_giop::error::{Malformed, MalformedKind, Misuse};
use ironorb_giop::exception::{CompletionStatus, SystemException};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::probe::{self, Stage};
use ironorb_giop::typecode::{TypeDef, Typed};
use ironorb_giop::version::Encoding;

/// A type on the wire, and the Rust type that holds its values.
///
/// Each type that can be marshalled is its own codec. `sequence<string<5>, 3>` has the codec
/// `Seq<Str<5>, 3>`, whose values are `Vec<String>`.
pub trait Codec {
    /// The Rust type of the values.
    type Value;

    /// A lower bound of the bytes that a value takes; see [`Unmarshal::BYTES_MIN`].
    const BYTES_MIN: usize;

    /// The layout of the values, if all have the same; see [`Unmarshal::LAYOUT`].
    const LAYOUT: BlockLayout = BlockLayout::VARIABLE;

    /// Writes a value, or refuses one that breaks a bound.
    fn put(value: &Self::Value, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Reads a value, or refuses one that breaks a bound.
    fn get(r: &mut Reader<'_>) -> Result<Self::Value, Malformed>;

    /// Writes elements without a length.
    #[inline]
    fn put_elements(items: &[Self::Value], w: &mut Writer<'_>) -> Result<(), Misuse> {
        items.iter().try_for_each(|item| Self::put(item, w))
    }

    /// Reads elements. Their number has been checked against the bytes that are left.
    #[inline]
    fn get_elements(r: &mut Reader<'_>, count: usize) -> Result<Vec<Self::Value>, Malformed> {
        // A short string on the wire takes more memory than its bytes, so memory is allocated as elements are
        // read.
        let probe = probe::enter(Stage::Allocate);
        let mut items = Vec::with_capacity(count.min(PREALLOCATE_ELEMENTS_MAX));
        drop(probe);
        r.nested(|r| {
            for _ in 0..count {
                items.push(Self::get(r)?);
            }
            Ok(())
        })?;
        Ok(items)
    }

    /// Writes a value into a block, if all values have the same layout.
    #[inline(always)]
    fn put_block(value: &Self::Value, block: &mut BlockWriter<'_>) {
        let _ = (value, block);
    }

    /// Reads a value from a block, if all values have the same layout.
    #[inline(always)]
    fn get_block(block: &mut BlockReader<'_>) -> Option<Self::Value> {
        let _ = block;
        None
    }
}

impl<T: Marshal + Unmarshal> Codec for T {
    type Value = T;
    const BYTES_MIN: usize = T::BYTES_MIN;
    const LAYOUT: BlockLayout = T::LAYOUT;

    #[inline]
    fn put(value: &T, w: &mut Writer<'_>) -> Result<(), Misuse> {
        value.marshal(w)
    }

    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<T, Malformed> {
        T::unmarshal(r)
    }

    #[inline]
    fn put_elements(items: &[T], w: &mut Writer<'_>) -> Result<(), Misuse> {
        T::marshal_elements(items, w)
    }

    #[inline]
    fn get_elements(r: &mut Reader<'_>, count: usize) -> Result<Vec<T>, Malformed> {
        T::unmarshal_elements(r, count)
    }

    #[inline(always)]
    fn put_block(value: &T, block: &mut BlockWriter<'_>) {
        T::put_blocks(std::slice::from_ref(value), block);
    }

    #[inline(always)]
    fn get_block(block: &mut BlockReader<'_>) -> Option<T> {
        T::get_block(block)
    }
}

/// A codec whose values operations take in a borrowed form: `&str` for a `String`, a slice for a `Vec`.
pub trait Lend: Codec {
    /// The borrowed form, behind a reference.
    type Lent: ?Sized;

    /// Writes the borrowed form.
    fn put_lent(value: &Self::Lent, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Borrows a value.
    fn lend(value: &Self::Value) -> &Self::Lent;
}

/// `string<N>`. A `String` of at most `N` characters.
#[derive(Debug)]
pub enum Str<const N: u32> {}

impl<const N: u32> Codec for Str<N> {
    type Value = String;
    const BYTES_MIN: usize = 4;

    #[inline]
    fn put(value: &String, w: &mut Writer<'_>) -> Result<(), Misuse> {
        Self::put_lent(value, w)
    }

    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<String, Malformed> {
        let text = r.read_str()?;
        bounded(r, str_length(&text, N), N)?;
        Ok(text.into_owned())
    }
}

impl<const N: u32> Lend for Str<N> {
    type Lent = str;

    #[inline]
    fn put_lent(value: &str, w: &mut Writer<'_>) -> Result<(), Misuse> {
        check_bound(str_length(value, N), N)?;
        w.write_str(value)
    }

    #[inline]
    fn lend(value: &String) -> &str {
        value
    }
}

impl<const N: u32> Typed for Str<N> {
    const TYPE: &'static TypeDef = &TypeDef::String { bound: N };
}

/// `wstring<N>`. A `WString` of at most `N` UTF-16 units.
#[derive(Debug)]
pub enum WStr<const N: u32> {}

impl<const N: u32> Codec for WStr<N> {
    type Value = WString;
    const BYTES_MIN: usize = 4;

    fn put(value: &WString, w: &mut Writer<'_>) -> Result<(), Misuse> {
        Self::put_lent(value, w)
    }

    fn get(r: &mut Reader<'_>) -> Result<WString, Malformed> {
        let text = r.read_wstr()?;
        bounded(r, text.encode_utf16().count(), N)?;
        Ok(WString::from(text))
    }
}

impl<const N: u32> Lend for WStr<N> {
    type Lent = str;

    fn put_lent(value: &str, w: &mut Writer<'_>) -> Result<(), Misuse> {
        check_bound(value.encode_utf16().count(), N)?;
        w.write_wstr(value)
    }

    fn lend(value: &WString) -> &str {
        value
    }
}

impl<const N: u32> Typed for WStr<N> {
    const TYPE: &'static TypeDef = &TypeDef::WString { bound: N };
}

/// `sequence<C, N>`; without `N` it is `sequence<C>`, for elements with bounds inside.
#[derive(Debug)]
pub struct Seq<C, const N: u32 = { u32::MAX }>(PhantomData<C>);

impl<C: Codec, const N: u32> Codec for Seq<C, N> {
    type Value = Vec<C::Value>;
    const BYTES_MIN: usize = 4;

    #[inline]
    fn put(value: &Vec<C::Value>, w: &mut Writer<'_>) -> Result<(), Misuse> {
        Self::put_lent(value, w)
    }

    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Vec<C::Value>, Malformed> {
        let count = r.read_length(C::BYTES_MIN)?;
        bounded(r, count, N)?;
        C::get_elements(r, count)
    }
}

impl<C: Codec, const N: u32> Lend for Seq<C, N> {
    type Lent = [C::Value];

    #[inline]
    fn put_lent(value: &[C::Value], w: &mut Writer<'_>) -> Result<(), Misuse> {
        check_bound(value.len(), N)?;
        w.write_length(value.len())?;
        C::put_elements(value, w)
    }

    #[inline]
    fn lend(value: &Vec<C::Value>) -> &[C::Value] {
        value
    }
}

impl<C: Typed, const N: u32> Typed for Seq<C, N> {
    const TYPE: &'static TypeDef =
        &TypeDef::Sequence { element: C::TYPE, bound: if N == u32::MAX { 0 } else { N } };
}

/// An array of `N` elements with bounds inside.
#[derive(Debug)]
pub struct Arr<C, const N: usize>(PhantomData<C>);

impl<C: Codec, const N: usize> Codec for Arr<C, N> {
    type Value = [C::Value; N];
    const BYTES_MIN: usize = N * C::BYTES_MIN;

    #[inline]
    fn put(value: &[C::Value; N], w: &mut Writer<'_>) -> Result<(), Misuse> {
        C::put_elements(value, w)
    }

    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<[C::Value; N], Malformed> {
        let items = C::get_elements(r, N)?;
        // Only a wrong override of `get_elements` could give another count.
        items.try_into().map_err(|_| r.malformed(MalformedKind::Truncated))
    }
}

impl<C: Codec, const N: usize> Lend for Arr<C, N> {
    type Lent = [C::Value; N];

    #[inline]
    fn put_lent(value: &[C::Value; N], w: &mut Writer<'_>) -> Result<(), Misuse> {
        Self::put(value, w)
    }

    #[inline]
    fn lend(value: &[C::Value; N]) -> &[C::Value; N] {
        value
    }
}

impl<C: Typed, const N: usize> Typed for Arr<C, N> {
    const TYPE: &'static TypeDef = &TypeDef::Array { element: C::TYPE, length: N as u32 };
}

/// `map<K, V, N>`; without `N` it is `map<K, V>`, for pairs with bounds inside.
#[derive(Debug)]
pub struct Map<K, V, const N: u32 = { u32::MAX }>(PhantomData<(K, V)>);

impl<K: Codec<Value: Ord>, V: Codec, const N: u32> Codec for Map<K, V, N> {
    type Value = BTreeMap<K::Value, V::Value>;
    const BYTES_MIN: usize = 4;

    fn put(value: &Self::Value, w: &mut Writer<'_>) -> Result<(), Misuse> {
        Self::put_lent(value, w)
    }

    fn get(r: &mut Reader<'_>) -> Result<Self::Value, Malformed> {
        Ok(Seq::<Pair<K, V>, N>::get(r)?.into_iter().collect())
    }
}

impl<K: Codec<Value: Ord>, V: Codec, const N: u32> Lend for Map<K, V, N> {
    type Lent = BTreeMap<K::Value, V::Value>;

    fn put_lent(value: &Self::Lent, w: &mut Writer<'_>) -> Result<(), Misuse> {
        check_bound(value.len(), N)?;
        w.write_length(value.len())?;
        value.iter().try_for_each(|(key, value)| {
            K::put(key, w)?;
            V::put(value, w)
        })
    }

    fn lend(value: &Self::Value) -> &Self::Lent {
        value
    }
}

impl<K: Typed, V: Typed, const N: u32> Typed for Map<K, V, N> {
    const TYPE: &'static TypeDef = <Seq<Pair<K, V>, N> as Typed>::TYPE;
}

/// A key and a value of a map with bounds inside.
#[derive(Debug)]
pub struct Pair<K, V>(PhantomData<(K, V)>);

impl<K: Codec, V: Codec> Codec for Pair<K, V> {
    type Value = (K::Value, V::Value);
    const BYTES_MIN: usize = K::BYTES_MIN + V::BYTES_MIN;

    fn put(value: &Self::Value, w: &mut Writer<'_>) -> Result<(), Misuse> {
        K::put(&value.0, w)?;
        V::put(&value.1, w)
    }

    fn get(r: &mut Reader<'_>) -> Result<Self::Value, Malformed> {
        Ok((K::get(r)?, V::get(r)?))
    }
}

impl<K: Typed, V: Typed> Typed for Pair<K, V> {
    const TYPE: &'static TypeDef = <(K, V) as Typed>::TYPE;
}

/// A local object; `I` is the `dyn` type of its interface. It takes its place in signatures, but is never
/// sent (CORBA 3.3 part 1, 8.6.5).
#[derive(Debug)]
pub struct Local<I: ?Sized>(PhantomData<fn() -> Arc<I>>);

impl<I: ?Sized> Codec for Local<I> {
    type Value = Option<Arc<I>>;
    const BYTES_MIN: usize = 1;

    #[cold]
    fn put(_: &Option<Arc<I>>, _: &mut Writer<'_>) -> Result<(), Misuse> {
        Err(Misuse::LocalObject)
    }

    fn get(r: &mut Reader<'_>) -> Result<Option<Arc<I>>, Malformed> {
        Err(r.malformed(MalformedKind::LocalObject))
    }
}

impl<I: Typed + ?Sized> Typed for Local<I> {
    const TYPE: &'static TypeDef = I::TYPE;
}

/// The results of an operation with none or several: the tuple `T`, one after the other.
#[derive(Debug)]
pub struct Results<T>(PhantomData<T>);

macro_rules! results {
    ($($($codec:ident $at:tt)*;)*) => {$(
        impl<$($codec: Codec),*> Codec for Results<($($codec,)*)> {
            type Value = ($($codec::Value,)*);
            const BYTES_MIN: usize = 0 $(+ $codec::BYTES_MIN)*;

            #[inline]
            fn put(_value: &Self::Value, _w: &mut Writer<'_>) -> Result<(), Misuse> {
                $($codec::put(&_value.$at, _w)?;)*
                Ok(())
            }

            #[inline]
            fn get(_r: &mut Reader<'_>) -> Result<Self::Value, Malformed> {
                Ok(($($codec::get(_r)?,)*))
            }
        }
    )*};
}

/// Implements the codec for a list and for all shorter lists.
macro_rules! results_up_to {
    ($($codec:ident $at:tt)*) => {
        results_up_to! { @shorter [] $($codec $at)* }
    };
    (@shorter [$($done:tt)*]) => {
        results! { $($done)*; }
    };
    (@shorter [$($done:tt)*] $codec:ident $at:tt $($rest:tt)*) => {
        results! { $($done)*; }
        results_up_to! { @shorter [$($done)* $codec $at] $($rest)* }
    };
}

results_up_to! {
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15 Q 16 R 17 S 18 T 19 U 20 V 21 W 22 X 23
    Y 24 Z 25 Aa 26 Ab 27 Ac 28 Ad 29 Ae 30 Af 31
}

/// Checks the arguments of a call in this process like those of a remote call, for operations whose types
/// have bounds.
pub fn check_arguments(
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<(), SystemException> {
    let mut unsent = Vec::new();
    write(&mut Writer::new(&mut unsent, Encoding::NATIVE)).map_err(SystemException::from)
}

/// Checks the results of a call in this process like those of a remote call, for operations whose types have
/// bounds.
pub fn check_results(
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<(), SystemException> {
    check_arguments(write)
        .map_err(|e| e.with_minor(MinorCode::UNSENDABLE_RESULT).with_completed(CompletionStatus::Yes))
}

/// A string's length in characters, for comparison with a bound. Counts characters only when there are more
/// bytes than the bound.
#[inline]
fn str_length(text: &str, bound: u32) -> usize {
    if text.len() <= bound as usize { text.len() } else { text.chars().count() }
}

/// The most elements for which memory is allocated before they have been read.
const PREALLOCATE_ELEMENTS_MAX: usize = 1024;
