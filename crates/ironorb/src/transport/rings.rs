//! A connection whose bytes go through shared memory. Its socket carries none of them. The socket shows the
//! end of the peer, and it is the bell that wakes threads which wait for many connections, or for long.
//!
//! A thread that waits for bytes sleeps for a short while at a word of the shared memory, where the peer
//! wakes it at the least possible cost. Then it sleeps at the socket, where it sees the end of the peer at
//! once and costs nothing while nothing happens.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use ironorb_shm::{End, Mapping, Wanted};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::{Moved, wait};

use crate::base::time::{Clock, Time};

/// The rings of one connection.
#[derive(Debug)]
pub(crate) struct Rings {
    end: End<Mapping>,
    clock: Clock,
    /// How long [`receive`](Self::receive) blocks, in microseconds; 0 is without limit.
    receive_timeout_us: AtomicU64,
    /// Polls so far. Some of them also check whether the peer is still there.
    polls: AtomicU32,
    /// True when nothing more is sent: the peer is gone, or this side has closed. Bytes that have come before
    /// can still be received.
    is_over: AtomicBool,
}

/// How long a thread sleeps in the shared memory before it sleeps at the socket. Callers that are answered
/// within this time never reach the socket. A longer wait costs what a Unix socket costs.
const BY_MEMORY: Duration = Duration::from_millis(10);

/// A poll takes some nanoseconds, a check of the socket about 1 us.
const POLLS_PER_LOOK: u32 = 1 << 16;

/// How often a thread that waits for room checks whether the peer is gone.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Bounds the processor time that a peer can cost by waking this side in vain.
#[derive(Default)]
struct WakeBackoff(u32);

impl WakeBackoff {
    /// Notes a sleep that began at `began` and ended in vain.
    fn was_woken_in_vain(&mut self, began: Time, clock: &Clock) {
        if (clock.now)().since(began) < REST {
            self.0 += 1;
            if self.0 > VAIN_MAX {
                (clock.rest)(REST);
            }
        }
    }
}

/// The number of short sleeps in vain, one after the other, after which a thread rests.
const VAIN_MAX: u32 = 64;

const REST: Duration = Duration::from_millis(1);

