//! A call, hop by hop, driven by the calling thread.
//!
//! The part that depends on the operation's types ([`invoke`], [`invoke_oneway`]) is a few lines around a
//! concrete core that is compiled once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::framer::{PLAIN_RESULTS_AT, ShortReply};
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
    let Some(number) = object.number_if_leased() else {
        return match object.routes().straight() {
            Some(target) => remote_at(object, Some(target), operation, &arguments, results),
            None => without_lease(object, operation, Some(local), arguments, results),
        };
    };
    let (mut local, mut answered) = (Some(local), Answered::NOT);
    by_lease(number, object, operation, &mut local, &mut answered);
    if let Some(value) = answered.value {
        return Ok(value);
    }
    match answered.error {
        Some(e) => Err(e),
        None => without_lease(object, operation, local, arguments, results),
    }
}

/// Apart from the calls that go straight or by lease, which need next to nothing of what this needs.
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
    if let Some(number) = object.number_if_leased() {
        by_lease(number, object, operation, &mut local, &mut answered);
    }
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
    number: u64,
    object: &ObjectRef,
    operation: &Operation<'_>,
    local: &mut Option<impl FnOnce(&I) -> Result<T, E>>,
    answered: &mut Answered<T, E>,
) where
    I: Leased + ?Sized,
    E: OperationError,
{
    I::with_leases(|leases| {
        leases.call(number, |servant| call_servant(object, operation, servant, local, answered));
    });
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
pub(crate) fn remote<T, E: OperationError>(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E> {
    remote_at(object, object.routes().straight(), operation, arguments, results)
}

/// The same; `target` is where the object is, if nothing is to be found out first.
#[inline]
fn remote_at<T, E: OperationError>(
    object: &ObjectRef,
    target: Option<&RemoteTarget>,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E> {
    let _probe = probe::enter(Stage::Call);
    let mut told = Told::default();
    if let Err(e) = twoway(object, target, operation, arguments, &mut told) {
        return Err(about(object, operation, e).into());
    }
    // With a reader of its own, so that one for results need not be in memory where nothing is read.
    if let Some(answer) = told.answer.take_if(|answer| answer.user_exception) {
        return user_exception(object, answer);
    }
    let mut r = match &told.answer {
        None => told.short.results(),
        Some(answer) => answer.message.reader_at(answer.body_at),
    };
    r.set_environment(&**object.core());
    let probe = probe::enter(Stage::Demarshal);
    let result = results(&mut r).map_err(|e| bad_reply(e).into());
    drop(probe);
    r.finish();
    if let Some(answer) = told.answer {
        recycle(answer);
    }
    result
}

#[cold]
fn user_exception<T, E: OperationError>(object: &ObjectRef, answer: Answer) -> Result<T, E> {
    let probe = probe::enter(Stage::Demarshal);
    let mut r = answer.message.reader_at(answer.body_at).with_environment(&**object.core());
    let result = read_user_exception(&mut r);
    drop((r, probe));
    recycle(answer);
    result
}

/// What the object has said: what is short, unless there is an answer.
#[derive(Default)]
struct Told {
    short: ShortReply,
    answer: Option<Answer>,
}

#[inline(never)]
fn recycle(answer: Answer) {
    if let Some(link) = answer.link {
        link.recycle(answer.message);
    }
}

/// The course of every call whose arguments are written, compiled once and beside what it calls: straight, or with a
/// [`Course`] where that does not do.
#[inline(never)]
fn twoway(
    object: &ObjectRef,
    target: Option<&RemoteTarget>,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    told: &mut Told,
) -> Result<(), SystemException> {
    let straight = target.and_then(|target| Some((target, straight(object, target)?)));
    let Some((target, (link, time))) = straight else {
        told.answer = Some(Course::twoway(object, operation, arguments)?);
        return Ok(());
    };
    let heard = link.call_straight(&target.request, operation.wire_name(), arguments, time, &mut told.short);
    match heard {
        Heard::Short => Ok(()),
        other => follow(object, operation, arguments, time, link, other, told),
    }
}

/// The rest of a call that was not answered shortly.
#[inline(never)]
fn follow(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    time: CallTime,
    link: Arc<Link>,
    heard: Heard,
    told: &mut Told,
) -> Result<(), SystemException> {
    told.answer = match heard {
        Heard::Short => None,
        Heard::Long(message) => {
            Some(Answer { message, link: Some(link), body_at: PLAIN_RESULTS_AT, user_exception: false })
        }
        Heard::Other(heard) => Some(Course::resume(object, operation, arguments, time, link, heard)?),
    };
    Ok(())
}

/// The way of nearly every call, if there is nothing to find out, to make or to tell anybody first.
#[inline(always)] // a step of every call
fn straight(object: &ObjectRef, target: &RemoteTarget) -> Option<(Arc<Link>, CallTime)> {
    let orb = object.core();
    if !orb.interceptors.client.is_empty() {
        return None;
    }
    let timeout = call_timeout(object.timeout(), || orb.call_timeout());
    let time = CallTime { begun: Coarse::now(), timeout };
    let link = target.links.open_link(thread_ordinal(), time.begun)?;
    Some((link, time))
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
    let target = object.routes().straight();
    let straight = target.and_then(|target| Some((target, straight(object, target)?)));
    let Some((target, (link, time))) = straight else {
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
    r: &mut Reader<'_>,
    user_exception: bool,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E> {
    let _probe = probe::enter(Stage::Demarshal);
    if user_exception { read_user_exception(r) } else { results(r).map_err(|e| bad_reply(e).into()) }
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
