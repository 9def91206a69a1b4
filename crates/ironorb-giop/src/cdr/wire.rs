//! Types whose values lie in memory as they do on the wire, from the second element of a sequence on, but for what is in
//! the padding: sequences of them are copied as they are, or not at all.
//!
//! Nothing here believes what it is told of a type's layout: it is compared, when the program is compiled, with what CDR
//! says, and where they differ the type goes by [blocks](super::block). So the worst that a wrong description of a type
//! does is to cost time.
//!
//! CDR aligns members and not structs. So the first element of a sequence may lie otherwise than all others, and then goes
//! by itself; and the padding at the end of a struct is before the next on the wire, and not behind the last.
//!
//! What is unsafe here is that padding is copied, which may be any bytes and so is no number to Rust, before it is
//! cleared. Weighed against it: members of the struct for the padding, which everybody who makes one would have to name;
//! and numbers that are copied one by one, which takes twice the instructions.

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

/// Where in memory the numbers of a value lie, in the order of the IDL.
#[derive(Debug, Clone, Copy)]
pub struct WireImage {
    runs: [Run; RUNS_MAX],
    /// How many of them there are; more than [`RUNS_MAX`] when there was no room for some.
    count: usize,
}

/// Numbers of one size, one behind the other.
#[derive(Debug, Clone, Copy)]
struct Run {
    at: usize,
    number_bytes: usize,
    count: usize,
}

/// Runs of numbers in a type. Those with more go by blocks.
const RUNS_MAX: usize = 32;

impl WireImage {
    /// Of no numbers: what the image of a struct starts from.
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

    /// The same with a member at an offset.
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

    /// Of an array of such values, of which each takes `stride` bytes.
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

    /// Whether CDR puts the numbers of one value behind the other there, if the first value begins at a multiple of 8; and
    /// whether values in memory begin where their first number does.
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

    /// The runs: where each is in memory, the bytes of a number, and how many there are.
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

    /// The padding in a value of `size` bytes, of an image that is as on the wire: places and lengths.
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

/// A type whose image is known.
///
/// # Safety
///
/// The bytes that [`IMAGE`](Self::IMAGE) names are initialised in every value; and a value is any pattern of bits, of
/// which it holds no reference to anything.
pub unsafe trait WireLayout: Copy + 'static {
    /// Where its numbers are.
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

// SAFETY: as its elements are.
unsafe impl<T: WireLayout, const N: usize> WireLayout for [T; N] {
    const IMAGE: WireImage = T::IMAGE.times(N, size_of::<T>());
}

/// What is known of a type at compile time. A trait of its own for its constants.
trait Facts: WireLayout + Unmarshal {
    /// Whether values lie in memory as on the wire.
    const IS_AS_ON_THE_WIRE: bool =
        Self::LAYOUT.has_blocks() && Self::IMAGE.is_as_on_the_wire(size_of::<Self>(), align_of::<Self>());
    const GAPS: Gaps = match Self::IS_AS_ON_THE_WIRE {
        true => Self::IMAGE.gaps(size_of::<Self>()),
        false => WireImage::EMPTY.gaps(0),
    };
    /// Whether they can be copied by steps of [`masked`].
    const HAS_STEPS: bool = Self::IS_AS_ON_THE_WIRE && STEP_BYTES.is_multiple_of(Self::SIZE);
    const MASK: Mask = Mask::without(&Self::GAPS.gaps, Self::GAPS.count, Self::SIZE);
    /// Bytes of a value; 1 where it has none.
    const SIZE: usize = if size_of::<Self>() > 0 { size_of::<Self>() } else { 1 };
    /// Bytes of the first number, and so its alignment.
    const FIRST_BYTES: usize = Self::IMAGE.runs[0].number_bytes;
    /// Bytes behind the last number, which are not on the wire behind the last value.
    const TAIL_BYTES: usize = match Self::IS_AS_ON_THE_WIRE {
        true => size_of::<Self>() - Self::IMAGE.end(),
        false => 0,
    };