impl Rings {
    pub(super) fn new(end: End<Mapping>, clock: Clock) -> Rings {
        Rings {
            end,
            clock,
            receive_timeout_us: AtomicU64::new(0),
            polls: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn set_receive_timeout(&self, timeout: Option<Duration>) {
        let us = timeout.map_or(0, |it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX).max(1));
        self.receive_timeout_us.store(us, Ordering::Relaxed);
    }

    /// Receives for a caller that polls. Checks the rings, and only at some polls whether the peer is still
    /// there.
    #[inline]
    pub(super) fn poll(&self, socket: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<Moved> {
        if !self.has_bytes() {
            let polls = self.polls.load(Ordering::Relaxed).wrapping_add(1);
            self.polls.store(polls, Ordering::Relaxed);
            if !polls.is_multiple_of(POLLS_PER_LOOK) {
                // The peer may believe that the ring is full, so it must be told of the room.
                if self.end.publish_taken_now() {
                    ring(socket);
                }
                return Ok(Moved::Nothing);
            }
        }
        self.receive_now(socket, space)
    }

    /// Receives what is in the rings, and checks nothing else.
    #[inline]
    fn receive_ready(&self, socket: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<Moved> {
        let read = self.end.read(space)?;
        if read.ring_bell {
            ring(socket);
        }
        Ok(if read.bytes > 0 { Moved::Bytes(read.bytes) } else { Moved::Nothing })
    }

    /// Receives what has come. Blocks while nothing has come, for at most the timeout.
    #[inline]
    pub(super) fn receive(&self, socket: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<Moved> {
        match self.receive_ready(socket, space)? {
            Moved::Nothing => self.receive_slowly(socket, space),
            moved => Ok(moved),
        }
    }

    #[cold]
    fn receive_slowly(&self, socket: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<Moved> {
        let timeout = match self.receive_timeout_us.load(Ordering::Relaxed) {
            0 => None,
            us => Some(Duration::from_micros(us)),
        };
        self.sleep(Wanted::Bytes, timeout.map_or(BY_MEMORY, |left| left.min(BY_MEMORY)));
        if let moved @ Moved::Bytes(_) = self.receive_ready(socket, space)? {
            return Ok(moved);
        }
        // Most waits have ended by now without reading the clock.
        let until = timeout.map(|timeout| (self.clock.now)() + timeout.saturating_sub(BY_MEMORY));
        let mut backoff = WakeBackoff::default();
        loop {
            let began = (self.clock.now)();
            let left = until.map(|until| until.since(began));
            if !self.end.want_bell(Wanted::Bytes) {
                wait(socket, PollFlags::IN, left)?;
            }
            match self.receive_now(socket, space)? {
                Moved::Nothing if left.is_some_and(|left| left.is_zero()) => return Ok(Moved::Nothing),
                Moved::Nothing => backoff.was_woken_in_vain(began, &self.clock),
                moved => return Ok(moved),
            }
        }
    }

    /// Receives what has come. Never blocks. Sees the end of the connection, and empties the bell's bytes
    /// from the socket.
    pub(super) fn receive_now(&self, socket: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<Moved> {
        if let moved @ Moved::Bytes(_) = self.receive_ready(socket, space)? {
            return Ok(moved);
        }
        let has_ended = self.take_bell(socket);
        // The peer may have written these bytes before its end or before it rang.
        match self.receive_ready(socket, space)? {
            Moved::Nothing if has_ended => Ok(Moved::End),
            moved => Ok(moved),
        }
    }

    /// Sends what there is room for. Never blocks.
    #[inline]
    pub(super) fn send_now(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<Moved> {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let written = self.end.write(bytes)?;
        if written.ring_bell {
            ring(socket);
        }
        Ok(if written.bytes > 0 || bytes.is_empty() { Moved::Bytes(written.bytes) } else { Moved::Nothing })
    }

    /// Waits until bytes or room are there, the peer is gone, or the timeout has passed. False in the last
    /// case.
    pub(super) fn wait_for(
        &self,
        socket: BorrowedFd<'_>,
        wanted: Wanted,
        timeout: Option<Duration>,
    ) -> io::Result<bool> {
        let until = timeout.map(|timeout| (self.clock.now)() + timeout);
        let mut backoff = WakeBackoff::default();
        loop {
            if self.end.is_ready(wanted) || self.is_over.load(Ordering::Acquire) {
                return Ok(true);
            }
            if self.is_hung_up(socket) {
                self.is_over.store(true, Ordering::Release);
                return Ok(true);
            }
            let began = (self.clock.now)();
            let left = until.map(|until| until.since(began));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            self.sleep(wanted, left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
            if !self.end.is_ready(wanted) {
                backoff.was_woken_in_vain(began, &self.clock);
            }
        }
    }

    /// Whether there are bytes to receive.
    #[inline]
    pub(super) fn has_bytes(&self) -> bool {
        self.end.is_ready(Wanted::Bytes)
    }

    /// Makes the socket readable once bytes or room are there. True when they are there already or the peer
    /// is gone: then the caller must look now.
    pub(super) fn want_bell(&self, socket: BorrowedFd<'_>, wanted: Wanted) -> bool {
        if self.end.is_bell_wanted(wanted) {
            return self.end.is_ready(wanted);
        }
        // If the bell has rung before, its bytes in the socket would only wake a thread in vain.
        self.take_bell(socket) || self.end.want_bell(wanted)
    }

    /// Wakes all sleeping threads after the socket has been shut down in any direction.
    pub(super) fn has_been_shut_down(&self, for_sending: bool) {
        if for_sending {
            self.is_over.store(true, Ordering::Release);
        }
        self.end.wake_all();
    }

    fn sleep(&self, wanted: Wanted, at_most: Duration) {
        self.end.sleep(wanted, at_most, || self.is_over.load(Ordering::Acquire));
    }

    fn is_hung_up(&self, socket: BorrowedFd<'_>) -> bool {
        wait(socket, PollFlags::RDHUP, Some(Duration::ZERO)).unwrap_or(true)
    }

    /// Takes the bell's bytes from the socket. True when the peer sends no more.
    fn take_bell(&self, socket: BorrowedFd<'_>) -> bool {
        let mut scrap = [0; 64];
        let has_ended = match rustix::net::recv(socket, &mut scrap[..], RecvFlags::DONTWAIT) {
            Ok((_, count)) => count == 0,
            Err(Errno::AGAIN | Errno::INTR) => false,
            Err(_) => true,
        };
        if has_ended {
            self.is_over.store(true, Ordering::Release);
        }
        has_ended
    }
}

/// Makes the peer's socket readable. If it takes no more bytes, it is readable already.
#[cold]
fn ring(socket: BorrowedFd<'_>) {
    let _ = rustix::net::send(socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}
