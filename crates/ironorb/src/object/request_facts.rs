//! What a request says besides its target and its arguments.

use ironorb_giop::message::{HeaderTemplate, Message, Request};
use ironorb_giop::real_time::{PriorityBand, band_of_context, priority_of_context};
use ironorb_giop::service_context::{
    BI_DIR_IIOP, CODE_SETS, ContextsInPlace, RT_CORBA_PRIORITY, RT_CORBA_PRIORITY_RANGE,
    SECURITY_ATTRIBUTE_SERVICE, ServiceContexts,
};

use crate::object::deadline_context::DeadlineStamp;
use crate::object::scheduling_context::{DistributableThreadId, SchedulingParameter, ThreadMessage};
use crate::object::wire_numbers::{
    CACHE_CONTEXT, DEADLINE_CONTEXT, FORWARD_CONTEXT, SCHEDULING_CONTEXT, TRACE_CONTEXT,
};

/// What a request says besides its target and its arguments, in service contexts: each way to a servant reads it here.
///
/// It borrows from the message, and reads there only what is asked for. A context of a kind that occurs twice counts as
/// often as the first.
#[derive(Debug, Clone)]
pub struct RequestFacts<'m> {
    operation: &'m [u8],
    contexts: Contexts<'m>,
}

/// Contexts that are known to be complete.
#[derive(Debug, Clone)]
enum Contexts<'m> {
    InPlace(ContextsInPlace<'m>),
    Parsed(ServiceContexts<'m>),
}

impl<'m> RequestFacts<'m> {
    /// The facts of a request that has been parsed.
    pub(crate) fn of(request: &Request<'m>) -> RequestFacts<'m> {
        RequestFacts { operation: request.operation, contexts: Contexts::Parsed(request.contexts.clone()) }
    }

    /// The facts of a request that has been recognised by its header, and whose contexts have been passed over.
    #[inline]
    pub(crate) fn of_known(head: &'m HeaderTemplate, message: &'m Message) -> RequestFacts<'m> {
        let contexts = Contexts::InPlace(head.contexts_of(message));
        RequestFacts { operation: head.operation(), contexts }
    }

    /// Whether a context of this kind concerns the whole connection.
    #[inline(always)] // a step of every call with contexts
    pub(crate) fn concern_connection(id: u32) -> bool {
        matches!(id, CODE_SETS | BI_DIR_IIOP | RT_CORBA_PRIORITY_RANGE)
    }

    /// Whether a request with a context of this kind must be parsed: it concerns the whole connection, or the reply.
    #[inline(always)] // a step of every call with contexts
    pub(crate) fn want_parsing(id: u32) -> bool {
        RequestFacts::concern_connection(id) || matches!(id, CACHE_CONTEXT | FORWARD_CONTEXT)
    }

    /// The data of the first context of a kind.
    #[inline]
    pub fn context(&self, id: u32) -> Option<&'m [u8]> {
        match &self.contexts {
            Contexts::InPlace(contexts) => contexts.find(id),
            Contexts::Parsed(contexts) => contexts.find(id).map(|context| context.data),
        }
    }

    /// The operation's name as on the wire.
    pub fn operation(&self) -> &'m [u8] {
        self.operation
    }

    /// The CORBA priority that the client gives the request (RTCORBA 1.2, 5.4). `None` without one, or if its
    /// context cannot be read.
    pub fn priority(&self) -> Option<i16> {
        priority_of_context(self.context(RT_CORBA_PRIORITY)?)
    }

    /// The band of priorities that the client binds the connection to (RTCORBA 1.2, 5.12). `None` without one, or if its
    /// context cannot be read.
    pub(crate) fn band(&self) -> Option<PriorityBand> {
        band_of_context(self.context(RT_CORBA_PRIORITY_RANGE)?)
    }

    /// The data of the trace context (`docs/wire.md`).
    pub fn trace(&self) -> Option<&'m [u8]> {
        self.context(TRACE_CONTEXT)
    }

    /// The distributable thread that the request carries on, and how urgent it is (`docs/wire.md`). Its deadline counts from
    /// the moment at which the client sent the request. `None` without one, or if its context cannot be read.
    pub fn distributable_thread(&self) -> Option<(DistributableThreadId, SchedulingParameter)> {
        ThreadMessage::decode_urgency(self.context(SCHEDULING_CONTEXT)?)
    }

    /// What a client that caches asks of the server's log (`docs/wire.md`): its end at least.
    pub(crate) fn question_to_log(&self) -> Option<&'m [u8]> {
        self.context(CACHE_CONTEXT)
    }

    /// The data of the SecurityAttributeService context (CORBA 3.3 part 2, 10.2), which names the caller.
    pub fn principal(&self) -> Option<&'m [u8]> {
        self.context(SECURITY_ATTRIBUTE_SERVICE)
    }

    /// The data of the CodeSets context: the client announces the code sets of its connection.
    pub(crate) fn code_sets(&self) -> Option<&'m [u8]> {
        self.context(CODE_SETS)
    }

    /// How long the caller waits. `None` if it does not tell, or if its context cannot be read.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<DeadlineStamp> {
        DeadlineStamp::decode(self.context(DEADLINE_CONTEXT)?)
    }

    /// The data of the BI_DIR_IIOP context: the client announces where it listens.
    pub(crate) fn listen_points(&self) -> Option<&'m [u8]> {
        self.context(BI_DIR_IIOP)
    }
}

#[cfg(test)]
mod tests {
    use ironorb_giop::service_context::{ServiceContext, ServiceContextList};

    use super::*;

    fn facts_of(contexts: &[(u32, &[u8])], check: impl FnOnce(RequestFacts<'_>)) {
        let mut list = ServiceContextList::default();
        for &(id, data) in contexts {
            list.push(ServiceContext { id, data }).unwrap();
        }
        let contexts = Contexts::Parsed(list.encoded().iter());
        check(RequestFacts { operation: b"ping", contexts });
    }

    #[test]
    fn facts_are_the_first_contexts_of_their_kinds() {
        let contexts: [(u32, &[u8]); 5] = [
            (99, &[9]),
            (RT_CORBA_PRIORITY, &[0, 0, 0x12, 0x34]),
            (RT_CORBA_PRIORITY, &[0, 0, 0, 0]),
            (TRACE_CONTEXT, b"trace"),
            (SECURITY_ATTRIBUTE_SERVICE, b"caller"),
        ];
        facts_of(&contexts, |facts| {
            assert_eq!((facts.operation(), facts.priority()), (&b"ping"[..], Some(0x1234)));
            assert_eq!((facts.trace(), facts.principal()), (Some(&b"trace"[..]), Some(&b"caller"[..])));
            assert_eq!((facts.code_sets(), facts.listen_points()), (None, None));
            assert_eq!((facts.context(99), facts.context(98)), (Some(&[9][..]), None));
        });
        for cut in [&[][..], &[0], &[0, 0, 1], &[2, 0, 0, 1]] {
            facts_of(&[(RT_CORBA_PRIORITY, cut)], |facts| assert_eq!(facts.priority(), None));
        }
    }
}
