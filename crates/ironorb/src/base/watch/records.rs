//! Records of waits: a ring of the process, in which a new one takes the place of the oldest.

use std::cell::Cell;
use std::panic::Location;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::read;

use super::{ShortText, now_ns};
use crate::base::lane::current_lane;
use crate::base::locks::{PiLock, thread_id};
use crate::base::spawner::lane_of_thread;

/// For what a thread has waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitKind {
    /// A lock, of the ORB or of the program, that a thread with a lower priority held.
    Lock,
    /// Something that is not the ORB's, in an upcall: a lock of the program's own, a file, a device, a sleep.
    NotOfTheOrb,
}

/// A wait that was longer than the bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitRecord {
    /// Counts from 1 in the process.
    pub(crate) number: u64,
    /// When the wait was over, on the clock of the drivers.
    pub(crate) ended_ns: u64,
    /// How long the thread waited. Of [`WaitKind::NotOfTheOrb`]: how long it neither ran nor wanted to.
    pub(crate) waited_ns: u64,
    pub(crate) kind: WaitKind,
    /// The mutex, if it has a name; the operation of the upcall.
    pub(crate) name: ShortText<48>,
    /// Where the program or the ORB locks.
    pub(crate) place: Option<&'static Location<'static>>,
    pub(crate) waiter: ThreadFacts,
    pub(crate) holder: ThreadFacts,
}

/// What a record tells of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadFacts {
    /// The system's number; 0 where the thread is not known.
    pub(crate) id: u32,
    /// As the system has it, which keeps 15 bytes.
    pub(crate) name: ShortText<16>,
    pub(crate) base: Precedence,
    /// The index of its lane; `None` where that is not known.
    pub(crate) lane: Option<u8>,
}

/// A thread's scheduling without what locks lend it. A larger one is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precedence {
    Unknown,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_OTHER and SCHED_BATCH, by 20 minus the nice value: from 1 to 40.
    Ordinary(u8),
    /// SCHED_FIFO and SCHED_RR, from 1 to 99.
    RealTime(u8),
    /// SCHED_DEADLINE.
    Deadline,
}

impl Precedence {
    /// The class and the number, as people write them.
    pub(crate) fn describe(self) -> String {
        match self {
            Precedence::Unknown => "unknown".to_owned(),
            Precedence::Idle => "idle".to_owned(),
            Precedence::Ordinary(rank) => format!("nice {}", 20 - i16::from(rank)),
            Precedence::RealTime(number) => format!("real-time {number}"),
            Precedence::Deadline => "deadline".to_owned(),
        }
    }
}

impl ThreadFacts {
    const NONE: ThreadFacts =
        ThreadFacts { id: 0, name: ShortText::EMPTY, base: Precedence::Unknown, lane: None };

    /// The calling thread.
    fn own() -> ThreadFacts {
        let lane = u8::try_from(current_lane().index()).ok();
        ThreadFacts { lane, ..ThreadFacts::of(thread_id()) }
    }

    /// A thread of the process, which may have ended. Reads one file, into memory of the stack.
    fn of(id: u32) -> ThreadFacts {
        let mut text = [0; 1024];
        let (name, base) =
            stat(id, &mut text).and_then(parse).unwrap_or((ShortText::EMPTY, Precedence::Unknown));
        let lane = lane_of_thread(id).and_then(|lane| u8::try_from(lane.index()).ok());
        ThreadFacts { id, name, base, lane }
    }
}

