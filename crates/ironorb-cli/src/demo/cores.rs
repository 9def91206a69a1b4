//! Where threads run. Whether two processes share a core decides half of what a call between them costs, and the
//! scheduler's choice changes from run to run; so while calls are compared, both are kept on one.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A core that this process may use; `None` where the system does not tell.
pub(super) fn choose() -> Option<usize> {
    let allowed = sched_getaffinity(None).ok()?;
    // The first ones have most of the interrupts.
    (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core))
}

/// Keeps the calling thread on a core until this is dropped; threads that it starts meanwhile stay there.
pub(super) struct Kept {
    before: CpuSet,
}

impl Kept {
    /// `None` where the system does not allow it.
    pub(super) fn on(core: usize) -> Option<Kept> {
        let before = sched_getaffinity(None).ok()?;
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only).ok()?;
        Some(Kept { before })
    }

    /// Lets all threads of this process go where the calling one could go before.
    pub(super) fn spread(&self) {
        let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        for thread in threads {
            let id = thread.file_name().to_str().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
            // A thread that has just ended needs no core.
            let _ = id.map(|id| sched_setaffinity(Some(id), &self.before));
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // What was allowed before still is.
        let _ = sched_setaffinity(None, &self.before);
    }
}
