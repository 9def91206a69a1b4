//! Types whose values have the same bytes in memory as on the wire, from the second element of a sequence on
//! and apart from padding. Sequences of them are copied in bulk or borrowed.
//!
//! This module does not trust a type's description of its layout. The compiler compares it with the CDR
//! rules. Where they differ, the type is marshalled as [blocks](super::block). So a wrong description costs
//! time at worst.
//!
//! CDR aligns members and not structs. So the first element of a sequence may have another layout than the
//! rest, and is then marshalled by itself. The padding at the end of a struct precedes the next struct on the
//! wire and does not follow the last.
//!
//! The unsafe code copies padding before it clears it. Padding may be uninitialised, which no Rust number may
//! be. Two designs were weighed against it: struct members for the padding, which every constructor would
//! have to name; and copying number by number, which takes twice the instructions.

#![allow(unsafe_code)] // `images_of`, `append_images`, `append_masked` and the marker trait; each says why it may

mod masked;

use std::mem::MaybeUninit;
use std::ops::Deref;
use std::slice;

use super::block::BlockReader;
use super::shift::Shift;
use super::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::probe::{self, Stage};
use masked::{Mask, STEP_BYTES};

/// Where in memory the numbers of a value are, in the order of the IDL.
#[derive(Debug, Clone, Copy)]
pub struct WireImage {
    runs: [Run; RUNS_MAX],
    /// How many runs there are. More than [`RUNS_MAX`] where some found no room.
    count: usize,
}

/// Adjacent numbers of one size.
#[derive(Debug, Clone, Copy)]
struct Run {
    at: usize,
    number_bytes: usize,
    count: usize,
}

/// The most runs of numbers in a type. Types with more are marshalled as blocks.
const RUNS_MAX: usize = 32;

impl WireImage {
    /// The image without numbers. The image of a struct starts from it.
    pub const EMPTY: WireImage =
        WireImage { runs: [Run { at: 0, number_bytes: 1, count: 0 }; RUNS_MAX], count: 0 };

    const fn number(bytes: usize) -> WireImage {
        WireImage::EMPTY.and(Run { at: 0, number_bytes: bytes, count: 1 })
    }

    const fn and(mut self, run: Run) -> WireImage {
        if self.count < RUNS_MAX {
            self.runs[self.count] = run;
        }
        self.count += 1;
        self
    }

    /// This image, extended by a member at an offset.
    #[must_use]
    pub const fn with(mut self, offset: usize, member: WireImage) -> WireImage {
        let mut index = 0;
        while index < member.count && index < RUNS_MAX {
            let run = member.runs[index];
            self = self.and(Run { at: offset + run.at, ..run });
            index += 1;
        }
        self.count += member.count - index;
        self
    }

    /// The image of an array of such values, each of which takes `stride` bytes.
    const fn times(self, count: usize, stride: usize) -> WireImage {
        if self.count == 1 && self.runs[0].number_bytes * self.runs[0].count == stride {
            let run = self.runs[0];
            return WireImage::EMPTY.and(Run { count: run.count * count, ..run });
        }
        let mut all = WireImage::EMPTY;
        let mut index = 0;
        while index < count && all.count <= RUNS_MAX {
            all = all.with(index * stride, self);
            index += 1;
        }
        all
    }

    /// Whether CDR gives a value that starts at a multiple of 8 the layout that it has in memory, and whether
    /// the value in memory starts with its first number.
    const fn is_as_on_the_wire(&self, size: usize, alignment: usize) -> bool {
        if self.count == 0 || self.count > RUNS_MAX || self.runs[0].at != 0 {
            return false;
        }
        let (mut index, mut at, mut largest) = (0, 0usize, 1);
        while index < self.count {
            let run = self.runs[index];
            if at.next_multiple_of(run.number_bytes) != run.at || run.count == 0 {
                return false;
            }
            at = run.at + run.number_bytes * run.count;
            if run.number_bytes > largest {
                largest = run.number_bytes;
            }
            index += 1;
        }
        at.next_multiple_of(self.runs[0].number_bytes) == size && alignment <= largest
    }

