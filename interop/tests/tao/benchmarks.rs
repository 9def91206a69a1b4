//! TAO beside this ORB in the benchmark of real time.

use std::process::Command;

use ironorb_interop::process::ironorb_command;
use serde_json::Value;

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_takes_part_in_the_test_of_real_time_with_a_lane_for_each_client() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let json = folder.path().join("rows.json");
    let quick = ["bench", "realtime", "--quick", "--sides=tao", "--classes=fifo,rr", "--json"];
    let done = Command::new(ironorb_command()).args(quick).arg(&json).output();
    let done = done.expect("ironorb can be started");
    assert!(done.status.success(), "{done:?}");
    let lines = std::fs::read_to_string(&json).expect("the rows are written");
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    let rows: Vec<Value> = lines.filter(|line| line["kind"] == "high").collect();
    // Classes, origins of latencies, numbers of clients.
    assert_eq!(rows.len(), 2 * 2 * 2, "{rows:?}");
    for row in rows {
        assert!(row["calls"].as_u64() >= Some(1), "{row}");
        let orbs = &row["machine"]["orbs"];
        assert!(orbs[0].as_str().is_some_and(|orb| orb.starts_with("TAO 2.")), "{row}");
    }
}
