//! `examples/avionics`: its task file, its program in virtual time, and its program on threads.
//!
//! In virtual time the bounds of the analysis are compared with what stubs, adapters and sessions do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ::avionics::plan::{NORMAL, OVERLOAD, Plan};
use ::avionics::simulation::{Outcome, Settings, simulate};
use ::avionics::tally::Tally;
use ironorb_sched::Verdict;
use ironorb_tests::command::{Done, done, programs_of, run};
use ironorb_tests::eventually;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples/avionics").join(name)
}

fn analyze(options: &[&str], files: &[&Path]) -> Done {
    let files = files.iter().map(|file| file.to_str().unwrap());
    run(["sched", "analyze"].into_iter().chain(options.iter().copied()).chain(files))
}

fn simulated(plan: &Plan, seed: u64) -> Outcome {
    simulate(plan, Settings { length: Duration::from_secs(2), seed }).unwrap()
}

fn tally<'o>(outcome: &'o Outcome, task: &str) -> &'o Tally {
    outcome.tallies.iter().find(|tally| tally.task == task).unwrap()
}

/// The tasks whose deadlines hold whatever the less critical ones do.
const CRITICAL: [&str; 3] = ["track", "stabilise", "navigate"];

#[test]
fn the_task_set_fits_and_the_overload_does_not() {
    assert!(OVERLOAD.starts_with(NORMAL), "the overload adds to the task set, and changes nothing of it");
    assert!(analyze(&[], &[&file("avionics.toml")]).expect().starts_with("fits"));
    let said = analyze(&[], &[&file("overload.toml")]);
    assert!(said.out.contains("shorten the run of operation `avionics::Display::redraw`"), "{}", said.out);
    assert!(said.expect_failure(1).contains("not all deadlines hold"));
    let plan = Plan::of_toml(OVERLOAD).unwrap();
    for task in &plan.report.tasks {
        assert_eq!(task.verdict == Verdict::Fits, CRITICAL.contains(&task.name.as_str()), "{task:?}");
    }
}

#[test]
fn the_task_file_has_the_times_of_the_idl() {
    assert!(analyze(&[], &[&file("avionics.idl")]).expect().starts_with("fits"));
    let (_, operations) = NORMAL.split_once("[[operation]]").unwrap();
    let (operations, _) = operations.split_once("[[task]]").unwrap();
    let is_other = |line: &&str| !line.starts_with("wcet");
    let without: Vec<&str> = operations.lines().filter(is_other).collect();
    let folder = tempfile::tempdir().unwrap();
    let tasks = folder.path().join("tasks.toml");
    fs::write(&tasks, NORMAL.replace(operations, &(without.join("\n") + "\n"))).unwrap();
    let alone = analyze(&[], &[&tasks]);
    assert!(alone.code == Some(2) && format!("{alone:?}").contains("wcet"), "{alone:?}");
    let by_idl = analyze(&["--format", "json"], &[&tasks, &file("avionics.idl")]).expect();
    assert_eq!(by_idl, analyze(&["--format", "json"], &[&file("avionics.toml")]).expect());
}

/// For several phases of the tasks: no response is longer than the bound, and none of the bounds is more than twice what
/// happens.
#[test]
fn responses_in_virtual_time_keep_to_the_bounds_of_the_analysis_and_come_near_them() {
    let plan = Plan::of_toml(NORMAL).unwrap();
    let outcomes: Vec<Outcome> = (0..12).map(|seed| simulated(&plan, seed)).collect();
    for task in plan.tasks() {
        let bound = plan.bound(&task.name).unwrap();
        let releases = 2_000_000_000 / task.period.0;
        for tally in outcomes.iter().map(|outcome| tally(outcome, &task.name)) {
            assert_eq!((tally.misses(), tally.longest <= bound), (0, true), "{tally:?}");
            // One less where the first release is late in its period.
            assert!(tally.calls == releases || tally.calls + 1 == releases, "{tally:?}");
        }
        let longest = outcomes.iter().map(|outcome| tally(outcome, &task.name).longest).max().unwrap();
        assert!(2 * longest >= bound, "{}: {longest:?} of {bound:?}", task.name);
    }
    let refused: u64 = outcomes.iter().map(|outcome| outcome.refused + outcome.deadlines_missed).sum();
    assert_eq!(refused, 0);
    let described = plan.tasks()[0].calls[0].request_bytes;
    let sent = outcomes.iter().map(|outcome| outcome.message_bytes_max).max().unwrap() as u64;
    assert!(
        (described / 4..=described).contains(&sent),
        "messages of up to {sent} bytes, {described} as described"
    );
}

