//! Carries out work, and refuses it where there is no room. No I/O.

use std::sync::Arc;

use ironorb_giop::framer::Refused;

use super::in_flight::{self, CountedSink, Lack};
use crate::base::probe::{self, Stage};
use crate::connection::Work;
use crate::driver::orb_core::OrbCore;
use crate::lane::Event;
use crate::poa::{adapter::Session, servant::ReplySink};

impl Work {
    /// Takes note of service contexts that hold for the whole connection.
    pub(crate) fn take_note(&self, orb: &OrbCore, session: &Session, sink: &dyn ReplySink) {
        if let Work::Request(message) = self
            && let Ok(request) = message.parse_request()
        {
            orb.adapter.take_note(&request, session, sink);
        }
    }

    /// Carries out the work: calls the servant and replies.
    #[inline]
    pub(crate) fn carry_out(&mut self, orb: &Arc<OrbCore>, session: &Session, sink: &dyn ReplySink) {
        let _probe = probe::enter(Stage::Serve);
        match self {
            Work::Request(message) => orb.adapter.serve_request(message, session, sink),
            Work::Locate(message) => orb.adapter.serve_locate(message, sink),
            Work::TooLarge(refused) => refuse_too_large(orb, *refused, sink),
        }
    }

    /// Carries out the work within the limit of requests in flight in the calling thread's lane. A request beyond the
    /// limit is refused.
    pub(crate) fn carry_out_within_limits(
        &mut self,
        orb: &Arc<OrbCore>,
        session: &Session,
        sink: &dyn ReplySink,
    ) {
        let (Some(limit), Work::Request(message)) = (&orb.this_server_lane().requests, &*self) else {
            return self.carry_out(orb, session, sink);
        };
        match limit.begin() {
            Some(permit) => {
                let counted = CountedSink::of(sink, permit, message);
                self.carry_out(orb, session, &counted);
            }
            None => {
                orb.counters.count(Lack::Requests.event());
                // The request may carry the service contexts that say how to read the next one.
                self.take_note(orb, session, sink);
                in_flight::refuse(message, sink, Lack::Requests);
            }
        }
    }

    /// Refuses a request that waits for a thread.
    pub(super) fn refuse_waiting(&self, lack: Lack, orb: &OrbCore, session: &Session, sink: &dyn ReplySink) {
        if let Work::Request(message) = self {
            orb.counters.count(lack.event());
            self.take_note(orb, session, sink);
            in_flight::refuse(message, sink, lack);
        }
    }

    /// Whether [`carry_out`](Self::carry_out) would wait: for a POA manager in the holding state, or for its object.
    pub(crate) fn is_held(&self, orb: &OrbCore) -> bool {
        match self {
            Work::Request(message) | Work::Locate(message) => orb.adapter.adapter_status_of(message).is_held,
            Work::TooLarge(_) => false,
        }
    }
}

#[cold]
fn refuse_too_large(orb: &OrbCore, refused: Refused, sink: &dyn ReplySink) {
    orb.counters.count(Event::RequestTooLarge);
    sink.with(&mut |connection| connection.refuse(refused));
}
