//! Probes that wait at the server for news, and writes that wait for clients.
//!
//! One thread answers such probes: when there is news for them, and after [`WAIT_MAX`]. It is there while probes wait. Neither it nor
//! a write waits for a client that does not read: what a connection does not take at once waits in its own buffer, and no answer is
//! written behind what waits there.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use ironorb_cache::{Answer, Moment, Probe, SessionId};
use ironorb_giop::Encoding;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::changes::Changes;
use super::moment;
use crate::base::locks::{Condition, PiLock};
use crate::base::spawner::{NewThread, ThreadClass};
use crate::cache::{CellNumber, LogHost, ServerCache};
use crate::poa::servant::Reply;

/// How long a probe waits at most. Less than half of a session's term, so that a client that reads has always an answer to a probe
/// that left within the term.
const WAIT_MAX: Duration = Duration::from_millis(250);

/// How long the thread is there without a probe.
const LINGER: Duration = Duration::from_secs(2);

/// The answer to a probe that is owed.
pub(crate) type ProbeReply = Reply<Answer<CellNumber, Vec<u8>>, SystemException>;

/// The probes that wait, one a session, and the writes that wait.
pub(crate) struct NewsDesk {
    probes: PiLock<Probes>,
    /// Notified when a probe is due, or the first one waits.
    more: Condition,
    /// What may have ended the wait of a write.
    events: Changes,
}

#[derive(Default)]
struct Probes {
    waiting: BTreeMap<SessionId, Waiting>,
    due: Vec<Waiting>,
    has_thread: bool,
    is_closed: bool,
}

/// A probe that waits.
struct Waiting {
    cache: Arc<ServerCache>,
    probe: Probe,
    encoding: Encoding,
    reply: ProbeReply,
    until: Moment,
}

impl Waiting {
    /// Answers on the thread that has the probe's request. Takes the locks of cells, and blocks only while the client takes no bytes of
    /// earlier answers.
    fn answer(self) {
        let Waiting { cache, probe, encoding, reply, .. } = self;
        if !reply.is_cancelled() {
            reply.send(cache.answer(&probe, moment(), encoding).map_err(SystemException::from));
        }
    }

    /// Answers on a thread that has other clients to answer, or a write to make. Takes the locks of cells. A client that has not
    /// taken its earlier answers gets none: only that there is none, so that it makes the server keep few bytes. What panics in a
    /// program's conversion of a state leaves its probe without an answer, and others with theirs.
    fn answer_at_once(self) {
        self.reply.never_wait();
        let _panicked = catch_unwind(AssertUnwindSafe(|| match self.reply.is_clogged() {
            true => self.reply.send(Err(unread())),
            false => self.answer(),
        }));
    }
}

impl NewsDesk {
    pub(crate) fn new() -> Arc<NewsDesk> {
        let more = Condition::new();
        Arc::new(NewsDesk { probes: PiLock::default(), more, events: Changes::default() })
    }

    /// Takes a probe that waits for news, and answers it when there is some.
    pub(crate) fn wait(
        self: &Arc<Self>,
        cache: &Arc<ServerCache>,
        probe: Probe,
        encoding: Encoding,
        reply: ProbeReply,
    ) {
        let (now, session) = (moment(), probe.of.session);
        let mut new =
            Some(Waiting { cache: cache.clone(), probe, encoding, reply, until: now.after(WAIT_MAX) });
        let mut before = None;
        // Outside of the log's lock, which writers wait for.
        self.have_thread();
        cache.wait(&probe, now, || {
            let mut probes = self.probes.lock();
            // One that has just gone parks nothing: the probe is answered at once.
            if probes.has_thread
                && !probes.is_closed
                && let Some(waiting) = new.take()
            {
                if probes.waiting.is_empty() {
                    self.more.notify_one();
                }
                before = probes.waiting.insert(session, waiting);
            }
        });
        // The one that is not parked, and the one whose place another has taken: that may be of another connection.
        new.into_iter().for_each(Waiting::answer);
        before.into_iter().for_each(Waiting::answer_at_once);
    }

    /// Makes the thread if it is not there. Where none can be made, probes do not wait.
    fn have_thread(self: &Arc<Self>) {
        let mut probes = self.probes.lock();
        if !probes.has_thread && !probes.is_closed {
            let desk = self.clone();
            let thread = NewThread::new("ironorb-caches", ThreadClass::Background);
            probes.has_thread = thread.spawn(move || desk.answer_probes()).is_ok();
        }
    }

    /// Answers probes, as long as some wait now and then.
    fn answer_probes(&self) {
        let mut idle_since = moment();
        loop {
            let mut probes = self.probes.lock();
            let now = moment();
            probes.release_late(now);
            let due = mem::take(&mut probes.due);
            if !due.is_empty() {
                drop(probes);
                due.into_iter().for_each(Waiting::answer_at_once);
                idle_since = moment();
                continue;
            }
            let left = match probes.waiting.values().map(|waiting| waiting.until).min() {
                Some(until) => until.since(now).unwrap_or_default(),
                None if probes.is_closed => Duration::ZERO,
                None => LINGER.saturating_sub(now.since(idle_since).unwrap_or(LINGER)),
            };
            if left.is_zero() && probes.waiting.is_empty() {
                probes.has_thread = false;
                return;
            }
            drop(self.more.wait_for(probes, left));
        }
    }

    /// Answers all probes that wait, and lets none wait any more: the ORB ends.
    pub(crate) fn close(&self) {
        let mut probes = self.probes.lock();
        probes.is_closed = true;
        let waiting = mem::take(&mut probes.waiting);
        drop(probes);
        self.more.notify_one();
        waiting.into_values().for_each(Waiting::answer_at_once);
    }
}

#[cold]
fn unread() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the client has not read the server's earlier replies")
}

impl Probes {
    /// Has the probes answered that have waited long enough.
    fn release_late(&mut self, now: Moment) {
        let late = |waiting: &Waiting| waiting.until <= now;
        let sessions: Vec<_> =
            self.waiting.iter().filter(|(_, it)| late(it)).map(|(session, _)| *session).collect();
        self.release(&sessions);
    }

    fn release(&mut self, sessions: &[SessionId]) {
        let released = sessions.iter().filter_map(|session| self.waiting.remove(session));
        self.due.extend(released);
    }
}

impl LogHost for NewsDesk {
    fn now(&self) -> Moment {
        moment()
    }

    fn answer(&self, sessions: Vec<SessionId>) {
        let mut probes = self.probes.lock();
        probes.release(&sessions);
        let is_due = !probes.due.is_empty();
        drop(probes);
        if is_due {
            self.more.notify_one();
        }
    }

    fn answer_here(&self, sessions: Vec<SessionId>) {
        let mut probes = self.probes.lock();
        let due: Vec<_> = sessions.iter().filter_map(|session| probes.waiting.remove(session)).collect();
        drop(probes);
        due.into_iter().for_each(Waiting::answer_at_once);
    }

    fn block(&self, look: &mut dyn FnMut(Moment) -> Option<Moment>) {
        loop {
            let seen = self.events.count();
            let now = moment();
            let Some(until) = look(now) else { return };
            self.events.wait_beyond(seen, until.since(now).unwrap_or_default().min(LOOK_AGAIN));
        }
    }

    fn wake(&self) {
        self.events.note();
    }
}

/// A write that waits for another one looks again after so long, whatever has happened.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

impl fmt::Debug for NewsDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewsDesk").field("waiting", &self.probes.lock().waiting.len()).finish_non_exhaustive()
    }
}
