//! The server side of a connection: what happens to what has come, and when the connection ends.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, Ordering};

use ironorb_giop::Version;
use ironorb_giop::connection::{Incoming, ServerConnection};
use ironorb_giop::framer::Framer;
use ironorb_giop::message::{Message, RequestId};

use super::coalescing::Coalescing;
use super::{Activity, Cancellations, Cancelled, CurrentRequest, Limits, OnCancel, Timeouts, Verdict, Work};
use super::{RequestCounter, Watch};
use crate::base::locks::LaneLock;
use crate::base::time::Time;

/// Decides what happens on one accepted connection.
///
/// The two halves are the driver's: the [`Framer`] receives, the [`ServerConnection`] sends. One thread waits for
/// bytes with the framer while others write replies, so each half has a lock of its own, and the session has none
/// on the way of a call. Its methods borrow the half that they concern:
///
/// ```text
/// framer.received(n) -> poll_work(framer) -> admit() -> upcall -> note_answered(), handle_reply_written(…)
///                                                              -> handle_carried_out()
/// handle_end(…), handle_malformed(), stop() -> write_error(sender) -> the last request ends -> write_end(sender)
/// poll_timeout() -> handle_timeout(now)
/// ```
///
/// Requests that arrived before the end of a connection are carried out, unless the server itself [stops](Self::stop)
/// it.
pub(crate) struct ServerSession {
    /// Bits of [`Flags`], mostly none. A call checks many of them with one load.
    flags: AtomicU16,
    /// How many addresses the client says that it listens at: at most [`LISTEN_POINTS_MAX`].
    listen_points: AtomicU8,
    /// Received bytes of incomplete messages, as the last receiving thread saw them.
    unfinished_bytes: AtomicU32,
    progress: RequestCounter,
    pub(super) coalescing: Coalescing,
    /// Requests that the client no longer waits for.
    cancellations: Cancellations,
    timeouts: LaneLock<Timeouts>,
}

/// The states of a session that calls must look at.
pub(crate) struct Flags;

impl Flags {
    /// The server takes no more requests and carries out none that it has not begun.
    pub(crate) const STOPPING: u16 = 1;
    /// The bidirectional receiver receives, and puts requests into the inbox. Never cleared.
    pub(crate) const BIDIRECTIONAL: u16 = 2;
    /// The peer does not read, and more bytes than the limit wait for it. Changes only with the sending half.
    pub(crate) const CLOGGED: u16 = 4;
    /// The client has cancelled a request that is in progress, and the servant has not asked yet. Threads
    /// keep serving, and check each request. Changes only with the receiving half.
    pub(crate) const CANCELLED: u16 = 8;
    /// The ORB limits the requests in flight. Never changes, and does not concern receiving.
    pub(crate) const COUNTED: u16 = 16;
    /// The client has closed the connection. Requests that expect a reply are no longer carried out. Never
    /// cleared.
    pub(crate) const CLIENT_GONE: u16 = 32;
    /// Nothing more is received, because the stream makes no sense. Never cleared.
    pub(crate) const MALFORMED: u16 = 64;
    /// A writer of the driver sends what waits. Changes only with the sending half.
    pub(crate) const STALLED: u16 = 128;
    /// The server may call the client over the connection, so that it is never idle. Never cleared.
    pub(crate) const CALLED: u16 = 256;
    /// A further whole request has come.
    pub(crate) const MORE: u16 = 512;
    /// The next request is taken directly after the last reply.
    pub(crate) const IN_A_ROW: u16 = 1024;
    /// Replies wait. Changes only with the sending half.
    pub(crate) const HELD: u16 = 2048;
    /// Nothing more is received. Never cleared.
    pub(crate) const ENDING: u16 = 4096;
    /// The upcalls are measured. Never changes.
    pub(crate) const MEASURED: u16 = 16384;
    /// The ORB may watch its requests from their arrival on. Never changes.
    pub(crate) const WATCHED: u16 = 32768;
    /// A thread of the connection's own waits for a peer that does not read, so that bytes beyond the limit keep all
    /// threads from requests. Never changes.
    const WAITS_FOR_PEER: u16 = 8192;

    /// All flags that concern receiving.
    const OF_RECEIVING: u16 = Flags::ELSEWHERE | Flags::CANCELLED | Flags::CLIENT_GONE;
    /// Requests are to be taken elsewhere, later or never.
    const ELSEWHERE: u16 = Flags::STOPPING | Flags::MALFORMED | Flags::BIDIRECTIONAL | Flags::CLOGGED;
    /// All flags that concern a reply.
    const OF_SENDING: u16 = Flags::CLOGGED | Flags::MORE | Flags::IN_A_ROW | Flags::HELD;
}

