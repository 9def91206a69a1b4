//! The service contexts that an ORB adds to a request of its own: one place decides which.

use ironorb_giop::framer::ShortReplyKind;
use ironorb_giop::real_time::{
    PRIORITY_ELEMENT_BYTES, PriorityBand, PriorityModel, PriorityModelPolicy, encoded_priority_context,
    priority_context, priority_range_context,
};
use ironorb_giop::service_context::{
    PaddedContexts, RT_CORBA_PRIORITY, RT_CORBA_PRIORITY_RANGE, ServiceContext, ServiceContextList,
};

use crate::base::time::Time;
use crate::cache::wire::{CARRIED_PROBE_BYTES, LogQuestion, QUESTION_BYTES, encoded_question};
use crate::driver::cache::carried::question_over;
use crate::driver::client::Link;
use crate::driver::clock;
use crate::interceptor::Attempt;
use crate::object::ObjectRef;
use crate::object::deadline::Timeout;
use crate::object::deadline_context::{DeadlineClock, DeadlineStamp, STAMP_CONTEXT_BYTES};
use crate::object::orb_shared::CallExtras;
use crate::object::priority::{Priority, RealTimeConfig, current_priority, priority_of_thread};
use crate::object::request_contexts::{ContextBuffer, OutgoingCall};
use crate::object::route::Reference;
use crate::object::wire_numbers::{CACHE_CONTEXT, DEADLINE_CONTEXT};

/// Writes the service contexts of a request that this thread is about to send over `link`, for a call that may take `left` from now
/// on: those of the program, what a cache asks, and how long the caller waits. Runs application code. Takes nothing from the heap in the steady
/// state.
#[inline(always)] // a step of every call with contexts
pub(crate) fn write_contexts(
    to: &mut ContextBuffer,
    object: &ObjectRef,
    operation: &&str,
    link: &Link,
    response_expected: bool,
    left: Timeout,
) {
    let call = OutgoingCall { target: object, operation, response_expected, left };
    let orb = object.shared();
    write_contexts_of_caller(to, &call);
    if orb.caches() && response_expected {
        write_question(to, &question_over(object, link));
    }
    if let Some(clock) = &orb.deadline_clock {
        write_deadline(to, clock, left, clock::steady());
    }
}

/// Writes the service contexts of the ORB itself for a request that this thread is about to send to an object at `to` over `link`,
/// for a call that may take `left` from now on. `thread` is the thread's priority. Returns the kind of a short reply. Runs no
/// application code, but for a transform of priorities. Takes nothing from the heap.
#[inline(always)] // a step of every call with a priority
pub(crate) fn write_own_contexts(
    contexts: &mut PaddedContexts,
    object: &ObjectRef,
    (to, link): (&Reference, &Link),
    thread: Option<Priority>,
    left: Timeout,
) -> ShortReplyKind {
    let orb = object.shared();
    let mut answer = ShortReplyKind::Plain;
    if let Some(model) = to.server().priority_model()
        && let Some(real_time) = &orb.real_time
        && let Some(priority) = priority_of_call(model, thread, object, real_time)
    {
        contexts.push(encoded_priority_context(priority.number()));
        answer = ShortReplyKind::WithPriority;
    }
    if let Some(clock) = &orb.deadline_clock
        && let Some(stamp) = DeadlineStamp::of(left, clock::steady(), clock.number())
    {
        contexts.push(stamp.encode_context());
    }
    if orb.caches() {
        match question_over(object, link) {
            LogQuestion::Changes(probe) if contexts.has_room::<CARRIED_PROBE_BYTES>() => {
                contexts.push(probe.encoded())
            }
            _ => contexts.push(encoded_question()),
        }
    }
    answer
}

// There is room for all of them; beside a priority and a deadline, not for a probe.
const _: () = assert!(PRIORITY_ELEMENT_BYTES + STAMP_CONTEXT_BYTES + QUESTION_BYTES <= PaddedContexts::BYTES);

/// Writes what the calling thread alone knows: the contexts of the program, and its priority.
#[inline(always)] // a step of every call with contexts
fn write_contexts_of_caller(to: &mut ContextBuffer, call: &OutgoingCall<'_>) {
    let orb = call.target.shared();
    orb.client_contexts.write(call, to);
    if let Some(real_time) = &orb.real_time {
        write_priority(to, call.target, real_time);
    }
}

/// Writes what a cache asks of the server's log.
#[cold]
fn write_question(to: &mut ContextBuffer, question: &LogQuestion) {
    to.add(CACHE_CONTEXT, |data| {
        if let LogQuestion::Changes(probe) = question {
            data.put(&probe.data());
        }
        true
    });
}

/// Writes the priority of the calling thread.
#[inline]
fn write_priority(to: &mut ContextBuffer, object: &ObjectRef, real_time: &RealTimeConfig) {
    let Some(model) = object.routes().priority_model() else { return };
    if let Some(priority) = priority_of_call(model, current_priority(), object, real_time) {
        to.add(RT_CORBA_PRIORITY, |data| {
            data.put(&priority_context(priority.number()));
            true
        });
    }
}

