use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;

use super::*;
use crate::WhenFull;

/// Stands in for an allocator that a thread is in the middle of: others wait at its gate while it is shut.
struct Gated {
    is_shut: AtomicBool,
    /// Threads that have come to the gate.
    came: AtomicUsize,
}

impl Gated {
    const fn new() -> Gated {
        Gated { is_shut: AtomicBool::new(false), came: AtomicUsize::new(0) }
    }

    fn pass(&self) {
        self.came.fetch_add(1, Ordering::SeqCst);
        while self.is_shut.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }
}

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for Gated {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.pass();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.pass();
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(block, layout) }
    }
}

/// A block that knows its contents. It is not freed by itself.
#[derive(Clone, Copy)]
struct Block {
    place: *mut u8,
    layout: Layout,
    filled: u8,
}

// SAFETY: it owns its memory.
unsafe impl Send for Block {}

impl Block {
    /// Allocates and fills.
    fn new(from: &impl GlobalAlloc, bytes: usize, align: usize, filled: u8) -> Block {
        let layout = Layout::from_size_align(bytes, align).unwrap();
        // SAFETY: the size is not zero, and the block is that long.
        unsafe {
            let place = from.alloc(layout);
            assert!(!place.is_null() && place.addr().is_multiple_of(align));
            place.write_bytes(filled, bytes);
            Block { place, layout, filled }
        }
    }

    fn is_whole(&self) -> bool {
        let step = if cfg!(miri) { 97 } else { 1 };
        // SAFETY: `new` has written it all.
        (0..self.layout.size()).step_by(step).all(|at| unsafe { self.place.add(at).read() } == self.filled)
    }

    fn free(self, to: &impl GlobalAlloc) {
        assert!(self.is_whole(), "what was written is there");
        // SAFETY: it came from there with this layout.
        unsafe { to.dealloc(self.place, self.layout) }
    }

    fn grow(self, of: &impl GlobalAlloc, bytes: usize) -> Block {
        let layout = Layout::from_size_align(bytes, self.layout.align()).unwrap();
        // SAFETY: as in `free`; the rest of a longer block is filled here.
        unsafe {
            let place = of.realloc(self.place, self.layout, bytes);
            let old = self.layout.size().min(bytes);
            assert!(Block { place, layout: Layout::from_size_align(old, 1).unwrap(), ..self }.is_whole());
            place.add(old).write_bytes(self.filled, bytes - old);
            Block { place, layout, ..self }
        }
    }

    fn is_in(&self, area: &LaneArea) -> bool {
        area.raw().has(self.place)
    }
}

/// Gives an area its memory without asking whether the program's allocator is one of ours.
fn prepare(area: &'static LaneArea) {
    let prepared = area.raw().prepare(area);
    assert!(matches!(prepared, Ok(Memory::Locked(_))));
}

const PAGES: usize = 64 << 10;

#[test]
fn blocks_of_all_sizes_come_from_the_area_and_go_back() {
    static AREA: LaneArea = LaneArea::new(PAGES);
    prepare(&AREA);
    let allocator = LaneAllocator::system();
    let _in_area = AREA.enter();
    let sizes = [1, 7, 16, 24, 25, 100, 1_000, 4_096, 9_000];
    let blocks: Vec<Block> =
        (0..27).map(|at| Block::new(&allocator, sizes[at % sizes.len()], 1 << (at % 7), at as u8)).collect();
    assert!(blocks.iter().all(|block| block.is_in(&AREA)));
    let used = AREA.usage().bytes_used;
    assert!(used >= 3 * sizes.iter().sum::<usize>(), "{used}");
    blocks.into_iter().for_each(|block| block.free(&allocator));
    let usage = AREA.usage();
    assert_eq!((usage.bytes_used, usage.bytes_used_max, usage.allocations, usage.beyond), (0, used, 27, 0));
    let whole = Block::new(&allocator, PAGES - PAGES / 16, 8, 9);
    assert!(whole.is_in(&AREA), "the area is one free block again");
    whole.free(&allocator);
}

