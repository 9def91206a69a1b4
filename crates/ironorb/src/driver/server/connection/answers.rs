//! Where the replies to a connection's requests go, during their upcalls and after. Does not decide when
//! bytes leave.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::message::RequestId;
use ironorb_giop::service_context::ListenPoint;

use super::Connection;
use crate::base::lane::{self, InLane};
use crate::connection::{DeferredAnswer, Flags, OnCancel};
use crate::poa::servant::{ReplySink, Results};
use crate::transport::CodePoint;

/// The reply sink of a request during its upcall.
pub(super) struct PendingReply<'c> {
    connection: &'c Connection,
    answered: Cell<bool>,
}

impl<'c> PendingReply<'c> {
    /// Makes the sink for a request that is counted already.
    #[inline]
    pub(super) fn of(connection: &'c Connection) -> PendingReply<'c> {
        PendingReply { connection, answered: Cell::new(false) }
    }

    /// Records that the request no longer keeps the connection from an orderly close.
    #[inline]
    pub(super) fn settle(&self) {
        if !self.answered.replace(true) {
            self.connection.session.note_answered();
        }
    }

    /// Whether the request no longer keeps the connection from an orderly close.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.answered.get()
    }
}

impl ReplySink for PendingReply<'_> {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        self.connection.with_reply(|sender| {
            write(sender);
            self.settle();
        });
    }

    fn reply(&self, results: &Results<'_>) {
        self.connection.with_reply(|sender| {
            results.write(sender);
            self.settle();
        });
    }

    #[cold]
    fn send_pieces(&self, pieces: &[&[u8]]) -> usize {
        self.connection.send_pieces(pieces)
    }

    #[cold]
    fn break_off(&self) {
        self.with(&mut ServerConnection::protocol_error);
        self.connection.take_no_more();
    }

    #[cold]
    fn cut_off(&self) {
        self.connection.cut_off();
    }

    fn client(&self) -> Option<u64> {
        Some(self.connection.id)
    }

    #[cold]
    fn is_from_this_machine(&self) -> bool {
        self.connection.stream.is_from_this_machine()
    }

    fn use_bidirectional(&self, listen_points: &[ListenPoint]) {
        self.connection.use_bidirectional(listen_points);
    }

    #[cold]
    fn mark_packets(&self, code_point: CodePoint) {
        self.connection.mark_packets(code_point);
    }

    #[cold]
    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let connection = self.connection.itself.upgrade()?;
        if !connection.session.defer(connection.orb.config.connection.calls_in_flight_max) {
            return None;
        }
        let answer = DeferredAnswer::taking_over(self.answered.replace(true));
        Some(DeferredReply::boxed(connection, answer))
    }
}

/// The reply sink of a request that is refused while the connection's threads wait. Never waits for the peer.
pub(super) struct RefusedAtOnce<'c>(pub(super) &'c Connection);

impl ReplySink for RefusedAtOnce<'_> {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        self.0.with_at_once(write);
    }

    fn break_off(&self) {
        self.with(&mut ServerConnection::protocol_error);
        self.0.take_no_more();
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        None
    }

    fn use_bidirectional(&self, listen_points: &[ListenPoint]) {
        self.0.use_bidirectional(listen_points);
    }
}

/// The reply sink of a request that is answered after its upcall. The thread that answers may be of another lane: it
/// enters the lane of the connection for that time.
struct DeferredReply {
    connection: HeldConnection,
    answer: DeferredAnswer,
    /// The thread that answers waits for no peer.
    never_waits: Cell<bool>,
}

impl DeferredReply {
    fn boxed(connection: Arc<Connection>, answer: DeferredAnswer) -> Box<dyn ReplySink + Send> {
        let connection = HeldConnection::of(connection);
        Box::new(DeferredReply { connection, answer, never_waits: Cell::new(false) })
    }
}

/// A connection that may be dropped by a thread of another lane, which enters its lane for that time.
struct HeldConnection(Option<Arc<Connection>>);

impl HeldConnection {
    fn of(connection: Arc<Connection>) -> HeldConnection {
        HeldConnection(Some(connection))
    }

    fn enter_lane(&self) -> InLane {
        lane::enter(self.lane)
    }
}

impl Deref for HeldConnection {
    type Target = Arc<Connection>;

    fn deref(&self) -> &Arc<Connection> {
        self.0.as_ref().expect("only the drop takes it")
    }
}

impl Drop for HeldConnection {
    fn drop(&mut self) {
        let _in_its_lane = self.enter_lane();
        drop(self.0.take());
    }
}

impl ReplySink for DeferredReply {
    #[cold]
    fn send_pieces(&self, pieces: &[&[u8]]) -> usize {
        let _in_its_lane = self.connection.enter_lane();
        self.connection.send_pieces(pieces)
    }

    #[cold]
    fn cut_off(&self) {
        let _in_its_lane = self.connection.enter_lane();
        self.connection.cut_off();
    }

    fn client(&self) -> Option<u64> {
        Some(self.connection.id)
    }

    #[cold]
    fn is_from_this_machine(&self) -> bool {
        self.connection.stream.is_from_this_machine()
    }

    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        let _in_its_lane = self.connection.enter_lane();
        let session = &self.connection.session;
        if !self.answer.is_wanted(session) {
            return;
        }
        let write = |sender: &mut ServerConnection| {
            write(sender);
            self.answer.settle(session);
        };
        match self.never_waits.get() {
            true => self.connection.with_at_once(write),
            false => self.connection.with(write),
        }
    }

    fn is_cancelled(&self, id: RequestId) -> bool {
        let _in_its_lane = self.connection.enter_lane();
        self.answer.is_cancelled(&self.connection.session, id)
    }

    fn is_client_gone(&self) -> bool {
        self.connection.session.is_client_gone()
    }

    fn is_clogged(&self) -> bool {
        self.connection.session.is_on(Flags::CLOGGED | Flags::STALLED) && {
            let _in_its_lane = self.connection.enter_lane();
            self.connection.has_unread()
        }
    }

    fn never_wait(&self) {
        self.never_waits.set(true);
    }

    fn on_cancel(&self, id: RequestId, then: OnCancel) {
        let _in_its_lane = self.connection.enter_lane();
        self.answer.on_cancel(&self.connection.session, id, then);
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let _in_its_lane = self.connection.enter_lane();
        let answer = self.answer.share(&self.connection.session);
        Some(DeferredReply::boxed(self.connection.clone(), answer))
    }
}

impl Drop for DeferredReply {
    fn drop(&mut self) {
        let connection = &self.connection;
        let _in_its_lane = connection.enter_lane();
        // The thread that finishes the last request of an ended connection closes it, as in
        // `Connection::carry_out`.
        if self.answer.end(&connection.session) {
            match connection.server.upgrade() {
                Some(server) => server.close(connection),
                None => connection.close_now(),
            }
        }
    }
}
