//! Typed calls, driven by the calling thread.
//!
//! The part that depends on the operation's types ([`invoke`], [`invoke_oneway`]) is a few lines around a
//! concrete core that is compiled once.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::framer::{ShortReply, ShortReplyKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::{EncodedContexts, PaddedContexts, RequestContexts};
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use crate::base::lease::Binding;
use crate::base::probe::{self, Stage};
use crate::base::spawner;
use crate::call::invocation::bad_reply;
use crate::driver::batching;
use crate::driver::blocking::{self, Answer};
use crate::driver::call_contexts::{write_contexts, write_own_contexts};
use crate::driver::call_policies::some_call_timeout;
use crate::driver::client::{FastOutcome, Link};
use crate::driver::clock;
use crate::driver::counting;
use crate::driver::loopback;
use crate::object::deadline::{CallTime, thread_makes_no_calls};
use crate::object::lease::{Lease, LeasedServant};
use crate::object::messaging::SyncScope;
use crate::object::operation::{Operation, OperationError, RefTo};
use crate::object::orb_shared::{CallExtras, of_the_parent};
use crate::object::priority::current_priority;
use crate::object::request_contexts::ContextBuffer;
use crate::object::route::{Reference, Target};
use crate::object::server_profile::PriorityUse;
use crate::object::{ObjectRef, TypedRef};
use crate::poa::Upcall;
use crate::poa::servant::{LocalSlot, servant_panicked};

pub(crate) type Arguments<'a> = &'a dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>;

