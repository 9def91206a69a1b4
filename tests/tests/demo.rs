//! `ironorb demo`, the first command of a new user.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use ironorb_tests::command::{done, ironorb};
use ironorb_tests::eventually;
use rustix::process::{Pid, Signal, kill_process};

fn demo(temporary: &Path) -> Command {
    let mut command = Command::new(ironorb());
    command.args(["demo", "--quick"]).env("TMPDIR", temporary).stdin(Stdio::null());
    command
}

#[test]
fn every_step_is_shown_and_nothing_is_left_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let report = done(&demo(temporary.path()).output().unwrap()).expect();
    for section in
        ["Resolve by name", "Calls: 200 of each", "Burst: 8 threads at once", "Restart: ", "All steps done"]
    {
        assert!(report.contains(section), "{section} is not in\n{report}");
    }
    let row = |call: &str| {
        let found = report.lines().find(|line| line.trim_start().starts_with(call));
        found.unwrap_or_else(|| panic!("{call} is not in\n{report}")).to_owned()
    };
    for (call, result) in [
        ("ping()", "done"),
        ("label =", "done"),
        ("label  ", "\"north mast\""),
        ("calibrate(100)", "OutOfRange { -5, 5 }"),
        ("history(64)", "64 structs"),
        ("note(\"calm\"), oneway", "arrived"),
    ] {
        let row = row(call);
        assert!(row.contains(result), "{result} is not in {row}");
        // Median, 99th percentile, the median over a plain socket, then the ratio.
        assert_eq!(row.matches(" us").count(), 3, "{row}");
        let ratio: f64 = row.split_whitespace().last().unwrap().parse().unwrap();
        assert!(ratio.is_finite() && ratio > 0.0, "{row}");
    }
    assert!(report.contains("200 calls, 200 counted"), "{report}");
    assert!(report.contains("done through the old reference"), "{report}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "the temporary folder is gone");
}

#[test]
fn errors_are_reported_and_nothing_is_left_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let said = done(&demo(&temporary.path().join("missing")).output().unwrap()).expect_failure(1);
    assert!(said.starts_with("error: cannot make a temporary folder"), "{said}");
    let said =
        done(&demo(temporary.path()).env(ironorb::INIT_REF_VARIABLE, "NameService=bogus").output().unwrap());
    let said = said.expect_failure(1);
    assert!(said.contains("error: "), "{said}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "the temporary folder is gone");
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(ironorb());
    command.args(["demo", "--calls", "1000000"]).env("TMPDIR", temporary.path());
    let mut demo = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut processes = Vec::new();
    // The pipe stays open until the end, since the demo prints more than the test reads.
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    for line in lines.by_ref().map(Result::unwrap) {
        // Parses `  server   process 123, …`.
        let number = line.split_once("process ").and_then(|(_, rest)| rest.split(',').next());
        processes.extend(number.and_then(|number| number.parse::<u32>().ok()));
        if line.starts_with("Calls: ") {
            break;
        }
    }
    assert_eq!(processes.len(), 3, "{processes:?}");
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    let output = demo.wait_with_output().unwrap();
    drop(lines);
    assert_eq!(done(&output).expect_failure(130), "error: interrupted by signal 2\n");
    for process in processes {
        // The process that adopts an ended process may take some time to collect it.
        let is_gone = || {
            let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            status.is_empty() || status.contains(") Z ")
        };
        eventually("the other processes have ended", is_gone);
    }
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "the temporary folder is gone");
}

#[test]
fn a_closed_pipe_ends_the_demo_quietly_with_nothing_left_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = demo(temporary.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("demo: three processes"), "{first}");
    let said = done(&child.wait_with_output().unwrap());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "the temporary folder is gone");
}
