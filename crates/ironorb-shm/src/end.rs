//! One side of a connection: its positions for writing and reading, and how it waits.
//!
//! Each end trusts only its own positions, which it stores in private memory. It checks those that the peer
//! publishes. A position that goes backwards, or that the ring cannot hold, is [`Broken`].
//!
//! In the steady state, waking needs no system call. An end that is about to sleep announces this in `wanted`
//! and then checks once more. An end that has moved a position checks `wanted` afterwards. A fence on each
//! side ensures that at least one of them sees the other's write.

use std::sync::atomic::AtomicU32 as Private;
use std::time::Duration;

use crate::area::{Area, Published, Side};
use crate::copy;
use crate::sync::{Ordering, fence};

/// What an end waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Bytes to read.
    Bytes,
    /// Room to write.
    Room,
    /// Bytes or room.
    Any,
}

impl Wanted {
    /// The bits of `wanted` for a thread that sleeps at `signal`.
    #[inline]
    fn asleep(self) -> u32 {
        match self {
            Wanted::Bytes => BYTES,
            Wanted::Room => ROOM,
            Wanted::Any => BYTES | ROOM,
        }
    }

    /// The bits of `wanted` for an end that wants its bell rung instead.
    #[inline]
    fn by_bell(self) -> u32 {
        self.asleep() << BELL_SHIFT
    }
}

const BYTES: u32 = 1;
const ROOM: u32 = 2;
const BELL_SHIFT: u32 = 2;

/// The peer has written a position that is impossible. The connection must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the other side has left the protocol of the shared memory")
    }
}

impl std::error::Error for Broken {}

impl From<Broken> for std::io::Error {
    fn from(broken: Broken) -> Self {
        std::io::Error::new(std::io::ErrorKind::InvalidData, broken)
    }
}

/// The outcome of a read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Moved {
    /// How many bytes were moved. 0 if there are no bytes, or no room.
    pub bytes: usize,
    /// The peer waits for its bell, which the caller must ring now.
    pub ring_bell: bool,
}

/// One side of a connection.
///
/// The caller ensures that at most one thread at a time reads and at most one writes. If it does not, bytes
/// get mixed up, but memory stays safe. Any number of threads may sleep.
#[derive(Debug)]
pub struct End<A> {
    area: A,
    side: Side,
    /// The size of a ring in bytes.
    capacity: u32,
    /// Bytes written so far. Private to this process; only the writing thread changes it.
    written: Private,
    /// How many of them the peer had taken at the last check.
    taken_by_other: Private,
    /// Bytes taken so far.
    taken: Private,
    /// How many of them have been published to the peer.
    taken_published: Private,
    /// Bytes that the peer had written at the last check.
    written_by_other: Private,
}

impl<A: Area> End<A> {
    /// The end of this side, in an area where this side is unused.
    pub fn new(area: A, side: Side) -> End<A> {
        End::at(area, side, 0)
    }

    /// The end of this side in an area where `position` bytes have gone each way. Panics if the rings are
    /// larger than 1 GiB.
    pub fn at(area: A, side: Side, position: u32) -> End<A> {
        let capacity = copy::bytes_in(area.ring(side));
        assert!(capacity.is_power_of_two() && capacity <= 1 << 30, "positions have 32 bits");
        let at = || Private::new(position);
        End {
            side,
            capacity: capacity as u32,
            written: at(),
            taken_by_other: at(),
            taken: at(),
            taken_published: at(),
            written_by_other: at(),
            area,
        }
    }

    /// Copies arrived bytes into `space`, as many as fit. Never blocks or allocates. [`Broken`] if the peer's
    /// position is impossible.
    #[inline]
    pub fn read(&self, space: &mut [u8]) -> Result<Moved, Broken> {
        let taken = self.taken.load(Ordering::Relaxed);
        let known = self.written_by_other.load(Ordering::Relaxed).wrapping_sub(taken);
        let mut there = known;
        if (known as usize) < space.len() {
            // sync: bytes-written
            let written = self.other().written.0.load(Ordering::Acquire);
            there = written.wrapping_sub(taken);
            if there > self.capacity || there < known {
                return Err(Broken);
            }
            self.written_by_other.store(written, Ordering::Relaxed);
        }
        let bytes = space.len().min(there as usize);
        if bytes == 0 {
            return Ok(Moved { bytes, ring_bell: self.publish_taken(taken) });
        }
        copy::take(self.area.ring(self.side.other()), taken, &mut space[..bytes]);
        let taken = taken.wrapping_add(bytes as u32);
        self.taken.store(taken, Ordering::Relaxed);
        // Publishing costs a fence, and more if the peer waits. So the reader publishes when it finds the
        // ring empty and has nothing else to do. But the peer must not wait for room while much of the ring
        // is free.
        let unpublished = taken.wrapping_sub(self.taken_published.load(Ordering::Relaxed));
        let ring_bell = unpublished >= self.capacity / PUBLISH_SHARE && self.publish_taken(taken);
        Ok(Moved { bytes, ring_bell })
    }

