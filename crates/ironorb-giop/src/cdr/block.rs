//! Fixed blocks: types whose values always take the same number of bytes from a given alignment are
//! marshalled as one run of bytes, at offsets that the compiler knows and after one bounds check.
//!
//! Blocks are a fast path only. They refuse no value and report no error. The general code marshals the
//! members one by one where the data is in pieces or ends too early, where an ordinal names no enumerator, or
//! where the writer notes the positions of numbers. So the bytes, limits and errors are always those of the
//! general code.
//!
//! CDR aligns members, not structs. The layout of a value therefore depends on its start, modulo its largest
//! alignment. Its end does not: the member with the largest alignment fixes the position of everything after
//! it. So all elements of a sequence have one layout from the second on ([`BlockLayout::steady_phase`]), and
//! the first element often has it too.

use std::marker::PhantomData;

use super::writer::Swap;
use super::{Marshal, NESTING_MAX, Reader, Unmarshal, Writer};
use crate::probe::{self, Stage};

/// How the values of one type are laid out in CDR, for each start modulo 8, or that their size varies.
///
/// The compiler computes it, member by member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLayout {
    /// Bytes from the start of a value to its end, indexed by the start modulo 8. `None` where the size
    /// varies.
    sizes: Option<[u16; 8]>,
    /// The largest alignment of a member.
    alignment: u8,
    /// The alignment of the first number.
    first_alignment: u8,
    /// How many numbers a value has.
    fields: u16,
    /// How deeply arrays of anything but numbers are nested.
    levels: u16,
    /// Whether the type is a single number.
    is_number: bool,
}

impl BlockLayout {
    /// The layout of types whose values differ in size or are too large for a block.
    pub const VARIABLE: BlockLayout =
        BlockLayout { sizes: None, alignment: 1, first_alignment: 1, fields: 0, levels: 0, is_number: false };

    /// The layout of a value without bytes. The layout of a struct starts from it.
    pub const EMPTY: BlockLayout = BlockLayout { sizes: Some([0; 8]), ..BlockLayout::VARIABLE };

    /// The layout of an enumerator.
    pub const ENUMERATOR: BlockLayout = BlockLayout { is_number: false, ..BlockLayout::number(4) };

    /// The layout of a number of `bytes` bytes (1, 2, 4 or 8), aligned to its size.
    pub const fn number(bytes: usize) -> BlockLayout {
        let mut sizes = [0; 8];
        let mut phase = 0;
        while phase < 8 {
            sizes[phase] = (phase.next_multiple_of(bytes) - phase + bytes) as u16;
            phase += 1;
        }
        let alignment = bytes as u8;
        let first_alignment = alignment;
        BlockLayout { sizes: Some(sizes), alignment, first_alignment, fields: 1, levels: 0, is_number: true }
    }

    /// The layout of a value of this layout, followed by one of layout `next`.
    #[must_use]
    pub const fn then(self, next: BlockLayout) -> BlockLayout {
        let (Some(mut sizes), Some(next_sizes)) = (self.sizes, next.sizes) else { return Self::VARIABLE };
        let mut phase = 0;
        while phase < 8 {
            let size = sizes[phase] as usize;
            sizes[phase] = (size + next_sizes[(phase + size) % 8] as usize) as u16;
            phase += 1;
        }
        let alignment = if self.alignment > next.alignment { self.alignment } else { next.alignment };
        let levels = if self.levels > next.levels { self.levels } else { next.levels };
        let first_alignment = if self.fields == 0 { next.first_alignment } else { self.first_alignment };
        let fields = self.fields + next.fields;
        BlockLayout { sizes: Some(sizes), alignment, first_alignment, fields, levels, is_number: false }
            .limited()
    }

    /// The layout of an array of `count` elements.
    #[must_use]
    pub const fn times(self, count: usize) -> BlockLayout {
        if count == 0 || !self.is_fixed() {
            return if self.is_fixed() { Self::EMPTY } else { Self::VARIABLE };
        }
        if count > BLOCK_BYTES_MAX {
            return Self::VARIABLE;
        }
        let mut all = self;
        let mut done = 1;
        while done < count {
            all = all.then(self);
            done += 1;
        }
        // Arrays of numbers are read in bulk. Other arrays are read like sequences, which count as a level.
        let levels = if self.is_number { 0 } else { self.levels + 1 };
        BlockLayout { levels, is_number: false, ..all }
    }

    /// Gives up on large values. They consist mostly of arrays, and those have blocks of their own.
    const fn limited(self) -> BlockLayout {
        match self.sizes {
            Some(sizes) if sizes[1] as usize > BLOCK_BYTES_MAX || self.fields as usize > FIELDS_MAX => {
                Self::VARIABLE
            }
            _ => self,
        }
    }

