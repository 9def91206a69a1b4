//! Calls by message to an object of this process. They serve callers that know only the object's key, and
//! servants that cannot be called directly because they reply later, are dynamic, or belong to another
//! thread.
//!
//! There is no socket and no connection: the caller writes a request, the adapter serves it at once, and the
//! caller reads the reply.

use std::cell::RefCell;
use std::sync::Arc;

use ironorb_giop::connection::{
    BeginError, CallId, CallState, ClientConnection, ConnectionConfig, Incoming, ServerConnection,
};
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::framer::Framer;
use ironorb_giop::message::{Message, RequestTarget};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{Encoding, TransmissionCodeSets};

use crate::base::lane::{self, LaneId, current_lane};
use crate::base::locks::{Condition, LaneLock};
use crate::call::invocation::bad_reply;
use crate::driver::clock;
use crate::driver::invoke::Arguments;
use crate::driver::orb_core::OrbCore;
use crate::object::deadline::Deadline;
use crate::poa::Upcall;
use crate::poa::{adapter::Session, servant::ReplySink};
use crate::rt::distributable::LocalCall;

thread_local! {
    /// An upcall that has begun and turned out to need a message.
    static BEGUN: RefCell<Option<Upcall>> = const { RefCell::new(None) };
}

/// Runs `call`. The first call by message in it goes to this upcall, whose servant has been found already and
/// must not be looked up twice.
pub(crate) fn with_begun<T>(upcall: Upcall, call: impl FnOnce() -> T) -> T {
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            // Outside of the borrow, because the drop may end the object's last upcall.
            let unused = BEGUN.take();
            drop(unused);
        }
    }
    let before = BEGUN.replace(Some(upcall));
    debug_assert!(before.is_none(), "an upcall that has begun goes on at once");
    let _forget = Forget;
    call()
}

/// How long the caller waits for a servant that replies after its upcall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitPolicy {
    /// The caller waits until the call's deadline.
    Until(Deadline),
    /// The caller does not wait: it has a single thread, on which the answer may depend.
    None,
}

/// Calls an object and waits for its reply.
#[cold]
pub(crate) fn loopback(
    orb: &OrbCore,
    key: &[u8],
    operation: &str,
    encoding: Encoding,
    arguments: Arguments<'_>,
    wait_policy: WaitPolicy,
) -> Result<Message, SystemException> {
    let mut client = ClientConnection::<()>::new(config(orb));
    let call = client.begin_call(&target(key, encoding), operation, arguments).map_err(failed)?;
    let place = serve(orb, &mut client)?;
    let mut replies = place.replies.lock();
    while replies.connection.transmit().poll_transmit().is_empty() && replies.outstanding > 0 {
        let left = match wait_policy {
            WaitPolicy::Until(deadline) => deadline.remaining(clock::now()),
            WaitPolicy::None => return Err(cannot_wait()),
        };
        replies = match left {
            Ok(None) => place.written.wait(replies),
            Ok(Some(left)) => place.written.wait_for(replies, left).0,
            Err(_) => return Err(timed_out()),
        };
    }
    let reply = replies.connection.transmit().take_all();
    drop(replies);
    read_reply(client, call, &reply)
}

/// Receives the outcome of a call by message.
pub(crate) type ReplyCallback = Box<dyn FnOnce(Result<Message, SystemException>) + Send>;

/// Calls an object and reports the reply to `on_reply`: before this returns, or on the thread on which the
/// servant replies later.
#[cold]
pub(crate) fn loopback_later(
    orb: &OrbCore,
    key: &[u8],
    operation: &str,
    encoding: Encoding,
    arguments: Arguments<'_>,
    on_reply: ReplyCallback,
) {
    let mut client = ClientConnection::<()>::new(config(orb));
    let begun = client.begin_call(&target(key, encoding), operation, arguments).map_err(failed);
    let served = begun.and_then(|call| Ok((call, serve(orb, &mut client)?)));
    let (call, place) = match served {
        Ok(served) => served,
        Err(e) => return on_reply(Err(e)),
    };
    let mut replies = place.replies.lock();
    replies.on_reply = Some(Box::new(move |reply| on_reply(read_reply(client, call, &reply))));
    let notify = replies.take_notification();
    drop(replies);
    notify();
}

fn read_reply(
    mut client: ClientConnection<()>,
    call: CallId,
    reply: &[u8],
) -> Result<Message, SystemException> {
    let mut framer = client.take_framer().ok_or_else(bug)?;
    framer.push(reply);
    client.handle_input(framer, |()| {}).map_err(|e| bad_reply(e.0))?;
    match client.poll_call(call) {
        CallState::Answered(message) => Ok(message),
        _ => Err(bug()),
    }
}

