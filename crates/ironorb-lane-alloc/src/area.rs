//! Areas, as programs see them.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::sync::atomic::Ordering;

use crate::raw::{Memory, RawArea};
use crate::{AREAS_MAX, CURRENT};

/// A fixed number of bytes from which the threads of a lane take their memory. It is a `static` of the program, and has its
/// memory from [`prepare`](Self::prepare) on, until the process ends.
pub struct LaneArea {
    raw: RawArea,
    when_full: WhenFull,
}

/// What becomes of an allocation for which its area has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// The inner allocator serves it, and the thread may wait there for one with a lower priority.
    #[default]
    TakeFromInner,
    /// It fails. Most code ends the process then ([`std::alloc::handle_alloc_error`]); `try_reserve` returns an error.
    Fail,
}

/// Why an area is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum AreaError {
    /// The program's allocator is another one, so no thread will take memory from the area.
    #[error("the program has no LaneAllocator: make one its #[global_allocator]")]
    NotInstalled,
    /// The process has [`AREAS_MAX`] areas already. This one serves nobody: its threads use the inner allocator.
    #[error("a process has at most {AREAS_MAX} areas")]
    TooMany,
    /// The system has no such memory. The area serves nobody: its threads use the inner allocator.
    #[error("no memory for the area of a lane: {0}")]
    NoMemory(#[source] io::Error),
    /// The area has its memory and serves, but the system may take pages away again.
    #[error(
        "the memory of a lane is not locked: {0}; raise RLIMIT_MEMLOCK (`memlock` in /etc/security/limits.d)"
    )]
    NotLocked(#[source] io::Error),
}

/// What an area has given so far. Each number is exact; together they may be of different moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AreaUsage {
    /// The bytes of the area; 0 before [`LaneArea::prepare`].
    pub bytes_total: usize,
    /// The bytes in use, those in the list of freed blocks among them. Each block takes up to 40 bytes more than this counts.
    pub bytes_used: usize,
    /// The most bytes that have been in use at once.
    pub bytes_used_max: usize,
    /// The allocations that the area has served.
    pub allocations: u64,
    /// The blocks that threads have put into the list, and that the area has taken back from there.
    pub returned: u64,
    /// The allocations for which it had no room ([`WhenFull`]).
    pub beyond: u64,
    /// Whether the system has locked its memory.
    pub is_locked: bool,
}

/// The calling thread's use of an area, or of none. Dropping it brings the thread back to what it used before.
#[derive(Debug)]
#[must_use = "the thread leaves the area when this is dropped"]
pub struct InArea {
    before: Option<&'static LaneArea>,
    _of_this_thread: PhantomData<*mut ()>,
}

impl LaneArea {
    /// An area of this many bytes, from 4 KiB to 1 GiB; what is beyond is cut off. A TLSF heap loses some 3 % of them in
    /// fragments as a rule, and needs 8 to 40 bytes a block.
    pub const fn new(bytes: usize) -> LaneArea {
        let bytes = if bytes > BYTES_MAX { BYTES_MAX } else { bytes };
        let bytes = if bytes < PAGE_BYTES { PAGE_BYTES } else { bytes.next_multiple_of(PAGE_BYTES) };
        LaneArea { raw: RawArea::new(bytes), when_full: WhenFull::TakeFromInner }
    }

    /// Says what becomes of an allocation for which there is no room. Default: the inner allocator serves it.
    pub const fn when_full(mut self, what: WhenFull) -> LaneArea {
        self.when_full = what;
        self
    }

    /// Gives the area its memory: takes it from the system, writes to each page and locks it. May block for as long as the
    /// system takes to find that many pages, so call it before the ORB is built. A second call does nothing and succeeds.
    ///
    /// # Errors
    /// See [`AreaError`]. After [`AreaError::NotLocked`] the area serves all the same.
    pub fn prepare(&'static self) -> Result<(), AreaError> {
        let Memory::Locked(locked) = self.raw.prepare(self)? else { return Ok(()) };
        if !self.is_asked() {
            return Err(AreaError::NotInstalled);
        }
        locked.map_err(AreaError::NotLocked)
    }

    /// Whether an allocation of the calling thread would come here.
    fn is_asked(&'static self) -> bool {
        let before = self.raw.allocations();
        let _in_area = self.enter();
        drop(std::hint::black_box(Box::new(0_u64)));
        self.raw.allocations() != before
    }

    /// Has the calling thread take its memory from here from now on. Neither blocks nor allocates. What the thread has
    /// allocated before stays where it is; whoever frees a block, it goes back where it came from.
    pub fn serve_this_thread(&'static self) {
        mem::forget(self.enter());
    }

    /// Has the calling thread take its memory from here until the result is dropped: for callers, which are threads of the
    /// program. Neither blocks nor allocates.
    pub fn enter(&'static self) -> InArea {
        InArea::enter(Some(self))
    }

    /// What the area has given so far. Neither blocks nor allocates.
    pub fn usage(&self) -> AreaUsage {
        self.raw.usage()
    }

    pub(crate) fn raw(&self) -> &RawArea {
        &self.raw
    }

    /// Counts an allocation for which there is no room. Whether the inner allocator may serve it.
    pub(crate) fn goes_beyond(&self) -> bool {
        self.raw.beyond.fetch_add(1, Ordering::Relaxed);
        self.when_full == WhenFull::TakeFromInner
    }
}

impl fmt::Debug for LaneArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneArea").field("when_full", &self.when_full).field("usage", &self.usage()).finish()
    }
}

impl InArea {
    pub(crate) fn enter(area: Option<&'static LaneArea>) -> InArea {
        InArea { before: CURRENT.replace(area), _of_this_thread: PhantomData }
    }
}

impl Drop for InArea {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// No page of the system is smaller.
const PAGE_BYTES: usize = 4096;

const BYTES_MAX: usize = 1 << 30;
