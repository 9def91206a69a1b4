//! An `epoll` whose wait other threads can end.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// The `epoll`, and the descriptor that ends its wait.
#[derive(Debug)]
pub(crate) struct WakeableEpoll {
    pub(crate) epoll: OwnedFd,
    /// An eventfd, readable once [`wake`](Self::wake) has been called.
    wake: OwnedFd,
}

/// What the `epoll` reports after [`WakeableEpoll::wake`]. No socket has this number.
pub(crate) const WAKE: u64 = u64::MAX;

impl WakeableEpoll {
    pub(crate) fn new() -> io::Result<WakeableEpoll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(WakeableEpoll { epoll, wake })
    }

    /// Ends the wait, or the next one.
    pub(crate) fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Takes note of a wake-up, so that the next wait waits again.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }
}

/// How long an `epoll` waits.
pub(crate) fn timespec(wait: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    }
}
