//! Probes that calls carry. Whoever writes and then reads would ask after each write what has changed; so the reply to the write
//! tells it.
//!
//! A read that had to ask has the next calls to its server carry probes. The call after these carries none: then either the read
//! behind it asks, and the next calls carry probes again, or nobody reads, and no call pays for what nobody needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ironorb_cache::{Answer, Epoch};
use ironorb_giop::message::Message;

use super::{ClientCache, IS_FOR_CACHE, moment, take_answer, wire};
use crate::base::config::OrbConfig;
use crate::cache::wire::{CarriedProbe, LogQuestion};
use crate::cache::{CellNumber, Peer};
use crate::driver::client::Link;
use crate::lane::Event;
use crate::object::ObjectRef;
use crate::object::wire_numbers::CACHE_CONTEXT;

/// Which calls carry probes.
#[derive(Debug)]
pub(super) struct Carrying {
    /// How many do after a read that had to ask.
    calls: u8,
    /// Whether calls to any server do. Read by each call, so that most need not look for its server.
    any: AtomicBool,
}

impl Carrying {
    pub(super) fn of(config: &OrbConfig) -> Carrying {
        Carrying { calls: config.cache_carried_probes, any: AtomicBool::new(false) }
    }

    /// A read has to ask: the next calls to its server are to carry probes.
    pub(super) fn begin(&self, peer: &Peer) {
        peer.have_carried(self.calls);
        self.any.store(true, Ordering::Relaxed);
    }

    /// A probe for a call to the server of a connection, if it is to carry one.
    fn probe(&self, cache: &ClientCache, link: &Link) -> Option<CarriedProbe> {
        let epoch = link.log_epoch();
        if epoch == NO_LOG || !self.any.load(Ordering::Relaxed) {
            return None;
        }
        // Before the look: a read that begins meanwhile is not forgotten.
        self.any.store(false, Ordering::Relaxed);
        let peers = cache.peers();
        let of_server = peers.iter().find(|peer| peer.view().is_of(epoch) && peer.takes_carried());
        let probe = of_server.and_then(|peer| peer.probe(moment));
        if peers.iter().any(|peer| peer.is_to_be_carried()) {
            self.any.store(true, Ordering::Relaxed);
        }
        probe.map(|(probe, _)| CarriedProbe::of(&probe))
    }
}

/// What a connection has of whose log it leads to, before a reply has told.
pub(crate) const NO_LOG: Epoch = Epoch(0);

/// What a request that wants results asks of the log, if it leaves over this connection now.
pub(crate) fn question_over(object: &ObjectRef, link: &Link) -> LogQuestion {
    if IS_FOR_CACHE.get() {
        return LogQuestion::End;
    }
    let cache = &object.core().cache;
    cache.carrying.probe(cache, link).map_or(LogQuestion::End, LogQuestion::Changes)
}

/// Heeds what a reply tells of the log of the server at the other end.
#[cold]
pub(super) fn note_log(object: &ObjectRef, message: &Message, link: Option<&Arc<Link>>) {
    let Ok(reply) = message.parse_reply() else { return };
    let Some(context) = reply.contexts.find(CACHE_CONTEXT) else { return };
    let Some((epoch, head)) = wire::decode_end(context.data) else { return };
    if let Some(link) = link {
        link.note_log_epoch(epoch);
    }
    if let Some(answer) = CarriedProbe::decode_answer(context.data, message.reader_at(0).encoding()) {
        object.core().cache.take_carried(answer, object);
    }
    object.core().cache.told(epoch, head, object);
}

impl ClientCache {
    fn take_carried(&self, answer: Answer<CellNumber, wire::Values>, object: &ObjectRef) {
        let of = answer.session();
        let Some(peer) = self.peers().into_iter().find(|peer| peer.is_in(of)) else { return };
        if let Answer::Changes { units, .. } = &answer {
            let counters = &object.core().counters;
            counters.count(Event::CacheProbeCarried);
            counters.count_many(Event::CacheUpdated, units.len() as u64);
        }
        take_answer(&peer, answer, object);
    }
}