    /// The runs: the offset of each in memory, the bytes of a number, and how many numbers there are.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let runs = self.runs.get(..self.count).unwrap_or_default();
        runs.iter().map(|run| (run.at, run.number_bytes, run.count))
    }

    /// Where the last number ends.
    const fn end(&self) -> usize {
        match self.count.checked_sub(1) {
            Some(last) => self.runs[last].at + self.runs[last].number_bytes * self.runs[last].count,
            None => 0,
        }
    }

    /// The padding in a value of `size` bytes whose image is as on the wire: offsets and lengths.
    const fn gaps(&self, size: usize) -> Gaps {
        let mut gaps = Gaps { gaps: [(0, 0); RUNS_MAX], count: 0 };
        let (mut index, mut at) = (0, 0);
        while index <= self.count {
            let (next, end) = match index < self.count {
                true => {
                    let run = self.runs[index];
                    (run.at, run.at + run.number_bytes * run.count)
                }
                false => (size, size),
            };
            if next > at {
                gaps.gaps[gaps.count] = (at, next - at);
                gaps.count += 1;
            }
            at = end;
            index += 1;
        }
        gaps
    }
}

struct Gaps {
    gaps: [(usize, usize); RUNS_MAX],
    count: usize,
}

/// A type whose image in memory is known.
///
/// # Safety
///
/// The bytes that [`IMAGE`](Self::IMAGE) names are initialised in every value. Every pattern of bits is a
/// value, and a value holds no reference.
pub unsafe trait WireLayout: Copy + 'static {
    /// Where its numbers are in memory.
    const IMAGE: WireImage;
}

macro_rules! number {
    ($($ty:ty)*) => {$(
        // SAFETY: all bytes of a number are initialised, and all patterns of bits are numbers.
        unsafe impl WireLayout for $ty {
            const IMAGE: WireImage = WireImage::number(size_of::<$ty>());
        }
    )*};
}

number! { u8 i8 i16 u16 i32 u32 i64 u64 f32 f64 }

// SAFETY: an array of such elements has the properties of its elements.
unsafe impl<T: WireLayout, const N: usize> WireLayout for [T; N] {
    const IMAGE: WireImage = T::IMAGE.times(N, size_of::<T>());
}

/// What the compiler knows of a type. A separate trait, because it needs associated constants.
trait Facts: WireLayout + Unmarshal {
    /// Whether values have the same bytes in memory as on the wire.
    const IS_AS_ON_THE_WIRE: bool =
        Self::LAYOUT.has_blocks() && Self::IMAGE.is_as_on_the_wire(size_of::<Self>(), align_of::<Self>());
    const GAPS: Gaps = match Self::IS_AS_ON_THE_WIRE {
        true => Self::IMAGE.gaps(size_of::<Self>()),
        false => WireImage::EMPTY.gaps(0),
    };
    /// Whether [`masked`] can copy them in steps.
    const HAS_STEPS: bool = Self::IS_AS_ON_THE_WIRE && STEP_BYTES.is_multiple_of(Self::SIZE);
    const MASK: Mask = Mask::without(&Self::GAPS.gaps, Self::GAPS.count, Self::SIZE);
    /// Bytes of a value; 1 where a value has none.
    const SIZE: usize = if size_of::<Self>() > 0 { size_of::<Self>() } else { 1 };
    /// Bytes of the first number, and so its alignment.
    const FIRST_BYTES: usize = Self::IMAGE.runs[0].number_bytes;
    /// Bytes behind the last number. They are not on the wire behind the last value.
    const TAIL_BYTES: usize = match Self::IS_AS_ON_THE_WIRE {
        true => size_of::<Self>() - Self::IMAGE.end(),
        false => 0,
    };

    /// The start of a value with the layout of memory, if the next number may start at `at`.
    #[inline(always)]
    fn begin(at: usize) -> Option<usize> {
        let begin = at.next_multiple_of(Self::FIRST_BYTES);
        (begin & const { Self::LAYOUT.alignment() - 1 } == 0).then_some(begin)
    }
}

impl<T: WireLayout + Unmarshal> Facts for T {}

/// The elements of a sequence: borrowed from the message where that is possible, in a vector where not.
#[derive(Debug)]
pub enum Elements<'a, T> {
    /// Elements in the message itself.
    Borrowed(&'a [T]),
    /// Elements in memory of their own.
    Owned(Vec<T>),
}

impl<T> Deref for Elements<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Elements::Borrowed(items) => items,
            Elements::Owned(items) => items,
        }
    }
}

impl Writer<'_> {
    /// Appends elements without a length, copied from memory in bulk where that is possible.
    #[inline]
    pub fn put_wire_elements<T>(&mut self, items: &[T]) -> Result<(), Misuse>
    where
        T: WireLayout + Marshal + Unmarshal,
    {
        if const { !T::IS_AS_ON_THE_WIRE } || !self.is_plain() {
            return self.put_block_elements(items);
        }
        let mut rest = items;
        // At most one element.
        while let Some((first, others)) = rest.split_first()
            && T::begin(self.position()).is_none()
        {
            first.marshal(self)?;
            rest = others;
        }
        if !rest.is_empty() {
            self.put_images(rest);
        }
        Ok(())
    }

    #[inline(never)]
    fn put_images<T: WireLayout + Unmarshal>(&mut self, items: &[T]) {
        self.align(T::FIRST_BYTES);
        match images_of(items) {
            Some(images) => self.write_run(images),
            None => {
                let _probe = probe::copying(size_of_val(items));
                append_images(self.buffer(), items);
                self.take_back(T::TAIL_BYTES);
            }
        }
    }
}

