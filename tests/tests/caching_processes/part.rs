//! What this program does as a process of a test.

use std::path::PathBuf;
use std::time::Duration;

use ironorb::cache::{Cell, CellRef, ReadOptions, Source};
use ironorb::poa::{IdAssignment, Lifespan, PoaPolicies};
use ironorb::{Orb, TypedRef as _};
use ironorb_tests::stamps::{Stamp, StampRef, StampState};
use rustix::process::Signal;

use crate::logs::{Log, Outcome, Read, Write, now, writes};
use crate::{forked, unread};

/// The variables that make a process a part of a test: what it is, and what it has to know.
pub(crate) const PART: &str = "IRONORB_TEST_PART";
pub(crate) const FOLDER: &str = "IRONORB_TEST_FOLDER";
pub(crate) const ADDRESS: &str = "IRONORB_TEST_ADDRESS";
pub(crate) const PUBLISHED: &str = "IRONORB_TEST_PUBLISHED";
pub(crate) const NAME: &str = "IRONORB_TEST_NAME";
pub(crate) const TIMEOUT_MS: &str = "IRONORB_TEST_TIMEOUT_MS";

/// The files in the folder of a test.
pub(crate) const WRITES: &str = "writes";
pub(crate) const REFERENCE: &str = "reference";
/// With a client's name behind it, a file that tells the client to fork, and the name of the child.
pub(crate) const FORK: &str = "fork-";

/// How stale a value may be for the clients of these tests.
pub(crate) const LAG: Duration = Duration::from_millis(20);

/// The pause between two writes, and between two reads.
const PAUSE: Duration = Duration::from_micros(300);

/// Plays the part that the environment names, if it names one.
pub(crate) fn play() {
    match std::env::var(PART).as_deref() {
        Ok("server") => serve(),
        Ok("client") => read(),
        Ok("forker") => forked::fork_and_call(&folder()),
        Ok("holder") => unread::hold(&folder()),
        _ => {}
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap()
}

fn folder() -> PathBuf {
    variable(FOLDER).into()
}

struct Servant(Cell<StampState>);

impl Stamp for Servant {
    fn cell(&self) -> CellRef<'_, StampState> {
        (&self.0).into()
    }
}

/// Serves one object, and writes its state until it is killed.
fn serve() {
    let path = folder().join(WRITES);
    // A write that the last life did not live to note has a number, too.
    let first = writes(&path).last().map_or(1, |write| write.number + 1_000);
    let mut log = Log::append_to(&path);
    let begun = now().0;
    let orb = Orb::builder()
        .endpoint(&format!("iiop://{}", variable(ADDRESS)))
        .unwrap()
        .publish(&variable(PUBLISHED))
        .server_id("stamps")
        .status(true)
        .build()
        .unwrap();
    let policies = PoaPolicies {
        lifespan: Lifespan::Persistent,
        id_assignment: IdAssignment::User,
        ..PoaPolicies::default()
    };
    let poa = orb.root_poa().create_poa("stamps", None, policies).unwrap();
    let cell = Cell::new(StampState { number: first, written_at: begun });
    let stamp: StampRef = poa.activate_with_id("one", Servant(cell.clone())).unwrap();
    log.wrote(Write { number: first, begun, done: now().0 });
    let written = folder().join("reference-written");
    std::fs::write(&written, stamp.object().to_ior_string()).unwrap();
    std::fs::rename(written, folder().join(REFERENCE)).unwrap();
    for number in first + 1.. {
        std::thread::sleep(PAUSE);
        let begun = now().0;
        cell.update(|mut state| {
            state.set_number(number);
            state.set_written_at(begun);
        });
        log.wrote(Write { number, begun, done: now().0 });
    }
}

/// Reads until it is killed. Every fourth read asks no server.
fn read() {
    let reference = std::fs::read_to_string(folder().join(REFERENCE)).unwrap();
    let timeout: u64 = variable(TIMEOUT_MS).parse().unwrap();
    let timeout = (timeout > 0).then(|| Duration::from_millis(timeout));
    let resolve = || -> StampRef {
        let orb = Orb::builder().no_endpoint().call_timeout(timeout).build().unwrap();
        orb.string_to_object(&reference).unwrap().narrow_unchecked()
    };
    let stamp = resolve();
    let mut name = variable(NAME);
    while let Some(child) = read_until_told_to_fork(&stamp, &name) {
        if fork::fork().unwrap().is_child() {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
            name = child;
            if name.ends_with("own-orb") {
                return drop(read_until_told_to_fork(&resolve(), &name));
            }
        }
    }
}

/// Reads until it is killed, or until a file tells the name of a child.
fn read_until_told_to_fork(stamp: &StampRef, name: &str) -> Option<String> {
    let mut log = Log::append_to(&folder().join(name));
    let told = folder().join(format!("{FORK}{name}"));
    let options = ReadOptions::new().lag(LAG);
    for count in 0u64.. {
        if count % 16 == 0
            && let Ok(child) = std::fs::read_to_string(&told)
        {
            std::fs::remove_file(told).unwrap();
            return Some(child);
        }
        let is_held_only = count % 4 == 3;
        let from = now().0;
        let read = stamp.cached_state(&if is_held_only { options.held_only() } else { options });
        let to = now().0;
        let outcome = match read {
            Ok(seen) => Outcome::Value {
                number: seen.value.number,
                written_at: seen.value.written_at,
                is_held: seen.source == Source::Cache,
            },
            Err(_) if is_held_only => Outcome::NotHeld,
            Err(_) => Outcome::Failed,
        };
        log.read(Read { from, to, outcome });
        std::thread::sleep(PAUSE);
    }
    None
}
