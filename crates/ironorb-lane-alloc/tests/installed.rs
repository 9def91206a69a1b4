//! A program with the allocator, as one has it.

use std::collections::BTreeMap;
use std::thread;

use ironorb_lane_alloc::{AreaError, LaneAllocator, LaneArea, WhenFull};

#[global_allocator]
static ALLOCATOR: LaneAllocator = LaneAllocator::system();

/// Prepares an area. That it is not locked is what a machine may say.
fn prepare(area: &'static LaneArea) {
    match area.prepare() {
        Ok(()) | Err(AreaError::NotLocked(_)) => {}
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_a_thread_with_an_area_allocates_comes_from_there_and_goes_back() {
    static AREA: LaneArea = LaneArea::new(1 << 20);
    prepare(&AREA);
    AREA.prepare().expect("it is there");
    let before = AREA.usage();
    let theirs = vec![1_u64; 100];
    let ours = thread::spawn(|| {
        AREA.serve_this_thread();
        let mut sorted: BTreeMap<_, _> = (0..500).map(|at| (at * 7 % 500, format!("number {at}"))).collect();
        sorted.retain(|at, _| at % 2 == 0);
        drop(theirs);
        sorted
    })
    .join()
    .unwrap();
    let held = AREA.usage();
    assert!(held.allocations >= before.allocations + 500 && held.beyond == 0, "{held:?}");
    assert!(held.bytes_used > 250 * "number 1".len(), "{held:?}");
    assert!(ours.iter().all(|(at, text)| *at == text[7..].parse::<i32>().unwrap() * 7 % 500));
    drop(ours);
    let _in_area = AREA.enter();
    // Eight blocks of the list with each allocation.
    (0..200).for_each(|_| drop(Box::new(0_u8)));
    assert!(AREA.usage().bytes_used < held.bytes_used / 4, "{:?}", AREA.usage());
}

#[test]
fn code_may_see_that_an_area_is_full_and_step_out_of_it() {
    static AREA: LaneArea = LaneArea::new(64 << 10).when_full(WhenFull::Fail);
    prepare(&AREA);
    let _in_area = AREA.enter();
    let mut bytes = Vec::<u8>::new();
    assert!(bytes.try_reserve_exact(1 << 20).is_err());
    {
        let _outside = ironorb_lane_alloc::outside();
        bytes.try_reserve_exact(1 << 20).expect("the inner allocator has it");
    }
    assert_eq!(AREA.usage().beyond, 1);
}
