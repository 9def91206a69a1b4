//! Bytes waiting to leave a connection.

/// A queue of bytes: messages are written at its end, the driver sends from its front.
#[derive(Debug, Default)]
pub struct Transmit {
    buf: Vec<u8>,
    /// sent <= buf.len(); both are 0 when everything has left.
    sent: usize,
    /// Bytes sent since the connection was made.
    sent_total: u64,
}

/// A buffer larger than this is given back when everything has left.
const KEEP_BYTES_MAX: usize = 256 << 10;

impl Transmit {
    /// Where messages are appended.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    /// What should be sent next; empty when there is nothing.
    #[inline]
    pub fn poll_transmit(&self) -> &[u8] {
        &self.buf[self.sent..]
    }

    /// Says that the first `count` bytes have been sent.
    #[inline]
    pub fn transmitted(&mut self, count: usize) {
        self.sent += count;
        self.sent_total += count as u64;
        if self.sent >= self.buf.len() {
            self.clear();
        } else if self.sent > KEEP_BYTES_MAX && self.sent > self.buf.len() / 2 {
            // A peer that never quite catches up must not make the buffer grow for ever.
            self.buf.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Bytes waiting.
    #[inline]
    pub fn pending_bytes(&self) -> usize {
        self.buf.len() - self.sent
    }

    /// Bytes sent since the connection was made: whether a message has left does not depend on what others
    /// have written behind it.
    #[inline]
    pub fn sent_position(&self) -> u64 {
        self.sent_total
    }

    /// Where in the stream the next message will begin.
    #[inline]
    pub fn end_position(&self) -> u64 {
        self.sent_total + self.pending_bytes() as u64
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.sent = 0;
        if self.buf.capacity() > KEEP_BYTES_MAX {
            self.buf = Vec::new();
        } else {
            self.buf.clear();
        }
    }
}