    /// Where a value begins in which all lies as in memory, if the next may be at `at`.
    #[inline(always)]
    fn begin(at: usize) -> Option<usize> {
        let begin = at.next_multiple_of(Self::FIRST_BYTES);
        (begin & const { Self::LAYOUT.alignment() - 1 } == 0).then_some(begin)
    }
}

impl<T: WireLayout + Unmarshal> Facts for T {}

/// The elements of a sequence: where they came in if they can be used there, else in a vector.
#[derive(Debug)]
pub enum Elements<'a, T> {
    /// In the message.
    Borrowed(&'a [T]),
    /// Elsewhere.
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
    /// Appends elements without a length, as they are in memory where that can be.
    #[inline]
    pub fn put_wire_elements<T>(&mut self, items: &[T]) -> Result<(), Misuse>
    where
        T: WireLayout + Marshal + Unmarshal,
    {
        if const { !T::IS_AS_ON_THE_WIRE } || !self.is_plain() {
            return self.put_block_elements(items);
        }
        let mut rest = items;
        // No more than one.
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

/// The bytes of values without padding.
fn images_of<T: WireLayout + Unmarshal>(items: &[T]) -> Option<&[u8]> {
    if const { !T::IS_AS_ON_THE_WIRE || T::GAPS.count > 0 } {
        return None;
    }
    // SAFETY: there are so many bytes, and as there are no gaps between the numbers, all of them are initialised.
    // Nothing changes them while they are borrowed, for there is nothing in them that could be changed.
    Some(unsafe { slice::from_raw_parts(items.as_ptr().cast::<u8>(), size_of_val(items)) })
}

/// Appends the bytes of values, with zeros for padding.
fn append_images<T: WireLayout + Unmarshal>(buf: &mut Vec<u8>, items: &[T]) {
    buf.reserve(size_of_val(items));
    let items = items.get(append_masked(buf, items)..).unwrap_or_default();
    // By pieces that stay in the nearest cache until their padding is cleared.
    for items in items.chunks(const { images_in(PIECE_BYTES, size_of::<T>()) }) {
        let bytes = size_of_val(items);
        // SAFETY: there are so many bytes. They need not be initialised to be looked at as what need not be.
        let images = unsafe { slice::from_raw_parts(items.as_ptr().cast::<MaybeUninit<u8>>(), bytes) };
        let Some(space) = buf.spare_capacity_mut().get_mut(..bytes) else { return }; // never: it was reserved
        space.copy_from_slice(images);
        for image in space.chunks_exact_mut(size_of::<T>()) {
            for (at, length) in const { T::GAPS }.gaps.into_iter().take(const { T::GAPS.count }) {
                image[at..at + length].fill(MaybeUninit::new(0));
            }
        }
        let length = buf.len() + bytes;
        // SAFETY: the vector has room for them. Of each value the bytes between the gaps are those of its numbers, which
        // are initialised by the contract of `WireLayout`, and the others have just been written.
        unsafe { buf.set_len(length) };
    }
}

/// The same for as many as make up whole steps of [`masked`]; gives their number. There is room for all.
fn append_masked<T: WireLayout + Unmarshal>(buf: &mut Vec<u8>, items: &[T]) -> usize {
    if const { !T::HAS_STEPS } || !masked::is_there() {
        return 0;
    }
    let steps = size_of_val(items) / STEP_BYTES;
    let bytes = steps * STEP_BYTES;
    let Some(space) = buf.spare_capacity_mut().get_mut(..bytes) else { return 0 }; // never: it was reserved
    // SAFETY: so many bytes are in the values and in the space, which is another's. A step is a number of whole values, and
    // the mask keeps what is not in their gaps: the bytes of numbers, which are initialised by the contract of `WireLayout`.
    unsafe {
        masked::copy_steps(items.as_ptr().cast(), space.as_mut_ptr().cast(), steps, const { &T::MASK });
    }
    let length = buf.len() + bytes;
    // SAFETY: the vector has room for them, and all have just been written.
    unsafe { buf.set_len(length) };
    steps * const { STEP_BYTES / T::SIZE }
}

impl<'a> Reader<'a> {
    /// Reads `count` elements, if all of them are there in one piece; see [`Reader::get_block_elements`].
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
        // The first where it lies otherwise than all others, which then begin where they should.
        let first_bytes = if T::begin(self.at).is_some() { 0 } else { T::LAYOUT.size_at(self.at) };
        let rest = count - usize::from(first_bytes > 0);
        let begin = T::begin(self.at + first_bytes)?;
        // Checked before memory is taken. No tail is behind the last; and without a value there is none.
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

    /// Borrows `count` elements, if they lie in one piece as they would in memory. Else nothing is read.
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

    /// Where elements begin of which the first lies otherwise than all others, once it has been moved.
    fn begin_of_shifted<T: WireLayout + Unmarshal>(&self, count: usize) -> Option<usize> {
        if self.shifts.is_none() || const { T::FIRST_BYTES > 4 || size_of::<T>() < 8 } {
            return None;
        }
        // Those behind begin where they should, and end where there is no padding.
        let second = T::begin(self.at + T::LAYOUT.size_at(self.at))?;
        let to = second.checked_sub(size_of::<T>()).filter(|to| to + 4 >= self.at)?;
        let shift = Shift { from: self.at, to, count, size: size_of::<T>(), image: const { &T::IMAGE } };
        self.shifted_or_wanted(shift, align_of::<T>())
    }

    /// Reads a sequence, borrowed where its type says that it can be. With [`Reader::with_shifts`] an error may only say
    /// that it is to be read again: see [`Reader::wants_shift`].
    #[inline]
    pub fn read_elements<T: Unmarshal>(&mut self) -> Result<Elements<'a, T>, Malformed> {
        let count = match self.take_shifted_length() {
            Some(count) => count,
            None => self.read_length(T::BYTES_MIN)?,
        };
        match T::borrow_elements(self, count) {
            Some(items) => Ok(Elements::Borrowed(items)),
            None if self.wants_shift() => Err(self.malformed(MalformedKind::LengthBeyondData)),
            None => T::unmarshal_elements(self, count).map(Elements::Owned),
        }
    }
}

/// Values in so many bytes, at least one.
const fn images_in(bytes: usize, size: usize) -> usize {
    if size == 0 || size > bytes { 1 } else { bytes / size }
}

/// Bytes that are copied before their padding is cleared: no more than what C libraries copy without further ado.
const PIECE_BYTES: usize = 2048;

#[cfg(test)]
pub(super) mod tests;
