//! `ironorb record`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use ironorb::{Orb, TypedRef as _};
use ironorb_model::record::{Call, Head, Outcome, RecordWriter, Recording, WorkloadOptions, workload};
use ironorb_model::scenario::{Arrivals, Spread};
use ironorb_tests::command::{ironorb, run};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually};
use rustix::process::{Pid, Signal, kill_process};

fn server() -> (Orb, String) {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    server.bind_key("Probe", probe.object()).unwrap();
    let address = server.published_addresses()[0].clone();
    (server, address)
}

/// A bridge before a server that records nothing itself: two clients, one after the other.
#[test]
fn a_bridge_records_the_calls_that_it_passes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl");
    let (server, address) = server();
    let mut bridge = Command::new(ironorb())
        .args(["record", "--listen", "iiop://127.0.0.1:0", "--bodies", "--to", &address, "--output"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), format!("recording to {}", file.display()));
    let ready = lines.next().unwrap();
    let at = ready.strip_prefix("ready ").unwrap();
    for client in 0..2 {
        let orb = Orb::builder().no_endpoint().build().unwrap();
        let object = orb.string_to_object(&format!("corbaloc::{at}/Probe")).unwrap();
        let probe: ProbeRef = object.narrow_unchecked();
        assert_eq!(probe.add(20, 22).unwrap(), 42);
        assert_eq!(probe.echo("four").unwrap(), "four");
        probe.refuse("no").unwrap_err();
        if client == 1 {
            probe.tick().unwrap();
        }
        orb.shutdown(true).unwrap();
    }
    // The oneway is recorded when it has been passed on.
    eventually("the server has the oneway", || {
        let orb = Orb::builder().no_endpoint().build().unwrap();
        orb.resolve::<ProbeRef>(&format!("corbaloc::{address}/Probe")).unwrap().ticks().unwrap() == 1
    });
    kill_process(Pid::from_raw(bridge.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    let mut said = String::new();
    bridge.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(bridge.wait().unwrap().success() && said.ends_with("7 calls recorded, 0 dropped\n"), "{said}");

    let recording = Recording::read_files([&file]).unwrap();
    assert!(recording.sections[0].head.bridge && recording.notes.is_empty(), "{:?}", recording.notes);
    let name = |call: &Call| recording.operations[call.operation].name.clone();
    let shape = |call: &Call| (name(call), call.request_octets, call.reply_octets);
    let mut shapes: Vec<_> = recording.calls.iter().map(shape).collect();
    shapes.sort();
    let twice = |name: &str, request, reply| [(); 2].map(|()| (name.to_owned(), request, reply));
    let tick = ("tick".to_owned(), 0, 0);
    assert_eq!(
        shapes,
        [&twice("add", 8, 4)[..], &twice("echo", 9, 9), &twice("refuse", 7, 35), &[tick]].concat()
    );
    assert!(recording.calls.iter().all(|call| recording.server_name(call.server) == address));
    // Each client's connection is a thread.
    let threads: std::collections::BTreeSet<_> =
        recording.calls.iter().map(|it| it.client.unwrap()).collect();
    assert_eq!(threads.len(), 2);
    let find = |wanted: &str| recording.calls.iter().find(|call| name(call) == wanted).unwrap();
    assert_eq!(find("echo").bodies, Some(("05000000666f757200".to_owned(), "05000000666f757200".to_owned())));
    assert_eq!(find("refuse").outcome, Outcome::UserException("IDL:testing/Refused:1.0".to_owned()));
    assert_eq!(find("tick").outcome, Outcome::Oneway);
    let made = workload(&recording, &WorkloadOptions::default());
    let begins = made.scenario.classes.iter().map(|class| match &class.arrivals {
        Arrivals::Trace(begins) => begins.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(begins.sum::<usize>(), 7);
    let operations = &made.scenario.servers[0].operations;
    assert!(
        operations.iter().all(|it| it.demand != Spread::Fixed(std::time::Duration::ZERO)),
        "{operations:?}"
    );

    let toml = folder.path().join("recorded.toml");
    run(["record", "scenario", file.to_str().unwrap(), "--output", toml.to_str().unwrap()]).expect();
    let simulated = run(["sim", "run", toml.to_str().unwrap()]).expect();
    assert!(simulated.contains("level L0") && simulated.contains("refuse"), "{simulated}");

    let trace = folder.path().join("trace.json");
    let shown = run(["record", "show", file.to_str().unwrap(), "--chrome", trace.to_str().unwrap()]).expect();
    assert!(shown.contains("7 calls, 0 of them nested, by 1 programs; 0 dropped"), "{shown}");
    let row = shown.lines().find(|line| line.contains(" refuse ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..6], [&address, "refuse", "2", "2", "7", "35"]);
    let events: Vec<serde_json::Value> = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    assert_eq!(events.iter().filter(|event| event["ph"] == "X" || event["ph"] == "b").count(), 7);
    server.shutdown(true).unwrap();
}

/// Any command of `ironorb` records, if its operators say so.
#[test]
fn commands_record_by_the_setting() {
    let folder = tempfile::tempdir().unwrap();
    let (server, address) = server();
    let done = Command::new(ironorb())
        .args(["call", &format!("corbaloc::{address}/Probe"), "echo", "four", "--idl"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/idl/probe.idl"))
        .env("IRONORB_RECORDING", folder.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let recording = Recording::read_files([folder.path()]).unwrap();
    let call = recording.calls.iter().find(|it| recording.operations[it.operation].name == "echo").unwrap();
    assert_eq!(
        (call.request_octets, call.reply_octets, recording.server_name(call.server)),
        (9, 9, &address[..])
    );
    server.shutdown(true).unwrap();
}

/// A server that is told to end has recorded what it served.
#[test]
fn servers_end_their_recordings_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("front.jsonl");
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/probe.idl");
    let mut mock = Command::new(ironorb())
        .args(["serve-mock", idl, "--listen", "iiop://127.0.0.1:0"])
        .env("IRONORB_RECORDING", &file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(mock.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| Some(line.strip_prefix("ready ")?.to_owned())).unwrap();
    // What it prints of calls is read.
    let printed = std::thread::spawn(move || lines.count());
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let object = orb.string_to_object(&format!("corbaloc::1.2@{address}/Probe")).unwrap();
    let probe: ProbeRef = object.narrow_unchecked();
    for _ in 0..50 {
        probe.ping().unwrap();
    }
    kill_process(Pid::from_raw(mock.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(mock.wait().unwrap().success());
    printed.join().unwrap();
    let recording = Recording::read_files([&file]).unwrap();
    assert_eq!((recording.calls.len(), &recording.notes[..]), (50, &[][..]));
    orb.shutdown(true).unwrap();
}

#[test]
fn mistakes_are_reported() {
    let failure = |args: &[&str], code: i32| run([&["record"], args].concat()).expect_failure(code);
    assert!(failure(&["--to", "nowhere"], 2).contains("HOST:PORT"));
    assert!(failure(&["--output", "calls.jsonl"], 2).contains("TARGET"));
    let nowhere = failure(&["--to", "a:1", "--output", "/nowhere/calls.jsonl"], 1);
    assert!(nowhere.contains("cannot record to /nowhere/calls.jsonl"), "{nowhere}");
    assert!(failure(&["show", "/nowhere"], 1).contains("/nowhere: No such file"));
    let here = failure(&["show", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], 1);
    assert!(here.contains("Cargo.toml:1: this is no line of a recording"), "{here}");
    assert!(failure(&["show", env!("CARGO_MANIFEST_DIR")], 1).contains("no recording"));
}

#[test]
fn outputs_overwrite_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls.jsonl");
    RecordWriter::begin(fs::File::create(&calls).unwrap(), &Head::default()).unwrap();
    let before = fs::read(&calls).unwrap();
    let (file, folder) = (calls.to_str().unwrap(), folder.path().to_str().unwrap());
    for arguments in
        [["show", file, "--chrome", file], ["show", folder, "--chrome", file], ["scenario", file, "-o", file]]
    {
        let said = run([&["record"][..], &arguments].concat()).expect_failure(2);
        assert!(said.contains("would be overwritten"), "{said}");
    }
    assert_eq!(fs::read(&calls).unwrap(), before);
}
