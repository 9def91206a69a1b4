//! What the system is told of a lane's threads: priority, processors, nice value, timer slack, memory; and what the program
//! has them do first.
//!
//! A lane's number has the number of its settings, so that every thread of the lane gets them. Equal settings have one
//! number in a process.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::num::{NonZeroU8, NonZeroU64};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Once;

use ironorb_giop::framer::BUFFER_BYTES;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use super::locks::PiLock;
use super::spawner::{NativePriority, ThreadClass};

/// Settings of threads. What is not set is as the thread inherits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ThreadSettings {
    /// Their priority in a real-time class.
    pub(crate) priority: Option<NativePriority>,
    /// The processors on which the threads may run.
    pub(crate) processors: Option<CpuSet>,
    /// Their nice value where they have no real-time class, from -20 to 19.
    pub(crate) nice: Option<i8>,
    /// By how much their timers may be late where they have no real-time class.
    pub(crate) timer_slack_ns: Option<NonZeroU64>,
    /// The bytes of their stacks that have memory before they begin their work.
    pub(crate) prefault_stack_bytes: usize,
    /// The bytes that each thread takes from the allocator, writes and gives back before it begins its work.
    pub(crate) prefault_heap_bytes: usize,
    /// What the program has each thread do before its work.
    pub(crate) at_start: Option<AtStart>,
}

/// A thread of a lane, which is about to begin its work; [`LaneConfig::at_thread_start`](crate::LaneConfig::at_thread_start).
#[derive(Debug)]
pub struct LaneThread<'t> {
    name: &'t str,
    class: ThreadClass,
}

impl<'t> LaneThread<'t> {
    pub(super) fn new(name: &'t str, class: ThreadClass) -> LaneThread<'t> {
        LaneThread { name, class }
    }

    /// The thread's name, as `ironorb status` shows it: `ironorb-keeper` for the one that accepts and looks after
    /// connections.
    pub fn name(&self) -> &str {
        self.name
    }

    /// What the thread is for, in a word, as `ironorb status` shows it: `listener`, `worker`, `receiver`, `writer`, `timer` or
    /// `background`.
    pub fn class(&self) -> &'static str {
        self.class.word()
    }
}

/// A function of the program. A plain one, so that equal settings have one number, and none is kept for an ORB that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtStart(pub(crate) fn(&LaneThread<'_>));

impl PartialEq for AtStart {
    /// One function may have several addresses: then there are two kinds of threads that do the same.
    fn eq(&self, other: &AtStart) -> bool {
        ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for AtStart {}

impl AtStart {
    /// Runs the program's function. A thread that the ORB needs survives its panic, which the panic hook reports.
    fn run(self, thread: &LaneThread<'_>) {
        let _panicked = catch_unwind(AssertUnwindSafe(|| self.0(thread)));
    }
}

/// The number of settings in the table of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadSettingsId(NonZeroU8);

/// The most settings of a process: a lane's number has one byte for them.
pub(crate) const SETTINGS_MAX: u8 = u8::MAX;

/// All settings that lanes of this process have had. It grows by one for each combination that differs from all others.
static KNOWN: PiLock<Vec<ThreadSettings>> = PiLock::new(Vec::new());

impl ThreadSettings {
    /// The number of these settings. `None` if there are [`SETTINGS_MAX`] others.
    pub(crate) fn id(self) -> Option<ThreadSettingsId> {
        let mut known = KNOWN.lock();
        let index = known.iter().position(|it| *it == self).unwrap_or(known.len());
        let id = u8::try_from(index + 1).ok().and_then(NonZeroU8::new).map(ThreadSettingsId)?;
        if index == known.len() {
            known.push(self);
        }
        Some(id)
    }

    /// The size of a thread's stack, if it must be larger than the usual one.
    pub(super) fn stack_bytes(&self) -> Option<usize> {
        let wanted = self.prefault_stack_bytes + STACK_SPARE_BYTES;
        (wanted > STACK_BYTES).then_some(wanted)
    }

    /// Gives the calling thread these settings. Where the system refuses one, a line on standard error says so, once a
    /// process, and the thread goes on without it.
    pub(super) fn apply(&self, is_real_time: bool, thread: &LaneThread<'_>) {
        if let Some(processors) = &self.processors {
            NO_PROCESSORS.tell(sched_setaffinity(None, processors));
        }
        if let Some(nice) = self.nice.filter(|_| !is_real_time) {
            NO_NICE.tell(setpriority_process(None, nice.into()));
        }
        if self.timer_slack_ns.is_some() {
            NO_TIMER_SLACK.tell(set_current_timer_slack(self.timer_slack_ns));
        }
        prefault_stack(self.prefault_stack_bytes);
        if let Some(at_start) = self.at_start {
            at_start.run(thread);
        }
        // After the program has said where the thread's memory comes from.
        prefault_heap(self.prefault_heap_bytes);
    }
}

impl ThreadSettingsId {
    pub(crate) fn settings(self) -> ThreadSettings {
        KNOWN.lock().get(usize::from(self.0.get()) - 1).copied().unwrap_or_default()
    }
}

/// Takes pieces as long as a connection's buffers, so that the allocator serves these from the same memory later.
fn prefault_heap(bytes: usize) {
    let pieces = (0..bytes.div_ceil(BUFFER_BYTES)).map(|_| black_box(vec![1_u8; BUFFER_BYTES]));
    drop(black_box(pieces.collect::<Vec<_>>()));
}

/// What the system may refuse, with what to do then. It is reported once.
struct Refusal {
    what: &'static str,
    mend: &'static str,
    reported: Once,
}

impl Refusal {
    const fn new(what: &'static str, mend: &'static str) -> Refusal {
        Refusal { what, mend, reported: Once::new() }
    }

    fn tell(&self, done: rustix::io::Result<()>) {
        if let Err(e) = done {
            self.reported.call_once(|| eprintln!("ironorb: {}", self.text(&e.into())));
        }
    }

    fn text(&self, e: &io::Error) -> impl fmt::Display {
        format!("the system does not give threads of a lane {}: {e}; {}", self.what, self.mend)
    }
}

static NO_PROCESSORS: Refusal = Refusal::new(
    "the processors that it is set to",
    "name processors that exist and that the process's cpuset and affinity allow (Cpus_allowed_list in /proc/self/status)",
);
static NO_NICE: Refusal = Refusal::new(
    "their nice value",
    "raise RLIMIT_NICE to 20 minus the value (`nice` in /etc/security/limits.d), or grant CAP_SYS_NICE",
);
static NO_TIMER_SLACK: Refusal =
    Refusal::new("their timer slack", "leave the setting out: this system keeps threads from changing it");

/// Writes to pages of the calling thread's stack until this many bytes have memory.
fn prefault_stack(bytes: usize) {
    if bytes > 0 {
        let top = 0_u8;
        touch_down(address(&top), bytes);
    }
}

/// A frame of at least a page, below which the next one lies. Addresses bound the depth, because a frame's size depends on
/// how the code was compiled.
#[inline(never)]
fn touch_down(top: usize, bytes: usize) {
    let page = black_box([0_u8; PAGE_BYTES]);
    if top.saturating_sub(address(&page)) < bytes {
        touch_down(top, bytes);
    }
    black_box(&page); // the frame stays until the deeper ones are gone
}

fn address<T>(of: &T) -> usize {
    std::ptr::from_ref(black_box(of)).addr()
}

/// No page of the system is smaller.
const PAGE_BYTES: usize = 4096;

/// What a thread has without a setting.
const STACK_BYTES: usize = 2 << 20;

/// What is left of a stack below its prefaulted part, at least.
const STACK_SPARE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::thread::{current_timer_slack, sched_getaffinity};

    use super::*;

    const THREAD: LaneThread<'_> = LaneThread { name: "ironorb-test", class: ThreadClass::Worker };

    /// Runs a test on a thread of its own, whose settings end with it.
    fn apart(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().unwrap();
    }

    /// A field of `/proc/thread-self/stat`, counted from 1 as proc(5) does.
    fn stat(field: usize) -> i64 {
        let text = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, rest) = text.rsplit_once(") ").unwrap();
        rest.split(' ').nth(field - 3).unwrap().parse().unwrap()
    }

