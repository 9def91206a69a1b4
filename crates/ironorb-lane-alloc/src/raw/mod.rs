//! Memory of areas, and the allocator that chooses among them: all the unsafe code of this crate.
//!
//! Why it is sound:
//! - An area's memory is mapped once, never unmapped, and reached through its heap alone. The heap is reached with the area's
//!   turn held.
//! - A block in a list is free: whoever called `dealloc` gave it up, and nothing but the list has it until the one thread that
//!   took the whole list hands it to the heap, or to the inner allocator, that it came from. Each block has room for a
//!   node, because [`padded`] says so for every allocation and deallocation.
//! - A block belongs to the area whose memory has its address, else to the inner allocator.
#![allow(unsafe_code)]

mod returned;
mod system;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ironorb_locks::{HeldTurn, PiTurn};

use self::returned::{Chain, Returned, padded};
use crate::area::{AreaError, AreaUsage, LaneArea};
use crate::{AREAS_MAX, CURRENT};

/// The heap's classes of sizes: up to 2 GiB, each power of two in 32 parts.
type Tlsf = rlsf::Tlsf<'static, u32, u32, 26, 32>;

/// The freed blocks that an allocation takes out of its area's list at most, so that its time is bounded.
const TAKEN_BACK_AT_ONCE: usize = 8;

/// What the turn of an area guards.
struct Heap {
    free: Tlsf,
    /// What was in the list and is not free yet.
    taken: Chain,
}

/// The memory of an area.
pub(crate) struct RawArea {
    bytes: usize,
    /// Null until the memory is there.
    start: AtomicPtr<u8>,
    turn: PiTurn,
    heap: UnsafeCell<Heap>,
    returned: Returned,
    is_locked: AtomicBool,
    // Written by the thread with the turn alone.
    bytes_used: AtomicUsize,
    bytes_used_max: AtomicUsize,
    allocations: AtomicU64,
    taken_back: AtomicU64,
    pub(crate) beyond: AtomicU64,
}

// SAFETY: `heap` is reached with the turn held (`Opened`). The rest are atomics.
unsafe impl Sync for RawArea {}
// SAFETY: a heap and a chain are memory, which any thread may have.
unsafe impl Send for RawArea {}

/// How the memory of an area came.
pub(crate) enum Memory {
    WasThere,
    /// It is there now; whether it is locked.
    Locked(io::Result<()>),
}

/// The areas of the process, in the order in which they got their memory.
static AREAS: [AtomicPtr<LaneArea>; AREAS_MAX] = [const { AtomicPtr::new(ptr::null_mut()) }; AREAS_MAX];

/// Held by the thread that gives an area its memory.
static PREPARING: Mutex<()> = Mutex::new(());

fn area_of(block: *mut u8) -> Option<&'static RawArea> {
    let areas = AREAS.iter().map_while(|area| {
        // SAFETY: an entry is null or a `&'static LaneArea`.
        unsafe { area.load(Ordering::Acquire).as_ref() }
    });
    areas.map(LaneArea::raw).find(|area| area.has(block))
}

/// The heap of an area, for the thread that has its turn.
struct Opened<'a> {
    area: &'a RawArea,
    _held: HeldTurn<'a>,
}

impl RawArea {
    pub(crate) const fn new(bytes: usize) -> RawArea {
        let heap = Heap { free: Tlsf::new(), taken: Chain::EMPTY };
        RawArea {
            bytes,
            start: AtomicPtr::new(ptr::null_mut()),
            turn: PiTurn::new(),
            heap: UnsafeCell::new(heap),
            returned: Returned::new(),
            is_locked: AtomicBool::new(false),
            bytes_used: AtomicUsize::new(0),
            bytes_used_max: AtomicUsize::new(0),
            allocations: AtomicU64::new(0),
            taken_back: AtomicU64::new(0),
            beyond: AtomicU64::new(0),
        }
    }

