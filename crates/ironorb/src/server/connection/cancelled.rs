//! Who is told that the client of an accepted connection no longer waits: for a request that it cancels, or for any when it
//! is gone. Decides nothing about requests whose servants have not asked.

use std::sync::atomic::Ordering;

use ironorb_giop::framer::Framer;
use ironorb_giop::message::RequestId;

use super::answers::PendingReply;
use super::{Connection, NoWork, SlowPathFlags};
use crate::cancellations::{Cancelled, OnCancel};
use crate::coarse_instant::CoarseInstant;
use crate::net;
use crate::server::work::Work;
use crate::sync::lock;

impl Connection {
    /// The client no longer waits for this request. Called under the lock of `receiver`.
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
            Cancelled::Notify(then) => self.tell_cancelled(vec![then]),
        }
    }

    /// What has arrived where there is a [`SlowPathFlags`], counted.
    #[cold]
    pub(super) fn next_on_slow_path(&self, framer: &mut Framer) -> Result<Option<Work>, NoWork> {
        if self.is_on(SlowPathFlags::OF_RECEIVING & !(SlowPathFlags::CANCELLED | SlowPathFlags::CLIENT_GONE))
        {
            return Err(NoWork::SlowPath);
        }
        let work = Work::next_or_reply(framer, |message| self.take_reply(message));
        let Some(work) = work.map_err(|other| self.deal_with(other))? else { return Ok(None) };
        if self.is_on(SlowPathFlags::CLIENT_GONE) && work.wants_answer() {
            // It may tell how to read a oneway behind it.
            work.take_note(&self.orb, &self.session, &PendingReply::of(self));
            framer.recycle(work.into_buffer());
            return Err(NoWork::Again);
        }
        self.note_request(&work);
        self.progress.begin();
        Ok(Some(work))
    }

    /// Looks whether the client has closed the connection, before a request is carried out that came with others: their
    /// servants may have taken long. At most once in each tick of the system's clock, so that requests that are served
    /// quickly do not pay for it.
    #[inline]
    pub(super) fn look_for_client(&self, framer: &Framer) {
        if framer.holds_bytes() {
            self.look_for_client_again();
        }
    }

    #[cold]
    fn look_for_client_again(&self) {
        let CoarseInstant(now) = CoarseInstant::now();
        if self.client_seen.swap(now, Ordering::Relaxed) != now && net::is_hung_up(&self.stream) {
            self.note_client_gone();
        }
    }

    /// The client has closed the connection: nothing would read the replies to requests that have come before, so they are
    /// not carried out. Oneways are: their client may have ended on purpose.
    pub(in crate::server) fn note_client_gone(&self) {
        self.slow_path_flags.fetch_or(SlowPathFlags::CLIENT_GONE, Ordering::SeqCst);
    }

    /// Looks whether the client has closed the connection, where threads may be kept by servants for long.
    pub(in crate::server) fn look_for_client_now(&self) {
        if !self.is_on(SlowPathFlags::CLIENT_GONE) && net::is_hung_up(&self.stream) {
            self.note_client_gone();
        }
    }

    /// A request has come: what the client has said before is not about this one. Called under the lock of `receiver`.
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

    /// Whoever received has found the end: if it is the client's, all are told who want to know. One that we want to be rid
    /// of may still wait for its answers. True when nothing is being carried out: the caller closes.
    #[must_use]
    pub(in crate::server) fn found_end(&self) -> bool {
        let is_ours = self.is_on(SlowPathFlags::STOPPING);
        if !is_ours || lock(&self.sender).is_ended() || net::is_hung_up(&self.stream) {
            self.tell_cancelled(self.cancellations.end());
        }
        self.end()
    }

    /// On the thread that runs callbacks: here locks may be held, and others may wait.
    pub(super) fn tell_cancelled(&self, told: Vec<OnCancel>) {
        let receiver = self.orb.connector.receiver();
        told.into_iter().for_each(|then| receiver.run_soon(then));
    }
}
