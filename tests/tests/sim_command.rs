//! `ironorb sim`: the example scenarios, the outputs, and what is said of bad files.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ironorb_tests::command::{Done, done, ironorb, programs_of, run};
use serde_json::Value;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples/scenarios").join(name)
}

fn sim(arguments: &[&str]) -> Done {
    run(["sim"].into_iter().chain(arguments.iter().copied()))
}

/// Runs a scenario, and returns its experiments.
fn experiments(file: &Path, folder: &Path) -> Vec<Value> {
    experiments_at("L0", file, folder)
}

fn experiments_at(level: &str, file: &Path, folder: &Path) -> Vec<Value> {
    let json = folder.join("out.json");
    sim(&["run", file.to_str().unwrap(), "--level", level, "--json", json.to_str().unwrap()]).expect();
    let out: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(out["level"], level);
    assert!(out["commit"].as_str().is_some_and(|commit| !commit.is_empty()));
    out["experiments"].as_array().unwrap().clone()
}

fn mean(experiment: &Value, class: usize, figure: &str) -> f64 {
    experiment["classes"][class][figure]["mean"].as_f64().unwrap()
}

/// A copy of an example that runs for a shorter time.
fn shortened(name: &str, changes: &[(&str, &str)], folder: &Path) -> PathBuf {
    let mut text = fs::read_to_string(example(name)).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in {name}");
        text = text.replace(from, to);
    }
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn jobs_of_the_paper_meet_their_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let all =
        experiments(&shortened("par-04.toml", &[("\"60 s\"", "\"22 s\"")], folder.path()), folder.path());
    assert_eq!(all.len(), 6);
    let of = |threads: usize, clients: usize| &all[3 * threads + clients];
    // R(1) is the slower station and some messages; X(10) is that of two slow stations, or of one thread.
    let response = mean(of(1, 0), 0, "response_s");
    assert!((0.055..0.0555).contains(&response), "{response}");
    let (many, alone) = (mean(of(1, 2), 0, "throughput_per_s"), mean(of(0, 2), 0, "throughput_per_s"));
    assert!((many / (2.0 / 0.055) - 1.0).abs() < 0.01, "{many}");
    assert!((alone / (1.0 / 0.055) - 1.0).abs() < 0.01, "{alone}");
}

#[test]
fn caches_make_reads_cheap_and_writes_little_dearer() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        shortened("minorb-case-3.toml", &[("\"20 s\"", "\"2 s\""), ("\"1 s\"", "\"0 s\"")], folder.path());
    let all = experiments(&file, folder.path());
    let of = |reads: usize, capacity: usize| mean(&all[3 * reads + capacity], 0, "response_s");
    let remote = of(0, 0);
    assert!((of(2, 0) / remote - 1.0).abs() < 0.01, "without caches reads and writes cost the same");
    assert!(of(2, 2) < remote / 40.0, "reads from a cache: {} instead of {remote}", of(2, 2));
    assert!(of(0, 2) < remote * 1.05, "writes of what is held: {} instead of {remote}", of(0, 2));
    let half = of(2, 1) / remote;
    assert!((0.4..0.6).contains(&half), "half of the objects: {half} of a remote call");
}

#[test]
fn a_run_is_repeated_bit_for_bit_and_told_in_all_forms() {
    let folder = tempfile::tempdir().unwrap();
    let file = shortened(
        "mm1.toml",
        &[("\"1000 s\"", "\"5 s\""), ("min = 4, max = 4", "min = 2, max = 2")],
        folder.path(),
    );
    let out = |name: &str| folder.path().join(name);
    let outputs = |n: u32| {
        let names = [format!("{n}.json"), format!("{n}.csv"), format!("{n}.html")];
        let files = names.map(|name| out(&name));
        let [json, csv, html] = &files;
        let options = [
            "--json",
            json.to_str().unwrap(),
            "--csv",
            csv.to_str().unwrap(),
            "--html",
            html.to_str().unwrap(),
        ];
        let text = sim(&[&["run", file.to_str().unwrap()], &options[..]].concat()).expect();
        (text, files.map(|file| fs::read_to_string(file).unwrap()))
    };
    let (first, second) = (outputs(1), outputs(2));
    assert_eq!(first, second);
    let (text, [_, csv, html]) = first;
    assert!(text.contains("level L0, seeds 1 to 2, commit ") && text.contains("threads of queue"), "{text}");
    assert!(csv.starts_with("level,commit,scenario,seed,") && html.contains("<svg"), "{csv}");
    let events = sim(&["run", file.to_str().unwrap(), "--seed", "9", "--events"]).expect();
    assert!(events.contains("seeds 9 to 10") && events.contains("million events/s"), "{events}");
}

#[test]
fn two_scenarios_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let short: [(&str, &str); 2] = [("\"1000 s\"", "\"5 s\""), ("min = 4, max = 4", "min = 3, max = 3")];
    let slow = shortened("mm1.toml", &short, folder.path());
    let fast = folder.path().join("fast.toml");
    fs::write(&fast, fs::read_to_string(&slow).unwrap().replace("0.7 ms", "0.5 ms")).unwrap();
    let text = sim(&["compare", slow.to_str().unwrap(), fast.to_str().unwrap()]).expect();
    let line = text.lines().find(|line| line.contains("response")).unwrap();
    assert!(line.starts_with("arrivals") && line.contains("-5"), "some 57 % less: {line}");
    assert!(!line.contains('?'), "{line}");
    let sweep = example("par-04.toml");
    let said = sim(&["compare", slow.to_str().unwrap(), sweep.to_str().unwrap()]).expect_failure(2);
    assert!(said.contains("has 6 scenarios") && said.contains("[sweep]"), "{said}");
}

