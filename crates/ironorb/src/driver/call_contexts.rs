//! The service contexts that an ORB adds to a request of its own: one place decides which.

use ironorb_giop::service_context::ServiceContextList;

use crate::interceptor::Attempt;
use crate::object::ObjectRef;
use crate::object::deadline::Timeout;
use crate::object::request_contexts::{ContextBuffer, OutgoingCall};

/// Writes the service contexts of a request that is about to be sent, for a call that may take `left` from now on. Runs
/// application code. Takes nothing from the heap in the steady state.
#[inline(always)] // a step of every call with contexts
pub(crate) fn write_contexts(
    to: &mut ContextBuffer,
    object: &ObjectRef,
    operation: &str,
    response_expected: bool,
    left: Timeout,
) {
    let call = OutgoingCall { target: object, operation, response_expected, left };
    object.shared().client_contexts.write(&call, to);
}

/// The contexts of a request on the general path: those of its interceptors, and then those for the call. Runs
/// application code.
#[cold]
pub(crate) fn contexts_of(
    object: &ObjectRef,
    operation: &str,
    response_expected: bool,
    left: Timeout,
    attempt: Option<&Attempt>,
) -> ServiceContextList {
    let mut list = attempt.map(Attempt::contexts).unwrap_or_default();
    if !object.shared().client_contexts.is_empty() {
        let mut contexts = ContextBuffer::new();
        write_contexts(&mut contexts, object, operation, response_expected, left);
        list.append(contexts.encoded());
    }
    list
}

/// The contexts for a call whose request is written later, perhaps by another thread and with a lock held. `None` if
/// there are none.
pub(crate) type KeptContexts = Option<Box<ServiceContextList>>;

/// Has the program write the contexts for a call that begins. Runs application code.
#[inline]
pub(crate) fn kept_contexts(
    object: &ObjectRef,
    operation: &str,
    response_expected: bool,
    left: Timeout,
) -> KeptContexts {
    if object.shared().client_contexts.is_empty() {
        return None;
    }
    Some(Box::new(contexts_of(object, operation, response_expected, left, None)))
}

/// The contexts of a request that is written now: those of its interceptors, and then those that were kept.
#[inline]
pub(crate) fn with_kept(attempt: Option<&Attempt>, kept: &KeptContexts) -> ServiceContextList {
    let mut list = attempt.map(Attempt::contexts).unwrap_or_default();
    if let Some(kept) = kept {
        list.append(kept.encoded());
    }
    list
}
