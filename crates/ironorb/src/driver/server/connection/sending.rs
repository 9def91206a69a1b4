//! How a connection's bytes leave, and what happens when the peer does not read: the connection's own thread
//! waits for it, and all other threads leave the bytes to the server's writer thread. No thread holds the lock of
//! `sender` while it waits.

use std::io::IoSlice;
use std::sync::atomic::Ordering;

use ironorb_giop::connection::ServerConnection;

use super::Connection;
use crate::base::locks::LockGuard;
use crate::base::spawner::{self, ThreadClass};
use crate::base::time::Time;
use crate::connection::{Flags, Stall};
use crate::driver::clock;
use crate::lane::Event;
use crate::transport::{self, CodePoint, Moved, PIECES_MAX, Shutdown};

/// The most sends in one look of the writer thread, so that one peer that reads fast does not keep it.
const SENDS_A_LOOK: usize = 16;

impl Connection {
    /// Has packets carry this code point from now on. What the system refuses leaves them as they were.
    pub(super) fn mark_packets(&self, code_point: CodePoint) {
        if self.code_point.swap(code_point.number(), Ordering::Relaxed) != code_point.number() {
            let _refused = self.stream.set_code_point(code_point);
        }
    }

    /// Writes to the peer and sends what has been written. If the connection has a thread of its own, this
    /// waits first until the peer has read enough of earlier bytes.
    #[inline]
    pub(super) fn with(&self, write: impl FnOnce(&mut ServerConnection)) {
        let mut sender = self.lock_for_writing();
        write(&mut sender);
        self.session.note_sent();
        self.flush(sender, |sender| self.flush_slowly(sender));
    }

    /// Writes to the peer and sends what the peer takes now. The rest is left to the writer thread. Never waits.
    pub(super) fn with_at_once(&self, write: impl FnOnce(&mut ServerConnection)) {
        let mut sender = self.sender.lock();
        write(&mut sender);
        self.session.note_sent();
        self.send_soon_what_waits(&mut sender);
    }

    /// Whether the peer has not taken all that was written. The flags of that may be set a moment longer.
    #[cold]
    pub(super) fn has_unread(&self) -> bool {
        self.sender.lock().transmit().pending_bytes() > 0
    }

    /// Writes a reply and sends it, unless it may wait for the replies to requests that arrived together with
    /// its own.
    #[inline(always)] // a step of every call
    pub(super) fn with_reply(&self, write: impl FnOnce(&mut ServerConnection)) {
        let is_plain = self.session.is_plain_sending();
        let mut sender = if is_plain { self.sender.lock() } else { self.lock_for_writing() };
        write(&mut sender);
        if is_plain {
            self.flush(sender, |sender| self.leave_for_after_upcall(sender));
        } else {
            self.send_or_hold(sender);
        }
    }

    /// Sends the reply that has been written last, unless it may wait for others.
    #[cold]
    fn send_or_hold(&self, mut sender: LockGuard<'_, ServerConnection>) {
        if self.holds(&mut sender) {
            return;
        }
        self.flush(sender, |sender| self.leave_for_after_upcall(sender));
        self.note_all_sent();
    }