/// Calls a twoway operation and waits for its results. Blocks until the deadline at most.
///
/// Runs `local` when the object is in this process. Otherwise `arguments` writes the request's body, perhaps
/// more than once, and `results` reads the reply's body.
#[inline(always)] // a step of every call
pub(crate) fn invoke<I, R, T, E>(
    target: &R,
    operation: &'static Operation<'static>,
    local: impl FnOnce(&I) -> Result<T, E>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E>
where
    I: ?Sized + 'static,
    R: RefTo<I>,
    E: OperationError,
{
    let Some(lease) = target.lease_cell().first() else {
        return without_lease(target, operation, local, arguments, results);
    };
    let Some((servant, in_progress)) = lease.enter() else {
        return in_this_process(target, operation, local, arguments, results);
    };
    let mut raised = ManuallyDrop::new(None);
    let value = call_servant(R::widen(servant), local, &mut raised);
    drop(in_progress);
    match value {
        Some(value) => Ok(value),
        None => Err(failed(target.object(), operation, &mut raised)),
    }
}

/// Out of line, because a call through a lease needs next to nothing of the code for other calls.
#[inline(never)]
fn without_lease<I, R, T, E>(
    target: &R,
    operation: &'static Operation<'static>,
    local: impl FnOnce(&I) -> Result<T, E>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E>
where
    I: ?Sized + 'static,
    R: RefTo<I>,
    E: OperationError,
{
    let object = target.object();
    match object.settled() {
        Some(to) => remote_at(object, Some(to), operation, &arguments, results),
        None => in_this_process(target, operation, local, arguments, results),
    }
}

#[inline(never)]
fn in_this_process<I, R, T, E>(
    target: &R,
    operation: &'static Operation<'static>,
    local: impl FnOnce(&I) -> Result<T, E>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E>
where
    I: ?Sized + 'static,
    R: RefTo<I>,
    E: OperationError,
{
    let object = target.object();
    if let Some((_in_progress, servant)) = target.lease_cell().enter_any() {
        return call_out_of_line(object, operation, R::widen(&servant), local);
    }
    match object.local(operation) {
        Ok(None) => remote(object, operation, &arguments, results),
        Ok(Some(upcall)) => match direct(&upcall) {
            Some(servant) => call_local(target, operation, upcall, &*servant, local),
            None => loopback::with_begun(upcall, || remote(object, operation, &arguments, results)),
        },
        Err(e) => Err(about(object, operation, e).into()),
    }
}

/// Calls a oneway operation. Blocks only while the connection takes no bytes or is being made.
#[inline]
pub(crate) fn invoke_oneway<I, R>(
    target: &R,
    operation: &'static Operation<'static>,
    local: impl FnOnce(&I) -> Result<(), SystemException>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<(), SystemException>
where
    I: ?Sized + 'static,
    R: RefTo<I>,
{
    let object = target.object();
    // As over the wire, the caller of a oneway learns nothing of what the servant raises.
    let unheard = |_: Result<(), SystemException>| Ok(());
    let lease = target.lease_cell().first();
    if let Some((servant, _in_progress)) = lease.and_then(Lease::enter) {
        let mut raised = ManuallyDrop::new(None);
        let _value = call_servant(R::widen(servant), local, &mut raised);
        drop(ManuallyDrop::into_inner(raised));
        return Ok(());
    }
    if let Some((_in_progress, servant)) = target.lease_cell().enter_any() {
        return unheard(call_out_of_line(object, operation, R::widen(&servant), local));
    }
    let by_message = || oneway(object, operation, &arguments).map_err(|e| about(object, operation, e));
    match object.local(operation) {
        Ok(None) => by_message(),
        Ok(Some(upcall)) => match direct(&upcall) {
            Some(servant) => unheard(call_local(target, operation, upcall, &*servant, local)),
            None => loopback::with_begun(upcall, by_message),
        },
        Err(e) => Err(about(object, operation, e)),
    }
}

/// Returns the servant as the caller's interface, if it can be called directly. A servant that replies later,
/// is dynamic, or lacks the interface gets the call as a message.
#[inline]
pub(crate) fn direct<I: ?Sized + 'static>(upcall: &Upcall) -> Option<Arc<I>> {
    let mut found: Option<Arc<I>> = None;
    upcall.servant().provide(&mut LocalSlot::new(&mut found));
    found
}

/// Calls a servant without a lease, and may keep a lease for the calls that follow.
pub(crate) fn call_local<I, R, T, E>(
    target: &R,
    operation: &Operation<'_>,
    upcall: Upcall,
    servant: &I,
    local: impl FnOnce(&I) -> Result<T, E>,
) -> Result<T, E>
where
    I: ?Sized,
    R: RefTo<I>,
    E: OperationError,
{
    keep_lease(target, &upcall);
    let _priority = match upcall.at_declared_priority() {
        Ok(priority) => priority,
        Err(e) => return Err(about(target.object(), operation, e).into()),
    };
    let _current = upcall.enter();
    call_out_of_line(target.object(), operation, servant, local)
}

/// Keeps a lease in the reference for later calls, if later calls are likely. A reference that has been
/// forwarded gets none.
#[cold]
fn keep_lease<R: TypedRef>(target: &R, upcall: &Upcall) {
    let (object, place) = (target.object(), target.lease_cell());
    let is_wanted = object.is_repeated_call();
    if !is_wanted && place.first().is_none() {
        return;
    }
    // A servant whose priority the server has declared runs at it in each call.
    if upcall.priority_model().is_some() {
        return;
    }
    // Calls of threads with real-time priorities are counted.
    if spawner::is_real_time() {
        return;
    }
    let Some(epoch) = upcall.binding_epoch().begin() else { return };
    if object.routes().is_replaced() {
        return;
    }
    let Some(binding) = upcall.bind() else { return };
    if !place.renew(epoch, binding.token()) {
        if !is_wanted {
            return;
        }
        let Some(servant) = direct::<R::Interface>(upcall) else { return };
        let servant = match upcall.servant().is_dropped_in_time() {
            true => LeasedServant::Weak(Arc::downgrade(&servant)),
            false => LeasedServant::Owned(servant),
        };
        place.put(upcall.binding_epoch().lease_of(epoch, binding), servant, object);
    }
    // sync: leased-or-forwarded. Either this thread sees a forward, or the one that follows it revokes the lease.
    if object.routes().is_replaced() {
        object.routes().revoke_leases();
    }
}

/// What a servant has raised, apart from its result. One value for both would be moved whole, and a move that
/// reads at once what was just written in parts takes longer than the rest of a collocated call. Not dropped
/// after a result: then it is empty.
type Raised<E> = ManuallyDrop<Option<E>>;

/// Calls a servant. `None` when the servant has raised something or panicked.
#[inline(always)] // a step of every call
fn call_servant<I: ?Sized, T, E>(
    servant: &I,
    local: impl FnOnce(&I) -> Result<T, E>,
    raised: &mut Raised<E>,
) -> Option<T> {
    let _probe = probe::enter(Stage::Upcall);
    let call = || match local(servant) {
        Ok(value) => Some(value),
        Err(e) => {
            *raised = ManuallyDrop::new(Some(e));
            None
        }
    };
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_default()
}

/// Calls a servant, out of line.
#[inline(never)]
fn call_out_of_line<I, T, E>(
    object: &ObjectRef,
    operation: &Operation<'_>,
    servant: &I,
    local: impl FnOnce(&I) -> Result<T, E>,
) -> Result<T, E>
where
    I: ?Sized,
    E: OperationError,
{
    let mut raised = ManuallyDrop::new(None);
    let value = call_servant(servant, local, &mut raised);
    value.ok_or_else(|| failed(object, operation, &mut raised))
}

/// Returns the error of a call without a value. An empty `raised` means that the servant has panicked.
#[cold]
#[inline(never)]
fn failed<E: OperationError>(object: &ObjectRef, operation: &Operation<'_>, raised: &mut Raised<E>) -> E {
    raised.take().unwrap_or_else(|| about(object, operation, servant_panicked()).into())
}

/// Calls a twoway operation of an object in another process.
#[inline(never)]
pub(crate) fn remote<T, E: OperationError>(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E> {
    remote_at(object, object.settled(), operation, arguments, results)
}

/// Calls a twoway operation of an object in another process. `to` is the reference whose
/// address is taken when that is known.
#[inline(always)] // a step of every call
fn remote_at<T, E: OperationError>(
    object: &ObjectRef,
    to: Option<&Reference>,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E> {
    let _probe = probe::enter(Stage::Call);
    let mut slot = ReplySlot::default();
    if let Err(e) = twoway(object, to, operation, arguments, &mut slot) {
        return Err(about(object, operation, e).into());
    }
    // The reader of a user exception is made elsewhere, so that the one for results need not be in memory
    // where nothing is read.
    if let Some(answer) = slot.answer.take_if(|answer| answer.user_exception) {
        return user_exception(object, answer);
    }
    let mut r = match &slot.answer {
        None => slot.short.results().with_environment(object.environment()),
        Some(answer) => answer.reader(object),
    };
    let probe = probe::enter(Stage::Demarshal);
    let result = results(&mut r).map_err(|e| bad_reply(e).into());
    drop(probe);
    r.finish();
    if let Some(answer) = slot.answer {
        recycle(answer);
    }
    result
}

#[cold]
fn user_exception<T, E: OperationError>(object: &ObjectRef, answer: Answer) -> Result<T, E> {
    let probe = probe::enter(Stage::Demarshal);
    let mut r = answer.reader(object);
    let result = read_user_exception(&mut r);
    drop((r, probe));
    recycle(answer);
    result
}

/// The reply of a call: short results in `short`, unless `answer` has a message.
#[derive(Default)]
struct ReplySlot {
    short: ShortReply,
    answer: Option<Answer>,
}

#[inline(never)]
fn recycle(answer: Answer) {
    if let Some(link) = answer.link {
        link.recycle(answer.message);
    }
}

/// Sends every twoway request. Plain ones and those with service contexts part here, before any work is done.
#[inline(always)] // a step of every call
fn twoway(
    object: &ObjectRef,
    to: Option<&Reference>,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    slot: &mut ReplySlot,
) -> Result<(), SystemException> {
    match object.shared().call_extras() {
        CallExtras::None => plain_twoway(object, to, operation, arguments, slot),
        CallExtras::OwnContexts => match to.map_or(PriorityUse::Any, |to| to.priority_use(object)) {
            // The server has declared the priority, and the reference leads to its lane.
            PriorityUse::None => plain_twoway(object, to, operation, arguments, slot),
            PriorityUse::Told => twoway_with_priority(object, to, operation, arguments, slot),
            PriorityUse::Any => twoway_with_own_contexts(object, to, operation, arguments, slot),
        },
        CallExtras::Caching => twoway_with_own_contexts(object, to, operation, arguments, slot),
        CallExtras::Contexts => twoway_with_contexts(object, to, operation, arguments, slot),
        CallExtras::Observed => twoway_observed(object, to, operation, arguments, slot),
        CallExtras::OfParent => Err(of_the_parent()),
    }
}

/// Sends a twoway request that has nothing beside its arguments. Compiled once and beside what it calls: on the fast path,
/// or by the general one where that is not possible.
#[inline(never)]
fn plain_twoway(
    object: &ObjectRef,
    to: Option<&Reference>,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    slot: &mut ReplySlot,
) -> Result<(), SystemException> {
    let Some((target, link, time)) = to.and_then(|to| fast_path(object, to)) else {
        slot.answer = Some(blocking::twoway(object, operation, arguments)?);
        return Ok(());
    };
    let contexts = (RequestContexts::None, ShortReplyKind::Plain);
    call_at(object, (target, link, time), contexts, operation, arguments, slot)
}

/// Sends a twoway request with these contexts over a connection, and waits for a reply, as a rule a short one of this kind.
#[inline(always)] // a step of every call
fn call_at(
    object: &ObjectRef,
    (target, link, time): (Target<'_>, Arc<Link>, CallTime),
    (contexts, kind): (RequestContexts<'_>, ShortReplyKind),
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    slot: &mut ReplySlot,
) -> Result<(), SystemException> {
    let (name, short) = (operation.wire_name(), (kind, &mut slot.short));
    match link.fast_path_call(target.request, contexts, name, arguments, time, short) {
        FastOutcome::Short => Ok(()),
        other => follow(object, operation, arguments, time, link, other, slot),
    }
}

/// Sends a twoway request that tells the priority of the thread and nothing else: on the fast path, or by the general one
/// where that is not possible.
#[inline(never)]
fn twoway_with_priority(
    object: &ObjectRef,
    to: Option<&Reference>,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    slot: &mut ReplySlot,
) -> Result<(), SystemException> {
    let thread = current_priority();
    let found = to
        .zip(thread)
        .and_then(|(to, priority)| Some((priority, fast_path_at(object, to.target_of_priority(priority)?)?)));
    let Some((priority, (target, link, time))) = found else {
        return twoway_with_own_contexts(object, to, operation, arguments, slot);
    };
    let contexts = (RequestContexts::Priority(priority.number()), ShortReplyKind::WithPriority);
    call_at(object, (target, link, time), contexts, operation, arguments, slot)
}

/// Sends a twoway request with service contexts of the ORB itself: on the fast path, or by the general one where that is
/// not possible.
#[inline(never)]
fn twoway_with_own_contexts(
    object: &ObjectRef,
    to: Option<&Reference>,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    slot: &mut ReplySlot,
) -> Result<(), SystemException> {
    let thread = current_priority();
    let found = to.and_then(|to| Some((to, fast_path_at(object, to.target_for(object, thread)?)?)));
    let Some((to, (target, link, time))) = found else {
        slot.answer = Some(blocking::twoway(object, operation, arguments)?);
        return Ok(());
    };
    let mut contexts = PaddedContexts::new();
    let kind = write_own_contexts(&mut contexts, object, (to, &link), thread, time.timeout);
    let encoded = contexts.encoded();
    let contexts = RequestContexts::Encoded(&encoded);
    call_at(object, (target, link, time), (contexts, kind), operation, arguments, slot)
}

/// Sends a twoway request that interceptors see, or whose call is measured.
#[inline(never)]
fn twoway_observed(
    object: &ObjectRef,
    to: Option<&Reference>,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    slot: &mut ReplySlot,
) -> Result<(), SystemException> {
    let _latency = object.shared().observes_calls.then(|| counting::Latency::of_call(object));
    if !object.shared().has_client_interceptors {
        return twoway_with_contexts(object, to, operation, arguments, slot);
    }
    slot.answer = Some(blocking::twoway(object, operation, arguments)?);
    Ok(())
}

/// Sends a twoway request that has service contexts: on the fast path, or by the general one where that is not possible.
#[inline(never)]
fn twoway_with_contexts(
    object: &ObjectRef,
    to: Option<&Reference>,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    slot: &mut ReplySlot,
) -> Result<(), SystemException> {
    let Some((target, link, time)) = to.and_then(|to| fast_path_for_priority(object, to)) else {
        slot.answer = Some(blocking::twoway(object, operation, arguments)?);
        return Ok(());
    };
    let mut contexts = ContextBuffer::new();
    write_contexts(&mut contexts, object, operation.name_in_place(), &link, true, time.timeout);
    let encoded = contexts.encoded();
    let contexts = (RequestContexts::Encoded(&encoded), ShortReplyKind::Plain);
    call_at(object, (target, link, time), contexts, operation, arguments, slot)
}

/// Finishes a call that has no short answer.
#[inline(never)]
fn follow(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    time: CallTime,
    link: Arc<Link>,
    outcome: FastOutcome,
    slot: &mut ReplySlot,
) -> Result<(), SystemException> {
    slot.answer = match outcome {
        FastOutcome::Short => None,
        FastOutcome::Long(message, at) => Some(Answer::results(object, message, at, link)),
        FastOutcome::Other(outcome) => {
            Some(blocking::resume(object, operation, arguments, time, link, outcome)?)
        }
    };
    Ok(())
}

/// The address, the connection and the time for the fast path of a call that no interceptor sees; `None` when anything
/// must be found out or connected.
#[inline(always)] // a step of every call
fn fast_path<'r>(object: &ObjectRef, to: &'r Reference) -> Option<(Target<'r>, Arc<Link>, CallTime)> {
    fast_path_at(object, to.first_target()?)
}

/// What [`fast_path`] finds, at the address for the priority of the calling thread, if there is one.
#[inline(always)] // a step of every call with contexts
fn fast_path_for_priority<'r>(
    object: &ObjectRef,
    to: &'r Reference,
) -> Option<(Target<'r>, Arc<Link>, CallTime)> {
    fast_path_at(object, to.target_now(object)?)
}

#[inline(always)] // a step of every call
fn fast_path_at<'r>(object: &ObjectRef, target: Target<'r>) -> Option<(Target<'r>, Arc<Link>, CallTime)> {
    let time = CallTime { begun: clock::coarse(), timeout: some_call_timeout(object)? };
    let link = target.server.open_link(time.begun)?;
    Some((target, link, time))
}

/// Sends every oneway request: in a batch, on the fast path, or by the general one.
fn oneway(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
) -> Result<(), SystemException> {
    let _probe = probe::enter(Stage::Call);
    if let Some(batching) = object.oneway_batching() {
        return match batching::add(object, operation, arguments, &batching) {
            Some(added) => added,
            None => blocking::oneway(object, operation, arguments),
        };
    }
    if object.sync_scope() != SyncScope::WithTransport {
        return blocking::oneway(object, operation, arguments);
    }
    if object.shared().call_extras() != CallExtras::None {
        return oneway_with_contexts(object, operation, arguments);
    }
    let Some((target, link, time)) = object.settled().and_then(|to| fast_path(object, to)) else {
        return blocking::oneway(object, operation, arguments);
    };
    link.fast_path_oneway(target.request, &EncodedContexts::EMPTY, operation.wire_name(), arguments, time)
        .or_else(|failure| blocking::resume_oneway(object, operation, arguments, time, failure))
}

/// Sends a oneway request that has service contexts: on the fast path, or by the general one where that is not possible.
#[inline(never)]
fn oneway_with_contexts(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
) -> Result<(), SystemException> {
    object.shared().in_its_own_process()?;
    let to = object.settled().filter(|_| !object.shared().has_client_interceptors);
    let Some((target, link, time)) = to.and_then(|to| fast_path_for_priority(object, to)) else {
        return blocking::oneway(object, operation, arguments);
    };
    let mut contexts = ContextBuffer::new();
    write_contexts(&mut contexts, object, operation.name_in_place(), &link, false, time.timeout);
    link.fast_path_oneway(target.request, &contexts.encoded(), operation.wire_name(), arguments, time)
        .or_else(|failure| blocking::resume_oneway(object, operation, arguments, time, failure))
}

/// Calls a twoway operation of an object in any process. An object of this process is called by a message.
pub(crate) fn by_message<T>(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, SystemException> {
    // Follows a forward by the adapter first, and returns the adapter's exception.
    object.local(operation).map_err(|e| about(object, operation, e))?;
    remote(object, operation, arguments, results)
}

/// Reads the results that the caller asked for, or the user exception.
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

/// Adds the object and the operation to the detail of an exception.
#[cold]
pub(crate) fn about(object: &ObjectRef, operation: &Operation<'_>, e: SystemException) -> SystemException {
    about_named(object, operation.name(), e)
}

#[cold]
pub(crate) fn about_named(object: &ObjectRef, operation: &str, e: SystemException) -> SystemException {
    let e = or_call_in_update(e);
    let of = match object.type_id() {
        "" => "an untyped object",
        id => id,
    };
    // The detail often names the address at fault, which need not be the first of the reference.
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

/// Why a call has failed that ended because this thread changes a cell: it has had no time.
#[cold]
pub(crate) fn or_call_in_update(e: SystemException) -> SystemException {
    if !thread_makes_no_calls() {
        return e;
    }
    let kind = SystemExceptionKind::BadInvOrder;
    SystemException::new(kind, MinorCode::CALL_IN_UPDATE, CompletionStatus::No)
        .with_detail("a change of a cell holds its lock: make the call before or after it")
}

/// Asks where an object is. `false` when it does not exist.
pub(crate) fn locate(object: &ObjectRef) -> Result<bool, SystemException> {
    blocking::locate(object, false)
}

/// Binds an object, also where the policies forbid calls to rebind. `false` when it does not exist.
pub(crate) fn bind(object: &ObjectRef) -> Result<bool, SystemException> {
    if object.has_band() && blocking::bind_band(object, &BIND_PRIORITY_BAND)? {
        return Ok(true);
    }
    blocking::locate(object, true)
}

/// What binds a connection to a band, which the service context of its first request tells.
static BIND_PRIORITY_BAND: Operation<'static> = Operation::twoway("_bind_priority_band");

pub(crate) const NO_ARGUMENTS: Arguments<'static> = &|_| Ok(());

pub(crate) static LOCATE: Operation<'static> = Operation::twoway("LocateRequest");
