//! Where the replies to a connection's requests go, during their upcalls and after. Does not decide when
//! bytes leave.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::message::RequestId;
use ironorb_giop::service_context::ListenPoint;

use super::{Connection, SlowPathFlags};
use crate::base::sync::lock;
use crate::connection::{OnCancel, Watch};
use crate::poa::servant::ReplySink;
use crate::poa::servant::Results;

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
            self.connection.progress.answer();
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

    fn use_bidirectional(&self, listen_points: &[ListenPoint]) {
        self.connection.use_bidirectional(listen_points);
    }

    #[cold]
    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let connection = self.connection.itself.upgrade()?;
        if connection.progress.carried() > connection.orb.config.connection.calls_in_flight_max {
            return None;
        }
        connection.progress.share();
        // The new sink takes over the count of the missing reply.
        let answered = self.answered.replace(true);
        let answered = AtomicBool::new(answered);
        Some(Box::new(DeferredReply { connection, answered, watch: Watch::default() }))
    }
}

/// The reply sink of a request that is refused while the connection's threads wait. Never waits for the peer.
pub(super) struct RefusedAtOnce<'c>(pub(super) &'c Connection);

impl ReplySink for RefusedAtOnce<'_> {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        let mut sender = lock(&self.0.sender);
        write(&mut sender);
        self.0.send_soon_what_waits(&mut sender);
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

/// The reply sink of a request that is answered after its upcall.
struct DeferredReply {
    connection: Arc<Connection>,
    answered: AtomicBool,
    /// Whether the client still waits for the reply, if the servant has asked.
    watch: Watch,
}

impl DeferredReply {
    fn settle(&self) {
        if !self.answered.swap(true, Ordering::SeqCst) {
            self.connection.progress.answer();
        }
    }
}

impl ReplySink for DeferredReply {
    #[cold]
    fn send_pieces(&self, pieces: &[&[u8]]) -> usize {
        self.connection.send_pieces(pieces)
    }

    #[cold]
    fn cut_off(&self) {
        self.connection.cut_off();
    }

    fn client(&self) -> Option<u64> {
        Some(self.connection.id)
    }

    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        if self.watch.end(&self.connection.cancellations) {
            return self.settle(); // the client would not read it
        }
        self.connection.with(|sender| {
            write(sender);
            self.settle();
        });
    }

    fn is_cancelled(&self, id: RequestId) -> bool {
        self.watch.is_cancelled(&self.connection.cancellations, id)
    }

    fn is_client_gone(&self) -> bool {
        self.connection.is_on(SlowPathFlags::CLIENT_GONE) || self.connection.cancellations.is_over()
    }

    fn on_cancel(&self, id: RequestId, then: OnCancel) {
        self.watch.on_cancel(&self.connection.cancellations, id, then);
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        self.connection.progress.share();
        let answered = AtomicBool::new(self.answered.swap(true, Ordering::SeqCst));
        Some(Box::new(DeferredReply {
            connection: self.connection.clone(),
            answered,
            watch: Watch::default(),
        }))
    }
}

impl Drop for DeferredReply {
    fn drop(&mut self) {
        self.watch.end(&self.connection.cancellations);
        self.settle();
        let connection = &self.connection;
        // The thread that finishes the last request of an ended connection closes it, as in
        // `Connection::carry_out`.
        if connection.progress.end(true) && connection.ending.load(Ordering::SeqCst) {
            match connection.server.upgrade() {
                Some(server) => server.close(connection),
                None => connection.close_now(),
            }
        }
    }
}
