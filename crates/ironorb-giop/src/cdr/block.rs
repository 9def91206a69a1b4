//! Fixed blocks: values of types that always take the same bytes from the same place are put into and taken from one
//! piece of bytes, at offsets that the compiler knows, with one look at how many bytes there are.
//!
//! Nothing here refuses a value or finds an error. Where anything is not as it mostly is - the data is in pieces, or ends
//! too early, an enumerator is none, notes are to be taken of where numbers lie - the members are marshalled one by one
//! instead, and that decides. So bytes, limits and errors are those of that way.
//!
//! How a value lies depends on where it begins, modulo its largest alignment, since CDR aligns members and not structs.
//! Where it ends does not, by the same modulus: all behind the member with the largest alignment is where that puts it.
//! So from the second element of a sequence on all lie alike ([`BlockLayout::STEADY`](BlockLayout::steady_phase)), and of the first
//! that can mostly be said too.

use std::marker::PhantomData;

use super::writer::Swap;
use super::{Marshal, NESTING_MAX, Reader, Unmarshal, Writer};
use crate::probe::{self, Stage};

/// How values of one type lie in CDR, by where they begin; or that they are not all alike.
///
/// Computed at compile time, member by member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLayout {
    /// Bytes from where a value begins to where it ends, by the place of the former modulo 8. Nothing where values are
    /// not alike.
    sizes: Option<[u16; 8]>,
    /// The largest alignment of a member.
    alignment: u8,
    /// That of the first number.
    first_alignment: u8,
    /// Numbers.
    fields: u16,
    /// How deep arrays of other things than numbers are nested.
    levels: u16,
    /// Whether it is that of a number.
    is_number: bool,
}

impl BlockLayout {
    /// Of values that differ in size, or that are too large for a block.
    pub const VARIABLE: BlockLayout =
        BlockLayout { sizes: None, alignment: 1, first_alignment: 1, fields: 0, levels: 0, is_number: false };

    /// Of values without bytes: what the layout of a struct starts from.
    pub const EMPTY: BlockLayout = BlockLayout { sizes: Some([0; 8]), ..BlockLayout::VARIABLE };

    /// Of an enumerator.
    pub const ENUMERATOR: BlockLayout = BlockLayout { is_number: false, ..BlockLayout::number(4) };

    /// Of a number of `bytes` bytes, which are 1, 2, 4 or 8: aligned to its size.
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

    /// Of a value of this layout and one of another behind it.
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

    /// Of an array of `count` elements.
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
        // Arrays of numbers are read in bulk, others as sequences are.
        let levels = if self.is_number { 0 } else { self.levels + 1 };
        BlockLayout { levels, is_number: false, ..all }
    }

    /// Large values gain nothing by it: what they mostly consist of are arrays, which have blocks of their own.
    const fn limited(self) -> BlockLayout {
        match self.sizes {
            Some(sizes) if sizes[1] as usize > BLOCK_BYTES_MAX || self.fields as usize > FIELDS_MAX => {
                Self::VARIABLE
            }
            _ => self,
        }
    }

    /// Whether all values are alike.
    #[inline]
    pub const fn is_fixed(self) -> bool {
        self.sizes.is_some()
    }

    /// Whether all values are alike, and take bytes.
    #[inline]
    pub const fn has_blocks(self) -> bool {
        self.fields > 0 && self.sizes.is_some()
    }

    /// Whether a single value is worth a block, of whose code there is some for each place where one may begin.
    const fn is_small(self) -> bool {
        self.fields as usize <= SINGLE_FIELDS_MAX && self.size_at(1) <= SINGLE_BYTES_MAX
    }

    /// How deep arrays of other things than numbers are nested.
    pub(super) const fn levels(self) -> u16 {
        self.levels
    }

    /// The largest alignment of a member.
    pub const fn alignment(self) -> usize {
        self.alignment as usize
    }

    /// Bytes of a value that begins at this place modulo 8; 0 where values are not alike.
    pub const fn size_at(self, phase: usize) -> usize {
        match self.sizes {
            Some(sizes) => sizes[phase % 8] as usize,
            None => 0,
        }
    }

    /// Where each value ends, modulo the alignment, and so where the second of a sequence begins.
    pub const fn steady_phase(self) -> usize {
        self.size_at(0) % self.alignment()
    }

    /// Bytes from one element to the next, from the second on. A multiple of the alignment.
    pub const fn stride(self) -> usize {
        self.size_at(self.steady_phase())
    }

    /// Elements of a sequence in so many bytes, at least one.
    const fn elements_in(self, bytes: usize) -> usize {
        match self.stride() {
            stride @ 1.. if stride < bytes => bytes / stride,
            _ => 1,
        }
    }
}

/// What is put and taken as one block.
pub trait Block {
    /// How it lies.
    const LAYOUT: BlockLayout;
}

/// A value by itself.
struct Whole<T>(PhantomData<T>);

impl<T: Unmarshal> Block for Whole<T> {
    const LAYOUT: BlockLayout = T::LAYOUT;
}