    /// Locks the sending half when there is room for one more message.
    #[inline]
    fn lock_for_writing(&self) -> LockGuard<'_, ServerConnection> {
        let sender = self.sender.lock();
        if self.session.is_on(Flags::CLOGGED) { self.wait_for_room(sender) } else { sender }
    }

    /// Sends what the peer takes now of these pieces and returns the number of bytes. The caller is writing
    /// and so holds the lock of `sender`.
    #[inline(never)]
    pub(super) fn send_pieces(&self, pieces: &[&[u8]]) -> usize {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        slices.iter_mut().zip(pieces).for_each(|(slice, piece)| *slice = IoSlice::new(piece));
        match transport::send_pieces_now(&self.stream, &slices) {
            Ok(Moved::Bytes(count)) => count,
            // An error shows at the next send.
            Ok(Moved::Nothing | Moved::End) | Err(_) => 0,
        }
    }

    /// Returns when at most `transmit_bytes_max` bytes wait for the peer.
    #[cold]
    pub(super) fn wait_until_unclogged(&self) {
        let mut sender = self.wait_for_room(self.sender.lock());
        self.note_unread(&mut sender);
    }

    /// True while the writer thread sends what waits. Requests must not be received meanwhile, or their
    /// replies would pile up.
    pub(in crate::driver::server) fn is_stalled(&self) -> bool {
        self.session.is_on(Flags::STALLED)
    }

    /// Sends what the peer takes now, on the writer thread. Gives up a peer that has read nothing for
    /// `transmit_timeout`, and returns when that would be. `None` when nothing is left to send.
    pub(in crate::driver::server) fn send_stalled(&self, stall: &mut Stall, now: Time) -> Option<Time> {
        let mut sender = self.sender.lock();
        let mut sends = SENDS_A_LOOK;
        while sends > 0 && self.send_some(&mut sender) {
            sends -= 1;
        }
        let position = sender.transmit().sent_position();
        let given_up_at = stall.given_up_at(position, now, self.lane().config.transmit_timeout);
        if given_up_at <= now && sender.transmit().pending_bytes() > 0 {
            self.orb.counters.count(Event::ReaderGivenUp);
            self.give_up(&mut sender);
        }
        self.note_clogged(&mut sender);
        self.note_unread(&mut sender);
        let is_left = sender.transmit().pending_bytes() > 0;
        if !is_left {
            self.session.end_stall();
        }
        drop(sender);
        self.keep_unread_within_limits();
        is_left.then_some(given_up_at)
    }

    /// Leaves what waits to the writer thread. The caller holds the lock of `sender`.
    #[cold]
    fn leave_to_writer(&self, sender: &mut ServerConnection) {
        let has_more_before = self.session.begin_stall();
        if has_more_before
            && self.client_lane().receiver().is_current_thread()
            && sender.transmit().pending_bytes() > self.orb.config.connection.framer.message_bytes_max
        {
            // Nothing else bounds the replies that are passed on to one peer that reads none of them.
            return self.give_up(sender);
        }
        let (itself, server) = (self.itself.upgrade(), self.server.upgrade());
        // The writer looks again if it has the connection already: it must count these bytes too.
        let is_left =
            itself.zip(server).is_some_and(|(itself, server)| server.writer.add(&server, itself).is_ok());
        if !is_left {
            self.session.end_stall();
            self.give_up(sender); // the system has no thread for it, or the server has gone
        }
        self.note_clogged(sender);
    }

    /// Sends what goes, and leaves the rest to the writer thread. Never waits.
    pub(super) fn send_soon_what_waits(&self, sender: &mut ServerConnection) {
        self.send_what_goes(sender);
        if sender.transmit().pending_bytes() > 0 {
            self.leave_to_writer(sender);
        }
    }

    /// Whether the calling thread may wait for the peer. The threads of a pool may not. Nor may the thread that
    /// receives the replies of all asynchronous calls, which may pass a reply on over this connection, nor the one that ends
    /// upcalls of all connections.
    fn may_wait(&self) -> bool {
        self.has_own_thread
            && !self.client_lane().receiver().is_current_thread()
            && spawner::current_class() != Some(ThreadClass::Timer)
    }

    /// Sends everything that waits. If the peer does not take it all now, `slowly` decides about the rest.
    #[inline(always)] // a step of every call
    fn flush<'c>(
        &'c self,
        mut sender: LockGuard<'c, ServerConnection>,
        slowly: impl FnOnce(LockGuard<'c, ServerConnection>),
    ) {
        while sender.transmit().pending_bytes() > 0 {
            match transport::send_now(&self.stream, sender.transmit().poll_transmit()) {
                Ok(Moved::Bytes(count)) => sender.transmit().transmitted(count),
                Ok(Moved::Nothing | Moved::End) => return slowly(sender),
                Err(_) => self.give_up(&mut sender),
            }
        }
    }

    /// The peer does not take a whole reply now. A thread that waits for it does so after the upcall, when the
    /// results from which the reply was written are gone. So they do not take their memory twice.
    #[cold]
    fn leave_for_after_upcall(&self, mut sender: LockGuard<'_, ServerConnection>) {
        if self.has_own_thread {
            self.session.hold_until_after_upcall();
            self.note_clogged(&mut sender);
        } else {
            self.leave_to_writer(&mut sender);
        }
    }

    #[cold]
    fn flush_slowly(&self, mut sender: LockGuard<'_, ServerConnection>) {
        if self.may_wait() {
            drop(self.send_down_to(sender, 0));
        } else {
            self.leave_to_writer(&mut sender);
        }
    }

    #[cold]
    fn wait_for_room<'c>(
        &'c self,
        sender: LockGuard<'c, ServerConnection>,
    ) -> LockGuard<'c, ServerConnection> {
        if !self.may_wait() {
            return sender;
        }
        let sender = self.send_down_to(sender, self.lane().config.transmit_bytes_max);
        // What is left is about to be sent. It counts again if the peer does not take it.
        self.unread.set(0);
        sender
    }

    /// Sends until at most `left_max` bytes wait. Gives up when the peer reads nothing for
    /// `transmit_timeout`.
    fn send_down_to<'c>(
        &'c self,
        mut sender: LockGuard<'c, ServerConnection>,
        left_max: usize,
    ) -> LockGuard<'c, ServerConnection> {
        let mut stall = Stall::default();
        while sender.transmit().pending_bytes() > left_max {
            if self.send_some(&mut sender) {
                continue;
            }
            if sender.transmit().pending_bytes() == 0 {
                break; // the connection has failed
            }
            let (position, now) = (sender.transmit().sent_position(), clock::now());
            let given_up_at = stall.given_up_at(position, now, self.lane().config.transmit_timeout);
            if given_up_at <= now {
                self.orb.counters.count(Event::ReaderGivenUp);
                self.give_up(&mut sender);
                continue;
            }
            self.note_clogged(&mut sender);
            self.note_unread(&mut sender);
            drop(sender);
            self.keep_unread_within_limits();
            let _ = transport::wait_writable(&self.stream, Some(given_up_at.since(now)));
            sender = self.sender.lock();
        }
        self.note_clogged(&mut sender);
        if left_max == 0 {
            self.unread.set(0);
        }
        sender
    }

    /// Counts the bytes that the peer has not read, and shrinks their buffer to what they need.
    fn note_unread(&self, sender: &mut ServerConnection) {
        let transmit = sender.transmit();
        self.unread.set(if transmit.pending_bytes() > 0 { transmit.release_sent() } else { 0 });
    }

    fn keep_unread_within_limits(&self) {
        if self.lane().unread_replies.as_ref().is_some_and(|account| account.is_over())
            && let Some(server) = self.server.upgrade()
        {
            server.close_worst_readers();
        }
    }

    fn note_clogged(&self, sender: &mut ServerConnection) {
        self.session.note_pending(sender.transmit().pending_bytes(), self.lane().config.transmit_bytes_max);
    }

    /// Sends until nothing waits or the socket takes no more.
    pub(super) fn send_what_goes(&self, sender: &mut ServerConnection) {
        while self.send_some(sender) {}
    }

    /// Sends once. False when the peer takes nothing, or nothing waits. A failed connection drops what waits.
    fn send_some(&self, sender: &mut ServerConnection) -> bool {
        if sender.transmit().pending_bytes() == 0 {
            return false;
        }
        match transport::send_now(&self.stream, sender.transmit().poll_transmit()) {
            Ok(Moved::Bytes(count)) => {
                sender.transmit().transmitted(count);
                true
            }
            Ok(Moved::Nothing | Moved::End) => false,
            Err(_) => {
                self.give_up(sender);
                false
            }
        }
    }

    #[cold]
    pub(super) fn give_up(&self, sender: &mut ServerConnection) {
        sender.handle_end();
        self.unread.set(0);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
