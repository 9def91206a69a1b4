//! How much an ORB holds, of all servers together.

use std::cmp::Reverse;
use std::sync::Arc;

use ironorb_cache::{Client, ClientLimits, Kind};

use crate::base::config::OrbConfig;
use crate::cache::{CellNumber, Peer};

/// The limits of an ORB's caches. Each server's machine keeps to all of them for itself, so that only an ORB that caches objects
/// of several servers has more to do.
pub(super) struct Limits {
    all: ClientLimits,
    /// Those of interfaces, by their repository ids. The first has the kind 1.
    kinds: Vec<(String, ClientLimits)>,
    update_bytes: usize,
}

impl Limits {
    pub(super) fn of(config: &OrbConfig) -> Limits {
        let limits = |entries_max, bytes_max: Option<usize>| ClientLimits {
            entries_max,
            bytes_max: bytes_max.unwrap_or(usize::MAX),
        };
        let kind =
            |limit: &crate::CacheLimit| (limit.interface.clone(), limits(limit.entries_max, limit.bytes_max));
        Limits {
            all: limits(config.cache_entries_max, config.cache_bytes_max),
            kinds: config.cache_limits.iter().map(kind).collect(),
            update_bytes: config.cache_update_bytes,
        }
    }

    /// The kind of an interface's states.
    pub(super) fn kind_of(&self, repository_id: &str) -> Kind {
        let at = self.kinds.iter().position(|(id, _)| id == repository_id);
        at.and_then(|at| u32::try_from(at + 1).ok()).map_or(Kind::NONE, Kind)
    }

    /// What decides for one server.
    pub(super) fn client(&self) -> Client<CellNumber> {
        let mut client = Client::new(self.all);
        client.set_update_bytes(self.update_bytes);
        for (id, limits) in &self.kinds {
            client.limit(self.kind_of(id), *limits);
        }
        client
    }

    /// Ends the oldest entries of the servers that have the most, until those of all are within the limits. Takes the lock of each
    /// server's session, one after the other.
    pub(super) fn keep(&self, peers: &[Arc<Peer>]) {
        if peers.len() < 2 {
            return;
        }
        keep_within(self.all, None, peers);
        for (id, limits) in &self.kinds {
            keep_within(*limits, Some(self.kind_of(id)), peers);
        }
    }
}

fn keep_within(limits: ClientLimits, kind: Option<Kind>, peers: &[Arc<Peer>]) {
    loop {
        let mut uses: Vec<_> = peers.iter().map(|peer| (peer.uses(kind), peer)).collect();
        let entries: usize = uses.iter().map(|((entries, _), _)| entries).sum();
        let bytes: usize = uses.iter().map(|((_, bytes), _)| bytes).sum();
        let has_too_many_bytes = bytes > limits.bytes_max;
        // One stays, whatever it takes.
        if entries < 2 || (entries <= limits.entries_max && !has_too_many_bytes) {
            return;
        }
        uses.sort_by_key(|((entries, bytes), _)| Reverse(if has_too_many_bytes { *bytes } else { *entries }));
        if !uses.iter().any(|(_, peer)| peer.end_oldest(kind)) {
            return; // all are pinned
        }
    }
}
