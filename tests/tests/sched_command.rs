//! `ironorb sched`: from a file to a verdict, a table and a timeline.

use std::fs;
use std::path::PathBuf;

use ironorb_tests::command::run;

const FITS: &str = r#"
[[node]]
name = "board"

[[lane]]
name = "control"
node = "board"

[[operation]]
name = "set_valve"
lane = "control"
wcet = "400us"

[[task]]
name = "pressure"
lane = "control"
period = "10ms"
deadline = "5ms"
wcet = "1ms"
calls = [{ operation = "set_valve", then = "100us" }]
"#;

/// A file with this text, in a folder that is removed at the end.
fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn sched(command: &str, options: &[&str], file: &std::path::Path) -> ironorb_tests::command::Done {
    let file = file.to_str().unwrap();
    run([&["sched", command][..], options, &[file]].concat())
}

#[test]
fn a_task_set_that_fits_has_a_table_and_a_timeline() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = file(&folder, "tasks.toml", FITS);
    let (svg, html) = (folder.path().join("a.svg"), folder.path().join("a.html"));
    let options = ["--svg", svg.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let report = sched("analyze", &options, &tasks).expect();
    assert!(report.contains("pressure") && report.contains("board/0"), "{report}");
    assert!(fs::read_to_string(svg).unwrap().starts_with("<svg"));
    assert!(fs::read_to_string(html).unwrap().contains("pressure"));
    let json: serde_json::Value =
        serde_json::from_str(&sched("analyze", &["--format", "json"], &tasks).expect()).unwrap();
    assert_eq!(json["tasks"][0]["name"], "pressure");
    let table = sched("table", &[], &tasks).expect();
    let table = ironorb_sched::Table::from_toml(&table).unwrap();
    assert_eq!(table.lane("control").unwrap().node, "board");
}

#[test]
fn a_task_set_that_does_not_fit_says_what_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = file(&folder, "tasks.toml", &FITS.replace("wcet = \"1ms\"", "wcet = \"7ms\""));
    let said = sched("analyze", &[], &tasks);
    let report = said.out.clone();
    let failure = said.expect_failure(1);
    assert!(failure.contains("not all deadlines hold"), "{failure}");
    assert!(report.contains("pressure") && report.contains("shorten"), "{report}");
    let failure = sched("table", &[], &tasks).expect_failure(1);
    assert!(failure.contains("not all deadlines hold"), "{failure}");
}

#[test]
fn a_bad_file_gets_the_line_and_the_mend() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = file(&folder, "tasks.toml", &FITS.replace("\"400us\"", "\"-400us\""));
    let failure = sched("analyze", &[], &tasks).expect_failure(2);
    assert!(failure.contains("tasks.toml:12:") && failure.contains("negative"), "{failure}");
    let failure = sched("analyze", &[], &folder.path().join("none.toml")).expect_failure(2);
    assert!(failure.contains("none.toml"), "{failure}");
}
