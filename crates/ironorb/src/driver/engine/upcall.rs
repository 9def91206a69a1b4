//! Requests that an engine has announced, and where their replies go.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ironorb_giop::connection::{ConnectionConfig, ServerConnection};
use ironorb_giop::message::RequestId;
use ironorb_giop::service_context::ListenPoint;

use super::tables::NumberTable;
use super::{ClientEngine, ConnectionId, Time, UpcallNumber};
use crate::base::locks::LaneLock;
use crate::connection::{Admission, DeferredAnswer, OnCancel, ServerSession, Work};
use crate::driver::adapter_threads::WithoutWaits;
use crate::driver::orb_core::OrbCore;
use crate::poa::{adapter::Session, servant::ReplySink};

/// Requests that have been announced and not carried out.
#[derive(Default)]
pub(super) struct Announced {
    upcalls: NumberTable<UpcallNumber, EngineUpcall>,
    next: u64,
    /// Those that were to be carried out and that an adapter or its manager does not admit yet.
    held: VecDeque<UpcallNumber>,
}

impl Announced {
    /// Numbers a request.
    pub(super) fn add(&mut self, upcall: EngineUpcall) -> UpcallNumber {
        let number = UpcallNumber(self.next);
        self.next += 1;
        self.upcalls.insert(number, upcall);
        number
    }

    /// Takes a request that is to be carried out now. `None` if it is held, or not there.
    pub(super) fn take(&mut self, number: UpcallNumber, now: Time) -> Option<EngineUpcall> {
        if self.upcalls.get(&number)?.is_held() {
            if !self.held.contains(&number) {
                self.held.push_back(number);
            }
            return None;
        }
        let upcall = self.upcalls.remove(&number)?;
        Some(EngineUpcall { now, ..upcall })
    }

    /// Returns the requests that are no longer held, with their connections, in the order in which they came to be held.
    pub(super) fn take_released(&mut self) -> Vec<(UpcallNumber, ConnectionId)> {
        let Announced { upcalls, held, .. } = self;
        let mut released = Vec::new();
        held.retain(|number| {
            let Some(upcall) = upcalls.get(number) else { return false };
            let is_held = upcall.is_held();
            if !is_held {
                released.push((*number, upcall.peer.id));
            }
            is_held
        });
        released
    }

    /// Drops the requests of a connection, and returns their number.
    pub(super) fn drop_of(&mut self, connection: ConnectionId) -> usize {
        let before = self.upcalls.len();
        self.upcalls.retain(|_, upcall| upcall.peer.id != connection);
        before - self.upcalls.len()
    }

    pub(super) fn len(&self) -> usize {
        self.upcalls.len()
    }
}

/// A request that is carried out apart from its engine.
pub struct EngineUpcall {
    pub(super) work: Work,
    pub(super) peer: Arc<Peer>,
    agreements: Arc<Session>,
    orb: Arc<OrbCore>,
    now: Time,
    pub(super) is_answered: bool,
}

impl EngineUpcall {
    pub(super) fn new(
        work: Work,
        peer: &Arc<Peer>,
        agreements: &Arc<Session>,
        orb: &Arc<OrbCore>,
        now: Time,
    ) -> EngineUpcall {
        let (peer, agreements, orb) = (peer.clone(), agreements.clone(), orb.clone());
        EngineUpcall { work, peer, agreements, orb, now, is_answered: false }
    }

    fn is_held(&self) -> bool {
        self.work.is_held(&self.orb)
    }

    /// Runs the servant. Its reply is written when this returns, or later if the servant says so.
    pub fn run(&mut self) {
        self.run_at(self.now);
    }

    /// Runs the servant at a time after the upcall began: the driver has had it take so long before it runs. Its reply is
    /// written when this returns, or later if the servant says so.
    pub fn run_at(&mut self, now: Time) {
        let _alone = WithoutWaits::begin();
        let EngineUpcall { work, peer, agreements, orb, .. } = self;
        let sink = EngineSink::new(peer, orb, now);
        match peer.session.admit() {
            Admission::Run => work.carry_out(orb, agreements, &sink),
            Admission::RunWithinLimits => work.carry_out_within_limits(orb, agreements, &sink),
            Admission::Skip => {}
        }
        self.is_answered = sink.is_answered.get();
    }
}

impl fmt::Debug for EngineUpcall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineUpcall").field("connection", &self.peer.id).finish_non_exhaustive()
    }
}

/// A connection over which requests come, for their replies.
pub(super) struct Peer {
    pub(super) sender: LaneLock<ServerConnection>,
    pub(super) session: ServerSession,
    pub(super) id: ConnectionId,
    /// Connections whose engine has to look at what was written outside of it.
    written: Arc<WrittenApart>,
    /// The engine that may send calls in the opposite direction over the connection.
    caller: Weak<ClientEngine>,
    /// The number that the connection has there.
    called_as: OnceLock<ConnectionId>,
}

/// Connections to which something was written outside of their engine.
#[derive(Default)]
pub(super) struct WrittenApart {
    connections: LaneLock<BTreeSet<ConnectionId>>,
    /// Each poll asks, and mostly in vain.
    is_any: AtomicBool,
}

