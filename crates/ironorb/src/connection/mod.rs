//! What decides about one connection: plain code without I/O, clocks and threads. Bytes and time are arguments.

mod backlog;
mod cancellations;
mod current_request;
mod progress;
mod unread;
mod work;

pub(crate) use backlog::Backlog;
pub(crate) use cancellations::{Cancellations, Cancelled, OnCancel, Watch};
pub(crate) use current_request::CurrentRequest;
pub(crate) use progress::RequestCounter;
pub(crate) use unread::{UnreadPart, UnreadReplies};
pub(crate) use work::{Other, Stop, Work};
