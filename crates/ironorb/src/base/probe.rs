//! Measures where calls spend their time: the probes of [`ironorb_giop::probe`], and how the drivers use
//! them.
//!
//! With the feature `probes` the ORB counts, for each thread, how often it is in each stage of a call and for
//! how long. On the client [`Stage::Call`] contains all other stages; on the server [`Stage::Serve`] does,
//! except for waiting for requests and making messages of the bytes that came. The parts of a call in no
//! stage are the application's.
//!
//! ```
//! use ironorb::probe::{self, Stage};
//!
//! let before = probe::thread_snapshot();
//! // ... calls
//! let during = probe::thread_snapshot().since(&before).without(probe::overhead());
//! for (stage, times) in during.stages().filter(|(_, times)| times.count > 0) {
//!     println!("{:<16} {:>8} times {:?}", stage.name(), times.count, times.self_time);
//! }
//! # let _ = during.stage(Stage::Marshal);
//! ```

pub use ironorb_giop::probe::{
    COPY_BYTES_MIN, ENABLED, Guard, Overhead, Snapshot, Stage, StageTimes, copying, enter, overhead,
    snapshot, thread_snapshot,
};

pub(crate) use receiving::receiving;

/// A system call that receives also waits. Only the thread's processor time separates the two.
#[cfg(feature = "probes")]
mod receiving {
    use std::sync::OnceLock;
    use std::time::Duration;

    use ironorb_giop::probe::{Guard, Stage, enter};
    use rustix::time::{ClockId, clock_gettime};

    /// Measures a wait. At its end the time in which the thread was running goes to [`Stage::Read`].
    pub(crate) struct Receiving {
        wait: Guard,
        ran_before: Duration,
    }

    pub(crate) fn receiving() -> Receiving {
        let wait = enter(Stage::Wait);
        Receiving { wait, ran_before: running_time() }
    }

    impl Drop for Receiving {
        fn drop(&mut self) {
            let ran = running_time().saturating_sub(self.ran_before);
            self.wait.shift(Stage::Read, ran.saturating_sub(asking()));
        }
    }

    /// The time that two reads of the running time take, the median of 31.
    fn asking() -> Duration {
        static ASKING: OnceLock<Duration> = OnceLock::new();
        *ASKING.get_or_init(|| {
            let mut all = [Duration::ZERO; 31];
            for one in &mut all {
                let before = running_time();
                *one = running_time().saturating_sub(before);
            }
            all.sort_unstable();
            all[all.len() / 2]
        })
    }

    fn running_time() -> Duration {
        let _probe = enter(Stage::Probes);
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

#[cfg(not(feature = "probes"))]
mod receiving {
    use ironorb_giop::probe::{Guard, Stage, enter};

    #[inline(always)]
    pub(crate) fn receiving() -> Guard {
        enter(Stage::Wait)
    }
}
