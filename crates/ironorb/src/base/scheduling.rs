//! The scheduling class of a thread (sched(7)).

use std::io;
use std::time::Duration;

use ironorb_threads::{Class, Thread};
use rustix::thread::Pid;

use super::locks::{PiLock, thread_id};
use super::spawner::NativePriority;

/// Puts the calling thread into a real-time class, with this priority. Fails when the system refuses that to the
/// process; the thread's class is unchanged then.
pub(crate) fn become_real_time(priority: NativePriority) -> io::Result<()> {
    Thread::CALLING.set_class(class_of(priority))
}

fn class_of(priority: NativePriority) -> Class {
    match priority.is_round_robin() {
        true => Class::RoundRobin(priority.number()),
        false => Class::Fifo(priority.number()),
    }
}

/// Puts the calling thread into SCHED_DEADLINE. Threads that it makes are in the ordinary class; without that, the system
/// would refuse it to make any.
pub(crate) fn become_periodic(runtime: Duration, deadline: Duration, period: Duration) -> io::Result<()> {
    Thread::CALLING.set_class(Class::Deadline { runtime, deadline, period })
}

/// Lets other threads run. A thread of SCHED_DEADLINE gives up the rest of its period.
pub(crate) fn give_way() {
    rustix::thread::sched_yield();
}

/// The class and the priority that a thread has had, to be given back.
#[derive(Debug)]
pub(crate) struct Schedule(Class);

/// The class and the priority of the calling thread. Fails for a class that could not be given back.
pub(crate) fn own_schedule() -> io::Result<Schedule> {
    match Thread::CALLING.class()? {
        Class::Unknown(_) => Err(io::ErrorKind::Unsupported.into()),
        class => Ok(Schedule(class)),
    }
}

impl Schedule {
    /// The priority in a real-time class; `None` in another class.
    pub(crate) fn real_time_priority(&self) -> Option<u8> {
        self.0.priority()
    }

    /// Gives the calling thread this class and this priority.
    pub(crate) fn restore(self) -> io::Result<()> {
        Thread::CALLING.set_class(self.0)
    }
}

/// Takes the calling thread out of a real-time class that it has inherited. A thread of another class stays in it:
/// operators choose SCHED_BATCH and SCHED_IDLE for whole processes, and threads of SCHED_DEADLINE make none of that class. The
/// nice value stays too.
pub(super) fn leave_real_time() -> io::Result<()> {
    match Thread::CALLING.class()?.priority() {
        Some(_) => Thread::CALLING.set_class(Class::Other),
        None => Ok(()),
    }
}

/// Gives a thread that waits for the caller, and so lives, this priority.
pub(super) fn give_priority(thread: Pid, native: NativePriority) -> io::Result<()> {
    Thread::with_number(thread.as_raw_nonzero().get()).set_class(class_of(native))
}

/// A thread that another thread may take out of its priority while it does something.
#[derive(Debug)]
pub(crate) struct Demotable {
    thread: Thread,
    /// What the thread goes back to; `None` where the ORB has given it no real-time priority.
    native: Option<NativePriority>,
    state: PiLock<Demotion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demotion {
    NotYet,
    Done,
    /// The thread does something else now.
    TooLate,
}

impl Demotable {
    /// The calling thread, which has this real-time priority.
    pub(crate) fn own(native: Option<NativePriority>) -> Demotable {
        Demotable {
            thread: Thread::with_number(thread_id().cast_signed()),
            native,
            state: PiLock::new(Demotion::NotYet),
        }
    }

    /// Gives the thread the lowest real-time priority, unless it has [ended](Self::end).
    pub(crate) fn demote(&self) {
        let mut state = self.state.lock();
        if self.native.is_some() && *state == Demotion::NotYet {
            // The thread lives: it has not ended what it does. Where the system refuses, it goes on as before.
            let _refused = self.thread.set_class(Class::Fifo(1));
            *state = Demotion::Done;
        }
    }

    /// Ends what the thread may be demoted in, for the thread itself: it has its own priority again.
    pub(crate) fn end(&self) {
        let before = std::mem::replace(&mut *self.state.lock(), Demotion::TooLate);
        if let (Some(native), Demotion::Done) = (self.native, before) {
            let _refused_what_was_there_before = become_real_time(native);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::base::spawner::{NewThread, REFUSAL, ThreadClass};

    /// The class of the calling thread.
    fn own() -> Class {
        Thread::CALLING.class().unwrap()
    }

    /// The class of a new thread.
    fn of(thread: NewThread<'_>) -> Class {
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
            Class::Fifo(7) => {}
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
            assert_eq!(own(), Class::Fifo(3));
            let nice = || rustix::process::getpriority_process(None).unwrap();
            assert_eq!(of(THREAD), Class::Other);
            assert_eq!(of(THREAD.with_priority(NativePriority::new(2).unwrap())), Class::Fifo(2));
            rustix::process::setpriority_process(None, nice() + 4).unwrap();
            let expected = nice();
            let (tell, told) = mpsc::channel();
            THREAD.spawn(move || tell.send(nice()).unwrap()).unwrap();
            assert_eq!(told.recv().unwrap(), expected, "the nice value is inherited");
        });
    }

    #[test]
    fn another_thread_demotes_a_thread_until_it_ends_what_it_does() {
        on_real_time_thread(|| {
            let native = NativePriority::new(3);
            let demotable = Demotable::own(native);
            std::thread::scope(|scope| drop(scope.spawn(|| demotable.demote()).join()));
            assert_eq!(own(), Class::Fifo(1));
            demotable.end();
            assert_eq!(own(), Class::Fifo(3));
            demotable.demote();
            assert_eq!(own(), Class::Fifo(3), "it does something else now");
            Demotable::own(None).demote();
            assert_eq!(own(), Class::Fifo(3), "the ORB did not give it the priority");
        });
    }

    #[test]
    fn priorities_are_from_1_to_99() {
        assert!(NativePriority::new(0).is_none() && NativePriority::new(100).is_none());
        assert_eq!(NativePriority::new(99).map(NativePriority::number), Some(99));
    }
}
