//! An allocator that a thread can be held in, as in one whose lock it has. A test program with it has a process of its own.

// An allocator is unsafe code.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// The system's allocator behind a gate. While it is shut, no thread comes out that goes in.
#[derive(Debug)]
pub struct GatedAllocator {
    is_shut: AtomicBool,
    /// Threads that wait at the gate, or have.
    held: AtomicUsize,
}

impl GatedAllocator {
    /// An allocator with an open gate.
    #[expect(clippy::new_without_default, reason = "a static needs a const function")]
    pub const fn new() -> GatedAllocator {
        GatedAllocator { is_shut: AtomicBool::new(false), held: AtomicUsize::new(0) }
    }

    /// Shuts the gate.
    pub fn shut(&self) {
        self.is_shut.store(true, Ordering::SeqCst);
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.is_shut.store(false, Ordering::SeqCst);
    }

    /// How many times a thread has been held so far.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    fn pass(&self) {
        if self.is_shut.load(Ordering::SeqCst) {
            self.held.fetch_add(1, Ordering::SeqCst);
            while self.is_shut.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
    }
}

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for GatedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.pass();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.pass();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}
