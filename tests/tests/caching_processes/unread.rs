//! Clients that stop, and read none of what the server tells them. Others get theirs, and no write waits beyond a term.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ironorb::cache::{Cell, ReadOptions, Source};
use ironorb::{Orb, SystemException, TypedRef};
use ironorb_tests::cached::{GaugeRef, GaugeState, LeverRef, LeverState, PersonRef, PersonState};
use ironorb_tests::{Holding, Living, eventually};
use tempfile::TempDir;

use crate::site::Part;

const HELD: ReadOptions = ReadOptions::new().held_only();

/// More than the sockets of a process take that does not read.
const LONG: usize = 8 << 20;

/// The files of a test: the references that the process is to hold, and the value that it has read last, once it holds all.
const REFERENCES: &str = "references";
const VALUE: &str = "value";

/// Holds objects until it is killed.
pub(crate) fn hold(folder: &Path) {
    let client = Orb::builder().no_endpoint().build().unwrap();
    let references = std::fs::read_to_string(folder.join(REFERENCES)).unwrap();
    let [gauge, lever, person] = references
        .lines()
        .map(|reference| client.string_to_object(reference).unwrap())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let (gauge, lever) = (gauge.narrow_unchecked::<GaugeRef>(), lever.narrow_unchecked::<LeverRef>());
    let person = person.narrow_unchecked::<PersonRef>();
    let options = ReadOptions::new();
    let read = || -> Result<(i32, bool), SystemException> {
        let value = gauge.value_with(&options)?;
        let sources = [value.source, lever.value_with(&options)?.source, person.name_with(&options)?.source];
        Ok((value.value, sources.iter().all(|source| *source == Source::Cache)))
    };
    let mut told = None;
    loop {
        if let Ok((value, true)) = read()
            && told.replace(value) != Some(value)
        {
            let written = folder.join("value-written");
            std::fs::write(&written, value.to_string()).unwrap();
            std::fs::rename(written, folder.join(VALUE)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A server in this process, and a process that holds its objects.
struct Scene {
    server: Orb,
    gauge: (Cell<GaugeState>, GaugeRef),
    lever: Cell<LeverState>,
    person: Cell<PersonState>,
    holder: Part,
    folder: TempDir,
}

impl Scene {
    fn new() -> Scene {
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
        let server = server.transmit_timeout(Duration::from_secs(40)).build().unwrap();
        let (gauge, of_gauge) = Holding::new(GaugeState { value: 0, text: String::new() });
        let (lever, of_lever) = Holding::new(LeverState { value: 0 });
        let (person, poa) = (Living::default(), server.root_poa());
        let of_person = person.cell.clone();
        let gauge: GaugeRef = poa.activate(gauge).unwrap();
        let lever: LeverRef = poa.activate(lever).unwrap();
        let person: PersonRef = poa.activate(person).unwrap();
        let references = [gauge.object(), lever.object(), person.object()].map(|it| it.to_ior_string());
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(REFERENCES), references.join("\n")).unwrap();
        let holder = Part::start("holder", &folder.path().join(VALUE), &[]);
        let scene =
            Scene { server, gauge: (of_gauge, gauge), lever: of_lever, person: of_person, holder, folder };
        eventually("the process holds all", || scene.value_read() == Some(0));
        scene
    }

    /// What the process has read last.
    fn value_read(&self) -> Option<i32> {
        let path: PathBuf = self.folder.path().join(VALUE);
        std::fs::read_to_string(path).ok()?.parse().ok()
    }

    /// Stops the process, most likely while its probe waits at the server: else the test shows less.
    fn stop(&self) {
        std::thread::sleep(Duration::from_millis(50));
        self.holder.stop();
    }

    /// No connection has been given up yet because its client does not read.
    fn waits_for_readers(&self) -> bool {
        self.server.status().total("readers_cut_off_total") == 0
    }
}

/// One thread of the server answers all probes that wait. It goes on while a connection takes no bytes.
#[test]
fn a_stopped_client_keeps_no_news_from_others() {
    let scene = Scene::new();
    let (cell, local) = &scene.gauge;
    let client = Orb::builder().no_endpoint().build().unwrap();
    let gauge: GaugeRef =
        client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked();
    while gauge.value_with(&ReadOptions::new()).unwrap().source != Source::Cache {}
    scene.stop();
    cell.update(|mut state| state.set_text("x".repeat(LONG)));
    let mut questions = 0;
    for value in 1..=100 {
        cell.update(|mut state| state.set_value(value));
        loop {
            let seen = gauge.value_with(&HELD).or_else(|_| {
                // The client has stopped for longer than the term.
                questions += 1;
                gauge.value_with(&ReadOptions::new())
            });
            if seen.unwrap().value == value {
                break;
            }
            std::thread::yield_now();
        }
        assert!(questions < 10, "at {value}");
    }
    assert!(scene.waits_for_readers());
    scene.holder.go_on();
    eventually("the process reads again", || scene.value_read() == Some(100));
}

/// A write that waits for a client answers the probe of that client itself. It waits until the client's term is over, and not until
/// its connection takes the answer.
#[test]
fn a_write_waits_for_no_connection() {
    let scene = Scene::new();
    scene.stop();
    // Of this the client is told when it asks, or with other news.
    scene.person.update(|mut state| state.set_name("x".repeat(LONG)));
    scene.lever.update(|mut state| state.set_value(1));
    assert!(scene.waits_for_readers());
}
