//! What an ORB that watches has counted.

use ironorb::Orb;
use ironorb::status::{Histogram, WatchSnapshot};

use crate::eventually;

/// The intervals of a lane.
///
/// # Panics
/// If the server has no such lane.
pub fn interval<'s>(seen: &'s WatchSnapshot, lane: usize, name: &str) -> &'s Histogram {
    let found = seen.lanes[lane].intervals.iter().find(|interval| interval.name == name);
    found.unwrap_or_else(|| panic!("lane {lane} has no interval {name}"))
}

/// Waits until a lane has counted so many requests in each interval before the reply, and so many replies. A reply's end is
/// measured when the client has it already.
///
/// # Panics
/// If it counts more, and after a minute.
pub fn eventually_counted(orb: &Orb, lane: usize, requests: u64, replies: u64) {
    let expected = [requests, requests, requests, replies];
    eventually(&format!("{expected:?}"), || {
        let seen = orb.watched(0);
        let counted =
            ["queueing", "dispatch", "upcall", "reply"].map(|name| interval(&seen, lane, name).count_total);
        let is_more = counted.iter().zip(expected).any(|(counted, expected)| *counted > expected);
        assert!(!is_more, "{counted:?} is more than {expected:?}");
        counted == expected
    });
}
