//! A call, hop by hop, driven by the calling thread.
//!
//! The part that depends on the operation's types ([`invoke`], [`invoke_oneway`]) is a few lines around a
//! concrete core that is compiled once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::framer::{PlainReply, ShortReply};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use crate::batching;
use crate::client::{Heard, Link, thread_ordinal};
use crate::coarse::Coarse;
use crate::course::{Answer, Course};
use crate::deadline::{CallTime, call_timeout};
use crate::generated::{LocalSlot, Operation, OperationError, RefTo};
use crate::invocation::bad_reply;
use crate::lease::{self, Leased};
use crate::loopback;
use crate::messaging::SyncScope;
use crate::object::ObjectRef;
use crate::probe::{self, Stage};
use crate::route::RemoteTarget;

pub(crate) type Arguments<'a> = &'a dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>;

/// Calls a twoway operation and waits for its results. Blocks until the deadline at most.
///
/// `local` is used when the object is in this process; else `arguments` writes the request's body, perhaps
/// more than once, and `results` reads the reply's.
#[inline]
pub fn invoke<I, R, T, E>(
    target: &R,
    operation: &'static Operation<'static>,
    local: impl FnOnce(&I) -> Result<T, E>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E>
where
    I: Leased + ?Sized,
    R: RefTo<I>,
    E: OperationError,
{
    let object = target.object();
    let (mut local, mut answered) = (Some(local), Answered::NOT);
    by_lease(object, operation, &mut local, &mut answered);
    if let Some(value) = answered.value {
        return Ok(value);
    }
    match answered.error {
        Some(e) => Err(e),
        None => without_lease(object, operation, local, arguments, results),
    }
}

/// Apart from the calls by lease, which need next to nothing of what this needs.
#[inline(never)]
fn without_lease<I, T, E>(
    object: &ObjectRef,
    operation: &'static Operation<'static>,
    local: Option<impl FnOnce(&I) -> Result<T, E>>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E>
where
    I: Leased + ?Sized,
    E: OperationError,
{
    match object.local(operation) {
        Ok(None) => remote(object, operation, &arguments, results),
        Ok(Some(upcall)) => match direct(&upcall) {
            Some(servant) => call_local(object, operation, upcall, &servant, local),
            None => loopback::with_begun(upcall, || remote(object, operation, &arguments, results)),
        },
        Err(e) => Err(about(object, operation, e).into()),
    }
}

/// Calls a oneway operation. Blocks only while the connection takes no bytes, or is being made.
#[inline]
pub fn invoke_oneway<I, R>(
    target: &R,
    operation: &'static Operation<'static>,
    local: impl FnOnce(&I) -> Result<(), SystemException>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<(), SystemException>
where
    I: Leased + ?Sized,
    R: RefTo<I>,
{
    let object = target.object();
    let (mut local, mut answered) = (Some(local), Answered::NOT);
    by_lease(object, operation, &mut local, &mut answered);
    // As over the wire: the caller of a oneway hears nothing of what the servant says.
    if answered.value.is_some() || answered.error.is_some() {
        return Ok(());
    }
    let by_message = || oneway(object, operation, &arguments).map_err(|e| about(object, operation, e));
    match object.local(operation) {
        Ok(None) => by_message(),
        Ok(Some(upcall)) => match direct(&upcall) {
            Some(servant) => {
                let _unheard = call_local(object, operation, upcall, &servant, local);
                Ok(())
            }
            None => loopback::with_begun(upcall, by_message),
        },
        Err(e) => Err(about(object, operation, e)),
    }
}

/// The servant as the caller's interface, if it can be called directly. One that answers later or is dynamic cannot, nor
/// one that lacks the interface, and gets the call as a message.
#[inline]
pub(crate) fn direct<I: ?Sized + 'static>(upcall: &crate::poa::Upcall) -> Option<Arc<I>> {
    let mut found: Option<Arc<I>> = None;
    upcall.servant().provide(&mut LocalSlot::new(&mut found));
    found
}

/// What a servant has answered, if anything. Two places and not a `Result`: that would be moved whole, and a move that
/// reads at once what was just written in parts takes longer than the rest of a call in this process.
struct Answered<T, E> {
    value: Option<T>,
    error: Option<E>,
}

impl<T, E> Answered<T, E> {
    const NOT: Self = Answered { value: None, error: None };
}

/// Calls a servant by a lease that the thread has of its object; else `local` is left where it is.
#[inline]
fn by_lease<I, T, E>(
    object: &ObjectRef,
    operation: &Operation<'_>,
    local: &mut Option<impl FnOnce(&I) -> Result<T, E>>,
    answered: &mut Answered<T, E>,
) where
    I: Leased + ?Sized,
    E: OperationError,
{
    if let Some(number) = object.number_if_leased() {
        I::with_leases(|leases| {
            leases.call(number, |servant| call_servant(object, operation, servant, local, answered));
        });
    }
}

/// Calls a servant in the ordinary way, and keeps a lease of it where the same reference has been called before.
pub(crate) fn call_local<I, T, E>(
    object: &ObjectRef,
    operation: &Operation<'_>,
    upcall: crate::poa::Upcall,
    servant: &Arc<I>,
    local: Option<impl FnOnce(&I) -> Result<T, E>>,
) -> Result<T, E>
where
    I: Leased + ?Sized,
    E: OperationError,
{
    lease::keep(object, &upcall, servant);
    let _current = upcall.enter();
    let (mut local, mut answered) = (local, Answered::NOT);
    call_servant(object, operation, &**servant, &mut local, &mut answered);
    match answered {
        Answered { value: Some(value), .. } => Ok(value),
        Answered { error: Some(e), .. } => Err(e),
        // Without a call there was nothing to answer: it is used up by the servant alone.
        Answered { value: None, error: None } => Err(about(object, operation, servant_panicked()).into()),
    }
}

#[inline]
fn call_servant<I, T, E>(
    object: &ObjectRef,
    operation: &Operation<'_>,
    servant: &I,
    local: &mut Option<impl FnOnce(&I) -> Result<T, E>>,
    answered: &mut Answered<T, E>,
) where
    I: ?Sized,
    E: OperationError,
{
    let _probe = probe::enter(Stage::Upcall);
    let called = catch_unwind(AssertUnwindSafe(|| {
        if let Some(local) = local.take() {
            match local(servant) {
                Ok(value) => answered.value = Some(value),
                Err(e) => answered.error = Some(e),
            }
        }
    }));
    if called.is_err() {
        answered.error = Some(about(object, operation, servant_panicked()).into());
    }
}

#[cold]
pub(crate) fn servant_panicked() -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, MinorCode::SERVANT_PANICKED, CompletionStatus::Maybe)
}

