//! A program that has an area, and forgot the allocator.

use ironorb_lane_alloc::{AreaError, LaneArea};

#[test]
fn an_area_says_that_no_allocator_asks_it() {
    static AREA: LaneArea = LaneArea::new(1 << 16);
    let told = AREA.prepare();
    assert!(matches!(told, Err(AreaError::NotInstalled)), "{told:?}");
    assert_eq!(AREA.usage().allocations, 0);
}
