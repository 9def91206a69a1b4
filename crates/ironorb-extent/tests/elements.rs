//! Elements in files, by what the crate promises.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use ironorb_extent::{Durability, ElementError, Elements, ExtentError, FileOptions};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn shapes_that_do_not_fit_are_refused_before_memory_is_taken() {
    let many = Elements::in_memory(u64::MAX, |_| 0_u64).unwrap_err();
    assert!(matches!(many, ExtentError::TooManyElements { .. }), "{many}");
    let large = Elements::in_memory(1 << 45, |_| 0_u64).unwrap_err();
    assert!(matches!(large, ExtentError::NotEnoughMemory { .. }), "{large}");
    let unfit = Elements::in_memory(1, |_| [0_u64; 513]).unwrap_err();
    assert!(matches!(unfit, ExtentError::UnfitState { bytes: 4104, .. }), "{unfit}");
    assert_eq!(Elements::in_memory(0, |_| 0_u64).unwrap().indices().count(), 0);
}

#[test]
fn a_file_keeps_its_elements_and_belongs_to_one_process() {
    let folder = folder();
    for durability in [Durability::None, Durability::Process, Durability::Power] {
        let options = FileOptions::new(folder.path().join(format!("{durability:?}"))).durability(durability);
        let elements = Elements::in_file(&options, 500, |index| [index as u32; 3]).unwrap();
        elements.update(3, |state| state[1] = 77).unwrap();
        elements.update_all(&[9, 4], |states| states.swap(0, 1)).unwrap();
        elements.destroy(5).unwrap();
        let again = Elements::<[u32; 3]>::in_file(&options, 500, |_| unreachable!()).unwrap_err();
        assert!(matches!(again, ExtentError::InUse { .. }), "{again}");
        drop(elements);
        let elements = Elements::<[u32; 3]>::in_file(&options, 500, |_| unreachable!()).unwrap();
        let states = [3, 4, 9, 499].map(|index| elements.read(index, |state| *state).unwrap());
        assert_eq!(states, [[3, 77, 3], [9, 9, 9], [4, 4, 4], [499, 499, 499]]);
        assert!(matches!(elements.generation(5), Err(ElementError::Absent)));
        drop(elements);
        let other = Elements::in_file(&options, 501, |_| [0_u32; 3]).unwrap_err();
        assert!(other.to_string().contains("500 elements, 501"), "{other}");
        let other = Elements::in_file(&options, 500, |_| [0_u64; 3]).unwrap_err();
        assert!(other.to_string().contains("bytes a state"), "{other}");
    }
    let text = folder.path().join("text");
    std::fs::write(&text, "no extent".repeat(1000)).unwrap();
    let no_extent = Elements::in_file(&FileOptions::new(text), 1, |_| 0_u8).unwrap_err();
    assert!(matches!(no_extent, ExtentError::Mismatch { .. }), "{no_extent}");
    let nowhere = Elements::in_file(&FileOptions::new(folder.path().join("a/b")), 1, |_| 0_u8).unwrap_err();
    assert!(matches!(nowhere, ExtentError::Io { .. }), "{nowhere}");
}

#[test]
fn a_disk_without_room_is_an_error_at_once() {
    let folder = folder();
    let path = folder.path().join("large");
    // More than any disk has, and less than a file may be long on some.
    let full = Elements::in_file(&FileOptions::new(&path), 1 << 40, |_| 0_u64).unwrap_err();
    let is_refused = matches!(full, ExtentError::DiskFull { .. } | ExtentError::NotEnoughMemory { .. });
    assert!(is_refused, "{full}");
    assert_eq!(std::fs::metadata(&path).map(|it| it.len()).unwrap_or(0), 0);
}

/// Not a test: what the next one kills.
#[test]
#[ignore = "a process that others start"]
fn a_process_to_be_killed() {
    let Ok(path) = std::env::var("EXTENT_TO_KILL") else { return };
    let durability =
        if std::env::var("EXTENT_POWER").is_ok() { Durability::Power } else { Durability::Process };
    let options = FileOptions::new(path).durability(durability);
    let elements = Elements::in_file(&options, ELEMENTS, |_| [0_u64; WORDS]).expect("it is open");
    println!("open");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let elements = &elements;
            scope.spawn(move || loop_on(elements, thread));
        }
    });
}