    /// Gives the area its memory; `area` is the one that this is the memory of.
    pub(crate) fn prepare(&'static self, area: &'static LaneArea) -> Result<Memory, AreaError> {
        let _one_at_a_time = PREPARING.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.start.load(Ordering::SeqCst).is_null() {
            return Ok(Memory::WasThere);
        }
        let place = ptr::from_ref(area).cast_mut();
        let start = system::map(self.bytes).map_err(AreaError::NoMemory)?;
        let listed = AREAS.iter().any(|entry| {
            entry.compare_exchange(ptr::null_mut(), place, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        });
        if !listed {
            system::unmap(start, self.bytes);
            return Err(AreaError::TooMany);
        }
        let locked = system::lock(start, self.bytes);
        self.is_locked.store(locked.is_ok(), Ordering::Relaxed);
        let opened = self.open();
        // SAFETY: the memory is there until the process ends, and nothing else has it.
        unsafe { opened.heap().free.insert_free_block_ptr(NonNull::slice_from_raw_parts(start, self.bytes)) };
        self.start.store(start.as_ptr(), Ordering::SeqCst);
        Ok(Memory::Locked(locked))
    }

    fn has(&self, block: *mut u8) -> bool {
        let start = self.start.load(Ordering::Relaxed);
        !start.is_null() && block.addr().wrapping_sub(start.addr()) < self.bytes
    }

    fn open(&self) -> Opened<'_> {
        Opened { area: self, _held: self.turn.hold(()) }
    }

    /// A block of this padded layout, if there is room.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if self.start.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let opened = self.open();
        opened.take_back(TAKEN_BACK_AT_ONCE);
        opened.allocate(layout).or_else(|| {
            opened.take_back(usize::MAX);
            opened.allocate(layout)
        })
    }

    /// # Safety
    /// The caller gives up the block, which is of this area and has this padded layout.
    unsafe fn free(&self, block: *mut u8, layout: Layout) {
        // The caller may only know the block itself, and the heap writes beside it.
        let block = self.start.load(Ordering::Relaxed).with_addr(block.addr());
        let is_of_this_area = CURRENT.get().is_some_and(|area| ptr::eq(area.raw(), self));
        if let Some(held) = is_of_this_area.then(|| self.turn.try_hold()).flatten() {
            let opened = Opened { area: self, _held: held };
            // SAFETY: as the caller says.
            return unsafe { opened.free(NonNull::new_unchecked(block), layout) };
        }
        // SAFETY: as the caller says.
        unsafe { self.returned.push(block, layout) };
    }

    pub(crate) fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }

    pub(crate) fn usage(&self) -> AreaUsage {
        let is_prepared = !self.start.load(Ordering::SeqCst).is_null();
        AreaUsage {
            bytes_total: if is_prepared { self.bytes } else { 0 },
            bytes_used: self.bytes_used.load(Ordering::Relaxed),
            bytes_used_max: self.bytes_used_max.load(Ordering::Relaxed),
            allocations: self.allocations(),
            returned: self.taken_back.load(Ordering::Relaxed),
            beyond: self.beyond.load(Ordering::Relaxed),
            is_locked: self.is_locked.load(Ordering::Relaxed),
        }
    }
}

impl Opened<'_> {
    #[expect(clippy::mut_from_ref, reason = "the turn is held, and no caller keeps the result")]
    fn heap(&self) -> &mut Heap {
        // SAFETY: the calling thread has the turn, and each caller is done with the heap before it asks again.
        unsafe { &mut *self.area.heap.get() }
    }

    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = self.heap().free.allocate(layout)?;
        let used = self.area.bytes_used.load(Ordering::Relaxed) + layout.size();
        self.area.bytes_used.store(used, Ordering::Relaxed);
        self.area.bytes_used_max.store(used.max(self.usage_max()), Ordering::Relaxed);
        self.area.allocations.store(self.area.allocations() + 1, Ordering::Relaxed);
        Some(block)
    }

    fn usage_max(&self) -> usize {
        self.area.bytes_used_max.load(Ordering::Relaxed)
    }

    /// # Safety
    /// As for [`RawArea::free`].
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the heap has given the block with this alignment.
        unsafe { self.heap().free.deallocate(block, layout.align()) };
        let used = self.area.bytes_used.load(Ordering::Relaxed) - layout.size();
        self.area.bytes_used.store(used, Ordering::Relaxed);
    }

    /// Frees what is in the list, this many blocks at most.
    fn take_back(&self, at_most: usize) {
        for _ in 0..at_most {
            if self.heap().taken.is_empty() {
                self.heap().taken = self.area.returned.take_all();
            }
            let Some((block, layout)) = self.heap().taken.next() else { return };
            // SAFETY: what is in the list has been given up by `RawArea::free`.
            unsafe { self.free(block, layout) };
            let taken_back = self.area.taken_back.load(Ordering::Relaxed);
            self.area.taken_back.store(taken_back + 1, Ordering::Relaxed);
        }
    }
}

