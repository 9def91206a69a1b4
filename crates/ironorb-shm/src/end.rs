//! One side of a connection: where it writes, where it reads, and how it waits.
//!
//! Each end believes its own positions only, which it keeps in memory of its own. What the other tells is checked: a
//! position that goes backwards, or that the ring cannot hold, is [`Broken`].
//!
//! Waking without a system call in the steady state: who wants to sleep says so (`wanted`), and then looks once more; who has
//! moved a position looks at `wanted` afterwards. A fence on either side sees to it that one of the two sees the other.

use std::sync::atomic::AtomicU32 as Private;
use std::time::Duration;

use crate::area::{Area, Side, Told};
use crate::copy;
use crate::sync::{Ordering, fence};

/// What an end waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Bytes to read.
    Bytes,
    /// Room to write.
    Room,
    /// Either.
    Any,
}

impl Wanted {
    /// As bits of `wanted`, for one who sleeps at `signal`.
    #[inline]
    fn asleep(self) -> u32 {
        match self {
            Wanted::Bytes => BYTES,
            Wanted::Room => ROOM,
            Wanted::Any => BYTES | ROOM,
        }
    }

    /// The same for one who is to be told otherwise.
    #[inline]
    fn by_bell(self) -> u32 {
        self.asleep() << BELL_SHIFT
    }
}

const BYTES: u32 = 1;
const ROOM: u32 = 2;
const BELL_SHIFT: u32 = 2;

/// The other end has written what it cannot mean.
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

/// What a read or write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Moved {
    /// So many bytes. 0 when there are none, or there is no room.
    pub bytes: usize,
    /// The other end waits by its bell, which the caller is to ring now.
    pub ring_bell: bool,
}

/// One side of a connection.
///
/// One thread at a time reads and one writes, which the caller sees to; where it does not, bytes are mixed up, and nothing
/// worse. Any number may sleep.
#[derive(Debug)]
pub struct End<A> {
    area: A,
    side: Side,
    /// Bytes of a ring.
    capacity: u32,
    /// Bytes written so far. These are this process's own; whoever writes them holds what the caller sees to.
    written: Private,
    /// How many of them the other end had taken when we last looked.
    taken_by_other: Private,
    /// Bytes taken so far.
    taken: Private,
    /// How many of them the other end has been told of.
    taken_told: Private,
    /// Bytes that the other end had written when we last looked.
    written_by_other: Private,
}

impl<A: Area> End<A> {
    /// The end of this side, in an area that no end has used yet on this side.
    pub fn new(area: A, side: Side) -> End<A> {
        End::at(area, side, 0)
    }

    /// The same when `position` bytes have gone each way.
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
            taken_told: at(),
            written_by_other: at(),
            area,
        }
    }

    /// Copies out what has come, as much as there is space for. Never blocks.
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
            return Ok(Moved { bytes, ring_bell: self.tell_taken(taken) });
        }
        copy::take(self.area.ring(self.side.other()), taken, &mut space[..bytes]);
        let taken = taken.wrapping_add(bytes as u32);
        self.taken.store(taken, Ordering::Relaxed);
        // Telling costs a fence, and more when the other waits. So it is done when we have nothing else to do, which is when
        // the ring is found empty; but the other must not wait for room while there is much of it.
        let untold = taken.wrapping_sub(self.taken_told.load(Ordering::Relaxed));
        let ring_bell = untold >= self.capacity / TOLD_SHARE && self.tell_taken(taken);
        Ok(Moved { bytes, ring_bell })
    }

    /// Copies in as much as there is room for. Never blocks.
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
                return Err(Broken); // it goes backwards, or has taken more than there was
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

    /// Tells the other how much has been taken, as a read does that finds nothing. True when its bell is to be rung.
    #[inline]
    #[must_use]
    pub fn tell(&self) -> bool {
        self.tell_taken(self.taken.load(Ordering::Relaxed))
    }

    /// Whether a read or write would do something now. May be true in vain, when others are at it.
    #[inline]
    pub fn is_ready(&self, wanted: Wanted) -> bool {
        let has_bytes =
            || self.other().written.0.load(Ordering::Relaxed) != self.taken.load(Ordering::Relaxed);
        // What the other cannot mean counts as room: whoever writes finds it out.
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

    /// Sleeps until there is what is wanted, at most for so long; perhaps shorter, and perhaps in vain. Not if it is over by
    /// now, of which whoever ends it tells by [`wake_all`](Self::wake_all) afterwards.
    pub fn sleep(&self, wanted: Wanted, at_most: Duration, is_over: impl FnOnce() -> bool) {
        let sleep = &self.own().sleep.0;
        // Before anything is looked at: who changes it later changes this as well.
        let signal = sleep.signal.load(Ordering::Acquire);
        if !self.announce(wanted, wanted.asleep()) && !is_over() {
            self.area.sleep(&sleep.signal, signal, at_most);
        }
    }

    /// Has the bell rung, once, as soon as there is what is wanted. True when there is something already: then it may not be
    /// rung for that.
    #[inline]
    pub fn want_bell(&self, wanted: Wanted) -> bool {
        self.announce(wanted, wanted.by_bell())
    }

    /// Whether the bell has not been rung since it was last wanted for this.
    #[inline]
    pub fn is_bell_wanted(&self, wanted: Wanted) -> bool {
        let bits = wanted.by_bell();
        self.own().sleep.0.wanted.load(Ordering::Relaxed) & bits == bits
    }

    /// Wakes all that sleep on either side: there is something else that they should see.
    pub fn wake_all(&self) {
        for told in [self.own(), self.other()] {
            told.sleep.0.signal.fetch_add(1, Ordering::Release);
            self.area.wake(&told.sleep.0.signal);
        }
    }

    /// Says what is wanted; true when it is there already. A bit that is left over wakes somebody in vain, once.
    fn announce(&self, wanted: Wanted, bits: u32) -> bool {
        self.own().sleep.0.wanted.fetch_or(bits, Ordering::Relaxed);
        // sync: wanted-or-moved. Either this sees what the other has done, or the other sees what is wanted.
        fence(Ordering::SeqCst);
        self.is_ready(wanted)
    }

    /// Tells how much has been taken, if the other has not been told. True when its bell is to be rung.
    #[inline]
    fn tell_taken(&self, taken: u32) -> bool {
        if self.taken_told.load(Ordering::Relaxed) == taken {
            return false;
        }
        self.taken_told.store(taken, Ordering::Relaxed);
        // sync: bytes-taken
        self.own().taken.0.store(taken, Ordering::Release);
        self.wake_other(Wanted::Room)
    }

    /// Wakes the other if it wants what it has just been told of. True when its bell is to be rung.
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
    fn own(&self) -> &Told {
        self.area.control().told_by(self.side)
    }

    #[inline]
    fn other(&self) -> &Told {
        self.area.control().told_by(self.side.other())
    }
}

/// The other is told when this share of a ring has been taken.
const TOLD_SHARE: u32 = 4;

#[cfg(test)]
mod tests;
