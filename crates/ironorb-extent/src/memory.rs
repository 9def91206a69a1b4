//! Mapped memory, as rows of values.

// Memory is mapped once and unmapped when the last row is dropped, so that pointers into it stay good. Values in it are of
// types for which every bit pattern, or zeros, are valid. States are reached by the thread with their turn alone.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use bytemuck::Pod;
use ironorb_locks::{Circle, HeldTurn, PiTurn};
#[cfg(not(miri))]
use memmap2::{Advice, MmapOptions, MmapRaw};

/// Which pages the system has given for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages that the operator has set aside.
    Huge,
    /// Ordinary pages, which the system is asked to join to huge ones.
    Joined,
    /// Those of a file.
    OfFile,
}

/// Memory of the system. Zeros, or the bytes of a file.
pub(crate) struct Memory {
    #[cfg(not(miri))]
    mapping: MmapRaw,
    #[cfg(miri)]
    mapping: Heap,
    pages: Pages,
}

/// What stands for the system's memory where there is none.
#[cfg(miri)]
struct Heap {
    words: *mut u64,
    len: usize,
}

impl Memory {
    /// Zeros, in huge pages that the operator has set aside, if there are enough.
    #[cfg(not(miri))]
    pub(crate) fn huge_zeros(bytes: usize) -> Option<Memory> {
        // Such memory is given back in whole pages alone.
        let bytes = bytes.max(1).checked_next_multiple_of(1 << HUGE_PAGE_BITS)?;
        let mapping = MmapOptions::new().len(bytes).huge(Some(HUGE_PAGE_BITS)).populate().map_anon().ok()?;
        Some(Memory { mapping: mapping.into(), pages: Pages::Huge })
    }

    #[cfg(miri)]
    pub(crate) fn huge_zeros(_: usize) -> Option<Memory> {
        None
    }

    /// Zeros, in memory that the system has given already: a later use never fails for want of it.
    #[cfg(not(miri))]
    pub(crate) fn zeros(bytes: usize) -> io::Result<Memory> {
        let mapping = MmapRaw::from(MmapOptions::new().len(bytes).map_anon()?);
        let _as_it_likes = mapping.advise(Advice::HugePage);
        match mapping.advise(Advice::PopulateWrite) {
            Ok(()) => {}
            // An older kernel.
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => touch(&mapping),
            Err(e) => return Err(e),
        }
        Ok(Memory { mapping, pages: Pages::Joined })
    }

    #[cfg(miri)]
    pub(crate) fn zeros(bytes: usize) -> io::Result<Memory> {
        let words: Box<[u64]> = vec![0; bytes.div_ceil(8)].into();
        let mapping = Heap { len: bytes, words: Box::into_raw(words).cast() };
        Ok(Memory { mapping, pages: Pages::Joined })
    }

    /// A file of at least this length. What is written here is in the file.
    #[cfg(not(miri))]
    pub(crate) fn of_file(file: &File, bytes: usize) -> io::Result<Memory> {
        let mapping = MmapOptions::new().len(bytes).map_raw(file)?;
        Ok(Memory { mapping, pages: Pages::OfFile })
    }

    #[cfg(miri)]
    pub(crate) fn of_file(_: &File, _: usize) -> io::Result<Memory> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn pages(&self) -> Pages {
        self.pages
    }

    pub(crate) fn bytes(&self) -> usize {
        #[cfg(not(miri))]
        return self.mapping.len();
        #[cfg(miri)]
        self.mapping.len
    }

    /// Waits until all that has been written is on the disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        #[cfg(not(miri))]
        self.mapping.flush()?;
        Ok(())
    }

    /// Waits until the first bytes are on the disk.
    pub(crate) fn flush_first(&self, bytes: usize) -> io::Result<()> {
        #[cfg(not(miri))]
        self.mapping.flush_range(0, bytes)?;
        #[cfg(miri)]
        let _none = bytes;
        Ok(())
    }

    fn base(&self) -> *mut u8 {
        #[cfg(not(miri))]
        return self.mapping.as_mut_ptr();
        #[cfg(miri)]
        self.mapping.words.cast()
    }
}

#[cfg(miri)]
impl Drop for Heap {
    fn drop(&mut self) {
        let words = std::ptr::slice_from_raw_parts_mut(self.words, self.len.div_ceil(8));
        // SAFETY: `zeros` has made it of a box.
        drop(unsafe { Box::from_raw(words) });
    }
}

// SAFETY: it owns its words, which are reached through rows alone.
#[cfg(miri)]
unsafe impl Send for Memory {}
#[cfg(miri)]
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Writes a zero to each page, so that the system gives it.
#[cfg(not(miri))]
fn touch(mapping: &MmapRaw) {
    let page = rustix::param::page_size();
    for at in (0..mapping.len()).step_by(page) {
        // SAFETY: the address is in the mapping, which no one else knows yet.
        unsafe { mapping.as_mut_ptr().add(at).write_volatile(0) };
    }
}

#[cfg(not(miri))]
const HUGE_PAGE_BITS: u8 = 21;

/// Has the allocator of the C library take so many bytes from the system now, with their pages, for threads that are made after
/// [`keep_heap`]: while these need no more than that, the resident size stays as it is.
///
/// Blocks until the system has given all pages: seconds for gigabytes.
pub fn reserve_heap(bytes: usize) -> io::Result<()> {
    keep_heap()?;
    // The calling thread may have a heap of its own, from before.
    let reserved = std::thread::spawn(move || {
        let mut block: Vec<u8> = Vec::new();
        block.try_reserve_exact(bytes).map_err(|e| io::Error::new(io::ErrorKind::OutOfMemory, e))?;
        // Written, so that the pages are there.
        block.resize(bytes, 1);
        drop(std::hint::black_box(block));
        Ok(())
    });
    reserved.join().unwrap_or_else(|_| Err(io::ErrorKind::OutOfMemory.into()))
}

