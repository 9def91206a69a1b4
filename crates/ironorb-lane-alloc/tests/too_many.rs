//! A program with more areas than a process may have.

use ironorb_lane_alloc::{AREAS_MAX, AreaError, LaneAllocator, LaneArea, WhenFull};

#[global_allocator]
static ALLOCATOR: LaneAllocator = LaneAllocator::system();

#[test]
fn an_area_too_many_is_refused_and_serves_from_the_inner_allocator() {
    static AREAS: [LaneArea; AREAS_MAX + 1] =
        [const { LaneArea::new(4096).when_full(WhenFull::Fail) }; AREAS_MAX + 1];
    let refused: Vec<_> =
        AREAS.iter().filter(|area| matches!(area.prepare(), Err(AreaError::TooMany))).collect();
    assert_eq!(refused.len(), 1);
    let _in_area = refused[0].enter();
    let some = vec![1; 1_000];
    assert_eq!((some.len(), refused[0].usage().bytes_total), (1_000, 0));
    assert!(refused[0].usage().beyond > 0);
}
