//! Watchers: their requests wait in the registry's state, and no thread waits with them.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use ironorb::Reply;

use super::{CHANGES_PER_ANSWER_MAX, Shared, convert};
use crate::idl::agent_watch::{WatchError, WatchPrefixError};
use crate::idl::{DeferredAgentWatch, Forgotten, LimitReached, Watched};
use crate::registry::Selection;

pub(super) struct WatchServant(pub(super) Arc<Shared>);

/// To whom the answer goes.
pub(super) enum WatchReply {
    Names(Reply<Watched, WatchError>),
    Prefix(Reply<Watched, WatchPrefixError>),
}

/// An answer on its way; `None` if what was asked for is forgotten.
pub(super) struct News {
    pub(super) reply: WatchReply,
    pub(super) answer: Option<Watched>,
}

impl WatchReply {
    pub(super) fn is_wanted(&self) -> bool {
        match self {
            WatchReply::Names(reply) => reply.is_wanted(),
            WatchReply::Prefix(reply) => reply.is_wanted(),
        }
    }

    fn send(self, answer: Option<Watched>) {
        match self {
            WatchReply::Names(reply) => reply.send(answer.ok_or(WatchError::Forgotten(Forgotten {}))),
            WatchReply::Prefix(reply) => reply.send(answer.ok_or(WatchPrefixError::Forgotten(Forgotten {}))),
        }
    }

    fn refuse(self, what: &str, max: usize) {
        let limit = LimitReached { what: what.into(), max: max as u64 };
        match self {
            WatchReply::Names(reply) => reply.send(Err(WatchError::LimitReached(limit))),
            WatchReply::Prefix(reply) => reply.send(Err(WatchPrefixError::LimitReached(limit))),
        }
    }
}

/// Sends answers until the agent is over.
pub(super) fn tell(news: Receiver<News>) {
    for News { reply, answer } in news {
        reply.send(answer);
    }
}

impl WatchServant {
    fn wait(&self, life: u64, revision: u64, selection: Selection, timeout_ms: u32, reply: WatchReply) {
        let (mut state, now) = self.0.write();
        let limits = state.registry.limits();
        let (names_max, watchers_max) = (limits.watched_names_max, limits.watchers_max);
        if matches!(&selection, Selection::Names(names) if names.len() > names_max) {
            drop(state);
            return reply.refuse("watched names", names_max);
        }
        let found = match life == state.registry.life() {
            true => {
                convert::watched(state.registry.changes_since(revision, &selection, CHANGES_PER_ANSWER_MAX))
            }
            false => None,
        };
        match found {
            Some(Watched { changes, revision }) if changes.is_empty() => {
                if state.waiters().len() >= watchers_max {
                    drop(state);
                    return reply.refuse("watchers", watchers_max);
                }
                let wait = Duration::from_millis(timeout_ms.into()).min(WAIT_MAX);
                state.waiters().add(revision, selection, now + wait, reply);
            }
            answer => {
                drop(state);
                reply.send(answer);
            }
        }
    }
}

impl DeferredAgentWatch for WatchServant {
    fn watch(
        &self,
        life: u64,
        revision: u64,
        names: &[String],
        timeout_ms: u32,
        reply: Reply<Watched, WatchError>,
    ) {
        self.wait(life, revision, Selection::Names(names.to_vec()), timeout_ms, WatchReply::Names(reply));
    }

    fn watch_prefix(
        &self,
        life: u64,
        revision: u64,
        prefix: &str,
        timeout_ms: u32,
        reply: Reply<Watched, WatchPrefixError>,
    ) {
        self.wait(life, revision, Selection::Prefix(prefix.into()), timeout_ms, WatchReply::Prefix(reply));
    }
}

const WAIT_MAX: Duration = Duration::from_secs(60);
