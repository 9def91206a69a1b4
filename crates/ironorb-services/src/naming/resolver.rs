//! Compound names: the walk from a context through its bindings (Naming 1.3, 2.2).
//!
//! This module calls no other naming service. A name that leads into one ends in [`Step::Forward`], and the
//! servant, which has the connections, continues from there.

use super::binding::{Bound, ContextId, ContextRef, Reference};
use super::error::{NamingError, NotFoundReason};
use super::store::Lookup;
use ironorb::naming::{Name, NameComponent};

/// How far an operation came.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step<T> {
    /// The operation is done, with this result.
    Done(T),
    /// Nothing was done: call the operation with `rest_of_name` on the foreign context. Each such step
    /// consumes one component, so a ring of contexts of several services still comes to an end.
    Forward {
        /// The context on which to continue.
        context: Reference,
        /// The name in that context.
        rest_of_name: Name,
    },
}

/// The end of a name: a local context, the last component, and its current binding.
#[derive(Debug)]
pub(super) struct Place<'n> {
    pub(super) context: ContextId,
    pub(super) component: &'n NameComponent,
    pub(super) bound: Option<Bound>,
}

impl Place<'_> {
    pub(super) fn require_free(&self) -> Result<(), NamingError> {
        match self.bound {
            Some(_) => Err(NamingError::AlreadyBound),
            None => Ok(()),
        }
    }

    pub(super) fn require_bound(self) -> Result<Bound, NamingError> {
        match self.bound {
            Some(bound) => Ok(bound),
            None => Err(self.not_found(NotFoundReason::MissingNode)),
        }
    }

    /// A rebind may not replace a context by an object, or an object by a context.
    pub(super) fn require_free_or_like(&self, new: &Bound) -> Result<(), NamingError> {
        match (&self.bound, new) {
            (Some(Bound::Context(_)), Bound::Object(_)) => Err(self.not_found(NotFoundReason::NotObject)),
            (Some(Bound::Object(_)), Bound::Context(_)) => Err(self.not_found(NotFoundReason::NotContext)),
            _ => Ok(()),
        }
    }

    fn not_found(&self, why: NotFoundReason) -> NamingError {
        let rest_of_name = Name::new(vec![self.component.clone()]).expect("it was the end of a legal name");
        NamingError::NotFound { why, rest_of_name }
    }
}

/// Walks from `start` to the context of the last component.
pub(super) fn walk<'n>(
    store: &impl Lookup,
    start: ContextId,
    name: &'n Name,
) -> Result<Step<Place<'n>>, NamingError> {
    if !store.has_context(start)? {
        return Err(NamingError::NoSuchContext(start));
    }
    let (last, path) = name.split_last();
    let mut context = start;
    for (index, component) in path.iter().enumerate() {
        let not_found = |why| NamingError::NotFound { why, rest_of_name: name.rest(index) };
        match store.get(context, component)? {
            None => return Err(not_found(NotFoundReason::MissingNode)),
            Some(Bound::Object(_)) => return Err(not_found(NotFoundReason::NotContext)),
            Some(Bound::Context(ContextRef::Foreign(foreign))) => {
                return Ok(Step::Forward { context: foreign, rest_of_name: name.rest(index + 1) });
            }
            Some(Bound::Context(ContextRef::Local(next))) => {
                if !store.has_context(next)? {
                    return Err(NamingError::CannotProceed { context, rest_of_name: name.rest(index) });
                }
                context = next;
            }
        }
    }
    let bound = store.get(context, last)?;
    Ok(Step::Done(Place { context, component: last, bound }))
}