    /// Whether all values have one layout.
    #[inline]
    pub const fn is_fixed(self) -> bool {
        self.sizes.is_some()
    }

    /// Whether all values have one layout and take bytes.
    #[inline]
    pub const fn has_blocks(self) -> bool {
        self.fields > 0 && self.sizes.is_some()
    }

    /// Whether a single value is worth a block. The compiler emits code for each possible start of such a
    /// block.
    const fn is_small(self) -> bool {
        self.fields as usize <= SINGLE_FIELDS_MAX && self.size_at(1) <= SINGLE_BYTES_MAX
    }

    /// How deeply arrays of anything but numbers are nested.
    pub(super) const fn levels(self) -> u16 {
        self.levels
    }

    /// The largest alignment of a member.
    pub const fn alignment(self) -> usize {
        self.alignment as usize
    }

    /// Bytes of a value that starts at this phase (its position modulo 8); 0 where the size varies.
    pub const fn size_at(self, phase: usize) -> usize {
        match self.sizes {
            Some(sizes) => sizes[phase % 8] as usize,
            None => 0,
        }
    }

    /// The end of each value modulo the alignment. The second element of a sequence starts there.
    pub const fn steady_phase(self) -> usize {
        self.size_at(0) % self.alignment()
    }

    /// Bytes from one element to the next, from the second on: a multiple of the alignment.
    pub const fn stride(self) -> usize {
        self.size_at(self.steady_phase())
    }

    /// How many elements of a sequence fit into this many bytes, at least one.
    const fn elements_in(self, bytes: usize) -> usize {
        match self.stride() {
            stride @ 1.. if stride < bytes => bytes / stride,
            _ => 1,
        }
    }
}

/// A group of members that is marshalled as one block.
pub trait Block {
    /// The layout of the group.
    const LAYOUT: BlockLayout;
}

/// A value as a block by itself.
struct Whole<T>(PhantomData<T>);

impl<T: Unmarshal> Block for Whole<T> {
    const LAYOUT: BlockLayout = T::LAYOUT;
}

/// Puts numbers at their offsets in a block.
///
/// Meant for code that the compiler inlines completely, where all offsets become constants.
#[derive(Debug)]
pub struct BlockWriter<'o> {
    /// The bytes of the block, zero before they are written.
    out: &'o mut [u8],
    /// The start of `out` modulo 8.
    phase: usize,
    /// Where the next number may start, counted from the same origin as `phase`.
    at: usize,
    is_swapped: bool,
}

impl<'o> BlockWriter<'o> {
    #[inline(always)]
    pub(super) fn new(out: &'o mut [u8], phase: usize, is_swapped: bool) -> Self {
        BlockWriter { out, phase, at: phase, is_swapped }
    }

    #[inline(always)]
    fn put<T, const N: usize>(&mut self, number: T)
    where
        T: Swap<Bytes = [u8; N]>,
    {
        let at = self.at.next_multiple_of(N);
        let bytes = if self.is_swapped { number.swapped() } else { number.to_bytes() };
        if let Some(place) = self.out.get_mut(at - self.phase..at - self.phase + N) {
            place.copy_from_slice(&bytes);
        }
        self.at = at + N;
    }

    /// Puts the ordinal of an enumerator.
    #[inline(always)]
    pub fn ordinal(&mut self, ordinal: u32) {
        self.put(ordinal);
    }

    /// Puts several numbers with their bytes as they are in memory.
    #[inline(always)]
    fn put_run(&mut self, bytes: &[u8], alignment: usize) {
        let at = self.at.next_multiple_of(alignment);
        if let Some(place) = self.out.get_mut(at - self.phase..at - self.phase + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.at = at + bytes.len();
    }
}

/// Takes numbers from their offsets in a block. After inlining all offsets are constants.
#[derive(Debug)]
pub struct BlockReader<'a> {
    bytes: &'a [u8],
    phase: usize,
    at: usize,
    is_swapped: bool,
}

impl<'a> BlockReader<'a> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], phase: usize, is_swapped: bool) -> Self {
        BlockReader { bytes, phase, at: phase, is_swapped }
    }

    /// Takes the next number, which is aligned to its size.
    #[inline(always)]
    pub(super) fn take<T, const N: usize>(&mut self) -> Option<T>
    where
        T: Swap<Bytes = [u8; N]>,
    {
        let at = self.at.next_multiple_of(N);
        let bytes = self.bytes.get(at - self.phase..)?.first_chunk::<N>()?;
        self.at = at + N;
        let number = T::of_bytes(*bytes);
        Some(if self.is_swapped { number.unswapped() } else { number })
    }

    /// Takes an ordinal, which may name no enumerator. `None` if the block has no more bytes.
    #[inline(always)]
    pub fn ordinal(&mut self) -> Option<usize> {
        self.take::<u32, 4>().map(|ordinal| ordinal as usize)
    }
}

