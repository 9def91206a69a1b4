//! Counts the bytes of replies that clients do not read, and limits them for all connections together. Knows
//! no connection.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of unread replies of all connections of a server, and their limit.
#[derive(Debug)]
pub(crate) struct UnreadReplies {
    bytes_max: usize,
    bytes: AtomicUsize,
}

impl UnreadReplies {
    pub(crate) fn new(bytes_max: usize) -> UnreadReplies {
        UnreadReplies { bytes_max, bytes: AtomicUsize::new(0) }
    }

    /// Whether all connections together hold more than the limit.
    pub(super) fn is_over(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) > self.bytes_max
    }
}

/// One connection's part of [`UnreadReplies`].
#[derive(Debug, Default)]
pub(super) struct UnreadPart(AtomicUsize);

impl UnreadPart {
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Records that the connection holds this many bytes.
    pub(super) fn set(&self, bytes: usize, account: &UnreadReplies) {
        let before = self.0.swap(bytes, Ordering::SeqCst);
        // The addition comes first, so that the sum is never below what the connections hold.
        account.bytes.fetch_add(bytes, Ordering::SeqCst);
        account.bytes.fetch_sub(before, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        let account = UnreadReplies::new(100);
        let (one, other) = (UnreadPart::default(), UnreadPart::default());
        one.set(60, &account);
        other.set(40, &account);
        assert!(!account.is_over());
        other.set(41, &account);
        assert!(account.is_over());
        one.set(0, &account);
        assert_eq!((account.is_over(), account.bytes.load(Ordering::SeqCst), other.bytes()), (false, 41, 41));
    }
}
