use super::*;
#[cfg(not(miri))]
use crate::lanes::LANES;

/// Fewer where every step is interpreted.
const ROUNDS: u64 = if cfg!(miri) { 20 } else { 2_000 };

#[test]
fn elements_are_read_updated_destroyed_and_made_anew() {
    let elements = Elements::in_memory(1000, |index| index * 2).unwrap();
    assert_eq!((elements.len(), elements.bytes()), (1000, 16_000));
    assert_eq!(elements.read(7, |state| *state).unwrap(), 14);
    assert_eq!(elements.update(7, |state| std::mem::replace(state, 5)).unwrap(), 14);
    assert!(matches!(elements.create(7, 1), Err(ElementError::Exists)));
    assert_eq!(elements.generation(7).unwrap(), Generation(0));
    elements.destroy(7).unwrap();
    for gone in [elements.read(7, |_| ()), elements.update(7, |_| ()), elements.destroy(7)] {
        assert!(matches!(gone, Err(ElementError::Absent)));
    }
    assert_eq!(elements.indices().count(), 999);
    assert_eq!(elements.create(7, 8).unwrap(), Generation(1));
    for (generation, is_there) in [(None, true), (Some(Generation(1)), true), (Some(Generation(0)), false)] {
        let id = ElementId { index: 7, generation };
        assert_eq!(elements.read(id, |_| ()).is_ok(), is_there);
        assert_eq!(elements.update(id, |_| ()).is_ok(), is_there);
        assert_eq!(elements.generation(id).is_ok(), is_there);
    }
    assert_eq!(elements.read(7, |state| *state).unwrap(), 8);
    assert_eq!(elements.indices().take(9).last(), Some(8));
    for outside in [1000, u64::MAX] {
        assert!(matches!(elements.read(outside, |_| ()), Err(ElementError::OutOfRange { .. })));
    }
}

#[test]
fn an_update_that_panics_changes_nothing_and_a_thread_does_not_wait_for_itself() {
    let elements = Elements::in_memory(2, |_| 1_u32).unwrap();
    let panicked = std::panic::catch_unwind(|| {
        elements.update(0, |state| {
            *state = 9;
            panic!("in the middle");
        })
    });
    assert!(panicked.is_err());
    assert_eq!(elements.read(0, |state| *state).unwrap(), 1);
    let within = elements.update(0, |_| {
        let (own, other) = (elements.read(0, |_| ()), elements.update(1, |state| *state = 3));
        matches!(own, Err(ElementError::Reentered)) && other.is_ok()
    });
    assert!(within.unwrap());
    assert_eq!(elements.read(1, |state| *state).unwrap(), 3);
}

/// Threads use the same elements in a different order, each from within a closure. At least one is told so, and the others go on.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn threads_that_would_wait_in_a_circle_are_told() {
    use std::sync::{Barrier, mpsc};

    for threads in [2_u64, 3] {
        let elements = Elements::in_memory(threads, |_| 0_u32).unwrap();
        let all_have_one = Arc::new(Barrier::new(threads as usize));
        let (says, said) = mpsc::channel();
        for own in 0..threads {
            let (elements, all_have_one, says) = (elements.clone(), all_have_one.clone(), says.clone());
            std::thread::spawn(move || {
                let used = elements.update(own, |state| {
                    *state += 1;
                    all_have_one.wait();
                    elements.update((own + 1) % threads, |state| *state += 10)
                });
                says.send(used.unwrap()).unwrap();
            });
        }
        let hang = std::time::Duration::from_secs(60);
        let used: Vec<_> = (0..threads).map(|_| said.recv_timeout(hang).expect("none hangs")).collect();
        // Of two that close the circle at once the system may tell both.
        let circles = used.iter().filter(|it| matches!(it, Err(ElementError::Circle))).count() as u64;
        assert!(circles >= 1, "{used:?}");
        let all: Vec<u64> = (0..threads).collect();
        let sum = elements.update_all(&all, |states| states.iter().sum::<u32>()).unwrap();
        assert_eq!(u64::from(sum), threads + 10 * (threads - circles), "it has changed nothing");
    }
}