#[test]
fn blocks_keep_their_contents_when_they_grow_shrink_and_move() {
    static AREA: LaneArea = LaneArea::new(PAGES);
    prepare(&AREA);
    let allocator = LaneAllocator::system();
    let outside = Block::new(&allocator, 100, 4, 1);
    assert!(!outside.is_in(&AREA));
    let outside = outside.grow(&allocator, 3);
    let inside = {
        let _in_area = AREA.enter();
        let moved = outside.grow(&allocator, 1_000);
        assert!(moved.is_in(&AREA));
        assert!(!allocator.for_inner.is_empty(), "the block outside is left to a thread outside");
        moved.grow(&allocator, 50).grow(&allocator, 5_000)
    };
    let outside = inside.grow(&allocator, 6_000);
    assert!(!outside.is_in(&AREA) && allocator.for_inner.is_empty());
    outside.free(&allocator);
    let _in_area = AREA.enter();
    Block::new(&allocator, 10, 1, 1).free(&allocator);
    let usage = AREA.usage();
    assert_eq!((usage.bytes_used, usage.returned), (0, 1), "the block that left");
    // SAFETY: the size is not zero, and the block is that long.
    let zeroes = unsafe { allocator.alloc_zeroed(Layout::new::<[u8; 200]>()) };
    Block { place: zeroes, layout: Layout::new::<[u8; 200]>(), filled: 0 }.free(&allocator);
}

#[test]
fn a_thread_with_an_area_waits_for_none_that_is_in_the_inner_allocator() {
    static AREA: LaneArea = LaneArea::new(PAGES);
    static ALLOCATOR: LaneAllocator<Gated> = LaneAllocator::new(Gated::new());
    prepare(&AREA);
    let given = Block::new(&ALLOCATOR, 300, 8, 3);
    let gate = &ALLOCATOR.inner;
    gate.is_shut.store(true, Ordering::SeqCst);
    let came = gate.came.load(Ordering::SeqCst);
    let low = thread::spawn(|| Block::new(&ALLOCATOR, 10, 1, 1));
    while gate.came.load(Ordering::SeqCst) == came {
        thread::yield_now();
    }
    let high = thread::spawn(move || {
        AREA.serve_this_thread();
        let own = Block::new(&ALLOCATOR, 100, 8, 1).grow(&ALLOCATOR, 2_000);
        given.grow(&ALLOCATOR, 500).free(&ALLOCATOR); // of the inner allocator, moved and freed
        own.free(&ALLOCATOR);
    });
    let started = std::time::Instant::now();
    while !high.is_finished() && started.elapsed().as_secs() < 20 {
        thread::yield_now();
    }
    let is_done = high.is_finished();
    gate.is_shut.store(false, Ordering::SeqCst);
    high.join().unwrap();
    assert!(is_done, "the low thread is in the inner allocator all the time");
    low.join().unwrap().free(&ALLOCATOR);
    assert!(!ALLOCATOR.for_inner.is_empty(), "its block is still to be freed");
    Block::new(&ALLOCATOR, 10, 1, 1).free(&ALLOCATOR);
    assert!(ALLOCATOR.for_inner.is_empty(), "threads without an area free it");
}

#[test]
fn blocks_that_other_threads_free_are_used_again() {
    const ROUNDS: usize = if cfg!(miri) { 12 } else { 20_000 };
    const BYTES: usize = if cfg!(miri) { PAGES } else { 1 << 20 };
    const OTHERS: usize = 3;
    static AREA: LaneArea = LaneArea::new(BYTES);
    static OTHER: LaneArea = LaneArea::new(PAGES);
    static ALLOCATOR: LaneAllocator = LaneAllocator::system();
    prepare(&AREA);
    prepare(&OTHER);
    thread::scope(|scope| {
        let others: Vec<_> = (0..OTHERS)
            .map(|other| {
                let (give, given) = channel::<Block>();
                scope.spawn(move || {
                    if other == 0 {
                        OTHER.serve_this_thread();
                    }
                    given.iter().for_each(|block| block.free(&ALLOCATOR));
                });
                give
            })
            .collect();
        for at in 0..2 {
            let others = others.clone();
            scope.spawn(move || {
                AREA.serve_this_thread();
                for round in 0..ROUNDS {
                    let block = Block::new(&ALLOCATOR, 1 + round % 700, 1 << (round % 5), round as u8);
                    match round % 4 {
                        3 => block.free(&ALLOCATOR),
                        _ => others[(round + at) % OTHERS].send(block).unwrap(),
                    }
                }
            });
        }
    });
    let _in_area = AREA.enter();
    while !AREA.raw().returned.is_empty() || AREA.raw().usage().bytes_used > 0 {
        let before = AREA.usage();
        Block::new(&ALLOCATOR, 1, 1, 1).free(&ALLOCATOR);
        let after = AREA.usage();
        assert!(
            after.returned - before.returned <= TAKEN_BACK_AT_ONCE as u64 && after.returned > before.returned
        );
    }
    let usage = AREA.usage();
    assert!(usage.returned + usage.beyond >= 2 * (ROUNDS / 4 * 3) as u64, "{usage:?}");
    let whole = Block::new(&ALLOCATOR, BYTES - BYTES / 16, 8, 9);
    assert!(whole.is_in(&AREA), "nothing is lost: {usage:?}");
    whole.free(&ALLOCATOR);
}

