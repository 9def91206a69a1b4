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

const VALVES: &str = r#"
module plant {
    interface Valve {
        @rt(period = "10ms", wcet = "2ms", deadline = "5ms", criticality = very_high) void set(in double position);
        //@rt(period = "20ms", wcet = "3ms")
        readonly attribute double position;
        @rt(deadline = "1s") void log(in string text);
        void name(in string text);
    };
};
"#;

#[test]
fn idl_alone_makes_a_task_of_each_operation_with_a_period_and_a_wcet() {
    let folder = tempfile::tempdir().unwrap();
    let idl = file(&folder, "valves.idl", VALVES);
    let json: serde_json::Value =
        serde_json::from_str(&sched("analyze", &["--format", "json"], &idl).expect()).unwrap();
    let names: Vec<_> = json["tasks"].as_array().unwrap().iter().map(|task| &task["name"]).collect();
    assert_eq!(names, ["plant::Valve::position", "plant::Valve::set"]);
    let set = &json["tasks"][1];
    assert_eq!((set["deadline"].as_str(), set["response"].as_str()), (Some("5ms"), Some("2ms")), "{set}");
    let late = file(&folder, "late.idl", &VALVES.replace("3ms", "19ms"));
    assert!(sched("analyze", &[], &late).expect_failure(1).contains("not all deadlines hold"));
}

#[test]
fn operations_of_a_task_set_have_the_wcet_that_idl_says() {
    let folder = tempfile::tempdir().unwrap();
    let idl = file(&folder, "valves.idl", VALVES);
    let named = FITS
        .replace("set_valve", "plant::Valve::set")
        .replace("wcet = \"400us\"\n", "")
        .replace("5ms", "10ms");
    let tasks = file(&folder, "tasks.toml", &named);
    let with_idl = ["--format", "json", idl.to_str().unwrap()];
    let json: serde_json::Value =
        serde_json::from_str(&sched("analyze", &with_idl, &tasks).expect()).unwrap();
    // 1 ms and 100 us of the task, 2 ms of the operation: the parts of one processor count as one another's load.
    let response = json["tasks"][0]["response"].as_str().unwrap();
    assert!(
        response.ends_with("ms") && response.trim_end_matches("ms").parse::<f64>().unwrap() >= 3.1,
        "{json}"
    );
    let failure = sched("analyze", &[], &tasks).expect_failure(2);
    assert!(failure.contains("`wcet` is missing"), "{failure}");
}

#[test]
fn idl_that_says_too_little_or_something_wrong_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let half = file(&folder, "half.idl", &VALVES.replace("period = \"20ms\", ", ""));
    let failure = sched("analyze", &[], &half).expect_failure(2);
    assert!(failure.contains("plant::Valve::position") && failure.contains("period"), "{failure}");
    let nothing = file(&folder, "nothing.idl", "interface I { void f(); };");
    assert!(sched("analyze", &[], &nothing).expect_failure(2).contains("@rt(period"));
    let wrong = file(&folder, "wrong.idl", "interface I { @rt(wcet = \"-1ms\") void f(); };");
    assert!(sched("analyze", &[], &wrong).expect_failure(2).contains("wrong.idl:1:26"));
    let (one, other) = (file(&folder, "one.toml", FITS), file(&folder, "other.toml", FITS));
    let failure = sched("analyze", &[one.to_str().unwrap()], &other).expect_failure(2);
    assert!(failure.contains("more than one task set"), "{failure}");
}