/// The bytes of values without padding. `None` where values have padding.
fn images_of<T: WireLayout + Unmarshal>(items: &[T]) -> Option<&[u8]> {
    if const { !T::IS_AS_ON_THE_WIRE || T::GAPS.count > 0 } {
        return None;
    }
    // SAFETY: the slice has this many bytes. There are no gaps between the numbers, so all bytes are
    // initialised. Nothing changes them while they are borrowed, because values have no interior mutability.
    Some(unsafe { slice::from_raw_parts(items.as_ptr().cast::<u8>(), size_of_val(items)) })
}

/// Appends the bytes of values, with zeros for padding.
fn append_images<T: WireLayout + Unmarshal>(buf: &mut Vec<u8>, items: &[T]) {
    buf.reserve(size_of_val(items));
    let items = items.get(append_masked(buf, items)..).unwrap_or_default();
    // Each piece stays in the L1 cache until its padding is cleared.
    for items in items.chunks(const { images_in(PIECE_BYTES, size_of::<T>()) }) {
        let bytes = size_of_val(items);
        // SAFETY: the slice has this many bytes, and `MaybeUninit` needs no initialised ones.
        let images = unsafe { slice::from_raw_parts(items.as_ptr().cast::<MaybeUninit<u8>>(), bytes) };
        let Some(space) = buf.spare_capacity_mut().get_mut(..bytes) else { return }; // never: it was reserved
        space.copy_from_slice(images);
        for image in space.chunks_exact_mut(size_of::<T>()) {
            for (at, length) in const { T::GAPS }.gaps.into_iter().take(const { T::GAPS.count }) {
                image[at..at + length].fill(MaybeUninit::new(0));
            }
        }
        let length = buf.len() + bytes;
        // SAFETY: the vector has reserved the bytes. The bytes of each value between the gaps are those of
        // its numbers, which the contract of `WireLayout` says are initialised. The loop has just written the
        // gaps.
        unsafe { buf.set_len(length) };
    }
}

/// Appends as many values as make up whole steps of [`masked`], and returns how many. The caller has reserved
/// room for all.
fn append_masked<T: WireLayout + Unmarshal>(buf: &mut Vec<u8>, items: &[T]) -> usize {
    if const { !T::HAS_STEPS } || !masked::is_there() {
        return 0;
    }
    let steps = size_of_val(items) / STEP_BYTES;
    let bytes = steps * STEP_BYTES;
    let Some(space) = buf.spare_capacity_mut().get_mut(..bytes) else { return 0 }; // never: it was reserved
    // SAFETY: the values and the spare capacity, which do not overlap, have this many bytes. A step is a
    // number of whole values. The mask keeps the bytes outside of the gaps: those of numbers, which the
    // contract of `WireLayout` says are initialised.
    unsafe {
        masked::copy_steps(items.as_ptr().cast(), space.as_mut_ptr().cast(), steps, const { &T::MASK });
    }
    let length = buf.len() + bytes;
    // SAFETY: the vector has reserved the bytes, and `copy_steps` has just written all of them.
    unsafe { buf.set_len(length) };
    steps * const { STEP_BYTES / T::SIZE }
}

impl<'a> Reader<'a> {
    /// Reads `count` elements if all of them are in one piece; see [`Reader::get_block_elements`].
    #[inline]
    pub fn get_wire_elements<T>(&mut self, count: usize) -> Option<Vec<T>>
    where
        T: WireLayout + bytemuck::AnyBitPattern + Unmarshal,
    {
        if const { !T::IS_AS_ON_THE_WIRE }
            || count == 0
            || !self.encoding.order.is_native()
            || !self.has_levels(const { T::LAYOUT.levels() + 1 })
        {
            return self.get_block_elements(count);
        }
        self.get_images(count)
    }

