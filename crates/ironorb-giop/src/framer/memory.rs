//! Receive buffers, and the account of the memory that the buffers of many connections take together. Nothing
//! here waits: a request for memory that is not available is refused.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::BUFFER_BYTES;

/// The limit on memory for messages that arrive over many connections together. It comes on top of the
/// [`BUFFER_BYTES`] that each connection has for small messages.
///
/// A buffer counts from the time it grows until it is dropped, wherever it is: in a framer, in a message that
/// a servant reads, or kept for the next message. Fragments count from their first byte.
#[derive(Debug)]
pub struct ReceiveMemory {
    bytes_max: usize,
    taken: AtomicUsize,
}

impl ReceiveMemory {
    /// An account of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        ReceiveMemory { bytes_max, taken: AtomicUsize::new(0) }
    }

    /// Bytes in use now.
    pub fn taken_bytes(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether so much is in use that nothing more should be kept for later. So most of the memory is left
    /// for arriving messages, however many connections keep something.
    pub(super) fn is_tight(&self) -> bool {
        self.taken_bytes() > self.bytes_max / SPARE_SHARE
    }

    fn take(&self, bytes: usize, whether: Whether) -> bool {
        let more = |taken: usize| {
            let sum = taken.saturating_add(bytes);
            (whether == Whether::InAnyCase || sum <= self.bytes_max).then_some(sum)
        };
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// At most about a quarter of the account is kept for later.
const SPARE_SHARE: usize = 4;

/// How to charge memory that may exceed the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whether {
    /// Only if the account has enough left.
    IfThereIs,
    /// In any case: for bytes that have arrived already, in a buffer that has been charged.
    InAnyCase,
}

/// The account that a connection's buffers are charged to; `None` where there is no limit.
pub(super) type Account = Option<Arc<ReceiveMemory>>;

/// The bytes charged to an account. Dropping it returns them.
#[derive(Default)]
pub(super) struct Charge(Option<Box<Taken>>);

struct Taken {
    account: Arc<ReceiveMemory>,
    bytes: usize,
}

impl Charge {
    /// Raises the charge to `bytes`, if it is less. False if the account has not enough left.
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

/// A receive buffer. All its bytes are initialised. Dropping it returns its charge to the account.
#[derive(Default)]
pub struct Buffer {
    bytes: Box<[u8]>,
    charge: Charge,
}

impl Buffer {
    /// A buffer of [`BUFFER_BYTES`] for small messages.
    pub(super) fn small() -> Buffer {
        Buffer::from(vec![0; BUFFER_BYTES])
    }

    /// A buffer of bytes that have been charged before.
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

    /// Some of the bytes, in the buffer's memory, which is no longer charged.
    pub(crate) fn into_octets(self, octets: Range<usize>) -> Vec<u8> {
        let mut bytes = self.bytes.into_vec();
        bytes.truncate(octets.end);
        bytes.drain(..octets.start.min(bytes.len()));
        bytes
    }

    /// Grows the buffer to `length` bytes, if it is shorter. False, and unchanged, if memory is lacking.
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
            // The system's pages are zero until they are written, and a small message writes to one page
            // only.
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

/// The memory of such a buffer is charged to no account.
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
    fn dropping_a_buffer_returns_its_charge() {
        let memory = Arc::new(ReceiveMemory::new(100_000));
        let account = Some(memory.clone());
        let mut buffer = Buffer::small();
        assert!(buffer.grow(BUFFER_BYTES + 60_000, &account, Whether::IfThereIs));
        assert_eq!((memory.taken_bytes(), buffer.len()), (60_000, BUFFER_BYTES + 60_000));
        assert!(buffer.grow(1, &account, Whether::IfThereIs), "the buffer is long enough already");
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
        assert_eq!(
            size_of::<Option<Buffer>>(),
            size_of::<Vec<u8>>(),
            "every call moves messages, so a buffer must stay small"
        );
    }
}