#[test]
fn a_full_area_takes_back_what_it_can_and_then_goes_beyond_and_counts() {
    static AREA: LaneArea = LaneArea::new(PAGES);
    static STRICT: LaneArea = LaneArea::new(PAGES).when_full(WhenFull::Fail);
    static UNPREPARED: LaneArea = LaneArea::new(PAGES);
    prepare(&AREA);
    prepare(&STRICT);
    let allocator = LaneAllocator::system();
    let large = Layout::new::<[u8; 2 * PAGES]>();
    let many: Vec<Block> = {
        let _in_area = AREA.enter();
        let many = (0..200).map(|at| Block::new(&allocator, 240, 8, at)).collect();
        let beyond = Block { filled: 5, ..Block::new(&allocator, large.size(), 8, 5) };
        assert!(!beyond.is_in(&AREA));
        assert_eq!(AREA.usage().beyond, 1);
        beyond.free(&allocator);
        many
    };
    assert!(many.iter().all(|block| block.is_in(&AREA)));
    many.into_iter().for_each(|block| block.free(&allocator));
    let in_area = AREA.enter();
    let whole = Block::new(&allocator, PAGES - PAGES / 16, 8, 9);
    assert!(whole.is_in(&AREA), "it takes back all that others have freed before it goes beyond");
    assert_eq!((AREA.usage().returned, AREA.usage().beyond), (200, 1));
    whole.free(&allocator);
    drop(in_area);
    let _in_area = STRICT.enter();
    // SAFETY: the size is not zero.
    assert!(unsafe { allocator.alloc(large) }.is_null());
    assert_eq!(STRICT.usage().beyond, 1);
    let _in_area = UNPREPARED.enter();
    Block::new(&allocator, 10, 1, 1).free(&allocator);
    assert_eq!((UNPREPARED.usage().beyond, UNPREPARED.usage().bytes_total), (1, 0));
}

#[test]
#[cfg(not(miri))]
fn an_area_has_its_pages_before_the_first_allocation() {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    static AREA: LaneArea = LaneArea::new(4 << 20);
    prepare(&AREA);
    let page_faults = || {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        rest.split(' ').nth(7).unwrap().parse::<u64>().unwrap() // field 10, minflt
    };
    let bytes = 3 << 20;
    let allocator = LaneAllocator::system();
    let faults_of = |write: &dyn Fn()| {
        let before = page_faults();
        write();
        page_faults() - before
    };
    let _in_area = AREA.enter();
    let of_area = faults_of(&|| Block::new(&allocator, bytes, 8, 7).free(&allocator));
    assert!(of_area < 8, "{of_area} faults");
    // The count sees what it should: as much memory from the system, without its pages. Small ones, whatever the system would.
    let of_system = faults_of(&|| {
        // SAFETY: the system chooses the place, which is that long, and nothing else knows it.
        unsafe {
            let prot = ProtFlags::READ | ProtFlags::WRITE;
            let place = mmap_anonymous(ptr::null_mut(), bytes, prot, MapFlags::PRIVATE).unwrap();
            rustix::mm::madvise(place, bytes, rustix::mm::Advice::LinuxNoHugepage).unwrap();
            place.cast::<u8>().write_bytes(7, bytes);
        }
    });
    assert!(of_system > 700, "{of_system} faults");
}

#[test]
fn a_process_has_so_many_areas_and_a_thread_one_at_a_time() {
    static OUTER: LaneArea = LaneArea::new(1);
    static INNER: LaneArea = LaneArea::new(usize::MAX);
    let current = || CURRENT.get().map(ptr::from_ref);
    {
        let _outer = OUTER.enter();
        {
            let _inner = INNER.enter();
            assert_eq!(current(), Some(&raw const INNER));
            let _outside = crate::outside();
            assert_eq!(current(), None);
        }
        assert_eq!(current(), Some(&raw const OUTER));
    }
    assert_eq!(current(), None);
    assert_eq!((OUTER.raw().bytes, INNER.raw().bytes), (4096, 1 << 30));
}
