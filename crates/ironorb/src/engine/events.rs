//! What happens to a client engine and what it wants done: its inputs and outputs.

use std::fmt;
use std::sync::Arc;

use ironorb_giop::exception::SystemException;
use ironorb_giop::message::Message;
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use super::{CallNumber, ConnectionId, Time};
use crate::generated::{Operation, OperationError};
use crate::invoke::read_answer;
use crate::object::ObjectRef;
use crate::orb::OrbCore;

/// Writes the arguments of a call, perhaps more than once.
pub type Arguments = Box<dyn Fn(&mut Writer<'_>) -> Result<(), Misuse> + Send>;

/// What happens to a client.
pub enum ClientEvent<'e> {
    /// A call begins.
    Call {
        /// Its number.
        call: CallNumber,
        /// The object asked. Its forwards are shared with all clones of the reference.
        object: ObjectRef,
        /// What it is asked. A oneway completes when it has been written.
        operation: &'static Operation<'static>,
        /// Writes the arguments.
        arguments: Arguments,
        /// When the call gives up; `None` never.
        deadline: Option<Time>,
    },
    /// A question begins: where is this object?
    Locate {
        /// Its number.
        call: CallNumber,
        /// The object.
        object: ObjectRef,
        /// When the question is given up; `None` never.
        deadline: Option<Time>,
    },
    /// What [`ClientAction::Connect`] asked for is there.
    Connected {
        /// Which.
        connection: ConnectionId,
    },
    /// What [`ClientAction::Connect`] asked for cannot be had.
    ConnectFailed {
        /// Which.
        connection: ConnectionId,
        /// Nobody answered, as opposed to an answer that refuses.
        timed_out: bool,
    },
    /// Bytes have come.
    Received {
        /// Where.
        connection: ConnectionId,
        /// Any piece of the stream.
        bytes: &'e [u8],
    },
    /// The server has closed, or the connection has failed.
    Closed {
        /// Which.
        connection: ConnectionId,
    },
    /// The time asked for by the last [`ClientAction::SetTimer`] has come.
    Timer,
    /// The ORB says goodbye on every connection; calls end with BAD_INV_ORDER, later ones as well.
    Shutdown,
}

/// What a driver does for a client.
#[derive(Debug)]
pub enum ClientAction {
    /// Connect; answer with [`ClientEvent::Connected`] or [`ClientEvent::ConnectFailed`].
    Connect {
        /// The number that the connection will have.
        connection: ConnectionId,
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Send bytes after those sent before. Whoever takes this action must send them or close the connection:
    /// from now on they count as sent.
    Transmit {
        /// Where.
        connection: ConnectionId,
        /// Never empty.
        bytes: Vec<u8>,
    },
    /// Close, after what is to be transmitted, or stop connecting. No event is expected for it.
    Close {
        /// Which.
        connection: ConnectionId,
    },
    /// A call has ended. Comes once for each.
    Complete {
        /// Which.
        call: CallNumber,
        /// How.
        outcome: Outcome,
    },
    /// Give [`ClientEvent::Timer`] at this time or as soon as possible after it. Takes the place of a time
    /// asked for before; a timer that fires too soon does no harm.
    SetTimer {
        /// When.
        at: Time,
    },
}

/// How a call has ended. A user exception is an answer.
pub type Outcome = Result<Answer, SystemException>;

/// What a call has brought.
#[derive(Debug)]
pub enum Answer {
    /// A twoway call: results or a user exception.
    Reply(Reply),
    /// A oneway call: it has been written.
    Sent,
    /// A question: whether the object is known.
    Located(bool),
}

/// The reply of a twoway call, to be read by whoever knows the operation.
pub struct Reply {
    pub(super) message: Message,
    pub(super) body_at: usize,
    pub(super) user_exception: bool,
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

    /// Whether it is a user exception.
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
            ClientEvent::Locate { call, object, deadline } => f
                .debug_struct("Locate")
                .field("call", call)
                .field("object", object)
                .field("deadline", deadline)
                .finish(),
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
            ClientEvent::Timer => f.write_str("Timer"),
            ClientEvent::Shutdown => f.write_str("Shutdown"),
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("user_exception", &self.user_exception).finish_non_exhaustive()
    }
}