/// Before the simulation: the scenario would take hours.
#[test]
fn outputs_that_cannot_be_written_are_told_before_the_simulation() {
    let folder = tempfile::tempdir().unwrap();
    let long = shortened("mm1.toml", &[("\"1000 s\"", "\"1000000 s\"")], folder.path());
    let scenario = long.to_str().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let said = sim(&["run", scenario, "--json", &at("none/x.json")]).expect_failure(1);
    assert!(said.contains("cannot write") && said.contains("help: name a file in a folder"), "{said}");
    let said = sim(&["run", scenario, "--json", &at("new"), "--csv", &at("./new")]).expect_failure(2);
    assert!(said.contains("would be overwritten"), "{said}");
    assert!(!Path::new(&at("new")).exists(), "an empty file is no result");
    let linked = at("linked.toml");
    fs::hard_link(&long, &linked).unwrap();
    let said = sim(&["run", scenario, "--json", &linked]).expect_failure(2);
    assert!(said.contains("would be overwritten"), "{said}");
    let (one, other) = (at("x"), at("./x"));
    let twice: [&[&str]; 4] = [
        &["run", scenario, "--json", &one, "--html", &other],
        &["run", scenario, "--csv", &one, "--chrome", &other],
        &["run", scenario, "--json", scenario],
        &["compare", scenario, scenario, "--json", scenario],
    ];
    for arguments in twice {
        let said = sim(arguments).expect_failure(2);
        assert!(said.contains("would be overwritten") && said.contains("help: name another file"), "{said}");
    }
    assert!(fs::read_to_string(&long).unwrap().contains("1000000 s"));
    let said = sim(&["export", scenario, "-o", scenario]).expect_failure(2);
    assert!(said.contains("would be overwritten"), "{said}");
}

#[test]
fn long_simulations_say_that_they_run() {
    let folder = tempfile::tempdir().unwrap();
    let long = shortened("mm1.toml", &[("\"1000 s\"", "\"1000000 s\"")], folder.path());
    let mut child = Command::new(ironorb())
        .args(["sim", "run", long.to_str().unwrap()])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stderr).read_line(&mut line);
        tell.send(line)
    });
    let line = told.recv_timeout(Duration::from_secs(120));
    child.kill().unwrap();
    child.wait().unwrap();
    let line = line.expect("a line within two minutes");
    assert!(line.contains("mm1: run 1 of 4 at most, ") && line.ends_with(" s so far\n"), "{line}");
}

#[test]
fn bad_files_are_told_by_line_and_mend() {
    let folder = tempfile::tempdir().unwrap();
    let file = shortened("mm1.toml", &[("sleeps = true", "sleep = true")], folder.path());
    let said = sim(&["run", file.to_str().unwrap()]).expect_failure(2);
    assert!(said.contains("is no scenario") && said.contains("mm1.toml:14:"), "{said}");
    assert!(said.contains("help: do you mean `sleeps`?"), "{said}");
    let none = sim(&["run", "no-such-file.toml"]).expect_failure(2);
    assert!(none.contains("cannot read no-such-file.toml"), "{none}");
}

#[test]
fn the_orbs_machines_agree_with_the_queues() {
    let folder = tempfile::tempdir().unwrap();
    let shorter =
        [("\"1000 s\"", "\"500 ms\""), ("\"10 s\"", "\"100 ms\""), ("min = 4, max = 4", "min = 2, max = 2")];
    let file = shortened("mm1.toml", &shorter, folder.path());
    let [queues, machines] = ["L0", "L1"].map(|level| experiments_at(level, &file, folder.path()));
    assert_eq!((queues.len(), machines.len()), (1, 1));
    assert!(mean(&queues[0], 0, "throughput_per_s") > 800.0);
    assert_eq!(queues[0]["classes"], machines[0]["classes"]);
    let cached = example("minorb-case-3.toml");
    let said = sim(&["run", "--level", "l1", cached.to_str().unwrap()]).expect_failure(1);
    assert!(said.contains("caches are simulated at L0;"), "{said}");
}

#[test]
fn programs_agree_with_the_queues() {
    assert!(programs_of("ironorb-programs").join("ironorb-programs").is_file());
    let folder = tempfile::tempdir().unwrap();
    let shorter =
        [("\"1000 s\"", "\"500 ms\""), ("\"10 s\"", "\"100 ms\""), ("min = 4, max = 4", "min = 2, max = 2")];
    let file = shortened("mm1.toml", &shorter, folder.path());
    let [queues, programs, again] =
        ["L0", "L2", "L2"].map(|level| experiments_at(level, &file, folder.path()));
    assert!(mean(&queues[0], 0, "throughput_per_s") > 800.0);
    assert_eq!(queues[0]["classes"], programs[0]["classes"]);
    assert_eq!(programs, again, "equal seeds give equal runs, digests included");
    let cached = example("minorb-case-3.toml");
    let said = sim(&["run", "--level", "L2", cached.to_str().unwrap()]).expect_failure(1);
    assert!(said.contains("`cache` is simulated at L0"), "{said}");
}

#[test]
fn without_the_program_of_level_l2_a_command_builds_it() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("ironorb");
    // A copy takes as long as it is large, and a link cannot leave its file system.
    fs::hard_link(ironorb(), &alone).or_else(|_| fs::copy(ironorb(), &alone).map(drop)).unwrap();
    let mut command = std::process::Command::new(alone);
    command.args(["sim", "run", "--level", "L2"]).arg(example("mm1.toml")).env("PATH", folder.path());
    let said = done(&command.output().unwrap()).expect_failure(1);
    assert!(said.contains("needs the program ironorb-programs"), "{said}");
    assert!(said.contains("help: this command builds and installs it: cargo install --path"), "{said}");
}
