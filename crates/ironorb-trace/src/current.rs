//! The context that the calling thread works in.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use ironorb::interceptor::{OutgoingCall, RequestFacts};

use crate::{TraceContext, TraceProvider};

thread_local! {
    /// The innermost is the last. `None` hides those before it.
    static CONTEXTS: RefCell<Vec<Option<TraceContext>>> = const { RefCell::new(Vec::new()) };
}

/// The trace context of the calling thread, for programs without a tracing library.
///
/// Requests that the thread sends carry the current context. While a servant runs, its thread has a context of its own:
/// the trace of the request, and a new span that stands for the servant. A request without a context begins no trace;
/// its servant has no context, and may enter one.
///
/// ```
/// use ironorb_trace::{CurrentTrace, TraceContext};
///
/// let guard = CurrentTrace::enter(TraceContext::begin(true));
/// // Calls from here on belong to the trace.
/// assert!(CurrentTrace::get().is_some());
/// drop(guard);
/// assert!(CurrentTrace::get().is_none());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CurrentTrace;

impl CurrentTrace {
    /// The current context. A thread that goes on with the work [enters](Self::enter) it, too.
    pub fn get() -> Option<TraceContext> {
        Self::with(|current| current.cloned())
    }

    /// Makes a context the current one of the calling thread until the guard is dropped. Then the context before is the
    /// current one again. Guards are dropped in the opposite order: what was entered later ends with a guard. Takes
    /// nothing from the heap, unless the thread has never been as deep in contexts before.
    pub fn enter(context: TraceContext) -> TraceGuard {
        push(Some(context))
    }

    /// Hides the current context until the guard is dropped: requests carry none.
    pub fn leave() -> TraceGuard {
        push(None)
    }

    /// Calls `read` with the current context, unless the variables of the thread are gone because it ends.
    #[inline]
    fn with<R: Default>(read: impl FnOnce(Option<&TraceContext>) -> R) -> R {
        let current = |contexts: &RefCell<Vec<_>>| read(contexts.borrow().last().and_then(Option::as_ref));
        CONTEXTS.try_with(current).unwrap_or_default()
    }
}

fn push(context: Option<TraceContext>) -> TraceGuard {
    let depth = CONTEXTS.try_with(|contexts| {
        let mut contexts = contexts.borrow_mut();
        contexts.push(context);
        contexts.len() - 1
    });
    TraceGuard { depth: depth.unwrap_or(usize::MAX), of_one_thread: PhantomData }
}

/// Keeps a context the current one: [`CurrentTrace::enter`].
#[derive(Debug)]
#[must_use = "the context is current until the guard is dropped"]
pub struct TraceGuard {
    /// The number of contexts below it.
    depth: usize,
    of_one_thread: PhantomData<Rc<()>>,
}

impl Drop for TraceGuard {
    fn drop(&mut self) {
        let _thread_is_ending = CONTEXTS.try_with(|contexts| contexts.borrow_mut().truncate(self.depth));
    }
}

impl TraceProvider for CurrentTrace {
    #[inline]
    fn outgoing(&self, _call: &OutgoingCall<'_>, send: impl FnOnce(&TraceContext)) {
        CurrentTrace::with(|current| {
            if let Some(context) = current {
                send(context);
            }
        });
    }

    #[inline]
    fn serve(&self, _request: &RequestFacts<'_>, remote: Option<TraceContext>, upcall: &mut dyn FnMut()) {
        let _guard = push(remote.map(TraceContext::into_child));
        upcall();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_enclose_one_another() {
        let (outer, inner) = (TraceContext::begin(true), TraceContext::begin(false));
        assert_eq!(CurrentTrace::get(), None);
        let outer_guard = CurrentTrace::enter(outer.clone());
        {
            let _inner = CurrentTrace::enter(inner.clone());
            assert_eq!(CurrentTrace::get(), Some(inner.clone()));
            let _hidden = CurrentTrace::leave();
            assert_eq!(CurrentTrace::get(), None);
        }
        assert_eq!(CurrentTrace::get(), Some(outer));
        let inner_guard = CurrentTrace::enter(inner);
        drop(outer_guard);
        assert_eq!(CurrentTrace::get(), None);
        drop(inner_guard);
        assert_eq!(CurrentTrace::get(), None);
    }

    #[test]
    fn each_thread_has_contexts_of_its_own() {
        let _guard = CurrentTrace::enter(TraceContext::begin(true));
        assert_eq!(std::thread::spawn(CurrentTrace::get).join().unwrap(), None);
    }
}
