//! An allocator that gives the threads of a lane memory of their own, which is there and locked.
//!
//! Allocators share their memory among all threads, behind locks. A thread with a high priority waits there for any thread
//! that the system has taken the processor from meanwhile, and first touches of memory wait for pages. Here threads that
//! are told to take their memory from an **area** instead: a fixed number of bytes, with pages from the start. Within an area
//! each allocation takes constant time (TLSF, by the crate `rlsf`), behind a lock whose holder inherits the priority of
//! the threads that wait for it. No thread outside the area ever takes this lock: what it frees goes into a list without a
//! lock, which the area's threads empty, eight blocks with each allocation.
//!
//! A thread with an area does not come near the program's other allocator, the *inner* one: what others have allocated and it
//! frees goes into such a list too. Threads without an area empty that one. The exception is an allocation for which an
//! area has no room: [`WhenFull`] says what becomes of it, and [`AreaUsage::beyond`] counts it.
//!
//! ```
//! use ironorb_lane_alloc::{LaneAllocator, LaneArea};
//!
//! #[global_allocator]
//! static ALLOCATOR: LaneAllocator = LaneAllocator::system();
//!
//! /// For the threads of the lane "urgent".
//! static URGENT: LaneArea = LaneArea::new(1 << 20);
//!
//! if let Err(e) = URGENT.prepare() {
//!     eprintln!("{e}"); // the memory is there, if it is only not locked
//! }
//! // An ORB calls this on each thread of a lane:
//! // LaneConfig::new("urgent").at_thread_start(|_| URGENT.serve_this_thread())
//! std::thread::spawn(|| {
//!     URGENT.serve_this_thread();
//!     let block = vec![0_u8; 1_000];
//!     assert!(URGENT.usage().bytes_used >= block.len());
//! })
//! .join()
//! .unwrap();
//! ```

mod area;
mod raw;

use std::cell::Cell;

pub use area::{AreaError, AreaUsage, InArea, LaneArea, WhenFull};
pub use raw::LaneAllocator;

/// The most areas of a process.
pub const AREAS_MAX: usize = 16;

thread_local! {
    // Without a destructor and with a constant, so that it allocates nothing.
    static CURRENT: Cell<Option<&'static LaneArea>> = const { Cell::new(None) };
}

/// Has the calling thread take its memory from the inner allocator, as if it had no area, until the result is dropped: for an
/// upcall that needs much, on a thread of a lane. It then waits for the inner allocator as any thread does.
pub fn outside() -> InArea {
    InArea::enter(None)
}