    #[inline(never)]
    fn get_images<T>(&mut self, count: usize) -> Option<Vec<T>>
    where
        T: WireLayout + bytemuck::AnyBitPattern + Unmarshal,
    {
        // The first element may have another layout than the rest. The rest then starts where it should.
        let first_bytes = if T::begin(self.at).is_some() { 0 } else { T::LAYOUT.size_at(self.at) };
        let rest = count - usize::from(first_bytes > 0);
        let begin = T::begin(self.at + first_bytes)?;
        // The bounds check comes before the allocation. No padding follows the last value, and without values
        // there is none.
        let bytes = rest.checked_mul(size_of::<T>())?.saturating_sub(T::TAIL_BYTES);
        let end = if rest > 0 { begin.checked_add(bytes)? } else { self.at + first_bytes };
        let images = if rest > 0 { self.bytes.get(begin..end)? } else { &[] };
        let first = self.bytes.get(self.at..self.at + first_bytes)?;
        let mut items = {
            let _probe = probe::enter(Stage::Allocate);
            Vec::with_capacity(count)
        };
        if first_bytes > 0 {
            items.push(T::get_block(&mut BlockReader::new(first, self.at % 8, false))?);
        }
        let _probe = probe::copying(images.len());
        let (whole, last) = images.split_at(images.len() / size_of::<T>() * size_of::<T>());
        match bytemuck::try_cast_slice(whole) {
            Ok(whole) => items.extend_from_slice(whole),
            Err(_) => items.extend(whole.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>)),
        }
        if !last.is_empty() {
            items.push(T::get_block(&mut BlockReader::new(last, 0, false))?);
        }
        self.at = end;
        Some(items)
    }

    /// Borrows `count` elements if they are in one piece with the layout of memory. `None`, without moving
    /// the reader, if not.
    #[inline]
    pub fn borrow_wire_elements<T>(&mut self, count: usize) -> Option<&'a [T]>
    where
        T: WireLayout + bytemuck::AnyBitPattern + Unmarshal,
    {
        if const { !T::IS_AS_ON_THE_WIRE } || count == 0 || !self.encoding.order.is_native() {
            return None;
        }
        let begin = match T::begin(self.at) {
            Some(begin) => begin,
            None => self.begin_of_shifted::<T>(count)?,
        };
        let images = self.bytes.get(begin..)?.get(..count.checked_mul(size_of::<T>())?)?;
        let items = bytemuck::try_cast_slice(images).ok()?;
        self.at = begin + images.len() - const { T::TAIL_BYTES };
        Some(items)
    }

    /// The start of the elements once the first, which has another layout, has been moved.
    fn begin_of_shifted<T: WireLayout + Unmarshal>(&self, count: usize) -> Option<usize> {
        if self.shifts.is_none() || const { T::FIRST_BYTES > 4 || size_of::<T>() < 8 } {
            return None;
        }
        // The elements behind it start where they should, and end where there is no padding.
        let second = T::begin(self.at + T::LAYOUT.size_at(self.at))?;
        let to = second.checked_sub(size_of::<T>()).filter(|to| to + 4 >= self.at)?;
        let shift = Shift { from: self.at, to, count, size: size_of::<T>(), image: const { &T::IMAGE } };
        self.shifted_or_wanted(shift, align_of::<T>())
    }

    /// Reads a sequence, and borrows its elements where its type permits. With [`Reader::with_shifts`] an
    /// error may only mean that the message must be read again: see [`Reader::wants_shift`]. Allocates where
    /// it cannot borrow.
    #[inline]
    pub fn read_elements<T: Unmarshal>(&mut self) -> Result<Elements<'a, T>, Malformed> {
        let count = match self.take_shifted_length() {
            Some(count) => count,
            None => self.read_length(T::BYTES_MIN)?,
        };
        match T::borrow_elements(self, count) {
            Some(items) => Ok(Elements::Borrowed(items)),
            None if self.wants_move() => Err(self.malformed(MalformedKind::LengthBeyondData)),
            None => T::unmarshal_elements(self, count).map(Elements::Owned),
        }
    }
}

/// Returns `None`: the default for types whose values are never borrowed.
#[inline]
pub fn nothing_in_memory<T>(bytes: &[u8]) -> Option<&[T]> {
    let _ = bytes;
    None
}

/// The values whose images in memory these bytes are. `None` where they are none, or not aligned.
#[inline]
pub fn wire_elements_in_memory<T: WireLayout + bytemuck::AnyBitPattern>(bytes: &[u8]) -> Option<&[T]> {
    bytemuck::try_cast_slice(bytes).ok()
}

/// How many values fit into this many bytes, at least one.
const fn images_in(bytes: usize, size: usize) -> usize {
    if size == 0 || size > bytes { 1 } else { bytes / size }
}

/// Bytes that are copied before their padding is cleared: C libraries have no special case for so few.
const PIECE_BYTES: usize = 2048;

#[cfg(test)]
pub(super) mod tests;
