//! Clients that want to know when the daemon dies: each has a request here, which fails then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironorb::{Reply, SystemException};

/// How long a request waits. Then its client asks again if it still forwards jobs; one that does not, or an ORB that is shut
/// down, has nothing that waits for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most clients that wait. Others are told that they need not ask: their jobs then wait for their deadlines.
const CLIENTS_MAX: usize = 65_536;

type Attends = Reply<bool, SystemException>;

/// The requests of `JobDaemon::attend`.
#[derive(Debug, Default, Clone)]
pub(crate) struct Attended(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    /// By their numbers, so the longest waiting first.
    replies: BTreeMap<u64, (Instant, Attends)>,
    next: u64,
    /// All jobs have been carried out.
    has_ended: bool,
}

impl Attended {
    /// Keeps a request.
    pub(crate) fn keep(&self, reply: Attends) {
        let mut waiting = self.lock();
        if waiting.has_ended || waiting.replies.len() >= CLIENTS_MAX {
            drop(waiting);
            return reply.send(Ok(true));
        }
        let number = waiting.next;
        waiting.next += 1;
        drop(waiting);
        // A client that has gone is forgotten. The callback needs the lock.
        let these = self.clone();
        reply.on_cancel(move || {
            let gone = these.lock().replies.remove(&number);
            drop(gone);
        });
        let is_cancelled = reply.is_cancelled();
        let mut waiting = self.lock();
        if !is_cancelled && !waiting.has_ended {
            waiting.replies.insert(number, (Instant::now(), reply));
            let gone = waiting.replies.get(&number).is_some_and(|(_, reply)| reply.is_cancelled());
            // The callback has looked before there was anything.
            let gone = gone.then(|| waiting.replies.remove(&number));
            drop(waiting);
            drop(gone);
        } else {
            drop(waiting);
            reply.send(Ok(true));
        }
    }

    /// When the next one has waited long enough.
    pub(crate) fn sweeps_at(&self) -> Option<Instant> {
        self.lock().replies.values().next().map(|(since, _)| *since + PATIENCE)
    }

    /// Answers those that have waited long enough.
    pub(crate) fn sweep(&self) {
        let mut ripe = Vec::new();
        let mut waiting = self.lock();
        while let Some(first) = waiting.replies.first_entry()
            && first.get().0.elapsed() >= PATIENCE
        {
            ripe.push(first.remove().1);
        }
        drop(waiting);
        for reply in ripe {
            // The clock's thread sends it.
            reply.never_wait();
            reply.send(Ok(false));
        }
    }

    /// All jobs have been carried out: nobody needs to ask again.
    pub(crate) fn end(&self) {
        let mut waiting = self.lock();
        waiting.has_ended = true;
        let all = std::mem::take(&mut waiting.replies);
        drop(waiting);
        all.into_values().for_each(|(_, reply)| reply.send(Ok(true)));
    }

    /// How many clients wait.
    pub(crate) fn clients(&self) -> usize {
        self.lock().replies.len()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
