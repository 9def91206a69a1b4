//! One naming context as a servant: NamingContextExt over the service.

use std::sync::{Arc, Weak};

use ironorb::naming::Name;
use ironorb::naming::cos_naming as cos;
use ironorb::naming::cos_naming::naming_context as nc;
use ironorb::naming::cos_naming::naming_context_ext as ext;
use ironorb::naming::cos_naming::{
    BindingIteratorRef, BindingList, NameComponent, NamingContext, NamingContextExt, NamingContextExtRef,
    NamingContextRef,
};
use ironorb::poa::{ObjectId, ServantActivator, Unavailable};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, Poa, Servant, SystemException, SystemExceptionKind, TypedRef,
    servant,
};

use super::fault::{Fault, components, system_exception};
use super::iterator::{ListingIterator, to_cos};
use super::{Shared, checked_name, references};
use crate::naming::{Bound, ContextId, ContextRef, NamingError, Reference, Step};

/// The servant of one context. Its only state is the context's number.
pub(super) struct Context {
    shared: Arc<Shared>,
    id: ContextId,
}

impl Context {
    pub(super) fn new(shared: Arc<Shared>, id: ContextId) -> Self {
        Context { shared, id }
    }

    /// Finishes an operation of the service. If the name leads into another naming service, `go_on` makes the
    /// call there.
    fn finish<T, E>(
        &self,
        outcome: Result<Step<T>, NamingError>,
        go_on: impl FnOnce(&NamingContextRef, &[NameComponent]) -> Result<T, E>,
    ) -> Result<T, Fault>
    where
        Fault: From<E>,
    {
        let step = self.shared.noted(outcome).map_err(|e| Fault::of(&self.shared, e))?;
        match step {
            Step::Done(done) => Ok(done),
            Step::Forward { context, rest_of_name } => {
                let (context, rest) = (self.foreign(&context)?, components(rest_of_name));
                go_on(&context, &rest).map_err(|e| unreachable_context(e.into(), context, rest))
            }
        }
    }

    fn foreign(&self, context: &Reference) -> Result<NamingContextRef, Fault> {
        Ok(self.shared.reference_from_store(context)?.narrow_unchecked())
    }

    fn resolve_name(&self, name: &Name) -> Result<Option<ObjectRef>, Fault> {
        let outcome = self.shared.service.resolve(self.id, name);
        let outcome = outcome.map(|step| match step {
            Step::Done(bound) => Step::Done(Answer::Here(bound)),
            Step::Forward { context, rest_of_name } => Step::Forward { context, rest_of_name },
        });
        match self.finish(outcome, |context, rest| context.resolve(rest).map(Answer::There))? {
            Answer::There(object) => Ok(object),
            Answer::Here(Bound::Object(reference) | Bound::Context(ContextRef::Foreign(reference))) => {
                self.shared.reference_from_store(&reference).map(Some)
            }
            Answer::Here(Bound::Context(ContextRef::Local(context))) => {
                Ok(Some(self.shared.context_reference(context)?.object().clone()))
            }
        }
    }

    fn made(&self, context: ContextId) -> Result<Option<NamingContextRef>, Fault> {
        Ok(Some(self.shared.context_reference(context)?))
    }

    fn fault(&self, error: NamingError) -> Fault {
        Fault::of(&self.shared, error)
    }
}

/// The target of a name, and the service that resolved it.
enum Answer {
    Here(Bound),
    There(Option<ObjectRef>),
}

impl NamingContext for Context {
    fn bind(&self, n: &[NameComponent], obj: Option<&ObjectRef>) -> Result<(), nc::BindError> {
        let (name, object) = (named(n)?, required(obj)?);
        let outcome = self.shared.service.bind(self.id, &name, references::to_store(object)?);
        Ok(self.finish(outcome, |context, rest| context.bind(rest, obj))?)
    }

    fn rebind(&self, n: &[NameComponent], obj: Option<&ObjectRef>) -> Result<(), nc::RebindError> {
        let (name, object) = (named(n)?, required(obj)?);
        let outcome = self.shared.service.rebind(self.id, &name, references::to_store(object)?);
        Ok(self.finish(outcome, |context, rest| context.rebind(rest, obj))?)
    }

    fn bind_context(
        &self,
        n: &[NameComponent],
        nc: Option<&NamingContextRef>,
    ) -> Result<(), nc::BindContextError> {
        let (name, context) = (named(n)?, required(nc)?);
        let outcome =
            self.shared.service.bind_context(self.id, &name, self.shared.context_to_store(context)?);
        Ok(self.finish(outcome, |context, rest| context.bind_context(rest, nc))?)
    }

    fn rebind_context(
        &self,
        n: &[NameComponent],
        nc: Option<&NamingContextRef>,
    ) -> Result<(), nc::RebindContextError> {
        let (name, context) = (named(n)?, required(nc)?);
        let outcome =
            self.shared.service.rebind_context(self.id, &name, self.shared.context_to_store(context)?);
        Ok(self.finish(outcome, |context, rest| context.rebind_context(rest, nc))?)
    }