/// The allocator of a program whose lanes have areas; `A` serves threads without one. See the [crate](crate).
#[derive(Debug)]
pub struct LaneAllocator<A = System> {
    inner: A,
    /// What threads with an area have freed of the inner allocator's.
    for_inner: Returned,
}

impl LaneAllocator {
    /// With the system's allocator for threads without an area.
    pub const fn system() -> LaneAllocator {
        LaneAllocator::new(System)
    }
}

impl<A> LaneAllocator<A> {
    /// With this allocator for threads without an area. It must not be one that keeps state of a thread which allocates here.
    pub const fn new(inner: A) -> LaneAllocator<A> {
        LaneAllocator { inner, for_inner: Returned::new() }
    }

    /// The inner allocator.
    pub const fn inner(&self) -> &A {
        &self.inner
    }
}

impl<A: GlobalAlloc> LaneAllocator<A> {
    /// Frees what threads with an area have left to others.
    fn give_back(&self) {
        for (block, layout) in self.for_inner.take_all() {
            // SAFETY: the inner allocator has given it with this padded layout, and `dealloc` has given it up.
            unsafe { self.inner.dealloc(block.as_ptr(), layout) };
        }
    }

    /// The area of the calling thread has no room, or no memory.
    ///
    /// # Safety
    /// That of [`GlobalAlloc::alloc`].
    #[cold]
    unsafe fn allocate_beyond(&self, area: &LaneArea, layout: Layout) -> *mut u8 {
        let has_no_memory = area.raw().start.load(Ordering::Relaxed).is_null();
        if !area.goes_beyond() && !has_no_memory {
            return ptr::null_mut();
        }
        self.give_back();
        // SAFETY: as the caller says.
        unsafe { self.inner.alloc(layout) }
    }
}

// SAFETY: blocks come from an area or from the inner allocator, and go back there. A block of an area is as long and as aligned
// as its padded layout says, which is no less than was asked for. Nothing here unwinds or allocates by itself.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LaneAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let layout = padded(layout);
        let Some(area) = CURRENT.get() else {
            self.give_back();
            // SAFETY: the caller keeps the contract.
            return unsafe { self.inner.alloc(layout) };
        };
        match area.raw().allocate(layout) {
            Some(block) => block.as_ptr(),
            // SAFETY: the caller keeps the contract.
            None => unsafe { self.allocate_beyond(area, layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if CURRENT.get().is_none() {
            self.give_back();
            // SAFETY: the caller keeps the contract.
            return unsafe { self.inner.alloc_zeroed(padded(layout)) };
        }
        // SAFETY: the caller keeps the contract.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block is that long.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let layout = padded(layout);
        match area_of(block) {
            // SAFETY: the block has come from there with this layout, and the caller gives it up.
            Some(area) => unsafe { area.free(block, layout) },
            // A thread without an area may be in the inner allocator now, with what the calling one would wait for.
            // SAFETY: the same.
            None if CURRENT.get().is_some() => unsafe { self.for_inner.push(block, layout) },
            // SAFETY: the same.
            None => unsafe { self.inner.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller says that the size, rounded up to the alignment, is not too large.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if CURRENT.get().is_none() && area_of(block).is_none() {
            self.give_back();
            // SAFETY: the inner allocator has given the block with its padded layout, whose alignment is that of the new one.
            return unsafe { self.inner.realloc(block, padded(layout), padded(new).size()) };
        }
        // A block of an area is not made larger in place: the heap would copy it behind its lock.
        // SAFETY: the caller keeps the contract.
        let to = unsafe { self.alloc(new) };
        if !to.is_null() {
            // SAFETY: both are that long, and the new one is another block. The old one is as the caller says.
            unsafe {
                ptr::copy_nonoverlapping(block, to, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        to
    }
}

#[cfg(test)]
mod tests;