/// Puts numbers where they belong in a block.
///
/// For code that the compiler sees through: then all places are constants.
#[derive(Debug)]
pub struct BlockWriter<'o> {
    /// Zeros.
    out: &'o mut [u8],
    /// Where `out` begins modulo 8.
    phase: usize,
    /// Where the next number may begin, counted as the phase is.
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

    /// The ordinal of an enumerator.
    #[inline(always)]
    pub fn ordinal(&mut self, ordinal: u32) {
        self.put(ordinal);
    }

    /// Several as they lie in memory.
    #[inline(always)]
    fn put_run(&mut self, bytes: &[u8], alignment: usize) {
        let at = self.at.next_multiple_of(alignment);
        if let Some(place) = self.out.get_mut(at - self.phase..at - self.phase + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.at = at + bytes.len();
    }
}

/// Takes numbers from where they belong in a block. As with [`BlockWriter`], all places are constants.
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

    /// The next number aligned to its size.
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

    /// An ordinal, which may be that of no enumerator.
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
    /// Appends a value as a block, if it is worth that here; else nothing.
    #[inline(always)]
    pub fn put_block<T: Marshal + Unmarshal>(&mut self, value: &T) -> bool {
        self.put_as_block::<Whole<T>>(|block| T::put_blocks(std::slice::from_ref(value), block))
    }

    /// Appends what `put` puts, as a block, if it is worth that here; else no more than the padding of its first number.
    #[inline(always)]
    pub fn put_as_block<B: Block>(&mut self, put: impl FnOnce(&mut BlockWriter<'_>)) -> bool {
        if const { !B::LAYOUT.has_blocks() || !B::LAYOUT.is_small() } || !self.is_plain() {
            return false;
        }
        // What is behind something that varies begins anywhere.
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

    /// Appends elements without a length, as blocks where that can be.
    #[inline]
    pub fn put_block_elements<T: Marshal + Unmarshal>(
        &mut self,
        items: &[T],
    ) -> Result<(), crate::error::Misuse> {
        let mut rest = items;
        if const { T::LAYOUT.has_blocks() } && !self.notes_cuts() {
            // No more than one.
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

    /// Elements of which the first begins where all others do.
    #[inline(never)]
    fn put_run_of_blocks<T: Marshal + Unmarshal, const IS_SWAPPED: bool>(&mut self, items: &[T]) {
        let (phase, stride) = const { (T::LAYOUT.steady_phase(), T::LAYOUT.stride()) };
        self.reserve(items.len() * stride);
        // By pieces that stay in the nearest cache from when they are cleared until they are filled.
        for items in items.chunks(const { T::LAYOUT.elements_in(PIECE_BYTES) }) {
            let blocks = self.append_zeros(items.len() * stride);
            for (item, block) in items.iter().zip(blocks.chunks_exact_mut(stride)) {
                T::put_blocks(std::slice::from_ref(item), &mut BlockWriter::new(block, phase, IS_SWAPPED));
            }
        }
    }
}

impl Reader<'_> {
    /// Reads a value as a block, if it is worth that here and there is one; else it stays where it is.
    #[inline(always)]
    pub fn get_block<T: Unmarshal>(&mut self) -> Option<T> {
        self.get_as_block::<Whole<T>, T>(T::get_block)
    }

    /// Reads what `get` takes from a block, if it is worth that here and there is one; else it stays where it is.
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

    /// Reads `count` elements, if all of them are there as blocks. Gives `None` where they must be read one by one, and
    /// stays where it is.
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

    /// For types of which none is ever borrowed: gives `None`.
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
        // Checked before memory is taken. One behind the other from the second on, whatever the first is like.
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

    /// Whether arrays may nest so deep here.
    #[inline(always)]
    pub(super) fn has_levels(&self, levels: u16) -> bool {
        self.depth + levels <= NESTING_MAX
    }
}

/// Reads elements of which the first begins where all others do.
#[inline(always)]
fn fill<T: Unmarshal, const IS_SWAPPED: bool>(bytes: &[u8], items: &mut Vec<T>) -> Option<()> {
    let (phase, stride) = const { (T::LAYOUT.steady_phase(), T::LAYOUT.stride()) };
    for block in bytes.chunks_exact(stride) {
        items.push(T::get_block(&mut BlockReader::new(block, phase, IS_SWAPPED))?);
    }
    Some(())
}

/// What appended blocks start from.
static ZEROS: [u8; SINGLE_BYTES_MAX] = [0; SINGLE_BYTES_MAX];

/// Bytes and numbers of the largest block.
const BLOCK_BYTES_MAX: usize = 1024;
const FIELDS_MAX: usize = 256;

/// The same for one that is written and read by itself.
const SINGLE_BYTES_MAX: usize = 256;
const SINGLE_FIELDS_MAX: usize = 32;

/// Bytes of blocks that are cleared and filled at a time: no more than what C libraries clear without further ado.
const PIECE_BYTES: usize = 2048;