/// The text of `/proc/self/task/ID/stat` (proc(5)).
fn stat(id: u32, text: &mut [u8; 1024]) -> Option<&[u8]> {
    use std::io::Write as _;
    let mut path = [0_u8; 40];
    write!(&mut path[..39], "/proc/self/task/{id}/stat").ok()?;
    let path = std::ffi::CStr::from_bytes_until_nul(&path).ok()?;
    let file = openat(rustix::fs::CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = read(file, &mut text[..]).ok()?;
    Some(&text[..length])
}

/// The name, field 2, and the precedence by fields 19 (nice), 40 (real-time priority) and 41 (class). What locks lend is in
/// none of them.
fn parse(stat: &[u8]) -> Option<(ShortText<16>, Precedence)> {
    let open = stat.iter().position(|&c| c == b'(')?;
    let close = stat.iter().rposition(|&c| c == b')')?;
    let name = ShortText::of(stat.get(open + 1..close)?);
    let rest = std::str::from_utf8(stat.get(close + 2..)?).ok()?;
    let number = |field: usize| rest.split_ascii_whitespace().nth(field - 3)?.parse::<i16>().ok();
    let (nice, real_time) = (number(19)?, u8::try_from(number(40)?).ok()?);
    let base = match number(41)? {
        1 | 2 => Precedence::RealTime(real_time),
        5 => Precedence::Idle,
        6 => Precedence::Deadline,
        _ => Precedence::Ordinary(u8::try_from(20 - nice).ok()?),
    };
    Some((name, base))
}

/// The ring and what has ever been in it.
struct Ring {
    /// The record with the number `n` is at `(n - 1) % RECORDS_MAX`.
    slots: [Option<WaitRecord>; RECORDS_MAX],
    made: u64,
}

/// The most records that the process keeps, in some 60 KiB.
pub(crate) const RECORDS_MAX: usize = 256;

static RING: PiLock<Ring> = PiLock::new(Ring { slots: [None; RECORDS_MAX], made: 0 });

thread_local! {
    /// The thread makes a record. What it waits for meanwhile is not recorded.
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread makes a record.
pub(super) fn is_recording() -> bool {
    IS_RECORDING.try_with(Cell::get).unwrap_or(true)
}

/// Records a wait for a lock, if the thread that held it has a lower priority of its own. For the thread that waited: it may
/// hold the lock, and takes one file of each thread's to read.
#[cold]
pub(super) fn record_lock(
    waited_ns: u64,
    holder: u32,
    name: ShortText<48>,
    place: &'static Location<'static>,
) {
    IS_RECORDING.set(true);
    let (waiter, holder) = (ThreadFacts::own(), ThreadFacts::of(holder));
    if holder.base != Precedence::Unknown && holder.base < waiter.base {
        put(waited_ns, WaitKind::Lock, name, Some(place), [waiter, holder]);
    }
    IS_RECORDING.set(false);
}

/// Records a wait of an upcall for something that is not the ORB's.
#[cold]
pub(super) fn record_other(waited_ns: u64, operation: ShortText<48>) {
    IS_RECORDING.set(true);
    put(waited_ns, WaitKind::NotOfTheOrb, operation, None, [ThreadFacts::own(), ThreadFacts::NONE]);
    IS_RECORDING.set(false);
}

fn put(
    waited_ns: u64,
    kind: WaitKind,
    name: ShortText<48>,
    place: Option<&'static Location<'static>>,
    [waiter, holder]: [ThreadFacts; 2],
) {
    let ended_ns = now_ns();
    let mut ring = RING.lock();
    let slot = ring.made as usize % RECORDS_MAX;
    ring.made += 1;
    let number = ring.made;
    ring.slots[slot] = Some(WaitRecord { number, ended_ns, waited_ns, kind, name, place, waiter, holder });
}

/// Records, the oldest first, and how many there have ever been in the process.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) kept: Vec<WaitRecord>,
    pub(crate) made: u64,
    /// Records after the given one that newer ones have displaced.
    pub(crate) lost: u64,
}

/// The records with higher numbers than `after`.
pub(crate) fn records_after(after: u64) -> Records {
    let mut kept: Vec<WaitRecord> = Vec::with_capacity(RECORDS_MAX);
    // A wait for this lock that is recorded would take it again.
    let was_recording = IS_RECORDING.replace(true);
    let made = {
        let ring = RING.lock();
        kept.extend(ring.slots.iter().flatten().filter(|record| record.number > after));
        ring.made
    };
    IS_RECORDING.set(was_recording);
    kept.sort_unstable_by_key(|record| record.number);
    let displaced = made.saturating_sub(RECORDS_MAX as u64);
    Records { kept, made, lost: displaced.saturating_sub(after) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_is_what_a_thread_has_of_its_own() {
        // 18 is the priority with what is lent; 19, 40 and 41 are the nice value, the real-time priority, the class.
        let stat = |nice: i8, real_time: u8, class: u8| {
            let fields: Vec<String> = (4..=52)
                .map(|field| match field {
                    18 => "-100".to_owned(),
                    19 => nice.to_string(),
                    40 => real_time.to_string(),
                    41 => class.to_string(),
                    _ => "7".to_owned(),
                })
                .collect();
            parse(format!("812 (a) b)) S {}\n", fields.join(" ")).as_bytes()).unwrap()
        };
        let (name, fifo) = stat(0, 30, 1);
        assert_eq!((name.to_string(), fifo.describe()), ("a) b)".to_owned(), "real-time 30".to_owned()));
        let [low, ordinary, urgent] = [(0, 10, 2), (5, 0, 0), (-20, 0, 0)].map(|(n, r, c)| stat(n, r, c).1);
        assert_eq!([ordinary, urgent].map(Precedence::describe), ["nice 5", "nice -20"]);
        let (idle, deadline) = (stat(0, 0, 5).1, stat(0, 0, 6).1);
        assert!(idle < ordinary && ordinary < urgent && urgent < low && low < fifo && fifo < deadline);
        for cut in [&b""[..], b"812", b"812 (a", b"812 (a)", b"812 (a) S 1 2"] {
            assert_eq!(parse(cut), None);
        }
    }

    #[test]
    fn a_thread_finds_its_own_facts() {
        let own = ThreadFacts::own();
        assert_eq!((own.id, own.base != Precedence::Unknown), (thread_id(), cfg!(target_os = "linux")));
        assert_eq!(ThreadFacts::of(0), ThreadFacts::NONE);
    }

    #[test]
    fn the_ring_keeps_the_newest_and_counts_the_rest() {
        let before = records_after(u64::MAX).made;
        for waited_ns in 0..RECORDS_MAX as u64 + 5 {
            record_other(waited_ns, ShortText::of(b"ring"));
        }
        let Records { kept, made, lost } = records_after(before);
        // Other tests of the process may record, too.
        assert!(made >= before + RECORDS_MAX as u64 + 5 && lost >= 5 && kept.len() == RECORDS_MAX);
        assert!(kept.is_sorted_by_key(|record| record.number) && kept.last().unwrap().number == made);
        assert!(records_after(made).kept.is_empty());
    }
}
