//! The scheduling class of a thread (sched(7)): of the calling thread, or of another one of the process by its number.
//!
//! The system calls are those that no safe crate has for other threads and for SCHED_DEADLINE. Without Linux each call fails
//! with [`io::ErrorKind::Unsupported`].
//!
//! ```
//! use ironorb_threads::{Class, Thread};
//!
//! match Thread::CALLING.set_class(Class::Fifo(10)) {
//!     Ok(()) => assert_eq!(Thread::CALLING.class()?, Class::Fifo(10)),
//!     Err(e) => eprintln!("{e}: raise RLIMIT_RTPRIO or grant CAP_SYS_NICE"),
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
#[path = "none.rs"]
mod linux;

use std::io;
use std::time::Duration;

/// A thread of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread(i32);

/// A scheduling class, with what goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// SCHED_OTHER. The nice value stays what it was.
    Other,
    /// SCHED_BATCH. The nice value stays what it was.
    Batch,
    /// SCHED_IDLE: the thread runs when no other can.
    Idle,
    /// SCHED_FIFO with a priority from 1 to 99.
    Fifo(u8),
    /// SCHED_RR with a priority from 1 to 99.
    RoundRobin(u8),
    /// SCHED_DEADLINE: this much of a processor in each period. Threads that the thread makes are in the ordinary class.
    Deadline {
        /// How long the thread runs in each period at most. From 1,024 ns to the deadline.
        runtime: Duration,
        /// By when it has had that, from the start of the period. At most the period.
        deadline: Duration,
        /// The time from one start to the next.
        period: Duration,
    },
    /// Another class of the system, by its number.
    Unknown(i32),
}

/// Has each child that the C library makes by fork(2) call `child` before it does anything else, on its only thread. It stays so
/// until the process ends. `child` may be called while other threads of the parent had locks, which are never released in
/// the child.
pub fn at_fork_in_child(child: extern "C" fn()) -> io::Result<()> {
    linux::at_fork_in_child(child)
}

impl Thread {
    /// The calling thread, whichever that is.
    pub const CALLING: Thread = Thread(0);

    /// The thread with this number (gettid(2)). Each call fails once the thread has ended; its number may then be another's.
    pub const fn with_number(number: i32) -> Thread {
        Thread(number)
    }

    /// The thread's class. That of SCHED_DEADLINE is told without its times, as [`Class::Unknown`].
    pub fn class(self) -> io::Result<Class> {
        let (policy, priority) = linux::class(self.0)?;
        Ok(match policy {
            linux::OTHER => Class::Other,
            linux::BATCH => Class::Batch,
            linux::IDLE => Class::Idle,
            linux::FIFO => Class::Fifo(priority),
            linux::ROUND_ROBIN => Class::RoundRobin(priority),
            other => Class::Unknown(other),
        })
    }

    /// Puts the thread into a class. Fails where the system refuses: a priority needs RLIMIT_RTPRIO or CAP_SYS_NICE, and what
    /// the numbers of a class are out of range for is an invalid argument. The thread is as it was then.
    pub fn set_class(self, class: Class) -> io::Result<()> {
        match class {
            Class::Other => linux::set_class(self.0, linux::OTHER, 0),
            Class::Batch => linux::set_class(self.0, linux::BATCH, 0),
            Class::Idle => linux::set_class(self.0, linux::IDLE, 0),
            Class::Fifo(priority) => linux::set_class(self.0, linux::FIFO, priority),
            Class::RoundRobin(priority) => linux::set_class(self.0, linux::ROUND_ROBIN, priority),
            Class::Deadline { runtime, deadline, period } => {
                linux::set_deadline_class(self.0, [runtime, deadline, period].map(nanos))
            }
            Class::Unknown(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

impl Class {
    /// The priority of a real-time class with priorities.
    pub fn priority(self) -> Option<u8> {
        match self {
            Class::Fifo(priority) | Class::RoundRobin(priority) => Some(priority),
            _ => None,
        }
    }
}

/// The system refuses times that are as long.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const TIMES: Class = Class::Deadline {
        runtime: Duration::from_millis(1),
        deadline: Duration::from_millis(10),
        period: Duration::from_millis(20),
    };

    /// Runs a test on a thread of its own, with what the system answers to a real-time class there.
    fn with_answer(test: impl FnOnce(io::Result<()>) + Send + 'static) {
        thread::spawn(move || test(Thread::CALLING.set_class(Class::Fifo(1)))).join().unwrap();
    }

    #[test]
    fn a_thread_enters_classes_and_tells_them() {
        with_answer(|granted| {
            if let Err(e) = granted {
                assert_eq!(e.kind(), io::ErrorKind::PermissionDenied, "{e}");
                return;
            }
            for class in [Class::RoundRobin(99), Class::Fifo(3), Class::Batch, Class::Idle, Class::Other] {
                Thread::CALLING.set_class(class).unwrap();
                assert_eq!(Thread::CALLING.class().unwrap(), class);
            }
            assert_eq!((Class::Fifo(3).priority(), Class::Batch.priority()), (Some(3), None));
        });
    }

    #[test]
    fn a_thread_is_put_into_a_class_by_another() {
        with_answer(|granted| {
            if granted.is_err() {
                return;
            }
            let (tell, told) = mpsc::channel();
            let (end, ends) = mpsc::channel::<()>();
            let thread = thread::spawn(move || {
                tell.send(linux::number()).unwrap();
                ends.recv().unwrap_err();
                Thread::CALLING.class().unwrap()
            });
            let other = Thread::with_number(told.recv().unwrap());
            other.set_class(Class::Fifo(7)).unwrap();
            assert_eq!(other.class().unwrap(), Class::Fifo(7));
            assert_eq!(Thread::CALLING.class().unwrap(), Class::Fifo(1));
            drop(end);
            assert_eq!(thread.join().unwrap(), Class::Fifo(7));
        });
    }

    #[test]
    fn a_thread_with_periods_is_in_a_class_of_its_own() {
        with_answer(|granted| match Thread::CALLING.set_class(TIMES) {
            Ok(()) => assert_eq!(Thread::CALLING.class().unwrap(), Class::Unknown(6)),
            // Without the right to it, or with too little of the processor left.
            Err(e) => assert!(granted.is_err() || e.raw_os_error() == Some(libc::EBUSY), "{e}"),
        });
    }

    #[test]
    fn what_the_system_cannot_do_is_an_error_and_changes_nothing() {
        thread::spawn(|| {
            let before = Thread::CALLING.class().unwrap();
            let zero =
                Class::Deadline { runtime: Duration::ZERO, deadline: Duration::MAX, period: Duration::ZERO };
            for class in [Class::Fifo(0), Class::Fifo(100), Class::Unknown(77), zero] {
                let e = Thread::CALLING.set_class(class).unwrap_err();
                assert!(
                    [io::ErrorKind::InvalidInput, io::ErrorKind::PermissionDenied].contains(&e.kind()),
                    "{class:?}: {e}"
                );
            }
            assert_eq!(Thread::CALLING.class().unwrap(), before);
            let none = Thread::with_number(i32::MAX);
            assert_eq!(none.class().unwrap_err().raw_os_error(), Some(libc::ESRCH));
            assert!(none.set_class(Class::Other).is_err());
        })
        .join()
        .unwrap();
    }
}