/// Calls an object without a reply. Returns when the servant has returned, if this thread calls the servant.
#[cold]
pub(crate) fn loopback_oneway(
    orb: &OrbCore,
    key: &[u8],
    operation: &str,
    arguments: Arguments<'_>,
) -> Result<(), SystemException> {
    let mut client = ClientConnection::<()>::new(config(orb));
    client.begin_oneway(&target(key, encoding()), operation, arguments).map_err(failed)?;
    serve(orb, &mut client).map(drop)
}

/// The encoding of messages within this process, when no body has been written yet. It can express every
/// value, whatever other connections use.
#[cold]
pub(crate) fn encoding() -> Encoding {
    Encoding::NATIVE
}

/// The limits of any connection, without fragments.
fn config(orb: &OrbCore) -> ConnectionConfig {
    ConnectionConfig { fragment_bytes: None, ..orb.config.connection }
}

fn target(key: &[u8], encoding: Encoding) -> RequestTarget {
    let code_sets = encoding.code_sets();
    let chosen = (code_sets != TransmissionCodeSets::UNNEGOTIATED).then_some(code_sets);
    RequestTarget::new(encoding.version, chosen, key)
}

/// Serves what the client has written.
fn serve(orb: &OrbCore, client: &mut ClientConnection<()>) -> Result<Arc<LocalReply>, SystemException> {
    let (connection, mut framer): (_, Framer) = ServerConnection::new(config(orb));
    framer.push(client.transmit().poll_transmit());
    let Ok(Some(Incoming::Request(mut request))) = ServerConnection::poll_incoming(&mut framer) else {
        return Err(bug());
    };
    let place = Arc::new(LocalReply {
        lane: current_lane(),
        replies: LaneLock::new(Replies { connection, outstanding: 0, on_reply: None }),
        written: Condition::new(),
    });
    let sink = LocalSink(place.clone());
    let _own = LocalCall::begin();
    orb.adapter.serve_parsed(&mut request, &Session::new(&orb.adapter), &sink, BEGUN.take(), false);
    Ok(place)
}

/// The destination of the replies of one call.
struct LocalReply {
    /// The lane in which the call began.
    lane: LaneId,
    replies: LaneLock<Replies>,
    written: Condition,
}

struct Replies {
    connection: ServerConnection,
    /// How many replies come later.
    outstanding: usize,
    /// Receives the answer, if no thread waits for it.
    on_reply: Option<Box<dyn FnOnce(Vec<u8>) + Send>>,
}

impl Replies {
    /// Returns the notification of the listener, if the answer is there or none will come. The caller runs it
    /// without the lock.
    fn take_notification(&mut self) -> impl FnOnce() + use<> {
        let is_over = self.outstanding == 0 || !self.connection.transmit().poll_transmit().is_empty();
        let listener = if is_over { self.on_reply.take() } else { None };
        let reply = if listener.is_some() { self.connection.transmit().take_all() } else { Vec::new() };
        move || {
            if let Some(on_reply) = listener {
                on_reply(reply);
            }
        }
    }
}

struct LocalSink(Arc<LocalReply>);

impl ReplySink for LocalSink {
    fn is_from_this_machine(&self) -> bool {
        true
    }

    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        write(&mut self.0.replies.lock().connection);
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        self.0.replies.lock().outstanding += 1;
        Some(Box::new(DeferredLocalSink(self.0.clone())))
    }
}

/// A place for the answer after the upcall. The thread that answers may be of another lane.
struct DeferredLocalSink(Arc<LocalReply>);

impl ReplySink for DeferredLocalSink {
    fn is_from_this_machine(&self) -> bool {
        true
    }

    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        let _in_its_lane = lane::enter(self.0.lane);
        write(&mut self.0.replies.lock().connection);
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let _in_its_lane = lane::enter(self.0.lane);
        self.0.replies.lock().outstanding += 1;
        Some(Box::new(DeferredLocalSink(self.0.clone())))
    }
}

impl Drop for DeferredLocalSink {
    fn drop(&mut self) {
        let _in_its_lane = lane::enter(self.0.lane);
        let notify = {
            let mut replies = self.0.replies.lock();
            replies.outstanding -= 1;
            replies.take_notification()
        };
        self.0.written.notify_all();
        notify();
    }
}

fn failed(e: BeginError) -> SystemException {
    match e {
        BeginError::Misuse(misuse) => misuse.into(),
        BeginError::Ended(_) | BeginError::TooManyCalls => bug(),
    }
}

#[cold]
fn timed_out() -> SystemException {
    SystemException::new(SystemExceptionKind::Timeout, MinorCode::CALL_TIMEOUT, CompletionStatus::Maybe)
}

#[cold]
fn cannot_wait() -> SystemException {
    SystemException::new(SystemExceptionKind::NoResponse, MinorCode::NONE, CompletionStatus::Maybe)
        .with_detail("the servant answers later, which a caller with a single thread cannot wait for")
}

#[cold]
fn bug() -> SystemException {
    SystemException::new(SystemExceptionKind::Internal, MinorCode::NONE, CompletionStatus::Maybe)
}