/// What has come.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Work. It has been put into its place and counts as in progress.
    Work,
    /// Nothing whole: more bytes are needed.
    Nothing,
    /// Requests are not to be taken here and now: see the flags.
    Elsewhere,
    /// The client's reply to a call over this connection. The driver calls [`ServerSession::handle_malformed`] if
    /// there was no such call.
    Reply(Message),
    /// The client no longer waits for a request: see [`ServerSession::handle_cancel`].
    CancelRequest(RequestId),
    /// A request that is not carried out because its client is gone. It may carry the service contexts that say how
    /// to read a oneway behind it.
    Unanswerable(Work),
    /// Nothing more will come: see [`ServerSession::handle_end`].
    End,
}

/// Whether a request that was taken is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is.
    Run,
    /// It is, within the ORB's limit of requests in flight.
    RunWithinLimits,
    /// It is left to be sent again.
    Skip,
}

/// The most listen points that are recorded for one client.
const LISTEN_POINTS_MAX: u8 = 64;

impl ServerSession {
    /// Makes the session of a connection that begins now. `is_counted` says that the ORB limits the requests in
    /// flight. `waits_for_peer` says that a thread of the connection's own waits for a peer that does not read.
    pub(crate) fn new(is_counted: bool, waits_for_peer: bool, now: Time) -> ServerSession {
        ServerSession {
            flags: AtomicU16::new(
                if is_counted { Flags::COUNTED } else { 0 }
                    | if waits_for_peer { Flags::WAITS_FOR_PEER } else { 0 },
            ),
            listen_points: AtomicU8::new(0),
            unfinished_bytes: AtomicU32::new(0),
            progress: RequestCounter::default(),
            coalescing: Coalescing::default(),
            cancellations: Cancellations::default(),
            timeouts: LaneLock::new(Timeouts::new(now)),
        }
    }

    /// Has the driver measure the upcalls.
    pub(crate) fn measured(self, is_measured: bool) -> ServerSession {
        self.set(Flags::MEASURED, is_measured);
        self
    }

    /// Has the driver ask for each request whether it is watched.
    pub(crate) fn watched(self, is_watched: bool) -> ServerSession {
        self.set(Flags::WATCHED, is_watched);
        self
    }

    // What holds now.

    #[inline]
    pub(super) fn flags(&self) -> u16 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Whether one of these flags is set.
    #[inline]
    pub(crate) fn is_on(&self, flags: u16) -> bool {
        self.flags.load(Ordering::SeqCst) & flags != 0
    }

    pub(super) fn set(&self, flags: u16, is_on: bool) {
        if is_on {
            self.flags.fetch_or(flags, Ordering::SeqCst);
        } else {
            self.flags.fetch_and(!flags, Ordering::SeqCst);
        }
    }

    /// Whether nothing unusual concerns a thread that waits for requests: it receives without further questions.
    #[inline]
    pub(crate) fn is_plain_receiving(&self) -> bool {
        self.flags() & (Flags::OF_RECEIVING | Flags::HELD | Flags::WATCHED) == 0
    }

    /// Whether nothing unusual concerns a reply: it is written and sent at once.
    #[inline]
    pub(crate) fn is_plain_sending(&self) -> bool {
        self.flags() & (Flags::OF_SENDING | Flags::WATCHED) == 0
    }

    /// Whether nothing unusual concerns an upcall: it needs neither [`admit`](Self::admit) nor
    /// [`must_send_before_upcall`](Self::must_send_before_upcall).
    #[inline]
    pub(crate) fn is_plain_upcall(&self) -> bool {
        // sync: carried-before-close
        !self.is_on(Flags::STOPPING | Flags::COUNTED | Flags::HELD | Flags::MEASURED | Flags::WATCHED)
    }

    /// Whether nothing more is to be taken, here or elsewhere.
    pub(crate) fn takes_no_more(&self) -> bool {
        self.is_on(Flags::STOPPING | Flags::MALFORMED)
    }

    /// Requests in progress.
    pub(crate) fn carried(&self) -> usize {
        self.progress.carried()
    }

    /// Requests in progress whose replies have not been written.
    pub(crate) fn unanswered(&self) -> usize {
        self.progress.unanswered()
    }

    /// What the connection does, in a word, and whether it still takes requests.
    pub(crate) fn state(&self) -> (&'static str, bool) {
        let flags = self.flags();
        match () {
            () if flags & Flags::ENDING != 0 => ("ending", false),
            () if flags & (Flags::STALLED | Flags::CLOGGED) != 0 => ("unread", true),
            () if self.progress.carried() > 0 => ("busy", true),
            () => ("idle", true),
        }
    }

