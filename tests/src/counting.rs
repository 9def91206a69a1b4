//! An allocator that counts the bytes that are in use, and the allocations of watched threads. A test program that
//! measures its memory makes it the global one and has a process of its own.

// An allocator is unsafe code.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

/// The code that a thread runs, for the count of allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Not counted.
    Unwatched,
    /// The ORB's.
    Orb,
    /// The program's: servants, and what callers do between their calls.
    User,
}

thread_local! {
    // Without a destructor and with a constant, so that it allocates nothing itself.
    static RUNS: Cell<Runs> = const { Cell::new(Runs::Unwatched) };
}

/// What allocations of the calling thread count as from now on. Returns what they have counted as.
pub fn thread_runs(what: Runs) -> Runs {
    RUNS.replace(what)
}

/// The system's allocator, with counts.
#[derive(Debug)]
pub struct CountingAllocator {
    bytes: AtomicIsize,
    of_orb: AtomicUsize,
    of_user: AtomicUsize,
}

impl CountingAllocator {
    /// An allocator that has given nothing yet.
    #[expect(clippy::new_without_default, reason = "a static needs a const function")]
    pub const fn new() -> CountingAllocator {
        CountingAllocator {
            bytes: AtomicIsize::new(0),
            of_orb: AtomicUsize::new(0),
            of_user: AtomicUsize::new(0),
        }
    }

    /// The number of allocations so far while their threads ran this.
    pub fn allocations(&self, of: Runs) -> usize {
        match of {
            Runs::Unwatched => 0,
            Runs::Orb => self.of_orb.load(Ordering::SeqCst),
            Runs::User => self.of_user.load(Ordering::SeqCst),
        }
    }

    fn count(&self, layout: Layout) {
        self.bytes.fetch_add(layout.size() as isize, Ordering::Relaxed);
        match RUNS.get() {
            Runs::Unwatched => {}
            Runs::Orb => {
                self.of_orb.fetch_add(1, Ordering::SeqCst);
            }
            Runs::User => {
                self.of_user.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// The bytes in use.
    pub fn bytes(&self) -> isize {
        self.bytes.load(Ordering::Relaxed)
    }
}

// SAFETY: every call goes to the system's allocator. The counters do not touch the memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count(layout);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.bytes.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}