    fn resolve(&self, n: &[NameComponent]) -> Result<Option<ObjectRef>, nc::ResolveError> {
        Ok(self.resolve_name(&named(n)?)?)
    }

    fn unbind(&self, n: &[NameComponent]) -> Result<(), nc::UnbindError> {
        let outcome = self.shared.service.unbind(self.id, &named(n)?);
        Ok(self.finish(outcome, |context, rest| context.unbind(rest))?)
    }

    fn new_context(&self) -> Result<Option<NamingContextRef>, SystemException> {
        let outcome = self.shared.noted(self.shared.service.new_context(self.id));
        Ok(self.made(outcome.map_err(system_exception)?)?)
    }

    fn bind_new_context(
        &self,
        n: &[NameComponent],
    ) -> Result<Option<NamingContextRef>, nc::BindNewContextError> {
        let outcome = match self.shared.service.bind_new_context(self.id, &named(n)?) {
            Ok(Step::Done(made)) => Ok(Step::Done(self.made(made)?)),
            Ok(Step::Forward { context, rest_of_name }) => Ok(Step::Forward { context, rest_of_name }),
            Err(e) => Err(e),
        };
        Ok(self.finish(outcome, |context, rest| context.bind_new_context(rest))?)
    }

    fn destroy(&self) -> Result<(), nc::DestroyError> {
        self.shared.noted(self.shared.service.destroy(self.id)).map_err(|e| self.fault(e))?;
        // Two clients may destroy the context at one time. Both come here, and only one finds the object
        // active.
        let _ = self.shared.contexts.deactivate(&references::context_object_id(self.id));
        Ok(())
    }

    fn list(&self, how_many: u32) -> Result<(BindingList, Option<BindingIteratorRef>), SystemException> {
        let listing =
            self.shared.noted(self.shared.service.list(self.id, how_many)).map_err(system_exception)?;
        if let Some(evicted) = listing.evicted {
            // A client may be destroying the iterator at this moment.
            let _ = self.shared.iterators.deactivate(&references::iterator_object_id(evicted));
        }
        let iterator = match listing.iterator {
            Some(id) => Some(ListingIterator::activate(&self.shared, id).map_err(Fault::from)?),
            None => None,
        };
        Ok((listing.bindings.into_iter().map(to_cos).collect(), iterator))
    }
}

impl NamingContextExt for Context {
    fn to_string(&self, n: &[NameComponent]) -> Result<ext::StringName, ext::ToStringError> {
        Ok(ToString::to_string(&named(n)?))
    }

    fn to_name(&self, sn: &str) -> Result<cos::Name, ext::ToNameError> {
        Ok(components(Name::parse(sn).map_err(Fault::from)?))
    }

    fn to_url(&self, addr: &str, sn: &str) -> Result<ext::UrlString, ext::ToUrlError> {
        Ok(crate::naming::to_url(addr, sn).map_err(|e| self.fault(e))?)
    }

    fn resolve_str(&self, n: &str) -> Result<Option<ObjectRef>, ext::ResolveStrError> {
        Ok(self.resolve_name(&Name::parse(n).map_err(Fault::from)?)?)
    }
}

/// Creates servants for contexts of the store when they are first called.
pub(super) struct Activator(Weak<Shared>);

impl Activator {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Activator(Arc::downgrade(shared))
    }
}

impl ServantActivator for Activator {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        let gone = || Unavailable::Raise(not_exist());
        let shared = self.0.upgrade().ok_or_else(gone)?;
        let context = references::context_of(id).ok_or_else(gone)?;
        match shared.noted(shared.service.has_context(context)) {
            Ok(true) => Ok(servant::<NamingContextExtRef, _>(Arc::new(Context::new(shared, context)))),
            Ok(false) => Err(gone()),
            Err(e) => Err(Unavailable::Raise(system_exception(e))),
        }
    }
}

fn named(n: &[NameComponent]) -> Result<Name, Fault> {
    Ok(checked_name(n)?)
}

fn required<T>(reference: Option<&T>) -> Result<&T, Fault> {
    reference.ok_or_else(|| Fault::bad_param("nil cannot be bound: it refers to no object"))
}

/// Maps an unreachable context to CannotProceed: the client may be able to reach the other naming service
/// itself. An operation that may have been carried out there must not be repeated, so its exception stays
/// unchanged.
fn unreachable_context(fault: Fault, cxt: NamingContextRef, rest_of_name: cos::Name) -> Fault {
    match fault {
        Fault::System(e) if e.completed == CompletionStatus::No && is_unreachable(e.kind) => {
            Fault::CannotProceed(nc::CannotProceed { cxt: Some(cxt), rest_of_name })
        }
        other => other,
    }
}

fn is_unreachable(kind: SystemExceptionKind) -> bool {
    use SystemExceptionKind::{CommFailure, InvObjref, NoResponse, ObjectNotExist, Timeout, Transient};
    matches!(kind, CommFailure | InvObjref | NoResponse | ObjectNotExist | Timeout | Transient)
}

fn not_exist() -> SystemException {
    SystemException::new(SystemExceptionKind::ObjectNotExist, MinorCode::NO_SUCH_OBJECT, CompletionStatus::No)
}
