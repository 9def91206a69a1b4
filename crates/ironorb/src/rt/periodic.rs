//! Threads with periodic work, for which the system reserves a share of a processor.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::time::Duration;

use crate::base::scheduling::{self, Schedule};

/// A share of a processor that the system reserves for a thread with periodic work (SCHED_DEADLINE; sched(7)): `runtime` in
/// each `period`, over before `deadline` after the period's beginning. For clients that call at intervals, and for other
/// work of that kind; lanes have priorities instead.
///
/// The system admits such threads only as long as all of them fit, so an admitted one gets its share whatever else runs: it
/// passes all threads with priorities. A thread that uses its runtime up stops until its next period. Such a thread may
/// run on any processor: the system refuses the class to a thread with an affinity, and an affinity to a thread of the
/// class, but for whole exclusive cpusets. So [pinned lanes](crate::LaneConfig::processors) and this exclude each other.
/// Threads that it makes are in the ordinary class.
///
/// ```no_run
/// use std::time::Duration;
/// use ironorb::rt::DeadlineSchedule;
///
/// let ms = Duration::from_millis;
/// let schedule = DeadlineSchedule::new(ms(1), ms(5), ms(10))?;
/// let periodic = schedule.enter()?;
/// for _ in 0..1000 {
///     // … a call …
///     periodic.wait_for_next_period();
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadlineSchedule {
    runtime: Duration,
    deadline: Duration,
    period: Duration,
}

impl DeadlineSchedule {
    /// A schedule with 1,024 ns <= `runtime` <= `deadline` <= `period` <= 4 s; else an error of the kind `InvalidInput`.
    pub fn new(runtime: Duration, deadline: Duration, period: Duration) -> io::Result<DeadlineSchedule> {
        let is_ordered = RUNTIME_MIN <= runtime && runtime <= deadline && deadline <= period;
        if is_ordered && period <= PERIOD_MAX {
            return Ok(DeadlineSchedule { runtime, deadline, period });
        }
        let why = format!(
            "runtime {runtime:?}, deadline {deadline:?} and period {period:?} make no schedule: write 1,024 ns <= runtime <= \
             deadline <= period <= 4 s"
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    /// Puts the calling thread into the class with this schedule, until the result is dropped. The first period begins at
    /// once. Fails when the system refuses; the error says why, and what to do. Does not block.
    pub fn enter(&self) -> io::Result<InDeadlineSchedule> {
        let before = scheduling::own_schedule()?;
        scheduling::become_periodic(self.runtime, self.deadline, self.period).map_err(explain)?;
        Ok(InDeadlineSchedule { before: Some(before), of_this_thread: PhantomData })
    }
}

#[cold]
fn explain(e: io::Error) -> io::Error {
    let advice = match e.kind() {
        io::ErrorKind::PermissionDenied => {
            "run the thread without an affinity (Cpus_allowed_list in /proc/thread-self/status must have all processors of \
             its cpuset), and grant CAP_SYS_NICE"
        }
        io::ErrorKind::ResourceBusy => {
            "the processors' time is reserved already: ask for less runtime, or raise kernel.sched_rt_runtime_us"
        }
        io::ErrorKind::InvalidInput => {
            "the period must be between kernel.sched_deadline_period_min_us and kernel.sched_deadline_period_max_us"
        }
        _ => "use a priority instead (`RtCurrent::set_priority`)",
    };
    io::Error::new(e.kind(), format!("the system does not schedule this thread by deadlines: {e}; {advice}"))
}

/// The calling thread's stay in a [`DeadlineSchedule`]. When it is dropped, the thread is in the class in which it was before.
#[must_use = "the stay ends when this is dropped"]
pub struct InDeadlineSchedule {
    before: Option<Schedule>,
    of_this_thread: PhantomData<*const ()>,
}

impl InDeadlineSchedule {
    /// Ends the work of this period. Blocks until the next one begins.
    pub fn wait_for_next_period(&self) {
        scheduling::give_way();
    }
}

impl Drop for InDeadlineSchedule {
    fn drop(&mut self) {
        // A class that the thread has had is not refused.
        let _ = self.before.take().map(Schedule::restore);
    }
}

impl fmt::Debug for InDeadlineSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InDeadlineSchedule").field("before", &self.before).finish()
    }
}

/// The system counts no shorter times.
const RUNTIME_MIN: Duration = Duration::from_nanos(1024);

/// The system's own limit is 4.19 s, unless an operator has changed it.
const PERIOD_MAX: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The number of the calling thread's class: 6 is SCHED_DEADLINE.
    fn class() -> u32 {
        let text = fs::read_to_string("/proc/thread-self/stat").unwrap();
        text.rsplit_once(") ").unwrap().1.split(' ').nth(41 - 3).unwrap().parse().unwrap()
    }

    fn of_new_thread() -> u32 {
        std::thread::spawn(class).join().unwrap()
    }

    #[test]
    fn a_thread_is_scheduled_by_deadlines_until_it_leaves_or_is_told_why_not() {
        let test = || {
            let before = class();
            match DeadlineSchedule::new(MS, 5 * MS, 10 * MS).unwrap().enter() {
                Ok(periodic) => {
                    assert_eq!(class(), 6);
                    assert_eq!(of_new_thread(), 0, "its threads are ordinary ones");
                    periodic.wait_for_next_period();
                    drop(periodic);
                }
                Err(e) => assert!(e.to_string().contains("; "), "{e}"),
            }
            assert_eq!(class(), before);
        };
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn refusals_say_what_to_do() {
        let busy = explain(io::ErrorKind::ResourceBusy.into()).to_string();
        assert!(busy.contains("less runtime"), "{busy}");
        let denied = explain(io::ErrorKind::PermissionDenied.into()).to_string();
        assert!(denied.contains("affinity") && denied.contains("CAP_SYS_NICE"), "{denied}");
    }

    #[test]
    fn times_that_make_no_schedule_are_refused() {
        for (runtime, deadline, period) in
            [(MS / 1000, MS, MS), (2 * MS, MS, MS), (MS, 2 * MS, MS), (MS, MS, 5000 * MS)]
        {
            let refused = DeadlineSchedule::new(runtime, deadline, period).unwrap_err().to_string();
            assert!(refused.contains("1,024 ns <= runtime <="), "{refused}");
        }
    }
}
