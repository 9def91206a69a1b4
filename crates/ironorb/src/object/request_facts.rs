//! What a request says besides its target and its arguments.

use ironorb_giop::service_context::{
    BI_DIR_IIOP, CODE_SETS, RT_CORBA_PRIORITY, SECURITY_ATTRIBUTE_SERVICE, ServiceContext,
};
use ironorb_giop::{Encoding, Reader};

use crate::object::deadline_context::DeadlineStamp;
use crate::object::wire_numbers::{DEADLINE_CONTEXT, TRACE_CONTEXT};

/// What a request says besides its target and its arguments: the service contexts that concern more than one
/// part of the ORB. What parses the request's header fills it once, and each way to a servant reads it. It borrows from
/// the message what is long.
///
/// A context of a kind that occurs twice counts as often as the first.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts<'m> {
    operation: &'m [u8],
    priority: Option<&'m [u8]>,
    trace: Option<&'m [u8]>,
    principal: Option<&'m [u8]>,
    code_sets: Option<&'m [u8]>,
    listen_points: Option<&'m [u8]>,
    deadline: Option<&'m [u8]>,
}

impl<'m> RequestFacts<'m> {
    /// The facts of a request for this operation, before its contexts have been seen.
    #[inline(always)] // a step of every call with contexts
    pub(crate) fn of_operation(operation: &'m [u8]) -> RequestFacts<'m> {
        let (priority, trace, principal) = (None, None, None);
        let (code_sets, listen_points, deadline) = (None, None, None);
        RequestFacts { operation, priority, trace, principal, code_sets, listen_points, deadline }
    }

    /// The facts of a request for this operation with these contexts.
    pub(crate) fn new(operation: &'m [u8], contexts: impl Iterator<Item = ServiceContext<'m>>) -> Self {
        let mut facts = RequestFacts::of_operation(operation);
        contexts.for_each(|context| facts.see(context));
        facts
    }

    /// Whether a context of this kind concerns every server.
    #[inline(always)] // a step of every call with contexts
    pub(crate) fn concern(id: u32) -> bool {
        matches!(id, CODE_SETS | BI_DIR_IIOP)
    }

    /// Takes note of a context.
    #[inline(always)] // a step of every call with contexts
    pub(crate) fn see(&mut self, context: ServiceContext<'m>) {
        let place = match context.id {
            RT_CORBA_PRIORITY => &mut self.priority,
            TRACE_CONTEXT => &mut self.trace,
            SECURITY_ATTRIBUTE_SERVICE => &mut self.principal,
            CODE_SETS => &mut self.code_sets,
            BI_DIR_IIOP => &mut self.listen_points,
            DEADLINE_CONTEXT => &mut self.deadline,
            _ => return,
        };
        place.get_or_insert(context.data);
    }

    /// Whether a context concerns the whole connection.
    #[inline]
    pub(crate) fn concern_connection(&self) -> bool {
        self.code_sets.is_some() || self.listen_points.is_some()
    }

    /// The operation's name as on the wire.
    pub fn operation(&self) -> &'m [u8] {
        self.operation
    }

    /// The CORBA priority that the client gives the request (RTCORBA 1.2, 5.4). `None` without one, or if its
    /// context cannot be read.
    pub fn priority(&self) -> Option<i16> {
        Reader::encapsulated(self.priority?, Encoding::NATIVE).ok()?.read_i16().ok()
    }

    /// The data of the trace context (`docs/wire.md`).
    pub fn trace(&self) -> Option<&'m [u8]> {
        self.trace
    }

    /// The data of the SecurityAttributeService context (CORBA 3.3 part 2, 10.2), which names the caller.
    pub fn principal(&self) -> Option<&'m [u8]> {
        self.principal
    }

    /// The data of the CodeSets context: the client announces the code sets of its connection.
    pub(crate) fn code_sets(&self) -> Option<&'m [u8]> {
        self.code_sets
    }

    /// How long the caller waits. `None` if it does not tell, or if its context cannot be read.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<DeadlineStamp> {
        DeadlineStamp::decode(self.deadline?)
    }

    /// The data of the BI_DIR_IIOP context: the client announces where it listens.
    pub(crate) fn listen_points(&self) -> Option<&'m [u8]> {
        self.listen_points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_the_first_contexts_of_their_kinds() {
        let context = |id, data| ServiceContext { id, data };
        let contexts = [
            context(99, &[9][..]),
            context(RT_CORBA_PRIORITY, &[0, 0, 0x12, 0x34]),
            context(RT_CORBA_PRIORITY, &[0, 0, 0, 0]),
            context(TRACE_CONTEXT, b"trace"),
            context(SECURITY_ATTRIBUTE_SERVICE, b"caller"),
        ];
        let facts = RequestFacts::new(b"ping", contexts.into_iter());
        assert_eq!((facts.operation(), facts.priority()), (&b"ping"[..], Some(0x1234)));
        assert_eq!((facts.trace(), facts.principal()), (Some(&b"trace"[..]), Some(&b"caller"[..])));
        assert_eq!((facts.code_sets(), facts.listen_points()), (None, None));
        for cut in [&[][..], &[0], &[0, 0, 1], &[2, 0, 0, 1]] {
            let facts = RequestFacts::new(b"", [context(RT_CORBA_PRIORITY, cut)].into_iter());
            assert_eq!(facts.priority(), None);
        }
    }
}
