//! An interface repository whose process is killed keeps every acknowledged definition, and no part of
//! another.
//!
//! The parent starts this program again as a child. The child creates and destroys definitions in a loop on
//! one store file, and prints what it tries and what was acknowledged. The parent kills the child with
//! SIGKILL after a random number of acknowledgements, opens the store itself and compares.
//! `IRONORB_TEST_SEED=n` repeats a run.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use ironorb::ifr::corba::PrimitiveKind;
use ironorb_services::ifr::{Body, DefinitionNumber, InterfaceRepository, Limits, Member, Record, Store};

mod support;

use support::{Random, seed_from_system};

const STORE_VARIABLE: &str = "IRONORB_TEST_CRASH_STORE";
const SEED_VARIABLE: &str = "IRONORB_TEST_SEED";
const ROUNDS: u64 = 10;

fn main() {
    let seed = std::env::var(SEED_VARIABLE).ok().map(|text| text.parse().expect("the seed is a number"));
    match std::env::var_os(STORE_VARIABLE) {
        Some(path) => work_until_killed(Path::new(&path), seed.expect("the parent gives a seed")),
        None => kill_and_compare(seed.unwrap_or_else(seed_from_system)),
    }
}

fn open(path: &Path) -> InterfaceRepository {
    InterfaceRepository::new(Store::open(path).unwrap(), Limits::default())
}

fn id(name: u64) -> String {
    format!("IDL:S{name}:1.0")
}

/// Creates the struct of this name, with a member of an anonymous type, or destroys it if it exists.
fn toggle(repository: &InterfaceRepository, name: u64) {
    if let Some(number) = repository.lookup_id(&id(name)).unwrap() {
        repository.destroy(number).unwrap();
        return;
    }
    let record = |id: String, name: String, body| Record {
        id,
        name,
        version: "1.0".to_owned(),
        container: DefinitionNumber::REPOSITORY,
        body,
    };
    let element = DefinitionNumber::primitive(PrimitiveKind::PkLong);
    let ty = repository
        .create(&record(String::new(), String::new(), Body::Sequence { bound: 0, element }))
        .unwrap();
    let members = vec![Member { name: "numbers".to_owned(), ty }];
    repository.create(&record(id(name), format!("S{name}"), Body::Struct { members })).unwrap();
}

fn work_until_killed(path: &Path, seed: u64) {
    let repository = open(path);
    let mut random = Random(seed);
    let mut out = std::io::stdout().lock();
    loop {
        let name = random.below(30);
        writeln!(out, "try {name}").unwrap();
        out.flush().unwrap();
        toggle(&repository, name);
        writeln!(out, "done").unwrap();
        out.flush().unwrap();
    }
}

fn kill_and_compare(seed: u64) {
    println!("ifr_crash: {SEED_VARIABLE}={seed}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("definitions.db");
    let mut random = Random(seed);
    let mut expected = BTreeSet::new();
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let kill_after = 1 + random.below(40);
        let (in_doubt, done) = run_child(&path, random.below(u64::MAX), kill_after, &mut expected);
        acknowledged += done;
        let repository = open(&path);
        let found: BTreeSet<u64> =
            (0..30).filter(|&name| repository.lookup_id(&id(name)).unwrap().is_some()).collect();
        let mut also_right = expected.clone();
        if let Some(name) = in_doubt {
            flip(&mut also_right, name);
        }
        assert!(
            found == expected || found == also_right,
            "seed {seed}, round {round}: {found:?}, {expected:?}"
        );
        // Everything that leads to a definition is one change with it.
        let listed = repository.contents(DefinitionNumber::REPOSITORY).unwrap();
        assert_eq!(listed.len(), found.len(), "seed {seed}, round {round}");
        for number in listed {
            let name = repository.absolute_name(number).unwrap();
            assert_eq!(repository.lookup(DefinitionNumber::REPOSITORY, &name).unwrap(), Some(number));
            assert_eq!(repository.type_code(number).unwrap().member_count().unwrap(), 1);
        }
        expected = found;
    }
    assert!(acknowledged >= ROUNDS, "seed {seed}: the children were killed too early to show anything");
    println!("ifr_crash: {ROUNDS} kills survived, {acknowledged} changes");
}

/// Lets a child work, kills it, and applies the acknowledged changes. The first result is the change in
/// progress.
fn run_child(path: &Path, seed: u64, kill_after: u64, expected: &mut BTreeSet<u64>) -> (Option<u64>, u64) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(STORE_VARIABLE, path)
        .env(SEED_VARIABLE, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut tried, mut answered, mut killed) = (None, 0, false);
    // After the kill the pipe still holds the child's earlier output, and then ends.
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        match line.strip_prefix("try ") {
            Some(name) => tried = Some(name.parse().unwrap()),
            None => {
                flip(expected, tried.take().expect("an answer follows a try"));
                answered += 1;
            }
        }
        if answered >= kill_after && !killed {
            child.kill().unwrap();
            killed = true;
        }
    }
    let status = child.wait().unwrap();
    assert!(killed, "the child ended by itself, {status}");
    (tried, answered)
}

fn flip(names: &mut BTreeSet<u64>, name: u64) {
    if !names.remove(&name) {
        names.insert(name);
    }
}
