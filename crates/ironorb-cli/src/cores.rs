//! Keeps threads on a core. Whether two processes share a core decides about half of the cost of a call
//! between them, and the scheduler's choice changes from run to run. While the demo compares calls, both
//! processes stay on one core.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A core that this process may use; `None` where the system does not report one.
pub(crate) fn choose() -> Option<usize> {
    let allowed = sched_getaffinity(None).ok()?;
    // The first cores serve most of the interrupts.
    (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core))
}

/// Keeps the calling thread on a core until the guard is dropped. Threads that it starts meanwhile stay there
/// too.
pub(crate) struct CorePin {
    before: CpuSet,
}

impl CorePin {
    /// Pins the calling thread; `None` where the system does not allow it.
    pub(crate) fn on(core: usize) -> Option<CorePin> {
        let before = sched_getaffinity(None).ok()?;
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only).ok()?;
        Some(CorePin { before })
    }

    /// Lets all threads of this process run where the calling thread could run before.
    pub(crate) fn spread(&self) {
        let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        for thread in threads {
            let id = thread.file_name().to_str().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
            // A thread that has just ended cannot be moved, and need not be.
            let _ = id.map(|id| sched_setaffinity(Some(id), &self.before));
        }
    }
}

impl Drop for CorePin {
    fn drop(&mut self) {
        // This cannot fail: the system allowed these cores before.
        let _ = sched_setaffinity(None, &self.before);
    }
}