#[test]
fn threads_take_turns_and_several_elements_change_at_once() {
    let elements = Elements::in_memory(8, |_| 100_i64).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let elements = &elements;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let (from, to) = ((thread + round) % 8, (thread * 3 + round * 5 + 1) % 8);
                    if from != to {
                        elements
                            .update_all(&[from, to], |states| {
                                states[0] -= 1;
                                states[1] += 1;
                            })
                            .unwrap();
                    }
                    elements.update(to, |state| *state += 1).unwrap();
                }
            });
        }
    });
    let sum: i64 = (0..8).map(|index| elements.read(index, |state| *state).unwrap()).sum();
    assert_eq!(sum, 800 + 4 * ROUNDS as i64);
    for bad in [&[1, 1][..], &[0; 17]] {
        assert!(matches!(elements.update_all(bad, |_| ()), Err(ElementError::BadSelection { max: 16 })));
    }
}

/// Notes what it is told, and wants no more after a state of 9.
#[derive(Default)]
struct Notes(std::sync::Mutex<Vec<(u64, Option<u32>)>>);

impl Watcher<u32> for Notes {
    fn changed(&self, index: u64, state: Option<&u32>) -> bool {
        self.0.lock().unwrap().push((index, state.copied()));
        state != Some(&9)
    }
}

#[test]
fn a_watcher_is_told_of_the_elements_that_are_watched() {
    let (elements, notes) = (Elements::in_memory(5, |_| 0_u32).unwrap(), Arc::new(Notes::default()));
    assert!(elements.set_watcher(notes.clone()) && !elements.set_watcher(notes.clone()));
    let told = || std::mem::take(&mut *notes.0.lock().unwrap());
    elements.update(1, |state| *state = 3).unwrap();
    assert_eq!(elements.watch(1, |state| *state).unwrap(), 3);
    assert_eq!(told(), []);
    elements.update(1, |state| *state = 4).unwrap();
    elements.update(2, |state| *state = 4).unwrap();
    elements.update_all(&[0, 1], |states| states.fill(5)).unwrap();
    assert_eq!(told(), [(1, Some(4)), (1, Some(5))]);
    elements.update(1, |state| *state = 9).unwrap();
    elements.update(1, |state| *state = 10).unwrap();
    assert_eq!(told(), [(1, Some(9))]);
    elements.watch(1, |_| ()).unwrap();
    elements.destroy(1).unwrap();
    elements.create(1, 7).unwrap();
    elements.update(1, |state| *state = 8).unwrap();
    assert_eq!(told(), [(1, None)]);
    assert!(matches!(elements.watch(9, |_| ()), Err(ElementError::OutOfRange { .. })));
}

/// Not a test: what the next ones start. It ends between the stores of as many updates as `EXTENT_UPDATES` says, each of which has
/// changed the first of its three elements, is to destroy the second, and has the third made anew.
#[test]
#[cfg(not(miri))]
#[ignore = "a process that another test starts"]
fn a_process_that_ends_between_two_stores() {
    let Ok(path) = std::env::var("EXTENT_TO_END") else { return };
    let updates: usize = std::env::var("EXTENT_UPDATES").unwrap().parse().unwrap();
    let elements = Elements::in_file(&FileOptions::new(path), 3 * updates as u64, |_| 1_u64).unwrap();
    for index in (2..elements.len()).step_by(3) {
        elements.destroy(index).unwrap();
    }
    let Some(Journal::Lanes(lanes)) = &elements.0.journal else { panic!("durability is `Process`") };
    let all_are_between = std::sync::Barrier::new(updates);
    let update = |nth: usize| {
        let first = 3 * nth as u64;
        let change = |index: u64, state: u64, next: fn(Mark) -> Mark| {
            let (held, mark) = elements.hold_any(index).unwrap();
            Change::new(held, index, next(mark).0, state)
        };
        let mut changes = [
            change(first, 7 + first, |mark| mark),
            change(first + 1, 0, Mark::absent),
            change(first + 2, 9, Mark::next),
        ];
        lanes.carry_out_in(nth, &mut changes, |changes| {
            elements.0.store(&mut changes[..1]);
            all_are_between.wait();
            std::process::abort();
        });
    };
    let update = &update;
    std::thread::scope(|scope| {
        for nth in 0..updates {
            scope.spawn(move || update(nth));
        }
    });
}

