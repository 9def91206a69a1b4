//! What decides about one connection: plain code without I/O, clocks and threads. Bytes and time are arguments.
//!
//! [`ServerSession`] decides about an accepted connection, and about the requests of a peer over a connection that this
//! ORB has made. The drivers run it: those with threads in `driver/server`, and the engine for virtual time.

mod backlog;
mod batch;
mod cancellations;
mod client_idle;
mod coalescing;
mod current_request;
mod inbox;
mod progress;
mod server;
mod stall;
mod timeouts;
mod unread;
mod work;

pub(crate) use backlog::Backlog;
pub(crate) use batch::{Batch, BatchDue};
pub(crate) use cancellations::OnCancel;
pub(crate) use client_idle::ClientActivity;
pub(crate) use coalescing::{HELD_TIMER, ReplyFate};
pub(crate) use current_request::CurrentRequest;
pub(crate) use inbox::{Inbox, Taken};
pub(crate) use server::{Admission, Arrival, DeferredAnswer, Flags, ServerSession};
pub(crate) use stall::Stall;
pub(crate) use timeouts::{Limits, Verdict};
pub(crate) use unread::{UnreadPart, UnreadReplies};
pub(crate) use work::Work;

use cancellations::{Cancellations, Cancelled, Watch};
use progress::RequestCounter;
use timeouts::{Activity, Timeouts};
