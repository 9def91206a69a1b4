//! How a connection's bytes leave, and what happens when the peer does not read. Holds no lock while it
//! waits.

use std::io::IoSlice;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ironorb_giop::connection::ServerConnection;

use super::{Connection, SlowPathFlags};
use crate::net::{self, Moved, PIECES_MAX, Shutdown};
use crate::sync::lock;

impl Connection {
    /// Writes to the peer and sends what has been written. Where threads wait for peers themselves, this
    /// waits first until the peer has read enough of earlier bytes.
    #[inline]
    pub(super) fn with(&self, write: impl FnOnce(&mut ServerConnection)) {
        let mut sender = lock(&self.sender);
        if self.slow_path_flags.load(Ordering::Relaxed) & SlowPathFlags::CLOGGED != 0 {
            sender = self.wait_for_room(sender);
        }
        write(&mut sender);
        self.note_sent();
        drop(self.flush(sender, |sender| self.flush_slowly(sender)));
    }

    /// Writes a reply and sends it, unless it may wait for the replies to requests that arrived together with
    /// its own.
    #[inline(always)] // a step of every call
    pub(super) fn with_reply(&self, write: impl FnOnce(&mut ServerConnection)) {
        let mut sender = lock(&self.sender);
        if self.slow_path_flags.load(Ordering::Relaxed) & SlowPathFlags::CLOGGED != 0 {
            sender = self.wait_for_room(sender);
        }
        write(&mut sender);
        if self.holds(&mut sender) {
            return;
        }
        drop(self.flush(sender, |sender| self.leave_for_after_upcall(sender)));
    }

    /// Sends what the peer takes now of these pieces and returns the number of bytes. The caller is writing
    /// and so holds the lock of `sender`.
    #[inline(never)]
    pub(super) fn send_pieces(&self, pieces: &[&[u8]]) -> usize {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        slices.iter_mut().zip(pieces).for_each(|(slice, piece)| *slice = IoSlice::new(piece));
        match net::send_pieces_now(&self.stream, &slices) {
            Ok(Moved::Bytes(count)) => count,
            // An error shows at the next send.
            Ok(Moved::Nothing | Moved::End) | Err(_) => 0,
        }
    }

    /// Returns when at most `transmit_bytes_max` bytes wait for the peer.
    #[cold]
    pub(super) fn wait_until_unclogged(&self) {
        drop(self.wait_for_room(lock(&self.sender)));
    }

