//! Where replies go. The drivers implement it.

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::message::RequestId;
use ironorb_giop::service_context::ListenPoint;

use super::call::Results;
use crate::connection::OnCancel;
use crate::object::protocols::CodePoint;

/// Where the replies of one connection are written.
///
/// A sink may wrap another one, its [`inner`](Self::inner). Each provided method asks that one, so that a wrapper says only
/// what it does itself, and a method that is added here passes every wrapper.
pub(crate) trait ReplySink {
    /// The sink that this one wraps, and that answers what this one does not. `None` for the sink of a connection itself.
    fn inner(&self) -> Option<&dyn ReplySink> {
        None
    }

    /// Lets `write` write to the connection, then sends what was written.
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection));

    /// Writes the results of a request, as `with` would. A method of its own, because nearly every request
    /// ends with results. Not the inner sink's: what a wrapper does in `with` holds for results too.
    fn reply(&self, results: &Results<'_>) {
        self.with(&mut |connection| results.write(connection));
    }

    /// Sends the part of these pieces that the peer takes now, without copying them, and returns the number
    /// of bytes. May only be called while `with` runs `write`. Never waits.
    fn send_pieces(&self, pieces: &[&[u8]]) -> usize {
        self.inner().map_or(0, |inner| inner.send_pieces(pieces))
    }

    /// Tells the client that its message cannot be understood, and takes no further message of it.
    #[cold]
    fn break_off(&self) {
        match self.inner() {
            Some(inner) => inner.break_off(),
            None => self.with(&mut ServerConnection::protocol_error),
        }
    }

    /// Ends the connection at once, because it can carry no further message.
    fn cut_off(&self) {
        if let Some(inner) = self.inner() {
            inner.cut_off();
        }
    }

    /// A sink for a reply that is written after the upcall, from any thread. The connection counts the
    /// request as in progress until the sink is dropped. `None` when the connection owes as many replies as
    /// it may.
    fn later(&self) -> Option<Box<dyn ReplySink + Send>>;

    /// Carries out a request that has waited without a thread, and measures that if the lane is watched. Only sinks from
    /// [`later`](Self::later) measure.
    fn carry_out_waited(&self, carry_out: &mut dyn FnMut()) {
        match self.inner() {
            Some(inner) => inner.carry_out_waited(carry_out),
            None => carry_out(),
        }
    }

    /// Whether the client no longer waits for the reply to this request, or is gone. Only sinks from
    /// [`later`](Self::later) answer it.
    fn is_cancelled(&self, id: RequestId) -> bool {
        self.inner().is_some_and(|inner| inner.is_cancelled(id))
    }

    /// Calls `then` when the client no longer waits for the reply: now if that is so already, else on the
    /// thread that runs callbacks. Only sinks from [`later`](Self::later) do so.
    fn on_cancel(&self, id: RequestId, then: OnCancel) {
        match self.inner() {
            Some(inner) => inner.on_cancel(id, then),
            None => drop(then),
        }
    }

    /// Whether the client has closed the connection. Only sinks from [`later`](Self::later) answer it.
    fn is_client_gone(&self) -> bool {
        self.inner().is_some_and(|inner| inner.is_client_gone())
    }

    /// Whether an answer waits until the client has read earlier ones. Only sinks from [`later`](Self::later) answer it.
    fn is_clogged(&self) -> bool {
        self.inner().is_some_and(|inner| inner.is_clogged())
    }

    /// Has [`with`](Self::with) never wait for the client from now on: a thread of the driver sends what the client does not take
    /// at once. For threads that answer many clients. Sinks that never wait have nothing to do.
    fn never_wait(&self) {
        if let Some(inner) = self.inner() {
            inner.never_wait();
        }
    }

    /// A number for the connection that the request came from. Requests with the same number keep their order
    /// when they must wait. `None` for a caller in this process, whose thread waits itself.
    fn client(&self) -> Option<u64> {
        self.inner()?.client()
    }

    /// Whether the client is on this machine, as far as the connection shows it. A sink that cannot tell says no.
    fn is_from_this_machine(&self) -> bool {
        self.inner().is_some_and(|inner| inner.is_from_this_machine())
    }

    /// Has packets of replies over IP carry this code point from now on.
    fn mark_packets(&self, code_point: CodePoint) {
        if let Some(inner) = self.inner() {
            inner.mark_packets(code_point);
        }
    }

    /// Records that the client listens at these points and may be called over this connection (CORBA 3.3 part
    /// 2, 9.8). Called only where the ORB's configuration allows bidirectional connections.
    fn use_bidirectional(&self, listen_points: &[ListenPoint]) {
        if let Some(inner) = self.inner() {
            inner.use_bidirectional(listen_points);
        }
    }
}