/// As many updates are finished as there are lanes.
#[test]
#[cfg(not(miri))]
fn what_a_process_has_left_under_way_is_finished() {
    for updates in [1, 2, LANES] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("elements");
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "elements::tests::a_process_that_ends_between_two_stores", "--ignored"]);
        process.env("EXTENT_TO_END", &path).env("EXTENT_UPDATES", updates.to_string());
        assert!(!process.stdout(std::process::Stdio::null()).status().unwrap().success(), "it ends by force");
        let count = 3 * updates as u64;
        for _opened in 0..2 {
            let elements = Elements::in_file(&FileOptions::new(&path), count, |_| 0_u64).unwrap();
            for first in (0..count).step_by(3) {
                assert_eq!(elements.read(first, |state| *state).unwrap(), 7 + first);
                assert!(matches!(elements.read(first + 1, |_| ()), Err(ElementError::Absent)));
                assert_eq!(elements.read(first + 2, |state| *state).unwrap(), 9);
                assert_eq!(elements.generation(first + 2).unwrap(), Generation(1));
            }
        }
    }
}

#[test]
#[cfg(not(miri))]
fn an_extent_that_is_not_sound_leaves_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::new(folder.path().join("elements")).durability(Durability::Power);
    let log_bytes = || std::fs::metadata(options.log_path()).unwrap().len();
    let elements = Elements::in_file(&options, 4, |_| 1_u64).unwrap();
    let empty = log_bytes();
    elements.update(2, |state| *state = 7).unwrap();
    // As after a failed write, or an opening that has come to nothing.
    elements.0.is_sound.store(false, Ordering::Relaxed);
    drop(elements);
    assert!(log_bytes() > empty, "whoever opens the file next finishes what is in the log");
    let elements = Elements::in_file(&options, 4, |_| 0_u64).unwrap();
    assert_eq!(elements.read(2, |state| *state).unwrap(), 7);
    drop(elements);
    assert_eq!(log_bytes(), empty);
}

/// A program closes an extent and opens it again, while it starts another program: until that runs it has the file as well.
#[test]
#[cfg(not(miri))]
fn a_closed_file_is_not_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::new(folder.path().join("elements"));
    let elements = Elements::in_file(&options, 4, |_| 1_u64).unwrap();
    let as_a_child_has_it = elements.0.file.as_ref().unwrap().as_a_child_has_it();
    drop(elements);
    drop(Elements::in_file(&options, 4, |_| 1_u64).unwrap());
    drop(as_a_child_has_it);
}

/// Leaves an extent as a process does that is killed after it has set element 2 to this state.
#[cfg(not(miri))]
fn leave_killed(options: &FileOptions, state: u64) {
    let elements = Elements::in_file(options, 4, |_| 1_u64).unwrap();
    elements.update(2, |it| *it = state).unwrap();
    elements.0.is_sound.store(false, Ordering::Relaxed);
}

