//! What the system tells of the calling thread: its switches, its time, its system calls.
//!
//! | what | from | where it is missing |
//! |---|---|---|
//! | switches | getrusage(2) with RUSAGE_THREAD | |
//! | time of the processor | the thread's clock | |
//! | time in which the thread wanted to run and could not | `/proc/thread-self/schedstat` | counts as 0, without CONFIG_SCHED_INFO |
//! | system calls | the tracepoint `raw_syscalls/sys_enter`, by perf_event_open(2) | unknown, without tracefs and the right to use it |

/// What a thread has done between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    /// The thread has waited.
    pub(crate) voluntary: u64,
    /// Another thread has taken its processor.
    pub(crate) involuntary: u64,
    /// `None` where the system does not tell.
    pub(crate) system_calls: Option<u64>,
}

/// What the system says of the calling thread at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThreadUsage {
    switches: Switches,
    at_ns: u64,
    ran_ns: u64,
    queued_ns: u64,
}

/// What a thread has done since an earlier moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct UsageSince {
    pub(super) switches: Switches,
    /// How long the thread neither ran nor wanted to.
    pub(super) slept_ns: u64,
}

impl ThreadUsage {
    /// At the beginning of what is measured: the system calls are read last.
    pub(super) fn at_begin() -> ThreadUsage {
        let mut usage = ThreadUsage::without_system_calls();
        usage.switches.system_calls = imp::system_calls();
        usage
    }

    /// At its end: the system calls are read first, and this reading is the only one that counts.
    pub(super) fn at_end() -> ThreadUsage {
        let system_calls = imp::system_calls().map(|calls| calls.saturating_sub(1));
        let mut usage = ThreadUsage::without_system_calls();
        usage.switches.system_calls = system_calls;
        usage
    }

    /// The time is read between the others, so that what reading takes is in none of the differences twice.
    fn without_system_calls() -> ThreadUsage {
        let (voluntary, involuntary) = imp::switches();
        let queued_ns = imp::queued_ns();
        let ran_ns = imp::ran_ns();
        let switches = Switches { voluntary, involuntary, system_calls: None };
        ThreadUsage { switches, at_ns: super::now_ns(), ran_ns, queued_ns }
    }

    pub(super) fn since(&self, before: &ThreadUsage) -> UsageSince {
        let (now, was) = (&self.switches, &before.switches);
        let passed = self.at_ns.saturating_sub(before.at_ns);
        let ran = self.ran_ns.saturating_sub(before.ran_ns);
        let queued = self.queued_ns.saturating_sub(before.queued_ns);
        UsageSince {
            switches: Switches {
                voluntary: now.voluntary.saturating_sub(was.voluntary),
                involuntary: now.involuntary.saturating_sub(was.involuntary),
                system_calls: now
                    .system_calls
                    .zip(was.system_calls)
                    .map(|(now, was)| now.saturating_sub(was)),
            },
            slept_ns: passed.saturating_sub(ran).saturating_sub(queued),
        }
    }
}

/// Whether the system tells the calling thread its system calls; else why not.
pub(crate) fn counts_system_calls() -> Result<(), String> {
    imp::counts_system_calls()
}

/// Has the system calls of a thread counted from now on, if an ORB of the process watches. For a thread that begins, of which
/// the ORB is the maker; and for those that are there when a watch begins.
pub(crate) fn count_system_calls_of(id: u32) {
    if super::bound_ns().is_some() {
        imp::count_of_thread(id);
    }
}

/// Ends that.
pub(crate) fn end_count_of(id: u32) {
    imp::end_count_of(id);
}

/// Ends that for all threads.
pub(crate) fn end_all_counts() {
    imp::end_all_counts();
}

/// The system calls of a thread since they are counted; `None` where the system does not tell.
pub(crate) fn system_calls_of_thread(id: u32) -> Option<u64> {
    imp::system_calls_of(id)
}

/// The switches of a thread of the process since it began, by `/proc`; `None` if it has ended. For those that look.
pub(crate) fn switches_of_thread(id: u32) -> Option<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{id}/status")).ok()?;
    let count = |name: &str| status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
    Some((count("voluntary_ctxt_switches:")?, count("nonvoluntary_ctxt_switches:")?))
}

#[cfg(all(feature = "watch", target_os = "linux", not(miri)))]
mod imp {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::sync::OnceLock;

    use nix::sys::resource::{UsageWho, getrusage};
    use perf_event::events::Tracepoint;
    use perf_event::{Builder, Counter};
    use rustix::fs::{Mode, OFlags, openat};
    use rustix::io::pread;
    use rustix::time::{ClockId, clock_gettime};

