//! What the end-to-end tests share: interfaces with servants, raw GIOP for misbehaving peers, and the
//! command.

ironorb::include_idl!("bulk");
ironorb::include_idl!("cached");
ironorb::include_idl!("extents");
ironorb::include_idl!("dynamic");
ironorb::include_idl!("keeping");
ironorb::include_idl!("lenient");
ironorb::include_idl!("probe");
ironorb::include_idl!("stamps");
ironorb::include_idl!("steady");
ironorb::include_idl!("timing");
ironorb::include_idl!("wires");

mod cells;
pub mod command;
pub mod converse;
mod counters;
pub mod counting;
pub mod everything;
mod exchange;
pub mod executor;
pub mod gate;
pub mod gated;
pub mod random_values;
pub mod raw;
pub mod real_time;
pub mod relay;
pub mod scheduling;
mod servant;
pub mod system_calls;
pub mod watch;

pub use cells::{Counting, Holding, Living, Pricing, RUNS};
pub use counters::{Counters, Dials, Lamps, Lines, Sensors};
pub use exchange::{Exchanging, Listening};
pub use servant::{Deriving, Hook, Hooked, Probing};

use std::time::{Duration, Instant};

/// Waits until `is_so` returns true, which it asks every 2 ms. The limit turns a hang into a failure that
/// says what did not happen.
///
/// # Panics
/// After a minute, which only bounds a hang: on a busy machine anything may take long.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never came true: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The number of live threads with a name that the ORBs of this process have made, as the ORB's status lists them.
pub fn threads_called(orb: &ironorb::Orb, name: &str) -> usize {
    orb.status().threads.iter().filter(|thread| thread.name == name).count()
}

/// A thread of this process, as the system knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadNumber(i32);

impl ThreadNumber {
    /// Of the calling thread.
    pub fn own() -> ThreadNumber {
        ThreadNumber(rustix::thread::gettid().as_raw_nonzero().get())
    }

    /// Of all threads of the process.
    ///
    /// # Panics
    /// If the system does not tell.
    pub fn all() -> Vec<ThreadNumber> {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux lists the threads of a process");
        let names = tasks.map(|task| task.expect("it can be read").file_name());
        names.map(|name| ThreadNumber(name.to_string_lossy().parse().expect("a number"))).collect()
    }

    /// Whether it has this number, as an ORB tells it.
    pub fn is(self, number: u32) -> bool {
        self.0.unsigned_abs() == number
    }

    /// Whether it waits for something, in the kernel.
    pub fn is_asleep(self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", self.0));
        // The state follows the name, which is in brackets.
        stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
    }
}

/// Compiles and runs the examples of the guide's page on interceptors.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/interceptors.md")]
struct GuideToInterceptors;

/// Compiles and runs the examples of the page on real time.
#[cfg(doctest)]
#[doc = include_str!("../../docs/real-time.md")]
struct RealTime;
