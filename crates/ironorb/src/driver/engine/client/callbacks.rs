//! Requests of the peer over a connection of this engine (bidirectional GIOP, CORBA 3.3 part 2, 9.8).

use std::sync::{Arc, Weak};

use ironorb_giop::connection::{ClientConnection, Incoming};

use crate::base::time::Time;
use crate::connection::{Arrival, Backlog, OnCancel, ServerSession};
use crate::driver::engine::upcall::{EngineSink, EngineUpcall, Peer, WrittenApart};
use crate::driver::engine::{CallNumber, ConnectionId};
use crate::driver::orb_core::OrbCore;
use crate::poa::adapter::Session;

/// The requests of the peer over a connection of this engine.
pub(super) struct Callbacks {
    pub(super) peer: Arc<Peer>,
    agreements: Arc<Session>,
    pub(super) backlog: Backlog,
    /// The peer has been invited to send requests.
    has_invited: bool,
    /// The peer's first request has come, with what it says about the peer.
    has_heard: bool,
}

/// Why there is no request to be carried out.
pub(super) enum Unserved {
    Nothing,
    /// The peer no longer waits for a request.
    Cancel(OnCancel),
    /// The peer sends more than can wait.
    TooMany,
}

impl Callbacks {
    pub(super) fn new(
        connection: ConnectionId,
        orb: &Arc<OrbCore>,
        written: &Arc<WrittenApart>,
        now: Time,
    ) -> Box<Callbacks> {
        let session = ServerSession::new(orb.default_server_lane().requests.is_some(), false, now);
        Box::new(Callbacks {
            peer: Peer::new(connection, orb.config.connection, session, written, &Weak::new()),
            agreements: Arc::new(Session::new(&orb.adapter)),
            backlog: Backlog::default(),
            has_invited: false,
            has_heard: false,
        })
    }

    /// Announces the addresses of this ORB with the next request.
    pub(super) fn invite(&mut self, open: &mut ClientConnection<CallNumber>, orb: &OrbCore) {
        if !self.has_invited
            && let Some(listen_points) = orb.connector.listen_points()
        {
            self.has_invited = true;
            open.announce(listen_points.clone());
        }
    }

    pub(super) fn handle_incoming(
        &mut self,
        incoming: Incoming,
        orb: &Arc<OrbCore>,
        now: Time,
    ) -> Result<EngineUpcall, Unserved> {
        let Callbacks { peer, agreements, backlog, .. } = self;
        let work = peer.session.handle_incoming(incoming).map_err(|arrival| match arrival {
            Arrival::CancelRequest(id) => {
                peer.session.handle_cancel(id).map_or(Unserved::Nothing, Unserved::Cancel)
            }
            _ => Unserved::Nothing,
        })?;
        if !backlog.has_room(work.bytes(), &orb.config.connection) {
            return Err(Unserved::TooMany);
        }
        backlog.add(work.bytes());
        peer.session.begin_later();
        if !std::mem::replace(&mut self.has_heard, true) {
            // Before other requests, which may be carried out in another order.
            work.take_note(orb, agreements, &EngineSink::new(peer, orb, now));
        }
        Ok(EngineUpcall::new(work, peer, agreements, orb, now))
    }
}
