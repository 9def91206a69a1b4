//! Memory of the system.

pub(super) use imp::*;

#[cfg(not(miri))]
mod imp {
    use std::io;
    use std::ptr::{self, NonNull};

    use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous, munmap};

    /// Memory with all its pages.
    pub(in crate::raw) fn map(bytes: usize) -> io::Result<NonNull<u8>> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the system chooses a place where nothing is.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Gives back what nothing has used yet.
    pub(in crate::raw) fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: it came from `map` with this length, and nothing else knows it.
        let _ = unsafe { munmap(start.as_ptr().cast(), bytes) };
    }

    pub(in crate::raw) fn lock(start: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the memory is there; locking changes nothing about it.
        unsafe { mlock(start.as_ptr().cast(), bytes) }.map_err(io::Error::from)
    }
}

/// Miri has no system.
#[cfg(miri)]
mod imp {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::io;
    use std::ptr::NonNull;

    pub(in crate::raw) fn map(bytes: usize) -> io::Result<NonNull<u8>> {
        let layout = Layout::from_size_align(bytes, 4096).expect("a size of memory");
        // SAFETY: an area has a page at least.
        NonNull::new(unsafe { System.alloc_zeroed(layout) }).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    pub(in crate::raw) fn unmap(_: NonNull<u8>, _: usize) {}

    pub(in crate::raw) fn lock(_: NonNull<u8>, _: usize) -> io::Result<()> {
        Ok(())
    }
}