/// What the test of the bounds is worth: a wrong priority of one lane breaks deadlines.
#[test]
fn a_wrong_priority_breaks_deadlines() {
    let wrong = Plan::of_toml(&NORMAL.replace("priority = 30000", "priority = 500")).unwrap();
    assert_eq!(wrong.report.verdict, Verdict::DoesNotFit);
    let outcome = simulated(&wrong, 0);
    let track = tally(&outcome, "track");
    assert!(track.misses() > 0, "{track:?}");
}

#[test]
fn the_overload_costs_the_least_critical_tasks_alone_and_all_losses_are_counted() {
    let plan = Plan::of_toml(OVERLOAD).unwrap();
    for seed in 0..4 {
        let outcome = simulated(&plan, seed);
        for task in CRITICAL {
            let tally = tally(&outcome, task);
            assert_eq!((tally.misses(), tally.longest <= tally.bound.unwrap()), (0, true), "{tally:?}");
        }
        let (map, report) = (tally(&outcome, "map"), tally(&outcome, "report"));
        assert!(map.timeouts > 0 && report.timeouts > 0, "{:?}", outcome.tallies);
        assert!(outcome.refused > 0, "requests whose callers have given up reach no servant");
        assert!(outcome.deadlines_missed > 0, "the server counts those that it has begun");
        let failures: u64 = outcome.tallies.iter().map(|tally| tally.failures).sum();
        assert_eq!(failures, 0, "{:?}", outcome.tallies);
    }
}

#[test]
fn equal_seeds_give_equal_histories() {
    let plan = Plan::of_toml(OVERLOAD).unwrap();
    let history = |seed| format!("{:?}", simulated(&plan, seed));
    let first = history(7);
    assert_eq!(history(7), first);
    assert_eq!(std::thread::scope(|scope| scope.spawn(|| history(7)).join().unwrap()), first);
    assert_ne!(history(8), first);
}

/// On threads and sockets nothing can be said of times here. Each task is served all the same.
#[test]
fn the_program_runs_on_threads_and_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let program = |arguments: &[&str]| {
        let mut command = Command::new(programs_of("avionics").join("avionics"));
        command.args(arguments).current_dir(&folder).stdin(Stdio::null());
        command
    };
    let mut server =
        program(&["server", "--ordinary"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the server serves", || {
        fs::read_to_string(folder.path().join("avionics.references"))
            .is_ok_and(|text| text.lines().count() == 4)
    });
    let client = done(&program(&["client", "--ordinary", "--seconds", "1"]).output().unwrap());
    server.kill().unwrap();
    server.wait().unwrap();
    let said = client.expect();
    for task in Plan::of_toml(NORMAL).unwrap().tasks() {
        let line = said.lines().find(|line| line.starts_with(&task.name)).unwrap();
        assert!(line.ends_with(" 0"), "a call has failed: {said}");
    }
    let simulation = program(&["simulate", "--overload", "--seconds", "1", "--svg", "timeline.svg"]);
    let said = done(&{ simulation }.output().unwrap()).expect();
    assert!(said.contains("map") && said.contains("too late to be carried out"), "{said}");
    let drawn = fs::read_to_string(folder.path().join("timeline.svg")).unwrap();
    assert!(
        drawn.starts_with("<svg") && drawn.contains("peripheral/0") && drawn.contains("track"),
        "{drawn}"
    );
}
