//! The scheduling class of the calling thread (sched(7)).

use std::io;
use std::time::Duration;

use preempt_rt::sched::{
    Pid, PreemptRtError, Scheduler, SchedulerParams, get_scheduler, get_scheduler_params, set_scheduler,
};

use thread_priority::{
    DeadlineFlags, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy,
};

use super::spawner::NativePriority;

/// Puts the calling thread into a real-time class, with this priority. Fails when the system refuses that to the
/// process; the thread's class is unchanged then.
pub(crate) fn become_real_time(priority: NativePriority) -> io::Result<()> {
    let class = match priority.is_round_robin() {
        true => Scheduler::SCHED_RR,
        false => Scheduler::SCHED_FIFO,
    };
    enter(class, i32::from(priority.number()))
}

/// Puts the calling thread into SCHED_DEADLINE. Threads that it makes are in the ordinary class; without that, the system
/// would refuse it to make any.
pub(crate) fn become_periodic(runtime: Duration, deadline: Duration, period: Duration) -> io::Result<()> {
    let priority =
        ThreadPriority::Deadline { runtime, deadline, period, flags: DeadlineFlags::RESET_ON_FORK };
    let class = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Deadline);
    // For this class the crate passes the number on as the system's number of a thread; 0 is the calling one. Of its error,
    // only the system's own number tells why.
    set_thread_priority_and_policy(CALLING_THREAD, priority, class).map_err(|_| io::Error::last_os_error())
}

const CALLING_THREAD: thread_priority::ThreadId = 0;

/// Lets other threads run. A thread of SCHED_DEADLINE gives up the rest of its period.
pub(crate) fn give_way() {
    rustix::thread::sched_yield();
}

/// The class and the priority that a thread has had, to be given back.
#[derive(Debug)]
pub(crate) struct Schedule {
    class: Scheduler,
    priority: i32,
}

/// The class and the priority of the calling thread.
pub(crate) fn own_schedule() -> io::Result<Schedule> {
    let class = get_scheduler(Pid::current_thread()).map_err(reason)?;
    let priority = get_scheduler_params(Pid::current_thread()).map_err(reason)?.priority;
    Ok(Schedule { class, priority })
}

impl Schedule {
    /// The priority in a real-time class; `None` in another class.
    pub(crate) fn real_time_priority(&self) -> Option<u8> {
        match self.class {
            Scheduler::SCHED_FIFO | Scheduler::SCHED_RR => u8::try_from(self.priority).ok(),
            _ => None,
        }
    }

    /// Gives the calling thread this class and this priority.
    pub(crate) fn restore(self) -> io::Result<()> {
        enter(self.class, self.priority)
    }
}

/// Takes the calling thread out of a real-time class that it has inherited. A thread of another class stays in it:
/// operators choose SCHED_BATCH and SCHED_IDLE for whole processes. The nice value stays too.
pub(super) fn leave_real_time() -> io::Result<()> {
    match get_scheduler(Pid::current_thread()) {
        Ok(Scheduler::SCHED_FIFO | Scheduler::SCHED_RR) => enter(Scheduler::SCHED_NORMAL, 0),
        // Threads of SCHED_DEADLINE make no threads of that class.
        Ok(_) | Err(PreemptRtError::UnknownScheduler(_)) => Ok(()),
        Err(e) => Err(reason(e)),
    }
}

fn enter(class: Scheduler, priority: i32) -> io::Result<()> {
    set_scheduler(Pid::current_thread(), class, SchedulerParams { priority }).map_err(reason)
}

fn reason(e: PreemptRtError) -> io::Error {
    match e {
        PreemptRtError::Errno(code) => io::Error::from_raw_os_error(code),
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::base::spawner::{NewThread, REFUSAL, ThreadClass};

    /// The class of the calling thread, and its priority in a real-time class.
    fn own() -> (Scheduler, i32) {
        let me = Pid::current_thread();
        (get_scheduler(me).unwrap(), get_scheduler_params(me).unwrap().priority)
    }

    /// The class and the priority of a new thread.
    fn of(thread: NewThread<'_>) -> (Scheduler, i32) {
        let (tell, told) = mpsc::channel();
        thread.spawn(move || tell.send(own()).unwrap()).unwrap();
        told.recv().unwrap()
    }

    const THREAD: NewThread<'static> = NewThread::new("ironorb-test", ThreadClass::Worker);

    /// Runs a test on a thread with a real-time priority, if the system grants one.
    fn on_real_time_thread(test: impl FnOnce() + Send + 'static) {
        let test = move || match become_real_time(NativePriority::new(3).unwrap()) {
            Ok(()) => test(),
            Err(e) => assert_eq!(e.kind(), io::ErrorKind::PermissionDenied, "{e}"),
        };
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn a_thread_gets_the_priority_that_it_asks_for_or_a_line_says_that_it_cannot() {
        match of(THREAD.with_priority(NativePriority::new(7).unwrap())) {
            (Scheduler::SCHED_FIFO, 7) => {}
            other => {
                assert_eq!(other, own(), "it goes on as it began");
                assert!(REFUSAL.is_completed(), "the refusal was reported");
                let refused =
                    std::thread::spawn(|| become_real_time(NativePriority::new(7).unwrap()).unwrap_err());
                assert_eq!(refused.join().unwrap().kind(), io::ErrorKind::PermissionDenied);
            }
        }
    }

    #[test]
    fn a_thread_does_not_inherit_a_real_time_class() {
        on_real_time_thread(|| {
            assert_eq!(own(), (Scheduler::SCHED_FIFO, 3));
            let nice = || rustix::process::getpriority_process(None).unwrap();
            assert_eq!(of(THREAD), (Scheduler::SCHED_NORMAL, 0));
            assert_eq!(of(THREAD.with_priority(NativePriority::new(2).unwrap())), (Scheduler::SCHED_FIFO, 2));
            rustix::process::setpriority_process(None, nice() + 4).unwrap();
            let expected = nice();
            let (tell, told) = mpsc::channel();
            THREAD.spawn(move || tell.send(nice()).unwrap()).unwrap();
            assert_eq!(told.recv().unwrap(), expected, "the nice value is inherited");
        });
    }

    #[test]
    fn priorities_are_from_1_to_99() {
        assert!(NativePriority::new(0).is_none() && NativePriority::new(100).is_none());
        assert_eq!(NativePriority::new(99).map(NativePriority::number), Some(99));
    }
}