/// The priority that a request tells: that of the calling thread, `thread`, for an object whose servants run at it (RTCORBA
/// 1.2, 5.7). A thread that has neither set one nor has one of a real-time class of the system gives none: the server
/// takes its own default.
#[inline(always)] // a step of every call with a priority
fn priority_of_call(
    model: PriorityModelPolicy,
    thread: Option<Priority>,
    object: &ObjectRef,
    real_time: &RealTimeConfig,
) -> Option<Priority> {
    if model.model == PriorityModel::ServerDeclared {
        return None;
    }
    match (thread, &real_time.transform) {
        (Some(priority), None) => Some(priority),
        (_, _) => unusual_priority_of_call(object, real_time),
    }
}

#[cold]
fn unusual_priority_of_call(object: &ObjectRef, real_time: &RealTimeConfig) -> Option<Priority> {
    let priority = priority_of_thread(real_time)?;
    match &real_time.transform {
        None => Some(priority),
        Some(transform) => transform.outbound(priority, object),
    }
}

/// Tells the server the band of priorities that a new connection is for (RTCORBA 1.2, 5.12).
#[inline]
pub(crate) fn tell_band(contexts: &mut ServiceContextList, band: Option<PriorityBand>) {
    if let Some(band) = band {
        push_band(contexts, band);
    }
}

#[cold]
fn push_band(contexts: &mut ServiceContextList, band: PriorityBand) {
    let data = &priority_range_context(band);
    // A few octets can always be written.
    let _ = contexts.push(ServiceContext { id: RT_CORBA_PRIORITY_RANGE, data });
}

/// Writes how long the caller waits, if it does not wait without limit.
#[inline]
fn write_deadline(to: &mut ContextBuffer, clock: &DeadlineClock, left: Timeout, now: Time) {
    if let Some(stamp) = DeadlineStamp::of(left, now, clock.number()) {
        to.add(DEADLINE_CONTEXT, |data| {
            data.put(&stamp.encode());
            true
        });
    }
}

/// The contexts of a request on the general path: those of its interceptors, and then those for the call. Runs
/// application code.
#[inline]
pub(crate) fn contexts_of(
    object: &ObjectRef,
    operation: &str,
    link: &Link,
    response_expected: bool,
    left: Timeout,
    attempt: Option<&Attempt>,
) -> ServiceContextList {
    match object.shared().call_extras() {
        CallExtras::None => ServiceContextList::default(),
        CallExtras::OwnContexts
        | CallExtras::Caching
        | CallExtras::Contexts
        | CallExtras::Observed
        | CallExtras::OfParent => some_contexts_of(object, operation, link, response_expected, left, attempt),
    }
}

#[cold]
fn some_contexts_of(
    object: &ObjectRef,
    operation: &str,
    link: &Link,
    response_expected: bool,
    left: Timeout,
    attempt: Option<&Attempt>,
) -> ServiceContextList {
    let mut list = attempt.map(Attempt::contexts).unwrap_or_default();
    let orb = object.shared();
    let has_own = orb.real_time.is_some() || orb.deadline_clock.is_some() || orb.caches();
    if !orb.client_contexts.is_empty() || has_own {
        let mut contexts = ContextBuffer::new();
        write_contexts(&mut contexts, object, &operation, link, response_expected, left);
        list.append(contexts.encoded());
    }
    list
}

/// The contexts for a call whose request is written later, perhaps by another thread and with a lock held. `None` if
/// there are none.
pub(crate) type KeptContexts = Option<Box<ServiceContextList>>;

/// Has the program write the contexts for a call that begins. How long its caller waits is added when the request is
/// written. Runs application code.
#[inline]
pub(crate) fn kept_contexts(
    object: &ObjectRef,
    operation: &str,
    response_expected: bool,
    left: Timeout,
) -> KeptContexts {
    let orb = object.shared();
    if orb.client_contexts.is_empty() && orb.real_time.is_none() {
        return None;
    }
    let (mut contexts, mut list) = (ContextBuffer::new(), ServiceContextList::default());
    let call = OutgoingCall { target: object, operation: &operation, response_expected, left };
    write_contexts_of_caller(&mut contexts, &call);
    list.append(contexts.encoded());
    Some(Box::new(list))
}

/// The contexts of a request that is written now: those of its interceptors, those that were kept, what a cache `asks`, if the ORB
/// has one, and how long the caller waits. `left` says that from now on, and `now` is the moment on the clock that does not stand
/// still.
#[inline]
pub(crate) fn with_kept(
    attempt: Option<&Attempt>,
    kept: &KeptContexts,
    object: &ObjectRef,
    asks: impl FnOnce() -> Option<LogQuestion>,
    left: Timeout,
    now: impl FnOnce() -> Time,
) -> ServiceContextList {
    let mut list = attempt.map(Attempt::contexts).unwrap_or_default();
    if let Some(kept) = kept {
        list.append(kept.encoded());
    }
    if object.shared().caches()
        && let Some(question) = asks()
    {
        let mut contexts = ContextBuffer::new();
        write_question(&mut contexts, &question);
        list.append(contexts.encoded());
    }
    if let Some(clock) = &object.shared().deadline_clock {
        let mut contexts = ContextBuffer::new();
        write_deadline(&mut contexts, clock, left, now());
        list.append(contexts.encoded());
    }
    list
}
