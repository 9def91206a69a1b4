//! An allocator that counts the bytes that are in use. A test program that measures its memory makes it the
//! global one and has a process of its own.

// An allocator is unsafe code.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

/// The system's allocator, with a count.
#[derive(Debug)]
pub struct CountingAllocator {
    bytes: AtomicIsize,
}

impl CountingAllocator {
    /// An allocator that has given nothing yet.
    #[expect(clippy::new_without_default, reason = "a static needs a const function")]
    pub const fn new() -> CountingAllocator {
        CountingAllocator { bytes: AtomicIsize::new(0) }
    }

    /// The bytes in use.
    pub fn bytes(&self) -> isize {
        self.bytes.load(Ordering::Relaxed)
    }
}

// SAFETY: every call goes to the system's allocator. The counter does not touch the memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.bytes.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.bytes.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.bytes.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}
