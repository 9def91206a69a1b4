//! Receive buffers, and the account of what those of many connections take together. Waits for nothing: memory that is not
//! to be had is refused.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::BUFFER_BYTES;

/// What messages that come over many connections may take together, beyond the [`BUFFER_BYTES`] that each connection has for
/// small ones.
///
/// What a buffer takes counts from when it grows until it is dropped, wherever it is meanwhile: with a framer, in a message
/// that a servant reads, kept for the next message. Fragments count from the first byte.
#[derive(Debug)]
pub struct ReceiveMemory {
    bytes_max: usize,
    taken: AtomicUsize,
}

impl ReceiveMemory {
    /// An account of so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        ReceiveMemory { bytes_max, taken: AtomicUsize::new(0) }
    }

    /// Bytes that are taken now.
    pub fn taken_bytes(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// True when so much is taken that nothing more should be kept for later. So most of it is left for what comes, however
    /// many connections keep something.
    pub(super) fn is_tight(&self) -> bool {
        self.taken_bytes() > self.bytes_max / KEPT_PART
    }

    fn take(&self, bytes: usize, whether: Whether) -> bool {
        let more = |taken: usize| {
            let sum = taken.saturating_add(bytes);
            (whether == Whether::InAnyCase || sum <= self.bytes_max).then_some(sum)
        };
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// What is kept for later is about a quarter at most.
const KEPT_PART: usize = 4;

/// Whether memory is taken that is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whether {
    /// Only where there is some left.
    IfThereIs,
    /// For bytes that have arrived already, in a buffer that has been paid for.
    InAnyCase,
}

/// What a connection's buffers are charged to; nothing where there is no limit.
pub(super) type Account = Option<Arc<ReceiveMemory>>;

/// What has been taken from an account. Given back when it is dropped.
#[derive(Default)]
pub(super) struct Charge(Option<Box<Taken>>);

struct Taken {
    account: Arc<ReceiveMemory>,
    bytes: usize,
}

impl Charge {
    /// Takes more, if it is less than `bytes`. False when that is not to be had.
    pub(super) fn raise(&mut self, bytes: usize, account: &Account, whether: Whether) -> bool {
        let Some(account) = account else { return true };
        let more = bytes.saturating_sub(self.bytes());
        if more == 0 {
            return true;
        }
        if !account.take(more, whether) {
            return false;
        }
        match &mut self.0 {
            Some(taken) => taken.bytes = bytes,
            None => self.0 = Some(Box::new(Taken { account: account.clone(), bytes })),
        }
        true
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |taken| taken.bytes)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.account.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Charge({})", self.bytes())
    }
}

/// A receive buffer: bytes that are all initialised. What it has been charged goes with it, and back when it is dropped.
#[derive(Default)]
pub struct Buffer {
    bytes: Box<[u8]>,
    charge: Charge,
}

impl Buffer {
    /// One for small messages, of [`BUFFER_BYTES`].
    pub(super) fn small() -> Buffer {
        Buffer::from(vec![0; BUFFER_BYTES])
    }

    /// Bytes that have been charged before.
    pub(super) fn charged(bytes: Vec<u8>, charge: Charge) -> Buffer {
        Buffer { bytes: bytes.into_boxed_slice(), charge }
    }

    /// A copy of bytes that have arrived.
    #[cold]
    pub(super) fn copied(bytes: &[u8], account: &Account) -> Buffer {
        let mut buffer = Buffer::from(bytes.to_vec());
        let over = bytes.len().saturating_sub(BUFFER_BYTES);
        buffer.charge.raise(over, account, Whether::InAnyCase);
        buffer
    }

    /// Makes it as long as this, if it is not. False when the memory is not to be had: then it stays as it is.
    #[inline]
    pub(super) fn grow(&mut self, length: usize, account: &Account, whether: Whether) -> bool {
        length <= self.len() || self.grow_by_some(length, account, whether)
    }

    #[cold]
    fn grow_by_some(&mut self, length: usize, account: &Account, whether: Whether) -> bool {
        if !self.charge.raise(length.saturating_sub(BUFFER_BYTES), account, whether) {
            return false;
        }
        if self.is_empty() {
            // The system's pages are zero until somebody writes to them, and small messages write to one.
            self.bytes = vec![0; length].into_boxed_slice();
            return true;
        }
        let mut bytes = std::mem::take(&mut self.bytes).into_vec();
        bytes.reserve_exact(length - bytes.len());
        bytes.resize(length, 0);
        self.bytes = bytes.into_boxed_slice();
        true
    }
}

/// Memory that is charged to nobody.
impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Buffer {
        Buffer { bytes: bytes.into_boxed_slice(), charge: Charge::default() }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len()).field("charge", &self.charge).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_buffer_takes_goes_back_with_it() {
        let memory = Arc::new(ReceiveMemory::new(100_000));
        let account = Some(memory.clone());
        let mut buffer = Buffer::small();
        assert!(buffer.grow(BUFFER_BYTES + 60_000, &account, Whether::IfThereIs));
        assert_eq!((memory.taken_bytes(), buffer.len()), (60_000, BUFFER_BYTES + 60_000));
        assert!(buffer.grow(1, &account, Whether::IfThereIs), "it is as long already");
        let mut other = Buffer::default();
        assert!(!other.grow(BUFFER_BYTES + 40_001, &account, Whether::IfThereIs));
        assert_eq!((memory.taken_bytes(), other.len()), (60_000, 0));
        assert!(other.grow(BUFFER_BYTES + 40_000, &account, Whether::IfThereIs));
        let copy = Buffer::copied(&buffer, &account);
        assert_eq!((memory.taken_bytes(), copy[..] == buffer[..]), (160_000, true));
        drop(buffer);
        assert_eq!(memory.taken_bytes(), 100_000);
        drop((other, copy));
        assert_eq!(memory.taken_bytes(), 0);
        assert!(!memory.is_tight());
    }

    #[test]
    fn without_an_account_nothing_is_charged() {
        let mut buffer = Buffer::default();
        assert!(buffer.grow(1 << 20, &None, Whether::IfThereIs));
        assert_eq!((buffer.len(), buffer.charge.bytes()), (1 << 20, 0));
        assert_eq!(size_of::<Option<Buffer>>(), size_of::<Vec<u8>>(), "messages are moved in every call");
    }
}
