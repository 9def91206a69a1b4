//! Requests of a bidirectional connection that have arrived and that no thread has taken.

use std::collections::VecDeque;

use ironorb_giop::connection::ConnectionConfig;
use ironorb_giop::message::RequestId;

use super::{Backlog, ServerSession, Work};

/// Decides which requests wait and whether more are received.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    requests: VecDeque<Work>,
    backlog: Backlog,
    /// Nothing more comes.
    is_over: bool,
    /// No thread receives, because too many requests wait. Never true while a call of the server waits for
    /// its reply.
    is_paused: bool,
}

/// A request that has been taken out.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) work: Work,
    /// Receiving is to resume because of it.
    pub(crate) resumes: bool,
}

impl Inbox {
    /// Whether no request waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether nothing more comes.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Pauses receiving if too many requests wait. True if so.
    pub(crate) fn pause_if_full(&mut self, config: &ConnectionConfig) -> bool {
        let is_full = self.backlog.is_full(config);
        self.is_paused |= is_full;
        is_full
    }

    /// Ends a pause because a call waits for its reply. False when there is none.
    pub(crate) fn end_pause(&mut self) -> bool {
        std::mem::take(&mut self.is_paused)
    }

    /// Puts a request in. Gives it back when there is no room and receiving must not pause, because a call waits for
    /// its reply.
    pub(crate) fn put(&mut self, work: Work, config: &ConnectionConfig, is_called: bool) -> Result<(), Work> {
        if is_called && !self.backlog.has_room(work.bytes(), config) {
            return Err(work);
        }
        self.backlog.add(work.bytes());
        self.requests.push_back(work);
        Ok(())
    }

    /// Takes the next request. It is in progress from then on.
    pub(crate) fn take(&mut self, config: &ConnectionConfig, session: &ServerSession) -> Option<Taken> {
        let work = self.requests.pop_front()?;
        Some(self.taken(work, config, session))
    }

    /// Takes out the first request that expects a reply, in order to refuse it.
    pub(crate) fn take_awaited(
        &mut self,
        config: &ConnectionConfig,
        session: &ServerSession,
    ) -> Option<Taken> {
        let is_awaited = |work: &Work| matches!(work, Work::Request(_)) && work.wants_answer();
        let work = self.requests.iter().position(is_awaited).and_then(|at| self.requests.remove(at))?;
        Some(self.taken(work, config, session))
    }

    fn taken(&mut self, work: Work, config: &ConnectionConfig, session: &ServerSession) -> Taken {
        session.begin_later();
        self.backlog.remove(work.bytes());
        let resumes = self.is_paused && self.backlog.is_half_empty(config);
        self.is_paused &= !resumes;
        Taken { work, resumes }
    }

    /// Removes a request that its client no longer waits for; false when it is not in the inbox.
    pub(crate) fn forget(&mut self, id: RequestId) -> bool {
        let Inbox { requests, backlog, .. } = self;
        match requests.iter().position(|work| work.id() == Some(id) && work.wants_answer()) {
            Some(index) => {
                requests.remove(index).iter().for_each(|work| backlog.remove(work.bytes()));
                true
            }
            None => false,
        }
    }

    /// Records that nothing more comes. If the client is gone, drops all requests that expect a reply: their
    /// servants would call the client, and each would keep a thread until connecting to it fails.
    pub(crate) fn handle_end(&mut self, is_client_gone: bool) {
        self.is_over = true;
        if !is_client_gone {
            return;
        }
        let Inbox { requests, backlog, .. } = self;
        requests.retain(|work| {
            let stays = !work.wants_answer();
            if !stays {
                backlog.remove(work.bytes());
            }
            stays
        });
    }
}
