//! `ironorb sim run --pcapng` and `--chrome`: one run, as packets and as spans of time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ironorb_tests::command::{Done, run};
use serde_json::Value;

const SCENARIO: &str = r#"
    span = "100 ms"
    warm_up = "10 ms"
    replications = { min = 2, max = 2 }
    hosts = [{ name = "front", count = 2 }, { name = "back" }]
    link = { latency = "50 us" }
    [[servers]]
    name = "accounts"
    hosts = "back"
    threads = 1
    operations = [
        { name = "open", request_octets = 4000, reply_octets = 10, demand = "200us", calls = [{ call = "ledger.put" }] },
        { name = "note", oneway = true }]
    [[servers]]
    name = "ledger"
    hosts = "back"
    operations = [{ name = "put", reply_octets = 20_000, demand = "100us" }]
    [[classes]]
    name = "tellers"
    hosts = "front"
    clients = 3
    priority = 7
    mix = [{ calls = [{ call = "accounts.open" }, { call = "accounts.note" }] }]
"#;

fn sim_run(folder: &Path, scenario: &str, options: &[&str]) -> Done {
    fs::write(folder.join("bank.toml"), scenario).unwrap();
    let file = folder.join("bank.toml");
    run(["sim", "run", file.to_str().unwrap()].iter().chain(options))
}

/// A packet: its time, its connection, how many messages begin there, its source and destination.
struct Packet {
    at: f64,
    stream: u32,
    messages: usize,
    ends: String,
}