/// What threads of that process do, until it is killed. Each has elements of its own, so that as many updates go on as there are
/// threads: `TOGETHER` of them change at once, and the one behind those is made and destroyed. The last elements are of all threads,
/// which move from one to another what those have.
fn loop_on(elements: &Elements<[u64; WORDS]>, thread: u64) -> ! {
    let own: Vec<u64> = (thread * OWN..).take(TOGETHER).collect();
    let made = thread * OWN + TOGETHER as u64;
    // After a kill it may exist. Its state is its generation.
    let next_generation = match elements.generation(made) {
        Ok(generation) => u64::from(generation.0) + 1,
        Err(_) => {
            let generation = elements.create(made, [0; WORDS]).expect("it does not exist");
            u64::from(generation.0) + 1
        }
    };
    elements.destroy(made).expect("it exists");
    for generation in next_generation.. {
        let changed = elements.update_all(&own, |states| {
            let next = [states[0][0] + 1; WORDS];
            states.fill(next);
        });
        changed.expect("they are there");
        elements.create(made, [generation; WORDS]).expect("it was destroyed");
        let (from, to) =
            (SHARED + (thread + generation) % COMMON, SHARED + (thread + generation * 3 + 1) % COMMON);
        if from != to {
            let moved = elements.update_all(&[from, to], |states| {
                states[0].iter_mut().for_each(|word| *word = word.wrapping_sub(1));
                states[1].iter_mut().for_each(|word| *word = word.wrapping_add(1));
            });
            moved.expect("they are there");
        }
        elements.destroy(made).expect("it was made");
    }
    unreachable!("a process does not live so long")
}

/// So many words in a state that a kill is likely to be in the middle of stores.
const WORDS: usize = 512;
const THREADS: u64 = 6;
/// The elements of a thread.
const OWN: u64 = TOGETHER as u64 + 1;
const TOGETHER: usize = 12;
/// Where the elements of all threads begin, and how many those are.
const SHARED: u64 = THREADS * OWN;
const COMMON: u64 = 4;
const ELEMENTS: u64 = SHARED + COMMON;

#[test]
fn a_process_that_is_killed_in_the_middle_of_stores_leaves_no_torn_element() {
    for (durability, kills) in [(Durability::Process, 60), (Durability::Power, 10)] {
        let folder = folder();
        let path: PathBuf = folder.path().join("killed");
        let options = FileOptions::new(&path).durability(durability);
        let mut under_way = vec![0; LANES + 1];
        for kill in 0..kills {
            let mut process = Command::new(std::env::current_exe().expect("this program"));
            process.args(["--exact", "a_process_to_be_killed", "--ignored", "--nocapture"]);
            process.env("EXTENT_TO_KILL", &path).stdout(Stdio::piped());
            if durability == Durability::Power {
                process.env("EXTENT_POWER", "yes");
            }
            let mut process = process.spawn().expect("it starts");
            let mut said = std::io::BufReader::new(process.stdout.take().expect("its words"));
            let mut line = String::new();
            while !line.contains("open") {
                line.clear();
                assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0, "it opens the file");
            }
            std::thread::sleep(Duration::from_micros(500 + 777 * kill % 20_000));
            process.kill().expect("it is killed");
            process.wait().expect("it ends");
            under_way[lanes_in_use(&path)] += 1;
            let elements = Elements::in_file(&options, ELEMENTS, |_| [0_u64; WORDS]).expect("it opens");
            check(&elements, kill);
        }
        println!("{durability:?}: so many kills with 0, 1, … lanes in use: {under_way:?}");
    }
}

/// Checks that each element is whole, and that what changes at once has.
fn check(elements: &Elements<[u64; WORDS]>, kill: u64) {
    let whole = |index: u64| {
        let state = elements.read(index, |state| *state)?;
        assert!(state.iter().all(|word| *word == state[0]), "kill {kill}: element {index} is torn");
        Ok::<u64, ElementError>(state[0])
    };
    for first in (0..SHARED).step_by(OWN as usize) {
        let together: Vec<u64> = (first..).take(TOGETHER).map(|index| whole(index).unwrap()).collect();
        assert!(together.iter().all(|it| *it == together[0]), "kill {kill}: {together:?} at {first}");
        let made = first + TOGETHER as u64;
        match (whole(made), elements.generation(made)) {
            // A process makes it once to learn the generation.
            (Ok(0), Ok(_)) => {}
            (Ok(state), Ok(generation)) => assert_eq!(state, u64::from(generation.0), "kill {kill}"),
            (Err(ElementError::Absent), Err(ElementError::Absent)) => {}
            other => panic!("kill {kill}: {other:?}"),
        }
    }
    let sum = (SHARED..ELEMENTS).fold(0, |sum: u64, index| sum.wrapping_add(whole(index).unwrap()));
    assert_eq!(sum, 0, "kill {kill}: what one element has lost another has");
}

const LANES: usize = 16;

/// How many updates of the file are under way: the words after marks and states.
fn lanes_in_use(path: &std::path::Path) -> usize {
    let bytes = std::fs::read(path).expect("the file");
    let lanes = 4096 + 4096 + (ELEMENTS as usize * WORDS * 8).next_multiple_of(4096);
    bytes[lanes..].chunks_exact(8).take(LANES).filter(|filled| filled.iter().any(|octet| *octet != 0)).count()
}