impl WrittenApart {
    fn add(&self, connection: ConnectionId) {
        let mut connections = self.connections.lock();
        connections.insert(connection);
        self.is_any.store(true, Ordering::Release);
    }

    pub(super) fn take_next(&self) -> Option<ConnectionId> {
        if !self.is_any.load(Ordering::Acquire) {
            return None;
        }
        let mut connections = self.connections.lock();
        let next = connections.pop_first();
        self.is_any.store(!connections.is_empty(), Ordering::Release);
        next
    }
}

impl Peer {
    pub(super) fn new(
        id: ConnectionId,
        config: ConnectionConfig,
        session: ServerSession,
        written: &Arc<WrittenApart>,
        caller: &Weak<ClientEngine>,
    ) -> Arc<Peer> {
        Arc::new(Peer {
            sender: LaneLock::new(ServerConnection::sending(config)),
            session,
            id,
            written: written.clone(),
            caller: caller.clone(),
            called_as: OnceLock::new(),
        })
    }

    /// The engine that may call over the connection, and the connection's number there.
    pub(super) fn caller(&self) -> Option<(Arc<ClientEngine>, ConnectionId)> {
        Some((self.caller.upgrade()?, *self.called_as.get()?))
    }

    /// Whether a call over the connection waits for its reply.
    pub(super) fn is_called(&self) -> bool {
        self.caller().is_some_and(|(engine, connection)| engine.is_called(connection))
    }

    /// Ends the calls over the connection: no reply will come.
    pub(super) fn end_calls(&self, now: Time) {
        if let Some((engine, connection)) = self.caller() {
            engine.end_accepted(connection, now);
        }
    }

    /// Sends requests in the opposite direction.
    pub(super) fn send(&self, requests: &[u8]) {
        let mut sender = self.sender.lock();
        if !sender.is_ended() {
            sender.transmit().buffer().extend_from_slice(requests);
            self.session.note_sent();
            self.written.add(self.id);
        }
    }

    /// Lets calls go over the connection from now on.
    #[cold]
    fn use_bidirectional(self: &Arc<Self>, points: &[ListenPoint]) {
        let Some(engine) = self.caller.upgrade() else { return };
        let counted = self.session.handle_listen_points(points.len());
        let connection = *self.called_as.get_or_init(|| engine.add_accepted(self));
        engine.use_accepted(&points[..counted], connection);
    }
}

/// The destination of the reply to a request during its upcall.
pub(super) struct EngineSink<'p> {
    peer: &'p Arc<Peer>,
    orb: &'p OrbCore,
    now: Time,
    is_answered: Cell<bool>,
}

impl<'p> EngineSink<'p> {
    pub(super) fn new(peer: &'p Arc<Peer>, orb: &'p OrbCore, now: Time) -> Self {
        EngineSink { peer, orb, now, is_answered: Cell::new(false) }
    }
}

impl ReplySink for EngineSink<'_> {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        let Peer { sender, session, .. } = &**self.peer;
        let mut sender = sender.lock();
        write(&mut sender);
        if !self.is_answered.replace(true) {
            session.note_answered();
        }
        // `take_bytes` sees whether the reply waits.
        let _ = session.handle_reply_written(sender.transmit().pending_bytes(), self.now);
    }

    fn break_off(&self) {
        self.with(&mut ServerConnection::protocol_error);
        self.peer.session.stop();
    }

    fn use_bidirectional(&self, listen_points: &[ListenPoint]) {
        self.peer.use_bidirectional(listen_points);
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let is_let_in = self.peer.session.defer(self.orb.config.connection.calls_in_flight_max);
        is_let_in.then(|| -> Box<dyn ReplySink + Send> {
            let answer = DeferredAnswer::taking_over(self.is_answered.replace(true));
            Box::new(DeferredEngineSink { peer: self.peer.clone(), answer })
        })
    }
}

/// The destination of a reply that comes after its upcall.
struct DeferredEngineSink {
    peer: Arc<Peer>,
    answer: DeferredAnswer,
}

impl ReplySink for DeferredEngineSink {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        let Peer { sender, session, .. } = &*self.peer;
        if self.answer.is_wanted(session) {
            let mut sender = sender.lock();
            write(&mut sender);
            self.answer.settle(session);
            session.note_sent();
        }
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let answer = self.answer.share(&self.peer.session);
        Some(Box::new(DeferredEngineSink { peer: self.peer.clone(), answer }))
    }

    fn is_cancelled(&self, id: RequestId) -> bool {
        self.answer.is_cancelled(&self.peer.session, id)
    }

    fn is_client_gone(&self) -> bool {
        self.peer.session.is_client_gone()
    }

    fn on_cancel(&self, id: RequestId, then: OnCancel) {
        self.answer.on_cancel(&self.peer.session, id, then);
    }
}

impl Drop for DeferredEngineSink {
    fn drop(&mut self) {
        let _ = self.answer.end(&self.peer.session); // `settle` sees the end
        self.peer.written.add(self.peer.id);
    }
}
