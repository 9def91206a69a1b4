//! Notifies servants that their client no longer waits, because it has cancelled the request or is gone.
//! Decides nothing about requests whose servants have not asked.

use std::sync::atomic::Ordering;

use ironorb_giop::framer::Framer;
use ironorb_giop::message::RequestId;

use super::answers::PendingReply;
use super::{Connection, NoWork, SlowPathFlags};
use crate::base::sync::lock;
use crate::connection::{Cancelled, OnCancel, Work};
use crate::driver::clock;
use crate::transport;

impl Connection {
    /// Handles a CancelRequest message. The caller holds the lock of `receiver`.
    #[cold]
    pub(super) fn take_cancellation(&self, id: RequestId) {
        if self.inbox.get().is_some_and(|inbox| inbox.forget(id)) {
            return;
        }
        match self.cancellations.cancel(id, self.progress.carried() > 0) {
            Cancelled::Ignored => {}
            Cancelled::Recorded => {
                self.slow_path_flags.fetch_or(SlowPathFlags::CANCELLED, Ordering::SeqCst);
            }
            Cancelled::Notify(then) => self.notify_cancelled(vec![then]),
        }
    }

    /// Takes and counts what has arrived while a slow-path flag is set.
    #[cold]
    pub(super) fn next_on_slow_path(&self, framer: &mut Framer) -> Result<Option<Work>, NoWork> {
        if self.is_on(SlowPathFlags::OF_RECEIVING & !(SlowPathFlags::CANCELLED | SlowPathFlags::CLIENT_GONE))
        {
            return Err(NoWork::SlowPath);
        }
        let work = Work::next_or_reply(framer, |message| self.take_reply(message));
        let Some(work) = work.map_err(|other| self.deal_with(other))? else { return Ok(None) };
        if self.is_on(SlowPathFlags::CLIENT_GONE) && work.wants_answer() {
            // The request may carry the service contexts that say how to read a oneway behind it.
            work.take_note(&self.orb, &self.session, &PendingReply::of(self));
            framer.recycle(work.into_buffer());
            return Err(NoWork::Again);
        }
        self.note_request(&work);
        self.progress.begin();
        Ok(Some(work))
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
            self.note_client_gone();
        }
    }

    /// Records that the client has closed the connection. Requests that have come before and expect a reply
    /// are not carried out, because no client would read it. Oneways are carried out: their client may have
    /// ended on purpose.
    pub(in crate::driver::server) fn note_client_gone(&self) {
        self.slow_path_flags.fetch_or(SlowPathFlags::CLIENT_GONE, Ordering::SeqCst);
    }

    /// Checks whether the client has closed the connection, where servants may block threads for long.
    pub(in crate::driver::server) fn look_for_client_now(&self) {
        if !self.is_on(SlowPathFlags::CLIENT_GONE) && transport::is_hung_up(&self.stream) {
            self.note_client_gone();
        }
    }

    /// Records that a request has come: earlier cancellations do not concern it. The caller holds the lock of
    /// `receiver`.
    pub(super) fn note_request(&self, work: &Work) {
        if !self.is_on(SlowPathFlags::CANCELLED) {
            return;
        }
        let is_idle = self.progress.carried() == 0;
        if is_idle {
            self.cancellations.forget_unclaimed();
        }
        if is_idle || !self.cancellations.begins(work.id()) {
            self.slow_path_flags.fetch_and(!SlowPathFlags::CANCELLED, Ordering::SeqCst);
        }
    }

    /// Called by the thread that finds the end of the connection. If the client has ended it, all servants
    /// that have asked are notified. If the server is ending it, the client may still wait for its replies.
    /// True when no request is in progress: the caller closes.
    #[must_use]
    pub(in crate::driver::server) fn found_end(&self) -> bool {
        let is_ours = self.is_on(SlowPathFlags::STOPPING);
        if !is_ours || lock(&self.sender).is_ended() || transport::is_hung_up(&self.stream) {
            self.notify_cancelled(self.cancellations.end());
        }
        self.end()
    }

    /// Runs the servants' callbacks on the thread for callbacks, because the caller may hold locks and other
    /// threads may wait for it.
    pub(super) fn notify_cancelled(&self, callbacks: Vec<OnCancel>) {
        let receiver = self.orb.connector.receiver();
        callbacks.into_iter().for_each(|then| receiver.run_soon(then));
    }
}
