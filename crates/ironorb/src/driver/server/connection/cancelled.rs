//! Checks whether the client has gone, and notifies servants that their client no longer waits.

use std::sync::atomic::Ordering;

use ironorb_giop::framer::Framer;

use super::Connection;
use super::answers::PendingReply;
use crate::connection::{Arrival, Flags, OnCancel};
use crate::driver::clock;
use crate::lane::Event;
use crate::transport;

impl Connection {
    /// Handles what has come instead of work. The caller holds the lock of `receiver`.
    #[cold]
    pub(super) fn handle_arrival(&self, framer: &mut Framer, arrival: Arrival) {
        match arrival {
            Arrival::CancelRequest(id) => {
                self.orb.counters.count(Event::RequestCancelled);
                if self.inbox.get().is_none_or(|inbox| !inbox.forget(id)) {
                    self.notify_cancelled(self.session.handle_cancel(id));
                }
            }
            Arrival::Reply(message) => self.take_reply(message),
            Arrival::Unanswerable(work) => {
                self.orb.counters.count(Event::RequestUnanswerable);
                work.take_note(&self.orb, &self.agreements, &PendingReply::of(self));
                framer.recycle(work.into_buffer());
            }
            Arrival::Work | Arrival::Nothing | Arrival::Elsewhere | Arrival::End => {}
        }
    }

    /// Checks whether the client has closed the connection, before a thread carries out a request that came
    /// with others: their servants may have taken long. Checks at most once per tick of the system's clock,
    /// so that fast requests do not pay for it.
    #[inline]
    pub(super) fn look_for_client(&self, framer: &Framer) {
        if framer.holds_bytes() {
            self.look_for_client_again();
        }
    }

    #[cold]
    fn look_for_client_again(&self) {
        let now = clock::coarse().as_nanos();
        if self.client_seen.swap(now, Ordering::Relaxed) != now && transport::is_hung_up(&self.stream) {
            self.session.handle_client_gone();
        }
    }

    /// Checks whether the client has closed the connection, where servants may block threads for long.
    pub(in crate::driver::server) fn look_for_client_now(&self) {
        if !self.session.is_on(Flags::CLIENT_GONE) && transport::is_hung_up(&self.stream) {
            self.session.handle_client_gone();
        }
    }

    /// Called by the thread that finds the end of the connection. If the client has ended it, all servants
    /// that have asked are notified. If the server is ending it, the client may still wait for its replies.
    /// True when no request is in progress: the caller closes.
    #[must_use]
    pub(in crate::driver::server) fn found_end(&self) -> bool {
        if self.session.is_on(Flags::MALFORMED) {
            self.orb.counters.count(Event::StreamMalformed);
            self.with(|sender| self.session.write_error(sender));
        }
        let is_ours = self.session.is_on(Flags::STOPPING);
        let is_client_gone = !is_ours || self.sender.lock().is_ended() || transport::is_hung_up(&self.stream);
        self.notify_cancelled(self.session.handle_end(is_client_gone));
        self.end_calls();
        self.session.is_done()
    }

    /// Runs the servants' callbacks on the thread for callbacks, because the caller may hold locks and other
    /// threads may wait for it.
    pub(super) fn notify_cancelled(&self, callbacks: impl IntoIterator<Item = OnCancel>) {
        let receiver = self.client_lane().receiver();
        callbacks.into_iter().for_each(|then| receiver.run_soon(then));
    }
}
