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
        for _thread in 0..2 {
            let elements = &elements;
            scope.spawn(move || {
                loop {
                    let all: Vec<u64> = (0..ELEMENTS).collect();
                    let updated = elements.update_all(&all, |states| {
                        let next = [states[0][0] + 1; WORDS];
                        states.fill(next);
                    });
                    updated.expect("they are there");
                }
            });
        }
    });
}

const ELEMENTS: u64 = 16;
/// So many that a kill is likely to be in the middle of stores.
const WORDS: usize = 512;

#[test]
fn a_process_that_is_killed_in_the_middle_of_stores_leaves_no_torn_element() {
    for (durability, kills) in [(Durability::Process, 60), (Durability::Power, 10)] {
        let folder = folder();
        let path: PathBuf = folder.path().join("killed");
        let options = FileOptions::new(&path).durability(durability);
        let mut finished = 0;
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
            finished += lanes_in_use(&path);
            let elements = Elements::in_file(&options, ELEMENTS, |_| [0_u64; WORDS]).expect("it opens");
            let first = elements.read(0, |state| state[0]).unwrap();
            for index in 0..ELEMENTS {
                let state = elements.read(index, |state| *state).unwrap();
                assert!(state.iter().all(|word| *word == first), "kill {kill}: element {index} is torn");
            }
        }
        println!("{durability:?}: {finished} of {kills} kills were in the middle of an update");
    }
}

/// Whether the file has an update under way: the words after marks and states.
fn lanes_in_use(path: &std::path::Path) -> usize {
    let bytes = std::fs::read(path).expect("the file");
    let lanes = 4096 + 4096 + (ELEMENTS as usize * WORDS * 8).next_multiple_of(4096);
    usize::from(bytes[lanes..lanes + 128].iter().any(|octet| *octet != 0))
}