    /// Requests that have ended, modulo 2^24.
    pub(crate) fn served(&self) -> u32 {
        self.progress.served()
    }

    /// Nothing more is received.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_on(Flags::ENDING)
    }

    /// Nothing more will be received, and no request is in progress.
    pub(crate) fn is_done(&self) -> bool {
        // sync: ending-or-stalled
        self.is_ending() && self.progress.carried() == 0
    }

    /// Whether the client has closed the connection.
    pub(crate) fn is_client_gone(&self) -> bool {
        self.is_on(Flags::CLIENT_GONE) || self.cancellations.is_over()
    }

    // What comes.

    /// Takes a plain request, if one comes next and nothing is unusual. It counts as in progress from then on.
    #[inline(always)] // a step of every call
    pub(crate) fn take_plain_request(&self, framer: &mut Framer, place: &mut CurrentRequest) -> bool {
        let flags = self.flags();
        if flags & Flags::OF_RECEIVING != 0 || !place.take_plain_request(framer) {
            return false;
        }
        if framer.holds_bytes() || flags & Flags::MORE != 0 {
            self.note_more(framer.has_message());
        }
        self.progress.begin();
        true
    }

    /// Takes what comes next. `place` must hold no buffer of value.
    pub(crate) fn poll_work(&self, framer: &mut Framer, place: &mut CurrentRequest) -> Arrival {
        if self.is_on(Flags::ELSEWHERE) {
            return Arrival::Elsewhere;
        }
        match self.poll_arrived(framer) {
            Ok(work) => {
                if framer.holds_bytes() || self.is_on(Flags::MORE) {
                    self.note_more(framer.has_message());
                }
                self.progress.begin();
                place.take(work);
                Arrival::Work
            }
            Err(other) => other,
        }
    }

    /// Takes what comes next, for an inbox: work does not count as in progress.
    pub(crate) fn poll_for_inbox(&self, framer: &mut Framer) -> Result<Work, Arrival> {
        match self.takes_no_more() {
            true => Err(Arrival::End),
            false => self.poll_arrived(framer),
        }
    }

    fn poll_arrived(&self, framer: &mut Framer) -> Result<Work, Arrival> {
        match ServerConnection::poll_incoming(framer) {
            Ok(Some(incoming)) => self.handle_incoming(incoming),
            Ok(None) => Err(Arrival::Nothing),
            Err(_) => {
                self.handle_malformed();
                Err(Arrival::End)
            }
        }
    }

    /// Handles what a connection has taken from its framer. Work does not count as in progress.
    pub(crate) fn handle_incoming(&self, incoming: Incoming) -> Result<Work, Arrival> {
        let work = match incoming {
            Incoming::Request(message) => Work::Request(message),
            Incoming::LocateRequest(message) => Work::Locate(message),
            Incoming::TooLarge(refused) => Work::TooLarge(refused),
            Incoming::Reply(message) => return Err(Arrival::Reply(message)),
            Incoming::CancelRequest(id) => return Err(Arrival::CancelRequest(id)),
            Incoming::CloseConnection => return Err(Arrival::End),
        };
        if self.is_on(Flags::CLIENT_GONE) && work.wants_answer() {
            return Err(Arrival::Unanswerable(work));
        }
        self.note_request(&work);
        Ok(work)
    }

    /// Records that a request has come: earlier cancellations do not concern it. The caller has the receiving half.
    fn note_request(&self, work: &Work) {
        if !self.is_on(Flags::CANCELLED) {
            return;
        }
        let is_idle = self.progress.carried() == 0;
        if is_idle {
            self.cancellations.forget_unclaimed();
        }
        if is_idle || !self.cancellations.begins(work.id()) {
            self.set(Flags::CANCELLED, false);
        }
    }

    /// Records that work which was put elsewhere is now in progress.
    pub(crate) fn begin_later(&self) {
        self.progress.begin();
    }

    /// Handles a CancelRequest. Returns the servant's callback, which the driver runs without locks. The caller
    /// has the receiving half.
    pub(crate) fn handle_cancel(&self, id: RequestId) -> Option<OnCancel> {
        match self.cancellations.cancel(id, self.progress.carried() > 0) {
            Cancelled::Ignored => None,
            Cancelled::Recorded => {
                self.set(Flags::CANCELLED, true);
                None
            }
            Cancelled::Notify(then) => Some(then),
        }
    }

    /// Records how much of a message has come, after everything whole was taken.
    #[inline]
    pub(crate) fn note_unfinished(&self, framer: &Framer) {
        let bytes = if framer.is_mid_message() { framer.unfinished_bytes() } else { 0 };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if self.unfinished_bytes.load(Ordering::Relaxed) != bytes {
            self.unfinished_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Records that no message is incomplete.
    #[inline]
    pub(crate) fn note_whole(&self) {
        if self.unfinished_bytes.load(Ordering::Relaxed) != 0 {
            self.unfinished_bytes.store(0, Ordering::Relaxed);
        }
    }

    // What goes.

    /// Whether a request that was taken is carried out.
    pub(crate) fn admit(&self) -> Admission {
        // sync: carried-before-close. Either this thread sees that the connection is stopping and leaves the
        // request to be sent again, or the thread that stops the connection sees the request.
        if self.is_on(Flags::STOPPING) {
            Admission::Skip
        } else if self.is_on(Flags::COUNTED) {
            Admission::RunWithinLimits
        } else {
            Admission::Run
        }
    }

    /// Records that the reply to a request has been written, or will never be. The caller has the sending half, or
    /// the servant has returned.
    #[inline]
    pub(crate) fn note_answered(&self) {
        self.progress.answer();
    }

    /// Counts a reply that comes after its upcall. False when the connection owes as many replies as it may.
    pub(crate) fn defer(&self, requests_max: usize) -> bool {
        let has_room = self.progress.carried() <= requests_max.min(RequestCounter::CARRIED_MAX);
        if has_room {
            self.progress.share();
        }
        has_room
    }

    /// Whether another request may be taken by a driver that does not carry it out at once.
    pub(crate) fn has_room(&self, requests_max: usize) -> bool {
        self.progress.carried() < requests_max.min(RequestCounter::CARRIED_MAX)
    }

    /// Ends a request. True when it was the last of an ended connection: the caller closes.
    #[inline]
    #[must_use]
    pub(crate) fn handle_carried_out(&self, was_answered: bool) -> bool {
        self.progress.end(was_answered) && self.is_ending()
    }

    /// Records how many bytes wait for the peer. Beyond the limit no thread takes requests of a connection whose
    /// own thread waits for the peer. The caller has the sending half.
    pub(crate) fn note_pending(&self, pending_bytes: usize, transmit_bytes_max: usize) {
        if self.flags() & Flags::WAITS_FOR_PEER != 0 {
            self.set(Flags::CLOGGED, pending_bytes > transmit_bytes_max);
        }
    }

    /// Records that a writer of the driver sends what waits. True when it does so already. The caller has the
    /// sending half.
    pub(crate) fn begin_stall(&self) -> bool {
        self.flags.fetch_or(Flags::STALLED, Ordering::SeqCst) & Flags::STALLED != 0
    }

    /// Records that nothing waits any more. The caller has the sending half.
    pub(crate) fn end_stall(&self) {
        // sync: ending-or-stalled
        self.set(Flags::STALLED, false);
    }

    // How it ends.

    /// Records that the client has closed the connection. Requests that come from now on and expect a reply are not
    /// carried out, because no client would read it. Oneways are: their client may have ended on purpose.
    pub(crate) fn handle_client_gone(&self) {
        self.set(Flags::CLIENT_GONE, true);
    }

    /// Records that the client's bytes make no sense. Requests that came before are carried out.
    #[cold]
    pub(crate) fn handle_malformed(&self) {
        self.set(Flags::MALFORMED | Flags::ENDING, true);
    }

    /// Tells the client if its bytes made no sense. The driver calls it when all requests from before have been
    /// begun. The replies of those whose servants still run are dropped.
    pub(crate) fn write_error(&self, sender: &mut ServerConnection) {
        if self.is_on(Flags::MALFORMED) {
            sender.protocol_error();
        }
    }

    /// Records that nothing more will come. `is_client_gone` says that no client waits for replies any more: then
    /// returns the callbacks of all servants that have asked. The driver closes if the session
    /// [is done](Self::is_done).
    #[must_use]
    pub(crate) fn handle_end(&self, is_client_gone: bool) -> Vec<OnCancel> {
        self.set(Flags::ENDING, true);
        if is_client_gone { self.cancellations.end() } else { Vec::new() }
    }

    /// Records that no more requests come to the inbox. Returns the callbacks of all servants that have asked.
    #[must_use]
    pub(crate) fn handle_inbox_end(&self) -> Vec<OnCancel> {
        self.note_whole();
        self.cancellations.end()
    }

    /// Stops the connection: requests that are not carried out yet will not be.
    pub(crate) fn stop(&self) {
        self.set(Flags::STOPPING | Flags::ENDING, true);
    }

    /// Writes the message that ends the connection. While requests in progress lack their replies there is none:
    /// it would promise that an unanswered request was not carried out (CORBA 3.3 part 2, 9.4.7), and the client
    /// would send the request again. False if replies are lacking.
    pub(crate) fn write_end(&self, sender: &mut ServerConnection, version: Version) -> bool {
        // sync: carried-before-close
        let is_answered = self.progress.unanswered() == 0;
        if is_answered {
            sender.close(version);
        }
        is_answered
    }

    // Time.

    /// What the connection has been doing. `limits` are those of the ORB.
    #[must_use]
    pub(crate) fn handle_timeout(&self, limits: Limits, now: Time) -> Verdict {
        // The server itself does not read while replies wait for the client.
        let reads = !self.is_on(Flags::STALLED | Flags::CLOGGED);
        let activity = Activity {
            served: self.served(),
            is_busy: self.progress.carried() > 0 || self.is_on(Flags::STALLED | Flags::CALLED),
            unfinished_bytes: if reads { self.unfinished_bytes.load(Ordering::Relaxed) } else { 0 },
        };
        self.timeouts.lock().look(limits, activity, now)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, if nothing happens before.
    pub(crate) fn poll_timeout(&self, limits: Limits) -> Option<Time> {
        self.timeouts.lock().poll_timeout(limits)
    }

    // Bidirectional use (CORBA 3.3 part 2, 9.8).

    /// Records that the client listens at so many points and may be called over this connection. Returns how many
    /// of them count.
    pub(crate) fn handle_listen_points(&self, count: usize) -> usize {
        self.set(Flags::CALLED, true);
        let more = u8::try_from(count).unwrap_or(u8::MAX);
        let sum = |before: u8| Some(before.saturating_add(more).min(LISTEN_POINTS_MAX));
        let before = self.listen_points.fetch_update(Ordering::SeqCst, Ordering::SeqCst, sum);
        usize::from(LISTEN_POINTS_MAX - before.unwrap_or(LISTEN_POINTS_MAX)).min(count)
    }

    /// Records that requests go to an inbox from now on.
    pub(crate) fn begin_inbox(&self) {
        self.set(Flags::BIDIRECTIONAL, true);
    }
}

impl Default for ServerSession {
    fn default() -> Self {
        ServerSession::new(false, false, Time::ZERO)
    }
}

impl fmt::Debug for ServerSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSession")
            .field("flags", &self.flags())
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

/// One reply that is written after its upcall. It keeps its request in progress until it [ends](Self::end).
#[derive(Debug, Default)]
pub(crate) struct DeferredAnswer {
    is_settled: AtomicBool,
    /// Whether the client still waits for the reply, if the servant has asked.
    watch: Watch,
}

impl DeferredAnswer {
    /// Takes over the reply of a request that [`ServerSession::defer`] has let in.
    pub(crate) fn taking_over(is_settled: bool) -> DeferredAnswer {
        DeferredAnswer { is_settled: AtomicBool::new(is_settled), watch: Watch::default() }
    }

    /// A second holder of the request, which takes over the reply.
    pub(crate) fn share(&self, session: &ServerSession) -> DeferredAnswer {
        session.progress.share();
        DeferredAnswer::taking_over(self.is_settled.swap(true, Ordering::SeqCst))
    }

    /// Whether the reply is to be written: not if the servant has asked and the client no longer waits. Nothing
    /// more can be asked afterwards.
    pub(crate) fn is_wanted(&self, session: &ServerSession) -> bool {
        let is_cancelled = self.watch.end(&session.cancellations);
        if is_cancelled {
            self.settle(session);
        }
        !is_cancelled
    }

    /// Records that the reply has been written, or will never be.
    pub(crate) fn settle(&self, session: &ServerSession) {
        if !self.is_settled.swap(true, Ordering::SeqCst) {
            session.note_answered();
        }
    }

    /// Whether the client no longer waits for the reply.
    pub(crate) fn is_cancelled(&self, session: &ServerSession, id: RequestId) -> bool {
        self.watch.is_cancelled(&session.cancellations, id)
    }

    /// Calls `then` when the client no longer waits.
    pub(crate) fn on_cancel(&self, session: &ServerSession, id: RequestId, then: OnCancel) {
        self.watch.on_cancel(&session.cancellations, id, then);
    }

    /// Ends the request. True when it was the last of an ended connection: the caller closes.
    #[must_use]
    pub(crate) fn end(&self, session: &ServerSession) -> bool {
        self.watch.end(&session.cancellations);
        self.settle(session);
        session.progress.end_shared() && session.is_ending()
    }
}