/// A log beside another file of the same shape would change what it has nothing to do with.
#[test]
#[cfg(not(miri))]
fn a_log_is_of_one_extent() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| FileOptions::new(folder.path().join(name)).durability(Durability::Power);
    let open = |options: &FileOptions| Elements::in_file(options, 4, |_| 1_u64);
    let state = |options: &FileOptions| open(options).unwrap().read(2, |state| *state).unwrap();
    let [one, other, aside] = ["one", "other", "aside"].map(at);
    let names_both = |e: &ExtentError, of: &FileOptions| {
        let told = e.to_string();
        [&of.path, &of.log_path()].iter().all(|path| told.contains(path.to_str().unwrap()))
    };
    leave_killed(&one, 7);
    leave_killed(&other, 9);
    let exchange = || {
        for (from, to) in [(&one, &aside), (&other, &one), (&aside, &other)] {
            std::fs::rename(from.log_path(), to.log_path()).unwrap();
        }
    };
    exchange();
    for of in [&one, &other] {
        let e = open(of).unwrap_err();
        assert!(matches!(e, ExtentError::ForeignLog { .. }) && names_both(&e, of), "{e}");
        let e = open(&of.clone().accept_torn()).unwrap_err();
        assert!(matches!(e, ExtentError::ForeignLog { .. }), "{e}");
    }
    exchange();
    // Without its log an update may be missing. What is refused takes nothing away.
    std::fs::rename(one.log_path(), aside.log_path()).unwrap();
    for _ in 0..2 {
        let e = open(&one).unwrap_err();
        assert!(matches!(e, ExtentError::NoLog { .. }) && names_both(&e, &one), "{e}");
    }
    std::fs::rename(aside.log_path(), one.log_path()).unwrap();
    assert_eq!((state(&one), state(&other)), (7, 9));
    // After an orderly end there is nothing in the log.
    std::fs::remove_file(one.log_path()).unwrap();
    assert_eq!(state(&one), 7);
    leave_killed(&one, 8);
    std::fs::remove_file(one.log_path()).unwrap();
    assert_eq!(state(&one.clone().accept_torn()), 8);
    // A file that is made anew does not take up what the last one left.
    leave_killed(&one, 3);
    std::fs::remove_file(&one.path).unwrap();
    let e = open(&one).unwrap_err();
    assert!(matches!(e, ExtentError::ForeignLog { .. }), "{e}");
    std::fs::remove_file(one.log_path()).unwrap();
    assert_eq!(state(&one), 1);
    std::fs::write(one.log_path(), "no log".repeat(10)).unwrap();
    let e = open(&one).unwrap_err();
    assert!(matches!(e, ExtentError::ForeignLog { .. }), "{e}");
}

/// A process may end while it makes an extent. The next one makes it.
#[test]
#[cfg(not(miri))]
fn an_extent_that_was_being_made_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::new(folder.path().join("elements")).durability(Durability::Power);
    // The log is there before the file says what it is.
    let elements = Elements::in_file(&options, 4, |_| 1_u64).unwrap();
    drop(elements);
    let bytes = std::fs::metadata(&options.path).unwrap().len();
    std::fs::write(&options.path, vec![0; bytes as usize]).unwrap();
    for _life in 0..2 {
        let elements = Elements::in_file(&options, 4, |_| 5_u64).unwrap();
        assert_eq!(elements.read(2, |state| *state).unwrap(), 5);
    }
}

/// Panics when it is told.
struct Panics;

impl Watcher<u32> for Panics {
    fn changed(&self, _: u64, _: Option<&u32>) -> bool {
        panic!("as asked")
    }
}

#[test]
fn a_watcher_that_panics_finds_all_changed() {
    let elements = Elements::in_memory(3, |_| 0_u32).unwrap();
    assert!(elements.set_watcher(Arc::new(Panics)));
    elements.watch(0, |_| ()).unwrap();
    let told = std::panic::catch_unwind(|| elements.update_all(&[0, 1, 2], |states| states.fill(5)));
    assert!(told.is_err());
    assert_eq!([0, 1, 2].map(|index| elements.read(index, |state| *state).unwrap()), [5, 5, 5]);
}