/// Has tshark read a capture. Nothing may be malformed.
fn packets(file: &Path) -> Vec<Packet> {
    let fields = [
        "frame.time_epoch",
        "giop.type",
        "ip.src",
        "ip.dst",
        "tcp.stream",
        "_ws.malformed",
        "tcp.analysis.flags",
    ];
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-T", "fields"]).args(fields.iter().flat_map(|field| ["-e", field]));
    tshark.args(["-d", "tcp.port==2809,giop", "-d", "tcp.port==2810,giop", "-r"]).arg(file);
    let output = tshark.output().unwrap_or_else(|e| panic!("tshark, of the Debian package tshark: {e}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [at, kinds, from, to, stream, malformed, remarks] = fields[..] else { panic!("{line}") };
        assert_eq!([malformed, remarks], ["", ""], "{line}");
        let messages = kinds.split(',').filter(|kind| !kind.is_empty()).count();
        let (at, stream) = (at.parse().unwrap(), stream.parse().unwrap());
        Packet { at, stream, messages, ends: format!("{from} {to}") }
    };
    String::from_utf8(output.stdout).unwrap().lines().map(read).collect()
}

fn text_of(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn path(folder: &Path, name: &str) -> String {
    let path: PathBuf = folder.join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn tshark_finds_every_message_of_the_first_run() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, json) = (path(folder.path(), "bank.pcapng"), path(folder.path(), "bank.json"));
    let options = ["--level", "L1", "--seed", "4", "--pcapng", &capture, "--json", &json];
    let text = sim_run(folder.path(), SCENARIO, &options).expect();
    assert!(text.contains("bank.pcapng: the run with seed 4, 0.11 s"), "{text}");
    let report: Value = serde_json::from_str(&text_of(folder.path(), "bank.json")).unwrap();
    let runs = report["experiments"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let packets = packets(Path::new(&capture));
    let found: usize = packets.iter().map(|packet| packet.messages).sum();
    assert_eq!(found as u64, runs[0]["messages"].as_u64().unwrap());
    assert!(found > 1_000, "{found}");
    assert!(packets.iter().all(|packet| (0.0..=0.11).contains(&packet.at)), "times are those of the run");
    let nested = packets.iter().filter(|packet| packet.ends == "10.0.0.3 10.0.0.3").count();
    assert!(nested > 0, "calls within a host are there too");
    let connections: BTreeSet<u32> = packets.iter().map(|packet| packet.stream).collect();
    assert_eq!(connections.len(), 4, "one for each client, and one for nested calls");
    let about = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(&capture).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let comment = about("capinfos", &[]);
    assert!(comment.contains("simulated: level L1, bank, seed 4, commit "), "{comment}");
    let hosts = about("tshark", &["-n", "-q", "-z", "hosts", "-r"]);
    for line in ["10.0.0.1\tfront[0]", "10.0.0.2\tfront[1]", "10.0.0.3\tback"] {
        assert!(hosts.contains(line), "{hosts}");
    }
}

#[test]
fn spans_of_both_levels_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let events = ["L0", "L1"].map(|level| {
        let (trace, json) = (path(folder.path(), "trace.json"), path(folder.path(), "report.json"));
        let options = ["--level", level, "--chrome", &trace, "--json", &json];
        let text = sim_run(folder.path(), SCENARIO, &options).expect();
        assert!(text.contains("trace.json: the run with seed 1, 0.11 s"), "{text}");
        let report: Value = serde_json::from_str(&text_of(folder.path(), "report.json")).unwrap();
        let events: Vec<Value> = serde_json::from_str(&text_of(folder.path(), "trace.json")).unwrap();
        let calls = events.iter().filter(|event| event["ph"] == "B" && event["cat"] == "call").count();
        assert_eq!(calls as u64, report["experiments"][0]["runs"][0]["calls"].as_u64().unwrap());
        let labels = events.iter().filter(|event| event["name"] == "process_labels");
        let labels: Vec<&str> = labels.map(|event| event["args"]["labels"].as_str().unwrap()).collect();
        assert!(
            labels.iter().all(|it| it.starts_with(&format!("simulated: level {level}, bank"))),
            "{labels:?}"
        );
        let mut others: Vec<String> =
            events.iter().filter(|it| it["name"] != "process_labels").map(Value::to_string).collect();
        others.sort();
        others
    });
    assert_eq!(events[0], events[1]);
}

#[test]
fn files_do_not_grow_beyond_their_bound() {
    let folder = tempfile::tempdir().unwrap();
    let capture = path(folder.path(), "bank.pcapng");
    let options = ["--level", "L1", "--pcapng", &capture, "--records-max", "1"];
    let text = sim_run(folder.path(), SCENARIO, &options).expect();
    let line = text.lines().find(|line| line.contains("bank.pcapng")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("with seed 1 until 0.0") && line.contains("see `--records-max`"), "{line}");
    let octets = fs::metadata(&capture).unwrap().len();
    assert!((900_000..=1_000_000).contains(&octets), "{octets}");
    assert!(packets(Path::new(&capture)).len() > 500);
}

#[test]
fn what_cannot_be_written_down_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "out");
    let said = sim_run(folder.path(), SCENARIO, &["--pcapng", &file]).expect_failure(2);
    assert!(said.contains("level L0 sends no octets") && said.contains("help: add `--level L1`"), "{said}");
    let sweep = format!("{SCENARIO}\n[sweep]\n\"classes.tellers.clients\" = [1, 2]\n");
    let said = sim_run(folder.path(), &sweep, &["--chrome", &file]).expect_failure(2);
    assert!(said.contains("has 2 scenarios, and a record is that of one run"), "{said}");
    assert!(said.contains("`--scenario`: 'bank [clients=1]', 'bank [clients=2]'"), "{said}");
    assert!(!Path::new(&file).exists());
    let one = ["--chrome", &file, "--scenario", "bank [clients=2]"];
    let text = sim_run(folder.path(), &sweep, &one).expect();
    assert!(text.contains("bank [clients=2]") && !text.contains("clients=1"), "{text}");
    assert!(text_of(folder.path(), "out").contains("bank [clients=2]"));
    let said = sim_run(folder.path(), SCENARIO, &["--chrome", "/no/such/folder/file"]).expect_failure(1);
    assert!(said.contains("cannot write /no/such/folder/file"), "{said}");
    let said = sim_run(folder.path(), &sweep, &["--scenario", "bank"]).expect_failure(2);
    assert!(said.contains("has no such scenario"), "{said}");
}

#[test]
fn a_run_that_stands_still_leaves_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    // Its only thread calls for a thread.
    let circle = r#"
        span = "1 s"
        hosts = [{ name = "a" }, { name = "b" }]
        [[servers]]
        name = "one"
        hosts = "a"
        threads = 1
        operations = [{ name = "first", calls = [{ call = "two.second" }] }, { name = "third", demand = "1ms" }]
        [[servers]]
        name = "two"
        hosts = "b"
        operations = [{ name = "second", calls = [{ call = "one.third" }] }]
        [[classes]]
        name = "c"
        hosts = "b"
        clients = 1
        mix = [{ calls = [{ call = "one.first" }] }]
    "#;
    let trace = path(folder.path(), "trace.json");
    let said = sim_run(folder.path(), circle, &["--chrome", &trace]).expect_failure(1);
    assert!(said.contains("nothing can happen any more") && said.contains("trace.json: "), "{said}");
    let events: Vec<Value> = serde_json::from_str(&text_of(folder.path(), "trace.json")).unwrap();
    let waits = events.iter().find(|event| event["ph"] == "b").unwrap();
    assert_eq!((&waits["name"], &waits["cat"]), (&"one.third".into(), &"queue".into()));
}
