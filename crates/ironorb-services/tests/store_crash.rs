//! A naming store whose process is killed keeps every acknowledged change, and no part of another.
//!
//! The parent starts this program again as a child. The child binds, rebinds and unbinds in a loop on one
//! store file, and prints what it tries and what was acknowledged. The parent kills the child with SIGKILL
//! after a random number of acknowledgements, opens the store itself and compares. `IRONORB_TEST_SEED=n`
//! repeats a run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use ironorb_services::naming::{
    Bound, ContextId, ContextRef, Limits, Name, NamingService, Reference, Step, Store,
};

mod support;

use support::{Random, seed_from_system};

const STORE_VARIABLE: &str = "IRONORB_TEST_CRASH_STORE";
const SEED_VARIABLE: &str = "IRONORB_TEST_SEED";
const ROUNDS: u64 = 12;

fn main() {
    let seed = std::env::var(SEED_VARIABLE).ok().map(|text| text.parse().expect("the seed is a number"));
    match std::env::var_os(STORE_VARIABLE) {
        Some(path) => work_until_killed(Path::new(&path), seed.expect("the parent gives a seed")),
        None => kill_and_compare(seed.unwrap_or_else(seed_from_system)),
    }
}

/// A change that the child makes. `line` and `parse` carry it to the parent.
#[derive(Clone, Debug, PartialEq)]
enum StoreChange {
    Bind(String, u64),
    Unbind(String),
    MakeContext(String),
}

impl StoreChange {
    /// A random change. Names are few, so that old bindings are often replaced and removed.
    fn any(random: &mut Random) -> StoreChange {
        let name = format!("n{}", random.below(40));
        match random.below(10) {
            0..=5 => StoreChange::Bind(name, random.below(1_000_000)),
            6..=7 => StoreChange::Unbind(name),
            _ => StoreChange::MakeContext(format!("c{}", random.below(20))),
        }
    }

    fn line(&self) -> String {
        match self {
            StoreChange::Bind(name, value) => format!("bind {name} {value}"),
            StoreChange::Unbind(name) => format!("unbind {name}"),
            StoreChange::MakeContext(name) => format!("make {name}"),
        }
    }

    fn parse(line: &str) -> StoreChange {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["bind", name, value] => StoreChange::Bind(name.to_owned(), value.parse().unwrap()),
            ["unbind", name] => StoreChange::Unbind(name.to_owned()),
            ["make", name] => StoreChange::MakeContext(name.to_owned()),
            _ => panic!("the child said {line:?}"),
        }
    }

    /// Runs the change. False when the service refuses it, which must not change anything.
    fn run(&self, service: &NamingService) -> bool {
        let root = ContextId::ROOT;
        match self {
            StoreChange::Bind(name, value) => {
                let object = Reference::new(value.to_string().into_bytes());
                service.rebind(root, &Name::parse(name).unwrap(), object).is_ok()
            }
            StoreChange::Unbind(name) => service.unbind(root, &Name::parse(name).unwrap()).is_ok(),
            StoreChange::MakeContext(name) => {
                service.bind_new_context(root, &Name::parse(name).unwrap()).is_ok()
            }
        }
    }

    fn apply(&self, expected: &mut Bindings) {
        match self {
            StoreChange::Bind(name, value) => drop(expected.insert(name.clone(), Some(*value))),
            StoreChange::Unbind(name) => drop(expected.remove(name)),
            StoreChange::MakeContext(name) => drop(expected.insert(name.clone(), None)),
        }
    }
}

/// The number of the object bound to each name; `None` for a context.
type Bindings = BTreeMap<String, Option<u64>>;

fn work_until_killed(path: &Path, seed: u64) {
    let service = NamingService::new(Store::open(path).unwrap(), Limits::default());
    let mut random = Random(seed);
    let mut out = std::io::stdout().lock();
    loop {
        let change = StoreChange::any(&mut random);
        writeln!(out, "try {}", change.line()).unwrap();
        out.flush().unwrap();
        let verdict = if change.run(&service) { "done" } else { "refused" };
        writeln!(out, "{verdict}").unwrap();
        out.flush().unwrap();
    }
}

fn kill_and_compare(seed: u64) {
    println!("store_crash: {SEED_VARIABLE}={seed}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("naming.db");
    let mut random = Random(seed);
    let mut expected = Bindings::new();
    for round in 0..ROUNDS {
        let kill_after = random.below(60);
        let delay_us = random.below(3_000);
        let in_doubt = run_child(&path, random.below(u64::MAX), kill_after, delay_us, &mut expected);
        let found = read_back(&path);
        let mut also_right = expected.clone();
        if let Some(change) = &in_doubt {
            change.apply(&mut also_right);
        }
        assert!(
            found == expected || found == also_right,
            "seed {seed}, round {round}, in doubt {in_doubt:?}:\nfound    {found:?}\nexpected {expected:?}"
        );
        expected = found;
    }
    assert!(!expected.is_empty(), "seed {seed}: the children were killed too early to show anything");
    println!("store_crash: {ROUNDS} kills survived, {} bindings", expected.len());
}

/// Lets a child work, kills it, and applies the acknowledged changes. The result is the change in progress.
fn run_child(
    path: &Path,
    seed: u64,
    kill_after: u64,
    delay_us: u64,
    expected: &mut Bindings,
) -> Option<StoreChange> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(STORE_VARIABLE, path)
        .env(SEED_VARIABLE, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut tried = None;
    let mut answered = 0;
    let mut killed = false;
    // After the kill the pipe still holds the child's earlier output, and then ends.
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        match line.strip_prefix("try ") {
            Some(change) => tried = Some(StoreChange::parse(change)),
            None => {
                let change = tried.take().expect("an answer follows a try");
                match line.as_str() {
                    "done" => change.apply(expected),
                    "refused" => {}
                    _ => panic!("the child said {line:?}"),
                }
                answered += 1;
            }
        }
        if answered >= kill_after && !killed {
            // The delay waits for nothing. It moves the kill to another step of the commit in progress.
            std::thread::sleep(std::time::Duration::from_micros(delay_us));
            child.kill().unwrap();
            killed = true;
        }
    }
    let status = child.wait().unwrap();
    assert!(killed, "the child ended by itself, {status}");
    tried
}

fn read_back(path: &Path) -> Bindings {
    let service = NamingService::new(Store::open(path).unwrap(), Limits::default());
    let listing = service.list(ContextId::ROOT, u32::MAX).unwrap();
    assert_eq!(listing.iterator, None);
    let mut found = Bindings::new();
    for binding in listing.bindings {
        let text = binding.component.to_string();
        let value = match service.resolve(ContextId::ROOT, &Name::parse(&text).unwrap()).unwrap() {
            Step::Done(Bound::Object(object)) => {
                Some(std::str::from_utf8(object.as_bytes()).unwrap().parse().unwrap())
            }
            // A context and the binding to it are one change.
            Step::Done(Bound::Context(ContextRef::Local(made))) if service.has_context(made).unwrap() => None,
            other => panic!("{text} is bound to {other:?}"),
        };
        found.insert(text, value);
    }
    found
}
