//! What other programs do while something is measured here.

use std::collections::BTreeMap;
use std::time::Duration;
use std::{fs, process};

/// Processor time of all programs but this one and those that it has started, as far as the system shows them. The kernel's own threads
/// do not count: they work for whoever has caused it.
///
/// What a process has taken passes to its parent when it ends. So the difference of two readings has that of programs which have come
/// and gone meanwhile.
pub(crate) fn others() -> Duration {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let taken: BTreeMap<u32, Taken> = numbers
        .filter_map(|number: u32| {
            // One that has ended meanwhile has no file.
            Some((number, Taken::parse(&fs::read_to_string(format!("/proc/{number}/stat")).ok()?)?))
        })
        .collect();
    // The system counts in hundredths of a second here.
    Duration::from_millis(10 * ticks_of_others(&taken, process::id()))
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Taken {
    parent: u32,
    /// It is a thread of the kernel.
    is_kernel: bool,
    /// Its time, and that of its children that have ended.
    ticks: u64,
}

/// A flag of processes.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Taken {
    /// Reads `/proc/NUMBER/stat`. The name in parentheses may have any characters.
    fn parse(stat: &str) -> Option<Taken> {
        let (_, rest) = stat.rsplit_once(") ")?;
        let numbers: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |place: usize| numbers.get(place)?.parse::<u64>().ok();
        let ticks = [11, 12, 13, 14].into_iter().filter_map(number).sum();
        Some(Taken { parent: number(1)? as u32, is_kernel: number(6)? & KERNEL_THREAD != 0, ticks })
    }
}

fn ticks_of_others(taken: &BTreeMap<u32, Taken>, own: u32) -> u64 {
    let is_ours = |number: u32| {
        let parent_of = |&number: &u32| taken.get(&number).map(|it| it.parent);
        // A chain of parents is no longer than there are processes.
        std::iter::successors(Some(number), parent_of).take(taken.len()).any(|number| number == own)
    };
    let counts = |(number, it): &(&u32, &Taken)| !it.is_kernel && !is_ours(**number);
    taken.iter().filter(counts).map(|(_, it)| it.ticks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_read_whatever_their_names_are() {
        let stat = "7 (a) b (c) S 3 7 7 0 -1 4194304 100 0 0 0 5 6 7 8 20 0 1 0 9 10 11";
        assert_eq!(Taken::parse(stat), Some(Taken { parent: 3, is_kernel: false, ticks: 26 }));
        let kernel = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 1 2 0 0 20 0";
        assert!(Taken::parse(kernel).unwrap().is_kernel);
        assert_eq!(Taken::parse("7 (cut"), None);
    }

    #[test]
    fn what_this_program_has_started_is_not_another() {
        let user = |parent, ticks| Taken { parent, is_kernel: false, ticks };
        let taken = BTreeMap::from([
            (1, user(0, 1)),
            (2, Taken { parent: 0, is_kernel: true, ticks: 100 }),
            (10, user(1, 10)),
            (20, user(10, 200)),
            (30, user(20, 400)),
            (40, user(30, 800)),
            (50, user(10, 2)),
            // Its parent is not seen.
            (60, user(55, 4)),
        ]);
        assert_eq!(ticks_of_others(&taken, 20), 1 + 10 + 2 + 4);
    }

    #[test]
    fn this_system_shows_its_processes() {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        assert!(!Taken::parse(&stat).unwrap().is_kernel, "{stat}");
        others();
    }
}