    /// Copies bytes into the ring, as many as there is room for. Never blocks or allocates. [`Broken`] if the
    /// peer's position is impossible.
    #[inline]
    pub fn write(&self, bytes: &[u8]) -> Result<Moved, Broken> {
        let written = self.written.load(Ordering::Relaxed);
        let mut taken = self.taken_by_other.load(Ordering::Relaxed);
        let mut untaken = written.wrapping_sub(taken);
        if ((self.capacity - untaken) as usize) < bytes.len() {
            // sync: bytes-taken
            taken = self.other().taken.0.load(Ordering::Acquire);
            let still = written.wrapping_sub(taken);
            if still > untaken {
                return Err(Broken); // the position goes backwards, or more bytes were taken than written
            }
            untaken = still;
            self.taken_by_other.store(taken, Ordering::Relaxed);
        }
        let count = bytes.len().min((self.capacity - untaken) as usize);
        if count == 0 {
            return Ok(Moved { bytes: 0, ring_bell: false });
        }
        copy::put(self.area.ring(self.side), written, &bytes[..count]);
        let written = written.wrapping_add(count as u32);
        self.written.store(written, Ordering::Relaxed);
        // sync: bytes-written
        self.own().written.0.store(written, Ordering::Release);
        Ok(Moved { bytes: count, ring_bell: self.wake_other(Wanted::Bytes) })
    }

    /// Publishes how many bytes this side has read, as a read does that finds the ring empty. True if the caller must
    /// ring the peer's bell.
    #[inline]
    #[must_use]
    pub fn publish_taken_now(&self) -> bool {
        self.publish_taken(self.taken.load(Ordering::Relaxed))
    }

    /// Whether a read or write would move bytes now. May be true in vain if another thread reads or writes.
    #[inline]
    pub fn is_ready(&self, wanted: Wanted) -> bool {
        let has_bytes =
            || self.other().written.0.load(Ordering::Relaxed) != self.taken.load(Ordering::Relaxed);
        // An impossible position counts as room: the next write reports it.
        let has_room = || {
            let taken = self.other().taken.0.load(Ordering::Relaxed);
            self.written.load(Ordering::Relaxed).wrapping_sub(taken) != self.capacity
        };
        match wanted {
            Wanted::Bytes => has_bytes(),
            Wanted::Room => has_room(),
            Wanted::Any => has_bytes() || has_room(),
        }
    }

    /// Sleeps until what is wanted is there, for at most `at_most`. May return early and in vain. Returns at
    /// once if `is_over` returns true. A thread that makes it true calls [`wake_all`](Self::wake_all)
    /// afterwards.
    pub fn sleep(&self, wanted: Wanted, at_most: Duration, is_over: impl FnOnce() -> bool) {
        let sleep = &self.own().sleep.0;
        // Read before any check: a later change to what is checked also changes this word.
        let signal = sleep.signal.load(Ordering::Acquire);
        if !self.announce(wanted, wanted.asleep()) && !is_over() {
            self.area.sleep(&sleep.signal, signal, at_most);
        }
    }

    /// Asks the peer to ring the bell once, as soon as what is wanted is there. True if it is there already:
    /// then the bell may not be rung for it.
    #[inline]
    pub fn want_bell(&self, wanted: Wanted) -> bool {
        self.announce(wanted, wanted.by_bell())
    }

    /// Whether the bell has not been rung since [`want_bell`](Self::want_bell) asked for it.
    #[inline]
    pub fn is_bell_wanted(&self, wanted: Wanted) -> bool {
        let bits = wanted.by_bell();
        self.own().sleep.0.wanted.load(Ordering::Relaxed) & bits == bits
    }

    /// Wakes all threads that sleep on either side, because of an event outside of the rings.
    pub fn wake_all(&self) {
        for published in [self.own(), self.other()] {
            published.sleep.0.signal.fetch_add(1, Ordering::Release);
            self.area.wake(&published.sleep.0.signal);
        }
    }

    /// Announces what is wanted. True if it is there already. A bit left over wakes a thread in vain, once.
    fn announce(&self, wanted: Wanted, bits: u32) -> bool {
        self.own().sleep.0.wanted.fetch_or(bits, Ordering::Relaxed);
        // sync: wanted-or-moved. Either this end sees the peer's move, or the peer sees what is wanted.
        fence(Ordering::SeqCst);
        self.is_ready(wanted)
    }

    /// Publishes how much has been taken, unless it has been published. True if the caller must ring the
    /// peer's bell.
    #[inline]
    fn publish_taken(&self, taken: u32) -> bool {
        if self.taken_published.load(Ordering::Relaxed) == taken {
            return false;
        }
        self.taken_published.store(taken, Ordering::Relaxed);
        // sync: bytes-taken
        self.own().taken.0.store(taken, Ordering::Release);
        self.wake_other(Wanted::Room)
    }

    /// Wakes the peer if it waits for this move. True if the caller must ring the peer's bell.
    #[inline]
    fn wake_other(&self, moved: Wanted) -> bool {
        // sync: wanted-or-moved
        fence(Ordering::SeqCst);
        let wanted = self.other().sleep.0.wanted.load(Ordering::Relaxed);
        wanted & (moved.asleep() | moved.by_bell()) != 0 && self.wake_other_now(moved)
    }

    #[cold]
    fn wake_other_now(&self, moved: Wanted) -> bool {
        let sleep = &self.other().sleep.0;
        let wanted = sleep.wanted.fetch_and(!(moved.asleep() | moved.by_bell()), Ordering::AcqRel);
        if wanted & moved.asleep() != 0 {
            sleep.signal.fetch_add(1, Ordering::Release);
            self.area.wake(&sleep.signal);
        }
        wanted & moved.by_bell() != 0
    }

    #[inline]
    fn own(&self) -> &Published {
        self.area.control().published_by(self.side)
    }

    #[inline]
    fn other(&self) -> &Published {
        self.area.control().published_by(self.side.other())
    }
}

/// A reader publishes its position after it has taken this fraction (1/4) of a ring.
const PUBLISH_SHARE: u32 = 4;

#[cfg(test)]
mod tests;
