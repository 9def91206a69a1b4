//! Children of a fork. They have the memory and the sockets of their parents, and must not use these connections.

use std::path::Path;

use ironorb::poa::{IdAssignment, PoaPolicies};
use ironorb::{Orb, SystemException, TypedRef as _};
use ironorb_tests::cached::{Meter as _, MeterAsync as _, MeterRef};
use ironorb_tests::{Counting, eventually};
use rustix::process::Signal;

use crate::site::Part;

/// The files of the test: the reference, what the child's calls gave, and how often the parent has called since.
const REFERENCE: &str = "meter";
const CHILD: &str = "child";
const PARENT: &str = "parent";

/// Calls, forks, and goes on calling until it is killed.
pub(crate) fn fork_and_call(folder: &Path) {
    let reference = std::fs::read_to_string(folder.join(REFERENCE)).unwrap();
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let meter: MeterRef = orb.string_to_object(&reference).unwrap().narrow_unchecked();
    assert_eq!(meter.place().unwrap(), "cellar");
    // It holds the value now.
    (0..3).for_each(|_| assert_eq!(meter.value().unwrap(), 0));
    if fork::fork().unwrap().is_child() {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
        let told = outcomes_in_child(&reference, orb, meter);
        write(&folder.join(CHILD), &told.join("\n"));
        std::process::exit(0);
    }
    for calls in 1_u32.. {
        assert_eq!(meter.place().unwrap(), "cellar");
        meter.add(0).unwrap();
        write(&folder.join(PARENT), &calls.to_string());
    }
}

/// What calls give in the child: those by its parent's ORB, and that by its own.
fn outcomes_in_child(reference: &str, orb: Orb, meter: MeterRef) -> Vec<String> {
    let kind = |e: SystemException| format!("{:?}", e.kind);
    let by_parents: Vec<Result<(), SystemException>> = vec![
        meter.place().map(drop),
        meter.add(1),
        meter.add_later(1),
        meter.place_async().wait().map(drop),
        meter.value().map(drop),
        meter.object().non_existent().map(drop),
        std::thread::scope(|scope| scope.spawn(|| meter.place().map(drop)).join().unwrap()),
        orb.shutdown(false),
    ];
    // This closes nothing of the parent's.
    drop((meter, orb));
    let own = Orb::builder().no_endpoint().build().unwrap();
    let meter: MeterRef = own.string_to_object(reference).unwrap().narrow_unchecked();
    let by_own = meter.place().map_err(kind);
    let by_parents = by_parents.into_iter().map(|it| it.map_or_else(kind, |()| "carried out".to_owned()));
    by_parents.chain([format!("{by_own:?}")]).collect()
}

fn write(path: &Path, text: &str) {
    let written = path.with_extension("written");
    std::fs::write(&written, text).unwrap();
    std::fs::rename(written, path).unwrap();
}

#[test]
fn a_child_makes_no_calls_over_its_parents_connections() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let policies = PoaPolicies { id_assignment: IdAssignment::User, ..PoaPolicies::default() };
    let poa = server.root_poa().create_poa("meters", None, policies).unwrap();
    let counting = Counting::default();
    let meter: MeterRef = poa.activate_with_id("one", counting).unwrap();
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join(REFERENCE), &meter.object().to_ior_string());
    let parent = Part::start("forker", &folder.path().join(PARENT), &[]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name));
    eventually("the child has called", || read(CHILD).is_ok());
    let told = read(CHILD).unwrap();
    let told: Vec<&str> = told.lines().collect();
    let (by_own, by_parents) = told.split_last().unwrap();
    assert!(by_parents.iter().all(|outcome| *outcome == "BadInvOrder"), "{told:?}");
    assert_eq!(*by_own, "Ok(\"cellar\")");
    assert_eq!(meter.value().unwrap(), 0, "the child's calls have not come");
    let calls = || read(PARENT).ok().and_then(|calls| calls.parse::<u32>().ok()).unwrap_or(0);
    let before = calls();
    eventually("the parent goes on", || calls() > before + 20);
    drop(parent);
}
