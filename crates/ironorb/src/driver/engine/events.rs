//! The inputs and outputs of a client engine: events and actions.

use std::fmt;
use std::sync::Arc;

use ironorb_giop::exception::SystemException;
use ironorb_giop::message::Message;
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use super::{CallNumber, ConnectionId, Time, UpcallNumber};
use crate::driver::invoke::read_answer;
use crate::driver::orb_core::OrbCore;
use crate::object::ObjectRef;
use crate::object::operation::{Operation, OperationError};

/// Writes the arguments of a call, perhaps more than once.
pub type Arguments = Box<dyn Fn(&mut Writer<'_>) -> Result<(), Misuse> + Send>;

/// An event for a client engine.
pub enum ClientEvent<'e> {
    /// A call begins.
    Call {
        /// The call's number.
        call: CallNumber,
        /// The caller. The requests of one caller to one endpoint go over one connection, in their order.
        caller: usize,
        /// The target object. Forwards are shared with all clones of the reference.
        object: ObjectRef,
        /// The operation. A oneway completes when it has been written.
        operation: &'static Operation<'static>,
        /// Writes the arguments.
        arguments: Arguments,
        /// When the call gives up; `None` never.
        deadline: Option<Time>,
    },
    /// A locate begins: it asks where an object is.
    Locate {
        /// The locate's number.
        call: CallNumber,
        /// The caller. The requests of one caller to one endpoint go over one connection, in their order.
        caller: usize,
        /// The object.
        object: ObjectRef,
        /// When the locate gives up; `None` never.
        deadline: Option<Time>,
    },
    /// The connection that [`ClientAction::Connect`] asked for is there.
    Connected {
        /// The connection.
        connection: ConnectionId,
    },
    /// The connection that [`ClientAction::Connect`] asked for cannot be made.
    ConnectFailed {
        /// The connection.
        connection: ConnectionId,
        /// True when the server did not answer, false when it refused.
        timed_out: bool,
    },
    /// Bytes have come.
    Received {
        /// The connection.
        connection: ConnectionId,
        /// Any piece of the stream.
        bytes: &'e [u8],
    },
    /// The server has closed the connection, or it has failed.
    Closed {
        /// The connection.
        connection: ConnectionId,
    },
    /// The server takes no more bytes. What the engine writes for it from now on stays in the engine, and calls wait
    /// while that is more than [`transmit_bytes_max`](crate::OrbConfig::transmit_bytes_max). Has no effect on a
    /// connection that a client has made: its [server engine](super::ServerEvent::Blocked) sends.
    Blocked {
        /// The connection.
        connection: ConnectionId,
    },
    /// The server takes bytes again.
    Writable {
        /// The connection.
        connection: ConnectionId,
    },
    /// The time of the last [`ClientAction::SetTimer`] has come.
    Timer,
    /// Oneways that wait to leave together are to leave now.
    Flush,
    /// The driver answers [`ClientAction::Upcall`], as it answers the one of a server engine with
    /// [`ServerEvent::CarryOut`](super::ServerEvent::CarryOut).
    CarryOut {
        /// The request.
        upcall: UpcallNumber,
    },
    /// The ORB sends `CloseConnection` on every connection. Calls end with BAD_INV_ORDER, later ones as well.
    Shutdown,
}

/// An action that the driver carries out for a client.
#[derive(Debug)]
pub enum ClientAction {
    /// Connect, and answer with [`ClientEvent::Connected`] or [`ClientEvent::ConnectFailed`].
    Connect {
        /// The number that the connection will have.
        connection: ConnectionId,
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Send bytes after those sent before. The driver must send them or close the connection, because from
    /// now on they count as sent.
    Transmit {
        /// The connection.
        connection: ConnectionId,
        /// Never empty.
        bytes: Vec<u8>,
    },
    /// Close after the bytes that are to be transmitted, or stop connecting. No event is expected for it.
    Close {
        /// The connection.
        connection: ConnectionId,
    },
    /// A call has ended. Comes once for each call.
    Complete {
        /// The call.
        call: CallNumber,
        /// The outcome.
        outcome: Outcome,
    },
    /// The peer has sent a request over a connection of this engine (bidirectional GIOP, CORBA 3.3 part 2, 9.8). Give
    /// [`ClientEvent::CarryOut`] when its servant may run.
    Upcall {
        /// The request. A server engine of the same ORB may use the same number for another one.
        upcall: UpcallNumber,
        /// The connection over which it came.
        connection: ConnectionId,
    },
    /// Give [`ClientEvent::Timer`] at this time, or as soon as possible after it. Replaces a time asked for
    /// before. A timer that fires too soon does no harm.
    SetTimer {
        /// The time.
        at: Time,
    },
}

/// The outcome of a call. A user exception is an answer.
pub type Outcome = Result<Answer, SystemException>;

/// The answer to a call.
#[derive(Debug)]
pub enum Answer {
    /// The reply of a twoway call: results or a user exception.
    Reply(Reply),
    /// A oneway call has been written.
    Sent,
    /// The answer to a locate: whether the object is known.
    Located(bool),
}

/// The reply of a twoway call. The program that knows the operation reads it.
pub struct Reply {
    pub(in crate::driver) message: Message,
    pub(in crate::driver) body_at: usize,
    pub(in crate::driver) user_exception: bool,
    pub(super) orb: Arc<OrbCore>,
}

impl Reply {
    /// Reads the results, or the user exception.
    pub fn read<T, E: OperationError>(
        &self,
        results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
    ) -> Result<T, E> {
        let mut r = self.message.reader_at(self.body_at).with_environment(&*self.orb);
        read_answer(&mut r, self.user_exception, results)
    }

    /// True for a user exception.
    pub fn is_user_exception(&self) -> bool {
        self.user_exception
    }
}

impl fmt::Debug for ClientEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientEvent::Call { call, object, operation, deadline, .. } => f
                .debug_struct("Call")
                .field("call", call)
                .field("object", object)
                .field("operation", operation)
                .field("deadline", deadline)
                .finish_non_exhaustive(),
            ClientEvent::Locate { call, object, deadline, .. } => f
                .debug_struct("Locate")
                .field("call", call)
                .field("object", object)
                .field("deadline", deadline)
                .finish_non_exhaustive(),
            ClientEvent::Connected { connection } => f.debug_tuple("Connected").field(connection).finish(),
            ClientEvent::ConnectFailed { connection, timed_out } => f
                .debug_struct("ConnectFailed")
                .field("connection", connection)
                .field("timed_out", timed_out)
                .finish(),
            ClientEvent::Received { connection, bytes } => {
                f.debug_tuple("Received").field(connection).field(&bytes.len()).finish()
            }
            ClientEvent::Closed { connection } => f.debug_tuple("Closed").field(connection).finish(),
            ClientEvent::Blocked { connection } => f.debug_tuple("Blocked").field(connection).finish(),
            ClientEvent::Writable { connection } => f.debug_tuple("Writable").field(connection).finish(),
            ClientEvent::Timer => f.write_str("Timer"),
            ClientEvent::Flush => f.write_str("Flush"),
            ClientEvent::CarryOut { upcall } => f.debug_tuple("CarryOut").field(upcall).finish(),
            ClientEvent::Shutdown => f.write_str("Shutdown"),
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("user_exception", &self.user_exception).finish_non_exhaustive()
    }
}
