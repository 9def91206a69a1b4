//! The client's probes that wait for news.
//!
//! A thread keeps one for each server of which something is read whose changes are told at once. It ends when nothing of that has
//! been read for a session's term, so that a client that does not read asks for nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ironorb_cache::{Answer, Moment, Opened, Probe, Terms};
use ironorb_giop::exception::{SystemException, SystemExceptionKind};

use super::{ask, ask_for_changes, moment, take_answer};
use crate::base::spawner::{NewThread, ThreadClass};
use crate::cache::wire::{self, WAIT};
use crate::cache::{Peer, Reading};
use crate::driver::call_policies::with_timeout;
use crate::object::ObjectRef;
use crate::object::client_policies::ClientPolicies;
use crate::object::operation::Operation;

static WAIT_OPERATION: Operation<'static> = Operation::twoway(WAIT);

/// A server that does not answer within a term is one without news.
const PATIENCE: Duration = Terms::DEFAULT.term;

/// The least time between two probes of which the first has brought nothing.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// How long no probe is sent after one that has failed: the next read begins with another thread.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// What is told at once has been read: a probe is to wait for news of it.
#[cold]
pub(super) fn begin(peer: &Arc<Peer>) {
    if peer.note_read() != Reading::Nothing {
        return;
    }
    let weak = Arc::downgrade(peer);
    let thread = NewThread::new("ironorb-news", ThreadClass::Background);
    let is_made = peer.session().is_some() && thread.spawn(move || wait_for_news(&weak)).is_ok();
    if !is_made {
        peer.end_reading();
    }
}

/// Keeps a probe waiting as long as something is read.
fn wait_for_news(peer: &Weak<Peer>) {
    let mut last_read = moment();
    let mut server = None;
    while let Some(peer) = peer.upgrade() {
        let asked = moment();
        let Some((probe, cache)) = peer.probe(moment) else { return peer.end_reading() };
        let waited = wait(&peer, &probe, &cache, &mut server);
        let Ok(has_news) = waited else {
            std::thread::sleep(PAUSE_AFTER_FAILURE);
            return peer.end_reading();
        };
        let now = moment();
        if peer.take_reading() == Reading::Lately {
            last_read = now;
        } else if is_over(last_read, now) && peer.end_reading_unless_read() {
            // No writer waits until the term is over for a client that has news and says nothing.
            if has_news && let Some((probe, cache)) = peer.probe(moment) {
                let _the_term_ends = ask_for_changes(&peer, &probe, &cache);
            }
            return;
        }
        drop(peer);
        if !has_news {
            pause(asked, now);
        }
    }
}

fn is_over(last_read: Moment, now: Moment) -> bool {
    now.since(last_read).is_none_or(|time| time > Terms::DEFAULT.term)
}

/// A server that lets no probe wait is not asked without end.
fn pause(asked: Moment, now: Moment) {
    let waited = now.since(asked).unwrap_or_default();
    if waited < PAUSE_MIN {
        std::thread::sleep(PAUSE_MIN - waited);
    }
}

/// Has a probe wait, and takes its answer. Says whether that has news. `server` is the connection for it: another would be busy with a
/// write that waits for this very client.
fn wait(
    peer: &Peer,
    probe: &Probe,
    cache: &ObjectRef,
    server: &mut Option<(Opened, ObjectRef)>,
) -> Result<bool, SystemException> {
    if server.as_ref().is_none_or(|(of, _)| *of != probe.of) {
        let private = ClientPolicies { private_connection: Some(true), ..ClientPolicies::NONE };
        *server = Some((probe.of, cache.with_client_policies(private)));
    }
    let at = server.as_ref().map_or(cache, |(_, private)| private);
    let arguments = |w: &mut ironorb_giop::Writer<'_>| {
        wire::write_probe(probe, w);
        Ok(())
    };
    let answer =
        with_timeout(Some(PATIENCE), || ask(at, &WAIT_OPERATION, arguments, |r| wire::read_answer(probe, r)));
    let answer = answer.inspect_err(|e| {
        peer.give_up(probe);
        if e.kind == SystemExceptionKind::BadOperation {
            peer.note_no_news();
        }
    })?;
    let has_news = match &answer {
        Answer::Changes { units, .. } => !units.is_empty(),
        Answer::Unknown { .. } => false,
    };
    let is_part = answer.is_part();
    take_answer(peer, answer, cache);
    // What is left need not be news, and then would wait.
    if is_part && let Some((probe, _)) = peer.probe(moment) {
        ask_for_changes(peer, &probe, cache)?;
    }
    Ok(has_news)
}