/// Puts numbers into a block.
#[inline(always)]
pub(super) fn put_numbers<T, const N: usize>(items: &[T], block: &mut BlockWriter<'_>)
where
    T: Swap<Bytes = [u8; N]> + bytemuck::NoUninit,
{
    match items {
        [number] => block.put(*number),
        _ if !block.is_swapped => block.put_run(bytemuck::cast_slice(items), N),
        _ => items.iter().for_each(|number| block.put(*number)),
    }
}

/// Takes numbers from a block.
#[inline(always)]
pub(super) fn take_numbers<T, const N: usize, const COUNT: usize>(
    block: &mut BlockReader<'_>,
) -> Option<[T; COUNT]>
where
    T: Swap<Bytes = [u8; N]> + bytemuck::Pod,
{
    let at = block.at.next_multiple_of(N);
    let bytes = block.bytes.get(at - block.phase..)?.get(..N * COUNT)?;
    block.at = at + bytes.len();
    let mut numbers = [T::zeroed(); COUNT];
    bytemuck::cast_slice_mut(&mut numbers).copy_from_slice(bytes);
    if block.is_swapped {
        numbers.iter_mut().for_each(|number| *number = number.unswapped());
    }
    Some(numbers)
}

impl Writer<'_> {
    /// Appends a value as a block if a block pays off here. If not, returns false and appends at most the
    /// padding of the first number.
    #[inline(always)]
    pub fn put_block<T: Marshal + Unmarshal>(&mut self, value: &T) -> bool {
        self.put_as_block::<Whole<T>>(|block| T::put_blocks(std::slice::from_ref(value), block))
    }

    /// Appends what `put` writes as a block if a block pays off here. If not, returns false and appends at
    /// most the padding of the first number.
    #[inline(always)]
    pub fn put_as_block<B: Block>(&mut self, put: impl FnOnce(&mut BlockWriter<'_>)) -> bool {
        if const { !B::LAYOUT.has_blocks() || !B::LAYOUT.is_small() } || !self.is_plain() {
            return false;
        }
        // A value behind data of varying length may start anywhere, so align it first.
        if const { B::LAYOUT.first_alignment > 1 } {
            self.align(const { B::LAYOUT.first_alignment as usize });
        }
        match self.position() & const { B::LAYOUT.alignment() - 1 } {
            0 => self.put_block_at::<B, 0>(put),
            4 => self.put_block_at::<B, 4>(put),
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn put_block_at<B: Block, const PHASE: usize>(&mut self, put: impl FnOnce(&mut BlockWriter<'_>)) {
        let size = const { B::LAYOUT.size_at(PHASE) };
        let block = &mut self.append(&ZEROS[..size])[..size];
        put(&mut BlockWriter::new(block, PHASE, false));
    }

    /// Appends elements without a length, as blocks where that is possible.
    #[inline]
    pub fn put_block_elements<T: Marshal + Unmarshal>(
        &mut self,
        items: &[T],
    ) -> Result<(), crate::error::Misuse> {
        let mut rest = items;
        if const { T::LAYOUT.has_blocks() } && !self.notes_cuts() {
            // At most one element.
            while let Some((first, others)) = rest.split_first()
                && self.position() & const { T::LAYOUT.alignment() - 1 } != const { T::LAYOUT.steady_phase() }
            {
                first.marshal(self)?;
                rest = others;
            }
            match self.is_plain() {
                true => self.put_run_of_blocks::<T, false>(rest),
                false => self.put_run_of_blocks::<T, true>(rest),
            }
            return Ok(());
        }
        rest.iter().try_for_each(|item| item.marshal(self))
    }

    /// Appends elements of which even the first has the steady layout.
    #[inline(never)]
    fn put_run_of_blocks<T: Marshal + Unmarshal, const IS_SWAPPED: bool>(&mut self, items: &[T]) {
        let (phase, stride) = const { (T::LAYOUT.steady_phase(), T::LAYOUT.stride()) };
        self.reserve(items.len() * stride);
        // Each piece stays in the L1 cache from the time it is cleared until it is filled.
        for items in items.chunks(const { T::LAYOUT.elements_in(PIECE_BYTES) }) {
            let blocks = self.append_zeros(items.len() * stride);
            for (item, block) in items.iter().zip(blocks.chunks_exact_mut(stride)) {
                T::put_blocks(std::slice::from_ref(item), &mut BlockWriter::new(block, phase, IS_SWAPPED));
            }
        }
    }
}

impl Reader<'_> {
    /// Reads a value as a block. `None`, without moving the reader, if a block does not pay off or the data
    /// is not there.
    #[inline(always)]
    pub fn get_block<T: Unmarshal>(&mut self) -> Option<T> {
        self.get_as_block::<Whole<T>, T>(T::get_block)
    }

    /// Reads what `get` takes from a block. `None`, without moving the reader, if a block does not pay off or
    /// the data is not there.
    #[inline(always)]
    pub fn get_as_block<B: Block, T>(
        &mut self,
        get: impl FnOnce(&mut BlockReader<'_>) -> Option<T>,
    ) -> Option<T> {
        if const { !B::LAYOUT.has_blocks() || !B::LAYOUT.is_small() } {
            return None;
        }
        let at = self.at.next_multiple_of(const { B::LAYOUT.first_alignment as usize });
        match at & const { B::LAYOUT.alignment() - 1 } {
            0 => self.get_block_at::<B, T, 0>(at, get),
            4 => self.get_block_at::<B, T, 4>(at, get),
            _ => None,
        }
    }

    #[inline(always)]
    fn get_block_at<B: Block, T, const PHASE: usize>(
        &mut self,
        at: usize,
        get: impl FnOnce(&mut BlockReader<'_>) -> Option<T>,
    ) -> Option<T> {
        let size = const { B::LAYOUT.size_at(PHASE) };
        let bytes = self.bytes.get(at..)?.get(..size)?;
        if !self.encoding.order.is_native() || !self.has_levels(const { B::LAYOUT.levels }) {
            return None;
        }
        let value = get(&mut BlockReader::new(bytes, PHASE, false))?;
        self.at = at + size;
        Some(value)
    }

    /// Reads `count` elements if all of them are there as blocks. `None`, without moving the reader, where
    /// they must be read one by one.
    #[inline]
    pub fn get_block_elements<T: Unmarshal>(&mut self, count: usize) -> Option<Vec<T>> {
        if const { !T::LAYOUT.has_blocks() } || count == 0 || !self.has_levels(const { T::LAYOUT.levels + 1 })
        {
            return None;
        }
        let at = self.at;
        let items = self.get_all_blocks(count);
        if items.is_none() {
            self.at = at;
        }
        items
    }

    /// Returns `None`: the default for types whose values are never borrowed.
    #[inline(always)]
    pub fn borrow_nothing<T>(&mut self, count: usize) -> Option<&'static [T]> {
        let _ = count;
        None
    }

    #[inline(never)]
    fn get_all_blocks<T: Unmarshal>(&mut self, count: usize) -> Option<Vec<T>> {
        let stride = const { T::LAYOUT.stride() };
        let is_swapped = !self.encoding.order.is_native();
        let first = T::LAYOUT.size_at(self.at);
        let begins = self.at + first;
        // The bounds check comes before the allocation. From the second element on, the stride is constant
        // whatever the layout of the first.
        let bytes = self.bytes.get(begins..)?.get(..stride.checked_mul(count - 1)?)?;
        let mut items = {
            let _probe = probe::enter(Stage::Allocate);
            Vec::with_capacity(count)
        };
        let first = self.bytes.get(self.at..begins)?;
        items.push(T::get_block(&mut BlockReader::new(first, self.at % 8, is_swapped))?);
        match is_swapped {
            false => fill::<T, false>(bytes, &mut items)?,
            true => fill::<T, true>(bytes, &mut items)?,
        }
        self.at = begins + bytes.len();
        Some(items)
    }

    /// Whether arrays may nest this deeply here.
    #[inline(always)]
    pub(super) fn has_levels(&self, levels: u16) -> bool {
        self.depth + levels <= NESTING_MAX
    }
}

/// Reads elements of which even the first has the steady layout.
#[inline(always)]
fn fill<T: Unmarshal, const IS_SWAPPED: bool>(bytes: &[u8], items: &mut Vec<T>) -> Option<()> {
    let (phase, stride) = const { (T::LAYOUT.steady_phase(), T::LAYOUT.stride()) };
    for block in bytes.chunks_exact(stride) {
        items.push(T::get_block(&mut BlockReader::new(block, phase, IS_SWAPPED))?);
    }
    Some(())
}

/// The initial bytes of appended blocks.
static ZEROS: [u8; SINGLE_BYTES_MAX] = [0; SINGLE_BYTES_MAX];

/// Bytes and numbers of the largest block.
const BLOCK_BYTES_MAX: usize = 1024;
const FIELDS_MAX: usize = 256;

/// Bytes and numbers of the largest block of a single value.
const SINGLE_BYTES_MAX: usize = 256;
const SINGLE_FIELDS_MAX: usize = 32;

/// Bytes of blocks that are cleared and filled at a time: C libraries have no special case for so few.
const PIECE_BYTES: usize = 2048;
