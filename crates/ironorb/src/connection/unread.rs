//! Counts the bytes of replies that clients do not read, and limits them for all connections together. Knows
//! no connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::base::locks::LaneLock;

/// The bytes of unread replies of all connections of a server, and their limit.
#[derive(Debug)]
pub(crate) struct UnreadReplies {
    bytes_max: usize,
    /// The sum of all parts. Parts change only under this lock.
    bytes: LaneLock<usize>,
}

impl UnreadReplies {
    pub(crate) fn new(bytes_max: usize) -> Arc<UnreadReplies> {
        Arc::new(UnreadReplies { bytes_max, bytes: LaneLock::new(0) })
    }

    /// Whether all connections together hold more than the limit.
    pub(crate) fn is_over(&self) -> bool {
        *self.bytes.lock() > self.bytes_max
    }

    /// Whether this part may exceed the limit: it is one reply that is larger than the limit, and all other
    /// parts together are within it. Otherwise such a reply could never be sent.
    pub(crate) fn allows(&self, part: &UnreadPart) -> bool {
        let sum = self.bytes.lock();
        let others = sum.saturating_sub(part.bytes());
        part.bytes() > self.bytes_max && !part.has_grown.load(Ordering::SeqCst) && others <= self.bytes_max
    }
}

/// One connection's part of [`UnreadReplies`]. Dropping it gives its bytes back.
#[derive(Debug)]
pub(crate) struct UnreadPart {
    /// `None` without a limit: then nothing is counted.
    account: Option<Arc<UnreadReplies>>,
    bytes: AtomicUsize,
    /// A reply was written behind others that were unread.
    has_grown: AtomicBool,
}

impl UnreadPart {
    pub(crate) fn of(account: Option<Arc<UnreadReplies>>) -> UnreadPart {
        UnreadPart { account, bytes: AtomicUsize::new(0), has_grown: AtomicBool::new(false) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }

    /// Records that the connection holds this many bytes.
    pub(crate) fn set(&self, bytes: usize) {
        let Some(account) = &self.account else { return };
        let mut sum = account.bytes.lock();
        let before = self.bytes.swap(bytes, Ordering::SeqCst);
        let has_grown = bytes > before && before > 0;
        if has_grown || bytes == 0 {
            self.has_grown.store(has_grown, Ordering::SeqCst);
        }
        *sum = *sum - before + bytes;
    }
}

impl Drop for UnreadPart {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        let account = UnreadReplies::new(100);
        let part = || UnreadPart::of(Some(account.clone()));
        let (one, other) = (part(), part());
        one.set(60);
        other.set(40);
        assert!(!account.is_over());
        other.set(41);
        assert!(account.is_over());
        one.set(0);
        assert_eq!((account.is_over(), *account.bytes.lock(), other.bytes()), (false, 41, 41));
        drop((one, other));
        assert_eq!(*account.bytes.lock(), 0, "parts give their bytes back");
    }

    #[test]
    fn one_reply_may_exceed_the_limit() {
        let account = UnreadReplies::new(100);
        let (one, other) = (UnreadPart::of(Some(account.clone())), UnreadPart::of(Some(account.clone())));
        one.set(150);
        other.set(100);
        assert!(account.is_over() && account.allows(&one) && !account.allows(&other));
        other.set(101);
        assert!(!account.allows(&one), "the others are beyond the limit themselves");
        other.set(0);
        one.set(130);
        assert!(account.allows(&one), "a part of it has been read");
        one.set(131);
        assert!(!account.allows(&one), "another reply is behind it");
        one.set(0);
        one.set(150);
        assert!(account.allows(&one));
    }
}