/// Calls a twoway operation of an object in another process.
#[inline]
pub(crate) fn remote<T, E: OperationError>(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E> {
    let _probe = probe::enter(Stage::Call);
    let mut short = ShortReply::default();
    let answer = match twoway(object, operation, arguments, &mut short) {
        Ok(answer) => answer,
        Err(e) => return Err(about(object, operation, e).into()),
    };
    let (r, user_exception) = match &answer {
        None => (short.results(), false),
        Some(answer) => (answer.message.reader_at(answer.body_at), answer.user_exception),
    };
    let result = read_answer(r.with_environment(&**object.core()), user_exception, results);
    if let Some(answer) = answer {
        recycle(answer);
    }
    result
}

#[inline(never)]
fn recycle(answer: Answer) {
    if let Some(link) = answer.link {
        link.recycle(answer.message);
    }
}

/// The course of every call whose arguments are written, compiled once and beside what it calls: straight, or with a
/// [`Course`] where that does not do. `None` when its results are in `short`.
#[inline(never)]
fn twoway(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    short: &mut ShortReply,
) -> Result<Option<Answer>, SystemException> {
    let Some((target, link, time)) = straight(object) else {
        return Course::twoway(object, operation, arguments).map(Some);
    };
    match link.call_straight(&target.request, operation.wire_name(), arguments, time, short) {
        Heard::Plain(PlainReply::Short) => Ok(None),
        Heard::Plain(PlainReply::Long(message)) => Ok(Some(Answer {
            message,
            link: Some(link),
            body_at: PlainReply::BODY_AT,
            user_exception: false,
        })),
        Heard::Other(heard) => Course::resume(object, operation, arguments, time, link, heard).map(Some),
    }
}

/// The way of nearly every call, if there is nothing to find out, to make or to tell anybody first.
#[inline(always)] // a step of every call
fn straight(object: &ObjectRef) -> Option<(&RemoteTarget, Arc<Link>, CallTime)> {
    let orb = object.core();
    if !orb.interceptors.client.is_empty() {
        return None;
    }
    let target = object.routes().straight()?;
    let timeout = call_timeout(object.timeout(), || orb.call_timeout());
    let time = CallTime { begun: Coarse::now(), timeout };
    let link = target.links.open_link(thread_ordinal(), time.begun)?;
    Some((target, link, time))
}

/// The same of a oneway.
fn oneway(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
) -> Result<(), SystemException> {
    let _probe = probe::enter(Stage::Call);
    if let Some(batching) = object.oneway_batching() {
        return match batching::add(object, operation, arguments, &batching) {
            Some(added) => added,
            None => Course::begin(object, operation, arguments)?.oneway(),
        };
    }
    if object.sync_scope() != SyncScope::WithTransport {
        return Course::begin(object, operation, arguments)?.oneway();
    }
    let Some((target, link, time)) = straight(object) else {
        return Course::begin(object, operation, arguments)?.oneway();
    };
    link.tell_straight(&target.request, operation.wire_name(), arguments, time)
        .or_else(|failure| Course::resume_oneway(object, operation, arguments, time, failure))
}

/// Calls a twoway operation of an object wherever it is, in this process by a message too.
pub(crate) fn by_message<T>(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, SystemException> {
    // Lets a forward of the adapter's be followed first, and gives its exception.
    object.local(operation).map_err(|e| about(object, operation, e))?;
    remote(object, operation, arguments, results)
}

/// Reads what the caller asked for, or the user exception.
#[inline]
pub(crate) fn read_answer<T, E: OperationError>(
    mut r: Reader<'_>,
    user_exception: bool,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E> {
    let _probe = probe::enter(Stage::Demarshal);
    if user_exception {
        read_user_exception(&mut r)
    } else {
        results(&mut r).map_err(|e| bad_reply(e).into())
    }
}

#[cold]
fn read_user_exception<T, E: OperationError>(r: &mut Reader<'_>) -> Result<T, E> {
    let read = r.read_str().and_then(|id| match E::from_user_exception(&id, r)? {
        Some(e) => Ok(e),
        None => Ok(SystemException::new(
            SystemExceptionKind::Unknown,
            MinorCode::UNKNOWN_UNLISTED_USER_EXCEPTION,
            CompletionStatus::Maybe,
        )
        .with_detail(format!("the server raised {id}, which the operation does not declare"))
        .into()),
    });
    Err(read.unwrap_or_else(|e| bad_reply(e).into()))
}

/// Adds the object and operation to what is said about a failure.
#[cold]
pub(crate) fn about(object: &ObjectRef, operation: &Operation<'_>, e: SystemException) -> SystemException {
    about_named(object, operation.name(), e)
}

#[cold]
pub(crate) fn about_named(object: &ObjectRef, operation: &str, e: SystemException) -> SystemException {
    let of = match object.type_id() {
        "" => "an untyped object",
        id => id,
    };
    // The failure often tells the address at fault, which need not be the first of the reference.
    let detail = match (e.detail(), object.address()) {
        (Some(detail), Some(address)) if !detail.contains(&address) => {
            format!("{operation} of {of} at {address}: {detail}")
        }
        (Some(detail), _) if detail.starts_with("at ") => format!("{operation} of {of} {detail}"),
        (Some(detail), _) => format!("{operation} of {of}: {detail}"),
        (None, Some(address)) => format!("{operation} of {of} at {address}"),
        (None, None) => format!("{operation} of {of}"),
    };
    e.with_detail(detail)
}

/// Asks where an object is.
pub(crate) fn locate(object: &ObjectRef) -> Result<bool, SystemException> {
    Course::begin(object, &LOCATE, NO_ARGUMENTS).and_then(|mut course| course.locate())
}

/// The same; may do about the way to the object what the policies forbid other calls.
pub(crate) fn bind(object: &ObjectRef) -> Result<bool, SystemException> {
    Course::begin(object, &LOCATE, NO_ARGUMENTS).and_then(|course| course.bind())
}

const NO_ARGUMENTS: Arguments<'static> = &|_| Ok(());

pub(crate) static LOCATE: Operation<'static> = Operation::twoway("LocateRequest");