/// Has the allocator of the C library keep what is freed, and threads that are made from now on share one heap, with its lock.
/// Unsupported without the GNU C library.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
pub fn keep_heap() -> io::Result<()> {
    // Nothing is given back, large blocks are of the heap as well, and no thread has a heap of its own.
    for (parameter, value) in [(libc::M_TRIM_THRESHOLD, -1), (libc::M_MMAP_MAX, 0), (libc::M_ARENA_MAX, 1)] {
        // SAFETY: it sets a number of the allocator, under the allocator's lock.
        if unsafe { libc::mallopt(parameter, value) } != 1 {
            return Err(io::Error::other("the allocator refuses to keep what is freed"));
        }
    }
    Ok(())
}

/// Unsupported: there is no GNU C library.
#[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
pub fn keep_heap() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What may be shared in mapped memory.
///
/// # Safety
///
/// Every bit pattern is valid, or the type is used in memory of zeros alone and zeros are valid.
pub(crate) unsafe trait Shared: Sync {}

// SAFETY: every pattern of bits is a number.
unsafe impl Shared for AtomicU32 {}
// SAFETY: every pattern of bits is a number.
unsafe impl Shared for AtomicU64 {}
// SAFETY: a turn is a word, of which zero means that no thread has it; no row of turns is in a file (`Memory::zeros`).
unsafe impl Shared for PiTurn {}

/// Values of one type, one after another.
pub(crate) struct Row<T> {
    first: *mut T,
    len: usize,
    memory: Arc<Memory>,
}

// SAFETY: a row gives references only as its methods say, each of which argues for itself.
unsafe impl<T: Send> Send for Row<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Row<T> {}

impl<T> Row<T> {
    /// The row of `len` values that begins at an offset. Panics if it does not fit the memory, or its alignment.
    pub(crate) fn at(memory: &Arc<Memory>, offset: usize, len: usize) -> Row<T> {
        let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        assert!(bytes.is_some_and(|end| end <= memory.bytes()), "the row fits its memory");
        // SAFETY: the offset is within the memory, as just seen.
        let first = unsafe { memory.base().add(offset) }.cast::<T>();
        assert!(first.is_aligned(), "the row is aligned");
        Row { first, len, memory: memory.clone() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }
}

impl<T> Row<T> {
    /// Has the processor fetch a value, if there is one.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if index < self.len {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the index is within the row, whose memory lives as long as `self`. A prefetch has no effect that a program
            // could see.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.first.add(index).cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _unused = index;
    }
}

impl<T: Shared> Row<T> {
    /// A value that threads share.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        // SAFETY: the index is within the row, whose memory lives as long as `self`; `Shared` makes the value valid, and
        // nobody has a `&mut` to it.
        (index < self.len).then(|| unsafe { &*self.first.add(index) })
    }
}

/// States, each with a turn: the thread that has it uses the state.
pub(crate) struct LockedRow<T> {
    turns: Row<PiTurn>,
    states: Row<T>,
}

/// A state and its turn. Dropping it releases the turn.
pub(crate) struct Held<'r, T> {
    state: *mut T,
    _turn: HeldTurn<'r>,
    _row: PhantomData<&'r LockedRow<T>>,
}

/// Why a thread does not get a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotHeld {
    NoSuchPlace,
    /// The calling thread has it.
    OwnTurn,
    /// A thread waits, perhaps by way of others, for what the calling thread has.
    InACircle,
}

impl<T: Pod + Send> LockedRow<T> {
    /// Turns for these states. They are in memory of this process, wherever the states are.
    pub(crate) fn new(turns: Row<PiTurn>, states: Row<T>) -> LockedRow<T> {
        assert_eq!(turns.len(), states.len(), "a turn for each state");
        LockedRow { turns, states }
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Gives each state a value. Nobody else has the row yet, so no turns are taken.
    pub(crate) fn fill(&mut self, mut state: impl FnMut(u64) -> T) {
        for index in 0..self.len() {
            // SAFETY: the index is within the row, and `&mut self` is the only way to it: a turn is held by reference.
            unsafe { self.states.first.add(index).write(state(index as u64)) };
        }
    }

    pub(crate) fn states(&self) -> &Row<T> {
        &self.states
    }

    /// Has the processor fetch a state and its turn, while the thread goes on: they are used soon.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        self.turns.prefetch(index);
        self.states.prefetch(index);
    }

    /// Waits for a state's turn. Lends the thread that has it the priority of the calling thread. Waits in no circle of threads
    /// where the system shows them.
    #[inline]
    pub(crate) fn hold(&self, index: usize) -> Result<Held<'_, T>, NotHeld> {
        let turn = self.turns.get(index).ok_or(NotHeld::NoSuchPlace)?;
        let held = match turn.try_hold() {
            Some(held) => held,
            None if turn.is_ours() => return Err(NotHeld::OwnTurn),
            None => turn.hold_outside_circles(()).map_err(|Circle| NotHeld::InACircle)?,
        };
        // SAFETY: the states are as many as the turns.
        let state = unsafe { self.states.first.add(index) };
        Ok(Held { state, _turn: held, _row: PhantomData })
    }
}

impl<T: Pod> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the memory lives as long as the row; every bit pattern is a state; the thread has the turn while `self`
        // exists, and lends no `&mut` while this reference lives.
        unsafe { &*self.state }
    }
}

impl<T: Pod> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `self` is borrowed by this reference alone.
        unsafe { &mut *self.state }
    }
}