    #[test]
    fn a_thread_gets_its_processors_its_nice_value_and_its_slack() {
        apart(|| {
            let last = sched_getaffinity(None).unwrap();
            let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| last.is_set(*cpu)).unwrap();
            let mut only = CpuSet::new();
            only.set(last);
            let nice = i8::try_from(stat(19)).unwrap() + 3;
            let settings = ThreadSettings {
                processors: Some(only),
                nice: Some(nice),
                timer_slack_ns: NonZeroU64::new(7_000),
                ..ThreadSettings::default()
            };
            let id = settings.id().unwrap();
            assert_eq!(settings.id(), Some(id), "equal settings have one number");
            id.settings().apply(false, &THREAD);
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
            assert_eq!(allowed.trim(), last.to_string());
            assert_eq!((stat(19), current_timer_slack().unwrap()), (nice.into(), 7_000));
        });
    }

    #[test]
    fn a_real_time_thread_keeps_its_nice_value() {
        apart(|| {
            let before = stat(19);
            ThreadSettings { nice: Some(19), ..ThreadSettings::default() }.apply(true, &THREAD);
            assert_eq!(stat(19), before);
        });
    }

    #[test]
    fn a_prefaulted_stack_has_its_memory() {
        const BYTES: usize = 256 << 10;
        let faults_of_a_walk = || {
            let before = stat(10);
            prefault_stack(BYTES);
            stat(10) - before
        };
        apart(move || {
            let pages = (BYTES / PAGE_BYTES) as i64;
            assert!(faults_of_a_walk() > pages / 2, "the first walk takes memory");
            assert!(faults_of_a_walk() < pages / 4, "the second one has it");
        });
        let settings = ThreadSettings { prefault_stack_bytes: 4 << 20, ..ThreadSettings::default() };
        assert_eq!(settings.stack_bytes(), Some(5 << 20));
        assert_eq!(ThreadSettings::default().stack_bytes(), None);
    }

    #[test]
    fn a_thread_does_first_what_the_program_says_and_survives_its_panic() {
        static SEEN: PiLock<Vec<String>> = PiLock::new(Vec::new());
        let at_start = |thread: &LaneThread<'_>| {
            SEEN.lock().push(format!("{} {}", thread.name(), thread.class()));
            panic!("this panic belongs to the test");
        };
        let settings = ThreadSettings { at_start: Some(AtStart(at_start)), ..ThreadSettings::default() };
        assert_ne!(settings, ThreadSettings::default());
        let id = settings.id().unwrap();
        assert_eq!(settings.id(), Some(id), "one function is one kind");
        apart(move || id.settings().apply(false, &THREAD));
        assert_eq!(*SEEN.lock(), ["ironorb-test worker"]);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let text = NO_NICE.text(&io::ErrorKind::PermissionDenied.into()).to_string();
        assert!(text.contains("nice value") && text.contains("RLIMIT_NICE"), "{text}");
        let mut none = CpuSet::new();
        none.set(CpuSet::MAX_CPU - 1);
        apart(move || {
            ThreadSettings { processors: Some(none), ..ThreadSettings::default() }.apply(false, &THREAD);
            assert!(NO_PROCESSORS.reported.is_completed());
        });
    }
}
