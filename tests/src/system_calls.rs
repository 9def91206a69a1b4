//! Threads that are confined to the system calls of a lane's work, and a listener to the traps of all others.

use seccompiler::{BpfProgram, apply_filter, compile_from_json, sock_filter};
use signal_hook::consts::SIGSYS;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

/// What a thread of a lane needs to serve and to call. `rt_sigreturn` ends the handler of a trap.
const ALLOWED: &[&str] = &[
    "recvfrom",
    "sendto",
    "recvmsg",
    "sendmsg",
    "read",
    "write",
    "ppoll",
    "epoll_pwait",
    "futex",
    "rt_sigreturn",
];

/// What a thread of a watched lane needs beside: its switches, its clock, its `schedstat`, and after a long wait the `stat` of
/// the thread that it has waited for. Where tracefs is mounted, its count of system calls, too.
const OF_THE_WATCH: &[&str] =
    &["getrusage", "clock_gettime", "pread64", "openat", "fcntl", "close", "perf_event_open", "ioctl"];

/// What a thread of a pool needs beside: it arms a connection again for the thread that waits next.
const OF_THE_POOL: &[&str] = &["epoll_ctl"];

/// What the thread needs beside that accepts a lane's connections and looks after them. It takes no part in calls, and starts no
/// thread.
const OF_THE_KEEPER: &[&str] = &[
    // The number by which locks and the status know the thread: once.
    "gettid",
    // Takes a client, and tells who it is.
    "accept4",
    "getpeername",
    // The lane's options of sockets over IP.
    "setsockopt",
    // Adds the connection to what a pool waits for.
    "epoll_ctl",
    // The rings of shared memory: made, given their size, sealed and mapped (below). The client gets the descriptor. A client
    // that is refused is closed, too.
    "memfd_create",
    "ftruncate",
    "fcntl",
    "close",
    // The allocator, for what a connection has: glibc's asks once in a process how many processors there are, by a file.
    "openat",
    "mmap",
    "munmap",
    "mprotect",
    "madvise",
    "brk",
];

/// Older names of the same calls, which not every processor has.
#[cfg(target_arch = "x86_64")]
const ALLOWED_TOO: &[&str] = &["poll", "epoll_wait"];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_TOO: &[&str] = &[];

fn filter(further: &[&[&str]]) -> BpfProgram {
    let calls: Vec<String> = ALLOWED
        .iter()
        .chain(ALLOWED_TOO)
        .chain(further.iter().copied().flatten())
        .map(|name| format!(r#"{{"syscall":"{name}"}}"#))
        .collect();
    let json = format!(
        r#"{{"lane":{{"mismatch_action":"trap","match_action":"allow","filter":[{}]}}}}"#,
        calls.join(",")
    );
    let arch = std::env::consts::ARCH.try_into().expect("a processor that the filter knows");
    let mut filters = compile_from_json(json.as_bytes(), arch).expect("a filter of known calls");
    telling_numbers(filters.remove("lane").expect("the filter of this name"))
}

/// Has the trap at the end of a filter tell the number of the call: as the filter's data, which the signal has as its error
/// number (seccomp(2), SECCOMP_RET_DATA).
fn telling_numbers(mut filter: BpfProgram) -> BpfProgram {
    let end = filter.pop().expect("a filter has an end");
    assert_eq!((end.code, end.k), (RETURN_CONSTANT, TRAP), "the end traps");
    filter.extend(
        [(LOAD_WORD, NUMBER_OF_CALL), (OR_CONSTANT, TRAP), (RETURN_ACCUMULATOR, 0)]
            .map(|(code, k)| sock_filter { code, jt: 0, jf: 0, k }),
    );
    filter
}

// linux/bpf_common.h, linux/seccomp.h
const LOAD_WORD: u16 = 0x20;
const OR_CONSTANT: u16 = 0x44;
const RETURN_CONSTANT: u16 = 0x06;
const RETURN_ACCUMULATOR: u16 = 0x16;
const TRAP: u32 = 0x0003_0000;
/// Its place in `struct seccomp_data`.
const NUMBER_OF_CALL: u32 = 0;

/// Which thread of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confined {
    /// One that calls, or serves a connection of its own.
    Thread,
    /// As the last, in a watched lane.
    WatchedThread,
    /// One that serves in a pool.
    PoolThread,
    /// The keeper of a lane whose threads are there before its clients.
    Keeper,
    /// As the last, in a watched lane.
    WatchedKeeper,
}

/// Traps each system call of the calling thread from now on that is not one of its work, and of the threads that it starts.
/// There is no way back.
///
/// # Panics
/// If the kernel has no such filters.
pub fn confine(thread: Confined) {
    let further: &[&[&str]] = match thread {
        Confined::Thread => &[],
        Confined::WatchedThread => &[OF_THE_WATCH],
        Confined::PoolThread => &[OF_THE_POOL],
        Confined::Keeper => &[OF_THE_KEEPER],
        Confined::WatchedKeeper => &[OF_THE_KEEPER, OF_THE_WATCH],
    };
    apply_filter(&filter(further)).expect("the kernel filters system calls (CONFIG_SECCOMP_FILTER)");
}

/// The system calls that have been trapped in this process.
#[derive(Debug)]
pub struct Trapped(SignalsInfo<WithRawSiginfo>);

impl Trapped {
    /// Hears of all traps from now on.
    ///
    /// # Panics
    /// If the system refuses a handler.
    pub fn listen() -> Trapped {
        Trapped(SignalsInfo::new([SIGSYS]).expect("a handler for traps"))
    }

    /// The numbers of the calls since the last question. Of many at once, some may be missing.
    pub fn calls(&mut self) -> Vec<i32> {
        self.0.pending().map(|told| told.si_errno).collect()
    }
}