    use crate::base::locks::PiLock;

    thread_local! {
        /// The thread's `schedstat`, kept open; `None` where there is none.
        static SCHEDSTAT: Option<OwnedFd> = open_schedstat();
        static SYSTEM_CALLS: RefCell<Option<Counter>> = RefCell::new(system_calls_counter().ok());
    }

    /// What counts the system calls of the threads that ORBs have made, by the system's numbers.
    static OF_THREADS: PiLock<BTreeMap<u32, Counter>> = PiLock::new(BTreeMap::new());

    pub(super) fn count_of_thread(id: u32) {
        if OF_THREADS.lock().contains_key(&id) {
            return;
        }
        let Ok(pid) = i32::try_from(id) else { return };
        if let Ok(counter) = counter(|builder| builder.observe_pid(pid)) {
            OF_THREADS.lock().insert(id, counter);
        }
    }

    pub(super) fn end_count_of(id: u32) {
        let _closed_without_the_lock = OF_THREADS.lock().remove(&id);
    }

    pub(super) fn end_all_counts() {
        let _closed_without_the_lock = std::mem::take(&mut *OF_THREADS.lock());
    }

    pub(super) fn system_calls_of(id: u32) -> Option<u64> {
        OF_THREADS.lock().get_mut(&id)?.read().ok()
    }

    fn open_schedstat() -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        openat(rustix::fs::CWD, c"/proc/thread-self/schedstat", flags, Mode::empty()).ok()
    }

    pub(super) fn switches() -> (u64, u64) {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return (0, 0) };
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        (count(usage.voluntary_context_switches()), count(usage.involuntary_context_switches()))
    }

    pub(super) fn ran_ns() -> u64 {
        super::super::ns(clock_gettime(ClockId::ThreadCPUTime))
    }

    /// The second number of `schedstat`.
    pub(super) fn queued_ns() -> u64 {
        let mut text = [0; 64];
        let length = SCHEDSTAT.try_with(|file| pread(file.as_ref()?, &mut text[..], 0).ok()).ok().flatten();
        let text = std::str::from_utf8(&text[..length.unwrap_or(0)]).unwrap_or("");
        text.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    pub(super) fn system_calls() -> Option<u64> {
        SYSTEM_CALLS.try_with(|counter| counter.try_borrow_mut().ok()?.as_mut()?.read().ok()).ok().flatten()
    }

    pub(super) fn counts_system_calls() -> Result<(), String> {
        system_calls_counter().map(drop)
    }

    /// Counts the calling thread's system calls.
    fn system_calls_counter() -> Result<Counter, String> {
        counter(|builder| builder.observe_self())
    }

    fn counter(
        of_whom: impl for<'b> FnOnce(&'b mut Builder<'static>) -> &'b mut Builder<'static>,
    ) -> Result<Counter, String> {
        static TRACEPOINT: OnceLock<Option<u64>> = OnceLock::new();
        let id = TRACEPOINT.get_or_init(tracepoint).ok_or(
            "the system shows no tracepoint raw_syscalls/sys_enter: mount tracefs at /sys/kernel/tracing, readable for the \
             server's user",
        )?;
        let mut builder = Builder::new(Tracepoint::with_id(id));
        of_whom(&mut builder).any_cpu().include_kernel().enabled(true);
        builder.build().map_err(|e| {
            format!(
                "the system lets this process count no system calls ({e}): grant CAP_PERFMON, or set \
                 kernel.perf_event_paranoid to -1"
            )
        })
    }

    fn tracepoint() -> Option<u64> {
        ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].iter().find_map(|root| {
            let id = fs::read_to_string(format!("{root}/events/raw_syscalls/sys_enter/id")).ok()?;
            id.trim().parse().ok()
        })
    }
}

#[cfg(not(all(feature = "watch", target_os = "linux", not(miri))))]
mod imp {
    pub(super) fn switches() -> (u64, u64) {
        (0, 0)
    }

    pub(super) fn ran_ns() -> u64 {
        0
    }

    pub(super) fn queued_ns() -> u64 {
        0
    }

    pub(super) fn system_calls() -> Option<u64> {
        None
    }

    pub(super) fn count_of_thread(_: u32) {}

    pub(super) fn end_count_of(_: u32) {}

    pub(super) fn end_all_counts() {}

    pub(super) fn system_calls_of(_: u32) -> Option<u64> {
        None
    }

    pub(super) fn counts_system_calls() -> Result<(), String> {
        Err("this program is built without the feature `watch`".to_owned())
    }
}
