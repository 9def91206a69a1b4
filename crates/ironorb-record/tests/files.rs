//! Where recordings go, and what happens when they cannot.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use ironorb::{BuildError, Orb, TypedRef};
use ironorb_model::record::Recording;
use ironorb_record::{QUEUE_CALLS, Recorder, install};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually};

fn called(client: &Orb, server: &Orb) -> ProbeRef {
    let served: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked()
}

#[test]
fn operators_switch_recording_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    // A path that ends so is a folder, which is made.
    let calls = folder.path().join("calls/");
    let setting = format!("-ORBrecording={}/", calls.display());
    let mut options = vec!["program".to_owned(), setting];
    let client = install(Orb::builder().no_endpoint()).arguments(&mut options).build().unwrap();
    called(&client, &server).ping().unwrap();
    let quiet = install(Orb::builder().no_endpoint()).build().unwrap();
    called(&quiet, &server).ping().unwrap();
    for orb in [client, quiet, server] {
        orb.shutdown(true).unwrap();
    }
    eventually("the call is in the file", || Recording::read_files([&calls]).unwrap().calls.len() == 1);
    let recording = Recording::read_files([&calls]).unwrap();
    let head = &recording.sections[0].head;
    assert_eq!(head.process, std::process::id());
    // As the system lists them, if it has such lists.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    assert!(status.contains(&format!("Cpus_allowed_list:\t{}\n", head.processors)), "{head:?}");
}

#[test]
fn a_setting_without_a_recorder_is_an_error() {
    let e = Orb::builder().no_endpoint().recording("calls.jsonl").build().unwrap_err();
    assert!(matches!(e, BuildError::Io(_)) && e.to_string().contains("ironorb_record::install"), "{e}");
    let e = install(Orb::builder().no_endpoint()).recording("/nowhere/calls.jsonl").build().unwrap_err();
    assert!(e.to_string().contains("/nowhere/calls.jsonl"), "{e}");
}

#[test]
fn a_file_has_one_recorder_at_a_time_and_grows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl");
    let first = Recorder::begin(&file).unwrap();
    let e = Recorder::begin(&file).unwrap_err();
    assert!(e.to_string().contains("another recorder"), "{e}");
    drop(first);
    drop(Recorder::begin(&file).unwrap());
    assert_eq!(Recording::read_files([&file]).unwrap().sections.len(), 2);
    // A folder takes as many as come.
    let paths = [(); 3].map(|()| Recorder::begin(folder.path()).unwrap()).map(|it| it.path().to_owned());
    assert!(paths[0] != paths[1] && paths[1] != paths[2], "{paths:?}");
    assert_eq!(Recording::read_files([folder.path()]).unwrap().sections.len(), 5);
}

/// A recorder that was killed has left half a line.
#[test]
fn a_file_that_is_cut_off_goes_on_in_a_new_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    std::fs::write(&path, "{\"recor").unwrap();
    drop(Recorder::begin(&path).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "{\"recor");
    assert!(lines[1].starts_with("{\"recording\""), "{text}");
}

#[test]
fn a_disk_that_is_full_shows_at_once() {
    let e = Recorder::begin("/dev/full").unwrap_err();
    assert_eq!(e.kind(), std::io::ErrorKind::StorageFull, "{e}");
}

/// The program is not delayed by a disk that takes nothing: what does not fit is counted, here and in the file.
#[test]
fn what_the_disk_does_not_keep_up_with_is_dropped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let begins = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let pipe = BufReader::new(File::open(&pipe).unwrap());
            eventually("all calls have been made", || begins.load(Ordering::SeqCst));
            pipe.lines().map(Result::unwrap).collect::<Vec<_>>()
        });
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let recorder = Recorder::begin(&pipe).unwrap();
        let client = recorder.record(Orb::builder().no_endpoint()).build().unwrap();
        let probe = called(&client, &server);
        let calls = QUEUE_CALLS + 4_000;
        for _ in 0..calls {
            probe.ping().unwrap();
        }
        let totals = recorder.totals();
        begins.store(true, Ordering::SeqCst);
        assert!(totals.dropped > 0 && totals.written < calls as u64, "{totals:?}");
        drop((probe, recorder));
        client.shutdown(true).unwrap();
        drop(client);
        server.shutdown(true).unwrap();
        let lines = reader.join().unwrap();
        let written = lines.iter().filter(|line| line.starts_with("{\"call\"")).count();
        let text = lines.join("\n") + "\n";
        let file = folder.path().join("read.jsonl");
        fs::write(&file, text).unwrap();
        let recording = Recording::read_files([file]).unwrap();
        assert_eq!(written + recording.dropped as usize, calls);
        assert_eq!(recording.dropped, totals.dropped);
        assert!(recording.notes.iter().any(|note| note.contains("were dropped")), "{:?}", recording.notes);
    });
}

/// A program that is killed has its calls in the file, but those of the last moment.
#[test]
fn calls_are_in_the_file_while_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let recorder = Recorder::begin(folder.path()).unwrap();
    let client = recorder.record(Orb::builder().no_endpoint()).build().unwrap();
    let probe = called(&client, &server);
    probe.ping().unwrap();
    let read = || Recording::read_files([folder.path()]).unwrap();
    eventually("the call is in the file", || read().calls.len() == 1);
    assert!(!read().sections[0].is_ended);
    probe.ping().unwrap();
    recorder.flush();
    assert_eq!(read().calls.len(), 2);
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

/// A program that is killed has lost what it recorded in the last 0.2 s, and no more.
#[test]
fn what_is_recorded_comes_to_the_file_while_calls_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl");
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let client = Recorder::begin(&file).unwrap().record(Orb::builder().no_endpoint()).build().unwrap();
    let probe = called(&client, &server);
    // So few that their lines fill no buffer, and so often that the writer is never idle for long.
    let is_written = (0..20).any(|_| {
        probe.ping().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        fs::read_to_string(&file).unwrap().contains("{\"call\"")
    });
    assert!(is_written);
    drop(probe);
    for orb in [client, server] {
        orb.shutdown(true).unwrap();
    }
}