    /// True while a dedicated thread waits for the peer. Requests must not be received meanwhile, or their
    /// replies would pile up.
    pub(in crate::server) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::SeqCst)
    }

    /// Sends everything that waits. May block for as long as `transmit_timeout` allows.
    pub(in crate::server) fn flush_stalled(&self) {
        let _sender = self.send_down_to(lock(&self.sender), 0);
        self.stalled.store(false, Ordering::SeqCst);
    }

    /// Leaves the waiting for the peer to a dedicated thread, where the concurrency model does so. Returns
    /// whether such a thread exists.
    #[cold]
    pub(super) fn leave_to_another(&self, _sender: &ServerConnection) -> bool {
        let Some(on_stall) = &self.on_stall else {
            return self.is_on_receivers_thread() && self.leave_to_a_thread_of_its_own();
        };
        if self.stalled.swap(true, Ordering::SeqCst) {
            return true; // it sends ours as well
        }
        let started = on_stall();
        self.stalled.store(started, Ordering::SeqCst);
        started
    }

    /// True on the thread that receives the replies of all asynchronous calls; it may pass a reply on over
    /// this connection. No peer may block it.
    fn is_on_receivers_thread(&self) -> bool {
        self.orb.connector.receiver().is_current_thread()
    }

    /// Starts a thread that waits for the peer, unless one does. False when none can be started.
    pub(super) fn leave_to_a_thread_of_its_own(&self) -> bool {
        let Some(connection) = self.itself.upgrade() else { return false };
        if self.stalled.swap(true, Ordering::SeqCst) {
            return true; // it sends ours as well
        }
        let threads = self.orb.server_threads.clone();
        let started = threads.spawn("ironorb-stalled", move || connection.flush_stalled()).is_ok();
        self.stalled.store(started, Ordering::SeqCst);
        started
    }

    /// Sends everything that waits. If the peer does not take it all now, `slowly` decides about the rest.
    #[inline(always)] // a step of every call
    fn flush<'c>(
        &'c self,
        mut sender: MutexGuard<'c, ServerConnection>,
        slowly: impl FnOnce(MutexGuard<'c, ServerConnection>) -> MutexGuard<'c, ServerConnection>,
    ) -> MutexGuard<'c, ServerConnection> {
        while sender.transmit().pending_bytes() > 0 {
            match net::send_now(&self.stream, sender.transmit().poll_transmit()) {
                Ok(Moved::Bytes(count)) => sender.transmit().transmitted(count),
                Ok(Moved::Nothing | Moved::End) => return slowly(sender),
                Err(_) => self.give_up(&mut sender),
            }
        }
        sender
    }

    /// The peer does not take a whole reply now. The thread waits for it after the upcall, when the results
    /// from which the reply was written are gone. So they do not take their memory twice.
    #[cold]
    fn leave_for_after_upcall<'c>(
        &'c self,
        mut sender: MutexGuard<'c, ServerConnection>,
    ) -> MutexGuard<'c, ServerConnection> {
        if self.on_stall.is_none() || !self.leave_to_another(&sender) {
            self.hold_until_after_upcall();
        }
        self.note_clogged(&mut sender);
        sender
    }

    #[cold]
    fn flush_slowly<'c>(
        &'c self,
        mut sender: MutexGuard<'c, ServerConnection>,
    ) -> MutexGuard<'c, ServerConnection> {
        if self.leave_to_another(&sender) {
            // The waiting thread may have seen fewer bytes.
            self.note_clogged(&mut sender);
            return sender;
        }
        if self.is_on_receivers_thread() {
            self.give_up(&mut sender); // all threads are taken, and no peer may block this one
            return sender;
        }
        self.send_down_to(sender, 0)
    }

    #[cold]
    fn wait_for_room<'c>(
        &'c self,
        mut sender: MutexGuard<'c, ServerConnection>,
    ) -> MutexGuard<'c, ServerConnection> {
        if self.on_stall.is_none() && self.is_on_receivers_thread() {
            // Another thread waits for the peer. A peer that asks for this much and reads none of it is cut
            // off.
            if sender.transmit().pending_bytes() > self.orb.config.connection.framer.message_bytes_max {
                self.give_up(&mut sender);
            }
            return sender;
        }
        self.send_down_to(sender, self.orb.config.transmit_bytes_max)
    }

    /// Sends until at most `left_max` bytes wait. Gives up when the peer reads nothing for
    /// `transmit_timeout`.
    fn send_down_to<'c>(
        &'c self,
        mut sender: MutexGuard<'c, ServerConnection>,
        left_max: usize,
    ) -> MutexGuard<'c, ServerConnection> {
        let mut stuck: Option<(u64, Instant)> = None;
        while sender.transmit().pending_bytes() > left_max {
            match net::send_now(&self.stream, sender.transmit().poll_transmit()) {
                Ok(Moved::Bytes(count)) => sender.transmit().transmitted(count),
                Ok(Moved::Nothing | Moved::End) => {
                    self.note_clogged(&mut sender);
                    self.note_unread(&mut sender);
                    // Other threads may send as well; the bytes that they send count as progress.
                    let sent = sender.transmit().sent_position();
                    let since = match stuck {
                        Some((position, since)) if position == sent => since,
                        _ => Instant::now(),
                    };
                    stuck = Some((sent, since));
                    drop(sender);
                    self.keep_unread_within_limits();
                    let left = self.orb.config.transmit_timeout.saturating_sub(since.elapsed());
                    let _ = net::wait_writable(&self.stream, Some(left));
                    sender = lock(&self.sender);
                    if left.is_zero() && sender.transmit().sent_position() == sent {
                        self.give_up(&mut sender);
                    }
                }
                Err(_) => self.give_up(&mut sender),
            }
        }
        self.note_clogged(&mut sender);
        self.note_unread(&mut sender);
        sender
    }

    /// Counts the bytes that the peer has not read, and shrinks their buffer to what they need.
    fn note_unread(&self, sender: &mut ServerConnection) {
        let transmit = sender.transmit();
        let bytes = if transmit.pending_bytes() > 0 { transmit.release_sent() } else { 0 };
        if let Some(account) = &self.orb.unread_replies {
            self.unread.set(bytes, account);
        }
    }

    fn keep_unread_within_limits(&self) {
        if self.orb.unread_replies.as_ref().is_some_and(|account| account.is_over())
            && let Some(server) = self.server.upgrade()
        {
            server.close_worst_readers();
        }
    }

    /// Tells other threads whether to go on with requests. In a pool, `stalled` tells them.
    fn note_clogged(&self, sender: &mut MutexGuard<'_, ServerConnection>) {
        if self.on_stall.is_some() {
            return;
        }
        if sender.transmit().pending_bytes() > self.orb.config.transmit_bytes_max {
            self.slow_path_flags.fetch_or(SlowPathFlags::CLOGGED, Ordering::SeqCst);
        } else {
            self.slow_path_flags.fetch_and(!SlowPathFlags::CLOGGED, Ordering::SeqCst);
        }
    }

    /// Sends until nothing waits or the socket takes no more.
    pub(super) fn send_what_goes(&self, sender: &mut ServerConnection) {
        while sender.transmit().pending_bytes() > 0
            && let Ok(Moved::Bytes(count)) = net::send_now(&self.stream, sender.transmit().poll_transmit())
        {
            sender.transmit().transmitted(count);
        }
    }

    #[cold]
    pub(super) fn give_up(&self, sender: &mut ServerConnection) {
        sender.handle_end();
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
