//! Lists of freed blocks without a lock.

use std::alloc::Layout;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

/// What a freed block in a list begins with.
struct Node {
    next: *mut Node,
    /// The size times 64, and the binary logarithm of the alignment. No address space has blocks of 2^57 bytes.
    layout: usize,
}

/// The layout of each block here and in the inner allocator: with room for a [`Node`].
pub(super) const fn padded(layout: Layout) -> Layout {
    let (size, align) = (layout.size(), layout.align());
    let size = if size < size_of::<Node>() { size_of::<Node>() } else { size };
    let align = if align < align_of::<Node>() { align_of::<Node>() } else { align };
    match Layout::from_size_align(size, align) {
        Ok(padded) => padded,
        Err(_) => layout, // larger than any address space: the allocator refuses it
    }
}

/// Freed blocks, put here by any thread, without a lock.
pub(super) struct Returned(AtomicPtr<Node>);

/// Blocks that one thread has taken out of a list.
pub(super) struct Chain(*mut Node);

impl Returned {
    pub(super) const fn new() -> Returned {
        Returned(AtomicPtr::new(ptr::null_mut()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// # Safety
    /// The caller gives up the block, which has this padded layout.
    pub(super) unsafe fn push(&self, block: *mut u8, layout: Layout) {
        let node = block.cast::<Node>();
        let layout = layout.size() << 6 | layout.align().trailing_zeros() as usize;
        let mut next = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: the block has room for a node and its alignment, and no other thread knows it yet.
            unsafe { node.write(Node { next, layout }) };
            // sync: the thread that takes the list sees what has been written to its nodes
            match self.0.compare_exchange_weak(next, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => next = now,
            }
        }
    }

    pub(super) fn take_all(&self) -> Chain {
        match self.is_empty() {
            true => Chain::EMPTY,
            false => Chain(self.0.swap(ptr::null_mut(), Ordering::Acquire)),
        }
    }
}

impl Chain {
    pub(super) const EMPTY: Chain = Chain(ptr::null_mut());

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_null()
    }
}

impl Iterator for Chain {
    type Item = (NonNull<u8>, Layout);

    fn next(&mut self) -> Option<(NonNull<u8>, Layout)> {
        let block = NonNull::new(self.0)?;
        // SAFETY: `push` has written the node, and this chain alone has it.
        let Node { next, layout } = unsafe { block.read() };
        self.0 = next;
        // SAFETY: `push` had it of a layout.
        let layout = unsafe { Layout::from_size_align_unchecked(layout >> 6, 1 << (layout & 63)) };
        Some((block.cast(), layout))
    }
}

impl fmt::Debug for Returned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returned").field("is_empty", &self.is_empty()).finish()
    }
}
